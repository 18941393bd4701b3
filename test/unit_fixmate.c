/* SPDX-License-Identifier: MIT */
/* The expected results are those of samtools 1.24. */
#include <htslib/kstring.h>
#include "unit.h"
#include "hts/bam1_bytes.h"
#include "bam/bam_record.h"
#include "fixmate/fixmate.h"
#include "fixmate/sanitize.h"

static const int64_t LENGTHS[] = {1000, 500};
static const char HEADER[] = "@SQ\tSN:c1\tLN:1000\n@SQ\tSN:c2\tLN:500\n";

struct template {
    const char *what;
    const char *options;         /* letters of the command line; the text after a blank is the list of -z */
    const char *in[5], *out[5];  /* FLAG RNAME POS MAPQ CIGAR RNEXT PNEXT TLEN TAGS */
};

static const struct template TEMPLATES[] = {
    {"mates facing each other are left alone", "mc",
     {"65 c1 100 60 10M * 0 0", "145 c1 200 60 10M * 0 0"},
     {"97 c1 100 60 10M = 200 110 MQ:i:60 MC:Z:10M ct:Z:1F10M90T2R10M ms:i:400",
      "145 c1 200 60 10M = 100 -110 MQ:i:60 MC:Z:10M ms:i:400"}},
    {"a proper pair is not kept", "p",
     {"67 c1 100 60 10M * 0 0", "147 c1 200 60 10M * 0 0"},
     {"99 c1 100 60 10M = 200 110 MQ:i:60 MC:Z:10M", "147 c1 200 60 10M = 100 -110 MQ:i:60 MC:Z:10M"}},
    {"mates of one direction are proper", "",
     {"67 c1 100 60 10M * 0 0", "131 c1 200 60 10M * 0 0"},
     {"65 c1 100 60 10M = 200 100 MQ:i:60 MC:Z:10M", "129 c1 200 60 10M = 100 -100 MQ:i:60 MC:Z:10M"}},
    {"mates on two references are proper", "",
     {"99 c1 100 60 10M * 0 0", "147 c2 200 60 10M * 0 0"},
     {"97 c1 100 60 10M c2 200 0 MQ:i:60 MC:Z:10M", "145 c2 200 60 10M c1 100 0 MQ:i:60 MC:Z:10M"}},
    {"mates that overlap are not proper", "",
     {"99 c1 100 60 10M * 0 0", "147 c1 91 60 10M * 0 0"},
     {"99 c1 100 60 10M = 91 1 MQ:i:60 MC:Z:10M", "147 c1 91 60 10M = 100 -1 MQ:i:60 MC:Z:10M"}},
    {"a tie is decided otherwise", "",
     {"99 c1 100 60 10M * 0 0", "147 c1 90 60 10M * 0 0"},
     {"99 c1 100 60 10M = 90 0 MQ:i:60 MC:Z:10M", "147 c1 90 60 10M = 100 0 MQ:i:60 MC:Z:10M"}},
    {"a tie is not decided by the first", "",
     {"83 c1 91 60 10M * 0 0", "163 c1 101 60 10M * 0 0"},
     {"81 c1 91 60 10M = 101 0 MQ:i:60 MC:Z:10M", "161 c1 101 60 10M = 91 0 MQ:i:60 MC:Z:10M"}},
    {"an unmapped mate has no place", "m",
     {"65 c1 100 60 10M * 0 0 MQ:i:3 MC:Z:9M ms:i:1 XX:i:1",
      "133 * 0 60 * * 0 0 NM:i:1 MD:Z:10 SM:i:1 AS:i:7"},
     {"73 c1 100 60 10M = 100 0 MQ:i:3 XX:i:1 MC:Z:* ms:i:400",
      "133 c1 100 0 * = 100 0 AS:i:7 MQ:i:60 MC:Z:10M ms:i:400"}},
    {"an old MUNMAP is taken away", "",
     {"73 c1 100 60 10M * 0 0", "129 c1 200 60 10M * 0 0"},
     {"73 c1 100 60 10M = 200 0 MQ:i:60 MC:Z:10M", "129 c1 200 60 10M = 100 0 MQ:i:60 MC:Z:10M"}},
    {"unmapped mates get MC", "m",
     {"77 * 0 0 * * 0 0 MC:Z:5M MQ:i:1", "141 * 0 0 * * 0 0"},
     {"77 * 0 0 * * 0 0 MC:Z:5M MQ:i:1 ms:i:400", "141 * 0 0 * * 0 0 ms:i:400"}},
    {"an orphan keeps a mate", "m",
     {"99 c1 100 60 10M = 200 110 MC:Z:10M MQ:i:60 ms:i:9"},
     {"65 c1 100 60 10M * 0 0 MC:Z:10M MQ:i:60 ms:i:9"}},
    {"of three primaries one is forgotten", "",
     {"0 c1 100 60 10M * 0 0", "0 c1 150 60 10M * 0 0", "16 c1 300 60 10M * 0 0"},
     {"33 c1 100 60 10M = 300 210 MQ:i:60 MC:Z:10M", "1 c1 150 60 10M = 100 -50 MQ:i:60 MC:Z:10M",
      "17 c1 300 60 10M = 100 -210 MQ:i:60 MC:Z:10M"}},
    {"supplementary and secondary records are alike", "",
     {"73 c1 100 60 10M * 0 0", "2113 c2 50 60 10M c1 1 5", "321 c2 70 60 10M * 0 0", "145 c1 200 60 10M * 0 0"},
     {"105 c1 100 60 10M = 200 0 MQ:i:60 MC:Z:10M", "2145 c2 50 60 10M c1 200 5 MQ:i:60 MC:Z:10M",
      "321 c2 70 60 10M * 0 0", "145 c1 200 60 10M = 100 0 MQ:i:60 MC:Z:10M"}},
    {"an unmapped record is not dropped", "r",
     {"65 c1 100 60 10M * 0 0", "2115 c2 50 60 10M * 0 0", "149 * 0 0 * * 0 0", "321 c2 70 60 10M * 0 0"},
     {"73 c1 100 60 10M = 100 0 MC:Z:*", "2155 c2 50 60 10M c1 100 0 MC:Z:*"}},
    {"a supplementary record gets the first mate", "",
     {"65 c1 100 60 10M * 0 0", "65 c1 150 60 1S9M * 0 0", "2177 c2 50 60 10M * 0 0", "129 c1 200 60 10M * 0 0"},
     {"65 c1 100 60 10M = 200 100 MQ:i:60 MC:Z:10M", "65 c1 150 60 1S9M = 100 -50 MQ:i:60 MC:Z:10M",
      "2177 c2 50 60 10M c1 150 0 MQ:i:60 MC:Z:1S9M", "129 c1 200 60 10M = 100 -100 MQ:i:60 MC:Z:10M"}},
    {"without its primary a supplementary record has no mate", "",
     {"65 c1 100 60 10M * 0 0", "2113 c2 50 60 10M * 0 0", "2177 c2 50 60 10M * 0 0"},
     {"65 c1 100 60 10M * 0 0", "2113 c2 50 60 10M * 0 0", "2177 c2 50 60 10M c1 100 0 MQ:i:60 MC:Z:10M"}},
    {"a supplementary record that is not paired has no mate", "",
     {"65 c1 100 60 10M * 0 0", "2048 c2 50 60 10M * 0 0", "145 c1 200 60 10M * 0 0"},
     {"97 c1 100 60 10M = 200 110 MQ:i:60 MC:Z:10M", "2048 c2 50 60 10M * 0 0",
      "145 c1 200 60 10M = 100 -110 MQ:i:60 MC:Z:10M"}},
    {"a read without tags lies far away", " off", {"0 c1 5000000000 60 10M * 0 0"}, {"0 c1 5000000000 60 10M * 0 0"}},
    {"an end hangs over", "",
     {"65 c2 495 60 10M * 0 0", "145 c2 496 60 3M2I5M * 0 0"},
     {"97 c2 495 60 6M4S = 496 6 MQ:i:60 MC:Z:3M2I2M3S", "145 c2 496 60 3M2I2M3S = 495 -6 MQ:i:60 MC:Z:6M4S"}},
    {"a read lies behind its reference", "",
     {"65 c2 501 60 10M * 0 0", "145 c2 450 60 10M * 0 0"},
     {"101 c2 450 0 * = 450 0 MQ:i:60 MC:Z:10M", "153 c2 450 60 10M = 450 0 MC:Z:*"}},
    {"of tags of one name all are taken away, or the last", "m",
     {"65 c1 100 60 10M * 0 0 MQ:i:1 XA:Z:x MQ:i:2 ms:i:3 MC:Z:4M XB:Z:y MQ:i:5 ZZ:i:6",
      "145 c1 200 60 10M * 0 0 ms:i:1 ms:i:2 ct:Z:t"},
     {"97 c1 100 60 10M = 200 110 XA:Z:x MQ:i:2 XB:Z:y MQ:i:5 ZZ:i:6 MQ:i:60 MC:Z:10M ms:i:400",
      "145 c1 200 60 10M = 100 -110 ms:i:2 ct:Z:t MQ:i:60 MC:Z:10M ms:i:400"}},
    {"with three primaries tags are taken away in another turn", "m",
     {"65 c1 100 60 10M * 0 0 MQ:i:1 MQ:i:2 MC:Z:1M", "65 c1 150 50 10M * 0 0", "145 c1 200 40 10M * 0 0"},
     {"97 c1 100 60 10M = 200 110 MQ:i:50 MQ:i:40 MC:Z:10M ms:i:400",
      "65 c1 150 50 10M = 100 -50 MQ:i:60 MC:Z:10M ms:i:400",
      "145 c1 200 40 10M = 100 -110 MQ:i:60 MC:Z:10M ms:i:400"}},
    {"neighbours are not joined", "", {"0 c1 5 60 4M2M4M * 0 0"}, {"0 c1 5 60 10M * 0 0"}},
    {"neighbours are joined though nobody asked", " off", {"0 c1 5 60 4M2M4M * 0 0"}, {"0 c1 5 60 4M2M4M * 0 0"}},
    {"= and X are matches unasked", "", {"0 c1 5 60 4=2X4= * 0 0"}, {"0 c1 5 60 4=2X4= * 0 0"}},
    {"= and X stay", " none,cigarx", {"0 c1 5 60 4=2X4= * 0 0"}, {"0 c1 5 60 10M * 0 0"}},
    {"an operation begins at the border", "", {"3 c2 495 60 4M2M4M * 0 0"}, {"5 c2 495 0 * * 0 0"}},
};

