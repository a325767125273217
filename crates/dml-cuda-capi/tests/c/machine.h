/* Memory and streams of a device for programs that test it. They are the driver's, found at run time, so that such a
 * program compiles and starts without CUDA. The CPU device has the host's memory. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dml_cuda.h"

typedef unsigned long long device_pointer;

static struct {
    int (*cuInit)(unsigned);
    int (*cuDevicePrimaryCtxRetain)(void**, int);
    int (*cuCtxSetCurrent)(void*);
    int (*cuMemGetInfo_v2)(size_t*, size_t*);
    int (*cuMemAlloc_v2)(device_pointer*, size_t);
    int (*cuMemFree_v2)(device_pointer);
    int (*cuMemcpyHtoDAsync_v2)(device_pointer, const void*, size_t, void*);
    int (*cuMemcpyDtoHAsync_v2)(void*, device_pointer, size_t, void*);
    int (*cuStreamCreate)(void**, unsigned);
    int (*cuStreamSynchronize)(void*);
} driver;

static void* symbol(const char* name) {
    static void* library = NULL;
    void* found;
    if (library == NULL) library = dlopen("libcuda.so.1", RTLD_NOW);
    found = library == NULL ? NULL : dlsym(library, name);
    if (found == NULL) fprintf(stderr, "libcuda.so.1 has no %s\n", name), exit(3);
    return found;
}
#define LOAD(name) (*(void**)& driver.name = symbol(#name))

static void load_driver(void) {
    LOAD(cuInit), LOAD(cuDevicePrimaryCtxRetain), LOAD(cuCtxSetCurrent), LOAD(cuMemGetInfo_v2), LOAD(cuMemAlloc_v2);
    LOAD(cuMemFree_v2), LOAD(cuMemcpyHtoDAsync_v2), LOAD(cuMemcpyDtoHAsync_v2), LOAD(cuStreamCreate);
    LOAD(cuStreamSynchronize);
}

/* The driver's calls must succeed: what is tested here is the library. */
static void must(int code, const char* what, int line) {
    if (code != 0) fprintf(stderr, "line %d: %s is %d\n", line, what, code), exit(4);
}
#define MUST(call) must((int)(call), #call, __LINE__)

struct machine {
    DML_CUDA_DEVICE* device;
    /* A stream of a GPU. */
    void* stream;
    int is_gpu;
};

static struct machine cpu_machine(void) {
    struct machine m = {NULL, NULL, 0};
    MUST(dml_cuda_create_cpu_device(0, &m.device, NULL));
    return m;
}

/* The GPU with this number, whose context becomes current. */
static struct machine gpu_machine(uint32_t ordinal) {
    struct machine m = {NULL, NULL, 1};
    void* context;
    MUST(driver.cuInit(0));
    MUST(driver.cuDevicePrimaryCtxRetain(&context, (int)ordinal));
    MUST(driver.cuCtxSetCurrent(context));
    MUST(driver.cuStreamCreate(&m.stream, 1));
    MUST(dml_cuda_create_cuda_device(ordinal, 0, &m.device, NULL));
    return m;
}

static void* allocate(const struct machine* m, size_t bytes) {
    device_pointer at = 0;
    if (m->is_gpu) MUST(driver.cuMemAlloc_v2(&at, bytes));
    return m->is_gpu ? (void*)(size_t)at : malloc(bytes);
}
static void release(const struct machine* m, void* memory) {
    if (m->is_gpu)
        MUST(driver.cuMemFree_v2((size_t)memory));
    else
        free(memory);
}
/* Copies wait for the machine's stream, and are done when they return. */
static void upload(const struct machine* m, void* to, const void* from, size_t bytes) {
    if (m->is_gpu) {
        MUST(driver.cuMemcpyHtoDAsync_v2((size_t)to, from, bytes, m->stream));
        MUST(driver.cuStreamSynchronize(m->stream));
    } else
        memcpy(to, from, bytes);
}
static void download(const struct machine* m, void* to, const void* from, size_t bytes) {
    if (m->is_gpu) {
        MUST(driver.cuMemcpyDtoHAsync_v2(to, (size_t)from, bytes, m->stream));
        MUST(driver.cuStreamSynchronize(m->stream));
    } else
        memcpy(to, from, bytes);
}
