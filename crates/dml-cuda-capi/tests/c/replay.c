/* Reads descriptors from stdin, one per line as numbers separated by spaces. For each it writes a line with the status and the ids of
   the broken rules. A tensor is its data type, flags, DimensionCount, sizes, 1 and strides or 0,
   TotalTensorSizeInBytes, GuaranteedBaseOffsetAlignment. */
#include <stdio.h>
#include <stdlib.h>

#include "dml_cuda.h"

enum { MOST = 1024 };
struct tensor {
    DML_CUDA_BUFFER_TENSOR_DESC buffer;
    DML_CUDA_TENSOR_DESC desc;
    uint32_t sizes[MOST], strides[MOST];
};

static uint64_t number(void) {
    unsigned long long value = 0;
    if (scanf("%llu", &value) != 1) exit(2);
    return value;
}

static const DML_CUDA_TENSOR_DESC *read_tensor(struct tensor *t) {
    uint32_t d;
    t->buffer.DataType = (uint32_t)number();
    t->buffer.Flags = (uint32_t)number();
    t->buffer.DimensionCount = (uint32_t)number();
    if (t->buffer.DimensionCount > MOST) exit(3);
    for (d = 0; d < t->buffer.DimensionCount; ++d) t->sizes[d] = (uint32_t)number();
    t->buffer.Sizes = t->sizes;
    t->buffer.Strides = number() ? t->strides : NULL;
    for (d = 0; t->buffer.Strides && d < t->buffer.DimensionCount; ++d) t->strides[d] = (uint32_t)number();
    t->buffer.TotalTensorSizeInBytes = number();
    t->buffer.GuaranteedBaseOffsetAlignment = (uint32_t)number();
    t->desc.Type = DML_CUDA_TENSOR_TYPE_BUFFER;
    t->desc.Desc = &t->buffer;
    return &t->desc;
}

int main(void) {
    static struct tensor first, second, third;
    unsigned long long type;
    while (scanf("%llu", &type) == 1) {
        DML_CUDA_FILL_VALUE_SEQUENCE_OPERATOR_DESC fill;
        DML_CUDA_REVERSE_SUBSEQUENCES_OPERATOR_DESC reverse;
        DML_CUDA_OPERATOR_DESC desc;
        DML_CUDA_VIOLATION violation;
        DML_CUDA_ERROR *error = NULL;
        uint32_t n;
        desc.Type = (uint32_t)type;
        if (type == DML_CUDA_OPERATOR_FILL_VALUE_SEQUENCE) {
            fill.OutputTensor = read_tensor(&first);
            fill.ValueDataType = (uint32_t)number();
            fill.ValueStart.UInt64 = number();
            fill.ValueDelta.UInt64 = number();
            desc.Desc = &fill;
        } else {
            reverse.InputTensor = read_tensor(&first);
            reverse.SequenceLengthsTensor = read_tensor(&second);
            reverse.OutputTensor = read_tensor(&third);
            reverse.Axis = (uint32_t)number();
            desc.Desc = &reverse;
        }
        printf("%u", dml_cuda_validate(&desc, DML_CUDA_FEATURE_LEVEL_HIGHEST, &error));
        for (n = 0; n < dml_cuda_error_violation_count(error); ++n) {
            dml_cuda_error_violation(error, n, &violation);
            printf(" %s", violation.Rule);
        }
        printf("\n");
        dml_cuda_destroy_error(error);
    }
    return 0;
}
