// SPDX-License-Identifier: MIT
/*
 * check_sorted FILE...       one line for each file, tab between the fields:
 *     FILE  records  bytes  checksum  SO  sorted|unsorted
 *   bytes     of the records as they lie in an uncompressed BAM, block_size fields included
 *   checksum  64 bits over the content of all records, the same for any order of them
 *   SO        of the header's @HD line, or "-"
 *   sorted    in coordinate order: reference (none last), position, forward before reverse
 * check_sorted -n N FILE     the first N records of FILE as SAM
 * check_sorted --same A B    whether both have the same records in the same order, whatever their headers:
 *                            "same", or "record N" of the first that differs or that one of them lacks
 *
 * Reads through htslib, not through our own code. Exit status 1 for a file that cannot be
 * read to its end; being unsorted is an answer, not an error.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <htslib/kstring.h>
#include <htslib/sam.h>

struct tally {
    uint64_t records, bytes, checksum;
    uint64_t last[2]; /* reference, then position and strand, of the record before */
    int sorted;
};

/* FNV-1a: slow and simple, and not what the program under test uses. */
static uint64_t hash_bytes(uint64_t h, const void *data, size_t n)
{
    for (const uint8_t *p = data, *end = p + n; p < end; p++)
        h = (h ^ *p) * UINT64_C(0x100000001b3);
    return h;
}

/* The content of a record in three pieces, because htslib pads names in memory. */
struct content {
    int64_t fixed[10];
    size_t name, rest; /* bytes */
    const uint8_t *name_at, *rest_at;
};

static struct content content_of(const bam1_t *b)
{
    const bam1_core_t *c = &b->core;
    return (struct content){ { c->tid, c->pos, c->bin, c->qual, c->flag, c->n_cigar, c->l_qseq, c->mtid, c->mpos, c->isize },
                             (size_t)c->l_qname - c->l_extranul, (size_t)b->l_data - c->l_qname,
                             b->data, b->data + c->l_qname };
}

static uint64_t hash_record(const bam1_t *b)
{
    struct content c = content_of(b);
    uint64_t h = hash_bytes(UINT64_C(0xcbf29ce484222325), c.fixed, sizeof c.fixed);
    h = hash_bytes(h, c.name_at, c.name);
    return hash_bytes(h, c.rest_at, c.rest);
}

static int same_record(const bam1_t *a, const bam1_t *b)
{
    struct content x = content_of(a), y = content_of(b);
    return memcmp(x.fixed, y.fixed, sizeof x.fixed) == 0 && x.name == y.name && x.rest == y.rest &&
           memcmp(x.name_at, y.name_at, x.name) == 0 && memcmp(x.rest_at, y.rest_at, x.rest) == 0;
}

static void tally_record(struct tally *t, const bam1_t *b)
{
    uint64_t reference = (uint32_t)b->core.tid; /* -1, no reference, is the largest */
    uint64_t place = (uint64_t)(b->core.pos + 1) << 1 | bam_is_rev(b);
    if (t->records && (reference < t->last[0] || (reference == t->last[0] && place < t->last[1])))
        t->sorted = 0;
    t->last[0] = reference;
    t->last[1] = place;
    t->records++;
    t->bytes += 36 + (uint64_t)b->l_data - b->core.l_extranul;
    t->checksum += hash_record(b);
}

static void print_sort_order(sam_hdr_t *header)
{
    kstring_t so = KS_INITIALIZE;
    int found = sam_hdr_find_tag_hd(header, "SO", &so) == 0;
    printf("\t%s", found ? so.s : "-");
    ks_free(&so);
}

/* Prints the first n_head records, or the line of tallies when n_head is negative. */
static int look_at(const char *path, long n_head)
{
    int result = -1, got = -1;
    struct tally t = { .sorted = 1 };
    kstring_t line = KS_INITIALIZE;
    bam1_t *b = bam_init1();
    sam_hdr_t *header = NULL;
    htsFile *in = hts_open(path, "r");
    if (!in || !b)
        goto out;
    hts_set_threads(in, 2);
    header = sam_hdr_read(in);
    if (!header)
        goto out;
    while (n_head != (long)t.records && (got = sam_read1(in, header, b)) >= 0) {
        tally_record(&t, b);
        if (n_head < 0)
            continue;
        if (sam_format1(header, b, &line) < 0)
            goto out;
        puts(line.s);
    }
    if (n_head != (long)t.records && got < -1)
        goto out;
    if (n_head < 0) {
        printf("%s\t%" PRIu64 "\t%" PRIu64 "\t%016" PRIx64, path, t.records, t.bytes, t.checksum);
        print_sort_order(header);
        printf("\t%s\n", t.sorted ? "sorted" : "unsorted");
    }
    result = 0;
out:
    if (result)
        fprintf(stderr, "check_sorted: %s: cannot be read (record %" PRIu64 ")\n", path, t.records + 1);
    sam_hdr_destroy(header);
    if (in)
        hts_close(in);
    bam_destroy1(b);
    ks_free(&line);
    return result;
}

struct reader {
    const char *path;
    htsFile *file;
    sam_hdr_t *header;
    bam1_t *record;
    uint64_t n; /* records so far */
    int got;    /* -1 at the end, less if the file cannot be read */
};

static struct reader reader_open(const char *path)
{
    struct reader r = { path, hts_open(path, "r"), NULL, bam_init1(), 0, -2 };
    if (r.file && r.record && (r.header = sam_hdr_read(r.file)))
        r.got = 0;
    return r;
}

static void reader_next(struct reader *r)
{
    if (r->got >= 0)
        r->got = sam_read1(r->file, r->header, r->record);
    r->n += r->got >= 0;
}

/* Returns whether the file could be read. */
static int reader_close(struct reader *r)
{
    if (r->got < -1)
        fprintf(stderr, "check_sorted: %s: cannot be read (record %" PRIu64 ")\n", r->path, r->n + 1);
    sam_hdr_destroy(r->header);
    if (r->file)
        hts_close(r->file);
    bam_destroy1(r->record);
    return r->got >= -1;
}

/* 0: equal; 1: different; 2: one of them cannot be read. */
static int compare(const char *path_a, const char *path_b)
{
    struct reader a = reader_open(path_a), b = reader_open(path_b);
    int same = a.got >= 0 && b.got >= 0;
    while (same && a.got >= 0) {
        reader_next(&a);
        reader_next(&b);
        same = a.got < 0 || b.got < 0 ? a.got == b.got : same_record(a.record, b.record);
    }
    uint64_t at = a.n > b.n ? a.n : b.n;
    int readable = reader_close(&a) & reader_close(&b);
    if (!readable)
        return 2;
    if (!same)
        printf("record %" PRIu64 "\n", at);
    else
        puts("same");
    return !same;
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "--same") == 0)
        return compare(argv[2], argv[3]);
    if (argc == 4 && strcmp(argv[1], "-n") == 0)
        return look_at(argv[3], strtol(argv[2], NULL, 10)) ? 1 : 0;
    if (argc < 2 || argv[1][0] == '-') {
        fprintf(stderr, "usage: check_sorted FILE... | check_sorted -n N FILE | check_sorted --same A B\n");
        return 2;
    }
    int failed = 0;
    for (int i = 1; i < argc; i++)
        failed |= look_at(argv[i], -1) != 0;
    return failed;
}
