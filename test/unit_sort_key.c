/* SPDX-License-Identifier: MIT */
#include <ctype.h>
#include <htslib/sam.h>
#include "unit.h"
#include "order/coordinate_key.h"
#include "order/sort_key.h"

static const int32_t refs[] = {-1, 0, 1, 2, 255, 256, 65535, 1 << 30, INT32_MAX - 1};
static const int32_t positions[] = {-1, 0, 1, 2, 0x7fff, 0xffff, 0x10000, 1 << 29, INT32_MAX - 1, INT32_MAX,
                                    -2, -3, INT32_MIN, INT32_MIN + 1};
static const uint16_t flags[] = {0, 0x10, 0x4, 0x14, 0xffef, 0xffff, 0x8, 0x20, 0x400};
enum { N_RECORDS = N_OF(refs) * N_OF(positions) * N_OF(flags) };

static void set_record(struct bam_record *r, int32_t ref, int32_t pos, uint16_t flag)
{
    memset(r, 0xa5, sizeof *r);                  /* no other field may matter */
    store_le32(r->ref_id, (uint32_t)ref);
    store_le32(r->pos, (uint32_t)pos);
    store_le16(r->flag, flag);
}

static int compare(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

/* samtools' order: reference, none last; position + 1, unsigned; strand. */
static int naive(const struct bam_record *a, const struct bam_record *b)
{
    int64_t ref_a = bam_record_ref_id(a), ref_b = bam_record_ref_id(b);
    if (ref_a == -1) ref_a = INT64_MAX;
    if (ref_b == -1) ref_b = INT64_MAX;
    if (ref_a != ref_b)
        return ref_a < ref_b ? -1 : 1;
    uint32_t pos_a = (uint32_t)bam_record_pos(a) + 1, pos_b = (uint32_t)bam_record_pos(b) + 1;
    if (pos_a != pos_b)
        return pos_a < pos_b ? -1 : 1;
    int rev_a = bam_record_flag(a) >> 4 & 1, rev_b = bam_record_flag(b) >> 4 & 1;
    return rev_a - rev_b;
}

static void test_edge_values_order_as_samtools_orders_them(void **state)
{
    (void)state;
    struct bam_record *r = must_alloc(N_RECORDS * sizeof *r);
    size_t n = 0;
    for (size_t i = 0; i < N_OF(refs); i++)
        for (size_t j = 0; j < N_OF(positions); j++)
            for (size_t k = 0; k < N_OF(flags); k++)
                set_record(&r[n++], refs[i], positions[j], flags[k]);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++)
            if (compare(coordinate_key(&r[i]), coordinate_key(&r[j])) != naive(&r[i], &r[j]))
                fail_msg("(%d, %d, %x) against (%d, %d, %x)", bam_record_ref_id(&r[i]),
                         bam_record_pos(&r[i]), bam_record_flag(&r[i]), bam_record_ref_id(&r[j]),
                         bam_record_pos(&r[j]), bam_record_flag(&r[j]));
    free(r);
}

/* ---- the other orders: common parts ---- */

static const char header[] = "@HD\tVN:1.6\n@SQ\tSN:a\tLN:1000000\n@SQ\tSN:b\tLN:250000000\n@SQ\tSN:c\tLN:16000\n"
    "@RG\tID:g1\tLB:libB\n@RG\tID:g2\tLB:libA\n@RG\tID:g3\n@RG\tID:g4\tLB:libA\n";

/* Records in one buffer, and pointers to them. */
struct set {
    struct unit_bytes bytes;
    size_t at[4096];
    const struct bam_record *r[4096];
    size_t n;
};

static struct bam_record *set_add(struct set *set, const struct unit_record *r)
{
    assert_true(set->n < N_OF(set->at));
    set->at[set->n] = set->bytes.n;
    unit_append_record(&set->bytes, r);
    struct bam_record *out = (struct bam_record *)(set->bytes.data + set->at[set->n++]);
    for (size_t i = 0; i < set->n; i++)
        set->r[i] = (const struct bam_record *)(set->bytes.data + set->at[i]);
    return out;
}

static void set_free(struct set *set)
{
    unit_free(&set->bytes);
    free(set);
}

static struct set *set_new(void)
{
    struct set *set = must_alloc(sizeof *set);
    memset(set, 0, sizeof *set);
    return set;
}

