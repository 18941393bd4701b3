/* SPDX-License-Identifier: MIT */
/* Blocks of SAM output: the text of a slot's records, plain or in BGZF blocks. Tasks make it, with htslib. */
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

/* sink: options of the blocks' sink; SINK_SAM_GZ: in BGZF blocks, otherwise plain. how: the caller owns it; its header
 * must be set before the first block. NULL: out of memory. */
struct sam_text *sam_text_new(const struct bgzf_sink_options *sink, const struct record_out_options *how);
void sam_text_free(struct sam_text *text);

/* Main thread: gives the slot room for its block. line: the record, if that is longer than a block; otherwise NULL.
 * False: all slots together would have too much. Then take back another slot's room, and try again; when no other slot
 * has any, this one gets it. */
bool sam_text_begin(struct sam_text *text, uint32_t slot, const struct record_ref *line);

/* Main thread: takes back the room of a slot whose block was written. */
void sam_text_give_back(struct sam_text *text, uint32_t slot);

/* Makes the output of the slot's block: from bytes of the header, or as lines of n records, whose record_checksum()s it
 * adds up in *checksum. Returns the number of bytes and sets *bytes to them; they stay until the slot's next block. 0:
 * failed, and the error is recorded in the latch. */
uint32_t sam_text_header(struct sam_text *text, uint32_t slot, const struct record_ref *part, const uint8_t **bytes);
uint32_t sam_text_records(struct sam_text *text, uint32_t slot, const struct record_ref *records, uint32_t n,
                          uint64_t *checksum, const uint8_t **bytes);

/* Bytes of memory for this, unless the text of many short records is more than four times as long as they are; in
 * addition, each thread may need the memory of one long record. */
size_t sam_text_memory(bool blocks, int level, int n_threads, uint32_t n_slots);

#endif
