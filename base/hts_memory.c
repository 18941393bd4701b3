/* SPDX-License-Identifier: MIT */
#include "base/hts_memory.h"

/* If hopen() fails, it may have freed the bytes or not, depending on where it failed. So they are not
 * freed here. What cannot be opened now is not tried again, so such leaks do not add up. */
hFILE *hts_memory_open(void *bytes, size_t n)
{
    return bytes ? hopen("mem:", "r:", bytes, n) : NULL;
}
