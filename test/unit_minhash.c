/* SPDX-License-Identifier: MIT */
#include "unit.h"
#include "order/minhash.h"

static const char letters[] = "=ACMGRSVTWYHKDBN";

static struct minhash *settings(int kmer, bool no_reverse, bool squash)
{
    struct sort_order order = {.by = SORT_MINHASH, .kmer = kmer, .window = 100,
                               .no_reverse = no_reverse, .squash = squash};
    struct minhash *m = minhash_new(&order);
    MUST(m);
    return m;
}

static struct minhash *indexed(const char *sequence, struct sort_order order)
{
    char path[64];
    int fd = unit_temp_file();
    unit_write(fd, ">v\n", 3);
    unit_write(fd, sequence, strlen(sequence));
    unit_write(fd, "\n", 1);
    order.index_fasta = unit_fd_path(path, fd);
    struct minhash *m = minhash_new(&order);
    MUST(m && !minhash_build_index(m, true));
    close(fd);
    return m;
}

/* ---- records ---- */

static uint8_t *seq_of(struct bam_record *r)
{
    return r->data + r->name_len + 4 * (size_t)load_le16(r->n_cigar);
}

static unsigned base_of(struct bam_record *r, size_t i)
{
    return seq_of(r)[i / 2] >> (i % 2 ? 0 : 4) & 15;
}

/* A read without reference, in an allocation of its exact size; one CIGAR
 * operation and a tag, to be kept; an odd SEQ ends in the half byte 0xb. */
static struct bam_record *make_read(const char *bases, uint16_t flag)
{
    struct unit_bytes b = {NULL, 0, 0};
    uint32_t n = (uint32_t)strlen(bases), cigar[1] = {UNIT_OP(n, UNIT_S)};
    struct unit_record u = {.ref_id = -1, .pos = 77, .flag = flag, .bin = 4680, .name = "read", .cigar = cigar,
                            .n_cigar = 1, .seq_len = n, .aux = "NMC\3", .n_aux = 4};
    size_t size = unit_append_record(&b, &u);
    struct bam_record *r = (struct bam_record *)exact_copy(b.data, size);
    unit_free(&b);
    uint8_t *seq = seq_of(r), *qual = seq + (n + 1) / 2;
    memset(seq, 0xbb, (n + 1) / 2);
    for (uint32_t i = 0; i < n; i++) {
        unsigned base = (unsigned)(strchr(letters, bases[i]) - letters), shift = i % 2 ? 0 : 4;
        seq[i / 2] = (uint8_t)((seq[i / 2] & ~(15u << shift)) | base << shift);
        qual[i] = (uint8_t)(i % 94);
    }
    return r;
}

/* n bases, each one of `from`. */
static const char *random_bases(uint64_t *seed, uint32_t n, const char *from)
{
    static char bases[1024];
    uint32_t n_from = (uint32_t)strlen(from);
    for (uint32_t i = 0; i < n; i++)
        bases[i] = from[unit_below(seed, n_from)];
    bases[n] = 0;
    return bases;
}

static struct minhash_rank rank_of(const struct minhash *m, const char *bases)
{
    struct minhash_rank rank;
    struct bam_record *r = make_read(bases, 4);
    minhash_rank(m, r, &rank);
    free(r);
    return rank;
}

/* ---- turning a read ---- */

/* samtools' complement of each base; Y and = are unexpected. */
static const char complements[] = "NTGKCYSBAWYDMHVN";

static void check_turned(const char *bases)
{
    size_t n = strlen(bases), aux = (n + 1) / 2 + n;
    struct bam_record *was = make_read(bases, 4), *r = make_read(bases, 4);
    minhash_apply(r, &(struct minhash_rank){.hash = 5, .offset = 6, .reverse = true});
    assert_int_equal(bam_record_flag(r), 20);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(letters[base_of(r, i)], complements[base_of(was, n - 1 - i)]);
        assert_int_equal(seq_of(r)[(n + 1) / 2 + i], (n - 1 - i) % 94);
    }
    if (n % 2)
        assert_int_equal(base_of(r, n), 0xb);
    assert_memory_equal(r->data, was->data, seq_of(was) - was->data);       /* name, CIGAR */
    assert_memory_equal(seq_of(r) + aux, seq_of(was) + aux, 4);
    assert_memory_equal(&r->name_len, &was->name_len, 6);                    /* to n_cigar */
    assert_int_equal(bam_record_size(r), bam_record_size(was));
    assert_int_equal(load_le32(r->next_ref_id), load_le32(was->next_ref_id));
    free(was);
    free(r);
}

