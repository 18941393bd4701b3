/* SPDX-License-Identifier: MIT */
/* The settings of `samtools stats`. Its options (cli/stats_options.c) are those of the manual page of samtools 1.24;
 * what the page leaves open was found by trying samtools. */
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
struct stats_fasta;

struct stats_settings {
    /* Of the command line, whose words the texts are. */
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
    const char *input;           /* names split files, unless -P does */
    struct stats_regions regions;        /* what REGIONs ask for; taken over. n == 0: the whole file */
    /* Set by stats_settings_begin(). */
    sam_hdr_t *sam;
    struct byte_buffer groups;   /* -I: names of read groups, each with its NUL, one empty at the end */
    struct stats_regions targets;        /* of -t, else of REGIONs */
    bool has_targets;
    struct stats_depth_bins bins;        /* of -c */
    struct stats_fasta *fasta;   /* NULL: none */
    struct stats_settings *value;        /* -S: how the records of one value are counted; NULL: not asked for. Owned,
                                          * but for what it shares with this one */
};

/* Those of a command line without options. */
struct stats_settings stats_settings_default(void);

/* Reads the files that -t and -r name, and finds the read groups of -I. -1: an error, recorded in the latch. */
int stats_settings_begin(struct stats_settings *s, sam_hdr_t *sam, struct latch *latch);

/* Whether the records have to be counted in the order of the file by one part: with -t, records that are out of
 * order are lost, and which ones depends on all before; with -S and -p, all objects share one table of names. */
bool stats_settings_in_sequence(const struct stats_settings *s);

void stats_settings_free(struct stats_settings *s);

#endif
