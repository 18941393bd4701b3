/* SPDX-License-Identifier: MIT */
#include "unit.h"
#include "unit_htslib.h"
#include "bam/bam_header.h"
#include "bam/plain_header.h"
#include "bam/program_lines.h"
#include "base/byte_hash.h"
#include "base/byte_window.h"
#include "read/header_read.h"
#include "codec/bgzf_block.h"
#include "bgzf_omp.h"
#include "base/latch.h"
#include "order/sort_key.h"
#include "unit_source.h"

enum { PIECE = 128 << 10 };
static const struct sort_order by_coordinate = {.by = SORT_COORDINATE};

/* ---- headers made by hand, cut into blocks at will ---- */

struct ref { const char *name; uint32_t length; };

static struct unit_bytes make_header(const char *text, size_t n_text, const struct ref *refs,
                                     uint32_t n)
{
    struct unit_bytes b = {NULL, 0, 0};
    unit_append(&b, "BAM\1", 4);
    unit_append_le32(&b, (uint32_t)n_text);
    unit_append(&b, text, n_text);
    unit_append_le32(&b, n);
    for (uint32_t i = 0; i < n; i++) {
        unit_append_le32(&b, (uint32_t)strlen(refs[i].name) + 1);
        unit_append(&b, refs[i].name, strlen(refs[i].name) + 1);
        unit_append_le32(&b, refs[i].length);
    }
    return b;
}

static const struct ref two_refs[] = {{"chr1", 1000}, {"chrUn_random", 248956422}};
static const char two_text[]
    = "@HD\tVN:1.6\n@SQ\tSN:chr1\tLN:1000\n@SQ\tSN:chrUn_random\tLN:248956422\n@CO\tx\n";

static struct unit_bytes usual_header(void)
{
    return make_header(two_text, sizeof two_text - 1, two_refs, 2);
}

/* A BGZF file of the bytes, in blocks of block_size. */
static int make_file(const uint8_t *data, size_t n, uint32_t block_size)
{
    int fd = unit_temp_file();
    struct bgzf_codec *codec = bgzf_codec_new(1);
    struct unit_bytes file = {NULL, 0, 0};
    uint8_t block[BGZF_MAX_BLOCK];
    MUST(codec);
    for (size_t at = 0; at < n; at += block_size) {
        uint32_t size = n - at < block_size ? (uint32_t)(n - at) : block_size;
        unit_append(&file, block, bgzf_block_deflate(codec, data + at, size, block));
    }
    unit_append(&file, bgzf_block_eof, BGZF_EOF_SIZE);
    unit_write(fd, file.data, file.n);
    bgzf_codec_free(codec);
    unit_free(&file);
    return fd;
}

/* ---- reading them ---- */

struct reading {
    struct latch latch;
    struct bam_header header;
    struct unit_bytes after;     /* all bytes after the header: rest, then the blocks after it */
    int result;
};

static void append_window(struct unit_bytes *to, struct byte_window *w)
{
    do {
        unit_append(to, w->data, w->size);
        byte_window_skip(w, w->size);
    } while (byte_window_more(w, task_no_help, NULL) > 0);
}

static void read_header_within(struct reading *r, const struct unit_bytes *data, uint32_t block_size, uint64_t most)
{
    memset(r, 0, sizeof *r);
    char path[64];
    uint32_t size;
    int fd = make_file(data->data, data->n, block_size);
    struct unit_source opened;
    MUST(unit_source_open(&opened, unit_fd_path(path, fd), 1, PIECE, &r->latch) == 0);
    r->result = header_read(&r->header, unit_header_bytes(&opened), most, NULL, false, "in.bam", &r->latch);
    if (r->result == 0) {
        unit_append(&r->after, r->header.rest, r->header.rest_size);
        while (opened.blocks && bgzf_source_peek(opened.blocks, &size) > 0)
            MUST(bgzf_source_inflate(opened.blocks, unit_more(&r->after, size)) == 0);
        if (!opened.blocks)
            append_window(&r->after, opened.format->window);
    }
    unit_source_close(&opened);
    close(fd);
}

static void read_header(struct reading *r, const struct unit_bytes *data, uint32_t block_size)
{
    read_header_within(r, data, block_size, UINT64_MAX);
}

static void reading_free(struct reading *r)
{
    bam_header_free(&r->header);
    unit_free(&r->after);
}

