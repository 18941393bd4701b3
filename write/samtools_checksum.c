/* SPDX-License-Identifier: MIT */
/* A column is the product, modulo 2^31-1, of the CRC32s of all primary records, so their order does not matter:
 *
 *   flag+seq   flag (paired, first, last; one byte), SEQ as letters, in the direction of sequencing
 *   +name      name with its NUL, then those of flag+seq
 *   +qual      those of flag+seq, then QUAL + 33
 *   +aux       those of flag+seq, then the tags BC FI QT RT TC as in BAM; integers in their shortest type
 *
 * The last column is count * flag+seq * flag+seq * name * aux: samtools 1.24 uses flag+seq in place of qual there. */
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <libdeflate.h>
#include "bam/bam_record.h"
#include "bam/plain_header.h"
#include "base/byte_buffer.h"
#include "write/samtools_checksum.h"

enum { FLAG_REVERSE = 16, FLAGS_USED = 0xc1, FLAGS_SKIPPED = 0x900 };
enum { SEQ, NAME, QUAL, AUX, N_COLUMNS };
enum { BC, FI, QT, RT, TC, N_TAGS };
enum { TEXT = 4096 };            /* letters at once; they fit into the first cache */
static const uint32_t PRIME = 0x7fffffff;

struct sums {
    uint64_t count;
    uint32_t column[N_COLUMNS];
};

struct group_sums {
    struct sums sums;
    char name[];                 /* name of the read group */
};

struct thread_sums {
    struct sums all, no_group;
    struct group_sums **groups;  /* ascending by name */
    size_t n, max;
    struct group_sums *last;     /* the group found last; NULL: none yet */
    uint8_t text[TEXT + 2];
};

struct samtools_checksum {
    int n_threads;
    uint8_t pair[2][256][2];     /* letters of a byte of SEQ: forward, and reverse complement */
    struct thread_sums threads[];
};

/* ---- sums ---- */

static const struct sums ONE = {.column = {1, 1, 1, 1}};

/* Multiplies as samtools does: a factor that would spoil the product is replaced by 1. */
static uint32_t times(uint32_t product, uint64_t factor)
{
    factor &= PRIME;
    return factor == 0 || factor == PRIME ? product : (uint32_t)(product * factor % PRIME);
}

static void sums_add(struct sums *to, uint64_t count, const uint32_t column[N_COLUMNS])
{
    to->count += count;
    for (int i = 0; i < N_COLUMNS; i++)
        to->column[i] = times(to->column[i], column[i]);
}

/* ---- read groups ---- */

static int compare_name(const char *name, size_t n, const char *other)
{
    int order = strncmp(name, other, n);
    return order ? order : -(other[n] != 0);
}

/* Inserts a group at `at`. NULL: out of memory. */
static struct group_sums *insert(struct thread_sums *t, size_t at, const char *name, size_t n)
{
    struct group_sums **groups = byte_buffer_grow(t->groups, t->n, &t->max, sizeof *groups), *group;
    t->groups = groups ? groups : t->groups;
    if (!groups || !(group = calloc(1, sizeof *group + n + 1)))
        return NULL;
    group->sums = ONE;
    memcpy(group->name, name, n);
    memmove(t->groups + at + 1, t->groups + at, (t->n++ - at) * sizeof(struct group_sums *));
    t->groups[at] = group;
    return group;
}

/* The group of the first n bytes of name, none of them NUL. NULL: out of memory. */
static struct group_sums *find_or_insert(struct thread_sums *t, const char *name, size_t n)
{
    size_t from = 0, to = t->n;
    if (t->last && compare_name(name, n, t->last->name) == 0)
        return t->last;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        int order = compare_name(name, n, t->groups[middle]->name);
        if (order == 0)
            return t->last = t->groups[middle];
        if (order < 0)
            to = middle;
        else
            from = middle + 1;
    }
    return t->last = insert(t, from, name, n);
}

/* ---- tags ---- */

struct summed_tags {
    const uint8_t *at[N_TAGS], *end[N_TAGS];   /* the last tag of each name */
    const char *group;           /* value of the last RG that is text; NULL: none */
    size_t group_size;
};

static int tag_number(const uint8_t *p)
{
    static const char names[N_TAGS][3] = {"BC", "FI", "QT", "RT", "TC"};
    for (int i = 0; i < N_TAGS; i++)
        if (memcmp(p, names[i], 2) == 0)
            return i;
    return -1;
}

/* Stops at the first tag that cannot be read. */
static void find_summed_tags(struct summed_tags *tags, const uint8_t *p, const uint8_t *end)
{
    const uint8_t *next;
    for (; end - p >= 3 && (next = bam_record_aux_skip(p + 2, end)); p = next) {
        int number = tag_number(p);
        if (number >= 0) {
            tags->at[number] = p;
            tags->end[number] = next;
        } else if (p[0] == 'R' && p[1] == 'G' && p[2] == 'Z') {
            tags->group = (const char *)p + 3;
            tags->group_size = strnlen(tags->group, (size_t)(next - p) - 3);
        }
    }
}

