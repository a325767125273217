/* A mock of the CUDA driver: a library with the entry points that this crate calls. Its memory is the host's,
   and its kernels do nothing. It tracks what is live, and writes a line to the file DOUBLE_REPORT for every mistake:
   unknown or destroyed handles, a call without a current context, memory that is freed, read or written or kernels that
   are unloaded while queued work uses them, and, at the end, everything that was not released.
   DOUBLE_FAIL="cuMemAlloc_v2 3 2" makes the third call of that function return 2. DOUBLE_SLOW names a function that
   takes long. Two events are half a millisecond apart, but half of that if a graph's last work before the later one is
   the kernel that DOUBLE_FAST names. The file DOUBLE_MOVED gets a line for every fill and copy within the GPU with its
   bytes, and for every launch with its kernel and threads. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CONTEXT, STREAM, EVENT, MEMORY, MODULE, GRAPH, EXECUTABLE, KINDS };
/* Words of the buffer in which the crate passes a launch's parameters (MAX_WORDS of src/cuda/launch.rs). Unused words
   are zeros. */
enum { WORDS = 80 };
static const char* const NAMES[KINDS] = {"context", "stream", "event", "memory", "module", "graph", "executable graph"};

static struct object {
    int kind, captured; /* a stream that is being captured */
    char* at;
    size_t size;
    struct object* next;
    void* stream; /* an event: where it was recorded, and how much had been queued by then */
    unsigned long position;
    char kernel[64];              /* of a module; of the last work before an event of a graph */
    int capture_mode, *capturing; /* of a captured stream: how, and the mode of the thread that captures it */
}* live;
static unsigned long queued; /* launches and waits so far */
/* A launch on a stream, of a stream's capture, or of a graph or executable graph. */
enum state { QUEUED, CAPTURED, RECORDED };
static struct launch {
    enum state state;
    void *owner, *module;
    unsigned long position;
    const char* words[WORDS]; /* its parameters, which include the addresses of the memory that it uses */
    struct launch* next;
}* launches;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const char* running; /* the entry point that has the lock */
static _Thread_local void* current;

static void report(const char* what) {
    const char* path = getenv("DOUBLE_REPORT");
    FILE* file = path ? fopen(path, "a") : NULL;
    if (!file) return;
    fprintf(file, "%s: %s\n", running, what);
    fclose(file);
}

/* Notes work, and how much of it there is. */
static void moved(const char* what, size_t count) {
    const char* path = getenv("DOUBLE_MOVED");
    FILE* file = path ? fopen(path, "a") : NULL;
    if (!file) return;
    fprintf(file, "%s %zu\n", what, count);
    fclose(file);
}

static char failing[64];
static int failing_nth, failing_code;
static const char* slow_name;
/* Looking for these at every call would take a fifth of a test's time. */
__attribute__((constructor)) static void begin(void) {
    const char* fail = getenv("DOUBLE_FAIL");
    if (fail) sscanf(fail, "%63s %d %d", failing, &failing_nth, &failing_code);
    slow_name = getenv("DOUBLE_SLOW");
}

/* Counts a call. Returns the code that it must fail with, or 0. */
static int called(const char* name) {
    static int calls;
    running = name;
    if (strcmp(name, failing) != 0 || ++calls != failing_nth) return 0;
    report("failed as told");
    return failing_code;
}

static void* add(int kind, size_t size) {
    struct object* made = malloc(sizeof *made);
    *made = (struct object){kind, 0, aligned_alloc(256, (size + 256) & ~(size_t)255), size, live};
    live = made;
    return made->at;
}

/* The list entry of the live object that contains the address. */
static struct object** find(int kind, const void* at) {
    struct object** o = &live;
    const char* to = at;
    while (*o && !((*o)->kind == kind && to >= (*o)->at && to <= (*o)->at + (*o)->size)) o = &(*o)->next;
    return o;
}

