/* SPDX-License-Identifier: MIT */
/* Each module's *_memory() function states the memory that it takes, and the memory plan adds these numbers up. They
 * are compared with the memory that the module has really allocated when it has worked: the stated number is not
 * smaller, and not so much larger that memory which could hold records lies idle. glibc's allocator counts the bytes.
 * With another allocator, or a sanitizer, nothing is tested. */
#include "unit.h"
#include "bam/bam_header.h"
#include "bam/plain_header.h"
#include "bam/ref_names.h"
#include "base/clocks.h"
#include "base/engine.h"
#include "base/latch.h"
#include "base/task_ring.h"
#include "bgzf_omp.h"
#include "codec/bam_inflate.h"
#include "codec/bgzf_block.h"
#include "engine/chunk_plan.h"
#include "engine/memory_plan.h"
#include "fixmate/parted_mates.h"
#include "hts/bam1_bytes.h"
#include "hts/hts_file.h"
#include "read/input.h"
#include "read/input_request.h"
#include "read/read_ahead.h"
#include "read/record_slice.h"
#include "read/sliced_input.h"
#include "sort/merge_ring.h"
#include "sort/record_pack.h"
#include "sort/spill.h"
#include "sort/spill_slice.h"
#include "stats/counts.h"
#include "stats/join_tree.h"
#include "stats/stats_counter.h"
#include "stats/stats_settings.h"
#include "unit_source.h"
#include "write/samtools_checksum.h"
#include "write/sink_verify.h"

enum { SLACK = 24 << 10 };       /* for pages, the allocator, and small structs that are not counted */

static size_t before;

/* Begins a measurement. Call it before the module is opened. */
static void begin(void)
{
    before = unit_allocated();
}

/* The memory taken since begin() must be at most `counted`, and at least least_percent of it; both within SLACK. */
static void check(const char *what, size_t counted, size_t least_percent)
{
    size_t taken = unit_allocated() - before;
    if (taken <= counted + SLACK && taken + SLACK >= counted / 100 * least_percent)
        return;
    fail_msg("%s: %zu bytes are counted, %zu are taken", what, counted, taken);
}

static void nothing(void *arg, uint32_t slot)
{
    (void)arg;
    (void)slot;
}

/* Runs a task, so that the OpenMP runtime allocates its own memory before the first measurement. */
static void start_tasks(void)
{
    struct task_ring ring;
    MUST(task_ring_open(&ring, &(struct task_ring_options){.n_slots = 2, .run = nothing}) == 0);
    task_ring_next(&ring);
    task_ring_hand_out(&ring);
    task_ring_wait(&ring, task_ring_oldest(&ring), TASK_DONE, NULL, NULL);
    task_ring_take(&ring);
    task_ring_close(&ring, true);
}

static bool is_counting(void)
{
    begin();
    char *volatile p = must_alloc(1 << 20);  /* volatile, or the compiler leaves it out */
    bool counts = unit_allocated() >= before + (1 << 20);
    free(p);
    return counts;
}

static void test_ring_takes_more_than_is_counted(void **state)
{
    (void)state;
    for (uint32_t n = 1; n < 10000; n *= 7) {
        struct task_ring ring;
        begin();
        MUST(task_ring_open(&ring, &(struct task_ring_options){.n_slots = n, .run = nothing}) == 0);
        check("a ring", task_ring_memory(n), 90);
        task_ring_close(&ring, true);
    }
}

static void test_clocks_take_more_than_is_counted(void **state)
{
    (void)state;
    static const int threads[] = {1, 8, 64};
    for (size_t i = 0; i < N_OF(threads); i++)
        for (int detail = CLOCKS_TIMES; detail <= CLOCKS_SPANS; detail++) {
            begin();
            struct clocks *clocks = clocks_new(threads[i], (enum clocks_detail)detail);
            MUST(clocks);
            check("the clocks", clocks_memory(threads[i], (enum clocks_detail)detail), 90);
            clocks_free(clocks);
        }
}

