/* SPDX-License-Identifier: MIT */
/* Blocks of BAM records of many kinds, from a seed. Our encoder must not make them larger than a general encoder
 * does. */
#ifndef RECORD_KINDS_H
#define RECORD_KINDS_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include "base/endian_io.h"
#include "unit.h"

enum kind_tags {
    TAGS_NONE = 0,
    TAGS_ALIGNER = 1,             /* NM, MD, AS, XS, MC, RG */
    TAGS_CELL = 2,                /* CR, CY, CB, UR, UY, UB */
    TAGS_OQ = 4,                  /* qualities of 40 levels before recalibration */
    TAGS_METHYL = 8,              /* XM, XR, XG */
    TAGS_ML = 16,                 /* base modifications, a byte each */
    TAGS_UMI = 32,                /* RX, the end of the name */
    TAGS_MOVES = 64,              /* mv, two for a base */
    TAGS_OQ_STEPS = 128,          /* OQ, qualities that go up and down by one or two */
};

struct record_kind {
    const char *name;
    uint32_t len;                 /* length of reads; 0: SEQ is '*' */
    uint32_t levels;              /* number of qualities; 0: none (0xff) */
    uint32_t stay;                /* mean length of their runs; 0: 2 or 10; 1: they go up and down by one or two */
    uint32_t step;                /* mean bases from one read to the next; 0: anywhere */
    uint32_t places;              /* the only places where reads begin, if not 0 */
    uint32_t copies;              /* alignments of every read, one after another */
    unsigned tags;                /* enum kind_tags */
    bool unmapped;
    bool mates;                   /* a read and its mate, 200 bases further on, one after the other */
    bool spliced;
    bool varied;                  /* reads of any length from a quarter to all of len */
};

