/* SPDX-License-Identifier: MIT */
/* What an index names of a BAM file, as if it were a file of its own:
 *
 *   in.bam  | block | block | block | block | ... | block | block | ...
 *                 <-- records ------------->    <---->
 *               | part | block | block | part |   | part | end |
 *
 * Records begin and end anywhere in blocks. So a block of which only a part is named is inflated when it is read, and
 * that part is stored as a block. */
#ifndef FILE_EXTENTS_H
#define FILE_EXTENTS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct file_extents;
struct input_file;
struct ref_regions;

/* What there is of these regions, which are united, of a BAM file that can be read anywhere. name: the file's, by which
 * its index is found; index: the index itself, or NULL; header: the uncompressed bytes of its header. NULL: failed, and
 * the error is recorded in the file's latch. */
struct file_extents *file_extents_open(const struct input_file *file, const char *name, const char *index,
                                       uint64_t header, const struct ref_regions *regions);
void file_extents_free(struct file_extents *extents);

/* Bytes of memory that it takes, with what n tasks take that read at one time. 0 for NULL. */
size_t file_extents_memory(const struct file_extents *extents, int n);

/* As input_file_read_at(), of the extents. Any thread may call it. */
ssize_t file_extents_read_at(const struct file_extents *extents, const struct input_file *file, void *buffer, size_t n,
                             uint64_t offset);

#endif
