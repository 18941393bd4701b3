/* SPDX-License-Identifier: MIT */
#include "unit.h"
#include "report/report.h"

/* ---- advice, from made-up numbers ---- */

/* A sort without any advice. */
static struct report quiet(void)
{
    struct report r = {
        .facts = {.version = "1", .command_line = "samtools sort", .input = "in.bam", .output = "out.bam", .cpus = 8,
                  .topology = {8, 1, 1}, .user = 60, .system = 4, .run_queue = -1, .memory = 1 << 30,
                  .host = {.code = "any CPU", .widest = "", .htslib = "1.16", .libdeflate = "1.14"},
                  .machine_memory = (uint64_t)1 << 40, .peak_rss = 1 << 30, .huge = 1 << 29, .records = 30000000},
        .n_threads = 8, .wall = 10, .busy = 0.8, .bytes = 10000000000,
    };
    r.stages[STAGE_INFLATE] = (struct report_stage){.busy = 30, .bytes = 10000000000, .events = 160000};
    r.stages[STAGE_DEFLATE] = (struct report_stage){.busy = 34, .bytes = 10000000000, .events = 160000};
    return r;
}

static struct report with_threads(int n, double busy)
{
    struct report r = quiet();
    r.n_threads = r.facts.cpus = n;
    r.busy = busy;
    return r;
}

/* Checks all advice. */
static void check_advice(struct report r, const char *first, const char *second)
{
    report_advise(&r);
    assert_string_equal(r.advice[0], first);
    assert_string_equal(r.advice[1], second);
}

static void test_nothing_is_said_where_all_is_well(void **state)
{
    (void)state;
    check_advice(quiet(), "", "");
}

static void test_chance_in_small_inputs_is_not_explained(void **state)
{
    (void)state;
    struct report r = quiet();
    r.wall = 0.05;
    r.facts.cpus = 1;
    r.busy = 0;
    check_advice(r, "", "");
}

static void test_threads_that_share_cpus_are_not_called_idle(void **state)
{
    (void)state;
    struct report r = quiet();
    r.n_threads = 32;
    r.busy = 0.25;
    r.idle_threads = 20;
    r.serial = 9;
    check_advice(r, "Use -@ 8: 32 threads share 8 CPUs.", "");
    r.facts.cpus = 1;
    check_advice(r, "Use -@ 1: 32 threads share 1 CPU.", "");
}

static void test_crowded_machine_is_not_a_slow_disk(void **state)
{
    (void)state;
    struct report r = quiet();
    r.facts.user = 20;
    r.stages[STAGE_READ] = (struct report_stage){.busy = 8, .blocked = 8, .bytes = 1000000};
    check_advice(r, "Stop other programs on these CPUs: 64.0 s of work got only 24.0 s of CPU time.", "");
    r.facts.by_htslib = true;                    /* htslib's threads have CPU time that belongs to no stage */
    r.stages[STAGE_READ].blocked = 0;
    check_advice(r, "", "");
}

static struct report slow_files(enum stage stage, enum report_file input, enum report_file output)
{
    struct report r = quiet();
    r.facts.input_is = input;
    r.facts.output_is = output;
    r.stages[STAGE_READ] = (struct report_stage){.busy = 0.2, .blocked = 0.08, .bytes = 568000000};
    r.stages[STAGE_WRITE] = (struct report_stage){.busy = 0.1, .blocked = 0.08, .bytes = 568000000};
    r.stages[stage] = (struct report_stage){.busy = 8, .blocked = 7.84, .any_thread = 2, .bytes = 568000000};
    return r;
}

static void test_where_files_are_slow_is_told(void **state)
{
    (void)state;
    static const struct { enum stage stage; enum report_file input, output; const char *advice; } cases[] = {
        {STAGE_READ, REPORT_REGULAR, REPORT_REGULAR,
         "Copy the input to a local or faster disk: in.bam was read at 284 MB/s."},
        {STAGE_READ, REPORT_PIPE, REPORT_REGULAR,
         "Give more CPUs to the program that writes to the pipe: in.bam was read at 284 MB/s."},
        {STAGE_READ, REPORT_REMOTE, REPORT_REGULAR,
         "Download the input first: in.bam was read at 284 MB/s."},
        {STAGE_WRITE, REPORT_REGULAR, REPORT_REGULAR, "Write to a local or faster disk, or raise the "
         "compression level: out.bam was written at 284 MB/s."},
        {STAGE_WRITE, REPORT_REGULAR, REPORT_PIPE,
         "Give more CPUs to the program that reads from the pipe: out.bam was written at 284 MB/s."},
        {STAGE_SPILL_READ, REPORT_REGULAR, REPORT_REGULAR,
         "Name a faster disk with -T: temporary data moved at 284 MB/s."},
    };
    for (size_t i = 0; i < N_OF(cases); i++)
        check_advice(slow_files(cases[i].stage, cases[i].input, cases[i].output), cases[i].advice, "");
}

