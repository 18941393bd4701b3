/* SPDX-License-Identifier: MIT */
#include "base/memory_watch.h"
#include "base/message.h"

/* Number of looks until all memory is in use. The first look comes when enough was read to predict the rest. */
enum { LOOKS = 64 };

/* Warns, only once. Returns true. */
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

/* If the number of bytes to come is unknown, the warning comes while a quarter of the memory is left. */
bool memory_watch_look(struct memory_watch *w, uint64_t taken, double expected)
{
    w->next = taken + w->there / LOOKS + 1;
    double needed = expected > (double)taken ? expected : (double)taken;
    if (needed > (double)w->most)
        needed = (double)w->most;
    bool unforeseen = expected <= 0 && taken >= w->there / 4 * 3;
    return needed > (double)w->there || unforeseen ? warn_once(w, (uint64_t)needed) : false;
}