/* Deflates and inflates three kinds of data, which may need different memory: text, records, noise. */
static void use_codec(struct bgzf_codec *codec)
{
    static uint8_t data[BGZF_FILL], block[BGZF_MAX_BLOCK], out[BGZF_MAX_BLOCK];
    uint64_t seed = 7;
    for (int kind = 0; kind < 3; kind++) {
        for (size_t i = 0; i < sizeof data; i++)
            data[i] = (uint8_t)(kind == 1 ? i / 100 : unit_below(&seed, kind == 0 ? 4 : 256));
        uint32_t length = bgzf_block_deflate(codec, data, sizeof data, block);
        struct bgzf_frame frame;
        MUST(bgzf_block_frame(block, length, &frame) == BGZF_OK);
        MUST(bgzf_block_inflate(codec, block, &frame, out) == BGZF_OK && memcmp(data, out, sizeof data) == 0);
    }
}

static void test_codec_takes_more_than_is_counted(void **state)
{
    (void)state;
    for (int level = BGZF_LEVEL_DEFAULT; level <= 9; level++) {
        char what[64];
        snprintf(what, sizeof what, "a codec of level %d", level);
        begin();
        struct bgzf_codec *codec = bgzf_codec_new(level);
        MUST(codec);
        use_codec(codec);
        check(what, bgzf_codec_memory(level) + bam_inflate_memory(), 0);
        bgzf_codec_free(codec);
    }
}

/* ---- blocks out and in ---- */

static uint32_t fill(void *arg, uint32_t slot, uint8_t *data)
{
    (void)arg;
    memset(data, 'A' + (int)slot % 20, BGZF_FILL);
    memcpy(data, "BAM\1", 4);
    return BGZF_FILL;
}

static void placed(void *arg, uint32_t slot, uint64_t place, uint64_t next)
{
    (void)arg;
    (void)slot;
    (void)place;
    (void)next;
}

/* Writes n blocks with one thread, and checks the memory of the sink. */
static void write_blocks(int fd, int level, uint32_t n_slots, size_t piece_size, uint32_t n)
{
    struct latch latch = {.tripped = LATCH_OPEN};
    const struct engine engine = {.latch = &latch, .n_threads = 1};
    struct bgzf_sink_options options = {
        .fd = fd, .path = "out.bam", .form = SINK_BAM, .level = level, .engine = &engine, .n_slots = n_slots,
        .piece_size = piece_size, .fill = fill, .placed = placed,
    };
    begin();
    struct bgzf_sink *sink = bgzf_sink_open(&options);
    MUST(sink);
    for (uint32_t i = 0, slot; i < n; i++)
        MUST(bgzf_sink_begin(sink, &slot) == 0 && bgzf_sink_hand_out(sink) == 0);
    while (bgzf_sink_help(sink))
        continue;
    check("a sink", bgzf_sink_memory(1, n_slots, level, piece_size), level == 0 ? 60 : 80);
    MUST(bgzf_sink_finish(sink) == 0);
    bgzf_sink_close(sink);
}

static void test_sink_takes_more_than_is_counted(void **state)
{
    (void)state;
    static const uint32_t slots[] = {4, 24, 300};
    static const int levels[] = {0, 1, BGZF_LEVEL_DEFAULT, 6};
    for (size_t i = 0; i < N_OF(slots); i++)
        for (size_t l = 0; l < N_OF(levels); l++)
            for (size_t memory = 1 << 17; memory <= 1 << 22; memory *= 32) {
                int fd = unit_temp_file();
                write_blocks(fd, levels[l], slots[i], bgzf_sink_piece_size(1, levels[l], memory), 2 * slots[i]);
                close(fd);
            }
}

