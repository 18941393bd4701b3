/* SPDX-License-Identifier: MIT */
/* Encodes random blocks at both levels. zlib, libdeflate, htslib, our decoder and, if pkg-config finds it, ISA-L must
 * read each of them. The scalar code of the encoder must write the same as the vector code.
 *
 *   make build/deflate_soak && nice build/deflate_soak [-s SEED] [-n BLOCKS] [-t SECONDS]
 *
 * Data are records of all kinds of test/record_kinds.h, some turned into long reads, cut anywhere and damaged, and
 * mixtures of any bytes. Small sizes are as frequent as large ones, in powers of two, up to 1 KiB or, in one block of
 * 64, to a full one: edges are met often and cost little. The first fault ends the program; its line has the seed that
 * repeats it: -s SEED -n 1. */
#include <stdbool.h>
#include <libdeflate.h>
#include <zlib.h>
#ifdef WITH_ISAL
#include <isa-l/igzip_lib.h>
#endif
#include <htslib/hfile.h>
#include "codec/bam_deflate.h"
#include "codec/bgzf_block.h"
#include "codec_bench.h"
#include "test/record_kinds.h"

enum {
    LEVELS = 2,
    LARGE_OF = 64,                /* one block of this many may be large, */
    FULL_OF = 8,                  /* and one of this many of those is full, or nearly */
    SMALL_LOG2 = 10, LARGE_LOG2 = 16,
    SOURCE_BLOCKS = 1024,         /* made from one source of records */
    SOURCE = 5 * BGZF_FILL,
    LONG_OF = 4,                  /* one source of this many has long reads */
    BATCH = 4 << 20,              /* bytes that htslib reads at once */
    PACKED = BATCH + BGZF_MAX_BLOCK + BGZF_EOF_SIZE,
};

struct soak {
    uint64_t seed;                /* of the present block */
    struct bgzf_codec *codec[LEVELS];
    struct bam_deflate *scalar[LEVELS];
    struct libdeflate_decompressor *lib;
    z_stream z;
#ifdef WITH_ISAL
    struct inflate_state isal;
#endif
    struct record_maker maker;
    struct record_kind stretched; /* the kind of long reads that stretch() makes */
    uint8_t source[SOURCE];       /* records that blocks are cut from */
    uint32_t source_size;
    uint8_t in[BGZF_FILL], block[BGZF_MAX_BLOCK], back[BGZF_MAX_BLOCK], other[BGZF_MAX_BLOCK];
    uint8_t *plain, *packed;      /* of the batch: the data, and the BGZF made from them */
    size_t plain_size, packed_size;
    uint64_t batch_seed;          /* of its first block */
};

_Noreturn static void fault(uint64_t seed, const char *reader)
{
    fprintf(stderr, "%s reads a different block: -s %llu -n 1\n", reader, (unsigned long long)seed);
    exit(1);
}

static uint32_t below(struct soak *s, uint32_t n) { return unit_below(&s->seed, n); }

/* ---- data ---- */

/* Makes a kind of records for all paths of deflate_long(): copies of reads; qualities that are absent, of few levels,
 * that change often or hardly ever; records of up to 49 KB and more, so that many blocks are inside one, or inside its
 * QUAL. */
static void stretch(struct soak *s)
{
    static const uint32_t levels[] = {0, 1, 4, 8, 40}, stays[] = {0, 1, 3, 400};
    struct record_kind *k = &s->stretched;
    *k = *s->maker.kind;
    k->copies = below(s, 3);
    k->len = (RECORD_LONGEST - 1) >> below(s, 5);
    k->levels = levels[below(s, N_OF(levels))];
    k->stay = stays[below(s, N_OF(stays))];
    k->step = below(s, 2) ? k->len / 8 : 0;
    k->mates = false;
    s->maker.kind = k;
}

static void make_source(struct soak *s)
{
    s->maker.kind = &record_kinds[below(s, N_OF(record_kinds))];
    s->maker.seed = s->seed;
    if (below(s, LONG_OF) == 0)
        stretch(s);
    s->source_size = (uint32_t)record_block(&s->maker, s->source, sizeof s->source);
}

