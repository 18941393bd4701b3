/* SPDX-License-Identifier: MIT */
#include "unit.h"
#include <fcntl.h>
#include <htslib/hts_log.h>
#include "codec/bgzf_block.h"
#include "cli/command_args.h"
#include "unit_args.h"
#include "unit_printed.h"
#include "unit_stdin.h"

#define KIB ((uint64_t)1 << 10)
#define MIB (KIB << 10)
#define GIB (MIB << 10)
#define TIB (GIB << 10)

/* ---- parses a line and catches its output ---- */

struct parsed {
    struct engine_opts opts;
    enum engine_args_result result;
    char text[400];              /* the words that opts points to */
    char out[MAX_PRINTED], err[MAX_PRINTED];
};

static void parse_words(struct parsed *p, int argc, char **argv)
{
    int out_file, err_file, out = unit_redirect(stdout, &out_file), err = unit_redirect(stderr, &err_file);
    unit_reset_getopt();
    p->result = sort_args_parse(&p->opts, argc, argv);
    unit_restore(stdout, out, out_file, p->out);
    unit_restore(stderr, err, err_file, p->err);
}

/* "samtools sort" and the words of line, separated by single blanks. */
static struct parsed *parse(const char *line)
{
    struct parsed *p = calloc(1, sizeof *p);
    MUST(p);
    char *argv[MAX_WORDS + 1];
    snprintf(p->text, sizeof p->text, "sort %s", line);
    int argc = unit_words(p->text, argv);
    parse_words(p, argc, argv);
    return p;
}

static void forget(struct parsed *p)
{
    engine_args_free(&p->opts);
    free(p);
}

/* Valid: nothing was printed. */
static struct parsed *parse_good(const char *line)
{
    struct parsed *p = parse(line);
    if (p->result != ENGINE_ARGS_RUN || p->out[0] || p->err[0])
        fail_msg("\"%s\": result %d, \"%s\"", line, (int)p->result, p->err);
    return p;
}

/* Accepted, with a warning that contains `part`; part NULL: without one. */
static struct parsed *parse_warned(const char *line, const char *part)
{
    struct parsed *p = part ? parse(line) : parse_good(line);
    if (p->result != ENGINE_ARGS_RUN || (part && (!strstr(p->err, "warning: ") || !strstr(p->err, part))))
        fail_msg("\"%s\": result %d, \"%s\"", line, (int)p->result, p->err);
    return p;
}

/* An error on stderr that contains `part`; nothing on stdout. */
static void check_bad(const char *line, const char *part)
{
    struct parsed *p = parse(line);
    if (p->result != ENGINE_ARGS_ERROR || p->out[0] || !strstr(p->err, part))
        fail_msg("\"%s\": result %d, stdout \"%s\", stderr \"%s\"", line, (int)p->result, p->out,
                 p->err);
    forget(p);
}

/* ---- defaults ---- */

static void test_defaults(void **state)
{
    (void)state;
    struct parsed *p = parse_good("in.bam");
    assert_string_equal(p->opts.in.paths[0], "in.bam");
    assert_string_equal(p->opts.out.path, "-");
    assert_int_equal(p->opts.n_threads, 1);
    assert_int_equal(p->opts.memory, 768 * MIB);
    assert_int_equal(p->opts.out.level, BGZF_LEVEL_DEFAULT);
    assert_false(p->opts.out.no_pg);
    assert_string_equal(p->opts.out.command_line, "samtools sort in.bam");
    forget(p);
}

/* ---- -m ---- */