static const struct record_kind record_kinds[] = {
    {.name = "whole genome, 4 levels", .len = 150, .levels = 4, .step = 5, .tags = TAGS_ALIGNER},
    {.name = "whole genome, 4 levels, by name", .len = 150, .levels = 4, .tags = TAGS_ALIGNER, .mates = true},
    {.name = "whole genome, 8 levels, by name", .len = 150, .levels = 8, .tags = TAGS_ALIGNER, .mates = true},
    {.name = "whole genome, 40 levels", .len = 101, .levels = 40, .step = 4, .tags = TAGS_ALIGNER},
    {.name = "whole genome, 40 levels, by name", .len = 101, .levels = 40, .tags = TAGS_ALIGNER, .mates = true},
    {.name = "small steps", .len = 100, .levels = 40, .stay = 1, .step = 4, .tags = TAGS_ALIGNER},
    {.name = "small steps by name", .len = 76, .levels = 40, .stay = 1, .tags = TAGS_ALIGNER, .mates = true},
    {.name = "long runs", .len = 75, .levels = 4, .stay = 40, .step = 5, .tags = TAGS_ALIGNER},
    {.name = "runs by name", .len = 75, .levels = 4, .stay = 40, .places = 30, .tags = TAGS_ALIGNER, .mates = true},
    {.name = "low coverage", .len = 150, .levels = 4, .step = 2000, .tags = TAGS_ALIGNER},
    {.name = "unmapped, 4 levels", .len = 150, .levels = 4, .mates = true, .unmapped = true},
    {.name = "unmapped, 40 levels", .len = 150, .levels = 40, .mates = true, .unmapped = true},
    {.name = "unmapped amplicons", .len = 150, .levels = 4, .places = 6, .mates = true, .unmapped = true},
    {.name = "amplicons", .len = 150, .levels = 4, .step = 1, .places = 1, .tags = TAGS_ALIGNER},
    {.name = "amplicons, long runs", .len = 150, .levels = 4, .stay = 40, .step = 1, .places = 3, .tags = TAGS_ALIGNER},
    {.name = "amplicons, long runs, in no order", .len = 151, .levels = 4, .stay = 40, .places = 12, .tags = TAGS_ALIGNER},
    {.name = "75 bases, deep", .len = 75, .levels = 4, .step = 2, .tags = TAGS_ALIGNER},
    {.name = "100 bases, long runs, deep", .len = 100, .levels = 4, .stay = 60, .step = 2, .tags = TAGS_ALIGNER},
    {.name = "amplicons by name", .len = 250, .levels = 4, .places = 9, .tags = TAGS_ALIGNER, .mates = true},
    {.name = "secondary alignments by name", .len = 100, .levels = 4, .copies = 4, .tags = TAGS_ALIGNER},
    {.name = "secondary alignments by name, 40 levels", .len = 100, .levels = 40, .copies = 4, .tags = TAGS_ALIGNER},
    {.name = "spliced", .len = 100, .levels = 40, .step = 2, .tags = TAGS_ALIGNER, .spliced = true},
    {.name = "spliced, 4 levels, by name", .len = 100, .levels = 4, .places = 40, .tags = TAGS_ALIGNER, .spliced = true, .mates = true},
    {.name = "single cell", .len = 91, .levels = 4, .step = 3, .tags = TAGS_ALIGNER | TAGS_CELL, .spliced = true},
    {.name = "single cell by tag", .len = 91, .levels = 4, .places = 300, .tags = TAGS_ALIGNER | TAGS_CELL},
    {.name = "bisulfite", .len = 120, .levels = 4, .step = 6, .tags = TAGS_ALIGNER | TAGS_METHYL},
    {.name = "bisulfite, long runs", .len = 100, .levels = 4, .stay = 40, .step = 4, .tags = TAGS_ALIGNER | TAGS_METHYL},
    {.name = "bisulfite by name", .len = 120, .levels = 4, .tags = TAGS_METHYL, .mates = true},
    {.name = "OQ", .len = 150, .levels = 4, .step = 5, .tags = TAGS_ALIGNER | TAGS_OQ},
    {.name = "OQ by name", .len = 150, .levels = 8, .tags = TAGS_OQ, .mates = true},
    {.name = "no qualities", .len = 150, .step = 5, .tags = TAGS_ALIGNER},
    {.name = "no qualities by name", .len = 150, .tags = TAGS_ALIGNER, .mates = true},
    {.name = "no SEQ", .step = 5, .tags = TAGS_ALIGNER},
    {.name = "no SEQ by name", .tags = TAGS_ALIGNER, .mates = true},
    {.name = "no SEQ, no tags", .step = 5},
    {.name = "tiny", .len = 22, .levels = 4, .step = 1},
    {.name = "tiny, of few places", .len = 22, .levels = 40, .places = 200, .tags = TAGS_ALIGNER},
    {.name = "varied", .len = 200, .levels = 8, .step = 10, .tags = TAGS_ALIGNER, .varied = true},
    {.name = "HiFi", .len = 5000, .levels = 8, .step = 300, .tags = TAGS_ALIGNER | TAGS_ML, .varied = true},
    {.name = "nanopore", .len = 3000, .levels = 40, .step = 300, .tags = TAGS_ML, .varied = true},
    {.name = "nanopore, moves", .len = 6000, .levels = 40, .step = 300, .tags = TAGS_MOVES, .varied = true},
    {.name = "nanopore, short, no tags", .len = 900, .levels = 40, .varied = true},
    {.name = "long, 4 levels, unmapped", .len = 2000, .levels = 4, .unmapped = true, .varied = true},
    {.name = "36 bases of few places", .len = 36, .levels = 40, .places = 40, .tags = TAGS_ALIGNER},
    {.name = "UMIs, long runs, by name", .len = 75, .levels = 4, .stay = 100, .places = 300, .tags = TAGS_ALIGNER | TAGS_CELL, .mates = true},
    {.name = "UMIs in names", .len = 151, .levels = 4, .stay = 60, .step = 4, .tags = TAGS_ALIGNER | TAGS_UMI},
    {.name = "spliced, long runs, by name", .len = 151, .levels = 4, .stay = 60, .places = 60, .tags = TAGS_ALIGNER, .spliced = true, .mates = true},
    {.name = "bisulfite, small steps", .len = 76, .levels = 40, .stay = 1, .step = 4, .tags = TAGS_ALIGNER | TAGS_METHYL},
    {.name = "12 levels, far apart", .len = 101, .levels = 12, .places = 130, .tags = TAGS_ALIGNER},
    {.name = "OQ in small steps", .len = 150, .levels = 4, .step = 5, .tags = TAGS_ALIGNER | TAGS_OQ_STEPS},
    {.name = "OQ in small steps by name", .len = 150, .levels = 4, .tags = TAGS_ALIGNER | TAGS_OQ_STEPS, .mates = true},
    {.name = "40 bases, 4 levels, by name", .len = 40, .levels = 4, .stay = 18, .tags = TAGS_ALIGNER, .mates = true},
    {.name = "40 bases, 4 levels", .len = 40, .levels = 4, .stay = 18, .step = 3, .tags = TAGS_ALIGNER},
};

