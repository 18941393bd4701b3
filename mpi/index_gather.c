/* SPDX-License-Identifier: MIT */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include "base/byte_buffer.h"
#include "base/latch.h"
#include "codec/bgzf_block.h"
#include "bam/bam_record.h"
#include "mpi/index_gather.h"
#include "mpi/mpi_wait.h"
#include "hts/bam_index.h"

enum {
    ENTRIES_MOST = BGZF_FILL / BAM_MIN_RECORD + 1,   /* entries of a block, at most */
    CHUNK = sizeof(struct bam_index_block) + ENTRIES_MOST * sizeof(struct bam_index_entry),
};

/* Returns the bytes of the complete blocks at the beginning of log[n] that one message takes. */
static size_t whole_blocks(const uint8_t *log, size_t n)
{
    size_t at = 0;
    struct bam_index_block block;
    while (at < n) {
        memcpy(&block, log + at, sizeof block);
        size_t size = sizeof block + block.n * sizeof(struct bam_index_entry);
        assert(size <= CHUNK);
        if (at + size > CHUNK)
            break;
        at += size;
    }
    return at;
}

/* Sends the log to rank 0. The last message is empty. */
static void send_log(const struct byte_buffer *log)
{
    for (size_t at = 0, n = 1; n > 0; at += n) {
        n = whole_blocks(log->p + at, log->n - at);
        mpi_wait_send(log->p + at, (int)n, MPI_BYTE, 0, MPI_TEAM_INDEX);
    }
}

/* Enters the blocks of chunk[n], which lie after `place` in the file. entries: room for the entries of a block. -1:
 * failed, and the error is recorded in the latch. */
static int enter(struct bam_index *index, const uint8_t *chunk, size_t n, uint64_t place,
                 struct bam_index_entry *entries, struct latch *latch)
{
    struct bam_index_block block;
    for (size_t at = 0; at < n; at += block.n * sizeof *entries) {
        memcpy(&block, chunk + at, sizeof block);
        at += sizeof block;
        memcpy(entries, chunk + at, block.n * sizeof *entries);
        uint32_t done = bam_index_add(index, place + block.offset, block.size, place + block.next, entries, block.n);
        if (done < block.n)
            return bam_index_refuse(bam_index_header(index), &entries[done], NULL, "the index", latch);
    }
    return 0;
}

static int receive_log(struct bam_index *index, int from, uint64_t place, uint8_t *chunk,
                       struct bam_index_entry *entries, struct latch *latch)
{
    for (;;) {
        int n = mpi_wait_receive(chunk, CHUNK, MPI_BYTE, from, MPI_TEAM_INDEX);
        if (n == 0)
            return 0;
        if (enter(index, chunk, (size_t)n, place, entries, latch) < 0)
            return -1;
    }
}

int index_gather(const struct mpi_team *team, struct bam_index *index, const uint64_t *places, struct latch *latch)
{
    if (team->rank > 0) {
        send_log(bam_index_log(index));
        return 0;
    }
    uint8_t *chunk = malloc(CHUNK);
    struct bam_index_entry *entries = malloc(ENTRIES_MOST * sizeof *entries);
    int result = chunk && entries ? 0 : latch_fail(latch, "out of memory for the index");
    for (int i = 1; chunk && entries && i < team->size && result == 0; i++)
        result = receive_log(index, i, places[i], chunk, entries, latch);
    free(chunk);
    free(entries);
    return result < 0 ? -1 : bam_index_save(index, latch);
}
