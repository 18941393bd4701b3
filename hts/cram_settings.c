/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include "hts/ref_lookup.h"
#include "hts/ref_sums.h"
#include "hts/hts_file.h"
#include "hts/htslib_version.h"
#include "hts/cram_settings.h"

enum {
    KEEPS_GROUPS = HTSLIB_VERSION(1, 16),
    COMPARES_SUMS = HTSLIB_VERSION(1, 21),
    VERSION_31 = HTSLIB_VERSION(1, 18),
    EMBEDS_BEYOND = HTSLIB_VERSION(1, 21),           /* with embed_ref=1 */
    EMBEDS_CONSENSUS = HTSLIB_VERSION(1, 24),        /* embed_ref=2 gives back unchanged records */
};

static struct cram_settings without(const char *why)
{
    return (struct cram_settings){.reference = CRAM_NO_REF, .why = why};
}

/* Avoids embed_ref=2 in versions where it changes records; htslib also uses it if it finds no reference. */
static struct cram_settings avoid_consensus(const struct cram_settings_case *c, int embed)
{
    if (embed > 1)
        return without("embed_ref=2 of this htslib changes bases of some reads, that of 1.24 does not: no_ref=1 is "
                       "used instead");
    if (!ref_lookup_missing(c->header, hts_file_fasta(c->reference, c->options)))
        return (struct cram_settings){.reference = embed > 0 ? CRAM_AS_TOLD : CRAM_NO_EMBED};
    return without("references of the header are not available, so it is written without (no_ref=1). --reference FASTA "
                   "makes it smaller");
}

static struct cram_settings choose(const struct cram_settings_case *c, int embed)
{
    bool takes_beyond = (embed == 1 && c->htslib >= EMBEDS_BEYOND) || (embed > 1 && c->htslib >= EMBEDS_CONSENSUS);
    if (c->beyond && !takes_beyond)
        return without("a record begins after the end of its reference, which htslib could not read again: it is "
                       "written without references (no_ref=1)");
    return c->htslib < EMBEDS_CONSENSUS ? avoid_consensus(c, embed) : (struct cram_settings){.reference = CRAM_AS_TOLD};
}

bool cram_settings_clash(const hts_opt *options)
{
    return hts_file_number(options, CRAM_OPT_NO_REF, 0)
        && hts_file_number(options, CRAM_OPT_EMBED_REF, 0) == 1;
}

static bool is_version_2(const hts_opt *options)
{
    const hts_opt *version = hts_file_option(options, CRAM_OPT_VERSION);
    return version && atoi(version->val.s) < 3;
}

struct cram_settings cram_settings_choose(const struct cram_settings_case *c)
{
    int embed = hts_file_number(c->options, CRAM_OPT_EMBED_REF, -1);
    bool no_ref = hts_file_number(c->options, CRAM_OPT_NO_REF, 0);
    struct cram_settings how = {.reference = CRAM_AS_TOLD};
    if (!no_ref)
        how = choose(c, embed);
    bool refs = embed <= 1 && !no_ref && how.reference != CRAM_NO_REF;
    if (refs)
        how.fasta = ref_sums_fasta(c->reference, c->options);
    how.needs_seq = is_version_2(c->options);
    how.needs_quals = how.needs_seq
                   && (!refs || ref_lookup_missing(c->header, hts_file_fasta(c->reference, c->options)));
    return how;
}

bool cram_settings_compares_sums(int htslib)
{
    return htslib >= COMPARES_SUMS;
}

const char *cram_settings_version(int htslib)
{
    return htslib >= VERSION_31 ? "3.1" : NULL;
}

bool cram_settings_drops_groups(int htslib)
{
    return htslib < KEEPS_GROUPS;
}
