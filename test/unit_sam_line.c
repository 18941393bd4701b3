/* SPDX-License-Identifier: MIT */
/* The expected results are those of samtools 1.24 for the same lines; test_sam_lines.py compares many more. */
#include "unit.h"
#include <stdio.h>
#include <htslib/sam.h>
#include "bam/long_pos.h"
#include "bam/ref_names.h"
#include "bam/sam_line.h"
#include "bam/sam_number.h"
#include "base/byte_buffer.h"
#include "unit_htslib.h"

static struct ref_names *names, *no_names;
static struct byte_buffer got;   /* record of the line parsed last */

static struct ref_names *names_of(const char *header)
{
    sam_hdr_t *sam = sam_hdr_parse(strlen(header), header);
    MUST(sam && sam_hdr_count_lines(sam, "SQ") >= 0);
    struct ref_names *made = ref_names_new(sam);
    MUST(made);
    sam_hdr_destroy(sam);
    return made;
}

static void append_text(struct unit_bytes *to, const char *text)
{
    unit_append(to, text, strlen(text));
}

/* Parses a copy of n bytes that ends with its memory. The line's record is appended to the buffer, after a mark. */
static struct sam_line parse_bytes(const char *line, size_t n)
{
    static const char mark[] = "mark";
    char *copy = (char *)exact_copy((const uint8_t *)line, n + 1);
    copy[n] = '\0';
    got.n = 0;
    MUST(byte_buffer_reserve(&got, sizeof mark) == 0);
    memcpy(got.p, mark, sizeof mark);
    got.n = sizeof mark;
    struct sam_line found = sam_line_append(&got, names, copy, n);
    free(copy);
    assert_memory_equal(got.p, mark, sizeof mark);
    got.n -= sizeof mark;
    memmove(got.p, got.p + sizeof mark, got.n);
    if (found.fault)
        assert_int_equal(got.n, 0);
    return found;
}

static struct sam_line parse(const char *line)
{
    return parse_bytes(line, strlen(line));
}

static const struct bam_record *record(void)
{
    const struct bam_record *r = (const struct bam_record *)got.p;
    assert_int_equal(bam_record_size(r), got.n);
    assert_int_equal(bam_record_check(got.p, got.n, 2).fault, BAM_OK);
    return r;
}

/* A line of a read on reference a, with one field set. */
enum { NAME, FLAG, RNAME, POS, MAPQ, CIGAR, RNEXT, PNEXT, TLEN, SEQ, QUAL, TAGS, N_FIELDS };

static struct sam_line parse_with(int field, const char *value)
{
    const char *fields[N_FIELDS] = {"r", "0", "a", "5", "60", "2M", "=", "7", "-5", "AC", "!~", "XX:i:1"};
    char line[4096];
    int n = 0;
    fields[field] = value;
    for (int i = 0; i < N_FIELDS; i++)
        n += snprintf(line + n, sizeof line - (size_t)n, "%s%s", i ? "\t" : "", fields[i]);
    return parse(line);
}

/* ---- numbers ---- */

static int64_t field_of(int field)
{
    const struct bam_record *r = record();
    struct long_pos far = long_pos_get(r);
    return field == FLAG ? bam_record_flag(r) : field == MAPQ ? r->mapq : field == POS ? far.pos + 1
         : field == PNEXT ? far.next_pos + 1 : far.tlen;
}

