/* SPDX-License-Identifier: MIT */
#include "unit_spill.h"
#include "base/byte_hash.h"

enum { KIB = 1 << 10, MIB = 1 << 20, LARGE = 256 * KIB, FUZZ_ROUNDS = 200000, FUZZ_LARGE_ROUNDS = 3000 };

static uint64_t packed_size(const uint8_t *packed, size_t n)
{
    MUST(n >= SPILL_SLICE_HEADER);
    return spill_slice_size(packed);
}

/* Unpacks into memory of exactly `size` bytes, which the caller frees. */
static struct spill_slice unpack(const uint8_t *packed, size_t n, size_t size, int *result)
{
    struct spill_slice slice = {.base = unit_slice_memory(size), .size = size};
    struct record_unpacker *unpacker = record_unpacker_new();
    MUST(unpacker);
    *result = spill_slice_unpack(&slice, unpacker, packed, n);
    record_unpacker_free(unpacker);
    return slice;
}

/* The packed bytes hold the next `count` records, and need no more memory than allowed. */
static void check_packed(const uint8_t *packed, size_t n, const struct unit_list *list, size_t *next, size_t count,
                         size_t slice_size)
{
    uint8_t *exact = unit_packed_copy(packed, n);
    size_t size = packed_size(exact, n), from = *next;
    assert_true(size <= slice_size || count == 1);
    assert_int_equal(size % sizeof(struct bam_key), 0);
    for (size_t room = size; room <= size + slice_size; room += slice_size) {
        int result;
        struct spill_slice slice = unpack(exact, n, room, &result);
        assert_int_equal(result, 0);
        assert_int_equal(slice.n, count);
        *next = from;
        unit_check_slice(&slice, list, next);
        assert_int_equal(*next, from + count);
        free(slice.base);
    }
    free(exact);
}

static void check_round_trip(const struct unit_list *list, size_t slice_size)
{
    struct spill_packer *packer = spill_packer_new(slice_size);
    const uint8_t *packed;
    size_t n, next = 0, count = 0;
    MUST(packer);
    assert_true(spill_packer_empty(packer));
    for (size_t i = 0; i < list->n; i++) {
        uint8_t *record = exact_copy(unit_item_record(list, i), unit_items(list)[i].size);
        int added = spill_packer_add(packer, unit_items(list)[i].key, record, unit_items(list)[i].size);
        if (added == 0) {
            assert_true(count > 0);              /* an empty one accepts anything */
            assert_int_equal(spill_packer_pack(packer, &packed, &n), 0);
            check_packed(packed, n, list, &next, count, slice_size);
            assert_true(spill_packer_empty(packer));
            count = 0;
            added = spill_packer_add(packer, unit_items(list)[i].key, record, unit_items(list)[i].size);
        }
        assert_int_equal(added, 1);
        assert_false(spill_packer_empty(packer));
        count++;
        free(record);
    }
    if (count) {
        assert_int_equal(spill_packer_pack(packer, &packed, &n), 0);
        check_packed(packed, n, list, &next, count, slice_size);
    }
    assert_int_equal(next, list->n);
    spill_packer_free(packer);
}

/* ---- tests: packed records come back ---- */

static void test_one_record_of_any_size_comes_back(void **state)
{
    (void)state;
    static const size_t sizes[] = {BAM_MIN_RECORD, 38, 47, 48, 49, 60, 300, 4096, 100000, LARGE - 1, LARGE,
                                   LARGE + 1, 2 * LARGE, 5000000};
    uint64_t seed = 1;
    for (size_t i = 0; i < N_OF(sizes); i++)
        for (int round = 0; round < 4; round++) {
            struct unit_list list = {0};
            unit_list_add(&list, &seed, unit_any_key(&seed), sizes[i]);
            check_round_trip(&list, 128 * KIB);
            unit_list_free(&list);
        }
}

