/* SPDX-License-Identifier: MIT */
/* Blocks of SAM output: the text of a slot's records, plain or in BGZF blocks. Made in tasks, by htslib. */
#ifndef SAM_TEXT_H
#define SAM_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <htslib/sam.h>
#include "bam/bam_record.h"

struct bgzf_sink_options;
struct record_out_options;
struct sam_text;

/* sink: as the sink of the blocks has them; SINK_SAM_GZ: in BGZF blocks, else plain. how: stays the caller's; its
 * header is there before the first block. NULL: out of memory. */
struct sam_text *sam_text_new(const struct bgzf_sink_options *sink, const struct record_out_options *how);
void sam_text_free(struct sam_text *text);

/* Main thread: gives the slot room for its block. line: the record, if that is longer than blocks are; else NULL.
 * False: all slots together would have too much. Then give back another slot's room, and try again; when no other slot
 * has any, this one gets it. */
bool sam_text_begin(struct sam_text *text, uint32_t slot, const struct record_ref *line);

/* Main thread: takes the room of a slot back, of which the block is written. */
void sam_text_give_back(struct sam_text *text, uint32_t slot);

/* Makes the output of the slot's block: that of bytes of the header, or the lines of n records, whose
 * record_checksum()s it adds up in *checksum. Returns the number of bytes and sets *bytes to them; they stay until the
 * slot's next block. 0: failed, and the error is recorded in the latch. */
uint32_t sam_text_header(struct sam_text *text, uint32_t slot, const struct record_ref *part, const uint8_t **bytes);
uint32_t sam_text_records(struct sam_text *text, uint32_t slot, const struct record_ref *records, uint32_t n,
                          uint64_t *checksum, const uint8_t **bytes);

/* Bytes of memory that this takes, unless text is more than four times as long as many short records; beside it, each
 * thread may take those of one long record. */
size_t sam_text_memory(bool blocks, int level, int n_threads, uint32_t n_slots);

#endif
