/* SPDX-License-Identifier: MIT
 *
 * minhash_dump [-K n] [-w n] [-R] [-H] [-I fasta] [-s] in.bam out.bam
 *
 * Sorts a BAM in memory by minhash.c alone, one thread, for oracle_minhash.py;
 * -s says on stderr what a rank took. The header stays as it is. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <htslib/bgzf.h>
#include "order/minhash.h"

static void die(const char *what)
{
    fprintf(stderr, "minhash_dump: %s\n", what);
    exit(EXIT_FAILURE);
}

struct bytes { uint8_t *data; size_t n; };

static struct bytes read_all(const char *name)
{
    enum { PIECE = 1 << 20 };
    struct bytes b = {NULL, 0};
    BGZF *in = bgzf_open(name, "r");
    if (!in)
        die("cannot read the input");
    for (size_t max = 0;;) {
        if (max - b.n < PIECE) {
            max = 2 * max + 2 * PIECE;
            b.data = realloc(b.data, max);
            if (!b.data)
                die("no memory");
        }
        ssize_t n = bgzf_read(in, b.data + b.n, PIECE);
        if (n < 0)
            die("cannot inflate the input");
        if (n == 0)
            break;
        b.n += (size_t)n;
    }
    bgzf_close(in);
    return b;
}

static size_t header_size(struct bytes b, int32_t *n_ref)
{
    size_t at = 8 + (size_t)load_le32(b.data + 4);
    *n_ref = (int32_t)load_le32(b.data + at);
    at += 4;
    for (int32_t i = 0; i < *n_ref; i++)
        at += 8 + (size_t)load_le32(b.data + at);
    return at;
}

struct item {
    uint64_t key;
    struct bam_record *r;
};

static bool decides;

static int by_rank(const void *a, const void *b)
{
    const struct item *x = a, *y = b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    int order = minhash_compare(x->r, y->r);
    if (decides && order != 0)
        die("equal keys that are no tie");
    if (order != 0)
        return order;
    return x->r < y->r ? -1 : 1;
}

static size_t prepare(const struct minhash *m, struct bytes b, size_t at, int32_t n_ref, struct item **out)
{
    struct item *items = malloc((b.n - at) / BAM_MIN_RECORD * sizeof *items + sizeof *items);
    if (!items)
        die("no memory");
    size_t n = 0;
    while (at < b.n) {
        struct bam_record *r = (struct bam_record *)(b.data + at);
        struct bam_verdict v = bam_record_check(b.data + at, b.n - at, n_ref);
        if (v.fault != BAM_OK)
            die(bam_fault_text(v.fault));
        at += bam_record_size(r);
        if (v.needs_fix && bam_record_fix(r) != 0)
            die("no memory");
        items[n++].r = r;
    }
    *out = items;
    for (size_t i = 0; i < n; i++) {
        struct minhash_rank rank;
        if (minhash_applies(items[i].r)) {
            minhash_rank(m, items[i].r, &rank);
            minhash_apply(items[i].r, &rank);
        }
        items[i].key = minhash_key(m, items[i].r);
    }
    return n;
}

static void time_ranks(const struct minhash *m, const struct item *items, size_t n)
{
    struct timespec from, to;
    struct minhash_rank rank;
    uint64_t sum = 0, bases = 0;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
    for (size_t i = 0; i < n; i++) {
        minhash_rank(m, items[i].r, &rank);
        sum += rank.hash;
        bases += load_le32(items[i].r->seq_len);
    }
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &to);
    double ns = 1e9 * (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec);
    fprintf(stderr, "%zu reads, %.1f bases and %.0f ns each (%llx)\n", n, (double)bases / (double)n,
            ns / (double)n, (unsigned long long)sum);
}

static void write_all(const char *name, const uint8_t *header, size_t n_header, const struct item *items, size_t n)
{
    BGZF *out = bgzf_open(name, "w1");
    if (!out || bgzf_write(out, header, n_header) < 0)
        die("cannot write the output");
    for (size_t i = 0; i < n; i++) {
        if (minhash_applies(items[i].r))
            minhash_finish(items[i].r);
        if (bgzf_write(out, items[i].r, bam_record_size(items[i].r)) < 0)
            die("cannot write the output");
    }
    if (bgzf_close(out) != 0)
        die("cannot write the output");
}

int main(int argc, char **argv)
{
    struct sort_order order = {.by = SORT_MINHASH, .kmer = 20, .window = 100};
    bool speed = false;
    for (int c; (c = getopt(argc, argv, "K:w:RHI:s")) >= 0;)
        switch (c) {
        case 'K': order.kmer = atoi(optarg); break;
        case 'w': order.window = atoi(optarg); break;
        case 'R': order.no_reverse = true; break;
        case 'H': order.squash = true; break;
        case 'I': order.index_fasta = optarg; break;
        case 's': speed = true; break;
        default: return EXIT_FAILURE;
        }
    if (argc - optind != 2)
        die("usage: minhash_dump [-K n] [-w n] [-R] [-H] [-I fasta] [-s] in.bam out.bam");
    struct minhash *m = minhash_new(&order);
    if (!m || minhash_build_index(m, true))
        return EXIT_FAILURE;
    struct bytes b = read_all(argv[optind]);
    int32_t n_ref;
    struct item *items;
    size_t n_header = header_size(b, &n_ref), n = prepare(m, b, n_header, n_ref, &items);
    decides = minhash_decides(m);
    if (speed && n)
        time_ranks(m, items, n);
    qsort(items, n, sizeof *items, by_rank);
    write_all(argv[optind + 1], b.data, n_header, items, n);
    free(items);
    free(b.data);
    minhash_free(m);
    return EXIT_SUCCESS;
}
