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

/* ---- parsing a line, with what it prints caught ---- */

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

/* "samtools sort" and the words of line, which single blanks part. */
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

/* Sound: nothing was printed. */
static struct parsed *parse_good(const char *line)
{
    struct parsed *p = parse(line);
    if (p->result != ENGINE_ARGS_RUN || p->out[0] || p->err[0])
        fail_msg("\"%s\": result %d, \"%s\"", line, (int)p->result, p->err);
    return p;
}

/* Taken, with a warning that holds `part`; part NULL: without one. */
static struct parsed *parse_warned(const char *line, const char *part)
{
    struct parsed *p = part ? parse(line) : parse_good(line);
    if (p->result != ENGINE_ARGS_RUN || (part && (!strstr(p->err, "warning: ") || !strstr(p->err, part))))
        fail_msg("\"%s\": result %d, \"%s\"", line, (int)p->result, p->err);
    return p;
}

/* An error that is told on stderr, in words that hold `part`; nothing on stdout. */
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

static void test_all_options_at_once(void **state)
{
    (void)state;
    struct parsed *p = parse_good("-@ 4 -m 2M -l 5 -o out.bam -O bam -T tmp --no-PG in.bam");
    assert_string_equal(p->opts.in.paths[0], "in.bam");
    assert_string_equal(p->opts.out.path, "out.bam");
    assert_int_equal(p->opts.n_temp_prefixes, 1);
    assert_string_equal(p->opts.temp_prefixes[0], "tmp");
    assert_int_equal(p->opts.size_hint, 0);
    assert_int_equal(p->opts.n_threads, 4);
    assert_int_equal(p->opts.memory, 8 * MIB);
    assert_int_equal(p->opts.out.level, 5);
    assert_true(p->opts.out.no_pg);
    forget(p);
}

static void test_options_after_the_operand(void **state)
{
    (void)state;
    struct parsed *p = parse_good("in.bam -@3 -oout.bam --threads=2 --no-PG");
    assert_string_equal(p->opts.in.paths[0], "in.bam");
    assert_string_equal(p->opts.out.path, "out.bam");
    assert_int_equal(p->opts.n_threads, 2);
    assert_true(p->opts.out.no_pg);
    forget(p);
    p = parse_good("-o out.bam -- -odd-name.bam");
    assert_string_equal(p->opts.in.paths[0], "-odd-name.bam");
    forget(p);
}

