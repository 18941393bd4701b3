/* SPDX-License-Identifier: MIT */
/* bam_deflate against libdeflate: speed on one thread and size, on the blocks that `sort` would write.
 *
 *   make build/deflate_bench && build/deflate_bench [-m MB] [-r ROUNDS] [-c CODECS] [-e EVERY] sorted.bam...
 *
 * CODECS: letters out of 1 2 3 5 6 7 (libdeflate's levels), f (ours, fast), d (ours, default).
 * One of EVERY blocks is deflated (1: all of them).
 * Codecs take turns block by block; each block counts with its best round, so that other work of the machine is left
 * out. Every output is inflated once and compared. */
#include <stdbool.h>
#include <libdeflate.h>
#include "codec/bam_deflate.h"
#include "codec_bench.h"
#include "base/endian_io.h"

enum { BLOCK = 65280, OUT = 65536 + 64 };

static const char codec_name[] = "123567fd";
enum { N_CODECS = sizeof codec_name - 1, LEVEL_1 = 0, LEVEL_7 = 5 };

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

/* Cuts the records into blocks as the sink does: complete ones, unless one is longer than a block. */
static struct blocks load_blocks(const char *path, size_t max)
{
    size_t size = max;
    struct blocks b = {.data = load_records(path, &size, 0)};
    b.start = room((size / 1024 + 2) * sizeof *b.start);
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

static void bench_file(const char *path, struct codec *codec, const bool *wanted, const struct bench_options *o)
{
    static uint8_t out[OUT];
    struct blocks b = load_blocks(path, o->max);
    double *best = calloc(b.n * N_CODECS, sizeof *best);
    for (int i = 0; i < N_CODECS; i++)
        codec[i].size = 0, codec[i].seconds = 0;
    for (int r = 0; r < o->rounds; r++)
        for (int i = 0; i < N_CODECS; i++)
            for (size_t k = 0; wanted[i] && k < b.n; k += (size_t)o->every) {
                const uint8_t *in = b.data + b.start[k];
                size_t n = b.start[k + 1] - b.start[k];
                double t = seconds(CLOCK_THREAD_CPUTIME_ID);
                size_t size = compress(&codec[i], in, n, out);
                t = seconds(CLOCK_THREAD_CPUTIME_ID) - t;
                if (r == 0) {
                    check(in, n, out, size);
                    codec[i].size += size;
                }
                if (r == 0 || t < best[k * N_CODECS + (size_t)i])
                    best[k * N_CODECS + (size_t)i] = t;
            }
    uint64_t total = 0;
    for (size_t k = 0; k < b.n; k += (size_t)o->every)
        total += b.start[k + 1] - b.start[k];
    for (int i = 0; i < N_CODECS; i++) {
        if (!wanted[i])
            continue;
        for (size_t k = 0; k < b.n; k += (size_t)o->every)
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
    struct bench_options o = {12u << 20, 5, codec_name, NULL, 1};
    bench_options_parse(&o, argc, argv);
    struct codec codec[N_CODECS] = {0};
    bool wanted[N_CODECS];
    for (int i = 0; i < N_CODECS; i++) {
        wanted[i] = strchr(o.codecs, codec_name[i]) != NULL;
        if (codec_name[i] <= '9')
            codec[i].lib = libdeflate_alloc_compressor(codec_name[i] - '0');
        else
            codec[i].ours = bam_deflate_new(codec_name[i] == 'f' ? BAM_DEFLATE_FAST : BAM_DEFLATE_DEFAULT, false);
    }
    for (int i = optind; i < argc; i++)
        bench_file(argv[i], codec, wanted, &o);
    for (int i = 0; i < N_CODECS; i++) {
        if (codec[i].lib)
            libdeflate_free_compressor(codec[i].lib);
        free(codec[i].ours);
    }
    return 0;
}
