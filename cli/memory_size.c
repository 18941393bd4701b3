/* SPDX-License-Identifier: MIT */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/machine.h"
#include "base/message.h"
#include "cli/memory_size.h"

#define MIB ((uint64_t)1 << 20)

/* The least that one thread needs for a file with a short header. */
static const uint64_t TOTAL_LEAST = 24 * MIB;

static uint64_t suffix_factor(char suffix)
{
    static const char suffixes[] = "kmgt";
    const char *found = suffix ? strchr(suffixes, tolower((unsigned char)suffix)) : NULL;
    return found ? (uint64_t)1 << 10 * (found - suffixes + 1) : 1;
}

/* Returns the number that text begins with, in any base that strtol() reads, or with decimals; *end is the text after
 * it. */
static double leading_number(const char *text, char **end)
{
    double value = (double)strtoull(text, end, 0);
    return **end == '.' ? strtod(text, end) : value;
}

int memory_size_parse(const char *text, uint64_t *size)
{
    char *end;
    errno = 0;
    double value = leading_number(text, &end);
    if (end == text || errno || strchr(text, '-'))
        return -1;
    value *= (double)suffix_factor(*end);
    if (value >= (double)((uint64_t)1 << 62))
        return -1;
    *size = (uint64_t)value;
    return 0;
}

static int too_small(const char *text, uint64_t size)
{
    char *suffix;
    leading_number(text, &suffix);
    if (*suffix && suffix_factor(*suffix) == 1)
        return message_mistake("-m %s is %llu bytes: '%s' is not a suffix; use K, M, G or T. The minimum is 1M "
                               "per thread", text, (unsigned long long)size, suffix);
    return message_mistake("-m %s is %llu bytes; the minimum is 1M per thread%s", text, (unsigned long long)size,
                           *suffix ? "" : ". A size without a suffix is in bytes: add M or G");
}

int memory_size_per_thread(const char *text, uint64_t *per_thread)
{
    if (memory_size_parse(text, per_thread) < 0)
        return message_mistake("-m needs a size such as 768M or 1.5G, not '%s'", text);
    return *per_thread < MIB ? too_small(text, *per_thread) : 0;
}

/* Memory for the kernel's page cache: with too little of it, the kernel kills the process instead of waiting for a
 * disk. */
static const uint64_t FOR_WRITING = (uint64_t)32 << 20;

static uint64_t share_of_memory(double share)
{
    uint64_t there = machine_memory();
    uint64_t most = there / 4 > FOR_WRITING ? there - FOR_WRITING : there - there / 4;
    return (uint64_t)fmin(share * (double)there, (double)most);
}

static int check_total(const char *name, const char *text, uint64_t total)
{
    if (total >= TOTAL_LEAST)
        return 0;
    return message_mistake("%s %s is %llu bytes; the minimum is %lluM for the whole program, more with more "
                           "threads, and 66M for a rank over MPI", name, text, (unsigned long long)total,
                           (unsigned long long)(TOTAL_LEAST / MIB));
}

int memory_size_total(const char *name, const char *text, uint64_t *total)
{
    size_t n = strlen(text);
    if (n > 1 && text[n - 1] == '%') {
        char *end;
        double share = strtod(text, &end);
        if (end == text + n - 1 && share > 0 && share <= 100) {
            *total = share_of_memory(share / 100);
            return check_total(name, text, *total);
        }
    } else if (memory_size_parse(text, total) == 0) {
        return check_total(name, text, *total);
    }
    return message_mistake("%s needs a size such as 8G, or a share such as 80%%, not '%s'", name, text);
}
