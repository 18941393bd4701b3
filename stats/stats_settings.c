/* SPDX-License-Identifier: MIT */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/latch.h"
#include "base/message.h"
#include "stats/stats_fasta.h"
#include "stats/stats_settings.h"

enum { LONG_GC_DEPTH = 256, LONG_REF_STATS, LONG_REF_STATS_CHUNK, LONG_INPUT_OPTION, LONG_REFERENCE, LONG_VERBOSITY };

static const struct option long_options[] = {
    {"coverage", required_argument, NULL, 'c'},
    {"cov-threshold", required_argument, NULL, 'g'},
    {"customized-index", no_argument, NULL, 'X'},
    {"filtering-flag", required_argument, NULL, 'F'},
    {"GC-depth", required_argument, NULL, LONG_GC_DEPTH},
    {"help", no_argument, NULL, 'h'},
    {"id", required_argument, NULL, 'I'},
    {"input-fmt-option", required_argument, NULL, LONG_INPUT_OPTION},
    {"insert-size", required_argument, NULL, 'i'},
    {"most-inserts", required_argument, NULL, 'm'},
    {"read-length", required_argument, NULL, 'l'},
    {"ref-seq", required_argument, NULL, 'r'},
    {"ref-stats", no_argument, NULL, LONG_REF_STATS},
    {"ref-stats-chunk", required_argument, NULL, LONG_REF_STATS_CHUNK},
    {"reference", required_argument, NULL, LONG_REFERENCE},
    {"remove-dups", no_argument, NULL, 'd'},
    {"remove-overlaps", no_argument, NULL, 'p'},
    {"required-flag", required_argument, NULL, 'f'},
    {"sam", no_argument, NULL, 's'},
    {"sparse", no_argument, NULL, 'x'},
    {"split", required_argument, NULL, 'S'},
    {"split-prefix", required_argument, NULL, 'P'},
    {"target-regions", required_argument, NULL, 't'},
    {"threads", required_argument, NULL, '@'},
    {"trim-quality", required_argument, NULL, 'q'},
    {"verbosity", required_argument, NULL, LONG_VERBOSITY},
    {NULL, 0, NULL, 0},
};

/* -1: no flag has this name, and that was told. */
static int parse_flags(const char *text, uint32_t *flags)
{
    int value = bam_str2flag(text);
    if (value < 0)
        return message_error("Unknown flag '%s'", text);
    *flags |= (uint32_t)value;
    return 0;
}

static int parse_depths(struct stats_settings *s, const char *text)
{
    if (sscanf(text, "%d,%d,%d", &s->depth_min, &s->depth_max, &s->depth_step) != 3)
        return message_error("cannot read -c %s: it takes three numbers, MIN,MAX,STEP", text);
    return s->depth_step == 0 ? message_error("-c %s: STEP is 0", text) : 0;
}

static int parse_number(struct stats_settings *s, int option, const char *text)
{
    switch (option) {
    case 'l': s->read_length = atoi(text); break;
    case 'q': s->trim_quality = atoi(text); break;
    case 'i': s->max_insert = atoi(text); break;
    case 'm': s->most_inserts = (float)atof(text); break;
    case 'g': s->threshold = atoi(text); break;
    case LONG_GC_DEPTH: s->gc_bin = (int)atof(text); break;
    case LONG_REF_STATS_CHUNK: break;            /* how much of a reference samtools holds at once */
    default: return 1;
    }
    return 0;
}

static int parse_switch(struct stats_settings *s, int option)
{
    switch (option) {
    case 'd': s->filtered |= BAM_FDUP; break;
    case 'p': s->overlaps = true; break;
    case 'x': s->sparse = true; break;
    case 'X': s->custom_index = true; break;
    case 's': break;             /* the format is seen in the file */
    case LONG_REF_STATS: s->ref_stats = true; break;
    default: return 1;
    }
    return 0;
}

static int parse_text(struct stats_settings *s, int option, char *text)
{
    switch (option) {
    case 'I': s->id = text; break;
    case 'r': s->fasta_path = text; break;
    case 't': s->targets_path = text; break;
    case 'S': s->split_tag = text; break;
    case 'P': s->split_prefix = text; break;
    case '@': s->threads = text; break;
    case LONG_VERBOSITY: s->verbosity = text; break;
    case LONG_REFERENCE: s->reference = text; break;
    case 'f': s->required = 0; return parse_flags(text, &s->required);
    case 'F': return parse_flags(text, &s->filtered);
    case 'c': return parse_depths(s, text);
    case LONG_INPUT_OPTION:
        return hts_opt_add(&s->input_options, text) < 0 ? message_error("cannot read --input-fmt-option %s", text) : 0;
    default: return 1;
    }
    return 0;
}

