/* SPDX-License-Identifier: MIT */
/* The two versions that the program reports: its own, and that of the samtools that it replaces. */
#ifndef VERSION_H
#define VERSION_H

/* Our own version: that of a release, or of the next one with "-dev". Scripts read this line. */
#define SAMTOOLS_OMP_VERSION "0.2.0-dev"
/* The samtools version whose records, order, header and options we reproduce. Pipelines compare this number, so nothing
 * is added to it: `[ ${v#*.} -ge 10 ]`, R's numeric_version() and others accept digits and dots only. */
#define SAMTOOLS_VERSION "1.24"

/* Our own version as users see it: before a release with the commit, if the program was built in a git checkout, as in
 * "0.2.0-dev.1a2b3c4d"; with "-dirty" after it if files were changed since the commit. */
const char *version_omp(void);

/* Both versions, for @PG VN, so that readers of old files know which program wrote them. */
const char *version_of_both(void);

#endif
