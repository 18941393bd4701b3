/* SPDX-License-Identifier: MIT */
#include "unit.h"
#include <htslib/faidx.h>
#include <htslib/sam.h>
#include "hts/htslib_version.h"
#include "hts/cram_settings.h"

enum { V13 = HTSLIB_VERSION(1, 13), V16 = HTSLIB_VERSION(1, 16), V21 = HTSLIB_VERSION(1, 21), V24 = HTSLIB_VERSION(1, 24) };

static void versions_are_compared_as_text(void **state)
{
    (void)state;
    assert_int_equal(htslib_version_of("1.16"), V16);
    assert_int_equal(htslib_version_of("1.9"), HTSLIB_VERSION(1, 9));
    assert_int_equal(htslib_version_of("1.21-3-gabcdef"), V21);
    assert_int_equal(htslib_version_of("2"), HTSLIB_VERSION(2, 0));
    assert_int_equal(htslib_version_of(""), 0);
    assert_true(V21 > V16 && HTSLIB_VERSION(2, 0) > V24);
    assert_int_equal(htslib_version(), htslib_version_of(hts_version()));
}

/* A header of two references, the second one with this tag after LN. */
static sam_hdr_t *header_with(const char *tag)
{
    char text[8192];
    int n = snprintf(text, sizeof text, "@HD\tVN:1.6\n@SQ\tSN:a\tLN:9\n@SQ\tSN:b\tLN:9%s\n", tag);
    sam_hdr_t *header = sam_hdr_parse((size_t)n, text);
    MUST(header);
    return header;
}

/* The choice with one option, or none (NULL), and a header whose references are not available. */
static enum cram_reference chosen(int htslib, const char *option, bool beyond, const char *fasta)
{
    hts_opt *options = NULL;
    sam_hdr_t *header = header_with("");
    MUST(!option || hts_opt_add(&options, option) == 0);
    struct cram_settings_case which = {htslib, options, fasta, header, beyond};
    struct cram_settings how = cram_settings_choose(&which);
    assert_int_equal(how.why != NULL, how.reference == CRAM_NO_REF);
    hts_opt_free(options);
    sam_hdr_destroy(header);
    return how.reference;
}

static void way_that_spoils_records_is_gone(void **state)
{
    (void)state;
    static const struct {
        const char *option;
        bool beyond;
        enum cram_reference wanted[4];           /* by version */
    } cases[] = {
        {NULL, false, {CRAM_NO_REF, CRAM_NO_REF, CRAM_NO_REF, CRAM_AS_TOLD}},
        {NULL, true, {CRAM_NO_REF, CRAM_NO_REF, CRAM_NO_REF, CRAM_NO_REF}},
        {"no_ref=1", false, {CRAM_AS_TOLD, CRAM_AS_TOLD, CRAM_AS_TOLD, CRAM_AS_TOLD}},
        {"no_ref=1", true, {CRAM_AS_TOLD, CRAM_AS_TOLD, CRAM_AS_TOLD, CRAM_AS_TOLD}},
        {"no_ref=0", true, {CRAM_NO_REF, CRAM_NO_REF, CRAM_NO_REF, CRAM_NO_REF}},
        {"embed_ref=2", false, {CRAM_NO_REF, CRAM_NO_REF, CRAM_NO_REF, CRAM_AS_TOLD}},
        {"embed_ref=2", true, {CRAM_NO_REF, CRAM_NO_REF, CRAM_NO_REF, CRAM_AS_TOLD}},
        {"embed_ref=1", true, {CRAM_NO_REF, CRAM_NO_REF, CRAM_NO_REF, CRAM_AS_TOLD}},
        {"version=3.0", false, {CRAM_NO_REF, CRAM_NO_REF, CRAM_NO_REF, CRAM_AS_TOLD}},
    };
    static const int versions[4] = {V13, V16, V21, V24};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int k = 0; k < 4; k++)
            assert_int_equal(chosen(versions[k], cases[i].option, cases[i].beyond, NULL), cases[i].wanted[k]);
}

static bool clashes(const char *options)
{
    htsFormat format = {0};
    MUST(hts_parse_opt_list(&format, options) == 0);
    bool result = cram_settings_clash(format.specific);
    hts_opt_free(format.specific);
    return result;
}

static void ways_that_exclude_each_other_crash(void **state)
{
    (void)state;
    assert_true(clashes("no_ref=1,embed_ref") && clashes("embed_ref=1,no_ref"));
    assert_false(clashes("no_ref=1,embed_ref=2") || clashes("no_ref=1") || clashes("embed_ref=1,no_ref=0"));
    assert_false(clashes("no_ref=1,embed_ref=1,embed_ref=0") || clashes("version=3.0"));
}