static void check_refused(const struct unit_bytes *data, const char *why)
{
    struct reading r;
    read_header(&r, data, 100);
    assert_int_equal(r.result, -1);
    assert_non_null(strstr(r.latch.message, "in.bam"));
    if (!strstr(r.latch.message, why))
        fail_msg("\"%s\" does not say \"%s\"", r.latch.message, why);
    reading_free(&r);
}

/* ---- the oracle: htslib's output ---- */

static BGZF *open_bgzf(int fd, const char *mode)
{
    lseek(fd, 0, SEEK_SET);
    hFILE *file = hdopen(dup(fd), mode);
    MUST(file);
    BGZF *bgzf = bgzf_hopen(file, mode);
    MUST(bgzf);
    return bgzf;
}

static struct unit_bytes htslib_header(const sam_hdr_t *sam)
{
    enum { AT_ONCE = 1 << 16 };
    int fd = unit_temp_file();
    BGZF *out = open_bgzf(fd, "w");
    int put = bam_hdr_write(out, sam), closed = bgzf_close(out);
    MUST(put == 0 && closed == 0);
    struct unit_bytes bytes = {NULL, 0, 0};
    BGZF *in = open_bgzf(fd, "r");
    for (ssize_t n = 1; n > 0;) {
        size_t at = bytes.n;
        n = bgzf_read(in, unit_more(&bytes, AT_ONCE), AT_ONCE);
        MUST(n >= 0);
        bytes.n = at + (size_t)n;
    }
    bgzf_close(in);
    close(fd);
    return bytes;
}

static void check_bytes(sam_hdr_t *sam)
{
    uint8_t *bytes;
    size_t size;
    sam_hdr_t *copy = sam_hdr_dup(sam);
    struct unit_bytes want = htslib_header(copy);
    assert_int_equal(bam_header_bytes(sam, &bytes, &size), 0);
    assert_int_equal(size, want.n);
    assert_memory_equal(bytes, want.data, size);
    free(bytes);
    unit_free(&want);
    sam_hdr_destroy(copy);
}

static void check_refs(sam_hdr_t *sam, const struct ref *refs, uint32_t n)
{
    assert_int_equal(sam_hdr_nref(sam), n);
    for (uint32_t i = 0; i < n; i++) {
        assert_string_equal(sam_hdr_tid2name(sam, (int)i), refs[i].name);
        assert_int_equal(sam_hdr_tid2len(sam, (int)i), refs[i].length);
    }
}

/* ---- tests: reading ---- */

static void test_header_over_blocks_of_any_size_loses_no_byte_behind_it(void **state)
{
    (void)state;
    static const char after[] = "the records begin here and go on for a while";
    struct unit_bytes data = usual_header();
    size_t n_header = data.n;
    unit_append(&data, after, sizeof after);
    for (uint32_t size = 1; size <= data.n; size++) {
        struct reading r;
        read_header(&r, &data, size);
        assert_int_equal(r.result, 0);
        check_refs(r.header.sam, two_refs, 2);
        assert_string_equal(sam_hdr_str(r.header.sam), two_text);
        assert_int_equal(r.after.n, sizeof after);
        assert_memory_equal(r.after.data, after, sizeof after);
        size_t block_end = (n_header + size - 1) / size * size;
        assert_int_equal(r.header.rest_size, (block_end < data.n ? block_end : data.n) - n_header);
        reading_free(&r);
    }
    unit_free(&data);
}

static void test_header_that_ends_with_its_block_has_no_rest(void **state)
{
    (void)state;
    struct unit_bytes data = usual_header();
    struct reading r;
    read_header(&r, &data, (uint32_t)data.n);
    assert_int_equal(r.result, 0);
    assert_int_equal(r.header.rest_size, 0);
    assert_int_equal(r.after.n, 0);
    reading_free(&r);
    unit_free(&data);
}

static void test_large_header_over_many_full_blocks(void **state)
{
    (void)state;
    enum { N = 20000 };
    struct ref *refs = must_alloc(N * sizeof *refs);
    char (*names)[16] = must_alloc(N * sizeof *names);
    struct unit_bytes text = {NULL, 0, 0};
    for (uint32_t i = 0; i < N; i++) {
        char line[64];
        snprintf(names[i], sizeof names[i], "contig%u", i);
        refs[i] = (struct ref){names[i], 100 + i};
        int n = snprintf(line, sizeof line, "@SQ\tSN:%s\tLN:%u\n", names[i], 100 + i);
        unit_append(&text, line, (size_t)n);
    }
    struct unit_bytes data = make_header((char *)text.data, text.n, refs, N);
    unit_append(&data, "rest", 4);
    struct reading r;
    read_header(&r, &data, BGZF_FILL);
    assert_int_equal(r.result, 0);
    check_refs(r.header.sam, refs, N);
    assert_int_equal(r.after.n, 4);
    assert_memory_equal(r.after.data, "rest", 4);
    check_bytes(r.header.sam);
    reading_free(&r);
    unit_free(&data);
    unit_free(&text);
    free(refs);
    free(names);
}

