/* A test double of the CUDA driver: a library with the entry points that this crate calls. Its memory is the host's, and its kernels do
   nothing. It tracks what is live, and writes a line to the file DOUBLE_REPORT for every mistake: unknown or destroyed handles, a call
   without a current context, memory that is freed, read or written or kernels that are unloaded while queued work uses them, and, at the
   end, everything that was not released. DOUBLE_FAIL="cuMemAlloc_v2 3 2" makes the third call of that function return 2. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CONTEXT, STREAM, EVENT, MEMORY, MODULE, GRAPH, EXECUTABLE, KINDS };
/* Words of the buffer in which the crate passes a launch's parameters (MAX_WORDS of src/cuda/launch.rs). Unused words are zeros. */
enum { WORDS = 80 };
static const char *const NAMES[KINDS] = {"context", "stream", "event", "memory", "module", "graph", "executable graph"};

struct object {
    int kind;
    char *at;
    size_t size;
    struct object *next;
};
struct queued {
    void *stream, *module;
    const char *words[WORDS]; /* its parameters, which include the addresses of the memory that it uses */
    struct queued *next;
};
struct count {
    const char *name;
    int calls;
    struct count *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct object *live;
static struct queued *queue;
static struct capture {
    void *stream;
    struct queued *work;
    struct capture *next;
} *captures;
static struct count *counts;
static _Thread_local void *current;

static void report(const char *what, const char *function) {
    const char *path = getenv("DOUBLE_REPORT");
    FILE *file = path ? fopen(path, "a") : NULL;
    if (!file) return;
    fprintf(file, "%s: %s\n", function, what);
    fclose(file);
}

/* Counts a call. Returns the code that it must fail with, or 0. */
static int called(const char *name) {
    static char failing[64];
    static int nth = -1, code;
    int answer = 0;
    struct count *c;
    pthread_mutex_lock(&lock);
    if (nth < 0) {
        const char *fail = getenv("DOUBLE_FAIL");
        if (!fail || sscanf(fail, "%63s %d %d", failing, &nth, &code) != 3) nth = 0;
    }
    for (c = counts; c && strcmp(c->name, name) != 0; c = c->next) {}
    if (!c) {
        c = calloc(1, sizeof *c);
        c->name = name;
        c->next = counts;
        counts = c;
    }
    ++c->calls;
    if (c->calls == nth && strcmp(name, failing) == 0) {
        report("failed as told", name);
        answer = code;
    }
    pthread_mutex_unlock(&lock);
    return answer;
}

static void *add(int kind, size_t size) {
    struct object *made = malloc(sizeof *made);
    made->kind = kind;
    made->size = size;
    made->at = aligned_alloc(256, (size + 256) & ~(size_t)255);
    pthread_mutex_lock(&lock);
    made->next = live;
    live = made;
    pthread_mutex_unlock(&lock);
    return made->at;
}

/* The list entry of the live object that contains the address. Call it under the lock. */
static struct object **find(int kind, const void *at) {
    struct object **o = &live;
    while (*o && !((*o)->kind == kind && (const char *)at >= (*o)->at && (const char *)at <= (*o)->at + (*o)->size)) o = &(*o)->next;
    return o;
}

static void check(int kind, const void *at, size_t size, const char *function) {
    struct object *o;
    pthread_mutex_lock(&lock);
    o = *find(kind, at);
    if (!o) report("an unknown or destroyed handle", function);
    else if (kind == MEMORY && (const char *)at + size > o->at + o->size) report("memory past its end", function);
    pthread_mutex_unlock(&lock);
}

static void drop(int kind, void *at, const char *function) {
    struct object **place, *o;
    pthread_mutex_lock(&lock);
    place = find(kind, at);
    o = *place;
    if (o && o->at == at) {
        *place = o->next;
        free(o->at);
        free(o);
    } else {
        report("destroys an object that is not live", function);
    }
    pthread_mutex_unlock(&lock);
}

static void needs_context(const char *function) {
    if (!current) report("no context is current", function);
    else check(CONTEXT, current, 0, function);
}

/* Stream handles 0 to 2 are the default streams. */
static void check_stream(void *stream, const char *function) {
    if ((size_t)stream > 2) check(STREAM, stream, 0, function);
}

static void done(void *stream) {
    struct queued **q = &queue;
    pthread_mutex_lock(&lock);
    while (*q) {
        struct queued *this = *q;
        if (stream && this->stream != stream) q = &this->next;
        else *q = this->next, free(this);
    }
    pthread_mutex_unlock(&lock);
}

static void nothing_queued(void *stream, void *module, const char *what, const char *function) {
    struct queued *q;
    pthread_mutex_lock(&lock);
    for (q = queue; q; q = q->next)
        if ((!stream || q->stream == stream) && (!module || q->module == module)) report(what, function);
    pthread_mutex_unlock(&lock);
}

/* The list entry of a stream's capture. Call it under the lock. */
static struct capture **capture_of(void *stream) {
    struct capture **c = &captures;
    while (*c && (*c)->stream != stream) c = &(*c)->next;
    return c;
}

static void not_captured(void *stream, const char *function) {
    pthread_mutex_lock(&lock);
    if (*capture_of(stream)) report("on a stream that is being captured", function);
    pthread_mutex_unlock(&lock);
}

/* Queues work, or adds it to the capture of its stream. */
static void enqueue(struct queued *work) {
    struct capture *capture;
    struct queued **to;
    pthread_mutex_lock(&lock);
    capture = *capture_of(work->stream);
    to = capture ? &capture->work : &queue;
    work->next = *to;
    *to = work;
    pthread_mutex_unlock(&lock);
}

/* Adds copies of work to the front of a list, for a stream. */
static void copy_work(struct queued **to, const struct queued *work, void *stream) {
    for (; work; work = work->next) {
        struct queued *made = malloc(sizeof *made);
        *made = *work;
        made->stream = stream;
        made->next = *to;
        *to = made;
    }
}

static void free_work(struct queued *work) {
    while (work) {
        struct queued *next = work->next;
        free(work);
        work = next;
    }
}

/* A graph, or an executable one. Its memory contains its work. */
static void *add_graph(int kind, const struct queued *work) {
    struct queued **graph = add(kind, sizeof *graph);
    *graph = NULL;
    copy_work(graph, work, NULL);
    return graph;
}

static void drop_graph(int kind, void *graph, const char *function) {
    pthread_mutex_lock(&lock);
    struct queued *work = *find(kind, graph) ? *(struct queued **)graph : NULL;
    pthread_mutex_unlock(&lock);
    free_work(work);
    drop(kind, graph, function);
}

/* Reports queued work that uses the memory that contains an address. */
static void not_in_use(const void *at, const char *what, const char *function) {
    struct queued *q;
    struct object *o;
    int w;
    pthread_mutex_lock(&lock);
    o = *find(MEMORY, at);
    for (q = o ? queue : NULL; q; q = q->next) {
        for (w = 0; w < WORDS && !(q->words[w] >= o->at && q->words[w] < o->at + o->size); ++w) {}
        if (w < WORDS) report(what, function);
    }
    pthread_mutex_unlock(&lock);
}

__attribute__((destructor)) static void end(void) {
    struct object *o;
    for (o = live; o; o = o->next) {
        char what[64];
        snprintf(what, sizeof what, "not given back: %s", NAMES[o->kind]);
        report(what, "end");
    }
}

#define CALL(name) do { int failed = called(name); if (failed) return failed; } while (0)
#define WITH_CONTEXT(name) do { needs_context(name); CALL(name); } while (0)

int cuInit(unsigned flags) { (void)flags; CALL("cuInit"); return getenv("FAKE_CU_INIT") ? atoi(getenv("FAKE_CU_INIT")) : 0; }
int cuDriverGetVersion(int *version) { CALL("cuDriverGetVersion"); *version = 12000; return 0; }
int cuDeviceGetCount(int *count) { CALL("cuDeviceGetCount"); *count = getenv("FAKE_GPUS") ? atoi(getenv("FAKE_GPUS")) : 1; return 0; }
int cuDeviceGet(int *device, int ordinal) { CALL("cuDeviceGet"); *device = ordinal; return 0; }
int cuDeviceGetName(char *name, int length, int device) { (void)device; CALL("cuDeviceGetName"); snprintf(name, (size_t)length, "Fake GPU"); return 0; }
int cuDeviceTotalMem_v2(size_t *bytes, int device) { (void)device; CALL("cuDeviceTotalMem_v2"); *bytes = 1 << 30; return 0; }
int cuDeviceGetAttribute(int *value, int which, int device) {
    CALL("cuDeviceGetAttribute");
    /* compute capability 8.1, shared memory of a block, the PCI bus */
    *value = which == 75 ? 8 : which == 97 ? 166912 : which == 33 ? 0x1a + device : 1;
    return 0;
}
static void *primary;
static int retained;
int cuDevicePrimaryCtxRetain(void **context, int device) {
    (void)device;
    CALL("cuDevicePrimaryCtxRetain");
    if (retained++ == 0) primary = add(CONTEXT, 1);
    *context = primary;
    return 0;
}
int cuDevicePrimaryCtxRelease_v2(int device) {
    (void)device;
    CALL("cuDevicePrimaryCtxRelease_v2");
    if (retained == 0) report("releases a context that is not retained", "cuDevicePrimaryCtxRelease_v2");
    else if (--retained == 0) drop(CONTEXT, primary, "cuDevicePrimaryCtxRelease_v2");
    return 0;
}
int cuCtxGetCurrent(void **context) { CALL("cuCtxGetCurrent"); *context = current; return 0; }
int cuCtxSetCurrent(void *context) {
    if (context) check(CONTEXT, context, 0, "cuCtxSetCurrent");
    CALL("cuCtxSetCurrent");
    current = context;
    return 0;
}
int cuCtxGetDevice(int *device) { CALL("cuCtxGetDevice"); *device = 0; return current ? 0 : 201; }
static _Thread_local int capture_mode;
int cuThreadExchangeStreamCaptureMode(int *mode) {
    int before = capture_mode;
    CALL("cuThreadExchangeStreamCaptureMode");
    capture_mode = *mode;
    *mode = before;
    return 0;
}
/* During a capture only a thread in the relaxed mode may create a stream or load a module. */
static void allowed_in_capture(const char *function) {
    pthread_mutex_lock(&lock);
    if (captures && capture_mode != 2) report("a call that a capture forbids", function);
    pthread_mutex_unlock(&lock);
}
int cuStreamCreate(void **stream, unsigned flags) { (void)flags; allowed_in_capture("cuStreamCreate"); WITH_CONTEXT("cuStreamCreate"); *stream = add(STREAM, 1); return 0; }
int cuStreamSynchronize(void *stream) {
    check_stream(stream, "cuStreamSynchronize");
    not_captured(stream, "cuStreamSynchronize");
    WITH_CONTEXT("cuStreamSynchronize");
    done(stream);
    return 0;
}
int cuStreamDestroy_v2(void *stream) {
    nothing_queued(stream, NULL, "destroys a stream with queued work", "cuStreamDestroy_v2");
    not_captured(stream, "cuStreamDestroy_v2");
    WITH_CONTEXT("cuStreamDestroy_v2");
    drop(STREAM, stream, "cuStreamDestroy_v2");
    return 0;
}
int cuStreamBeginCapture_v2(void *stream, int mode) {
    struct capture *made;
    (void)mode;
    check(STREAM, stream, 0, "cuStreamBeginCapture_v2");
    not_captured(stream, "cuStreamBeginCapture_v2");
    WITH_CONTEXT("cuStreamBeginCapture_v2");
    made = calloc(1, sizeof *made);
    made->stream = stream;
    pthread_mutex_lock(&lock);
    made->next = captures;
    captures = made;
    pthread_mutex_unlock(&lock);
    return 0;
}
int cuStreamEndCapture(void *stream, void **graph) {
    struct capture **place, *ended;
    int failed;
    needs_context("cuStreamEndCapture");
    pthread_mutex_lock(&lock);
    place = capture_of(stream);
    ended = *place;
    if (ended) *place = ended->next;
    else report("ends a capture that was not begun", "cuStreamEndCapture");
    pthread_mutex_unlock(&lock);
    failed = called("cuStreamEndCapture");
    *graph = ended && !failed ? add_graph(GRAPH, ended->work) : NULL;
    if (ended) free_work(ended->work);
    free(ended);
    return failed;
}
int cuGraphInstantiateWithFlags(void **executable, void *graph, unsigned long long flags) {
    (void)flags;
    check(GRAPH, graph, 0, "cuGraphInstantiateWithFlags");
    WITH_CONTEXT("cuGraphInstantiateWithFlags");
    *executable = add_graph(EXECUTABLE, *(struct queued **)graph);
    return 0;
}
int cuGraphDestroy(void *graph) { CALL("cuGraphDestroy"); drop_graph(GRAPH, graph, "cuGraphDestroy"); return 0; }
int cuGraphExecDestroy(void *executable) {
    CALL("cuGraphExecDestroy");
    drop_graph(EXECUTABLE, executable, "cuGraphExecDestroy");
    return 0;
}
int cuGraphLaunch(void *executable, void *stream) {
    const struct queued *work;
    check(EXECUTABLE, executable, 0, "cuGraphLaunch");
    check_stream(stream, "cuGraphLaunch");
    not_captured(stream, "cuGraphLaunch");
    WITH_CONTEXT("cuGraphLaunch");
    for (work = *(struct queued **)executable; work; work = work->next)
        if (work->module) check(MODULE, work->module, 0, "cuGraphLaunch");
    pthread_mutex_lock(&lock);
    copy_work(&queue, *(struct queued **)executable, stream);
    pthread_mutex_unlock(&lock);
    return 0;
}
int cuEventCreate(void **event, unsigned flags) { (void)flags; WITH_CONTEXT("cuEventCreate"); *event = add(EVENT, 1); return 0; }
int cuEventRecord(void *event, void *stream) {
    check(EVENT, event, 0, "cuEventRecord");
    check_stream(stream, "cuEventRecord");
    not_captured(stream, "cuEventRecord");
    WITH_CONTEXT("cuEventRecord");
    return 0;
}
int cuEventRecordWithFlags(void *event, void *stream, unsigned flags) {
    check(EVENT, event, 0, "cuEventRecordWithFlags");
    check(STREAM, stream, 0, "cuEventRecordWithFlags");
    if (flags != 1) report("an event that is not external", "cuEventRecordWithFlags");
    WITH_CONTEXT("cuEventRecordWithFlags");
    return 0;
}
int cuEventSynchronize(void *event) { check(EVENT, event, 0, "cuEventSynchronize"); CALL("cuEventSynchronize"); return 0; }
int cuEventDestroy_v2(void *event) { WITH_CONTEXT("cuEventDestroy_v2"); drop(EVENT, event, "cuEventDestroy_v2"); return 0; }
int cuMemGetInfo_v2(size_t *available, size_t *total) { WITH_CONTEXT("cuMemGetInfo_v2"); *available = *total = 1 << 30; return 0; }
int cuMemAlloc_v2(void **address, size_t bytes) { WITH_CONTEXT("cuMemAlloc_v2"); *address = add(MEMORY, bytes); return 0; }
int cuMemFree_v2(void *address) {
    not_in_use(address, "frees memory that queued work uses", "cuMemFree_v2");
    WITH_CONTEXT("cuMemFree_v2");
    drop(MEMORY, address, "cuMemFree_v2");
    return 0;
}
int cuMemsetD8Async(void *to, unsigned char value, size_t bytes, void *stream) {
    check(MEMORY, to, bytes, "cuMemsetD8Async");
    check_stream(stream, "cuMemsetD8Async");
    WITH_CONTEXT("cuMemsetD8Async");
    memset(to, value, bytes);
    return 0;
}
int cuMemcpyHtoDAsync_v2(void *to, const void *from, size_t bytes, void *stream) {
    check(MEMORY, to, bytes, "cuMemcpyHtoDAsync_v2");
    check_stream(stream, "cuMemcpyHtoDAsync_v2");
    not_in_use(to, "writes memory that queued work uses", "cuMemcpyHtoDAsync_v2");
    WITH_CONTEXT("cuMemcpyHtoDAsync_v2");
    memcpy(to, from, bytes);
    return 0;
}
int cuMemcpyDtoHAsync_v2(void *to, const void *from, size_t bytes, void *stream) {
    check(MEMORY, from, bytes, "cuMemcpyDtoHAsync_v2");
    check_stream(stream, "cuMemcpyDtoHAsync_v2");
    not_in_use(from, "reads memory that queued work uses", "cuMemcpyDtoHAsync_v2");
    WITH_CONTEXT("cuMemcpyDtoHAsync_v2");
    memcpy(to, from, bytes);
    return 0;
}
int cuMemcpyDtoDAsync_v2(void *to, const void *from, size_t bytes, void *stream) {
    check(MEMORY, to, bytes, "cuMemcpyDtoDAsync_v2");
    check(MEMORY, from, bytes, "cuMemcpyDtoDAsync_v2");
    check_stream(stream, "cuMemcpyDtoDAsync_v2");
    WITH_CONTEXT("cuMemcpyDtoDAsync_v2");
    memcpy(to, from, bytes);
    return 0;
}
int cuModuleLoadData(void **module, const void *image) { (void)image; allowed_in_capture("cuModuleLoadData"); WITH_CONTEXT("cuModuleLoadData"); *module = add(MODULE, 1); return 0; }
int cuModuleGetFunction(void **function, void *module, const char *name) {
    (void)name;
    check(MODULE, module, 0, "cuModuleGetFunction");
    WITH_CONTEXT("cuModuleGetFunction");
    *function = module;
    return 0;
}
int cuModuleUnload(void *module) {
    nothing_queued(NULL, module, "unloads a kernel while it is queued", "cuModuleUnload");
    WITH_CONTEXT("cuModuleUnload");
    drop(MODULE, module, "cuModuleUnload");
    return 0;
}
int cuFuncSetAttribute(void *function, int which, int value) {
    (void)which, (void)value;
    check(MODULE, function, 0, "cuFuncSetAttribute");
    WITH_CONTEXT("cuFuncSetAttribute");
    return 0;
}
int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, void *stream,
                   void **parameters, void **extra) {
    struct queued *made;
    (void)shared, (void)extra;
    check(MODULE, function, 0, "cuLaunchKernel");
    check_stream(stream, "cuLaunchKernel");
    if (!gx || !gy || !gz || !bx || !by || !bz || !parameters) report("a launch of nothing", "cuLaunchKernel");
    WITH_CONTEXT("cuLaunchKernel");
    made = malloc(sizeof *made);
    made->stream = stream;
    made->module = function;
    memcpy(made->words, parameters[0], sizeof made->words);
    enqueue(made);
    return 0;
}
static int elapsed(float *milliseconds, void *start, void *end) {
    check(EVENT, start, 0, "cuEventElapsedTime");
    check(EVENT, end, 0, "cuEventElapsedTime");
    CALL("cuEventElapsedTime");
    *milliseconds = 1;
    return 0;
}
int cuGetProcAddress_v2(const char *name, void **function, int version, unsigned long flags, int *found) {
    (void)name, (void)version, (void)flags;
    CALL("cuGetProcAddress_v2");
    *function = (void *)elapsed;
    *found = 0;
    return 0;
}
int cuGetErrorString(int error, const char **text) {
    CALL("cuGetErrorString");
    if (error > 1000) return 1; /* newer than this driver */
    *text = error == 803 ? "system has unsupported display driver / cuda driver combination" : "as the double was told";
    return 0;
}
