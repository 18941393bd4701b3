/* SPDX-License-Identifier: MIT */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <htslib/hts_log.h>
#include "bam/header_text.h"
#include "bam/plain_header.h"
#include "base/byte_hash.h"
#include "base/byte_window.h"
#include "base/endian_io.h"
#include "hts/hts_file.h"
#include "base/latch.h"
#include "bgzf_omp.h"
#include "codec/bgzf_block.h"
#include "read/first_bytes.h"
#include "read/header_read.h"
#include "read/input_file.h"

enum { REFS_LEFT_UNKNOWN = -1 };

/* The inflated beginning of the file, and the position up to which the header has been followed. */
struct growing {
    struct byte_buffer bytes;
    size_t at;                   /* every field before this offset is complete */
    int64_t refs_left;           /* entries of the list of references that are still to come */
    int32_t n_refs;              /* entries of the list in all, once refs_left is known */
    bool without_length;         /* one of them has length 0 */
    bool keeps_broken;           /* as in header_read() */
};

/* Records in the latch that the header takes too much memory, and how much memory would be enough: TIMES its text, as
 * the memory plan counts for the smallest @SQ lines, and BESIDE MiB. BAM states the length of the text; the text of SAM
 * may continue. */
static int too_long(const struct byte_buffer *text, uint32_t more, const char *path, struct latch *latch)
{
    enum { TIMES = 9, BESIDE = 64 };
    static const uint64_t MIB = 1 << 20;
    uint64_t size = text->n + more;
    bool is_bam = text->n >= BAM_HEADER_MAGIC_SIZE + 4 && memcmp(text->p, BAM_HEADER_MAGIC, BAM_HEADER_MAGIC_SIZE) == 0;
    if (is_bam && load_le32(text->p + BAM_HEADER_MAGIC_SIZE) > size)
        size = load_le32(text->p + BAM_HEADER_MAGIC_SIZE);
    return latch_fail(latch, "%s: its header takes more than the memory that may be used, %llu MiB%s. Nothing was "
                      "written; check the file, or use --total-memory %lluM%s", path, (unsigned long long)(size / MIB),
                      is_bam ? "" : " and more", (unsigned long long)(TIMES * size / MIB + BESIDE),
                      is_bam ? "" : " or more");
}

/* Finds the next block, or as many plain bytes, but at most `most` of them. Returns as bgzf_source_peek(). */
static int peek(struct header_bytes from, uint64_t most, uint32_t *n)
{
    struct byte_window *w = from.plain;
    if (!w)
        return bgzf_source_peek(from.blocks, n);
    int found = byte_window_fill(w);
    most = most < BGZF_FILL ? most : BGZF_FILL;
    *n = (uint32_t)(w->size < most ? w->size : most);
    return found;
}

int header_read_block(struct byte_buffer *text, struct header_bytes from, uint64_t most, const char *path,
                      struct latch *latch)
{
    uint32_t n;
    int found = peek(from, BGZF_FILL, &n);
    if (found <= 0)
        return found;
    if (text->n + n > most)
        return too_long(text, n, path, latch);
    if (from.plain ? byte_buffer_append(text, from.plain->data, n) < 0 : byte_buffer_reserve(text, text->n + n) < 0)
        return latch_fail(latch, "%s: out of memory for the header", path);
    if (from.plain) {
        byte_window_skip(from.plain, n);
        return 1;
    }
    if (bgzf_source_inflate(from.blocks, text->p + text->n) < 0)
        return -1;
    text->n += n;
    return 1;
}

/* Follows the header as far as data are present. Returns 1 if the header is complete, 0 if more data are needed, and -1
 * if this cannot be a header. */
