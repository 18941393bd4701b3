/* SPDX-License-Identifier: MIT */
/* One alignment record, viewed where it lies in the uncompressed BAM stream.
 *
 *   block_size | refID pos l_read_name mapq bin n_cigar flag l_seq next_* tlen | name\0 cigar seq qual aux
 *   <-- 4 ---> | <------------------- 32 -----------------------------------> | <-------- data[] -------->
 *
 * Format: SAMv1 section 4.2. No function here copies a record or uses threads. */
#ifndef BAM_RECORD_H
#define BAM_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include "base/endian_io.h"

/* All fields are bytes, so the struct has alignment 1 and no padding, and can be laid over any address of the
 * stream. */
struct bam_record {
    uint8_t block_size[4];   /* bytes that follow this field */
    uint8_t ref_id[4];       /* -1: no reference */
    uint8_t pos[4];          /* 0-based leftmost position; -1: none */
    uint8_t name_len;        /* with its NUL */
    uint8_t mapq;
    uint8_t bin[2];
    uint8_t n_cigar[2];
    uint8_t flag[2];
    uint8_t seq_len[4];
    uint8_t next_ref_id[4];
    uint8_t next_pos[4];
    uint8_t tlen[4];
    uint8_t data[];          /* name, CIGAR, SEQ, QUAL, tags */
};

enum {
    BAM_FIXED = 36,          /* bytes before data[], with block_size */
    BAM_MIN_RECORD = BAM_FIXED + 1,   /* a name that is only a NUL */
    BAM_NAME_SIZE_MAX = 255, /* bytes of a name that samtools accepts, with its NUL */
    BAM_INLINE_OPS_MAX = 0xffff,      /* operations of a CIGAR; more go into a CG tag */
};
_Static_assert(sizeof(struct bam_record) == BAM_FIXED, "no padding in the view");

/* Returns the record whose bytes begin at p. */
static inline const struct bam_record *bam_record_at(const uint8_t *p)
{
    return (const struct bam_record *)p;
}

/* Faults of a record, as phrases for an error message. */
#define BAM_FAULTS(X) \
    X(BAM_OK, "no fault") \
    X(BAM_CUT, "the record runs past the end of the data (truncated file?)") \
    X(BAM_BAD_SIZE, "block_size is not that of a record") \
    X(BAM_BAD_REF, "refID names no @SQ line of the header") \
    X(BAM_BAD_NEXT_REF, "next_refID names no @SQ line of the header") \
    X(BAM_BAD_NAME, "the read name does not end in NUL; samtools view -b adds it") \
    X(BAM_BAD_LENGTHS, "name, CIGAR and SEQ do not fit into block_size") \
    X(BAM_BAD_CIGAR, "CIGAR and SEQ differ in length") \
    X(BAM_BAD_CG, "its CIGAR in the CG tag cannot be read") \
    X(BAM_HEADER, "another BAM header begins: cat has joined files") \
    /* a tag that the order needs is missing or has a wrong type: */ \
    X(BAM_NO_MC, "a paired read has no MC tag; run samtools fixmate on the file first") \
    X(BAM_NO_MC_SUPPLEMENTARY, "a paired supplementary read has no MC tag; samtools fixmate sets it since version " \
      "1.24. Run that, or leave such reads out: samtools view -F 0x800") \
    X(BAM_NO_MC_SECONDARY, "a paired secondary read has no MC tag, and samtools fixmate sets none; leave such reads " \
      "out: samtools view -F 0x100") \
    X(BAM_BAD_MC, "its MC tag is not a string that holds a CIGAR") \
    X(BAM_BAD_MI, "its MI tag is not a string") \
    X(BAM_BAD_CB, "its CB tag is not a string")

#define BAM_FAULT_NUMBER(fault, text) fault,
enum bam_fault { BAM_FAULTS(BAM_FAULT_NUMBER) };

/* The result of bam_record_check(). */
struct bam_verdict {
    enum bam_fault fault;
    int needs_fix;           /* differs from what htslib would write: call bam_record_fix() */
};

/* A record in memory, or a segment of a record that is too long for one output block (RECORD_CHECKSUM_SEGMENT). */
struct record_ref {
    const uint8_t *data;
    uint32_t size;
    uint16_t segment;        /* the segment's number; 0: a record, or its first segment */
    uint16_t input;          /* the input of a merge that it comes from, where that is needed (write/copied_blocks.h) */
};