static sam_hdr_t *header;

static void add_line(struct byte_buffer *to, const char *text)
{
    char flag[8], name[8], pos[16], mapq[8], cigar[32], next[8], next_pos[16], length[16];
    kstring_t line = KS_INITIALIZE;
    bam1_t *b = bam_init1();
    int tags = 0;
    MUST(sscanf(text, "%7s %7s %15s %7s %31s %7s %15s %15s %n", flag, name, pos, mapq, cigar, next, next_pos, length,
                &tags) == 8);
    ksprintf(&line, "q\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\tAAAAAAAAAA\tIIIIIIIIII", flag, name, pos, mapq, cigar, next,
             next_pos, length);
    if (text[tags])
        ksprintf(&line, "\t%s", text + tags);
    for (char *c = line.s; *c; c++)
        *c = *c == ' ' ? '\t' : *c;
    MUST(sam_parse1(&line, header, b) >= 0 && bam1_bytes_append(to, b) >= 0);
    bam_destroy1(b);
    free(line.s);
}

/* Prints a record in the form of the table. */
static void print_record(const struct bam_record *r, char text[256])
{
    bam1_t *b = bam_init1();
    kstring_t line = KS_INITIALIZE;
    MUST(bam1_from_record(b, r) == 0 && sam_format1(header, b, &line) >= 0);
    char *seq = strstr(line.s, "\tAAAAAAAAAA\tIIIIIIIIII"), *behind = seq + 22;
    MUST(strncmp(line.s, "q\t", 2) == 0 && seq);
    *seq = 0;
    snprintf(text, 256, "%s%s", line.s + 2, behind);
    for (char *c = text; *c; c++)
        *c = *c == '\t' ? ' ' : *c;
    free(line.s);
    bam_destroy1(b);
}

