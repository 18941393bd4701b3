/* SPDX-License-Identifier: MIT */
/* Which versions the program names: its own, and that of the samtools for which it stands. */
#ifndef VERSION_H
#define VERSION_H

/* Our own. */
#define SAMTOOLS_OMP_VERSION "0.1.0"
/* Of the samtools whose records, order, header and options we give. Pipelines compare this number, so nothing
 * is added to it: `[ ${v#*.} -ge 10 ]`, R's numeric_version() and others take digits and dots only. */
#define SAMTOOLS_VERSION "1.24"
/* Both, for @PG VN: who reads a file years later wants to know which program wrote it. */
#define SAMTOOLS_VERSION_OF_BOTH SAMTOOLS_VERSION "+omp" SAMTOOLS_OMP_VERSION

#endif
