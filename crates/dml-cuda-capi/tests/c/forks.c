/* Forks while four threads call the library with new and known layouts. Each child calls it, too, and must return
 * within its alarm. */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "dml_cuda.h"

#define CHILDREN 200
static DML_CUDA_DEVICE *device = NULL;
static atomic_int done = 0;

/* Reverses an array of `count` elements, and returns whether it is reversed. */
static int reverses(int64_t count) {
    DML_CUDA_COMPILED_OPERATOR *compiled = NULL;
    DML_CUDA_ERROR *error = NULL;
    uint16_t data[4096] = {7};
    const uint32_t lengths[1] = {(uint32_t)count};
    const void *inputs[] = {data, lengths};
    DML_CUDA_ARRAY array = {data, 1, 2, &count, NULL}, of_lengths = {lengths, 0, 4, NULL, NULL};
    int right = dml_cuda_compile_reversal(device, &array, &of_lengths, &array, 0, &compiled, &error) == 0;
    right = right && dml_cuda_dispatch(compiled, inputs, 2, data, NULL, &error) == 0;
    dml_cuda_destroy_compiled_operator(compiled);
    dml_cuda_destroy_error(error);
    return right && data[count - 1] == 7;
}

static void *calls(void *unused) {
    (void)unused;
    for (int64_t n = 0; !done; ++n) {
        if (!reverses(1 + n % 4096)) abort();
    }
    return NULL;
}

int main(void) {
    pthread_t threads[4];
    if (dml_cuda_create_cpu_device(0, &device, NULL) != 0) return 1;
    for (int n = 0; n < 4; ++n) {
        if (pthread_create(threads + n, NULL, calls, NULL) != 0) return 1;
    }
    int returned = 0;
    for (int n = 0; n < CHILDREN; ++n) {
        pid_t child = fork();
        if (child == 0) {
            alarm(20);
            int right = 1;
            for (int64_t count = 1; count < 4096; count += 31) right = right && reverses(count);
            _exit(!right);
        }
        int status = 1;
        if (child < 0 || waitpid(child, &status, 0) != child) return 1;
        returned += status == 0;
    }
    done = 1;
    for (int n = 0; n < 4; ++n) pthread_join(threads[n], NULL);
    dml_cuda_destroy_device(device);
    printf("%d of %d children returned\n", returned, CHILDREN);
    return returned != CHILDREN;
}
