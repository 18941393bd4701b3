/* SPDX-License-Identifier: MIT */
#include "order/minhash.h"
#include "sort/minhash_run.h"

/* The fields in which minhash_apply() keeps the rank. */
struct kept { uint8_t pos[4], next_pos[4], tlen[4]; };

static struct kept kept_fields(const struct bam_record *r)
{
    struct kept k;
    memcpy(k.pos, r->pos, 4);
    memcpy(k.next_pos, r->next_pos, 4);
    memcpy(k.tlen, r->tlen, 4);
    return k;
}

static void keep_fields(struct bam_record *r, struct kept k)
{
    memcpy(r->pos, k.pos, 4);
    memcpy(r->next_pos, k.next_pos, 4);
    memcpy(r->tlen, k.tlen, 4);
}

static uint64_t rank_record(const struct minhash *m, struct bam_record *r, uint64_t *key)
{
    struct minhash_rank rank;
    size_t size = bam_record_size(r);
    uint64_t before = bam_checksum((const uint8_t *)r, size);
    minhash_rank(m, r, &rank);
    minhash_apply(r, &rank);
    *key = minhash_key(m, r);
    struct kept kept = kept_fields(r);
    minhash_finish(r);
    uint64_t after = bam_checksum((const uint8_t *)r, size);
    if (!minhash_decides(m))
        keep_fields(r, kept);                    /* the merge compares them */
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
