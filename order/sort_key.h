/* SPDX-License-Identifier: MIT */
/* The orders of `samtools sort` and that of collate. Each has a 64-bit key, which decides most comparisons without
 * touching the record, and a comparison of records for the rest. Serial. */
#ifndef SORT_KEY_H
#define SORT_KEY_H

#include <htslib/sam.h>
#include "bam/bam_record.h"
#include "base/sort_order.h"

/* An order prepared for one input: it knows the libraries of the @RG lines and the shape of the names.
 * Tasks share it. Nothing in it changes after sort_rule_learn() and sort_rule_expect_far(). */
struct sort_rule;
struct minhash;

/* Prepares the order for input with the header `sam`, which the caller owns and may change afterwards. NULL: out of
 * memory. */
struct sort_rule *sort_rule_new(const struct sort_order *order, sam_hdr_t *sam);
void sort_rule_free(struct sort_rule *rule);

/* Reads the first n records of the input and chooses how to use the 64 bits of the key: the common prefix of the names,
 * the shape of the text after it, the alphabet of the tag. Records may differ from this sample: their keys are still
 * correct and only decide less. Optional. Call it at most once, before the first key is made. */
void sort_rule_learn(struct sort_rule *rule, const struct bam_record *const *records, size_t n);

/* Learns from the first valid records in bytes[size]. n_ref: number of @SQ lines. */
void sort_rule_learn_of(struct sort_rule *rule, const uint8_t *bytes, size_t size, int32_t n_ref);

/* Makes the key of a checked record. If a comes before b in the order, then key(a) <= key(b). Returns a fault for
 * records that lack a tag that the order needs, or have it with a wrong type (BAM_NO_MC and so on). */
enum bam_fault sort_key_make(const struct sort_rule *rule, const struct bam_record *r, uint64_t *key);

/* The key of a sorted record: that of sort_key_make() or, if reads keep their ranks of -M, of minhash_key(). minhash:
 * for -M; otherwise NULL. */
uint64_t sort_key_sorted(const struct sort_rule *rule, const struct minhash *minhash, const struct bam_record *r);

/* Compares two records by the full order. Returns < 0, 0 or > 0; 0 is a tie, which the order of the input decides.
 * sort_key_make() must have returned no fault for either record. */
int sort_key_compare(const struct sort_rule *rule, const struct bam_record *a, const struct bam_record *b);

/* Returns whether record b with key_b may come directly after record a with key_a. rule: NULL: keys decide. */
bool sort_key_in_order(const struct sort_rule *rule, uint64_t key_a, const struct bam_record *a, uint64_t key_b,
                       const struct bam_record *b);

enum sort_word {
    SORT_WORD,                   /* *word was set */
    SORT_TIE,                    /* there are no more words: the order of the input decides */
    SORT_COMPARE,                /* the next word is unknown: sort_key_compare() must decide */
};

/* Word `number` (0, 1, ...) of the criteria that decide between records with the same key and the same words before it.
 * If a comes before b, then word(a) <= word(b). The return value is the same for all of these records. */
enum sort_word sort_key_word(const struct sort_rule *rule, const struct bam_record *r, unsigned number, uint64_t *word);

/* Returns whether equal keys are always ties, so that records need not be compared. */
bool sort_key_decides(const struct sort_rule *rule);

/* Prepares a new rule for records that get a read group after their key was made: an order that depends on groups then
 * needs a mark before each record (order/group_mark.h). Records that it learns from have none. */
void sort_rule_expect_marks(struct sort_rule *rule);

/* Returns whether the rule needs marks. rule: NULL: keys decide. */
bool sort_rule_takes_marks(const struct sort_rule *rule);

/* Prepares a new rule for input that may have positions beyond 32 bits, so that equal keys may hide different
 * positions. Without this call coordinate order compares only the 32-bit fields, even if the input has such tags. */
void sort_rule_expect_far(struct sort_rule *rule);

#endif
