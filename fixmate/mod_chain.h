/* SPDX-License-Identifier: MIT */
/* The chains in the text of tag MM, such as C+mh?,1,0; whose numbers count bases of SEQ (fixmate/base_mods.h). */
#ifndef MOD_CHAIN_H
#define MOD_CHAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MOD_CHAIN_ANY = 15 };     /* base N: all bases are counted */

/* The start of a chain. */
struct mod_chain {
    unsigned base;               /* as BAM has it */
    size_t n_types;              /* modifications that share the list, and have one value each in ML */
    const uint8_t *code_end;     /* if a modification is given by number; otherwise NULL */
    const uint8_t *list;         /* the text after that */
};

/* Reads the chain at p, in a text with its NUL. False: it is not a chain. */
bool mod_chain_read(const uint8_t *p, struct mod_chain *chain);

/* Reads a number as htslib does, and returns its end: p if there is none. 31 bits are enough for all valid numbers: a
 * larger one becomes the largest, and *large is set. */
const uint8_t *mod_chain_number(const uint8_t *p, int64_t *value, bool *large);

/* Returns whether all chains of the text are complete. *n_values: number of values that ML must have. */
bool mod_chain_all(const uint8_t *text, uint64_t *n_values);

/* Adds the number of bases of each kind in [from, to). */
void mod_chain_count_bases(const uint8_t *seq, int64_t from, int64_t to, int64_t counts[16]);

#endif
