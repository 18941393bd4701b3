/* SPDX-License-Identifier: MIT */
/* Random piles through the core, in one shard and in several, against a simple model: a queue, tables without hashing,
 * and scans that compare all with all. */
#include "unit.h"
#include <limits.h>
#include <stdio.h>
#include "base/engine.h"
#include "base/latch.h"
#include "markdup/dup_links.h"
#include "markdup/dup_optical.h"
#include "markdup/marked_rounds.h"
#include "test/dup_driver.h"

enum { MOST = 300, NAME = 40 };

struct pile {
    struct dup_record records[MOST];
    char names[MOST][NAME];
    size_t n;
    int64_t window;
    struct dup_chains_opt opt;
    struct dup_counts counts;
};

/* ---- the model ---- */

struct model {
    const struct pile *pile;
    struct { bool open; size_t owner, best; } single[MOST], pair[MOST];    /* for each owner */
    size_t above[MOST];          /* MOST: none */
    bool optical[MOST];
    size_t original[MOST];       /* the original at the moment of the loss */
    uint64_t count[MOST];
    bool wins[MOST], checked[MOST];
    size_t head;
};

static struct dup_coords coords_of(const struct pile *p, size_t i)
{
    struct dup_coords_rule colons = {.by_regex = false};
    struct dup_coords coords;
    MUST(dup_coords_read(&colons, p->names[i], &coords) == DUP_NAME_OK);
    return coords;
}

static bool is_near(const struct pile *p, size_t a, size_t b)
{
    struct dup_coords x = coords_of(p, a), y = coords_of(p, b);
    return dup_coords_are_near(p->names[a], &x, p->names[b], &y, p->opt.distance);
}

static int64_t full_score(const struct pile *p, size_t i)
{
    const struct dup_read *r = &p->records[i].read;
    return r->kind == DUP_PAIR_END ? r->pair_score : r->score;
}

/* Returns whether a is better than b if both have lost, and in the table of pairs. */
static bool is_better(const struct pile *p, size_t a, size_t b)
{
    const struct dup_read *x = &p->records[a].read, *y = &p->records[b].read;
    if (x->kind != y->kind)
        return x->kind == DUP_PAIR_END;
    if (x->qc_fail != y->qc_fail)
        return y->qc_fail;
    if (full_score(p, a) != full_score(p, b))
        return full_score(p, a) > full_score(p, b);
    return strcmp(p->names[a], p->names[b]) < 0;
}

static void lose(struct model *m, size_t winner, size_t loser, bool newcomer_won)
{
    const struct dup_record *r = m->pile->records;
    m->above[loser] = m->original[loser] = winner;
    m->wins[winner] = true;
    m->optical[loser] = m->pile->opt.distance && is_near(m->pile, winner, loser);
    m->count[winner] += newcomer_won && r[winner].read.kind == r[loser].read.kind ? m->count[loser] : 1;
}

static void enter(struct model *m, size_t z)
{
    const struct dup_record *r = m->pile->records;
    size_t s = 0, k = 0;
    while (s < z && !(m->single[s].open && memcmp(&r[s].read.single, &r[z].read.single, sizeof r->read.single) == 0))
        s++;
    m->single[s].open = true;
    if (s == z) {
        m->single[s].best = z;
    } else if (r[m->single[s].best].read.kind == DUP_SINGLE) {
        size_t best = m->single[s].best;
        bool wins = r[z].read.kind == DUP_PAIR_END || r[z].read.score > r[best].read.score;
        lose(m, wins ? z : best, wins ? best : z, wins);
        m->single[s].best = wins ? z : best;
    } else if (r[z].read.kind == DUP_SINGLE) {
        lose(m, m->single[s].best, z, false);
    }
    if (r[z].read.kind != DUP_PAIR_END)
        return;
    while (k < z && !(m->pair[k].open && memcmp(&r[k].read.pair, &r[z].read.pair, sizeof r->read.pair) == 0))
        k++;
    m->pair[k].open = true;
    size_t best = k < z ? m->pair[k].best : z;
    bool wins = k < z && is_better(m->pile, z, best);
    if (k < z)
        lose(m, wins ? z : best, wins ? best : z, wins);
    m->pair[k].best = wins ? z : best;
}

static size_t root_of(const struct model *m, size_t i)
{
    while (m->above[i] < MOST)
        i = m->above[i];
    return i;
}

static size_t place_of(const struct pile *p, const struct dup_cluster *cluster)
{
    return (size_t)(cluster->name - p->names[0]) / NAME;
}

