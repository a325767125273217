// Includes both DirectML.h and dml_cuda.h, in the order that DIRECTML_FIRST selects, and passes a descriptor of one to
// the other.
#ifdef DIRECTML_FIRST
#include "stand_in.h"
#include "dml_cuda.h"
#else
#include "dml_cuda.h"
#include "stand_in.h"
#endif

#include <cstdio>

int main() {
    const unsigned int sizes[] = {2, 3};
    const DML_BUFFER_TENSOR_DESC buffer = {
        DML_TENSOR_DATA_TYPE_FLOAT32, DML_TENSOR_FLAG_NONE, 2, sizes, nullptr, 24, 0};
    const DML_TENSOR_DESC tensor = {DML_TENSOR_TYPE_BUFFER, &buffer};
    DML_FILL_VALUE_SEQUENCE_OPERATOR_DESC fill = {&tensor, DML_TENSOR_DATA_TYPE_FLOAT32, {}, {}};
    fill.ValueStart.Float32 = 1;
    fill.ValueDelta.Float32 = 0.5F;
    const DML_OPERATOR_DESC desc = {DML_OPERATOR_FILL_VALUE_SEQUENCE, &fill};

    DML_CUDA_DEVICE* device = nullptr;
    DML_CUDA_OPERATOR* op = nullptr;
    DML_CUDA_COMPILED_OPERATOR* compiled = nullptr;
    float output[6] = {};
    DML_CUDA_STATUS status = dml_cuda_create_cpu_device(DML_FEATURE_LEVEL_5_2, &device, nullptr);
    const auto* same = reinterpret_cast<const DML_CUDA_OPERATOR_DESC*>(&desc);
    if (!status) status = dml_cuda_create_operator(device, same, &op, nullptr);
    if (!status) status = dml_cuda_compile_operator(device, op, nullptr, &compiled, nullptr);
    if (!status) status = dml_cuda_dispatch(compiled, nullptr, 0, output, nullptr, nullptr);
    for (float value : output) std::printf("%g ", static_cast<double>(value));
    dml_cuda_destroy_compiled_operator(compiled);
    dml_cuda_destroy_operator(op);
    dml_cuda_destroy_device(device);
    return static_cast<int>(status);
}
