/* SPDX-License-Identifier: MIT */
/* Format: "Trace Event Format", JSON Object Format with complete ("X") and metadata ("M") events; times in
 * microseconds. */
#include "base/message.h"
#include "report/report.h"

enum { PID = 1 };

/* Tracks are numbered in the order of their display. */
static void name_track(FILE *to, int track, const char *name)
{
    fprintf(to, ",\n{\"ph\":\"M\",\"pid\":%d,\"tid\":%d,\"name\":\"thread_name\",\"args\":{\"name\":", PID, track);
    report_json_string(to, name);
    fprintf(to, "}},\n{\"ph\":\"M\",\"pid\":%d,\"tid\":%d,\"name\":\"thread_sort_index\",\"args\":"
            "{\"sort_index\":%d}}", PID, track, track);
}

static void write_span(FILE *to, int track, const char *name, const char *category, uint64_t start, uint64_t end)
{
    fprintf(to, ",\n{\"ph\":\"X\",\"pid\":%d,\"tid\":%d,\"name\":\"%s\",\"cat\":\"%s\",\"ts\":%.3f,\"dur\":%.3f}", PID,
            track, name, category, (double)start / 1e3, (double)(end - start) / 1e3);
}

static void write_phases(const struct clocks *clocks, FILE *to)
{
    name_track(to, 0, "phases");
    for (enum phase phase = 0; phase < N_PHASES; phase++) {
        uint64_t start, end;
        if (clocks_phase_times(clocks, phase, &start, &end))
            write_span(to, 0, clocks_phase_name(phase), "phase", start, end);
    }
}

static void write_slot(const struct clocks *clocks, int slot, FILE *to)
{
    static const char *const categories[] = {"waiting", "parallel", "serial", "in turn"};
    char name[CLOCKS_NAME_SIZE];
    struct clocks_span span;
    name_track(to, 1 + slot, clocks_name(clocks, slot, name));
    for (size_t at = 0; clocks_next_span(clocks, slot, &at, &span);) {
        const struct stage_info *stage = clocks_stage(span.stage);
        if (span.stage != STAGE_IDLE)            /* idle time is left blank */
            write_span(to, 1 + slot, stage->name, categories[stage->kind], span.start, span.end);
    }
}

void report_trace(const struct clocks *clocks, FILE *to)
{
    fprintf(to, "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n"
            "{\"ph\":\"M\",\"pid\":%d,\"name\":\"process_name\",\"args\":{\"name\":\"samtools %s\"}}", PID,
            message_command());
    write_phases(clocks, to);
    for (int i = 0; i < clocks_slots(clocks); i++)
        write_slot(clocks, i, to);
    fputs("\n]}\n", to);
}
