// Runs kernels on the host: reads launches from standard input and writes the output tensors to standard output. It is
// built with the address and undefined-behaviour sanitizers, so that a wrong index ends the process with a report.
//
// The input (little endian), for each launch: the Header below; then the name, the parameters, for each input its size
// and its bytes, and the output's bytes. An input of size 2^32 - 1 means "in place": the input is the output. The first
// input and the output begin `past` bytes past a multiple of 256. The parameters begin with the pointers to the inputs,
// then to the output. The answer is the output's bytes.
//
// Every tensor is a separate allocation of exactly its size, and so is shared memory. The threads of a cluster (or of a
// thread block, if there are no clusters) run one after another, in ascending or in descending order, each until it
// ends or waits at a barrier. A missing barrier gives a wrong result in one of the two orders. Clusters, or thread
// blocks, run one after another in a random order, so that one that reads what another writes gives a wrong result in
// some launches.
#include <dlfcn.h>
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#include <ucontext.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "shim.hpp"

Index3 threadIdx, blockIdx, blockDim;

static constexpr unsigned THREADS = 4096, WARP = 32;  // THREADS: the most threads of a cluster
static constexpr size_t STACK = 64 << 10, SHARED = 256 << 10;
uint4 smem[SHARED / 16];  // `extern __shared__ uint4 smem[]` of the kernels

#if defined(__x86_64__) && defined(__linux__)
// Saves the registers that a call keeps, and the stack pointer in *from. Continues where `to` was saved.
extern "C" void switch_stack(void** from, void* to);
asm(".text\n"
    "switch_stack:\n"
    "    pushq %rbp; pushq %rbx; pushq %r12; pushq %r13; pushq %r14; pushq %r15\n"
    "    movq %rsp, (%rdi)\n"
    "    movq %rsi, %rsp\n"
    "    popq %r15; popq %r14; popq %r13; popq %r12; popq %rbx; popq %rbp\n"
    "    ret\n");
#endif

