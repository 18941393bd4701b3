/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>
#include "bam/program_names.h"
#include "base/endian_io.h"

int program_names_add(struct program_names *names, const char *from, const char *to)
{
    struct program_name *each = realloc(names->each, (names->n + 1) * sizeof *each);
    if (!each)
        return -1;
    names->each = each;
    each[names->n] = (struct program_name){strdup(from), strdup(to)};
    const struct program_name *added = &each[names->n++];
    return added->from && added->to ? 0 : -1;
}

static int compare(const void *a, const void *b)
{
    return strcmp(((const struct program_name *)a)->from, ((const struct program_name *)b)->from);
}

void program_names_sort(struct program_names *names)
{
    if (names->n)
        qsort(names->each, names->n, sizeof *names->each, compare);
}

void program_names_free(struct program_names *names)
{
    for (size_t i = 0; i < names->n; i++) {
        free(names->each[i].from);
        free(names->each[i].to);
    }
    free(names->each);
    *names = (struct program_names){.n = 0};
}

static int compare_id(const void *id, const void *name)
{
    return strcmp(id, ((const struct program_name *)name)->from);
}

/* The new ID of the program that the value from type to next names; NULL: it is no such string. */
static const char *new_id(const struct program_names *names, const uint8_t *type, const uint8_t *next)
{
    if (!next || *type != 'Z' || !bam_record_aux_is_closed(type, next))
        return NULL;
    const struct program_name *found = bsearch(type + 1, names->each, names->n, sizeof *found, compare_id);
    return found ? found->to : NULL;
}

int program_names_append(const struct program_names *names, struct byte_buffer *to, const struct bam_record *r)
{
    static const char HEAD[] = {'P', 'G', 'Z'};
    const uint8_t *p = (const uint8_t *)r, *end = p + bam_record_size(r);
    int bad;
    const uint8_t *type = names->n ? bam_record_aux_find(bam_record_aux(r), end, "PG", &bad) : NULL;
    const uint8_t *next = type ? bam_record_aux_skip(type, end) : NULL;
    const char *id = type ? new_id(names, type, next) : NULL;
    if (!id)
        return byte_buffer_append(to, p, (size_t)(end - p));
    size_t before = (size_t)(type - 2 - p), behind = (size_t)(end - next), start = to->n, id_size = strlen(id) + 1;
    size_t size = before + behind + sizeof HEAD + id_size;
    if (size - 4 > INT32_MAX)
        return -2;
    if (byte_buffer_reserve(to, start + size) < 0)
        return -1;
    byte_buffer_append(to, p, before);
    byte_buffer_append(to, next, behind);
    byte_buffer_append(to, HEAD, sizeof HEAD);
    byte_buffer_append(to, id, id_size);
    store_le32(to->p + start, (uint32_t)(size - 4));
    return 1;
}
