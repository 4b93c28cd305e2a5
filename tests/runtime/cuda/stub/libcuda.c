/* The functions of NVIDIA's driver that the runtime calls, for a device that is this process.

   They check what they are given as the driver documents it, so that a test sees whether the runtime calls them right.
   One kernel is known: `double_it(const float *x, float *out, int64_t n)`. */

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int status;
typedef uint64_t pointer;

enum { OK = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, INVALID_CONTEXT = 201, INVALID_PTX = 218, INVALID_HANDLE = 400,
       NOT_FOUND = 500 };
enum { MAX_BLOCKS = 256 };
enum { LOG_BUFFER = 5, LOG_SIZE = 6 };

struct event { int magic, is_timed, is_recorded; };
struct stream { int magic; };
struct function { int magic, allowed; };
struct module { int magic; struct function function; };

static const int EVENT = 2, STREAM = 3, FUNCTION = 4, MODULE = 5;
static int the_context;
static __thread int depth;
static struct { pointer address; size_t size; void *memory; } blocks[MAX_BLOCKS];

#define NEEDS_CONTEXT do { if (!depth) return INVALID_CONTEXT; } while (0)
#define IS(thing, kind) ((thing) && (thing)->magic == kind)
#define EXPORT __attribute__((visibility("default")))

EXPORT status cuGetProcAddress_v2(const char *name, void **found, int version, uint64_t flags, int *why) {
    (void)version, (void)flags;
    *found = dlsym(RTLD_DEFAULT, name);
    if (!*found) { void *self = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD); *found = self ? dlsym(self, name) : 0; }
    if (why) *why = *found ? 0 : 1;
    return *found ? OK : NOT_FOUND;
}

EXPORT status cuGetProcAddress(const char *name, void **found, int version, uint64_t flags, int *why) {
    return cuGetProcAddress_v2(name, found, version, flags, why);
}

EXPORT status cuInit(unsigned flags) { return getenv("STUB_NO_DEVICE") && *getenv("STUB_NO_DEVICE") ? 100 : flags ? INVALID_VALUE : OK; }
EXPORT status cuDriverGetVersion(int *version) { *version = 13000; return OK; }
EXPORT status cuDeviceGetCount(int *count) { *count = 1; return OK; }
EXPORT status cuDeviceGet(int *device, int ordinal) { *device = ordinal; return ordinal ? INVALID_VALUE : OK; }

EXPORT status cuDeviceGetName(char *name, int length, int device) {
    snprintf(name, length, "stub %d", device);
    return OK;
}

EXPORT status cuDeviceGetAttribute(int *value, int attribute, int device) {
    static const struct { int attribute, value; } known[] = {
        {1, 1024}, {2, 1024}, {3, 1024}, {4, 64}, {5, 2147483647}, {6, 65535}, {7, 65535}, {75, 9}, {76, 0},
        {97, 232448}, {16, 132}, {13, 1980000}, {36, 2619000}, {37, 5120}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].attribute == attribute) return *value = known[i].value, device;
    return INVALID_VALUE;
}

EXPORT status cuDevicePrimaryCtxRetain(int **context, int device) { *context = &the_context; return device; }
EXPORT status cuCtxPushCurrent(int *context) { return context == &the_context ? depth++, OK : INVALID_CONTEXT; }
EXPORT status cuCtxPopCurrent(int **context) { *context = &the_context; return depth ? depth--, OK : INVALID_CONTEXT; }
EXPORT status cuCtxSynchronize(void) { NEEDS_CONTEXT; return OK; }

static int holder(pointer address, size_t size) {
    for (int i = 0; i < MAX_BLOCKS; i++)
        if (blocks[i].memory && address >= blocks[i].address && address + size <= blocks[i].address + blocks[i].size)
            return i;
    return -1;
}

EXPORT status cuMemAlloc(pointer *address, size_t size) {
    NEEDS_CONTEXT;
    if (!size) return INVALID_VALUE;
    if (size > (size_t)1 << 30) return OUT_OF_MEMORY;
    for (int i = 0; i < MAX_BLOCKS; i++)
        if (!blocks[i].memory) {
            blocks[i].memory = aligned_alloc(256, (size + 255) / 256 * 256);
            blocks[i].size = size;
            *address = blocks[i].address = (pointer)blocks[i].memory;
            return OK;
        }
    return OUT_OF_MEMORY;
}

EXPORT status cuMemFree(pointer address) {
    NEEDS_CONTEXT;
    int at = holder(address, 1);
    if (at < 0 || blocks[at].address != address) return INVALID_VALUE;
    free(blocks[at].memory);
    blocks[at].memory = 0;
    return OK;
}

EXPORT status cuPointerGetAttribute(void *value, int attribute, pointer address) {
    NEEDS_CONTEXT;
    if (attribute != 9 || holder(address, 1) < 0) return INVALID_VALUE;
    return *(int *)value = 0, OK;
}

EXPORT status cuMemcpyHtoDAsync(pointer to, const void *from, size_t size, struct stream *stream) {
    NEEDS_CONTEXT;
    if (!IS(stream, STREAM) || holder(to, size) < 0) return INVALID_VALUE;
    return memcpy((void *)to, from, size), OK;
}

EXPORT status cuMemcpyDtoHAsync(void *to, pointer from, size_t size, struct stream *stream) {
    NEEDS_CONTEXT;
    if (!IS(stream, STREAM) || holder(from, size) < 0) return INVALID_VALUE;
    return memcpy(to, (void *)from, size), OK;
}

