/* SPDX-License-Identifier: MIT */
#include "base/version.h"

/* The Makefile puts the commit into build/commit.h and includes that before this file only, so a commit recompiles one
 * file. The text is "" outside a git checkout, in a release, and in unit tests. */
#ifndef SAMTOOLS_OMP_COMMIT
#define SAMTOOLS_OMP_COMMIT ""
#endif

const char *version_omp(void)
{
    return SAMTOOLS_OMP_VERSION SAMTOOLS_OMP_COMMIT;
}

const char *version_of_both(void)
{
    return SAMTOOLS_VERSION "+omp" SAMTOOLS_OMP_VERSION SAMTOOLS_OMP_COMMIT;
}
