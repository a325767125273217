/* Fills and reverses memory through every function that does, and compares each byte with plain loops, on the CPU
 * device and on every GPU. What lies around a tensor must not change. With REQUIRE_CUDA=1 it fails without a GPU. */
#include <float.h>
#include <math.h>

#include "machine.h"

enum { GUARD = 64, POISON = 0xCD, LARGEST = 1 << 20 };
static int failures = 0;
static unsigned long checks = 0;
static DML_CUDA_ERROR* error = NULL;
static struct machine host;

static void check(int holds, const char* what, int line) {
    ++checks;
    if (holds) return;
    fprintf(stderr, "devices.c:%d: %s: %s\n", line, what, error ? dml_cuda_error_message(error) : "no error");
    dml_cuda_destroy_error(error);
    error = NULL;
    if (++failures > 20) exit(1);
}
#define CHECK(condition) check((condition) != 0, #condition, __LINE__)
#define ARRAY(data, rank, width, sizes, strides) {sizeof(DML_CUDA_ARRAY), rank, data, width, sizes, strides}

static uint64_t state = 1;
static uint64_t next(void) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return state ^ state >> 33;
}

/* The type, the bytes of an element, and two pairs of scalars: a usual one, and one that overflows. */
struct type {
    uint32_t number, width;
    DML_CUDA_SCALAR_UNION scalars[2][2];
};
#define WRAPS {{.UInt64 = 0x8123456789ABCDEF}, {.UInt64 = 0xFEDCBA9876543211}}
#define COUNTS_UP {{.Int64 = -3}, {.Int64 = 7}}
static const struct type TYPES[] = {
    {DML_CUDA_TENSOR_DATA_TYPE_FLOAT32,
     4,
     {{{.Float32 = 0.1f}, {.Float32 = 1e-3f}}, {{.Float32 = -1}, {.Float32 = 3e38f}}}},
    {DML_CUDA_TENSOR_DATA_TYPE_FLOAT16,
     2,
     {{{.UInt16 = 0xC200}, {.UInt16 = 0x21FE}}, {{.UInt16 = 1}, {.UInt16 = 0x7BFF}}}},
    {DML_CUDA_TENSOR_DATA_TYPE_UINT32, 4, {COUNTS_UP, WRAPS}},
    {DML_CUDA_TENSOR_DATA_TYPE_UINT16, 2, {COUNTS_UP, WRAPS}},
    {DML_CUDA_TENSOR_DATA_TYPE_UINT8, 1, {COUNTS_UP, WRAPS}},
    {DML_CUDA_TENSOR_DATA_TYPE_INT32, 4, {COUNTS_UP, WRAPS}},
    {DML_CUDA_TENSOR_DATA_TYPE_INT16, 2, {COUNTS_UP, WRAPS}},
    {DML_CUDA_TENSOR_DATA_TYPE_INT8, 1, {COUNTS_UP, WRAPS}},
    {DML_CUDA_TENSOR_DATA_TYPE_FLOAT64,
     8,
     {{{.Float64 = -0.7}, {.Float64 = 0.1}}, {{.Float64 = 1e200}, {.Float64 = DBL_MAX}}}},
    {DML_CUDA_TENSOR_DATA_TYPE_UINT64, 8, {COUNTS_UP, WRAPS}},
    {DML_CUDA_TENSOR_DATA_TYPE_INT64, 8, {COUNTS_UP, WRAPS}},
};
enum { TYPE_COUNT = sizeof TYPES / sizeof *TYPES };

/* Element i of a fill. */
static DML_CUDA_SCALAR_UNION element(uint32_t type, uint32_t i, DML_CUDA_SCALAR_UNION start,
                                     DML_CUDA_SCALAR_UNION delta) {
    DML_CUDA_SCALAR_UNION e = {.UInt64 = start.UInt64 + i * delta.UInt64};
    if (type == DML_CUDA_TENSOR_DATA_TYPE_FLOAT32) e.Float32 = fmaf((float)i, delta.Float32, start.Float32);
    if (type == DML_CUDA_TENSOR_DATA_TYPE_FLOAT64) e.Float64 = fma(i, delta.Float64, start.Float64);
    return e;
}

