/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <htslib/hfile.h>
#include <htslib/hts_log.h>
#include <htslib/thread_pool.h>
#include "base/affinity.h"
#include "hts/hts_file.h"
#include "base/latch.h"
#include "base/input_name.h"
#include "base/machine.h"
#include "base/message.h"

static int start_threads(htsThreadPool *threads, htsFile *file, int wanted)
{
    enum { BESIDE = 1 };         /* the thread that reads or writes the BGZF blocks */
    int n = wanted > 1 ? machine_threads(wanted + BESIDE) - BESIDE : 1;
    if (n <= 1)
        return 0;
    threads->pool = hts_tpool_init(n);
    return threads->pool && hts_set_thread_pool(file, threads) == 0 ? 0 : -1;
}

/* Applies the options one by one. An option that starts threads is left out if the file must have none, or gets a pool
 * of ours: with both, htslib may lose the header. */
static int apply_options(htsFile *file, const struct hts_file_options *o)
{
    for (const hts_opt *each = o->format_options; each; each = each->next) {
        hts_opt one = *each;
        one.next = NULL;
        bool starts = one.opt == HTS_OPT_NTHREADS || one.opt == CRAM_OPT_NTHREADS;
        bool left_out = starts && (o->no_threads || o->n_threads > 1);
        if (!left_out && hts_opt_apply(file, &one) < 0)
            return latch_fail(o->latch, o->writing
                              ? "%s: the output format does not have an option that -O or --output-fmt-option names"
                              : "%s: the format of this input does not have the option that --input-fmt-option names",
                              o->path);
    }
    return 0;
}

static int set_up(htsFile *file, htsThreadPool *threads, const struct hts_file_options *o)
{
    if (apply_options(file, o) < 0)
        return -1;
    if (o->reference && hts_set_fai_filename(file, o->reference) < 0)
        return latch_fail(o->latch, "cannot use %s as reference: %s", o->reference, strerror(errno));
    if (start_threads(threads, file, o->n_threads) < 0)
        return latch_fail(o->latch, "%s: out of memory for threads", o->path);
    return 0;
}

const hts_opt *hts_file_option(const hts_opt *options, enum hts_fmt_option kind)
{
    const hts_opt *found = NULL;
    for (; options; options = options->next)
        if (options->opt == kind)
            found = options;
    return found;
}

int hts_file_number(const hts_opt *options, enum hts_fmt_option kind, int none)
{
    const hts_opt *found = hts_file_option(options, kind);
    return found ? found->val.i : none;
}

const char *hts_file_fasta(const char *reference, const hts_opt *options)
{
    while (options && options->opt != CRAM_OPT_REFERENCE)
        options = options->next;
    return options ? options->val.s : reference;
}

/* An option of the user may start threads, too. All threads inherit the mask of the caller, so the mask is widened. */
int hts_file_set_up(htsFile *file, htsThreadPool *threads, const struct hts_file_options *options)
{
    struct affinity bound;
    affinity_widen(&bound);
    int status = set_up(file, threads, options);
    affinity_narrow(&bound);
    return status;
}

void hts_file_end_threads(htsThreadPool *threads)
{
    if (threads->pool)
        hts_tpool_destroy(threads->pool);
}

/* One write() writes at most 2 GiB. */
static int write_all(int fd, const uint8_t *bytes, size_t n)
{
    while (n > 0) {
        ssize_t done = write(fd, bytes, n);
        if (done <= 0)
            return -1;
        bytes += done;
        n -= (size_t)done;
    }
    return 0;
}

/* Makes an unnamed file in memory with these bytes. -1: the system has no such files, or a limit on file sizes is
 * reached. */
