/* SPDX-License-Identifier: MIT */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include "hts/bam1_bytes.h"
#include "hts/ref_sums.h"
#include "bam/record_checksum.h"
#include "bam/tag_check.h"
#include "base/latch.h"
#include "base/task_ring.h"
#include "stats/counts.h"
#include "write/record_out.h"
#include "write/samtools_checksum.h"

void record_out_close(struct record_out *out)
{
    free(out->b.data);
    free(out->copy.p);
}

void record_out_trim(struct record_out *out, size_t kept)
{
    byte_buffer_trim(&out->copy, kept);
    if (out->b.m_data <= kept)
        return;
    free(out->b.data);
    out->b = (bam1_t){0};
}

/* The record as it is written: a finished copy, because the original may still be compared. NULL: out of memory. */
static const uint8_t *finished(struct record_out *out, record_finish_fn *finish, const uint8_t *record, size_t size)
{
    if (!finish)
        return record;
    if (byte_buffer_reserve(&out->copy, size) < 0)
        return NULL;
    memcpy(out->copy.p, record, size);
    finish(out->copy.p);
    return out->copy.p;
}

/* Checks that the record can be read again. Threads of htslib 1.16 may crash when they meet a tag that CRAM lacks. */
static int check_readable(const struct record_out_options *how, const bam1_t *b)
{
    const uint8_t *tags = bam_get_aux(b), *end = b->data + b->l_data;
    bool is_cram = how->format == cram, is_sam = how->format == sam;
    if (is_sam && !tag_check_sam_name(bam_get_qname(b)))
        return latch_fail(how->latch, "%s: the name of record %s has a tab or a newline, which SAM cannot hold. "
                          RECORD_OUT_REMEDY, how->path, bam_get_qname(b));
    if ((is_cram && !tag_check_cram(tags, end)) || (is_sam && !tag_check_sam(tags, end)))
        return latch_fail(how->latch, "%s: record %s has a tag that is broken or of a type that %s cannot hold. "
                          RECORD_OUT_REMEDY, how->path, bam_get_qname(b), is_cram ? "CRAM" : "SAM");
    return 0;
}

/* Returns whether the record is in no read group, or in one of the header. */
static bool has_known_group(const bam1_t *b, sam_hdr_t *header)
{
    const uint8_t *tag = bam_aux_get(b, "RG");
    const char *group = tag ? bam_aux2Z(tag) : NULL;
    return !group || sam_hdr_line_index(header, "RG", group) >= 0;
}

/* The part that the record lacks now and would have when it is read again; NULL if none. */
static const char *lacks(const struct record_out_options *how, const bam1_t *b)
{
    if (b->core.flag & BAM_FUNMAP)
        return NULL;
    if (b->core.l_qseq == 0)
        return how->needs_seq && b->core.n_cigar > 0 ? "SEQ" : NULL;
    return how->needs_quals && bam_get_qual(b)[0] == 0xff ? "qualities" : NULL;
}

int record_out_take(struct record_out *out, const struct record_out_options *how, const uint8_t *record, size_t size,
                    uint64_t *checksum)
{
    if (!(record = finished(out, how->finish, record, size)))
        return latch_fail(how->latch, "out of memory for a record of %zu bytes", size);
    *checksum += record_checksum(record, size);
    if (!bam_record_fits(bam_record_at(record), size)
        || bam_record_check(record, size, sam_hdr_nref(how->header)).fault)
        return latch_fail(how->latch, "writing %s failed: " BAM_RECORD_CHANGED, how->path);
    if (how->samtools && samtools_checksum_add(how->samtools, task_thread(), record, size) < 0)
        return latch_fail(how->latch, "out of memory for --checksum");
    if (how->counts)
        counts_add(how->counts, task_thread(), out->slot, record, (uint32_t)size);
    if (bam1_from_record(&out->b, bam_record_at(record)) < 0)
        return latch_fail(how->latch, "out of memory");
    if (check_readable(how, &out->b) < 0)
        return -1;
    if (how->groups && !has_known_group(&out->b, how->groups))
        return latch_fail(how->latch, "%s: record %s is in a read group that the header lacks, and htslib %s would "
                          "drop its RG tag. Add the @RG line, use a later htslib, or -O bam", how->path,
                          bam_get_qname(&out->b), hts_version());
    const char *lacking = lacks(how, &out->b);
    if (lacking)
        return latch_fail(how->latch, "%s: record %s has no %s, and would have some when CRAM 2 is read again. Nothing "
                          "was written; use -O bam, or version=3.0", how->path, bam_get_qname(&out->b), lacking);
    if (how->format == cram && out->b.core.tid < 0)
        out->b.core.pos = -1;                    /* as later htslib writes it */
    bool is_mapped = !(out->b.core.flag & BAM_FUNMAP);
    return how->sums && is_mapped ? ref_sums_check(how->sums, out->b.core.tid) : 0;
}
