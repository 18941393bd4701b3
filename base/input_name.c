/* SPDX-License-Identifier: MIT */
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>
#include <htslib/hfile.h>
#include <htslib/hts.h>
#include "base/ascii.h"
#include "base/input_name.h"

static const char *without(const char *name, const char *prefix)
{
    size_t n = strlen(prefix);
    return strncmp(name, prefix, n) == 0 ? name + n : NULL;
}

/* Like htslib, accepts the prefix only in lower case and before an absolute path. */
const char *input_name_local(const char *name)
{
    const char *path = without(name, "file://localhost");
    if (!path)
        path = without(name, "file://");
    return path && *path == '/' ? path : name;
}

char *input_name_file(const char *name)
{
    for (const char *rest; (rest = without(name, "preload:"));)
        name = rest;
    name = input_name_local(name);
    size_t n;
    input_name_index(name, &n);
    return strndup(name, n);
}

const char *input_name_index(const char *name, size_t *n)
{
    const char *mark = strstr(name, HTS_IDX_DELIM);
    if (n)
        *n = mark ? (size_t)(mark - name) : strlen(name);
    return mark ? mark + strlen(HTS_IDX_DELIM) : NULL;
}

const char *input_name_base(const char *name)
{
    const char *slash = strrchr(name, '/');
    return slash ? slash + 1 : name;
}

bool input_name_is_url(const char *name)
{
    static const char *const schemes[] = {"file:", "data:", "mem:", "preload:"};
    const char *p = name;
    while (ascii_is_alnum((unsigned char)*p) || *p == '+' || *p == '-' || *p == '.')
        p++;
    if (p > name && strncmp(p, "://", 3) == 0)
        return true;
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++)
        if (strncasecmp(name, schemes[i], strlen(schemes[i])) == 0)
            return true;
    return hisremote(name);
}

bool input_name_is_file(const char *name)
{
    struct stat st;
    return (strcmp(name, "-") == 0 ? fstat(STDIN_FILENO, &st) : stat(name, &st)) == 0 && S_ISREG(st.st_mode);
}

bool input_name_is_stream(const char *name)
{
    struct stat st;
    return strcmp(name, "-") == 0 || input_name_is_url(name) || (stat(name, &st) == 0 && !S_ISREG(st.st_mode));
}

const char *input_name_shown(const char *name)
{
    return strcmp(name, "-") == 0 ? "standard input" : name;
}
