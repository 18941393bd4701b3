/* SPDX-License-Identifier: MIT */
/* A CRAM compression header is only read within its bytes, and more bytes after a broken one do not make it valid. */
#include "hts/cram_maps.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bool broken = false;
    for (size_t n = size / 2; n <= size; n++) {
        uint8_t *exact = exact_copy(data, n);
        bool whole = cram_maps_whole(exact, n);
        MUST(!broken || !whole);
        broken = !whole;
        free(exact);
    }
    return 0;
}
