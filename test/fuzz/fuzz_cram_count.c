/* SPDX-License-Identifier: MIT */
/* The count of records in a CRAM file does not depend on the size of the pieces, and bytes that need not be fed are not
 * read. The first byte of the input gives the size of the pieces. */
#include <unistd.h>
#include "hts/cram_count.h"
#include "fuzz.h"

static struct cram_count fed(const uint8_t *data, size_t size, size_t piece)
{
    struct cram_count c;
    cram_count_start(&c, true);
    for (size_t at = 0; at < size; at += piece) {
        size_t n = piece < size - at ? piece : size - at;
        uint8_t *exact = exact_copy(data + at, n);
        cram_count_feed(&c, exact, n);
        free(exact);
    }
    MUST(c.at == size);
    return c;
}

static struct cram_count walked(const uint8_t *data, size_t size)
{
    char path[32];
    struct cram_count c;
    int fd = fuzz_file(data, size, path);
    cram_count_start(&c, true);
    MUST(cram_count_file(&c, fd, 0, size / 3) == 0);
    MUST(cram_count_file(&c, fd, 0, size) == 0);
    close(fd);
    return c;
}

/* Checks the same file with other bytes in all places that the reader does not read. */
static struct cram_count blind(const uint8_t *data, size_t size)
{
    struct cram_count c;
    cram_count_start(&c, true);
    while (c.at < size) {
        uint64_t rest = cram_count_rest(&c), left = size - c.at;
        if (rest > 0)
            cram_count_feed(&c, NULL, rest < left ? rest : left);
        else
            cram_count_feed(&c, data + c.at, 1);
    }
    return c;
}

static void same(const struct cram_count *a, const struct cram_count *b)
{
    MUST(a->records == b->records && a->at == b->at && a->rest == b->rest && a->field == b->field);
    MUST(a->damaged == b->damaged);
    MUST(cram_count_agrees(a, a->records) == cram_count_agrees(b, a->records));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    struct cram_count whole = fed(data + 1, size - 1, size), pieces = fed(data + 1, size - 1, 1 + data[0]);
    struct cram_count walk = walked(data + 1, size - 1), skips = blind(data + 1, size - 1);
    same(&whole, &pieces);
    same(&whole, &walk);
    same(&whole, &skips);
    MUST(whole.unknown || !cram_count_agrees(&whole, whole.records + 1));
    return 0;
}
