/* SPDX-License-Identifier: MIT */
/* Small files, and the results of samtools markdup: records to keys to sets to verdicts. */
#include "unit.h"
#include <htslib/sam.h>
#include <stdio.h>
#include "hts/bam1_bytes.h"
#include "base/byte_buffer.h"
#include "markdup/dup_others.h"
#include "test/dup_driver.h"

enum { RECORDS = 8 };

/* One record: 10 bases of quality 40, or of the given ones. A pair end has its mate at 200, as 10M. */
struct line {
    const char *name;
    unsigned flag;
    int pos;
    const char *cigar;           /* NULL: 10M */
    int quality;                 /* 0: 40 */
    const char *mate_cigar;      /* NULL: 10M */
    const char *tags;            /* NULL: MC and ms */
};

struct given {
    struct line lines[RECORDS];
    struct dup_rule rule;
    struct dup_chains_opt opt;
    size_t shards;
};

/* The result for each record. */
struct found {
    unsigned flag[RECORDS];
    enum dup_type type[RECORDS];
    char original[RECORDS][64];  /* "": none */
    unsigned count[RECORDS];
    struct dup_counts counts;
};

static size_t bases_of(const char *cigar)
{
    size_t n = 0;
    for (const char *c = cigar; *c; c++) {
        size_t length = strtoul(c, NULL, 10);
        c += strspn(c, "0123456789");
        n += strchr("MIS", *c) ? length : 0;
    }
    return n;
}

static struct byte_buffer record_of(const struct line *l)
{
    char text[2048], tags[64];
    struct byte_buffer bytes = {NULL, 0, 0};
    const char *cigar = l->cigar ? l->cigar : "10M";
    int n = (int)bases_of(cigar), quality = l->quality ? l->quality : 40;
    char bases[512], qualities[512];
    memset(bases, 'A', sizeof bases);
    memset(qualities, 33 + quality, sizeof qualities);
    snprintf(tags, sizeof tags, "MC:Z:%s\tms:i:%d", l->mate_cigar ? l->mate_cigar : "10M", 10 * quality);
    snprintf(text, sizeof text, "%s\t%u\tc\t%d\t60\t%s\t%s\t%d\t0\t%.*s\t%.*s\t%s", l->name, l->flag, l->pos, cigar,
             l->flag & 1 ? "=" : "*", l->flag & 1 ? 200 : 0, n, bases, n, qualities, l->tags ? l->tags : tags);
    static const char head[] = "@SQ\tSN:c\tLN:1000000\n";
    sam_hdr_t *sam = sam_hdr_parse(sizeof head - 1, head);
    bam1_t *b = bam_init1();
    kstring_t s = {strlen(text), sizeof text, text};
    MUST(sam && b && sam_parse1(&s, sam, b) >= 0 && bam1_bytes_append(&bytes, b) == 0);
    bam_destroy1(b);
    sam_hdr_destroy(sam);
    return bytes;
}

static struct found find(const struct given *given)
{
    struct found found = {.flag = {0}};
    struct dup_record records[RECORDS];
    struct byte_buffer bytes[RECORDS];
    struct dup_coords_rule coords_rule;
    size_t n = 0;
    MUST(!dup_coords_open(&coords_rule, NULL, NULL));
    for (; n < RECORDS && given->lines[n].name; n++) {
        bytes[n] = record_of(&given->lines[n]);
        const struct bam_record *r = (const struct bam_record *)bytes[n].p;
        records[n] = (struct dup_record){.name = bam_record_name(r)};
        MUST(dup_key_make(&given->rule, r, &records[n].read) == BAM_OK);
    }
    struct dup_driver d = {.records = records, .n = n, .shards = given->shards ? given->shards : 1, .window = 300,
                           .opt = given->opt, .counts = &found.counts};
    d.opt.pass = !given->opt.pass;       /* here: --no-multi-dup */
    d.opt.coords_rule = &coords_rule;
    MUST(driver_run(&d) == DUP_OK);
    for (size_t i = 0; i < n; i++) {
        found.flag[i] = given->lines[i].flag | (records[i].lost ? BAM_FDUP : 0);
        found.type[i] = records[i].type;
        found.count[i] = (unsigned)records[i].count;
        snprintf(found.original[i], sizeof found.original[i], "%s", records[i].original ? records[i].original : "");
        free(bytes[i].p);
    }
    driver_free(&d);
    dup_coords_close(&coords_rule);
    return found;
}

