/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/message.h"
#include "engine/engine_opts.h"
#include "cli/memory_size.h"
#include "cli/sort_settings.h"

/* Scripts clear a variable by setting it to nothing. */
static const char *setting(const char *name)
{
    const char *text = getenv(name);
    return text && *text ? text : NULL;
}

/* The reason why no file can be made in the directory; 0: one can. */
static int fault_of(const char *directory)
{
    struct stat st;
    if (stat(directory, &st) < 0)
        return errno;
    if (!S_ISDIR(st.st_mode))
        return ENOTDIR;
    return access(directory, W_OK | X_OK) < 0 ? errno : 0;
}

int sort_settings_memory(uint64_t *total)
{
    static const char name[] = "SAMTOOLS_OMP_TOTAL_MEMORY";
    const char *text = setting(name);
    return text ? memory_size_total(name, text, total) : 0;
}

static size_t count_colons(const char *text)
{
    size_t n = 0;
    for (; *text; text++)
        n += *text == ':';
    return n;
}

int sort_settings_temp(struct engine_opts *o)
{
    static const char name[] = "SAMTOOLS_OMP_TMPDIR";
    const char *text = setting(name);
    if (!text)
        return 0;
    const char **places = realloc(o->temp_prefixes, (count_colons(text) + 1) * sizeof *places);
    if (places)
        o->temp_prefixes = places;
    if (!places || !(o->default_prefix = strdup(text)))
        return message_error("out of memory");
    for (char *rest = o->default_prefix, *place; (place = strsep(&rest, ":"));) {
        int fault = *place ? fault_of(place) : ENOENT;
        if (fault)
            return message_mistake("%s names '%s' as a directory for temporary files: %s. Several have ':' between "
                                   "them", name, place, strerror(fault));
        o->temp_prefixes[o->n_temp_prefixes++] = place;
    }
    return 0;
}

void sort_settings_report(struct report_request *report)
{
    static const char name[] = "SAMTOOLS_OMP_REPORT";
    const char *folder = setting(name);
    int fault = folder ? fault_of(folder) : 0;
    if (fault)
        message_warning("%s=%s: %s. There will be no report", name, folder, strerror(fault));
    else if (folder) {
        report->format = REPORT_FOLDER;
        report->folder = folder;
    }
}
