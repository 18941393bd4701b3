/* SPDX-License-Identifier: MIT */
/* The settings of `samtools stats`. Its options (cli/stats_options.c) are those of the manual page of samtools 1.24.
 * Details that the page leaves open were found by trying samtools. */
#ifndef STATS_SETTINGS_H
#define STATS_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <htslib/sam.h>
#include "base/byte_buffer.h"
#include "stats/stats_ring.h"
#include "stats/stats_targets.h"

struct latch;
struct ref_regions;
struct stats_fasta;

struct stats_settings {
    /* From the command line; the texts are words of it. */
    uint32_t required, filtered; /* -f, -F and -d: bits of FLAG */
    int32_t read_length;         /* -l; -1: any */
    const char *id;              /* -I; NULL: none */
    int trim_quality;            /* -q; off if it is not above 0 */
    int max_insert;              /* -i; no limit if it is not above 0 */
    float most_inserts;          /* -m */
    int depth_min, depth_max, depth_step;        /* -c */
    int gc_bin;                  /* --GC-depth: bases; may be 0 or less */
    int threshold;               /* -g */
    bool overlaps;               /* -p */
    bool sparse;                 /* -x */
    bool ref_stats;              /* --ref-stats */
    bool custom_index;           /* -X: an operand names the index */
    const char *fasta_path;      /* -r */
    const char *targets_path;    /* -t */
    const char *split_tag, *split_prefix;        /* -S, -P */
    char *command_line;          /* the words as they are printed; owned */
    /* Set by the caller, before stats_settings_begin(). */
    bool sorted;                 /* the records are known to be in order */
    const char *input;           /* names the split files, unless -P does */
    /* Set by stats_settings_begin(). */
    sam_hdr_t *sam;
    struct byte_buffer groups;   /* -I: names of read groups, each with its NUL; an empty name ends them */
    struct stats_regions targets;        /* from -t, otherwise those of the REGION operands */
    bool has_targets;
    struct stats_depth_bins bins;        /* from -c */
    struct stats_fasta *fasta;   /* NULL: none */
    struct stats_settings *value;        /* -S: the settings for the records of one value; NULL: not requested. Owned,
                                          * except for what it shares with these settings */
};

/* Returns the settings of a command line without options. */
struct stats_settings stats_settings_default(void);

/* Reads the files that -t and -r name, and finds the read groups of -I. regions: those of the REGION operands, NULL if
 * there are none. Returns -1 on an error, which is recorded in the latch. */
int stats_settings_begin(struct stats_settings *s, sam_hdr_t *sam, const struct ref_regions *regions,
                         struct latch *latch);

/* Returns true if one part has to count the records in the order of the file. With -t, records that are out of order
 * are lost, and all earlier records decide which ones. With -S and -p, all objects share one table of names. */
bool stats_settings_in_sequence(const struct stats_settings *s);

void stats_settings_free(struct stats_settings *s);

#endif