static struct sort_rule *rule_for(enum sort_by by, enum sort_by then, const char *tag)
{
    struct sort_order order = {.by = by, .then = then, .n_bins = 64};
    memcpy(order.tag, tag, 2);
    sam_hdr_t *sam = sam_hdr_parse(sizeof header - 1, header);
    MUST(sam);
    struct sort_rule *rule = sort_rule_new(&order, sam);
    MUST(rule);
    sam_hdr_destroy(sam);
    return rule;
}

static uint64_t key_of(const struct sort_rule *rule, const struct bam_record *r)
{
    uint64_t key = 0;
    uint8_t *exact = exact_copy(r, bam_record_size(r));      /* so that reading past it is noticed */
    assert_int_equal(sort_key_make(rule, (const struct bam_record *)exact, &key), BAM_OK);
    free(exact);
    return key;
}

static int sign(int v)
{
    return (v > 0) - (v < 0);
}

/* Checks two records with one key: their parts, up to the first that differs, agree with the comparison. */
static void check_parts(const struct sort_rule *rule, const struct bam_record *a, const struct bam_record *b, const char *what)
{
    int order = sort_key_compare(rule, a, b);
    uint64_t x = 0, y = 0;
    enum sort_word found = SORT_WORD;
    for (unsigned i = 0; found == SORT_WORD && x == y; i++) {
        found = sort_key_word(rule, a, i, &x);
        if (found != sort_key_word(rule, b, i, &y))
            fail_msg("%s: other parts: '%s' '%s'", what, bam_record_name(a), bam_record_name(b));
    }
    if ((found == SORT_TIE && order) || (found == SORT_WORD && sign(order) != compare(x, y)))
        fail_msg("%s: parts %llx %llx contradict %d: '%s' '%s'", what, (unsigned long long)x, (unsigned long long)y, order,
                 bam_record_name(a), bam_record_name(b));
}

/* Every pair: the comparison is antisymmetric and no key contradicts it; every
 * third record with random others: it is transitive, ties included. */
static void check_rule(const struct sort_rule *rule, const struct set *set, const char *what)
{
    uint64_t *keys = must_alloc(set->n * sizeof *keys), seed = 7;
    for (size_t i = 0; i < set->n; i++)
        keys[i] = key_of(rule, set->r[i]);
    for (size_t i = 0; i < set->n; i++) {
        for (size_t j = 0; j <= i; j++) {
            int order = sign(sort_key_compare(rule, set->r[i], set->r[j]));
            if (order != -sign(sort_key_compare(rule, set->r[j], set->r[i])))
                fail_msg("%s: not antisymmetric: %s %s", what, bam_record_name(set->r[i]), bam_record_name(set->r[j]));
            if ((order < 0 && keys[i] > keys[j]) || (order > 0 && keys[i] < keys[j]))
                fail_msg("%s: keys %llx %llx contradict %d: '%s' %x '%s' %x", what, (unsigned long long)keys[i],
                         (unsigned long long)keys[j], order, bam_record_name(set->r[i]), bam_record_flag(set->r[i]),
                         bam_record_name(set->r[j]), bam_record_flag(set->r[j]));
            if (order == 0 && keys[i] != keys[j] && !sort_key_decides(rule))
                fail_msg("%s: keys %llx %llx decide a tie: '%s' '%s'", what, (unsigned long long)keys[i],
                         (unsigned long long)keys[j], bam_record_name(set->r[i]), bam_record_name(set->r[j]));
            if (keys[i] == keys[j])
                check_parts(rule, set->r[i], set->r[j], what);
        }
    }
    for (int i = 0; i < 8000; i++) {
        const struct bam_record *a = set->r[unit_below(&seed, (uint32_t)set->n)];
        const struct bam_record *b = set->r[unit_below(&seed, (uint32_t)set->n)];
        const struct bam_record *c = set->r[unit_below(&seed, (uint32_t)set->n)];
        int ab = sort_key_compare(rule, a, b), bc = sort_key_compare(rule, b, c);
        if (ab <= 0 && bc <= 0)
            assert_true(sort_key_compare(rule, a, c) <= 0 && (ab == 0 && bc == 0) <= (sort_key_compare(rule, a, c) == 0));
    }
    free(keys);
}