/* Scans like upstream. */
static void scan(struct dup_cluster *clusters, size_t n, const struct pile *p)
{
    for (size_t from = 0, to; from < n; from = to) {
        for (to = from + 1; to < n; to++)
            if (clusters[to].coords.n_tile == clusters[from].coords.n_tile
                && memcmp(clusters[to].name, clusters[from].name, clusters[to].coords.n_tile) != 0)
                break;
        for (size_t i = from; i < to; i++)
            for (size_t k = i + 1; k < to && clusters[k].coords.x - clusters[i].coords.x <= p->opt.distance; k++)
                if (labs(clusters[k].coords.y - clusters[i].coords.y) <= p->opt.distance) {
                    bool first = is_better(p, place_of(p, &clusters[i]), place_of(p, &clusters[k]));
                    clusters[first ? k : i].optical |= !(clusters[i].optical && clusters[k].optical);
                }
    }
}

static int by_tile(const void *x, const void *y)
{
    const struct dup_cluster *a = x, *b = y;
    if (a->coords.n_tile != b->coords.n_tile)
        return a->coords.n_tile < b->coords.n_tile ? -1 : 1;
    int order = memcmp(a->name, b->name, a->coords.n_tile);
    return order ? order : (a->coords.x > b->coords.x) - (a->coords.x < b->coords.x);
}

/* The chain pass, when the first member of a tree leaves: over the members in the queue. */
static void check_chain(struct model *m)
{
    struct dup_cluster clusters[MOST];
    const struct pile *p = m->pile;
    size_t n = 0, root = root_of(m, m->head);
    if (!p->opt.pass || m->checked[m->head] || (m->above[m->head] == MOST && !m->wins[m->head]))
        return;
    for (size_t i = m->head; i < p->n; i++)
        if (root_of(m, i) == root) {
            m->checked[i] = true;
            if (i == root)
                continue;
            m->original[i] = root;
            if (p->opt.distance)
                clusters[n++] = (struct dup_cluster){.name = p->names[i], .coords = coords_of(p, i),
                                             .optical = m->optical[i] || is_near(p, root, i)};
        }
    qsort(clusters, n, sizeof *clusters, by_tile);
    scan(clusters, n, p);
    for (size_t i = 0; i < n; i++)
        m->optical[place_of(p, &clusters[i])] = clusters[i].optical;
}

/* Heads leave the queue, as in upstream. */
static void leave(struct model *m, size_t z)
{
    const struct dup_record *r = m->pile->records;
    for (; m->head <= z; m->head++) {
        const struct dup_record *head = &r[m->head];
        if (head->read.place + m->pile->window > r[z].read.start && head->ref == r[z].ref && !r[z].ends_all)
            return;
        check_chain(m);
        m->single[m->head].open = m->pair[m->head].open = false;
    }
}

static void model_run(struct model *m, const struct pile *p)
{
    *m = (struct model){.pile = p};
    for (size_t i = 0; i < p->n; i++) {
        m->above[i] = m->original[i] = MOST;
        m->count[i] = 1;
    }
    for (size_t z = 0; z < p->n; z++) {
        if (p->records[z].read.kind != DUP_EXCLUDED)
            enter(m, z);
        leave(m, z);
    }
    for (; m->head < p->n; m->head++)
        check_chain(m);
}

/* ---- piles ---- */