/* The file looks like BAM by its first bytes; its header is not read. */
static void test_reading_takes_more_than_is_counted(void **state)
{
    (void)state;
    static const size_t pieces[] = {64 << 10, 512 << 10};
    static uint8_t to[UNIT_SOURCE_SLOTS][BGZF_MAX_BLOCK];
    int fd = unit_temp_file();
    write_blocks(fd, 1, 24, 0, 4000);
    for (size_t i = 0; i < N_OF(pieces); i++) {
        struct latch latch = {.tripped = LATCH_OPEN};
        struct unit_source in;
        struct bgzf_source_block block;
        char path[64];
        begin();
        MUST(unit_source_open(&in, unit_fd_path(path, fd), 1, pieces[i], &latch) == 0);
        uint32_t size, slot = 0, n = 0;
        for (; n < UNIT_SOURCE_SLOTS && bgzf_source_peek(in.blocks, &size) > 0; n++)
            bgzf_source_hand_out(in.blocks, to[slot++ % UNIT_SOURCE_SLOTS], NULL);
        assert_int_equal(n, UNIT_SOURCE_SLOTS);
        while (bgzf_source_take(in.blocks, 1, &block) > 0)
            continue;
        size_t counted = read_ahead_memory(pieces[i], 16) + bgzf_source_memory(1, UNIT_SOURCE_SLOTS);
        check("reading", counted + input_memory(UNIT_SOURCE_SLOTS), 50);
        unit_source_close(&in);
    }
    close(fd);
}

/* ---- inputs ---- */

enum sam_kind { READS, NUMBERS };

/* Writes the line of a read of 100 bases, or one whose record is twice as large, because it has 150 integers of one
 * digit. Returns its size. */
static int sam_line(char line[1024], int number, enum sam_kind kind)
{
    static const char fields[] = "4\t*\t0\t0\t*\t*\t0\t0";
    if (kind == READS) {
        int size = sprintf(line, "r%d\t%s\t%0100d\t%0100d\n", number, fields, 0, 0);
        for (char *c = strrchr(line, '*') + 7; *c != '\t'; c++)
            *c = 'A';
        return size;
    }
    int size = sprintf(line, "r%d\t%s\t*\t*\tXB:B:i", number, fields);
    for (int i = 0; i < 150; i++)
        size += sprintf(line + size, ",%d", i % 10);
    line[size++] = '\n';
    return size;
}

/* Makes a file of SAM with n such lines, as text or in blocks. */
static int sam_file(int n, bool packed, enum sam_kind kind)
{
    static uint8_t block[BGZF_MAX_BLOCK];
    struct unit_bytes text = {NULL, 0, 0};
    unit_append(&text, "@HD\tVN:1.6\n", 11);
    for (int i = 0; i < n; i++) {
        char line[1024];
        unit_append(&text, line, (size_t)sam_line(line, i, kind));
    }
    int fd = unit_temp_file();
    struct bgzf_codec *codec = bgzf_codec_new(1);
    MUST(codec);
    for (size_t at = 0, size; packed && at < text.n; at += size) {
        size = text.n - at < BGZF_FILL ? text.n - at : BGZF_FILL;
        unit_write(fd, block, bgzf_block_deflate(codec, text.data + at, (uint32_t)size, block));
    }
    packed ? unit_write(fd, bgzf_block_eof, BGZF_EOF_SIZE) : unit_write(fd, text.data, text.n);
    bgzf_codec_free(codec);
    unit_free(&text);
    return fd;
}

/* Takes at most `most` slices of the stream, and keeps the last `kept` of them. Returns how many records they have. */
static size_t take(struct record_stream stream, struct record_slice *slices, uint32_t kept, size_t most)
{
    size_t n = 0, taken = 0;
    enum chunk_state found;
    while (taken < most && (found = stream.advance(stream.producer)) != CHUNK_NONE) {
        MUST(found != CHUNK_FAILED);
        if (found == CHUNK_AWAITED) {
            stream.help(stream.producer);
            continue;
        }
        struct record_slice *slice = &slices[taken++ % kept];
        MUST(stream.take(stream.producer, slice) == 0);
        n += slice->n;
    }
    return n;
}

static int join_nothing(void *arg, struct input *in)
{
    (void)arg;
    (void)in;
    return 0;
}

