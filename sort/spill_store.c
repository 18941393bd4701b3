/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include "base/engine.h"
#include "base/latch.h"
#include "base/clocks.h"
#include "base/temp_prefix.h"
#include "sort/spill_store.h"

enum { IN_MEMORY = 0 };          /* number of this volume; files are 1, 2, ... */
enum { BLOCK = 4096 };           /* block of a file: slices do not share blocks, so that a slice's space can be given
                                  * back */

struct volume {
    char *dir;                   /* directory of the file; memory has none */
    char *template;              /* pattern of a short-lived name, where unnamed files are not supported */
    int fd;                      /* set by spill_store_prepare(), before any put */
    atomic_bool full;            /* set by any thread */
    _Atomic uint64_t end;        /* bytes given out; advanced by any thread */
};

struct spill_store {
    const struct engine *engine;
    uint8_t *memory;
    size_t memory_size;
    size_t n_volumes;            /* including IN_MEMORY */
    struct volume *volumes;
    _Atomic uint64_t turn;       /* counts puts on disk, so that files take turns; any thread */
};

static uint64_t round_up(uint64_t n, uint64_t unit)
{
    return (n + unit - 1) / unit * unit;
}

static int set_place(struct volume *v, const char *prefix)
{
    char dir[PATH_MAX];
    v->fd = -1;
    v->dir = strdup(temp_prefix_directory(prefix, dir));
    const char *ending = temp_prefix_ending(prefix);
    return v->dir && asprintf(&v->template, "%s%s.XXXXXX", prefix, ending) >= 0 ? 0 : -1;
}

struct spill_store *spill_store_open(const struct spill_store_options *options)
{
    struct spill_store *s = calloc(1, sizeof *s);
    int failed = !s || !(s->volumes = calloc(options->n_prefixes + 1, sizeof *s->volumes));
    if (s)
        s->engine = options->engine;
    for (size_t i = 0; !failed && i < options->n_prefixes; i++, s->n_volumes = i + 1)
        failed = set_place(&s->volumes[i + 1], options->prefixes[i]) < 0;
    if (!failed)
        return s;
    latch_fail(options->engine->latch, "out of memory");
    spill_store_close(s);
    return NULL;
}

void spill_store_close(struct spill_store *s)
{
    if (!s)
        return;
    for (size_t i = 1; i < s->n_volumes; i++) {
        if (s->volumes[i].fd >= 0)
            close(s->volumes[i].fd);
        free(s->volumes[i].dir);
        free(s->volumes[i].template);
    }
    if (s->memory)
        munmap(s->memory, s->memory_size);
    free(s->volumes);
    free(s);
}

void spill_store_use_memory(struct spill_store *s, size_t size)
{
    void *memory = size == 0 ? MAP_FAILED
                 : mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return;
    s->memory = memory;
    s->memory_size = size;
}

/* Opens a file without a name, or a file whose name is removed before a signal can come. */
static int open_volume_file(const struct volume *v)
{
    int fd = -1;
#ifdef O_TMPFILE
    fd = open(v->dir, O_TMPFILE | O_RDWR | O_CLOEXEC | O_EXCL, 0600);
#endif
    if (fd >= 0)
        return fd;
    char *name = strdup(v->template);
    if (!name)
        return -1;
    latch_hide_signals(true);
    fd = mkstemp(name);                          /* never opens an existing file or a link */
    if (fd >= 0)
        unlink(name);
    latch_hide_signals(false);
    int error = errno;
    free(name);
    errno = error;
    return fd;
}

static uint64_t bytes_free(const struct volume *v)
{
    struct statvfs fs;
    return fstatvfs(v->fd, &fs) == 0 ? (uint64_t)fs.f_bavail * fs.f_frsize : 0;
}

