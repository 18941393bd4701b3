/* SPDX-License-Identifier: MIT */
#include "bam_arena.h"
#include "sort/record_pack.h"
#include "unit.h"

enum { MUTATIONS = 100000, GUARD = 0xa5, GUARDED = 64 };

/* ---- records and packs of them ---- */

/* Qualities to be chosen from. */
struct quals {
    uint8_t values[256];
    uint32_t n;
};

static struct quals quals_from(uint8_t first, uint32_t n)
{
    struct quals q = {.n = n};
    for (uint32_t i = 0; i < n; i++)
        q.values[i] = (uint8_t)(first + i * (n <= 16 ? 3 : 1));
    return q;
}

/* Lengths of the parts of a record, except the fixed one. */
struct shape {
    uint32_t name, n_cigar, seq, n_tags;
};

static struct shape any_shape(uint64_t *seed, uint32_t most_seq)
{
    uint32_t kind = unit_below(seed, 8);
    return (struct shape){unit_below(seed, 60), kind == 0 ? 0 : kind == 1 ? unit_below(seed, 300) : 1 + unit_below(seed, 4),
                          kind == 2 ? 0 : unit_below(seed, most_seq), kind == 3 ? 0 : unit_below(seed, 120)};
}

struct unit {
    struct unit_bytes bytes;
    size_t n;                    /* records */
};

static void add(struct unit *u, uint64_t *seed, struct shape shape, const struct quals *quals)
{
    char name[256] = "";
    uint32_t *cigar = must_alloc(4 * (size_t)shape.n_cigar);
    uint8_t *tags = must_alloc(shape.n_tags);
    for (uint32_t i = 0; i < shape.name; i++)
        name[i] = (char)('!' + unit_below(seed, 90));
    for (uint32_t i = 0; i < shape.n_cigar; i++)
        cigar[i] = UNIT_OP(1 + unit_below(seed, 20), unit_below(seed, 9));
    uint64_t mask = unit_below(seed, 2) ? 0x0303030303030303 : UINT64_MAX;
    for (uint32_t i = 0; i < shape.n_tags; i++)
        tags[i] = (uint8_t)(unit_random(seed) & mask);
    struct unit_record r = {.ref_id = (int32_t)unit_below(seed, 30) - 1, .pos = (int32_t)unit_random(seed),
                            .flag = (uint16_t)unit_random(seed), .bin = (uint16_t)unit_random(seed), .name = name,
                            .cigar = cigar, .n_cigar = shape.n_cigar, .seq_len = shape.seq, .aux = tags,
                            .n_aux = shape.n_tags};
    size_t size = unit_append_record(&u->bytes, &r);
    uint8_t *q = u->bytes.data + u->bytes.n - shape.n_tags - shape.seq;
    for (uint32_t i = 0; i < shape.seq; i++)
        q[i] = quals->n ? quals->values[unit_below(seed, quals->n)] : 0xff;
    unit_fill(seed, q - (shape.seq + 1) / 2, (shape.seq + 1) / 2);
    MUST(size <= u->bytes.n);
    u->n++;
    free(cigar);
    free(tags);
}

static void unit_done(struct unit *u)
{
    unit_free(&u->bytes);
    u->n = 0;
}

static size_t size_at(const struct unit *u, size_t at)
{
    return bam_record_size((const struct bam_record *)(u->bytes.data + at));
}

/* The packed unit, in exactly the bytes that may be read; the packer has written exactly the size that it reports. */
static uint8_t *pack(struct record_packer *packer, const struct unit *u, size_t *n)
{
    assert_int_equal(record_packer_bytes(packer), 0);
    for (size_t at = 0; at < u->bytes.n;) {
        size_t size = size_at(u, at);
        uint8_t *record = exact_copy(u->bytes.data + at, size);
        assert_int_equal(record_packer_add(packer, record, size), 0);
        free(record);
        at += size;
        assert_int_equal(record_packer_bytes(packer), at);
    }
    size_t bound = record_packer_bound(packer);
    uint8_t *out = must_alloc(bound);
    *n = record_packer_pack(packer, out);
    assert_in_range(*n, 1, bound);
    assert_int_equal(record_packer_bytes(packer), 0);
    uint8_t *packed = must_alloc(*n + RECORD_PACK_SLACK);
    memcpy(packed, out, *n);
    memset(packed + *n, GUARD, RECORD_PACK_SLACK);
    free(out);
    return packed;
}

