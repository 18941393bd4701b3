/* SPDX-License-Identifier: MIT */
/* Records in windows of any size, as slices. */
#include "base/byte_window.h"
#include "base/engine.h"
#include "base/latch.h"
#include "read/raw_records.h"
#include "read/record_slice.h"
#include "unit.h"

enum { N_REF = 3, N_RECORDS = 40 };

/* ---- an input that comes piece by piece, each in memory of its own ---- */

struct pieces {
    struct byte_window window;   /* first: more() is called with it */
    const struct unit_bytes *all;
    size_t size, at;             /* bytes of a piece; bytes given so far */
    uint8_t *data[100000];
    atomic_int users[100000];
    size_t n;
    bool fails, has_ended;
    struct latch latch;
};

static int more(struct byte_window *w, task_help_fn *help_fn, void *arg)
{
    struct pieces *in = (struct pieces *)w;
    size_t left = in->all->n - in->at, n = left < in->size ? left : in->size;
    (void)help_fn;
    (void)arg;
    assert_int_equal(w->size, 0);                /* all bytes are taken before more are requested */
    assert_false(in->has_ended);                 /* another input may follow in the window */
    in->has_ended = n == 0;
    if (n == 0)
        return in->fails ? latch_fail(&in->latch, "it fails") : 0;
    MUST(in->n < sizeof in->data / sizeof *in->data && (in->data[in->n] = malloc(n)));
    memcpy(in->data[in->n], in->all->data + in->at, n);
    w->size = 0;                                 /* asserted above, but the compiler does not know it */
    byte_window_move(w, in->data[in->n], &in->users[in->n]);
    in->n++;
    w->size = n;
    in->at += n;
    return 1;
}

static struct pieces *pieces_new(const struct unit_bytes *all, size_t size)
{
    static atomic_int nobody;
    struct pieces *in = calloc(1, sizeof *in);
    MUST(in);
    in->all = all;
    in->size = size;
    in->window = (struct byte_window){.users = &nobody, .most_held = 2 + (uint32_t)size % 3, .more = more};
    return in;
}

static void pieces_free(struct pieces *in)
{
    for (size_t i = 0; i < in->n; i++)
        free(in->data[i]);
    free(in);
}

static int held(struct pieces *in)
{
    int n = in->window.held;
    for (size_t i = 0; i < in->n; i++)
        n += atomic_load(&in->users[i]);
    return n;
}

/* ---- reading ---- */

/* Appends the slice's records, which its keys locate. */
static void append(struct unit_bytes *to, const struct record_slice *s)
{
    for (size_t i = 0; i < s->n; i++) {
        const uint8_t *record = bam_key_record(s->records.p, s->keys[i]);
        size_t size = bam_key_record_size(s->records.p, s->keys[i]);
        assert_true(record + size <= s->records.p + s->records.n);
        unit_append(to, record, size);
    }
}

/* Reads everything, as a consumer that holds as many slices as it may. Returns the last state. */
static enum chunk_state read_all(struct pieces *in, struct unit_bytes *to, uint64_t *n_records)
{
    const struct engine engine = {.latch = &in->latch};
    struct raw_records *r = raw_records_open(&in->window, N_REF, &engine);
    MUST(r);
    struct record_stream s = raw_records_stream(r);
    struct record_slice lent[8] = {0};
    struct tally given;
    enum chunk_state state;
    uint64_t n = 0;
    MUST(s.most_lent > 0 && s.most_lent <= N_OF(lent));
    for (unsigned i = 0; (state = s.advance(s.producer)) == CHUNK_MADE; i++) {
        struct record_slice *slice = &lent[i % s.most_lent];
        assert_int_equal(s.take(s.producer, slice), 0);
        assert_int_equal(slice->number, n + 1);
        assert_true(held(in) <= (int)s.most_lent);
        append(to, slice);
        n += slice->n;
    }
    assert_int_equal(s.end(s.producer, &given), 0);
    assert_int_equal(given.n, n);
    raw_records_end(r);
    assert_int_equal(held(in), 0);
    for (unsigned i = 0; i < s.most_lent; i++)
        record_slice_free(&lent[i]);
    raw_records_close(r);
    *n_records = n;
    return state;
}

static void check(const struct unit_bytes *bytes, const struct unit_bytes *want, uint64_t n_records)
{
    for (size_t size = 1; size < bytes->n + 2; size += size < 600 ? 1 : 997) {
        struct pieces *in = pieces_new(bytes, size);
        struct unit_bytes got = {NULL, 0, 0};
        uint64_t n;
        assert_int_equal(read_all(in, &got, &n), CHUNK_NONE);
        assert_int_equal(n, n_records);
        assert_int_equal(got.n, want->n);
        assert_memory_equal(got.data, want->data, want->n);
        assert_false(latch_tripped(&in->latch));
        unit_free(&got);
        pieces_free(in);
    }
}

