/* SPDX-License-Identifier: MIT */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include "base/byte_buffer.h"
#include "base/engine.h"
#include "base/input_name.h"
#include "base/latch.h"
#include "mpi/mpi_wait.h"
#include "mpi/whole_input.h"
#include "read/header_read.h"
#include "read/slice_feed.h"

enum { SAMPLE_BYTES = 65536 };   /* all ranks learn the shape of names from these */

/* The message of the reader to the other ranks: a header, then a sample. */
struct news {
    uint8_t *bytes;
    uint64_t header, sample;     /* bytes of each */
};

/* Appends the next records of a stream. 1: done; 0: there are none; -1: failed, and the error is recorded in the
 * latch. */
static int read_slice(struct byte_buffer *to, struct slice_feed *feed, struct latch *latch)
{
    enum chunk_state state = slice_feed_await(feed, task_no_help, NULL);
    if (state != CHUNK_MADE)
        return state == CHUNK_FAILED ? -1 : 0;
    struct slice_span span = slice_feed_take(feed);
    int status = byte_buffer_append(to, span.bytes, span.size);
    slice_span_release(&span);
    return status < 0 ? latch_fail(latch, "out of memory for the first records") : 1;
}

/* Reads the first records. They remain in the input, which returns them before its other records. */
static int read_first_records(struct input *in, const struct engine *engine)
{
    struct byte_buffer rest = {in->header.rest, in->header.rest_size, in->header.rest_size};
    struct slice_feed feed = {.lent = NULL};
    const struct header_bytes blocks = {.blocks = in->source};
    int found = 1;
    if (in->stream.producer && slice_feed_open(&feed, &in->stream, 1, SIZE_MAX, engine) < 0)
        found = latch_fail(engine->latch, "out of memory for the first records");
    while (rest.n < SAMPLE_BYTES && found > 0)
        found = feed.lent ? read_slice(&rest, &feed, engine->latch)
                          : header_read_block(&rest, blocks, SIZE_MAX, in->name, engine->latch);
    slice_feed_close(&feed);
    in->header.rest = rest.p;
    in->header.rest_size = rest.n;
    return found;
}

static int pack(struct news *news, const struct input *in, struct latch *latch)
{
    size_t header;
    uint8_t *bytes;
    if (bam_header_bytes(in->header.sam, &news->bytes, &header) < 0)
        return latch_fail(latch, "%s: out of memory for the header", in->name);
    news->header = header;
    news->sample = in->header.rest_size < SAMPLE_BYTES ? in->header.rest_size : SAMPLE_BYTES;
    if (header + news->sample > INT_MAX)
        return latch_fail(latch, "%s: a header of more than 2 GB", in->name);
    if (!(bytes = realloc(news->bytes, header + news->sample + 1)))
        return latch_fail(latch, "%s: out of memory for the header", in->name);
    news->bytes = bytes;
    if (news->sample)
        memcpy(bytes + header, in->header.rest, news->sample);
    return 0;
}

static void read_first(struct input *in, struct news *news, const char *path, const struct inputs_options *how)
{
    if (input_open(in, path, NULL, how) == 0 && read_first_records(in, how->engine) >= 0)
        pack(news, in, how->engine->latch);
}

static int spread(struct news *news, const struct mpi_team *team, int reader, struct latch *latch)
{
    uint64_t sizes[] = {news->header, news->sample};
    mpi_wait_bcast(sizes, 2, MPI_UINT64_T, reader);
    news->header = sizes[0];
    news->sample = sizes[1];
    if (!news->bytes && !(news->bytes = malloc(sizes[0] + sizes[1] + 1)))
        latch_fail(latch, "out of memory for a header");
    if (mpi_team_agree(team, latch) < 0)
        return -1;
    mpi_wait_bcast(news->bytes, (int)(sizes[0] + sizes[1]), MPI_BYTE, reader);
    return 0;
}

static int no_more(struct byte_window *window, task_help_fn *help, void *arg)
{
    (void)window;
    (void)help;
    (void)arg;
    return 0;
}

/* Opens the input of a rank that does not read it. */
static void open_empty(struct whole_input *w, const struct news *news, const char *path, struct input *in,
                       const struct engine *engine)
{
    sam_hdr_t *sam = header_parse(news->bytes, news->header);
    w->nothing = (struct byte_window){.most_held = 2, .more = no_more};
    if (sam)
        input_of_window(in, path, &w->nothing, sam, engine);
    else
        latch_fail(engine->latch, "%s: its header cannot be read", input_name_shown(path));
}

static void keep_sample(struct whole_input *w, struct news *news)
{
    memmove(news->bytes, news->bytes + news->header, news->sample);
    w->sample = news->bytes;
    w->sample_size = news->sample;
    news->bytes = NULL;
}

int whole_input_open(struct whole_input *w, const struct mpi_team *team, int reader, const char *path,
                     const struct inputs_options *how, struct input *in)
{
    struct news news = {0};
    bool reads = team->rank == reader;
    if (reads)
        read_first(in, &news, path, how);
    struct latch *latch = how->engine->latch;
    bool spreads = mpi_team_agree(team, latch) == 0 && spread(&news, team, reader, latch) == 0;
    if (spreads && !reads)
        open_empty(w, &news, path, in, how->engine);
    if (spreads)
        keep_sample(w, &news);
    free(news.bytes);
    return spreads ? mpi_team_agree(team, latch) : -1;
}

void whole_input_close(struct whole_input *w)
{
    free(w->sample);
}
