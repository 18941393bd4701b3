/* SPDX-License-Identifier: MIT */
/* An input of any format as a stream of BAM bytes, or of records. BAM is given unchanged. Our tasks parse SAM
 * (sam_reader). htslib decodes all other formats (hts_reader); it decodes CRAM in our tasks if possible
 * (cram_reader). */
#ifndef INPUT_FORMAT_H
#define INPUT_FORMAT_H

#include <htslib/sam.h>
#include "bam/bam_header.h"
#include "base/engine.h"
#include "base/record_stream.h"
#include "read/input_file.h"
#include "read/input_options.h"

struct byte_window;
struct file_extents;
struct ref_regions;

enum input_framing {
    INPUT_BGZF,                  /* a BAM file: BGZF blocks or plain gzip, the header first */
    INPUT_RAW_BAM,               /* a BAM file without compression */
    INPUT_RECORDS,               /* BAM records only; input_format_header() gives the header */
};

/* The format of an input, which decides its reader. */
enum input_kind {
    INPUT_EMPTY,                 /* the file does not even have a header */
    INPUT_BAM_BLOCKS, INPUT_BAM_GZIP, INPUT_BAM_PLAIN,   /* BAM in BGZF, in plain gzip, or without compression */
    INPUT_SAM_PLAIN, INPUT_SAM_PACKED,   /* SAM as plain text, or in BGZF or plain gzip */
    INPUT_OF_HTSLIB,             /* all other formats, which htslib decodes */
};

struct input_format {
    enum input_framing framing;
    enum input_kind kind;
    struct byte_window *window;  /* the bytes, in order; valid until the input is closed. NULL: the input is suspended,
                                  * or ... */
    struct record_stream stream; /* ... its records come in slices, through this stream. No producer: the input is
                                  * suspended, or its records do not come in slices */
    size_t memory;               /* approximate bytes of memory that htslib takes for decoding */
    const char *filter;          /* for BAM: only records that pass this filter are wanted; the consumer applies it.
                                  * NULL: all records are wanted */
    uint64_t size;               /* size of a BAM file in bytes; 0: not known (a pipe, a URL), or the input is not BAM,
                                  * or it has a filter */
    struct bam_header known;     /* the input's header, if known_headers_read() found it: the caller takes it. Else
                                  * zeros */
    uint64_t length;             /* bytes of a file that are read, also of SAM text; 0: not known, or htslib reads the
                                  * file */
    sam_hdr_t *header;           /* this and all fields below are the module's own */
    struct input_options opt;
    struct engine uncounted;     /* the engine without its clocks */
    struct input_file file;
    struct read_ahead *ahead;    /* reads the file ahead; NULL: htslib reads the file, or the input is suspended */
    struct hts_reader *reader;   /* NULL: the input is BAM or SAM */
    struct cram_input *cram;     /* counts the records that the reader should find; NULL: the input is not CRAM, or its
                                  * records cannot be counted */
    struct cram_reader *containers;  /* reads instead of the reader; NULL: the input is not CRAM, or the reader reads
                                  * it */
    struct sam_reader *sam;      /* NULL: the input is not SAM */
    struct file_extents *extents;    /* the extents of BAM that are read by region; NULL: the complete file is read */
};

/* Returns the kind for the format that htslib has detected from the first bytes. */
enum input_kind input_format_kind(const htsFormat *format);

/* Returns whether several processes can each read a part of a file of that kind. options: those of --input-fmt-option,
 * or NULL. */
bool input_format_has_parts(enum input_kind kind, const hts_opt *options);

/* Opens the input, reads its header unless it is BAM, and starts to read ahead. NULL: failed, and the error is
 * recorded in the latch. */
struct input_format *input_format_open(const struct input_options *options);
void input_format_close(struct input_format *input);

/* Returns whether the input can be read again from its beginning: it waits, and is BAM or SAM in a file, but not a part
 * of a file. */
bool input_format_may_suspend(const struct input_format *input);

/* Returns the engine for reading the input. Bytes that are read twice are counted once, so the engine of an input that
 * may be suspended has no clocks. */
const struct engine *input_format_engine(const struct input_format *input);

/* Reads only the records that overlap these regions of its references, and maybe more: of BAM in a file, complete
 * blocks and the records between the regions. header: bytes of the header of BAM in the uncompressed stream. index: the
 * index of the file; NULL: the one that htslib finds. Call it for an input that was opened by_region. -1: failed, and
 * the error is recorded in the latch. */
int input_format_choose(struct input_format *input, uint64_t header, const struct ref_regions *regions,
                        const char *index);

/* Frees everything except the file. */
void input_format_suspend(struct input_format *input);

/* Call it when the input's turn has come. If it is suspended, BAM is read from its beginning, and SAM from the end of
 * `header`, which is its header. -1: failed, and the error is recorded in the latch. */
int input_format_resume(struct input_format *input, sam_hdr_t *header);

bool input_format_is_sam(const struct input_format *input);

/* Frees the buffers of BAM and SAM. Call it when everything has been read and used. Tasks may still look at rings:
 * close it later. */
void input_format_end(struct input_format *input);

/* Returns the header of INPUT_RECORDS; the caller owns it from then on. NULL at the second call, and for BAM. */
sam_hdr_t *input_format_header(struct input_format *input);

#endif
