/* SPDX-License-Identifier: MIT */
/* The header of `samtools merge`: one of several inputs. Serial.
 *
 * All @SQ lines whose names differ are in it, then the @RG, @PG and @CO lines of all inputs, in the order of these.
 * @RG and @PG lines whose ID is taken get another one, ID-XXXXXXXX, by a generator of numbers; what names them in the
 * same input follows. The first @HD line is that of the result.
 *
 * No header of an input is kept. Inputs whose references get the same numbers share their list of them, and one whose
 * @SQ lines are the first ones of the result needs none. */
#ifndef HEADER_JOIN_H
#define HEADER_JOIN_H

#include <stdbool.h>
#include <stdint.h>
#include <htslib/sam.h>
#include "bam/record_remap.h"

struct header_join;
struct latch;

struct header_join_options {
    int64_t seed;                /* of the generator, -s; its lower 32 bits count */
    bool joins_groups;           /* -c: of @RG lines with the same ID only the first stays */
    bool joins_programs;         /* -p: likewise for @PG lines */
    bool groups_by_file;         /* -r: each input is one group, named like its file */
    bool by_coordinate;          /* the records will be in that order, as far as the order of references allows it */
};

/* Returns a join with no headers yet. NULL: out of memory. */
struct header_join *header_join_new(const struct header_join_options *options);

/* Adds the next header. It stays the caller's, who keeps it unchanged until header_join_end(); a plain header
 * (bam/plain_header.h) stays plain. If it is the same object as the header before it, what was found there is used
 * again. path: its file's, for -r and for messages. remap: becomes what the records of this input need; the caller
 * frees it, also after an error. NULL: only the header of this file counts (-h). -1: failed, and the error is recorded
 * in the latch. */
int header_join_add(struct header_join *join, sam_hdr_t *sam, const char *path, struct record_remap *remap,
                    struct latch *latch);

/* Whether an @HD line was found. From then on samtools (1.24) takes the references of BAM from its list alone, before
 * that those of its text, too (bam_header_drop_unlisted()). */
bool header_join_has_first(const struct header_join *join);

/* Call it once, after the last header. Returns the result, without a @PG line of our own; it is the caller's, and plain
 * if it can be. All but the lists of references that the remaps refer to is freed. With by_coordinate, its @HD says
 * unsorted if some input has its references in another order. NULL: failed, and the error is recorded in the latch. */
sam_hdr_t *header_join_end(struct header_join *join, struct latch *latch);

/* Call it when no record is remapped any more. */
void header_join_free(struct header_join *join);

#endif
