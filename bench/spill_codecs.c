/* SPDX-License-Identifier: MIT */
/* Compares codecs for sorted runs in temporary files: CPU time of one thread for both directions, and size, on units of
 * complete records. A unit is written, read and inflated at once.
 *
 *   make build/spill_codecs
 *   build/spill_codecs [-m MB] [-r ROUNDS] [-c PREFIX,PREFIX...] [-u KiB,KiB...] sorted.bam...
 *
 * zstd and ISA-L take part if pkg-config finds them. Units go through a codec in batches;
 * each batch counts with its best round, so that other work of the machine is left out. Everything inflated is compared
 * with the input.
 *
 * "streams" is the one we use: record_pack. */
#include <stdbool.h>
#include <libdeflate.h>
#include <lz4.h>
#ifdef WITH_ZSTD
#include <zstd.h>
#endif
#ifdef WITH_ISAL
#include <isa-l/igzip_lib.h>
#endif
#include "bam_arena.h"
#include "codec/bgzf_block.h"
#include "codec_bench.h"
#include "base/endian_io.h"
#include "sort/record_pack.h"

enum {
    UNIT_MAX = 512 << 10,
    SLACK = 4096,                /* beyond every buffer: copies overrun */
    OUT_MAX = UNIT_MAX + UNIT_MAX / 64 + SLACK,
    BATCH = 4 << 20,
};

struct units {
    uint8_t *data;
    size_t *start;               /* n + 1 of them */
    size_t n;
};

struct codec {
    const char *name;
    int level;
    size_t unit_max;
    void *(*open)(int level);
    size_t (*deflate)(void *state, int level, const uint8_t *in, size_t n, uint8_t *out);
    bool (*inflate)(void *state, int level, const uint8_t *in, size_t size, uint8_t *out, size_t n);
};

/* ---- codecs of libraries ---- */

static size_t raw_deflate(void *state, int level, const uint8_t *in, size_t n, uint8_t *out)
{
    (void)state, (void)level;
    memcpy(out, in, n);
    return n;
}

static bool raw_inflate(void *state, int level, const uint8_t *in, size_t size, uint8_t *out, size_t n)
{
    (void)state, (void)level;
    memcpy(out, in, size);
    return size == n;
}

static void *ours_open(int level)
{
    return bgzf_codec_new(level);
}

static size_t ours_deflate(void *state, int level, const uint8_t *in, size_t n, uint8_t *out)
{
    (void)level;
    return bgzf_block_deflate(state, in, (uint32_t)n, out);
}

static bool ours_inflate(void *state, int level, const uint8_t *in, size_t size, uint8_t *out, size_t n)
{
    struct bgzf_frame frame;
    (void)level;
    return bgzf_block_frame(in, size, &frame) == BGZF_OK && frame.inflated_size == n
        && bgzf_block_inflate(state, in, &frame, out) == BGZF_OK;
}

struct streams {
    struct record_packer *packer;
    struct record_unpacker *unpacker;
    struct bam_key keys[UNIT_MAX / BAM_MIN_RECORD + 1];
};

static void *streams_open(int level)
{
    struct streams *s = room(sizeof *s);
    (void)level;
    s->packer = record_packer_new();
    s->unpacker = record_unpacker_new();
    return s;
}

static size_t streams_deflate(void *state, int level, const uint8_t *in, size_t n, uint8_t *out)
{
    struct streams *s = state;
    (void)level;
    for (size_t at = 0, size; at < n; at += size) {
        size = bam_record_size(bam_record_at(in + at));
        if (record_packer_add(s->packer, in + at, size) < 0)
            return 0;
    }
    return record_packer_pack(s->packer, out);
}

static bool streams_inflate(void *state, int level, const uint8_t *in, size_t size, uint8_t *out, size_t n)
{
    struct streams *s = state;
    struct unpacked to = {out, 0, n, s->keys, UNIT_MAX / BAM_MIN_RECORD + 1};
    (void)level;
    return record_unpack(s->unpacker, in, size, &to) == size && to.at == n;
}

struct lib { struct libdeflate_compressor *c; struct libdeflate_decompressor *d; };

static void *lib_open(int level)
{
    struct lib *s = room(sizeof *s);
    s->c = libdeflate_alloc_compressor(level);
    s->d = libdeflate_alloc_decompressor();
    return s;
}

static size_t lib_deflate(void *state, int level, const uint8_t *in, size_t n, uint8_t *out)
{
    (void)level;
    return libdeflate_deflate_compress(((struct lib *)state)->c, in, n, out, OUT_MAX);
}

static bool lib_inflate(void *state, int level, const uint8_t *in, size_t size, uint8_t *out, size_t n)
{
    (void)level;
    return !libdeflate_deflate_decompress(((struct lib *)state)->d, in, size, out, n, NULL);
}

#ifdef WITH_ZSTD
struct zstd { ZSTD_CCtx *c; ZSTD_DCtx *d; };