static void test_references_that_only_the_binary_list_has(void **state)
{
    (void)state;
    static const char *const texts[] = {"", "@HD\tVN:1.4\n", "@CO\tno references here\n"};
    for (size_t i = 0; i < N_OF(texts); i++) {
        struct unit_bytes data = make_header(texts[i], strlen(texts[i]), two_refs, 2);
        struct reading r;
        read_header(&r, &data, 50);
        assert_int_equal(r.result, 0);
        check_refs(r.header.sam, two_refs, 2);
        check_bytes(r.header.sam);
        assert_int_equal(
            bam_header_mark_sorted(r.header.sam, &by_coordinate, false, "1", "samtools sort"), 0);
        check_refs(r.header.sam, two_refs, 2);
        check_bytes(r.header.sam);
        reading_free(&r);
        unit_free(&data);
    }
}

static void test_empty_header_is_a_header(void **state)
{
    (void)state;
    struct unit_bytes data = make_header("", 0, NULL, 0);
    struct reading r;
    read_header(&r, &data, 5);
    assert_int_equal(r.result, 0);
    assert_int_equal(sam_hdr_nref(r.header.sam), 0);
    check_bytes(r.header.sam);
    reading_free(&r);
    unit_free(&data);
}

static void test_text_padded_with_nuls(void **state)
{
    (void)state;
    struct unit_bytes text = {NULL, 0, 0};
    unit_append(&text, two_text, sizeof two_text - 1);
    memset(unit_more(&text, 100), 0, 100);
    struct unit_bytes data = make_header((char *)text.data, text.n, two_refs, 2);
    unit_append(&data, "rest", 4);
    struct reading r;
    read_header(&r, &data, 64);
    assert_int_equal(r.result, 0);
    check_refs(r.header.sam, two_refs, 2);
    assert_int_equal(r.after.n, 4);
    assert_int_equal(bam_header_mark_sorted(r.header.sam, &by_coordinate, false, "1", NULL), 0);
    check_bytes(r.header.sam);
    reading_free(&r);
    unit_free(&data);
    unit_free(&text);
}

/* ---- tests: not a header ---- */

static void test_file_that_ends_inside_the_header_at_any_byte(void **state)
{
    (void)state;
    struct unit_bytes data = usual_header();
    size_t whole = data.n;
    for (data.n = 4; data.n < whole; data.n++)
        check_refused(&data, "ends inside the header");
    unit_free(&data);
}

static void test_other_data_are_not_taken_for_bam(void **state)
{
    (void)state;
    static const char *const other[]
        = {"BAM\2 and so on", "CRAM\3\1 and more of it", "##fileformat=VCFv4.2\n",
           "BCF\2\2\xff\xff\xff\xff", "nothing that anybody knows\n"};
    for (size_t i = 0; i < N_OF(other); i++) {
        struct latch latch = {0};
        struct unit_source opened;
        char path[64];
        int fd = make_file((const uint8_t *)other[i], strlen(other[i]), 100);
        if (unit_source_open(&opened, unit_fd_path(path, fd), 1, PIECE, &latch) == 0) {
            struct bam_header header;
            assert_int_equal(
                header_read(&header, unit_header_bytes(&opened), UINT64_MAX, NULL, false, "in.bam", &latch), -1);
            bam_header_free(&header);
        }
        assert_true(latch_tripped(&latch));
        unit_source_close(&opened);
        close(fd);
    }
}

/* The usual header with another 32-bit number at `at`. */
static void check_number(size_t at, uint32_t value, const char *why)
{
    struct unit_bytes data = usual_header();
    store_le32(data.data + at, value);
    check_refused(&data, why);
    unit_free(&data);
}