/* The records come back, into memory that ends with them or later, and nothing else is written. */
static void check_unpacked(struct record_unpacker *unpacker, const struct unit *u, const uint8_t *packed, size_t n,
                           size_t before, size_t behind)
{
    size_t size = before + u->bytes.n + behind, at = before;
    uint8_t *base = must_alloc(size);
    struct bam_key *keys = must_alloc((u->n + behind) * sizeof *keys);
    memset(base, GUARD, size);
    memset(keys, GUARD, (u->n + behind) * sizeof *keys);
    struct unpacked to = {base, before, size, keys, u->n + behind};
    assert_int_equal(record_unpack(unpacker, packed, n, &to), n);
    assert_int_equal(to.at, before + u->bytes.n);
    assert_int_equal(to.end, size);
    assert_ptr_equal(to.keys, keys + u->n);
    assert_int_equal(to.n_keys, behind);
    if (u->bytes.n)
        assert_memory_equal(base + before, u->bytes.data, u->bytes.n);
    for (size_t i = 0; i < before; i++)
        assert_int_equal(base[i], GUARD);
    for (size_t i = 0; i < u->n; i++) {
        assert_int_equal(keys[i].place >> BAM_KEY_SIZE_BITS, at);
        assert_int_equal(bam_key_record_size(base, keys[i]), size_at(u, at - before));
        at += size_at(u, at - before);
    }
    free(keys);
    free(base);
}

static void check_round_trip(struct record_packer *packer, struct record_unpacker *unpacker, const struct unit *u)
{
    size_t n;
    uint8_t *packed = pack(packer, u, &n);
    check_unpacked(unpacker, u, packed, n, 0, 0);
    check_unpacked(unpacker, u, packed, n, 77, 100);
    free(packed);
}

/* ---- tests: packed records come back ---- */

static struct record_packer *packer;
static struct record_unpacker *unpacker;

static int set_up(void **state)
{
    (void)state;
    packer = record_packer_new();
    unpacker = record_unpacker_new();
    return packer && unpacker ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    record_packer_free(packer);
    record_unpacker_free(unpacker);
    return 0;
}

static void test_records_of_any_size_come_back(void **state)
{
    (void)state;
    static const uint32_t sizes[] = {0, 1, 2, 7, 8, 9, 31, 32, 33, 63, 64, 65, 150, 151, 1000, 40000, 65536, 300001, 1300000};
    struct quals quals = quals_from(2, 40);
    uint64_t seed = 1;
    for (size_t i = 0; i < N_OF(sizes); i++)
        for (int odd = 0; odd < 4; odd++) {
            struct unit u = {0};
            struct shape shape = {1 + (uint32_t)odd, 1, sizes[i], odd % 2 ? 20 : 0};
            add(&u, &seed, shape, &quals);
            check_round_trip(packer, unpacker, &u);
            add(&u, &seed, any_shape(&seed, 200), &quals);   /* and with others after it */
            add(&u, &seed, (struct shape){0}, &quals);
            check_round_trip(packer, unpacker, &u);
            unit_done(&u);
        }
}

static void test_packs_of_random_records_come_back(void **state)
{
    (void)state;
    uint64_t seed = 2;
    for (int round = 0; round < 300; round++) {
        struct quals quals = quals_from((uint8_t)unit_below(&seed, 20), 1 + unit_below(&seed, 44));
        struct unit u = {0};
        uint32_t most = unit_below(&seed, 4) ? 300 : 30;
        while (u.bytes.n < RECORD_PACK_SIZE && (u.n < 50 || unit_below(&seed, 500)))
            add(&u, &seed, any_shape(&seed, most), &quals);
        check_round_trip(packer, unpacker, &u);
        unit_done(&u);
    }
}

