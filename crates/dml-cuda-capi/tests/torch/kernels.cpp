// Registers the kernels with the stub of libtorch, and calls them rightly and wrongly. Links neither.
//   kernels TORCH               registers with the library TORCH
//   kernels TORCH old           expects that it is too old
//   kernels TORCH LIBRARY       loads LIBRARY, which registers
//   kernels TORCH registered    expects that a preloaded library has registered
#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "dml_cuda.h"

using Kernel = void (*)(uint64_t*, uint64_t, uint64_t);
struct Tensor;

#define CHECK(condition)                                                         \
    do {                                                                         \
        if (!(condition)) {                                                      \
            std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
            std::exit(1);                                                        \
        }                                                                        \
    } while (0)

static void* torch = nullptr;

template <typename F>
static F* function(const char* name) {
    void* found = dlsym(torch, name);
    CHECK(found != nullptr);
    return reinterpret_cast<F*>(found);
}

static int live() { return function<int()>("stand_in_live")(); }
static void refuse(int calls) { function<void(int)>("stand_in_refuse")(calls); }
static Kernel kernel(const char* name) { return function<Kernel(const char*)>("stand_in_kernel")(name); }
static void release(Tensor* tensor) { function<int32_t(Tensor*)>("aoti_torch_delete_tensor_object")(tensor); }
static uint64_t again(Tensor* tensor) {
    return reinterpret_cast<uint64_t>(function<Tensor*(Tensor*)>("stand_in_again")(tensor));
}

enum { UINT8 = 0, INT32 = 3, INT64 = 4, FLOAT32 = 6, CPU = 0, CUDA = 1 };

// Packed, unless strides are given.
static Tensor* tensor(const std::vector<int64_t>& sizes, int32_t dtype, std::vector<int64_t> strides = {},
                      int32_t device = CPU) {
    const bool packed = strides.empty();
    strides.resize(sizes.size(), 1);
    for (size_t d = sizes.size(); packed && d-- > 1;) strides[d - 1] = strides[d] * sizes[d];
    auto make = function<Tensor*(const int64_t*, const int64_t*, int64_t, int32_t, int32_t)>("stand_in_tensor");
    return make(sizes.data(), strides.data(), static_cast<int64_t>(sizes.size()), dtype, device);
}

template <typename T>
static T* data(Tensor* of) {
    void* found = nullptr;
    function<int32_t(Tensor*, void**)>("aoti_torch_get_data_ptr")(of, &found);
    return static_cast<T*>(found);
}

// Floats that count up in memory.
static Tensor* counted(int count, const std::vector<int64_t>& sizes, const std::vector<int64_t>& strides = {}) {
    Tensor* made = tensor(sizes, FLOAT32, strides);
    for (int k = 0; k < count; ++k) data<float>(made)[k] = static_cast<float>(k);
    return made;
}

// Registers; returns the message of the failure.
static std::string registered(uint32_t status) {
    DML_CUDA_ERROR* error = nullptr;
    CHECK(dml_cuda_register_torch(&error) == status && dml_cuda_error_status(error) == status);
    std::string message = error != nullptr ? dml_cuda_error_message(error) : "";
    dml_cuda_destroy_error(error);
    return message;
}

// Calls a kernel as PyTorch does: it owns the handles on the stack. Returns the result, or null for none.
static Tensor* call(const char* name, Tensor* x, Tensor* lengths, int64_t dim) {
    uint64_t stack[3] = {again(x), again(lengths), static_cast<uint64_t>(dim)};
    const bool in_place = name[std::strlen(name) - 1] == '_';
    kernel(name)(stack, 3, in_place ? 0 : 1);
    return in_place ? nullptr : reinterpret_cast<Tensor*>(stack[0]);
}

// A call that must throw std::runtime_error, and leave no handle.
static std::string thrown(const char* name, Tensor* x, Tensor* lengths, int64_t dim) {
    const int before = live();
    try {
        call(name, x, lengths, dim);
    } catch (const std::runtime_error& error) {
        CHECK(live() == before);
        return error.what();
    }
    CHECK(!"it must throw");
    return "";
}

static const char* const COPIES[] = {"CPU reverse_subsequences", "CPU _reverse_subsequences"};
static const char* const PADDED = "CPU _reverse_padded";
static const char* const IN_PLACE[] = {"CPU reverse_subsequences_", "CPU _reverse_subsequences_"};

static int version(Tensor* tensor) { return function<int(Tensor*)>("stand_in_version")(tensor); }
static void mark(Tensor* tensor, int requires_grad, int inference) {
    function<void(Tensor*, int, int)>("stand_in_mark")(tensor, requires_grad, inference);
}

