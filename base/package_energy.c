/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "base/package_energy.h"

/* A counter begins anew after 0.26 MJ on many machines. Where a package with this many watts could have come round, the
 * difference says nothing. */
static const double MOST_WATTS = 500;

enum { LINE = 64, PATH = 4096 };

/* The first line of a file of a domain. -1: failed, with errno. */
static int read_line(const char *root, int domain, const char *name, char line[LINE])
{
    char path[PATH];
    snprintf(path, sizeof path, "%s/sys/class/powercap/intel-rapl:%d/%s", root, domain, name);
    FILE *file = fopen(path, "r");
    if (!file)
        return -1;
    int failed = !fgets(line, LINE, file);
    fclose(file);
    if (failed)
        errno = EIO;
    return failed ? -1 : 0;
}

static int read_number(const char *root, int domain, const char *name, uint64_t *number)
{
    char line[LINE];
    unsigned long long n;
    if (read_line(root, domain, name, line) < 0)
        return -1;
    if (sscanf(line, "%llu", &n) != 1) {
        errno = EIO;
        return -1;
    }
    *number = n;
    return 0;
}

/* Other domains, such as "psys", hold the packages once more. */
void package_energy_begin(struct package_energy *e, const char *root)
{
    char name[LINE];
    memset(e, 0, sizeof *e);
    for (int domain = 0; domain < PACKAGES_MOST && read_line(root, domain, "name", name) == 0; domain++) {
        if (strncmp(name, "package-", 8) != 0)
            continue;
        if (read_number(root, domain, "energy_uj", &e->begin[e->n]) < 0
            || read_number(root, domain, "max_energy_range_uj", &e->range[e->n]) < 0) {
            e->error = errno;
            return;
        }
        e->domains[e->n++] = domain;
    }
    if (e->n == 0)
        e->error = ENOENT;
}

double package_energy_joules(struct package_energy *e, const char *root, double seconds)
{
    double sum = 0;
    for (int i = 0; i < e->n && !e->error; i++) {
        uint64_t end;
        if (read_number(root, e->domains[i], "energy_uj", &end) < 0)
            e->error = errno;
        else if (seconds * MOST_WATTS * 1e6 > (double)e->range[i])
            e->error = EOVERFLOW;
        else
            sum += 1e-6 * (double)(end >= e->begin[i] ? end - e->begin[i] : e->range[i] - e->begin[i] + end);
    }
    return e->error ? -1 : sum;
}

const char *package_energy_why(const struct package_energy *e)
{
    switch (e->error) {
    case EACCES: case EPERM: return "only root may read /sys/class/powercap/*/energy_uj";
    case ENOENT: return "this machine, often a virtual one, does not tell";
    case EOVERFLOW: return "it took so long that the counter may have begun anew";
    default: return "the counter cannot be read";
    }
}
