/* SPDX-License-Identifier: MIT */
/* The inputs of a sort. All are open from the start, so that a broken header is found before any record is read, and
 * what happens to their names later does not matter. But only the one that is read has buffers, and those that are no
 * files. Where there are more inputs than files may be open, files are opened for each piece that is read of them. */
#ifndef INPUT_H
#define INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "bam/bam_header.h"
#include "bam/record_remap.h"
#include "bam/ref_regions.h"
#include "base/memory_shares.h"
#include "read/record_stream.h"

struct bgzf_codec;
struct bgzf_source;
struct chunk_input;
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
    struct input_format *format; /* NULL: a producer in front has it */
    struct bgzf_source *source;  /* of the file's blocks; NULL: there are no buffers yet, or it has none */
    struct raw_records *raw;     /* of bytes that are in no blocks; likewise */
    struct record_stream stream; /* of what the next one makes, the format, or a producer in front (inputs_of_stream()).
                                  * No producer: the source has the records */
    struct passed_records *passed;   /* if records are left out or changed, or names lack their NUL; else NULL */
    struct bam_header header;
    struct record_remap remap;   /* what its records need, as IDs that its programs got, until its turn comes */
    const struct input_part *part;   /* NULL: the whole input */
    const struct merge_request *merge; /* `passed` gives the records as a merge wants them; set it before input_begin().
                                      * NULL: no merge reads them */
    const struct look_request *looks; /* likewise: `passed` looks at the records. NULL: it does not */
    bool has_keys;               /* the stream's slices have keys, by coordinate */
    bool is_collated;            /* it has what another sort has collated, with the same clocks: counted there */
    uint32_t n_slots;            /* of the source; of who takes the stream */
    int n_sharing;               /* this and the next: see bgzf_source_options */
    struct bgzf_codec **codecs;
    bool by_region;              /* only records in `regions` are read */
    struct ref_regions regions;  /* of its own references */
};

struct inputs {
    struct input *each;     /* in the order in which they are read */
    size_t n;
    struct bgzf_codec **codecs;  /* n_codecs: of each thread, for all of them */
    int n_codecs;
    int n_converted;             /* how many are not BAM */
    int n_threads;               /* how many may start one more thread of htslib's when they are read */
    size_t memory;               /* bytes that htslib takes for decoding ... */
    size_t overhead;             /* ... and what is named of files takes, where only regions are read */
    size_t n_chunked;            /* of memory_use: how many are SAM, of those that have buffers at one time, and of how
                                  * many, at one time, records are read as they pass */
    bool parsed;                 /* htslib has parsed one of the headers */
    size_t header_size;          /* bytes of the headers as text */
    size_t n_references;         /* @SQ lines in all of them */
    uint64_t size;               /* sum of those of the formats */
    bool size_known;             /* of each of them */
    uint64_t length;             /* the same; 0: one of them is not known */
};

struct inputs_options {
    const struct input_request *request;
    const char *other_fasta;     /* that is read beside them; NULL: none. It must be there */
    struct memory_rings rings;   /* of a source, and what SAM and other formats may take; the threads */
    uint64_t header_max;         /* bytes of a header */
    const struct input_part *part;   /* of each input; NULL: all inputs are whole */
    bool far, waits, shuts, by_region;        /* as in input_options */
    bool keeps_broken;           /* as in header_read() */
    struct known_headers *known; /* as in header_read(); inputs_open() sets this and the next */
    struct bgzf_codec **codecs;  /* as in bgzf_source_options */
    /* Takes the header of an input that was opened. -1: failed, and the error is recorded in the latch. With it all
     * inputs are read at once, by a merge. NULL: they are read in turn, and the header is added to the first one's. */
    int (*join)(void *arg, struct input *input);
    void *arg;
    struct latch *latch;
    struct clocks *clocks;       /* may be NULL */
};

/* Opens one input, and reads its header unless a part brings it. NULL: all of it. -1: failed, and the error is recorded
 * in the latch; close it anyway. */
int input_open(struct input *input, const char *path, const struct input_part *part,
                    const struct inputs_options *options);
void input_close(struct input *input);

/* Of an input that is suspended, or that htslib reads: only records that overlap the regions, which are united, will be
 * read. It takes the list over, also if it fails. index: as in input_format_choose(). -1: failed, and the error is
 * recorded in the latch. */
int input_choose(struct input *input, struct ref_regions *regions, const char *index);

/* Its turn has come: it gets the buffers that it lacks, and what follows the header is read. -1: failed, and the error
 * is recorded in the latch. */
int input_begin(struct input *input);

/* The name of the next record lacks its NUL, for which another source makes room: in->passed has it from now on. The
 * source that there is was given back the record. n_before records and so many bytes of the input came before it.
 * -1: failed, and the error is recorded in the latch. */
int input_pass_rest(struct input *input, uint64_t n_before, uint64_t bytes);

/* The source of chunks of records: an input that has buffers. */
struct chunk_input input_chunks(const struct input *input);

/* Frees the buffers of BAM and SAM. Call it when all blocks are taken back; also in the parallel region. */
void input_end(struct input *input);

/* Opens the inputs of the request, reads their headers, and joins the headers. -1: failed, and the error is recorded in
 * the latch; call inputs_close() anyway. */
int inputs_open(struct inputs *inputs, const struct inputs_options *options);

/* Adds the input's header to the first one's. A part of an input keeps its PG tags. -1: failed, and the error is
 * recorded in the latch. */
int inputs_join(struct inputs *inputs, struct input *input, struct latch *latch);

/* Counts a header more. */
void inputs_count_header(struct inputs *inputs, sam_hdr_t *sam);

/* A producer reads `front` and gives `stream`: makes the inputs of its consumer, which is one with this header. It
 * is also that of the producer in front. Sizes and memory stay those of `front`. -1: out of memory. */
int inputs_of_stream(struct inputs *inputs, const struct inputs *front, struct record_stream stream, sam_hdr_t *sam);

/* How many references of the output, the first ones, its format must hold in full: those of SAM and CRAM, where records
 * may lie behind 2^31-1. Of BAM none, but for a sort, which as in samtools refuses such a one in the list of BAM. */
int inputs_held(const struct inputs *inputs, sam_hdr_t *sam, bool sorts);

/* Frees everything except the headers. Call it when everything is read; close them anyway. Call this and the next
 * after the parallel region, because late tasks still look at the sources. */
void inputs_end(struct inputs *inputs);
void inputs_close(struct inputs *inputs);

#endif