static void check_calls() {
    // [2, 3] in column-major order: the result has the same layout.
    Tensor* x = counted(6, {2, 3}, {1, 2});
    Tensor* lengths = tensor({2, 1}, INT64);
    data<int64_t>(lengths)[0] = 2, data<int64_t>(lengths)[1] = 5;
    const float required[] = {2, 5, 0, 3, 4, 1};
    for (const char* name : COPIES) {
        Tensor* result = call(name, x, lengths, -1);
        int64_t* strides = nullptr;
        function<int32_t(Tensor*, int64_t**)>("aoti_torch_get_strides")(result, &strides);
        CHECK(strides[0] == 1 && strides[1] == 2);
        CHECK(std::memcmp(data<float>(result), required, sizeof required) == 0);
        release(result);
    }
    CHECK(version(x) == 0);
    CHECK(call(IN_PLACE[0], x, lengths, 1) == nullptr);
    CHECK(std::memcmp(data<float>(x), required, sizeof required) == 0);
    CHECK(version(x) == 1);
    CHECK(call(IN_PLACE[1], x, lengths, 1) == nullptr);
    CHECK(data<float>(x)[1] == 1 && version(x) == 2);
    mark(x, 0, 1);
    CHECK(call(IN_PLACE[0], x, lengths, 1) == nullptr);
    CHECK(data<float>(x)[1] == 5 && version(x) == 2);
    // With gaps between the elements, PyTorch's empty_like has the strides.
    Tensor* gaps = counted(13, {2, 3}, {8, 2});
    Tensor* packed = call(COPIES[0], gaps, lengths, 1);
    const float of_gaps[] = {2, 0, 4, 12, 10, 8};
    CHECK(std::memcmp(data<float>(packed), of_gaps, sizeof of_gaps) == 0);
    Tensor* empty = tensor({0, 3}, FLOAT32);
    Tensor* none = tensor({0, 1}, INT32);
    Tensor* result = call(COPIES[0], empty, none, 1);
    for (Tensor* made : {x, lengths, gaps, packed, empty, none, result}) release(made);
    CHECK(live() == 0);
}

// A length for each sequence of a batch, with the time first or second, and what the kernel leaves to the longer way.
static void check_padded() {
    Tensor* x = counted(12, {2, 3, 2});
    Tensor* lengths = tensor({3}, INT64, {2});
    for (int k = 0; k < 3; ++k) data<int64_t>(lengths)[2 * k] = k;
    const float of_time_first[] = {0, 1, 2, 3, 10, 11, 6, 7, 8, 9, 4, 5};
    Tensor* result = call(PADDED, x, lengths, 0);
    CHECK(std::memcmp(data<float>(result), of_time_first, sizeof of_time_first) == 0);
    Tensor* two = tensor({2}, INT32);
    data<int32_t>(two)[0] = 3, data<int32_t>(two)[1] = 2;
    const float of_batch_first[] = {4, 5, 2, 3, 0, 1, 8, 9, 6, 7, 10, 11};
    Tensor* second = call(PADDED, x, two, 1);
    CHECK(std::memcmp(data<float>(second), of_batch_first, sizeof of_batch_first) == 0);
    Tensor* many = tensor(std::vector<int64_t>(9, 1), FLOAT32);
    Tensor* one = tensor({1}, INT64);
    Tensor* scalar = tensor({}, INT64);
    for (const auto& wrong : {std::pair<Tensor*, Tensor*>{x, two}, {x, one}, {x, scalar}, {many, one}, {one, one}}) {
        CHECK(
            thrown(PADDED, wrong.first, wrong.second, 0) ==
            "dml_cuda::reverse_subsequences: lengths must have the batch size of x, which must have 2 to 8 dimensions");
    }
    for (Tensor* made : {x, lengths, result, two, second, many, one, scalar}) release(made);
    CHECK(live() == 0);
}

// Ten dimensions with a length for every second: no fewer than 8 describe them.
static void check_many_dimensions() {
    for (int in_place = 0; in_place < 2; ++in_place) {
        Tensor* x = counted(1024, std::vector<int64_t>(10, 2));
        Tensor* lengths = tensor({2, 1, 2, 1, 2, 1, 2, 1, 2, 1}, INT64);
        for (int k = 0; k < 32; ++k) data<int64_t>(lengths)[k] = k % 3;
        Tensor* result = in_place ? (call(IN_PLACE[0], x, lengths, -1), x) : call(COPIES[0], x, lengths, 9);
        for (int k = 0; k < 1024; ++k) {
            int at = 0;
            for (int d = 0; d < 10; d += 2) at = 2 * at + (k >> (9 - d) & 1);
            CHECK(data<float>(result)[k] == static_cast<float>(at % 3 == 2 ? k ^ 1 : k));
        }
        if (!in_place) release(result);
        for (Tensor* made : {x, lengths}) release(made);
        CHECK(live() == 0);
    }
}

