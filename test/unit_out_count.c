/* SPDX-License-Identifier: MIT */
#include <htslib/sam.h>
#include "hts/cram_count.h"
#include "base/latch.h"
#include "write/out_count.h"
#include "unit.h"

enum { N = 200 };

static const char text[] = "@HD\tVN:1.6\n@SQ\tSN:a\tLN:999\n";
static struct latch latch;
static htsFormat format;

/* htslib's output for N records. */
static struct unit_bytes written(sam_hdr_t *header)
{
    int fd = unit_temp_file();
    char path[64];
    samFile *file = sam_open_format(unit_fd_path(path, fd), "wc", &format);
    bam1_t *record = bam_init1();
    MUST(file && record && sam_hdr_write(file, header) == 0);
    for (int i = 0; i < N; i++) {
        MUST(bam_set1(record, 2, "r", BAM_FUNMAP, -1, -1, 0, 0, NULL, -1, -1, 0, 4, "\1\2", "\1\2\3\4", 0) >= 0);
        MUST(sam_write1(file, header, record) >= 0);
    }
    MUST(hts_close(file) == 0);
    bam_destroy1(record);
    struct unit_bytes all = unit_read_file(fd);
    close(fd);
    return all;
}

/* The start of the blocks of the first container of records. */
static size_t first_blocks(const struct unit_bytes *all)
{
    struct cram_count count;
    cram_count_start(&count, false);
    for (size_t at = 0; at < all->n && count.inside == 0; at++)
        cram_count_feed(&count, all->data + at, 1);
    MUST(count.inside > 0);
    return (size_t)count.inside;
}

static size_t itf8_size(uint8_t first)
{
    return first < 0x80 ? 1 : first < 0xc0 ? 2 : 3;
}

static int check(const struct unit_bytes *all, size_t piece)
{
    struct out_count *count = out_count_new();
    MUST(count);
    memset(&latch, 0, sizeof latch);
    for (size_t at = 0; at < all->n; at += piece)
        out_count_see(count, all->data + at, all->n - at < piece ? all->n - at : piece);
    int result = out_count_check(count, N, "the output", &latch);
    out_count_free(count);
    return result;
}

/* htslib 1.16 writes such a container when memory runs out: its stated number of entries is wrong. */
static void test_container_that_cannot_be_read_passes(void **state)
{
    (void)state;
    static const size_t pieces[] = {1, 7, 100, 1 << 20};
    MUST(hts_parse_format(&format, "cram,no_ref=1") == 0);
    sam_hdr_t *header = sam_hdr_parse(sizeof text - 1, text);
    MUST(header);
    struct unit_bytes all = written(header);
    size_t at = first_blocks(&all) + 2;          /* after method and type */
    for (int number = 0; number < 4; number++)   /* id, two sizes, and the size of the first map */
        at += itf8_size(all.data[at]);
    for (size_t i = 0; i < N_OF(pieces); i++)
        assert_int_equal(check(&all, pieces[i]), 0);
    all.data[at]++;
    for (size_t i = 0; i < N_OF(pieces); i++) {
        assert_int_equal(check(&all, pieces[i]), -1);
        assert_non_null(strstr(latch.message, "container that cannot be read"));
    }
    unit_free(&all);
    sam_hdr_destroy(header);
    hts_opt_free((hts_opt *)format.specific);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_container_that_cannot_be_read_passes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
