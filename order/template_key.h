/* SPDX-License-Identifier: MIT */
/* Keys and comparison for template-coordinate order. The criteria, in this order: reference of end 1, of end 2,
 * position of end 1, of end 2, strand of end 1, of end 2 (reverse first), library, cell barcode (CB), molecule (MI),
 * name, and last whether the record is the lower end. An end is a read's unclipped 5' end; end 1 is the earlier one. */
#ifndef TEMPLATE_KEY_H
#define TEMPLATE_KEY_H

#include <htslib/sam.h>
#include "bam/bam_record.h"
#include "order/text_code.h"

struct template_group {
    char *id, *library;              /* names; "" if it has no library */
    unsigned rank;                   /* rank of the library among all by strcmp(); 0: no library */
};

/* Read-only once learned. */
struct template_key {
    struct template_group *groups;   /* sorted by id */
    size_t n_groups;
    bool marked;                     /* records have marks (group_mark.h), except those learned from */
    int32_t n_ref;
    unsigned ref_bits, pos_bits, library_bits;
    int64_t max_pos;
    struct text_code name, cell;
};

/* Prepares the order for input with the header sam; `lines` has its lines other than @SQ. Returns 0, or -1 if out of
 * memory. */
int template_key_init(struct template_key *rule, sam_hdr_t *sam, sam_hdr_t *lines);
void template_key_free(struct template_key *rule);

/* Learns as sort_rule_learn() does. texts: room for n. */
void template_key_learn(struct template_key *rule, const struct bam_record *const *records, struct text *texts,
                        size_t n);

/* Makes the key of a checked record. Returns a fault if MC is missing and the order needs it, or MC, CB or MI has a
 * wrong type. */
enum bam_fault template_key_make(const struct template_key *rule, const struct bam_record *r, uint64_t *key);
/* Compares two records for which template_key_make() returned no fault: returns < 0, 0 or > 0. */
int template_key_compare(const struct template_key *rule, const struct bam_record *a, const struct bam_record *b);

#endif
