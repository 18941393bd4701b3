/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <htslib/hfile.h>
#include "base/input_name.h"
#include "read/input_format.h"
#include "read/cram_input.h"
#include "read/hts_reader.h"
#include "base/latch.h"
#include "read/read_ahead.h"
#include "read/sam_reader.h"

enum { PIPE_SIZE = 1 << 20 };

struct byte_source {
    struct byte_source_options opt;
    enum byte_framing framing;
    hFILE *file;                 /* NULL once the reader owns it; behind a pipe of cram's it does not */
    int fd;                      /* beneath file, for a local BAM; -1: read through file */
    off_t begin, end;            /* where a regular file stood when it was opened, and its size then; -1: none */
    struct hts_reader *reader;   /* of BYTES_RECORDS; NULL: sam is */
    struct cram_input *cram;     /* whether it reads all; NULL: it is no CRAM, or cannot be told */
    struct sam_reader *sam;
    struct byte_source *text;    /* which that reads */
    struct read_ahead *ahead;    /* NULL: nobody has asked for a window, or sam makes it */
};

/* Finds out whether the file can be read from anywhere. */
static void find_ends(struct byte_source *s)
{
    struct stat st;
    if (fstat(s->fd, &st) == 0 && S_ISREG(st.st_mode)) {
        s->begin = lseek(s->fd, 0, SEEK_CUR);
        s->end = st.st_size;
    }
}

static int open_file(struct byte_source *s)
{
    const char *path = s->opt.path;
    int is_stdin = strcmp(path, "-") == 0;
    bool is_data = strncmp(path, "data:", strlen("data:")) == 0, is_memory = strncmp(path, "mem:", strlen("mem:")) == 0;
    if (!is_stdin && !is_memory && (is_data || hisremote(path))) {   /* "mem:" is for programs, and needs an address */
        s->file = hopen(path, "r");
    } else {
        s->fd = is_stdin ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC);
        s->file = s->fd < 0 ? NULL : hdopen(s->fd, "r");
    }
    s->opt.path = input_name_shown(path);
    if (s->file) {
        find_ends(s);
        return 0;
    }
    return latch_fail(s->opt.latch, "cannot open %s: %s", s->opt.path, strerror(errno));
}

static void advise(int fd)
{
#ifdef F_SETPIPE_SZ
    fcntl(fd, F_SETPIPE_SZ, PIPE_SIZE);          /* no pipe: no effect */
#endif
#ifdef POSIX_FADV_SEQUENTIAL
    posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
#endif
}

static int read_failed(const struct byte_source *s)
{
    return latch_fail(s->opt.latch, "reading %s failed: %s", s->opt.path, strerror(errno));
}

/* Bytes that htslib has read to find out the format. */
static size_t peeked(const struct byte_source *s)
{
    return (size_t)(s->file->end - s->file->begin);
}

/* Those come first; then local files are read directly: large reads, and ones
 * that a signal can end. */
static ssize_t read_once(struct byte_source *s, void *buffer, size_t n)
{
    size_t ahead = peeked(s);
    if (s->fd < 0 || ahead > 0)
        return hread(s->file, buffer, ahead > 0 && ahead < n ? ahead : n);
    return read(s->fd, buffer, n);
}

/* As byte_source_read(), what the input is made of. */
static ssize_t read_file(struct byte_source *s, void *buffer, size_t n)
{
    ssize_t got;
    do {
        if (latch_tripped(s->opt.latch))
            return -1;
        got = read_once(s, buffer, n);
    } while (got < 0 && errno == EINTR);
    return got < 0 ? read_failed(s) : got;
}

/* By which htslib drops records. */
static bool has_filter(const hts_opt *option)
{
    while (option && option->opt != HTS_OPT_FILTER)
        option = option->next;
    return option;
}

/* The file that htslib is to read: of a CRAM, one that is watched. NULL: errno says why. */
static hFILE *watched(struct byte_source *s, bool is_cram)
{
    struct cram_input_options how = {s->opt.path, s->fd, s->begin, read_file, byte_source_ready, s, s->opt.latch};
    hFILE *file = s->file;
    if (is_cram && !has_filter(s->opt.format_options) && !(s->cram = cram_input_open(&how)) && errno == ENOMEM)
        return NULL;
    if (!s->cram || s->begin >= 0) {
        s->file = NULL;
        return file;
    }
    int end = cram_input_end(s->cram);
    if (end >= 0 && !(file = hdopen(end, "r")))
        close(end);
    return end < 0 ? NULL : file;
}

static int open_htslib(struct byte_source *s, bool is_cram)
{
    hFILE *file = watched(s, is_cram);
    s->framing = BYTES_RECORDS;
    if (!file)
        return read_failed(s);
    struct hts_reader_options how = {
        .path = s->opt.path,
        .n_threads = s->opt.n_threads,
        .reference = s->opt.reference,
        .format_options = s->opt.format_options,
        .room = s->opt.htslib,
        .cram = s->cram,
        .far = s->opt.far,
        .latch = s->opt.latch,
    };
    s->reader = hts_reader_open(file, &how);
    return s->reader ? 0 : -1;
}

/* The text has a source of its own, to which the file goes. */
static int open_sam(struct byte_source *s, bool blocks)
{
    s->text = malloc(sizeof *s->text);
    if (!s->text)
        return latch_fail(s->opt.latch, "out of memory");
    *s->text = *s;
    s->text->framing = blocks ? BYTES_BGZF : BYTES_TEXT;
    s->text->text = NULL;
    s->file = NULL;
    s->framing = BYTES_RECORDS;
    s->sam = sam_reader_open(s->text, &s->opt);
    return s->sam ? 0 : -1;
}

