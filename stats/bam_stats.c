/* SPDX-License-Identifier: MIT */
/* The driver of `stats`, `flagstat`, `idxstats` and `coverage`, which count the records of a file.
 *
 *   in.bam --> blocks --> chunks ----> counts ---> text
 *              inflate    counted by   joined in   printed
 *              tasks      tasks        order       when complete
 *
 * The main thread hands out the work; tasks join the counts in order (stats/join_tree.h). Counters that need the
 * records in sequence count on the main thread (stats/counted.h). Only the counts are kept; the records are not. With
 * an index, idxstats prints the numbers of the index and reads no record. */
#include "stats/bam_stats.h"
#include "hts/hts_file.h"
#include "base/engine.h"
#include "base/message.h"
#include "base/clocks.h"
#include "read/input_format.h"
#include "stats/counted.h"
#include "stats/idxstats.h"
#include "stats/stats_opts.h"
#include "write/out_text.h"

struct bam_stats {
    struct counted counted;
    hts_idx_t *index;            /* idxstats prints it; NULL: records are counted */
};

static void work(void *stats)
{
    struct counted *c = &((struct bam_stats *)stats)->counted;
    int more = counted_begin(c) < 0 ? -1 : 1;
    clocks_phase(c->d->engine.clocks, PHASE_READ);
    while (more > 0)
        more = counted_next(c);
    if (more == 0 && counted_end(c) == 0)
        written_counts(&c->d->out, c->counts);
}

/* Loads the index if the options allow it and it exists. Otherwise returns NULL. */
static hts_idx_t *find_index(const struct counted *c)
{
    const struct input *in = c->in.each;
    char *const *named = c->opts->common.in.indexes;
    enum input_kind kind = in->format->kind;
    bool is_bam = kind == INPUT_BAM_BLOCKS || kind == INPUT_BAM_GZIP || kind == INPUT_BAM_PLAIN;
    struct latch latch = {0};
    if (!c->opts->from_index || !is_bam)
        return NULL;
    const char *path = c->opts->common.in.paths[0];
    hts_idx_t *index = hts_file_load_index(NULL, in->name, path, named ? named[0] : NULL, &latch);
    if (!index)
        message_warning("fail to load index for \"%s\", reverting to slow method", in->name);
    return index;
}

static int print_index(void *stats, FILE *to)
{
    const struct bam_stats *s = stats;
    idxstats_print_index(s->index, s->counted.in.each->header.sam, to);
    return 0;
}

int bam_stats(const struct stats_opts *opts)
{
    struct latch latch = {0};
    struct driver d = {.engine.latch = &latch};
    struct bam_stats s = {.counted = {.d = &d, .opts = opts}};
    if (driver_begin(&d, &opts->common) == 0 && counted_open(&s.counted) == 0
        && out_file_open(d.out.counted, opts->common.out.path, &latch) == 0) {
        if ((s.index = find_index(&s.counted)))
            out_text_print(d.out.counted, print_index, &s, &latch);
        else
            driver_run(&d, &opts->common, &s.counted.in, work, &s);
    }
    uint64_t n = s.counted.chunks ? chunk_reader_counts(s.counted.chunks)->n : 0;
    driver_finish(&d);
    hts_idx_destroy(s.index);
    counted_close(&s.counted);
    return driver_end(&d, n);
}
