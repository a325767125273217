/* Calls every function of dml_cuda.h with right and wrong arguments, as many times as its argument says. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dml_cuda.h"

static int failures = 0;
static DML_CUDA_ERROR* error = NULL;

static void check(int holds, const char* what, int line) {
    if (holds) return;
    fprintf(stderr, "calls.c:%d: %s\n", line, what);
    ++failures;
}
#define CHECK(condition) check((condition) != 0, #condition, __LINE__)

/* Checks that a call failed with this status and message, and destroys the error. */
static int failed(DML_CUDA_STATUS status, DML_CUDA_STATUS required, const char* words) {
    const char* message = dml_cuda_error_message(error);
    int same = status == required && dml_cuda_error_status(error) == required && message != NULL &&
               strcmp(message, words) == 0;
    if (!same)
        fprintf(stderr, "status %u: %s\nmust be %u: %s\n", status, message ? message : "no error", required, words);
    dml_cuda_destroy_error(error);
    return same;
}
#define ARRAY(data, rank, width, sizes, strides) {sizeof(DML_CUDA_ARRAY), rank, data, width, sizes, strides}
#define FAILS(status, words, call) CHECK(failed(call, DML_CUDA_STATUS_##status, words))

static const uint32_t DATA_SIZES[] = {2, 4}, LENGTH_SIZES[] = {2, 1}, ZEROS[] = {0, 0};

struct reversal {
    DML_CUDA_BUFFER_TENSOR_DESC data, lengths;
    DML_CUDA_TENSOR_DESC input, sequence_lengths, output;
    DML_CUDA_REVERSE_SUBSEQUENCES_OPERATOR_DESC reverse;
    DML_CUDA_OPERATOR_DESC desc;
};

static void reversal(struct reversal* r) {
    *r = (struct reversal){
        .data = {DML_CUDA_TENSOR_DATA_TYPE_FLOAT32, 0, 2, DATA_SIZES, NULL, 32, 0},
        .lengths = {DML_CUDA_TENSOR_DATA_TYPE_UINT32, 0, 2, LENGTH_SIZES, NULL, 8, 0},
        .input = {DML_CUDA_TENSOR_TYPE_BUFFER, &r->data},
        .sequence_lengths = {DML_CUDA_TENSOR_TYPE_BUFFER, &r->lengths},
        .output = {DML_CUDA_TENSOR_TYPE_BUFFER, &r->data},
        .reverse = {&r->input, &r->sequence_lengths, &r->output, 1},
        .desc = {DML_CUDA_OPERATOR_REVERSE_SUBSEQUENCES, &r->reverse},
    };
}