/* The set against rules that have learned from nothing, all of it, its beginning, one record, every 7th. */
static void check_order(enum sort_by by, enum sort_by then, const char *tag, const struct set *set, const char *what)
{
    static const struct { size_t first, n, every; } samples[] = {
        {0, 0, 1}, {0, 4096, 1}, {0, 20, 1}, {3, 1, 1}, {5, 4096, 7}, {40, 30, 1}, {0, 2, 1}, {9, 8, 1}};
    for (size_t i = 0; i < N_OF(samples); i++) {
        struct sort_rule *rule = rule_for(by, then, tag);
        const struct bam_record *sample[4096];
        size_t n = 0;
        for (size_t j = samples[i].first; j < set->n && n < samples[i].n; j += samples[i].every)
            sample[n++] = set->r[j];
        if (i > 0)
            sort_rule_learn(rule, sample, n);
        check_rule(rule, set, what);
        sort_rule_free(rule);
    }
}

/* ---- names ---- */

static const uint16_t name_flags[] = {0, 0x40, 0x80, 0xc0, 0x100, 0x800, 0x900, 0x140, 0x841, 0x941, 0x191, 0x83, 0x91,
                                      0x41, 0x51, 0x1, 0xc1, 0xd1, 0x811, 0xfff};

static void add_name(struct set *set, const char *name, uint16_t flag, const void *aux, size_t n_aux)
{
    struct unit_record r = {.ref_id = -1, .pos = -1, .flag = flag, .name = name, .aux = aux, .n_aux = n_aux};
    set_add(set, &r);
}

static const char *const odd_names[] = {
    "", "0", "00", "000", "1", "01", "9", "09", "10", "010", "99", "100", "a", "a0", "a00", "a9", "a09", "a009", "a9b",
    "a09b", "a9b1", "a09b1", "a09a", "a10", "a1a", "a1.", "a:", "a/", "ab", "aB", "A", "a\x7f", "a\x80", "a\xff", "\xff",
    "\x80", "\x01", "a9\x80", "a9\xff", "a9:", "a9/", "9a", "9:", "9/", "a18446744073709551615", "a18446744073709551616",
    "a18446744073709551617", "a99999999999999999999", "a100000000000000000000", "a018446744073709551616",
    "a1000000000000000000", "a999999999999999999", "a9999999999999999999", "a10000000000000000000",
    "SRR12.1", "SRR12.2", "SRR12.10", "SRR012.2", "SRR12.", "SRR12", "SRR1", "SRR123.1", "SRR13.1", "SRR11.1", "SRR12/1",
    "SRR12.1/1", "SRR12.1/2", "SRR12.1 ", "SRR12.1x", "SRR12.999999999", "SRR12.9999999999999999999999999",
    "SRR12.00000000000000000000000000000000000000000000001",
};

static struct set *odd_name_set(void)
{
    struct set *set = set_new();
    uint64_t seed = 3;
    for (size_t i = 0; i < N_OF(odd_names); i++)
        for (int j = 0; j < 3; j++)
            add_name(set, odd_names[i], name_flags[unit_below(&seed, N_OF(name_flags))], NULL, 0);
    return set;
}

/* Names as instruments make them, from n_runs runs; sometimes one has a different form. */
static struct set *illumina_set(uint32_t n_runs, uint64_t seed)
{
    static const char *const runs[] = {"A00:45:HFYKC", "A00:45:HFYKD", "A7:45:HXX", "A7:046:HXX", "B:1:2", "A00:450:HFYKC",
                                       "A:0:0:0", "A00:45:HFYK", "M_1-x"};
    struct set *set = set_new();
    for (int i = 0; i < 180; i++) {
        char name[80];
        uint32_t odd = unit_below(&seed, 40), lane = 1 + unit_below(&seed, 4), tile = 1101 + unit_below(&seed, 3);
        snprintf(name, sizeof name, odd == 0 ? "%s:%u:0%u:%u:%u" : odd == 1 ? "%s:%u:%u:%u" : odd == 2 ? "%s:%u;%u:%u:%u"
                 : odd == 3 ? "%s:%u:%u:%u:%uA" : odd == 4 ? "%s:%ux%u:%u:%u" : odd == 5 ? "%s:%u:%u:%u:%u000000000" : "%s:%u:%u:%u:%u",
                 runs[unit_below(&seed, n_runs)], lane, tile, 1000 + unit_below(&seed, i < 60 ? 100 : 30000), unit_below(&seed, 30));
        add_name(set, name, name_flags[unit_below(&seed, N_OF(name_flags))], NULL, 0);
    }
    return set;
}

static struct set *random_name_set(const char *alphabet, uint32_t max, uint64_t seed)
{
    struct set *set = set_new();
    for (int i = 0; i < 180; i++) {
        char name[64] = "";
        uint32_t n = unit_below(&seed, max + 1);
        for (uint32_t j = 0; j < n; j++)
            name[j] = alphabet[unit_below(&seed, (uint32_t)strlen(alphabet))];
        add_name(set, name, name_flags[unit_below(&seed, 4)], NULL, 0);
    }
    return set;
}