namespace {

[[noreturn]] void fail(const std::string& message) {
    std::fprintf(stderr, "emulator: %s\n", message.c_str());
    std::exit(3);
}

// ---- Threads of a cluster, as fibres --------------------------------------------------------------------

enum class State { Ready, Waiting, Ended };

// Where a fibre or the scheduler continues. swapcontext takes most of the emulator's time: it calls the system for the
// signal mask, and under the sanitizer it clears the shadow of the whole stack.
#if defined(__x86_64__) && defined(__linux__)
using Context = void*;
void begin(Context& context, char* stack, void (*run)()) {
    // From the top: nowhere to return to, `run` for the `ret` of switch_stack, and six registers.
    void** top = reinterpret_cast<void**>(reinterpret_cast<uintptr_t>(stack + STACK) / 16 * 16);
    top[-1] = nullptr;
    top[-2] = reinterpret_cast<void*>(run);
    std::fill_n(top - 8, 6, nullptr);
    context = top - 8;
}
void go(Context& from, Context& to) { switch_stack(&from, to); }
#else
using Context = ucontext_t;
void begin(Context& context, char* stack, void (*run)()) {
    getcontext(&context);
    context.uc_stack.ss_sp = stack;
    context.uc_stack.ss_size = STACK;
    context.uc_link = nullptr;
    makecontext(&context, run, 0);
}
void go(Context& from, Context& to) { swapcontext(&from, &to); }
#endif

struct Fibre {
    Context context;
    std::unique_ptr<char[]> stack{new char[STACK]};
    void* fake_stack = nullptr;
};

struct Cluster {
    void (*body)(const void*) = nullptr;
    const void* parameters = nullptr;
    bool backwards = false;
    unsigned first_block = 0;
    unsigned threads = 0;  // of all its blocks
    unsigned next = 0;     // threads that have begun
    unsigned current = 0;  // thread block whose shared memory is in `smem`; that of the others is in `shared`
    std::vector<std::vector<unsigned char>> shared;
    State state[THREADS];
    unsigned barrier[THREADS];  // if it waits: how many threads its barrier is for
    Fibre* fibre[THREADS];
} cluster;

std::vector<std::unique_ptr<Fibre>> pool;  // all fibres
std::vector<Fibre*> idle;
Fibre* resumed;
Context scheduler;
void* scheduler_fake_stack;
const void* scheduler_stack;
size_t scheduler_stack_size;

void to_scheduler(Fibre* fibre) {
    __sanitizer_start_switch_fiber(&fibre->fake_stack, scheduler_stack, scheduler_stack_size);
    go(fibre->context, scheduler);
    __sanitizer_finish_switch_fiber(fibre->fake_stack, &scheduler_stack, &scheduler_stack_size);
}

unsigned thread_at(unsigned n) { return cluster.backwards ? cluster.threads - 1 - n : n; }

// Makes a thread of the cluster the running one.
void enter(unsigned thread) {
    const unsigned block = thread / blockDim.x;
    threadIdx = {thread % blockDim.x, 0, 0};
    blockIdx = {cluster.first_block + block, 0, 0};
    if (block == cluster.current) return;
    std::memcpy(cluster.shared[cluster.current].data(), smem, cluster.shared[block].size());
    std::memcpy(smem, cluster.shared[block].data(), cluster.shared[block].size());
    cluster.current = block;
}

// A fibre runs one thread after another. If a thread waits, its fibre waits with it.
void fibre_main() {
    Fibre* const self = resumed;
    __sanitizer_finish_switch_fiber(nullptr, &scheduler_stack, &scheduler_stack_size);
    for (;;) {
        while (cluster.next < cluster.threads) {
            const unsigned thread = thread_at(cluster.next++);
            cluster.fibre[thread] = self;
            enter(thread);
            cluster.body(cluster.parameters);
            cluster.state[thread] = State::Ended;
        }
        idle.push_back(self);
        to_scheduler(self);
    }
}

Fibre* idle_fibre() {
    if (idle.empty()) {
        pool.push_back(std::make_unique<Fibre>());
        Fibre* fibre = pool.back().get();
        begin(fibre->context, fibre->stack.get(), fibre_main);
        return fibre;
    }
    Fibre* fibre = idle.back();
    idle.pop_back();
    return fibre;
}

void resume(Fibre* fibre) {
    resumed = fibre;
    __sanitizer_start_switch_fiber(&scheduler_fake_stack, fibre->stack.get(), STACK);
    go(scheduler, fibre->context);
    __sanitizer_finish_switch_fiber(scheduler_fake_stack, nullptr, nullptr);
}

void wait_for(unsigned threads) {
    const unsigned thread = (blockIdx.x - cluster.first_block) * blockDim.x + threadIdx.x;
    cluster.state[thread] = State::Waiting;
    cluster.barrier[thread] = threads;
    to_scheduler(cluster.fibre[thread]);
    enter(thread);
}

// Whether each of the `count` threads from `first` on has ended or waits at a barrier for `count` threads.
bool complete(unsigned first, unsigned count) {
    for (unsigned thread = first; thread < first + count; ++thread) {
        const bool waits = cluster.state[thread] == State::Waiting && cluster.barrier[thread] == count;
        if (!waits && cluster.state[thread] != State::Ended) return false;
    }
    return true;
}

void run_cluster() {
    cluster.next = 0;
    std::fill_n(cluster.state, cluster.threads, State::Ready);
    for (;;) {
        // Start threads. A fibre runs several until one of them waits; then another fibre continues.
        while (cluster.next < cluster.threads) resume(idle_fibre());
        // All threads have ended or wait. Collect all threads whose barrier is complete, then resume them.
        std::vector<unsigned> free;
        bool waiting = false, released = false;
        unsigned first = 0, count = 0;  // the threads of the last barrier that was checked
        for (unsigned n = 0; n < cluster.threads; ++n) {
            const unsigned thread = thread_at(n);
            if (cluster.state[thread] == State::Ended) continue;
            waiting = true;
            if (count != cluster.barrier[thread] || thread < first || thread >= first + count) {
                count = cluster.barrier[thread];
                first = thread / count * count;
                released = complete(first, count);
            }
            if (released) free.push_back(thread);
        }
        if (!waiting) return;
        if (free.empty()) fail("threads wait at barriers that will never be complete");
        for (unsigned thread : free) cluster.state[thread] = State::Ready;
        for (unsigned thread : free) resume(cluster.fibre[thread]);
    }
}

// ---- Calls ------------------------------------------------------------------------------------------------

// Passes parameters by value. Their type does not matter: structures of more than two words are all passed in the same
// way.
template <size_t N>
struct alignas(8) Blob {
    unsigned char bytes[N];
};
void* entry;
template <size_t N>
void call(const void* parameters) {
    Blob<N> blob;
    std::memcpy(&blob, parameters, N);
    reinterpret_cast<void (*)(Blob<N>)>(entry)(blob);
}

template <size_t... Words>
void (*caller(size_t size, std::index_sequence<Words...>))(const void*) {
    void (*found)(const void*) = nullptr;
    ((size == (Words + 3) * 8 ? void(found = call<(Words + 3) * 8>) : void()), ...);
    return found;
}

bool read_all(void* to, size_t size) { return std::fread(to, 1, size, stdin) == size; }

// A tensor: exactly `size` bytes that begin `past` bytes after a multiple of 256.
struct Tensor {
    unsigned char* allocation = nullptr;
    unsigned char* begin = nullptr;
    Tensor(size_t size, size_t past) {
        allocation = static_cast<unsigned char*>(std::aligned_alloc(256, (past + size + 256) / 256 * 256));
        begin = allocation + past;
        ASAN_POISON_MEMORY_REGION(allocation, past);
        ASAN_POISON_MEMORY_REGION(begin + size, (past + size + 256) / 256 * 256 - past - size);
        if (!read_all(begin, size)) fail("the launch ends early");
    }
    ~Tensor() { std::free(allocation); }
};

struct Header {
    uint32_t name, parameters, inputs, output;  // sizes, but the number of inputs
    uint32_t blocks, blocks_of_cluster, threads, shared, past, order;
};

}  // namespace

