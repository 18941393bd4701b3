/* SPDX-License-Identifier: MIT */
/* Bytes as a file of htslib, which reads headers only from files. */
#ifndef HTS_MEMORY_H
#define HTS_MEMORY_H

#include <stddef.h>
#include <htslib/hfile.h>

/* Opens the n bytes, which malloc() returned, as a file that owns them. Returns NULL if bytes is NULL (the
 * caller's malloc() failed) or there is no memory for the file. */
hFILE *hts_memory_open(void *bytes, size_t n);

#endif