static void test_memory_in_all_its_spellings(void **state)
{
    (void)state;
    static const struct { const char *text; uint64_t bytes; } table[] = {
        {"1M", MIB},          {"1m", MIB},           {"1048576", MIB},
        {"1048577", MIB + 1}, {"1024K", MIB},        {"1024k", MIB},
        {"3G", 3 * GIB},      {"3g", 3 * GIB},       {"2T", 2 * TIB},
        {"2t", 2 * TIB},      {"0x100000", MIB},     {"0x10M", 16 * MIB},
        {"010M", 8 * MIB},    {"2GB", 2 * GIB},      {"2Gi", 2 * GIB},
        {"2GiB", 2 * GIB},    {"1.5G", 3 * GIB / 2}, {"0.5g", GIB / 2},
        {".5G", GIB / 2},     {"1.M", MIB},          {"1.25M", MIB + MIB / 4},
        {"768M", 768 * MIB},  {"+1M", MIB},          {"2097152.9", 2 * MIB},
    };
    for (size_t i = 0; i < N_OF(table); i++) {
        char line[100];
        snprintf(line, sizeof line, "-m %s in.bam", table[i].text);
        struct parsed *p = parse_good(line);
        if (p->opts.memory != table[i].bytes)
            fail_msg("-m %s: %llu bytes", table[i].text, (unsigned long long)p->opts.memory);
        forget(p);
    }
}

static void test_memory_is_per_thread_and_does_not_overflow(void **state)
{
    (void)state;
    struct parsed *p = parse_good("-m 3G -@ 32 in.bam");
    assert_int_equal(p->opts.memory, 96 * GIB);
    forget(p);
    p = parse_good("-@ 32 -m 3G in.bam");
    assert_int_equal(p->opts.memory, 96 * GIB);
    forget(p);
    p = parse_good("-@ 4096 -m 4000000T in.bam");
    assert_int_equal(p->opts.memory, UINT64_MAX - 64 * MIB);
    assert_int_equal(p->opts.report.memory, UINT64_MAX);   /* includes the memory of the program itself */
    forget(p);
}

/* ---- -l, -u ---- */

static void test_levels(void **state)
{
    (void)state;
    static const struct { const char *line; int level; } table[] = {
        {"-l 0 x", 0},
        {"-l 1 x", 1},
        {"-l 6 x", 6},
        {"-l 9 x", 9},
        {"-l 10 x", 9},
        {"-l 2147483647 x", 9},
        {"-l -1 x", BGZF_LEVEL_DEFAULT},
        {"-l -5 x", BGZF_LEVEL_DEFAULT},
        {"-u x", 0},
        {"-l9 x", 9},
        {"-l +3 x", 3},
    };
    for (size_t i = 0; i < N_OF(table); i++) {
        struct parsed *p = parse_good(table[i].line);
        assert_int_equal(p->opts.out.level, table[i].level);
        forget(p);
    }
}

static void test_last_of_level_and_uncompressed_wins(void **state)
{
    (void)state;
    static const struct { const char *line; int level; } table[] = {
        {"-l 5 -u x", 0}, {"-u -l 5 x", 5}, {"-u -l 5 -u x", 0}, {"-l 1 -l 2 x", 2}, {"-ul3 x", 3},
        {"-u -l -1 x", BGZF_LEVEL_DEFAULT}, {"-l 4 x -u", 0},
    };
    for (size_t i = 0; i < N_OF(table); i++) {
        struct parsed *p = parse_good(table[i].line);
        assert_int_equal(p->opts.out.level, table[i].level);
        forget(p);
    }
}

/* ---- -@ ---- */

static void test_threads(void **state)
{
    (void)state;
    static const struct { const char *line; int n; const char *warning; } table[] = {
        {"-@ 1 x", 1, NULL},       {"-@ 0 x", 1, NULL},       {"-@ -3 x", 1, NULL},
        {"-@ 2 x", 2, NULL},       {"-@64 x", 64, NULL},      {"--threads 8 x", 8, NULL},
        {"-@ 4096 x", 4096, NULL}, {"-@ 4097 x", 4096, "4097 is too large; using 4096"}, {"-@ 8 -@ 2 x", 2, NULL},
    };
    for (size_t i = 0; i < N_OF(table); i++) {
        struct parsed *p = parse_warned(table[i].line, table[i].warning);
        assert_int_equal(p->opts.n_threads, table[i].n);
        forget(p);
    }
}