static void pile_fill(struct pile *p, uint64_t *seed)
{
    static const char *const tiles[] = {"a:1:9", "a:1:8", "a:1:10", "a:1:11", "a:1:101"};
    unsigned wide = unit_below(seed, 2) ? 40 : 900, kinds = 2 + unit_below(seed, 3);
    int64_t start = 1000;
    int32_t ref = 0;
    p->n = 1 + unit_below(seed, MOST);
    p->window = (int64_t)unit_below(seed, 3) * 100;
    p->opt = (struct dup_chains_opt){.names = unit_below(seed, 2), .counts = unit_below(seed, 2),
                                     .pass = unit_below(seed, 3), .distance = unit_below(seed, 2) ? 60 : 0};
    for (size_t i = 0; i < p->n; i++) {
        struct dup_record *r = &p->records[i];
        bool away = unit_below(seed, 120) == 0, pair_end = unit_below(seed, 3);
        start += unit_below(seed, 4) ? 0 : unit_below(seed, wide);
        if (away)
            start = 1000;
        ref += away;
        *r = (struct dup_record){.name = p->names[i], .ref = ref};
        snprintf(p->names[i], NAME, "%s:%u:%u:%zu", tiles[unit_below(seed, N_OF(tiles))], unit_below(seed, 300),
                 unit_below(seed, 300), unit_below(seed, 2) ? i : 1000 - i);
        memmove(p->names[i], p->names[i] + 1, NAME - 1);                    /* ":1:9:x:y:i" */
        *strrchr(p->names[i], ':') = '_';
        if (ref > 4) {
            r->ref = -1;
            start = -1;
            r->ends_all = true;
        }
        r->read = (struct dup_read){
            .kind = unit_below(seed, 10) == 0 ? DUP_EXCLUDED : pair_end ? DUP_PAIR_END : DUP_SINGLE, .start = start,
            .qc_fail = unit_below(seed, 20) == 0, .has_mate_score = true, .score = unit_below(seed, 3),
            .pair_score = 10 + unit_below(seed, 3),
            .place = start + 1 - (int64_t)unit_below(seed, 2) * unit_below(seed, wide)};
        if (unit_below(seed, 3))                                            /* a pile */
            r->read.place = 1000 + unit_below(seed, 3);
        r->read.single = (struct dup_key){.here = r->read.place, .ref = r->ref, .kind = unit_below(seed, kinds) << 2};
        r->read.pair = r->read.single;
        r->read.pair.there = unit_below(seed, 2);
        r->read.pair.kind |= 1;
        if (unit_below(seed, 8) == 0)                                       /* one end of FF or RR */
            r->read.pair.here = 1000;
        if (r->read.kind == DUP_EXCLUDED)
            r->read.place = start;
    }
}

static void check(const struct pile *p, const struct model *m)
{
    bool chosen = p->opt.names || p->opt.distance;
    for (size_t i = 0; i < p->n; i++) {
        const struct dup_record *r = &p->records[i];
        assert_int_equal(r->lost, m->above[i] < MOST);
        if (p->opt.counts && !r->lost)
            assert_int_equal(r->count, m->count[i]);
        if (!r->lost || !chosen)
            continue;
        if (p->opt.names)
            assert_string_equal(r->original, p->names[m->original[i]]);
        assert_int_equal(r->type, !p->opt.distance ? DUP_TYPE_UNKNOWN
                                  : m->optical[i] ? DUP_TYPE_SEQUENCING : DUP_TYPE_LIBRARY);
    }
}

static void piles_unlike_the_plain_way(void **state)
{
    static struct pile pile;
    static struct model model;
    struct dup_coords_rule colons = {.by_regex = false};
    uint64_t seed = 7, n_lost = 0, n_optical = 0, n_stored = 0;
    (void)state;
    for (int round = 0; round < 1200; round++) {
        memset(&pile.counts, 0, sizeof pile.counts);
        pile_fill(&pile, &seed);
        pile.opt.coords_rule = &colons;
        model_run(&model, &pile);
        for (size_t shards = 1; shards <= 3; shards++) {
            struct dup_driver d = {.records = pile.records, .n = pile.n, .shards = shards, .window = pile.window,
                                   .opt = pile.opt, .counts = &pile.counts, .away = shards > 1,
                                   .most = unit_below(&seed, 3) * 6000};
            assert_int_equal(driver_run(&d), DUP_OK);
            check(&pile, &model);
            n_stored += d.stored.n / sizeof(struct byte_buffer);
            driver_free(&d);
        }
        n_lost += pile.counts.duplicate_pair + pile.counts.duplicate_single;
        n_optical += pile.counts.optical_pair + pile.counts.optical_single;
    }
    assert_true(n_lost > 10000 && n_optical > 1000 && n_stored > 1000);
}

/* A set uses memory only while it is open. */
static void sets_stay_open(void **state)
{
    (void)state;
    struct dup_driver d = {.n_losses = 0};
    struct dup_sets *sets = dup_sets_new(300, true, driver_lost, &d);
    for (uint64_t i = 0; i < 20000; i++) {
        struct dup_read read = {.kind = DUP_PAIR_END, .start = (int64_t)i, .place = (int64_t)i + 1};
        read.single.here = read.pair.here = read.place;
        read.pair.kind = 1;
        struct dup_entry entry = {.number = i, .reach = read.place, .before = (int64_t)i - 1, .name = "name",
                                  .name_len = sizeof "name", .read = &read};
        assert_int_equal(dup_sets_single(sets, &entry, &(bool){false}), DUP_OK);
        assert_int_equal(dup_sets_pair(sets, &entry), DUP_OK);
        assert_int_equal(dup_sets_decided(sets), i > 301 ? i - 301 : 0);
    }
    dup_sets_free(sets);
}

