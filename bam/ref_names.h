/* SPDX-License-Identifier: MIT */
/* The numbers of references by name: the names of a header's @SQ lines, and their other names (AN, SAMv1 section 1.3).
 * The table copies all names and refers to no header. It needs 10 to 16 bytes for each name besides its text. Tasks may
 * share it while nothing is added. Serial. */
#ifndef REF_NAMES_H
#define REF_NAMES_H

#include <stddef.h>
#include <stdint.h>
#include <htslib/sam.h>

struct ref_names;

/* Makes the table of a header whose text htslib has parsed; if sam is NULL, an empty one. NULL: out of memory.
 * ref_names_free() frees it. */
struct ref_names *ref_names_new(sam_hdr_t *sam);
void ref_names_free(struct ref_names *names);

/* Adds the next reference. Its name must not be in the table. -1: out of memory. */
int ref_names_add(struct ref_names *names, const char *name, size_t n);

/* Adds the names in an AN list of n bytes to a reference, except those that are in the table. -1: out of memory. */
int ref_names_add_others(struct ref_names *names, int32_t ref, const char *list, size_t n);

/* The number of the reference with this name of n bytes; -1: there is none. */
int32_t ref_names_find(const struct ref_names *names, const char *name, size_t n);

/* Returns the same as ref_names_find(), but faster if the name is that of reference `ref`. */
int32_t ref_names_find_near(const struct ref_names *names, int32_t ref, const char *name, size_t n);

/* The number of references; other names are not counted. */
int32_t ref_names_count(const struct ref_names *names);

#endif
