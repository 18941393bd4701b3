/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include "hts/cram_count.h"
#include "base/latch.h"
#include "base/thread_pipe.h"
#include "hts/cram_input.h"
#include "read/input_file.h"

enum {
    PIECE = 64 << 10,            /* bytes per read: as many as a pipe holds */
    NAP = 50,                    /* ms: the longest time until the thread sees `stop` */
};

struct cram_input {
    struct input_file *file;
    struct cram_count count;     /* owned by the thread, if there is one, until it has ended */
    bool threaded;               /* there is a thread, and it is not joined yet */
    struct thread_pipe pipe;
    atomic_bool stop;            /* set by the closing thread; the pipe's thread then ends at once */
    bool refused;                /* htslib takes no more bytes; this and the next field are used by the pipe's thread
                                  * only */
    uint8_t piece[PIECE];
};

static void pass_on(struct cram_input *in, size_t n)
{
    for (size_t done = 0; done < n && !in->refused;) {
        ssize_t sent = send(in->pipe.ours, in->piece + done, n - done, MSG_NOSIGNAL);
        if (sent >= 0)
            done += (size_t)sent;
        else
            in->refused = errno != EINTR;
    }
}

/* Reads to the end of the input, even if htslib takes no more bytes, because all records must be counted. */
static void *fill_pipe(void *arg)
{
    struct cram_input *in = arg;
    ssize_t n = 1;
    while (n > 0 && !atomic_load(&in->stop) && !latch_tripped(in->file->latch)) {
        if (!input_file_ready(in->file, NAP))
            continue;
        n = input_file_read(in->file, in->piece, PIECE);
        if (n > 0) {
            cram_count_feed(&in->count, in->piece, (uint64_t)n);
            pass_on(in, (size_t)n);
        }
    }
    shutdown(in->pipe.ours, SHUT_WR);
    return NULL;
}

struct cram_input *cram_input_open(struct input_file *file, bool checks)
{
    struct cram_input *in = calloc(1, sizeof *in);
    if (!in)
        return NULL;
    in->file = file;
    cram_count_start(&in->count, checks);
    in->threaded = file->begin < 0;
    if (!in->threaded || thread_pipe_start(&in->pipe, fill_pipe, in) == 0)
        return in;
    free(in);
    return NULL;
}

int cram_input_end(const struct cram_input *in)
{
    return dup(in->pipe.theirs);
}

/* Counts the records up to offset `end` of the file. `end` -1: the offset is not known, and errno says why. -1: failed,
 * and the error is recorded in the latch. */
static int count_to(struct cram_input *in, off_t end)
{
    uint64_t n = end > in->file->begin ? (uint64_t)(end - in->file->begin) : 0;
    if (end >= 0 && cram_count_file(&in->count, in->file->fd, in->file->begin, n) == 0)
        return 0;
    return input_file_failed(in->file);
}

int cram_input_go_on(struct cram_input *in)
{
    return in->file->begin < 0 ? 0 : count_to(in, lseek(in->file->fd, 0, SEEK_CUR));
}

int cram_input_next(struct cram_input *in, struct cram_place *place)
{
    int found = cram_count_next(&in->count, in->file->fd, in->file->begin, (uint64_t)in->file->end);
    *place = (struct cram_place){in->count.container, in->count.end, in->count.in_slices};
    return found < 0 ? input_file_failed(in->file) : found;
}

static int count_rest(struct cram_input *in)
{
    struct stat st;
    return in->file->begin < 0 ? 0 : count_to(in, fstat(in->file->fd, &st) < 0 ? -1 : st.st_size);
}

static void join(struct cram_input *in, int how)
{
    if (!in->threaded)
        return;
    shutdown(in->pipe.theirs, how);              /* the thread may be waiting for htslib to read */
    thread_pipe_join(&in->pipe);
    in->threaded = false;
}

int cram_input_check(struct cram_input *in, uint64_t n)
{
    join(in, SHUT_RD);
    if (count_rest(in) < 0 || latch_tripped(in->file->latch))
        return -1;
    unsigned long long before = in->file->begin > 0 ? (unsigned long long)in->file->begin : 0;
    if (in->count.damaged)
        return latch_fail(in->file->latch, "%s: at file offset %llu: the CRC-32 of a header block of CRAM is wrong: "
                          "the file is damaged. Fetch or make it again. Nothing was written", in->file->path,
                          before + in->count.damaged);
    if (cram_count_agrees(&in->count, n))
        return 0;
    return latch_fail(in->file->latch, "%s: its containers state %llu records, but %llu could be read: the file is "
                      "damaged, or memory ran out. Nothing was written", in->file->path,
                      (unsigned long long)in->count.records, (unsigned long long)n);
}

bool cram_input_mixes(const struct cram_input *in)
{
    return in->count.mixes;
}

void cram_input_close(struct cram_input *in)
{
    if (!in)
        return;
    atomic_store(&in->stop, true);
    join(in, SHUT_RDWR);
    free(in);
}
