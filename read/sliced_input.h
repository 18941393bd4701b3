/* SPDX-License-Identifier: MIT */
/* The records of an input as slices. Tasks make slices while earlier ones are merged or written. The main thread takes
 * the slices in file order, and checks whether the records are in order.
 *
 *   slices   4     5     6     7     8     9
 *          | passed by | left by   | ready    | made |
 *          | the sink  | the merge |          |      |
 *          freed ----->  left ---->  the merge  made ---> the stream
 *
 * A slice is ready when the one after it is made, too, or when there is none after it. So the key that follows its last
 * key is known. A slice has at least SLICE_LEAST bytes of records, except the last slice. */
#ifndef SLICED_INPUT_H
#define SLICED_INPUT_H

#include "read/chunk_reader.h"
#include "read/passed_records.h"
#include "read/record_slice.h"
#include "read/input.h"

struct engine;

struct sliced_input_options {
    uint32_t n_slices;           /* largest number of slices in memory; at least SLICED_INPUT_LEAST */
    struct chunk_pool *pool;     /* the pool from which some of the slices and chunks come; NULL: no pool */
    const struct sort_rule *rule;   /* as in struct bam_key_order; stays the caller's */
    const struct engine *engine;
};

/* The least number of slices. With it, two slices of an input can be in a range. */
enum { SLICED_INPUT_LEAST = 7 };

/* Returns how many slices of an input may be in one range. While a range is planned, the sink may hold as many slices
 * of the range before, because the last block is not full. It may also hold one slice of the range before that, or two
 * if blocks are copied, because the contents of the last block may go to the next block, too. Two more slices must be
 * made, so that it is known how the input continues. */
static inline uint32_t sliced_input_in_range(uint32_t n_slices, bool copies)
{
    return (n_slices - 3 - copies) / 2;
}

/* Returns the bytes of n slices, besides their records. */
size_t sliced_input_slots_memory(uint32_t n_slices);

/* A slice in memory. */
struct made_slice {
    struct record_slice records;
    uint64_t mark;               /* mark of the sink when the merge had left the slice */
};

/* A zero-initialised struct has nothing open. */
struct sliced_input {
    struct input *in;       /* owned by the caller, which opens and closes it */
    struct record_stream from;   /* its records; the caller closes the producer later */
    struct tally taken;          /* tally of the records taken from it */
    struct merge_request request;
    struct chunk_borrower borrower; /* its share in the pool, if there is a pool */
    struct sliced_input_options opt;
    struct made_slice *slices;   /* opt.n_slices, used in turn */
    size_t made, left, freed;    /* numbers of slices, see above */
    struct record_slice next;    /* the slice that is being collected */
    struct record_slice spare;   /* buffers for the records of a chunk that go to `next` */
    bool ended;                  /* there will be no more slices than those that are made */
    uint64_t out_of_order;       /* number of the first record that belongs before its predecessor; 0: there is none so
                                  * far */
    bool is_awaited;             /* the last call of sliced_input_await() had awaited = true */
    uint64_t waits, waited;      /* number of times that awaiting began; nanoseconds until slices were ready */
    uint64_t since;
};

/* Begins with an input whose header is read. Its records come as a merge takes them. -1: failed, and the error is
 * recorded in the latch. */
int sliced_input_begin(struct sliced_input *input, struct input *in, const struct sliced_input_options *options);

/* As sliced_input_begin(), but takes the records from a stream that the caller has made from the input. */
int sliced_input_begin_of(struct sliced_input *input, struct input *in, struct record_stream from,
                          const struct sliced_input_options *options);

/* Call it when all slices are made: see record_stream_end(). */
int sliced_input_end(const struct sliced_input *input, const char *where);

void sliced_input_close(struct sliced_input *input);

/* Continues reading, as far as possible without waiting and as far as there is room. -1: failed, and the error is
 * recorded in the latch. */
int sliced_input_advance(struct sliced_input *input);

/* Does a small part of the work that is handed out. False: there is none. */
bool sliced_input_help(struct sliced_input *input);

/* Returns whether the slice is made, and it is known what follows it. Slices become ready in turn. */
static inline bool sliced_input_ready(const struct sliced_input *input, size_t number)
{
    return number + 1 < input->made || (number < input->made && input->ended);
}

/* Returns a slice that is made, and that the sink has not passed yet. */
static inline const struct record_slice *sliced_input_at(const struct sliced_input *input, size_t number)
{
    return &input->slices[number % input->opt.n_slices].records;
}

/* Notes whether the merge has nothing to do before the next slice is ready. now: a clock in nanoseconds. */
void sliced_input_await(struct sliced_input *input, bool awaited, uint64_t now);

/* The merge leaves the slices before number `number`. Their memory is used again when the sink has passed the mark. */
void sliced_input_leave(struct sliced_input *input, size_t number, uint64_t mark);

/* Returns whether the sink has passed a mark. */
typedef bool sliced_input_passed_fn(const void *sink, uint64_t mark);

/* Frees the slices whose mark the sink has passed. */
void sliced_input_free(struct sliced_input *input, sliced_input_passed_fn *passed, const void *sink);

#endif
