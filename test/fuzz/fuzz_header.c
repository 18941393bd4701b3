/* SPDX-License-Identifier: MIT */
/* The header of a foreign BAM file: read, marked as sorted and converted to bytes, which are a header again. First
 * byte: the order. */
#include <unistd.h>
#include <htslib/hts.h>
#include <htslib/hts_log.h>
#include "bam/bam_header.h"
#include "read/header_read.h"
#include "codec/bgzf_block.h"
#include "bgzf_omp.h"
#include "read/input_format.h"
#include "fuzz.h"
#include "base/engine.h"
#include "base/latch.h"
#include "order/sort_key.h"

enum { HEADER_MOST = 1 << 20 };

/* NULL: refused. */
static sam_hdr_t *header_of(const uint8_t *data, size_t size)
{
    if (!fuzz_is_bam(data, size))
        return NULL;
    char path[32];
    int fd = fuzz_file(data, size, path);
    struct latch latch = {0};
    const struct engine engine = {.latch = &latch, .n_threads = 1};
    struct bam_header header = {0};
    struct input_options from = {.path = path, .engine = &engine, .piece_size = BGZF_MAX_BLOCK, .n_pieces = 4,
                                 .htslib = {.bytes = 1 << 20}};
    struct input_format *input = input_format_open(&from);
    if (input) {
        struct bgzf_source_options how = {
            .input = input->window,
            .path = path,
            .n_slots = 1,
            .engine = &engine,
        };
        struct bgzf_source *source = input->framing == INPUT_BGZF ? bgzf_source_open(&how) : NULL;
        struct header_bytes bytes = {source, source ? NULL : input->window};
        int failed = header_read(&header, bytes, HEADER_MOST, NULL, false, path, &latch);
        MUST(failed ? latch.message[0] && !header.sam : header.sam && header.rest_size <= BGZF_MAX_BLOCK);
        bgzf_source_close(source);
    }
    input_format_close(input);
    close(fd);
    free(header.rest);
    return header.sam;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct feed f = {data, size};
    struct sort_order order = {.by = feed_byte(&f) % (SORT_MINHASH + 1), .tag = {'R', 'G'}};
    uint8_t *bytes;
    size_t n;
    hts_verbose = HTS_LOG_OFF;
    sam_hdr_t *sam = header_of(f.p, f.left);
    if (sam && bam_header_mark_sorted(sam, &order, size & 1, "1", "fuzz") == 0
        && bam_header_bytes(sam, &bytes, &n) == 0) {
        sam_hdr_t *again = header_of(bytes, n);
        MUST(again && sam_hdr_nref(again) == sam_hdr_nref(sam));
        struct sort_rule *rule = sort_rule_new(&order, again);
        MUST(rule);
        sort_rule_free(rule);
        sam_hdr_destroy(again);
        free(bytes);
    }
    sam_hdr_destroy(sam);
    return 0;
}