static void test_turning_reverses_and_complements_in_place(void **state)
{
    (void)state;
    uint64_t seed = 1;
    check_turned(letters);
    for (uint32_t n = 0; n < 70; n++)
        check_turned(random_bases(&seed, n, letters));
}

static void test_turning_clears_the_strand_of_a_reverse_read(void **state)
{
    (void)state;
    struct bam_record *r = make_read("ACC", 0x94);
    minhash_apply(r, &(struct minhash_rank){.reverse = true});
    assert_int_equal(bam_record_flag(r), 0x84);
    free(r);
}

static void test_finish_unsets_what_held_the_rank(void **state)
{
    (void)state;
    struct minhash_rank rank = {.hash = ((uint64_t)1 << 62) - 2, .offset = 65565};
    struct bam_record *was = make_read("ACGTN", 4), *r = make_read("ACGTN", 4);
    minhash_apply(r, &rank);
    struct minhash_rank kept = minhash_kept(r);
    assert_true(kept.hash == rank.hash && kept.offset == rank.offset && !kept.reverse);
    minhash_finish(r);
    assert_int_equal(bam_record_pos(r), -1);
    assert_int_equal((int32_t)load_le32(r->next_pos), -1);
    assert_int_equal(load_le32(r->tlen), 0);
    store_le32(was->pos, UINT32_MAX);            /* and nothing else has changed */
    assert_memory_equal(r, was, bam_record_size(r));
    free(was);
    free(r);
}

/* ---- the minimiser ---- */

static uint64_t digit_of(char base)
{
    return base == 'C' ? 1 : base == 'G' ? 2 : base == 'T' ? 3 : 0;
}

static char turned_base(char base)
{
    return base == 'A' ? 'T' : base == 'C' ? 'G' : base == 'G' ? 'C' : base == 'T' ? 'A' : 'N';
}

/* Smallest scrambled k-mer of the bases, and its last base: the first of equal
 * ones, or the last. Every k-mer from scratch. */
static uint64_t naive_minimum(const char *bases, int kmer, bool last, size_t *at)
{
    uint64_t best = UINT64_MAX, mask = ((uint64_t)1 << (2 * kmer)) - 1;
    *at = 0;
    for (size_t i = 0; i + (size_t)kmer <= strlen(bases); i++) {
        uint64_t hash = 0;
        for (int j = 0; j < kmer; j++)
            hash = hash << 2 | digit_of(bases[i + (size_t)j]);
        hash = (hash ^ 0xdead7878beef7878u) & mask;
        if (hash < best || (last && hash == best)) {
            best = hash;
            *at = i + (size_t)kmer - 1;
        }
    }
    return best;
}

static void test_rank_is_that_of_the_definition(void **state)
{
    (void)state;
    static const int kmers[] = {1, 2, 5, 20, 31};
    uint64_t seed = 2;
    for (size_t k = 0; k < N_OF(kmers); k++) {
        struct minhash *m = settings(kmers[k], false, false);
        for (int round = 0; round < 300; round++) {
            char other[1024];
            size_t n = unit_below(&seed, 200), at, other_at;
            const char *bases = random_bases(&seed, (uint32_t)n, round % 3 ? "ACGT" : "AAAAACGTNR");
            for (size_t i = 0; i < n; i++)
                other[i] = turned_base(bases[n - 1 - i]);
            other[n] = 0;
            uint64_t forward = naive_minimum(bases, kmers[k], false, &at);
            /* samtools scans the other strand from its end */
            uint64_t reverse = naive_minimum(other, kmers[k], true, &other_at);
            bool turn = reverse < forward;
            struct minhash_rank rank = rank_of(m, bases);
            assert_int_equal(rank.reverse, turn);
            assert_true(rank.hash == (((turn ? reverse : forward) + (1 << 30)) & (((uint64_t)1 << 62) - 1)));
            assert_int_equal(rank.offset, turn ? other_at : at);
        }
        minhash_free(m);
    }
}

static void test_reads_without_a_kmer_have_one_rank(void **state)
{
    (void)state;
    struct minhash *m = settings(20, false, false);
    struct minhash_rank empty = rank_of(m, ""), shorter = rank_of(m, "GGGGGGGGGGTTTTTTTTT");
    assert_true(empty.hash == (1 << 30) - 1 && empty.offset == 0 && !empty.reverse);
    assert_true(shorter.hash == empty.hash && shorter.offset == 0 && !shorter.reverse);
    minhash_free(m);
}