static void put_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    MUST(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

static enum cram_reference chosen_with(sam_hdr_t *header, const char *fasta)
{
    struct cram_settings_case which = {V16, NULL, fasta, header, false};
    return cram_settings_choose(&which).reference;
}

/* The FASTA holds the first, and the second is in a cache, in the place that the header names, or nowhere. */
static void reference_at_hand_is_not_seen(void **state)
{
    (void)state;
    char folder[] = "/tmp/unit-XXXXXX", path[64], tag[128], cache[128];
    MUST(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/ref.fa", folder);
    put_file(path, ">a\nACGTACGTA\n");
    MUST(fai_build(path) == 0);
    snprintf(tag, sizeof tag, "%s/abcdef", folder);
    put_file(tag, "ACGTACGTA");
    static const char *const caches[] = {"%s", "%s/%%s", "/nowhere:%s/%%3s%%s", "%s/%%2s%%2s%%s:/nowhere"};
    sam_hdr_t *with_sum = header_with("\tM5:abcdef"), *with_other = header_with("\tM5:abcdee");
    for (size_t i = 0; i < sizeof caches / sizeof *caches; i++) {
        snprintf(cache, sizeof cache, caches[i], folder);    /* NOLINT */
        MUST(setenv("REF_PATH", cache, 1) == 0);
        assert_int_equal(chosen_with(with_sum, path), CRAM_NO_EMBED);
        assert_int_equal(chosen_with(with_other, path), CRAM_NO_REF);
        assert_int_equal(chosen_with(with_sum, NULL), CRAM_NO_REF);
    }
    MUST(setenv("REF_PATH", "/nowhere", 1) == 0);
    char place[256];
    snprintf(place, sizeof place, "\tUR:%s", tag);
    sam_hdr_t *with_place = header_with(place), *with_nothing = header_with("\tUR:/nowhere");
    assert_int_equal(chosen_with(with_place, path), CRAM_NO_EMBED);
    assert_int_equal(chosen_with(with_nothing, path), CRAM_NO_REF);
    sam_hdr_destroy(with_sum);
    sam_hdr_destroy(with_other);
    sam_hdr_destroy(with_place);
    sam_hdr_destroy(with_nothing);
    unlink(tag);
    unlink(path);
    strcat(path, ".fai");
    unlink(path);
    rmdir(folder);
}

/* The fields that reads must have for version 2.1: 1 SEQ, 2 qualities. The header's references are in the FASTA, if
 * there is one. */
static int needs(int htslib, const char *more, bool beyond, const char *fasta)
{
    char text[64];
    htsFormat format = {0};
    sam_hdr_t *header = header_with("");
    snprintf(text, sizeof text, "version=2.1%s", more);
    MUST(hts_parse_opt_list(&format, text) == 0);
    struct cram_settings_case which = {htslib, format.specific, fasta, header, beyond};
    struct cram_settings how = cram_settings_choose(&which);
    hts_opt_free(format.specific);
    sam_hdr_destroy(header);
    return how.needs_seq + 2 * how.needs_quals;
}

static void version_2_makes_up_seq_and_qualities(void **state)
{
    (void)state;
    char folder[] = "/tmp/unit-XXXXXX", path[64];
    static const int versions[4] = {V13, V16, V21, V24};
    MUST(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/ref.fa", folder);
    put_file(path, ">a\nACGTACGTA\n>b\nACGTACGTA\n");
    MUST(fai_build(path) == 0);
    for (int k = 0; k < 4; k++) {
        int v = versions[k];
        assert_true(needs(v, "", false, path) == 1 && needs(v, ",embed_ref=1", false, path) == 1);
        assert_true(needs(v, "", false, NULL) == 3 && needs(v, ",no_ref=1", false, path) == 3);
        assert_true(needs(v, "", true, path) == 3 && needs(v, ",embed_ref=2", false, path) == 3);
        assert_true(needs(v, ",version=3.0,no_ref=1", false, NULL) == 0);
    }
    unlink(path);
    strcat(path, ".fai");
    unlink(path);
    rmdir(folder);
}

static void draft_is_asked_for(void **state)
{
    (void)state;
    assert_null(cram_settings_version(HTSLIB_VERSION(1, 17)));
    assert_string_equal(cram_settings_version(HTSLIB_VERSION(1, 18)), "3.1");
    assert_true(cram_settings_drops_groups(V13) && !cram_settings_drops_groups(V16));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(versions_are_compared_as_text),
        cmocka_unit_test(way_that_spoils_records_is_gone),
        cmocka_unit_test(ways_that_exclude_each_other_crash),
        cmocka_unit_test(reference_at_hand_is_not_seen),
        cmocka_unit_test(version_2_makes_up_seq_and_qualities),
        cmocka_unit_test(draft_is_asked_for),
    };
    MUST(setenv("REF_PATH", "/nowhere", 1) == 0 && unsetenv("REF_CACHE") == 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
