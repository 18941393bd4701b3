/* SPDX-License-Identifier: MIT */
/* The machine, and the versions of what ran on it: the head of a report. Serial. */
#ifndef REPORT_HOST_H
#define REPORT_HOST_H

#include <stddef.h>
#include <stdint.h>

enum { REPORT_HOST_TEXT = 128, REPORT_HOST_SOCKETS = 16 };

/* "" and 0: not known. */
struct report_host {
    char name[REPORT_HOST_TEXT];
    char date[REPORT_HOST_TEXT];     /* now, as ISO 8601 in UTC */
    char system[REPORT_HOST_TEXT];   /* kernel, its version, architecture */
    char cpu[REPORT_HOST_TEXT];      /* model */
    int n_sockets;                   /* of the CPUs that we may use; at most REPORT_HOST_SOCKETS are told */
    int socket_cores[REPORT_HOST_SOCKETS];
    const char *code;                /* for which instructions our hot loops that ran are compiled */
    const char *widest;              /* vector instructions of the CPU; libraries may use them */
    const char *htslib;              /* the one that is loaded */
    const char *libdeflate;          /* the one we were compiled with; it does not tell at run time */
};

/* root: what to put before /proc and /sys; "" except in tests. */
struct report_host report_host_of(const char *root);

/* The cores of the sockets as "32 + 32", or "" if they are not known. Returns text. */
const char *report_host_cores(const struct report_host *host, char *text, size_t size);

#endif
