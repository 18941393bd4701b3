/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>
#include <unistd.h>
#include <libdeflate.h>
#include "hts/cram_count.h"

enum {
    DEFINITION = 26,             /* bytes before the first container */
    BLOCK_COMPRESSION_HEADER = 1,      /* type of a block */
};

/* The fields in the order of the file: first the header of a container, then the header of a block. Each byte of the
 * DEFINITION is a field of its own. */
enum field {
    LENGTH = DEFINITION, REFERENCE, START, SPAN, RECORDS, COUNTER, BASES, BLOCKS, N_LANDMARKS, LANDMARK, CRC,
    METHOD, TYPE, ID, COMPRESSED, SIZE, SLICE_REFERENCE, SLICE_START, SLICE_SPAN, SLICE_RECORDS, BLOCK_DATA, BLOCK_CRC,
    BLOCK_END,
};

void cram_count_start(struct cram_count *c, bool checks)
{
    *c = (struct cram_count){.checks = checks};
}

static void stop_counting(struct cram_count *c)
{
    c->rest = UINT64_MAX;
}

/* The number of bytes that follow the first byte of the field: as many as that byte has leading ones, at most 4 for
 * itf8 and 8 for ltf8. */
static uint8_t more_bytes(const struct cram_count *c, uint8_t first)
{
    unsigned ones = first == 0xff ? 8 : (unsigned)__builtin_clz(~(uint32_t)first << 24);
    bool is_ltf8 = c->field == BASES || (c->field == COUNTER && c->major > 2);
    if (c->field < LENGTH || c->field == METHOD || c->field == TYPE)
        return 0;
    if (c->field == LENGTH || c->field == CRC || c->field == BLOCK_CRC)
        return 3;
    return (uint8_t)(is_ltf8 || ones < 4 ? ones : 4);
}

/* The value of a little-endian number of 4 bytes. */
static uint32_t little_endian(const struct cram_count *c)
{
    return __builtin_bswap32((uint32_t)c->value);
}

/* The value of an itf8: the bits after the leading ones and the zero. If it is 5 bytes long: the 4 bits after the four
 * ones, and only 4 bits of the last byte. */
static uint32_t itf8(const struct cram_count *c)
{
    if (c->size == 5)
        return (uint32_t)(c->value >> 8 << 4) | (c->value & 15);
    return (uint32_t)c->value & (((uint32_t)1 << 7 * c->size) - 1);
}

static void end_definition(struct cram_count *c)
{
    static const char magic[] = "CRAM";
    if (c->field == 4) {
        c->major = (uint8_t)c->value;
        c->unknown = c->major != 2 && c->major != 3;
    }
    if (c->unknown || (c->field < 4 && c->value != (uint8_t)magic[c->field]))
        stop_counting(c);
}

/* Stores a length or a number. They are signed in the format, but never negative. */
static void keep(struct cram_count *c, uint32_t *as, uint32_t value)
{
    *as = value;
    if (value > INT32_MAX)
        stop_counting(c);
}

/* Returns whether the maps say that the container needs no reference. The first n bytes are at `maps`. The first map
 * (section 8.4) has names of two letters, each with its value; "RR" has the value 0 if no reference is needed. The list
 * of tags that it may hold never contains these bytes. */
static bool needs_no_reference(const uint8_t *maps, uint32_t n)
{
    return memmem(maps, n, "RR", sizeof "RR") != NULL;
}

static void end_maps(struct cram_count *c)
{
    if (c->n_maps > 0 && c->is_mixed && !needs_no_reference(c->maps, c->n_maps))
        c->mixes = true;
    c->n_maps = 0;
}

static void end_field(struct cram_count *c)
{
    switch (c->field) {
    case LENGTH:
        c->header = c->at - sizeof c->length;
        keep(c, &c->length, little_endian(c));
        break;
    case REFERENCE:
        c->is_mixed = itf8(c) == (uint32_t)-2;
        break;
    case RECORDS:
        keep(c, &c->n, itf8(c));
        break;
    case BLOCKS:
        keep(c, &c->blocks, itf8(c));
        break;
    case N_LANDMARKS:
        keep(c, &c->landmarks, itf8(c));
        c->headers = 1 + c->landmarks;
        break;
    case LANDMARK:
        c->landmarks--;
        break;
    case CRC:
        if (little_endian(c) != c->crc)
            stop_counting(c);
        break;
    case METHOD:
        c->block = c->at - 1;
        c->is_raw = c->value == 0;
        break;
    case TYPE:
        c->type = (uint8_t)c->value;
        break;
    case COMPRESSED:
        keep(c, &c->compressed, itf8(c));
        break;
    case SLICE_RECORDS:
        c->in_slices += itf8(c);
        break;
    case BLOCK_CRC:
        end_maps(c);
        if (c->damaged == 0 && little_endian(c) != c->crc)
            c->damaged = c->block;
        break;
    default:
        if (c->field < LENGTH)
            end_definition(c);
    }
    if (c->field >= SLICE_REFERENCE && c->field <= SLICE_RECORDS)
        c->compressed -= c->size;
}

/* After `size` more bytes comes the next block or, if no more blocks are checked, the next container. A container of
 * records ends at its stated end, the header's container not before its last block. */
static void skip(struct cram_count *c, uint64_t size)
{
    uint64_t left = c->end > c->at ? c->end - c->at : 0;
    bool is_header = c->inside == 0, ends = c->blocks == 0 || c->headers == 0 || (!is_header && size >= left);
    c->rest = !ends || (is_header && size > left) ? size : left;
    c->field = ends ? LENGTH : METHOD;
    c->crc = 0;
}