static void test_dash_is_standard_input(void **state)
{
    (void)state;
    struct parsed *p = parse_good("-o out.bam -");
    assert_string_equal(p->opts.in.paths[0], "-");
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

static void test_memory_that_is_too_little(void **state)
{
    (void)state;
    static const char *const few[]
        = {"0", "1", "768", "1048575", "1023K", "0.9M", "0x0M", "1e9", "0.0001G", "1.5K", "5", "4X"};
    for (size_t i = 0; i < N_OF(few); i++) {
        char line[100];
        snprintf(line, sizeof line, "-m %s in.bam", few[i]);
        check_bad(line, few[i]);
        check_bad(line, "1M");                   /* the minimum is named */
    }
}

static void test_memory_that_is_no_size(void **state)
{
    (void)state;
    static const char *const wrong[] = {"G",
                                        "x",
                                        ".",
                                        ".G",
                                        "-1G",
                                        "-5",
                                        "-0.5G",
                                        "-.5T",
                                        "99999999999999999999",
                                        "18446744073709551616",
                                        "20000000000G",
                                        "nan",
                                        "inf",
                                        "abc",
                                        "M",
                                        "17179869184G",
                                        "0.5.5.5-",
                                        "8388608T"};
    for (size_t i = 0; i < N_OF(wrong); i++) {
        char line[100];
        snprintf(line, sizeof line, "-m %s in.bam", wrong[i]);
        check_bad(line, wrong[i]);
    }
    char *empty[] = {"samtools", "sort", "-m", "", "in.bam", NULL};
    struct parsed p;
    parse_words(&p, 5, empty);
    assert_int_equal(p.result, ENGINE_ARGS_ERROR);
    engine_args_free(&p.opts);
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
    assert_int_equal(p->opts.memory, UINT64_MAX);
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

static void test_level_that_is_no_number(void **state)
{
    (void)state;
    static const char *const wrong[]
        = {"x", "5x", "1.5", "0x5", "99999999999", "-99999999999999999999"};
    for (size_t i = 0; i < N_OF(wrong); i++) {
        char line[100];
        snprintf(line, sizeof line, "-l %s in.bam", wrong[i]);
        check_bad(line, "Invalid compression level");
        check_bad(line, "See samtools sort --help");
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

static void test_threads_that_are_no_number(void **state)
{
    (void)state;
    check_bad("-@ many x", "many");
    check_bad("-@ 4x x", "4x");
    check_bad("-@ 2.5 x", "2.5");
    check_bad("-@ 99999999999 x", "99999999999");
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

static void test_formats(void **state)
{
    (void)state;
    static const struct { const char *line; int format, compression; } table[] = {
        {"x", bam, -1},
        {"-o x.bam x", bam, -1},
        {"-o x x", bam, -1},
        {"-o sam x", bam, -1},
        {"-o .sam/x x", bam, -1},
        {"-o x.sam x", sam, no_compression},
        {"-o x.SAM x", sam, no_compression},
        {"-o x.sam.gz x", sam, bgzf},
        {"-o x.cram x", cram, -1},
        {"-O bam x", bam, -1},
        {"-O BAM x", bam, -1},
        {"--output-fmt Bam x", bam, -1},
        {"-O sam x", sam, no_compression},
        {"-O sam.gz x", sam, bgzf},
        {"-O cram x", cram, -1},
        {"-O bam -o x.sam x", bam, -1},
        {"-o x.cram -O sam x", sam, no_compression},
        {"-O sam -O bam x", bam, -1},
        {"-O sam,level=5 x", sam, bgzf},
        {"-O sam -l 5 x", sam, no_compression},
        {"-o x.fastq x", fastq_format, -1},      /* htslib before 1.15 sees no extension in x.fq */
        {"-O fasta x", fasta_format, -1},
    };
    for (size_t i = 0; i < N_OF(table); i++) {
        struct parsed *p = parse_good(table[i].line);
        if ((int)p->opts.out.format.format != table[i].format)
            fail_msg("%s: format %d", table[i].line, (int)p->opts.out.format.format);
        if (table[i].compression >= 0
            && (int)p->opts.out.format.compression != table[i].compression)
            fail_msg("%s: compression %d", table[i].line, (int)p->opts.out.format.compression);
        forget(p);
    }
}

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

static void test_format_that_nobody_knows(void **state)
{
    (void)state;
    check_bad("-O json x", "json");
    check_bad("-O ba x", "ba");
    check_bad("-O bai x", "bai");
    check_bad("--output-fmt-option nonsense=1 x", "nonsense");
    check_bad("--input-fmt-option nonsense=1 x", "nonsense");
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

static void test_tag_is_two_characters(void **state)
{
    (void)state;
    static const char *const good[] = {"-t RG x", "-t RGX x", "-tRG x"};
    static const char *const warning[] = {NULL, "-t RGX: a tag has two characters", NULL};
    for (size_t i = 0; i < N_OF(good); i++) {
        struct parsed *p = parse_warned(good[i], warning[i]);
        assert_memory_equal(p->opts.order.tag, "RG", 2);
        forget(p);
    }
    static const char *const odd[] = {"-t R x", "-t 1R x", "-t R: x"};
    static const char tags[][3] = {"R", "1R", "R:"};
    for (size_t i = 0; i < N_OF(odd); i++) {
        struct parsed *p = parse(odd[i]);
        assert_int_equal(p->result, ENGINE_ARGS_RUN);
        assert_memory_equal(p->opts.order.tag, tags[i], 2);
        assert_non_null(strstr(p->err, "warning"));
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

static void test_index_that_cannot_be_written(void **state)
{
    (void)state;
    check_bad("--write-index x", "--write-index");
    check_bad("--write-index -o x.sam x", "--write-index");
    check_bad("--write-index=gzi -o x.bam x", "gzi");
    struct parsed *p = parse("--write-index -n -o x.bam x");         /* a warning, as samtools */
    assert_int_equal(p->result, ENGINE_ARGS_RUN);
    assert_null(p->opts.out.index);
    assert_non_null(
        strstr(p->err, "Ignoring --write-index as it only works for position sorted files."));
    forget(p);
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
    /* Nearly: a virtual machine may be given memory, or lose some, in between. */
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
    setenv("TMPDIR", "/the/tmpdir", 1);          /* by itself it changes nothing */
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

static void test_tmpdir_that_is_wanted_and_not_set(void **state)
{
    (void)state;
    unsetenv("TMPDIR");
    check_bad("--tmpdir-env x", "TMPDIR");
    setenv("TMPDIR", "", 1);
    check_bad("--tmpdir-env x", "TMPDIR");
    forget(parse_good("--tmpdir-env -T tmp x")); /* not needed */
    unsetenv("TMPDIR");
}

static void test_size_hint(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t size;
    } table[] = {{"1", 1}, {"300G", 300 * GIB}, {"1.5T", 3 * TIB / 2}, {"20k", 20 * KIB}, {"7M", 7 * MIB}};
    char line[100];
    for (size_t i = 0; i < N_OF(table); i++) {
        snprintf(line, sizeof line, "--size-hint %s x", table[i].text);
        struct parsed *p = parse_good(line);
        assert_int_equal(p->opts.size_hint, table[i].size);
        forget(p);
    }
    static const char *const wrong[] = {"lots", "-1G", "-5", "-1.5G", "G", ".", "%", "nan", "inf", "99999999999T"};
    for (size_t i = 0; i < N_OF(wrong); i++) {
        snprintf(line, sizeof line, "--size-hint %s x", wrong[i]);
        check_bad(line, "--size-hint");
    }
}

static void test_report_and_progress(void **state)
{
    (void)state;
    struct parsed *p = parse_good("x");
    assert_true(p->opts.report.format == REPORT_NONE && !p->opts.report.file && !p->opts.report.trace_file);
    assert_int_equal(p->opts.progress, PROGRESS_ON_TERMINAL);
    forget(p);
    p = parse_good("--report --progress x");     /* x is the input */
    assert_int_equal(p->opts.report.format, REPORT_TEXT);
    assert_null(p->opts.report.file);
    assert_string_equal(p->opts.in.paths[0], "x");
    assert_int_equal(p->opts.progress, PROGRESS_ALWAYS);
    forget(p);
    p = parse_good("--report=r.html --trace t.json --progress --no-progress x");
    assert_string_equal(p->opts.report.file, "r.html");
    assert_string_equal(p->opts.report.trace_file, "t.json");
    assert_int_equal(p->opts.progress, PROGRESS_NEVER);
    forget(p);
    static const struct { const char *name; enum report_format format; } files[] = {
        {"r.html", REPORT_HTML}, {"r.JSON", REPORT_JSON}, {"r.txt", REPORT_TEXT}, {"html", REPORT_TEXT},
    };
    for (size_t i = 0; i < N_OF(files); i++) {
        char line[100];
        snprintf(line, sizeof line, "--report=%s x", files[i].name);
        p = parse_good(line);
        assert_int_equal(p->opts.report.format, files[i].format);
        forget(p);
    }
    check_bad("--check --report x", "--check");
    check_bad("--check --trace t x", "--check");
}

/* ---- mistakes and help ---- */

static void test_mistakes_do_not_say_where_the_help_is(void **state)
{
    (void)state;
    static const char *const lines[]
        = {"--no-such-option x", "-Z x", "-m", "-@", "-o", "-f x", "a.bam b.bam",
           "a.bam b.bam c.bam",  "-l"};
    for (size_t i = 0; i < N_OF(lines); i++)
        check_bad(lines[i], "See samtools sort --help\n");
    check_bad("in.bam out_prefix", "Use -T PREFIX / -o FILE");
}

static void test_help_goes_to_stdout_and_is_no_error(void **state)
{
    (void)state;
    static const char *const lines[] = {"--help", "-h", "-o x.bam --help in.bam", "in.bam -h"};
    for (size_t i = 0; i < N_OF(lines); i++) {
        struct parsed *p = parse(lines[i]);
        assert_int_equal(p->result, ENGINE_ARGS_DONE);
        assert_non_null(strstr(p->out, "Usage: samtools sort"));
        assert_string_equal(p->err, "");
        forget(p);
    }
}

static void test_usage_names_every_option(void **state)
{
    (void)state;
    static const char *const names[] = {
        "-@",
        "--threads",
        "-m ",
        "-l ",
        "-u ",
        "-o ",
        "-O",
        "--output-fmt ",
        "-T ",
        "--no-PG",
        "--verbosity",
        "--help",
        "-n ",
        "-N ",
        "-t ",
        "-M ",
        "-I ",
        "-K ",
        "-w ",
        "-R",
        "-H",
        "--template-coordinate",
        "--write-index",
        "--reference",
        "--input-fmt-option",
        "--output-fmt-option",
        "--total-memory",
        "--size-hint",
        "--tmpdir-env",
    };
    struct parsed *p = parse("--help");
    for (size_t i = 0; i < N_OF(names); i++)
        assert_non_null(strstr(p->out, names[i]));
    forget(p);
}

static void test_no_operand_reads_a_pipe_and_helps_at_a_terminal(void **state)
{
    (void)state;
    int old = unit_replace_stdin(open("/dev/null", O_RDONLY)), terminal = posix_openpt(O_RDWR | O_NOCTTY);
    struct parsed *pipe = parse("-o out.bam");
    struct parsed *tty = NULL;
    if (terminal >= 0) {
        close(unit_replace_stdin(terminal));
        tty = isatty(STDIN_FILENO) ? parse("-o out.bam") : NULL;
    }
    unit_restore_stdin(old);
    assert_int_equal(pipe->result, ENGINE_ARGS_RUN);
    assert_string_equal(pipe->opts.in.paths[0], "-");
    forget(pipe);
    if (!tty)
        skip();
    assert_int_equal(tty->result, ENGINE_ARGS_DONE);
    assert_non_null(strstr(tty->out, "Usage: samtools sort"));
    forget(tty);
}

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
        cmocka_unit_test(test_all_options_at_once),
        cmocka_unit_test(test_options_after_the_operand),
        cmocka_unit_test(test_dash_is_standard_input),
        cmocka_unit_test(test_memory_in_all_its_spellings),
        cmocka_unit_test(test_memory_that_is_too_little),
        cmocka_unit_test(test_memory_that_is_no_size),
        cmocka_unit_test(test_memory_is_per_thread_and_does_not_overflow),
        cmocka_unit_test(test_levels),
        cmocka_unit_test(test_last_of_level_and_uncompressed_wins),
        cmocka_unit_test(test_level_that_is_no_number),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_threads_that_are_no_number),
        cmocka_unit_test(test_threads_of_openmp_count_when_none_are_given),
        cmocka_unit_test(test_formats),
        cmocka_unit_test(test_level_of_the_format_wins),
        cmocka_unit_test(test_format_that_nobody_knows),
        cmocka_unit_test(test_last_order_wins_but_ascii_stays),
        cmocka_unit_test(test_tag_is_two_characters),
        cmocka_unit_test(test_minimiser_options),
        cmocka_unit_test(test_index_and_its_name),
        cmocka_unit_test(test_index_that_cannot_be_written),
        cmocka_unit_test(test_memory_in_all),
        cmocka_unit_test(test_places_for_temporary_files),
        cmocka_unit_test(test_tmpdir_that_is_wanted_and_not_set),
        cmocka_unit_test(test_size_hint),
        cmocka_unit_test(test_report_and_progress),
        cmocka_unit_test(test_mistakes_do_not_say_where_the_help_is),
        cmocka_unit_test(test_help_goes_to_stdout_and_is_no_error),
        cmocka_unit_test(test_usage_names_every_option),
        cmocka_unit_test(test_no_operand_reads_a_pipe_and_helps_at_a_terminal),
        cmocka_unit_test(test_verbosity_is_handed_to_htslib),
        cmocka_unit_test(test_command_line_has_no_tab_or_newline),
        cmocka_unit_test(test_command_line_keeps_its_order),
    };
    unsetenv("OMP_NUM_THREADS");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