static void test_lengths_that_cannot_be(void **state)
{
    (void)state;
    enum { N_REF_AT = 8 + sizeof two_text - 1, NAME_AT = N_REF_AT + 4 };
    check_number(4, 0x80000000u, "ends inside the header");
    check_number(4, UINT32_MAX, "ends inside the header");
    check_number(4, INT32_MAX, "ends inside the header"); /* and no 2 GiB are allocated for it */
    check_number(N_REF_AT, 0x80000000u, "not that of a BAM file");
    check_number(N_REF_AT, UINT32_MAX, "not that of a BAM file");
    check_number(N_REF_AT, 3, "ends inside the header");
    check_number(N_REF_AT, INT32_MAX, "ends inside the header");
    check_number(NAME_AT, 0, "not that of a BAM file");
    check_number(NAME_AT, UINT32_MAX, "not that of a BAM file");
    check_number(NAME_AT, INT32_MAX, "ends inside the header");
}

/* l_text has 32 bits; CRAM's container of the header is padded and has 31. */
static void test_header_that_the_format_cannot_hold(void **state)
{
    (void)state;
    static const struct { uint64_t text; enum htsExactFormat format; bool fits; } cases[] = {
        {INT32_MAX, bam, true}, {INT32_MAX + 1ull, bam, true}, {UINT32_MAX, bam, true}, {UINT32_MAX + 1ull, bam, false},
        {1ull << 40, bam, false}, {1 << 30, cram, true}, {INT32_MAX / 3 * 2, cram, false}, {1ull << 40, sam, true},
    };
    hts_set_log_level(HTS_LOG_ERROR);            /* silences our warnings, too */
    for (size_t i = 0; i < N_OF(cases); i++) {
        struct latch latch = {0};
        assert_int_equal(bam_header_check_size(cases[i].text, cases[i].format, "in.sam", &latch), cases[i].fits ? 0 : -1);
        assert_int_equal(latch_tripped(&latch), !cases[i].fits);
        assert_int_equal(strstr(latch.message, "in.sam: the text of its header has") != NULL, !cases[i].fits);
    }
}

static void test_header_that_takes_too_much_memory(void **state)
{
    (void)state;
    struct unit_bytes data = usual_header();
    struct reading r;
    for (uint64_t more = 0; more < 2; more++) {
        read_header_within(&r, &data, (uint32_t)data.n, data.n - 1 + more);
        assert_int_equal(r.result, more ? 0 : -1);
        assert_true(more || strstr(r.latch.message, "use --total-memory 64M"));
        reading_free(&r);
    }
    unit_free(&data);
}

static void test_reference_whose_name_is_none(void **state)
{
    (void)state;
    static const char *const names[] = {"", "\n", "a\tb", "a\nb"};
    for (size_t i = 0; i < N_OF(names); i++) {
        struct ref one[] = {{names[i], 1000}};
        struct unit_bytes data = make_header("", 0, one, 1);
        check_refused(&data, "header lines are broken");
        unit_free(&data);
    }
}

static void test_header_lines_that_are_broken(void **state)
{
    (void)state;
    static const char text[] = "@SQ\tSN:chr1\tLN:1000\n@SQ\tSN:chr1\tLN:1000\n@XX no tab\n";
    struct unit_bytes data = make_header(text, sizeof text - 1, two_refs, 1);
    struct reading r;
    read_header(&r, &data, 1000);
    if (r.result < 0)
        assert_non_null(strstr(r.latch.message, "header lines are broken"));
    else
        check_bytes(r.header.sam);               /* the same bytes as htslib makes */
    reading_free(&r);
    unit_free(&data);
}

static void test_damaged_block_in_the_header(void **state)
{
    (void)state;
    struct unit_bytes data = usual_header();
    int fd = make_file(data.data, data.n, 40);
    struct unit_bytes file = unit_read_file(fd);
    struct bgzf_frame frame;
    assert_int_equal(bgzf_block_frame(file.data, file.n, &frame), BGZF_OK);
    file.data[frame.size + BGZF_HEADER + 5] ^= 0x55;             /* in the second block */
    assert_int_equal(pwrite(fd, file.data, file.n, 0), file.n);
    char path[64];
    struct latch latch = {0};
    struct bam_header header;
    struct unit_source opened;
    MUST(unit_source_open(&opened, unit_fd_path(path, fd), 1, PIECE, &latch) == 0);
    assert_int_equal(header_read(&header, unit_header_bytes(&opened), UINT64_MAX, NULL, false, "in.bam", &latch), -1);
    snprintf(path, sizeof path, "offset %u:", frame.size);
    assert_non_null(strstr(latch.message, path));
    bam_header_free(&header);                    /* a header that was not read */
    unit_source_close(&opened);
    unit_free(&file);
    unit_free(&data);
    close(fd);
}