static uint32_t crc_integer(uint32_t crc, const uint8_t *tag)
{
    int64_t v = bam_record_aux_int(tag + 2, 0);
    int wide = v >= 0 ? (v > UINT8_MAX) + (v > UINT16_MAX) : (v < INT8_MIN) + (v < INT16_MIN);
    uint8_t bytes[7] = {tag[0], tag[1], (uint8_t)(v >= 0 ? "CSI" : "csi")[wide]};
    store_le32(bytes + 3, (uint32_t)v);
    return libdeflate_crc32(crc, bytes, 3 + ((size_t)1 << wide));
}

static uint32_t crc_tags(uint32_t crc, const struct summed_tags *tags)
{
    for (int i = 0; i < N_TAGS; i++) {
        const uint8_t *tag = tags->at[i];
        if (tag)
            crc = strchr("cCsSiI", tag[2]) ? crc_integer(crc, tag)
                : libdeflate_crc32(crc, tag, (size_t)(tags->end[i] - tag));
    }
    return crc;
}

/* ---- SEQ and QUAL ---- */

/* Adds n bytes of text to both columns that include SEQ. */
static void crc_text(uint32_t crc[N_COLUMNS], const uint8_t *text, size_t n)
{
    crc[SEQ] = libdeflate_crc32(crc[SEQ], text, n);
    crc[NAME] = libdeflate_crc32(crc[NAME], text, n);
}

/* Adds the flag and SEQ, two letters for each byte. The single letter of an odd length is the last one, or the first in
 * reverse. */
static void crc_seq(uint32_t crc[N_COLUMNS], uint8_t *text, const uint8_t pair[256][2], const struct bam_record *r,
                    const uint8_t *seq)
{
    uint32_t length = load_le32(r->seq_len);
    bool reverse = bam_record_flag(r) & FLAG_REVERSE, odd = length & 1;
    size_t n = 0, left = length / 2;
    const uint8_t *at = reverse && left ? seq + left - 1 : seq;
    text[n++] = (uint8_t)(bam_record_flag(r) & FLAGS_USED);
    if (reverse && odd)
        text[n++] = pair[seq[left]][1];
    while (left) {
        size_t now = left < (TEXT - n) / 2 ? left : (TEXT - n) / 2;
        for (size_t i = 0; i < now; i++)
            memcpy(text + n + 2 * i, pair[reverse ? *(at - i) : at[i]], 2);
        n += 2 * now;
        if (left -= now) {
            at = reverse ? at - now : at + now;
            crc_text(crc, text, n);
            n = 0;
        }
    }
    if (!reverse && odd)
        text[n++] = pair[seq[length / 2]][0];
    crc_text(crc, text, n);
}

static uint32_t crc_qual(uint32_t crc, uint8_t *text, const uint8_t *qual, size_t left, bool reverse)
{
    while (left) {
        size_t n = left < TEXT ? left : TEXT;
        for (size_t i = 0; i < n; i++)
            text[i] = (uint8_t)(33 + (reverse ? qual[left - 1 - i] : qual[i]));
        crc = libdeflate_crc32(crc, text, n);
        qual += reverse ? 0 : n;
        left -= n;
    }
    return crc;
}

/* ---- all ---- */

int samtools_checksum_add(struct samtools_checksum *s, int thread, const uint8_t *record, size_t size)
{
    const struct bam_record *r = bam_record_at(record);
    struct thread_sums *t = &s->threads[thread];
    if (!bam_record_fits(r, size) || (bam_record_flag(r) & FLAGS_SKIPPED))
        return 0;
    size_t length = load_le32(r->seq_len);
    bool reverse = bam_record_flag(r) & FLAG_REVERSE;
    const uint8_t *seq = bam_record_seq(r), *qual = seq + (length + 1) / 2;
    uint32_t crc[N_COLUMNS] = {[NAME] = libdeflate_crc32(0, r->data, r->name_len)};
    struct summed_tags tags = {.group = NULL};
    crc_seq(crc, t->text, s->pair[reverse], r, seq);
    crc[QUAL] = crc_qual(crc[SEQ], t->text, qual, length, reverse);
    find_summed_tags(&tags, qual + length, record + size);
    crc[AUX] = crc_tags(crc[SEQ], &tags);
    struct group_sums *group = tags.group ? find_or_insert(t, tags.group, tags.group_size) : NULL;
    if (tags.group && !group)
        return -1;
    sums_add(&t->all, 1, crc);
    sums_add(group ? &group->sums : &t->no_group, 1, crc);
    return 0;
}

