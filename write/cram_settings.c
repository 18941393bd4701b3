/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <htslib/faidx.h>
#include "base/htslib_version.h"
#include "base/input_name.h"
#include "write/cram_settings.h"

enum {
    KEEPS_GROUPS = HTSLIB_VERSION(1, 16),
    VERSION_31 = HTSLIB_VERSION(1, 18),
    EMBEDS_BEYOND = HTSLIB_VERSION(1, 21),           /* with embed_ref=1 */
    EMBEDS_CONSENSUS = HTSLIB_VERSION(1, 24),        /* embed_ref=2 gives back what was put */
};

/* The last option of this kind; NULL: there is none. */
static const hts_opt *last_option(const hts_opt *options, enum hts_fmt_option kind)
{
    const hts_opt *found = NULL;
    for (; options; options = options->next)
        if (options->opt == kind)
            found = options;
    return found;
}

static const char *fasta_of(const struct cram_settings_case *c)
{
    const hts_opt *told = last_option(c->options, CRAM_OPT_REFERENCE);
    return c->reference ? c->reference : told ? told->val.s : NULL;
}

/* Writes the path that a template makes of a checksum: "%2s/%s" stands for two of its letters, a slash and the others;
 * a template without any gets "/" and all. false: it does not fit. */
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

/* Whether a list of templates, with ":" between them, leads to a file. URLs are not asked. */
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

/* Whether htslib finds the sequence of this checksum on this machine, as it does by environment. */
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

/* Whether the sequence of a reference is to be had, in the FASTA or by what its @SQ line says. */
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

/* How many references of the header are not at hand. */
static int count_missing(sam_hdr_t *header, const char *fasta)
{
    faidx_t *index = fasta ? fai_load3(fasta, NULL, NULL, 0) : NULL;
    int n = 0;
    for (int i = 0; i < sam_hdr_nref(header); i++)
        n += !is_at_hand(header, sam_hdr_tid2name(header, i), index);
    fai_destroy(index);
    return n;
}

/* For a version whose embed_ref=2, to which it turns where it finds no reference, changes records. */
static struct cram_settings avoid_consensus(const struct cram_settings_case *c, int embed)
{
    if (embed > 1)
        return (struct cram_settings){CRAM_NO_REF, "embed_ref=2 of this htslib changes bases of some reads, that "
                                                   "of 1.24 does not: no_ref=1 stands for it"};
    if (count_missing(c->header, fasta_of(c)) == 0)
        return (struct cram_settings){embed > 0 ? CRAM_AS_TOLD : CRAM_NO_EMBED, NULL};
    return (struct cram_settings){CRAM_NO_REF, "references of the header are not to be had, so it is written without "
                                               "(no_ref=1). --reference FASTA makes it smaller"};
}

struct cram_settings cram_settings_choose(const struct cram_settings_case *c)
{
    const hts_opt *no_ref = last_option(c->options, CRAM_OPT_NO_REF);
    const hts_opt *embed_ref = last_option(c->options, CRAM_OPT_EMBED_REF);
    int embed = embed_ref ? embed_ref->val.i : -1;
    bool takes_beyond = (embed == 1 && c->htslib >= EMBEDS_BEYOND) || (embed > 1 && c->htslib >= EMBEDS_CONSENSUS);
    if (no_ref && no_ref->val.i)
        return (struct cram_settings){CRAM_AS_TOLD, NULL};
    if (c->beyond && !takes_beyond)
        return (struct cram_settings){CRAM_NO_REF, "a record begins behind the end of its reference, which htslib "
                                                   "could not read again: it is written without references (no_ref=1)"};
    return c->htslib < EMBEDS_CONSENSUS ? avoid_consensus(c, embed) : (struct cram_settings){CRAM_AS_TOLD, NULL};
}

const char *cram_settings_version(int htslib)
{
    return htslib >= VERSION_31 ? "3.1" : NULL;
}

bool cram_settings_drops_groups(int htslib)
{
    return htslib < KEEPS_GROUPS;
}
