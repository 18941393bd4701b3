/* SPDX-License-Identifier: MIT */
/* SAM text from outside, cut at any place: the records, or the refusal, that htslib comes to line by line.
 * First byte: where it is cut. */
#include <unistd.h>
#include "bam/bam1_bytes.h"
#include "base/byte_buffer.h"
#include "base/byte_window.h"
#include "read/input_format.h"
#include "fuzz.h"
#include "base/latch.h"

/* Appends the records of a file as htslib reads them; false: it refuses the file, or BAM a record. */
static bool read_by_htslib(const char *path, struct byte_buffer *to)
{
    samFile *file = sam_open(path, "r");
    sam_hdr_t *sam = file ? sam_hdr_read(file) : NULL;
    bam1_t *b = bam_init1();
    int status = sam && b && sam_hdr_count_lines(sam, "SQ") >= 0 ? 0 : -2;
    while (status >= 0 && (status = sam_read1(file, sam, b)) >= 0)
        status = bam1_bytes_append(to, b) == 0 ? 0 : -2;
    bam_destroy1(b);
    sam_hdr_destroy(sam);
    if (file)
        hts_close(file);
    return status == -1;
}

static bool no_help(void *arg)
{
    (void)arg;
    return false;
}

static bool read_by_us(struct input_format *input, struct byte_buffer *to)
{
    struct byte_window *w = input->window;
    int found;
    while ((found = byte_window_more(w, no_help, NULL)) > 0) {
        MUST(w->size > 0 && byte_buffer_reserve(to, to->n + w->size) == 0 && to->p);
        memcpy(to->p + to->n, w->data, w->size);
        to->n += w->size;
        byte_window_skip(w, w->size);
    }
    return found == 0;
}

static void compare(struct input_format *input, const char *path, const struct latch *latch)
{
    struct byte_buffer ours = {NULL, 0, 0}, theirs = {NULL, 0, 0};
    bool taken = read_by_us(input, &ours);
    MUST(taken == !latch->message[0]);
    MUST(taken == read_by_htslib(path, &theirs));
    MUST(!taken || (ours.n == theirs.n && (ours.n == 0 || memcmp(ours.p, theirs.p, ours.n) == 0)));
    free(ours.p);
    free(theirs.p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { CHUNK_MIN = 16, HEADER_MAX = 1 << 20 };
    struct feed f = {data, size};
    size_t text = CHUNK_MIN + feed_byte(&f);
    char path[32];
    int fd = fuzz_file(f.p, f.left, path);
    struct latch latch = {0};
    struct input_options from = {.path = path, .n_threads = 1, .header_max = HEADER_MAX, .latch = &latch, .sam = {
        .piece_size = text, .source_slots = 3, .n_chunks = (uint32_t)(2 + text % 3), .text_size = text, .records_size = text}};
    htsFormat format = fuzz_format(f.p, f.left);
    bool is_text = format.format == sam && format.compression == no_compression;
    struct input_format *input = is_text ? input_format_open(&from) : NULL;
    if (input) {
        compare(input, path, &latch);
        sam_hdr_destroy(input_format_header(input));
        input_format_close(input);
    }
    close(fd);
    return 0;
}