void __syncthreads() { wait_for(blockDim.x); }
void wait_for_cluster() { wait_for(cluster.threads); }
unsigned char* shared_of(unsigned block) {
    if (block == cluster.current) return reinterpret_cast<unsigned char*>(smem);
    return cluster.shared.at(block).data();
}
void __syncwarp() { wait_for(WARP); }

int main() {
    Header header;
    while (read_all(&header, sizeof header)) {
        std::string name(header.name, '\0');
        std::vector<unsigned char> parameters(header.parameters);
        if (!read_all(name.data(), name.size()) || !read_all(parameters.data(), parameters.size())) fail("no name");
        std::vector<std::unique_ptr<Tensor>> inputs;
        std::vector<uint32_t> at_output = {header.inputs};
        auto point = [&](uint32_t n, const Tensor& tensor) { std::memcpy(&parameters.at(8 * n), &tensor.begin, 8); };
        for (uint32_t n = 0; n < header.inputs; ++n) {
            uint32_t size;
            if (!read_all(&size, sizeof size)) fail("an input is missing");
            if (size == UINT32_MAX) {
                at_output.push_back(n);
                continue;
            }
            inputs.push_back(std::make_unique<Tensor>(size, n == 0 ? header.past : 0));
            point(n, *inputs.back());
        }
        Tensor output(header.output, header.past);
        for (uint32_t n : at_output) point(n, output);
        entry = dlsym(RTLD_DEFAULT, name.c_str());
        if (entry == nullptr) fail("no kernel is called " + name);
        cluster.body = caller(parameters.size(), std::make_index_sequence<128>());
        if (cluster.body == nullptr) fail("the parameters of " + name + " have an unknown size");
        cluster.parameters = parameters.data();
        cluster.backwards = header.order % 2 != 0;
        cluster.threads = header.blocks_of_cluster * header.threads;
        cluster.shared.assign(header.blocks_of_cluster, std::vector<unsigned char>(header.shared, 0xA5));
        cluster.current = 0;
        std::memset(smem, 0xA5, sizeof smem);
        ASAN_POISON_MEMORY_REGION(reinterpret_cast<char*>(smem) + header.shared, sizeof smem - header.shared);
        if (cluster.threads > THREADS) fail("a thread block or a cluster has too many threads");
        blockDim = {header.threads, 1, 1};
        const unsigned clusters = header.blocks / header.blocks_of_cluster;
        if (clusters * header.blocks_of_cluster != header.blocks) fail("a part of a cluster");
        std::vector<unsigned> in_order(clusters);
        std::iota(in_order.begin(), in_order.end(), 0);
        std::shuffle(in_order.begin(), in_order.end(), std::minstd_rand(header.order));
        for (unsigned n : in_order) {
            cluster.first_block = n * header.blocks_of_cluster;
            run_cluster();
        }
        ASAN_UNPOISON_MEMORY_REGION(smem, sizeof smem);
        if (std::fwrite(output.begin, 1, header.output, stdout) != header.output) fail("no reader");
        std::fflush(stdout);
    }
}
