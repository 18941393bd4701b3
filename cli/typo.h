/* SPDX-License-Identifier: MIT */
#ifndef TYPO_H
#define TYPO_H

#include <stdbool.h>
#include <stddef.h>

/* Returns whether the first n characters of a word are `known`, in upper or lower case and with at most one typo: a
 * character more, less or changed, or two neighbours swapped. */
bool typo_is_of(const char *word, size_t n, const char *known);

#endif
