/* SPDX-License-Identifier: MIT */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <htslib/kstring.h>
#include "bam/bam_header.h"
#include "bam/plain_header.h"
#include "bam/program_lines.h"
#include "bam/sq_lines.h"
#include "base/endian_io.h"
#include "base/latch.h"
#include "base/message.h"
#include "base/sort_order.h"

void bam_header_free(struct bam_header *header)
{
    sam_hdr_destroy(header->sam);
    free(header->rest);
    memset(header, 0, sizeof *header);
}

/* A plain header is kept as text and as a list of names, and the output's bytes have both again. SAM also has a table
 * of names (name_table.h). A name is at most as long as its line, and glibc allocates at least 32 bytes. The other
 * numbers bound what htslib 1.16 allocates for a header that it parses, in structs of its own: measured
 * with 10^5 and 10^6 @SQ lines of 22 to 98 bytes. There are two of these, the input's and the output's. */
size_t bam_header_memory(size_t size, size_t n, bool parsed)
{
    enum { PLAIN_COPIES = 4, ALLOCATION = 32, TABLE = 3 * sizeof(uint32_t),
           PARSED_HEADERS = 2, PARSED_COPIES = 4, PARSED_REFERENCE = 156 };
    if (parsed)
        return PARSED_HEADERS * (PARSED_COPIES * size + PARSED_REFERENCE * n);
    return PLAIN_COPIES * size + (sizeof(uint32_t) + sizeof(char *) + ALLOCATION + TABLE) * n;
}

void bam_header_drop_rest(struct bam_header *header)
{
    free(header->rest);
    header->rest = NULL;
    header->rest_size = 0;
}

int bam_header_drop_unlisted(struct bam_header *header)
{
    if (header->n_unlisted == 0)
        return 0;
    sam_hdr_t *all = header->sam, *sam = header->sam = sam_hdr_dup(all);
    int status = sam ? 0 : -1;
    for (; status == 0 && header->n_unlisted > 0; header->n_unlisted--)
        status = sam_hdr_remove_line_id(sam, "SQ", "SN", sam_hdr_tid2name(all, sam_hdr_nref(sam) - 1));
    header->is_shared = false;
    sam_hdr_destroy(all);
    return status;
}

int64_t *bam_header_lengths(sam_hdr_t *sam)
{
    int n = sam_hdr_nref(sam);
    int64_t *lengths = malloc((size_t)(n + 1) * sizeof *lengths);
    for (int i = 0; i < n && lengths; i++)
        lengths[i] = (int64_t)sam_hdr_tid2len(sam, i);
    return lengths;
}

#define NOT_ADDED "%s: its header lines cannot be added to those of the first input"

bool bam_header_same_references(const sam_hdr_t *a, const sam_hdr_t *b)
{
    if (sam_hdr_nref(a) != sam_hdr_nref(b))
        return false;
    for (int i = 0; i < sam_hdr_nref(a); i++)
        if (sam_hdr_tid2len(a, i) != sam_hdr_tid2len(b, i)
            || strcmp(sam_hdr_tid2name(a, i), sam_hdr_tid2name(b, i)) != 0)
            return false;
    return true;
}

/* Adds @RG line number i to `into`. Returns 0 if it was added or `into` already has the same line; 1 if `into` has a
 * different line with its ID; -1 if it cannot be read or added (it has no ID, or memory ran out). */
static int merge_group(sam_hdr_t *into, sam_hdr_t *from, const struct program_lines *programs, int i)
{
    kstring_t line = KS_INITIALIZE, renamed = KS_INITIALIZE, there = KS_INITIALIZE, program = KS_INITIALIZE;
    const char *id = sam_hdr_line_name(from, "RG", i), *new_id = NULL;
    int status = -1;
    if (!id || sam_hdr_find_line_id(from, "RG", "ID", id, &line) != 0)
        goto end;
    if (sam_hdr_find_tag_pos(from, "RG", i, "PG", &program) == 0)
        new_id = program_lines_new_id(programs, from, program.s);
    if (program_lines_replace(&renamed, line.s, "PG", new_id ? new_id : ks_c_str(&program)) < 0)
        goto end;
    if (sam_hdr_find_line_id(into, "RG", "ID", id, &there) == 0)
        status = strcmp(line.s, there.s) != 0 && strcmp(renamed.s, there.s) != 0;
    else
        status = sam_hdr_add_lines(into, renamed.s, renamed.l);
end:
    ks_free(&line);
    ks_free(&renamed);
    ks_free(&there);
    ks_free(&program);
    return status;
}

/* Returns whether the header has this line. -1: out of memory. */
static int has_line(sam_hdr_t *sam, const char *line)
{
    size_t n = strlen(line), size;
    const char *text = plain_header_text(sam, &size);
    for (const char *at = text; at && (at = strstr(at, line)); at += n)
        if ((at == text || at[-1] == '\n') && (at[n] == '\n' || !at[n]))
            return 1;
    return text ? 0 : -1;
}