static void check_names(struct set *set, const char *what)
{
    check_order(SORT_NAME_NATURAL, SORT_COORDINATE, "XX", set, what);
    check_order(SORT_NAME_ASCII, SORT_COORDINATE, "XX", set, what);
    check_order(SORT_COLLATE, SORT_COORDINATE, "XX", set, what);
    set_free(set);
}

static void test_no_key_contradicts_the_order_of_odd_names(void **state)
{
    (void)state;
    check_names(odd_name_set(), "odd names");
    check_names(random_name_set("a09", 8, 1), "a09");
    check_names(random_name_set("a0:\xff", 20, 2), "a0: and byte 255");
    check_names(random_name_set("0123456789", 25, 3), "digits");
    check_names(random_name_set("0123456789abcdef-", 36, 4), "hex");
    check_names(random_name_set("b", 40, 5), "one letter");
    check_names(random_name_set("\x01 !/0:@~\x7f\x80\xfe\xff", 3, 6), "far bytes");
}

static void test_no_key_contradicts_the_order_of_instrument_names(void **state)
{
    (void)state;
    for (uint32_t runs = 1; runs <= 9; runs++)
        check_names(illumina_set(runs, runs), "runs");
}

/* Each record of the set comes before the next. */
static void check_ascending(struct sort_rule *rule, struct set *set)
{
    for (size_t i = 1; i < set->n; i++)
        if (sort_key_compare(rule, set->r[i - 1], set->r[i]) >= 0)
            fail_msg("record %zu does not come before the next: %s %x, %s %x", i - 1, bam_record_name(set->r[i - 1]),
                     bam_record_flag(set->r[i - 1]), bam_record_name(set->r[i]), bam_record_flag(set->r[i]));
    set_free(set);
    sort_rule_free(rule);
}

/* The order is that of samtools 1.24; the names b, s and a have the bins 4, 52 and 54 of 64. */
static void test_collated_names_come_by_bin_and_mates_by_flag(void **state)
{
    (void)state;
    static const struct { const char *name; uint16_t flag; } ascending[] = {
        {"b", 0}, {"b", 0x41}, {"b", 0x81}, {"b", 0xc1}, {"s", 0}, {"a", 0x41}, {"a", 0x881}};
    struct set *set = set_new();
    for (size_t i = 0; i < N_OF(ascending); i++)
        add_name(set, ascending[i].name, ascending[i].flag, NULL, 0);
    check_ascending(rule_for(SORT_COLLATE, SORT_COORDINATE, "XX"), set);
}

/* ---- tags ---- */

struct value { const char *bytes; size_t n; };
#define VALUE(s) {s, sizeof(s) - 1}

/* Ascending; values in one row tie. */
static const struct value values[][4] = {
    {VALUE(""), VALUE("YYAx"), VALUE("XXZbroken"), VALUE("XXi\1")},
    {VALUE("XXA!")}, {VALUE("XXAz")}, {VALUE("XXA\x80")},
    {VALUE("XXBC\2\0\0\0ab"), VALUE("XXBf\0\0\0\0"), VALUE("XXBi\1\0\0\0aaaa")},
    {VALUE("XXZ\0"), VALUE("XXH\0")}, {VALUE("XXZA\0")}, {VALUE("XXZAA\0"), VALUE("XXHAA\0")}, {VALUE("XXZACGT-1\0")},
    {VALUE("XXZACGT-2\0")}, {VALUE("XXZB\0")}, {VALUE("XXZ\x80\0")},
    {VALUE("XXf\0\0\x80\xff")},                                  /* -inf */
    {VALUE("XXi\0\0\0\x80")}, {VALUE("XXs\0\x80")}, {VALUE("XXc\x80"), VALUE("XXs\x80\xff"), VALUE("XXi\x80\xff\xff\xff")},
    {VALUE("XXf\0\0\x80\xbf"), VALUE("XXc\xff")},                /* -1 */
    {VALUE("XXc\0"), VALUE("XXf\0\0\0\0"), VALUE("XXf\0\0\0\x80"), VALUE("XXS\0\0")},
    {VALUE("XXf\0\0\0\x3f")},                                    /* 0.5 */
    {VALUE("XXC\1"), VALUE("XXd\0\0\0\0\0\0\xf0\x3f"), VALUE("XXI\1\0\0\0")},
    {VALUE("XXC\xff"), VALUE("XXS\xff\0")}, {VALUE("XXS\xff\xff")}, {VALUE("XXi\xff\xff\xff\x7f")}, {VALUE("XXI\xff\xff\xff\xff")},
    {VALUE("XXf\0\0\x80\x7f")},                                  /* inf */
    {VALUE("XXf\0\0\xc0\x7f"), VALUE("XXf\1\0\x80\xff"), VALUE("XXd\0\0\0\0\0\0\xf8\x7f")},
};