static void test_threads_of_openmp_count_when_none_are_given(void **state)
{
    (void)state;
    static const struct { const char *text; int n; } table[] = {
        {"6", 6}, {"4,2", 4}, {"0", 1}, {"-2", 1}, {"junk", 1}, {"", 1}, {"1000000", 4096},
    };
    for (size_t i = 0; i < N_OF(table); i++) {
        setenv("OMP_NUM_THREADS", table[i].text, 1);
        struct parsed *p = parse_good("-m 1M x");
        assert_int_equal(p->opts.n_threads, table[i].n);
        assert_int_equal(p->opts.memory, (uint64_t)table[i].n * MIB);
        forget(p);
        p = parse_good("-@ 3 x");
        assert_int_equal(p->opts.n_threads, 3);
        forget(p);
    }
    unsetenv("OMP_NUM_THREADS");
}

/* ---- formats ---- */

static void test_level_of_the_format_wins(void **state)
{
    (void)state;
    static const struct { const char *line; int level; } table[] = {
        {"-O bam,level=3 x", 3},      {"-O bam,level=3 -l 5 x", 3},
        {"-l 5 -O bam,level=3 x", 3}, {"-u -O bam,level=4 x", 4},
        {"-O bam,level=0 -l 5 x", 0}, {"--output-fmt-option level=2 x", 2},
        {"-O bam -l 5 x", 5},
    };
    for (size_t i = 0; i < N_OF(table); i++) {
        struct parsed *p = parse_good(table[i].line);
        if (p->opts.out.level != table[i].level)
            fail_msg("%s: level %d", table[i].line, p->opts.out.level);
        forget(p);
    }
}

/* ---- orders ---- */

static void test_last_order_wins_but_ascii_stays(void **state)
{
    (void)state;
    static const struct { const char *line; enum sort_by by, then; } table[] = {
        {"x", SORT_COORDINATE, 0},
        {"-n x", SORT_NAME_NATURAL, 0},
        {"-N x", SORT_NAME_ASCII, 0},
        {"-N -n x", SORT_NAME_ASCII, 0},
        {"-n -N x", SORT_NAME_ASCII, 0},
        {"-nN x", SORT_NAME_ASCII, 0},
        {"-M x", SORT_MINHASH, 0},
        {"-M -n x", SORT_NAME_NATURAL, 0},
        {"-n -M x", SORT_MINHASH, 0},
        {"-N -M -n x", SORT_NAME_ASCII, 0},
        {"-I ref.fa x", SORT_MINHASH, 0},
        {"--template-coordinate x", SORT_TEMPLATE, 0},
        {"-n --template-coordinate x", SORT_TEMPLATE, 0},
        {"--template-coordinate -n x", SORT_NAME_NATURAL, 0},
        {"x -n", SORT_NAME_NATURAL, 0},
        {"-t RG x", SORT_TAG, SORT_COORDINATE},
        {"-t RG -n x", SORT_TAG, SORT_NAME_NATURAL},
        {"-n -t RG x", SORT_TAG, SORT_NAME_NATURAL},
        {"-N -t RG x", SORT_TAG, SORT_NAME_ASCII},
        {"-t RG -M x", SORT_TAG, SORT_COORDINATE},
        {"--template-coordinate -t RG x", SORT_TAG, SORT_COORDINATE},
    };
    for (size_t i = 0; i < N_OF(table); i++) {
        struct parsed *p = parse_good(table[i].line);
        if (p->opts.order.by != table[i].by
            || (table[i].by == SORT_TAG && p->opts.order.then != table[i].then))
            fail_msg("%s: order %d, %d", table[i].line, (int)p->opts.order.by,
                     (int)p->opts.order.then);
        forget(p);
    }
}

