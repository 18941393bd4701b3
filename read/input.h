/* SPDX-License-Identifier: MIT */
/* The inputs of a command. All are open from the start. So a broken header is found before any record is read, and
 * renaming a file later has no effect. Two kinds of inputs have buffers: the input that is being read, and those that
 * are not files. If there are more inputs than the limit on open files allows, a file is opened again for each piece
 * that is read from it. */
#ifndef INPUT_H
#define INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "bam/bam_header.h"
#include "bam/record_remap.h"
#include "bam/ref_regions.h"
#include "base/memory_shares.h"
#include "base/record_stream.h"

struct bgzf_codec;
struct bgzf_source;
struct byte_window;
struct chunk_input;
struct engine;
struct input_format;
struct input_part;
struct input_request;
struct known_headers;
struct latch;
struct look_request;
struct merge_request;
struct passed_records;
struct raw_records;

struct input {
    const char *name;            /* for messages */
    struct input_format *format; /* NULL: a producer before this one has it, or the records come from a window */
    struct bgzf_source *source;  /* source of the file's blocks; NULL: there are no buffers yet, or the file has no
                                  * blocks */
    struct raw_records *raw;     /* records of bytes that are not in blocks; NULL: there are no buffers yet, or there
                                  * are no such bytes */
    struct record_stream stream; /* the records, made by `passed`, by the format, or by a producer before this one
                                  * (inputs_of_stream()). No producer: the source has the records */
    struct passed_records *passed;   /* set if records are left out or changed, or if names lack their NUL; else NULL */
    struct bam_header header;
    struct record_remap remap;   /* changes that its records need, such as new IDs of its programs; kept here until its
                                  * turn comes */
    const struct merge_request *merge; /* what a merge requests: `passed` prepares the records for it. Set it before
                                        * input_begin(). NULL: no merge reads the records */
    const struct look_request *looks; /* set if `passed` only looks at the records. Set it before input_begin(). NULL:
                                       * it does not */
    uint32_t n_slots;            /* slots of the source, or of the consumer of the stream */
    int n_sharing;               /* this and the next field: see bgzf_source_options */
    struct bgzf_codec **codecs;
    bool by_region;              /* only records in `regions` are read */
    struct ref_regions regions;  /* the regions, by the numbers of its own references */
};

struct inputs {
    struct input *each;     /* the inputs, in the order in which they are read */
    size_t n;
    struct bgzf_codec **codecs;  /* n_codecs of them, one for each thread, shared by all inputs */
    int n_codecs;
    int n_converted;             /* number of inputs that are not BAM */
    int n_threads;               /* number of inputs that may start one more thread of htslib when they are read */
    size_t memory;               /* bytes that htslib takes for decoding ... */
    size_t overhead;             /* ... and bytes that the lists of file extents take, if only regions are read */
    size_t n_chunked;            /* for memory_use: the number of SAM inputs that have buffers at one time, plus the
                                  * number of inputs whose records go through `passed` at one time */
    bool parsed;                 /* htslib has parsed one of the headers */
    size_t header_size;          /* bytes of the headers as text */
    size_t n_references;         /* number of @SQ lines in all of them */
    uint64_t size;               /* sum of the sizes of the formats */
    bool size_known;             /* the size of each of them is known */
    uint64_t length;             /* sum of the lengths of the formats; 0: one of them is not known */
};

struct inputs_options {
    const struct input_request *request;
    const char *other_fasta;     /* a FASTA that is read as well as the inputs; NULL: none. The file must exist */
    struct memory_rings rings;   /* memory of a source, memory that SAM and other formats may take, and the threads */
    uint64_t header_max;         /* largest size of a header in bytes */
    bool far, shuts, by_region;  /* as in input_options */
    bool waits;                  /* the first input waits like the others, because all are read at the same time, or
                                  * because it is not known yet what is made of its records */
    bool keeps_broken;           /* as in header_read() */
    struct known_headers *known; /* as in header_read(); inputs_open() sets this and the next field */
    struct bgzf_codec **codecs;  /* as in bgzf_source_options */
    /* Takes the header of an input that was opened. -1: failed, and the error is recorded in the latch. NULL: each
     * header is added to the first input's. */
    int (*join)(void *arg, struct input *input);
    void *arg;
    const struct engine *engine;
};

