# SPDX-License-Identifier: MIT
"""One line of each guard, made blind. Each row: the file; its text, which must be there once; what it becomes; the tests
that must fail then (a unit test's program, or pytest's name of a test); what the guard is for. check_mutants.py runs
them. A new guard brings its row."""

GUARDS = "test_guards.py::"
SAFETY = "test_safety.py::"
SPILL = "test_spill.py::"
MPI = "test_mpi.py::"
MPI_INPUT = "test_mpi_input.py::"
MPI_OUT = "test_mpi_output.py::"
MPI_WHOLE = "test_mpi_whole.py::"

# Of --verify: the sum is made before the block is deflated, or of what inflates from it.
SUM_FIRST = """    if (!o->verify)
        block->checksum = checksum_block(o, block, data);
    if (o->index)
        list_entries(o, block);
    stats_leave(o->opt.stats, before, block->size);
    return block->size;
}

/* With --verify, the checksum is that of what inflates from the block. So bytes that changed on their way to the
 * encoder show in it. */
static void verify(void *blocks, uint32_t slot, const uint8_t *data, const uint8_t *deflated, uint32_t length)
{
    struct output_blocks *o = blocks;
    struct output_block *block = &o->slots[slot];
    if (!o->verify)
        return;
    int thread = task_thread();
    enum stage before = stats_enter(o->opt.stats, STAGE_VERIFY);
    if (sink_verify_block(o->verify, thread, deflated, length, data, block->size) == 0
        && sink_verify_order(o->verify, block->records, block->n, &block->ends) == 0)
        block->checksum = checksum_block(o, block, sink_verify_inflated(o->verify, thread));
"""

