/* SPDX-License-Identifier: MIT */
/* bam_deflate against libdeflate: speed on one thread and size, on the blocks `sort` would write.
 *
 *   cc -O2 -D_GNU_SOURCE -I. -o build/deflate_bench \
 *      bench/deflate_bench.c bam_deflate.c deflate_fast.c deflate_lazy.c huffman.c -lhts -ldeflate
 *   build/deflate_bench [-m MB] [-r ROUNDS] [-c CODECS] sorted.bam...
 *
 * CODECS: letters out of 1567 (libdeflate's levels), f (ours, fast), d (ours, default).
 * Codecs take turns block by block; each block counts with its best round, so that what
 * else the machine does drops out. Every output is inflated once and compared. */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <htslib/bgzf.h>
#include <htslib/hts.h>
#include <libdeflate.h>
#include "bam_deflate.h"
#include "endian_io.h"

enum { BLOCK = 65280, OUT = 65536 + 64 };

static const char codec_name[] = "1567fd";
enum { N_CODECS = sizeof codec_name - 1, LEVEL_1 = 0, LEVEL_7 = 3 };

struct codec {
    struct libdeflate_compressor *lib;
    struct bam_deflate *ours;
    uint64_t size;
    double seconds;
};

struct blocks {
    uint8_t *data;
    uint32_t *start;             /* n + 1 of them */
    size_t n;
};

static void die(const char *what)
{
    fprintf(stderr, "deflate_bench: %s\n", what);
    exit(1);
}

static void skip(BGZF *fp, size_t n)
{
    for (char buf[4096]; n > 0;) {
        ssize_t got = bgzf_read(fp, buf, n < sizeof buf ? n : sizeof buf);
        if (got <= 0)
            die("short header");
        n -= (size_t)got;
    }
}

static uint32_t read_u32(BGZF *fp)
{
    uint8_t b[4];
    if (bgzf_read(fp, b, 4) != 4)
        die("short header");
    return load_le32(b);
}

static void skip_header(BGZF *fp)
{
    skip(fp, 4);
    skip(fp, read_u32(fp));
    for (uint32_t n = read_u32(fp); n > 0; n--) {
        skip(fp, read_u32(fp));
        skip(fp, 4);
    }
}

/* Cuts the records into blocks as the sink does: whole ones, unless one exceeds a block. */
static struct blocks load_blocks(const char *path, size_t max)
{
    struct blocks b = {.data = malloc(max)};
    BGZF *fp = bgzf_open(path, "r");
    if (!fp || !b.data)
        die(path);
    skip_header(fp);
    ssize_t got = bgzf_read(fp, b.data, max);
    size_t size = got > 0 ? (size_t)got : 0;
    bgzf_close(fp);
    b.start = calloc(size / 1024 + 2, sizeof *b.start);
    size_t from = 0, at = 0;
    while (at + 4 <= size) {
        size_t len = 4 + (size_t)load_le32(b.data + at);
        if (at + len - from > BLOCK && at > from) {
            b.start[b.n++] = (uint32_t)from;
            from = at;
        }
        at += len;
        for (; (at < size ? at : size) - from >= BLOCK; from += BLOCK)
            b.start[b.n++] = (uint32_t)from;
    }
    b.start[b.n] = (uint32_t)from;
    return b;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static size_t compress(struct codec *c, const uint8_t *in, size_t n, uint8_t *out)
{
    if (c->lib)
        return libdeflate_deflate_compress(c->lib, in, n, out, OUT);
    return bam_deflate(c->ours, in, n, out, OUT);
}

static void check(const uint8_t *in, size_t n, const uint8_t *out, size_t size)
{
    static struct libdeflate_decompressor *d;
    static uint8_t back[BLOCK];
    if (!d)
        d = libdeflate_alloc_decompressor();
    if (size == 0 || libdeflate_deflate_decompress(d, out, size, back, n, NULL) || memcmp(back, in, n))
        die("round trip failed");
}

static void bench_file(const char *path, struct codec *codec, const bool *wanted, size_t max, int rounds)
{
    static uint8_t out[OUT];
    struct blocks b = load_blocks(path, max);
    double *best = calloc(b.n * N_CODECS, sizeof *best);
    uint64_t total = 0;
    for (int i = 0; i < N_CODECS; i++)
        codec[i].size = 0, codec[i].seconds = 0;
    for (int r = 0; r < rounds; r++)
        for (int i = 0; i < N_CODECS; i++)
            for (size_t k = 0; wanted[i] && k < b.n; k++) {
                const uint8_t *in = b.data + b.start[k];
                size_t n = b.start[k + 1] - b.start[k];
                double t = now();
                size_t size = compress(&codec[i], in, n, out);
                t = now() - t;
                if (r == 0) {
                    check(in, n, out, size);
                    codec[i].size += size;
                    total += i == LEVEL_1 ? n : 0;
                }
                if (r == 0 || t < best[k * N_CODECS + (size_t)i])
                    best[k * N_CODECS + (size_t)i] = t;
            }
    total = b.start[b.n];
    for (int i = 0; i < N_CODECS; i++) {
        if (!wanted[i])
            continue;
        for (size_t k = 0; k < b.n; k++)
            codec[i].seconds += best[k * N_CODECS + (size_t)i];
        const char *base = strrchr(path, '/');
        printf("%-14.14s %c %8.1f MB/s  ratio %6.3f", base ? base + 1 : path, codec_name[i],
               (double)total / codec[i].seconds * 1e-6, (double)total / (double)codec[i].size);
        if (wanted[LEVEL_1])
            printf("  size/l1 %.4f", (double)codec[i].size / (double)codec[LEVEL_1].size);
        if (wanted[LEVEL_7])
            printf("  size/l7 %.4f", (double)codec[i].size / (double)codec[LEVEL_7].size);
        printf("\n");
    }
    free(best);
    free(b.start);
    free(b.data);
}

int main(int argc, char **argv)
{
    size_t max = 12u << 20;
    int rounds = 5;
    const char *letters = codec_name;
    for (int opt; (opt = getopt(argc, argv, "m:r:c:")) != -1;)
        switch (opt) {
        case 'm': max = strtoul(optarg, NULL, 10) << 20; break;
        case 'r': rounds = atoi(optarg); break;
        case 'c': letters = optarg; break;
        default: die("usage: deflate_bench [-m MB] [-r ROUNDS] [-c CODECS] BAM...");
        }
    struct codec codec[N_CODECS] = {0};
    bool wanted[N_CODECS];
    for (int i = 0; i < N_CODECS; i++) {
        wanted[i] = strchr(letters, codec_name[i]) != NULL;
        if (codec_name[i] <= '9')
            codec[i].lib = libdeflate_alloc_compressor(codec_name[i] - '0');
        else
            codec[i].ours = bam_deflate_new(codec_name[i] == 'f' ? BAM_DEFLATE_FAST : BAM_DEFLATE_DEFAULT);
    }
    for (int i = optind; i < argc; i++)
        bench_file(argv[i], codec, wanted, max, rounds);
    for (int i = 0; i < N_CODECS; i++) {
        if (codec[i].lib)
            libdeflate_free_compressor(codec[i].lib);
        bam_deflate_free(codec[i].ours);
    }
    return 0;
}
