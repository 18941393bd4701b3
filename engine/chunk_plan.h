/* SPDX-License-Identifier: MIT */
/* How the memory for records that are made in chunks is divided (read/chunk_reader.h). */
#ifndef CHUNK_PLAN_H
#define CHUNK_PLAN_H

#include "base/memory_shares.h"

/* Bytes per read of an input. */
static const size_t PIECE_MIN = (size_t)64 << 10, PIECE_MAX = (size_t)3 << 19;

/* Returns the memory to parse SAM text: about an eighth of `all` for n_inputs inputs together, or the least that works
 * for each input. */
struct chunk_memory chunk_plan_text(uint64_t all, size_t n_inputs, int n_threads);

/* Divides the memory of a job whose inputs are read in chunks, all at once: sets the fields of the rings that concern
 * inputs. */
void chunk_plan_merge(struct memory_rings *rings);

/* Returns the bytes that the chunks and slices take. n_chunked: as in struct memory_use. */
size_t chunk_plan_memory(const struct memory_rings *rings, size_t n_chunked);

#endif