static void devices(void) {
    DML_CUDA_DEVICE* device = NULL;
    DML_CUDA_TENSOR_SUPPORT support;
    DML_CUDA_ONNXRUNTIME_COUNTERS counters;
    uint32_t count = 77;
    CHECK(dml_cuda_onnxruntime_counters(&counters, NULL) == 0);
    CHECK(counters.Nodes == 0 && counters.Runs == 0 && counters.InPlaceRuns == 0);
    FAILS(INVALID_ARGUMENT, "counters is NULL, but must be where the result goes",
          dml_cuda_onnxruntime_counters(NULL, &error));
    CHECK(strcmp(dml_cuda_version(), VERSION) == 0);
    CHECK(dml_cuda_create_cpu_device(DML_CUDA_FEATURE_LEVEL_4_0, &device, &error) == 0 && error == NULL);
    CHECK(strcmp(dml_cuda_device_name(device), "CPU") == 0);
    CHECK(dml_cuda_device_feature_level(device) == DML_CUDA_FEATURE_LEVEL_4_0);
    CHECK(dml_cuda_check_tensor_support(device, 106, DML_CUDA_TENSOR_ROLE_SEQUENCE_LENGTHS, &support, NULL) == 0);
    CHECK(support.IsSupported == 1 && support.MinimumDimensionCount == 1 && support.MaximumDimensionCount == 8);
    CHECK(support.DataTypeMask == 1u << DML_CUDA_TENSOR_DATA_TYPE_UINT32);
    CHECK(dml_cuda_check_tensor_support(device, 104, DML_CUDA_TENSOR_ROLE_INPUT, &support, NULL) == 0);
    CHECK(support.IsSupported == 0 && support.DataTypeMask == 0);
    FAILS(INVALID_ARGUMENT,
          "the operator type is 105, but must be 104 (FILL_VALUE_SEQUENCE) or 106 (REVERSE_SUBSEQUENCES)",
          dml_cuda_check_tensor_support(device, 105, 0, &support, &error));
    FAILS(INVALID_ARGUMENT, "the tensor role is 3, but must be one of DML_CUDA_TENSOR_ROLE_*",
          dml_cuda_check_tensor_support(device, 106, 3, &support, &error));
    dml_cuda_destroy_device(device);
    FAILS(INVALID_ARGUMENT, "the feature level is 0x4200, but must be 0 or one of DML_CUDA_FEATURE_LEVEL_*",
          dml_cuda_create_cpu_device(0x4200, &device, &error));
    FAILS(INVALID_ARGUMENT, "device is NULL, but must be where the result goes",
          dml_cuda_create_cpu_device(0, NULL, &error));
    CHECK(dml_cuda_device_name(NULL) == NULL && dml_cuda_device_feature_level(NULL) == 0);
    dml_cuda_destroy_device(NULL);
    /* A machine without a driver says so; one with GPUs has no GPU 1000. */
    if (dml_cuda_cuda_device_count(&count, &error) != 0) {
        CHECK(count == 77 && dml_cuda_error_status(error) == DML_CUDA_STATUS_DEVICE);
        CHECK(strstr(dml_cuda_error_message(error), "cuda: ") == dml_cuda_error_message(error));
        dml_cuda_destroy_error(error);
    }
    /* The first GPU, the CPU only without a driver, and else the error. */
    if (dml_cuda_create_cuda_or_cpu_device(0, &device, &error) == 0) {
        int is_cpu = strcmp(dml_cuda_device_name(device), "CPU") == 0;
        CHECK(is_cpu == (dml_cuda_cuda_device_count(&count, NULL) != 0));
        dml_cuda_destroy_device(device);
    } else {
        CHECK(dml_cuda_error_status(error) == DML_CUDA_STATUS_DEVICE);
        dml_cuda_destroy_error(error);
    }
    CHECK(dml_cuda_create_cuda_device(1000, 0, &device, &error) == DML_CUDA_STATUS_DEVICE && error != NULL);
    dml_cuda_destroy_error(error);
}

/* Checks what a changed reversal fails with. */
#define WRONG(change, status, words) \
    (reversal(&r), (void)(change), FAILS(status, words, dml_cuda_validate(&r.desc, 0, &error)))

