/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include "mpi/rank_lists.h"

static size_t list_arena(struct rank_lists *l, const struct bam_arena *arena)
{
    for (size_t i = 0; i < arena->n_sublists; i++) {
        const struct bam_sublist *list = &arena->sublists[i];
        l->all[l->n++] = (struct merge_way){list->keys, list->keys + list->n, arena->base};
    }
    return l->n;
}

int rank_lists_make(struct rank_lists *l, struct arenas *a)
{
    size_t n = a->each[0].n_sublists + a->each[1].n_sublists;
    l->all = calloc(n + 1, sizeof *l->all);
    l->own = calloc(n + 1, sizeof *l->own);
    if (!l->all || !l->own)
        return -1;
    l->n_older = list_arena(l, arenas_other(a));
    list_arena(l, a->filled);
    return 0;
}

void rank_lists_free(struct rank_lists *l)
{
    free(l->all);
    free(l->own);
    *l = (struct rank_lists){.all = NULL};
}

void rank_lists_note_behind(struct rank_lists *l, const struct arenas *b)
{
    for (int i = 0; i < 2; i++)
        l->n_behind[i] = b->each[i].n_sublists;
}

/* Lists in `to` the parts of an arena's sublists. */
static void narrow(struct bam_sublist *to, const struct bam_arena *arena, const struct merge_way *parts)
{
    for (size_t i = 0; i < arena->n_sublists; i++) {
        struct bam_key *keys = arena->sublists[i].keys;
        to[i] = (struct bam_sublist){keys + (parts[i].next - keys), (size_t)(parts[i].end - parts[i].next)};
    }
}

/* Lets the merge see n sublists of an arena. */
static void show(struct rank_lists *l, struct merge_ring_options *how, const struct bam_arena *arena,
                 struct bam_sublist *lists, size_t n)
{
    struct bam_arena *view = &l->views[how->n_arenas];
    *view = *arena;
    view->sublists = lists;
    view->n_sublists = n;
    how->arenas[how->n_arenas++] = view;
}

void rank_lists_merge(struct rank_lists *l, const struct record_shares *shares, int rank, struct arenas *a,
                      struct arenas *b, struct merge_ring_options *how)
{
    const struct merge_way *own = record_shares_of(shares, rank);
    struct bam_arena *older = arenas_other(b), *newer = b->filled;
    size_t behind[] = {l->n_behind[older - b->each], l->n_behind[newer - b->each]};
    narrow(l->own, arenas_other(a), own);
    narrow(l->own + l->n_older, a->filled, own + l->n_older);
    how->n_arenas = 0;
    show(l, how, older, older->sublists + behind[0], older->n_sublists - behind[0]);
    show(l, how, newer, newer->sublists + behind[1], newer->n_sublists - behind[1]);
    show(l, how, arenas_other(a), l->own, l->n_older);
    show(l, how, a->filled, l->own + l->n_older, l->n - l->n_older);
    show(l, how, older, older->sublists, behind[0]);
    show(l, how, newer, newer->sublists, behind[1]);
}
