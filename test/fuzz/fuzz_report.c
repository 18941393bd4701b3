/* SPDX-License-Identifier: MIT */
/* A file given to `report`: any content may be refused; accepted content can be shown. */
#include <stdio.h>
#include "report/report_compare.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct report_compare_side sides[2];
    char *exact = (char *)exact_copy(data, size);
    if (report_compare_read(&sides[0], "a.json", exact, size) == 0) {
        FILE *to = fopen("/dev/null", "w");
        MUST(to && report_compare_read(&sides[1], "b.json", exact, size) == 0);
        report_compare_text(sides, to);
        report_compare_html(sides, to);
        fclose(to);
    }
    free(exact);
    return 0;
}