#define AT(of, flags, ...) {.name = of, .flag = flags, .pos = __VA_ARGS__}      /* pos, then the special fields */
#define FIND(...) find(&(struct given){__VA_ARGS__})
#define LINES(...) .lines = {__VA_ARGS__}

static void pairs(void **state)
{
    (void)state;
    struct found f = FIND(LINES(AT("b", 99, 100), AT("a", 99, 100)));
    assert_int_equal(f.flag[0], 1123);           /* a tie: the lower name stays */
    assert_int_equal(f.flag[1], 99);
    assert_int_equal(f.counts.duplicate_pair, 1);
    f = FIND(LINES(AT("a", 99, 100, .quality = 20), AT("b", 99, 100)));
    assert_int_equal(f.flag[0], 1123);
    assert_int_equal(f.flag[1], 99);
    f = FIND(LINES(AT("b", 99, 100), AT("a", 99, 102, .cigar = "2S8M")));
    assert_int_equal(f.flag[0], 1123);           /* the same unclipped start */
    f = FIND(LINES(AT("b", 99, 100), AT("a", 99, 102, .cigar = "2H8M")));
    assert_int_equal(f.flag[1], 1123);
    f = FIND(LINES(AT("a", 99, 100), AT("a", 99, 100)));
    assert_int_equal(f.flag[1], 1123);           /* the same name: the earlier one stays */
    f = FIND(LINES(AT("a", 99 | 512, 100), AT("b", 99, 100, .quality = 20)), .rule = {.include_fails = true});
    assert_int_equal(f.flag[0], 1635);
    f = FIND(LINES(AT("a", 99 | 512, 100), AT("b", 99, 100)));
    assert_int_equal(f.counts.excluded, 1);
    assert_int_equal(f.flag[0], 611);
    assert_int_equal(f.flag[1], 99);
}

static void singles(void **state)
{
    (void)state;
    struct found f = FIND(LINES(AT("s", 0, 100, .quality = 41), AT("a", 99, 100)));
    assert_int_equal(f.flag[0], 1024);           /* compared with a pair its quality is ignored */
    f = FIND(LINES(AT("a", 99, 100), AT("s", 0, 100, .quality = 41)));
    assert_int_equal(f.flag[1], 1024);
    f = FIND(LINES(AT("t", 0, 100), AT("s", 0, 100)));
    assert_int_equal(f.flag[1], 1024);           /* a tie: the earlier one stays */
    f = FIND(LINES(AT("s", 0, 100, .quality = 20), AT("t", 0, 100)), .opt = {.counts = true});
    assert_int_equal(f.flag[0], 1024);
    assert_int_equal(f.count[1], 2);
    f = FIND(LINES(AT("s", 512, 100), AT("t", 0, 100, .quality = 20)), .rule = {.include_fails = true});
    assert_int_equal(f.flag[1], 1024);           /* failed quality control is ignored */
    f = FIND(LINES(AT("a", 73, 100, .quality = 20), AT("b", 73, 100)));
    assert_int_equal(f.flag[0], 1097);           /* with an unmapped mate: single */
}

static void counts(void **state)
{
    (void)state;
    for (int no_pass = 0; no_pass < 2; no_pass++)
        for (int names = 0; names < 2; names++) {
            struct dup_chains_opt opt = {.counts = true, .pass = no_pass, .names = names};
            struct found f = FIND(LINES(AT("x", 0, 100), AT("y", 0, 100), AT("p", 99, 100), AT("w", 0, 100)),
                                  .opt = opt);
            assert_int_equal(f.flag[0] & f.flag[1] & f.flag[3], 1024);
            assert_int_equal(f.count[2], 3);     /* x stood for the others and is counted as one */
            f = FIND(LINES(AT("s", 0, 100), AT("b", 99, 100, .quality = 30), AT("c", 99, 100), AT("w", 0, 100)),
                     .opt = opt);
            assert_int_equal(f.count[2], 3);     /* c takes over b's two; w is counted by b, which has lost already */
        }
}

