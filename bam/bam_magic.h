/* SPDX-License-Identifier: MIT */
/* The bytes with which a BAM file begins. */
#ifndef BAM_MAGIC_H
#define BAM_MAGIC_H

#define BAM_HEADER_MAGIC "BAM\1"
enum { BAM_HEADER_MAGIC_SIZE = sizeof BAM_HEADER_MAGIC - 1 };

#endif