static void test_little_waiting_is_not_worth_a_word(void **state)
{
    (void)state;
    struct report r = quiet();
    r.stages[STAGE_READ] = (struct report_stage){.busy = 2, .blocked = 1.4, .bytes = 1000000000};
    check_advice(r, "", "");
}

static void test_memory_that_would_do_is_named_if_there_is_so_much(void **state)
{
    (void)state;
    struct report r = quiet();
    r.stages[STAGE_SPILL_WRITE] = (struct report_stage){.busy = 1, .bytes = 5000000000, .events = 2500};
    check_advice(r, "Use --total-memory 11372M to keep everything in memory: 5.0 GB were spilled to disk.", "");
    r.facts.machine_memory = 10000000000;
    check_advice(r, "", "");
}

static void test_thread_that_bounds_is_told_with_what_it_does(void **state)
{
    (void)state;
    struct report r = with_threads(32, 0.2);
    r.serial = 8;
    r.serial_stages[STAGE_FILL] = 6;
    r.serial_stages[STAGE_DEAL] = 1.9;
    r.serial_stages[STAGE_READ] = 0.1;
    r.stages[STAGE_FILL].busy = 8;
    check_advice(r, "More than 8 threads do not help: one thread must do fill 6.0 s, deal 1.9 s.",
                 "Use -@ 8: on average 6.4 of 32 threads had work.");
}

static void test_idle_threads_are_counted(void **state)
{
    (void)state;
    struct report r = with_threads(32, 0.2);
    r.idle_threads = 24;
    check_advice(r, "Use -@ 8: 24 of 32 threads were idle.", "");
    check_advice(with_threads(2, 0.8), "", "");  /* both are needed */
    check_advice(with_threads(1, 0.1), "", "");  /* fewer are impossible */
}

static void test_cpus_that_stand_idle_are_offered_to_busy_threads(void **state)
{
    (void)state;
    struct report r = quiet();
    r.facts.cpus = r.facts.topology.cores = 64;
    check_advice(r, "", "");
    r.busy = 0.97;
    check_advice(r, "Use -@ 64: there are 64 CPUs.", "");
    r.facts.topology.cores = 0;                  /* not known */
    check_advice(r, "Use -@ 64: there are 64 CPUs.", "");
    r.facts.topology.cores = 96;                 /* a quota leaves 64 of them */
    check_advice(r, "Use -@ 64: there are 64 CPUs.", "");
}

static void test_cores_are_offered_before_their_second_threads(void **state)
{
    (void)state;
    struct report r = with_threads(16, 0.97);
    r.facts.bound = true;
    r.facts.cpus = 64;
    r.facts.topology = (struct topology){32, 1, 1};
    check_advice(r, "Use -@ 32: there are 32 cores (64 CPUs).", "");
    r.n_threads = 32;
    check_advice(r, "Use -@ 64 for some 20 to 30 % more speed: each core runs more than one thread.", "");
    r.n_threads = 64;
    check_advice(r, "", "");
}

static void test_places_matter_only_where_threads_may_move_far_or_share_a_core(void **state)
{
    (void)state;
    struct report r = quiet();
    r.facts.topology = (struct topology){8, 2, 4};
    check_advice(r, "Set OMP_PLACES=cores OMP_PROC_BIND=spread, or use numactl --interleave=all: threads may move between 4 "
                 "NUMA nodes.", "");
    r.facts.topology = (struct topology){8, 2, 0};
    check_advice(r, "Set OMP_PLACES=cores OMP_PROC_BIND=spread, or use numactl --interleave=all: threads may move between 2 "
                 "sockets.", "");
    r.facts.bound = true;
    check_advice(r, "", "");
    r.facts.bound = false;
    r.facts.topology = (struct topology){8, 1, 1};
    r.facts.cpus = 16;
    check_advice(r, "Set OMP_PLACES=cores OMP_PROC_BIND=spread: two threads may share a core while another is free.",
                 "");
    r.n_threads = 16;                            /* on all of them */
    check_advice(r, "", "");
    r.n_threads = 4;
    check_advice(r, "", "");
}