static int follow(struct growing *g)
{
    if (g->bytes.n < BAM_HEADER_MAGIC_SIZE + 4)
        return 0;
    if (memcmp(g->bytes.p, BAM_HEADER_MAGIC, BAM_HEADER_MAGIC_SIZE) != 0)
        return -1;
    if (g->refs_left == REFS_LEFT_UNKNOWN) {
        uint64_t text = load_le32(g->bytes.p + BAM_HEADER_MAGIC_SIZE);      /* all 32 bits count, as in htslib */
        if (g->bytes.n < BAM_HEADER_MAGIC_SIZE + 4 + text + 4)
            return 0;
        g->at = BAM_HEADER_MAGIC_SIZE + 4 + text + 4;
        g->refs_left = g->n_refs = (int32_t)load_le32(g->bytes.p + g->at - 4);
        if (g->refs_left < 0)
            return -1;
    }
    for (; g->refs_left > 0; g->refs_left--) {
        if (g->bytes.n < g->at + 4)
            return 0;
        uint64_t name = load_le32(g->bytes.p + g->at);
        if (name < 1 || name > INT32_MAX)
            return -1;
        if (g->bytes.n < g->at + 4 + name + 4)
            return 0;
        g->at += 4 + name + 4;
        g->without_length |= load_le32(g->bytes.p + g->at - 4) == 0;
    }
    return 1;
}

static sam_hdr_t *parse_plain(const uint8_t *data, size_t size)
{
    const uint8_t *text = data + BAM_HEADER_MAGIC_SIZE + 4;
    if (size < BAM_HEADER_MAGIC_SIZE + 8)
        return NULL;
    size_t n_text = load_le32(text - 4), before = BAM_HEADER_MAGIC_SIZE + 8 + n_text;
    if (before > size)
        return NULL;
    int verbose = hts_verbose;
    hts_verbose = HTS_LOG_OFF;                   /* parse_by_htslib() reports what is wrong, with the right number */
    sam_hdr_t *sam = plain_header_of_bam(text, n_text, load_le32(text + n_text), data + before, size - before);
    hts_verbose = verbose;
    return sam;
}

/* Makes a header from all its bytes, without parsing them. */
static sam_hdr_t *read_by_htslib(const uint8_t *data, size_t size)
{
    hFILE *file = hts_file_of_bytes(data, size, "");
    samFile *bam = file ? hts_hopen(file, "mem:", "r") : NULL;
    if (!bam) {
        if (file)
            hclose_abruptly(file);
        return NULL;
    }
    int verbose = hts_verbose;
    /* otherwise htslib would warn that this "file" has no EOF block */
    hts_verbose = HTS_LOG_ERROR;
    sam_hdr_t *sam = sam_hdr_read(bam);
    hts_verbose = verbose;
    hts_close(bam);
    return sam;
}

/* Makes htslib parse the text now, because tasks look at the header later. */
static sam_hdr_t *parse_by_htslib(const uint8_t *data, size_t size)
{
    sam_hdr_t *sam = read_by_htslib(data, size);
    if (sam && sam_hdr_count_lines(sam, "SQ") < 0) {
        sam_hdr_destroy(sam);
        return NULL;
    }
    return sam;
}

sam_hdr_t *header_parse(const uint8_t *data, size_t size)
{
    sam_hdr_t *sam = parse_plain(data, size);
    return sam ? sam : parse_by_htslib(data, size);
}

/* Returns whether the names of the references are possible in @SQ lines. The binary list of references can contain
 * other names. */
static bool names_fit(sam_hdr_t *sam)
{
    for (int i = 0; i < sam_hdr_nref(sam); i++) {
        const char *name = sam_hdr_tid2name(sam, i);
        if (!*name || strpbrk(name, "\t\n"))
            return false;
    }
    return true;
}

/* ------------------------------------------------------------- known ones */

enum { N_KNOWN = sizeof ((struct known_headers *)NULL)->each / sizeof(struct known_header) };

void known_headers_free(struct known_headers *known)
{
    for (size_t i = 0; i < N_KNOWN; i++)
        sam_hdr_destroy(known->each[i].sam);
    sam_hdr_destroy(known->of_begin.sam);
    free(known->begin.p);
    free(known->first.p);
    *known = (struct known_headers){.n = 0};
}