static void windows(void **state)
{
    (void)state;
    struct dup_chains_opt names = {.names = true};
    struct found f = FIND(LINES(AT("a", 0, 100), AT("f", 0, 400), AT("z", 0, 400, .cigar = "300S10M")), .opt = names);
    assert_int_equal(f.flag[0], 1024);
    assert_string_equal(f.original[0], "z");
    f = FIND(LINES(AT("a", 0, 100), AT("f", 0, 401), AT("z", 0, 401, .cigar = "301S10M")), .opt = names);
    assert_int_equal(f.flag[0] | f.flag[1] | f.flag[2], 0);
    f = FIND(LINES(AT("a", 0, 100), AT("z", 0, 401, .cigar = "301S10M")), .opt = names);
    assert_int_equal(f.flag[0], 1024);           /* its own position does not close its window */
    f = FIND(LINES(AT("h", 16, 99, .cigar = "10M900N10M"), AT("a", 0, 100), AT("f", 0, 401),
                   AT("z", 0, 401, .cigar = "301S10M")));
    assert_int_equal(f.flag[1], 1024);           /* h holds all records after it */
    f = FIND(LINES(AT("a", 0, 100, .quality = 20), AT("b", 0, 350, .cigar = "250S10M"), AT("f", 0, 401),
                   AT("z", 0, 401, .cigar = "301S10M", .quality = 20)), .opt = names);
    assert_string_equal(f.original[0], "b");
    assert_int_equal(f.flag[3], 0);              /* the set closed with its owner */
}

static void optical(void **state)
{
    (void)state;
    struct dup_chains_opt opt = {.names = true, .distance = 100};
    struct line far[] = {AT("m:1:1:1500:9", 99, 100, .quality = 20), AT("m:1:1:1580:9", 99, 100, .quality = 30),
                         AT("m:1:1:1000:9", 99, 100)};
    struct found f = FIND(LINES(far[0], far[1], far[2]), .opt = opt);
    assert_int_equal(f.type[0], DUP_TYPE_SEQUENCING);
    assert_int_equal(f.type[1], DUP_TYPE_LIBRARY);
    assert_int_equal(f.type[2], DUP_TYPE_UNKNOWN);
    assert_string_equal(f.original[0], "m:1:1:1000:9");
    assert_int_equal(f.counts.optical_pair, 1);
    opt.pass = true;                             /* --no-multi-dup */
    f = FIND(LINES(far[0], far[1], far[2]), .opt = opt);
    assert_string_equal(f.original[0], "m:1:1:1580:9");
    opt.pass = false;
    f = FIND(LINES(AT("m:1:99:5000:9", 99, 100), AT("m:1:100:100:9", 99, 100, .quality = 30),
                   AT("m:1:99:150:9", 99, 100, .quality = 20)), .opt = opt);
    assert_int_equal(f.type[1], DUP_TYPE_LIBRARY);
    assert_int_equal(f.type[2], DUP_TYPE_SEQUENCING);   /* by a tile of another length */
}

/* A single that a pair end displaced has the original of that pair end. */
static void trees(void **state)
{
    (void)state;
    for (size_t shards = 1; shards < 4; shards++) {
        struct found f = FIND(LINES(AT("s", 0, 100), AT("b", 99, 100, .quality = 30), AT("c", 99, 100),
                                    AT("w", 0, 100)), .opt = {.names = true, .counts = true}, .shards = shards);
        assert_string_equal(f.original[0], "c");
        assert_string_equal(f.original[1], "c");
        assert_string_equal(f.original[3], "c");
        assert_int_equal(f.count[2], 3);
    }
}