static void test_minimiser_options(void **state)
{
    (void)state;
    struct parsed *p = parse_good("-M x");
    assert_int_equal(p->opts.order.kmer, 20);
    assert_int_equal(p->opts.order.window, 100);
    assert_null(p->opts.order.index_fasta);
    assert_false(p->opts.order.no_reverse);
    assert_false(p->opts.order.squash);
    forget(p);
    p = parse_good("-I ref.fa -K 15 -w 7 -R -H x");
    assert_int_equal(p->opts.order.kmer, 15);
    assert_int_equal(p->opts.order.window, 7);
    assert_string_equal(p->opts.order.index_fasta, "ref.fa");
    assert_true(p->opts.order.no_reverse);
    assert_true(p->opts.order.squash);
    forget(p);
    static const struct { const char *line; int kmer; const char *warning; } table[] = {
        {"-M -K 31 x", 31, NULL}, {"-M -K 32 x", 31, "32 is too large; using 31"}, {"-M -K 1 x", 1, NULL},
        {"-M -K 0 x", 1, NULL},   {"-M -K -4 x", 1, NULL},
    };
    for (size_t i = 0; i < N_OF(table); i++) {
        p = parse_warned(table[i].line, table[i].warning);
        assert_int_equal(p->opts.order.kmer, table[i].kmer);
        forget(p);
    }
    check_bad("-M -K ten x", "ten");
    check_bad("-M -K 20x x", "20x");
    check_bad("-M -w 1.5 x", "1.5");
}

/* ---- --write-index ---- */

static void test_index_and_its_name(void **state)
{
    (void)state;
    static const struct { const char *line, *out, *index; int format; } table[] = {
        {"-o x.bam x", "x.bam", NULL, 0},
        {"--write-index -o x.bam x", "x.bam", "x.bam.csi", HTS_FMT_CSI},
        {"--write-index -o x.bam##idx##y.bai x", "x.bam", "y.bai", HTS_FMT_BAI},
        {"--write-index -o x.bam##idx##y.csi x", "x.bam", "y.csi", HTS_FMT_CSI},
        {"-o x.bam##idx##y.bai x", "x.bam", NULL, 0},
        {"--write-index=bai -o x.bam x", "x.bam", "x.bam.bai", HTS_FMT_BAI},
        {"--write-index=csi -o x.bam x", "x.bam", "x.bam.csi", HTS_FMT_CSI},
        {"--write-index -o x.cram x", "x.cram", "x.cram.crai", HTS_FMT_CRAI},
        {"--write-index -o x.sam.gz x", "x.sam.gz", "x.sam.gz.csi", HTS_FMT_CSI},
        {"-M --write-index -o x.bam x", "x.bam", "x.bam.csi", HTS_FMT_CSI},
    };
    for (size_t i = 0; i < N_OF(table); i++) {
        struct parsed *p = parse_good(table[i].line);
        assert_string_equal(p->opts.out.path, table[i].out);
        assert_int_equal(p->opts.out.index != NULL, table[i].index != NULL);
        if (table[i].index) {
            assert_string_equal(p->opts.out.index, table[i].index);
            assert_int_equal(p->opts.out.index_format, table[i].format);
        }
        forget(p);
    }
}

/* ---- --total-memory ---- */

static void test_memory_in_all(void **state)
{
    (void)state;
    struct parsed *p = parse_good("--total-memory 5G -@ 4 -m 2G x");
    assert_int_equal(p->opts.memory, 5 * GIB);
    assert_int_equal(p->opts.memory_overhead, 0);
    forget(p);
    p = parse_good("-@ 4 -m 2G x");
    assert_int_equal(p->opts.memory, 8 * GIB);
    assert_int_equal(p->opts.memory_overhead, 64 << 20);
    forget(p);
    p = parse_good("--total-memory 40% x");
    struct parsed *whole = parse_good("--total-memory 80% x");
    assert_true(p->opts.memory > 0);
    /* Approximately: a virtual machine may get or lose memory in between. */
    assert_in_range(whole->opts.memory, 2 * p->opts.memory * 49 / 50, 2 * p->opts.memory * 51 / 50);
    forget(p);
    forget(whole);
    static const char *const wrong[]
        = {"0%", "101%", "-5%", "%", "x%", "5%%", "nan%", "inf%", "23M", "1023K", "0", "5", "lots", "-1G",
           "99999999999999999999G"};
    for (size_t i = 0; i < N_OF(wrong); i++) {
        char line[100];
        snprintf(line, sizeof line, "--total-memory %s x", wrong[i]);
        check_bad(line, "--total-memory");
    }
}

