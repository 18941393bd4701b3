/* SPDX-License-Identifier: MIT */
/* The htslib version that the program runs with, for code that depends on it. */
#ifndef HTSLIB_VERSION_H
#define HTSLIB_VERSION_H

#include <stdlib.h>
#include <htslib/hts.h>

/* A version as one number: 1.16 is 1016. */
#define HTSLIB_VERSION(major, minor) ((major) * 1000 + (minor))

/* The version in a text like "1.16" or "1.16-3-gabcdef"; 0: not a version. */
static inline int htslib_version_of(const char *text)
{
    char *end;
    long major = strtol(text, &end, 10), minor = *end == '.' ? strtol(end + 1, NULL, 10) : 0;
    return major < 0 || major > 1000 || minor < 0 || minor > 999 ? 0 : HTSLIB_VERSION((int)major, (int)minor);
}

/* The version of the loaded library, which may differ from the one compiled with. */
static inline int htslib_version(void)
{
    return htslib_version_of(hts_version());
}

#endif