static void validation(void) {
    struct reversal r;
    DML_CUDA_VIOLATION violation;
    reversal(&r);
    CHECK(dml_cuda_validate(&r.desc, 0, &error) == 0 && error == NULL);
    r.reverse.Axis = 7;
    r.data.GuaranteedBaseOffsetAlignment = 24;
    CHECK(dml_cuda_validate(&r.desc, DML_CUDA_FEATURE_LEVEL_6_4, &error) == DML_CUDA_STATUS_VALIDATION);
    CHECK(dml_cuda_error_violation_count(error) == 3);
    CHECK(dml_cuda_error_violation(error, 2, &violation) == 0);
    CHECK(strcmp(violation.Rule, "reverse.axis.range") == 0 &&
          strcmp(violation.Place, "ReverseSubsequencesDesc.Axis") == 0);
    CHECK(strcmp(violation.Found, "7") == 0 && strstr(violation.Required, "below 2") != NULL &&
          violation.NeededFeatureLevel == 0);
    CHECK(dml_cuda_error_violation(error, 3, &violation) == DML_CUDA_STATUS_INVALID_ARGUMENT);
    CHECK(dml_cuda_error_violation(error, 0, NULL) == DML_CUDA_STATUS_INVALID_ARGUMENT);
    CHECK(strstr(dml_cuda_error_message(error), "(tensor.alignment)\n") != NULL);
    dml_cuda_destroy_error(error);
    /* A level that is too low is named. */
    reversal(&r);
    CHECK(dml_cuda_validate(&r.desc, DML_CUDA_FEATURE_LEVEL_2_1, &error) == DML_CUDA_STATUS_VALIDATION);
    CHECK(dml_cuda_error_violation(error, 0, &violation) == 0);
    CHECK(violation.Required == NULL && violation.NeededFeatureLevel == DML_CUDA_FEATURE_LEVEL_4_0);
    dml_cuda_destroy_error(error);
    CHECK(dml_cuda_validate_as(&r.desc, "1.8.0", NULL) == 0);
    CHECK(dml_cuda_validate_as(&r.desc, "1.0.0", NULL) == DML_CUDA_STATUS_VALIDATION);
    CHECK(dml_cuda_validate_as(&r.desc, "6.4", NULL) == DML_CUDA_STATUS_INVALID_ARGUMENT);
    FAILS(INVALID_ARGUMENT, "directml_version is NULL, but must be a text",
          dml_cuda_validate_as(&r.desc, NULL, &error));
    r.data.Strides = ZEROS;
    CHECK(dml_cuda_validate(&r.desc, 0, NULL) == DML_CUDA_STATUS_VALIDATION);
    /* Input that is not a descriptor. */
    FAILS(INVALID_ARGUMENT, "OperatorDesc is NULL, but must be a pointer", dml_cuda_validate(NULL, 0, &error));
    WRONG(r.desc.Type = 1, INVALID_ARGUMENT,
          "the operator type is 1, but must be 104 (FILL_VALUE_SEQUENCE) or 106 (REVERSE_SUBSEQUENCES)");
    WRONG(r.desc.Desc = NULL, INVALID_ARGUMENT, "ReverseSubsequencesDesc is NULL, but must be a pointer");
    WRONG(r.reverse.OutputTensor = NULL, INVALID_ARGUMENT,
          "ReverseSubsequencesDesc.OutputTensor is NULL, but must be a pointer");
    WRONG(r.input.Type = 0, INVALID_ARGUMENT, "ReverseSubsequencesDesc.InputTensor.Type is 0, but must be 1 (BUFFER)");
    WRONG(r.lengths.DataType = 14, INVALID_ARGUMENT,
          "ReverseSubsequencesDesc.SequenceLengthsTensor.DataType is 14, but must be 1 (FLOAT32) to 13 (INT4)");
    WRONG(r.data.Flags = 2, INVALID_ARGUMENT,
          "ReverseSubsequencesDesc.InputTensor.Flags is 0x2, but must be 0 or 1 (OWNED_BY_DML)");
    WRONG(r.data.Sizes = NULL, INVALID_ARGUMENT,
          "ReverseSubsequencesDesc.InputTensor.Sizes is NULL, but must be a pointer");
    WRONG(r.data.DimensionCount = 4000000000u, VALIDATION,
          "ReverseSubsequencesDesc.InputTensor.DimensionCount is 4000000000, but must be from 1 to 8 "
          "(tensor.dimension_count)");
    reversal(&r);
    r.data.DimensionCount = 0;
    CHECK(dml_cuda_validate(&r.desc, 0, NULL) == DML_CUDA_STATUS_VALIDATION);
    CHECK(dml_cuda_error_violation_count(NULL) == 0 && dml_cuda_error_message(NULL) == NULL &&
          dml_cuda_error_status(NULL) == 0);
    dml_cuda_destroy_error(NULL);
    dml_cuda_free_string(NULL);
}

