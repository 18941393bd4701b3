/* SPDX-License-Identifier: MIT */
/* A folder that replaces / in tests of code that reads /proc and /sys: each test begins with an empty one. */
#ifndef UNIT_ROOT_H
#define UNIT_ROOT_H

#include <stdio.h>
#include <sys/stat.h>
#include "unit.h"

static char unit_root[] = "/tmp/unit_root.XXXXXX";

static inline int unit_root_make(void **state)
{
    (void)state;
    strcpy(unit_root + sizeof unit_root - 7, "XXXXXX");
    return mkdtemp(unit_root) ? 0 : -1;
}

static inline int unit_root_remove(void **state)
{
    (void)state;
    char command[64];
    snprintf(command, sizeof command, "rm -rf %s", unit_root);
    return system(command);
}

/* Makes a file below the folder, and its folders. */
static inline void unit_root_put(const char *name, const char *text)
{
    char path[512];
    snprintf(path, sizeof path, "%s%s", unit_root, name);
    for (char *slash = path + strlen(unit_root); (slash = strchr(slash + 1, '/')); *slash = '/') {
        *slash = 0;
        mkdir(path, 0700);
    }
    FILE *file = fopen(path, "w");
    MUST(file);
    fputs(text, file);
    fclose(file);
}

#define UNIT_ROOT_TEST(test) cmocka_unit_test_setup_teardown(test, unit_root_make, unit_root_remove)

#endif