static struct fixmate_rules rules_of(const struct template *t)
{
    size_t n = strcspn(t->options, " ");
    struct fixmate_rules rules = {
        .drops = memchr(t->options, 'r', n), .keeps_proper = memchr(t->options, 'p', n),
        .template_cigar = memchr(t->options, 'c', n), .mate_score = memchr(t->options, 'm', n), .lengths = LENGTHS,
    };
    MUST(sanitize_parse(t->options[n] ? t->options + n + 1 : "all", &rules.sanitize) == 0);
    return rules;
}

static void check(struct fixmate *f, const struct template *t)
{
    struct byte_buffer in = {NULL, 0, 0}, out = {NULL, 0, 0};
    struct fixmate_rules rules = rules_of(t);
    uint64_t dropped = 0, n_in = 0, n_out = 0;
    while (n_in < 5 && t->in[n_in])
        add_line(&in, t->in[n_in++]);
    uint8_t *exact = exact_copy(in.p, in.n);
    MUST(fixmate_template(f, &rules, exact, in.n, &out, &dropped) == 0);
    for (size_t at = 0; at < out.n; n_out++) {
        char text[256];
        const struct bam_record *r = (const struct bam_record *)(out.p + at);
        struct bam_verdict verdict = bam_record_check(out.p + at, out.n - at, 2);
        assert_int_equal(verdict.fault, BAM_OK);
        assert_int_equal(verdict.needs_fix, 0);
        print_record(r, text);
        if (n_out == 5 || !t->out[n_out] || strcmp(text, t->out[n_out]) != 0)
            fail_msg("%s: record %d is %s", t->what, (int)n_out + 1, text);
        at += bam_record_size(r);
    }
    assert_int_equal(n_out + dropped, n_in);
    assert_true(n_out == 5 || !t->out[n_out]);
    free(exact);
    free(in.p);
    free(out.p);
}

