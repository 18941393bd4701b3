/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <htslib/bgzf.h>
#include "base/affinity.h"
#include "hts/bam1_bytes.h"
#include "bam/header_text.h"
#include "bam/plain_header.h"
#include "hts/ref_lookup.h"
#include "hts/ref_sums.h"
#include "bam/ref_regions.h"
#include "base/byte_buffer.h"
#include "hts/cram_input.h"
#include "read/first_bytes.h"
#include "hts/hts_reader.h"
#include "read/record_slice.h"
#include "hts/hts_file.h"
#include "hts/htslib_version.h"
#include "base/engine.h"
#include "base/latch.h"
#include "base/clocks.h"
#include "base/task_ring.h"

enum { COUNT_EVERY = 4096 };     /* a number of records; a container has about 10,000 */

struct hts_reader {
    struct input_options opt;
    struct cram_input *cram;
    struct ref_sums *sums;       /* checksums of the FASTA for CRAM; NULL: there is nothing to compare */
    struct htslib_use use;
    samFile *sam;
    htsThreadPool threads;       /* threads of `sam` */
    sam_hdr_t *header;           /* the header that records are parsed against */
    bam1_t *record;
    bool by_region;              /* only the records that `regions` finds are read; if `regions` is NULL, none */
    hts_itr_t *regions;
    hts_idx_t *index;            /* index of a CRAM whose references are read one by one; else NULL */
    const struct ref_regions *wanted;    /* if `index` is set: the wanted regions, owned by the caller; next_wanted: the
                                  * first of them that is not begun */
    size_t next_wanted;
    struct record_slice made;    /* the slice that is taken next; usually it has slice_size bytes */
    size_t slice_size;
    uint64_t n;                  /* number of records read */
    int at_end;                  /* htslib must not be called again at the end: with threads it would wait for ever */
};

static int set_up(struct hts_reader *r, int n_threads)
{
    enum htsExactFormat format = hts_get_format(r->sam)->format;
    /* Text is read without threads, so that this thread sees errno. */
    r->use = hts_file_use(format == cram, false, &r->opt.htslib, format == cram ? n_threads : 1);
    struct hts_file_options how = {
        .path = r->opt.path,
        .format_options = r->opt.format_options,
        .reference = r->opt.reference,
        .n_threads = r->use.n_threads,
        .latch = r->opt.engine->latch,
    };
    return hts_file_set_up(r->sam, &r->threads, &how);
}

static int regions_fail(const struct hts_reader *r)
{
    return latch_fail(r->opt.engine->latch, "%s: its regions cannot be read: its index is damaged, or memory ran out. "
                      "Nothing was written; samtools index makes a new one", r->opt.path);
}

/* Chooses the records from the first region to the last one, which are on the same reference. 1: done; 0: there is
 * nothing; -1: failed, and the error is recorded in the latch. */
static int query(struct hts_reader *r, const hts_idx_t *index, const struct region *first, const struct region *last)
{
    bool placed = first->ref != REGION_UNPLACED;
    errno = 0;
    r->regions = placed ? sam_itr_queryi(index, first->ref, first->begin, region_end(last))
                        : sam_itr_queryi(index, HTS_IDX_NOCOOR, 0, 0);   /* also NULL if there are none */
    return r->regions ? 1 : placed || errno == ENOMEM ? regions_fail(r) : 0;
}

/* Begins the next reference: all records from its first region to its last one. 0: there is no next reference. -1:
 * failed, and the error is recorded in the latch. */
static int next_reference(struct hts_reader *r)
{
    if (!r->index || r->next_wanted == r->wanted->n)
        return 0;
    const struct region *first = &r->wanted->each[r->next_wanted], *last = first;
    while (++r->next_wanted < r->wanted->n && r->wanted->each[r->next_wanted].ref == first->ref)
        last++;
    hts_itr_destroy(r->regions);
    return query(r, r->index, first, last);
}

/* Returns as sam_read1(). -1: there are no more records; below -1: it failed, and the error may be recorded in the
 * latch. */
static int read_next(struct hts_reader *r)
{
    if (!r->by_region)
        return sam_read1(r->sam, r->header, r->record);
    int status = -1, more = r->regions != NULL;
    while (more > 0 && (status = sam_itr_next(r->sam, r->regions, r->record)) == -1)
        more = next_reference(r);
    return more < 0 ? -2 : status;
}

/* Reads the first record. If the input is text, and the user asked for threads for it, this starts a thread that hands
 * out lines. */
