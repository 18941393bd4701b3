/* SPDX-License-Identifier: MIT */
/* Makes a record as markdup writes it: FLAG, the tags do, dt and dc, and a UMI that moves from the name to RX. Serial;
 * no I/O. Threads may share a rule. */
#ifndef DUP_MARK_H
#define DUP_MARK_H

#include <regex.h>
#include <stdbool.h>
#include "bam/bam_record.h"
#include "base/byte_buffer.h"
#include "markdup/dup_verdict.h"

/* Changes that are made to every record. do and dt are set if the verdict has them. */
struct dup_mark_rule {
    bool clear;                  /* DUP of the input is removed, with the first do and the first dt of such records */
    bool counts;                 /* dc */
    bool pass;                   /* the chain pass finds optical duplicates */
    bool others;                 /* -S: with counts, duplicates lose their old dc */
    bool ends_at_nul;            /* the output is CRAM, where a NUL in place of a tag ends the record */
    const regex_t *umi;          /* expression of the UMI in names; NULL: it stays in the name. Owned by the caller */
    unsigned umi_group;          /* number of its group that is the UMI */
    char umi_separator;          /* removed with it: the one before it, otherwise the one after it. 0: none */
};

#define DUP_MARK_FAULTS(X) \
    X(DUP_MARK_OK, "no fault") \
    X(DUP_MARK_NO_MEMORY, "out of memory") \
    X(DUP_MARK_TOO_LONG, "with its new tags it is longer than BAM holds") \
    X(DUP_MARK_BAD_TAGS, "its tags cannot be read") \
    X(DUP_MARK_BAD_ORIGINAL, "its do tag is not a string; remove it first: samtools view -x do") \
    X(DUP_MARK_BAD_TYPE, "its dt tag is not a string; remove it first: samtools view -x dt") \
    X(DUP_MARK_BAD_UMI, "its RX tag is not a string; remove it first: samtools view -x RX")

#define DUP_MARK_FAULT_NUMBER(fault, text) fault,
enum dup_mark_fault { DUP_MARK_FAULTS(DUP_MARK_FAULT_NUMBER) };

/* The fault as a phrase that follows "record N (NAME): ". A constant string. */
const char *dup_mark_fault_text(enum dup_mark_fault fault);

/* FLAG as written. verdict NULL: the record is an original with no duplicates. */
unsigned dup_mark_flag(const struct dup_mark_rule *rule, const struct bam_record *record,
                       const struct dup_verdict *verdict);

/* Returns whether only FLAG changes. */
bool dup_mark_is_flag(const struct dup_mark_rule *rule, const struct bam_record *record,
                      const struct dup_verdict *verdict);

/* Bytes of room that dup_mark_append() needs in addition to those of the record. This is an upper limit: the four tags
 * with their longest values, and the bytes before a number, take less. */
enum { DUP_MARK_ROOM = 1024 };

/* Appends the checked record as markdup writes it. An existing tag is replaced in place. A new tag goes after the
 * others, but before a CG tag that holds the CIGAR. As in samtools, a dc that is not an integer is left unchanged. So
 * is a dt that is not a string, unless the chain pass finds an optical duplicate: that is a fault. After a fault, `to`
 * is unchanged. The record may lie in `to` itself, if `to` already has enough room. */
enum dup_mark_fault dup_mark_append(const struct dup_mark_rule *rule, struct byte_buffer *to,
                                    const struct bam_record *record, const struct dup_verdict *verdict);

#endif