static void *zstd_open(int level)
{
    struct zstd *s = room(sizeof *s);
    s->c = ZSTD_createCCtx();
    s->d = ZSTD_createDCtx();
    ZSTD_CCtx_setParameter(s->c, ZSTD_c_compressionLevel, level);
    return s;
}

static size_t zstd_deflate(void *state, int level, const uint8_t *in, size_t n, uint8_t *out)
{
    (void)level;
    size_t size = ZSTD_compress2(((struct zstd *)state)->c, out, OUT_MAX, in, n);
    return ZSTD_isError(size) ? 0 : size;
}

static bool zstd_inflate(void *state, int level, const uint8_t *in, size_t size, uint8_t *out, size_t n)
{
    (void)level;
    return ZSTD_decompressDCtx(((struct zstd *)state)->d, out, n, in, size) == n;
}
#endif

#ifdef WITH_ISAL
/* Level -1: level 0 with a Huffman code made from the first unit, and kept. */
struct isal {
    struct isal_zstream z;
    struct inflate_state i;
    struct isal_hufftables huff;
    bool have_huff;
    uint8_t buf[ISAL_DEF_LVL1_DEFAULT];
};

static void *isal_open(int level)
{
    struct isal *s = room(sizeof *s);
    (void)level;
    s->have_huff = false;
    return s;
}

static size_t isal_deflate_unit(void *state, int level, const uint8_t *in, size_t n, uint8_t *out)
{
    struct isal *s = state;
    isal_deflate_stateless_init(&s->z);
    if (level < 0 && !s->have_huff) {
        static struct isal_huff_histogram h;
        isal_update_histogram((uint8_t *)in, (int)n, &h);
        if (isal_create_hufftables(&s->huff, &h))
            return 0;
        s->have_huff = true;
    }
    if (level < 0)
        isal_deflate_set_hufftables(&s->z, &s->huff, IGZIP_HUFFTABLE_CUSTOM);
    s->z.level = level > 0 ? (uint32_t)level : 0;
    s->z.level_buf = level > 0 ? s->buf : NULL;
    s->z.level_buf_size = level > 0 ? sizeof s->buf : 0;
    s->z.gzip_flag = IGZIP_DEFLATE;
    s->z.flush = NO_FLUSH;
    s->z.end_of_stream = 1;
    s->z.next_in = (uint8_t *)in;
    s->z.avail_in = (uint32_t)n;
    s->z.next_out = out;
    s->z.avail_out = OUT_MAX;
    return isal_deflate_stateless(&s->z) == COMP_OK ? s->z.total_out : 0;
}

static bool isal_inflate_unit(void *state, int level, const uint8_t *in, size_t size, uint8_t *out, size_t n)
{
    struct inflate_state *i = &((struct isal *)state)->i;
    (void)level;
    isal_inflate_init(i);
    i->crc_flag = ISAL_DEFLATE;
    i->next_in = (uint8_t *)in;
    i->avail_in = (uint32_t)size;
    i->next_out = out;
    i->avail_out = (uint32_t)n;
    return isal_inflate_stateless(i) == ISAL_DECOMP_OK && i->total_out == n;
}
#endif

static void *lz4_open(int level)
{
    (void)level;
    return room((size_t)LZ4_sizeofState());
}

static size_t lz4_deflate(void *state, int level, const uint8_t *in, size_t n, uint8_t *out)
{
    return (size_t)LZ4_compress_fast_extState(state, (const char *)in, (char *)out, (int)n, OUT_MAX, level);
}

static bool lz4_inflate(void *state, int level, const uint8_t *in, size_t size, uint8_t *out, size_t n)
{
    (void)state, (void)level;
    return LZ4_decompress_safe((const char *)in, (char *)out, (int)size, (int)n) == (int)n;
}


static const struct codec codecs[] = {
    {"memcpy", 0, UNIT_MAX, NULL, raw_deflate, raw_inflate},
#define LZ4(a) {"lz4 -" #a, a, UNIT_MAX, lz4_open, lz4_deflate, lz4_inflate}
    LZ4(1), LZ4(2), LZ4(4), LZ4(8), LZ4(16), LZ4(32),
#ifdef WITH_ZSTD
#define ZSTD(l) {"zstd " #l, l, UNIT_MAX, zstd_open, zstd_deflate, zstd_inflate}
    ZSTD(1), ZSTD(-1), ZSTD(-3), ZSTD(-5), ZSTD(-10),
#endif
    {"libdeflate 1", 1, UNIT_MAX, lib_open, lib_deflate, lib_inflate},
#ifdef WITH_ISAL
    {"igzip 0", 0, UNIT_MAX, isal_open, isal_deflate_unit, isal_inflate_unit},
    {"igzip 0 own code", -1, UNIT_MAX, isal_open, isal_deflate_unit, isal_inflate_unit},
    {"igzip 1", 1, UNIT_MAX, isal_open, isal_deflate_unit, isal_inflate_unit},
#endif
    {"ours 1", 1, BGZF_FILL, ours_open, ours_deflate, ours_inflate},
    {"streams", 0, UNIT_MAX, streams_open, streams_deflate, streams_inflate},
};