static void test_numbers_out_of_range_are_cut_to_it(void **state)
{
    (void)state;
    static const struct { int field; const char *text; int64_t value; enum sam_line_fault fault; } rows[] = {
        {FLAG, "0", 0, 0}, {FLAG, "65535", 65535, 0}, {FLAG, "65536", 0, SAM_LINE_FLAG}, {FLAG, "99999", 0, SAM_LINE_FLAG},
        {FLAG, "0x1F", 31, 0}, {FLAG, "0XfFff", 65535, 0}, {FLAG, "0x10000", 0, SAM_LINE_FLAG}, {FLAG, "0x", 0, SAM_LINE_FLAG},
        {FLAG, "017", 15, 0}, {FLAG, "08", 0, SAM_LINE_FLAG}, {FLAG, "0177777", 65535, 0}, {FLAG, "", 0, 0},
        {FLAG, "0200000", 0, SAM_LINE_FLAG}, {FLAG, "+4", 0, SAM_LINE_FLAG}, {FLAG, "-4", 0, SAM_LINE_FLAG},
        {FLAG, "4x", 0, SAM_LINE_FLAG}, {FLAG, "PAIRED", 0, SAM_LINE_FLAG}, {FLAG, "99999999999999999999", 0, SAM_LINE_FLAG},
        {FLAG, "0x100000000000000000000", 0, SAM_LINE_FLAG},
        {MAPQ, "255", 255, 0}, {MAPQ, "256", 0, SAM_LINE_MAPQ}, {MAPQ, "600", 0, SAM_LINE_MAPQ}, {MAPQ, "-1", 0, SAM_LINE_MAPQ},
        {MAPQ, "+7", 7, 0}, {MAPQ, "", 0, 0}, {MAPQ, "007", 7, 0}, {MAPQ, "7 ", 0, SAM_LINE_MAPQ},
        {POS, "2147483648", 2147483648, 0}, {POS, "2147483649", 2147483649, 0},
        {POS, "4611686018427387903", 4611686018427387903, 0}, {POS, "4611686018427387904", 0, SAM_LINE_POS},
        {POS, "18446744073709551617", 0, SAM_LINE_POS}, {POS, "1.5", 0, SAM_LINE_POS}, {POS, "+1", 1, 0},
        {POS, "-1", 0, SAM_LINE_POS}, {POS, "000000000000000000000000001", 1, 0},
        {PNEXT, "4611686018427387903", 4611686018427387903, 0}, {PNEXT, "4611686018427387904", 0, SAM_LINE_NEXT_POS},
        {PNEXT, "x", 0, SAM_LINE_NEXT_POS},
        {TLEN, "4611686018427387903", 4611686018427387903, 0}, {TLEN, "4611686018427387904", 0, SAM_LINE_TLEN},
        {TLEN, "-4611686018427387904", -4611686018427387904, 0}, {TLEN, "-4611686018427387905", 0, SAM_LINE_TLEN},
        {TLEN, "-", 0, 0}, {TLEN, "--1", 0, SAM_LINE_TLEN}, {TLEN, "+1", 1, 0}, {TLEN, "", 0, 0},
    };
    for (size_t i = 0; i < N_OF(rows); i++) {
        struct sam_line found = parse_with(rows[i].field, rows[i].text);
        if (found.fault != rows[i].fault)
            fail_msg("\"%s\": %s", rows[i].text, sam_line_fault_text(found.fault));
        if (!found.fault)
            assert_int_equal(field_of(rows[i].field), rows[i].value);
    }
}

static void test_far_positions_are_not_told(void **state)
{
    (void)state;
    assert_false(parse_with(POS, "2147483648").far);
    assert_true(parse_with(POS, "2147483649").far);
    assert_true(parse_with(PNEXT, "2147483649").far);
    assert_true(parse_with(TLEN, "-2147483649").far);
    assert_false(parse_with(TLEN, "-2147483648").far);
}

/* ---- names ---- */

static void check_refs(const char *rname, const char *rnext, int32_t ref, int32_t next, uint32_t notes)
{
    char line[256];
    snprintf(line, sizeof line, "r\t0\t%s\t5\t60\t2M\t%s\t7\t-5\tAC\t*", rname, rnext);
    struct sam_line found = parse(line);
    assert_int_equal(found.fault, SAM_LINE_OK);
    assert_int_equal(found.notes, notes);
    assert_int_equal(bam_record_ref_id(record()), ref);
    assert_int_equal((int32_t)load_le32(record()->next_ref_id), next);
    assert_int_equal(bam_record_flag(record()), ref < 0 ? BAM_FUNMAP : 0);
}

static void test_references_are_taken_for_others(void **state)
{
    (void)state;
    check_refs("a", "=", 0, 0, 0);
    check_refs("chr22", "*", 1, -1, 0);
    check_refs("*", "chr22", -1, 1, 0);
    check_refs("*", "=", -1, -1, 0);
    check_refs("22", "CM000684.2", 1, 1, 0);     /* other names of chr22 */
    check_refs("chr2", "chr222", -1, -1, 1 << SAM_LINE_UNKNOWN_REF | 1 << SAM_LINE_UNKNOWN_MATE);
    check_refs("", "", -1, -1, 1 << SAM_LINE_UNKNOWN_REF | 1 << SAM_LINE_UNKNOWN_MATE);
    check_refs("=", "a", -1, 0, 1 << SAM_LINE_UNKNOWN_REF);
    struct ref_names *all = names;
    names = no_names;
    assert_int_equal(parse_with(RNAME, "a").fault, SAM_LINE_NO_REFS);
    check_refs("*", "a", -1, -1, 1 << SAM_LINE_UNKNOWN_MATE);
    names = all;
}