/* htslib does not report that it lacks memory for the text of a comment. So room for any line is reserved
 * beforehand. */
static int merge_comments(sam_hdr_t *into, sam_hdr_t *from)
{
    enum { BESIDE = 8 };                         /* the closing NUL, and what htslib asks for beyond it */
    kstring_t line = KS_INITIALIZE;
    size_t most;
    int n = sam_hdr_count_lines(from, "CO"), status = n < 0 ? -1 : 0;
    if (n > 0)
        status = plain_header_text(from, &most) ? ks_resize(&line, most + BESIDE) : -1;
    for (int i = 0; i < n && status == 0; i++) {
        status = sam_hdr_find_line_pos(from, "CO", i, &line);
        int there = status == 0 ? has_line(into, ks_str(&line)) : -1;
        if (there < 0)
            status = -1;
        else if (!there)
            status = sam_hdr_add_lines(into, ks_str(&line), ks_len(&line));
    }
    ks_free(&line);
    return status;
}

/* Merges the lines of two headers that have the same references. */
static int merge_lines(sam_hdr_t *into, sam_hdr_t *from, struct tag_values *values, const char *file,
                       struct latch *latch)
{
    struct program_lines programs;
    int status = program_lines_merge(&programs, into, from), clash = -1;
    for (int i = 0; i < sam_hdr_count_lines(from, "RG") && status == 0; i++)
        if ((status = merge_group(into, from, &programs, i)) > 0)
            clash = i;
    if (clash >= 0)
        latch_fail(latch, "%s: its @RG line of ID %s differs from that of an earlier input. Nothing was written; "
                   "rename the read group", file, sam_hdr_line_name(from, "RG", clash));
    else if (status < 0 || merge_comments(into, from) < 0
             || (values && program_lines_values(&programs, from, values) < 0))
        latch_fail(latch, NOT_ADDED, file);
    int n_renamed = programs.n_renamed;
    program_lines_free(&programs);
    return latch_tripped(latch) ? -1 : n_renamed;
}

/* Merges all lines except @SQ, as merge_lines() does. The @SQ lines need not be parsed. */
static int merge_plain(sam_hdr_t *into, sam_hdr_t *from, struct tag_values *values, const char *file,
                       struct latch *latch)
{
    sam_hdr_t *lines = plain_header_lines(into), *more = plain_header_lines(from);
    bool read = lines && more;
    int n_renamed = read ? merge_lines(lines, more, values, file, latch) : latch_fail(latch, NOT_ADDED, file);
    int put = n_renamed < 0 ? 0 : plain_header_put(into, lines);
    sam_hdr_destroy(lines);
    sam_hdr_destroy(more);
    if (put < 0)
        return latch_fail(latch, NOT_ADDED, file);
    if (put > 0 && values)
        tag_values_free(values);
    return put > 0 ? merge_lines(into, from, values, file, latch) : n_renamed;
}

/* Warns of the first reference whose checksum differs. The two headers have the same names and lengths. */
static void warn_of_clash(sam_hdr_t *into, sam_hdr_t *from, const char *file)
{
    struct sq_lines a = {.sam = into}, b = {.sam = from};
    kstring_t clash = KS_INITIALIZE;
    bool more = true;
    for (int32_t i = 0; more && i < sam_hdr_nref(into); i++)
        more = sq_lines_next(&a, i) && sq_lines_next(&b, i) && sq_lines_clash(b.line, b.n, a.line, a.n, &clash) == 0;
    if (clash.l > 0)
        message_warning("%s: %s in the first input, whose line stays. Check that all reads were aligned to the same "
                        "genome", file, clash.s);
    ks_free(&clash);
    ks_free(&a.parsed);
    ks_free(&b.parsed);
}

int bam_header_merge(sam_hdr_t *into, sam_hdr_t *from, struct tag_values *values, const char *file,
                     struct latch *latch)
{
    if (!bam_header_same_references(into, from))
        return latch_fail(latch, "%s: its @SQ lines differ from those of the first input, so the two cannot be "
                          "sorted together. Nothing was written", file);
    warn_of_clash(into, from, file);
    bool plain = plain_header_is(into) && plain_header_is(from);
    return plain ? merge_plain(into, from, values, file, latch) : merge_lines(into, from, values, file, latch);
}

/* The fields of @HD that state the order: SO, GO, SS. NULL or "": the field is removed. */
struct hd_fields {
    const char *so, *go;
    char ss[64];
    bool keeps_ss;               /* SS stays as it is */
};

