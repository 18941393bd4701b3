/* SPDX-License-Identifier: MIT */
#include "base/hts_memory.h"

/* hopen() frees them when it fails, or does not: that depends on where it failed. What cannot be opened now is not tried
 * again, so they are left. */
hFILE *hts_memory_open(void *bytes, size_t n)
{
    return bytes ? hopen("mem:", "r:", bytes, n) : NULL;
}
