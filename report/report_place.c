/* SPDX-License-Identifier: MIT */
/* Format: proc(5), /proc/pid/mountinfo. The number that statfs() gives would need a table of names, and some file
 * systems share one. */
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#ifdef __APPLE__
#include <sys/mount.h>
#include <sys/param.h>
#endif
#include "report/report_place.h"

/* Characters like space are written as \040. Decodes them in place. */
static void unescape(char *text)
{
    char *to = text;
    unsigned c;
    for (; *text; text++, to++)
        if (*text == '\\' && sscanf(text + 1, "%3o", &c) == 1 && strspn(text + 1, "01234567") >= 3)
            *to = (char)c, text += 3;
        else
            *to = *text;
    *to = 0;
}

/* Length of the path that the mount point covers; 0: the path is not below it. */
static size_t covers(const char *point, const char *path)
{
    size_t n = strlen(point);
    if (n > 0 && point[n - 1] == '/')
        n--;                                     /* "/" covers all */
    return strncmp(point, path, n) == 0 && (path[n] == '/' || !path[n]) ? n + 1 : 0;
}

/* Finds the type of the path's file system: that of the longest mount point; if there are several at one place, of the
 * last. */
static void find_file_system(const char *root, const char *path, char name[REPORT_PLACE_NAME])
{
    char list[PATH_MAX], *line = NULL;
    size_t size = 0, longest = 0;
    snprintf(list, sizeof list, "%s/proc/self/mountinfo", root);
    FILE *file = fopen(list, "r");
    while (file && getline(&line, &size, file) >= 0) {
        char point[PATH_MAX], type[REPORT_PLACE_NAME];
        const char *dash = strstr(line, " - ");
        if (sscanf(line, "%*s %*s %*s %*s %4095s", point) != 1 || !dash || sscanf(dash + 3, "%31s", type) != 1)
            continue;
        unescape(point);
        size_t n = covers(point, path);
        if (n > 0 && n >= longest) {
            longest = n;
            strcpy(name, type);
        }
    }
    free(line);
    if (file)
        fclose(file);
#ifdef __APPLE__
    struct statfs fs;
    if (!*name && statfs(path, &fs) == 0)
        snprintf(name, REPORT_PLACE_NAME, "%s", fs.f_fstypename);
#endif
}

struct report_place report_place_of(const char *root, const char *path, int dash)
{
    struct report_place place = {.bytes = UINT64_MAX};
    struct stat st;
    char real[PATH_MAX], open_file[32];
    snprintf(open_file, sizeof open_file, "/proc/self/fd/%d", dash);
    bool is_dash = strcmp(path, "-") == 0;
    if ((is_dash ? fstat(dash, &st) : stat(path, &st)) < 0)
        return place;
    if (S_ISREG(st.st_mode))
        place.bytes = (uint64_t)st.st_size;
    if (S_ISCHR(st.st_mode) || S_ISBLK(st.st_mode))
        strcpy(place.file_system, "device");
    if ((S_ISREG(st.st_mode) || S_ISDIR(st.st_mode)) && realpath(is_dash ? open_file : path, real))
        find_file_system(root, real, place.file_system);
    return place;
}