static struct hd_fields hd_fields(const struct sort_order *order, bool unplaced)
{
    static const struct hd_fields of[] = {
        [SORT_COORDINATE] = {.so = "coordinate"},
        [SORT_NAME_NATURAL] = {.so = "queryname", .ss = "queryname:natural"},
        [SORT_NAME_ASCII] = {.so = "queryname", .ss = "queryname:lexicographical"},
        [SORT_NAME_PICARD] = {.so = "queryname", .ss = "queryname:lexicographical"},
        [SORT_TAG] = {.so = "unsorted"},
        [SORT_TEMPLATE] = {.so = "unsorted", .go = "query", .ss = "unsorted:template-coordinate"},
        [SORT_MINHASH] = {.so = "coordinate", .ss = "coordinate:minhash"},
        [SORT_COLLATE] = {.so = "unsorted", .go = "query", .keeps_ss = true},
    };
    struct hd_fields f = of[order->by];
    if (order->by == SORT_MINHASH && unplaced)
        f = (struct hd_fields){.so = "unsorted", .ss = "unsorted:minhash"};
    if (order->by == SORT_TAG) {                 /* as samtools: a tag of one letter is not named */
        const char *then = order->then == SORT_COORDINATE ? "coordinate" : of[order->then].ss;
        bool whole = order->tag[0] && order->tag[1];
        snprintf(f.ss, sizeof f.ss, "unsorted:%.2s%s%s", order->tag, whole ? ":" : "", whole ? then : "");
    }
    return f;
}

static int set_field(sam_hdr_t *sam, const char *tag, const char *value)
{
    return value && *value ? sam_hdr_update_hd(sam, tag, value) : sam_hdr_remove_tag_hd(sam, tag);
}

/* The links of a @PG line. */
struct program_links {
    bool has_previous;           /* its PP is the ID of another line */
    bool is_previous;            /* its ID is the PP of another line */
};

static void link_program(sam_hdr_t *sam, int i, struct program_links *links, kstring_t *id)
{
    int previous = sam_hdr_find_tag_pos(sam, "PG", i, "PP", id) == 0 ? sam_hdr_line_index(sam, "PG", id->s) : -1;
    if (previous >= 0 && previous != i)
        links[i].has_previous = links[previous].is_previous = true;
}

/* The number of @PG lines that end a chain of two or more. *last: the last line that is not the PP of another one; -1:
 * none. Returns -1 if out of memory. */
static int count_chains(sam_hdr_t *sam, int *last)
{
    int n = sam_hdr_count_lines(sam, "PG"), n_chains = 0;
    struct program_links *links = n > 0 ? calloc((size_t)n, sizeof *links) : NULL;
    kstring_t id = KS_INITIALIZE;
    for (int i = 0; links && i < n; i++)
        link_program(sam, i, links, &id);
    *last = -1;
    for (int i = 0; links && i < n; i++) {
        *last = links[i].is_previous ? *last : i;
        n_chains += links[i].has_previous && !links[i].is_previous;
    }
    ks_free(&id);
    free(links);
    return n > 0 && !links ? -1 : n_chains;
}

/* Adds a @PG line after each chain. If there is no chain, adds one line after the last line that no other line names in
 * its PP field. In this case htslib's own function is not used: before 1.19, it reads beyond its list of ends if the
 * lines form only loops (htslib issue 1694). If that last line has an empty ID, the new line gets no PP. */
static int add_program(sam_hdr_t *sam, const char *version, const char *command_line)
{
    int last, n_chains = count_chains(sam, &last);
    if (n_chains > 0)
        return sam_hdr_add_pg(sam, "samtools", "VN", version, "CL", command_line, NULL);
    const char *id = n_chains == 0 ? sam_hdr_pg_id(sam, "samtools") : NULL;
    const char *previous = last >= 0 ? sam_hdr_line_name(sam, "PG", last) : NULL;
    if (id && previous && *previous)
        return sam_hdr_add_line(sam, "PG", "ID", id, "PN", "samtools", "PP", previous, "VN", version, "CL",
                                command_line, NULL);
    return id ? sam_hdr_add_line(sam, "PG", "ID", id, "PN", "samtools", "VN", version, "CL", command_line, NULL) : -1;
}

static int set_order(sam_hdr_t *sam, const struct hd_fields *f)
{
    if (sam_hdr_update_hd(sam, "SO", f->so) < 0
        && sam_hdr_add_line(sam, "HD", "VN", "1.6", "SO", f->so, NULL) < 0)
        return -1;
    return set_field(sam, "GO", f->go) < 0 || (!f->keeps_ss && set_field(sam, "SS", f->ss) < 0) ? -1 : 0;
}

/* Builds the text again from the lines that htslib has parsed: @HD first, no NULs. htslib does so only if a line was
 * changed, so a line of a type that the header lacks is added and removed. */
