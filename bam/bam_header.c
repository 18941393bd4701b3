/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <htslib/hts_log.h>
#include <htslib/kstring.h>
#include "bam/bam_header.h"
#include "codec/bgzf_block.h"
#include "bgzf_source.h"
#include "base/byte_buffer.h"
#include "read/byte_source.h"
#include "base/endian_io.h"
#include "base/hts_memory.h"
#include "base/latch.h"
#include "order/sort_key.h"

enum { MAGIC_SIZE = 4, REFS_LEFT_UNKNOWN = -1 };
static const char magic[MAGIC_SIZE] = "BAM\1";

/* The inflated beginning of the file, and how far the header was followed in it. */
struct growing {
    struct byte_buffer bytes;
    uint64_t most;               /* bytes at most */
    size_t at;                   /* every field before it is complete */
    int64_t refs_left;           /* @SQ entries still to come */
};

/* Inflates one more block. 1: done; 0: end of the file; -1: told to the latch. */
static int grow(struct growing *g, struct bgzf_source *source, const char *path, struct latch *latch)
{
    uint32_t n;
    int found = bgzf_source_peek(source, &n);
    if (found <= 0)
        return found;
    if (g->bytes.n + n > g->most)
        return latch_fail(latch, "%s: its header takes more than the memory that may be used. Nothing was written; "
                          "check the file, or raise -m", path);
    if (byte_buffer_reserve(&g->bytes, g->bytes.n + n) < 0)
        return latch_fail(latch, "%s: out of memory for the header", path);
    if (bgzf_source_inflate(source, g->bytes.p + g->bytes.n) < 0)
        return -1;
    g->bytes.n += n;
    return 1;
}

/* Follows the header as far as the data go: 1 when it is complete, 0 when more
 * is needed, -1 when it cannot be a header. */
static int follow(struct growing *g)
{
    if (g->bytes.n < MAGIC_SIZE + 4)
        return 0;
    if (memcmp(g->bytes.p, magic, MAGIC_SIZE) != 0)
        return -1;
    if (g->refs_left == REFS_LEFT_UNKNOWN) {
        uint64_t text = load_le32(g->bytes.p + MAGIC_SIZE);
        if (text > INT32_MAX)
            return -1;
        if (g->bytes.n < MAGIC_SIZE + 4 + text + 4)
            return 0;
        g->at = MAGIC_SIZE + 4 + text + 4;
        g->refs_left = (int32_t)load_le32(g->bytes.p + g->at - 4);
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
    }
    return 1;
}

static sam_hdr_t *parse(const uint8_t *data, size_t size)
{
    char *copy = malloc(size);
    if (copy)
        memcpy(copy, data, size);
    hFILE *file = hts_memory_open(copy, size);
    samFile *bam = file ? hts_hopen(file, "mem:", "r") : NULL;
    if (!bam) {
        if (file)
            hclose_abruptly(file);
        return NULL;
    }
    int verbose = hts_verbose;
    hts_verbose = HTS_LOG_ERROR;                 /* or it would miss the EOF block of this "file" */
    sam_hdr_t *sam = sam_hdr_read(bam);
    hts_verbose = verbose;
    hts_close(bam);
    return sam;
}

/* Whether the names can stand in @SQ lines: the binary dictionary can have others. */
static bool names_fit(sam_hdr_t *sam)
{
    if (sam_hdr_count_lines(sam, "SQ") < 0)      /* makes htslib look at the text, which it puts off */
        return false;
    for (int i = 0; i < sam_hdr_nref(sam); i++) {
        const char *name = sam_hdr_tid2name(sam, i);
        if (!*name || strpbrk(name, "\t\n"))
            return false;
    }
    return true;
}

/* What comes behind the header, and not the memory that the header took: it may be much. */
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