static void check_failures() {
    Tensor* x = counted(6, {2, 3});
    Tensor* lengths = tensor({2, 1}, INT32);
    Tensor* negative = tensor({2, 1}, INT64);
    data<int64_t>(negative)[1] = -4;
    Tensor* bytes = tensor({2, 1}, UINT8);
    Tensor* scalar = tensor({}, INT64);
    Tensor* elsewhere = tensor({2, 1}, INT64, {1, 1}, CUDA);
    Tensor* expanded = tensor({2, 3}, FLOAT32, {0, 1});
    Tensor* many = tensor(std::vector<int64_t>(65, 1), FLOAT32);
    struct Case {
        Tensor *x, *lengths;
        int64_t dim;
        std::string words;
    };
    for (const Case& wrong : {
             Case{x, lengths, 2, "dim is 2, but must be from -2 to 1, the dimensions of x"},
             Case{x, negative, 1, "lengths[1, 0] is -4, but must be at least 0"},
             Case{x, bytes, 1, "lengths has PyTorch's dtype number 0, but must have integers of 32 or 64 bits"},
             Case{x, elsewhere, 1, "lengths is on cuda:0, but must be on cpu, as x"},
             Case{scalar, scalar, 0, "x has 0 dimensions, but must have at least 1"},
             Case{many, scalar, 0, "x has 65 dimensions, but must have at most 64"},
         }) {
        for (const char* name : COPIES)
            CHECK(thrown(name, wrong.x, wrong.lengths, wrong.dim) == "dml_cuda::reverse_subsequences: " + wrong.words);
        CHECK(thrown(IN_PLACE[0], wrong.x, wrong.lengths, wrong.dim) ==
              "dml_cuda::reverse_subsequences_: " + wrong.words);
    }
    CHECK(thrown(IN_PLACE[0], expanded, lengths, 1) ==
          "dml_cuda::reverse_subsequences_: x.strides is [0, 4] bytes, but must be strides that place no two elements "
          "of the sizes [2, 3] in the same memory (output.strides.nonzero)");
    mark(x, 1, 0);
    CHECK(thrown(IN_PLACE[0], x, lengths, 1) ==
          "dml_cuda::reverse_subsequences_: x requires a gradient, so it cannot be reversed in place: use "
          "reverse_subsequences");
    CHECK(version(x) == 0);
    refuse(1);
    CHECK(thrown(COPIES[0], x, lengths, 1) ==
          "dml_cuda::reverse_subsequences: PyTorch's aoti_torch_empty_strided failed; PyTorch has written why to its "
          "log");
    Tensor* gaps = tensor({2, 3}, FLOAT32, {8, 2});
    refuse(1);
    CHECK(thrown(COPIES[0], gaps, lengths, 1) ==
          "dml_cuda::reverse_subsequences: PyTorch's aoti_torch_call_dispatcher failed; PyTorch has written why to its "
          "log");
    // There is no libtorch_cuda.so here, and usually no GPU.
    Tensor* gpu = tensor({2, 3}, FLOAT32, {3, 1}, CUDA);
    CHECK(thrown("CUDA reverse_subsequences", gpu, elsewhere, 1).rfind("dml_cuda::reverse_subsequences: ", 0) == 0);
    CHECK(thrown("CUDA reverse_subsequences_", gpu, elsewhere, 1).rfind("dml_cuda::reverse_subsequences_: ", 0) == 0);
    for (int k = 0; k < 6; ++k) CHECK(data<float>(x)[k] == static_cast<float>(k));
    for (Tensor* made : {x, lengths, negative, bytes, scalar, elsewhere, expanded, many, gaps, gpu}) release(made);
    CHECK(live() == 0);
}

int main(int count, char** arguments) {
    CHECK(count >= 2);
    const std::string how = count > 2 ? arguments[2] : "";
    if (how != "registered") {
        CHECK(registered(DML_CUDA_STATUS_TORCH) ==
              "PyTorch is not loaded: libtorch_cpu.so must be in the process before the operators are registered");
    }
    torch = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
    CHECK(torch != nullptr);
    if (how == "old") {
        CHECK(registered(DML_CUDA_STATUS_TORCH) ==
              "this PyTorch must be 2.8 or newer: aoti_torch_library_impl is missing");
        std::puts("it is too old");
        return 0;
    }
    if (how.empty()) {
        // After a failure, a later registration starts again.
        refuse(1);
        CHECK(registered(DML_CUDA_STATUS_TORCH).rfind("PyTorch's aoti_torch_library_init_fragment failed", 0) == 0);
        // Another copy of the library has registered.
        Tensor* library = nullptr;
        function<int32_t(const char*, const char*, uint32_t, Tensor**)>("aoti_torch_library_init_fragment")(
            "dml_cuda", "", 0, &library);
        function<int32_t(Tensor*, const char*)>("aoti_torch_library_def")(
            library, "reverse_subsequences(Tensor x, Tensor lengths, int dim) -> Tensor");
        CHECK(registered(DML_CUDA_STATUS_TORCH).rfind("PyTorch's aoti_torch_library_def failed", 0) == 0);
        CHECK(kernel(COPIES[0]) == nullptr);
        function<int32_t(Tensor*)>("aoti_torch_delete_library_object")(library);
        CHECK(registered(DML_CUDA_STATUS_OK).empty());
    } else if (how != "registered") {
        CHECK(dlopen(how.c_str(), RTLD_NOW | RTLD_LOCAL) != nullptr);
    }
    CHECK(kernel(COPIES[0]) != nullptr);
    CHECK(registered(DML_CUDA_STATUS_OK).empty());
    for (int k = 0; k < 1000; ++k) {
        check_calls();
        check_padded();
        check_many_dimensions();
        check_failures();
    }
    std::puts("all calls are right");
}