static struct set *tag_set(uint64_t seed, size_t low, size_t high)
{
    struct set *set = set_new();
    for (int i = 0; i < 160; i++) {
        const struct value *v = &values[low + unit_below(&seed, (uint32_t)(high - low))][0];
        uint32_t n_equal = 1;
        while (n_equal < N_OF(*values) && v[n_equal].n)
            n_equal++;
        v += unit_below(&seed, n_equal);
        struct unit_record r = {
            .ref_id = (int32_t)unit_below(&seed, 4) - 1, .pos = (int32_t)unit_below(&seed, 3) - 1 + (unit_below(&seed, 9) ? 0 : 300000000),
            .flag = name_flags[unit_below(&seed, N_OF(name_flags))], .name = odd_names[unit_below(&seed, 40)],
            .aux = v->bytes, .n_aux = v->n,
        };
        set_add(set, &r);
    }
    return set;
}

static void test_no_key_contradicts_the_tag_orders(void **state)
{
    (void)state;
    static const enum sort_by then[] = {SORT_COORDINATE, SORT_NAME_NATURAL, SORT_NAME_ASCII};
    for (size_t i = 0; i < N_OF(then); i++)
        for (uint64_t seed = 0; seed < 4; seed++) {
            static const size_t ranges[][2] = {{0, N_OF(values)}, {5, 12}, {12, N_OF(values)}, {16, 21}};
            struct set *set = tag_set(seed, ranges[seed][0], ranges[seed][1]);
            check_order(SORT_TAG, then[i], "XX", set, "tags");
            set_free(set);
        }
}

static struct set *barcode_set(uint64_t seed, uint32_t length)
{
    struct set *set = set_new();
    for (int i = 0; i < 160; i++) {
        char aux[64] = "XXZ";
        uint32_t n = length ? length : unit_below(&seed, 40);
        for (uint32_t j = 0; j < n; j++)
            aux[3 + j] = "ACGTN"[unit_below(&seed, j < 12 ? 1 : i < 120 ? 4 : 5)];
        struct unit_record r = {.ref_id = (int32_t)unit_below(&seed, 3), .pos = (int32_t)unit_below(&seed, 16000), .name = "b",
                                .aux = aux, .n_aux = 4 + n};
        set_add(set, &r);
    }
    return set;
}

static void test_no_key_contradicts_the_order_of_barcodes(void **state)
{
    (void)state;
    for (uint32_t length = 0; length <= 60; length += 15) {
        struct set *set = barcode_set(length + 1, length);
        check_order(SORT_TAG, SORT_COORDINATE, "XX", set, "barcodes");
        set_free(set);
    }
}

/* Texts around the header's read groups and around each other, most of them more than once. */
static struct set *text_set(const char *tag, uint32_t n_texts, uint64_t seed)
{
    static const char *const texts[] = {"g1", "g2", "g3", "g4", "g", "g0", "g10", "g11", "g1\xff", "g5", "f", "h", "", "\xff", "g3x",
                                        "g3:a rather long text", "g3:a rather long text!", "g3:a rather", "G", "g\x01", "ga", "g2 "};
    static char deep[2][600];
    memset(deep[0], 'g', sizeof deep[0] - 1);
    memset(deep[1], 'g', sizeof deep[1] - 8);    /* whole words of 8 bytes, and the beginning of the other */
    struct set *set = set_new();
    for (int i = 0; i < 180; i++) {
        char aux[700];
        uint32_t which = unit_below(&seed, n_texts);
        int n = snprintf(aux, sizeof aux, "%.2sZ%s", tag, which < N_OF(texts) ? texts[which] : deep[which % 2]);
        struct unit_record r = {.ref_id = (int32_t)unit_below(&seed, 4) - 1, .pos = (int32_t)unit_below(&seed, 3), .flag = i % 2 ? 0x50 : 0x80,
                                .name = odd_names[unit_below(&seed, 9)], .aux = aux, .n_aux = i % 19 ? (size_t)n + 1 : 0};
        set_add(set, &r);
    }
    return set;
}

