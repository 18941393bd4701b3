/* SPDX-License-Identifier: MIT */
/* The complete program on a foreign BAM file: a refused file leaves no output, unless its records can be viewed; an
 * accepted one is sorted, and can be viewed. First byte: the order and the number of threads. */
#include "fuzz.h"
#include "program.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const orders[] = {"-u", "-n", "-N", "--picard", "-tXT", "-tRG", "--template-coordinate", "-M"};
    enum { N_ORDERS = sizeof orders / sizeof *orders };
    struct feed f = {data, size};
    unsigned how = feed_byte(&f);
    const char *order = orders[how % N_ORDERS];
    const char *const sort[] = {"-u", "-m", "1M", how & 8 ? "-@1" : "-@2", order, NULL};
    const char *const check[] = {"--check", order, NULL};
    if (!fuzz_is_bam(f.p, f.left))
        return 0;
    struct made sorted = program_run(sort, f.p, f.left);
    if (sorted.status != EXIT_SUCCESS) {
        MUST(sorted.size == 0 || !fuzz_can_be_viewed(f.p, f.left));   /* tags are checked when they are written */
    } else {
        MUST(fuzz_can_be_viewed(sorted.data, sorted.size));
        if (how % N_ORDERS != N_ORDERS - 1) {    /* -M cannot be checked */
            struct made checked = program_run(check, sorted.data, sorted.size);
            MUST(checked.status == EXIT_SUCCESS);
            free(checked.data);
        }
    }
    free(sorted.data);
    return 0;
}