static void test_huge_pages_that_are_switched_off_are_told(void **state)
{
    (void)state;
    struct report r = quiet();
    r.facts.peak_rss = (uint64_t)4 << 30;
    r.facts.huge = REPORT_UNKNOWN;
    check_advice(r, "", "");
    r.facts.huge = 0;
    check_advice(r, "Set /sys/kernel/mm/transparent_hugepage/enabled to madvise or always: no huge pages were available.",
                 "");
}

static void test_compression_that_takes_most_is_told_if_all_threads_are_busy(void **state)
{
    (void)state;
    struct report r = quiet();
    r.busy = 0.95;
    check_advice(r, "", "");
    r.stages[STAGE_INFLATE].busy = 6;
    check_advice(r, "Use --output-fmt-option level=1 if the file may be somewhat larger: compression is most of the "
                 "work.", "");
    r.facts.level = 1;
    check_advice(r, "", "");
}

static void test_no_more_than_two_sentences_are_said(void **state)
{
    (void)state;
    struct report r = slow_files(STAGE_READ, REPORT_REGULAR, REPORT_REGULAR);
    r.facts.topology.nodes = 2;
    r.facts.huge = 0;
    r.facts.peak_rss = (uint64_t)4 << 30;
    r.stages[STAGE_SPILL_WRITE].events = 1;
    report_advise(&r);
    assert_non_null(strstr(r.advice[0], "was read"));
    assert_non_null(strstr(r.advice[1], "to keep everything in memory"));
}

/* ---- the verdict, from made-up times ---- */

static void check_verdict(struct report r, enum report_bound bound, const char *why)
{
    report_judge(&r);
    assert_string_equal(report_bound_key(r.bound), report_bound_key(bound));
    assert_string_equal(r.why, why);
}

/* Half of the CPU time is used; one stage waits for `seconds` in each of `threads` threads, at the same time. */
static struct report waiting(enum stage stage, double seconds, int threads)
{
    struct report r = quiet();
    r.facts.user = 36;
    r.stages[STAGE_INFLATE].busy = r.stages[STAGE_DEFLATE].busy = 18;
    r.stages[stage] = (struct report_stage){.busy = seconds * threads, .blocked = seconds * threads,
                                            .any_thread = seconds, .bytes = 1};
    return r;
}

static void test_busy_cpus_are_not_the_verdict(void **state)
{
    (void)state;
    check_verdict(quiet(), REPORT_BOUND_CPU,
                  "80 % of the available CPU time was used, most of it (53 %) to compress blocks of output.");
    struct report r = waiting(STAGE_READ, 9, 1);
    r.facts.user = 76;                           /* reading never kept a thread from its work */
    r.stages[STAGE_INFLATE].busy = 60;
    check_verdict(r, REPORT_BOUND_CPU,
                  "100 % of the available CPU time was used, most of it (77 %) to decompress blocks of input.");
    r.stages[STAGE_INFLATE].busy = 30;
    r.stages[STAGE_SORT].busy = 20;
    check_verdict(r, REPORT_BOUND_CPU, "100 % of the available CPU time was used, the largest part of it (44 %) to "
                  "decompress blocks of input.");
    r = quiet();
    r.n_threads = 32;                            /* on 8 CPUs */
    r.facts.run_queue = 240;
    check_verdict(r, REPORT_BOUND_CPU,
                  "80 % of the available CPU time was used, most of it (53 %) to compress blocks of output.");
}

