/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>
#include "base/byte_buffer.h"
#include "base/byte_hash.h"
#include "stats/stats_values.h"

/* Returns the slot of the text, or the free slot where it would be. */
static uint32_t *find_slot(const struct stats_values *v, const char *text)
{
    size_t mask = v->n_slots - 1, at = byte_hash((const uint8_t *)text, strlen(text), 0) & mask;
    while (v->slots[at] && strcmp(v->each[v->slots[at] - 1].text, text) != 0)
        at = (at + 1) & mask;
    return &v->slots[at];
}

static void *find(struct stats_values *v, const char *text)
{
    if (v->n == 0)
        return NULL;
    if (strcmp(v->each[v->last].text, text) != 0) {
        uint32_t number = *find_slot(v, text);
        if (number == 0)
            return NULL;
        v->last = number - 1;
    }
    return v->each[v->last].kept;
}

static int grow(struct stats_values *v)
{
    size_t n = v->n_slots ? 2 * v->n_slots : 16;
    uint32_t *slots = calloc(n, sizeof *slots);
    if (!slots)
        return -1;
    free(v->slots);
    v->slots = slots;
    v->n_slots = n;
    for (size_t i = 0; i < v->n; i++)
        *find_slot(v, v->each[i].text) = (uint32_t)i + 1;
    return 0;
}

/* Adds a text that the table lacks, and takes over `kept`. Returns -1 if out of memory. */
static int add(struct stats_values *v, const char *text, void *kept)
{
    if (!kept || (2 * v->n >= v->n_slots && grow(v) < 0))
        return -1;
    void *grown = byte_buffer_grow(v->each, v->n, &v->room, sizeof *v->each);
    if (!grown)
        return -1;
    v->each = grown;
    struct stats_value *added = &v->each[v->n];
    *added = (struct stats_value){strdup(text), kept};
    if (!added->text)
        return -1;
    *find_slot(v, text) = (uint32_t)++v->n;
    return 0;
}

void *stats_values_take(struct stats_values *v, const char *text, const struct stats_values_kind *kind, const void *arg)
{
    void *kept = find(v, text);
    if (kept)
        return kept;
    kept = kind->open(arg);
    if (add(v, text, kept) == 0)
        return kept;
    kind->close(kept);
    return NULL;
}

void stats_values_free(struct stats_values *v, const struct stats_values_kind *kind)
{
    for (size_t i = 0; i < v->n; i++) {
        free(v->each[i].text);
        kind->close(v->each[i].kept);
    }
    free(v->each);
    free(v->slots);
    *v = (struct stats_values){0};
}