/* Whether two elements are the same. NaNs are, whatever their other bits. */
static int same(uint32_t type, const void* a, const void* b, size_t width) {
    DML_CUDA_SCALAR_UNION x = {{0}}, y = {{0}};
    if (memcmp(a, b, width) == 0) return 1;
    memcpy(&x, a, width), memcpy(&y, b, width);
    return (type == DML_CUDA_TENSOR_DATA_TYPE_FLOAT32 && isnan(x.Float32) && isnan(y.Float32)) ||
           (type == DML_CUDA_TENSOR_DATA_TYPE_FLOAT64 && isnan(x.Float64) && isnan(y.Float64));
}

enum way { COMPILED_ARRAY, ARRAY_AT_ONCE, WAYS };

/* One packed fill. */
static DML_CUDA_STATUS fill(const struct machine* m, enum way way, uint32_t type, uint32_t width, uint32_t count,
                            DML_CUDA_SCALAR_UNION start, DML_CUDA_SCALAR_UNION delta, const char* options, void* to) {
    const int64_t size = count;
    const DML_CUDA_ARRAY array = ARRAY(to, 1, width, &size, NULL);
    DML_CUDA_COMPILED_OPERATOR* compiled = NULL;
    DML_CUDA_STATUS status;
    if (way == ARRAY_AT_ONCE)
        return dml_cuda_fill_array(m->device, &array, type, &start, &delta, options, m->stream, &error);
    status = dml_cuda_compile_sequence(m->device, &array, type, &start, &delta, options, &compiled, &error);
    if (status == 0) status = dml_cuda_dispatch(compiled, NULL, 0, to, m->stream, &error);
    dml_cuda_destroy_compiled_operator(compiled);
    return status;
}

static void fills(const struct machine* m) {
    const uint32_t counts[] = {1,  2,   3,   7,   8,   15,   16,   17,   31,    33,
                               64, 127, 129, 255, 257, 1023, 4096, 4097, 65537, 100003};
    /* A driver takes 13 ms to compile a specialized kernel, so few are. */
    const char* options[8] = {NULL, "specialize=always", "specialize=never"};
    unsigned char *memory = allocate(m, LARGEST), *found = malloc(LARGEST), *required = malloc(LARGEST);
    size_t n, k, i;
    for (k = 0; k < TYPE_COUNT * 2 * WAYS; ++k) {
        const struct type* type = &TYPES[k / 2 % TYPE_COUNT];
        const DML_CUDA_SCALAR_UNION* scalars = type->scalars[k % 2];
        enum way way = (enum way)(k / 2 / TYPE_COUNT);
        /* At a multiple of 16 bytes, and one element further. */
        for (n = 0; n < 2 * sizeof counts / sizeof *counts; ++n) {
            const uint32_t count = counts[n / 2], width = type->width;
            const size_t first = GUARD + n % 2 * width, bytes = (size_t)count * width, all = first + bytes + GUARD;
            memset(required, POISON, all), memset(found, 0, all);
            upload(m, memory, required, all);
            CHECK(fill(m, way, type->number, width, count, scalars[0], scalars[1], options[n % 8], memory + first) ==
                  0);
            download(m, found, memory, all);
            if (type->number == DML_CUDA_TENSOR_DATA_TYPE_FLOAT16)
                CHECK(fill(&host, way, type->number, width, count, scalars[0], scalars[1], NULL, required + first) ==
                      0);
            else
                for (i = 0; i < count; ++i) {
                    DML_CUDA_SCALAR_UNION e = element(type->number, (uint32_t)i, scalars[0], scalars[1]);
                    memcpy(required + first + i * width, &e, width);
                }
            CHECK(memcmp(found, required, first) == 0 &&
                  memcmp(found + first + bytes, required + first + bytes, GUARD) == 0);
            for (i = 0;
                 i < count && same(type->number, found + first + i * width, required + first + i * width, width);)
                ++i;
            if (i < count)
                fprintf(stderr, "type %u, way %d, %u elements: element %zu\n", type->number, (int)way, count, i);
            CHECK(i == count);
        }
    }
    /* Strides, and a size of 0. */
    const int64_t sizes[] = {5, 4}, strides[] = {4, 28}, none[] = {5, 0};
    DML_CUDA_ARRAY columns = ARRAY(memory, 2, 4, sizes, strides);
    const DML_CUDA_SCALAR_UNION start = {.Int32 = 5}, delta = {.Int32 = -2};
    memset(required, POISON, 112);
    for (n = 0; n < 2; ++n) {
        upload(m, memory, required, 112);
        columns.Sizes = n == 0 ? none : sizes;
        CHECK(dml_cuda_fill_array(m->device, &columns, DML_CUDA_TENSOR_DATA_TYPE_INT32, &start, &delta, NULL, m->stream,
                                  &error) == 0);
        for (i = 0; n == 1 && i < 20; ++i) {
            int32_t value = 5 - 2 * (int32_t)i;
            memcpy(required + i / 4 * 4 + i % 4 * 28, &value, 4);
        }
        download(m, found, memory, 112);
        CHECK(memcmp(found, required, 112) == 0);
    }
    release(m, memory), free(found), free(required);
}

