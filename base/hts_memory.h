/* SPDX-License-Identifier: MIT */
/* Bytes as a file of htslib's, which reads headers from files only. */
#ifndef HTS_MEMORY_H
#define HTS_MEMORY_H

#include <stddef.h>
#include <htslib/hfile.h>

/* Takes the n bytes, which malloc() gave; NULL: none could be had, here or before. */
hFILE *hts_memory_open(void *bytes, size_t n);

#endif
