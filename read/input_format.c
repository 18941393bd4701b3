/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/engine.h"
#include "base/latch.h"
#include "base/task_ring.h"
#include "codec/bgzf_block.h"
#include "hts/cram_input.h"
#include "hts/cram_reader.h"
#include "read/file_extents.h"
#include "read/first_bytes.h"
#include "read/header_read.h"
#include "hts/hts_file.h"
#include "hts/hts_reader.h"
#include "read/input_format.h"
#include "read/input_part.h"
#include "read/read_ahead.h"
#include "read/record_filter.h"
#include "read/sam_reader.h"

/* Bytes per read of an input that will be suspended, and the number of such reads. Most headers are smaller. */
enum { HEADER_PIECE = 64 << 10, HEADER_PIECES = READ_AHEAD_PIECES_LEAST };

bool input_format_may_suspend(const struct input_format *in)
{
    return in->opt.waits && !in->reader && input_file_access(&in->file) == INPUT_ANYWHERE;
}

const struct engine *input_format_engine(const struct input_format *in)
{
    return input_format_may_suspend(in) ? &in->uncounted : in->opt.engine;
}

static int open_ahead(struct input_format *in, size_t piece_size, uint32_t n_pieces)
{
    bool suspends = input_format_may_suspend(in);
    in->ahead = read_ahead_open(&in->file, suspends ? HEADER_PIECE : piece_size,
                                suspends ? HEADER_PIECES : n_pieces, input_format_engine(in)->clocks);
    if (!in->ahead)
        return latch_fail(in->opt.engine->latch, "%s: out of memory for read buffers; try fewer threads (-@)",
                          in->opt.path);
    in->window = read_ahead_window(in->ahead);
    return 0;
}

/* Returns the file that htslib will read. The records of a CRAM are counted on the way. NULL: errno says why. */
static hFILE *file_for_htslib(struct input_format *in, bool is_cram)
{
    hFILE *file = in->file.hfile;
    const hts_opt *options = in->opt.format_options;
    bool counts = is_cram && !record_filter_of(options) && !in->opt.by_region;
    bool compares = !hts_file_number(options, CRAM_OPT_IGNORE_MD5, 0);
    if (counts && !(in->cram = cram_input_open(&in->file, compares)) && errno == ENOMEM)
        return NULL;
    if (!in->cram || in->file.begin >= 0) {
        in->file.hfile = NULL;
        return file;
    }
    int end = cram_input_end(in->cram);
    if (end >= 0 && !(file = hdopen(end, "r")))
        close(end);
    return end < 0 ? NULL : file;
}

/* Opens the reader that decodes CRAM in tasks, besides the htslib reader. If that is not possible, starts threads for
 * the htslib reader. */
static int open_cram(struct input_format *in)
{
    if (cram_reader_open(&in->containers, &in->file, &in->opt, in->cram, in->reader, in->header) < 0)
        return -1;
    return in->containers ? 0 : hts_reader_start_threads(in->reader, in->opt.engine->n_threads);
}

static int open_htslib(struct input_format *in, const htsFormat *format)
{
    hFILE *file = file_for_htslib(in, format->format == cram);
    if (!file)
        return input_file_failed(&in->file);
    in->framing = INPUT_RECORDS;
    bool by_containers = cram_reader_may(&in->file, &in->opt, format, in->cram);
    int n_threads = by_containers ? 1 : in->opt.engine->n_threads;
    in->reader = hts_reader_open(file, &in->opt, n_threads, in->cram, &in->header);
    if (!in->reader || (by_containers && open_cram(in) < 0))
        return -1;
    in->memory = hts_reader_memory(in->reader) + cram_reader_memory(in->containers);
    in->stream = in->containers ? cram_reader_stream(in->containers) : hts_reader_stream(in->reader);
    return 0;
}

/* Opens the parser of SAM. Plain text is parsed where it was read, so the memory that the chunks have for text is used
 * for pieces. read_ahead_memory() counts more than a piece if there is one. */