static void mate_score_that_is_needed(void **state)
{
    (void)state;
    struct dup_driver d = {.n_losses = 0};
    struct dup_sets *sets = dup_sets_new(300, true, driver_lost, &d);
    struct dup_read with = {.kind = DUP_PAIR_END, .has_mate_score = true}, without = {.kind = DUP_PAIR_END};
    struct dup_entry first = {.number = 4, .before = INT64_MIN, .name = "a", .name_len = 2, .read = &with};
    struct dup_entry second = first;
    second.number = 5;
    second.read = &without;
    assert_int_equal(dup_sets_pair(sets, &first), DUP_OK);
    assert_int_equal(dup_sets_pair(sets, &second), DUP_NO_MATE_SCORE);
    assert_int_equal(dup_sets_culprit(sets), 5);
    assert_non_null(strstr(dup_fault_text(DUP_NO_MATE_SCORE), "fixmate -m"));
    dup_sets_free(sets);
}

static int count_settled(void *n, const struct dup_verdict *verdict)
{
    *(uint64_t *)n += verdict->duplicate;
    return 0;
}

/* A large set uses little memory for each record, and none when it has closed. */
static void losses_take_much_memory(void **state)
{
    enum { LOSSES = 100000 };
    (void)state;
    static const char name[] = "A00000:1:HXXXXDSXX:1:1101:12345:12345";
    uint64_t n_settled = 0;
    struct dup_chains_opt opt = {.names = true, .pass = true, .settled = count_settled, .context = &n_settled};
    for (int named = 0; named < 2; named++) {
        struct dup_loss loss = {.winner = {.name = name, .name_len = sizeof name}, .newcomer_won = named};
        loss.loser = loss.winner;
        struct dup_chains *chains = dup_chains_new(&opt);
        size_t least = dup_chains_memory(chains), most = LOSSES * (70 + (named ? sizeof name : 0));
        for (uint64_t i = 1; i <= LOSSES; i++) {
            loss.winner.number = named ? i : 0;
            loss.loser.number = named ? i - 1 : i;
            assert_int_equal(dup_chains_lose(chains, &loss), DUP_OK);
        }
        assert_in_range(dup_chains_memory(chains), LOSSES * 40, most);
        assert_int_equal(dup_chains_decided(chains), 0);
        assert_int_equal(dup_chains_pass(chains, INT64_MAX), DUP_OK);
        assert_in_range(dup_chains_memory(chains), least, LOSSES * 10);
        dup_chains_free(chains);
    }
    assert_int_equal(n_settled, 2 * LOSSES);
}

/* If most losses are in files, they use little memory, with any options: many at one place, and many small sets. */
static void losses_in_files_take_memory(void **state)
{
    enum { LOSSES = 100000, MOST_BYTES = 1 << 20 };
    static const char name[] = "A00000:1:HXXXXDSXX:1:1101:12345:12345";
    (void)state;
    for (int kind = 0; kind < 4; kind++) {
        struct dup_driver d = {.away = false};
        struct dup_coords_rule colons = {.by_regex = false};
        struct dup_store store = {.put = driver_put, .get = driver_get, .drop = driver_drop, .context = &d,
                                  .most = MOST_BYTES, .is_open = true};
        uint64_t n_settled = 0, sets = kind < 2 ? 1 : 1000;
        struct dup_chains_opt opt = {.names = true, .pass = true, .distance = kind % 2 ? 100 : 0,
                                     .coords_rule = &colons, .totals = &(struct dup_counts){.read = 0}, .store = &store,
                                     .settled = count_settled, .context = &n_settled};
        struct dup_loss loss = {.winner = {.name = name, .name_len = sizeof name}};
        loss.loser = loss.winner;
        struct dup_chains *chains = dup_chains_new(&opt);
        size_t most = 0;
        for (uint64_t i = sets; i <= LOSSES; i++) {
            loss.winner.number = i % sets;
            loss.loser.number = i;
            assert_int_equal(dup_chains_lose(chains, &loss), DUP_OK);
            most = dup_chains_memory(chains) > most ? dup_chains_memory(chains) : most;
        }
        assert_in_range(most, MOST_BYTES, 3 * MOST_BYTES);
        assert_int_equal(dup_chains_pass(chains, INT64_MAX), DUP_OK);
        assert_in_range(dup_chains_memory(chains), 1, 3 * MOST_BYTES);
        assert_int_equal(n_settled, LOSSES - sets + 1);
        dup_chains_free(chains);
        driver_free(&d);
    }
}