/* ---- tests: @HD and @PG ---- */

/* The text of a header after it was marked. */
static void check_marked(const char *before, const char *command, const char *want)
{
    sam_hdr_t *sam = sam_hdr_parse(strlen(before), before);
    MUST(sam);
    assert_int_equal(bam_header_mark_sorted(sam, &by_coordinate, false, "9.9", command), 0);
    assert_string_equal(sam_hdr_str(sam), want);
    check_bytes(sam);
    sam_hdr_destroy(sam);
}

/* @HD of an empty header after it was marked as sorted in this order. */
static void check_order(struct sort_order order, bool unplaced, const char *want)
{
    sam_hdr_t *sam = sam_hdr_parse(24, "@HD\tVN:1.6\tSO:x\tGO:y\n");
    char line[200];
    MUST(sam);
    snprintf(line, sizeof line, "@HD\tVN:1.6\t%s\n", want);
    assert_int_equal(bam_header_mark_sorted(sam, &order, unplaced, "9.9", NULL), 0);
    assert_string_equal(sam_hdr_str(sam), line);
    sam_hdr_destroy(sam);
}

static void test_every_order_is_named_as_by_samtools(void **state)
{
    (void)state;
    check_order((struct sort_order){.by = SORT_COORDINATE}, false, "SO:coordinate");
    check_order((struct sort_order){.by = SORT_NAME_NATURAL}, false,
                "SO:queryname\tSS:queryname:natural");
    check_order((struct sort_order){.by = SORT_NAME_ASCII}, false,
                "SO:queryname\tSS:queryname:lexicographical");
    check_order((struct sort_order){.by = SORT_TAG, .tag = {'R', 'G'}}, false,
                "SO:unsorted\tSS:unsorted:RG:coordinate");
    check_order((struct sort_order){.by = SORT_TAG, .tag = {'R', 'G'}, .then = SORT_NAME_NATURAL}, false,
                "SO:unsorted\tSS:unsorted:RG:queryname:natural");
    check_order((struct sort_order){.by = SORT_TAG, .tag = {'C', 'B'}, .then = SORT_NAME_ASCII}, true,
                "SO:unsorted\tSS:unsorted:CB:queryname:lexicographical");
    check_order((struct sort_order){.by = SORT_MINHASH}, false,
                "SO:coordinate\tSS:coordinate:minhash");
    check_order((struct sort_order){.by = SORT_MINHASH}, true, "SO:unsorted\tSS:unsorted:minhash");
    check_order((struct sort_order){.by = SORT_TEMPLATE}, false,
                "SO:unsorted\tGO:query\tSS:unsorted:template-coordinate");
    check_order((struct sort_order){.by = SORT_COLLATE, .n_bins = 64}, false, "SO:unsorted\tGO:query");
}

static void test_collated_records_keep_the_subsort_of_the_input(void **state)
{
    (void)state;
    static const char text[] = "@HD\tVN:1.6\tSO:x\tSS:x:y\n";
    static const struct sort_order order = {.by = SORT_COLLATE, .n_bins = 64};
    sam_hdr_t *sam = sam_hdr_parse(sizeof text - 1, text);
    MUST(sam);
    assert_int_equal(bam_header_mark_sorted(sam, &order, false, "9.9", NULL), 0);
    assert_string_equal(sam_hdr_str(sam), "@HD\tVN:1.6\tSO:unsorted\tSS:x:y\tGO:query\n");
    sam_hdr_destroy(sam);
}

static void test_grouping_and_subsort_are_removed(void **state)
{
    (void)state;
    check_marked("@HD\tVN:1.6\tSO:unsorted\tGO:query\n", NULL, "@HD\tVN:1.6\tSO:coordinate\n");
    check_marked("@HD\tVN:1.6\tGO:query\tSO:unsorted\tSS:unsorted:template-coordinate\n", NULL,
                 "@HD\tVN:1.6\tSO:coordinate\n");
    check_marked("@HD\tVN:1.6\tSO:queryname\tSS:queryname:natural\n", NULL,
                 "@HD\tVN:1.6\tSO:coordinate\n");
}

/* ---- tests: bytes ---- */

