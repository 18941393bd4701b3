/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include "base/message.h"
#include "markdup/dup_warnings.h"

enum { WARNINGS_MOST = 10 };     /* warnings of each kind, as in samtools */

static const char *const texts[DUP_WARNINGS] = {
    [DUP_WARNING_COORDINATES] = "no coordinates can be read in the name, so it is unknown whether it is an optical "
                                "duplicate",
    [DUP_WARNING_BARCODE] = "it has no barcode that can be read",
};

static const char *const sums[DUP_WARNINGS] = {
    [DUP_WARNING_COORDINATES] = "names in which no coordinates could be read (each attempt counts)",
    [DUP_WARNING_BARCODE] = "records without a barcode that could be read",
};

bool dup_warnings_is_silent(const struct dup_warnings *w, enum dup_warning kind)
{
    return w->n[kind] >= WARNINGS_MOST;
}

void dup_warnings_count(struct dup_warnings *w, enum dup_warning kind, uint64_t n)
{
    w->n[kind] += n;
}

void dup_warnings_take(struct dup_warnings *w, enum dup_warning kind, const char *name)
{
    bool silent = dup_warnings_is_silent(w, kind);
    dup_warnings_count(w, kind, 1);
    if (silent)
        return;
    message_warning("%s: %s", name, texts[kind]);
    if (dup_warnings_is_silent(w, kind))
        message_warning("more such records are only counted");
}

void dup_warnings_end(const struct dup_warnings *w, const char barcode_tag[2])
{
    if (w->untagged > w->examined / 2)
        message_warning("%" PRIu64 " of %" PRIu64 " examined records have no tag %.2s (--barcode-tag). They are "
                        "compared as if they had the same barcode", w->untagged, w->examined, barcode_tag);
    for (int kind = 0; kind < DUP_WARNINGS; kind++)
        if (w->n[kind] > 0)
            message_warning("%s: %" PRIu64, sums[kind], w->n[kind]);
}