/* Changes a copy of a record in place, on its way to the output. */
typedef void record_finish_fn(uint8_t *record);

/* Size of the record in bytes, including its block_size field. */
static inline size_t bam_record_size(const struct bam_record *r)
{
    return 4 + (size_t)load_le32(r->block_size);
}

/* Returns the size stated by a record that begins with head[4] and was not checked. An impossible size is returned as
 * BAM_FIXED, which is enough bytes for bam_record_check() to find the fault. */
static inline uint64_t bam_record_said_size(const uint8_t *head)
{
    uint64_t size = 4 + (uint64_t)load_le32(head);
    return size < BAM_FIXED ? BAM_FIXED : size;
}

/* One past the last byte of the record, where its tags end. */
static inline const uint8_t *bam_record_end(const struct bam_record *r)
{
    return (const uint8_t *)r + bam_record_size(r);
}

static inline int32_t bam_record_ref_id(const struct bam_record *r)
{
    return (int32_t)load_le32(r->ref_id);
}

static inline int32_t bam_record_pos(const struct bam_record *r)
{
    return (int32_t)load_le32(r->pos);
}

static inline uint16_t bam_record_flag(const struct bam_record *r)
{
    return load_le16(r->flag);
}

static inline const char *bam_record_name(const struct bam_record *r)
{
    return (const char *)r->data;
}

/* Number of bytes of a record before its SEQ. */
static inline size_t bam_record_seq_at(const struct bam_record *r)
{
    return BAM_FIXED + r->name_len + 4 * (size_t)load_le16(r->n_cigar);
}

static inline const uint8_t *bam_record_seq(const struct bam_record *r)
{
    return (const uint8_t *)r + bam_record_seq_at(r);
}

/* Checks the record at p, of which avail bytes may be read. The rules are those of htslib's bam_read1(): sizes,
 * reference ids below n_ref, a NUL at the end of the name, CIGAR against the length of SEQ. The fault is BAM_CUT if the
 * record does not end within avail, and BAM_HEADER if a header begins there. */
struct bam_verdict bam_record_check(const uint8_t *p, size_t avail, int32_t n_ref);

/* Returns whether a record with this fault only lacks the NUL of its name, which htslib would add. */
static inline bool bam_record_can_close(const uint8_t *record, enum bam_fault fault)
{
    return fault == BAM_BAD_NAME && bam_record_at(record)->name_len < UINT8_MAX;
}

struct byte_buffer;

/* Appends such a record with the NUL after its name. It is one byte larger, and not checked. -1: out of memory. */
int bam_record_close(struct byte_buffer *to, const uint8_t *record);

/* Returns whether the lengths in the record agree with this size. They do in a checked record unless memory has changed
 * since. Call it before the lengths are used again, because the checksum finds such a change only at the end. */
static inline bool bam_record_fits(const struct bam_record *r, size_t size)
{
    uint64_t l_seq = load_le32(r->seq_len);
    return bam_record_size(r) == size
        && bam_record_seq_at(r) + (l_seq + 1) / 2 + l_seq <= size;
}

#define BAM_RECORD_CHANGED "a record changed in memory after it was read. Memory may be faulty, or this is our bug: " \
                           "please report it"

/* Rewrites the record in place as htslib would write what it has read: computes bin from position and CIGAR, and moves
 * a CIGAR in the CG tag to where it belongs (SAMv1 section 4.2.2). The record keeps its start and never grows;
 * block_size has its new size. Returns 0, or -1 if out of memory. */
int bam_record_fix(struct bam_record *r);

/* Returns whether the record begins after the end of its reference. lengths: by reference; NULL: not checked. */
static inline bool bam_record_is_beyond(const struct bam_record *r, const int64_t *lengths)
{
    int32_t reference = bam_record_ref_id(r);
    return lengths && reference >= 0 && bam_record_pos(r) >= lengths[reference];
}

/* Returns whether the value with the type byte at `type` is a string. */
static inline bool bam_record_aux_is_text(const uint8_t *type)
{
    return *type == 'Z' || *type == 'H';
}