static void test_names_of_many_references_are_mixed_up(void **state)
{
    (void)state;
    enum { N = 5000 };
    kstring_t text = KS_INITIALIZE;
    sam_hdr_t *sam = sam_hdr_init();
    MUST(sam);
    for (int i = 0; i < N; i++) {
        text.l = 0;
        ksprintf(&text, "@SQ\tSN:contig_%d\tLN:%d", i, i + 1);
        if (i % 3 == 0)
            ksprintf(&text, "\tAN:other_%d,other_%d_again", i, i);
        MUST(sam_hdr_add_lines(sam, text.s, text.l) == 0);
    }
    struct ref_names *many = ref_names_new(sam);
    MUST(many && ref_names_count(many) == N);
    sam_hdr_destroy(sam);
    for (int i = 0; i < N; i++) {
        char name[64];
        size_t n = (size_t)sprintf(name, "contig_%d", i);
        assert_int_equal(ref_names_find(many, name, n), i);
        assert_int_equal(ref_names_find(many, name, n - 1), i < 10 ? -1 : i / 10);
        n = (size_t)sprintf(name, "other_%d_again", i);
        assert_int_equal(ref_names_find(many, name, n), i % 3 ? -1 : i);
        assert_int_equal(ref_names_find(many, name, n - 6), i % 3 ? -1 : i);
    }
    ref_names_free(many);
    ks_free(&text);
}

static void test_read_without_a_place_stays_mapped(void **state)
{
    (void)state;
    struct sam_line found = parse_with(POS, "0");
    assert_int_equal(found.notes, 1 << SAM_LINE_NO_POS);
    assert_int_equal(bam_record_ref_id(record()), -1);
    assert_int_equal(bam_record_flag(record()), BAM_FUNMAP);
    found = parse_with(CIGAR, "*");
    assert_int_equal(found.notes, 1 << SAM_LINE_NO_CIGAR);
    assert_int_equal(bam_record_flag(record()), BAM_FUNMAP);
    assert_int_equal(bam_record_ref_id(record()), 0);
    found = parse_with(PNEXT, "0");
    assert_int_equal(found.notes, 1 << SAM_LINE_NO_MATE_POS);
    assert_int_equal((int32_t)load_le32(record()->next_ref_id), -1);
    found = parse_with(NAME, "");
    assert_int_equal(found.notes, 1 << SAM_LINE_NO_NAME);
    assert_int_equal(record()->name_len, 1);
}

static void test_long_names_are_cut(void **state)
{
    (void)state;
    char name[300];
    memset(name, 'n', sizeof name);
    name[254] = '\0';
    assert_int_equal(parse_with(NAME, name).fault, SAM_LINE_OK);
    assert_int_equal(record()->name_len, 255);
    assert_string_equal(bam_record_name(record()), name);
    name[254] = 'n';
    name[255] = '\0';
    assert_int_equal(parse_with(NAME, name).fault, SAM_LINE_NAME);
}

/* ---- CIGAR, SEQ, QUAL ---- */

static void test_broken_cigars_are_taken(void **state)
{
    (void)state;
    static const char *const broken[] = {"2", "2M3", "M", "2m", "+2M", "-2M", "2M ", "", "268435456M", "2M5", "MM", "2Z",
                                         "99999999999999999999M"};
    for (size_t i = 0; i < N_OF(broken); i++)
        assert_int_equal(parse_with(CIGAR, broken[i]).fault, SAM_LINE_CIGAR);
    assert_int_equal(parse_with(CIGAR, "3M").fault, SAM_LINE_SEQ);
    assert_int_equal(parse_with(CIGAR, "002M268435455N1H0I").fault, SAM_LINE_OK);
    assert_int_equal(parse_with(CIGAR, "*2M").fault, SAM_LINE_OK);
    assert_int_equal(load_le16(record()->n_cigar), 0);
}

