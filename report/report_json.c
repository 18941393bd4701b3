/* SPDX-License-Identifier: MIT */
/* The manual documents the keys, so they must not change. */
#include "report/report.h"

/* Size of the UTF-8 character at p (RFC 3629); 0: it is invalid. */
static int utf8_length(const unsigned char *p)
{
    int n = p[0] < 0x80 ? 1 : p[0] < 0xc2 ? 0 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : p[0] < 0xf5 ? 4 : 0;
    for (int i = 1; i < n; i++)
        if ((p[i] & 0xc0) != 0x80)               /* the final NUL also ends here */
            return 0;
    bool too_long = (p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xf0 && p[1] < 0x90);
    bool surrogate = p[0] == 0xed && p[1] >= 0xa0, beyond = p[0] == 0xf4 && p[1] >= 0x90;
    return n > 1 && (too_long || surrogate || beyond) ? 0 : n;
}

void report_json_string(FILE *to, const char *text)
{
    const unsigned char *p = (const unsigned char *)text;
    fputc('"', to);
    while (*p) {
        int n = utf8_length(p);
        if (n == 0)
            fputs("\\ufffd", to);
        else if (*p < ' ')
            fprintf(to, "\\u%04x", *p);
        else if (*p == '"' || *p == '\\')
            fprintf(to, "\\%c", *p);
        else
            fwrite(p, 1, (size_t)n, to);
        p += n ? n : 1;
    }
    fputc('"', to);
}

static void put_text(FILE *to, const char *key, const char *text)
{
    fprintf(to, "  \"%s\": ", key);
    report_json_string(to, text);
    fputs(",\n", to);
}

static void put_count(FILE *to, const char *key, uint64_t n)
{
    if (n == REPORT_UNKNOWN)
        fprintf(to, "  \"%s\": null,\n", key);
    else
        fprintf(to, "  \"%s\": %llu,\n", key, (unsigned long long)n);
}

static void put_seconds(FILE *to, const char *key, double value)
{
    fprintf(to, "  \"%s\": %.6f,\n", key, value);
}

static void put_number(FILE *to, double value, bool is_known)
{
    if (is_known)
        fprintf(to, "%.6f", value);
    else
        fputs("null", to);
}

/* A number below 0 is unknown. */
static void put_measure(FILE *to, const char *key, double value)
{
    fprintf(to, "  \"%s\": ", key);
    put_number(to, value, value >= 0);
    fputs(",\n", to);
}

/* 0 stands for an unknown number. */
static uint64_t known_count(int n)
{
    return n > 0 ? (uint64_t)n : REPORT_UNKNOWN;
}

/* Text that is empty if unknown. */
static void put_known(FILE *to, const char *key, const char *text)
{
    if (*text)
        put_text(to, key, text);
    else
        fprintf(to, "  \"%s\": null,\n", key);
}

static void put_host(const struct report *r, FILE *to)
{
    const struct report_facts *f = &r->facts;
    const struct report_host *h = &f->host;
    put_known(to, "host", h->name);
    put_known(to, "date", h->date);
    put_known(to, "system", h->system);
    put_known(to, "cpu_model", h->cpu);
    fputs("  \"socket_cores\": ", to);
    for (int i = 0; i < h->n_sockets; i++)
        fprintf(to, "%s%d", i ? ", " : "[", h->socket_cores[i]);
    fputs(h->n_sockets ? "],\n" : "null,\n", to);
    put_known(to, "code_path", h->code);
    put_known(to, "cpu_vectors", h->widest);
    put_known(to, "htslib", h->htslib);
    put_known(to, "libdeflate", h->libdeflate);
    put_count(to, "machine_memory_bytes", f->machine_memory);
    put_count(to, "input_bytes", report_input_bytes(r));
    put_count(to, "output_bytes", report_output_bytes(r));
    put_text(to, "input_where", report_where(f->input_is, &f->in));
    put_text(to, "output_where", report_where(f->output_is, &f->out));
    put_text(to, "temp_where", report_where(REPORT_REGULAR, &f->temp));
}

