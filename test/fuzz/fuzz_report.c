/* SPDX-License-Identifier: MIT */
/* A file that `report` is given: it may be refused, whatever is in it; what is taken is finite, and can be shown. */
#include <math.h>
#include <stdio.h>
#include "report/json_reader.h"
#include "report/report_compare.h"
#include "fuzz.h"

/* What a value may be; arg counts them. */
static void look(void *arg, const struct json_value *v)
{
    MUST(strlen(v->path) < JSON_PATH && (v->kind != JSON_NUMBER || isfinite(v->number)));
    MUST(v->kind != JSON_TEXT || strlen(v->text) < 1u << 20);
    ++*(size_t *)arg;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct report_compare_side sides[2];
    char *exact = (char *)exact_copy(data, size);
    size_t n = 0;
    int strict = json_reader_run(exact, size, look, &n);
    MUST(n <= size);
    if (report_compare_read(&sides[0], "a.json", exact, size) == 0) {
        FILE *to = fopen("/dev/null", "w");
        MUST(strict == 0 && to && report_compare_read(&sides[1], "b.json", exact, size) == 0);
        report_compare_text(sides, to);
        report_compare_html(sides, to);
        fclose(to);
    }
    free(exact);
    return 0;
}