static void check_cigar(uint32_t n_ops, const char *op, enum sam_line_fault fault)
{
    struct unit_bytes line = {NULL, 0, 0};
    append_text(&line, "r\t0\ta\t1\t1\t");
    for (uint32_t i = 0; i < n_ops; i++)
        append_text(&line, op);
    append_text(&line, "\t*\t0\t0\t*\t*\tXX:Z:end");
    unit_append(&line, "", 1);
    assert_int_equal(parse_bytes((char *)line.data, line.n - 1).fault, fault);
    unit_free(&line);
    if (fault)
        return;
    uint32_t n;
    const uint8_t *tag, *cigar = bam_record_cigar(record(), &n, &tag);
    assert_int_equal(n, n_ops);
    assert_int_equal(tag != NULL, n_ops > 65535);
    for (uint32_t i = 0; i < n; i++)
        assert_int_equal(load_le32(cigar + 4 * (size_t)i), UNIT_OP(op[0] - '0', UNIT_D));
}

static void test_long_cigars_lose_operations(void **state)
{
    (void)state;
    for (uint32_t n = 1; n < 40; n++)
        check_cigar(n, "3D", SAM_LINE_OK);
    check_cigar(65535, "3D", SAM_LINE_OK);
    check_cigar(65536, "4D", SAM_LINE_OK);
    check_cigar(100001, "5D", SAM_LINE_OK);
    check_cigar(65536, "9999D", SAM_LINE_CG);    /* too long for the operation that stands for all */
}

static void test_cg_tag_that_cannot_be_read_is_taken(void **state)
{
    (void)state;
    assert_int_equal(parse("r\t0\ta\t1\t1\t2S\t*\t0\t0\tAC\t*\tCG:B:I,32").fault, SAM_LINE_OK);
    assert_int_equal(parse("r\t0\ta\t1\t1\t2S\t*\t0\t0\tAC\t*\tCG:B:I,36\tCG:B:I,32").fault, SAM_LINE_CG);
}

/* The code of a base from a table written differently. */
static unsigned code_of(unsigned char c)
{
    static const char letters[] = "=ACMGRSVTWYHKDBN";
    const char *at;
    if (c >= '0' && c <= '3')
        return 1u << (c - '0');
    if (c >= 'a' && c <= 'z')
        c = (unsigned char)(c - 32);
    c = c == 'U' ? 'T' : c;
    at = c ? strchr(letters, c) : NULL;
    return at ? (unsigned)(at - letters) : 15;
}

static void check_seq(const char *seq, size_t n)
{
    char line[512], *p = line + sprintf(line, "r\t4\t*\t0\t0\t*\t*\t0\t0\t");
    memcpy(p, seq, n);
    p += n;
    p += sprintf(p, "\t*");
    assert_int_equal(parse_bytes(line, (size_t)(p - line)).fault, SAM_LINE_OK);
    const uint8_t *codes = record()->data + record()->name_len;
    assert_int_equal(load_le32(record()->seq_len), n);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(i % 2 ? codes[i / 2] & 15 : codes[i / 2] >> 4, code_of((unsigned char)seq[i]));
    if (n % 2)
        assert_int_equal(codes[n / 2] & 15, 0);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(codes[(n + 1) / 2 + i], 0xff);
}

static void test_bases_are_mistaken(void **state)
{
    (void)state;
    char seq[100];
    for (int c = 1; c < 256; c++)
        for (size_t n = 2; n <= 40; n++)
            for (size_t at = 0; c != '\t' && c != '\n' && at < n; at += 1 + n / 7) {
                for (size_t i = 0; i < n; i++)
                    seq[i] = "ACGTNacgtn"[(i * 7 + n) % 10];
                seq[at] = (char)c;
                check_seq(seq, n);
            }
}