static void test_file_or_pipe_that_is_waited_for_is_not_blamed(void **state)
{
    (void)state;
    struct report r = waiting(STAGE_READ, 4, 1);
    check_verdict(r, REPORT_BOUND_INPUT, "threads waited for the input for 4.0 of 10.0 s.");
    r.facts.input_is = REPORT_PIPE;
    check_verdict(r, REPORT_BOUND_PRODUCER, "threads waited for the input for 4.0 of 10.0 s.");
    r = waiting(STAGE_WRITE, 4, 8);              /* 8 threads waited at once: not 32 s */
    check_verdict(r, REPORT_BOUND_OUTPUT, "threads waited for the output for 4.0 of 10.0 s.");
    r.facts.output_is = REPORT_PIPE;
    check_verdict(r, REPORT_BOUND_CONSUMER, "threads waited for the output for 4.0 of 10.0 s.");
    r = waiting(STAGE_SPILL_READ, 2, 2);
    r.stages[STAGE_SPILL_WRITE] = (struct report_stage){.busy = 4, .blocked = 2, .any_thread = 3};
    check_verdict(r, REPORT_BOUND_TEMP, "threads waited for temporary data for 3.5 of 10.0 s.");
    r.stages[STAGE_READ] = (struct report_stage){.busy = 4, .blocked = 3.6, .any_thread = 4};
    check_verdict(r, REPORT_BOUND_INPUT, "threads waited for the input for 3.6 of 10.0 s.");
    check_verdict(waiting(STAGE_READ, 1, 1), REPORT_BOUND_NONE,
                  "50 % of the available CPU time was used, and no wait was long.");
}

static void test_one_threads_work_is_not_told_from_a_slow_disk(void **state)
{
    (void)state;
    struct report r = waiting(STAGE_READ, 4, 1);
    r.serial = 7;
    check_verdict(r, REPORT_BOUND_ONE_THREAD, "the work that only one thread can do takes 7.0 of 10.0 s.");
    r.n_threads = 1;
    r.facts.user = 3;
    r.facts.system = 0;
    r.serial = 3;
    r.stages[STAGE_INFLATE].busy = r.stages[STAGE_DEFLATE].busy = 1.5;
    check_verdict(r, REPORT_BOUND_INPUT, "threads waited for the input for 4.0 of 10.0 s.");
    r.serial = 5;                                /* more than any wait, but not the cause */
    r.stages[STAGE_WRITE] = r.stages[STAGE_READ];
    r.stages[STAGE_READ] = (struct report_stage){.busy = 0};
    check_verdict(r, REPORT_BOUND_OUTPUT, "threads waited for the output for 4.0 of 10.0 s.");
}

static void test_waiting_for_a_cpu_counts_as_busy(void **state)
{
    (void)state;
    struct report r = waiting(STAGE_READ, 2, 1);
    r.facts.run_queue = 40;
    r.stages[STAGE_INFLATE].busy = 60;
    check_verdict(r, REPORT_BOUND_OTHERS, "threads that had work waited for a CPU for 5.0 of 10.0 s.");
    r.stages[STAGE_INFLATE].busy = 18;           /* threads that woke up and found no work */
    check_verdict(r, REPORT_BOUND_INPUT, "threads waited for the input for 2.0 of 10.0 s.");
    r.busy = 1;
    r.facts.run_queue = 20;
    assert_true(report_busy_share(&r) == 0.75);
    r.facts.run_queue = -1;                      /* unknown: by the clock 72 s, on a CPU 40 s */
    r.stages[STAGE_INFLATE].busy = 54;
    check_verdict(r, REPORT_BOUND_OTHERS, "threads that had work waited for a CPU for 4.0 of 10.0 s.");
    assert_true(report_busy_share(&r) == 1);
    r.facts.run_queue = 1000;                    /* more than is possible, even for threads without work */
    assert_true(report_busy_share(&r) == 0.5);
}

static void test_too_little_memory_is_not_blamed(void **state)
{
    (void)state;
    struct report r = quiet();
    r.stages[STAGE_PACK].busy = r.stages[STAGE_UNPACK].busy = 20;
    check_verdict(r, REPORT_BOUND_MEMORY, "38 % of all work was for data that did not fit into it.");
    r = quiet();
    r.facts.major_faults = 200000;
    check_verdict(r, REPORT_BOUND_MEMORY, "the machine had too little: 200000 pages had to be read back from disk.");
    r.facts.major_faults = 2000;                 /* pages of the program's file */
    check_verdict(r, REPORT_BOUND_CPU,
                  "80 % of the available CPU time was used, most of it (53 %) to compress blocks of output.");
}

static void test_verdict_comes_from_chance(void **state)
{
    (void)state;
    struct report r = quiet();
    r.wall = 0.1;
    check_verdict(r, REPORT_BOUND_NONE, "0.10 s is too short for a verdict.");
    r.wall = 0;
    assert_true(report_cpu_share(&r) == 0 && report_busy_share(&r) == 0);
}