/* Returns whether the header has the same text as the bytes. The list after the text is compared by the hash alone. */
static bool has_text_of(sam_hdr_t *sam, const struct growing *g)
{
    size_t n;
    const char *text = plain_header_text(sam, &n);
    const uint8_t *own = g->bytes.p + BAM_HEADER_MAGIC_SIZE;
    return text && n == load_le32(own) && memcmp(text, own + 4, n) == 0;
}

/* Returns the known header of these bytes. NULL: there is none. */
static const struct known_header *find_known(const struct known_headers *known, const struct growing *g, uint64_t hash)
{
    for (size_t i = 0; i < N_KNOWN; i++) {
        const struct known_header *k = &known->each[i];
        if (k->sam && k->hash == hash && k->size == g->at && has_text_of(k->sam, g))
            return k;
    }
    return NULL;
}

/* Replaces the header at *known. */
static void put_known(struct known_header *known, const struct bam_header *header, uint64_t size, uint64_t hash)
{
    sam_hdr_destroy(known->sam);
    sam_hdr_incr_ref(header->sam);
    *known = (struct known_header){hash, size, header->sam, header->n_unlisted};
}

static void take_known(struct bam_header *header, const struct known_header *known)
{
    sam_hdr_incr_ref(known->sam);
    header->sam = known->sam;
    header->n_unlisted = known->n_unlisted;
    header->is_shared = true;
}

/* Keeps the bytes after the header, and frees the memory of the header's bytes, which may be much. */
static void keep_rest(struct bam_header *header, const struct growing *g)
{
    header->size = g->at;
    header->rest_size = g->bytes.n - g->at;
    if (header->rest_size)
        memmove(g->bytes.p, g->bytes.p + g->at, header->rest_size);
    header->rest = g->bytes.p;
    uint8_t *smaller = realloc(header->rest, header->rest_size + 1);
    if (smaller)
        header->rest = smaller;
}

/* Checks the lines of the text, which ends at its first NUL, as samtools 1.24 does. */
static struct header_text check_text(const struct growing *g)
{
    const char *text = (const char *)g->bytes.p + BAM_HEADER_MAGIC_SIZE + 4;
    return header_text_check(text, strnlen(text, load_le32(g->bytes.p + BAM_HEADER_MAGIC_SIZE)), false);
}

/* Takes the header although its lines are broken, if the copy of it can be read again. */
static void take_broken(struct bam_header *header, const struct growing *g)
{
    sam_hdr_t *sam = read_by_htslib(g->bytes.p, g->at);
    if (!sam || !header_text_is_bam(sam->text, sam->l_text)) {
        sam_hdr_destroy(sam);
        return;
    }
    header->sam = sam;
    header->is_broken = true;
    header->is_broken_sam = !header_text_is_sam(sam->text, sam->l_text);
}

/* Checks that the header can be read after it is written. htslib replaces one LN of a line by the length in the list of
 * references, and leaves a second LN as it is. samtools 1.24 writes such a header, but does not read it. */
static int check_made(sam_hdr_t *sam, const char *path, struct latch *latch)
{
    size_t n;
    const char *text = plain_header_text(sam, &n);
    if (!text)
        return latch_fail(latch, "%s: out of memory for the header", path);
    if (header_text_check(text, n, false).fault)
        return latch_fail(latch, "%s cannot be read as BAM: an @SQ line of its header has a length (LN) twice, and the "
                          "list of references has another", path);
    return 0;
}

/* Records in the latch why there is no header. complete: the value that follow() returned. */
static void report_fault(const struct growing *g, int complete, const char *path, struct latch *latch)
{
    char begin[FIRST_BYTES_TEXT];
    const char *why = g->bytes.n == 0 ? "it is empty"
                    : complete == 0 ? "it ends inside the header (truncated file?)"
                    : complete < 0 ? "its header is not that of a BAM file" : "its header lines are broken";
    if (complete < 0 && first_bytes_are_index(g->bytes.p, g->bytes.n, path))
        latch_fail(latch, FIRST_BYTES_INDEX, path);
    else if (complete < 0 && memcmp(g->bytes.p, BAM_HEADER_MAGIC, BAM_HEADER_MAGIC_SIZE) != 0)
        latch_fail(latch, "%s cannot be read as BAM: it begins with \"%s\"", path,
                   first_bytes_show(g->bytes.p, g->bytes.n, begin));
    else
        latch_fail(latch, "%s cannot be read as BAM: %s", path, why);
}

