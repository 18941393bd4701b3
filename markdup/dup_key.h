/* SPDX-License-Identifier: MIT */
/* What markdup takes from one record: whether it takes part, what it must have in common with its duplicates, how good
 * it is, and where it stands in upstream's queue. Serial; no I/O. Threads may share a rule. */
#ifndef DUP_KEY_H
#define DUP_KEY_H

#include <stdbool.h>
#include <stdint.h>
#include "bam/bam_record.h"
#include "base/name_table.h"
#include "markdup/dup_name.h"

enum dup_class {
    DUP_EXCLUDED,                /* takes no part */
    DUP_SINGLE,                  /* has no mate that is mapped */
    DUP_PAIR_END,                /* one end of a pair */
};

enum dup_mode { DUP_BY_TEMPLATE, DUP_BY_SEQUENCE };

/* The key that duplicates have in common. Compared as bytes: there is no padding. */
struct dup_key {
    int64_t here, there;         /* 1-based unclipped positions of the record and its mate; there is 0 for singles */
    int32_t ref, mate_ref;       /* mate_ref is 0 for singles */
    uint32_t barcode;            /* its hash; 0: none */
    uint32_t kind;               /* table, strands and read group */
};
_Static_assert(sizeof(struct dup_key) == 32, "no padding");

/* How records are read. What the pointers lead to stays the caller's. */
struct dup_rule {
    enum dup_mode mode;
    bool include_fails;          /* records that failed quality control take part */
    char barcode_tag[2];         /* {0}: none */
    const regex_t *barcode_name; /* expression for barcodes in names; NULL: none */
    unsigned barcode_group;      /* its group that is the barcode */
    const struct name_table *groups;   /* IDs of read groups, which then join the keys; NULL: they do not */
};

/* The fields of one record that decide whether it is a duplicate. */
struct dup_read {
    enum dup_class kind;
    bool qc_fail;
    bool has_mate_score;         /* ms is there and not -1 */
    bool elsewhere;              /* has SA, XA or an unmapped mate: other records of the name follow it with -S */
    bool barcode_missed;         /* barcode_name did not match, or the tag is no text: a warning */
    bool barcode_lacks;          /* the barcode tag is not there */
    uint32_t group;              /* number of the read group + 1; 0: none, unknown, or no groups are wanted */
    int64_t place;               /* in the queue, q of the window */
    int64_t start;               /* 0-based position, p of the window */
    int64_t score;               /* sum of the base qualities from 15 on */
    int64_t pair_score;          /* that and ms; pair ends with a mate score only */
    struct dup_key single;       /* all but excluded ones */
    struct dup_key pair;         /* pair ends only */
};

/* Reads a checked record. Returns BAM_OK, or BAM_NO_MC or BAM_BAD_MC for a pair end. A missing mate score is no fault
 * here: it is needed only when two pair ends meet. */
enum bam_fault dup_key_make(const struct dup_rule *rule, const struct bam_record *r, struct dup_read *read);

/* The read group of a checked record, as in struct dup_read. */
uint32_t dup_key_group(const struct dup_rule *rule, const struct bam_record *r);

#endif
