/* SPDX-License-Identifier: MIT */
/* The counters of `stats` and `coverage` without threads and engine: reads a file by htslib, cuts it into ranges at
 * random places, counts each range in a part, prepares some neighbouring parts in pairs, and joins all parts. Prints the same as
 * samtools. The result must not depend on the seed.
 *
 * usage: stats_ranges SEED stats|coverage [OPTIONS] FILE       SEED 0: one range */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <htslib/sam.h>
#include "hts/bam1_bytes.h"
#include "bam/bam_record.h"
#include "base/byte_buffer.h"
#include "base/latch.h"
#include "cli/stats_options.h"
#include "stats/coverage.h"
#include "stats/stats_counter.h"
#include "stats/stats_settings.h"

enum { N_SUMS = 3, WAITING = 6, N_PARTS = 1 + WAITING };   /* parts[0] gets all others, which are used in turn */

/* Parts that wait to be joined. */
struct run {
    int first, n;                /* turn of the first part, from 0; number of parts that were prepared together */
};

static struct run runs[WAITING];
static int n_runs, n_waiting;

static struct latch latch;
static uint64_t state;

static uint64_t random_below(uint64_t n)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (state >> 33) % n;
}

static int die(const char *why)
{
    fprintf(stderr, "samtools stats: %s\n", why);
    exit(1);
}

static void *opened(void *p)
{
    return p ? p : (die("out of memory"), NULL);
}

static void *part_of(void **parts, int turn)
{
    return parts[1 + turn % WAITING];
}

/* Prepares two neighbouring runs. */
static void pair(const struct counter *c, void **parts)
{
    struct run *left = &runs[random_below((uint64_t)n_runs - 1)], *right = left + 1;
    if (!c->pair || !c->pair(part_of(parts, left->first), part_of(parts, left->first + left->n - 1),
                             part_of(parts, right->first)))
        return;
    left->n += right->n;
    n_runs--;
    memmove(right, right + 1, (size_t)(runs + n_runs - right) * sizeof *runs);
}

/* Joins the parts of the first run. */
static void join(const struct counter *c, void **parts)
{
    for (int i = 0; i < runs[0].n; i++)
        if (c->part.join(parts[0], part_of(parts, runs[0].first + i)) < 0)
            die("out of memory");
    n_waiting -= runs[0].n;
    n_runs--;
    memmove(runs, runs + 1, (size_t)n_runs * sizeof *runs);
}

/* Adds the counted part of this turn to the parts that wait. Then prepares and joins some of them. */
static void leave(const struct counter *c, void **parts, int turn)
{
    runs[n_runs++] = (struct run){turn, 1};
    n_waiting++;
    while (n_runs > 1 && random_below(3))
        pair(c, parts);
    while (n_waiting == WAITING || (n_runs > 0 && random_below(4) == 0))
        join(c, parts);
}

/* Counts the rest of the file's records, each in the range that is open. */
static void count(const struct counter *c, samFile *in, sam_hdr_t *sam, void **sums, void **parts, bool cuts)
{
    bam1_t *b = opened(bam_init1());
    struct byte_buffer bytes = {0};
    uint64_t left = cuts ? random_below(200) : UINT64_MAX;
    int turn = -1, sum = 0, result;          /* turn -1: before the first cut, parts[0] counts */
    while ((result = sam_read1(in, sam, b)) >= 0) {
        if (left-- == 0) {
            left = random_below(random_below(4) ? 50 : 3000);
            if (turn >= 0)
                leave(c, parts, turn);
            turn++;
            sum = (int)random_below(N_SUMS);
        }
        bytes.n = 0;
        if (bam1_bytes_append(&bytes, b) < 0 || bam_record_fix((struct bam_record *)bytes.p) < 0)
            die("out of memory");
        c->add(sums[sum], turn < 0 ? parts[0] : part_of(parts, turn), bytes.p, (uint32_t)bytes.n);
    }
    if (result < -1)
        die("cannot read the file");
    if (turn >= 0)
        leave(c, parts, turn);
    while (n_runs > 0)
        join(c, parts);
    bam_destroy1(b);
    free(bytes.p);
}

static void finish(const struct counter *c, void **sums, void **parts)
{
    uint64_t record;
    const char *fault = c->fault(parts[0], &record);
    if (fault) {
        fprintf(stderr, "samtools stats: record %llu: %s\n", (unsigned long long)record + 1, fault);
        exit(1);
    }
    for (int i = 1; i < N_SUMS; i++)
        if (c->sums.join(sums[0], sums[i]) < 0)
            die("out of memory");
    if (c->print(sums[0], parts[0], stdout, &latch) < 0)
        die(latch.message);
    for (int i = 0; i < N_SUMS; i++)
        c->sums.close(sums[i]);
    for (int i = 0; i < N_PARTS; i++)
        c->part.close(parts[i]);
}

/* words: one that is ignored, "stats" or "coverage", and its arguments. Sets optind to the file. */
static struct counter read_options(struct stats_settings *stats, struct coverage_settings *coverage, int n,
                                   char **words)
{
    bool is_stats = strcmp(words[1], "stats") == 0;
    struct engine_opts o = {.values = calloc((size_t)n, sizeof *o.values)};
    struct engine_args args = {.command = is_stats ? &stats_words_command : &coverage_command, .o = &o,
                               .own = is_stats ? (void *)stats : coverage};
    *stats = stats_settings_default();
    *coverage = coverage_settings_default();
    if (!o.values || engine_args_options(&args, n, words) != ENGINE_ARGS_RUN || optind + 1 != n
        || (is_stats && stats_options_settle(stats, words + 1, n - 1, 0) < 0))
        exit(1);
    stats->input = words[optind];
    free(o.values);
    return is_stats ? stats_counter(stats) : coverage_counter(coverage);
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    state = strtoull(argv[1], NULL, 10);
    struct stats_settings stats;
    struct coverage_settings coverage;
    struct counter c = read_options(&stats, &coverage, argc - 1, argv + 1);
    samFile *in = sam_open(argv[1 + optind], "r");
    sam_hdr_t *sam = in ? sam_hdr_read(in) : NULL;
    if (!sam)
        die("cannot read the file");
    if (c.begin(c.settings, sam, NULL, &latch) < 0)
        die(latch.message);
    void *sums[N_SUMS], *parts[N_PARTS];
    for (int i = 0; i < N_SUMS; i++)
        sums[i] = opened(c.sums.open(c.settings));
    for (int i = 0; i < N_PARTS; i++)
        parts[i] = opened(c.part.open(c.settings));
    count(&c, in, sam, sums, parts, state && !(c.in_sequence && c.in_sequence(c.settings)));
    finish(&c, sums, parts);
    if (c.end)
        c.end(c.settings);
    sam_hdr_destroy(sam);
    sam_close(in);
    return 0;
}