/* The list has 32 bits for a length: a larger one becomes the largest, as in htslib. */
static void test_reference_too_long_for_bam_gets_the_largest_length(void **state)
{
    (void)state;
    static const char *const texts[] = {"@SQ\tSN:a\tLN:2147483648\n", "@SQ\tSN:a\tLN:3000000000\n",
                                        "@SQ\tSN:b\tLN:4294967295\n@SQ\tSN:a\tLN:6000000000\n"};
    for (size_t i = 0; i < N_OF(texts); i++) {
        sam_hdr_t *sam = sam_hdr_parse(strlen(texts[i]), texts[i]);
        MUST(sam);
        check_bytes(sam);
        sam_hdr_destroy(sam);
    }
}

/* ---- plain headers ---- */

static sam_hdr_t *plain_of(const char *text)
{
    return plain_header_of_text((const uint8_t *)text, strlen(text));
}

static void check_same(sam_hdr_t *plain, sam_hdr_t *parsed)
{
    assert_int_equal(sam_hdr_nref(plain), sam_hdr_nref(parsed));
    for (int i = 0; i < sam_hdr_nref(plain); i++) {
        assert_string_equal(sam_hdr_tid2name(plain, i), sam_hdr_tid2name(parsed, i));
        assert_int_equal(sam_hdr_tid2len(plain, i), sam_hdr_tid2len(parsed, i));
    }
    assert_int_equal(sam_hdr_length(plain), sam_hdr_length(parsed));
    assert_string_equal(sam_hdr_str(plain), sam_hdr_str(parsed));
}

/* If it need not be parsed, the result is the same as htslib's. */
static void check_plain(const char *text, sam_hdr_t *plain, const struct sort_order *order, const char *command_line)
{
    sam_hdr_t *parsed = *text ? sam_hdr_parse(strlen(text), text) : sam_hdr_init();
    MUST(parsed);
    MUST(sam_hdr_count_lines(parsed, "SQ") >= 0);
    if (*text)
        check_same(plain, parsed);
    assert_int_equal(bam_header_mark_sorted(plain, order, false, "1.24", command_line), 0);
    assert_int_equal(bam_header_mark_sorted(parsed, order, false, "1.24", command_line), 0);
    if (!plain_header_is(plain))
        fail_msg("parsed after all: %s", text);
    check_same(plain, parsed);
    sam_hdr_destroy(parsed);
}

static const char *const lines_at_first[] = {
    "", "@HD\tVN:1.6\n", "@HD\tVN:1.6\tSO:unsorted\n", "@HD\tVN:1.5\tGO:query\tXX:y\tSO:coordinate\tSS:coordinate:x\n",
    "@HD\tSO:queryname\tVN:1.4\n",
};
static const char *const other_lines[] = {
    "@RG\tID:a\tSM:s\tLB:l\n", "@RG\tID:b\n", "@PG\tID:bwa\tPN:bwa\tCL:bwa mem\n", "@PG\tID:x\tPP:bwa\n",
    "@PG\tID:samtools\tPP:x\n", "@PG\tID:p\tPP:q\n", "@PG\tID:q\tPP:p\n", "@CO\t@SQ\tSN:no\tLN:1\n", "@CO\t\n", "@XY\tAB:c\n",
};

static void test_header_that_is_not_parsed_becomes_another_one_than_if_it_were(void **state)
{
    (void)state;
    static const struct sort_order orders[] = {{.by = SORT_COORDINATE}, {.by = SORT_NAME_ASCII}, {.by = SORT_TEMPLATE}};
    uint64_t seed = 12;
    for (int round = 0; round < 3000; round++) {
        char text[4000];
        size_t at = (size_t)sprintf(text, "%s", lines_at_first[unit_below(&seed, N_OF(lines_at_first))]);
        uint32_t used = 0, n = unit_below(&seed, 12);
        for (uint32_t i = 0; i < n; i++) {
            uint32_t other = unit_below(&seed, 2 * N_OF(other_lines));
            if (other >= N_OF(other_lines))
                at += (size_t)sprintf(text + at, "@SQ\tSN:c%u\tLN:%u%s\n", i, 1 + unit_below(&seed, 100000),
                                      other % 3 ? "" : "\tM5:abc\tzz:1");
            else if (!(used & 1u << other))
                at += (size_t)sprintf(text + at, "%s", other_lines[other]);
            used |= other < N_OF(other_lines) ? 1u << other : 0;
        }
        sam_hdr_t *plain = plain_of(text);
        assert_non_null(plain);
        check_plain(text, plain, &orders[round % N_OF(orders)], round % 4 ? "samtools sort x" : NULL);
        sam_hdr_destroy(plain);
    }
}