static void test_no_key_contradicts_the_order_of_few_texts(void **state)
{
    (void)state;
    static const enum sort_by then[] = {SORT_COORDINATE, SORT_NAME_NATURAL, SORT_NAME_ASCII};
    static const uint32_t n_texts[] = {1, 4, 12, 24};
    for (size_t i = 0; i < N_OF(then) * N_OF(n_texts); i++) {
        struct set *sets[] = {text_set("XX", n_texts[i / N_OF(then)], i), text_set("RG", n_texts[i / N_OF(then)], i)};
        check_order(SORT_TAG, then[i % N_OF(then)], "XX", sets[0], "texts");
        check_order(SORT_TAG, then[i % N_OF(then)], "RG", sets[1], "read groups");
        set_free(sets[0]);
        set_free(sets[1]);
    }
}

/* n records with one text each in turn, at different places. */
static struct set *turn_set(const char *tag, const char *const texts[], size_t n_texts, int n)
{
    struct set *set = set_new();
    for (int i = 0; i < n; i++) {
        char aux[64];
        int size = snprintf(aux, sizeof aux, "%.2sZ%s", tag, texts[(size_t)i % n_texts]);
        struct unit_record r = {.ref_id = 1, .pos = i, .name = "r", .aux = aux, .n_aux = (size_t)size + 1};
        set_add(set, &r);
    }
    return set;
}

/* The sample has one text. Others must not share a key, and all must leave room for the coordinate. */
static void test_texts_that_the_sample_could_not_show_have_keys(void **state)
{
    (void)state;
    static const char *const groups[] = {"g1", "g2", "g3", "g4", "g10"};
    static const char *const libraries[] = {"a_study_library1", "a_study_library2", "a_study_libraryX", "a_study", "b", "a_study_library17"};
    static const struct { const char *tag; const char *const *texts; size_t n; } cases[] = {
        {"RG", groups, N_OF(groups)}, {"XX", groups, N_OF(groups)}, {"XX", libraries, N_OF(libraries)}};
    for (size_t c = 0; c < N_OF(cases); c++) {
        struct set *set = turn_set(cases[c].tag, cases[c].texts, cases[c].n, 600);
        struct sort_rule *rule = rule_for(SORT_TAG, SORT_COORDINATE, cases[c].tag);
        sort_rule_learn(rule, set->r, 1);
        for (size_t i = 0; i < set->n; i++)
            for (size_t j = 0; j < i; j++)
                if (key_of(rule, set->r[i]) == key_of(rule, set->r[j]))
                    fail_msg("case %zu: records %zu and %zu have one key", c, j, i);
        sort_rule_free(rule);
        set_free(set);
    }
}

/* ---- template-coordinate ---- */

struct end { int32_t ref, pos; bool reverse, unmapped; uint32_t cigar[4]; const char *mc; };

static struct bam_record *add_template(struct set *set, const char *name, uint16_t flag, struct end own, struct end mate,
                                       const char *tags)
{
    char aux[256] = "";
    size_t n_aux = 0, n_cigar = 0;
    flag |= (uint16_t)(own.reverse << 4 | mate.reverse << 5 | own.unmapped << 2 | mate.unmapped << 3);
    if (mate.mc)
        n_aux = (size_t)snprintf(aux, sizeof aux, "MCZ%s", mate.mc) + 1;
    for (const char *t = tags; *t; t += *t == ' ') {      /* "RGZg1 CBZx" */
        size_t n = strcspn(t, " ");
        memcpy(aux + n_aux, t, n);
        n_aux += n + 1;
        t += n;
    }
    while (n_cigar < 4 && own.cigar[n_cigar])
        n_cigar++;
    struct unit_record r = {.ref_id = own.ref, .pos = own.pos, .flag = flag, .name = name, .cigar = own.cigar,
                            .n_cigar = (uint32_t)n_cigar, .aux = aux, .n_aux = n_aux};
    struct bam_record *out = set_add(set, &r);
    store_le32(out->next_ref_id, (uint32_t)mate.ref);
    store_le32(out->next_pos, (uint32_t)mate.pos);
    return out;
}

