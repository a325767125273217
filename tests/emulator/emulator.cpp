// Runs kernels on the host: reads launches from standard input, writes the output tensors to standard output.
// Built with the address and undefined-behaviour sanitizers, so that a wrong index ends the process with a report.
//
// A launch on the wire (little endian): u32 sizes of name, parameters and of the three tensors (input, lengths,
// output; an input size of 2^32 - 1 is "in place": the output is the input), u32 blocks, u32 threads of a block, u32
// shared bytes, u32 bytes that the big tensors begin past a multiple of 256, u32 offsets of the three pointers in the
// parameters, u32 order;
// then name, parameters, and the tensors' bytes. The answer is the output's bytes.
//
// Every tensor is an allocation of its own, exactly as large as it is, and so is shared memory. Threads of a block
// run one after the other, from the first up or from the last down, each until it ends or waits at a barrier: a
// missing barrier shows as a wrong result in one of the orders.
#include <dlfcn.h>
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#include <ucontext.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "shim.hpp"

Index3 threadIdx, blockIdx, blockDim;

static constexpr unsigned THREADS = 256, WARP = 32;  // THREADS: the most of a block
static constexpr size_t STACK = 256 << 10, SHARED = 256 << 10;
uint4 staged[SHARED / 16];  // `extern __shared__ uint4 staged[]` of the kernels

namespace {

[[noreturn]] void fail(const std::string& message) {
    std::fprintf(stderr, "emulator: %s\n", message.c_str());
    std::exit(3);
}

// ---- Threads of a block, as fibres ----------------------------------------------------------------------

enum class State { Ready, Waiting, Ended };

struct Fibre {
    ucontext_t context;
    std::unique_ptr<char[]> stack{new char[STACK]};
    void* fake_stack = nullptr;
};

struct Block {
    void (*body)(const void*) = nullptr;
    const void* parameters = nullptr;
    bool backwards = false;
    unsigned next = 0;  // threads that have begun
    State state[THREADS];
    unsigned barrier[THREADS];  // of how many threads, where one waits
    Fibre* fibre[THREADS];
} block;

std::vector<std::unique_ptr<Fibre>> pool;  // all fibres
std::vector<Fibre*> idle;
Fibre* resumed;
ucontext_t scheduler;
void* scheduler_fake_stack;
const void* scheduler_stack;
size_t scheduler_stack_size;

void to_scheduler(Fibre* fibre) {
    __sanitizer_start_switch_fiber(&fibre->fake_stack, scheduler_stack, scheduler_stack_size);
    swapcontext(&fibre->context, &scheduler);
    __sanitizer_finish_switch_fiber(fibre->fake_stack, &scheduler_stack, &scheduler_stack_size);
}

unsigned thread_at(unsigned n) { return block.backwards ? THREADS - 1 - n : n; }

// A fibre runs threads one after the other, and waits with one that waits.
void fibre_main() {
    Fibre* const self = resumed;
    __sanitizer_finish_switch_fiber(nullptr, &scheduler_stack, &scheduler_stack_size);
    for (;;) {
        while (block.next < THREADS) {
            const unsigned thread = thread_at(block.next++);
            block.fibre[thread] = self;
            threadIdx = {thread, 0, 0};
            if (thread < blockDim.x) block.body(block.parameters);
            block.state[thread] = State::Ended;
        }
        idle.push_back(self);
        to_scheduler(self);
    }
}

Fibre* idle_fibre() {
    if (idle.empty()) {
        pool.push_back(std::make_unique<Fibre>());
        Fibre* fibre = pool.back().get();
        getcontext(&fibre->context);
        fibre->context.uc_stack.ss_sp = fibre->stack.get();
        fibre->context.uc_stack.ss_size = STACK;
        fibre->context.uc_link = nullptr;
        makecontext(&fibre->context, fibre_main, 0);
        return fibre;
    }
    Fibre* fibre = idle.back();
    idle.pop_back();
    return fibre;
}

void resume(Fibre* fibre) {
    resumed = fibre;
    __sanitizer_start_switch_fiber(&scheduler_fake_stack, fibre->stack.get(), STACK);
    swapcontext(&scheduler, &fibre->context);
    __sanitizer_finish_switch_fiber(scheduler_fake_stack, nullptr, nullptr);
}

void wait_for(unsigned threads) {
    const unsigned thread = threadIdx.x;
    block.state[thread] = State::Waiting;
    block.barrier[thread] = threads;
    to_scheduler(block.fibre[thread]);
    threadIdx = {thread, 0, 0};
}

// Whether all threads of the barrier that a thread waits at wait there too, or have ended.
bool released(unsigned thread) {
    const unsigned count = block.barrier[thread], first = thread / count * count;
    for (unsigned other = first; other < first + count; ++other) {
        const bool waits = block.state[other] == State::Waiting && block.barrier[other] == count;
        if (!waits && block.state[other] != State::Ended) return false;
    }
    return true;
}

void run_block() {
    block.next = 0;
    for (State& state : block.state) state = State::Ready;
    for (;;) {
        // Begin threads, a fibre for each run of them that does not wait.
        while (block.next < THREADS) resume(idle_fibre());
        // All have ended or wait. Release every thread whose barrier is complete; those of a block's at once.
        std::vector<unsigned> free;
        bool waiting = false;
        for (unsigned n = 0; n < THREADS; ++n) {
            const unsigned thread = thread_at(n);
            if (block.state[thread] == State::Ended) continue;
            waiting = true;
            if (released(thread)) free.push_back(thread);
        }
        if (!waiting) return;
        if (free.empty()) fail("threads wait at barriers that will never be complete");
        for (unsigned thread : free) block.state[thread] = State::Ready;
        for (unsigned thread : free) resume(block.fibre[thread]);
    }
}

// ---- Calls ------------------------------------------------------------------------------------------------

// Parameters by value, whatever they are: structures of more than two words are passed alike.
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

// A tensor: exactly `size` bytes that begin `past` bytes behind a multiple of 256.
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
    uint32_t name, parameters, tensors[3], blocks, threads, shared, past, pointers[3], order;
};

}  // namespace