static void fill_base_pairs(struct samtools_checksum *s)
{
    static const char forward[] = "=ACMGRSVTWYHKDBN", reverse[] = "=TGKCYSBAWRDMHVN";
    for (int i = 0; i < 256; i++) {
        s->pair[0][i][0] = (uint8_t)forward[i >> 4];
        s->pair[0][i][1] = (uint8_t)forward[i & 15];
        s->pair[1][i][0] = (uint8_t)reverse[i & 15];
        s->pair[1][i][1] = (uint8_t)reverse[i >> 4];
    }
}

static size_t size_of(int n_threads)
{
    return sizeof(struct samtools_checksum) + (size_t)n_threads * sizeof(struct thread_sums);
}

/* A group's name is shorter than its @RG line, and the list of groups has room for 64, or twice as many as it has. The
 * text is searched because counting lines with htslib would parse the header. */
size_t samtools_checksum_memory(int n_threads, sam_hdr_t *sam)
{
    static const char tag[] = "@RG\t";
    enum { ROOM_LEAST = 64, ALLOCATION = 16 };
    size_t size, n = 0, names = 0;
    const char *text = plain_header_text(sam, &size), *end = text ? text + size : NULL;
    for (const char *line = text, *next; line < end; line = next) {
        const char *newline = memchr(line, '\n', (size_t)(end - line));
        next = newline ? newline + 1 : end;
        if ((size_t)(next - line) < sizeof tag || memcmp(line, tag, sizeof tag - 1) != 0)
            continue;
        n++;
        names += (size_t)(next - line);
    }
    size_t room = n > ROOM_LEAST ? 2 * n : n > 0 ? (size_t)ROOM_LEAST : 0, list = room * sizeof(struct group_sums *);
    return size_of(n_threads) + (size_t)n_threads * (list + n * (sizeof(struct group_sums) + ALLOCATION) + names);
}

struct samtools_checksum *samtools_checksum_new(int n_threads)
{
    struct samtools_checksum *s = calloc(1, size_of(n_threads));
    if (!s)
        return NULL;
    s->n_threads = n_threads;
    fill_base_pairs(s);
    for (int i = 0; i < n_threads; i++)
        s->threads[i].all = s->threads[i].no_group = ONE;
    return s;
}

static void clear(struct samtools_checksum *s, int thread)
{
    struct thread_sums *t = &s->threads[thread];
    while (t->n > 0)
        free(t->groups[--t->n]);
    t->last = NULL;
    t->all = t->no_group = ONE;
}

void samtools_checksum_free(struct samtools_checksum *s)
{
    for (int i = 0; s && i < s->n_threads; i++) {
        clear(s, i);
        free(s->threads[i].groups);
    }
    free(s);
}

/* Adds the sums of a thread to those of thread 0, and clears them. -1: out of memory. */
static int join(struct samtools_checksum *s, int thread)
{
    struct thread_sums *to = &s->threads[0], *from = &s->threads[thread];
    sums_add(&to->all, from->all.count, from->all.column);
    sums_add(&to->no_group, from->no_group.count, from->no_group.column);
    for (size_t k = 0; k < from->n; k++) {
        struct group_sums *group = find_or_insert(to, from->groups[k]->name, strlen(from->groups[k]->name));
        if (!group)
            return -1;
        sums_add(&group->sums, from->groups[k]->sums.count, from->groups[k]->sums.column);
    }
    clear(s, thread);
    return 0;
}

static void print_row(const char *name, const struct sums *s, FILE *to)
{
    const uint32_t *c = s->column;
    uint32_t combined = times(times(times(times(times(1, s->count), c[SEQ]), c[SEQ]), c[NAME]), c[AUX]);
    if (s->count > 0)
        fprintf(to, "%-10s all  %12" PRIu64 "  %08" PRIx32 "  %08" PRIx32 "  %08" PRIx32 "  %08" PRIx32
                "  %08" PRIx32 "\n", name, s->count, c[SEQ], c[NAME], c[QUAL], c[AUX], combined);
}

int samtools_checksum_print(struct samtools_checksum *s, const char *path, FILE *to)
{
    const struct thread_sums *t = &s->threads[0];
    for (int i = 1; i < s->n_threads; i++)
        if (join(s, i) < 0)
            return -1;
    fprintf(to, "# Checksum 1.0 for file: %s\n# Aux tags:          BC,FI,QT,RT,TC\n"
            "# BAM flags:         PAIRED,READ1,READ2\n\n"
            "# Group    QC          count  flag+seq  +name     +qual     +aux      combined\n", path);
    print_row("all", &t->all, to);
    print_row("-", &t->no_group, to);
    for (size_t i = 0; i < t->n; i++)
        print_row(t->groups[i]->name, &t->groups[i]->sums, to);
    return ferror(to) ? -1 : 0;
}
