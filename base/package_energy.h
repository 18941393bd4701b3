/* SPDX-License-Identifier: MIT */
/* The energy that the CPU packages take, all that runs on them included: RAPL, as Linux shows it in
 * /sys/class/powercap/intel-rapl:N (Documentation/power/powercap; AMD's packages have the same files). */
#ifndef PACKAGE_ENERGY_H
#define PACKAGE_ENERGY_H

#include <stdint.h>

enum { PACKAGES_MOST = 16 };

struct package_energy {
    int n;                       /* packages found */
    int domains[PACKAGES_MOST];  /* N of each */
    uint64_t begin[PACKAGES_MOST], range[PACKAGES_MOST];   /* microjoules */
    int error;                   /* an errno; 0: none */
};

/* root: what to put before /sys; "" except in tests. */
void package_energy_begin(struct package_energy *energy, const char *root);

/* Joules of all packages since the beginning, which was so many seconds ago. Below 0: not known. */
double package_energy_joules(struct package_energy *energy, const char *root, double seconds);

/* Why it is not known: a constant. */
const char *package_energy_why(const struct package_energy *energy);

#endif