static int read_first(struct hts_reader *r)
{
    struct affinity bound = {0};
    enum htsExactFormat format = hts_get_format(r->sam)->format;
    if (format != cram)                          /* a record of CRAM may have to be waited for */
        affinity_widen(&bound);
    int status = read_next(r);
    affinity_narrow(&bound);
    return status;
}

/* Records in the latch why a file is not read: it has no alignments, or htslib does not recognise it. first[n]: the
 * bytes with which it begins; those of a compressed file are shown inflated. */
static void report_begin(const struct hts_reader *r, const char *what, const uint8_t *first, ssize_t n)
{
    uint8_t plain[FIRST_BYTES];
    char text[FIRST_BYTES_TEXT];
    if (r->sam && r->sam->is_bgzf) {
        first = plain;
        n = bgzf_read(r->sam->fp.bgzf, plain, sizeof plain);
    }
    size_t size = n > 0 ? (size_t)n : 0;
    if (first_bytes_are_index(first, size, r->opt.path))
        latch_fail(r->opt.engine->latch, FIRST_BYTES_INDEX, r->opt.path);
    else
        latch_fail(r->opt.engine->latch, "%s %s: it begins with \"%s\"", r->opt.path, what,
                   first_bytes_show(first, size, text));
}

static int open_sums(struct hts_reader *r)
{
    const char *fasta = r->cram ? ref_sums_fasta(r->opt.reference, r->opt.format_options) : NULL;
    return !fasta || (r->sums = ref_sums_new(r->header, fasta, r->opt.path, r->opt.engine->latch)) ? 0 : -1;
}

/* Checks that samtools 1.24 accepts the header of a CRAM file; older versions of htslib may accept more. The header of
 * SAM was checked before. */
static int check_header(const struct hts_reader *r)
{
    enum htsExactFormat format = hts_get_format(r->sam)->format;
    if (!r->header || format != cram)
        return r->header ? 0 : -1;
    size_t size;
    const char *text = plain_header_text(r->header, &size);
    if (!text)
        return -1;
    struct header_text found = header_text_check(text, size, false);
    if (found.fault)
        return latch_fail(r->opt.engine->latch, "%s: its header cannot be read: line %zu %s. Nothing was written",
                          r->opt.path, found.number, found.fault);
    for (int i = 0; i < sam_hdr_nref(r->header); i++)
        if (sam_hdr_tid2len(r->header, i) == 0)
            return latch_fail(r->opt.engine->latch, "%s: its header cannot be read: a reference in its list has "
                              "length 0. Nothing was written", r->opt.path);
    return 0;
}

struct hts_reader *hts_reader_open(hFILE *file, const struct input_options *options, int n_threads,
                                   struct cram_input *cram, sam_hdr_t **header)
{
    struct hts_reader *r = calloc(1, sizeof *r);
    uint8_t first[FIRST_BYTES];
    ssize_t n_first = hpeek(file, first, sizeof first);
    if (r) {
        r->opt = *options;
        r->cram = cram;
    }
    if (!r || !(r->record = bam_init1())) {
        latch_fail(options->engine->latch, "out of memory");
        hclose_abruptly(file);
    } else if (!(r->sam = hts_hopen(file, options->given ? options->given : options->path, "r"))) {
        report_begin(r, "is in no format that htslib knows", first, n_first);
        hclose_abruptly(file);
    } else if (hts_get_format(r->sam)->category != sequence_data) {
        report_begin(r, "does not hold alignments", first, n_first);
    } else if (set_up(r, n_threads) == 0) {
        errno = 0;
        r->header = sam_hdr_read(r->sam);
        bool taken = check_header(r) == 0 && sam_hdr_count_lines(r->header, "SQ") >= 0;
        *header = taken ? sam_hdr_dup(r->header) : NULL;
        if (*header && errno != ENOMEM && open_sums(r) == 0)
            return r;
        latch_fail(options->engine->latch, "%s: its header cannot be read%s", options->path,
                   errno == ENOMEM ? ": out of memory" : "");
    }
    hts_reader_close(r);
    return NULL;
}

void hts_reader_close(struct hts_reader *r)
{
    if (!r)
        return;
    hts_itr_destroy(r->regions);
    if (r->index)
        hts_idx_destroy(r->index);
    if (r->sam)
        hts_close(r->sam);
    hts_file_end_threads(&r->threads);
    ref_sums_free(r->sums);
    sam_hdr_destroy(r->header);
    bam_destroy1(r->record);
    record_slice_free(&r->made);
    free(r);
}

