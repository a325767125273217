// A reversal in a C++ program with libtorch, without Python. T is PyTorch's folder, and L that of libdml_cuda_torch.so:
//   c++ -std=c++20 reverse.cpp -I$T/include -L$T/lib -L$L -Wl,-rpath,$T/lib:$L -Wl,--no-as-needed \
//     -ltorch -ltorch_cpu -lc10 -ldml_cuda_torch
#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <iostream>

using Reverse = at::Tensor(const at::Tensor&, const at::Tensor&, int64_t);
using ReverseInPlace = void(at::Tensor&, const at::Tensor&, int64_t);

int main() {
    auto& dispatcher = c10::Dispatcher::singleton();
    auto reverse = dispatcher.findSchemaOrThrow("dml_cuda::reverse_subsequences", "").typed<Reverse>();
    auto reverse_in_place = dispatcher.findSchemaOrThrow("dml_cuda::reverse_subsequences_", "").typed<ReverseInPlace>();

    auto device = at::hasCUDA() ? at::kCUDA : at::kCPU;
    auto x = at::arange(1, 9, at::kFloat).reshape({2, 4}).to(device);
    auto lengths = at::tensor({3, 2}, at::kInt).reshape({2, 1}).to(device);
    auto reversed = reverse.call(x, lengths, 1).cpu();
    for (auto k = 0; k < 8; ++k) std::cout << reversed.const_data_ptr<float>()[k] << ' ';
    reverse_in_place.call(x, lengths, 1);
    std::cout << (at::equal(x.cpu(), reversed) ? "in place too" : "not in place") << std::endl;

    try {
        reverse.call(x, lengths, 2);
    } catch (const std::exception& error) {
        std::cout << error.what() << std::endl;
    }
}
