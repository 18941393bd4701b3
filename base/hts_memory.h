/* SPDX-License-Identifier: MIT */
/* Bytes as a file of htslib, which reads headers only from files. */
#ifndef HTS_MEMORY_H
#define HTS_MEMORY_H

#include <stddef.h>
#include <htslib/hfile.h>

/* Opens the n bytes, which malloc() returned, as a file that owns them. Returns NULL if bytes is NULL (the
 * caller's malloc() failed) or there is no memory for the file. If hopen() fails, it may have freed the bytes or not,
 * depending on where it failed. So they are not freed here. What cannot be opened now is not tried again, so such leaks
 * do not add up. */
static inline hFILE *hts_memory_open(void *bytes, size_t n)
{
    return bytes ? hopen("mem:", "r:", bytes, n) : NULL;
}

#endif