void __syncthreads() { wait_for(THREADS); }
void __syncwarp() { wait_for(WARP); }

int main() {
    Header header;
    while (read_all(&header, sizeof header)) {
        std::string name(header.name, '\0');
        std::vector<unsigned char> parameters(header.parameters);
        if (!read_all(name.data(), name.size()) || !read_all(parameters.data(), parameters.size())) fail("no name");
        const bool in_place = header.tensors[0] == UINT32_MAX;
        Tensor input(in_place ? 0 : header.tensors[0], header.past), lengths(header.tensors[1], 0),
            output(header.tensors[2], header.past);
        const uint64_t addresses[3] = {reinterpret_cast<uint64_t>(in_place ? output.begin : input.begin),
                                       reinterpret_cast<uint64_t>(lengths.begin),
                                       reinterpret_cast<uint64_t>(output.begin)};
        for (int k = 0; k < 3; ++k) {
            if (header.pointers[k] != UINT32_MAX) std::memcpy(&parameters[header.pointers[k]], &addresses[k], 8);
        }
        entry = dlsym(RTLD_DEFAULT, name.c_str());
        if (entry == nullptr) fail("no kernel is called " + name);
        block.body = caller(parameters.size(), std::make_index_sequence<128>());
        if (block.body == nullptr) fail("the parameters of " + name + " are of no size that is known");
        block.parameters = parameters.data();
        block.backwards = header.order != 0;
        std::memset(staged, 0xA5, sizeof staged);
        ASAN_POISON_MEMORY_REGION(reinterpret_cast<char*>(staged) + header.shared, sizeof staged - header.shared);
        if (header.threads > THREADS) fail("a block of more threads than there may be");
        blockDim = {header.threads, 1, 1};
        for (unsigned b = 0; b < header.blocks; ++b) {
            blockIdx = {block.backwards ? header.blocks - 1 - b : b, 0, 0};
            run_block();
        }
        ASAN_UNPOISON_MEMORY_REGION(staged, sizeof staged);
        if (std::fwrite(output.begin, 1, header.tensors[2], stdout) != header.tensors[2]) fail("no reader");
        std::fflush(stdout);
    }
}