/* ---- numbers from clocks ---- */

static void test_numbers_are_those_of_the_clocks(void **state)
{
    (void)state;
    struct clocks *clocks = clocks_new(2, CLOCKS_CPU);
    struct report_facts facts = quiet().facts;
    struct report r;
    enum stage before = clocks_enter(clocks, STAGE_INFLATE);
    usleep(3000);
    clocks_leave(clocks, before, 1000);
    before = clocks_enter(clocks, STAGE_WAIT);
    usleep(3000);
    clocks_leave(clocks, before, 0);
    clocks_stop(clocks);
    report_make(&r, &facts, clocks);
    assert_int_equal(r.bytes, 1000);
    assert_int_equal(r.idle_threads, 1);
    assert_string_equal(r.critical_name, "thread 0");
    assert_true(r.busy > 0 && r.busy < 0.5);     /* one of two threads, and that one waited */
    assert_true(r.stages[STAGE_INFLATE].busy >= 0.003 && r.stages[STAGE_INFLATE].critical == r.stages[STAGE_INFLATE].busy);
    assert_true(r.serial <= r.wall - 0.006);     /* neither inflating nor waiting is serial */
    assert_true(r.io == 0);
    clocks_free(clocks);
}

/* Two threads at 1 MB in 20 ms each, at the same time: 100 MB/s, and 50 of each. */
static void test_threads_that_read_together_look_slow(void **state)
{
    (void)state;
    struct clocks *clocks = clocks_new(1, CLOCKS_CPU);
    struct report_facts facts = quiet().facts;
    struct report r;
    int a = clocks_join(clocks, "a"), b = clocks_join(clocks, "b");
    clocks_enter_as(clocks, a, STAGE_READ);
    clocks_enter_as(clocks, b, STAGE_READ);
    usleep(20000);
    clocks_leave_as(clocks, a, STAGE_IDLE, 1000000);
    clocks_leave_as(clocks, b, STAGE_IDLE, 1000000);
    usleep(20000);
    clocks_stop(clocks);
    report_make(&r, &facts, clocks);
    const struct report_stage *read = &r.stages[STAGE_READ];
    assert_true(read->any_thread >= 0.02 && read->any_thread < read->busy && read->any_thread <= r.wall - 0.02);
    assert_true(report_speed(read) == 2 / read->any_thread && report_thread_speed(read) == 2 / read->busy);
    assert_true(r.stages[STAGE_OTHER].any_thread == 0 && report_speed(&r.stages[STAGE_OTHER]) == 0);
    clocks_free(clocks);
}

/* If the input has no records, starting the program takes all the time. */
static void test_time_per_byte_of_next_to_no_bytes_is_told(void **state)
{
    (void)state;
    struct report r = quiet();
    r.serial = 0.01;
    assert_true(report_serial_per_gb(&r) == 0.001);
    r.bytes = 300;
    assert_true(report_serial_per_gb(&r) < 0);
}

static void test_serial_work_of_another_thread_counts_if_it_is_more(void **state)
{
    (void)state;
    struct clocks *clocks = clocks_new(1, CLOCKS_CPU);
    struct report_facts facts = quiet().facts;
    struct report r;
    enum stage before = clocks_enter(clocks, STAGE_WAIT);
    int slot = clocks_join(clocks, "reader");
    enum stage idle = clocks_enter_as(clocks, slot, STAGE_DEAL);
    usleep(20000);
    clocks_leave_as(clocks, slot, idle, 0);
    clocks_leave(clocks, before, 0);
    clocks_stop(clocks);
    report_make(&r, &facts, clocks);
    assert_int_equal(r.critical, slot);
    assert_string_equal(r.critical_name, "reader");
    assert_true(r.serial >= 0.02 && r.serial_stages[STAGE_DEAL] == r.serial);
    clocks_free(clocks);
}

/* ---- text that is written to files ---- */

static void test_number_of_records_is_rounded(void **state)
{
    (void)state;
    static const struct { uint64_t n; const char *text; } cases[] = {
        {0, "0"}, {999, "999"}, {1000, "1,000"}, {708746, "708,746"}, {1234567890, "1,234,567,890"},
        {UINT64_MAX - 1, "18,446,744,073,709,551,614"}, {REPORT_UNKNOWN, "unknown"}};
    char text[REPORT_COUNT_SIZE];
    for (size_t i = 0; i < N_OF(cases); i++)
        assert_string_equal(report_count(cases[i].n, text), cases[i].text);
}