static void dispatches(void) {
    struct reversal r;
    DML_CUDA_DEVICE* device = NULL;
    DML_CUDA_OPERATOR* op = NULL;
    DML_CUDA_COMPILED_OPERATOR* compiled = NULL;
    DML_CUDA_BINDING_PROPERTIES properties;
    float data[8] = {1, 2, 3, 4, 5, 6, 7, 8}, other[8];
    uint32_t lengths[2] = {2, 4};
    const void* inputs[] = {data, lengths};
    char* text = NULL;
    reversal(&r);
    CHECK(dml_cuda_create_cpu_device(0, &device, NULL) == 0);
    CHECK(dml_cuda_create_operator(NULL, &r.desc, &op, NULL) == DML_CUDA_STATUS_INVALID_ARGUMENT);
    CHECK(dml_cuda_create_operator(device, &r.desc, NULL, NULL) == DML_CUDA_STATUS_INVALID_ARGUMENT);
    r.reverse.Axis = 2;
    CHECK(dml_cuda_create_operator(device, &r.desc, &op, NULL) == DML_CUDA_STATUS_VALIDATION);
    r.reverse.Axis = 1;
    CHECK(dml_cuda_create_operator(device, &r.desc, &op, NULL) == 0);
    CHECK(dml_cuda_explain(op, "h1000", &text, NULL) == DML_CUDA_STATUS_INVALID_ARGUMENT);
    CHECK(dml_cuda_explain(op, "h100", &text, NULL) == 0 && strstr(text, "merged shape") == text);
    dml_cuda_free_string(text);
    CHECK(dml_cuda_compile_operator(device, op, NULL, &compiled, &error) == 0);
    CHECK(dml_cuda_get_binding_properties(compiled, &properties, NULL) == 0);
    CHECK(properties.RequiredDescriptorCount == 3 && properties.TemporaryResourceSize == 0 &&
          properties.PersistentResourceSize == 0);
    CHECK(dml_cuda_dispatch(compiled, inputs, 2, other, NULL, NULL) == 0 && other[0] == 2 && other[7] == 5 &&
          data[0] == 1);
    CHECK(dml_cuda_dispatch(compiled, inputs, 2, data, NULL, &error) == 0 && error == NULL);
    CHECK(data[0] == 2 && data[1] == 1 && data[2] == 3 && data[4] == 8 && data[7] == 5);
    FAILS(BINDING, "the number of inputs is 0, but must be 2 (binding.count)",
          dml_cuda_dispatch(compiled, NULL, 0, data, NULL, &error));
    FAILS(INVALID_ARGUMENT, "inputs is NULL, but must be a pointer",
          dml_cuda_dispatch(compiled, NULL, 2, data, NULL, &error));
    FAILS(BINDING, "the pointer of OutputTensor is null, but must be the address of its first element (binding.null)",
          dml_cuda_dispatch(compiled, inputs, 2, NULL, NULL, &error));
    CHECK(dml_cuda_dispatch(compiled, inputs, 2, data, data, &error) == DML_CUDA_STATUS_BINDING);
    CHECK(strstr(dml_cuda_error_message(error), "(dispatch.stream)") != NULL);
    dml_cuda_destroy_error(error);
    FAILS(INVALID_ARGUMENT, "compiled is NULL, but must be a pointer",
          dml_cuda_dispatch(NULL, inputs, 2, data, NULL, &error));
    dml_cuda_destroy_compiled_operator(compiled);
    CHECK(dml_cuda_compile_operator(device, op, "select=measure specialize=24", &compiled, &error) ==
          DML_CUDA_STATUS_INVALID_ARGUMENT);
    CHECK(strstr(dml_cuda_error_message(error),
                 "the compile option is `specialize=24`, but must be one of specialize=") != NULL);
    dml_cuda_destroy_error(error);
    FAILS(INVALID_ARGUMENT, "options is \"\\xff\", but must be UTF-8",
          dml_cuda_compile_operator(device, op, "\377", &compiled, &error));
    CHECK(dml_cuda_compile_operator(device, op, "", &compiled, NULL) == 0);
    dml_cuda_destroy_compiled_operator(compiled);
    CHECK(dml_cuda_compile_operator(device, op, "specialize=always select=measure", &compiled, NULL) == 0);
    /* Objects can be destroyed in any order. */
    dml_cuda_destroy_device(device);
    dml_cuda_destroy_operator(op);
    CHECK(dml_cuda_dispatch(compiled, inputs, 2, data, NULL, NULL) == 0 && data[0] == 1 && data[4] == 5);
    dml_cuda_destroy_compiled_operator(compiled);
}