/* One past the first NUL in [p, end), or end. Most texts are short, so it compares eight bytes at a time. */
static inline const uint8_t *bam_record_text_skip(const uint8_t *p, const uint8_t *end)
{
    for (; end - p >= 8; p += 8) {
        uint64_t v = load_le64(p), nul = (v - 0x0101010101010101) & ~v & 0x8080808080808080;
        if (nul)
            return p + __builtin_ctzll(nul) / 8 + 1;
    }
    for (; p < end; p++)
        if (*p == 0)
            return p + 1;
    return end;
}

/* Size of one value of this type in bytes; 0 if the type has no fixed size. Branches instead of a table: the processor
 * predicts the types of a file's tags, so the next tag need not wait for this one's. */
static inline size_t bam_record_aux_scalar_size(uint8_t type)
{
    if (type == 'C' || type == 'c' || type == 'A')
        return 1;
    if (type == 'i' || type == 'I' || type == 'f')
        return 4;
    if (type == 'S' || type == 's')
        return 2;
    return type == 'd' ? 8 : 0;
}

/* Size of the number type that htslib chooses for the value: the largest number of a type gets the next type. */
static inline size_t bam_record_aux_width(uint32_t value)
{
    return value < UINT8_MAX ? 1 : value < UINT16_MAX ? 2 : 4;
}

/* Writes the type byte and the value, in 1, 2 or 4 bytes. */
static inline void bam_record_aux_store(uint8_t *type, uint32_t value, size_t width)
{
    uint8_t bytes[4];
    store_le32(bytes, value);
    *type = width == 1 ? 'C' : width == 2 ? 'S' : 'I';
    memcpy(type + 1, bytes, width);
}

/* The value of a tag that holds an integer, whose type byte is at `type`; `none` if it holds something else. */
int64_t bam_record_aux_int(const uint8_t *type, int64_t none);

/* One past the value whose type byte is at p, which must be before end; NULL if the value is broken. As in htslib, a
 * text without a NUL may end with the record. */
static inline const uint8_t *bam_record_aux_skip(const uint8_t *p, const uint8_t *end)
{
    uint8_t type = *p++;
    if (type == 'Z' || type == 'H')
        return bam_record_text_skip(p, end);
    uint64_t size = bam_record_aux_scalar_size(type);
    if (type == 'B' && end - p >= 5 && bam_record_aux_scalar_size(p[0]))
        size = 5 + (uint64_t)bam_record_aux_scalar_size(p[0]) * load_le32(p + 1);
    return size && size <= (uint64_t)(end - p) ? p + size : NULL;
}

/* Returns whether the value in [type, next) is closed by a NUL, or is not text. */
static inline bool bam_record_aux_is_closed(const uint8_t *type, const uint8_t *next)
{
    return !bam_record_aux_is_text(type) || (next > type + 1 && next[-1] == 0);
}

/* One past the tag at p, at least three bytes of which must be readable. NULL if it cannot be read, or is a text
 * without its NUL. */
static inline const uint8_t *bam_record_aux_next(const uint8_t *p, const uint8_t *end)
{
    const uint8_t *next = bam_record_aux_skip(p + 2, end);
    return next && bam_record_aux_is_closed(p + 2, next) ? next : NULL;
}

/* Finds the first tag named tag[2] among the aux fields [p, end). Returns a pointer to its type byte, or NULL if it is
 * absent. Sets *bad to 1 if the fields themselves are broken, else to 0. */
const uint8_t *bam_record_aux_find(const uint8_t *p, const uint8_t *end, const char tag[2], int *bad);

/* The n operations of a checked record's CIGAR, little-endian. If they are kept in the CG tag, returns those and sets
 * *tag to the first byte of that tag; otherwise *tag is NULL. */
const uint8_t *bam_record_cigar(const struct bam_record *r, uint32_t *n, const uint8_t **tag);

/* Number of reference bases that a checked record covers. As in htslib's bam_endpos(), one if it is unmapped or covers
 * none. */
int64_t bam_record_ref_span(const struct bam_record *r);

/* The sum of the record's qualities that are 15 or more. markdup keeps the read with the highest sum. */
uint64_t bam_record_score(const struct bam_record *r);

/* Returns the start of a checked record's aux fields, which end with the record. */
const uint8_t *bam_record_aux(const struct bam_record *r);

/* The fault as a phrase for an error message. A constant string. */
const char *bam_fault_text(enum bam_fault fault);

#endif
