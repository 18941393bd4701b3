/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/version.h"
#include "cli/upstream.h"

/* We add "device:inode," of ourselves and of the program that we start to this variable. So two copies of us on one
 * PATH do not exec each other forever, nor do we and a script that calls us. The program that we start is noted by its
 * path, because in an emulator its /proc/self/exe would be the emulator, and there may be no /proc. */
#define SEEN "SAMTOOLS_OMP_SEEN"

/* The path from the folder of the installed program to the folder that holds it as `samtools`. The Makefile sets it if
 * --bindir or --libexecdir was given. */
#ifndef LIBEXEC_FROM_BIN
#define LIBEXEC_FROM_BIN "../libexec/samtools-omp"
#endif

enum shell { SHELL_SH, SHELL_CSH, SHELL_FISH };

extern char **environ;           /* some unistd.h lack it */

static void identity(const struct stat *st, char text[64])
{
    snprintf(text, 64, ",%llx:%llx,", (unsigned long long)st->st_dev, (unsigned long long)st->st_ino);
}

static void note(const char *path)
{
    struct stat st;
    char id[64], *list = NULL;
    const char *before = getenv(SEEN);
    if (stat(path, &st) < 0)
        return;
    identity(&st, id);
    if (asprintf(&list, "%s%s", before ? before : ",", id + 1) >= 0)
        setenv(SEEN, list, 1);
    free(list);
}

/* Returns whether this is an executable file that is not in SEEN. */
static bool is_usable(const char *path)
{
    struct stat st;
    char id[64];
    if (stat(path, &st) < 0 || !S_ISREG(st.st_mode) || access(path, X_OK) < 0)
        return false;
    identity(&st, id);
    const char *seen = getenv(SEEN);
    return !seen || !strstr(seen, id);
}

/* Returns the reason why is_usable() is false for that path, or why it could not be run. */
static const char *why_unusable(const char *path)
{
    struct stat st;
    int failed = errno;
    if (stat(path, &st) < 0)
        return strerror(errno);
    if (S_ISDIR(st.st_mode))
        return strerror(EISDIR);
    if (!S_ISREG(st.st_mode))
        return "it is not a regular file";
    if (access(path, X_OK) < 0)
        return strerror(errno);
    return is_usable(path) ? strerror(failed) : "it is this program itself, or has started it";
}

/* Returns the next usable program of that name in the folders of *path, a list such as PATH. *path then begins after
 * its folder. The caller frees the result. NULL: there are no more, or out of memory. */
static char *next_on_path(const char **path, const char *name)
{
    while (*path) {
        char *file = NULL;
        size_t n = strcspn(*path, ":");
        if (asprintf(&file, "%.*s/%s", n ? (int)n : 1, n ? *path : ".", name) < 0)
            return NULL;
        *path = (*path)[n] ? *path + n + 1 : NULL;
        if (is_usable(file))
            return file;
        free(file);
    }
    return NULL;
}

char *upstream_find(void)
{
    const char *chosen = getenv("SAMTOOLS_UPSTREAM"), *path = getenv("PATH");
    note("/proc/self/exe");
    if (chosen && *chosen)
        return is_usable(chosen) ? strdup(chosen) : NULL;
    return next_on_path(&path, "samtools");
}

static void try_exec(const char *path, char **argv)
{
    note(path);
    execv(path, argv);
}

int upstream_exec(char **argv)
{
    const char *chosen = getenv("SAMTOOLS_UPSTREAM"), *path = getenv("PATH");
    static char samtools[] = "samtools";
    const char *base = strrchr(argv[0], '/');
    note("/proc/self/exe");
    if (strcmp(base ? base + 1 : argv[0], samtools) != 0)
        argv[0] = samtools;                      /* the other program's @PG line must not name us */
    if (chosen && *chosen) {
        if (is_usable(chosen))
            try_exec(chosen, argv);
        fprintf(stderr, "samtools: SAMTOOLS_UPSTREAM=%s cannot be run (it must be another samtools): %s\n",
                chosen, why_unusable(chosen));
        return EXIT_FAILURE;
    }
    for (char *file; (file = next_on_path(&path, "samtools")); free(file))
        try_exec(file, argv);
    fprintf(stderr, "samtools: '%s' is not part of samtools-omp, or not with these options, and no other samtools is "
            "on PATH; install one or set SAMTOOLS_UPSTREAM\n", argv[1] ? argv[1] : "(no command)");
    return EXIT_FAILURE;
}

/* Starts the program at path with its standard output going to `out`. 0: done. */
static int spawn(const char *path, char **argv, int out, pid_t *child)
{
    posix_spawn_file_actions_t files;
    int failed = posix_spawn_file_actions_init(&files);
    if (failed)
        return failed;
    failed = posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0)
          || posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0)
          || posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO)
          || posix_spawn(child, path, &files, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&files);
    return failed;
}

bool upstream_read(const char *path, char **argv, upstream_read_fn *read, void *arg)
{
    int ends[2];
    pid_t child;
    bool done = false;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return false;
    note(path);
    bool started = spawn(path, argv, ends[1], &child) == 0;
    close(ends[1]);
    FILE *from = fdopen(ends[0], "r");
    if (from)
        done = started && read(arg, from);
    if (from)
        fclose(from);
    else
        close(ends[0]);
    while (started && waitpid(child, NULL, 0) < 0 && errno == EINTR)
        ;
    return done;
}

/* Reads the first line, "samtools 1.16.1". */
static bool take_version(void *arg, FILE *from)
{
    return fscanf(from, "samtools %31s", (char *)arg) == 1;
}