/* ---- temporary files ---- */

static void test_places_for_temporary_files(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        const char *places[3];
    } table[] = {
        {"x", {"samtools-sort.tmp"}},
        {"-o - x", {"samtools-sort.tmp"}},
        {"-o out.bam x", {"out.bam.tmp"}},                           /* beside the output */
        {"-o /a/b/out.bam x", {"/a/b/out.bam.tmp"}},
        {"-o out.bam -T tmp x", {"tmp"}},
        {"-T /one -T/two/pre x -T three", {"/one", "/two/pre", "three"}},
        {"--tmpdir-env x", {"/the/tmpdir/samtools-sort"}},
        {"--tmpdir-env -o out.bam x", {"/the/tmpdir/samtools-sort"}},
        {"--tmpdir-env -T tmp x", {"tmp"}},
        {"-T tmp --tmpdir-env x", {"tmp"}},
    };
    setenv("TMPDIR", "/the/tmpdir", 1);          /* alone it changes nothing */
    for (size_t i = 0; i < N_OF(table); i++) {
        struct parsed *p = parse_good(table[i].line);
        size_t n = 0;
        for (; n < N_OF(table[i].places) && table[i].places[n]; n++) {
            assert_true(n < p->opts.n_temp_prefixes);
            assert_string_equal(p->opts.temp_prefixes[n], table[i].places[n]);
        }
        assert_int_equal(p->opts.n_temp_prefixes, n);
        forget(p);
    }
    unsetenv("TMPDIR");
}

/* ---- mistakes and help ---- */

static void test_verbosity_is_handed_to_htslib(void **state)
{
    (void)state;
    int before = hts_verbose;
    forget(parse_good("--verbosity 7 x"));
    int seven = hts_verbose;
    forget(parse_good("--verbosity 0 x"));
    int none = hts_verbose;
    hts_verbose = before;
    assert_int_equal(seven, 7);
    assert_int_equal(none, 0);
    check_bad("--verbosity loud x", "loud");
}

/* ---- the @PG line ---- */

static void test_command_line_has_no_tab_or_newline(void **state)
{
    (void)state;
    char *argv[] = {"samtools", "sort", "-o", "a\tb\nc.bam", "in put.bam", NULL};
    struct parsed p;
    parse_words(&p, 5, argv);
    assert_int_equal(p.result, ENGINE_ARGS_RUN);
    assert_string_equal(p.opts.out.command_line, "samtools sort -o a b c.bam in put.bam");
    assert_string_equal(p.opts.out.path, "a\tb\nc.bam");
    engine_args_free(&p.opts);
}

static void test_command_line_keeps_its_order(void **state)
{
    (void)state;
    struct parsed *p = parse_good("in.bam -u -o out.bam"); /* getopt moves operands to the end */
    assert_string_equal(p->opts.out.command_line, "samtools sort in.bam -u -o out.bam");
    forget(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_memory_in_all_its_spellings),
        cmocka_unit_test(test_memory_is_per_thread_and_does_not_overflow),
        cmocka_unit_test(test_levels),
        cmocka_unit_test(test_last_of_level_and_uncompressed_wins),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_threads_of_openmp_count_when_none_are_given),
        cmocka_unit_test(test_level_of_the_format_wins),
        cmocka_unit_test(test_last_order_wins_but_ascii_stays),
        cmocka_unit_test(test_minimiser_options),
        cmocka_unit_test(test_index_and_its_name),
        cmocka_unit_test(test_memory_in_all),
        cmocka_unit_test(test_places_for_temporary_files),
        cmocka_unit_test(test_verbosity_is_handed_to_htslib),
        cmocka_unit_test(test_command_line_has_no_tab_or_newline),
        cmocka_unit_test(test_command_line_keeps_its_order),
    };
    unsetenv("OMP_NUM_THREADS");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
