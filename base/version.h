/* SPDX-License-Identifier: MIT */
/* Which versions the program names: its own, and that of the samtools for which it stands. */
#ifndef VERSION_H
#define VERSION_H

/* Our own: that of a release, or of the one to come with "-dev". Scripts read this line. */
#define SAMTOOLS_OMP_VERSION "0.2.0-dev"
/* The version of samtools whose records, order, header and options we give. Pipelines compare this number, so nothing
 * is added to it: `[ ${v#*.} -ge 10 ]`, R's numeric_version() and others take digits and dots only. */
#define SAMTOOLS_VERSION "1.24"

/* Our own as users see it: before a release with the commit, if the program was built in a checkout of git, as in
 * "0.2.0-dev.1a2b3c4d"; behind that "-dirty" if files were changed since the commit. */
const char *version_omp(void);

/* Both, for @PG VN: who reads a file years later wants to know which program wrote it. */
const char *version_of_both(void);

#endif