static const struct end ends[] = {
    {0, 100, false, false, {UNIT_OP(50, UNIT_M)}, "50M"},
    {0, 105, false, false, {UNIT_OP(5, UNIT_S), UNIT_OP(45, UNIT_M)}, "5S45M"},
    {0, 100, false, false, {UNIT_OP(5, UNIT_H), UNIT_OP(45, UNIT_M)}, "5H45M"},
    {0, 51, true, false, {UNIT_OP(50, UNIT_M)}, "50M"},
    {0, 51, true, false, {UNIT_OP(40, UNIT_M), UNIT_OP(5, UNIT_D), UNIT_OP(5, UNIT_S)}, "40M5D5S"},
    {0, 2, false, false, {UNIT_OP(9, UNIT_S), UNIT_OP(9, UNIT_M)}, "9S9M"},
    {0, -1, true, false, {0}, "*"},
    {0, 2000000000, false, false, {UNIT_OP(50, UNIT_M)}, "50M"},
    {0, 2000000001, true, false, {UNIT_OP(50, UNIT_M)}, "50M"},
    {1, 20000000, true, false, {UNIT_OP(50, UNIT_M)}, "50M"},
    {1, 90000000, true, false, {UNIT_OP(50, UNIT_M), UNIT_OP(3, UNIT_S)}, "50M3S"},
    {1, 100, true, false, {UNIT_OP(3, UNIT_S)}, "3S"},
    {2, 0, false, false, {UNIT_OP(70000, UNIT_S), UNIT_OP(1, UNIT_M)}, "70000S1M"},
    {-1, -1, false, false, {0}, "99999999999999999999999999999M"},
    {-1, -1, false, true, {0}, NULL},
    {0, 100, false, true, {0}, NULL},
};

static struct set *template_set(uint64_t seed, int n)
{
    static const char *const tags[] = {"", "", "RGZg1", "RGZg2", "RGZg4 CBZAC", "RGZg3 CBZACG", "RGZnone", "RGHg1", "CBZ MIZ1/A",
                                       "MIZ1/B", "MIZ1", "MIZ/", "MIZ/A", "MIZ12/A CBZAC", "CBZ\xff", "MIZ1/AB"};
    struct set *set = set_new();
    for (int i = 0; i < n; i++) {
        const struct end *own = &ends[unit_below(&seed, N_OF(ends))], *mate = &ends[unit_below(&seed, N_OF(ends))];
        add_template(set, odd_names[unit_below(&seed, 20)], (uint16_t)(unit_below(&seed, 4) ? 1 : 0), *own, *mate,
                     tags[unit_below(&seed, N_OF(tags))]);
    }
    return set;
}

static void test_no_key_contradicts_the_template_order(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 4; seed++) {
        struct set *set = template_set(seed, 200);
        check_order(SORT_TEMPLATE, SORT_COORDINATE, "XX", set, "templates");
        set_free(set);
    }
}

static void test_missing_or_wrong_tags_are_faults(void **state)
{
    (void)state;
    static const struct { const char *tags; enum bam_fault fault; } cases[] = {
        {"", BAM_NO_MC}, {"MCAx", BAM_BAD_MC}, {"MCZ50M", BAM_OK}, {"MCH50M", BAM_OK}, {"MCZ50M MIAx", BAM_BAD_MI},
        {"MCZ50M CBAx", BAM_BAD_CB}, {"MCZ50M RGAx", BAM_OK}, {"XXZy MCZ1M", BAM_OK}, {"XX? MCZ1M", BAM_NO_MC},
    };
    struct sort_rule *rule = rule_for(SORT_TEMPLATE, SORT_COORDINATE, "XX");
    for (size_t i = 0; i < N_OF(cases); i++) {
        struct set *set = set_new();
        struct end mate = ends[9];
        uint64_t key;
        mate.mc = NULL;
        /* An 'A' is one byte; the NUL that add_template() puts after it cuts off the rest. */
        const struct bam_record *r = add_template(set, "a", 1, ends[0], mate, cases[i].tags);
        if (sort_key_make(rule, r, &key) != cases[i].fault)
            fail_msg("'%s' gives %d", cases[i].tags, sort_key_make(rule, r, &key));
        set_free(set);
    }
    sort_rule_free(rule);
}

