/* SPDX-License-Identifier: MIT */
#include "base/memory_watch.h"
#include "base/message.h"

/* How often it looks until all memory is taken. The first look comes when enough was read to foresee the rest. */
enum { LOOKS = 64 };

/* Warns, once. Returns true. */
static bool warn_once(struct memory_watch *w, uint64_t needed)
{
    w->next = UINT64_MAX;
    message_warning("the records will take %llu MB of memory or more, as -m x -@ allow, but the machine or its "
                    "cgroup has %llu MB. Use a smaller -m, or --total-memory 80%%", (unsigned long long)(needed >> 20),
                    (unsigned long long)(w->there >> 20));
    return true;
}

void memory_watch_start(struct memory_watch *w, uint64_t there, uint64_t most, uint64_t surely)
{
    *w = (struct memory_watch){there, most, there / LOOKS};
    if (most <= there)
        w->next = UINT64_MAX;
    else if (surely > there)
        warn_once(w, surely < most ? surely : most);
}

/* If nobody can foresee how much will come, it warns while a quarter is left. */
bool memory_watch_look(struct memory_watch *w, uint64_t taken, double expected)
{
    w->next = taken + w->there / LOOKS + 1;
    double needed = expected > (double)taken ? expected : (double)taken;
    if (needed > (double)w->most)
        needed = (double)w->most;
    bool unforeseen = expected <= 0 && taken >= w->there / 4 * 3;
    return needed > (double)w->there || unforeseen ? warn_once(w, (uint64_t)needed) : false;
}