static void test_random_records_and_keys_come_back(void **state)
{
    (void)state;
    static const size_t slice_sizes[] = {1 * KIB, 4 * KIB + 16, 128 * KIB, 1 * MIB};
    uint64_t seed = 2;
    for (size_t i = 0; i < N_OF(slice_sizes); i++) {
        struct unit_list list = {0};
        for (int j = 0; j < 12000; j++)
            unit_list_add(&list, &seed, unit_any_key(&seed), unit_any_size(&seed));
        unit_list_sort(&list);
        check_round_trip(&list, slice_sizes[i]);
        unit_list_free(&list);
    }
}

static void test_equal_keys_and_the_largest_key_come_back(void **state)
{
    (void)state;
    static const uint64_t keys[] = {0, 0, 0, 1, 127, 128, 128, 16383, 16384, (uint64_t)1 << 32, UINT64_MAX >> 1,
                                    (uint64_t)1 << 63, UINT64_MAX - 1, UINT64_MAX, UINT64_MAX};
    struct unit_list list = {0}, high = {0}, ends = {0};
    uint64_t seed = 3;
    for (size_t i = 0; i < N_OF(keys); i++) {
        unit_list_add(&list, &seed, keys[i], 60);
        unit_list_add(&high, &seed, UINT64_MAX, 60);
    }
    unit_list_add(&ends, &seed, 0, 60);          /* the largest difference there is */
    unit_list_add(&ends, &seed, UINT64_MAX, 60);
    check_round_trip(&list, 128 * KIB);
    check_round_trip(&list, 256);                /* the first key of a slice is no difference */
    check_round_trip(&high, 128 * KIB);
    check_round_trip(&high, 256);
    check_round_trip(&ends, 128 * KIB);
    unit_list_free(&list);
    unit_list_free(&high);
    unit_list_free(&ends);
}

static void test_long_record_among_small_ones_has_a_slice_of_its_own(void **state)
{
    (void)state;
    struct unit_list list = {0};
    uint64_t seed = 4;
    for (int i = 0; i < 300; i++)
        unit_list_add(&list, &seed, (uint64_t)i, i % 50 == 7 ? 100000 : i == 150 || i == 151 ? 5000000
                                                            : unit_any_size(&seed));
    check_round_trip(&list, 128 * KIB);
    check_round_trip(&list, 16 * KIB);
    unit_list_free(&list);
}

/* A record that fits exactly, and one byte more. */
static void test_slice_is_filled_to_its_size_and_no_further(void **state)
{
    (void)state;
    enum { SLICE = 4096, KEY = sizeof(struct bam_key) };
    uint64_t seed = 5;
    for (size_t first = BAM_MIN_RECORD; first < 200; first++)
        for (int over = -1; over <= 1; over++) {
            struct unit_list list = {0};
            struct spill_packer *packer = spill_packer_new(SLICE);
            size_t second = SLICE - 2 * KEY - first + (size_t)over;
            MUST(packer);
            unit_list_add(&list, &seed, 1, first);
            unit_list_add(&list, &seed, 2, second);
            assert_int_equal(spill_packer_add(packer, 1, unit_item_record(&list, 0), first), 1);
            assert_int_equal(spill_packer_add(packer, 2, unit_item_record(&list, 1), second), over <= 0);
            spill_packer_free(packer);
            unit_list_free(&list);
        }
}

