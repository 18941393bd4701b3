/* SPDX-License-Identifier: MIT */
/* What `samtools fixmate` does to a template: the records with the same name that follow one another. Each pair of
 * mates gets what it must know of each other. Serial; one struct for each that works at the same time. */
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
    bool keeps_proper;           /* -p: PROPER_PAIR is not looked at */
    bool template_cigar;         /* -c: tag ct */
    bool mate_score;             /* -m: tag ms */
    bool base_mods;              /* -M: tags MM, ML, MN */
    unsigned sanitize;           /* -z: enum sanitize */
    const int64_t *lengths;      /* of the references; the caller's */
};

/* A record while it is fixed: as it is, and apart from it what becomes of it. */
struct fixmate_read {
    const struct bam_record *record;     /* as it was read, or normalised */
    struct byte_buffer normalised; /* the record, if it was */
    const uint8_t *cigar;        /* its n_cigar operations, little-endian */
    uint32_t n_cigar;
    int64_t span;                /* bases of the reference, at least one */
    int32_t ref_id, next_ref_id;
    struct long_pos at;
    uint16_t flag;
    struct mate_tags tags;
};

/* All zeros: nothing is in use. */
struct fixmate {
    struct fixmate_read *primaries;      /* of the template; `max` of them have been used */
    size_t n, max;
    struct fixmate_read other;   /* the record that is neither */
    bam1_t b;                    /* the record that is being normalised */
    struct byte_buffer text, cigar;   /* for a while */
};

void fixmate_free(struct fixmate *fixmate);

/* Appends the records of the template p[n], whole and checked ones, to `to`, fixed and with the right bin, in their
 * order. *dropped grows by the number of those that are left out. -1: failed, with errno: EOVERFLOW means that a
 * record becomes longer than BAM holds, EINVAL that a primary one cannot get its tag MN, EBADMSG that the tags of an
 * unmapped one cannot be read, all else that there is no memory. */
int fixmate_template(struct fixmate *fixmate, const struct fixmate_rules *rules, const uint8_t *p, size_t n,
                     struct byte_buffer *to, uint64_t *dropped);

#endif
