/* SPDX-License-Identifier: MIT */
/* A record as markdup writes it: FLAG, the tags do, dt and dc, and a UMI that moves from the name to RX. Serial; no
 * I/O. Threads may share a rule. */
#ifndef DUP_MARK_H
#define DUP_MARK_H

#include <regex.h>
#include <stdbool.h>
#include "bam/bam_record.h"
#include "base/byte_buffer.h"
#include "markdup/dup_verdict.h"

/* Changes that are made to every record. do and dt are set where the verdict has them. */
struct dup_mark_rule {
    bool clear;                  /* DUP of the input goes, with the first do and the first dt of such records */
    bool counts;                 /* dc */
    bool pass;                   /* the chain pass finds optical duplicates */
    bool others;                 /* -S: with counts, duplicates lose the dc that they had */
    bool ends_at_nul;            /* the output is CRAM, in which a NUL in the place of a tag ends the record */
    const regex_t *umi;          /* expression of the UMI in names; NULL: it stays there. The caller's */
    unsigned umi_group;          /* its group that is the UMI */
    char umi_separator;          /* goes with it: the one before it, else the one behind it. 0: none */
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

/* The fault in words that follow "record N (NAME): ". A constant string. */
const char *dup_mark_fault_text(enum dup_mark_fault fault);

/* FLAG as it is written. verdict NULL: the record is an original that stands for itself alone. */
unsigned dup_mark_flag(const struct dup_mark_rule *rule, const struct bam_record *record,
                       const struct dup_verdict *verdict);

/* Whether nothing else of the record changes. */
bool dup_mark_is_flag(const struct dup_mark_rule *rule, const struct bam_record *record,
                      const struct dup_verdict *verdict);

/* Bytes beyond those of the record that dup_mark_append() wants room for: more than the four tags with their longest
 * values, and what is in the way of a number, need. */
enum { DUP_MARK_ROOM = 1024 };

/* Appends the checked record as it is written. A tag that is there is replaced where it is; a new one comes behind the
 * others. As in samtools, a dc that is no integer stays as it is, and so does a dt that is no string but where the
 * chain pass finds an optical duplicate. After a fault nothing was appended. The record may lie in `to` itself if there
 * was so much room before. */
enum dup_mark_fault dup_mark_append(const struct dup_mark_rule *rule, struct byte_buffer *to,
                                    const struct bam_record *record, const struct dup_verdict *verdict);

#endif