static int memory_file(const void *bytes, size_t n, const char *following)
{
#ifdef MFD_CLOEXEC
    int fd = memfd_create("header", MFD_CLOEXEC);
    if (fd >= 0 && write_all(fd, bytes, n) == 0 && write_all(fd, (const uint8_t *)following, strlen(following)) == 0
        && lseek(fd, 0, SEEK_SET) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
#else
    (void)bytes, (void)n, (void)following;
#endif
    return -1;
}

/* If hopen() fails, it may or may not have freed the copy. So it is not freed here. Callers do not try again after a
 * failure, so such leaks do not add up. */
static hFILE *open_copy(const void *bytes, size_t n, const char *following)
{
    size_t more = strlen(following);
    char *copy = malloc(n + more);
    if (!copy)
        return NULL;
    if (n)
        memcpy(copy, bytes, n);
    memcpy(copy + n, following, more);
    return hopen("mem:", "r:", copy, n + more);   /* NOLINT(clang-analyzer-unix.Malloc) */
}

/* Avoids hopen() where possible: it loads all plugins of htslib and their libraries, 40 with Debian's build. That takes
 * 7 ms, longer than everything else before the first block is inflated. */
hFILE *hts_file_of_bytes(const void *bytes, size_t n, const char *following)
{
    int fd = memory_file(bytes, n, following);
    hFILE *file = fd < 0 ? open_copy(bytes, n, following) : hdopen(fd, "r");
    if (!file && fd >= 0)
        close(fd);
    return file;
}

const char *hts_file_cause(int no)
{
    return no ? strerror(no) : hts_verbose > 0 ? "lines of htslib above may say why" : "--verbosity 1 may show why";
}

/* Warns if the index at `index`, of n bytes, is older than the file. False: there is no such index. */
static bool check_age(const char *path, const struct stat *file, const char *index)
{
    struct stat found;
    if (stat(index, &found) < 0)
        return false;
    if (found.st_mtime < file->st_mtime)
        message_warning("%s: its index %s is older than the file. If the file has changed since, records are missed; "
                        "samtools index makes a new one", path, index);
    return true;
}

/* Looks for the index where htslib does, and warns if it is older than the file. The ending of an index comes after the
 * full name, or replaces the part after the last dot. n: length of the file's name. False: there is no such index. */
static bool check_age_by_name(const char *path, const struct stat *file, const char *name, size_t n, bool is_cram)
{
    enum { END_MOST = sizeof ".crai" };
    static const char *const ends[] = {".csi", ".bai", ".crai"};
    char *index = malloc(n + END_MOST);
    const char *dot = memrchr(name, '.', n);
    size_t cuts[] = {n, dot && !memchr(dot, '/', (size_t)(name + n - dot)) ? (size_t)(dot - name) : n};
    bool found = false;
    for (size_t i = is_cram ? 4 : 0; index && !found && i < (is_cram ? 6 : 4); i++) {
        memcpy(index, name, cuts[i % 2]);
        strcpy(index + cuts[i % 2], ends[i / 2]);
        found = check_age(path, file, index);
    }
    free(index);
    return found;
}

/* Warns if the index of the file is older than the file. Some versions of htslib do so, too, but for some files
 * only. */
static void warn_of_age(const char *path, const char *name, const char *index, bool is_cram)
{
    size_t n;
    const char *named = input_name_index(name, &n);
    char *data = hisremote(name) ? NULL : strndup(name, n);
    struct stat file;
    if (!index)
        index = named;
    if (data && stat(data, &file) == 0)
        index ? check_age(path, &file, index) : check_age_by_name(path, &file, name, n, is_cram);
    free(data);
}

hts_idx_t *hts_file_load_index(samFile *sam, const char *path, const char *name, const char *index,
                               struct latch *latch)
{
    int level = hts_verbose;
    hts_verbose = level > HTS_LOG_ERROR ? HTS_LOG_ERROR : level;
    hts_idx_t *found = sam ? sam_index_load3(sam, name, index, HTS_IDX_SILENT_FAIL)
                           : hts_idx_load3(name, index, HTS_FMT_BAI, HTS_IDX_SILENT_FAIL);
    hts_verbose = level;
    if (found)
        warn_of_age(path, name, index, sam && hts_get_format(sam)->format == cram);
    else
        latch_fail(latch, "%s: regions need its index, but %s%s. Nothing was written; samtools index makes one",
                   path, index ? "there is none in " : "it has none that can be read", index ? index : "");
    return found;
}

/* Measured with htslib 1.16, where CRAM keeps complete containers for each thread: a file without threads, and what
 * each thread adds. */
struct htslib_use hts_file_use(bool is_cram, bool writing, const struct htslib_room *room, int n_threads)
{
    const size_t mib = (size_t)1 << 20, base = !is_cram ? 3 * mib : writing ? 20 * mib : 10 * mib;
    size_t each = room->thread_space + (!is_cram ? 3 * mib / 2 : writing ? 32 * mib : 16 * mib);
    uint64_t most = room->bytes > base ? (room->bytes - base) / each : 0;
    int n = (uint64_t)n_threads < most ? n_threads : most > 1 ? (int)most : 1;
    return (struct htslib_use){.n_threads = n, .bytes = base + (n > 1 ? (size_t)n * each : 0)};
}

int hts_file_wrong_index(const char *path, struct latch *latch)
{
    return latch_fail(latch, "%s: its index is that of another file, or the file or its index is damaged. Nothing was "
                      "written; samtools index makes a new one", path);
}
