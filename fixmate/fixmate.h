/* SPDX-License-Identifier: MIT */
/* Fixes a template, as `samtools fixmate` does: consecutive records with the same name. Each record of a pair gets the
 * data of its mate. Serial; one struct for each thread that works at the same time. */
#ifndef FIXMATE_H
#define FIXMATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <htslib/sam.h>
#include "bam/long_pos.h"
#include "fixmate/mate_tags.h"
#include "base/byte_buffer.h"

/* The options of fixmate. They are constant while records are fixed. */
struct fixmate_rules {
    bool drops;                  /* -r: unmapped and secondary records are left out */
    bool keeps_proper;           /* -p: PROPER_PAIR is not checked */
    bool template_cigar;         /* -c: tag ct */
    bool mate_score;             /* -m: tag ms */
    bool base_mods;              /* -M: tags MM, ML, MN */
    unsigned sanitize;           /* enum sanitize, for -z */
    const int64_t *lengths;      /* lengths of the references; owned by the caller */
};

/* A record while it is fixed: the original, and the changes. */
struct fixmate_read {
    const struct bam_record *record;     /* as it was read, or as normalised */
    struct byte_buffer normalised; /* the record, if it was normalised */
    const uint8_t *cigar;        /* its n_cigar operations, little-endian */
    uint32_t n_cigar;
    int64_t span;                /* number of reference bases, at least one */
    int32_t ref_id, next_ref_id;
    struct long_pos at;
    uint16_t flag;
    struct mate_tags tags;
};

/* Zero-initialised: nothing is in use. */
struct fixmate {
    struct fixmate_read *primaries;      /* primary records of the template; `max` of them have been allocated */
    size_t n, max;
    struct fixmate_read other;   /* the record that is not primary */
    bam1_t b;                    /* the record being normalised */
    struct byte_buffer text, cigar;   /* scratch memory */
};

void fixmate_free(struct fixmate *fixmate);

/* Appends the records of the template p[n], which are complete and checked, to `to`, fixed and with the right bin, in
 * their order. Adds the number of records left out to *dropped. -1: failed, with errno: EOVERFLOW: a record becomes
 * longer than BAM holds; EINVAL: a primary record cannot get its tag MN; EBADMSG: the tags of an unmapped record cannot
 * be read; any other: out of memory. */
int fixmate_template(struct fixmate *fixmate, const struct fixmate_rules *rules, const uint8_t *p, size_t n,
                     struct byte_buffer *to, uint64_t *dropped);

#endif