/* Their other records keep the original of the moment of the loss; the type follows the chain pass. */
static void others(void **state)
{
    (void)state;
    struct dup_others names = {.names = {.mask = 0}};
    struct dup_chains_opt opt = {.names = true, .distance = 100, .others = &names};
    struct dup_verdict verdict;
    uint32_t group;
    struct found f = FIND(LINES(AT("m:1:1:1580:9", 99, 100, .quality = 20, .tags = "MC:Z:10M\tms:i:200\tSA:Z:x"),
                                AT("m:1:1:1700:9", 99, 100, .quality = 30, .tags = "MC:Z:10M\tms:i:300\tXA:Z:x"),
                                AT("m:1:1:1650:9", 99, 100)), .opt = opt);
    assert_string_equal(f.original[0], "m:1:1:1650:9");
    assert_true(dup_others_find(&names, "m:1:1:1580:9", &verdict, &group));
    assert_string_equal(verdict.original, "m:1:1:1700:9");
    assert_int_equal(verdict.type, DUP_TYPE_SEQUENCING);         /* LB at first */
    assert_true(dup_others_find(&names, "m:1:1:1700:9", &verdict, &group));
    assert_int_equal(verdict.type, DUP_TYPE_SEQUENCING);
    assert_false(dup_others_find(&names, "m:1:1:1650:9", &verdict, &group));
    dup_others_free(&names);
}

static void modes(void **state)
{
    (void)state;
    struct line ff[] = {AT("a", 65, 100), AT("b", 65, 100, .mate_cigar = "15M"), AT("b", 129, 100)};
    struct line fr[] = {AT("a", 99, 100), AT("b", 163, 100)};
    struct dup_rule sequence = {.mode = DUP_BY_SEQUENCE};
    assert_int_equal(FIND(LINES(ff[0], ff[1])).counts.duplicate_pair, 0);
    assert_int_equal(FIND(LINES(ff[0], ff[1]), .rule = sequence).counts.duplicate_pair, 1);
    assert_int_equal(FIND(LINES(fr[0], fr[1])).counts.duplicate_pair, 1);       /* the reads exchanged */
    assert_int_equal(FIND(LINES(fr[0], fr[1]), .rule = sequence).counts.duplicate_pair, 1);
    assert_int_equal(FIND(LINES(ff[0], ff[2])).counts.duplicate_pair, 0);
    assert_int_equal(FIND(LINES(ff[0], ff[2]), .rule = sequence).counts.duplicate_pair, 1);
}

static enum bam_fault fault_of(const char *tags, struct dup_read *read)
{
    struct dup_rule rule = {.mode = DUP_BY_TEMPLATE, .barcode_tag = {'B', 'X'}};
    struct line line = AT("a", 99, 100, .tags = tags);
    struct byte_buffer bytes = record_of(&line);
    enum bam_fault fault = dup_key_make(&rule, (const struct bam_record *)bytes.p, read);
    free(bytes.p);
    return fault;
}

static void tags(void **state)
{
    (void)state;
    static const struct { const char *tag; int64_t score; bool there; } scores[] = {
        {"ms:i:7", 407, true}, {"ms:i:-1", 400, false}, {"ms:i:4294967295", 400, false}, {"ms:i:-300", 100, true},
        {"ms:Z:text", 400, true}, {"XX:i:1", 400, false}, {"ms:i:70000", 70400, true},
    };
    struct dup_read read, other;
    assert_int_equal(fault_of("ms:i:1", &read), BAM_NO_MC);
    assert_int_equal(fault_of("MC:i:10", &read), BAM_BAD_MC);
    for (size_t i = 0; i < N_OF(scores); i++) {
        char text[64];
        snprintf(text, sizeof text, "MC:Z:10M\t%s", scores[i].tag);
        assert_int_equal(fault_of(text, &read), BAM_OK);
        assert_int_equal(read.pair_score, scores[i].score);
        assert_int_equal(read.has_mate_score, scores[i].there);
    }
    assert_int_equal(fault_of("MC:Z:10M\tBX:Z:AC", &read), BAM_OK);
    assert_int_equal(fault_of("MC:Z:10M\tBX:H:AC\tSA:Z:x", &other), BAM_OK);
    assert_memory_equal(&read.pair, &other.pair, sizeof read.pair);
    assert_false(read.elsewhere);
    assert_true(other.elsewhere);
    assert_int_equal(fault_of("MC:Z:10M\tBX:i:1", &other), BAM_OK);
    assert_true(other.barcode_missed);
    assert_int_equal(other.single.barcode, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pairs), cmocka_unit_test(singles), cmocka_unit_test(counts), cmocka_unit_test(windows),
        cmocka_unit_test(optical), cmocka_unit_test(trees), cmocka_unit_test(others), cmocka_unit_test(modes),
        cmocka_unit_test(tags),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