static void read_text(bool packed, enum sam_kind kind)
{
    enum { RECORDS = 40000, KEPT = 8 };
    struct latch latch = {.tripped = LATCH_OPEN};
    const struct engine engine = {.latch = &latch, .n_threads = 1};
    const struct memory_job job = {.all = 24 << 20, .n_threads = 1, .n_inputs = 1};
    char path[64], *name = path;
    int fd = sam_file(RECORDS, packed, kind);
    unit_fd_path(path, fd);
    struct input_request request = {.paths = &name, .n = 1};
    struct inputs_options how = {.request = &request, .rings = memory_plan_rings(&job), .header_max = 1 << 20,
                                 .engine = &engine};
    const struct memory_rings *r = &how.rings;
    size_t counted = read_ahead_memory(r->piece_size, r->n_pieces) + bgzf_source_memory(1, r->source_slots)
                   + input_memory(r->source_slots) + chunk_plan_memory(r, 1);
    struct record_slice slices[KEPT] = {{.n = 0}};
    struct inputs inputs;
    begin();
    MUST(inputs_open(&inputs, &how) == 0 && r->chunks.n_lent <= KEPT);
    check("SAM that is open", counted - r->chunks.n_lent * chunk_reader_slice_memory(&r->chunks), 70);
    size_t n = take(inputs.each->stream, slices, r->chunks.n_lent, 10);
    check(packed ? "packed SAM" : "SAM", counted, kind == READS ? 70 : 85);
    n += take(inputs.each->stream, slices, r->chunks.n_lent, SIZE_MAX);
    check(packed ? "packed SAM, later" : "SAM, later", counted, kind == READS ? 70 : 85);
    assert_int_equal(n, RECORDS);
    for (int i = 0; i < KEPT; i++)
        record_slice_free(&slices[i]);
    inputs_close(&inputs);
    close(fd);
}

/* A record of numbers has twice the size of its line: no record has more. */
static void test_reading_of_text_takes_more_than_is_counted(void **state)
{
    (void)state;
    for (int packed = 0; packed < 2; packed++) {
        read_text(packed, READS);
        read_text(packed, NUMBERS);
    }
}

/* Reads until the merge would have to leave slices. */
static void fill_slices(struct sliced_input *s)
{
    size_t made;
    do {
        made = s->made;
        MUST(sliced_input_advance(s) == 0);
    } while (sliced_input_help(s) || s->made > made);
    assert_int_equal(s->made, s->opt.n_slices);
}

/* The records of SAM go through chunks twice. */
static void test_input_of_a_merge_takes_more_than_is_counted(void **state)
{
    (void)state;
    struct latch latch = {.tripped = LATCH_OPEN};
    const struct engine engine = {.latch = &latch, .n_threads = 1};
    char path[64], *name = path;
    int fd = sam_file(40000, true, NUMBERS);
    unit_fd_path(path, fd);
    for (int copies = 0; copies < 2; copies++) {
        const struct memory_job job = {.all = 24 << 20, .n_threads = 1, .n_inputs = 1, .in_chunks = true,
                                       .copies = copies};
        struct input_request request = {.paths = &name, .n = 1};
        struct inputs_options how = {.request = &request, .rings = memory_plan_rings(&job), .header_max = 1 << 20,
                                     .waits = true, .join = join_nothing, .engine = &engine};
        const struct memory_rings *r = &how.rings;
        struct sliced_input_options slices = {.n_slices = r->n_slices, .engine = &engine};
        struct sliced_input s = {.made = 0};
        struct inputs inputs;
        begin();
        MUST(inputs_open(&inputs, &how) == 0 && sliced_input_begin(&s, inputs.each, &slices) == 0);
        fill_slices(&s);
        assert_int_equal(inputs.n_chunked, 2);
        size_t reading = read_ahead_memory(r->piece_size, r->n_pieces) + bgzf_source_memory(1, r->source_slots);
        check("an input of a merge", reading + input_memory(r->source_slots) + chunk_plan_memory(r, 2), 75);
        sliced_input_close(&s);
        inputs_close(&inputs);
    }
    close(fd);
}

static void test_pool_of_chunks_takes_more_than_is_counted(void **state)
{
    (void)state;
    for (size_t n = 2; n < 2000; n *= 3) {
        const struct chunk_pool_options how = {.n_inputs = n, .own_chunks = CHUNK_POOL_OWN, .own_slices = 8,
                                               .borrows = 5, .n_shared = 3 * n, .records_size = 1 << 17};
        struct chunk_pool pool;
        begin();
        MUST(chunk_pool_open(&pool, &how) == 0);
        check("a pool", chunk_pool_memory(&how), 90);
        chunk_pool_close(&pool);
    }
}