static void test_palindromes_are_not_turned(void **state)
{
    (void)state;
    struct minhash *m = settings(10, false, false);
    assert_false(rank_of(m, "ACGGTTTGGCCAAACCGT").reverse);
    minhash_free(m);
}

static void test_both_strands_of_a_read_rank_alike(void **state)
{
    (void)state;
    struct minhash *m = settings(4, false, false), *forward_only = settings(4, true, false);
    struct minhash_rank a = rank_of(m, "CCATTGACGTTAGG"), b = rank_of(m, "CCTAACGTCAATGG");
    assert_true(a.hash == b.hash && a.offset == b.offset && a.reverse != b.reverse);
    assert_false(rank_of(forward_only, "CCATTGACGTTAGG").reverse);
    assert_false(rank_of(forward_only, "CCTAACGTCAATGG").reverse);
    minhash_free(m);
    minhash_free(forward_only);
}

static void test_squashing_ignores_the_length_of_runs(void **state)
{
    (void)state;
    struct minhash *m = settings(6, false, true);
    assert_true(rank_of(m, "CATGCTAGATCG").hash == rank_of(m, "CCCCATTGCTTTTTTAGATCGGG").hash);
    assert_true(rank_of(m, "AAAAAAAAAAAAAAAAA").hash == rank_of(m, "").hash);
    minhash_free(m);
}

/* Bases after which a k-mer can be added that wins: it scrambles to 0. */
static void test_offsets_far_into_a_read_tie(void **state)
{
    (void)state;
    enum { K = 20, LEAD = 65536 };
    struct minhash *m = settings(K, true, false);
    char *bases = must_alloc(LEAD + K + 2);
    static const uint32_t leads[] = {65534, 65535, 65536}, offsets[] = {65534 + K - 1, 65535 + K - 1, 65535 + K - 1};
    for (size_t i = 0; i < N_OF(leads); i++) {
        memset(bases, 'A', leads[i]);
        for (int j = 0; j < K; j++)
            bases[leads[i] + (uint32_t)j] = "ACGT"[0xdead7878beef7878u >> (2 * (K - 1 - j)) & 3];
        bases[leads[i] + K] = 0;
        struct minhash_rank rank = rank_of(m, bases);
        assert_true(rank.hash == 1 << 30);
        assert_int_equal(rank.offset, offsets[i]);
    }
    free(bases);
    minhash_free(m);
}

/* ---- the index ---- */

/* The sequence and the reads whose order was taken from samtools 1.24. */
static const char reference[] =
    "CGTCGGAGGTACATGATTGGAAGAAAACCTGGCGCCTTTGCACATCTCTTAATCTCAGTCACTTAAAATAGCAGAGACACTTC"
    "TACTGATACTCCAAGAGCCTCGTAATTAAGTATTGCAATAGCTGCAGAAGTGCTAACCAACGACTTGGGAAATGTAG";

static void test_reads_lie_along_the_sequence(void **state)
{
    (void)state;
    enum { K = 8, READ = 60 };
    struct minhash *m = indexed(reference, (struct sort_order){.kmer = K, .window = 20});
    char bases[READ + 1] = "";
    for (size_t at = 0; at + READ <= strlen(reference); at++) {
        memcpy(bases, reference + at, READ);
        struct minhash_rank rank = rank_of(m, bases);
        assert_true(rank.hash == (((uint64_t)at - (K - 1)) & (((uint64_t)1 << 62) - 1)));
        assert_true(rank.offset == 0 && !rank.reverse);
    }
    minhash_free(m);
}

static void test_index_grows_past_its_first_size(void **state)
{
    (void)state;
    enum { N = 200000 };
    uint64_t seed = 3;
    char *sequence = must_alloc(N + 1), bases[101] = "";
    for (size_t i = 0; i < N; i++)
        sequence[i] = "ACGT"[unit_below(&seed, 4)];
    sequence[N] = 0;
    /* Some 13,000 minimisers; 8,192 slots at first. */
    struct minhash *m = indexed(sequence, (struct sort_order){.kmer = 20, .window = 30});
    for (size_t at = 100; at + 100 <= N; at += 997) {
        memcpy(bases, sequence + at, 100);
        assert_true(rank_of(m, bases).hash == at - 19);
    }
    minhash_free(m);
    free(sequence);
}

static void test_a_missing_index_file_is_an_error(void **state)
{
    (void)state;
    struct sort_order order = {.kmer = 20, .window = 100, .index_fasta = "/nonexistent/x.fa"};
    struct minhash *m = minhash_new(&order);
    assert_string_equal(minhash_build_index(m, false), "No such file or directory");
    minhash_free(m);
}

