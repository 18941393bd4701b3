/* SPDX-License-Identifier: MIT */
/* Records out through htslib: CRAM, FASTQ, FASTA, and SAM as far as tasks do not make it (record_sink_form()). */
#ifndef HTS_WRITER_H
#define HTS_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <htslib/sam.h>
#include "bam/bam_record.h"
#include "base/memory_shares.h"
#include "write/record_out.h"

struct latch;
struct hts_writer;

struct hts_writer_options {
    int fd;                      /* stays the caller's */
    const char *path;            /* for messages */
    const htsFormat *format;     /* with its options (--output-fmt-option) */
    int level;                   /* -1: the format's own default */
    int n_threads;
    struct htslib_room room;     /* memory for it */
    const char *reference;       /* for CRAM; NULL: as htslib finds it */
    bool indexed;                /* hts_writer_header() will get an index */
    bool bai;                    /* of this format: of SAM, which may also have CSI */
    uint32_t n_batches;          /* of records that tasks make ready at a time; at least 1 */
    struct latch *latch;
    struct stats *stats;         /* may be NULL */
};

/* Checks and prepares all that does not need the header. NULL: failed, and the error is recorded in the latch. */
struct hts_writer *hts_writer_open(const struct hts_writer_options *options);

/* Writes the header, which must live as long as the writer. index: the file to write an index to; NULL: none. beyond:
 * see struct cram_settings_case. -1: failed, and the error is recorded in the latch. */
int hts_writer_header(struct hts_writer *writer, sam_hdr_t *header, const char *index, bool beyond);

/* What is done with records: to be set before the first put, but for what the header says. */
struct record_out_options *hts_writer_how(struct hts_writer *writer);

/* Puts n checked records, in order. Tasks make batches of them ready, and the main thread gives these to htslib.
 * Records must stay unchanged until hts_writer_passed() is true for the mark behind them. -1: failed, and the error is
 * recorded in the latch. */
int hts_writer_put(struct hts_writer *writer, const struct record_ref *records, size_t n);

/* As bgzf_sink_mark() and so on (bgzf_sink.h). */
uint64_t hts_writer_mark(const struct hts_writer *writer);
bool hts_writer_passed(const struct hts_writer *writer, uint64_t mark);
bool hts_writer_will_pass(const struct hts_writer *writer, uint64_t mark);
bool hts_writer_help(struct hts_writer *writer);

/* Writes what is left, and the index. Checks that every record has come out if the output is CRAM. -1: failed, and the
 * error is recorded in the latch. */
int hts_writer_finish(struct hts_writer *writer);
void hts_writer_close(struct hts_writer *writer);

/* Bytes of memory of so many batches. */
size_t hts_writer_batches_memory(uint32_t n_batches);

/* Sum of record_checksum() over the records put. */
uint64_t hts_writer_checksum(const struct hts_writer *writer);

#endif