static void put_facts(const struct report *r, FILE *to)
{
    const struct report_facts *f = &r->facts;
    put_text(to, "version", f->version);
    put_text(to, "command", f->command_line);
    put_text(to, "input", f->input);
    put_text(to, "output", f->output);
    put_host(r, to);
    put_count(to, "threads", (uint64_t)r->n_threads);
    put_count(to, "idle_threads", (uint64_t)r->idle_threads);
    put_count(to, "cpus", known_count(f->cpus));
    put_count(to, "cores", known_count(f->topology.cores));
    put_count(to, "sockets", known_count(f->topology.sockets));
    put_count(to, "numa_nodes", known_count(f->topology.nodes));
    fprintf(to, "  \"bound\": %s,\n", f->bound ? "true" : "false");
    put_seconds(to, "wall_s", r->wall);
    put_seconds(to, "user_s", f->user);
    put_seconds(to, "system_s", f->system);
    put_measure(to, "run_queue_s", f->run_queue);
    put_count(to, "major_faults", f->major_faults);
    put_seconds(to, "cpu_share", report_cpu_share(r));
    put_seconds(to, "busy_share", report_busy_share(r));
    put_seconds(to, "io_share", r->io);
    put_count(to, "memory_bytes", f->memory);
    put_count(to, "peak_rss_bytes", f->peak_rss);
    put_count(to, "mean_rss_bytes", r->mean_rss);
    put_count(to, "huge_page_bytes", f->huge);
    put_count(to, "records", f->records);
    put_count(to, "bytes", r->bytes);
    if (f->copied.asked) {
        put_count(to, "copied_blocks", f->copied.blocks);
        put_count(to, "copied_bytes", f->copied.bytes);
        put_known(to, "copied_none_because", f->copied.why ? f->copied.why : "");
    }
    if (f->counted.of) {
        put_text(to, "counted_by", f->counted.of);
        put_count(to, "counted_reads", f->counted.reads);
        put_count(to, "counted_mapped", f->counted.mapped);
        put_count(to, "counted_duplicates", f->counted.duplicates);
        put_measure(to, "mean_insert_size", f->counted.has_pairs ? f->counted.insert_size : -1);
        put_measure(to, "error_rate", f->counted.has_pairs ? f->counted.error_rate : -1);
    }
}

/* Writes the stages that took time as "name": seconds, between braces. */
static void put_times(FILE *to, const double seconds[N_STAGES])
{
    const char *sep = "{";
    for (enum stage stage = 0; stage < N_STAGES; stage++)
        if (seconds[stage] > 0) {
            fprintf(to, "%s\"%s\": %.6f", sep, clocks_stage(stage)->name, seconds[stage]);
            sep = ", ";
        }
    fputs(*sep == '{' ? "{}" : "}", to);
}

static void put_phases(const struct clocks *clocks, FILE *to)
{
    const char *sep = "";
    fputs("  \"phases\": {", to);
    for (enum phase phase = 0; phase < N_PHASES; phase++) {
        uint64_t start, end;
        if (!clocks_phase_times(clocks, phase, &start, &end))
            continue;
        fprintf(to, "%s\"%s\": {\"start_s\": %.6f, \"s\": %.6f}", sep, clocks_phase_name(phase), (double)start / 1e9,
                (double)(end - start) / 1e9);
        sep = ", ";
    }
    fputs("},\n", to);
}

/* Lists of the same length: times, and the resources used until then. */
static void put_curve(const struct clocks *clocks, FILE *to)
{
    static const char *const keys[] = {"s", "rss_bytes", "cpu_s", "read_bytes", "written_bytes"};
    const struct curve_point *points;
    size_t n = clocks_curve(clocks, &points);
    fputs("  \"curve\": {", to);
    for (int key = 0; key < 5; key++) {
        fprintf(to, "%s\"%s\": [", key ? ", " : "", keys[key]);
        for (size_t i = 0; i < n; i++) {
            const struct curve_point *p = &points[i];
            const uint64_t number[] = {p->ns, p->rss, p->cpu_ns, p->read, p->written};
            fputs(i ? ", " : "", to);
            if (key == 0 || key == 2)
                fprintf(to, "%.4f", (double)number[key] / 1e9);
            else if (key == 1 && p->rss == 0)
                fputs("null", to);
            else
                fprintf(to, "%llu", (unsigned long long)number[key]);
        }
        fputs("]", to);
    }
    fputs("},\n", to);
}