/* A merge opens all inputs before it reads any of them. Some memory remains when an input has been read. The buffer of
 * an open file is smaller than is counted if the blocks of the file system are small. */
static void test_inputs_that_are_open_take_more_than_is_counted(void **state)
{
    (void)state;
    enum { N = 40 };
    struct latch latch = {.tripped = LATCH_OPEN};
    const struct engine engine = {.latch = &latch, .n_threads = 1};
    const struct memory_job job = {.all = 64 << 20, .n_threads = 1, .n_inputs = N, .n_waiting = N - 1,
                                   .in_chunks = true};
    char paths[N][64], *names[N];
    int fd = sam_file(1000, true, READS);
    for (int i = 0; i < N; i++)
        unit_fd_path(names[i] = paths[i], fd);
    struct input_request request = {.paths = names, .n = N};
    struct inputs_options how = {.request = &request, .rings = memory_plan_rings(&job), .header_max = 1 << 20,
                                 .waits = true, .join = join_nothing, .engine = &engine};
    size_t counted = N * input_memory(how.rings.source_slots);
    struct inputs inputs;
    begin();
    MUST(inputs_open(&inputs, &how) == 0);
    check("inputs that wait", counted, 10);
    for (int i = 0; i < N; i++) {
        struct record_slice slice = {.n = 0};
        MUST(input_begin(&inputs.each[i]) == 0);
        assert_int_equal(take(inputs.each[i].stream, &slice, 1, SIZE_MAX), 1000);
        input_end(&inputs.each[i]);
        record_slice_free(&slice);
    }
    check("inputs that were read", counted + bgzf_source_memory(1, 0), 10);
    inputs_close(&inputs);
    close(fd);
}

/* ---- the last merge ---- */

static void test_merge_takes_more_than_is_counted(void **state)
{
    (void)state;
    enum { LISTS = 50, KEYS = 6000, RANGES = 8, SPARE = 3 };
    static const uint32_t records[] = {512, 8192};
    static struct bam_key keys[2][LISTS][KEYS];
    static struct bam_sublist lists[2][LISTS];
    struct bam_arena arenas[2];
    for (int a = 0; a < 2; a++) {
        for (int i = 0; i < LISTS; i++) {
            for (int k = 0; k < KEYS; k++)
                keys[a][i][k] = (struct bam_key){(uint64_t)k, bam_key_place(0, BAM_MIN_RECORD)};
            lists[a][i] = (struct bam_sublist){keys[a][i], KEYS};
        }
        arenas[a] = (struct bam_arena){.sublists = lists[a], .n_sublists = LISTS};
    }
    for (size_t i = 0; i < N_OF(records); i++) {
        struct latch latch = {.tripped = LATCH_OPEN};
        const struct engine engine = {.latch = &latch, .n_threads = 1};
        struct merge_ring_options how = {.arenas = {&arenas[0], &arenas[1]}, .n_arenas = 2, .n_ranges = RANGES,
                                         .n_spare = SPARE, .n_records = records[i], .engine = &engine};
        begin();
        struct merge_ring *ring = merge_ring_open(&how);
        MUST(ring);
        check("a merge", merge_ring_memory(RANGES, SPARE, records[i], 2 * LISTS, 2 * LISTS * KEYS), 90);
        merge_ring_close(ring);
    }
}

/* ---- what leaves memory ---- */

/* Loads a packed slice as a loader does, beside the packer that was measured. */
static void load_packed(size_t slice_size, const uint8_t *packed, size_t n)
{
    struct spill_slice slice = {.base = must_alloc(slice_size), .size = slice_size};
    before += slice_size;                        /* where a slice is loaded to is counted elsewhere */
    struct spill_loader loader = {.unpacker = record_unpacker_new()};
    MUST(loader.unpacker && byte_buffer_resize(&loader.packed, n + RECORD_PACK_SLACK) == 0);
    memcpy(loader.packed.p, packed, n);
    MUST(spill_slice_unpack(&slice, loader.unpacker, loader.packed.p, n) == 0);
    check("writing and loading slices", spill_memory(1, slice_size), 20);
    spill_loader_free(&loader);
    free(slice.base);
}

