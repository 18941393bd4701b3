/* SPDX-License-Identifier: MIT */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include "order/name_groups.h"
#include "order/name_natural.h"

/* How many separators a group may reach over: instrument, run and flowcell are three. */
enum { SEPARATORS_MAX = 6 };

/* ---- finding ---- */

/* Compares the name with a group: < 0, it comes before all names of the group; 0, it is in the group,
 * and *rest is what follows; > 0, it comes after them. In natural order a name may be in a group without
 * having its bytes (a07: is in the group a7:). */
static int group_compare(bool natural, const char *group, const char *name, const char **rest)
{
    if (natural)
        return -name_natural_prefix(group, name, rest);
    for (; *group && *group == *name; group++)
        name++;
    *rest = name;
    return *group ? (uint8_t)*name - (uint8_t)*group : 0;
}

const char *name_groups_find(const struct name_groups *groups, const char *name, uint64_t *key)
{
    size_t low = 0, high = groups->n;
    const char *rest = NULL;
    *key = 0;
    if (groups->n == 0)
        return name;
    while (low < high) {
        size_t mid = (low + high) / 2;
        int order = group_compare(groups->natural, groups->name[mid], name, &rest);
        if (order == 0) {
            *key = mid * (groups->range + 1) + 1;
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
        if (strncmp(groups->name[i], name, length) == 0 && groups->name[i][length] == 0)
            return true;
    if (groups->n == GROUPS_MAX || *used + length + 1 > GROUPS_POOL)
        return false;
    char *copy = memcpy(groups->pool + *used, name, length);
    copy[length] = 0;
    *used += length + 1;
    groups->name[groups->n++] = copy;
    return true;
}

/* Cuts every name behind its n-th separator, n = separators. Returns false if there are too many groups or
 * a key does not tell the rests of the names apart. */
static bool groups_try(struct name_groups *groups, const struct text *sample, struct text *rests, size_t n,
                       int separators)
{
    size_t used = 0;
    groups->n = 0;
    for (size_t i = 0; i < n; i++) {
        size_t length = group_length(sample[i].s, separators);
        if (length == 0 || !group_add(groups, sample[i].s, length, &used))
            return false;
        rests[i] = (struct text){sample[i].s + length, sample[i].n - length};
    }
    if (groups->n == 0)
        return false;
    groups->range = UINT64_MAX / groups->n - 1;
    return text_code_fits(groups->natural, groups->range, rests, n);
}

static int order_natural(const void *a, const void *b)
{
    return name_natural_compare(*(char *const *)a, *(char *const *)b);
}

static int order_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Sorts the groups. Returns false if two of them are the same name in natural order (a7: and a07:),
 * because such groups cannot both be used. */
static bool groups_sort(struct name_groups *groups)
{
    qsort(groups->name, groups->n, sizeof *groups->name, groups->natural ? order_natural : order_bytes);
    for (size_t i = 1; i < groups->n && groups->natural; i++)
        if (order_natural(&groups->name[i - 1], &groups->name[i]) == 0)
            return false;
    return true;
}

void name_groups_learn(struct name_groups *groups, bool natural, struct text *sample, size_t n)
{
    groups->natural = natural;
    struct text *rests = calloc(n + 1, sizeof *rests);
    bool found = false;
    if (rests && n > 0 && !text_code_fits(natural, UINT64_MAX, sample, n))
        for (int i = 1; i <= SEPARATORS_MAX && !found; i++)
            found = groups_try(groups, sample, rests, n, i);
    if (found && groups_sort(groups)) {
        memcpy(sample, rests, n * sizeof *sample);
    } else {
        groups->n = 0;
        groups->range = UINT64_MAX;
    }
    free(rests);
}