/* Makes a header of the bytes that were followed, whether they are complete or not. Like samtools 1.24, refuses a
 * length of 0; older versions of htslib accept it. (1.24 accepts it if the text has another length, and then writes a
 * header that it cannot read.) */
static int parse(struct bam_header *header, const struct growing *g, int complete, const char *path,
                 struct latch *latch)
{
    struct header_text found = {.fault = NULL};
    if (complete > 0)
        found = check_text(g);
    if (complete > 0 && !found.fault)
        header->sam = header_parse(g->bytes.p, g->at);
    if (complete > 0 && !header->sam && g->keeps_broken)
        take_broken(header, g);
    if (complete > 0 && g->without_length && !header->is_broken)
        return latch_fail(latch, "%s cannot be read as BAM: a reference in its list has length 0", path);
    if (header->sam && names_fit(header->sam))
        return found.n_repeated && !header->is_broken ? check_made(header->sam, path, latch) : 0;
    if (found.fault)
        return latch_fail(latch, "%s cannot be read as BAM: its header lines are broken: line %zu %s", path,
                          found.number, found.fault);
    report_fault(g, complete, path, latch);
    return -1;
}

static int find_or_parse(struct bam_header *header, const struct growing *g, int complete, struct known_headers *known,
                         const char *path, struct latch *latch)
{
    bool may_be_known = known && complete > 0;
    uint64_t hash = may_be_known ? byte_hash(g->bytes.p, g->at, 0) : 0;
    const struct known_header *found = may_be_known ? find_known(known, g, hash) : NULL;
    if (found) {
        take_known(header, found);
        return 0;
    }
    if (parse(header, g, complete, path, latch) < 0) {
        sam_hdr_destroy(header->sam);
        header->sam = NULL;
        return -1;
    }
    header->n_unlisted = header->is_broken ? 0 : sam_hdr_nref(header->sam) - g->n_refs;
    if (may_be_known && !header->is_broken)
        put_known(&known->each[known->n++ % N_KNOWN], header, g->at, hash);
    return 0;
}

int header_read(struct bam_header *header, struct header_bytes from, uint64_t most, struct known_headers *known,
                bool keeps_broken, const char *path, struct latch *latch)
{
    memset(header, 0, sizeof *header);
    struct growing g = {.refs_left = REFS_LEFT_UNKNOWN, .keeps_broken = keeps_broken};
    int complete, more = 1;
    while ((complete = follow(&g)) == 0 && (more = header_read_block(&g.bytes, from, most, path, latch)) > 0)
        ;
    if (more < 0 || find_or_parse(header, &g, complete, known, path, latch) < 0) {
        free(g.bytes.p);
        bam_header_free(header);
        return -1;
    }
    keep_rest(header, &g);
    if (from.plain) {
        byte_window_put_back(from.plain, header->rest_size);
        bam_header_drop_rest(header);
    }
    return 0;
}

/* Follows the header through the blocks of `first` from *at on, and inflates them. Afterwards *at is where the last of
 * them ends. 1: the header is complete; 0: it continues after `first`; -1: it cannot be read in this way. */