static void test_packer_takes_more_than_is_counted(void **state)
{
    (void)state;
    static const uint32_t bases[] = {50, 150, 10000};
    static const size_t slices[] = {64 << 10, 1 << 20, 2 << 20};
    for (size_t s = 0; s < N_OF(slices); s++)
        for (size_t b = 0; b < N_OF(bases); b++) {
            struct unit_bytes record = {NULL, 0, 0};
            uint64_t seed = 3;
            size_t random = (bases[b] + 1) / 2 + bases[b];
            unit_append_record(&record, &(struct unit_record){.name = "name567", .seq_len = bases[b]});
            begin();
            struct spill_packer *packer = spill_packer_new(slices[s]);
            MUST(packer);
            const uint8_t *packed;
            size_t n;
            for (int round = 0; round < 3; round++) {
                for (uint64_t key = 0; spill_packer_add(packer, key << 20, record.data, record.n) == 1; key++)
                    unit_fill(&seed, record.data + record.n - random, random);
                MUST(spill_packer_pack(packer, &packed, &n) == 0);
            }
            check("a packer", spill_packer_memory(slices[s]), 20);
            load_packed(slices[s], packed, n);
            spill_packer_free(packer);
            unit_free(&record);
        }
}

static void test_check_of_the_output_takes_more_than_is_counted(void **state)
{
    (void)state;
    struct latch latch = {.tripped = LATCH_OPEN};
    static uint8_t data[BGZF_FILL], block[BGZF_MAX_BLOCK];
    struct bgzf_codec *codec = bgzf_codec_new(1);
    MUST(codec);
    uint32_t length = bgzf_block_deflate(codec, data, sizeof data, block);
    static const int threads[] = {1, 8, 64};
    for (size_t i = 0; i < N_OF(threads); i++) {
        begin();
        struct sink_verify *v = sink_verify_new(threads[i], NULL, "out.bam", &latch);
        MUST(v);
        for (int t = 0; t < threads[i]; t++)
            MUST(sink_verify_block(v, t, block, length, data, sizeof data) == 0);
        check("the check of the output", sink_verify_memory(threads[i]), 70);
        sink_verify_free(v);
    }
    bgzf_codec_free(codec);
}

/* ---- headers ---- */

/* Writes n @SQ lines: their names fill most of a line, or it has other fields. Returns the size of the text. */
static size_t header_text(char *text, int n, bool long_names)
{
    size_t size = (size_t)sprintf(text, "@HD\tVN:1.6\tSO:unknown\n");
    for (int i = 0; i < n; i++)
        size += (size_t)sprintf(text + size, long_names ? "@SQ\tSN:NODE_%d_length_1234\tLN:1234\n"
                                : "@SQ\tSN:%d\tLN:1234\tSP:human\tM5:0123456789abcdef0123456789abcdef\n", i);
    return size;
}

static void test_headers_take_more_than_is_counted(void **state)
{
    (void)state;
    enum { N = 20000, LINE = 100 };
    char *text = must_alloc((size_t)N * LINE);
    for (int long_names = 0; long_names < 2; long_names++) {
        size_t size = header_text(text, N, long_names), n_bytes;
        uint8_t *bytes;
        begin();
        sam_hdr_t *plain = plain_header_of_text((const uint8_t *)text, size);
        MUST(plain && bam_header_bytes(plain, &bytes, &n_bytes) == 0);
        struct ref_names *names = ref_names_new(plain);
        MUST(names);
        check("a plain header", bam_header_memory(size, N, false), long_names ? 80 : 60);
        ref_names_free(names);
        free(bytes);
        sam_hdr_destroy(plain);
        begin();
        sam_hdr_t *in = sam_hdr_parse(size, text), *out = sam_hdr_dup(in);
        MUST(in && out && sam_hdr_count_lines(in, "SQ") == N && sam_hdr_count_lines(out, "SQ") == N);
        check("a parsed header", bam_header_memory(size, N, true), 70);
        sam_hdr_destroy(in);
        sam_hdr_destroy(out);
    }
    free(text);
}

