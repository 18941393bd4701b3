/* SPDX-License-Identifier: MIT */
#include "base/endian_io.h"
#include "bgzip/block_cut.h"
#include "bgzip/gzi_index.h"
#include "codec/bgzf_block.h"

/* SAMv1 section 4.2: what the number at `next` counts. */
enum { PART_MAGIC, PART_TEXT, PART_REFS, PART_REF, PART_RECORD, PART_NONE };
enum { NUMBER = 4, LEAST_RECORD = 32 };

static uint32_t lines_end(const uint8_t *data, uint32_t n)
{
    uint32_t end = n;
    while (end > 0 && data[end - 1] != '\n')
        end--;
    return end > 0 ? end : n;
}

/* Goes from the number to the next one. What is no BAM has no more parts. */
static void pass_part(struct block_cut *cut, uint32_t number)
{
    switch (cut->part) {
    case PART_MAGIC:
        cut->next += NUMBER;
        cut->part = PART_TEXT;
        break;
    case PART_TEXT:
        cut->next += NUMBER + (uint64_t)number;
        cut->part = PART_REFS;
        break;
    case PART_REFS:
        cut->next += NUMBER;
        cut->refs = number;
        cut->part = number ? PART_REF : PART_RECORD;
        break;
    case PART_REF:
        cut->next += NUMBER + (uint64_t)number + NUMBER;
        cut->part = --cut->refs ? PART_REF : PART_RECORD;
        break;
    default:
        cut->next += NUMBER + (uint64_t)number;
        if (number < LEAST_RECORD)
            cut->part = PART_NONE;
    }
}

/* The end of the last record that is whole. A number is never cut, so `next` is never before `at`. */
static uint32_t records_end(struct block_cut *cut, const uint8_t *data, uint32_t n)
{
    uint32_t end = 0;
    while (cut->part != PART_NONE && cut->next + NUMBER <= cut->at + n) {
        uint32_t at = (uint32_t)(cut->next - cut->at);
        if (cut->part == PART_RECORD)
            end = at;
        pass_part(cut, load_le32(data + at));
    }
    if (cut->part != PART_NONE && cut->next <= cut->at + n)
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