int spill_store_prepare(struct spill_store *s, uint64_t *free_bytes)
{
    uint64_t sum = 0;
    for (size_t i = 1; i < s->n_volumes; i++) {
        struct volume *v = &s->volumes[i];
        if (v->fd < 0 && (v->fd = open_volume_file(v)) < 0)
            return latch_fail(s->engine->latch, "cannot create a temporary file in %s: %s. Choose another directory "
                              "with -T", v->dir, strerror(errno));
        sum += bytes_free(v);
    }
    *free_bytes = sum;
    return 0;
}

static int put_in_memory(struct spill_store *s, const struct spill_bytes both[2], size_t n, struct spill_place *place)
{
    struct volume *v = &s->volumes[IN_MEMORY];
    uint64_t at = atomic_load(&v->end);
    do {
        if (s->memory_size - at < n)
            return 0;
    } while (!atomic_compare_exchange_weak(&v->end, &at, at + n));
    memcpy(s->memory + at, both[0].data, both[0].n);
    if (both[1].n > 0)
        memcpy(s->memory + at + both[0].n, both[1].data, both[1].n);
    *place = (struct spill_place){at, (uint32_t)n, IN_MEMORY, 0, 0};
    return 1;
}

/* Returns the file with the most room among the files that are not full. Files with about equal room take turns. NULL:
 * all files are full. */
static struct volume *choose_volume(struct spill_store *s)
{
    size_t n_files = s->n_volumes - 1, turn = atomic_fetch_add(&s->turn, 1);
    struct volume *best = NULL;
    uint64_t most = 0;
    for (size_t i = 0; i < n_files; i++) {
        struct volume *v = &s->volumes[1 + (turn + i) % n_files];
        if (atomic_load(&v->full))
            continue;
        if (n_files == 1)
            return v;
        uint64_t room = bytes_free(v);
        if (!best || room / 8 * 7 > most) {      /* small differences do not change the turns */
            best = v;
            most = room;
        }
    }
    return best;
}

/* 1: written; 0: no space left there; -1: failed, and the error is recorded in the latch. */
static int write_to_volume(struct spill_store *s, const struct volume *v, struct spill_bytes bytes, uint64_t at)
{
    for (size_t done = 0; done < bytes.n;) {
        ssize_t wrote = pwrite(v->fd, (const uint8_t *)bytes.data + done, bytes.n - done, (off_t)(at + done));
        if (wrote < 0 && errno == EINTR && !latch_tripped(s->engine->latch))
            continue;
        if (wrote < 0 && (errno == ENOSPC || errno == EDQUOT || errno == EFBIG))
            return 0;
        if (wrote <= 0)
            return latch_fail(s->engine->latch, "writing temporary data in %s failed: %s", v->dir, strerror(errno));
        done += (size_t)wrote;
    }
    return 1;
}

/* Returns the same as write_to_volume(). */
static int put_in_file(struct spill_store *s, const struct volume *v, uint64_t at, const struct spill_bytes both[2])
{
    int done = write_to_volume(s, v, both[0], at);
    return done > 0 ? write_to_volume(s, v, both[1], at + both[0].n) : done;
}

static int all_full(struct spill_store *s, size_t n)
{
    const struct volume *last = &s->volumes[s->n_volumes - 1];
    uint64_t used = 0;
    for (size_t i = 1; i < s->n_volumes; i++)
        used += atomic_load(&s->volumes[i].end);
    uint64_t room = bytes_free(last);
    return latch_fail(s->engine->latch, "no space is left for temporary data in %s%s: %zu bytes more are needed now, "
                      "%llu are free%s, %llu are in use by this command. Give another place with -T, or more memory "
                      "with -m",
                      last->dir, s->n_volumes > 2 ? " and the other -T directories" : "", n,
                      (unsigned long long)room, n <= room ? " (a quota or ulimit -f may forbid their use)" : "",
                      (unsigned long long)used);
}