/* Makes any bytes: few or many different letters, in runs, and copies of earlier bytes. */
static void make_mixture(struct soak *s, uint8_t *to, uint32_t n)
{
    for (uint32_t at = 0; at < n;) {
        uint32_t how = below(s, 4), len = 1 + below(s, 1u << below(s, 12)), letters = 1 + below(s, 1u << below(s, 9));
        len = len < n - at ? len : n - at;
        uint32_t from = at ? below(s, at) : 0, base = below(s, 256);
        for (uint32_t i = 0; i < len; i++)
            to[at + i] = how == 0 && at ? to[from + i] : how == 1 ? (uint8_t)base : (uint8_t)(base + below(s, letters));
        at += len;
    }
}

static uint32_t make_size(struct soak *s)
{
    bool large = below(s, LARGE_OF) == 0;
    if (large && below(s, FULL_OF) == 0)
        return BGZF_FILL - below(s, 300);
    uint32_t n = below(s, 2u << below(s, large ? LARGE_LOG2 : SMALL_LOG2));
    return n < BGZF_FILL ? n : BGZF_FILL;
}

/* Returns where n bytes of records begin in the source: at the beginning of a record, except in one case of four. */
static uint32_t make_begin(struct soak *s, uint32_t n)
{
    uint32_t from = n < s->source_size ? below(s, s->source_size - n) : 0, record = 0;
    if (below(s, 4) == 0)
        return from;
    for (uint32_t next; (next = record + 4 + load_le32(s->source + record)) <= from; record = next)
        ;
    return record;
}

/* Makes the block s->in. Returns its size. */
static uint32_t make_block(struct soak *s)
{
    uint32_t n = make_size(s), how = below(s, 8);
    if (how == 0) {
        make_mixture(s, s->in, n);
        return n;
    }
    uint32_t from = make_begin(s, n), end = s->source_size - from;
    n = n < end ? n : end;
    memcpy(s->in, s->source + from, n);
    if (n > 0 && how < 4)
        for (uint32_t k = below(s, 6); k > 0; k--) {
            uint32_t at = below(s, n), len = 1 + below(s, n - at < 40 ? n - at : 40);
            make_mixture(s, s->in + at, len);
        }
    return n;
}

/* ---- readers ---- */

static bool zlib_reads(struct soak *s, const uint8_t *data, uint32_t size, uint32_t n)
{
    s->z.next_in = s->block + (data - s->block);
    s->z.avail_in = size;
    s->z.next_out = s->back;
    s->z.avail_out = sizeof s->back;
    return inflateReset(&s->z) == Z_OK && inflate(&s->z, Z_FINISH) == Z_STREAM_END && s->z.total_out == n
        && s->z.avail_in == 0;
}

static bool libdeflate_reads(struct soak *s, const uint8_t *data, uint32_t size, uint32_t n)
{
    size_t used, made;
    return libdeflate_deflate_decompress_ex(s->lib, data, size, s->back, sizeof s->back, &used, &made)
        == LIBDEFLATE_SUCCESS && used == size && made == n;
}

#ifdef WITH_ISAL
static bool isal_reads(struct soak *s, const uint8_t *data, uint32_t size, uint32_t n)
{
    isal_inflate_init(&s->isal);
    s->isal.next_in = s->block + (data - s->block);
    s->isal.avail_in = size;
    s->isal.next_out = s->back;
    s->isal.avail_out = sizeof s->back;
    return isal_inflate_stateless(&s->isal) == ISAL_DECOMP_OK && s->isal.total_out == n;
}
#endif

/* The scalar code must write deflated[size] from the block, as the vector code did. */
static void compare_scalar(struct soak *s, int level, uint64_t seed, uint32_t n, const uint8_t *deflated, uint32_t size)
{
    size_t made = bam_deflate(s->scalar[level], s->in, n, s->other, BGZF_MAX_BLOCK - BGZF_HEADER - BGZF_FOOTER);
    if (made == size && memcmp(s->other, deflated, size) == 0)
        return;
    fprintf(stderr, "the scalar code and the vector code write different blocks: -s %llu -n 1\n",
            (unsigned long long)seed);
    exit(1);
}

static bool same(struct soak *s, uint32_t n)
{
    bool is = n == 0 || memcmp(s->back, s->in, n) == 0;
    memset(s->back, 0xa5, n);
    return is;
}

