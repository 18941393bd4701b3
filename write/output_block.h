/* SPDX-License-Identifier: MIT */
/* Blocks of BAM or SAM output: how records are divided into blocks, and what the block's task does with them. */
#ifndef OUTPUT_BLOCK_H
#define OUTPUT_BLOCK_H

#include <stddef.h>
#include <stdint.h>
#include <htslib/sam.h>
#include "bam/bam_record.h"
#include "bgzf_omp.h"
#include "write/copied_blocks.h"
#include "write/record_list.h"
#include "write/record_out.h"

struct bam_index;

struct output_blocks;

/* The callbacks in options are set here. NULL: out of memory, and the error is recorded in the latch. */
struct output_blocks *output_blocks_open(const struct bgzf_sink_options *options);
void output_blocks_close(struct output_blocks *blocks);

/* The sink of the blocks, for its marks and to help it. */
struct bgzf_sink *output_blocks_sink(const struct output_blocks *blocks);

/* Enters every record that is put from now on into the index. -1: out of memory. */
int output_blocks_set_index(struct output_blocks *blocks, struct bam_index *index);

/* Returns the changes and checks for records. Set them before the first put. SAM uses the header, which must stay
 * unchanged. */
struct record_out_options *output_blocks_how(struct output_blocks *blocks);

/* Puts bytes that belong to no record: a header. They begin a block and must stay unchanged like records. -1: stop. */
int output_blocks_put_header(struct output_blocks *blocks, const uint8_t *data, size_t size);

/* Puts records, in order. Each goes into the block being filled. If it does not fit, that block is handed to a task and
 * the next one is begun. A record that is longer than a block begins a block, and is cut into segments (not for SAM).
 * Records, and the list too if it has `fit`, must stay unchanged until bgzf_sink_passed() is true for a mark of the
 * sink taken after them. -1: stop. */
int output_blocks_put(struct output_blocks *blocks, const struct record_list *list);

/* Ends the block being filled. -1: stop. */
int output_blocks_flush(struct output_blocks *blocks);

/* Flushes and finishes the sink. -1: failed, and the error is recorded in the latch. */
int output_blocks_finish(struct output_blocks *blocks);

/* Sum of record_checksum() over the records put, computed from the bytes in the blocks. Call it after finish. */
uint64_t output_blocks_checksum(const struct output_blocks *blocks);

/* Counts of the blocks copied from an input. Call it after finish. */
struct copied_count output_blocks_copied(const struct output_blocks *blocks);

/* Bytes of memory for these blocks and their sink. */
size_t output_blocks_memory(enum sink_form form, int n_threads, uint32_t n_slots, int level, size_t piece_size);

#endif