int hts_reader_start_threads(struct hts_reader *r, int n)
{
    r->use = hts_file_use(true, false, &r->opt.htslib, n);
    struct hts_file_options how = {.path = r->opt.path, .n_threads = r->use.n_threads, .latch = r->opt.engine->latch};
    return hts_file_set_up(r->sam, &r->threads, &how);
}

/* Makes the list of regions in htslib's form; htslib frees it together with its iterator. NULL: out of memory. */
static hts_reglist_t *list_regions(const struct hts_reader *r, const struct ref_regions *regions, unsigned *n)
{
    hts_reglist_t *list = calloc(regions->n, sizeof *list);
    *n = 0;
    for (size_t i = 0, next; list && i < regions->n; i = next) {
        const struct region *first = &regions->each[i];
        hts_reglist_t *of = &list[(*n)++];
        for (next = i; next < regions->n && regions->each[next].ref == first->ref;)
            next++;
        bool placed = first->ref != REGION_UNPLACED;
        *of = (hts_reglist_t){.reg = placed ? sam_hdr_tid2name(r->header, first->ref) : "*",
                              .tid = placed ? first->ref : HTS_IDX_NOCOOR,
                              .count = (uint32_t)(next - i), .min_beg = first->begin,
                              .max_end = region_end(&regions->each[next - 1])};
        if (!(of->intervals = calloc(next - i, sizeof *of->intervals))) {
            hts_reglist_free(list, (int)*n);
            return NULL;                         /* NOLINT(clang-analyzer-unix.Malloc) */
        }
        for (size_t k = i; k < next; k++)
            of->intervals[k - i] = (hts_pair_pos_t){regions->each[k].begin, region_end(&regions->each[k])};
    }
    return list;
}

int hts_reader_choose(struct hts_reader *r, const struct ref_regions *regions, const char *index)
{
    const char *name = r->opt.given ? r->opt.given : r->opt.path;
    hts_idx_t *opened = hts_file_load_index(r->sam, r->opt.path, name, index, r->opt.engine->latch);
    unsigned n;
    if (!opened)
        return -1;
    r->by_region = true;
    const struct region *one = regions->each;
    /* htslib before 1.18 loses records of several regions of CRAM (its issue 1569). */
    if (regions->n > 1 && hts_get_format(r->sam)->format == cram && htslib_version() < HTSLIB_VERSION(1, 18)) {
        r->index = opened;
        r->wanted = regions;
        return next_reference(r) < 0 ? -1 : 0;
    }
    hts_reglist_t *list = regions->n > 1 ? list_regions(r, regions, &n) : NULL;
    int found = regions->n == 1 ? query(r, opened, one, one) : 0;
    if (list)
        r->regions = sam_itr_regions(opened, r->header, list, n);    /* NOLINT(clang-analyzer-unix.Malloc) */
    hts_idx_destroy(opened);
    return found < 0 ? -1 : regions->n <= 1 || r->regions ? 0 : regions_fail(r);
}

samFile *hts_reader_file(const struct hts_reader *r)
{
    return r->sam;
}

size_t hts_reader_memory(const struct hts_reader *r)
{
    return r->use.bytes;
}

/* htslib may report the end of the file when it had no memory for a record. */
static int end_of_records(struct hts_reader *r)
{
    if (errno == ENOMEM)
        return latch_fail(r->opt.engine->latch, "%s: out of memory after record %llu. Nothing was written", r->opt.path,
                          (unsigned long long)r->n);
    if (r->cram && cram_input_check(r->cram, r->n) < 0)
        return -1;
    return hts_reader_check_sums(r);
}

struct ref_sums *hts_reader_sums(const struct hts_reader *r)
{
    return r->sums;
}

int hts_reader_check_sums(const struct hts_reader *r)
{
    return r->sums && cram_input_mixes(r->cram) ? ref_sums_check_seen(r->sums) : 0;
}

/* htslib does not report whether a record is broken, or whether its reference is missing or a different one. This
 * function finds it out. */
int hts_reader_broken(const struct hts_reader *r, uint64_t number)
{
    if (latch_tripped(r->opt.engine->latch) || (r->sums && ref_sums_check_all(r->sums) < 0))
        return -1;
    bool is_cram = hts_get_format(r->sam)->format == cram;
    const char *fasta = ref_sums_fasta(r->opt.reference, r->opt.format_options);
    const char *missing = is_cram ? ref_lookup_missing(r->header, fasta) : NULL;
    if (!missing)
        return hts_reader_fault(&r->opt, HTS_BROKEN, number);
    return latch_fail(r->opt.engine->latch, "%s: record %llu cannot be read: its reference may be missing, as %s was "
                      "not found; or the file is broken%s. Name the FASTA of the references (--reference). Nothing "
                      "was written", r->opt.path, (unsigned long long)number, missing,
                      r->opt.engine->latch->by_index ? "; or its index is that of another file, and samtools index "
                      "makes a new one" : "");
}

