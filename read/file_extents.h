/* SPDX-License-Identifier: MIT */
/* The parts of a BAM file that an index names, as if they were a file of their own:
 *
 *   in.bam  | block | block | block | block | ... | block | block | ...
 *                 <-- records ------------->    <---->
 *               | part | block | block | part |   | part | end |
 *
 * Records begin and end anywhere in blocks. So if only a part of a block is named, the block is inflated when it is
 * read, and that part is stored as a block. */
#ifndef FILE_EXTENTS_H
#define FILE_EXTENTS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct file_extents;
struct input_file;
struct ref_regions;

/* Makes the extents of these regions, which are united, in a BAM file that can be read anywhere. name: name of the
 * file, by which its index is found; index: the index itself, or NULL; header: the uncompressed size of the file's
 * header in bytes. NULL: failed, and the error is recorded in the file's latch. */
struct file_extents *file_extents_open(const struct input_file *file, const char *name, const char *index,
                                       uint64_t header, const struct ref_regions *regions);
void file_extents_free(struct file_extents *extents);

/* Returns the bytes of memory of the extents, and of n tasks that read them at one time. 0 for NULL. */
size_t file_extents_memory(const struct file_extents *extents, int n);

/* As input_file_read_at(), but reads the extents. Any thread may call it. */
ssize_t file_extents_read_at(const struct file_extents *extents, const struct input_file *file, void *buffer, size_t n,
                             uint64_t offset);

#endif
