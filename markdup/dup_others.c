/* SPDX-License-Identifier: MIT */
#include "markdup/dup_others.h"

struct entry {
    size_t original;             /* start of its text + 1; 0: none */
    enum dup_type type;
    uint32_t group;
};

void dup_others_free(struct dup_others *others)
{
    name_table_free(&others->names);
    free(others->entries.p);
    free(others->originals.p);
    *others = (struct dup_others){.names = {.mask = 0}};
}

static struct entry *entry_at(const struct dup_others *others, const char *name)
{
    int32_t number = name_table_find(&others->names, name, strlen(name));
    return number < 0 ? NULL : (struct entry *)(void *)others->entries.p + number;
}

int dup_others_add(struct dup_others *others, const char *name, const char *original, enum dup_type type,
                   uint32_t group)
{
    struct entry entry = {.original = original ? others->originals.n + 1 : 0, .type = type, .group = group};
    if (entry_at(others, name))
        return 0;
    if (byte_buffer_reserve(&others->entries, others->entries.n + sizeof entry) < 0
        || (original && byte_buffer_append(&others->originals, original, strlen(original) + 1) < 0)
        || name_table_add(&others->names, name, strlen(name)) < 0)
        return -1;
    return byte_buffer_append(&others->entries, &entry, sizeof entry);
}

void dup_others_retag(struct dup_others *others, const char *name)
{
    struct entry *entry = entry_at(others, name);
    if (entry)
        entry->type = DUP_TYPE_SEQUENCING;
}

bool dup_others_find(const struct dup_others *others, const char *name, struct dup_verdict *verdict, uint32_t *group)
{
    const struct entry *entry = entry_at(others, name);
    if (!entry)
        return false;
    const char *original = entry->original ? (const char *)others->originals.p + entry->original - 1 : NULL;
    *verdict = (struct dup_verdict){.number = verdict->number, .duplicate = true, .type = entry->type,
                                    .original = original};
    *group = entry->group;
    return true;
}
