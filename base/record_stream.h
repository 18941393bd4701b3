/* SPDX-License-Identifier: MIT */
/* A stream of records from a producer to a consumer, in order. The consumer takes what comes next when it has room for
 * it. There are streams of slices and streams of lists. The difference is who owns their records:
 *
 *   slice (read/record_slice.h)     the consumer, which keeps, copies or empties it
 *   list (write/record_list.h)      the producer, until the records have passed the sink. The last producer of a
 *                                   command gives lists, which written_all() puts into the sink: so no record is
 *                                   copied on the way to its block
 *
 * advance() does not wait until the next slice or list is made: the consumer does, in stream_steps_await(). Call all
 * functions on the main thread of the team. */
#ifndef RECORD_STREAM_H
#define RECORD_STREAM_H

#include <stdbool.h>
#include <stdint.h>
#include "base/tally.h"
#include "base/task_ring.h"

struct engine;
struct record_list;
struct record_slice;

enum chunk_state {
    CHUNK_FAILED = -1,           /* the error is recorded in the latch */
    CHUNK_AWAITED,               /* the next slice or list is not made yet */
    CHUNK_MADE,                  /* the next one can be taken */
    CHUNK_NONE,                  /* all were taken */
};

struct record_stream {
    enum chunk_state (*advance)(void *producer); /* does the next step */
    int (*take)(void *producer, struct record_slice *slice); /* exchanges the next slice for *slice, whose memory it
                                  * uses again. The slice may have no records. -1: failed, and the error is recorded in
                                  * the latch */
    bool (*help)(void *producer); /* does a small part of the work that is handed out. False: there is none */
    /* Called when all slices were taken. Compares the tally of what the producer took with the tally of what it gave,
     * and returns the latter. -1: they differ, and the error is recorded in the latch. */
    int (*end)(void *producer, struct tally *given);
    void *producer;              /* for all these functions */
    uint32_t most_lent;          /* slices that the consumer may hold at most, because they are large; 0: any */
    bool has_keys;               /* the slices have the keys of a sort by coordinate */
    bool is_reordered;           /* the records are not in the order of the input: a sort has read them, and has counted
                                  * them with the same clocks */
};

/* The functions have the same meaning as those of struct record_stream. */
struct list_stream {
    enum chunk_state (*advance)(void *producer);
    int (*take)(void *producer, struct record_list *list); /* sets *list. The records stay unchanged until they have
                                  * passed the sink; the list stays until the next call of advance(), and its records
                                  * must be put to the sink before */
    bool (*help)(void *producer);
    int (*end)(void *producer, struct tally *given); /* called when all records were put to the sink; *given is the
                                  * tally that the sink must have. -1: as in struct record_stream */
    void *producer;
};

/* The functions that a consumer calls while it waits for its producer. */
struct stream_steps {
    enum chunk_state (*advance)(void *producer);
    task_help_fn *help;
    void *producer;
};

/* Advances the producer, and works until the next slice or list is made, or none will come. Fails if the latch has an
 * error. help: does work of the consumer; task_no_help if it has none. */
enum chunk_state stream_steps_await(struct stream_steps steps, task_help_fn *help, void *arg,
                                    const struct engine *engine);

static inline enum chunk_state record_stream_await(const struct record_stream *stream, task_help_fn *help, void *arg,
                                                   const struct engine *engine)
{
    struct stream_steps steps = {stream->advance, stream->help, stream->producer};
    return stream_steps_await(steps, help, arg, engine);
}

/* Ends a stream of which all slices were taken: compares the tally that its producer gave with the tally that the
 * consumer took. where, path: as in tally_compare(). -1: they differ, or the producer has found that it lost records,
 * and the error is recorded in the latch. */
int record_stream_end(const struct record_stream *stream, struct tally taken, const char *where, const char *path,
                      struct latch *latch);

/* Waits for the next list, and takes it. 1: *list is set; 0: all lists were taken; -1: failed, and the error is
 * recorded in the latch. */
int list_stream_next(const struct list_stream *stream, struct record_list *list, const struct engine *engine);

#endif
