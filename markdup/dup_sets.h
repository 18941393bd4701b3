/* SPDX-License-Identifier: MIT */
/* The sets of duplicates that are open: one shard of markdup's two tables. A set is all records of one key whose window
 * is open. Its first record, the owner, opened it. It closes when samtools' queue would let the owner go, and the next
 * record of that key opens another one. The best record so far keeps the set; every other record has lost, and is a
 * duplicate from that moment on.
 *
 *   before z < M(owner) + window    z joins        before z: 0-based position of the record before z, on its reference
 *   before z >= M(owner) + window   z is an owner   M(owner): largest queue place of all records up to the owner there
 *
 * M never falls, so sets close in the order in which they opened, and one ring holds them. Keys are independent of each
 * other, so shards that divide the keys find the same sets. Serial; no I/O. */
#ifndef DUP_SETS_H
#define DUP_SETS_H

#include <stdbool.h>
#include <stdint.h>
#include "markdup/dup_key.h"

/* A record as its set keeps it. */
struct dup_member {
    uint64_t number;             /* number of the record in the input */
    int64_t leaves_at;           /* it leaves samtools' queue when a record begins here or later */
    const char *name;            /* NULL if it is not kept */
    int64_t score;               /* score; that of a pair end includes ms */
    uint32_t group;
    uint8_t name_len;            /* with its NUL, as in the record */
    bool pair_end : 1, qc_fail : 1, has_mate_score : 1, elsewhere : 1;
    bool leads : 1;              /* set by the caller for a newcomer that loses in the table of pairs: the result of
                                  * dup_sets_single() */
};

/* A loss of one record to another of its set, at the time of the later record. */
struct dup_loss {
    struct dup_member winner, loser;   /* their names are valid during the call */
    bool newcomer_won;
    bool single;                 /* the loss is in the table of singles */
};

/* Returns 0 to continue. */
typedef int dup_lost_fn(void *context, const struct dup_loss *loss);

/* A new record. Entries come in input order. */
struct dup_entry {
    uint64_t number;
    int64_t reach;               /* M of the record */
    int64_t before;              /* position of the record before it on its reference; INT64_MIN: none */
    const char *name;
    const struct dup_read *read; /* not an excluded record */
    uint8_t name_len;            /* with its NUL */
};

enum dup_fault {
    DUP_OK,
    DUP_NO_MEMORY,
    DUP_NO_MATE_SCORE,           /* two pair ends met, and one has no ms */
    DUP_BAD_NAME,                /* --read-coords does not match the name of an original */
    DUP_STOPPED,                 /* the callback for a loss did not return 0 */
    DUP_PAUSED,                  /* not a fault: the callback for a record returned 1 */
};

/* The fault as a phrase for an error message. A constant string. */
const char *dup_fault_text(enum dup_fault fault);

struct dup_sets;

/* Opens a shard. window: -l. keep_names: the losses of singles need names. NULL: out of memory. */
struct dup_sets *dup_sets_new(int64_t window, bool keep_names, dup_lost_fn *lost, void *context);
void dup_sets_free(struct dup_sets *sets);

/* Enters a record in the table of singles, for every record that takes part; or in the table of pairs, for pair ends
 * only, after the table of singles if one shard has both. *leads: it is now the best record of its set of singles, and
 * may win. */
enum dup_fault dup_sets_single(struct dup_sets *sets, const struct dup_entry *entry, bool *leads);
enum dup_fault dup_sets_pair(struct dup_sets *sets, const struct dup_entry *entry);

/* Closes the sets that a record after the position `before` cannot join. INT64_MAX: all sets, for the next reference
 * and for records without one. */
void dup_sets_pass(struct dup_sets *sets, int64_t before);

/* Returns the number below which all records are decided in this shard. UINT64_MAX: no set is open. */
uint64_t dup_sets_decided(const struct dup_sets *sets);

/* After DUP_NO_MATE_SCORE: the number of the record without ms. */
uint64_t dup_sets_culprit(const struct dup_sets *sets);

#endif