static int open_sam(struct input_format *in)
{
    struct input_options how = in->opt;
    bool packed = in->kind == INPUT_SAM_PACKED;
    size_t piece = how.chunks.piece_size, text = packed ? 0 : how.chunks.n_chunks * how.chunks.chunk_size;
    how.engine = input_format_engine(in);
    in->framing = INPUT_RECORDS;
    if (open_ahead(in, piece, how.n_pieces + (uint32_t)(text / read_ahead_memory(piece, 1))) < 0)
        return -1;
    if (!(in->sam = sam_reader_open(in->window, packed, &how, &in->header)))
        return -1;
    in->stream = sam_reader_stream(in->sam);
    in->window = NULL;
    return 0;
}

bool input_format_is_sam(const struct input_format *in)
{
    return in->kind == INPUT_SAM_PLAIN || in->kind == INPUT_SAM_PACKED;
}

static int open_buffers(struct input_format *in)
{
    if (input_format_is_sam(in))
        return open_sam(in);
    in->framing = in->kind == INPUT_BAM_PLAIN ? INPUT_RAW_BAM : INPUT_BGZF;
    in->filter = record_filter_of(in->opt.format_options);
    return open_ahead(in, in->opt.piece_size, in->opt.n_pieces);
}

enum input_kind input_format_kind(const htsFormat *format)
{
    /* htslib looks into the first block only, which may be empty or too short. If it does not recognise the data there,
     * header_read() decides. After an empty member of plain gzip, SAM is expected. */
    bool blocks = format->compression == bgzf, plain = format->compression == no_compression;
    bool is_bam = format->format == bam || (blocks && format->category != sequence_data);
    if (format->format == empty_format && plain)
        return INPUT_EMPTY;
    if (!blocks && !plain && format->compression != gzip)
        return INPUT_OF_HTSLIB;
    if (format->format == sam || (format->format == empty_format && !blocks))
        return plain ? INPUT_SAM_PLAIN : INPUT_SAM_PACKED;
    if (!is_bam)
        return INPUT_OF_HTSLIB;
    return plain ? INPUT_BAM_PLAIN : blocks ? INPUT_BAM_BLOCKS : INPUT_BAM_GZIP;
}

bool input_format_has_parts(enum input_kind kind, const hts_opt *options)
{
    return (kind == INPUT_BAM_BLOCKS || kind == INPUT_SAM_PLAIN) && !record_filter_of(options);
}

/* Refuses a file whose compression cannot be read, and names the compression. htslib detects the contents of some of
 * these files, and ends the program if it is asked to read text from them. It may also report a failure to read if it
 * cannot decompress the data. */
static int refuse_packing(const struct input_format *in)
{
    uint8_t first[FIRST_BYTES];
    ssize_t n = hpeek(in->file.hfile, first, sizeof first);
    if (n < 0)
        return input_file_failed(&in->file);
    const struct packing *packing = first_bytes_packing(first, (size_t)n);
    if (!packing)
        return 0;
    return latch_fail(in->opt.engine->latch, "%s is compressed by %s. Only gzip and BGZF are read. Nothing was "
                      "written; decompress it first: %s", in->opt.path, packing->name, packing->undo);
}

/* Returns whether the compression can be read. Later versions of htslib may detect other kinds. */
static bool is_readable(const htsFormat *format)
{
    return format->compression == no_compression || format->compression == gzip || format->compression == bgzf
        || (format->compression == custom && format->format == cram);
}

/* Reads the header of a file that is clearly BAM, and leaves the file suspended. 0: the kind of the input must still be
 * detected. -1: failed, and the error is recorded in the latch. */
static int open_plain(struct input_format *in)
{
    if (!in->opt.known || !input_format_may_suspend(in))
        return 0;
    struct bgzf_codec *codec = bgzf_codec_of(in->opt.codecs, task_thread(), 0);
    int found = known_headers_read(in->opt.known, &in->known, &in->file, codec, in->opt.header_max);
    if (found <= 0)
        return found;
    in->kind = INPUT_BAM_BLOCKS;
    in->framing = INPUT_BGZF;
    in->filter = record_filter_of(in->opt.format_options);
    input_file_advise(&in->file);
    return 1;
}

