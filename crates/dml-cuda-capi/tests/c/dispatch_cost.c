/* Counts what a dispatch allocates, on the CPU device or, with the argument cuda, on a GPU. Needs glibc. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "dml_cuda.h"

/* The library's allocations also go through these functions. */
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
static unsigned long allocations = 0;
void* malloc(size_t bytes) { return ++allocations, __libc_malloc(bytes); }
void* calloc(size_t count, size_t bytes) { return ++allocations, __libc_calloc(count, bytes); }
void* realloc(void* at, size_t bytes) { return ++allocations, __libc_realloc(at, bytes); }
int posix_memalign(void** to, size_t alignment, size_t bytes) {
    ++allocations;
    *to = __libc_memalign(alignment, bytes);
    return *to ? 0 : ENOMEM;
}

/* What 100 dispatches allocate after the first. */
static void print_cost(const char* name, DML_CUDA_COMPILED_OPERATOR* compiled, const void* const* inputs,
                       uint32_t count, void* output) {
    unsigned long before;
    DML_CUDA_STATUS status = dml_cuda_dispatch(compiled, inputs, count, output, NULL, NULL);
    int n;
    for (before = allocations, n = 0; n < 100; ++n)
        status |= dml_cuda_dispatch(compiled, inputs, count, output, NULL, NULL);
    printf("%s: status %u, %lu allocations\n", name, (unsigned)status, allocations - before);
    dml_cuda_destroy_compiled_operator(compiled);
}

int main(int count, char** arguments) {
    static float input[64], output[64];
    static uint32_t lengths[8];
    static const int64_t sizes[] = {8, 8}, of_lengths[] = {8, 1};
    const DML_CUDA_ARRAY from = {sizeof from, 2, input, 4, sizes, NULL}, to = {sizeof to, 2, output, 4, sizes, NULL},
                         by = {sizeof by, 2, lengths, 4, of_lengths, NULL};
    const DML_CUDA_SCALAR_UNION start = {.Float32 = 1}, delta = {.Float32 = 2};
    const void* inputs[] = {input, lengths};
    DML_CUDA_DEVICE* device = NULL;
    DML_CUDA_COMPILED_OPERATOR* compiled = NULL;
    (void)arguments;
    if (count > 1 ? dml_cuda_create_cuda_device(0, 0, &device, NULL) : dml_cuda_create_cpu_device(0, &device, NULL))
        return 1;
    if (dml_cuda_compile_sequence(device, &to, DML_CUDA_TENSOR_DATA_TYPE_FLOAT32, &start, &delta, NULL, &compiled,
                                  NULL))
        return 2;
    print_cost("fill", compiled, NULL, 0, output);
    if (count > 1) {
        if (dml_cuda_compile_reversal(device, &from, &by, &to, 1, NULL, &compiled, NULL)) return 3;
        print_cost("reversal", compiled, inputs, 2, output);
    }
    dml_cuda_destroy_device(device);
    return 0;
}
