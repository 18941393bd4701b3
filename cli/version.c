/* SPDX-License-Identifier: MIT */
#include <htslib/hts.h>
#include "cli/version.h"

/* Pipelines cut the version out of this text with sed, grep, head and awk (test_version.py has their
 * lines). Some join all lines into one and keep what follows the last "samtools "; others keep each line with
 * "samtools" in it. So the word, in small letters, is in the first line only. */
void version_print(FILE *to)
{
    fprintf(to,
            "samtools " SAMTOOLS_VERSION "\n"
            "Using htslib %s\n"
            "Samtools-omp " SAMTOOLS_OMP_VERSION " sorts in place of that version, on OpenMP tasks.\n"
            "All commands but `sort` are run by the next one on PATH, or by $SAMTOOLS_UPSTREAM; --help names it.\n",
            hts_version());
}

void version_print_only(FILE *to)
{
    fprintf(to, SAMTOOLS_VERSION "+htslib-%s\n", hts_version());
}
