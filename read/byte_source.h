/* SPDX-License-Identifier: MIT */
/* The input as a stream of BAM bytes, whatever it is: BAM files and pipes as
 * they are (BGZF or raw), URLs through htslib's hFILE; and turned into raw BAM records,
 * SAM by tasks of ours, CRAM and all else by htslib. */
#ifndef BYTE_SOURCE_H
#define BYTE_SOURCE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <htslib/sam.h>
#include "plan/memory_plan.h"

struct latch;
struct stats;
struct byte_source;

struct byte_source_options {
    const char *path;            /* "-": standard input; it and what is below stay the caller's */
    int n_threads;               /* of the team, or for htslib's own, where it decodes */
    struct htslib_room htslib;   /* memory for formats that it decodes */
    struct sam_use sam;          /* memory for SAM, see memory_plan_sam() */
    uint64_t header_max;         /* bytes of a SAM header at most */
    const char *reference;       /* FASTA for CRAM; NULL: as htslib finds it */
    const hts_opt *format_options;   /* --input-fmt-option; NULL: none */
    bool far;                    /* as in hts_reader_options */
    struct latch *latch;
    struct stats *stats;         /* may be NULL */
};

enum byte_framing {
    BYTES_BGZF,                  /* a BAM file: BGZF blocks, the header first */
    BYTES_RAW_BAM,               /* the same without compression */
    BYTES_RECORDS,               /* BAM records only; the header is byte_source_header() */
    BYTES_TEXT,                  /* SAM without compression: only inside of a source of records */
};

/* How its bytes can be had. */
enum byte_access {
    BYTES_ANYWHERE,              /* a regular file: byte_source_read_at(), by any thread */
    BYTES_FROM_PIPE,             /* byte_source_ready(), byte_source_read(), by one thread, whichever */
    BYTES_IN_TURN,               /* byte_source_read(), by the thread that opened it: htslib does it */
    BYTES_LENT,                  /* byte_source_borrow(), by the master: tasks put them somewhere */
};

/* The path as messages name it. */
const char *byte_source_name(const char *path);

/* NULL: told to the latch. */
struct byte_source *byte_source_open(const struct byte_source_options *options);
void byte_source_close(struct byte_source *source);

enum byte_framing byte_source_framing(const struct byte_source *source);
enum byte_access byte_source_access(const struct byte_source *source);

/* The header of a source of BYTES_RECORDS, the caller's from then on. */
sam_hdr_t *byte_source_header(struct byte_source *source);

/* Bytes of memory that decoding takes, about; 0 for BAM. */
size_t byte_source_memory(const struct byte_source *source);

/* Bytes of the whole input as it is read; 0: not known (a pipe, SAM, CRAM). */
uint64_t byte_source_size(const struct byte_source *source);

/* Bytes that are read of a file, uncompressed text too; 0: nobody knows, or htslib reads it. */
uint64_t byte_source_length(const struct byte_source *source);

/* As read(): up to n bytes, at least one but at the end. -1: told to the latch. */
ssize_t byte_source_read(struct byte_source *source, void *buffer, size_t n);

/* Whether that would return at once; waits for it as long as timeout, in ms. Not known of URLs: true. */
bool byte_source_ready(const struct byte_source *source, int timeout);

/* Bytes that lie where whoever made them has put them. */
struct byte_loan {
    const uint8_t *data;
    size_t size;
    atomic_int *users;           /* the bytes stay while it is above 0, also behind the next loan */
};

/* Does some work, for who would have to wait otherwise; 0: there is none. */
typedef int byte_source_help_fn(void *arg);

/* Waits, helping, for the next bytes of BYTES_LENT, and gives back those before that have no
 * users. 1: they are there; 0: the end; -1: told to the latch. */
int byte_source_borrow(struct byte_source *source, struct byte_loan *loan, byte_source_help_fn *help, void *arg);

/* The n bytes at an offset from where the input began, fewer only at its end, which is
 * not before where it was when the file was opened. -1: told to the latch. */
ssize_t byte_source_read_at(const struct byte_source *source, void *buffer, size_t n, uint64_t offset);

/* Those bytes will be read soon. */
void byte_source_expect(const struct byte_source *source, uint64_t offset, size_t n);

#endif
