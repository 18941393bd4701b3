/* SPDX-License-Identifier: MIT */
#include "bam/record_checksum.h"
#include "order/minhash.h"
#include "sort/minhash_run.h"

/* Ranks a read and turns it. Returns by how much that changes the checksum of what is written. */
static uint64_t rank_record(const struct minhash *m, struct bam_record *r, uint64_t *key)
{
    struct minhash_rank rank;
    size_t size = bam_record_size(r);
    uint64_t before = record_checksum((const uint8_t *)r, size);
    minhash_rank(m, r, &rank);
    minhash_apply(r, &rank);
    *key = minhash_key(m, r);
    minhash_finish(r);
    uint64_t after = record_checksum((const uint8_t *)r, size);
    if (!minhash_decides(m))
        minhash_keep(r, &rank);                  /* the merge still compares them */
    return after - before;
}

uint64_t minhash_run(const struct minhash *m, uint8_t *base, struct bam_key *keys, size_t n)
{
    uint64_t delta = 0;
    for (size_t i = 0; i < n; i++) {
        struct bam_record *r = (struct bam_record *)(base + (keys[i].place >> BAM_KEY_SIZE_BITS));
        if (minhash_applies(r))
            delta += rank_record(m, r, &keys[i].sort);
        else
            keys[i].sort = minhash_key(m, r);
    }
    return delta;
}

void minhash_run_finish(uint8_t *record)
{
    if (minhash_applies((const struct bam_record *)record))
        minhash_finish((struct bam_record *)record);
}