/* The verdict on record 2. */
static int keep_type(void *type, const struct dup_verdict *verdict)
{
    if (verdict->number == 2)
        *(enum dup_type *)type = verdict->type;
    return 0;
}

/* One record of a run in a file has left: it is close to record 2, and better. */
static void who_has_left_is_compared(void **state)
{
    (void)state;
    static const char *const names[] = {"a:1:1:40000:0", "a:1:1:0:0", "a:1:1:1:0", "a:1:1:20000:0", "a:1:1:50000:0"};
    static const int64_t leaves_at[] = {5, 10, 300, 500, 6000};
    struct dup_member m[5];
    struct dup_driver d = {.away = false};
    struct dup_coords_rule colons = {.by_regex = false};
    enum dup_type type = DUP_TYPE_UNKNOWN;
    struct dup_store store = {.put = driver_put, .get = driver_get, .drop = driver_drop, .context = &d};
    struct dup_chains_opt opt = {.pass = true, .distance = 100, .coords_rule = &colons, .store = &store,
                                 .totals = &(struct dup_counts){.read = 0}, .settled = keep_type, .context = &type};
    struct dup_chains *chains = dup_chains_new(&opt);
    for (size_t i = 0; i < N_OF(m); i++)
        m[i] = (struct dup_member){.number = i, .leaves_at = leaves_at[i], .name = names[i], .score = 9 - (int64_t)i,
                                   .name_len = (uint8_t)(strlen(names[i]) + 1)};
    assert_int_equal(dup_chains_lose(chains, &(struct dup_loss){m[0], m[1], .newcomer_won = false}), DUP_OK);
    store.is_open = true;
    assert_int_equal(dup_chains_lose(chains, &(struct dup_loss){m[0], m[3], .newcomer_won = false}), DUP_OK);
    assert_true(d.stored.n > 0);
    assert_int_equal(dup_chains_pass(chains, 10), DUP_OK);
    for (size_t loser = 0; loser <= 2; loser += 2)
        assert_int_equal(dup_chains_lose(chains, &(struct dup_loss){m[4], m[loser], .newcomer_won = true}), DUP_OK);
    assert_int_equal(dup_chains_decided(chains), 2);
    assert_int_equal(dup_chains_pass(chains, INT64_MAX), DUP_OK);
    assert_int_equal(type, DUP_TYPE_LIBRARY);
    dup_chains_free(chains);
    driver_free(&d);
}

/* Roots that have lost: the first one has left before, the other one has not. */
static void dropped_link_stays(void **state)
{
    (void)state;
    uint32_t at[3];
    struct dup_links links = {.n_links = 0};
    assert_int_equal(dup_links_open(&links), 0);
    for (uint64_t i = 0; i < N_OF(at); i++)
        at[i] = dup_links_take(&links, &(struct dup_member){.number = i}, false);
    size_t each = links.pool.taken / N_OF(at);
    assert_int_equal(dup_links_first(&links), at[0]);
    dup_links_pop(&links);
    dup_node_at(&links, at[0])->gone = true;
    dup_links_drop(&links, at[0]);
    assert_int_equal(links.pool.taken, 2 * each);
    dup_links_drop(&links, at[1]);
    assert_int_equal(dup_links_first(&links), at[2]);
    assert_int_equal(links.pool.taken, each);
    dup_links_free(&links);
}

/* Trees after one that stays open: they would wait for it, and it may stay open forever. */
static void closed_trees_stay(void **state)
{
    (void)state;
    struct dup_chains_opt opt = {.counts = true, .settled = count_settled, .context = &(uint64_t){0}};
    struct dup_chains *chains = dup_chains_new(&opt);
    struct dup_loss first = {{.number = 0, .name = "a", .name_len = 2}, {.number = 1, .name = "b", .name_len = 2},
                             .newcomer_won = false};
    assert_int_equal(dup_chains_lose(chains, &first), DUP_OK);
    size_t least = dup_chains_memory(chains), most = least;
    for (uint64_t i = 2; i < 100000; i += 2) {
        struct dup_loss loss = first;
        loss.winner.number = i;
        loss.loser.number = i + 1;
        loss.winner.leaves_at = loss.loser.leaves_at = first.loser.leaves_at = (int64_t)i;
        assert_int_equal(dup_chains_lose(chains, &loss), DUP_OK);
        assert_int_equal(dup_chains_lose(chains, &first), DUP_OK);
        assert_int_equal(dup_chains_pass(chains, (int64_t)i - 10), DUP_OK);
        most = dup_chains_memory(chains) > most ? dup_chains_memory(chains) : most;
    }
    assert_int_equal(most, least);
    dup_chains_free(chains);
}

