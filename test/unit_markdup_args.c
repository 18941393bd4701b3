/* SPDX-License-Identifier: MIT */
#include "unit.h"
#include "cli/command_args.h"
#include "markdup/dup_name.h"
#include "markdup/markdup_opts.h"
#include "unit_args.h"
#include "unit_printed.h"

struct parsed {
    struct markdup_opts opts;
    enum engine_args_result result;
    char text[400];              /* the words that opts points to */
    char out[MAX_PRINTED], err[MAX_PRINTED];
};

static struct parsed *parse(const char *line)
{
    struct parsed *p = calloc(1, sizeof *p);
    MUST(p);
    char *argv[MAX_WORDS + 1];
    snprintf(p->text, sizeof p->text, "markdup %s", line);
    int out_file, err_file, argc = unit_words(p->text, argv);
    int out = unit_redirect(stdout, &out_file), err = unit_redirect(stderr, &err_file);
    unit_reset_getopt();
    p->result = markdup_args_parse(&p->opts, false, argc, argv);
    unit_restore(stdout, out, out_file, p->out);
    unit_restore(stderr, err, err_file, p->err);
    return p;
}

static void forget(struct parsed *p)
{
    engine_args_free(&p->opts.common);
    free(p);
}

static struct parsed *parse_good(const char *line)
{
    struct parsed *p = parse(line);
    if (p->result != ENGINE_ARGS_RUN || p->out[0] || p->err[0])
        fail_msg("\"%s\": result %d, \"%s\"", line, (int)p->result, p->err);
    return p;
}

static void check_bad(const char *line, const char *part)
{
    struct parsed *p = parse(line);
    if (p->result != ENGINE_ARGS_ERROR || p->out[0] || !strstr(p->err, part))
        fail_msg("\"%s\": result %d, stdout \"%s\", stderr \"%s\"", line, (int)p->result, p->out, p->err);
    forget(p);
}

static void test_defaults(void **state)
{
    (void)state;
    struct parsed *p = parse_good("in.bam out.sam");
    const struct markdup_opts *o = &p->opts;
    assert_string_equal(o->common.in.paths[0], "in.bam");
    assert_string_equal(o->common.out.path, "out.sam");
    assert_int_equal(o->common.out.format.format, sam);
    assert_int_equal(o->common.n_temp_prefixes, 1);
    assert_int_equal(o->window, 300);
    assert_int_equal(o->mode, DUP_BY_TEMPLATE);
    assert_true(o->pass);
    assert_false(o->remove || o->others || o->clear || o->originals || o->counts || o->include_fails);
    assert_false(o->use_read_groups || o->move_umi || o->stats || o->json);
    assert_int_equal(o->umi_separator, ':');
    assert_int_equal(o->distance, 0);
    assert_null(o->read_coords);
    assert_null(o->coords_order);
    assert_null(o->barcode_regex);
    assert_null(o->common.statistics);
    assert_int_equal(o->barcode_tag[0], 0);
    assert_string_equal(o->common.out.command_line, "samtools markdup in.bam out.sam");
    forget(p);
}

static void test_all_options_at_once(void **state)
{
    (void)state;
    struct parsed *p = parse_good("-r -l 70 -S -T tmp -d 2500 -t --duplicate-count -c --mode s --include-fails "
                                  "--no-multi-dup --read-coords (.):(.):(.) --coords-order xyt --barcode-rgx ([AC]+) "
                                  "--move-umi-to-tag --umi-separator _ --use-read-groups -f s.txt in.bam -");
    const struct markdup_opts *o = &p->opts;
    assert_true(o->remove && o->others && o->clear && o->originals && o->counts && o->include_fails && !o->pass);
    assert_true(o->use_read_groups && o->move_umi && o->stats && !o->json);
    assert_int_equal(o->window, 70);
    assert_int_equal(o->distance, 2500);
    assert_int_equal(o->mode, DUP_BY_SEQUENCE);
    assert_string_equal(o->read_coords, "(.):(.):(.)");
    assert_string_equal(o->coords_order, "xyt");
    assert_string_equal(o->barcode_regex, "([AC]+)");
    assert_int_equal(o->barcode_group, 1);
    assert_int_equal(o->umi_separator, '_');
    assert_string_equal(o->common.statistics, "s.txt");
    assert_string_equal(o->common.temp_prefixes[0], "tmp");
    forget(p);
}

static void test_numbers_beyond_their_bounds(void **state)
{
    (void)state;
    struct parsed *p = parse_good("-l -5 -d -3 in.bam out.bam");
    assert_int_equal(p->opts.window, 300);
    assert_int_equal(p->opts.distance, 0);
    forget(p);
    p = parse_good("-l 0 -d 0 in.bam out.bam");
    assert_int_equal(p->opts.window, 0);
    forget(p);
}

static void test_what_options_imply(void **state)
{
    (void)state;
    struct parsed *p = parse_good("--json --barcode-name in.bam out.bam");
    assert_true(p->opts.stats && p->opts.json);
    assert_string_equal(p->opts.barcode_regex, DUP_BARCODE_NAME);
    assert_int_equal(p->opts.barcode_group, DUP_BARCODE_NAME_GROUP);
    forget(p);
    p = parse_good("--coords-order nonsense --barcode-tag BX in.bam out.bam");
    assert_null(p->opts.coords_order);           /* samtools checks it with --read-coords only */
    assert_memory_equal(p->opts.barcode_tag, "BX", 2);
    forget(p);
}

static void test_mistakes(void **state)
{
    (void)state;
    check_bad("", "Usage: samtools markdup");
    check_bad("in.bam", "two files");
    check_bad("in.bam out.bam more.bam", "only two files");
    check_bad("-l ten in.bam out.bam", "-l needs a number");
    check_bad("-d ten in.bam out.bam", "-d needs a number");
    check_bad("-m tt in.bam out.bam", "can be t or s");
    check_bad("--barcode-tag BXX in.bam out.bam", "two characters");
    check_bad("--barcode-tag BX --barcode-name in.bam out.bam", "excludes");
    check_bad("--barcode-rgx ( in.bam out.bam", "cannot be compiled");
    check_bad("--move-umi-to-tag in.bam out.bam", "--move-umi-to-tag needs");
    check_bad("--read-coords ( in.bam out.bam", "cannot be compiled");
    check_bad("--read-coords (.) --coords-order yy in.bam out.bam", "none of txy");
    check_bad("--write-index in.bam -", "--write-index needs an output file");
}

static void test_help_goes_to_standard_output(void **state)
{
    (void)state;
    struct parsed *p = parse("--help");
    assert_int_equal(p->result, ENGINE_ARGS_DONE);
    assert_non_null(strstr(p->out, "Usage: samtools markdup"));
    forget(p);
}

int main(void)
{
    unsetenv("SAMTOOLS_OMP_TOTAL_MEMORY");
    unsetenv("SAMTOOLS_OMP_TMPDIR");
    unsetenv("SAMTOOLS_OMP_REPORT");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_all_options_at_once),
        cmocka_unit_test(test_numbers_beyond_their_bounds),
        cmocka_unit_test(test_what_options_imply),
        cmocka_unit_test(test_mistakes),
        cmocka_unit_test(test_help_goes_to_standard_output),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
