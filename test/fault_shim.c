/* SPDX-License-Identifier: MIT */
/* Lets one system or library call fail: LD_PRELOAD=fault_shim.so, and in the environment
 *
 *   FAULT_CALL=NAME    the call, by a name of CALLS below; without it nothing fails
 *   FAULT_AT=N         the N-th such call fails (the first is 1)
 *   FAULT_EVERY=K      and every K-th after it
 *   FAULT_ERROR=NUMBER with this errno; or "short": it does a third of the request; or
 *                      "end": it reads nothing; libdeflate_deflate_compress: any, a bit of the result is flipped
 *   FAULT_SIGNAL=N     instead of failing: the process gets this signal, and the call waits long enough for it
 *   FAULT_FROM=NAME    calls from the library with this in its path count, or from everywhere ("all"); otherwise
 *                      those from the program's own code
 *   FAULT_NAMED=1      there are no unnamed files (O_TMPFILE), as on NFS or FAT
 *   FAULT_REPORT=FILE  at exit: how often each call was made, and "struck N"
 *
 * Counting begins with the program's first call, so the loader's calls never fail.
 * For the GNU C library; with another the tests that need it are skipped. */
#include <stdlib.h>
#ifdef __GLIBC__
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <unistd.h>

#define CALLS(X) \
    X(access) X(aligned_alloc) X(asprintf) X(calloc) X(close) X(dup) X(fallocate) X(fchmod) X(fchown) X(fopen) \
    X(fstat) X(fstatvfs) X(fsync) X(ftruncate) X(libdeflate_deflate_compress) X(linkat) X(madvise) X(malloc) X(mkstemp) X(mmap) X(open) X(openat) \
    X(posix_fadvise) X(pread) X(pthread_create) X(pwrite) X(pwritev) X(read) X(readlink) X(realloc) X(rename) \
    X(renameat) X(send) X(socketpair) X(stat) X(statx) X(strdup) X(strndup) X(unlink) X(write) X(writev)

#define IN_ENUM(name) CALL_##name,
#define IN_TABLE(name) #name,
enum call { CALLS(IN_ENUM) N_CALLS };
static const char *const names[N_CALLS] = {CALLS(IN_TABLE)};

enum { GOES_ON, FAILS, IS_SHORT, IS_END };

/* Read once, before main(); any thread counts. */
static struct {
    int call;                    /* the call to fail; N_CALLS: none */
    unsigned long at, every;
    int error;                   /* 0: short or end */
    int signal;                  /* 0: none */
    bool all, end, named;
    const char *report;
    struct range { uintptr_t from, to; } program, library;   /* code; no library's if all calls, or only ours, fail */
} fault = {.call = N_CALLS};
static atomic_bool started;
static atomic_ulong counts[N_CALLS], struck;

static struct range code_of(const struct dl_phdr_info *info)
{
    struct range code = {0, 0};
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        if (p->p_type == PT_LOAD && p->p_flags & PF_X)
            code = (struct range){info->dlpi_addr + p->p_vaddr, info->dlpi_addr + p->p_vaddr + p->p_memsz};
    }
    return code;
}

static bool is_in(const struct range *code, const void *address)
{
    return (uintptr_t)address >= code->from && (uintptr_t)address < code->to;
}

/* The program is the first object of the list. */
static int find_code(struct dl_phdr_info *info, size_t size, void *library)
{
    (void)size;
    if (fault.program.to == 0)
        fault.program = code_of(info);
    else if (library && strstr(info->dlpi_name, library))
        fault.library = code_of(info);
    return 0;
}

static unsigned long number(const char *name)
{
    const char *text = getenv(name);
    return text ? strtoul(text, NULL, 0) : 0;
}

__attribute__((constructor)) static void configure(void)
{
    const char *call = getenv("FAULT_CALL"), *from = getenv("FAULT_FROM"), *error = getenv("FAULT_ERROR");
    for (int i = 0; i < N_CALLS; i++)
        if (call && strcmp(call, names[i]) == 0)
            fault.call = i;
    fault.at = number("FAULT_AT");
    fault.every = number("FAULT_EVERY");
    fault.error = (int)number("FAULT_ERROR");    /* "short" and "end" are 0 */
    fault.signal = (int)number("FAULT_SIGNAL");
    fault.end = error && strcmp(error, "end") == 0;
    fault.named = getenv("FAULT_NAMED");
    fault.all = from && strcmp(from, "all") == 0;
    fault.report = getenv("FAULT_REPORT");
    dl_iterate_phdr(find_code, (void *)from);
}

__attribute__((destructor)) static void report(void)
{
    fault.call = N_CALLS;
    FILE *file = fault.report ? fopen(fault.report, "w") : NULL;
    if (!file)
        return;
    for (int i = 0; i < N_CALLS; i++)
        fprintf(file, "%s %lu\n", names[i], atomic_load(&counts[i]));
    fprintf(file, "struck %lu\n", atomic_load(&struck));
    fclose(file);
}