char *upstream_version(const char *path)
{
    char name[] = "samtools", word[] = "--version", *argv[] = {name, word, NULL}, version[32];
    return upstream_read(path, argv, take_version, version) ? strdup(version) : NULL;
}

/* Returns the program's own file, without links. name is argv[0], for systems without /proc. The caller frees the
 * result. NULL: unknown. */
static char *own_file(const char *name)
{
    const char *path = getenv("PATH");
    char *file = realpath("/proc/self/exe", NULL);
    if (file || strchr(name, '/'))
        return file ? file : realpath(name, NULL);
    char *found = next_on_path(&path, name);
    file = found ? realpath(found, NULL) : NULL;
    free(found);
    return file;
}

/* Returns the folder of the file if its name is `samtools`, as in the build folder; otherwise NULL. The caller frees
 * it. */
static char *folder_of_samtools(const char *file)
{
    const char *slash = file ? strrchr(file, '/') : NULL;
    return slash > file && strcmp(slash, "/samtools") == 0 ? strndup(file, (size_t)(slash - file)) : NULL;
}

/* Returns the folder that holds this program as `samtools`, without links. The caller frees it. NULL: there is none. */
static char *own_folder(const char *name)
{
    char *file = own_file(name), *beside = NULL, *folder = NULL, *program = NULL;
    if (file && asprintf(&beside, "%.*s" LIBEXEC_FROM_BIN, (int)(strrchr(file, '/') + 1 - file), file) >= 0)
        folder = realpath(beside, NULL);
    if (folder && (asprintf(&program, "%s/samtools", folder) < 0 || access(program, X_OK) < 0)) {
        free(folder);
        folder = NULL;
    }
    if (!folder)
        folder = folder_of_samtools(file);
    free(program);
    free(beside);
    free(file);
    return folder;
}

/* Prints the text in quotes for the shell. csh expands `!` within quotes, too. */
static void put_quoted(const char *text, enum shell shell)
{
    putchar('\'');
    for (const char *c = text; *c; c++)
        if (*c == '\'')
            fputs(shell == SHELL_FISH ? "\\'" : "'\\''", stdout);
        else if ((*c == '\\' && shell == SHELL_FISH) || (*c == '!' && shell == SHELL_CSH))
            fprintf(stdout, "\\%c", *c);
        else
            putchar(*c);
    putchar('\'');
}

static const struct {
    const char *name;
    enum shell shell;
} shells[] = {
    {"sh", SHELL_SH}, {"bash", SHELL_SH}, {"dash", SHELL_SH}, {"ksh", SHELL_SH}, {"zsh", SHELL_SH},
    {"csh", SHELL_CSH}, {"tcsh", SHELL_CSH}, {"fish", SHELL_FISH},
};

/* Finds the shell of that name; "" is sh. False: unknown. */
static bool find_shell(const char *name, enum shell *shell)
{
    *shell = SHELL_SH;
    for (size_t i = 0; i < sizeof shells / sizeof *shells; i++)
        if (strcmp(name, shells[i].name) == 0) {
            *shell = shells[i].shell;
            return true;
        }
    return *name == 0;
}

/* Prints a command that fails, so that a script which evaluates the output stops instead of using upstream samtools. */
static int print_failure(void)
{
    puts("false");
    fflush(stdout);
    return EXIT_FAILURE;
}

static void print_line(const char *folder, enum shell shell)
{
    static const char *const before[] = {"PATH=", "setenv PATH ", "set -gx PATH "};
    static const char *const behind[] = {"${PATH:+\":$PATH\"}; export PATH\n", ":\"$PATH\"\n", " $PATH\n"};
    fputs(before[shell], stdout);
    put_quoted(folder, shell);
    fputs(behind[shell], stdout);
}

/* Prints how to use --env, because its output is a terminal, so no shell reads it. */
static void print_advice(enum shell shell)
{
    static const char *const how[] = {"eval \"$(samtools-omp --env)\"", "eval \"`samtools-omp --env=csh`\"",
                                      "samtools-omp --env=fish | source"};
    fprintf(stderr, "samtools: --env: printing the line changes nothing. Run %s\n", how[shell]);
}

/* Warns on standard error, because a shell evaluates standard output. */
static void warn_of_version(void)
{
    char *path = upstream_find(), *version = path ? upstream_version(path) : NULL;
    if (version && strcmp(version, SAMTOOLS_VERSION) != 0)
        fprintf(stderr, "samtools: --env: warning: samtools --version says " SAMTOOLS_VERSION ", which is true of our "
                "commands. view, index and all others are run by %s, version %s\n", path, version);
    free(version);
    free(path);
}

int upstream_print_env(const char *name, const char *shell_name)
{
    enum shell shell;
    if (!find_shell(shell_name, &shell)) {
        fprintf(stderr, "samtools: --env=%s: the shells are sh (bash, dash, ksh, zsh), csh (tcsh) and fish\n",
                shell_name);
        return print_failure();
    }
    char *folder = own_folder(name);
    int status = EXIT_FAILURE;
    if (!folder)
        fprintf(stderr, "samtools: --env: this program is not installed: make install puts " LIBEXEC_FROM_BIN
                "/samtools beside its folder\n");
    else if (strchr(folder, ':') || (shell == SHELL_CSH && strchr(folder, '\n')))
        fprintf(stderr, "samtools: --env: PATH cannot hold a folder with a colon%s in its name: %s\n",
                shell == SHELL_CSH ? " or a new line" : "", folder);
    else {
        print_line(folder, shell);
        status = fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
        if (status == EXIT_SUCCESS)
            warn_of_version();
        if (status == EXIT_SUCCESS && isatty(STDOUT_FILENO))
            print_advice(shell);
    }
    free(folder);
    return status == EXIT_SUCCESS ? status : print_failure();
}