static void test_template_is_fixed_otherwise(void **state)
{
    (void)state;
    struct fixmate f = {.n = 0};
    for (size_t i = 0; i < sizeof TEMPLATES / sizeof *TEMPLATES; i++)
        check(&f, &TEMPLATES[i]);
    fixmate_free(&f);
}

/* They take linear time, and the memory of a primary record is used again for the next one. */
static void test_many_records_have_one_name(void **state)
{
    (void)state;
    enum { N = 20000 };
    struct fixmate f = {.n = 0};
    struct fixmate_rules rules = {.mate_score = true, .sanitize = SANITIZE_ALL, .lengths = LENGTHS};
    struct byte_buffer in = {NULL, 0, 0}, out = {NULL, 0, 0};
    uint64_t dropped = 0;
    for (int i = 0; i < N; i++)
        add_line(&in, i % 2 ? "65 c1 100 60 10M * 0 0" : "321 c1 100 60 10M * 0 0");
    MUST(fixmate_template(&f, &rules, in.p, in.n, &out, &dropped) == 0);
    assert_int_equal(dropped, 0);
    assert_int_equal(out.n, in.n + N / 2 * (7 + 7 + 7));
    assert_in_range(f.max, 1, 100);
    fixmate_free(&f);
    free(in.p);
    free(out.p);
}

static void test_word_is_mixed_up(void **state)
{
    (void)state;
    static const struct { const char *list; int want; } lists[] = {
        {"all", SANITIZE_ALL}, {"*", SANITIZE_ALL}, {"on", SANITIZE_ON}, {"pos,none,aux", SANITIZE_AUX}, {"off", 0},
        {"pos,mqual", SANITIZE_POS | SANITIZE_MAPQ}, {"cigar", SANITIZE_CIGAR}, {"cigdup", SANITIZE_CIGAR_JOIN},
        {"all,cigarx", SANITIZE_ALL | SANITIZE_CIGAR_M}, {"unmap", SANITIZE_UNMAP}, {"nonsense", -1}, {"pos,x", -1},
    };
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        unsigned what;
        int status = sanitize_parse(lists[i].list, &what);
        assert_int_equal(status < 0 ? -1 : (int)what, lists[i].want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_template_is_fixed_otherwise),
        cmocka_unit_test(test_many_records_have_one_name),
        cmocka_unit_test(test_word_is_mixed_up),
    };
    header = sam_hdr_parse(sizeof HEADER - 1, HEADER);
    MUST(header);
    header->text = strdup(HEADER);
    header->l_text = sizeof HEADER - 1;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    sam_hdr_destroy(header);
    return failed;
}