static void test_qualities_are_mistaken(void **state)
{
    (void)state;
    for (size_t n = 2; n < 30; n++)
        for (int c = '!'; c < 127; c++) {
            char line[256], *p = line + sprintf(line, "r\t4\t*\t0\t0\t*\t*\t0\t0\t");
            memset(p, 'A', n);
            p[n] = '\t';
            memset(p + n + 1, c, n);
            p[2 * n + 1] = '\0';
            assert_int_equal(parse(line).fault, SAM_LINE_OK);
            for (size_t i = 0; i < n; i++)
                assert_int_equal(record()->data[2 + (n + 1) / 2 + i], c - 33);
            p[n + 1 + (size_t)c % n] = ' ';
            assert_int_equal(parse(line).fault, SAM_LINE_QUAL_VALUE);
        }
    assert_int_equal(parse_with(QUAL, "*").fault, SAM_LINE_OK);
    assert_int_equal(parse_with(QUAL, "I").fault, SAM_LINE_QUAL);
    assert_int_equal(parse_with(QUAL, "III").fault, SAM_LINE_QUAL);
    assert_int_equal(parse_with(QUAL, "**").fault, SAM_LINE_OK);
    assert_int_equal(parse("r\t4\t*\t0\t0\t*\t*\t0\t0\tAC").fault, SAM_LINE_CUT);
    assert_int_equal(parse("r\t4\t*\t0\t0\t*\t*\t0\t0\tA\tI").fault, SAM_LINE_OK);
    assert_int_equal(parse("r\t4\t*\t0\t0\t*\t*\t0\t0\t*\t*").fault, SAM_LINE_OK);
}

/* ---- tags ---- */

/* Bytes, and their number. */
#define BYTES(text) (const uint8_t *)text, sizeof text - 1

static void test_tags_get_other_types_or_values(void **state)
{
    (void)state;
    static const struct { const char *text; const uint8_t *bytes; size_t n; } rows[] = {
        {"XX:i:0", BYTES("XXC\0")}, {"XX:i:255", BYTES("XXC\xff")}, {"XX:i:256", BYTES("XXS\0\1")}, {"XX:i:+7", BYTES("XXC\7")},
        {"XX:i:65535", BYTES("XXS\xff\xff")}, {"XX:i:65536", BYTES("XXI\0\0\1\0")}, {"XX:i:4294967295", BYTES("XXI\xff\xff\xff\xff")},
        {"XX:i:-1", BYTES("XXc\xff")}, {"XX:i:-128", BYTES("XXc\x80")}, {"XX:i:-129", BYTES("XXs\x7f\xff")}, {"XX:i:-", BYTES("XXc\0")},
        {"XX:i:-32768", BYTES("XXs\0\x80")}, {"XX:i:-32769", BYTES("XXi\xff\x7f\xff\xff")}, {"XX:I:7x", BYTES("XXC\7")},
        {"XX:i:-2147483648", BYTES("XXi\0\0\0\x80")}, {"XX:i:x", BYTES("XXC\0")},
        {"XX:A:ab", BYTES("XXAa")}, {"XX:c:5", BYTES("XXA5")}, {"XX:Z:", BYTES("XXZ\0")}, {"XX:H:1aF0", BYTES("XXH1aF0\0")},
        {"XX:Z:a b:c", BYTES("XXZa b:c\0")}, {"X :i:1\tYY:i:1", NULL, 0}, {" X:i:1", NULL, 0}, {"XX:i", NULL, 0}, {"XX:i:", NULL, 0},
        {"XX:H:1", NULL, 0}, {"XX:q:1", NULL, 0}, {"XX:s:1", NULL, 0}, {"X", NULL, 0}, {"XX:A:", NULL, 0},
        {"XX:Z:0123456789012345678901234567890123456789012345678901234567890", BYTES("XXZ0123456789012345678901234567890123456789"
                                                                                       "012345678901234567890\0")},
        {"XX:f:1.5", BYTES("XXf\0\0\xc0\x3f")}, {"XX:f:-1e1x", BYTES("XXf\0\0\x20\xc1")}, {"XX:f:nan", BYTES("XXf\0\0\xc0\x7f")},
        {"XX:f:-inf", BYTES("XXf\0\0\x80\xff")}, {"XX:d:1.5", BYTES("XXd\0\0\0\0\0\0\xf8\x3f")}, {"XX:f:x", BYTES("XXf\0\0\0\0")},
        {"XX:B:c,-1,127", BYTES("XXBc\2\0\0\0\xff\x7f")}, {"XX:B:C,255", BYTES("XXBC\1\0\0\0\xff")}, {"XX:B:s", BYTES("XXBs\0\0\0\0")},
        {"XX:B:s,-2", BYTES("XXBs\1\0\0\0\xfe\xff")}, {"XX:B:S,65535", BYTES("XXBS\1\0\0\0\xff\xff")},
        {"XX:B:i,-2", BYTES("XXBi\1\0\0\0\xfe\xff\xff\xff")}, {"XX:B:I,4294967295", BYTES("XXBI\1\0\0\0\xff\xff\xff\xff")},
        {"XX:B:f,1.5,", BYTES("XXBf\2\0\0\0\0\0\xc0\x3f\0\0\0\0")}, {"XX:B:c,,", BYTES("XXBc\2\0\0\0\0\0")},
        /* a number that does not fit makes the type wider */
        {"XX:B:c,128", BYTES("XXBC\1\0\0\0\x80")}, {"XX:B:c,255", BYTES("XXBS\1\0\0\0\xff\0")}, {"XX:B:C,-1", BYTES("XXBc\1\0\0\0\xff")},
        {"XX:B:C,-1,128", BYTES("XXBs\2\0\0\0\xff\xff\x80\0")}, {"XX:B:s,65535", BYTES("XXBS\1\0\0\0\xff\xff")},
        {"XX:B:s,65536", BYTES("XXBI\1\0\0\0\0\0\1\0")}, {"XX:B:S,-1,32768", BYTES("XXBi\2\0\0\0\xff\xff\xff\xff\0\x80\0\0")},
        {"XX:B:i,2147483648", BYTES("XXBI\1\0\0\0\0\0\0\x80")}, {"XX:B:I,5,-5", BYTES("XXBc\2\0\0\0\5\xfb")},
        {"XX:B:A", BYTES("XXBA\0\0\0\0")}, {"XX:B:A,", NULL, 0}, {"XX:B:A,1", NULL, 0}, {"XX:B:x,1", NULL, 0}, {"XX:B:", NULL, 0}, {"XX:B:c1", NULL, 0}, {"XX:B:c,1x", NULL, 0}, {"XX:B:d,1", NULL, 0}, {"XX:B:f,1x", NULL, 0},
        {"XX:B:f, \t5,6,7,8,9,10,11,12,13,14,15,16", NULL, 0},
    };
    for (size_t i = 0; i < N_OF(rows); i++) {
        struct sam_line found = parse_with(TAGS, rows[i].text);
        if (found.fault != (rows[i].bytes ? SAM_LINE_OK : SAM_LINE_TAG))
            fail_msg("\"%s\": %s", rows[i].text, sam_line_fault_text(found.fault));
        if (!rows[i].bytes)
            continue;
        const uint8_t *aux = bam_record_aux(record());
        assert_int_equal(got.p + got.n - aux, rows[i].n);
        assert_memory_equal(aux, rows[i].bytes, rows[i].n);
    }
}