static int put_anywhere(struct spill_store *s, const struct spill_bytes both[2], size_t n, struct spill_place *place)
{
    if (put_in_memory(s, both, n, place))
        return 0;
    for (struct volume *v; (v = choose_volume(s));) {
        uint64_t at = atomic_fetch_add(&v->end, round_up(n, BLOCK));
        int done = put_in_file(s, v, at, both);
        *place = (struct spill_place){at, (uint32_t)n, (uint32_t)(v - s->volumes), 0, 0};
        if (done)
            return done < 0 ? -1 : 0;
        atomic_store(&v->full, true);
    }
    return latch_tripped(s->engine->latch) ? -1 : all_full(s, n);
}

int spill_store_put(struct spill_store *s, const void *data, size_t n, struct spill_place *place)
{
    const struct spill_bytes both[2] = {{data, n}, {NULL, 0}};
    return spill_store_put_both(s, both, place);
}

int spill_store_put_both(struct spill_store *s, const struct spill_bytes both[2], struct spill_place *place)
{
    size_t n = both[0].n + both[1].n;
    enum stage before = clocks_enter(s->engine->clocks, STAGE_SPILL_WRITE);
    int result = put_anywhere(s, both, n, place);
    clocks_leave(s->engine->clocks, before, n);
    return result;
}

static int get(struct spill_store *s, struct spill_place place, void *data)
{
    struct volume *v = &s->volumes[place.volume];
    if (place.volume == IN_MEMORY) {
        memcpy(data, s->memory + place.offset, place.size);
        return 0;
    }
    for (size_t done = 0; done < place.size;) {
        ssize_t got = pread(v->fd, (uint8_t *)data + done, place.size - done, (off_t)(place.offset + done));
        if (got < 0 && errno == EINTR && !latch_tripped(s->engine->latch))
            continue;
        if (got < 0)
            return latch_fail(s->engine->latch, "reading temporary data in %s failed: %s", v->dir, strerror(errno));
        if (got == 0)
            return spill_store_damaged(s, place);
        done += (size_t)got;
    }
    return 0;
}

int spill_store_get(struct spill_store *s, struct spill_place place, void *data)
{
    enum stage before = clocks_enter(s->engine->clocks, STAGE_SPILL_READ);
    int result = get(s, place, data);
    clocks_leave(s->engine->clocks, before, place.size);
    return result;
}

void spill_store_expect(struct spill_store *s, struct spill_place place)
{
#ifdef POSIX_FADV_WILLNEED
    if (place.volume != IN_MEMORY)
        posix_fadvise(s->volumes[place.volume].fd, (off_t)place.offset, (off_t)place.size, POSIX_FADV_WILLNEED);
#else
    (void)s, (void)place;
#endif
}

/* Frees the pages that do not hold bytes of other slices. */
static void free_memory(struct spill_store *s, struct spill_place place)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t first = round_up(place.offset, page), end = (place.offset + place.size) / page * page;
    if (first < end)
        madvise(s->memory + first, end - first, MADV_DONTNEED);
}

void spill_store_free(struct spill_store *s, struct spill_place place)
{
    if (place.volume == IN_MEMORY)
        free_memory(s, place);
#ifdef FALLOC_FL_PUNCH_HOLE
    /* Data that has not been written to the disk yet will then never be written. A failure of this call does no
     * harm. */
    else
        (void)!fallocate(s->volumes[place.volume].fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                         (off_t)place.offset, (off_t)round_up(place.size, BLOCK));
#endif
}

int spill_store_damaged(struct spill_store *s, struct spill_place place)
{
    return latch_fail(s->engine->latch, "temporary data in %s are damaged at offset %llu: the disk or the memory is "
                      "faulty, or another program wrote there. Nothing was written",
                      place.volume == IN_MEMORY ? "memory" : s->volumes[place.volume].dir,
                      (unsigned long long)place.offset);
}

struct clocks *spill_store_clocks(const struct spill_store *s)
{
    return s->engine->clocks;
}