/* ---- htslib ---- */

/* Writes and reads two containers of CRAM without threads. */
static void test_files_of_htslib_take_more_than_is_counted(void **state)
{
    (void)state;
    enum { RECORDS = 12000 };
    const struct htslib_room none = {0, 0};
    static const char text[] = "@HD\tVN:1.6\n@SQ\tSN:chr1\tLN:400000\n";
    char path[64];
    int fd = unit_temp_file();
    sam_hdr_t *header = sam_hdr_parse(strlen(text), text);
    bam1_t *record = bam_init1();
    MUST(header && record);
    begin();
    samFile *out = sam_open(unit_fd_path(path, fd), "wc"), *in;
    MUST(out && hts_set_opt(out, CRAM_OPT_NO_REF, 1) == 0 && sam_hdr_write(out, header) == 0);
    for (int i = 0; i < RECORDS; i++) {
        char line[1024];
        kstring_t of = {(size_t)sam_line(line, i, READS) - 1, sizeof line, line};
        line[of.l] = '\0';
        MUST(sam_parse1(&of, header, record) >= 0 && sam_write1(out, header, record) >= 0);
    }
    check("a CRAM that is written", hts_file_use(true, true, &none, 1).bytes, 10);
    MUST(sam_close(out) == 0);
    begin();
    in = sam_open(path, "r");
    sam_hdr_t *read = in ? sam_hdr_read(in) : NULL;
    MUST(read);
    for (int i = 0; i < RECORDS; i++)
        MUST(sam_read1(in, read, record) >= 0);
    check("a CRAM that is read", hts_file_use(true, false, &none, 1).bytes, 5);
    sam_hdr_destroy(read);
    sam_close(in);
    sam_hdr_destroy(header);
    bam_destroy1(record);
    close(fd);
}

/* ---- what looks at the records ---- */

static void test_checksum_of_samtools_takes_more_than_is_counted(void **state)
{
    (void)state;
    enum { GROUPS = 1000 };
    static const int threads[] = {1, 8};
    struct unit_bytes text = {NULL, 0, 0};
    for (int i = 0; i < GROUPS; i++) {
        char line[64];
        unit_append(&text, line, (size_t)sprintf(line, "@RG\tID:group%d\tSM:a sample\n", i));
    }
    sam_hdr_t *header = sam_hdr_parse(text.n, (const char *)text.data);
    for (size_t i = 0; i < N_OF(threads); i++) {
        begin();
        struct samtools_checksum *sum = samtools_checksum_new(threads[i]);
        MUST(header && sum);
        for (int t = 0; t < threads[i]; t++)
            for (int g = 0; g < GROUPS; g++) {
                struct unit_bytes record = {NULL, 0, 0};
                char tag[32] = "RGZ";
                uint32_t n = (uint32_t)sprintf(tag + 3, "group%d", g) + 4;
                unit_append_record(&record, &(struct unit_record){.name = "r", .aux = tag, .n_aux = n});
                MUST(samtools_checksum_add(sum, t, record.data, record.n) == 0);
                unit_free(&record);
            }
        check("the checksum of samtools", samtools_checksum_memory(threads[i], header), 60);
        samtools_checksum_free(sum);
    }
    sam_hdr_destroy(header);
    unit_free(&text);
}

static void test_search_for_parted_mates_takes_more_than_is_counted(void **state)
{
    (void)state;
    struct parted_mates mates;
    begin();
    MUST(parted_mates_open(&mates, "in.bam") == 0);
    check("the search for parted mates", parted_mates_memory(), 90);
    parted_mates_free(&mates);
}