static struct unit_bytes some_records(size_t n)
{
    struct unit_bytes b = {NULL, 0, 0};
    uint64_t seed = 5;
    for (size_t i = 0; i < n; i++)
        if (i % 7 == 3)
            unit_append_smallest(&b, (int32_t)i);
        else
            unit_append_plain(&b, &seed, i % 11 == 5 ? 3000 : 100);
    return b;
}

static void test_records_lost_or_changed_where_pieces_end(void **state)
{
    (void)state;
    struct unit_bytes b = some_records(N_RECORDS), none = {NULL, 0, 0};
    check(&b, &b, N_RECORDS);
    struct pieces *in = pieces_new(&none, 1);
    struct unit_bytes got = {NULL, 0, 0};
    uint64_t n;
    assert_int_equal(read_all(in, &got, &n), CHUNK_NONE);
    assert_int_equal(n, 0);
    pieces_free(in);
    unit_free(&b);
}

/* htslib adds the NUL, too. */
static void test_name_does_not_get_its_nul(void **state)
{
    (void)state;
    struct unit_bytes b = some_records(5), want = some_records(5);
    struct byte_buffer closed = {.p = NULL};
    size_t at = b.n;
    struct unit_record r = {.ref_id = -1, .flag = 4, .name = "name"};
    unit_append_record(&b, &r);
    b.data[at + BAM_FIXED + 4] = 'x';
    MUST(bam_record_close(&closed, b.data + at) == 0);
    unit_append(&want, closed.p, closed.n);
    uint64_t seed = 6;
    for (int i = 0; i < 3; i++) {
        size_t begin = b.n;
        unit_append_plain(&b, &seed, 50);
        unit_append(&want, b.data + begin, b.n - begin);
    }
    assert_int_equal(want.n, b.n + 1);
    check(&b, &want, 9);
    free(closed.p);
    unit_free(&b);
    unit_free(&want);
}

/* The consumer sees the fault in the bytes that it gets. */
static void test_broken_record_is_not_the_last_one(void **state)
{
    (void)state;
    static const struct {
        size_t at;
        uint32_t value;
        enum bam_fault fault;
    } broken[] = {{0, 5, BAM_BAD_SIZE}, {0, UINT32_MAX, BAM_BAD_SIZE}, {20, UINT32_MAX, BAM_BAD_LENGTHS}};
    for (size_t i = 0; i < N_OF(broken); i++)
        for (size_t size = 1; size < 400; size++) {
            struct unit_bytes b = some_records(3), got = {NULL, 0, 0};
            size_t at = b.n;
            uint64_t n;
            unit_append_smallest(&b, 1);
            store_le32(b.data + at + broken[i].at, broken[i].value);
            unit_append_smallest(&b, 2);
            struct pieces *in = pieces_new(&b, size);
            if (broken[i].at == 20)              /* looks complete, so the bytes after it are read, too */
                store_le32(b.data + at, BAM_MIN_RECORD - 4);
            assert_int_equal(read_all(in, &got, &n), CHUNK_NONE);
            assert_true(n == 4 || broken[i].at == 20);
            assert_int_equal(bam_record_check(got.data + at, got.n - at, N_REF).fault, broken[i].fault);
            pieces_free(in);
            unit_free(&got);
            unit_free(&b);
        }
}

static void test_record_that_is_cut_is_lost(void **state)
{
    (void)state;
    struct unit_bytes b = some_records(4), got = {NULL, 0, 0};
    size_t last = b.n;
    uint64_t n, seed = 9;
    unit_append_plain(&b, &seed, 100);
    for (size_t left = last + 1, all = b.n; left < all; left++) {
        b.n = left;
        for (size_t size = 1; size < 200; size += 13) {
            struct pieces *in = pieces_new(&b, size);
            assert_int_equal(read_all(in, &got, &n), CHUNK_NONE);
            assert_int_equal(n, 5);
            assert_int_equal(got.n, b.n);
            assert_memory_equal(got.data, b.data, b.n);
            pieces_free(in);
            got.n = 0;
        }
    }
    unit_free(&got);
    unit_free(&b);
}

static void test_input_that_fails_looks_complete(void **state)
{
    (void)state;
    struct unit_bytes b = some_records(4), got = {NULL, 0, 0};
    uint64_t n;
    for (size_t cut = 0; cut < 2; cut++) {
        b.n -= cut;                              /* also inside a record */
        struct pieces *in = pieces_new(&b, 100);
        in->fails = true;
        assert_int_equal(read_all(in, &got, &n), CHUNK_FAILED);
        pieces_free(in);
    }
    unit_free(&got);
    unit_free(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_records_lost_or_changed_where_pieces_end),
        cmocka_unit_test(test_name_does_not_get_its_nul),
        cmocka_unit_test(test_broken_record_is_not_the_last_one),
        cmocka_unit_test(test_record_that_is_cut_is_lost),
        cmocka_unit_test(test_input_that_fails_looks_complete),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