static void test_keys_change_when_the_index_is_dropped_or_never_built(void **state)
{
    (void)state;
    struct sort_order order = {.kmer = 8, .window = 20};
    struct minhash *m = indexed(reference, order);
    order.index_fasta = "not read";
    struct minhash *never = minhash_new(&order);
    struct bam_record *r = make_read("GATTGGAAGAAAACCTGGCGCC", 4);
    struct minhash_rank rank;
    minhash_rank(m, r, &rank);
    minhash_apply(r, &rank);
    uint64_t key = minhash_key(m, r);
    minhash_drop_index(m);
    assert_true(minhash_memory(m) == 0 && minhash_decides(m) && minhash_decides(never));
    assert_true(minhash_key(m, r) == key && minhash_key(never, r) == key);
    free(r);
    minhash_free(m);
    minhash_free(never);
}

/* ---- order ---- */

static int sign(int v)
{
    return (v > 0) - (v < 0);
}

/* Applied and placed records in turn, many of them nearly equal. */
static struct bam_record *random_record(uint64_t *seed, const struct minhash *m)
{
    static const char *const cores[] = {"", "ACGTTGCATTACGGCATCAGGACTTACGTACCATG", "TTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTT"};
    char bases[100];
    snprintf(bases, sizeof bases, "%.*s%s", (int)unit_below(seed, 3), "GG", cores[unit_below(seed, 3)]);
    struct bam_record *r = make_read(bases, unit_below(seed, 2) ? 4 : 20);
    if (unit_below(seed, 3) == 0) {
        store_le32(r->ref_id, unit_below(seed, 2) ? unit_below(seed, 2) : MINHASH_REF_MAX - 1);
        store_le32(r->pos, unit_below(seed, 3) - 1);
        return r;
    }
    struct minhash_rank rank;
    minhash_rank(m, r, &rank);
    minhash_apply(r, &rank);
    return r;
}

static void check_keys(const struct minhash *m)
{
    enum { N = 120 };
    uint64_t seed = 4;
    struct bam_record *r[N];
    for (size_t i = 0; i < N; i++)
        r[i] = random_record(&seed, m);
    for (size_t i = 0; i < N; i++)
        for (size_t j = 0; j < N; j++) {
            uint64_t a = minhash_key(m, r[i]), b = minhash_key(m, r[j]);
            int order = sign(minhash_compare(r[i], r[j]));
            assert_int_equal(order, -sign(minhash_compare(r[j], r[i])));
            if (a != b)
                assert_int_equal(order, a < b ? -1 : 1);
            else if (minhash_decides(m))
                assert_int_equal(order, 0);
            if (!minhash_applies(r[i]) && minhash_applies(r[j]))
                assert_true(a < b);
        }
    for (size_t i = 0; i < N; i++)
        free(r[i]);
}

static void test_keys_never_contradict_the_order(void **state)
{
    (void)state;
    static const int kmers[] = {1, 4, 20, 22, 23, 31};
    for (size_t i = 0; i < N_OF(kmers); i++) {
        struct minhash *m = settings(kmers[i], false, false);
        assert_int_equal(minhash_decides(m), kmers[i] <= 22);
        check_keys(m);
        minhash_free(m);
    }
    struct minhash *m = indexed(reference, (struct sort_order){.kmer = 31, .window = 40});
    assert_true(minhash_decides(m));
    check_keys(m);
    minhash_free(m);
}

/* Flag 4; every fifth, from the fifth on, 20. */
static const char *const reads[] = {
    "ACATGATTGGAAGAAAACCTGGCGCCTTTGCACATCTCTTAATCTCAGTC", "TGACTGAGATTAAGAGATGTGCAAAGGCGCCAGGTTTTCTTCCAATCAT",
    "GGCGCCTTTGCACATCTCTTAATCTCAGTCACTTAAAATAGCAGAGACAC", "TTGCAATACTTAATTACGAGGCTCTTGGAGTATCAGTAGAAGTGTCTCTGC",
    "GACACTTCTACTGATACTCCAAGAGCCTCGTAATT", "CAAAGGCGCCAGGTTTTCTTCCAATCATGTACCTC",
    "CCTCGTAATTAAGTATTGCANTAGCTGCAGAAGTGCTAACCAACGACTTG", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
    "TTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTT", "ACGTACGTACGTACGTACGTACGTACGTACGTACGT",
    "CGCTAGGTGGTTCGTTCTTGGCGGAGTTGCGGCTATAGCAGCGTC", "ACGAATGCTCGACTTTCGCACTTGTCACCACGCCTTCAATAGGC",
    "ACTTAAAATAGCAGA", "", "=RYKMBDHVSWN=RYKMBDHVSWN=RYKMBDHVSWNAAGAAAACCT",
    "ACATGATTGGAAGAAAACCTGGCGCAAACTTTGCACATCTCTTAATCTCAGTC", "GTTAGCACTTCTGCAGCTATTGCAATACTTAATTACGAGG",
    "AGCCTCGTAATTAAGTATTGCAATAGCTGCAGAAGTGCTAA",
};