/* ---- the input ---- */

/* Cuts the records into units of complete ones; an incomplete one at the end is dropped. */
static void cut(struct units *u, size_t size, size_t unit)
{
    size_t from = 0, at = 0;
    u->n = 0;
    while (at + 4 <= size) {
        size_t len = 4 + (size_t)load_le32(u->data + at);
        if (len > unit)
            die("a record exceeds a unit");
        if (at + len > size)
            break;
        if (at + len - from > unit) {
            u->start[u->n++] = from;
            from = at;
        }
        at += len;
    }
    if (at > from)
        u->start[u->n++] = from;
    u->start[u->n] = at;
}

/* ---- measuring ---- */

static double cpu(void)
{
    return seconds(CLOCK_THREAD_CPUTIME_ID);
}

static void bench(const struct codec *c, const struct units *u, int rounds)
{
    static uint8_t *out, *back;
    static size_t size[BATCH / 1024];
    if (!out) {
        out = room(2 * BATCH + OUT_MAX);
        back = room(UNIT_MAX + SLACK);
    }
    void *state = c->open ? c->open(c->level) : NULL;
    double deflate = 0, inflate = 0;
    uint64_t total = 0, packed = 0;
    for (size_t from = 0, to; from < u->n; from = to) {
        double best[2] = {1e9, 1e9};
        for (to = from; to < u->n && u->start[to + 1] - u->start[from] <= BATCH; to++)
            ;
        for (int r = 0; r < rounds; r++) {
            uint8_t *o = out;
            double t = cpu();
            for (size_t k = from; k < to; k++) {
                size[k - from] = c->deflate(state, c->level, u->data + u->start[k], u->start[k + 1] - u->start[k], o);
                o += size[k - from];
            }
            t = cpu() - t;
            best[0] = t < best[0] ? t : best[0];
            o = out;
            t = cpu();
            for (size_t k = from; k < to; k++) {
                if (!c->inflate(state, c->level, o, size[k - from], back, u->start[k + 1] - u->start[k]))
                    die(c->name);
                o += size[k - from];
            }
            t = cpu() - t;
            best[1] = t < best[1] ? t : best[1];
        }
        uint8_t *o = out;
        for (size_t k = from; k < to; k++) {
            size_t n = u->start[k + 1] - u->start[k];
            memset(back, 0x55, n);
            if (size[k - from] == 0 || !c->inflate(state, c->level, o, size[k - from], back, n)
                || memcmp(back, u->data + u->start[k], n))
                die(c->name);
            o += size[k - from];
            packed += size[k - from];
            total += n;
        }
        deflate += best[0];
        inflate += best[1];
    }
    printf("  %-17s %8.0f %8.0f %8.3f %8.3f %8.3f %8.3f\n", c->name, (double)total / deflate * 1e-6,
           (double)total / inflate * 1e-6, (double)total / (double)packed, deflate / (double)total * 1e9,
           inflate / (double)total * 1e9, (deflate + inflate) / (double)total * 1e9);
    fflush(stdout);
}

static bool wanted(const char *name, const char *list)
{
    for (const char *p = list, *end; p && *p; p = *end ? end + 1 : end) {
        end = p + strcspn(p, ",");
        if (strncmp(name, p, (size_t)(end - p)) == 0)
            return true;
    }
    return !list;
}

int main(int argc, char **argv)
{
    struct bench_options o = {300u << 20, 3, NULL, "64,128,256", 0};
    bench_options_parse(&o, argc, argv);
    for (int i = optind; i < argc; i++) {
        size_t size = o.max;
        struct units u = {.data = load_records(argv[i], &size, SLACK)};
        u.start = room((size / 1024 + 2) * sizeof *u.start);
        for (const char *p = o.units; *p;) {
            char *end;
            size_t unit = strtoul(p, &end, 10) << 10;
            p = *end ? end + 1 : end;
            if (unit < 4096 || unit > UNIT_MAX)
                die("units are of 4 to 512 KiB");
            /* At 64 KiB the size of a BGZF block's data, so that ours can take part. */
            cut(&u, size, unit == 64 << 10 ? BGZF_FILL : unit);
            printf("%s, %zu KiB, %.0f MB\n  %-17s %8s %8s %8s %8s %8s %8s\n", argv[i], unit >> 10,
                   (double)size * 1e-6, "codec", "in MB/s", "out MB/s", "ratio", "in s/GB", "out s/GB", "s/GB");
            for (size_t c = 0; c < sizeof codecs / sizeof *codecs; c++)
                if (wanted(codecs[c].name, o.codecs) && u.start[1] <= codecs[c].unit_max
                    && (codecs[c].unit_max == UNIT_MAX || unit <= 64 << 10))
                    bench(&codecs[c], &u, o.rounds);
        }
        free(u.start);
        free(u.data);
    }
    return 0;
}
