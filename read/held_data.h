/* SPDX-License-Identifier: MIT */
/* Recognises files that only an output of records may replace: a mistyped option must not cost users their data. */
#ifndef HELD_DATA_H
#define HELD_DATA_H

/* Returns the kind of data with which the regular file of that name begins, in the words of messages ("BGZF or gzip"):
 * reads, references, their indexes, or anything compressed. NULL: none of these, or the file cannot be read. */
const char *held_data_kind(const char *path);

#endif
