/* SPDX-License-Identifier: MIT */
/* For -S, the names of duplicates whose other records (unmapped, secondary and supplementary ones) are duplicates, too.
 * The list is complete when all sets are decided. Serial; threads may look names up while none is added. */
#ifndef DUP_OTHERS_H
#define DUP_OTHERS_H

#include <stdbool.h>
#include "base/name_table.h"
#include "markdup/dup_verdict.h"

/* A zero-initialised struct is empty. Each entry needs its name, the name that it lost to, and some 40 bytes. */
struct dup_others {
    struct name_table names;
    struct byte_buffer entries;  /* entry of each name, by its number */
    struct byte_buffer originals;   /* their texts */
};

void dup_others_free(struct dup_others *others);

/* Adds a record that has lost and is `elsewhere` (struct dup_read). original: name of the winner, or NULL if do is not
 * requested. The type is that of this loss. Calls come in the order of losses; the first one for a name is kept.
 * Returns 0, or -1 if out of memory. */
int dup_others_add(struct dup_others *others, const char *name, const char *original, enum dup_type type,
                   uint32_t group);

/* Notes that the chain pass found a record of this name, which was added, to be an optical duplicate. */
void dup_others_retag(struct dup_others *others, const char *name);

/* Returns whether other records of the name are duplicates. If so, fills the verdict except the number, and the read
 * group of the loser. verdict->original is valid until the next name is added. */
bool dup_others_find(const struct dup_others *others, const char *name, struct dup_verdict *verdict, uint32_t *group);

#endif