/* The fate of this call; sets errno if it fails. */
static int strike(enum call call, const void *caller)
{
    bool ours = is_in(&fault.program, caller), theirs = fault.all || is_in(&fault.library, caller);
    if (ours)
        atomic_store(&started, true);
    if (!(fault.library.to ? theirs : ours || theirs) || !atomic_load(&started))
        return GOES_ON;
    unsigned long n = atomic_fetch_add(&counts[call], 1) + 1;
    if ((int)call != fault.call || n < fault.at || (n > fault.at && (fault.every == 0 || (n - fault.at) % fault.every)))
        return GOES_ON;
    atomic_fetch_add(&struck, 1);
    if (fault.signal) {
        kill(getpid(), fault.signal);
        usleep(200000);
        return GOES_ON;
    }
    errno = fault.error;
    return fault.error ? FAILS : fault.end ? IS_END : IS_SHORT;
}

/* dlsym() itself may allocate memory while malloc() is being looked up. */
static void *memory_for_loader(size_t size)
{
    static _Alignas(16) char pool[1 << 14];
    static size_t used;
    void *place = pool + used;
    used += (size + 15) & ~(size_t)15;
    return used <= sizeof pool ? place : NULL;
}

static _Thread_local bool looking_up __attribute__((tls_model("initial-exec")));   /* else it allocates memory itself */

static void *next_of(const char *symbol)
{
    looking_up = true;
    void *next = dlsym(RTLD_NEXT, symbol);
    looking_up = false;
    return next;
}