static void put_serial(const struct report *r, FILE *to)
{
    fprintf(to, "  \"serial\": {\"s\": %.6f, \"s_per_gb\": ", r->serial);
    put_number(to, report_serial_per_gb(r), report_serial_per_gb(r) >= 0);
    fprintf(to, ", \"slot\": %d, \"stages\": ", r->critical);
    put_times(to, r->serial_stages);
    fprintf(to, "},\n  \"in_turn_s\": %.6f,\n", r->in_turn);
}

static void put_stages(const struct report *r, FILE *to)
{
    static const char *const kinds[] = {"rest", "parallel", "serial", "in_turn"};
    fputs("  \"stages\": {\n", to);
    for (enum stage stage = 0; stage < N_STAGES; stage++) {
        const struct report_stage *s = &r->stages[stage];
        fprintf(to, "    \"%s\": {\"kind\": \"%s\", \"s\": %.6f, \"blocked_s\": %.6f, \"critical_s\": %.6f, "
                "\"bytes\": %llu, \"events\": %llu, \"records\": %llu, \"any_thread_s\": ", clocks_stage(stage)->name,
                kinds[clocks_stage(stage)->kind], s->busy, s->blocked, s->critical, (unsigned long long)s->bytes,
                (unsigned long long)s->events, (unsigned long long)s->records);
        put_number(to, s->any_thread, s->any_thread > 0);
        fputs(", \"mb_per_s_all_threads\": ", to);
        put_number(to, report_speed(s), s->any_thread > 0 && s->bytes > 0);
        fputs(stage + 1 < N_STAGES ? "},\n" : "}\n", to);
    }
    fputs("  },\n", to);
}

static void put_slot(const struct clocks *clocks, int slot, FILE *to)
{
    char name[CLOCKS_NAME_SIZE];
    double seconds[N_STAGES];
    for (enum stage stage = 0; stage < N_STAGES; stage++)
        seconds[stage] = (double)clocks_of(clocks, slot, stage).ns / 1e9;
    fputs("    {\"name\": ", to);
    report_json_string(to, clocks_name(clocks, slot, name));
    fputs(", \"stages\": ", to);
    put_times(to, seconds);
    fprintf(to, "}%s\n", slot + 1 < clocks_slots(clocks) ? "," : "");
}

/* Prints the inputs of a merge. */
static void put_inputs(const struct report_inputs *inputs, FILE *to)
{
    if (inputs->n == 0)
        return;
    fputs("  \"inputs\": [\n", to);
    for (size_t i = 0; i < inputs->n; i++) {
        const struct report_input *in = &inputs->each[i];
        fputs("    {\"name\": ", to);
        report_json_string(to, in->name);
        fputs(", \"bytes\": ", to);
        fprintf(to, in->bytes == REPORT_UNKNOWN ? "null" : "%llu", (unsigned long long)in->bytes);
        fprintf(to, ", \"records\": %llu, \"waits\": %llu, \"waited_s\": %.6f}%s\n", (unsigned long long)in->records,
                (unsigned long long)in->waits, in->waited, i + 1 < inputs->n ? "," : "");
    }
    fputs("  ],\n", to);
}

static void put_verdict(const struct report *r, FILE *to)
{
    fprintf(to, "  \"verdict\": {\"bound_by\": \"%s\", \"why\": ", report_bound_key(r->bound));
    report_json_string(to, r->why);
    fputs("},\n", to);
}

static void put_advice(const struct report *r, FILE *to)
{
    fputs("  \"advice\": [", to);
    for (int i = 0; i < REPORT_ADVICE_MAX && r->advice[i][0]; i++) {
        fputs(i ? ", " : "", to);
        report_json_string(to, r->advice[i]);
    }
    fputs("]\n", to);
}

void report_json(const struct report *r, const struct clocks *clocks, FILE *to)
{
    fputs("{\n", to);
    put_facts(r, to);
    put_phases(clocks, to);
    put_curve(clocks, to);
    put_serial(r, to);
    put_stages(r, to);
    fputs("  \"slots\": [\n", to);
    for (int i = 0; i < clocks_slots(clocks); i++)
        put_slot(clocks, i, to);
    fputs("  ],\n", to);
    put_inputs(&r->facts.merged, to);
    put_verdict(r, to);
    put_advice(r, to);
    fputs("}\n", to);
}