/* A unit is packed by the alphabet of the one before; so each kind follows each other one. */
static void test_alphabets_that_change_from_unit_to_unit(void **state)
{
    (void)state;
    const struct quals kinds[] = {
        quals_from(30, 1), quals_from(10, 2), quals_from(2, 4), quals_from(5, 4), quals_from(2, 5), quals_from(0, 16),
        quals_from(4, 16), quals_from(2, 17), quals_from(0, 40), quals_from(0, 64), quals_from(0, 65),
        quals_from(60, 40), quals_from(0, 256), quals_from(200, 2), quals_from(255, 1), {.n = 0}};
    uint64_t seed = 3;
    for (size_t i = 0; i < N_OF(kinds); i++)
        for (size_t j = 0; j < N_OF(kinds); j++)
            for (int k = 0; k < 2; k++) {
                struct unit u = {0};
                for (int r = 0; r < 40; r++)
                    add(&u, &seed, (struct shape){10, 1, 150 + unit_below(&seed, 4), 8}, &kinds[k ? j : i]);
                check_round_trip(packer, unpacker, &u);
                unit_done(&u);
            }
}

/* The first values do not predict the rest. */
static void test_rare_quality_at_the_end_is_not_lost(void **state)
{
    (void)state;
    static const uint8_t rare[] = {0, 1, 17, 63, 64, 127, 128, 254, 255};
    uint64_t seed = 4;
    for (uint32_t n = 1; n <= 40; n += n < 5 ? 1 : n < 14 ? 5 : 1)
        for (size_t i = 0; i < N_OF(rare); i++) {
            struct quals quals = quals_from(20, n);
            struct unit u = {0};
            for (int r = 0; r < 60; r++)
                add(&u, &seed, (struct shape){10, 1, 151, 0}, &quals);
            u.bytes.data[u.bytes.n - 1] = rare[i];
            check_round_trip(packer, unpacker, &u);
            unit_done(&u);
        }
}

static void test_parts_that_are_empty_in_all_records(void **state)
{
    (void)state;
    struct quals quals = quals_from(2, 4);
    uint64_t seed = 5;
    for (int lacking = 0; lacking < 16; lacking++)
        for (int n = 1; n <= 100; n += 33) {
            struct unit u = {0};
            for (int i = 0; i < n; i++)
                add(&u, &seed, (struct shape){lacking & 1 ? 0 : 9, lacking & 2 ? 0 : 2, lacking & 4 ? 0 : 75,
                                              lacking & 8 ? 0 : 11}, &quals);
            struct record_unpacker *fresh = record_unpacker_new();   /* without memory from another unit */
            MUST(fresh);
            check_round_trip(packer, fresh, &u);
            record_unpacker_free(fresh);
            unit_done(&u);
        }
}

static void test_longest_names_and_cigars_come_back(void **state)
{
    (void)state;
    enum { MOST_OPS = UINT16_MAX };
    struct quals quals = quals_from(2, 4);
    struct unit u = {0};
    uint64_t seed = 6;
    add(&u, &seed, (struct shape){254, MOST_OPS, 100, 10}, &quals);
    add(&u, &seed, (struct shape){0, 0, 0, 0}, &quals);
    add(&u, &seed, (struct shape){254, MOST_OPS, 0, 0}, &quals);
    check_round_trip(packer, unpacker, &u);
    unit_done(&u);
}

static void test_unit_without_records(void **state)
{
    (void)state;
    struct unit u = {0};
    check_round_trip(packer, unpacker, &u);
}

/* Bytes that do not compress are the worst. */
static void test_bound_holds_for_noise(void **state)
{
    (void)state;
    struct quals all = quals_from(0, 256);
    uint64_t seed = 7;
    for (uint32_t seq = 0; seq < 3000; seq += 1 + seq / 3) {
        struct unit u = {0};
        while (u.bytes.n < RECORD_PACK_SIZE) {
            add(&u, &seed, (struct shape){0, 0, seq, 30}, &all);
            unit_fill(&seed, u.bytes.data + u.bytes.n - 30, 30);
        }
        check_round_trip(packer, unpacker, &u);              /* the bound is its buffer's size */
        unit_done(&u);
    }
}