enum { RECORD_GENOME = 1 << 22, RECORD_LONGEST = 1 << 15 };

struct record_maker {
    const struct record_kind *kind;
    uint64_t seed;
    const uint8_t *genome;        /* RECORD_GENOME bases, one a byte: 1, 2, 4, 8 */
    uint32_t pos, x;              /* place of the last template: on the genome, on the flow cell */
    uint8_t seq[RECORD_LONGEST], qual[RECORD_LONGEST];
};

/* RECORD_GENOME bases, always the same ones; to be freed. */
static uint8_t *record_genome(void)
{
    uint8_t *genome = must_alloc(RECORD_GENOME);
    uint64_t seed = 1;
    for (uint32_t i = 0; i < RECORD_GENOME; i++)
        genome[i] = (uint8_t)(1 << unit_below(&seed, 4));
    return genome;
}

static uint32_t record_rnd(struct record_maker *m, uint32_t below) { return unit_below(&m->seed, below); }

/* Qualities that stay the same for a while: `levels` of them, mostly high ones. */
static void make_quals(struct record_maker *m, uint8_t *to, uint32_t len, uint32_t levels, uint32_t stay)
{
    static const uint8_t four[4] = {37, 25, 11, 2};
    uint32_t q = 0;
    stay = stay ? stay : levels > 8 ? 2 : 10;
    for (uint32_t i = 0; i < len; i++) {
        if (stay == 1) {
            uint32_t up = q + record_rnd(m, 5);
            q = up < 2 ? 0 : up > 14 ? 12 : up - 2;
        } else if (record_rnd(m, stay) == 0) {
            q = levels > 8 ? record_rnd(m, 1 + record_rnd(m, levels)) : record_rnd(m, 3) ? 0 : record_rnd(m, levels);
        }
        to[i] = levels == 0 ? 0xff : levels <= 4 ? four[q % 4] : levels <= 8 ? (uint8_t)(40 - 5 * q) : (uint8_t)(41 - q);
    }
}

/* len bases from pos on, with an error in 200; an intron of 1,000 after the first third. */
static void make_bases(struct record_maker *m, uint32_t pos, uint32_t len)
{
    for (uint32_t i = 0; i < len; i++) {
        uint32_t at = pos + i + (m->kind->spliced && i > len / 3 ? 1000 : 0);
        m->seq[i] = record_rnd(m, 200) ? m->genome[at % RECORD_GENOME] : (uint8_t)(1 << record_rnd(m, 4));
    }
}

static uint8_t *put_tag(uint8_t *to, const char *name, const char *value)
{
    to += sprintf((char *)to, "%sZ%s", name, value);
    return to + 1;
}

static uint8_t *put_letters(struct record_maker *m, uint8_t *to, const char *name, const char *of, uint32_t n)
{
    static char text[RECORD_LONGEST];
    uint32_t kinds = (uint32_t)strlen(of);
    for (uint32_t i = 0; i < n; i++)
        text[i] = of[record_rnd(m, kinds)];
    text[n] = 0;
    return put_tag(to, name, text);
}