/* The object with a handle. Reports one that is not live, and memory past its end. */
static struct object* check(int kind, const void* at, size_t size) {
    struct object* o = *find(kind, at);
    if (!o)
        report("an unknown or destroyed handle");
    else if (kind == MEMORY && (const char*)at + size > o->at + o->size)
        report("memory past its end");
    return o;
}

static void drop(int kind, void* at) {
    struct object **place = find(kind, at), *o = *place;
    if (!o || o->at != at) {
        report("destroys an object that is not live");
        return;
    }
    *place = o->next;
    free(o->at);
    free(o);
}

static void needs_context(void) {
    if (!current)
        report("no context is current");
    else
        check(CONTEXT, current, 0);
}

/* Stream handles 0 to 2 are the default streams. */
static void check_stream(void* stream) {
    if ((size_t)stream > 2) check(STREAM, stream, 0);
}

static int is_captured(void* stream) { return *find(STREAM, stream) && (*find(STREAM, stream))->captured; }

/* A stream that is not being captured. */
static void check_idle(void* stream) {
    check_stream(stream);
    if (is_captured(stream)) report("on a stream that is being captured");
}

/* Modes of captures and of threads. */
enum { GLOBAL = 0, RELAXED = 2 };
static _Thread_local int capture_mode;

/* During a capture, its own thread may not create a stream, allocate, free, load, unload or wait. During a global one,
   threads in the global mode may not either. Threads in the relaxed mode always may. */
static void allowed_in_capture(void) {
    for (struct object* o = live; o && capture_mode != RELAXED; o = o->next) {
        if (!o->captured || o->capture_mode == RELAXED) continue;
        int is_anothers = o->capture_mode == GLOBAL && capture_mode == GLOBAL;
        if (o->capturing == &capture_mode || is_anothers) report("a call that a capture forbids");
    }
}

/* Launches are allocated where tests that count a program's allocations do not count them. */
void* __libc_malloc(size_t);
static void add_launch(enum state state, void* owner, struct launch launch) {
    struct launch* made = __libc_malloc(sizeof *made);
    *made = launch;
    made->state = state;
    made->owner = owner;
    made->position = ++queued;
    made->next = launches;
    launches = made;
}

/* Adds the launches of one owner to another. */
static void copy_launches(enum state from, void* owner, enum state to, void* new_owner) {
    for (struct launch* l = launches; l; l = l->next)
        if (l->state == from && l->owner == owner) add_launch(to, new_owner, *l);
}

static void remove_launches(enum state state, void* owner, unsigned long until) {
    for (struct launch** l = &launches; *l;) {
        struct launch* this = *l;
        if (this->state != state || this->owner != owner || this->position > until)
            l = &this->next;
        else
            *l = this->next, free(this);
    }
}

/* Work of a stream that waits for that of another. */
static struct waiting {
    void *stream, *other;
    unsigned long position, of_other;
    struct waiting* next;
}* waits;

/* The work of a stream up to a position is done, and with it the work that it waited for. */
static void done(void* stream, unsigned long position) {
    remove_launches(QUEUED, stream, position);
    for (struct waiting** w = &waits; *w;) {
        struct waiting* this = *w;
        if (this->stream != stream || this->position > position) {
            w = &this->next;
            continue;
        }
        *w = this->next;
        done(this->other, this->of_other);
        free(this);
        w = &waits;
    }
}

static void nothing_queued(void* stream, void* module, const char* what) {
    for (struct launch* l = launches; l; l = l->next)
        if (l->state == QUEUED && (!stream || l->owner == stream) && (!module || l->module == module)) report(what);
}

/* Reports queued work that uses the memory that contains an address. */
static void not_in_use(const void* at, const char* what) {
    struct object* o = *find(MEMORY, at);
    for (struct launch* l = o ? launches : NULL; l; l = l->next) {
        int w = 0;
        while (w < WORDS && !(l->words[w] >= o->at && l->words[w] < o->at + o->size)) ++w;
        if (l->state == QUEUED && w < WORDS) report(what);
    }
}

