/* Reverses the first three elements of a lane of four, and the first two of another, on the CPU. */
#include <stdio.h>
#include <stdlib.h>

#include "dml_cuda.h"

static void check(DML_CUDA_STATUS status, DML_CUDA_ERROR** error) {
    if (status == DML_CUDA_STATUS_OK) return;
    fprintf(stderr, "%s\n", dml_cuda_error_message(*error));
    dml_cuda_destroy_error(*error);
    exit(1);
}

int main(void) {
    DML_CUDA_ERROR* error = NULL;
    DML_CUDA_DEVICE* device;
    check(dml_cuda_create_cpu_device(DML_CUDA_FEATURE_LEVEL_HIGHEST, &device, &error), &error);

    const uint32_t sizes[] = {2, 4}, length_sizes[] = {2, 1};
    const DML_CUDA_BUFFER_TENSOR_DESC data = {DML_CUDA_TENSOR_DATA_TYPE_FLOAT32, 0, 2, sizes, NULL, 32, 0};
    const DML_CUDA_BUFFER_TENSOR_DESC lengths = {DML_CUDA_TENSOR_DATA_TYPE_UINT32, 0, 2, length_sizes, NULL, 8, 0};
    const DML_CUDA_TENSOR_DESC tensor = {DML_CUDA_TENSOR_TYPE_BUFFER, &data};
    const DML_CUDA_TENSOR_DESC lengths_tensor = {DML_CUDA_TENSOR_TYPE_BUFFER, &lengths};
    const DML_CUDA_REVERSE_SUBSEQUENCES_OPERATOR_DESC reverse = {&tensor, &lengths_tensor, &tensor, 1};
    const DML_CUDA_OPERATOR_DESC desc = {DML_CUDA_OPERATOR_REVERSE_SUBSEQUENCES, &reverse};

    DML_CUDA_OPERATOR* op;
    DML_CUDA_COMPILED_OPERATOR* compiled;
    check(dml_cuda_create_operator(device, &desc, &op, &error), &error);
    check(dml_cuda_compile_operator(device, op, NULL, &compiled, &error), &error);

    /* The CPU device takes host pointers and a NULL stream. A GPU takes device pointers and a cudaStream_t. */
    const float input[] = {1, 2, 3, 4, 5, 6, 7, 8};
    const uint32_t of_lanes[] = {3, 2};
    const void* inputs[] = {input, of_lanes};
    float output[8];
    check(dml_cuda_dispatch(compiled, inputs, 2, output, NULL, &error), &error);
    for (int i = 0; i < 8; ++i) printf("%g ", (double)output[i]);
    printf("\n");

    dml_cuda_destroy_compiled_operator(compiled);
    dml_cuda_destroy_operator(op);
    dml_cuda_destroy_device(device);
    return 0;
}