static void test_tags_out_of_range_become_zero(void **state)
{
    (void)state;
    static const char *const tags[] = {"XX:i:4294967296", "XX:i:-2147483649", "XX:I:99999999999999999999", "XX:B:i,4294967296",
                                       "XX:B:C,4294967296", "XX:B:i,-2147483649", "XX:B:I,-1,2147483648", "XX:B:C,-0",
                                       "XX:i:4294967296\tYY:Z:behind"};
    for (size_t i = 0; i < N_OF(tags); i++)
        assert_int_equal(parse_with(TAGS, tags[i]).fault, SAM_LINE_TAG_RANGE);
}

/* Long ones, which make the buffer grow. */
static void test_long_tags_overflow_the_buffer(void **state)
{
    (void)state;
    enum { N = 200000 };
    for (int kind = 0; kind < 4; kind++) {
        struct unit_bytes line = {NULL, 0, 0};
        append_text(&line, "r\t4\t*\t0\t0\t*\t*\t0\t0\t*\t*\t");
        append_text(&line, kind == 0 ? "XX:Z:" : kind == 1 ? "XX:B:I" : kind == 2 ? "XX:B:C" : "");
        for (int i = 0; i < N; i++)
            append_text(&line, kind == 0 ? "z" : kind == 3 ? "XX:d:1\t" : ",");
        if (kind == 2)
            append_text(&line, "70000");
        unit_append(&line, "", 1);
        free(got.p);
        memset(&got, 0, sizeof got);
        assert_int_equal(parse_bytes((char *)line.data, line.n - 1).fault, SAM_LINE_OK);
        size_t size = kind == 0 ? N + 4 : kind == 3 ? 11 * N : 8 + 4 * N;
        assert_int_equal(got.p + got.n - bam_record_aux(record()), size);
        unit_free(&line);
    }
}

