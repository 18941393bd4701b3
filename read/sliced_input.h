/* SPDX-License-Identifier: MIT */
/* The records of an input as slices, which tasks make while those before are merged, or written. The main thread takes
 * them in file order, and looks whether they are in order.
 *
 *   slices   4     5     6     7     8     9
 *          | passed by | left by   | ready    | made |
 *          | the sink  | the merge |          |      |
 *          freed ----->  left ---->  the merge  made ---> chunk_reader
 *
 * A slice is ready when the one behind it is made, too, or there is none: so the key that follows its last one is
 * known. A slice has at least SLICE_LEAST bytes of records, but for the last one. */
#ifndef SLICED_INPUT_H
#define SLICED_INPUT_H

#include "read/chunk_reader.h"
#include "read/passed_records.h"
#include "read/record_slice.h"
#include "read/input.h"

struct sliced_input_options {
    uint32_t n_slices;           /* in memory at most; at least SLICED_INPUT_LEAST */
    struct chunk_pool *pool;     /* from which some of them come, and chunks; NULL: from none */
    const struct sort_rule *rule;   /* as in struct bam_key_order; stays the caller's */
    struct latch *latch;
};

/* The least number of slices, with which two of an input can be in a range. */
enum { SLICED_INPUT_LEAST = 7 };

/* How many slices of an input may be in one range. While a range is planned, the sink may hold as many of the range
 * before, because the last block is not full, and one of the range before that, or two where blocks are copied, because
 * what is in the last block may go to the next one, too; and two more must be made, so that it is known how the input
 * goes on. */
static inline uint32_t sliced_input_in_range(uint32_t n_slices, bool copies)
{
    return (n_slices - 3 - copies) / 2;
}

/* A slice in memory. */
struct made_slice {
    struct record_slice records;
    uint64_t mark;               /* of the sink, when the merge had left it */
};

/* All zeros: nothing is open. */
struct sliced_input {
    struct input *in;       /* the caller's, who opens and closes it */
    struct chunk_reader *chunks; /* of its records; the caller's, who closes them later */
    struct merge_request request;
    struct chunk_borrower borrower; /* of the pool, if there is one */
    struct sliced_input_options opt;
    struct made_slice *slices;   /* opt.n_slices, used in turn */
    size_t made, left, freed;    /* numbers of slices, see above */
    struct record_slice next;    /* being collected */
    struct record_slice spare;   /* buffers for the records of a chunk that go to `next` */
    bool ended;                  /* there are no slices but those that are made */
    uint64_t out_of_order;             /* number of the first record that belongs before the one in front of it; 0:
                                          none so
                                  * far */
    bool is_awaited;             /* sliced_input_await() said so last */
    uint64_t waits, waited;      /* how often that began, and nanoseconds until the slice was ready */
    uint64_t since;
};

/* Begins with an input whose header is read: its records are those that a merge takes. -1: failed, and the error is
 * recorded in the latch. */
int sliced_input_begin(struct sliced_input *input, struct input *in, const struct sliced_input_options *options);

/* Likewise with records that are made otherwise of what is read from the input, in these chunks. */
int sliced_input_begin_of(struct sliced_input *input, struct input *in, struct chunk_reader *chunks,
                          const struct sliced_input_options *options);

void sliced_input_close(struct sliced_input *input);

/* Goes on reading, as far as that needs no waiting and there is room. -1: failed, and the error is recorded in the
 * latch. */
int sliced_input_advance(struct sliced_input *input);

/* Does a little of the work that is handed out. False: there is none. */
bool sliced_input_help(struct sliced_input *input);

/* Whether the slice is there, and how it goes on is known. Slices become ready in turn. */
static inline bool sliced_input_ready(const struct sliced_input *input, size_t number)
{
    return number + 1 < input->made || (number < input->made && input->ended);
}

/* A slice that is made, and not yet passed. */
static inline const struct record_slice *sliced_input_at(const struct sliced_input *input, size_t number)
{
    return &input->slices[number % input->opt.n_slices].records;
}

/* Notes whether the merge has nothing to do before the next slice is ready. now: a clock in nanoseconds. */
void sliced_input_await(struct sliced_input *input, bool awaited, uint64_t now);

/* The merge leaves the slices before this one; their memory is used again when the sink has passed the mark. */
void sliced_input_leave(struct sliced_input *input, size_t number, uint64_t mark);

/* Whether the sink has passed a mark. */
typedef bool sliced_input_passed_fn(const void *sink, uint64_t mark);

/* Frees the slices whose mark the sink has passed. */
void sliced_input_free(struct sliced_input *input, sliced_input_passed_fn *passed, const void *sink);

#endif
