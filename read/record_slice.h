/* SPDX-License-Identifier: MIT */
/* Records of one input with their keys, in the order of the input: what a merge takes at once. Serial. */
#ifndef RECORD_SLICE_H
#define RECORD_SLICE_H

#include "base/byte_buffer.h"
#include "bam/bam_record.h"
#include "order/bam_key.h"

/* A slice of all zeros is empty. Its owner frees it. */
struct record_slice {
    struct byte_buffer records;
    bool borrowed;               /* the records lie in memory of another; they are not changed, nor are more added */
    struct bam_key *keys;        /* of each record, or its place alone; places are relative to records.p */
    size_t n, max;               /* records; keys there is room for */
    size_t bytes;                /* of the records alone: kept blocks may lie between them (codec/kept_block.h) */
    size_t out_of_order;               /* the first record that belongs before the one in front of it; n: there is
                                          none */
    uint64_t checksum;           /* sum of record_checksum() over the records, modulo 2^64 */
    uint64_t number;             /* of its first record, in the input, from 1 up */
    uint64_t offset;             /* how far the input's file was read for it; 0: nobody knows */
};

/* Empties the slice; its memory stays. */
static inline void record_slice_clear(struct record_slice *slice)
{
    slice->records.n = slice->n = slice->out_of_order = slice->bytes = 0;
    slice->checksum = 0;
}

void record_slice_free(struct record_slice *slice);

/* Empties the slice, and keeps the memory of keys alone. */
void record_slice_drop_records(struct record_slice *slice);

/* Lists the record that begins at records.p[start] and is the last one there. It is normalised before, if `normalise`
 * says so: see bam_record_fix(). rule: as in struct bam_key_order. *fault: why it can have no key, or BAM_OK. -1: out
 * of memory. */
int record_slice_list(struct record_slice *slice, size_t start, bool normalise, const struct sort_rule *rule,
                      enum bam_fault *fault);

/* Likewise for a record that is only to be found again: no key but its place, no checksum. -1: out of memory. */
int record_slice_note(struct record_slice *slice, size_t start);

/* How many records, from number `first` on, take at most so many bytes together, of which *size are taken; one at
 * least, which may take more. The slice has records alone, and `first` is one of them. */
uint32_t record_slice_fit(const struct record_slice *slice, size_t first, size_t most, size_t *size);

/* Whether record b, of another slice, may stand behind record a. */
bool record_slice_follows(const struct record_slice *a, size_t number_a, const struct record_slice *b, size_t number_b,
                          const struct sort_rule *rule);

/* Appends the records of `more`, which come next in the input, to those of `slice`. -1: out of memory. */
int record_slice_append(struct record_slice *slice, const struct record_slice *more, const struct sort_rule *rule);

#endif
