/* SPDX-License-Identifier: MIT */
/* Packed slices: records come back unchanged; and bytes that were damaged, but have the right checksum, are refused or
 * unpacked, inside the memory given.
 *
 *   0      | memory 2 | packed bytes
 *   others | changes  | records, until the changes: place 2, byte, ... */
#include "bam_arena.h"
#include "base/byte_hash.h"
#include "fuzz.h"
#include "sort/record_pack.h"
#include "sort/spill_slice.h"

enum { SLICE = 16 << 10, HASH = 8, CHANGE = 3 };

/* Unpacks into exactly `room` bytes; the caller frees base. */
static int unpack(struct spill_slice *slice, const uint8_t *packed, size_t n, size_t room)
{
    struct record_unpacker *unpacker = record_unpacker_new();
    uint8_t *exact = must_alloc(n + RECORD_PACK_SLACK);
    memcpy(exact, packed, n);
    memset(exact + n, 0xa5, RECORD_PACK_SLACK);
    room = room / sizeof(struct bam_key) * sizeof(struct bam_key);
    *slice = (struct spill_slice){.base = must_alloc(room), .size = room};
    MUST(unpacker);
    int result = spill_slice_unpack(slice, unpacker, exact, n);
    record_unpacker_free(unpacker);
    free(exact);
    return result;
}

static void unpack_hostile(const uint8_t *packed, size_t n, size_t room)
{
    struct spill_slice slice;
    uint8_t *right = exact_copy(packed, n);
    if (n >= SPILL_SLICE_HEADER) {
        spill_slice_size(right);
        store_le64(right, byte_hash(right + HASH, n - HASH, 0));
    }
    if (unpack(&slice, right, n, room) == 0) {
        const struct bam_key *keys = spill_slice_keys(&slice);
        size_t bytes = 0;
        for (size_t i = 0; i < slice.n; i++)
            bytes += bam_key_record_size(slice.base, keys[i]);
        MUST(bytes == slice.bottom && slice.bottom <= slice.size);
    }
    free(slice.base);
    free(right);
}

/* Packs the records of the input and keeps them in all[]; returns their number. */
static size_t pack(struct spill_packer *packer, struct feed *f, uint8_t *all, size_t *bytes)
{
    size_t n = 0;
    size_t size;
    for (*bytes = 0; (size = fuzz_record(f, all + *bytes)) > 0; n++) {
        uint8_t *record = exact_copy(all + *bytes, size);
        int added = spill_packer_add(packer, n * n, record, size);
        free(record);
        MUST(added >= 0);
        if (added == 0)
            break;
        *bytes += size;
    }
    return n;
}

static void round_trip(struct feed *records, struct feed *changes)
{
    static struct spill_packer *packer;
    uint8_t *all = must_alloc(SLICE + FUZZ_RECORD_MAX);
    const uint8_t *packed;
    struct spill_slice slice;
    size_t n_packed, bytes;
    if (!packer)
        MUST(packer = spill_packer_new(SLICE));
    size_t n = pack(packer, records, all, &bytes);
    MUST(spill_packer_pack(packer, &packed, &n_packed) == 0);
    MUST(unpack(&slice, packed, n_packed, SLICE) == 0);
    MUST(slice.n == n && slice.bottom == bytes && memcmp(slice.base, all, bytes) == 0);
    for (size_t i = 0; i < n; i++)
        MUST(spill_slice_keys(&slice)[i].sort == i * i);
    free(slice.base);
    uint8_t *changed = exact_copy(packed, n_packed);
    while (changes->left > 0) {
        size_t at = feed_byte(changes);
        at |= (size_t)feed_byte(changes) << 8;
        changed[at % n_packed] = feed_byte(changes);
    }
    unpack_hostile(changed, n_packed, SLICE);
    free(changed);
    free(all);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct feed f = {data, size};
    uint8_t kind = feed_byte(&f);
    if (kind == 0) {
        size_t room = feed_byte(&f);
        room |= (size_t)feed_byte(&f) << 8;
        unpack_hostile(f.p, f.left, room);
    } else {
        size_t n = (size_t)feed_byte(&f) * CHANGE;
        n = n < f.left ? n : f.left;
        struct feed records = {f.p, f.left - n}, changes = {f.p + f.left - n, n};
        round_trip(&records, &changes);
    }
    return 0;
}
