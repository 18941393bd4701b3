/* SPDX-License-Identifier: MIT */
#include <string.h>
#include "read/first_bytes.h"
#include "unit.h"

static const char *name_of(const char *bytes, size_t n)
{
    const struct packing *found = first_bytes_packing((const uint8_t *)bytes, n);
    return found ? found->name : "none";
}

static void test_mark_that_is_cut_or_elsewhere_is_taken(void **state)
{
    (void)state;
    static const char razf[] = "\x1f\x8b\x08\x04\0\0\0\0\0\3\7\0RAZF\1\x80\0", bzip2[] = "BZh91AY&SY";
    assert_string_equal(name_of(razf, 16), "RAZF");
    assert_string_equal(name_of(razf, 15), "none");
    assert_string_equal(name_of(bzip2, 10), "bzip2");
    assert_string_equal(name_of(bzip2, 9), "none");
    assert_string_equal(name_of("XZh91AY&SY", 10), "none");
    assert_string_equal(name_of("BZh9\x17\x72\x45\x38\x50\x90", 10), "bzip2");
    assert_string_equal(name_of("\xfd" "7zXZ\0", 6), "xz");
    assert_string_equal(name_of("\xfd" "7zXZ", 5), "none");
}

static void test_what_is_read_is_refused(void **state)
{
    (void)state;
    static const char *const read[] = {"", "@HD\tVN:1.6\n", "BAM\1", "CRAM\3\1", "\x1f\x8b\x08\x04", "LZIP\t4\t*\t0", "PK\t4\t*",
                                       "BZh9\t4\t*\t0\t0\t*\t*", "7z\t4\t*\t0\t0"};
    for (size_t i = 0; i < N_OF(read); i++)
        assert_string_equal(name_of(read[i], strlen(read[i])), "none");
    assert_string_equal(name_of("\x1f\x8b\x08\x04\0\0\0\0\0\xff\6\0BC\2\0\x1b\0", 18), "none");
}

static void test_shown_text_is_too_long_or_not_printable(void **state)
{
    (void)state;
    char text[FIRST_BYTES_TEXT];
    uint8_t all[FIRST_BYTES + 1];
    memset(all, 0xff, sizeof all);
    assert_int_equal(strlen(first_bytes_show(all, sizeof all, text)), 4 * FIRST_BYTES);
    assert_string_equal(first_bytes_show((const uint8_t *)"a b~\t\\\x7f\r\nnext", 13, text), "a b~\\x09\\\\x7f\\x0d");
    assert_string_equal(first_bytes_show((const uint8_t *)"abc", 2, text), "ab");
    assert_string_equal(first_bytes_show((const uint8_t *)"", 0, text), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mark_that_is_cut_or_elsewhere_is_taken),
        cmocka_unit_test(test_what_is_read_is_refused),
        cmocka_unit_test(test_shown_text_is_too_long_or_not_printable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