static void read_back(struct soak *s, int level, uint64_t seed, uint32_t n, uint32_t size)
{
    struct bgzf_frame frame;
    if (bgzf_block_frame(s->block, size, &frame) != BGZF_OK || frame.size != size || frame.inflated_size != n)
        fault(seed, "the frame");
    const uint8_t *data = s->block + frame.data_offset;
    uint32_t of_data = size - frame.data_offset - BGZF_FOOTER;
    if (bgzf_block_inflate(s->codec[level], s->block, &frame, s->back) != BGZF_OK || !same(s, n))
        fault(seed, "our decoder");
    compare_scalar(s, level, seed, n, data, of_data);
    if (!zlib_reads(s, data, of_data, n) || !same(s, n))
        fault(seed, "zlib");
    if (!libdeflate_reads(s, data, of_data, n) || !same(s, n))
        fault(seed, "libdeflate");
#ifdef WITH_ISAL
    if (!isal_reads(s, data, of_data, n) || !same(s, n))
        fault(seed, "ISA-L");
#endif
}

/* htslib reads the batch as one file. s->packed goes to htslib, which frees it. */
static void read_batch(struct soak *s)
{
    uint8_t *back = room(s->plain_size + 1);
    memcpy(s->packed + s->packed_size, bgzf_block_eof, BGZF_EOF_SIZE);
    s->packed_size += BGZF_EOF_SIZE;
    hFILE *file = hopen("mem:", "r:", s->packed, s->packed_size);
    BGZF *fp = file ? bgzf_hopen(file, "r") : NULL;
    if (!fp || bgzf_read(fp, back, s->plain_size + 1) != (ssize_t)s->plain_size
        || memcmp(back, s->plain, s->plain_size) != 0 || bgzf_close(fp) != 0)
        fault(s->batch_seed, "htslib (this block or one of those that follow)");
    free(back);
    s->packed = room(PACKED);
    s->packed_size = s->plain_size = 0;
}

static void add_to_batch(struct soak *s, uint64_t seed, uint32_t n, uint32_t size)
{
    if (s->packed_size == 0)
        s->batch_seed = seed;
    memcpy(s->packed + s->packed_size, s->block, size);
    memcpy(s->plain + s->plain_size, s->in, n);
    s->packed_size += size;
    s->plain_size += n;
    if (s->packed_size >= BATCH || s->plain_size >= BATCH)
        read_batch(s);
}

static struct soak *soak_new(void)
{
    struct soak *s = room(sizeof *s);
    memset(s, 0, sizeof *s);
    s->codec[0] = bgzf_codec_new(1);
    s->codec[1] = bgzf_codec_new(BGZF_LEVEL_DEFAULT);
    s->scalar[0] = bam_deflate_new(BAM_DEFLATE_FAST, true);
    s->scalar[1] = bam_deflate_new(BAM_DEFLATE_DEFAULT, true);
    s->lib = libdeflate_alloc_decompressor();
    s->plain = room(BATCH + BGZF_MAX_BLOCK);
    s->packed = room(PACKED);
    if (!s->codec[0] || !s->codec[1] || !s->scalar[0] || !s->scalar[1] || !s->lib || inflateInit2(&s->z, -15) != Z_OK)
        die("out of memory");
    s->maker.genome = record_genome();
    return s;
}

int main(int argc, char **argv)
{
    uint64_t seed = 1, blocks = 100000, bytes = 0, k = 0;
    double limit = 1e9, begin = seconds(CLOCK_MONOTONIC);
    for (int opt; (opt = getopt(argc, argv, "s:n:t:")) != -1;)
        switch (opt) {
        case 's': seed = strtoull(optarg, NULL, 10); break;
        case 'n': blocks = strtoull(optarg, NULL, 10); break;
        case 't': limit = atof(optarg); break;
        default: die("the options are at the top of its source");
        }
    struct soak *s = soak_new();
    for (; k < blocks && seconds(CLOCK_MONOTONIC) - begin < limit; k++) {
        uint64_t own = seed + k;
        if (k == 0 || own % SOURCE_BLOCKS == 0) {
            s->seed = (own / SOURCE_BLOCKS) << 32;
            make_source(s);
        }
        s->seed = own;
        uint32_t n = make_block(s);
        for (int level = 0; level < LEVELS; level++) {
            uint32_t size = bgzf_block_deflate(s->codec[level], s->in, n, s->block);
            read_back(s, level, own, n, size);
            add_to_batch(s, own, n, size);
        }
        bytes += n;
    }
    read_batch(s);
    double took = seconds(CLOCK_MONOTONIC) - begin;
    printf("%llu blocks at two levels, %.1f MB, %.0f s, %.0f blocks/s: no fault (seeds %llu to %llu)\n",
           (unsigned long long)(2 * k), (double)bytes * 1e-6, took, 2 * (double)k / took, (unsigned long long)seed,
           (unsigned long long)(seed + k - 1));
    return 0;
}
