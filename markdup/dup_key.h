/* SPDX-License-Identifier: MIT */
/* The properties of one record that markdup uses: whether it takes part, the key that its duplicates share, its score,
 * and its place in samtools' queue. Serial; no I/O. Threads may share a rule. */
#ifndef DUP_KEY_H
#define DUP_KEY_H

#include <stdbool.h>
#include <stdint.h>
#include "bam/bam_record.h"
#include "base/name_table.h"
#include "markdup/dup_name.h"

enum dup_class {
    DUP_EXCLUDED,                /* takes no part */
    DUP_SINGLE,                  /* has no mapped mate */
    DUP_PAIR_END,                /* one end of a pair */
};

enum dup_mode { DUP_BY_TEMPLATE, DUP_BY_SEQUENCE };

/* The key that duplicates share. Compared as bytes: there is no padding. */
struct dup_key {
    int64_t here, there;         /* 1-based unclipped positions of the record and its mate; there is 0 for singles */
    int32_t ref, mate_ref;       /* mate_ref is 0 for singles */
    uint32_t barcode;            /* hash of the barcode; 0: none */
    uint32_t kind;               /* table, strands and read group */
};
_Static_assert(sizeof(struct dup_key) == 32, "no padding");

/* The rules for reading records. The caller owns the objects that the pointers lead to. */
struct dup_rule {
    enum dup_mode mode;
    bool include_fails;          /* records that failed quality control take part */
    char barcode_tag[2];         /* {0}: none */
    const regex_t *barcode_name; /* expression for barcodes in names; NULL: none */
    unsigned barcode_group;      /* number of the group of barcode_name that is the barcode */
    const struct name_table *groups;   /* IDs of read groups, which become part of the keys; NULL: they do not */
};

/* The fields of one record that decide whether it is a duplicate. */
struct dup_read {
    enum dup_class kind;
    bool qc_fail;
    bool has_mate_score;         /* ms is there and not -1 */
    bool elsewhere;              /* has SA, XA or an unmapped mate: with -S, other records of its name follow it */
    bool barcode_missed;         /* barcode_name did not match, or the tag is not text: a warning */
    bool barcode_lacks;          /* the barcode tag is missing */
    uint32_t group;              /* number of the read group + 1; 0: none, unknown, or groups are not used */
    int64_t place;               /* place in the queue, q of the window */
    int64_t start;               /* 0-based position, p of the window */
    int64_t score;               /* sum of the base qualities that are 15 or more */
    int64_t pair_score;          /* that plus ms; only for pair ends with a mate score */
    struct dup_key single;       /* for all records except excluded ones */
    struct dup_key pair;         /* for pair ends only */
};

/* Reads a checked record. Returns BAM_OK, or BAM_NO_MC or BAM_BAD_MC for a pair end. A missing mate score is not a
 * fault here: it is needed only when two pair ends meet. */
enum bam_fault dup_key_make(const struct dup_rule *rule, const struct bam_record *r, struct dup_read *read);

/* The read group of a checked record, as in struct dup_read. */
uint32_t dup_key_group(const struct dup_rule *rule, const struct bam_record *r);

#endif