__attribute__((destructor)) static void end(void) {
    running = "end";
    for (struct object* o = live; o; o = o->next) {
        char what[64];
        snprintf(what, sizeof what, "not given back: %s", NAMES[o->kind]);
        report(what);
    }
}

/* The function that DOUBLE_SLOW names takes long, and others run meanwhile. */
static void slow(const char* name) {
    if (slow_name && strcmp(name, slow_name) == 0) usleep(700000);
}

static void unlock(int* locked) { pthread_mutex_unlock(&lock); }
/* Entry points run one at a time. */
#define LOCK __attribute__((cleanup(unlock))) int locked = pthread_mutex_lock(&lock)
#define CALL                           \
    slow(__func__);                    \
    LOCK;                              \
    do {                               \
        int failed = called(__func__); \
        if (failed) return failed;     \
    } while (0)
#define WITH_CONTEXT \
    CALL;            \
    needs_context()

int cuInit(unsigned flags) {
    CALL;
    return getenv("FAKE_CU_INIT") ? atoi(getenv("FAKE_CU_INIT")) : 0;
}
static int version_of_driver(void) { return getenv("FAKE_DRIVER") ? atoi(getenv("FAKE_DRIVER")) : 12030; }
int cuDriverGetVersion(int* version) {
    CALL;
    *version = version_of_driver();
    return 0;
}
int cuDeviceGetCount(int* count) {
    CALL;
    *count = getenv("FAKE_GPUS") ? atoi(getenv("FAKE_GPUS")) : 1;
    return 0;
}
int cuDeviceGet(int* device, int ordinal) {
    CALL;
    *device = ordinal;
    return 0;
}
int cuDeviceGetName(char* name, int length, int device) {
    CALL;
    snprintf(name, (size_t)length, "Fake GPU");
    return 0;
}
int cuDeviceTotalMem_v2(size_t* bytes, int device) {
    CALL;
    *bytes = 1 << 30;
    return 0;
}
int cuDeviceGetAttribute(int* value, int which, int device) {
    CALL;
    /* compute capability 8.1, shared memory of a block, the PCI bus */
    *value = which == 75 ? 8 : which == 97 ? 166912 : which == 33 ? 0x1a + device : 1;
    return 0;
}
static void* primary;
static int retained;
int cuDevicePrimaryCtxRetain(void** context, int device) {
    CALL;
    if (retained++ == 0) primary = add(CONTEXT, 1);
    *context = primary;
    return 0;
}
int cuDevicePrimaryCtxRelease_v2(int device) {
    CALL;
    if (retained == 0)
        report("releases a context that is not retained");
    else if (--retained == 0)
        drop(CONTEXT, primary);
    return 0;
}
int cuCtxGetCurrent(void** context) {
    CALL;
    *context = current;
    return 0;
}
int cuCtxSetCurrent(void* context) {
    CALL;
    if (context) check(CONTEXT, context, 0);
    current = context;
    return 0;
}
int cuCtxGetDevice(int* device) {
    CALL;
    *device = 0;
    return current ? 0 : 201;
}
int cuThreadExchangeStreamCaptureMode(int* mode) {
    CALL;
    int before = capture_mode;
    capture_mode = *mode;
    *mode = before;
    return 0;
}
int cuStreamCreate(void** stream, unsigned flags) {
    WITH_CONTEXT;
    allowed_in_capture();
    *stream = add(STREAM, 1);
    return 0;
}
int cuStreamIsCapturing(void* stream, int* status) {
    WITH_CONTEXT;
    check_stream(stream);
    *status = is_captured(stream);
    return 0;
}
int cuStreamSynchronize(void* stream) {
    WITH_CONTEXT;
    allowed_in_capture();
    check_idle(stream);
    done(stream, queued);
    return 0;
}
int cuStreamDestroy_v2(void* stream) {
    WITH_CONTEXT;
    nothing_queued(stream, NULL, "destroys a stream with queued work");
    check_idle(stream);
    drop(STREAM, stream);
    return 0;
}
int cuStreamBeginCapture_v2(void* stream, int mode) {
    WITH_CONTEXT;
    check_idle(stream);
    struct object* o = check(STREAM, stream, 0);
    if (o) o->captured = 1, o->capture_mode = mode, o->capturing = &capture_mode;
    return 0;
}
int cuStreamEndCapture(void* stream, void** graph) {
    LOCK;
    int failed = called(__func__);
    needs_context();
    *graph = failed ? NULL : add(GRAPH, 1);
    if (is_captured(stream))
        (*find(STREAM, stream))->captured = 0;
    else
        report("ends a capture that was not begun");
    if (*graph) copy_launches(CAPTURED, stream, RECORDED, *graph);
    remove_launches(CAPTURED, stream, queued);
    return failed;
}
int cuGraphInstantiateWithFlags(void** executable, void* graph, unsigned long long flags) {
    WITH_CONTEXT;
    check(GRAPH, graph, 0);
    *executable = add(EXECUTABLE, 1);
    copy_launches(RECORDED, graph, RECORDED, *executable);
    return 0;
}
int cuGraphDestroy(void* graph) {
    CALL;
    remove_launches(RECORDED, graph, queued);
    drop(GRAPH, graph);
    return 0;
}
int cuGraphExecDestroy(void* executable) {
    CALL;
    remove_launches(RECORDED, executable, queued);
    drop(EXECUTABLE, executable);
    return 0;
}
int cuGraphLaunch(void* executable, void* stream) {
    WITH_CONTEXT;
    check(EXECUTABLE, executable, 0);
    check_idle(stream);
    for (struct launch* l = launches; l; l = l->next)
        if (l->state == RECORDED && l->owner == executable) check(MODULE, l->module, 0);
    copy_launches(RECORDED, executable, QUEUED, stream);
    return 0;
}
int cuEventCreate(void** event, unsigned flags) {
    WITH_CONTEXT;
    *event = add(EVENT, 1);
    return 0;
}
int cuEventRecord(void* event, void* stream) {
    WITH_CONTEXT;
    check_idle(stream);
    struct object* o = check(EVENT, event, 0);
    if (o) o->stream = stream, o->position = queued;
    return 0;
}
int cuEventRecordWithFlags(void* event, void* stream, unsigned flags) {
    WITH_CONTEXT;
    check(STREAM, stream, 0);
    if (flags != 1) report("an event that is not external");
    struct launch* l = launches;
    while (l && (l->state != CAPTURED || l->owner != stream)) l = l->next;
    struct object *o = check(EVENT, event, 0), *module = l ? *find(MODULE, l->module) : NULL;
    if (o && module) strcpy(o->kernel, module->kernel);
    return 0;
}
int cuStreamWaitEvent(void* stream, void* event, unsigned flags) {
    WITH_CONTEXT;
    check(STREAM, stream, 0);
    if (flags != 0) report("an event of a capture");
    struct object* o = check(EVENT, event, 0);
    struct waiting* made = malloc(sizeof *made);
    if (o) *made = (struct waiting){stream, o->stream, ++queued, o->position, waits}, waits = made;
    return 0;
}
int cuEventSynchronize(void* event) {
    CALL;
    allowed_in_capture();
    struct object* o = check(EVENT, event, 0);
    if (o && o->stream) done(o->stream, o->position);
    return 0;
}
int cuEventDestroy_v2(void* event) {
    WITH_CONTEXT;
    drop(EVENT, event);
    return 0;
}
int cuMemGetInfo_v2(size_t* available, size_t* total) {
    WITH_CONTEXT;
    *available = *total = 1 << 30;
    return 0;
}
int cuMemAlloc_v2(void** address, size_t bytes) {
    WITH_CONTEXT;
    allowed_in_capture();
    *address = add(MEMORY, bytes);
    return 0;
}
int cuMemFree_v2(void* address) {
    WITH_CONTEXT;
    allowed_in_capture();
    not_in_use(address, "frees memory that queued work uses");
    drop(MEMORY, address);
    return 0;
}
int cuMemsetD8Async(void* to, unsigned char value, size_t bytes, void* stream) {
    WITH_CONTEXT;
    check(MEMORY, to, bytes);
    check_stream(stream);
    memset(to, value, bytes);
    moved("fill", bytes);
    return 0;
}
int cuMemcpyHtoDAsync_v2(void* to, const void* from, size_t bytes, void* stream) {
    WITH_CONTEXT;
    check(MEMORY, to, bytes);
    check_stream(stream);
    not_in_use(to, "writes memory that queued work uses");
    memcpy(to, from, bytes);
    return 0;
}
int cuMemcpyDtoHAsync_v2(void* to, const void* from, size_t bytes, void* stream) {
    WITH_CONTEXT;
    check(MEMORY, from, bytes);
    check_stream(stream);
    not_in_use(from, "reads memory that queued work uses");
    memcpy(to, from, bytes);
    return 0;
}
int cuMemcpyDtoDAsync_v2(void* to, const void* from, size_t bytes, void* stream) {
    WITH_CONTEXT;
    check(MEMORY, to, bytes);
    check(MEMORY, from, bytes);
    check_stream(stream);
    memcpy(to, from, bytes);
    moved("copy", bytes);
    return 0;
}
/* A module is as large as the parameters of its kernels. */
int cuModuleLoadData(void** module, const void* image) {
    WITH_CONTEXT;
    allowed_in_capture();
    for (struct object* o = live; o && version_of_driver() < 12030; o = o->next)
        if (o->captured && o->capturing == &capture_mode) report("loads a kernel during a capture");
    *module = add(MODULE, (size_t)atoi(strchr(strstr(image, ".param .align 8 .b8 "), '[') + 1));
    return 0;
}
int cuModuleGetFunction(void** function, void* module, const char* name) {
    WITH_CONTEXT;
    snprintf(check(MODULE, module, 0)->kernel, 64, "%s", name);
    *function = module;
    return 0;
}
int cuModuleUnload(void* module) {
    WITH_CONTEXT;
    allowed_in_capture();
    nothing_queued(NULL, module, "unloads a kernel while it is queued");
    drop(MODULE, module);
    return 0;
}
int cuFuncSetAttribute(void* function, int which, int value) {
    WITH_CONTEXT;
    check(MODULE, function, 0);
    return 0;
}
int cuLaunchKernel(void* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, void* stream, void** parameters, void** extra) {
    WITH_CONTEXT;
    struct object* module = check(MODULE, function, 0);
    check_stream(stream);
    if (!gx || !gy || !gz || !bx || !by || !bz || !parameters) report("a launch of nothing");
    struct launch launch = {.module = function};
    memcpy(launch.words, parameters[0], module->size);
    moved(module->kernel, (size_t)gx * gy * gz * bx * by * bz);
    add_launch(is_captured(stream) ? CAPTURED : QUEUED, stream, launch);
    return 0;
}
int cuEventElapsedTime(float* milliseconds, void* start, void* end) {
    CALL;
    check(EVENT, start, 0);
    const char* fast = getenv("DOUBLE_FAST");
    struct object* later = check(EVENT, end, 0);
    *milliseconds = fast && later && strcmp(later->kernel, fast) == 0 ? 0.25f : 0.5f;
    return 0;
}
int cuGetProcAddress_v2(const char* name, void** function, int version, unsigned long flags, int* found) {
    CALL;
    return 1; /* only its presence counts */
}
int cuGetErrorString(int error, const char** text) {
    CALL;
    if (error > 1000) return 1; /* newer than this driver */
    *text = error == 803 ? "system has unsupported display driver / cuda driver combination" : "as the double was told";
    return 0;
}
