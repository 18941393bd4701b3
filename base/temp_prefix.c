/* SPDX-License-Identifier: MIT */
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include "base/out_file.h"
#include "base/temp_prefix.h"

static bool is_directory(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

const char *temp_prefix_ending(const char *place)
{
    return is_directory(place) ? "/samtools-sort" : "";
}

const char *temp_prefix_directory(const char *place, char dir[PATH_MAX])
{
    if (!is_directory(place))
        return out_file_directory(place, dir);
    snprintf(dir, PATH_MAX, "%s", place);
    return dir;
}