/* htslib would write it differently, or refuse it; or it is not a header. */
static void test_header_that_is_not_plain_is_taken_for_one(void **state)
{
    (void)state;
    static const char *const odd[] = {
        "@SQ\tSN:a\tLN:1\n@SQ\tSN:a\tLN:1\n", "@SQ\tSN:a\tLN:1\n@SQ\tSN:b\tLN:1\n@SQ\tSN:a\tLN:2\n", "@SQ\tSN:a\n",
        "@SQ\tLN:5\n", "@SQ\n", "@SQ\tSN:a\tLN:0\n", "@SQ\tSN:a\tLN:05\n", "@SQ\tSN:a\tLN:5x\n", "@SQ\tSN:a\tLN:\n",
        "@SQ\tSN:a\tLN:-5\n", "@SQ\tSN:a\tLN:2147483648\n", "@SQ\tSN:a\tLN:99999999999\n", "@SQ\tSN:\tLN:5\n",
        "@SQ\tSN:a\tLN:5\tAN:b\n", "@SQ\tSN:a\tLN:5\tLN:6\n", "@SQ\tSN:a\tSN:b\tLN:5\n", "@SQ\tSN:a\tLN:5\tM5:x\tM5:y\n",
        "@SQ\tSN:a\tLN:5\t\n", "@SQ\tSN:a\tLN:5\tM5\n", "@SQ\tSN:a\tLN:5\tM5:\n", "@SQ\tSN:a\t\tLN:5\n", "@SQ\tSN:*a\tLN:5\n",
        "@SQ\tSN:=\tLN:5\n", "@SQ\tSN:a,b\tLN:5\n", "@SQ\tSN:<a>\tLN:5\n", "@SQ\tSN:a b\tLN:5\n", "@SQ\tSN:a\tLN:5\r\n",
        "@SQ\tSN:a\tLN:5", "\n@SQ\tSN:a\tLN:5\n", "@SQ\tSN:a\tLN:5\n\n", "@SQ\tSN:a\tLN:5\n@HD\tVN:1.6\n", "@\n", "garbage\n",
        "@HD\tVN:1.6\n@HD\tVN:1.6\n", "@RG\tSM:x\n", "@PG\tPN:x\n", "@HD VN:1.6\n",
    };
    for (size_t i = 0; i < N_OF(odd); i++) {
        sam_hdr_t *plain = plain_of(odd[i]);
        if (plain)
            fail_msg("taken for plain: %s", odd[i]);
    }
    assert_null(plain_header_of_text((const uint8_t *)"@CO\ta\0b\n", 8));
    assert_null(plain_header_of_text((const uint8_t *)"@CO\ta\n\0", 7));
}

/* The list after the text must have the same references. */
static void test_header_of_bam_is_plain_although_its_lists_differ(void **state)
{
    (void)state;
    static const struct ref other_name[] = {{"chr2", 1000}, {"chrUn_random", 248956422}};
    static const struct ref other_length[] = {{"chr1", 1000}, {"chrUn_random", 248956421}};
    static const struct ref other_order[] = {{"chrUn_random", 248956422}, {"chr1", 1000}};
    static const struct { const struct ref *refs; uint32_t n; bool plain; } lists[] = {
        {two_refs, 2, true}, {two_refs, 1, false}, {other_name, 2, false}, {other_length, 2, false}, {other_order, 2, false},
    };
    for (size_t i = 0; i < N_OF(lists); i++) {
        struct unit_bytes b = make_header(two_text, sizeof two_text - 1, lists[i].refs, lists[i].n);
        sam_hdr_t *sam = header_parse(b.data, b.n);
        MUST(sam);
        assert_int_equal(plain_header_is(sam), lists[i].plain);
        sam_hdr_destroy(sam);
        const uint8_t *list = b.data + 12 + sizeof two_text - 1;
        for (size_t n = 0; n < b.n - (size_t)(list - b.data) && lists[i].plain; n++) {
            uint8_t *cut = exact_copy(list, n);
            assert_null(plain_header_of_bam(b.data + 8, sizeof two_text - 1, 2, cut, n));
            free(cut);
        }
        unit_free(&b);
    }
}

