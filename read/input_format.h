/* SPDX-License-Identifier: MIT */
/* An input of any format as a stream of BAM bytes, or of records. BAM is given as it is. SAM is parsed by our tasks
 * (sam_reader), and all other formats are decoded by htslib (hts_reader), CRAM in our tasks where it can be
 * (cram_reader). */
#ifndef INPUT_FORMAT_H
#define INPUT_FORMAT_H

#include <htslib/sam.h>
#include "bam/bam_header.h"
#include "read/input_file.h"
#include "read/input_options.h"
#include "read/record_stream.h"

struct byte_window;
struct file_extents;
struct ref_regions;

enum input_framing {
    INPUT_BGZF,                  /* a BAM file: BGZF blocks or plain gzip, the header first */
    INPUT_RAW_BAM,               /* the same without compression */
    INPUT_RECORDS,               /* BAM records only; the header is input_format_header() */
};

/* The format of an input, which decides its reader. */
enum input_kind {
    INPUT_EMPTY,                 /* not even a header */
    INPUT_BAM_BLOCKS, INPUT_BAM_GZIP, INPUT_BAM_PLAIN,   /* BAM in BGZF, in plain gzip, or without compression */
    INPUT_SAM_PLAIN, INPUT_SAM_PACKED,   /* text, or that in BGZF or plain gzip */
    INPUT_OF_HTSLIB,             /* all else, which htslib decodes */
};

struct input_format {
    enum input_framing framing;
    enum input_kind kind;
    struct byte_window *window;  /* the bytes, in order; valid until the input is closed. NULL: it is suspended, or
                                  * ... */
    struct record_stream stream; /* ... its records come in slices. No producer: it is suspended, or they do not */
    size_t memory;               /* bytes that htslib takes for decoding, about */
    const char *filter;          /* of BAM: only records that pass are wanted, which is left to who reads them; NULL:
                                  * all are */
    uint64_t size;               /* of a BAM file in bytes; 0: not known (a pipe, a URL), or the input is not BAM, or
                                  * it has a filter */
    struct bam_header known;     /* its header, if known_headers_read() found it: the caller takes it. Else zeros */
    uint64_t length;             /* bytes that are read of a file, SAM text too; 0: not known, or htslib reads it */
    sam_hdr_t *header;           /* this and all below are the module's own */
    struct input_options opt;
    struct input_file file;
    struct read_ahead *ahead;    /* reads the reader's records, or else the file */
    struct hts_reader *reader;   /* NULL: the input is BAM or SAM */
    struct cram_input *cram;     /* counts what the reader should find; NULL: it is no CRAM, or cannot be counted */
    struct cram_reader *containers;  /* reads in the reader's place; NULL: it is no CRAM, or the reader reads */
    struct sam_reader *sam;      /* NULL: the input is not SAM */
    struct file_extents *extents;    /* what is read of BAM by region; NULL: all */
};

/* Decides it by the first bytes, as htslib has detected them. */
enum input_kind input_format_kind(const htsFormat *format);

/* Whether several processes can read a part each of a file of that kind. options: of --input-fmt-option, or NULL. */
bool input_format_has_parts(enum input_kind kind, const hts_opt *options);

/* Opens the input, reads its header unless it is BAM, and starts to read ahead. NULL: failed, and the error is
 * recorded in the latch. */
struct input_format *input_format_open(const struct input_options *options);
void input_format_close(struct input_format *input);

/* Whether it can be read from its beginning again: it waits, and is BAM or SAM in a file, not a part of one. */
bool input_format_may_suspend(const struct input_format *input);

/* Only what overlaps these regions of its references will be read, and maybe more: of BAM in a file, whole blocks and
 * what lies between the regions. header: bytes of the header of BAM in the uncompressed stream. index: its index; NULL:
 * as htslib finds it. For one that was opened by_region. -1: failed, and the error is recorded in the latch. */
int input_format_choose(struct input_format *input, uint64_t header, const struct ref_regions *regions,
                        const char *index);

/* Frees everything except the file. */
void input_format_suspend(struct input_format *input);

/* Its turn has come. If it is suspended, BAM is read from its beginning, and SAM from the end of its header, which is
 * this one. -1: failed, and the error is recorded in the latch. */
int input_format_resume(struct input_format *input, sam_hdr_t *header);

bool input_format_is_sam(const struct input_format *input);

/* Frees the buffers of BAM and SAM. Call it when all has been read and used. Tasks may still look at rings: close it
 * later. */
void input_format_end(struct input_format *input);

/* The header of INPUT_RECORDS, which belongs to the caller from then on; NULL the second time, and for BAM. */
sam_hdr_t *input_format_header(struct input_format *input);

#endif
