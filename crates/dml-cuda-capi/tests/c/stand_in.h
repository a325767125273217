/* A substitute for DirectML.h, which is C++ for Windows. It declares what with_directml.cpp uses. */
#ifndef DIRECTML_H
#define DIRECTML_H
#include <stdint.h>

enum DML_TENSOR_DATA_TYPE {
    DML_TENSOR_DATA_TYPE_FLOAT32 = 1,
    DML_TENSOR_DATA_TYPE_UINT32 = 3,
    DML_TENSOR_DATA_TYPE_INT4 = 13
};
enum DML_TENSOR_FLAGS { DML_TENSOR_FLAG_NONE = 0, DML_TENSOR_FLAG_OWNED_BY_DML = 1 };
enum DML_TENSOR_TYPE { DML_TENSOR_TYPE_INVALID, DML_TENSOR_TYPE_BUFFER };
enum DML_OPERATOR_TYPE { DML_OPERATOR_FILL_VALUE_SEQUENCE = 104, DML_OPERATOR_REVERSE_SUBSEQUENCES = 106 };
enum DML_FEATURE_LEVEL { DML_FEATURE_LEVEL_5_2 = 0x5200 };

struct DML_TENSOR_DESC {
    DML_TENSOR_TYPE Type;
    const void* Desc;
};
struct DML_BUFFER_TENSOR_DESC {
    DML_TENSOR_DATA_TYPE DataType;
    DML_TENSOR_FLAGS Flags;
    unsigned int DimensionCount;
    const unsigned int* Sizes;
    const unsigned int* Strides;
    uint64_t TotalTensorSizeInBytes;
    unsigned int GuaranteedBaseOffsetAlignment;
};
union DML_SCALAR_UNION {
    uint8_t Bytes[8];
    float Float32;
    uint32_t UInt32;
    uint64_t UInt64;
};
struct DML_FILL_VALUE_SEQUENCE_OPERATOR_DESC {
    const DML_TENSOR_DESC* OutputTensor;
    DML_TENSOR_DATA_TYPE ValueDataType;
    DML_SCALAR_UNION ValueStart;
    DML_SCALAR_UNION ValueDelta;
};
struct DML_OPERATOR_DESC {
    DML_OPERATOR_TYPE Type;
    const void* Desc;
};
#endif
