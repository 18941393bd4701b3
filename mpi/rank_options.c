/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/latch.h"
#include "base/message.h"
#include "base/runtime_env.h"
#include "engine/engine_opts.h"
#include "base/version.h"
#include "cli/paths.h"
#include "mpi/mpi_wait.h"
#include "mpi/rank_options.h"
#include "mpi/rank_sort.h"

/* ---- the arguments of this rank ---- */

static void put_usage(FILE *to)
{
    fputs("Usage: mpirun -n RANKS samtools-omp-mpi sort [options of samtools-omp sort] -o out.bam in.bam\n"
          "       srun -n RANKS samtools-omp-mpi sort [options of samtools-omp sort] -o out.bam in.bam\n"
          "\n"
          "All ranks sort together into one file, with the bytes that samtools-omp writes. -@ and -m are for each\n"
          "rank. "
          "`samtools-omp-mpi sort --help` lists the options; `man samtools-omp-mpi` says which cannot be used.\n", to);
}

static void put_version(void)
{
    char library[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int n;
    MPI_Get_library_version(library, &n);
    library[strcspn(library, "\n")] = '\0';
    printf("samtools-omp-mpi %s\n"
           "Sorts as samtools " SAMTOOLS_VERSION "\n"
           "Using htslib %s\n"
           "Using %s\n", version_omp(), hts_version(), library);
}

/* Only rank 0 checks files and whether the options can be used over MPI. */
static enum engine_args_result parse_sort(struct engine_opts *opts, int argc, char **argv, bool is_first)
{
    enum engine_args_result parsed = sort_args_parse(opts, argc, argv);
    if (parsed != ENGINE_ARGS_RUN || !is_first)
        return parsed;
    if (runtime_env_warning())
        message_warning("%s", runtime_env_warning());
    const char *why = rank_sort_refuses(opts);
    if (why)
        message_error("over MPI, %s. Nothing was read.", why);
    return why || paths_check(opts) < 0 ? ENGINE_ARGS_ERROR : parsed;
}

static enum engine_args_result parse(struct engine_opts *opts, int argc, char **argv, bool is_first)
{
    const char *word = argc > 1 ? argv[1] : "";
    bool helps = strcmp(word, "help") == 0 || strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
    if (strcmp(word, "sort") == 0)
        return parse_sort(opts, argc, argv, is_first);
    if (helps && argc > 2 && strcmp(argv[2], "sort") == 0)
        engine_args_help(&sort_command, stdout);
    else if (strcmp(word, "--version") == 0 || strcmp(word, "version") == 0)
        put_version();
    else if (helps || !*word)
        put_usage(helps ? stdout : stderr);
    else
        fprintf(stderr, "samtools-omp-mpi: '%s': only sort runs over MPI; samtools-omp has the other commands, for one "
                "node. See samtools-omp-mpi --help\n", word);
    return helps || strstr(word, "version") ? ENGINE_ARGS_DONE : ENGINE_ARGS_ERROR;
}

/* ---- output that ranks other than the first would print ---- */

enum { TEXT_MOST = 800 };

struct hidden_streams {
    FILE *file;                  /* gets the output of both streams; NULL: the output is lost */
    int kept[2];                 /* standard output and standard error */
};

static void hide(struct hidden_streams *h)
{
    h->file = tmpfile();
    int null = h->file ? -1 : open("/dev/null", O_WRONLY | O_CLOEXEC), to = h->file ? fileno(h->file) : null;
    fflush(stdout);
    for (int i = 0; i < 2; i++) {
        h->kept[i] = to < 0 ? -1 : fcntl(i + 1, F_DUPFD_CLOEXEC, 3);
        if (h->kept[i] >= 0)
            dup2(to, i + 1);
    }
    if (null >= 0)
        close(null);
}

/* Copies the last line of the output to `text`. */
static void unhide(struct hidden_streams *h, char text[TEXT_MOST])
{
    static const char speaker[] = "samtools sort: ";
    char line[TEXT_MOST];
    fflush(stdout);
    for (int i = 0; i < 2; i++)
        if (h->kept[i] >= 0) {
            dup2(h->kept[i], i + 1);
            close(h->kept[i]);
        }
    *text = '\0';
    if (!h->file)
        return;
    rewind(h->file);
    while (fgets(line, sizeof line, h->file)) {
        const char *said = strncmp(line, speaker, strlen(speaker)) == 0 ? line + strlen(speaker) : line;
        snprintf(text, TEXT_MOST, "%.*s", (int)strcspn(said, "\n"), said);
    }
    fclose(h->file);
    size_t n = strlen(text);
    if (n > 0 && text[n - 1] == '.')
        text[n - 1] = '\0';
}

/* ---- do all ranks have the same options? ---- */

/* Puts one option: its name and its value. A zero byte ends each of them. */
__attribute__((format(printf, 3, 4))) static void put(FILE *to, const char *name, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    fprintf(to, "%s%c", name, '\0');
    vfprintf(to, format, values);
    fputc('\0', to);
    va_end(values);
}

static void put_inputs(FILE *to, const struct input_request *in)
{
    fprintf(to, "input%c", '\0');
    for (size_t i = 0; i < in->n; i++)
        fprintf(to, "%s%s", i ? " " : "", in->paths[i]);
    fputc('\0', to);
}

/* Only htslib knows which values are text. Options of FASTQ have no meaning here. */
static void put_format_options(FILE *to, const char *name, const hts_opt *options)
{
    fprintf(to, "%s%c", name, '\0');
    for (const hts_opt *o = options; o; o = o->next) {
        fprintf(to, "%s%s", o == options ? "" : " ", o->arg);
        if (o->opt == HTS_OPT_FILTER || o->opt == CRAM_OPT_REFERENCE || o->opt == CRAM_OPT_VERSION)
            fprintf(to, "=%s", o->val.s);
        else if (o->opt < FASTQ_OPT_CASAVA)
            fprintf(to, "=%d", o->val.i);
    }
    fputc('\0', to);
}

static const char *order_name(enum sort_by by)
{
    static const char *const names[] = {
        [SORT_COORDINATE] = "by coordinate", [SORT_NAME_NATURAL] = "-n", [SORT_NAME_ASCII] = "-N",
        [SORT_NAME_PICARD] = "--picard", [SORT_TAG] = "-t", [SORT_TEMPLATE] = "--template-coordinate",
        [SORT_MINHASH] = "-M", [SORT_COLLATE] = "collate",
    };
    return names[by];
}

static void put_order(FILE *to, const struct sort_order *order)
{
    bool by_tag = order->by == SORT_TAG, by_hash = order->by == SORT_MINHASH;
    put(to, "order", "%s%s%.*s%s%s", order_name(order->by), by_tag ? " " : "", by_tag ? 2 : 0, order->tag,
        by_tag ? " " : "", by_tag ? order_name(order->then) : "");
    put(to, "-K", "%d", by_hash ? order->kmer : 0);
    put(to, "-w", "%d", by_hash ? order->window : 0);
    put(to, "-R", "%d", by_hash && order->no_reverse);
    put(to, "-H", "%d", by_hash && order->squash);
    put(to, "-I", "%s", by_hash && order->index_fasta ? order->index_fasta : "");
}

/* Puts all options that decide what the ranks do together, and what the result is. */
static void put_options(FILE *to, const struct engine_opts *o)
{
    put(to, "version", "%s", version_omp());
    put_inputs(to, &o->in);
    put(to, "-o", "%s", o->out.path);
    put(to, "--write-index", "%s", o->out.index ? o->out.index : "");
    put(to, "index format", "%d", o->out.index ? o->out.index_format : 0);
    put(to, "output format", "%d", o->out.format.format);
    put(to, "-l", "%d", o->out.level);
    put_order(to, &o->order);
    put(to, "--size-hint", "%llu", (unsigned long long)o->size_hint);
    put(to, "--reference", "%s", o->in.reference ? o->in.reference : "");
    put_format_options(to, "--input-fmt-option", o->in.format_options);
    put_format_options(to, "--output-fmt-option", o->out.format.specific);
    put(to, "--no-PG", "%d", o->out.no_pg);
    put(to, "--verify", "%d", o->out.verify);
    put(to, "--checksum", "%s", o->out.checksum ? o->out.checksum : "");
    put(to, "--check", "%d", o->check);
    put(to, "--plan", "%d", o->plan);
}

/* Compares with rank 0's options. The names are the same as long as all values before them are equal. */
static void compare_with_first(const char *mine, const char *first, size_t n, struct latch *latch)
{
    for (size_t at = 0, at_first = 0; at < n;) {
        const char *name = mine + at, *value = name + strlen(name) + 1;
        const char *other = first + at_first + strlen(first + at_first) + 1;
        if (strcmp(value, other) != 0) {
            latch_fail(latch, "its %s is '%.300s', and rank 0's is '%.300s'. All ranks need the same command line and "
                       "environment. Nothing was read", name, value, other);
            return;
        }
        at += (size_t)(value - name) + strlen(value) + 1;
        at_first = at;
    }
}

static void compare_ranks(const struct mpi_team *team, char *mine, size_t n, struct latch *latch)
{
    uint64_t size = n;
    mpi_wait_bcast(&size, 1, MPI_UINT64_T, 0);
    char *first = team->rank == 0 ? mine : malloc(size);
    if (!first || !mine)
        latch_fail(latch, "out of memory");
    if (mpi_team_agree(team, latch) == 0) {
        mpi_wait_bcast(first, (int)size, MPI_CHAR, 0);
        compare_with_first(mine, first, n, latch);
        if (mpi_team_agree(team, latch) < 0)
            latch_fail(latch, "another rank has another command line or environment than rank 0");
    } else {
        latch_fail(latch, "another rank is out of memory");
    }
    if (first != mine)
        free(first);
}

static int compare_options(const struct engine_opts *opts, const struct mpi_team *team)
{
    struct latch latch = {0};
    char *text = NULL;
    size_t n = 0;
    FILE *to = open_memstream(&text, &n);
    if (to)
        put_options(to, opts);
    if (!to || fclose(to) != 0)
        latch_fail(&latch, "out of memory");
    compare_ranks(team, text, n, &latch);
    free(text);
    return latch_tripped(&latch) ? -1 : 0;
}

/* If rank 0 has refused its arguments, only that is reported. */
static int compare_results(enum engine_args_result mine, const char *said, const struct mpi_team *team, int first)
{
    static const char *const asked[] = {[ENGINE_ARGS_RUN] = "to sort", [ENGINE_ARGS_DONE] = "for help or a version"};
    struct latch latch = {0};
    if (first == ENGINE_ARGS_ERROR)
        return -1;
    if (mine == ENGINE_ARGS_ERROR)
        latch_fail(&latch, "its command line or environment is refused, and rank 0's is not: %s", said);
    else if ((int)mine != first)
        latch_fail(&latch, "it was asked %s, and rank 0 %s. All ranks need the same command line", asked[mine],
                   asked[first]);
    return mpi_team_agree(team, &latch);
}

enum engine_args_result rank_options_read(struct engine_opts *opts, const struct mpi_team *team, int argc, char **argv)
{
    struct hidden_streams hidden = {.kept = {-1, -1}};
    char said[TEXT_MOST] = "";
    *opts = (struct engine_opts){.n_threads = 0};
    if (team->rank > 0)
        hide(&hidden);
    enum engine_args_result mine = parse(opts, argc, argv, team->rank == 0);
    if (team->rank > 0)
        unhide(&hidden, said);
    int first = mine;
    mpi_wait_bcast(&first, 1, MPI_INT, 0);
    if (compare_results(mine, said, team, first) < 0)
        return ENGINE_ARGS_ERROR;
    return first == ENGINE_ARGS_RUN && compare_options(opts, team) < 0 ? ENGINE_ARGS_ERROR : mine;
}