/* As many elements as a fill can have, if the GPU has memory for them: windows around every power of two, and others.
 */
static void longest_float64(const struct machine* m) {
    enum { WINDOW = 1024 };
    static double found[WINDOW];
    const DML_CUDA_SCALAR_UNION start = {.Float64 = -0.3}, delta = {.Float64 = 0.1};
    const uint32_t count = UINT32_MAX;
    size_t available = 0, all;
    int n, i, wrong = 0;
    if (m->is_gpu) MUST(driver.cuMemGetInfo_v2(&available, &all));
    if (available < (size_t)count * 8 + (1u << 28)) return;
    double* memory = allocate(m, (size_t)count * 8);
    CHECK(fill(m, ARRAY_AT_ONCE, DML_CUDA_TENSOR_DATA_TYPE_FLOAT64, 8, count, start, delta, NULL, memory) == 0);
    for (n = 0; n < 100; ++n) {
        const size_t last = (size_t)count - WINDOW, power = ((size_t)1 << n % 33);
        const size_t middle = n < 33 ? (power > WINDOW / 2 ? power - WINDOW / 2 : 0) : next() % last;
        const size_t first = middle < last ? middle : last;
        download(m, found, memory + first, sizeof found);
        for (i = 0; i < WINDOW; ++i)
            wrong += found[i] != fma((double)(first + (size_t)i), delta.Float64, start.Float64);
    }
    CHECK(wrong == 0);
    release(m, memory);
}

/* Shapes of three dimensions. The second is the axis. */
static const int64_t SHAPES[][3] = {{1, 1, 1},    {1, 100003, 1}, {301, 2, 1},  {203, 8, 1},   {101, 16, 1},
                                    {33, 31, 1},  {9, 1000, 1},   {3, 4097, 1}, {2, 20000, 1}, {2, 7, 16},
                                    {3, 31, 33},  {2, 100, 5},    {4, 17, 3},   {2, 64, 64},   {2, 40, 256},
                                    {1, 600, 37}, {3, 40, 15}};
enum { SHAPE_COUNT = sizeof SHAPES / sizeof *SHAPES, LONGEST = 1024 };

/* Fills lengths of every kind, as 64 bits each. */
static void random_lengths(uint64_t* lengths, size_t count, uint64_t axis) {
    for (size_t n = 0; n < count; ++n) {
        const uint64_t kinds[] = {
            0, 1, axis, axis - 1, axis + 1, UINT64_MAX, (uint64_t)1 << 32, next() % (axis + 1), next() % (axis + 1)};
        lengths[n] = kinds[next() % (sizeof kinds / sizeof *kinds)];
    }
}

static void reverse(unsigned char* to, const unsigned char* from, const int64_t* sizes, size_t width,
                    const uint64_t* lengths, int varies) {
    const size_t outer = (size_t)sizes[0], axis = (size_t)sizes[1], inner = (size_t)sizes[2];
    for (size_t n = 0; n < outer * axis * inner; ++n) {
        const size_t a = n / inner / axis, t = n / inner % axis, b = n % inner;
        const uint64_t length = lengths[varies ? a * inner + b : a] < axis ? lengths[varies ? a * inner + b : a] : axis;
        const size_t source = t < length ? (size_t)length - 1 - t : t;
        memcpy(to + n * width, from + ((a * axis + source) * inner + b) * width, width);
    }
}

/* One reversal of arrays. */
static DML_CUDA_STATUS run_reversal(const struct machine* m, enum way way, const DML_CUDA_ARRAY* from,
                                    const DML_CUDA_ARRAY* by, const DML_CUDA_ARRAY* to, const char* options) {
    const void* inputs[] = {from->Data, by->Data};
    DML_CUDA_COMPILED_OPERATOR* compiled = NULL;
    DML_CUDA_STATUS status;
    if (way == ARRAY_AT_ONCE) return dml_cuda_reverse_arrays(m->device, from, by, to, 1, options, m->stream, &error);
    status = dml_cuda_compile_reversal(m->device, from, by, to, 1, options, &compiled, &error);
    if (status == 0) status = dml_cuda_dispatch(compiled, inputs, 2, (void*)(size_t)to->Data, m->stream, &error);
    dml_cuda_destroy_compiled_operator(compiled);
    return status;
}

