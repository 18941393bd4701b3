/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <htslib/hfile.h>
#include "byte_source.h"
#include "hts_reader.h"
#include "latch.h"

enum { PIPE_SIZE = 1 << 20 };

struct byte_source {
    struct byte_source_options opt;
    enum byte_framing framing;
    hFILE *file;                 /* NULL once the reader owns it */
    int fd;                      /* beneath file, for a local BAM; -1: read through file */
    struct hts_reader *reader;   /* of BYTES_RECORDS */
};

static int open_file(struct byte_source *s)
{
    const char *path = s->opt.path;
    int is_stdin = strcmp(path, "-") == 0;
    if (!is_stdin && hisremote(path)) {
        s->file = hopen(path, "r");
    } else {
        s->fd = is_stdin ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC);
        s->file = s->fd < 0 ? NULL : hdopen(s->fd, "r");
    }
    if (s->file)
        return 0;
    return latch_fail(s->opt.latch, "cannot open %s: %s", is_stdin ? "standard input" : path, strerror(errno));
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

/* Decides by the first bytes who reads the file. */
static int detect(struct byte_source *s)
{
    htsFormat format;
    if (hts_detect_format(s->file, &format) < 0)
        return latch_fail(s->opt.latch, "reading %s failed: %s", s->opt.path, strerror(errno));
    /* htslib looks into the first block only, which may be empty or too short:
     * what it does not know is left to bam_header_read(). */
    bool blocks = format.compression == bgzf && (format.format == bam || format.category != sequence_data);
    if (format.format == empty_format && !blocks)
        return latch_fail(s->opt.latch, "%s is empty: there is not even a header", s->opt.path);
    if (blocks) {
        s->framing = BYTES_BGZF;
    } else if (format.format == bam && format.compression == no_compression) {
        s->framing = BYTES_RAW_BAM;
    } else {
        s->framing = BYTES_RECORDS;
        struct hts_reader_options how = {s->opt.path, s->opt.n_threads, s->opt.reference,
                                         s->opt.format_options, s->opt.budget, s->opt.far, s->opt.latch};
        s->reader = hts_reader_open(s->file, &how);
        s->file = NULL;
        return s->reader ? 0 : -1;
    }
    if (s->fd >= 0)
        advise(s->fd);
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
    if (open_file(s) == 0 && detect(s) == 0)
        return s;
    byte_source_close(s);
    return NULL;
}

void byte_source_close(struct byte_source *s)
{
    if (!s)
        return;
    if (s->file)
        hclose_abruptly(s->file);
    hts_reader_close(s->reader);
    free(s);
}

enum byte_framing byte_source_framing(const struct byte_source *s)
{
    return s->framing;
}

sam_hdr_t *byte_source_header(struct byte_source *s)
{
    return hts_reader_header(s->reader);
}

size_t byte_source_memory(const struct byte_source *s)
{
    return s->reader ? hts_reader_memory(s->reader) : 0;
}

uint64_t byte_source_size(const struct byte_source *s)
{
    struct stat st;
    return s->fd >= 0 && !s->reader && fstat(s->fd, &st) == 0 && S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0;
}

/* What htslib has read ahead, to find out the format, comes first; then local
 * files are read directly: large reads, and ones that a signal can end. */
static ssize_t read_once(struct byte_source *s, void *buffer, size_t n)
{
    size_t ahead = (size_t)(s->file->end - s->file->begin);
    if (s->fd < 0 || ahead > 0)
        return hread(s->file, buffer, ahead > 0 && ahead < n ? ahead : n);
    return read(s->fd, buffer, n);
}

ssize_t byte_source_read(struct byte_source *s, void *buffer, size_t n)
{
    ssize_t got;
    if (s->reader)
        return hts_reader_read(s->reader, buffer, n);
    do {
        if (latch_tripped(s->opt.latch))
            return -1;
        got = read_once(s, buffer, n);
    } while (got < 0 && errno == EINTR);
    if (got < 0)
        latch_fail(s->opt.latch, "reading %s failed: %s", s->opt.path, strerror(errno));
    return got;
}