/* Fills and reversals of arrays. */
static void arrays(void) {
    DML_CUDA_DEVICE* device = NULL;
    DML_CUDA_COMPILED_OPERATOR* compiled = NULL;
    DML_CUDA_SCALAR_UNION start = {.Float64 = 1}, delta = {.Float64 = 0.5};
    DML_CUDA_VIOLATION violation;
    double doubles[8];
    uint32_t lengths[2] = {2, 1};
    const int64_t sizes[9] = {1, 1, 1, 1, 1, 1, 1, 2, 4}, strides[9] = {0, 0, 0, 0, 0, 0, 0, 0, 8};
    DML_CUDA_ARRAY output = ARRAY(doubles, 9, 8, sizes, NULL), of_lengths = ARRAY(lengths, 0, 4, NULL, NULL);
    const void* inputs[] = {doubles, lengths};
    CHECK(dml_cuda_create_cpu_device(0, &device, NULL) == 0);
    CHECK(dml_cuda_compile_sequence(device, &output, DML_CUDA_TENSOR_DATA_TYPE_FLOAT64, &start, &delta, NULL, &compiled,
                                    &error) == 0);
    CHECK(dml_cuda_dispatch(compiled, NULL, 0, doubles, NULL, &error) == 0 && doubles[0] == 1 && doubles[7] == 4.5);
    dml_cuda_destroy_compiled_operator(compiled);
    output.StridesInBytes = strides;
    FAILS(INVALID_ARGUMENT,
          "output has Sizes [1, 1, 1, 1, 1, 1, 1, 2, 4], but must be packed, or have at most 8 dimensions",
          dml_cuda_compile_sequence(device, &output, DML_CUDA_TENSOR_DATA_TYPE_INT64, &start, &delta, NULL, &compiled,
                                    &error));
    FAILS(INVALID_ARGUMENT, "output.ElementSizeInBytes is 8, but must be 4, that of INT32",
          dml_cuda_compile_sequence(device, &output, DML_CUDA_TENSOR_DATA_TYPE_INT32, &start, &delta, NULL, &compiled,
                                    &error));
    /* In place, where two lanes share their memory. */
    output = (DML_CUDA_ARRAY)ARRAY(doubles, 2, 8, sizes + 7, strides + 7);
    CHECK(dml_cuda_compile_reversal(device, &output, &of_lengths, &output, 1, NULL, &compiled, &error) ==
          DML_CUDA_STATUS_VALIDATION);
    CHECK(dml_cuda_error_violation(error, 0, &violation) == 0 && strcmp(violation.Found, "[0, 8] bytes") == 0);
    FAILS(VALIDATION,
          "ReverseSubsequencesDesc.OutputTensor.Strides is [0, 8] bytes, but must be strides that place no two "
          "elements of "
          "the sizes [2, 4] in the same memory (output.strides.nonzero)",
          dml_cuda_error_status(error));
    output.StridesInBytes = NULL;
    /* No size may be 0. */
    const int64_t no_columns[] = {3, 0};
    DML_CUDA_ARRAY empty = ARRAY(doubles, 2, 8, no_columns, NULL);
    CHECK(dml_cuda_compile_sequence(device, &empty, DML_CUDA_TENSOR_DATA_TYPE_INT64, &start, &delta, NULL, &compiled,
                                    &error) == DML_CUDA_STATUS_VALIDATION);
    CHECK(dml_cuda_error_violation(error, 0, &violation) == 0 && strcmp(violation.Rule, "tensor.sizes.nonzero") == 0);
    dml_cuda_destroy_error(error);
    CHECK(dml_cuda_compile_reversal(device, &empty, &of_lengths, &empty, 0, NULL, &compiled, NULL) ==
          DML_CUDA_STATUS_VALIDATION);
    CHECK(dml_cuda_compile_sequence(device, &output, DML_CUDA_TENSOR_DATA_TYPE_UINT4, &start, &delta, NULL, &compiled,
                                    NULL) == DML_CUDA_STATUS_VALIDATION);
    DML_CUDA_ARRAY narrow = ARRAY(doubles, 2, 4, sizes + 7, NULL), short_one = ARRAY(doubles, 1, 8, sizes + 8, NULL);
    FAILS(INVALID_ARGUMENT, "output.ElementSizeInBytes is 4, but must be 8, the input's",
          dml_cuda_compile_reversal(device, &output, &of_lengths, &narrow, 1, NULL, &compiled, &error));
    FAILS(INVALID_ARGUMENT, "OutputTensor has shape [4], but must have InputTensor's [2, 4]",
          dml_cuda_compile_reversal(device, &output, &of_lengths, &short_one, 1, NULL, &compiled, &error));
    CHECK(dml_cuda_compile_reversal(device, &output, &of_lengths, &output, 1, NULL, &compiled, &error) == 0);
    CHECK(dml_cuda_dispatch(compiled, inputs, 2, doubles, NULL, &error) == 0 && doubles[0] == 1.5 && doubles[5] == 3);
    dml_cuda_destroy_compiled_operator(compiled);
    dml_cuda_destroy_device(device);
}

