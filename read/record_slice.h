/* SPDX-License-Identifier: MIT */
/* Records of one input with their keys, in the order of the input. A merge takes one slice at a time. Serial. */
#ifndef RECORD_SLICE_H
#define RECORD_SLICE_H

#include "base/byte_buffer.h"
#include "bam/bam_record.h"
#include "order/bam_key.h"

/* A zero-initialised slice is empty. The owner of a slice frees it. */
struct record_slice {
    struct byte_buffer records;
    bool borrowed;               /* the records lie in memory of another module; they are not changed, and no records
                                  * are added */
    struct bam_key *keys;        /* keys of the records, or only their places; places are relative to records.p */
    size_t n, max;               /* number of records; number of keys that there is room for */
    size_t bytes;                /* bytes of the records alone, because kept blocks may lie between them
                                  * (codec/kept_block.h) */
    size_t out_of_order;         /* index of the first record that belongs before its predecessor; n: there is no such
                                  * record */
    uint64_t checksum;           /* sum of record_checksum() over the records, modulo 2^64 */
    uint64_t number;             /* number of its first record in the input, counted from 1 */
    uint64_t offset;             /* offset up to which the input's file was read for this slice; 0: not known */
};

/* Empties the slice; its memory stays. */
static inline void record_slice_clear(struct record_slice *slice)
{
    slice->records.n = slice->n = slice->out_of_order = slice->bytes = 0;
    slice->checksum = 0;
}

/* Empties the slice for further records, and makes its memory for records at most `most` bytes: otherwise long records
 * would leave every slice large. */
static inline void record_slice_reuse(struct record_slice *slice, size_t most)
{
    record_slice_clear(slice);
    byte_buffer_trim(&slice->records, most);
}

/* Returns the bytes of a slice that has listed n records of `size` bytes in all. */
size_t record_slice_memory(size_t size, size_t n);

void record_slice_free(struct record_slice *slice);

/* Empties the slice, and keeps only the memory of the keys. */
void record_slice_drop_records(struct record_slice *slice);

/* Lists the record that begins at records.p[start] and is the last one there. If `normalise` is set, the record is
 * normalised first: see bam_record_fix(). rule: as in struct bam_key_order. *fault: the reason why it cannot have a
 * key, or BAM_OK. -1: out of memory. */
int record_slice_list(struct record_slice *slice, size_t start, bool normalise, const struct sort_rule *rule,
                      enum bam_fault *fault);

/* As record_slice_list(), for a record that only needs to be found again: its key has only the place, and there is no
 * checksum. -1: out of memory. */
int record_slice_note(struct record_slice *slice, size_t start);

/* Returns how many records, from index `first` on, take at most `most` bytes together; at least one, which may take
 * more. *size: bytes that they take. The slice contains records only, and `first` is the index of one of them. */
uint32_t record_slice_fit(const struct record_slice *slice, size_t first, size_t most, size_t *size);

/* Returns whether record b, which may be in another slice, may follow record a. */
bool record_slice_follows(const struct record_slice *a, size_t number_a, const struct record_slice *b, size_t number_b,
                          const struct sort_rule *rule);

/* Appends the records of `more`, which come next in the input, to the records of `slice`. -1: out of memory. */
int record_slice_append(struct record_slice *slice, const struct record_slice *more, const struct sort_rule *rule);

#endif