/* The memory plan relies on this bound. */
static void test_packed_bytes_are_within_the_memory_of_a_packer(void **state)
{
    (void)state;
    static const size_t slice_sizes[] = {128 * KIB, 2 * MIB};
    for (size_t i = 0; i < N_OF(slice_sizes); i++) {
        struct spill_packer *packer = spill_packer_new(slice_sizes[i]);
        struct unit_list list = {0};
        const uint8_t *packed;
        size_t n;
        uint64_t seed = 6;
        MUST(packer);
        do {                                     /* keys far apart, fields at random: the worst */
            unit_list_free(&list);
            unit_list_add(&list, &seed, 0, BAM_MIN_RECORD);
            struct bam_record *r = (struct bam_record *)list.bytes.data;
            unit_fill(&seed, r->ref_id, sizeof r->ref_id + sizeof r->pos);
            unit_fill(&seed, r->next_ref_id, sizeof r->next_ref_id + sizeof r->next_pos + sizeof r->tlen);
        } while (spill_packer_add(packer, unit_random(&seed), list.bytes.data, BAM_MIN_RECORD) == 1);
        assert_int_equal(spill_packer_pack(packer, &packed, &n), 0);
        assert_true(n <= slice_sizes[i]);
        assert_true(spill_packer_memory(slice_sizes[i]) <= 2 * slice_sizes[i] + record_packer_memory());
        spill_packer_free(packer);
        unit_list_free(&list);
    }
    spill_packer_free(NULL);
}

/* ---- tests: damage ---- */

/* A copy of the packed form of a list that fits into one slice. */
static uint8_t *pack_list(const struct unit_list *list, size_t *n)
{
    struct spill_packer *packer = spill_packer_new(4 * MIB);
    const uint8_t *packed;
    MUST(packer);
    for (size_t i = 0; i < list->n; i++)
        assert_int_equal(spill_packer_add(packer, unit_items(list)[i].key, unit_item_record(list, i),
                                          unit_items(list)[i].size), 1);
    assert_int_equal(spill_packer_pack(packer, &packed, n), 0);
    uint8_t *copy = unit_packed_copy(packed, *n);
    spill_packer_free(packer);
    return copy;
}

static uint8_t *pack_random(uint64_t seed, int n_records, size_t *n)
{
    struct unit_list list = {0};
    for (int i = 0; i < n_records; i++)
        unit_list_add(&list, &seed, unit_any_key(&seed), unit_any_size(&seed));
    unit_list_sort(&list);
    uint8_t *packed = pack_list(&list, n);
    unit_list_free(&list);
    return packed;
}

static void test_every_changed_byte_is_noticed(void **state)
{
    (void)state;
    struct record_unpacker *unpacker = record_unpacker_new();
    uint64_t seed = 7;
    MUST(unpacker);
    for (int n_records = 1; n_records <= 40; n_records += 13) {
        size_t n;
        uint8_t *packed = pack_random(seed + (uint64_t)n_records, n_records, &n);
        size_t size = packed_size(packed, n);
        struct spill_slice slice = {.base = unit_slice_memory(size), .size = size};
        for (size_t at = 0; at < n; at++)
            for (int bit = 0; bit < 9; bit++) {
                uint8_t change = bit < 8 ? (uint8_t)(1 << bit) : (uint8_t)(1 + unit_below(&seed, 255));
                packed[at] ^= change;
                assert_int_equal(spill_slice_unpack(&slice, unpacker, packed, n), -1);
                packed[at] ^= change;
            }
        assert_int_equal(spill_slice_unpack(&slice, unpacker, packed, n), 0);
        free(slice.base);
        free(packed);
    }
    record_unpacker_free(unpacker);
}

static void test_every_truncation_is_noticed_and_bytes_too_many(void **state)
{
    (void)state;
    size_t n;
    struct record_unpacker *unpacker = record_unpacker_new();
    uint8_t *packed = pack_random(8, 20, &n);
    MUST(unpacker);
    size_t size = packed_size(packed, n);
    struct spill_slice slice = {.base = unit_slice_memory(size), .size = size};
    for (size_t less = 0; less < n; less++) {
        uint8_t *part = unit_packed_copy(packed, less);
        assert_int_equal(spill_slice_unpack(&slice, unpacker, part, less), -1);
        free(part);
    }
    for (size_t more = 1; more < 20; more++) {
        uint8_t *longer = calloc(n + more + RECORD_PACK_SLACK, 1);
        MUST(longer);
        memcpy(longer, packed, n);
        assert_int_equal(spill_slice_unpack(&slice, unpacker, longer, n + more), -1);
        free(longer);
    }
    record_unpacker_free(unpacker);
    free(slice.base);
    free(packed);
}

