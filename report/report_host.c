/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>
#ifdef __APPLE__
#include <sys/sysctl.h>
#endif
#include <htslib/hts.h>
#include <libdeflate.h>
#include "base/topology.h"
#include "codec/newer.h"
#include "report/report_host.h"

/* Finds the model of the CPU. Arm's cpuinfo has no such line, so the model is unknown there. */
static void find_cpu(const char *root, char model[REPORT_HOST_TEXT])
{
    char path[4096], line[256];
    snprintf(path, sizeof path, "%s/proc/cpuinfo", root);
    FILE *file = fopen(path, "r");
    while (file && !*model && fgets(line, sizeof line, file)) {
        char *value = strncmp(line, "model name", 10) == 0 ? strchr(line, ':') : NULL;
        if (value)
            snprintf(model, REPORT_HOST_TEXT, "%.*s", (int)strcspn(value + 1 + strspn(value + 1, " "), "\n"),
                     value + 1 + strspn(value + 1, " "));
    }
    if (file)
        fclose(file);
#ifdef __APPLE__
    size_t size = REPORT_HOST_TEXT;
    if (!*model && sysctlbyname("machdep.cpu.brand_string", model, &size, NULL, 0) < 0)
        *model = 0;
#endif
}

static const char *code_that_ran(void)
{
    return cpu_is_newer() ? "AVX2 and BMI2" : "any CPU";
}

static const char *widest_vectors(void)
{
#ifdef __x86_64__
    return __builtin_cpu_supports("avx512f") ? "AVX-512" : __builtin_cpu_supports("avx2") ? "AVX2"
         : __builtin_cpu_supports("avx") ? "AVX" : "SSE2";
#elif defined(__aarch64__)
    return "NEON";
#else
    return "";
#endif
}

struct report_host report_host_of(const char *root)
{
    struct report_host h = {.code = code_that_ran(), .widest = widest_vectors(), .htslib = hts_version(),
                            .libdeflate = LIBDEFLATE_VERSION_STRING};
    struct affinity allowed = affinity_allowed();
    struct utsname u;
    struct tm t;
    time_t now = time(NULL);
    if (gethostname(h.name, sizeof h.name - 1) < 0)
        h.name[0] = 0;
    if (gmtime_r(&now, &t))
        strftime(h.date, sizeof h.date, "%Y-%m-%dT%H:%M:%SZ", &t);
    if (uname(&u) >= 0)
        snprintf(h.system, sizeof h.system, "%.24s %.64s %.24s", u.sysname, u.release, u.machine);
    find_cpu(root, h.cpu);
    h.n_sockets = topology_socket_cores(root, &allowed, h.socket_cores, REPORT_HOST_SOCKETS);
    return h;
}

const char *report_host_known(const char *text)
{
    return *text ? text : "unknown";
}

const char *report_host_cores(const struct report_host *h, char *text, size_t size)
{
    size_t at = 0;
    *text = 0;
    for (int i = 0; i < h->n_sockets && at < size; i++)
        at += (size_t)snprintf(text + at, size - at, "%s%d", i ? " + " : "", h->socket_cores[i]);
    return text;
}