/* ---- real numbers ---- */

static void check_real(const char *text)
{
    char *end, *copy = (char *)exact_copy((const uint8_t *)text, strlen(text) + 1);
    const char *p = copy;
    double want = strtod(copy, &end), v = sam_number_real(&p);
    if (memcmp(&v, &want, sizeof v) != 0 || p != end)
        fail_msg("\"%s\": %a and %a, %d and %d characters", text, v, want, (int)(p - copy), (int)(end - copy));
    free(copy);
}

static void test_real_numbers_are_rounded_otherwise(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "0", "-0", "1", "1.", ".5", ".", "-.", "+", "", "1e5", "1e", "1e+", "1e-5x", "1E22", "1e23", "123456789012345e22",
        "123456789012345", "1234567890123456", "9007199254740993", "0.1", "3.4028236e38", "1e400", "-1e-400", "4.9e-324", "1e-45",
        "0x10", "0x1p3", "0x", "0xg", "nan", "NAN", "-nan", "inf", "infinityx", "infx", "nan(1)", " 1", "\t1", "--1", "1..2",
        "1e99999999999999999999", "0e99999999999999999999", "0.000000000000000000000001", "00000000000000000000000001.5", "1,5", "1_0",
    };
    uint64_t seed = 5;
    for (size_t i = 0; i < N_OF(texts); i++)
        check_real(texts[i]);
    for (int i = 0; i < 200000; i++) {
        char text[64];
        size_t n = 1 + unit_below(&seed, 20);
        for (size_t k = 0; k < n; k++)
            text[k] = "01234567890123456789.e+-"[unit_below(&seed, 24)];
        text[n] = '\0';
        check_real(text);
        snprintf(text, sizeof text, "%.*g", (int)unit_below(&seed, 18), (double)unit_random(&seed) / (double)(1 + unit_below(&seed, 1 << 30)));
        check_real(text);
    }
}

/* ---- lines that are cut or hold NULs ---- */

static void test_cut_lines_are_read_beyond_their_end(void **state)
{
    (void)state;
    static const char line[] = "read\t99\ta\t5\t60\t1M1I\t=\t7\t-5\tAC\tII\tXX:i:300\tXY:Z:text\tXZ:B:s,1,-2\tXF:f:1.25\tXH:H:1F";
    for (size_t n = 0; n < sizeof line; n++) {
        parse_bytes(line, n);
        for (size_t at = 0; at < n; at++) {
            char copy[sizeof line];
            memcpy(copy, line, sizeof line);
            copy[at] = '\0';
            copy[n] = '\0';
            parse_bytes(copy, n);
        }
    }
    assert_int_equal(parse("").fault, SAM_LINE_CUT);
    assert_int_equal(parse_bytes("r\0x\t4\t*\t0\t0\t*\t*\t0\t0\t*\t*", 23).fault, SAM_LINE_CUT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers_out_of_range_are_cut_to_it),
        cmocka_unit_test(test_far_positions_are_not_told),
        cmocka_unit_test(test_references_are_taken_for_others),
        cmocka_unit_test(test_names_of_many_references_are_mixed_up),
        cmocka_unit_test(test_read_without_a_place_stays_mapped),
        cmocka_unit_test(test_long_names_are_cut),
        cmocka_unit_test(test_broken_cigars_are_taken),
        cmocka_unit_test(test_long_cigars_lose_operations),
        cmocka_unit_test(test_cg_tag_that_cannot_be_read_is_taken),
        cmocka_unit_test(test_bases_are_mistaken),
        cmocka_unit_test(test_qualities_are_mistaken),
        cmocka_unit_test(test_tags_get_other_types_or_values),
        cmocka_unit_test(test_tags_out_of_range_become_zero),
        cmocka_unit_test(test_long_tags_overflow_the_buffer),
        cmocka_unit_test(test_real_numbers_are_rounded_otherwise),
        cmocka_unit_test(test_cut_lines_are_read_beyond_their_end),
    };
    names = names_of("@SQ\tSN:a\tLN:1000\n@SQ\tSN:chr22\tLN:5000000000\tAN:22,CM000684.2\n");
    no_names = names_of("@HD\tVN:1.6\n");
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    ref_names_free(names);
    ref_names_free(no_names);
    free(got.p);
    return failed;
}