/* The words as samtools prints them, which getopt has put in order. */
static char *join_words(int n, char **words)
{
    size_t size = 1;
    for (int i = 0; i < n; i++)
        size += strlen(words[i]) + 1;
    char *text = malloc(size), *at = text;
    for (int i = 0; text && i < n; i++)
        at += sprintf(at, i ? " %s" : "%s", words[i]);
    return text;
}

/* What -g and the operands ask for together. */
static int check_operands(const struct stats_settings *s, int n_operands)
{
    int n_regions = n_operands - 1 - (s->custom_index ? 1 : 0);
    if (s->threshold < 0 || (s->threshold > 0 && !s->targets_path && n_regions <= 0))
        return message_error("-g %d: a coverage threshold takes -t or a region, and is not negative", s->threshold);
    if (s->split_tag && strlen(s->split_tag) != 2)
        return message_error("-S %s: a tag has two letters", s->split_tag);
    return 0;
}

enum stats_parse stats_settings_parse(struct stats_settings *s, int n, char **words)
{
    *s = (struct stats_settings){.read_length = -1, .max_insert = 8000, .most_inserts = 0.99F, .depth_min = 1,
                                 .depth_max = 1000, .depth_step = 1, .gc_bin = 20000};
    int option;
    optind = 0;
    opterr = 0;
    while ((option = getopt_long(n, words, "?hdsXxr:c:l:i:t:m:q:f:F:g:I:S:P:p@:", long_options, NULL)) >= 0) {
        if (option == 'h')
            return STATS_HELP;
        if (option == '?')
            return STATS_USAGE;
        int result = parse_switch(s, option);
        if (result > 0)
            result = parse_number(s, option, optarg);
        if (result > 0)
            result = parse_text(s, option, optarg);
        if (result < 0)
            return STATS_REFUSED;
    }
    s->first_operand = optind;
    s->command_line = join_words(n, words);
    return s->command_line && check_operands(s, n - optind) == 0 ? STATS_PARSED : STATS_REFUSED;
}

static int add_group(struct stats_settings *s, const char *id)
{
    return byte_buffer_append(&s->groups, id, strlen(id) + 1);
}

/* The read groups whose ID or SM is that of -I. */
static int find_groups(struct stats_settings *s)
{
    kstring_t id = {0}, sample = {0};
    int result = 0, n = sam_hdr_count_lines(s->sam, "RG");
    for (int i = 0; i < n && result == 0; i++) {
        if (sam_hdr_find_tag_pos(s->sam, "RG", i, "ID", &id) < 0)
            continue;
        bool takes = strcmp(ks_str(&id), s->id) == 0
                  || (sam_hdr_find_tag_pos(s->sam, "RG", i, "SM", &sample) == 0 && strcmp(ks_str(&sample), s->id) == 0);
        if (takes && *ks_str(&id))
            result = add_group(s, ks_str(&id));
    }
    ks_free(&id);
    ks_free(&sample);
    return result < 0 ? -1 : add_group(s, "");
}

int stats_settings_begin(struct stats_settings *s, sam_hdr_t *sam, struct latch *latch)
{
    s->sam = sam;
    if (stats_depth_bins_set(&s->bins, s->depth_min, s->depth_max, s->depth_step) < 0)
        return latch_fail(latch, "-c %d,%d,%d: out of memory", s->depth_min, s->depth_max, s->depth_step);
    if (s->id && find_groups(s) < 0)
        return latch_fail(latch, "out of memory");
    if (s->targets_path) {
        if (stats_regions_read(&s->targets, s->targets_path, sam, latch) < 0)
            return -1;
    } else if (s->regions.n > 0) {
        s->targets = s->regions;
        s->regions = (struct stats_regions){0};
    }
    s->has_targets = s->targets.n > 0;
    if (s->has_targets && stats_regions_close(&s->targets, sam, s->targets_path ? 1 : 0) < 0)
        return latch_fail(latch, "out of memory");
    if (s->fasta_path && !(s->fasta = stats_fasta_open(s->fasta_path, latch)))
        return -1;
    return 0;
}

bool stats_settings_in_sequence(const struct stats_settings *s)
{
    return (s->targets_path && !s->sorted) || (s->split_tag && s->overlaps);
}

void stats_settings_free(struct stats_settings *s)
{
    if (s->input_options)
        hts_opt_free(s->input_options);
    free(s->command_line);
    free(s->groups.p);
    stats_regions_free(&s->regions);
    stats_regions_free(&s->targets);
    stats_fasta_close(s->fasta);
    *s = (struct stats_settings){0};
}