enum hts_fault hts_reader_append(struct record_slice *slice, const bam1_t *record, bool far)
{
    size_t start = slice->records.n;
    int is_far = bam1_bytes_append(&slice->records, record);
    if (is_far < 0)
        return errno == ENOMEM ? HTS_NO_MEMORY : HTS_TOO_LONG;
    return is_far && !far ? HTS_FAR : record_slice_note(slice, start) < 0 ? HTS_NO_MEMORY : HTS_FINE;
}

int hts_reader_fault(const struct input_options *opt, enum hts_fault fault, uint64_t number)
{
    static const char *const why[] = {
        [HTS_BROKEN] = " cannot be read: it is broken or the file is truncated. Nothing was written",
        [HTS_TOO_LONG] = ": it, its name or a position does not fit into BAM (SAMv1 section 4.2)",
        [HTS_FAR] = ": its position, its mate's or TLEN does not fit into the 32 bits that BAM and CRAM have; use -O "
                    "sam. Nothing was written",
        [HTS_NO_MEMORY] = ": out of memory",
    };
    if (fault == HTS_BROKEN && opt->engine->latch->by_index)
        return latch_fail(opt->engine->latch, "%s: record %llu of its regions cannot be read: the file or its index is "
                          "damaged, or the index is that of another file. Nothing was written; samtools index makes a "
                          "new one", opt->path, (unsigned long long)number);
    return latch_fail(opt->engine->latch, "%s: record %llu%s", opt->path, (unsigned long long)number, why[fault]);
}

/* Reads one record. 1: it was appended to `made`; 0: there are no more records; -1: failed, and the error is recorded
 * in the latch. */
static int next_record(struct hts_reader *r)
{
    if (r->at_end)
        return 0;
    errno = 0;
    int status = r->n ? read_next(r) : read_first(r);
    r->at_end = status < 0;
    if (status == -1)
        return end_of_records(r);
    if (r->n++ % COUNT_EVERY == 0 && r->cram && cram_input_go_on(r->cram) < 0)
        return -1;
    if (status < 0)
        return hts_reader_broken(r, r->n);
    if (r->sums && !(r->record->core.flag & BAM_FUNMAP))
        ref_sums_see(r->sums, r->record->core.tid);
    enum hts_fault fault = hts_reader_append(&r->made, r->record, r->opt.far);
    return fault ? hts_reader_fault(&r->opt, fault, r->n) : 1;
}

/* Reads until a slice is full. */
static enum chunk_state advance(void *reader)
{
    struct hts_reader *r = reader;
    int next = 1;
    if (r->made.n > 0)
        return CHUNK_MADE;
    enum stage before = clocks_enter(r->opt.engine->clocks, STAGE_CONVERT);
    r->made.number = r->n + 1;
    while (next > 0 && r->made.records.n < r->slice_size)
        next = latch_tripped(r->opt.engine->latch) ? -1 : next_record(r);
    clocks_leave(r->opt.engine->clocks, before, r->made.bytes);
    return next < 0 ? CHUNK_FAILED : r->made.n > 0 ? CHUNK_MADE : CHUNK_NONE;
}

static int take(void *reader, struct record_slice *slice)
{
    struct hts_reader *r = reader;
    struct record_slice made = r->made;
    r->made = *slice;
    record_slice_reuse(&r->made, r->slice_size);
    *slice = made;
    return 0;
}

static int end(void *reader, struct tally *given)
{
    const struct hts_reader *r = reader;
    *given = (struct tally){.n = r->n, .counts_only = true};
    return 0;
}

/* Sets the size of slices so that the slices that are lent, and the one that is being read, take no more memory than
 * the pieces of a file would. */
struct record_stream hts_reader_stream(struct hts_reader *r)
{
    size_t share = r->opt.n_pieces * r->opt.piece_size / (r->opt.chunks.n_lent + 1);
    r->slice_size = share < r->opt.chunks.records_size ? share : r->opt.chunks.records_size;
    return (struct record_stream){advance, take, task_no_help, end, r, .most_lent = 0};
}
