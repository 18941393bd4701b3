/* SPDX-License-Identifier: MIT */
/* Foreign SAM text, cut at any place: it gives the same records, or the same refusal and message, as when it is read in
 * one piece. First byte: the place of the cut. (fuzz_sam_line.c tests single lines.) */
#include <string.h>
#include <unistd.h>
#include "base/byte_buffer.h"
#include "read/input_format.h"
#include "read/slice_feed.h"
#include "fuzz.h"
#include "base/engine.h"
#include "base/latch.h"

static void take_records(const struct record_stream *stream, const struct engine *engine, struct byte_buffer *to)
{
    struct slice_feed feed;
    MUST(slice_feed_open(&feed, stream, 2, SIZE_MAX, engine) == 0);
    while (slice_feed_await(&feed, task_no_help, NULL) == CHUNK_MADE) {
        struct slice_span span = slice_feed_take(&feed);
        MUST(span.size > 0 && byte_buffer_append(to, span.bytes, span.size) == 0);
        slice_span_release(&span);
    }
    slice_feed_close(&feed);
}

/* The result for a text, read in chunks of a given size. */
struct outcome {
    struct byte_buffer records;
    struct latch latch;
};

static void read_text(struct outcome *o, const char *path, size_t text)
{
    const struct engine engine = {.latch = &o->latch, .n_threads = 1};
    struct input_options from = {.path = path, .engine = &engine, .n_pieces = 4, .header_max = 1 << 20, .chunks = {
        .piece_size = text, .source_slots = 3, .n_chunks = (uint32_t)(2 + text % 3), .chunk_size = text, .records_size = text}};
    struct input_format *input = input_format_open(&from);
    if (!input)
        return;
    take_records(&input->stream, &engine, &o->records);
    sam_hdr_destroy(input_format_header(input));
    input_format_close(input);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { CHUNK_MIN = 16 };
    struct feed f = {data, size};
    size_t text = CHUNK_MIN + feed_byte(&f);
    char path[32];
    int fd = fuzz_file(f.p, f.left, path);
    htsFormat format = fuzz_format(f.p, f.left);
    if (format.format == sam && format.compression == no_compression) {
        struct outcome cut = {.records = {NULL, 0, 0}}, whole = {.records = {NULL, 0, 0}};
        read_text(&cut, path, text);
        read_text(&whole, path, f.left + CHUNK_MIN);
        MUST(strcmp(cut.latch.message, whole.latch.message) == 0);
        /* Before a refusal, a chunk that holds it gives no records. */
        MUST(cut.latch.message[0] || cut.records.n == whole.records.n);
        MUST(whole.records.n == 0 || memcmp(cut.records.p, whole.records.p, whole.records.n) == 0);
        free(cut.records.p);
        free(whole.records.p);
    }
    close(fd);
    return 0;
}
