/* SPDX-License-Identifier: MIT */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include "order/name_groups.h"
#include "order/name_natural.h"

/* How many separators a group may reach over: instrument, run and flowcell are three. */
enum { SEPARATORS_MAX = 6 };

/* Loads the 8 bytes at s as a number that has their order. Bytes behind the end of the buffer count as 0. */
static inline uint64_t load_word(const char *s, size_t size)
{
    uint64_t word = 0;
    if (size < 8)
        memcpy(&word, s, size);
    else
        memcpy(&word, s, 8);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    return word;
}

/* ---- finding ---- */

/* Compares the name with the group: < 0, it comes before all names of the group; 0, it is in the group,
 * and *rest is what follows; > 0, it comes after them. In natural order a name may be in a group without
 * having its bytes (a07: is in the group a7:). */
static int group_compare(const struct name_groups *groups, const struct name_group *group,
                         const char *name, const char **rest)
{
    char buffer[256];
    memcpy(buffer, group->name, group->n);
    buffer[group->n] = 0;
    if (groups->natural)
        return -name_natural_prefix(buffer, name, rest);
    int order = strncmp(name, buffer, group->n);
    if (order == 0)
        *rest = name + group->n;
    return order;
}

/* For a name that does not begin with the bytes of any group. */
static const char *find_slowly(const struct name_groups *groups, const char *name, uint64_t *key)
{
    size_t low = 0, high = groups->n;
    const char *rest = NULL;
    while (low < high) {
        size_t mid = (low + high) / 2;
        int order = group_compare(groups, &groups->by_name[mid], name, &rest);
        if (order == 0) {
            *key = groups->by_name[mid].base;
            return rest;
        }
        if (order < 0)
            high = mid;
        else
            low = mid + 1;
    }
    *key = low * (groups->range + 1);
    return NULL;
}

const char *name_groups_find(const struct name_groups *groups, const char *name, size_t size, uint64_t *key)
{
    *key = 0;
    if (groups->n == 0)
        return name;
    if (size > groups->common) {
        uint64_t word = load_word(name + groups->common, size - groups->common);
        const struct name_group *g = groups->by_word, *end = g + groups->n;
        for (size_t n = groups->n; n > 1; n -= n / 2)    /* finds the last word that is not above */
            g += g[n / 2].word <= word ? n / 2 : 0;
        while (g > groups->by_word && g[-1].word == g->word)
            g--;
        for (; g < end && g->word <= word; g++) {
            if (size > g->n && memcmp(name, g->name, g->n) == 0) {
                *key = g->base;
                return name + g->n;
            }
        }
    }
    return find_slowly(groups, name, key);
}

/* ---- learning ---- */

/* Length of the name up to and with its n-th separator; 0 if it has fewer. */
static size_t group_length(const char *name, int n)
{
    for (const char *s = name; *s; s++)
        if (!isalnum((unsigned char)*s) && --n == 0)
            return (size_t)(s + 1 - name);
    return 0;
}

static bool group_add(struct name_groups *groups, const char *name, size_t length, size_t *used)
{
    for (size_t i = 0; i < groups->n; i++)
        if (groups->by_name[i].n == length && memcmp(groups->by_name[i].name, name, length) == 0)
            return true;
    if (groups->n == GROUPS_MAX || *used + length > GROUPS_POOL)
        return false;
    char *copy = groups->pool + *used;
    memcpy(copy, name, length);
    *used += length;
    groups->by_name[groups->n++] = (struct name_group){.name = copy, .n = length};
    return true;
}

/* Cuts every name behind its n-th separator, n = separators. Returns false if there are too many groups or
 * a key does not tell the rests of the names apart. */
static bool groups_try(struct name_groups *groups, const struct text *sample, struct text *rests, size_t n, int separators)
{
    size_t used = 0;
    groups->n = 0;
    for (size_t i = 0; i < n; i++) {
        size_t length = group_length(sample[i].s, separators);
        if (length == 0 || !group_add(groups, sample[i].s, length, &used))
            return false;
        rests[i] = (struct text){sample[i].s + length, sample[i].n - length};
    }
    return text_code_fits(groups->natural, UINT64_MAX / groups->n - 1, rests, n);
}

static int order_natural(const void *a, const void *b)
{
    const struct name_group *x = a, *y = b;
    char s[256] = {0}, t[256] = {0};
    memcpy(s, x->name, x->n);
    memcpy(t, y->name, y->n);
    return name_natural_compare(s, x->n + 1, t, y->n + 1);
}

static int order_bytes(const void *a, const void *b)
{
    const struct name_group *x = a, *y = b;
    int order = memcmp(x->name, y->name, x->n < y->n ? x->n : y->n);
    return order ? order : (x->n > y->n) - (x->n < y->n);
}

static int order_words(const void *a, const void *b)
{
    const struct name_group *x = a, *y = b;
    return (x->word > y->word) - (x->word < y->word);
}

/* Sorts the groups. Returns false if two of them are the same name in natural order (a7: and a07:),
 * because such groups cannot both be used. */
static bool groups_sort(struct name_groups *groups)
{
    struct name_group *g = groups->by_name;
    qsort(g, groups->n, sizeof *g, groups->natural ? order_natural : order_bytes);
    for (size_t i = 1; i < groups->n; i++)
        if (groups->natural && order_natural(&g[i - 1], &g[i]) == 0)
            return false;
    return true;
}

static void groups_place(struct name_groups *groups)
{
    struct name_group *g = groups->by_name;
    groups->common = g[0].n - 1;
    for (size_t i = 1; i < groups->n; i++) {
        size_t same = 0;
        while (same < groups->common && same < g[i].n && g[i].name[same] == g[0].name[same])
            same++;
        groups->common = same;
    }
    groups->range = UINT64_MAX / groups->n - 1;
    for (size_t i = 0; i < groups->n; i++)
        g[i].base = i * (groups->range + 1) + 1;
    for (size_t i = 0; i < groups->n; i++)
        g[i].word = load_word(g[i].name + groups->common, g[i].n - groups->common);
    memcpy(groups->by_word, g, groups->n * sizeof *g);
    qsort(groups->by_word, groups->n, sizeof *g, order_words);
}

void name_groups_learn(struct name_groups *groups, bool natural, struct text *sample, size_t n)
{
    groups->n = 0;
    groups->natural = natural;
    groups->range = UINT64_MAX;
    struct text *rests = calloc(n + 1, sizeof *rests);
    bool found = !rests || n == 0 || text_code_fits(natural, UINT64_MAX, sample, n);
    if (!found) {
        for (int i = 1; i <= SEPARATORS_MAX && !found; i++)
            found = groups_try(groups, sample, rests, n, i);
        if (found && groups_sort(groups)) {
            groups_place(groups);
            memcpy(sample, rests, n * sizeof *sample);
        } else {
            groups->n = 0;
        }
    }
    free(rests);
}