static void test_trimmed_packer_is_empty_and_packs_on(void **state)
{
    (void)state;
    struct quals quals = quals_from(2, 12);
    uint64_t seed = 8;
    for (int round = 0; round < 6; round++) {
        struct unit large = {0}, small = {0};
        add(&large, &seed, (struct shape){10, 100, 1000000, 300000}, &quals);
        add(&small, &seed, (struct shape){10, 1, 150, 20}, &quals);
        if (round % 2)                           /* the record that was added and not packed is gone */
            assert_int_equal(record_packer_add(packer, large.bytes.data, large.bytes.n), 0);
        else
            check_round_trip(packer, unpacker, &large);
        record_packer_trim(packer);
        assert_int_equal(record_packer_bytes(packer), 0);
        check_round_trip(packer, unpacker, &small);
        record_packer_trim(packer);
        check_round_trip(packer, unpacker, &large);
        unit_done(&large);
        unit_done(&small);
    }
}

static void test_packs_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    struct quals quals = quals_from(2, 12);
    struct unit u = {0};
    uint64_t seed = 9;
    size_t n;
    for (int i = 0; i < 20; i++)
        add(&u, &seed, any_shape(&seed, 100), &quals);
    uint8_t *packed = pack(packer, &u, &n);
    for (size_t less = 1; less <= u.bytes.n; less++) {
        uint8_t *base = must_alloc(u.bytes.n - less);
        struct bam_key *keys = must_alloc(u.n * sizeof *keys);
        struct unpacked to = {base, 0, u.bytes.n - less, keys, u.n};
        assert_int_equal(record_unpack(unpacker, packed, n, &to), 0);
        free(base);
        free(keys);
    }
    for (size_t room = 0; room < u.n; room++) {
        uint8_t *base = must_alloc(u.bytes.n);
        struct bam_key *keys = must_alloc(room * sizeof *keys);
        struct unpacked to = {base, 0, u.bytes.n, keys, room};
        assert_int_equal(record_unpack(unpacker, packed, n, &to), 0);
        free(base);
        free(keys);
    }
    free(packed);
    unit_done(&u);
}

/* ---- tests: damage ---- */

static void make_unit(struct unit *u, uint64_t *seed, uint32_t n_quals, size_t n_records)
{
    struct quals quals = quals_from(n_quals > 64 ? 100 : 2, n_quals);
    for (size_t i = 0; i < n_records; i++)
        add(u, seed, any_shape(seed, 100), &quals);
}

static void test_every_truncation_is_refused(void **state)
{
    (void)state;
    static const uint32_t n_quals[] = {1, 4, 16, 40, 80};
    uint64_t seed = 20;
    for (size_t i = 0; i < N_OF(n_quals); i++) {
        struct unit u = {0};
        size_t n;
        make_unit(&u, &seed, n_quals[i], 6);
        uint8_t *packed = pack(packer, &u, &n), *base = must_alloc(u.bytes.n);
        struct bam_key *keys = must_alloc(u.n * sizeof *keys);
        for (size_t less = 0; less < n; less++) {
            uint8_t *part = must_alloc(less + RECORD_PACK_SLACK);
            struct unpacked to = {base, 0, u.bytes.n, keys, u.n};
            memcpy(part, packed, less);
            memset(part + less, 0, RECORD_PACK_SLACK);
            assert_int_equal(record_unpack(unpacker, part, less, &to), 0);
            free(part);
        }
        free(packed);
        free(base);
        free(keys);
        unit_done(&u);
    }
}

/* Changes some bytes, or writes a number where it is likely to be read as a size or a count. */
static void mutate(uint8_t *packed, size_t n, uint64_t *seed)
{
    enum { HEAD = 48, FIELD = 4 };
    static const uint32_t nasty[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 15, 16, 17, 127, 128, 255, 65535, 65536, 0x7fffffff,
                                     0x80000000, 0xfffffffc, 0xffffffff};
    for (uint32_t changes = 1 + unit_below(seed, 4); changes > 0; changes--) {
        bool in_head = unit_below(seed, 2) == 0;
        size_t at = unit_below(seed, (uint32_t)(in_head ? HEAD : n));
        uint32_t value = nasty[unit_below(seed, N_OF(nasty))];
        switch (unit_below(seed, 4)) {
        case 0:
            packed[at] ^= (uint8_t)(1 << unit_below(seed, 8));
            break;
        case 1:
            packed[at] = (uint8_t)unit_random(seed);
            break;
        case 2:
            for (size_t i = 0; i < FIELD && at + i < n; i++)
                packed[at + i] = (uint8_t)(value >> 8 * i);
            break;
        default:                                 /* a field of the head, changed a little or completely */
            at = at % HEAD / FIELD * FIELD;
            store_le32(packed + at, unit_below(seed, 2) ? value : load_le32(packed + at) + unit_below(seed, 65) - 32);
        }
    }
}

