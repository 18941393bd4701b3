/* SPDX-License-Identifier: MIT */
/* bam_inflate against other decoders: GB of inflated data per second on one thread, CRC-32 included.
 *
 *   make build/inflate_bench && build/inflate_bench [-m MB] [-r ROUNDS] [-c CODECS] in.bam...
 *
 * CODECS: letters out of o (ours), p (ours without special instructions of some processors), l (libdeflate), z (zlib),
 * i (ISA-L, if pkg-config finds it). They take turns; each block counts with its best round, so that other work of the
 * machine is left out. Blocks are inflated to adjacent places, as in `sort`. Every output is compared with its CRC. */
#include <stdbool.h>
#include <libdeflate.h>
#include <zlib.h>
#ifdef WITH_ISAL
#include <isa-l/igzip_lib.h>
#endif
#include "codec/bam_inflate.h"
#include "codec/bgzf_block.h"
#include "codec_bench.h"
#include "base/endian_io.h"

#ifdef WITH_ISAL
static const char codec_name[] = "opzil";
#else
static const char codec_name[] = "opzl";
#endif
enum { N_CODECS = sizeof codec_name - 1 };

struct block {
    const uint8_t *data;         /* deflate data */
    uint32_t size;
    uint32_t inflated_size;
    uint32_t crc;
    uint8_t *out;
};

struct blocks {
    struct block *at;
    size_t n;
    uint64_t inflated_size;
    uint8_t *file, *out;
};

struct codecs {
    struct bam_inflate *ours, *portable;
    struct libdeflate_decompressor *lib;
    z_stream z;
#ifdef WITH_ISAL
    struct inflate_state isal;
#endif
};

static uint8_t *load_file(const char *path, size_t max, size_t *size)
{
    FILE *fp = fopen(path, "rb");
    uint8_t *data = room(max);
    if (!fp)
        die(path);
    *size = fread(data, 1, max, fp);
    fclose(fp);
    return data;
}

static struct blocks load_blocks(const char *path, size_t max)
{
    struct blocks b = {0};
    struct bgzf_frame frame;
    size_t size;
    b.file = load_file(path, max, &size);
    b.at = calloc(size / BGZF_EOF_SIZE + 1, sizeof *b.at);
    for (size_t at = 0; at < size && !bgzf_block_frame(b.file + at, size - at, &frame); at += frame.size) {
        const uint8_t *footer = b.file + at + frame.size - BGZF_FOOTER, *data = b.file + at + frame.data_offset;
        b.at[b.n++] = (struct block){data, (uint32_t)(footer - data), frame.inflated_size, load_le32(footer), NULL};
        b.inflated_size += frame.inflated_size;
    }
    uint8_t *out = b.out = room(b.inflated_size);
    for (size_t i = 0; i < b.n; out += b.at[i++].inflated_size)
        b.at[i].out = out;
    return b;
}

static bool inflate_zlib(z_stream *z, const struct block *b)
{
    inflateReset(z);
    z->next_in = (Bytef *)b->data;
    z->avail_in = b->size;
    z->next_out = b->out;
    z->avail_out = b->inflated_size;
    return inflate(z, Z_FINISH) == Z_STREAM_END;
}

#ifdef WITH_ISAL
static bool inflate_isal(struct inflate_state *s, const struct block *b)
{
    isal_inflate_init(s);
    s->next_in = (uint8_t *)b->data;
    s->avail_in = b->size;
    s->next_out = b->out;
    s->avail_out = b->inflated_size;
    return isal_inflate_stateless(s) == ISAL_DECOMP_OK;
}
#endif

static bool inflate_by(char codec, struct codecs *c, const struct block *b)
{
    switch (codec) {
    case 'o': return bam_inflate(c->ours, b->data, b->size, b->out, b->inflated_size) == 0;
    case 'p': return bam_inflate(c->portable, b->data, b->size, b->out, b->inflated_size) == 0;
    case 'z': return inflate_zlib(&c->z, b);
#ifdef WITH_ISAL
    case 'i': return inflate_isal(&c->isal, b);
#endif
    default:  return !libdeflate_deflate_decompress(c->lib, b->data, b->size, b->out, b->inflated_size, NULL);
    }
}

static double time_block(char codec, struct codecs *c, const struct block *b)
{
    double t = seconds(CLOCK_MONOTONIC);
    if (!inflate_by(codec, c, b) || libdeflate_crc32(0, b->out, b->inflated_size) != b->crc)
        die("inflated wrongly");
    return seconds(CLOCK_MONOTONIC) - t;
}

static void bench_file(const char *path, struct codecs *c, const struct bench_options *o)
{
    const char *letters = o->codecs;
    struct blocks b = load_blocks(path, o->max);
    double *best = calloc(b.n * N_CODECS + 1, sizeof *best);
    for (int r = 0; r < o->rounds; r++)
        for (const char *codec = letters; *codec; codec++)
            for (size_t k = 0; k < b.n; k++) {
                double *d = &best[k * N_CODECS + (size_t)(codec - letters)], t = time_block(*codec, c, &b.at[k]);
                if (r == 0 || t < *d)
                    *d = t;
            }
    const char *name = strrchr(path, '/');
    printf("%-20.20s", name ? name + 1 : path);
    for (size_t i = 0; letters[i]; i++) {
        double sum = 0;
        for (size_t k = 0; k < b.n; k++)
            sum += best[k * N_CODECS + i];
        printf("  %c %6.3f", letters[i], (double)b.inflated_size / sum * 1e-9);
    }
    printf("\n");
    fflush(stdout);
    free(best);
    free(b.at);
    free(b.out);
    free(b.file);
}

int main(int argc, char **argv)
{
    struct bench_options o = {12u << 20, 5, codec_name, NULL, 0};
    bench_options_parse(&o, argc, argv);
    if (strspn(o.codecs, codec_name) != strlen(o.codecs) || strlen(o.codecs) > N_CODECS)
        die("no such codec");
    static struct codecs c;
    c.ours = bam_inflate_new(false);
    c.portable = bam_inflate_new(true);
    c.lib = libdeflate_alloc_decompressor();
    inflateInit2(&c.z, -15);
    for (int i = optind; i < argc; i++)
        bench_file(argv[i], &c, &o);
    free(c.ours);
    free(c.portable);
    libdeflate_free_decompressor(c.lib);
    inflateEnd(&c.z);
    return 0;
}