/* The faults have different remedies. */
static void test_reads_without_mc_are_one_fault(void **state)
{
    (void)state;
    static const struct { uint16_t flag; enum bam_fault fault; } cases[] = {
        {0x1, BAM_NO_MC}, {0x801, BAM_NO_MC_SUPPLEMENTARY}, {0x101, BAM_NO_MC_SECONDARY}, {0x901, BAM_NO_MC_SECONDARY},
    };
    struct sort_rule *rule = rule_for(SORT_TEMPLATE, SORT_COORDINATE, "XX");
    for (size_t i = 0; i < N_OF(cases); i++) {
        struct set *set = set_new();
        struct end mate = ends[9];
        uint64_t key;
        mate.mc = NULL;
        assert_int_equal(sort_key_make(rule, add_template(set, "a", cases[i].flag, ends[0], mate, ""), &key), cases[i].fault);
        set_free(set);
    }
    sort_rule_free(rule);
}

/* ---- the purpose of a key ---- */

/* The names are in the order in which a machine writes them; every 50th is of another kind. */
static struct set *machine_set(void)
{
    struct set *set = set_new();
    uint64_t seed = 1;
    for (int i = 0; i < 2000; i++) {
        char name[64];
        snprintf(name, sizeof name, i % 50 == 7 ? "control_%d/%d" : "A00261:419:HF5K3DSX2:%d:%d:%u:%u", 1 + i / 1000,
                 1101 + i / 100 % 10, 1000 + (uint32_t)i % 100 * 300, 1000 + unit_below(&seed, 36000));
        add_name(set, name, 0x41, NULL, 0);
        add_name(set, name, 0x81, NULL, 0);
    }
    return set;
}

/* The sample is one tile's beginning; names of other lanes must not all get one key. */
static void test_keys_decide_what_the_sample_could_not_show(void **state)
{
    (void)state;
    static const enum sort_by orders[] = {SORT_NAME_NATURAL, SORT_NAME_ASCII};
    struct set *set = machine_set();
    for (size_t o = 0; o < N_OF(orders); o++) {
        struct sort_rule *rule = rule_for(orders[o], SORT_COORDINATE, "XX");
        size_t same = 0;
        sort_rule_learn(rule, set->r, 100);
        for (size_t i = 1; i < set->n; i++)
            same += key_of(rule, set->r[i - 1]) == key_of(rule, set->r[i]);
        assert_in_range(same, 0, orders[o] == SORT_NAME_NATURAL ? 40 : 2000);
        assert_false(sort_key_decides(rule));
        sort_rule_free(rule);
    }
    set_free(set);
}

/* The sample has the small numbers that a file begins with. The text after a number then moves to places where the
 * sample had other text. */
static void test_names_of_larger_numbers_than_in_the_sample_share_keys(void **state)
{
    (void)state;
    static const enum sort_by orders[] = {SORT_NAME_NATURAL, SORT_NAME_ASCII};
    static const char *const forms[] = {"SRR1234567.%u", "m84011_220902_175841_s1/%u/ccs"};
    for (size_t c = 0; c < N_OF(orders) * N_OF(forms); c++) {
        struct set *set = set_new();
        for (uint32_t i = 0; i < 2000; i++) {
            char name[64];
            snprintf(name, sizeof name, forms[c / 2], i < 100 ? 1 + 3 * i : 40000 + i * 20011);
            add_name(set, name, 4, NULL, 0);
        }
        struct sort_rule *rule = rule_for(orders[c % 2], SORT_COORDINATE, "XX");
        sort_rule_learn(rule, set->r, 100);
        size_t same = 0;
        for (size_t i = 1; i < set->n; i++)
            same += key_of(rule, set->r[i - 1]) == key_of(rule, set->r[i]);
        assert_in_range(same, 0, 20);
        sort_rule_free(rule);
        set_free(set);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_edge_values_order_as_samtools_orders_them),
        cmocka_unit_test(test_no_key_contradicts_the_order_of_odd_names),
        cmocka_unit_test(test_no_key_contradicts_the_order_of_instrument_names),
        cmocka_unit_test(test_collated_names_come_by_bin_and_mates_by_flag),
        cmocka_unit_test(test_no_key_contradicts_the_tag_orders),
        cmocka_unit_test(test_no_key_contradicts_the_order_of_barcodes),
        cmocka_unit_test(test_no_key_contradicts_the_order_of_few_texts),
        cmocka_unit_test(test_texts_that_the_sample_could_not_show_have_keys),
        cmocka_unit_test(test_no_key_contradicts_the_template_order),
        cmocka_unit_test(test_missing_or_wrong_tags_are_faults),
        cmocka_unit_test(test_reads_without_mc_are_one_fault),
        cmocka_unit_test(test_keys_decide_what_the_sample_could_not_show),
        cmocka_unit_test(test_names_of_larger_numbers_than_in_the_sample_share_keys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