static char *written(void (*write)(FILE *, const char *), const char *argument)
{
    char *text;
    size_t size;
    FILE *to = open_memstream(&text, &size);
    MUST(to);
    write(to, argument);
    fclose(to);
    return text;
}

static void test_strings_of_json_are_valid_whatever_a_file_is_called(void **state)
{
    (void)state;
    static const struct { const char *text, *json; } cases[] = {
        {"in.bam", "\"in.bam\""},
        {"", "\"\""},
        {"a\"b\\c\n\x01", "\"a\\\"b\\\\c\\u000a\\u0001\""},
        {"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", "\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\""},
        {"\xe4.bam", "\"\\ufffd.bam\""},
        {"\xc0\x80\xed\xa0\x80", "\"\\ufffd\\ufffd\\ufffd\\ufffd\\ufffd\""},
        {"\xf4\x90\x80\x80", "\"\\ufffd\\ufffd\\ufffd\\ufffd\""},
        {"\xe2\x82", "\"\\ufffd\\ufffd\""},
    };
    for (size_t i = 0; i < N_OF(cases); i++) {
        char *json = written(report_json_string, cases[i].text);
        assert_string_equal(json, cases[i].json);
        free(json);
    }
}

/* A page of these clocks whose input has this name. */
static void write_page(FILE *to, const char *name)
{
    struct clocks *clocks = clocks_new(3, CLOCKS_SPANS);
    struct report_facts facts = quiet().facts;
    struct report r;
    facts.input = name;
    clocks_phase(clocks, PHASE_READ);
    #pragma omp parallel num_threads(3)
    for (int i = 0; i < 20 * N_STAGES; i++)
        clocks_leave(clocks, clocks_enter(clocks, (enum stage)(i % N_STAGES)), 10);
    clocks_stop(clocks);
    report_make(&r, &facts, clocks);
    report_html(&r, clocks, to);
    clocks_free(clocks);
}

static void test_file_names_are_no_markup_in_the_page(void **state)
{
    (void)state;
    char *page = written(write_page, "<b>&\".bam");
    assert_non_null(strstr(page, "&lt;b&gt;&amp;&quot;.bam"));
    assert_null(strstr(page, "<b>&"));
    assert_null(strstr(page, "(null)"));         /* a stage without colour */
    assert_null(strstr(page, "nan"));
    assert_null(strstr(page, "inf\""));
    assert_non_null(strstr(page, "thread 2"));
    free(page);
}

/* A page and JSON of threads, one of which waits all the time, and all are in the queue for a CPU. */
static void write_waiting_page(FILE *to, const char *name)
{
    struct clocks *clocks = clocks_new(1, CLOCKS_SPANS);
    struct report_facts facts = quiet().facts;
    struct report r;
    facts.input = name;
    enum stage before = clocks_enter(clocks, STAGE_WAIT);
    usleep(3000);
    clocks_leave(clocks, before, 0);
    clocks_stop(clocks);
    report_make(&r, &facts, clocks);
    r.busy = 0.63;
    r.wall = 100;
    r.facts.run_queue = 50;
    r.facts.user = 13;
    r.facts.system = 0;
    report_html(&r, clocks, to);
    report_json(&r, clocks, to);
    report_text(&r, to);
    clocks_free(clocks);
}

static int count(const char *text, const char *what)
{
    int n = 0;
    for (; (text = strstr(text, what)); text++)
        n++;
    return n;
}

static void test_wait_is_left_out_of_the_picture_of_all_threads(void **state)
{
    (void)state;
    char *page = written(write_waiting_page, "in.bam");
    assert_int_equal(count(page, "<path fill=\"var(--wait)\""), 2);      /* for all threads, and in the thread's row */
    free(page);
}

static void test_busy_means_two_things(void **state)
{
    (void)state;
    char *all = written(write_waiting_page, "in.bam");
    assert_non_null(strstr(all, "13 %</b><span>of 1 thread busy</span>"));
    assert_non_null(strstr(all, "\"busy_share\": 0.13"));
    assert_non_null(strstr(all, "1 thread busy 13 %"));
    free(all);
}