static int open_format(struct input_format *in)
{
    htsFormat format;
    int found = open_plain(in);
    if (found != 0)
        return found < 0 ? -1 : 0;
    if (refuse_packing(in) < 0)
        return -1;
    if (hts_detect_format(in->file.hfile, &format) < 0)
        return input_file_failed(&in->file);
    if (!is_readable(&format))
        return latch_fail(in->opt.engine->latch, "%s is compressed in a way that is not read. Only gzip and BGZF are. "
                          "Nothing was written; decompress it first", in->opt.path);
    enum input_kind kind = in->kind = input_format_kind(&format);
    if (kind == INPUT_EMPTY)
        return latch_fail(in->opt.engine->latch, "%s is empty: there is not even a header", in->opt.path);
    bool in_file = input_file_access(&in->file) == INPUT_ANYWHERE;
    if (in->opt.by_region && (kind == INPUT_SAM_PACKED || (kind == INPUT_BAM_BLOCKS && !in_file)))
        kind = in->kind = INPUT_OF_HTSLIB;
    if (kind == INPUT_OF_HTSLIB)
        return open_htslib(in, &format);
    input_file_advise(&in->file);
    bool has_parts = input_format_has_parts(kind, in->opt.format_options) && in_file;
    if (in->opt.part && !has_parts)
        return latch_fail(in->opt.engine->latch, "%s: only a part of BAM in BGZF or of SAM text can be read",
                          in->opt.path);
    if (in->opt.part)
        input_file_limit(&in->file, in->opt.part->begin, in->opt.part->end);
    return open_buffers(in);
}

struct input_format *input_format_open(const struct input_options *options)
{
    struct input_format *in = calloc(1, sizeof *in);
    if (!in) {
        latch_fail(options->engine->latch, "out of memory");
        return NULL;
    }
    int opened = input_file_open(&in->file, options->path, options->engine->latch);
    in->opt = *options;
    in->opt.given = options->path;
    in->uncounted = *options->engine;
    in->uncounted.clocks = NULL;
    in->opt.path = in->file.path;
    if (opened == 0 && open_format(in) == 0) {
        in->length = in->file.end > 0 && !in->reader ? (uint64_t)in->file.end : 0;
        if (in->opt.part)
            in->length = in->opt.part->end - in->opt.part->begin;
        in->size = in->framing == INPUT_RECORDS || in->filter ? 0 : in->length;
        return in;
    }
    input_format_close(in);
    return NULL;
}

int input_format_choose(struct input_format *in, uint64_t header, const struct ref_regions *regions,
                        const char *index)
{
    if (in->reader)
        return hts_reader_choose(in->reader, regions, index);
    if (in->kind != INPUT_BAM_BLOCKS)
        return latch_fail(in->opt.engine->latch, "%s: regions can be read only from CRAM, and from BAM and SAM in "
                          "BGZF. Nothing was written", in->opt.path);
    in->file.extents = in->extents = file_extents_open(&in->file, in->opt.given, index, header, regions);
    in->memory = file_extents_memory(in->extents, in->opt.engine->n_threads);
    return in->extents ? 0 : -1;
}

void input_format_suspend(struct input_format *in)
{
    sam_reader_close(in->sam);
    read_ahead_close(in->ahead);
    if (in->opt.shuts)
        input_file_shut(&in->file, in->opt.given);
    in->sam = NULL;
    in->ahead = NULL;
    in->window = NULL;
    in->stream = (struct record_stream){.producer = NULL};
}

int input_format_resume(struct input_format *in, sam_hdr_t *header)
{
    in->opt.waits = false;
    if (in->window || in->stream.producer)
        return 0;
    in->header = header;
    int status = open_buffers(in);
    in->header = NULL;                           /* the header stays the caller's */
    return status;
}

void input_format_end(struct input_format *in)
{
    if (in->sam)
        sam_reader_end(in->sam);
    if (in->ahead)
        read_ahead_end(in->ahead);
}

void input_format_close(struct input_format *in)
{
    if (!in)
        return;
    input_format_suspend(in);
    cram_reader_close(in->containers);
    hts_reader_close(in->reader);
    cram_input_close(in->cram);
    input_file_close(&in->file);
    file_extents_free(in->extents);
    sam_hdr_destroy(in->header);
    bam_header_free(&in->known);
    free(in);
}

sam_hdr_t *input_format_header(struct input_format *in)
{
    sam_hdr_t *header = in->header;
    in->header = NULL;
    return header;
}