/* Decides by the first bytes who reads the file. */
static int detect(struct byte_source *s)
{
    htsFormat format;
    if (hts_detect_format(s->file, &format) < 0)
        return read_failed(s);
    /* htslib looks into the first block only, which may be empty or too short:
     * what it does not know is left to header_read(). */
    bool blocks = format.compression == bgzf, plain = format.compression == no_compression;
    bool is_sam = format.format == sam && (blocks || plain);
    bool bam_blocks = blocks && (format.format == bam || format.category != sequence_data);
    bool bam_plain = plain && format.format == bam;
    if (format.format == empty_format && !bam_blocks)
        return latch_fail(s->opt.latch, "%s is empty: there is not even a header", s->opt.path);
    if (has_filter(s->opt.format_options) || !(is_sam || bam_blocks || bam_plain))
        return open_htslib(s, format.format == cram);
    if (s->fd >= 0)
        advise(s->fd);
    if (is_sam)
        return open_sam(s, blocks);
    s->framing = bam_blocks ? BYTES_BGZF : BYTES_RAW_BAM;
    return 0;
}

struct byte_source *byte_source_open(const struct byte_source_options *options)
{
    struct byte_source *s = calloc(1, sizeof *s);
    if (!s) {
        latch_fail(options->latch, "out of memory");
        return NULL;
    }
    s->opt = *options;
    s->fd = -1;
    s->begin = s->end = -1;
    if (open_file(s) == 0 && detect(s) == 0)
        return s;
    byte_source_close(s);
    return NULL;
}

void byte_source_close(struct byte_source *s)
{
    if (!s)
        return;
    read_ahead_close(s->ahead);
    hts_reader_close(s->reader);
    cram_input_close(s->cram);
    sam_reader_close(s->sam);
    byte_source_close(s->text);
    if (s->file)
        hclose_abruptly(s->file);
    free(s);
}

enum byte_framing byte_source_framing(const struct byte_source *s)
{
    return s->framing;
}

enum byte_access byte_source_access(const struct byte_source *s)
{
    if (s->sam)
        return BYTES_PARSED;
    if (s->fd < 0 || s->reader)
        return BYTES_IN_TURN;
    return s->begin >= 0 ? BYTES_ANYWHERE : BYTES_FROM_PIPE;
}

sam_hdr_t *byte_source_header(struct byte_source *s)
{
    return s->sam ? sam_reader_header(s->sam) : hts_reader_header(s->reader);
}

size_t byte_source_memory(const struct byte_source *s)
{
    return s->sam ? sam_reader_memory(s->sam) : s->reader ? hts_reader_memory(s->reader) : 0;
}

uint64_t byte_source_size(const struct byte_source *s)
{
    return s->end > 0 && s->framing != BYTES_RECORDS ? (uint64_t)s->end : 0;
}

uint64_t byte_source_length(const struct byte_source *s)
{
    return s->end > 0 && !s->reader ? (uint64_t)s->end : 0;
}

ssize_t byte_source_read(struct byte_source *s, void *buffer, size_t n)
{
    return s->reader ? hts_reader_read(s->reader, buffer, n) : read_file(s, buffer, n);
}

struct byte_window *byte_source_window(struct byte_source *s, size_t piece_size)
{
    if (s->sam)
        return sam_reader_window(s->sam);
    struct read_ahead_options how = {s, piece_size, s->opt.latch, s->opt.stats};
    s->ahead = read_ahead_open(&how);
    if (s->ahead)
        return read_ahead_window(s->ahead);
    latch_fail(s->opt.latch, "%s: out of memory for read buffers; try fewer threads (-@)", s->opt.path);
    return NULL;
}

bool byte_source_ready(const struct byte_source *s, int timeout)
{
    struct pollfd in = {.fd = s->fd, .events = POLLIN};
    return s->fd < 0 || peeked(s) > 0 || poll(&in, 1, timeout) > 0;
}

ssize_t byte_source_read_at(const struct byte_source *s, void *buffer, size_t n, uint64_t offset)
{
    size_t done = 0;
    ssize_t got = 1;
    while (done < n && got != 0) {
        if (latch_tripped(s->opt.latch))
            return -1;
        got = pread(s->fd, (uint8_t *)buffer + done, n - done, s->begin + (off_t)(offset + done));
        if (got < 0 && errno != EINTR)
            return read_failed(s);
        done += got > 0 ? (size_t)got : 0;
    }
    if (done == n)
        return (ssize_t)done;
    if (s->begin + (off_t)(offset + done) < s->end)
        return latch_fail(s->opt.latch, "%s: at file offset %llu: it became shorter while it was read. Nothing was written",
                          s->opt.path, (unsigned long long)(offset + done));
    lseek(s->fd, 0, SEEK_END);                   /* where read() would leave it */
    return (ssize_t)done;
}

void byte_source_expect(const struct byte_source *s, uint64_t offset, size_t n)
{
#ifdef POSIX_FADV_WILLNEED
    posix_fadvise(s->fd, s->begin + (off_t)offset, (off_t)n, POSIX_FADV_WILLNEED);
#else
    (void)s, (void)offset, (void)n;
#endif
}