EXPORT status cuMemcpyDtoDAsync(pointer to, pointer from, size_t size, struct stream *stream) {
    NEEDS_CONTEXT;
    if (!IS(stream, STREAM) || holder(from, size) < 0 || holder(to, size) < 0) return INVALID_VALUE;
    return memcpy((void *)to, (void *)from, size), OK;
}

EXPORT status cuModuleLoadDataEx(struct module **module, const void *image, unsigned count, int *options, void **values) {
    NEEDS_CONTEXT;
    if (!strncmp(image, "\177ELF", 4) || strstr(image, ".entry double_it")) {
        *module = calloc(1, sizeof **module);
        (*module)->magic = MODULE, (*module)->function.magic = FUNCTION;
        return OK;
    }
    char *log = 0;
    size_t room = 0;
    for (unsigned i = 0; i < count; i++) {
        if (options[i] == LOG_BUFFER) log = values[i];
        if (options[i] == LOG_SIZE) room = (size_t)values[i];
    }
    if (log) snprintf(log, room, "ptxas fatal: no kernel in %zu characters of PTX", strlen(image));
    return INVALID_PTX;
}

EXPORT status cuModuleUnload(struct module *module) {
    NEEDS_CONTEXT;
    if (!IS(module, MODULE)) return INVALID_HANDLE;
    return module->magic = 0, OK;
}

EXPORT status cuModuleGetFunction(struct function **function, struct module *module, const char *name) {
    NEEDS_CONTEXT;
    if (!IS(module, MODULE)) return INVALID_HANDLE;
    if (strcmp(name, "double_it")) return NOT_FOUND;
    return *function = &module->function, OK;
}

EXPORT status cuFuncGetAttribute(int *value, int attribute, struct function *function) {
    if (!IS(function, FUNCTION)) return INVALID_HANDLE;
    *value = attribute == 0 ? 512 : attribute == 1 ? 1024 : attribute == 8 ? function->allowed : -1;
    return *value < 0 ? INVALID_VALUE : OK;
}

EXPORT status cuFuncSetAttribute(struct function *function, int attribute, int value) {
    if (!IS(function, FUNCTION)) return INVALID_HANDLE;
    if (attribute != 8 || value > 232448 - 1024) return INVALID_VALUE;
    return function->allowed = value, OK;
}

EXPORT status cuLaunchKernel(struct function *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                             unsigned bz, unsigned shared, struct stream *stream, void **arguments, void **extra) {
    NEEDS_CONTEXT;
    if (!IS(function, FUNCTION) || !IS(stream, STREAM)) return INVALID_HANDLE;
    if (extra || gy != 1 || gz != 1 || by != 1 || bz != 1 || bx > 512) return INVALID_VALUE;
    if (shared + 1024 > 49152 && (int)shared > function->allowed) return INVALID_VALUE;
    const float *x = (const float *)*(pointer *)arguments[0];
    float *out = (float *)*(pointer *)arguments[1];
    int64_t n = *(int64_t *)arguments[2];
    for (int64_t i = 0; i < (int64_t)gx * bx && i < n; i++) out[i] = 2 * x[i];
    return OK;
}

EXPORT status cuStreamCreate(struct stream **stream, unsigned flags) {
    NEEDS_CONTEXT;
    if (flags != 1) return INVALID_VALUE;
    *stream = calloc(1, sizeof **stream);
    return (*stream)->magic = STREAM, OK;
}

EXPORT status cuStreamDestroy(struct stream *stream) {
    NEEDS_CONTEXT;
    if (!IS(stream, STREAM)) return INVALID_HANDLE;
    return stream->magic = 0, OK;
}

EXPORT status cuStreamSynchronize(struct stream *stream) { NEEDS_CONTEXT; return IS(stream, STREAM) ? OK : INVALID_HANDLE; }

EXPORT status cuEventCreate(struct event **event, unsigned flags) {
    NEEDS_CONTEXT;
    if (flags != 0 && flags != 2) return INVALID_VALUE;
    *event = calloc(1, sizeof **event);
    return (*event)->magic = EVENT, (*event)->is_timed = !flags, OK;
}

EXPORT status cuEventRecord(struct event *event, struct stream *stream) {
    NEEDS_CONTEXT;
    if (!IS(event, EVENT) || !IS(stream, STREAM)) return INVALID_HANDLE;
    return event->is_recorded = 1, OK;
}

EXPORT status cuStreamWaitEvent(struct stream *stream, struct event *event, unsigned flags) {
    NEEDS_CONTEXT;
    return flags || !IS(event, EVENT) || !IS(stream, STREAM) ? INVALID_HANDLE : OK;
}

EXPORT status cuEventSynchronize(struct event *event) { NEEDS_CONTEXT; return IS(event, EVENT) ? OK : INVALID_HANDLE; }

EXPORT status cuEventElapsedTime(float *milliseconds, struct event *first, struct event *last) {
    if (!IS(first, EVENT) || !IS(last, EVENT) || !first->is_timed || !last->is_recorded) return INVALID_HANDLE;
    return *milliseconds = 0.5f, OK;
}

EXPORT status cuGetErrorName(status error, const char **name) {
    static const struct { status error; const char *name; } known[] = {
        {INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE"}, {OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY"},
        {100, "CUDA_ERROR_NO_DEVICE"}, {INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT"},
        {INVALID_PTX, "CUDA_ERROR_INVALID_PTX"}, {INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE"}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].error == error) return *name = known[i].name, OK;
    return INVALID_VALUE;
}

EXPORT status cuGetErrorString(status error, const char **text) {
    (void)error;
    return *text = "said by the stub", OK;
}