static uint8_t *put_tags(struct record_maker *m, uint8_t *to, const char *name, uint32_t len)
{
    unsigned tags = m->kind->tags;
    char text[64];
    if (tags & TAGS_ALIGNER) {
        uint32_t nm = record_rnd(m, 4) ? 0 : 1 + record_rnd(m, 4), at = record_rnd(m, len + 1);
        snprintf(text, sizeof text, nm ? "%uA%u" : "%u", nm ? at : len, len - at);
        to = put_tag(to, "MD", text);
        to = put_tag(to, "PG", "bwa");
        memcpy(to, "NMC\0ASC\0XSC\0", 12);
        to[3] = (uint8_t)nm, to[7] = (uint8_t)(len - 5 * nm), to[11] = (uint8_t)record_rnd(m, 50);
        to = put_tag(to + 12, "RG", record_rnd(m, 2) ? "HT275DSXX.1" : "HT275DSXX.2");
    }
    if (tags & TAGS_CELL) {
        static const char *const bases = "ACGT";
        char cell[17];
        uint64_t of_cell = record_rnd(m, 300) * 0x9e3779b97f4a7c15u;
        for (uint32_t i = 0; i < 16; i++)
            cell[i] = bases[of_cell >> (2 * i + 20) & 3];
        cell[16] = 0;
        to = put_tag(put_tag(to, "CR", cell), "CB", cell);
        to = put_letters(m, to, "CY", "FFFFFFFF:,", 16);
        to = put_letters(m, to, "UB", bases, 12);
        to = put_letters(m, to, "UY", "FFFFFFFF:,", 12);
    }
    if (tags & TAGS_UMI)
        to = put_tag(to, "RX", strrchr(name, ':') + 1);
    if (tags & (TAGS_OQ | TAGS_OQ_STEPS)) {
        memcpy(to, "OQZ", 3);
        make_quals(m, to + 3, len, 40, tags & TAGS_OQ ? m->kind->stay : 1);
        for (uint32_t i = 0; i < len; i++)
            to[3 + i] = (uint8_t)(to[3 + i] + 33);
        to[3 + len] = 0;
        to += 4 + len;
    }
    if (tags & TAGS_METHYL) {
        to = put_letters(m, to, "XM", "..............zhxZ", len);
        to = put_tag(put_tag(to, "XR", "CT"), "XG", record_rnd(m, 2) ? "CT" : "GA");
    }
    if (tags & TAGS_ML) {
        uint32_t n = len / 20;
        memcpy(to, "MLBC", 4);
        store_le32(to + 4, n);
        for (uint32_t i = 0; i < n; i++)
            to[8 + i] = (uint8_t)(record_rnd(m, 3) ? record_rnd(m, 20) : 255 - record_rnd(m, 60));
        to += 8 + n;
    }
    if (tags & TAGS_MOVES) {
        memcpy(to, "mvBc", 4);
        store_le32(to + 4, 1 + 2 * len);
        to[8] = 5;
        for (uint32_t i = 0; i < 2 * len; i++)
            to[9 + i] = record_rnd(m, 20) < 9;
        to += 9 + 2 * len;
    }
    return to;
}

