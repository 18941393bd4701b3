/* SPDX-License-Identifier: MIT */
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <htslib/hts_log.h>
#include <htslib/hts.h>
#include "fuzz.h"
#include "program.h"
#include "bam_sort.h"
#include "cli/sort_check.h"
#include "cli/command_args.h"

enum { WORDS = 24 };

/* Replaces standard output by an empty file. */
static void clear_output(void)
{
    int fd = memfd_create("fuzz output", 0);
    MUST(fd >= 0 && dup2(fd, STDOUT_FILENO) == STDOUT_FILENO);
    close(fd);
}

static void read_output(struct made *made)
{
    struct stat st;
    MUST(fstat(STDOUT_FILENO, &st) == 0);
    made->size = (size_t)st.st_size;
    made->data = must_alloc(made->size);
    MUST(pread(STDOUT_FILENO, made->data, made->size, 0) == (ssize_t)made->size);
}

struct made program_run(const char *const words[], const uint8_t *in, size_t size)
{
    char path[32], storage[WORDS][64], *argv[WORDS + 1];
    struct made made = {.status = EXIT_FAILURE};
    struct engine_opts opts;
    int argc = 0, fd = fuzz_file(in, size, path);
    snprintf(storage[argc++], sizeof storage[0], "samtools");
    snprintf(storage[argc++], sizeof storage[0], "sort");
    for (; *words; words++) {
        MUST(argc < WORDS - 1);
        snprintf(storage[argc++], sizeof storage[0], "%s", *words);
    }
    snprintf(storage[argc++], sizeof storage[0], "%s", path);
    for (int i = 0; i < argc; i++)
        argv[i] = storage[i];
    argv[argc] = NULL;
    hts_verbose = HTS_LOG_OFF;
    setenv("KMP_BLOCKTIME", "0", 0);             /* before libomp's first thread: idle ones sleep */
    optind = 0;                                  /* getopt() remembers its place in a word */
    (void)getopt(1, argv, "");
    clear_output();
    if (sort_args_parse(&opts, argc, argv) == ENGINE_ARGS_RUN)
        made.status = opts.check ? sort_check(&opts) : bam_sort(&opts);
    engine_args_free(&opts);
    close(fd);
    read_output(&made);
    return made;
}