int bam_header_read(struct bam_header *header, struct byte_source *input, struct bgzf_source *source,
                    uint64_t most, const char *path, struct latch *latch)
{
    memset(header, 0, sizeof *header);
    if (byte_source_framing(input) == BYTES_RECORDS) {
        header->sam = byte_source_header(input);
        return 0;
    }
    struct growing g = {.most = most, .refs_left = REFS_LEFT_UNKNOWN};
    int complete, more = 1;
    while ((complete = follow(&g)) == 0 && (more = grow(&g, source, path, latch)) > 0)
        ;
    if (more < 0) {
        free(g.bytes.p);
        return -1;
    }
    if (complete > 0)
        header->sam = parse(g.bytes.p, g.at);
    if (!header->sam || !names_fit(header->sam)) {
        const char *why = g.bytes.n == 0 ? "it is empty"
                        : complete == 0 ? "it ends inside the header (truncated file?)"
                        : complete < 0 ? "its header is not that of a BAM file" : "its header lines are broken";
        free(g.bytes.p);
        bam_header_free(header);
        return latch_fail(latch, "%s cannot be read as BAM: %s", path, why);
    }
    keep_rest(header, &g);
    return 0;
}

void bam_header_free(struct bam_header *header)
{
    sam_hdr_destroy(header->sam);
    free(header->rest);
    memset(header, 0, sizeof *header);
}

static int same_references(sam_hdr_t *a, sam_hdr_t *b)
{
    if (sam_hdr_nref(a) != sam_hdr_nref(b))
        return 0;
    for (int i = 0; i < sam_hdr_nref(a); i++)
        if (sam_hdr_tid2len(a, i) != sam_hdr_tid2len(b, i)
            || strcmp(sam_hdr_tid2name(a, i), sam_hdr_tid2name(b, i)) != 0)
            return 0;
    return 1;
}

/* Adds line number i of the type, if there is none of its ID. 0: added, or the
 * same as what is there; 1: another line of its ID is there; -1: no memory. */
static int merge_line(sam_hdr_t *into, sam_hdr_t *from, const char *type, int i)
{
    kstring_t line = KS_INITIALIZE, there = KS_INITIALIZE;
    const char *id = sam_hdr_line_name(from, type, i);
    int status = -1;
    if (id && sam_hdr_find_line_id(from, type, "ID", id, &line) == 0) {
        if (sam_hdr_find_line_id(into, type, "ID", id, &there) == 0)
            status = strcmp(ks_str(&line), ks_str(&there)) != 0;
        else
            status = sam_hdr_add_lines(into, ks_str(&line), ks_len(&line));
    }
    ks_free(&line);
    ks_free(&there);
    return status;
}

static int merge_comments(sam_hdr_t *into, sam_hdr_t *from)
{
    kstring_t line = KS_INITIALIZE;
    int status = 0;
    for (int i = 0; i < sam_hdr_count_lines(from, "CO") && status == 0; i++) {
        status = sam_hdr_find_line_pos(from, "CO", i, &line);
        const char *text = sam_hdr_str(into);
        if (status == 0 && !(text && strstr(text, ks_str(&line))))
            status = sam_hdr_add_lines(into, ks_str(&line), ks_len(&line));
    }
    ks_free(&line);
    return status;
}

int bam_header_merge(sam_hdr_t *into, sam_hdr_t *from, const char *file, struct latch *latch)
{
    int status = 0;
    if (!same_references(into, from))
        return latch_fail(latch, "%s: its @SQ lines differ from those of the first input, so the two cannot be "
                          "sorted together. Nothing was written", file);
    for (int i = 0; i < sam_hdr_count_lines(from, "RG") && status == 0; i++)
        if ((status = merge_line(into, from, "RG", i)) > 0)
            return latch_fail(latch, "%s: its @RG line of ID %s differs from that of an input before it. "
                              "Nothing was written; rename the read group", file,
                              sam_hdr_line_name(from, "RG", i));
    for (int i = 0; i < sam_hdr_count_lines(from, "PG") && status >= 0; i++)
        status = merge_line(into, from, "PG", i);   /* of two programs of one ID the first stays */
    if (status < 0 || merge_comments(into, from) < 0)
        return latch_fail(latch, "%s: its header lines cannot be added to those of the first input", file);
    return 0;
}