/* A page of a sort that took no time at all. */
static void write_timeless_page(FILE *to, const char *name)
{
    struct clocks *clocks = clocks_new(1, CLOCKS_SPANS);
    struct report r = {.facts = quiet().facts, .n_threads = 1};
    r.facts.input = name;
    clocks_stop(clocks);
    report_html(&r, clocks, to);
    clocks_free(clocks);
}

static void test_page_of_an_empty_input_divides_by_zero(void **state)
{
    (void)state;
    char *page = written(write_timeless_page, "empty.bam");
    assert_null(strstr(page, "nan"));
    assert_null(strstr(page, "inf"));
    assert_null(strstr(page, "s/GB"));
    assert_null(strstr(page, "MB/s</h1>"));
    free(page);
}

static void write_trace(FILE *to, const char *name)
{
    struct clocks *clocks = clocks_new(1, CLOCKS_SPANS);
    int slot = clocks_join(clocks, name);
    clocks_leave_as(clocks, slot, clocks_enter_as(clocks, slot, STAGE_READ), 10);
    clocks_phase(clocks, PHASE_READ);
    clocks_stop(clocks);
    report_trace(clocks, to);
    clocks_free(clocks);
}

static void test_trace_has_a_track_for_every_thread(void **state)
{
    (void)state;
    char *trace = written(write_trace, "reader of \"in\"");
    assert_non_null(strstr(trace, "\"args\":{\"name\":\"thread 0\"}"));
    assert_non_null(strstr(trace, "\"args\":{\"name\":\"reader of \\\"in\\\"\"}"));
    assert_non_null(strstr(trace, "\"args\":{\"name\":\"phases\"}"));
    assert_null(strstr(trace, "idle"));
    free(trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_is_said_where_all_is_well),
        cmocka_unit_test(test_chance_in_small_inputs_is_not_explained),
        cmocka_unit_test(test_threads_that_share_cpus_are_not_called_idle),
        cmocka_unit_test(test_crowded_machine_is_not_a_slow_disk),
        cmocka_unit_test(test_where_files_are_slow_is_told),
        cmocka_unit_test(test_little_waiting_is_not_worth_a_word),
        cmocka_unit_test(test_memory_that_would_do_is_named_if_there_is_so_much),
        cmocka_unit_test(test_thread_that_bounds_is_told_with_what_it_does),
        cmocka_unit_test(test_idle_threads_are_counted),
        cmocka_unit_test(test_cpus_that_stand_idle_are_offered_to_busy_threads),
        cmocka_unit_test(test_cores_are_offered_before_their_second_threads),
        cmocka_unit_test(test_places_matter_only_where_threads_may_move_far_or_share_a_core),
        cmocka_unit_test(test_huge_pages_that_are_switched_off_are_told),
        cmocka_unit_test(test_compression_that_takes_most_is_told_if_all_threads_are_busy),
        cmocka_unit_test(test_no_more_than_two_sentences_are_said),
        cmocka_unit_test(test_busy_cpus_are_not_the_verdict),
        cmocka_unit_test(test_file_or_pipe_that_is_waited_for_is_not_blamed),
        cmocka_unit_test(test_one_threads_work_is_not_told_from_a_slow_disk),
        cmocka_unit_test(test_waiting_for_a_cpu_counts_as_busy),
        cmocka_unit_test(test_too_little_memory_is_not_blamed),
        cmocka_unit_test(test_verdict_comes_from_chance),
        cmocka_unit_test(test_numbers_are_those_of_the_clocks),
        cmocka_unit_test(test_threads_that_read_together_look_slow),
        cmocka_unit_test(test_time_per_byte_of_next_to_no_bytes_is_told),
        cmocka_unit_test(test_serial_work_of_another_thread_counts_if_it_is_more),
        cmocka_unit_test(test_number_of_records_is_rounded),
        cmocka_unit_test(test_strings_of_json_are_valid_whatever_a_file_is_called),
        cmocka_unit_test(test_file_names_are_no_markup_in_the_page),
        cmocka_unit_test(test_wait_is_left_out_of_the_picture_of_all_threads),
        cmocka_unit_test(test_busy_means_two_things),
        cmocka_unit_test(test_page_of_an_empty_input_divides_by_zero),
        cmocka_unit_test(test_trace_has_a_track_for_every_thread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
