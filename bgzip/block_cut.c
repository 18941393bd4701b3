/* SPDX-License-Identifier: MIT */
#include "base/endian_io.h"
#include "bgzip/block_cut.h"
#include "bgzip/gzi_index.h"
#include "codec/bgzf_block.h"

/* SAMv1 section 4.2: the meaning of the number at `next`. */
enum { AT_MAGIC, AT_TEXT, AT_REFS, AT_REF, AT_RECORD, AT_NONE };
enum { NUMBER = 4, LEAST_RECORD = 32 };

static uint32_t lines_end(const uint8_t *data, uint32_t n)
{
    uint32_t end = n;
    while (end > 0 && data[end - 1] != '\n')
        end--;
    return end > 0 ? end : n;
}

/* Moves from the number to the next one. Data that are not BAM have no more fields. */
static void pass_field(struct block_cut *cut, uint32_t number)
{
    switch (cut->at_what) {
    case AT_MAGIC:
        cut->next += NUMBER;
        cut->at_what = AT_TEXT;
        break;
    case AT_TEXT:
        cut->next += NUMBER + (uint64_t)number;
        cut->at_what = AT_REFS;
        break;
    case AT_REFS:
        cut->next += NUMBER;
        cut->refs = number;
        cut->at_what = number ? AT_REF : AT_RECORD;
        break;
    case AT_REF:
        cut->next += NUMBER + (uint64_t)number + NUMBER;
        cut->at_what = --cut->refs ? AT_REF : AT_RECORD;
        break;
    default:
        cut->next += NUMBER + (uint64_t)number;
        if (number < LEAST_RECORD)
            cut->at_what = AT_NONE;
    }
}

/* The end of the last complete record. A number is never cut, so `next` is never before `at`. */
static uint32_t records_end(struct block_cut *cut, const uint8_t *data, uint32_t n)
{
    uint32_t end = 0;
    while (cut->at_what != AT_NONE && cut->next + NUMBER <= cut->at + n) {
        uint32_t at = (uint32_t)(cut->next - cut->at);
        if (cut->at_what == AT_RECORD)
            end = at;
        pass_field(cut, load_le32(data + at));
    }
    if (cut->at_what != AT_NONE && cut->next <= cut->at + n)
        end = (uint32_t)(cut->next - cut->at);
    return end > 0 ? end : n;
}

static uint32_t places_end(struct block_cut *cut, uint32_t n)
{
    const struct gzi_index *index = cut->places;
    while (cut->n_places < index->n && index->places[cut->n_places].data <= cut->at)
        cut->n_places++;
    uint64_t left = cut->n_places < index->n ? index->places[cut->n_places].data - cut->at : n;
    return left < n ? (uint32_t)left : n;
}

uint32_t block_cut_next(struct block_cut *cut, const uint8_t *data, uint32_t n)
{
    uint32_t size = n;
    if (cut->kind == CUT_PLACES)
        size = places_end(cut, n);
    else if (n == BGZF_FILL && cut->kind == CUT_LINES)
        size = lines_end(data, n);
    else if (n == BGZF_FILL && cut->kind == CUT_RECORDS)
        size = records_end(cut, data, n);
    cut->at += size;
    return size;
}

bool block_cut_lacks_places(const struct block_cut *cut)
{
    const struct gzi_index *index = cut->kind == CUT_PLACES ? cut->places : NULL;
    return index && index->n > 0 && index->places[index->n - 1].data > cut->at;
}