MUTANTS = [
    # ------------------------------------------------------------ records in == records out
    ("write/sort_files.c", "if (n_in == n_out && in == out)", "if (n_in == n_out || in == out)",
     [GUARDS + "test_fault_in_the_arena_passes[bam-memory-1]"], "a record changed: the count is right"),
    ("write/sort_files.c", "if (n_in == n_out && in == out)", "if (n_in == n_out)",
     [GUARDS + "test_fault_behind_the_merge_passes[merged-bam-memory-2]"], "one lost and one twice: so is it then"),
    ("write/sort_files.c", "if (n_in == n_out && in == out)", "if (1)",
     [GUARDS + "test_fault_in_the_arena_passes[sam-memory-1]"], "the whole comparison"),
    ("write/sort_files.c", "|| compare(f, n_records, checksum) < 0)", "|| 0)",
     [GUARDS + "test_fault_on_the_way_into_a_run_passes[cram-1]"], "it is made"),
    ("write/sort_files.c", "if (n_in == n_out && in == out)", "if (in == out)", [GUARDS + "test_number_of_records_alone_is_wrong"],
     "the count"),
    ("write/output_block.c", "        if (r->segment != NO_RECORD)\n            sum += ", "        if (r->segment == 0 && i == 0)\n            sum += ",
     ["unit_output_block"], "each piece of a block is in the sum"),
    ("write/record_list.h", "size > BGZF_FILL - list->open_size", "size >= BGZF_FILL - list->open_size", ["unit_output_block"],
     "a block is filled to its last byte"),
    ("merge/merge_ring.c", "m->opt.n_spare > 0 && record_sink_passed(m->opt.sink, m->spare[m->next_spare].mark)",
     "m->opt.n_spare > 0", ["unit_merge_ring"], "a list is not made anew while blocks refer to it"),
    ("bam_arena.c", "        w.checksum += record_checksum(record, size);", "        w.checksum += record_checksum(record, 36);",
     [GUARDS + "test_program_with_hooks_is_another_one[bam-memory-1]"], "the sum in is over whole records"),
    ("write/record_out.c", "    *checksum += record_checksum(record, size);", "    *checksum += record_checksum(record, 36);",
     [GUARDS + "test_program_with_hooks_is_another_one[sam-memory-1]"], "and so is the sum out, of SAM and CRAM"),

    # ------------------------------------------------------------ what htslib must not be given
    ("read/input_format.c", "    if (refuse_packing(in) < 0)", "    if (0)", ["test_hints.py::test_compressed_text_ends_the_program_in_htslib[RAZF-file]"],
     "htslib aborts on compressed text"),
    ("read/first_bytes.c", "memcmp(bytes, k->begin, strlen(k->begin)) == 0", "1", ["unit_first_bytes"], "a mark elsewhere in the data is none"),

    ("codec/gzip_blocks.c", "            return BGZF_MORE;", "            g->ended = true;",
     ["test_gzip_members.py::test_gzip_that_is_cut_passes_for_whole"], "gzip that ends early is no end"),

    ("bam/bam_header.c", "    if (text > most)\n", "    if (0)\n", ["unit_bam_header"], "a header that the format cannot hold is not cut"),

    # ------------------------------------------------------------ a wrong bit in a length
    ("spill/spill_run.c", "if (!bam_record_fits((const struct bam_record *)record, size))", "if (0)",
     [GUARDS + "test_wrong_bit_in_a_field_crashes_instead[arena-spilled-bam]"], "packing takes lengths at their word"),
    ("write/bam_index.c", "    return bam_record_fits((const struct bam_record *)record, size)\n        && !bam_record_check", "    return 1 || !bam_record_check",
     [GUARDS + "test_wrong_bit_in_a_field_crashes_instead[arena-memory-bam]"], "so does htslib's index, of references, too"),
    ("write/record_out.c", "|| bam_record_check(record, size, sam_hdr_nref(how->header)).fault)", "|| 0)",
     [GUARDS + "test_wrong_bit_in_a_field_crashes_instead[arena-memory-sam]"], "and its writers"),

    # ------------------------------------------------------------ blocks of the input
    ("codec/bgzf_block.c", "if (block_crc32(out, frame->inflated_size) != load_le32(footer))", "if (0)", ["unit_bgzf_block"],
     "CRC-32 of a block"),
    ("codec/bgzf_block.c", "out, frame->inflated_size) < 0)", "out, frame->inflated_size) < -1)", ["unit_bgzf_block"],
     "data that do not inflate, or to another size"),
    ("codec/bgzf_block.c", "return frame->inflated_size <= BGZF_MAX_BLOCK ? BGZF_OK : BGZF_BAD_SIZE;", "return BGZF_OK;",
     ["unit_bgzf_block"], "ISIZE: the room that a block gets"),
    ("codec/bgzf_block.c", "if (frame->size < frame->data_offset + BGZF_FOOTER)", "if (0)", ["unit_bgzf_block"],
     "BSIZE that ends before the block's data begin"),
    ("codec/bgzf_block.c", "if (at + 4 + len > xlen)", "if (0)", ["unit_bgzf_block"], "subfields that leave the extra field"),
    ("codec/deflate_lazy.h", "at - cand > furthest)", "0)", ["unit_bam_deflate"], "no match lies further back than DEFLATE allows"),
    ("codec/frame_list.c", "[list->next].at != place)", "[list->next].at < place)", ["unit_frame_list"],
     "a listed block is taken only at its place"),
    ("codec/frame_list.c", "if (bgzf_block_frame(piece + at, n - at, &f->frame) != BGZF_OK)", "if (bgzf_block_frame(piece + at, n - at, &f->frame) > BGZF_MORE)",
     ["unit_frame_list"], "a block is listed only if it is whole"),
    ("bgzf_omp.c", "if (more < 0 || (more == 0 && w->size == 0))", "if (more <= 0)", ["unit_bgzf_source"],
     "a file that ends inside a block"),
    ("bgzf_omp.c", "(!s->peeked && s->frame.size == BGZF_EOF_SIZE);", "!s->peeked;", ["unit_bgzf_source"],
     "the EOF block, by its size"),
    ("bgzf_omp.c", "= is_gzip || (!s->peeked && s->frame.size", "= s->eof_block || (!s->peeked && s->frame.size", ["unit_bgzf_source"],
     "it is the last one"),
    ("bgzf_omp.c", "    if (fault)\n        return block_failed(s, block->", "    if (0)\n        return block_failed(s, block->", ["unit_bgzf_source"],
     "what a task found wrong with its block"),
    ("read/input_file.c", "if (f->begin + (off_t)(offset + done) < f->end)", "if (0)", ["unit_bgzf_source"],
     "an input that became shorter meanwhile"),
    ("read/block_reader.c", "if (a->walked != a->bottom)", "if (0)",
     [SAFETY + "test_record_cut_at_a_block_edge_is_dropped_silently"], "a file that ends inside a record"),

    # ------------------------------------------------------------ records of the input
    ("bam/bam_record.c", "if (body < BAM_MIN_RECORD - 4 || body > INT32_MAX)", "if (body > INT32_MAX)", ["unit_bam_record"], "block_size, least"),
    ("bam/bam_record.c", "if (body < BAM_MIN_RECORD - 4 || body > INT32_MAX)", "if (body < BAM_MIN_RECORD - 4)", ["unit_bam_record"],
     "block_size, most"),
    ("bam/bam_record.c", "if (ref < -1 || ref >= n_ref)", "if (ref < -1 || ref > n_ref)", ["unit_bam_record"], "refID"),
    ("bam/bam_record.c", "if (next < -1 || next >= n_ref)", "if (next >= n_ref)", ["unit_bam_record"], "next_refID"),
    ("bam/bam_record.c", "if (r->name_len < 1 || l_seq > INT32_MAX || need > body)", "if (l_seq > INT32_MAX || need > body)", ["unit_bam_record"],
     "l_read_name"),
    ("bam/bam_record.c", "if (r->name_len < 1 || l_seq > INT32_MAX || need > body)", "if (r->name_len < 1 || l_seq > INT32_MAX || need > body + 1)",
     ["unit_bam_record"], "name, CIGAR, SEQ and QUAL are within the record"),
    ("bam/bam_record.c", "    if (body + 4 > avail)\n        return v;", "", ["unit_bam_record"], "and the record within what is there"),
    ("bam/bam_record.c", "if (r->data[r->name_len - 1] != 0)", "if (0)", ["unit_bam_record"], "NUL behind the name"),
    ("bam/bam_record.c", "else if (l_seq > 0 && !(bam_record_flag(r) & BAM_FUNMAP) && span.query != l_seq)", "else if (0)", ["unit_bam_record"],
     "CIGAR against SEQ"),
    ("bam/bam_record.c", "if (bad || (cg && !mends_for_good(r, cg, n_real))", "if (bad", ["unit_bam_record_fix"],
     "a CIGAR that would not be read again"),
    ("bam_arena.c", "    while (arena->walked != guess->start && arena->walked < block_end) {", "    arena->walked = guess->start;\n    while (0) {",
     ["unit_bam_arena"], "a guess of where records begin is not believed"),

    # ------------------------------------------------------------ headers
    ("read/header_read.c", "if (g->refs_left < 0)", "if (0)", ["unit_bam_header"], "n_ref"),
    ("read/header_read.c", "if (text->n + n > most)", "if (0)", ["unit_bam_header", "unit_sam_reader"], "a header that takes all memory"),
    ("bam/bam_header.c", "if (!same_references(into, from))", "if (0)", ["test_inputs.py::test_contradicting_headers_are_joined"],
     "inputs of the same references"),
    ("bam/bam_header.c", "if (sam_hdr_tid2len(a, i) != sam_hdr_tid2len(b, i)\n            || strcmp", "if (strcmp",
     ["test_inputs.py::test_contradicting_headers_are_joined"], "and of the same lengths"),

    # ------------------------------------------------------------ SAM and CRAM
    ("bam/header_text.c", "if (v <= 0)", "if (0)", ["unit_header_text"], "a length of 0"),
    ("bam/header_text.c", "if (length && v != length)", "if (0)", ["unit_header_text"], "two lengths"),
    ("bam/header_text.c", "if (n < LINE_MIN)", "if (0)", ["unit_header_text"], "a header line that is too short"),
    ("bam/header_text.c", "if (is_sam && (!is_known(line) || line[3] != '\\t'))", "if (0)", ["unit_header_text"], "a type that is none"),
    ("read/sam_reader.c", "        if (c->why)\n            return tell_broken(r, c);", "", ["unit_sam_reader"], "a broken line"),
    ("read/sam_reader.c", "if (found.fault || (found.far && !r->opt.far))", "if (found.fault)", ["unit_sam_reader"],
     "a position beyond 32 bits where it does not fit"),
    ("bam/sam_number.h", "    *over = true;\n    return limit;", "    return limit;", ["unit_sam_line"], "a number out of range"),
    ("bam/sam_number.c", "    *over = true;\n    return FLAG_MAX;", "    return FLAG_MAX;", ["unit_sam_line"], "a FLAG out of range"),
    ("bam/sam_line.c", "if (over || *l->p != '\\t')", "if (*l->p != '\\t')", ["unit_sam_line"], "a field out of range"),
    ("bam/sam_line.c", "if (over || *l->p != '\\t')", "if (over)", ["unit_sam_line"], "what follows a number"),
    ("bam/sam_line.c", "if (n >= NAME_MAX_SIZE)", "if (0)", ["unit_sam_line"], "a name too long"),
    ("bam/sam_line.c", "if (!same && ref_names_count(l->names) == 0)", "if (0)", ["unit_sam_line"], "a reference and no @SQ"),
    ("bam/sam_line.c", "if (over || *p == start || code == 0)", "if (*p == start || code == 0)", ["unit_sam_line"], "a CIGAR's length"),
    ("bam/sam_line.c", "else if (l->n_cigar && l->query_span != (int64_t)b->n)", "else if (0)", ["unit_sam_line"], "CIGAR and SEQ"),
    ("bam/sam_line.c", "(l->p[b->n] != '\\t' && l->p[b->n] != '\\0')", "0", ["unit_sam_line"], "SEQ and QUAL"),
    ("bam/sam_line.c", "return wrong ? NULL : to + n;", "return to + n;", ["unit_sam_line"], "characters of QUAL"),
    ("bam/sam_line.c", ".fault == BAM_BAD_CG)", ".fault == BAM_CUT)", ["unit_sam_line"], "a CIGAR that BAM cannot hold"),
    ("bam/sam_tags.c", "return t->p == end ? SAM_LINE_OK : SAM_LINE_TAG;", "return SAM_LINE_OK;", ["unit_sam_line"], "what follows an array"),
    ("bam/sam_tags.c", "return t.over ? SAM_LINE_TAG_RANGE : SAM_LINE_OK;", "return SAM_LINE_OK;", ["unit_sam_line"],
     "a tag's number out of range"),
    ("bam/sam_tags.c", "if (end - t.p < VALUE_AT || t.p[0]", "if (t.p[0]", ["unit_sam_line"], "a tag that is cut"),
    ("bam/ref_sums.c", "if (latch_tripped(s->latch) || strcasecmp(sum, wanted) == 0)", "if (1)", ["test_cram_out.py::test_cram_is_read_by_another_reference"],
     "a FASTA that is not the header's"),
    ("bam/cram_count.c", "c->is_mixed && !needs_no_reference", "0 && !needs_no_reference",
     ["test_cram_out.py::test_cram_is_read_by_another_reference"], "of slices with several references"),
    ("write/cram_settings.c", "if (c->beyond && !takes_beyond)", "if (0)", ["unit_cram_settings", "test_cram_out.py::test_cram_gives_other_records_back"],
     "reads that begin behind the end of their reference"),
    ("write/cram_settings.c", "return c->htslib < EMBEDS_CONSENSUS ? avoid_consensus(c, embed) :", "return", ["unit_cram_settings"],
     "CRAM of an htslib that changes bases where it has no reference"),
    ("read/cram_input.c", "if (cram_count_agrees(&in->count, n))", "if (1)", ["test_cram.py::test_other_records_than_containers_say_pass"],
     "records that htslib has lost in reading"),
    ("bam/cram_count.c", "return c->unknown || (whole && c->records == n);", "return c->unknown || whole;", ["unit_cram_count"], "their number"),
    ("bam/cram_count.c", "return c->unknown || (whole && c->records == n);", "return c->unknown || c->records == n;", ["unit_cram_count"],
     "the file is whole"),
    ("bam/cram_count.c", "if (little_endian(c) != c->crc)", "if (0)", ["unit_cram_count"], "CRC-32 of a container's header"),
    ("bam/cram_count.c", "if (c->damaged == 0 && little_endian(c) != c->crc)", "if (0)",
     ["unit_cram_count", "test_cram.py::test_flipped_bit_in_a_header_block_passes"], "CRC-32 of a header block of CRAM"),
    ("read/cram_input.c", "if (in->count.damaged)", "if (0)", ["test_cram.py::test_flipped_bit_in_a_header_block_passes"],
     "a wrong CRC-32 of a header block of CRAM is an error"),
    ("read/cram_reader.c", "        c->ended = status == -1;\n        return c->ended && errno == ENOMEM ? HTS_NO_MEMORY : HTS_BROKEN;",
     "        c->n = c->place.n;\n        return HTS_FINE;", ["test_cram.py::test_damage_in_a_container_is_told_of_another_record"],
     "a container that htslib cannot decode"),
    ("bam/cram_count.c", "c->in_slices += itf8(c);", "c->in_slices = c->n;", ["test_cram.py::test_other_records_than_containers_say_pass"],
     "a container that hides records of its slices"),
    ("write/cram_maps.c", "return entries == 0 && inside.n == 0 && skip(v, size);", "return skip(v, size);", ["unit_cram_maps"],
     "a compression header that lacks something"),
    ("write/out_count.c", "if (c->maps_broken)", "if (0)", ["unit_out_count"], "that of a container that htslib wrote"),
    ("write/out_count.c", "if (!cram_count_agrees(&c->cram, n))", "if (0)",
     [GUARDS + "test_htslib_loses_a_record_of_cram_or_writes_it_twice"], "records that htslib has lost in writing CRAM"),
    ("write/sam_text.c", "&own->line) <= 0 ||", "&own->line) < 0 ||",
     [GUARDS + "test_htslib_loses_a_line_of_sam"], "and SAM"),
    ("write/sam_text.c", "    if (t->room > 0 && t->room + wanted > all)", "    if (0)", ["unit_sam_text"], "long lines of SAM wait for memory"),
    ("write/sam_text.c", "    return t->verify ? sink_verify_block(t->verify, thread, block, length, data, n) : 0;", "    return 0;",
     [GUARDS + "test_verify_passes_a_block_of_sam_that_is_not_of_that_text"], "--verify: blocks of SAM.gz"),
    ("write/output_block.c", "    if (o->verify && !is_header && n > 0)", "    if (0 && !is_header && n > 0)",
     [GUARDS + "test_verify_passes_records_in_the_wrong_order[merged-sam-memory-1]"], "--verify: order in SAM"),
    ("write/hts_writer.c", "    return is_counted ? out_count_check(w->count, w->n, w->opt.path, w->opt.latch) : 0;", "    return 0;",
     ["unit_hts_writer"], "they are counted"),
    ("read/hts_reader.c", "return is_far && !far ? HTS_FAR : HTS_FINE;", "return HTS_FINE;", ["test_far_positions.py::test_far_read_that_htslib_reads_is_cut_in_bam"],
     "positions that BAM cannot hold"),

    # ------------------------------------------------------------ --verify, --check
    ("write/sink_verify.c", "&& memcmp(t->inflated, data, n) == 0 && libdeflate_crc32(0, t->inflated, n) == load_le32(footer);",
     "&& libdeflate_crc32(0, t->inflated, n) == load_le32(footer);", ["unit_sink_verify"], "--verify: the block's bytes"),
    ("write/sink_verify.c", "&& memcmp(t->inflated, data, n) == 0 && libdeflate_crc32(0, t->inflated, n) == load_le32(footer);",
     "&& memcmp(t->inflated, data, n) == 0;", ["unit_sink_verify"], "--verify: the block's CRC"),
    ("write/output_block.c", SUM_FIRST, SUM_FIRST.replace("    if (!o->verify)\n        block", "    block").replace("block->checksum = checksum_block(o, block, sink", "(void)checksum_block(o, block, sink"),
     [GUARDS + "test_verify_passes_a_block_that_is_not_of_those_bytes[encoder-memory-1]"], "--verify: the sum is of what inflates"),
    ("write/sink_verify.c", "else if (!may_follow(v->opt.rule, &ends->last, &now))", "else if (0)",
     [GUARDS + "test_verify_passes_records_in_the_wrong_order[merged-bam-memory-1]"], "--verify: order in a block"),
    ("write/sink_verify.c", "if (!may_follow(v->opt.rule, &v->last, &ends->first))", "if (0)", ["unit_sink_verify"], "--verify: order between blocks"),
    ("write/record_sink.c", "    if (k->verify && (sink_verify_order", "    if (0 && (sink_verify_order",
     [GUARDS + "test_verify_passes_records_in_the_wrong_order[merged-cram-memory-1]"], "--verify: order in CRAM"),
    ("cli/sort_check.c", "    if (c->before && !sort_key_in_order(", "    if (0 && !sort_key_in_order(",
     ["test_check.py::test_record_out_of_order_passes_the_check"], "--check: order"),
    ("cli/sort_check.c", "    if (c->cut.n)\n        return latch_fail", "    if (0)\n        return latch_fail",
     ["test_check.py::test_damage_passes_the_check"], "--check: the last record is whole"),

    ("bgzf_omp.c", "        if (bgzf_source_inflate(s, &none) < 0)", "        if ((source_pass(s), none = 0))",
     [SAFETY + "test_damaged_block_passes_or_costs_the_old_output[t1-isize_0]"], "a block whose size became 0"),

    # ------------------------------------------------------------ data on the disk
    ("spill/spill_slice.c", "if (n < SPILL_SLICE_HEADER || load_le64(packed) != byte_hash(packed + HASH, n - HASH, 0))", "if (n < SPILL_SLICE_HEADER)",
     ["unit_spill_slice"], "XXH3 of a slice"),
    ("spill/spill_slice.c", "return in == end ? 0 : -1;", "return 0;", ["unit_spill_slice"], "its keys are all there"),
    ("spill/spill_slice.c", "|| bottom > slice->size || size_in_memory(bottom, records) > slice->size)", ")", ["unit_spill_slice"],
     "it fits its memory"),
    ("spill/spill_run.c", "if (size / BEST_PACKING > place.size)", "if (0)", ["unit_spill_run"], "a size that cannot be is not allocated"),
    ("spill/spill_store.c", "if (s->memory_size - at < n)", "if (0)", ["unit_spill_store"], "memory for packed slices has an end"),
    ("spill/spill_store.c", "        if (got == 0)\n            return spill_store_damaged(s, place);", "        if (got == 0)\n            return 0;",
     ["unit_spill_store"], "a temporary file that became shorter"),
    ("spill/spill_store.c", "    return latch_tripped(s->latch) ? -1 : all_full(s, n);", "    return 0;", ["unit_spill_store"], "full disks"),

    # ------------------------------------------------------------ memory
    ("plan/memory_plan.c", "clamp(job->program + PROGRAM_GROWS, ", "clamp(0, ", ["unit_memory_plan"], "libraries take memory"),
    ("plan/sort_memory.c", "(size_t)machine_program_memory()", "0", ["test_spill.py::test_libraries_take_more_memory_than_promised"],
     "what libraries take at the start"),
    ("plan/memory_plan.c", "    size_t left = all > fixed + 2 * ARENA_MIN ? all - fixed : 2 * ARENA_MIN;", "    size_t left = all;", ["unit_memory_plan"],
     "arenas get what is left"),
    ("plan/memory_plan.c", "all_of(job->all) / HTSLIB_PART / n_files", "all_of(job->all) / HTSLIB_PART", ["unit_memory_plan"], "inputs share what htslib may take"),
    ("plan/memory_plan.c", "        .rings = *rings,\n", "        .rings = {.job = rings->job, .source_slots = rings->source_slots / 2},\n", ["unit_memory_plan"],
     "rings stay as they are"),
    ("plan/sort_limits.c", "return all < left ? all : left;", "return all;",
     ["test_limits.py::test_several_cram_inputs_are_each_given_all_memory"], "a limit on addresses"),
    ("bam_arena.c", "    if (gap <= keys)\n        return 0;", "", ["unit_bam_arena"], "records and keys never meet"),

    # ------------------------------------------------------------ files
    ("cli/sort_paths.c", "        if (is_input(o, file[i].path))\n            return refuse", "        if (0)\n            return refuse",
     ["test_streams.py::test_file_is_written_over_another_by_redirection_or_link"], "no index, checksum, ... over an input"),
    ("base/out_file.c", "    if (out->temp[0] && rename(out->temp, out->target) < 0)", "    if (out->temp[0] && (rename(out->temp, out->target), 0))",
     ["unit_out_file"], "a file that cannot be put in place"),
    ("base/out_file.c", "    return close(fd) < 0 ? failed(out, latch) : 0;", "    return close(fd), 0;",
     ["test_limits.py::test_error_when_a_file_is_closed_is_not_told"], "errors that close() tells of"),
    ("base/out_file.c", "        if (out)\n            unlink(out->temp);", "        (void)out;",
     ["test_faults.py::test_failing_allocation_behind_the_last_record_changes_a_file[spilled_named]"], "temporary names go at exit()"),
    ("base/out_file.c", "    if (out->temp[0])\n        unlink(out->temp);", "", ["unit_out_file"], "temporary names go"),
    ("write/sort_files.c", "    if (failed) {\n        take_back(&f->checksum);", "    if (0) {\n        take_back(&f->checksum);",
     ["test_commit.py::test_output_that_cannot_be_put_in_place_leaves_files_beside_it"], "no index without data"),
    ("plan/sort_parts.c", "    if (!latch_tripped(&s->latch))\n        sort_files_commit(&s->out);", "    sort_files_commit(&s->out);",
     [SAFETY + "test_damaged_block_passes_or_costs_the_old_output"], "nothing gets its name after a failure"),
    ("base/latch.c", "if (atomic_compare_exchange_strong(&latch->tripped, &state, LATCH_WRITING)) {", "(void)state;\n    {", ["unit_latch"],
     "the first error is the one told"),
    ("base/latch.c", "    int state = LATCH_OPEN;", "    int state = LATCH_OPEN;\n    atomic_store(&latch->tripped, LATCH_TRIPPED);", ["unit_latch"],
     "the message is there when the latch trips"),
    ("base/latch.c", "    return latch_failed(latch) || latch_signalled();", "    return latch_failed(latch);", ["unit_latch"], "signals end a sort"),
    ("base/out_file.c", "    if (atomic_load(&names_are_dropped))\n        unlink(out->temp);\n", "", ["unit_out_file"], "no name after all were dropped"),
    ("bam_sort.c", "    sort_files_abandon(&s->out);\n    sort_report_close(&s->report);\n    latch_reraise();", "    latch_reraise();",
     ["test_limits.py::test_signal_while_working_leaves_something"], "and leave no file"),
    ("write/output_block.c", "block->entries, block->n_entries) < 0)", "block->entries, block->n_entries) < -1)",
     [GUARDS + "test_index_that_htslib_refuses_passes"], "records that the index does not take"),
    ("base/out_file.c", "        if (wrote < 0)\n            return latch_fail(latch, \"writing", "        if (wrote < 0)\n            return 0 * latch_fail(&(struct latch){0}, \"writing",
     ["unit_out_pipe"], "full disks, also behind htslib's back"),
    ("bam/far_pos.c", "    return nearest(v) == field && v >= least ? v : field;", "    return v;", ["unit_far_pos"], "a tag of ours that a file brought along"),

    ("write/sort_files.c", "opts->out.index_format == HTS_FMT_BAI ? bam_index_beyond_bai(sam) : NULL;", "opts->out.index_format < 0 ? \"\" : NULL;",
     ["test_index.py::test_csi_gets_the_name_of_bai"], "what BAI cannot hold"),
    # ------------------------------------------------------------ bgzip
    ("cli/bgzip_main.c", "    if (makes_indexes(o, compresses) && o->index_name && o->n_files > 1)", "    if (0)",
     ["test_bgzip.py::test_a_mistake_does_something"], "one index for several files"),
    ("cli/bgzip_main.c", "    if (o->output && o->to_stdout)", "    if (0)",
     ["test_bgzip.py::test_a_mistake_does_something"], "two outputs"),
    ("bgzip/bgzip_pass.c", "    if (block->fault)\n        block_failed(", "    if (0)\n        block_failed(",
     ["test_bgzip.py::test_damage_is_written_or_not_located[bit]"], "a block that is damaged"),
    ("bgzip/bgzip_pass.c", "    return fault ? fault_here(p, p->opt.file_begin + w->offset, bgzf_fault_text(fault)) : 0;", "    return 0 * (int)fault;",
     ["test_bgzip.py::test_damage_is_written_or_not_located[emptied]"], "a block whose size became 0"),
    ("bgzip/bgzip_pass.c", "        if (fault)\n            return fault == BGZF_NO_MEMORY", "        if (fault)\n            return 0; if (0) return fault == BGZF_NO_MEMORY",
     ["test_bgzip.py::test_damaged_gzip_is_written[cut]"], "gzip that is cut off"),
    ("bgzip/gzi_index.c", "        if (place.file <= last.file || place.data < last.data || place.file > INT64_MAX || place.data > INT64_MAX)", "        if (0)",
     ["unit_gzi_index"], "an index that is out of order"),
    ("bgzip/bgzip.c", "        result = latch_tripped(&b.latch) || check_range(&b) < 0 || commit(&b) < 0 ? -1 : 0;",
     "        result = (commit(&b), latch_tripped(&b.latch)) ? -1 : 0;",
     ["test_bgzip.py::test_damage_is_written_or_not_located[cut]"], "no file gets its name after a failure, and no input goes"),
    ("bgzip/bgzip_names.c", "    if (opts->force > forced_before || asked(names->out))", "    if (1)",
     ["test_bgzip.py::test_file_is_overwritten_unasked"], "a file is there already"),
    ("bgzip/bgzip_names.c", "check_apart(names, opts, in);", "0;",
     ["test_bgzip.py::test_a_file_is_written_over_by_its_own_work"], "no file is written over by its own work"),
    # ------------------------------------------------------------ ranks over MPI
    ("mpi/block_seam.c", "c->n > 0 && size > BGZF_FILL - (", "c->n > 0 && size >= BGZF_FILL - (", ["unit_block_seam"],
     "chains of blocks end where blocks do"),
    ("mpi/block_seam.c", "        c->into[chain] = (uint16_t)begun;\n", "", ["unit_block_seam"], "chains that meet are one"),
    ("mpi/block_seam.c", "    if (s->n_lead == s->n) {", "    if (0) {", ["unit_block_seam"], "a rank in which no block begins hands on"),
    ("mpi/output_gather.c", "S_ISREG(st->st_mode) && (uint64_t)st->st_ino == shared->inode", "true", ["unit_output_gather"],
     "a rank writes to rank 0's file only: inode"),
    ("mpi/output_gather.c", "(!same_host || (uint64_t)st->st_dev == shared->device)", "true", ["unit_output_gather"],
     "a rank writes to rank 0's file only: device"),
    ("mpi/splitters.c", "splitter_at(s, tied + (", "splitter_at(s, (", ["unit_splitters"], "records of one key are shared out"),
    ("mpi/splitters.c", "        result = heavy_keys_replace(all, *records, counts, o->team->size, o->rule);\n", "",
     ["unit_splitters"], "records that are no ties are shared out, too"),
    ("mpi/record_shares.c", "    for (; ties.next < ties.end && *tied < s->bytes; ties.next++)", "    for (; ties.next < ties.end; ties.next++)",
     ["unit_splitters"], "a rank parts its own ties"),
    ("mpi/exchange.c", "        if (!all_filled(x))\n            return 0;\n", "", [MPI + "test_ranks_that_spill_lose_the_order"],
     "records stay until they are copied"),
    ("mpi/rank_lists.c", "newer->sublists + behind[1], newer->n_sublists - behind[1]", "newer->sublists, behind[1]",
     [MPI + "test_ranks_part_ties_and_empty_inputs_otherwise_than_one_process"], "what ranks before have comes first"),
    ("mpi/rank_exchange.c", " || sort_tasks_close_rest(&s->b.sorts) < 0)", ")",
     [MPI + "test_ranks_part_ties_and_empty_inputs_otherwise_than_one_process"], "what ranks behind have is in sublists of its own"),
    ("mpi/rank_sort.c", "s->opts_b.memory = memory_for_records(s->opts) / 2;", "s->opts_b.memory = memory_for_records(s->opts);",
     [MPI_OUT + "test_two_sorts_of_a_rank_take_the_memory_twice"], "two sorts share the memory"),
    ("mpi/text_split.c", "+ (uint64_t)(newline - piece) + 1;", "+ (uint64_t)(newline - piece);",
     [MPI_INPUT + "test_small_sam_is_cut_within_a_line[ties]"], "a part of text begins behind a newline"),
    ("mpi/text_split.c", "    return at < text->n && text->p[at] == '@' ? text->n : at;", "    return at;",
     [MPI_INPUT + "test_small_sam_is_cut_within_a_line[no_newline]"], "a header may lack its last newline"),
    ("mpi/text_split.c", "(at == text->n || text->p[at] == '@')", "at == text->n",
     [MPI_INPUT + "test_long_header_of_sam_is_not_whole"], "a header goes on behind the first piece"),
    ("mpi/text_split.c", "    while (at < n && text[at] == '@' && ", "    while (at < n && ",
     [MPI_INPUT + "test_small_sam_is_cut_within_a_line[one]", MPI_INPUT + "test_small_sam_is_cut_within_a_line[cr]"],
     "a header ends where a line is none of its"),
    ("bam/record_search.c", "at < last && s->left > 0", "at < last", ["unit_bam_arena"], "looking for records has a bound"),
    ("plan/sort_memory.c", "memory_plan_takes(plan) <= opts->memory", "1",
     [SPILL + "test_all_together_takes_more_than_total_memory[reads-72-0-1-bam]"], "--total-memory is all that is taken"),
    ("bam/plain_header.c", "return entry == end && names_differ(sam);", "return entry == end;", ["unit_bam_header"],
     "two references of one name are left to htslib"),
    ("mpi/input_split.c", "fault == BAM_CUT && found >= RECORDS_LEAST", "fault == BAM_CUT && found >= RECORDS_LEAST - 1",
     [MPI_INPUT + "test_part_begins_at_what_looks_like_a_record[openmpi]"], "one record may look so"),
    ("mpi/input_split.c", "f->part.tail_size = (size_t)(end & 0xffff);", "f->part.tail_size = 0 * (size_t)end;",
     ["test_mpi.py::test_keys_of_ranks_disagree"], "a block that two parts share: what lies before the next one's"),
    ("mpi/input_split.c", "shared ? skip : team->rank ? INT64_MAX >> 1 : 0", "skip",
     [MPI_WHOLE + "test_what_comes_before_a_pipe_comes_after_it"], "what comes before a pipe is rank 0's"),
    ("mpi/input_split.c", "        while (starts[f->reader + 1] == starts[f->reader])\n            f->reader++;\n", "",
     [MPI_WHOLE + "test_ties_with_inputs_that_are_cut_change_places"], "a file that is not cut is read where it lies among the inputs"),
    ("mpi/input_split.c", "        skip -= shared ? (int64_t)(files[i].size - data_of(&files[i])) : 0;\n", "",
     [MPI_INPUT + "test_ties_of_several_inputs_change_places"], "inputs lie one behind the other"),

    # ------------------------------------------------------------ what the runtime is told
    ("base/runtime_env.c", "if (!affinity_has(allowed, (int)cpu))", "if (0)",
     ["unit_runtime_env", "test_affinity.py::test_cpus_that_are_left_are_not_used"], "a CPU that the job may not use"),
    ("base/runtime_env.c", "|| n == 0)", ")", ["unit_runtime_env"], "no thread at all"),
]