static void test_slice_that_does_not_fit_is_refused(void **state)
{
    (void)state;
    size_t n;
    uint8_t *packed = pack_random(9, 30, &n);
    size_t size = packed_size(packed, n);
    for (size_t room = 0; room <= size; room += sizeof(struct bam_key)) {
        int result;
        struct spill_slice slice = unpack(packed, n, room, &result);
        assert_int_equal(result, room < size ? -1 : 0);
        free(slice.base);
    }
    free(packed);
}

static void set_checksum(uint8_t *packed, size_t n)
{
    enum { HASH = 8 };
    store_le64(packed, byte_hash(packed + HASH, n - HASH, 0));
}

/* Changes some bytes, or writes a number that is likely to be read as a size or a count. */
static void mutate(uint8_t *packed, size_t n, uint64_t *seed)
{
    static const uint64_t nasty[] = {0, 1, 15, 16, 17, 127, 128, 255, 65535, 65536, 0x7fffffff, 0x80000000, 0xfffffffc,
                                     0xffffffff, (uint64_t)1 << 32, (uint64_t)1 << 60, (uint64_t)1 << 63,
                                     UINT64_MAX - 15, UINT64_MAX};
    for (uint32_t changes = 1 + unit_below(seed, 4); changes > 0; changes--) {
        bool in_header = unit_below(seed, 3) == 0;
        size_t at = in_header ? 8 + unit_below(seed, SPILL_SLICE_HEADER - 8) : unit_below(seed, (uint32_t)n);
        uint64_t value = nasty[unit_below(seed, N_OF(nasty))];
        switch (unit_below(seed, 4)) {
        case 0:
            packed[at] ^= (uint8_t)(1 << unit_below(seed, 8));
            break;
        case 1:
            packed[at] = (uint8_t)unit_random(seed);
            break;
        case 2:
            for (size_t i = 0; i < 4 && at + i < n; i++)
                packed[at + i] = (uint8_t)(value >> 8 * i);
            break;
        default:                                 /* a header field, changed a little or completely */
            at = 8 + 8 * unit_below(seed, 3);
            value = unit_below(seed, 2) ? value : load_le64(packed + at) + unit_below(seed, 65) - 32;
            store_le64(packed + at, value);
        }
    }
}

/* Accepted bytes must be safe to use: records within the slice, one after another. */
static void check_sane(const struct spill_slice *slice)
{
    const struct bam_key *keys = spill_slice_keys(slice);
    size_t at = 0;
    assert_true(slice->bottom <= slice->size);
    assert_true(slice->n <= (slice->size - slice->bottom) / sizeof *keys);
    for (size_t i = 0; i < slice->n; i++) {
        assert_int_equal(keys[i].place >> BAM_KEY_SIZE_BITS, at);
        at += bam_key_record_size(slice->base, keys[i]);
        assert_true(at <= slice->bottom);
    }
    assert_int_equal(at, slice->bottom);
}

/* Does what the caller does: takes memory of the size that the bytes state, if it is available. */
static void unpack_damaged(struct record_unpacker *unpacker, const uint8_t *packed, size_t n, size_t home_size)
{
    uint64_t asked = packed_size(packed, n);
    struct spill_slice slice = {.size = asked <= 4 * home_size ? asked : home_size};
    slice.base = unit_slice_memory(slice.size);
    if (spill_slice_unpack(&slice, unpacker, packed, n) == 0)
        check_sane(&slice);
    free(slice.base);
}

/* Garbage with a valid checksum, from another version or worse: no byte beyond the memory
 * is read or written. A sanitizer checks that. */