static void losses_leave_room_to_read(void **state)
{
    (void)state;
    struct latch latch = {0};
    const struct engine engine = {.latch = &latch};
    struct marked_rounds_options opt = {.chains = {.names = true}, .follows = true, .engine = &engine};
    struct marked_rounds *rounds = marked_rounds_open(&opt);
    MUST(rounds);
    assert_in_range(marked_rounds_memory(rounds, SIZE_MAX), 101, 10000);
    assert_int_equal(marked_rounds_memory(rounds, 100), 100);
    marked_rounds_close(rounds);
}

struct clusters {
    struct dup_cluster *all;
    size_t most;                 /* the most clusters that were read at once */
};

static void read_clusters(void *clusters, const uint32_t *members, size_t n, struct dup_cluster *read)
{
    struct clusters *d = clusters;
    d->most = n > d->most ? n : d->most;
    for (size_t i = 0; i < n; i++)
        read[i] = d->all[members[i]];
}

static void mark_cluster(void *clusters, uint64_t member, const struct dup_cluster *cluster)
{
    (void)cluster;
    ((struct clusters *)clusters)->all[member].optical = true;
}

/* Returns the most that were read at once. */
static size_t mark_clusters(struct dup_cluster *all, uint32_t n)
{
    struct clusters clusters = {all, 0};
    struct dup_clusters list = {.tiles = {.mask = 0}};
    for (uint32_t i = 0; i < n; i++)
        assert_int_equal(dup_clusters_add(&list, i, all[i].name, &all[i].coords), 0);
    assert_int_equal(dup_clusters_mark(&list, &(struct dup_members){read_clusters, {100, mark_cluster, &clusters}}), 0);
    dup_clusters_free(&list);
    return clusters.most;
}

/* Clusters of a tile are close to each other, the later ones better. Only tile 8 has two digits: it is one group with
 * 9. */
static void tiles_are_read_together(void **state)
{
    enum { TILES = 10, EACH = 20 };
    (void)state;
    struct dup_cluster clusters[TILES * EACH];
    for (size_t i = 0; i < TILES * EACH; i++)
        clusters[i] = (struct dup_cluster){.name = "0123456789", .score = (int64_t)i,
                                   .coords = {.x = (long)i, .tile = (uint8_t)(i % TILES),
                                            .n_tile = 1 + (i % TILES == 8)}};
    assert_int_equal(mark_clusters(clusters, TILES * EACH), 2 * EACH);
    for (size_t i = 0; i < TILES * EACH; i++)
        assert_int_equal(clusters[i].optical, i < TILES * (EACH - 1) || i % TILES == 8);
}

/* Many on one tile, where upstream compares all with all. */
static void large_pile_of_clusters(void **state)
{
    enum { DOTS = 300000 };
    (void)state;
    uint64_t seed = 3;
    struct dup_cluster *clusters = calloc(DOTS, sizeof *clusters);
    MUST(clusters);
    for (size_t i = 0; i < DOTS; i++)
        clusters[i] = (struct dup_cluster){.name = "aab", .score = (int64_t)i, .pair_end = true,
                                   .coords = {.x = (long)(i % 50), .y = (long)unit_below(&seed, 1 << 30),
                                            .n_tile = (uint8_t)(1 + i % 3)}};
    clusters[0].coords.y = LONG_MIN;
    clusters[1].coords.y = LONG_MAX;
    mark_clusters(clusters, DOTS);
    size_t n = 0;
    for (size_t i = 0; i < DOTS; i++)
        n += clusters[i].optical;
    assert_in_range(n, 1, DOTS / 2);
    free(clusters);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(piles_unlike_the_plain_way), cmocka_unit_test(sets_stay_open),
        cmocka_unit_test(mate_score_that_is_needed), cmocka_unit_test(large_pile_of_clusters),
        cmocka_unit_test(tiles_are_read_together),
        cmocka_unit_test(losses_take_much_memory), cmocka_unit_test(losses_in_files_take_memory),
        cmocka_unit_test(who_has_left_is_compared), cmocka_unit_test(dropped_link_stays),
        cmocka_unit_test(closed_trees_stay), cmocka_unit_test(losses_leave_room_to_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