#define NEXT(symbol, result, ...) \
    static result (*next)(__VA_ARGS__); \
    if (!next) \
        next = (result (*)(__VA_ARGS__))next_of(#symbol)
#define STRIKE(call) strike(CALL_##call, __builtin_return_address(0))

/* A call that fails or continues. */
#define WRAP(call, symbol, result, failure, params, args) \
    result symbol params \
    { \
        NEXT(symbol, result, WRAP_TYPES params); \
        return STRIKE(call) == FAILS ? failure : next args; \
    }
#define WRAP_TYPES(...) __VA_ARGS__

WRAP(access, access, int, -1, (const char *path, int mode), (path, mode))
WRAP(close, close, int, (next(fd), errno = fault.error, -1), (int fd), (fd))   /* as in Linux: it is closed */
WRAP(dup, dup, int, -1, (int fd), (fd))
WRAP(fallocate, fallocate64, int, -1, (int fd, int mode, off64_t at, off64_t n), (fd, mode, at, n))
WRAP(fchmod, fchmod, int, -1, (int fd, mode_t mode), (fd, mode))
WRAP(fchown, fchown, int, -1, (int fd, uid_t uid, gid_t gid), (fd, uid, gid))
WRAP(fopen, fopen64, FILE *, NULL, (const char *path, const char *mode), (path, mode))
WRAP(fopen, fopen, FILE *, NULL, (const char *path, const char *mode), (path, mode))
WRAP(fstat, fstat64, int, -1, (int fd, struct stat64 *st), (fd, st))
WRAP(fstatvfs, fstatvfs64, int, -1, (int fd, struct statvfs64 *st), (fd, st))
WRAP(fsync, fsync, int, -1, (int fd), (fd))
WRAP(fsync, fdatasync, int, -1, (int fd), (fd))
WRAP(ftruncate, ftruncate64, int, -1, (int fd, off64_t n), (fd, n))
WRAP(ftruncate, ftruncate, int, -1, (int fd, off_t n), (fd, n))
WRAP(linkat, linkat, int, -1, (int a, const char *from, int b, const char *to, int flags), (a, from, b, to, flags))
WRAP(madvise, madvise, int, -1, (void *p, size_t n, int advice), (p, n, advice))
WRAP(mkstemp, mkstemp64, int, -1, (char *name), (name))
WRAP(mkstemp, mkstemp, int, -1, (char *name), (name))
WRAP(mmap, mmap64, void *, MAP_FAILED, (void *p, size_t n, int prot, int flags, int fd, off64_t at),
     (p, n, prot, flags, fd, at))
WRAP(mmap, mmap, void *, MAP_FAILED, (void *p, size_t n, int prot, int flags, int fd, off_t at),
     (p, n, prot, flags, fd, at))
WRAP(posix_fadvise, posix_fadvise64, int, fault.error, (int fd, off64_t at, off64_t n, int advice), (fd, at, n, advice))
WRAP(posix_fadvise, posix_fadvise, int, fault.error, (int fd, off_t at, off_t n, int advice), (fd, at, n, advice))
WRAP(pthread_create, pthread_create, int, fault.error,
     (pthread_t *t, const pthread_attr_t *attr, void *(*run)(void *), void *arg), (t, attr, run, arg))
WRAP(readlink, readlink, ssize_t, -1, (const char *path, char *to, size_t n), (path, to, n))
WRAP(rename, rename, int, -1, (const char *from, const char *to), (from, to))
WRAP(renameat, renameat, int, -1, (int a, const char *from, int b, const char *to), (a, from, b, to))
WRAP(renameat, renameat2, int, -1, (int a, const char *from, int b, const char *to, unsigned flags),
     (a, from, b, to, flags))
WRAP(socketpair, socketpair, int, -1, (int domain, int type, int protocol, int ends[2]), (domain, type, protocol, ends))
WRAP(stat, stat64, int, -1, (const char *path, struct stat64 *st), (path, st))
WRAP(statx, statx, int, -1, (int dir, const char *path, int flags, unsigned mask, struct statx *st),
     (dir, path, flags, mask, st))
WRAP(strdup, strdup, char *, NULL, (const char *text), (text))
WRAP(strndup, strndup, char *, NULL, (const char *text, size_t n), (text, n))
WRAP(unlink, unlink, int, -1, (const char *path), (path))

/* A transfer of n bytes that may also be short. */
#define WRAP_IO(call, symbol, params, args) \
    ssize_t symbol params \
    { \
        NEXT(symbol, ssize_t, WRAP_TYPES params); \
        int what = STRIKE(call); \
        if (what == IS_SHORT) \
            n = n / 3 + (n > 0); \
        return what == FAILS ? -1 : what == IS_END ? 0 : next args; \
    }

WRAP_IO(read, read, (int fd, void *p, size_t n), (fd, p, n))
WRAP_IO(write, write, (int fd, const void *p, size_t n), (fd, p, n))
WRAP_IO(send, send, (int fd, const void *p, size_t n, int flags), (fd, p, n, flags))
WRAP_IO(pread, pread64, (int fd, void *p, size_t n, off64_t at), (fd, p, n, at))
WRAP_IO(pread, pread, (int fd, void *p, size_t n, off_t at), (fd, p, n, at))
WRAP_IO(pwrite, pwrite64, (int fd, const void *p, size_t n, off64_t at), (fd, p, n, at))
WRAP_IO(pwrite, pwrite, (int fd, const void *p, size_t n, off_t at), (fd, p, n, at))

/* Writes several pieces; a short write is a part of the first one. */
#define WRAP_IOV(call, symbol, params, args) \
    ssize_t symbol params \
    { \
        NEXT(symbol, ssize_t, WRAP_TYPES params); \
        int what = STRIKE(call); \
        struct iovec part = {iov->iov_base, iov->iov_len / 3 + (iov->iov_len > 0)}; \
        if (what == IS_SHORT) { \
            iov = &part; \
            n = 1; \
        } \
        return what == FAILS ? -1 : next args; \
    }

WRAP_IOV(writev, writev, (int fd, const struct iovec *iov, int n), (fd, iov, n))
WRAP_IOV(pwritev, pwritev64, (int fd, const struct iovec *iov, int n, off64_t at), (fd, iov, n, at))
WRAP_IOV(pwritev, pwritev, (int fd, const struct iovec *iov, int n, off_t at), (fd, iov, n, at))

#define WRAP_MEMORY(symbol, params, args, size) \
    void *symbol params \
    { \
        if (looking_up) \
            return memory_for_loader(size); \
        NEXT(symbol, void *, WRAP_TYPES params); \
        return STRIKE(symbol) == FAILS ? NULL : next args; \
    }

WRAP_MEMORY(malloc, (size_t n), (n), n)
WRAP_MEMORY(calloc, (size_t n, size_t each), (n, each), n * each)
WRAP_MEMORY(realloc, (void *p, size_t n), (p, n), n)
WRAP_MEMORY(aligned_alloc, (size_t alignment, size_t n), (alignment, n), n)

size_t libdeflate_deflate_compress(void *c, const void *in, size_t n, void *out, size_t room)
{
    NEXT(libdeflate_deflate_compress, size_t, void *, const void *, size_t, void *, size_t);
    size_t size = next(c, in, n, out, room);
    if (STRIKE(libdeflate_deflate_compress) != GOES_ON)
        ((unsigned char *)out)[size / 2] ^= 4;
    return size;
}

int asprintf(char **text, const char *format, ...)
{
    if (STRIKE(asprintf) == FAILS)
        return -1;
    va_list args;
    va_start(args, format);
    int n = vasprintf(text, format, args);
    va_end(args);
    return n;
}

/* open() has a mode only if it makes a file. */
#define WRAP_OPEN(call, symbol, params, args) \
    int symbol params \
    { \
        NEXT(symbol, int, WRAP_TYPES params); \
        va_list rest; \
        va_start(rest, flags); \
        mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0; \
        va_end(rest); \
        if (STRIKE(call) == FAILS) \
            return -1; \
        if (!fault.named || (flags & O_TMPFILE) != O_TMPFILE) \
            return next args; \
        errno = EOPNOTSUPP; \
        return -1; \
    }

WRAP_OPEN(open, open64, (const char *path, int flags, ...), (path, flags, mode))
WRAP_OPEN(open, open, (const char *path, int flags, ...), (path, flags, mode))
WRAP_OPEN(openat, openat64, (int dir, const char *path, int flags, ...), (dir, path, flags, mode))
WRAP_OPEN(openat, openat, (int dir, const char *path, int flags, ...), (dir, path, flags, mode))

#endif
