/* SPDX-License-Identifier: MIT */
/* What the text of tag MM is made of: chains like C+mh?,1,0; whose numbers count bases of SEQ (fixmate/base_mods.h). */
#ifndef MOD_CHAIN_H
#define MOD_CHAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MOD_CHAIN_ANY = 15 };     /* base N: all count */

/* The beginning of a chain. */
struct mod_chain {
    unsigned base;               /* as BAM has it */
    size_t n_types;              /* modifications that share the list, and have a value each in ML */
    const uint8_t *code_end;     /* if there is a number for a modification; else NULL */
    const uint8_t *list;         /* what is behind all that */
};

/* Reads the one at p, in a text with its NUL. False: it is none. */
bool mod_chain_read(const uint8_t *p, struct mod_chain *chain);

/* Reads a number as htslib does, and returns where it ends: p if there is none. 31 bits are enough for all that have a
 * meaning: else it is the largest, and *large is set. */
const uint8_t *mod_chain_number(const uint8_t *p, int64_t *value, bool *large);

/* Whether all chains of the text are whole. *n_values: how many values ML must have. */
bool mod_chain_all(const uint8_t *text, uint64_t *n_values);

/* Adds the bases [from, to) of each kind. */
void mod_chain_count_bases(const uint8_t *seq, int64_t from, int64_t to, int64_t counts[16]);

#endif