/* Ends the header of a container. The first container holds the file's header. */
static void end_header(struct cram_count *c)
{
    c->end = c->at + c->length;
    if (c->first == 0 && c->blocks > 0) {
        c->first = c->at;
    } else {
        c->records += c->n;
        c->container = c->header;
        c->inside = c->at;
        c->in_slices = 0;
        c->uncounted = false;
        c->blocks = c->checks && c->major > 2 ? c->blocks : 0;
    }
    skip(c, 0);
}

/* Ends the header of a block. Its data are needed if it is a compression header or a slice header. A slice header
 * begins with four numbers, the last of which is its number of records. */
static void end_block_header(struct cram_count *c)
{
    enum { UNMAPPED_SLICE = 3, SLICE_LEAST = 4 * 5 + 1 };
    uint64_t size = c->compressed + (c->major > 2 ? sizeof c->crc : 0);
    bool is_header = c->type >= BLOCK_COMPRESSION_HEADER && c->type <= UNMAPPED_SLICE;
    c->blocks--;
    if (c->inside == 0 || !is_header || c->at + size > c->end)
        skip(c, size);
    else if (c->type == BLOCK_COMPRESSION_HEADER || !c->is_raw || c->compressed < SLICE_LEAST) {
        c->uncounted = c->uncounted || c->type != BLOCK_COMPRESSION_HEADER;
        c->field = c->compressed > 0 ? BLOCK_DATA : BLOCK_CRC;
    }
}

static void next_field(struct cram_count *c)
{
    if (c->field != LANDMARK || c->landmarks == 0)
        c->field++;
    if (c->field == LANDMARK && c->landmarks == 0)
        c->field++;
    if (c->field == CRC && c->major == 2)
        c->field++;
    if (c->field == METHOD)
        end_header(c);
    else if (c->field == SLICE_REFERENCE)
        end_block_header(c);
    else if (c->field == BLOCK_END) {
        c->headers--;
        skip(c, 0);
    }
}

static void take_byte(struct cram_count *c, uint8_t byte)
{
    if (c->left == 0) {
        c->value = 0;
        c->left = c->size = (uint8_t)(1 + more_bytes(c, byte));
    }
    if (c->field >= LENGTH && c->field != CRC && c->field != BLOCK_CRC)
        c->crc = libdeflate_crc32(c->crc, &byte, 1);
    c->value = c->value << 8 | byte;
    c->at++;
    if (--c->left > 0)
        return;
    end_field(c);
    if (c->rest == 0)                            /* counting has not stopped */
        next_field(c);
}

/* Consumes data of a block that is checked. Returns the number of bytes consumed, at most n. */
static uint64_t take_data(struct cram_count *c, const uint8_t *bytes, uint64_t n)
{
    n = n < c->compressed ? n : c->compressed;
    c->crc = libdeflate_crc32(c->crc, bytes, n);
    if (c->type == BLOCK_COMPRESSION_HEADER) {
        uint32_t left = (uint32_t)sizeof c->maps - c->n_maps, kept = n < left ? (uint32_t)n : left;
        memcpy(c->maps + c->n_maps, bytes, kept);
        c->n_maps += kept;
    }
    c->at += n;
    c->compressed -= (uint32_t)n;
    if (c->compressed == 0)
        c->field = BLOCK_CRC;
    return n;
}

uint64_t cram_count_rest(const struct cram_count *c)
{
    return c->rest;
}

/* Returns whether a container of records ends here. */
static bool between(const struct cram_count *c)
{
    return c->field == LENGTH && c->left == 0 && c->rest == 0 && c->inside > 0;
}

/* one: stop at the end of a container. */
static void feed(struct cram_count *c, const uint8_t *bytes, uint64_t n, bool one)
{
    for (uint64_t done = 0; done < n && !(one && done > 0 && between(c));) {
        if (c->rest == 0 && c->field == BLOCK_DATA) {
            done += take_data(c, bytes + done, n - done);
            continue;
        }
        if (c->rest == 0) {
            take_byte(c, bytes[done++]);
            continue;
        }
        uint64_t part = c->rest < n - done ? c->rest : n - done;
        c->rest -= c->rest < UINT64_MAX ? part : 0;
        c->at += part;
        done += part;
    }
}

void cram_count_feed(struct cram_count *c, const uint8_t *bytes, uint64_t n)
{
    feed(c, bytes, n, false);
}

static int walk(struct cram_count *c, int fd, off_t begin, uint64_t end, bool one)
{
    enum { HEADER = 2048 };                      /* bytes: the header of a container and the blocks that are checked */
    uint8_t bytes[HEADER];
    for (uint64_t from = c->at; c->at < end && !(one && c->at > from && between(c));) {
        uint64_t left = end - c->at;
        if (c->rest > 0) {
            cram_count_feed(c, NULL, c->rest < left ? c->rest : left);
            continue;
        }
        ssize_t n = pread(fd, bytes, left < HEADER ? left : HEADER, begin + (off_t)c->at);
        if (n == 0)
            break;
        if (n > 0)
            feed(c, bytes, (size_t)n, one);
        else if (errno != EINTR)
            return -1;
    }
    return 0;
}

int cram_count_file(struct cram_count *c, int fd, off_t begin, uint64_t end)
{
    return walk(c, fd, begin, end, false);
}

int cram_count_next(struct cram_count *c, int fd, off_t begin, uint64_t end)
{
    uint64_t before = c->inside;
    if (walk(c, fd, begin, end, true) < 0)
        return -1;
    if (!between(c) || c->uncounted)
        c->in_slices = c->n;
    return c->inside != before;
}

/* Like htslib, ignores up to 3 bytes after a container. */
bool cram_count_agrees(const struct cram_count *c, uint64_t n)
{
    bool whole = c->first > 0 && c->field == LENGTH && c->rest == 0;
    return c->unknown || (whole && c->records == n);
}
