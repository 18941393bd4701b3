/* SPDX-License-Identifier: MIT */
/* The machine, and the versions of the software: the head of a report. Serial. */
#ifndef REPORT_HOST_H
#define REPORT_HOST_H

#include <stddef.h>
#include <stdint.h>

enum { REPORT_HOST_TEXT = 128, REPORT_HOST_SOCKETS = 16 };

/* "" and 0: unknown. */
struct report_host {
    char name[REPORT_HOST_TEXT];
    char date[REPORT_HOST_TEXT];     /* now, as ISO 8601 in UTC */
    char system[REPORT_HOST_TEXT];   /* kernel, its version, architecture */
    char cpu[REPORT_HOST_TEXT];      /* model */
    int n_sockets;  /* number of sockets of the CPUs that we may use; at most REPORT_HOST_SOCKETS are listed */
    int socket_cores[REPORT_HOST_SOCKETS];
    const char *code;                /* the instructions that our hot loops were compiled for */
    const char *widest;              /* vector instructions of the CPU; libraries may use them */
    const char *htslib;              /* the version that is loaded */
    const char *libdeflate;          /* the version we were compiled with; it has no version at run time */
};

/* root: prefix of /proc and /sys; "" except in tests. */
struct report_host report_host_of(const char *root);

/* Returns a text of the report, or "unknown" if it is empty. */
const char *report_host_known(const char *text);

/* The cores of the sockets as "32 + 32", or "" if unknown. Returns text. */
const char *report_host_cores(const struct report_host *host, char *text, size_t size);

#endif