/* Opens one input, and reads its header unless a part brings it. part: NULL for the complete input. -1: failed, and the
 * error is recorded in the latch; close it anyway. */
int input_open(struct input *input, const char *path, const struct input_part *part,
                    const struct inputs_options *options);
void input_close(struct input *input);

/* Makes an input of complete records that a window gives, up to its end. It takes over the header. path: for messages.
 * The caller keeps the window, and closes it later. -1: out of memory, and the error is recorded in the latch; close it
 * anyway. */
int input_of_window(struct input *input, const char *path, struct byte_window *window, sam_hdr_t *sam,
                    const struct engine *engine);

/* Returns whether the file continues after the part that is read of it. */
bool input_goes_on(const struct input *input);

/* Restricts an input that is suspended, or that htslib reads, to the records that overlap the regions, which are
 * united. The input takes over the list, even if this fails. index: as in input_format_choose(). -1: failed, and the
 * error is recorded in the latch. */
int input_choose(struct input *input, struct ref_regions *regions, const char *index);

/* Call it when the input's turn has come: makes the buffers that it lacks, and begins to read what follows the header.
 * -1: failed, and the error is recorded in the latch. */
int input_begin(struct input *input);

/* Makes the tasks of the input parts of `batches`, in a large team (task_ring_use_batches()). Call it when the input
 * has begun and its records go through `passed`. While threads lack work, the main thread wakes a thread for each task
 * that it makes, which takes it 1 to 5 us. In slow motion with 64 threads, a merge of 100 inputs made 1,170 tasks
 * instead of 11,500, and `stats` of 1 GB took 0.87 of the time. */
void input_use_batches(const struct input *input, struct task_batches *batches);

/* Call it if the name of the next record lacks its NUL. in->passed makes room for the NUL, and gives the records from
 * now on. The record was given back to the present source. n_before records and `bytes` bytes of the input came before
 * it. -1: failed, and the error is recorded in the latch. */
int input_pass_rest(struct input *input, uint64_t n_before, uint64_t bytes);

/* Returns the bytes of memory that an input takes besides its buffers: an open file, and what remains of a source of
 * n_slots when it has been read. */
size_t input_memory(uint32_t n_slots);

/* Returns the options for making chunks of records from an input that has buffers. */
struct chunk_input input_chunks(const struct input *input);

/* Frees the buffers of BAM and SAM. Call it when all blocks are taken back; this may be in the parallel region. */
void input_end(struct input *input);

/* Opens the inputs of the request, reads their headers, and joins the headers. -1: failed, and the error is recorded in
 * the latch; call inputs_close() anyway. */
int inputs_open(struct inputs *inputs, const struct inputs_options *options);

/* The two steps of inputs_open(), for a caller that opens each input itself, and merges the headers, between them. The
 * first makes room for the inputs of the request, of which none is open. -1: failed, and the error is recorded in the
 * latch. The second adds up what the inputs need. */
int inputs_new(struct inputs *inputs, const struct inputs_options *options);
void inputs_complete(struct inputs *inputs, const struct inputs_options *options);

/* Adds the input's header to the first one's. -1: failed, and the error is recorded in the latch. */
int inputs_join(struct inputs *inputs, struct input *input, struct latch *latch);

/* Counts one more header. */
void inputs_count_header(struct inputs *inputs, sam_hdr_t *sam);

/* A producer reads `front` and gives `stream`. This makes the inputs of its consumer: one input with the header `sam`,
 * which the producer has as well. Sizes and memory are those of `front`. -1: out of memory. */
int inputs_of_stream(struct inputs *inputs, const struct inputs *front, struct record_stream stream, sam_hdr_t *sam);

/* Returns n: the output format must be able to hold the full length of the first n references of the output. They are
 * those of SAM and CRAM inputs, whose records may lie beyond 2^31-1. References of BAM inputs are not included, except
 * in a sort: like samtools, it refuses such a reference in the list of BAM. */
int inputs_held(const struct inputs *inputs, sam_hdr_t *sam, bool sorts);

/* Frees everything except the headers. Call it when everything is read; close them anyway. Call this function and the
 * next one after the parallel region, because late tasks still look at the sources. */
void inputs_end(struct inputs *inputs);
void inputs_close(struct inputs *inputs);

#endif