static void reversals(const struct machine* m) {
    const size_t widths[] = {1, 2, 4, 8, 3, 12, 16};
    const char* options[8] = {NULL, "specialize=always", "specialize=never"};
    enum { MEMORY = 4 * LARGEST };
    unsigned char *from = allocate(m, MEMORY), *to = allocate(m, MEMORY), *by = allocate(m, 8 * 3 * LONGEST);
    unsigned char *input = malloc(MEMORY), *required = malloc(MEMORY), *found = malloc(MEMORY);
    static uint64_t lengths[3 * LONGEST];
    static uint32_t narrow[3 * LONGEST];
    for (size_t k = 0; k < SHAPE_COUNT * 7 * WAYS * 8; ++k) {
        const int64_t* sizes = SHAPES[k % SHAPE_COUNT];
        const size_t width = widths[k / SHAPE_COUNT % 7], kind = k / SHAPE_COUNT / 7 / WAYS;
        const enum way way = (enum way)(k / SHAPE_COUNT / 7 % WAYS);
        const int in_place = kind & 1, wide = kind >> 1 & 1, varies = kind >> 2 & 1;
        /* At a multiple of 16 bytes, one element further, or at an odd address. */
        const size_t past = k % 4 == 3 ? 1 : k % 2 ? width : 0;
        const size_t first = GUARD + past, bytes = (size_t)(sizes[0] * sizes[1] * sizes[2]) * width;
        const size_t all = first + bytes + GUARD, count = (size_t)(sizes[0] * (varies ? sizes[2] : 1));
        const int64_t of_lengths[] = {sizes[0], 1, varies ? sizes[2] : 1};
        random_lengths(lengths, count, (uint64_t)sizes[1]);
        for (size_t n = 0; n < count; ++n) {
            narrow[n] = (uint32_t)lengths[n];
            if (!wide) lengths[n] = narrow[n];
        }
        upload(m, by, wide ? (void*)lengths : (void*)narrow, count * (wide ? 8 : 4));
        for (size_t n = 0; n < all; ++n) input[n] = (unsigned char)next();
        memcpy(required, input, all);
        if (!in_place) memset(required, POISON, all);
        upload(m, from, input, all), upload(m, to, required, all);
        reverse(required + first, input + first, sizes, width, lengths, varies);
        const DML_CUDA_ARRAY source = ARRAY(from + first, 3, width, sizes, NULL),
                             target = ARRAY(to + first, 3, width, sizes, NULL);
        const DML_CUDA_ARRAY length = ARRAY(by, 3, wide ? 8 : 4, of_lengths, NULL);
        CHECK(run_reversal(m, way, &source, &length, in_place ? &source : &target, options[k % 8]) == 0);
        download(m, found, in_place ? from : to, all);
        const int right = memcmp(found, required, all) == 0;
        if (!right)
            fprintf(stderr, "[%d, %d, %d], width %zu, kind %zu, way %d\n", (int)sizes[0], (int)sizes[1], (int)sizes[2],
                    width, kind, (int)way);
        CHECK(right);
        if (!in_place) download(m, found, from, all), CHECK(memcmp(found, input, all) == 0);
    }
    release(m, from), release(m, to), release(m, by), free(input), free(required), free(found);
}

static void everything(const struct machine* m) {
    fills(m);
    reversals(m);
}

int main(void) {
    uint32_t gpu_count = 0;
    const char* required = getenv("REQUIRE_CUDA");
    host = cpu_machine();
    if (dml_cuda_cuda_device_count(&gpu_count, &error) != 0 && required != NULL && strcmp(required, "1") == 0) {
        fprintf(stderr, "REQUIRE_CUDA=1, but %s\n", dml_cuda_error_message(error));
        return 2;
    }
    dml_cuda_destroy_error(error), error = NULL;
    everything(&host);
    if (gpu_count > 0) load_driver();
    for (uint32_t n = 0; n < gpu_count; ++n) {
        const struct machine gpu = gpu_machine(n);
        CHECK(strcmp(dml_cuda_device_name(gpu.device), "CPU") != 0);
        everything(&gpu);
        longest_float64(&gpu);
        printf("GPU %u, %s\n", n, dml_cuda_device_name(gpu.device));
    }
    if (failures == 0) printf("%lu checks are right on the CPU and %u GPUs\n", checks, gpu_count);
    return failures != 0;
}