/* Counts the records of one range: reads of 150 bases at `pos` and after it. Returns the place after them. */
static int32_t count_range(struct counts *counts, uint32_t slot, size_t range, int32_t pos)
{
    enum { READ = 150 };
    static const uint32_t cigar = UNIT_OP(READ, UNIT_M);
    struct unit_bytes bytes = {0};
    for (size_t n = 0; n < range; n += bytes.n, pos += 2) {
        bytes.n = 0;
        unit_append_record(&bytes, &(struct unit_record){.pos = pos, .name = "read.12345", .cigar = &cigar,
                                                         .n_cigar = 1, .seq_len = READ});
        counts_add(counts, 0, slot, bytes.data, (uint32_t)bytes.n);
    }
    unit_free(&bytes);
    return pos;
}

/* The last slots are joined first, so that their parts are prepared in pairs. */
static void test_counts_of_stats_take_more_than_is_counted(void **state)
{
    (void)state;
    enum { SLOTS = 12, RANGE = 256 << 10 };
    static const char text[] = "@HD\tVN:1.6\tSO:coordinate\n@SQ\tSN:chr1\tLN:400000\n";
    struct latch latch = {.tripped = LATCH_OPEN};
    struct stats_settings settings = stats_settings_default();
    struct counter counter = stats_counter(&settings);
    const struct engine engine = {.latch = &latch, .n_threads = 1};
    struct counts_options how = {&counter, 1, "in.bam", &engine, SLOTS};
    sam_hdr_t *sam = sam_hdr_parse(strlen(text), text);
    MUST(sam && sam_hdr_nref(sam) == 1);
    size_t counted = counts_memory(&counter, 1, sam, 1, SLOTS, RANGE) + join_tree_memory(SLOTS);
    begin();
    struct join_tree tree = {.counts = NULL};
    struct counts *counts = counts_open(&how, sam, NULL);
    MUST(counts && join_tree_open(&tree, counts, SLOTS, NULL) == 0);
    int32_t pos = 0;
    for (uint32_t slot = 0; slot < SLOTS; slot++)
        pos = count_range(counts, slot, RANGE, pos);
    for (uint32_t slot = SLOTS; slot-- > 0;)
        join_tree_add(&tree, slot);
    MUST(tree.joined == SLOTS && !latch_tripped(&latch));
    check("the counts of stats", counted, 5);
    join_tree_close(&tree);
    counts_close(counts);
    sam_hdr_destroy(sam);
    counter.end(&settings);
}

static void test_join_of_parts_takes_more_than_is_counted(void **state)
{
    (void)state;
    for (uint32_t n = 2; n < 1000000; n *= 9) {
        struct join_tree tree = {.counts = NULL};
        begin();
        MUST(join_tree_open(&tree, NULL, n, NULL) == 0);
        check("the join of parts", join_tree_memory(n), 90);
        join_tree_close(&tree);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ring_takes_more_than_is_counted),
        cmocka_unit_test(test_clocks_take_more_than_is_counted),
        cmocka_unit_test(test_codec_takes_more_than_is_counted),
        cmocka_unit_test(test_sink_takes_more_than_is_counted),
        cmocka_unit_test(test_reading_takes_more_than_is_counted),
        cmocka_unit_test(test_reading_of_text_takes_more_than_is_counted),
        cmocka_unit_test(test_input_of_a_merge_takes_more_than_is_counted),
        cmocka_unit_test(test_pool_of_chunks_takes_more_than_is_counted),
        cmocka_unit_test(test_inputs_that_are_open_take_more_than_is_counted),
        cmocka_unit_test(test_merge_takes_more_than_is_counted),
        cmocka_unit_test(test_packer_takes_more_than_is_counted),
        cmocka_unit_test(test_headers_take_more_than_is_counted),
        cmocka_unit_test(test_files_of_htslib_take_more_than_is_counted),
        cmocka_unit_test(test_checksum_of_samtools_takes_more_than_is_counted),
        cmocka_unit_test(test_search_for_parted_mates_takes_more_than_is_counted),
        cmocka_unit_test(test_check_of_the_output_takes_more_than_is_counted),
        cmocka_unit_test(test_counts_of_stats_take_more_than_is_counted),
        cmocka_unit_test(test_join_of_parts_takes_more_than_is_counted),
    };
    if (!is_counting()) {
        puts("skipped: this allocator does not say what it has allocated");
        return 0;
    }
    start_tasks();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