/* samtools 1.24's order of these reads, counted from 1; negative: turned. */
static const struct {
    struct sort_order order;
    bool index;
    int read[N_OF(reads)];
} vectors[] = {
    {{.kmer = 20}, false, {13, 14, -1, -16, 2, -3, 5, -4, -11, -18, 17, -7, -15, 12, 10, 6, 8, -9}},
    {{.kmer = 4}, false, {14, -1, -16, 2, 5, -4, -3, -13, -11, 17, 7, 18, -6, -15, 12, 10, 8, -9}},
    {{.kmer = 31}, false, {13, 14, -2, 1, 16, -4, -11, -3, -18, 12, -15, 17, -7, 5, 10, 6, 8, -9}},
    {{.kmer = 20, .no_reverse = true}, false, {13, 14, 2, 5, 17, 7, 16, 1, 4, 3, 11, 12, 18, 10, 6, 15, 8, 9}},
    {{.kmer = 9, .squash = true}, false, {8, 9, 14, -5, 4, -18, 17, -7, -13, -3, 11, -15, -2, 1, 16, 6, 12, 10}},
    {{.kmer = 20, .window = 30}, true, {13, 14, 3, -4, 5, 18, 7, -17, -16, -11, -15, 12, 10, 6, -9, 8, 1, -2}},
    {{.kmer = 6, .window = 40, .squash = true}, true,
     {8, 9, 14, -6, -11, -4, 5, 18, 7, -17, -3, 2, -1, -16, -13, -15, 10, 12}},
    {{.kmer = 5, .window = 20, .no_reverse = true}, true,
     {14, 6, 1, 16, 10, 3, 17, 15, 4, 13, 5, 2, 18, 7, 8, 12, 11, 9}},
};

static void test_order_is_that_of_samtools(void **state)
{
    (void)state;
    for (size_t v = 0; v < N_OF(vectors); v++) {
        struct minhash *m = vectors[v].index ? indexed(reference, vectors[v].order)
            : settings(vectors[v].order.kmer, vectors[v].order.no_reverse, vectors[v].order.squash);
        struct bam_record *r[N_OF(reads)];
        struct minhash_rank rank[N_OF(reads)];
        for (size_t i = 0; i < N_OF(reads); i++) {
            r[i] = make_read(reads[i], i % 5 == 4 ? 20 : 4);
            minhash_rank(m, r[i], &rank[i]);
            minhash_apply(r[i], &rank[i]);
        }
        for (size_t i = 0; i < N_OF(reads); i++) {
            int b = abs(vectors[v].read[i]) - 1;
            assert_int_equal(rank[b].reverse, vectors[v].read[i] < 0);
            if (i == 0)
                continue;
            int a = abs(vectors[v].read[i - 1]) - 1, order = minhash_compare(r[a], r[b]);
            assert_true(order < 0 || (order == 0 && a < b));
        }
        for (size_t i = 0; i < N_OF(reads); i++)
            free(r[i]);
        minhash_free(m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_turning_reverses_and_complements_in_place),
        cmocka_unit_test(test_turning_clears_the_strand_of_a_reverse_read),
        cmocka_unit_test(test_finish_unsets_what_held_the_rank),
        cmocka_unit_test(test_rank_is_that_of_the_definition),
        cmocka_unit_test(test_reads_without_a_kmer_have_one_rank),
        cmocka_unit_test(test_palindromes_are_not_turned),
        cmocka_unit_test(test_both_strands_of_a_read_rank_alike),
        cmocka_unit_test(test_squashing_ignores_the_length_of_runs),
        cmocka_unit_test(test_offsets_far_into_a_read_tie),
        cmocka_unit_test(test_reads_lie_along_the_sequence),
        cmocka_unit_test(test_index_grows_past_its_first_size),
        cmocka_unit_test(test_a_missing_index_file_is_an_error),
        cmocka_unit_test(test_keys_change_when_the_index_is_dropped_or_never_built),
        cmocka_unit_test(test_keys_never_contradict_the_order),
        cmocka_unit_test(test_order_is_that_of_samtools),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