static int follow_first(struct growing *g, const struct byte_buffer *first, struct bgzf_codec *codec, uint64_t most,
                        size_t *at)
{
    struct bgzf_frame frame;
    int complete;
    for (; (complete = follow(g)) == 0; *at += frame.size) {
        const uint8_t *block = first->p + *at;
        enum bgzf_fault fault = bgzf_block_frame(block, first->n - *at, &frame);
        if (fault != BGZF_OK)
            return fault == BGZF_MORE ? 0 : -1;
        uint64_t n = g->bytes.n + frame.inflated_size;
        if (frame.inflated_size == 0 || !bgzf_block_is_plain(block, &frame) || n > most
            || byte_buffer_reserve(&g->bytes, (size_t)n) < 0
            || bgzf_block_inflate(codec, block, &frame, g->bytes.p + g->bytes.n) != BGZF_OK)
            return -1;
        g->bytes.n = (size_t)n;
    }
    return complete;
}

/* Fills known->first with the file's first n bytes, or with the complete file. False: known->first holds the bytes
 * already, memory ran out, or an error is recorded in the file's latch. */
static bool read_first(struct known_headers *known, const struct input_file *file, size_t n)
{
    uint64_t there = (uint64_t)(file->end - file->begin);
    n = n < there ? n : (size_t)there;
    if (n <= known->first.n || byte_buffer_reserve(&known->first, n) < 0)
        return false;
    ssize_t got = input_file_read_at(file, known->first.p, n, 0);
    known->first.n = got < 0 ? 0 : (size_t)got;
    return known->first.n == n;
}

/* Returns whether the file whose bytes are known->first begins with the blocks of the last header. */
static bool begins_alike(const struct known_headers *known)
{
    size_t n = known->begin.n;
    return n > 0 && known->first.n >= n && memcmp(known->first.p, known->begin.p, n) == 0;
}

/* Takes the first n bytes of known->first as the blocks of the header. */
static void put_begin(struct known_headers *known, const struct bam_header *header, size_t n)
{
    struct byte_buffer before = known->begin;
    known->begin = known->first;
    known->begin.n = n;
    known->first = before;
    put_known(&known->of_begin, header, header->size, 0);
}

int known_headers_read(struct known_headers *known, struct bam_header *header, const struct input_file *file,
                       struct bgzf_codec *codec, uint64_t most)
{
    enum { FIRST = 64 << 10, BESIDE = 16 << 10, FIRST_MOST = 4 << 20 };
    struct growing g = {.refs_left = REFS_LEFT_UNKNOWN, .keeps_broken = known->keeps_broken};
    size_t n = known->begin.n ? known->begin.n + BESIDE : FIRST, at = 0;
    int found = 0;
    known->first.n = 0;
    for (; found == 0 && read_first(known, file, n); n = FIRST_MOST) {
        if (at == 0 && begins_alike(known)) {
            *header = (struct bam_header){.size = known->of_begin.size};
            take_known(header, &known->of_begin);
            return 1;
        }
        found = follow_first(&g, &known->first, codec, most, &at);
    }
    *header = (struct bam_header){.size = found > 0 ? g.at : 0};
    bool done = found > 0 && find_or_parse(header, &g, 1, known, file->path, file->latch) == 0;
    if (done && !header->is_broken)
        put_begin(known, header, at);
    free(g.bytes.p);
    return done ? 1 : latch_tripped(file->latch) ? -1 : 0;
}

static void pass_block(struct header_bytes from, uint32_t n)
{
    if (from.plain)
        byte_window_skip(from.plain, n);
    else
        bgzf_source_skip(from.blocks);
}

int header_pass(struct bam_header *header, struct header_bytes from, const char *path, struct latch *latch)
{
    struct byte_buffer block = {NULL, 0, 0};
    uint64_t left = header->size;
    uint32_t n = 0;
    int found = 1;
    for (; left > 0 && (found = peek(from, left, &n)) > 0 && n <= left; left -= n)
        pass_block(from, n);
    if (left > 0 && found > 0)
        found = header_read_block(&block, from, SIZE_MAX, path, latch);
    if (found == 0)
        latch_fail(latch, "%s: its header changed while the inputs before it were read. Nothing was written", path);
    header->rest = block.p;
    header->rest_size = block.p && found > 0 ? block.n - (size_t)left : 0;
    if (block.p)
        memmove(block.p, block.p + left, header->rest_size);
    return found > 0 ? 0 : -1;
}