/* What 0.3 added: one call for arrays, with the caller's names for what is wrong. */
static void arrays_at_once(void) {
#ifdef DML_CUDA_TENSOR_ROLE_NONE
    DML_CUDA_DEVICE* device = NULL;
    DML_CUDA_SCALAR_UNION start = {.Float64 = 1}, delta = {.Float64 = 0.5};
    const int64_t empty[] = {0};
    const uint32_t length = 2;
    double filled[2];
    DML_CUDA_NAMES names = {sizeof(names), "x", "lengths", "out", "dim"};
    DML_CUDA_VIOLATION violation;
    char* words = NULL;
    unsigned char bytes[41] = {9, 3, 0, 0, 0, 1, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8};
    const int64_t of_bytes[] = {2, 4}, of_two[] = {2, 1}, too_many[] = {65536, 65537};
    DML_CUDA_ARRAY rows = ARRAY(bytes + 9, 2, 1, of_bytes, NULL), odd = ARRAY(bytes + 1, 2, 4, of_two, NULL);
    CHECK(dml_cuda_create_cpu_device(0, &device, NULL) == 0);
    CHECK(dml_cuda_reverse_arrays(device, &rows, &odd, &rows, -1, NULL, NULL, &error) == 0 && error == NULL);
    CHECK(memcmp(bytes + 9, "\3\2\1\4\5\6\7\10", 8) == 0 && bytes[0] == 9 && bytes[17] == 0);
    CHECK(dml_cuda_wait_for_stream(device, NULL, NULL, &error) == 0 && error == NULL);
    CHECK(dml_cuda_reverse_arrays(device, &rows, &odd, &rows, 2, NULL, NULL, &error) ==
          DML_CUDA_STATUS_INVALID_ARGUMENT);
    CHECK(dml_cuda_error_message_with_names(error, &names, &words) == 0);
    CHECK(strcmp(words, "dim is 2, but must be from -2 to 1, the dimensions of x") == 0);
    CHECK(dml_cuda_error_message_with_names(error, NULL, &words) == DML_CUDA_STATUS_INVALID_ARGUMENT);
    CHECK(dml_cuda_error_message_with_names(error, &names, NULL) == DML_CUDA_STATUS_INVALID_ARGUMENT);
    names.SizeInBytes += 8;
    CHECK(dml_cuda_error_message_with_names(error, &names, &words) == DML_CUDA_STATUS_INVALID_ARGUMENT);
    names.SizeInBytes -= 8;
    dml_cuda_free_string(words);
    dml_cuda_destroy_error(error);
    CHECK(dml_cuda_reverse_arrays(device, &rows, &odd, &rows, 1, NULL, bytes, &error) == DML_CUDA_STATUS_BINDING);
    dml_cuda_destroy_error(error);
    rows.SizeInBytes = 32;
    FAILS(INVALID_ARGUMENT, "input.SizeInBytes is 32, but must be 40, the bytes of the structure",
          dml_cuda_reverse_arrays(device, &rows, &odd, &rows, 1, NULL, NULL, &error));
    rows.SizeInBytes = sizeof rows;
    rows.Sizes = too_many;
    odd = (DML_CUDA_ARRAY)ARRAY(&length, 0, 4, NULL, NULL);
    CHECK(dml_cuda_reverse_arrays(device, &rows, &odd, &rows, 1, NULL, NULL, &error) == DML_CUDA_STATUS_VALIDATION);
    CHECK(dml_cuda_error_violation(error, 0, &violation) == 0);
    CHECK(violation.Tensor == DML_CUDA_TENSOR_ROLE_INPUT && violation.Index == -1 &&
          strcmp(violation.Field, "Sizes") == 0);
    CHECK(dml_cuda_error_violation(error, 99, &violation) == DML_CUDA_STATUS_INVALID_ARGUMENT);
    CHECK(dml_cuda_error_message_with_names(error, &names, &words) == 0);
    CHECK(strstr(words, "x.Sizes is [65536, 65537], which is 4295032832 elements, but must be") == words);
    dml_cuda_free_string(words);
    dml_cuda_destroy_error(error);
    rows = (DML_CUDA_ARRAY)ARRAY(bytes + 1, 1, 8, of_bytes, NULL);
    CHECK(dml_cuda_fill_array(device, &rows, DML_CUDA_TENSOR_DATA_TYPE_FLOAT64, &start, &delta, NULL, NULL, &error) ==
          0);
    memcpy(filled, bytes + 1, 16);
    CHECK(filled[0] == 1 && filled[1] == 1.5 && bytes[0] == 9 && bytes[17] == 0);
    rows.Sizes = empty;
    CHECK(dml_cuda_fill_array(device, &rows, DML_CUDA_TENSOR_DATA_TYPE_FLOAT64, &start, &delta, NULL, NULL, &error) ==
              0 &&
          bytes[0] == 9);
    CHECK(dml_cuda_reverse_arrays(device, &rows, &odd, &rows, 0, NULL, NULL, &error) == 0);
    dml_cuda_destroy_device(device);
#endif
}

int main(int argc, char** argv) {
    for (long times = argc > 1 ? atol(argv[1]) : 1; times > 0; --times) {
        devices();
        validation();
        dispatches();
        arrays();
        arrays_at_once();
    }
    if (failures == 0) printf("all calls are right\n");
    return failures != 0;
}
