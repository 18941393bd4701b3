/* SPDX-License-Identifier: MIT */
/* The header of `samtools merge`: one header for several inputs. Serial.
 *
 * It has all @SQ lines with different names, then the @RG, @PG and @CO lines of all inputs, in the order of the inputs.
 * An @RG or @PG line whose ID is in use gets another one, ID-XXXXXXXX, from a random number generator; lines and tags
 * of the same input that refer to it follow. The first @HD line is that of the result.
 *
 * No header of an input is kept. Inputs whose references get the same numbers share one list of them; an input whose
 * @SQ lines are the first ones of the result needs no list. */
#ifndef HEADER_JOIN_H
#define HEADER_JOIN_H

#include <stdbool.h>
#include <stdint.h>
#include <htslib/sam.h>
#include "bam/record_remap.h"

struct header_join;
struct latch;

struct header_join_options {
    int64_t seed;                /* seed of the random number generator, -s; its lower 32 bits are used */
    bool joins_groups;           /* -c: only the first of the @RG lines with the same ID is kept */
    bool joins_programs;         /* -p: only the first of the @PG lines with the same ID is kept */
    bool groups_by_file;         /* -r: each input is one group, named like its file */
    bool by_coordinate;          /* the records will be in coordinate order, as far as the order of references allows */
};

/* Returns a join with no headers yet. NULL: out of memory. */
struct header_join *header_join_new(const struct header_join_options *options);

/* Adds the next header. The caller keeps it, unchanged, until header_join_end(); a plain header (bam/plain_header.h)
 * stays plain. If it is the same object as the header before it, the results of that one are used again. path: its
 * file, for -r and for messages. remap: gets the changes for the records of this input; the caller frees it, even after
 * an error. NULL: only the header of this file is used (-h). -1: failed, and the error is recorded in the latch. */
int header_join_add(struct header_join *join, sam_hdr_t *sam, const char *path, struct record_remap *remap,
                    struct latch *latch);

/* Returns whether an @HD line was found. Once there is one, samtools (1.24) takes the references of a BAM from its list
 * only, before that also from its text (bam_header_drop_unlisted()). */
bool header_join_has_first(const struct header_join *join);

/* Returns the result, without a @PG line of our own. Call it once, after the last header. The caller frees it; it is
 * plain if that is possible. Everything except the lists of references that the remaps refer to is freed. With
 * by_coordinate, @HD states "unsorted" if some input has its references in another order. NULL: failed, and the error
 * is recorded in the latch. */
sam_hdr_t *header_join_end(struct header_join *join, struct latch *latch);

/* Call it after the last record was remapped. */
void header_join_free(struct header_join *join);

#endif
