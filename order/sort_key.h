/* SPDX-License-Identifier: MIT */
/* The orders of `samtools sort`: a 64-bit key that decides most comparisons
 * without touching the record, and a comparison for the rest. Serial. */
#ifndef SORT_KEY_H
#define SORT_KEY_H

#include <stdbool.h>
#include <stdint.h>
#include <htslib/sam.h>
#include "bam/bam_record.h"
#include "bam/far_pos.h"

enum sort_by {
    SORT_COORDINATE,
    SORT_NAME_NATURAL,           /* -n */
    SORT_NAME_ASCII,             /* -N */
    SORT_NAME_PICARD,            /* --picard: htsjdk's queryname order */
    SORT_TAG,                    /* -t TAG, then by `then` */
    SORT_TEMPLATE,               /* --template-coordinate */
    SORT_MINHASH,                /* -M, see minhash.h */
};

/* What the command line asks for. */
struct sort_order {
    enum sort_by by;
    enum sort_by then;           /* of SORT_TAG: SORT_COORDINATE or a name order */
    char tag[2];                 /* of SORT_TAG */
    int kmer;                    /* these five: of SORT_MINHASH */
    int window;
    bool no_reverse, squash;
    const char *index_fasta;     /* NULL: none */
};

/* An order made ready for one input: @RG libraries, name shape. Tasks share it;
 * it does not change after sort_key_learn(). */
struct sort_rule;

/* sam stays the caller's and may be changed afterwards. NULL: no memory. */
struct sort_rule *sort_rule_new(const struct sort_order *order, sam_hdr_t *sam);
void sort_rule_free(struct sort_rule *rule);

/* Looks at the first n records of the input to choose what the 64 bits of the
 * key are best spent on (the prefix common to the names, the shape of what
 * follows, the alphabet of the tag). Any record may differ from the sample:
 * keys stay right, they only decide less. Optional; once, before the first key. */
void sort_rule_learn(struct sort_rule *rule, const struct bam_record *const *records, size_t n);

/* The key of a checked record: if a comes before b then key(a) <= key(b).
 * Faults: those of orders that need a tag (BAM_NO_MC and so on). */
enum bam_fault sort_key_make(const struct sort_rule *rule, const struct bam_record *r, uint64_t *key);

/* The whole order: < 0, 0 (a tie: input order decides), > 0. The records are
 * checked ones for which sort_key_make() had no fault. */
int sort_key_compare(const struct sort_rule *rule, const struct bam_record *a, const struct bam_record *b);

/* Whether b, with its key, may stand behind a. */
bool sort_key_in_order(const struct sort_rule *rule, uint64_t key_a, const struct bam_record *a, uint64_t key_b,
                       const struct bam_record *b);

enum sort_part {
    SORT_PART,                   /* there is one */
    SORT_TIE,                    /* there is none left: input order decides */
    SORT_COMPARE,                /* none is known: only sort_key_compare() decides */
};

/* For records that share the key and all parts before it: part `number` (0, 1, ...) of what
 * decides between them. a before b gives part(a) <= part(b); what is returned is the same for all
 * of them. Makes a list of them one to be sorted by keys again. */
enum sort_part sort_key_part(const struct sort_rule *rule, const struct bam_record *r, unsigned number,
                             uint64_t *part);

/* Whether equal keys are always ties, so that records are never compared. */
bool sort_key_decides(const struct sort_rule *rule);

/* Makes it say so of keys that decide but for positions beyond 32 bits, until
 * *far is set. For coordinate order and -M, of input that may have them; of
 * other input the fields alone count there, whatever tags it brings. */
void sort_key_decides_until(struct sort_rule *rule, const _Atomic bool *far);

#define FLAG_REVERSE 0x10u

/* Coordinate order of `samtools sort`: reference (none last), position + 1,
 * reverse strand; nothing else.
 *
 *   63        33 32         1     0
 *   | reference | position+1 | reverse |
 *
 * 31 bits hold every refID (at most 2^31-2, SAMv1 section 4.2) and one more
 * value for "none"; 32 bits hold position+1, unsigned, as samtools compares it. */
static inline uint64_t sort_key_coordinate(const struct bam_record *r)
{
    uint64_t ref = load_le32(r->ref_id) & 0x7fffffffu;
    uint64_t pos = (uint32_t)(load_le32(r->pos) + 1);
    return ref << 33 | pos << 1 | ((bam_record_flag(r) & FLAG_REVERSE) != 0);
}

/* The same where a position may be beyond 32 bits: all of those share the key of
 * the last one within, reverse strand, and sort_key_compare_coordinates() decides. */
static inline uint64_t sort_key_coordinate_far(const struct bam_record *r)
{
    return sort_key_coordinate(r) | (far_pos(r) > INT32_MAX);
}

/* The order itself: < 0, 0, > 0. */
int sort_key_compare_coordinates(const struct bam_record *a, const struct bam_record *b);

#endif