static int remake_text(sam_hdr_t *sam)
{
    char line[] = "@aa\tXX:x\n", type[] = "aa";
    for (int i = 0; i < 26 * 26; i++) {
        line[1] = type[0] = (char)('a' + i / 26);
        line[2] = type[1] = (char)('a' + i % 26);
        if (sam_hdr_count_lines(sam, type) == 0)
            return sam_hdr_add_lines(sam, line, sizeof line - 1) < 0 || sam_hdr_remove_except(sam, type, NULL, NULL) < 0
                 ? -1 : 0;
    }
    return 0;
}

/* f NULL: the order stays as it is. */
static int mark_parsed(sam_hdr_t *sam, const struct hd_fields *f, const char *version, const char *command_line)
{
    if (f && set_order(sam, f) < 0)
        return -1;
    return command_line ? add_program(sam, version, command_line) : f ? 0 : remake_text(sam);
}

int bam_header_says(sam_hdr_t *sam, const char *order)
{
    sam_hdr_t *lines = plain_header_is(sam) ? plain_header_lines(sam) : sam;
    kstring_t said = KS_INITIALIZE;
    int is_said = !lines ? -1 : sam_hdr_find_tag_hd(lines, "SO", &said) == 0 && strcmp(said.s, order) == 0;
    free(said.s);
    if (lines != sam)
        sam_hdr_destroy(lines);
    return is_said;
}

int bam_header_mark_sorted(sam_hdr_t *sam, const struct sort_order *order, bool unplaced,
                           const char *version, const char *command_line)
{
    struct hd_fields fields = order ? hd_fields(order, unplaced) : (struct hd_fields){0}, *f = order ? &fields : NULL;
    if (!plain_header_is(sam))
        return mark_parsed(sam, f, version, command_line);
    sam_hdr_t *lines = plain_header_lines(sam);
    bool marked = lines && mark_parsed(lines, f, version, command_line) == 0;
    int status = marked ? plain_header_put(sam, lines) : -1;
    sam_hdr_destroy(lines);
    return status <= 0 ? status : mark_parsed(sam, f, version, command_line);
}

/* The largest header text, in bytes, that a file of this format holds: in BAM 2^32-1 (SAMv1 section 4.2). */
static uint64_t text_max(enum htsExactFormat format)
{
    /* htslib pads a CRAM header by half and counts the result in a signed 32-bit number. The rest is for frames. */
    return format == bam ? UINT32_MAX : format == cram ? INT32_MAX / 3 * 2 - (64 << 10) : UINT64_MAX;
}

int bam_header_check_size(uint64_t text, enum htsExactFormat format, const char *file, struct latch *latch)
{
    uint64_t most = text_max(format);
    if (text > most)
        return latch_fail(latch, "%s: the text of its header has %llu bytes, but %s holds at most %llu. Nothing was "
                                 "read; use -O sam", file, (unsigned long long)text, format == bam ? "BAM" : "CRAM",
                          (unsigned long long)most);
    if (format == bam && text > INT32_MAX)       /* as samtools, which writes it all the same */
        message_warning("%s: the text of its header has %llu bytes. Some programs cannot read more than 2 GiB", file,
                        (unsigned long long)text);
    return 0;
}

int bam_header_bytes(sam_hdr_t *sam, uint8_t **bytes, size_t *size)
{
    size_t text_size;
    const char *text = plain_header_text(sam, &text_size);
    size_t total = BAM_HEADER_MAGIC_SIZE + 4 + text_size + 4;
    int n_ref = sam_hdr_nref(sam);
    if (!text || n_ref < 0 || text_size > text_max(bam))
        return -1;
    for (int i = 0; i < n_ref; i++) {
        if (strlen(sam_hdr_tid2name(sam, i)) >= INT32_MAX)
            return -1;
        total += 4 + strlen(sam_hdr_tid2name(sam, i)) + 1 + 4;
    }
    uint8_t *p = *bytes = malloc(total);
    if (!p)
        return -1;
    *size = total;
    memcpy(p, BAM_HEADER_MAGIC, BAM_HEADER_MAGIC_SIZE);
    store_le32(p + BAM_HEADER_MAGIC_SIZE, (uint32_t)text_size);
    memcpy(p + BAM_HEADER_MAGIC_SIZE + 4, text, text_size);
    p += BAM_HEADER_MAGIC_SIZE + 4 + text_size;
    store_le32(p, (uint32_t)n_ref);
    p += 4;
    for (int i = 0; i < n_ref; i++) {
        const char *name = sam_hdr_tid2name(sam, i);
        size_t name_size = strlen(name) + 1;
        store_le32(p, (uint32_t)name_size);
        memcpy(p + 4, name, name_size);
        int64_t length = sam_hdr_tid2len(sam, i);
        store_le32(p + 4 + name_size, length < UINT32_MAX ? (uint32_t)length : UINT32_MAX);
        p += 4 + name_size + 4;
    }
    return 0;
}