/* Memory between guards, for errors that the sanitizer does not see. */
struct guarded {
    uint8_t *all;
    size_t n;
};

static struct guarded guarded_new(size_t n)
{
    struct guarded g = {must_alloc(n + 2 * GUARDED), n};
    memset(g.all, GUARD, n + 2 * GUARDED);
    return g;
}

static void guarded_check(const struct guarded *g)
{
    for (size_t i = 0; i < GUARDED; i++)
        if (g->all[i] != GUARD || g->all[GUARDED + g->n + i] != GUARD)
            fail_msg("written %zu bytes beside the memory", i);
}

/* A list of records, one after another, within the memory: safe to use. */
static void check_sane(const struct unpacked *to, const uint8_t *base, const struct bam_key *keys, size_t begin)
{
    size_t at = begin;
    for (const struct bam_key *key = keys; key < to->keys; key++) {
        assert_int_equal(key->place >> BAM_KEY_SIZE_BITS, at);
        at += bam_key_record_size(base, *key);
        assert_true(at <= to->end);
    }
    assert_int_equal(at, to->at);
}

static void unpack_mutations(const struct unit *u, const uint8_t *packed, size_t n, int rounds, uint64_t *seed)
{
    enum { BEGIN = 48 };
    struct guarded memory = guarded_new(BEGIN + u->bytes.n), list = guarded_new(u->n * sizeof(struct bam_key));
    uint8_t *damaged = must_alloc(n + RECORD_PACK_SLACK), *base = memory.all + GUARDED;
    struct bam_key *keys = (struct bam_key *)(list.all + GUARDED);
    for (int i = 0; i < rounds; i++) {
        memcpy(damaged, packed, n + RECORD_PACK_SLACK);
        mutate(damaged, n, seed);
        struct unpacked to = {base, BEGIN, BEGIN + u->bytes.n, keys, u->n};
        size_t used = record_unpack(unpacker, damaged, n, &to);
        assert_true(used <= n);
        assert_true(to.at <= to.end && to.n_keys == u->n - (size_t)(to.keys - keys));
        if (used)
            check_sane(&to, base, keys, BEGIN);
        for (size_t j = 0; j < BEGIN; j++)
            assert_int_equal(base[j], GUARD);
        guarded_check(&memory);
        guarded_check(&list);
    }
    free(damaged);
    free(memory.all);
    free(list.all);
}

static void test_damaged_packs_write_nothing_beyond(void **state)
{
    (void)state;
    static const uint32_t n_quals[] = {1, 4, 16, 40, 80};
    static const size_t n_records[] = {1, 3, 30};
    enum { EACH = MUTATIONS / (5 * 3 * 5) };
    uint64_t seed = 21;
    for (size_t i = 0; i < N_OF(n_quals); i++)
        for (size_t j = 0; j < N_OF(n_records); j++)
            for (int round = 0; round < 5; round++) {
                struct unit u = {0};
                size_t n;
                make_unit(&u, &seed, n_quals[i], n_records[j]);
                uint8_t *packed = pack(packer, &u, &n);
                unpack_mutations(&u, packed, n, EACH + 1, &seed);
                free(packed);
                unit_done(&u);
            }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_records_of_any_size_come_back),
        TEST(test_packs_of_random_records_come_back),
        TEST(test_alphabets_that_change_from_unit_to_unit),
        TEST(test_rare_quality_at_the_end_is_not_lost),
        TEST(test_parts_that_are_empty_in_all_records),
        TEST(test_longest_names_and_cigars_come_back),
        TEST(test_unit_without_records),
        TEST(test_bound_holds_for_noise),
        TEST(test_trimmed_packer_is_empty_and_packs_on),
        TEST(test_packs_that_do_not_fit_are_refused),
        TEST(test_every_truncation_is_refused),
        TEST(test_damaged_packs_write_nothing_beyond),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
