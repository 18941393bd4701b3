/* SPDX-License-Identifier: MIT */
/* Bases that differ from the reference (MPC). */
#ifndef STATS_MISMATCH_H
#define STATS_MISMATCH_H

#include "stats/stats_fasta.h"
#include "stats/stats_log.h"
#include "stats/stats_view.h"

enum stats_mismatch { STATS_MISMATCH_OK, STATS_MISMATCH_BEYOND, STATS_MISMATCH_NO_MEMORY };

/* Logs the mismatches of a record. STATS_MISMATCH_BEYOND: a block reaches beyond the end of the sequence. */
enum stats_mismatch stats_mismatch_log(struct stats_log *log, const struct stats_view *v,
                                       const struct stats_sequence *sequence);

#endif