static void test_merged_header_is_parsed_or_another_one(void **state)
{
    (void)state;
    static const char sq[] = "@SQ\tSN:a\tLN:7\n@SQ\tSN:b\tLN:9\n";
    static const char *const more[] = {"@CO\tx\n@RG\tID:r\n", "@PG\tID:p\n@RG\tID:s\tSM:t\n@CO\tx\n@CO\ty\n", ""};
    for (size_t i = 0; i < N_OF(more); i++)
        for (size_t k = 0; k < N_OF(more); k++) {
            char a[300], b[300];
            struct latch latch = {0};
            snprintf(a, sizeof a, "@HD\tVN:1.6\n%s%s", sq, more[i]);
            snprintf(b, sizeof b, "%s%s", more[k], sq);
            sam_hdr_t *plain[2] = {plain_of(a), plain_of(b)};
            sam_hdr_t *parsed[2] = {sam_hdr_parse(strlen(a), a), sam_hdr_parse(strlen(b), b)};
            MUST(plain[0] && plain[1] && parsed[0] && parsed[1]);
            assert_int_equal(bam_header_merge(plain[0], plain[1], NULL, "b", &latch), 0);
            assert_int_equal(bam_header_merge(parsed[0], parsed[1], NULL, "b", &latch), 0);
            assert_true(plain_header_is(plain[0]) && plain_header_is(plain[1]));
            check_same(plain[0], parsed[0]);
            for (int j = 0; j < 2; j++) {
                sam_hdr_destroy(plain[j]);
                sam_hdr_destroy(parsed[j]);
            }
        }
}

/* The ID that the renamed line would get is in use. */
static void test_new_id_of_a_program_is_that_of_another(void **state)
{
    (void)state;
    static const char sq[] = "@SQ\tSN:a\tLN:7\n", line[] = "@PG\tID:p\tPN:b";
    char text[200], from_text[100], id[2][20];
    for (uint64_t number = 0; number < 2; number++)
        snprintf(id[number], sizeof id[number], "p-%08X",
                 (unsigned)byte_hash((const uint8_t *)line, sizeof line - 1, number));
    snprintf(text, sizeof text, "%s@PG\tID:p\tPN:a\n@PG\tID:%s\tPN:c\n", sq, id[0]);
    snprintf(from_text, sizeof from_text, "%s%s\n", sq, line);
    sam_hdr_t *into = sam_hdr_parse(strlen(text), text), *from = sam_hdr_parse(strlen(from_text), from_text);
    struct program_lines lines;
    MUST(into && from);
    assert_int_equal(program_lines_merge(&lines, into, from), 0);
    assert_int_equal(lines.n_renamed, 1);
    assert_string_equal(lines.ids[0], id[1]);
    assert_int_equal(sam_hdr_line_index(into, "PG", id[1]), 2);
    program_lines_free(&lines);
    sam_hdr_destroy(into);
    sam_hdr_destroy(from);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_header_that_is_not_parsed_becomes_another_one_than_if_it_were),
        cmocka_unit_test(test_header_that_is_not_plain_is_taken_for_one),
        cmocka_unit_test(test_header_of_bam_is_plain_although_its_lists_differ),
        cmocka_unit_test(test_merged_header_is_parsed_or_another_one),
        cmocka_unit_test(test_new_id_of_a_program_is_that_of_another),
        cmocka_unit_test(test_header_over_blocks_of_any_size_loses_no_byte_behind_it),
        cmocka_unit_test(test_header_that_ends_with_its_block_has_no_rest),
        cmocka_unit_test(test_large_header_over_many_full_blocks),
        cmocka_unit_test(test_references_that_only_the_binary_list_has),
        cmocka_unit_test(test_empty_header_is_a_header),
        cmocka_unit_test(test_text_padded_with_nuls),
        cmocka_unit_test(test_file_that_ends_inside_the_header_at_any_byte),
        cmocka_unit_test(test_other_data_are_not_taken_for_bam),
        cmocka_unit_test(test_lengths_that_cannot_be),
        cmocka_unit_test(test_header_that_the_format_cannot_hold),
        cmocka_unit_test(test_header_that_takes_too_much_memory),
        cmocka_unit_test(test_reference_whose_name_is_none),
        cmocka_unit_test(test_header_lines_that_are_broken),
        cmocka_unit_test(test_damaged_block_in_the_header),
        cmocka_unit_test(test_every_order_is_named_as_by_samtools),
        cmocka_unit_test(test_collated_records_keep_the_subsort_of_the_input),
        cmocka_unit_test(test_grouping_and_subsort_are_removed),
        cmocka_unit_test(test_reference_too_long_for_bam_gets_the_largest_length),
    };
    hts_set_log_level(HTS_LOG_OFF);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