/* One record at `to`, of the read in m->seq and m->qual; returns its end. */
static uint8_t *put_record(struct record_maker *m, uint8_t *to, const char *name, uint32_t flag, uint32_t len)
{
    const struct record_kind *k = m->kind;
    uint8_t *p = to + 36;
    uint32_t clip = record_rnd(m, 12) ? 0 : record_rnd(m, len / 4 + 1);
    memset(to, 0, 36);
    store_le32(to + 4, k->unmapped ? UINT32_MAX : 2);
    store_le32(to + 8, k->unmapped ? UINT32_MAX : m->pos + clip);
    to[12] = (uint8_t)(strlen(name) + 1);
    to[13] = k->unmapped ? 0 : 60;
    store_le16(to + 14, (uint16_t)(k->unmapped ? 4680 : 4681 + (m->pos >> 14)));
    store_le16(to + 18, (uint16_t)flag);
    store_le32(to + 20, k->len ? len : 0);
    store_le32(to + 24, k->unmapped ? UINT32_MAX : 2);
    store_le32(to + 28, k->unmapped ? UINT32_MAX : m->pos + 200);
    store_le32(to + 32, k->unmapped ? 0 : 200 + len);
    p += sprintf((char *)p, "%s", name) + 1;
    uint8_t *ops = p;
    if (!k->unmapped && clip > 0)
        store_le32(p, clip << 4 | 4), p += 4;
    if (!k->unmapped && k->spliced) {
        store_le32(p, (len / 3 - (clip < len / 3 ? clip : 0)) << 4);
        store_le32(p + 4, 1000 << 4 | 3);
        p += 8;
    }
    if (!k->unmapped)
        store_le32(p, (len - (k->spliced ? len / 3 : clip)) << 4), p += 4;
    store_le16(to + 16, (uint16_t)((p - ops) / 4));
    for (uint32_t i = 0; k->len && i < len; i += 2)
        *p++ = (uint8_t)(m->seq[i] << 4 | (i + 1 < len ? m->seq[i + 1] : 0));
    if (k->len)
        memcpy(p, m->qual, len), p += len;
    p = put_tags(m, p, name, len);
    store_le32(to, (uint32_t)(p - to) - 4);
    return p;
}

static uint32_t next_pos(struct record_maker *m)
{
    const struct record_kind *k = m->kind;
    if (k->places) {
        uint32_t place = record_rnd(m, k->places);
        return place * 5003 + record_rnd(m, 2);
    }
    if (k->step == 0)
        return record_rnd(m, RECORD_GENOME);
    return m->pos + record_rnd(m, 2 * k->step + 1);
}

/* The coordinates on the flow cell grow in the order of names, or they are random. Numbers are drawn in separate
 * statements, as everywhere here, because compilers differ in the order of arguments. */
static void make_name(struct record_maker *m, char *to, size_t room)
{
    m->x = m->kind->step ? record_rnd(m, 30000) : (m->x + record_rnd(m, 300)) % 30000;
    uint32_t y = record_rnd(m, 36000), tile = m->kind->step ? record_rnd(m, 78) : 0;
    int n = snprintf(to, room, "A00261:419:HF5K3DSX2:2:%u:%u:%u", 1101 + tile, 1000 + m->x, 1000 + y);
    if (!(m->kind->tags & TAGS_UMI))
        return;
    to[n++] = ':';
    for (int end = n + 8; n < end;)
        to[n++] = "ACGT"[record_rnd(m, 4)];
    to[n] = 0;
}

/* Records of one template: two if there are mates, times copies. */
static uint8_t *put_template(struct record_maker *m, uint8_t *p)
{
    const struct record_kind *k = m->kind;
    uint32_t full = k->len ? k->len : 100, copies = k->copies ? k->copies : 1;
    char name[64];
    make_name(m, name, sizeof name);
    m->pos = next_pos(m);
    for (uint32_t mate = 0; mate <= k->mates; mate++, m->pos += 200) {
        uint32_t len = k->varied ? full / 4 + record_rnd(m, full * 3 / 4 + 1) : full;
        make_bases(m, m->pos, len);
        make_quals(m, m->qual, len, k->levels, k->stay);
        for (uint32_t c = 0; c < copies; c++) {
            p = put_record(m, p, name, (k->unmapped ? 77 : 99) + 64 * mate + (c ? 256 : 0), len);
            if (c + 1 < copies)
                m->pos = record_rnd(m, RECORD_GENOME);
        }
    }
    m->pos -= 200 * (1 + k->mates);
    return p;
}

/* A block of at most n bytes, of complete records; returns its size. */
static size_t record_block(struct record_maker *m, uint8_t *to, size_t n)
{
    const struct record_kind *k = m->kind;
    size_t most = (400 + 4 * (k->len ? k->len : 100)) * (k->copies ? k->copies : 1) * (1 + k->mates);
    uint8_t *p = to;
    while ((size_t)(p - to) + most <= n)
        p = put_template(m, p);
    return (size_t)(p - to);
}

#endif
