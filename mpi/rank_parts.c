/* SPDX-License-Identifier: MIT */
#include "base/clocks.h"
#include "base/engine.h"
#include "mpi/mpi_wait.h"
#include "mpi/rank_parts.h"
#include "order/sort_key.h"

struct rank_totals rank_parts_add_up(struct rank_totals mine)
{
    uint64_t from[] = {mine.records.n, mine.records.checksum, mine.bytes}, all[3];
    mpi_wait_allreduce(from, all, 3, MPI_UINT64_T, MPI_SUM);
    return (struct rank_totals){{.n = all[0], .checksum = all[1]}, all[2]};
}

void rank_parts_teach(const struct rank_parts *s, struct sorted *p)
{
    if (p->arenas.filled->rule)
        sort_rule_learn_of(p->rule, s->split.sample, s->split.sample_size, sam_hdr_nref(p->sam));
}

void rank_parts_run(struct rank_parts *s, void (*main_thread)(void *))
{
    latch_hide_signals(true);
    task_team(s->n_threads, main_thread, s);
}

/* MPI ends a process without the work of exit(), but the output may have a temporary name. */
_Noreturn void rank_parts_abort(struct rank_parts *s)
{
    written_abandon(&s->d.out);
    mpi_team_abort(&s->team, &s->latch_b);
}

void rank_parts_close(struct rank_parts *s, struct sorted *p)
{
    struct engine *engine = p == &s->a ? &s->engine_a : &s->d.engine;
    sorted_finish(p, s->n_threads, p == &s->b ? &s->d : NULL);
    if (engine->clocks)
        s->report.mine.temporary += clocks_total(engine->clocks, STAGE_SPILL_WRITE).bytes;
    clocks_free(engine->clocks);
    engine->clocks = NULL;
    p->engine = NULL;
}