static void fuzz(int n_records, int rounds, uint64_t seed)
{
    size_t n;
    uint8_t *packed = pack_random(seed, n_records, &n), *damaged = must_alloc(n);
    struct record_unpacker *unpacker = record_unpacker_new();
    MUST(unpacker);
    size_t home_size = packed_size(packed, n);
    for (int i = 0; i < rounds; i++) {
        uint32_t behind = (uint32_t)(n - SPILL_SLICE_HEADER);
        size_t left = SPILL_SLICE_HEADER + (unit_below(&seed, 8) ? behind : unit_below(&seed, behind));
        memcpy(damaged, packed, left);
        mutate(damaged, left, &seed);
        set_checksum(damaged, left);
        uint8_t *exact = unit_packed_copy(damaged, left);
        unpack_damaged(unpacker, exact, left, home_size);
        free(exact);
    }
    record_unpacker_free(unpacker);
    free(damaged);
    free(packed);
}

static void test_garbage_with_a_sound_checksum_reads_and_writes_nothing_beyond(void **state)
{
    (void)state;
    fuzz(1, FUZZ_ROUNDS / 4, 10);
    fuzz(5, FUZZ_ROUNDS / 2, 11);
    fuzz(40, FUZZ_ROUNDS / 4, 12);
    fuzz(2500, FUZZ_LARGE_ROUNDS, 13);           /* several 100 kB */
}

static void test_random_bytes_with_a_sound_checksum(void **state)
{
    (void)state;
    struct record_unpacker *unpacker = record_unpacker_new();
    uint64_t seed = 14;
    MUST(unpacker);
    for (int i = 0; i < FUZZ_ROUNDS / 4; i++) {
        size_t n = SPILL_SLICE_HEADER + unit_below(&seed, 300);
        uint8_t *bytes = must_alloc(n + RECORD_PACK_SLACK);
        unit_fill(&seed, bytes, n + RECORD_PACK_SLACK);
        store_le64(bytes + 8, unit_below(&seed, 400));
        store_le64(bytes + 16, unit_below(&seed, 12));
        store_le64(bytes + 24, unit_below(&seed, 50));
        set_checksum(bytes, n);
        unpack_damaged(unpacker, bytes, n, 4096);
        free(bytes);
    }
    record_unpacker_free(unpacker);
}

/* The writer and the reader disagree, although the checksum is valid. */
static void test_more_or_fewer_bytes_of_keys_than_keys_pass(void **state)
{
    (void)state;
    enum { KEY_BYTES = 8 + 16 };
    size_t n;
    uint8_t *packed = pack_random(15, 30, &n), *more = must_alloc(n + 1 + RECORD_PACK_SLACK);
    size_t room = packed_size(packed, n);
    int result;
    memcpy(more, packed, n);
    more[n] = 0;                                 /* the difference to another key */
    store_le64(more + KEY_BYTES, load_le64(packed + KEY_BYTES) + 1);
    set_checksum(more, n + 1);
    free(unpack(more, n + 1, room, &result).base);
    assert_int_equal(result, -1);
    store_le64(packed + KEY_BYTES, load_le64(packed + KEY_BYTES) - 1);
    set_checksum(packed, n - 1);
    free(unpack(packed, n - 1, room, &result).base);
    assert_int_equal(result, -1);
    free(packed);
    free(more);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_record_of_any_size_comes_back),
        cmocka_unit_test(test_random_records_and_keys_come_back),
        cmocka_unit_test(test_equal_keys_and_the_largest_key_come_back),
        cmocka_unit_test(test_long_record_among_small_ones_has_a_slice_of_its_own),
        cmocka_unit_test(test_slice_is_filled_to_its_size_and_no_further),
        cmocka_unit_test(test_packed_bytes_are_within_the_memory_of_a_packer),
        cmocka_unit_test(test_every_changed_byte_is_noticed),
        cmocka_unit_test(test_every_truncation_is_noticed_and_bytes_too_many),
        cmocka_unit_test(test_slice_that_does_not_fit_is_refused),
        cmocka_unit_test(test_garbage_with_a_sound_checksum_reads_and_writes_nothing_beyond),
        cmocka_unit_test(test_random_bytes_with_a_sound_checksum),
        cmocka_unit_test(test_more_or_fewer_bytes_of_keys_than_keys_pass),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