/* What @HD says of an order: SO, GO, SS; NULL: the field is removed. */
struct hd_fields {
    const char *so, *go;
    char ss[64];
};

static struct hd_fields hd_fields(const struct sort_order *order, bool unplaced)
{
    static const char *const name_ss[] = {
        [SORT_NAME_NATURAL] = "queryname:natural",
        [SORT_NAME_ASCII] = "queryname:lexicographical",
        [SORT_NAME_PICARD] = "queryname:lexicographical",
        [SORT_COORDINATE] = "coordinate",
    };
    struct hd_fields f = {"coordinate", NULL, ""};
    switch (order->by) {
    case SORT_COORDINATE:
        break;
    case SORT_NAME_NATURAL:
    case SORT_NAME_ASCII:
    case SORT_NAME_PICARD:
        f.so = "queryname";
        strcpy(f.ss, name_ss[order->by]);
        break;
    case SORT_TAG:
        f.so = "unsorted";
        snprintf(f.ss, sizeof f.ss, "unsorted:%.2s:%s", order->tag, name_ss[order->then]);
        break;
    case SORT_TEMPLATE:
        f.so = "unsorted";
        f.go = "query";
        strcpy(f.ss, "unsorted:template-coordinate");
        break;
    case SORT_MINHASH:
        f.so = unplaced ? "unsorted" : "coordinate";
        snprintf(f.ss, sizeof f.ss, "%s:minhash", f.so);
        break;
    }
    return f;
}

static int set_field(sam_hdr_t *sam, const char *tag, const char *value)
{
    return value && *value ? sam_hdr_update_hd(sam, tag, value) : sam_hdr_remove_tag_hd(sam, tag);
}

int bam_header_mark_sorted(sam_hdr_t *sam, const struct sort_order *order, bool unplaced,
                           const char *version, const char *command_line)
{
    struct hd_fields f = hd_fields(order, unplaced);
    if (sam_hdr_update_hd(sam, "SO", f.so) < 0
        && sam_hdr_add_line(sam, "HD", "VN", "1.6", "SO", f.so, NULL) < 0)
        return -1;
    if (set_field(sam, "GO", f.go) < 0 || set_field(sam, "SS", f.ss) < 0)
        return -1;
    if (!command_line)
        return 0;
    return sam_hdr_add_pg(sam, "samtools", "VN", version, "CL", command_line, NULL);
}

int bam_header_bytes(sam_hdr_t *sam, uint8_t **bytes, size_t *size)
{
    const char *text = sam_hdr_str(sam);
    size_t text_size = sam_hdr_length(sam), total = MAGIC_SIZE + 4 + text_size + 4;
    int n_ref = sam_hdr_nref(sam);
    if (!text || n_ref < 0)
        return -1;
    for (int i = 0; i < n_ref; i++)
        if (sam_hdr_tid2len(sam, i) > INT32_MAX)
            return -1;
    for (int i = 0; i < n_ref; i++)
        total += 4 + strlen(sam_hdr_tid2name(sam, i)) + 1 + 4;
    uint8_t *p = *bytes = malloc(total);
    if (!p)
        return -1;
    *size = total;
    memcpy(p, magic, MAGIC_SIZE);
    store_le32(p + MAGIC_SIZE, (uint32_t)text_size);
    memcpy(p + MAGIC_SIZE + 4, text, text_size);
    p += MAGIC_SIZE + 4 + text_size;
    store_le32(p, (uint32_t)n_ref);
    p += 4;
    for (int i = 0; i < n_ref; i++) {
        const char *name = sam_hdr_tid2name(sam, i);
        size_t name_size = strlen(name) + 1;
        store_le32(p, (uint32_t)name_size);
        memcpy(p + 4, name, name_size);
        store_le32(p + 4 + name_size, (uint32_t)sam_hdr_tid2len(sam, i));
        p += 4 + name_size + 4;
    }
    return 0;
}
