/* SPDX-License-Identifier: MIT */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <htslib/faidx.h>
#include "hts/ref_lookup.h"
#include "base/input_name.h"

/* Expands a template to the path of a checksum: "%2s/%s" stands for two letters of it, a slash and the rest; a template
 * without "%s" gets "/" and the checksum. false: it does not fit. */
static bool expand(char *path, size_t size, const char *template, size_t n, const char *sum)
{
    size_t at = 0;
    bool has_any = false;
    for (const char *p = template; p < template + n && at + 1 < size; p++) {
        char *end;
        size_t width = strtoul(p + 1, &end, 10), left = strlen(sum);
        if (*p != '%' || end >= template + n || *end != 's') {
            path[at++] = *p;
            continue;
        }
        width = width == 0 || width > left ? left : width;
        at += (size_t)snprintf(path + at, size - at, "%.*s", (int)width, sum);
        sum += width;
        p = end;
        has_any = true;
    }
    path[at < size ? at : size - 1] = 0;
    if (!has_any && at < size)
        at += (size_t)snprintf(path + at, size - at, "/%s", sum);
    return at < size;
}

/* Returns whether a list of templates, separated by ":", leads to a file. URLs are not requested. */
static bool is_in_list(const char *list, const char *sum)
{
    char path[4096];
    while (list && *list) {
        size_t n = strcspn(list, ":");
        if (n > 0 && expand(path, sizeof path, list, n, sum) && access(path, R_OK) == 0)
            return true;
        list += n + (list[n] != 0);
    }
    return false;
}

/* Returns whether htslib finds the sequence with this checksum on this machine, by its environment variables. */
static bool is_cached(const char *sum)
{
    const char *path = getenv("REF_PATH"), *cache = getenv("REF_CACHE");
    const char *home = getenv("HOME"), *folder = getenv("XDG_CACHE_HOME");
    char by_default[4096];
    if ((!path || !*path) && (!cache || !*cache) && (folder || home)) {
        snprintf(by_default, sizeof by_default, "%s%s/hts-ref/%%2s/%%2s/%%s", folder ? folder : home,
                 folder ? "" : "/.cache");
        cache = by_default;
    }
    return is_in_list(cache, sum) || is_in_list(path, sum);
}

/* Returns whether the sequence of a reference is available, in the FASTA or by its @SQ line. */
static bool is_at_hand(sam_hdr_t *header, const char *name, const faidx_t *fasta)
{
    kstring_t tag = KS_INITIALIZE;
    bool found = (fasta && faidx_has_seq(fasta, name))
              || (sam_hdr_find_tag_id(header, "SQ", "SN", name, "M5", &tag) == 0 && is_cached(tag.s));
    if (!found && sam_hdr_find_tag_id(header, "SQ", "SN", name, "UR", &tag) == 0) {
        bool is_short = strncmp(tag.s, "file:/", 6) == 0 && tag.s[6] != '/';
        found = access(input_name_local(tag.s + (is_short ? 5 : 0)), R_OK) == 0;
    }
    ks_free(&tag);
    return found;
}

const char *ref_lookup_missing(sam_hdr_t *header, const char *fasta)
{
    faidx_t *index = fasta ? fai_load3(fasta, NULL, NULL, 0) : NULL;
    const char *missing = NULL;
    for (int i = 0; !missing && i < sam_hdr_nref(header); i++) {
        const char *name = sam_hdr_tid2name(header, i);
        missing = is_at_hand(header, name, index) ? NULL : name;
    }
    fai_destroy(index);
    return missing;
}
