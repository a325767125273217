/* Offsets, sizes and values, as DirectML.h has them on 64-bit machines. Compiled as C and as C++. */
#include <stddef.h>

#include "dml_cuda.h"

#define HOLDS(name, condition) typedef char name[(condition) ? 1 : -1]
#define AT(type, field, offset) HOLDS(type##_##field##_is_at_##offset, offsetof(type, field) == (offset))

HOLDS(scalar_size, sizeof(DML_CUDA_SCALAR_UNION) == 8);
HOLDS(tensor_size, sizeof(DML_CUDA_TENSOR_DESC) == 16);
AT(DML_CUDA_TENSOR_DESC, Desc, 8);
HOLDS(buffer_size, sizeof(DML_CUDA_BUFFER_TENSOR_DESC) == 48);
AT(DML_CUDA_BUFFER_TENSOR_DESC, Flags, 4);
AT(DML_CUDA_BUFFER_TENSOR_DESC, DimensionCount, 8);
AT(DML_CUDA_BUFFER_TENSOR_DESC, Sizes, 16);
AT(DML_CUDA_BUFFER_TENSOR_DESC, Strides, 24);
AT(DML_CUDA_BUFFER_TENSOR_DESC, TotalTensorSizeInBytes, 32);
AT(DML_CUDA_BUFFER_TENSOR_DESC, GuaranteedBaseOffsetAlignment, 40);
HOLDS(fill_size, sizeof(DML_CUDA_FILL_VALUE_SEQUENCE_OPERATOR_DESC) == 32);
AT(DML_CUDA_FILL_VALUE_SEQUENCE_OPERATOR_DESC, ValueDataType, 8);
AT(DML_CUDA_FILL_VALUE_SEQUENCE_OPERATOR_DESC, ValueStart, 16);
AT(DML_CUDA_FILL_VALUE_SEQUENCE_OPERATOR_DESC, ValueDelta, 24);
HOLDS(reverse_size, sizeof(DML_CUDA_REVERSE_SUBSEQUENCES_OPERATOR_DESC) == 32);
AT(DML_CUDA_REVERSE_SUBSEQUENCES_OPERATOR_DESC, SequenceLengthsTensor, 8);
AT(DML_CUDA_REVERSE_SUBSEQUENCES_OPERATOR_DESC, OutputTensor, 16);
AT(DML_CUDA_REVERSE_SUBSEQUENCES_OPERATOR_DESC, Axis, 24);
HOLDS(operator_size, sizeof(DML_CUDA_OPERATOR_DESC) == 16);
AT(DML_CUDA_OPERATOR_DESC, Desc, 8);
HOLDS(properties_size, sizeof(DML_CUDA_BINDING_PROPERTIES) == 24);
AT(DML_CUDA_BINDING_PROPERTIES, TemporaryResourceSize, 8);
HOLDS(counters_size, sizeof(DML_CUDA_ONNXRUNTIME_COUNTERS) == 24);
HOLDS(support_size, sizeof(DML_CUDA_TENSOR_SUPPORT) == 16);
HOLDS(array_size, sizeof(DML_CUDA_ARRAY) == 40);
HOLDS(names_size, sizeof(DML_CUDA_NAMES) == 40);
HOLDS(violation_size, sizeof(DML_CUDA_VIOLATION) == 56);

HOLDS(fill_is_104, DML_CUDA_OPERATOR_FILL_VALUE_SEQUENCE == 104);
HOLDS(reverse_is_106, DML_CUDA_OPERATOR_REVERSE_SUBSEQUENCES == 106);
HOLDS(buffer_is_1, DML_CUDA_TENSOR_TYPE_BUFFER == 1);
HOLDS(owned_is_1, DML_CUDA_TENSOR_FLAG_OWNED_BY_DML == 1);
HOLDS(float32_is_1, DML_CUDA_TENSOR_DATA_TYPE_FLOAT32 == 1);
HOLDS(float16_is_2, DML_CUDA_TENSOR_DATA_TYPE_FLOAT16 == 2);
HOLDS(uint8_is_5, DML_CUDA_TENSOR_DATA_TYPE_UINT8 == 5);
HOLDS(int8_is_8, DML_CUDA_TENSOR_DATA_TYPE_INT8 == 8);
HOLDS(float64_is_9, DML_CUDA_TENSOR_DATA_TYPE_FLOAT64 == 9);
HOLDS(int64_is_11, DML_CUDA_TENSOR_DATA_TYPE_INT64 == 11);
HOLDS(int4_is_13, DML_CUDA_TENSOR_DATA_TYPE_INT4 == 13);
HOLDS(level_5_2, DML_CUDA_FEATURE_LEVEL_5_2 == 0x5200);
HOLDS(level_6_4, DML_CUDA_FEATURE_LEVEL_6_4 == 0x6400);
HOLDS(validation_is_2, DML_CUDA_STATUS_VALIDATION == 2);
HOLDS(torch_is_8, DML_CUDA_STATUS_TORCH == 8);

int main(void) { return 0; }
