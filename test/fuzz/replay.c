/* SPDX-License-Identifier: MIT */
/* Calls a fuzz target for each file named, or in the folders named, so that a bug found once is checked with every
 * compiler. It fails if there are no files. */
#include <dirent.h>
#include "fuzz.h"

static unsigned n_files;

static void replay_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    long size = 0;
    if (!file || fseek(file, 0, SEEK_END) != 0 || (size = ftell(file)) < 0 || fseek(file, 0, SEEK_SET) != 0) {
        perror(path);
        exit(EXIT_FAILURE);
    }
    uint8_t *data = must_alloc((size_t)size);
    MUST(fread(data, 1, (size_t)size, file) == (size_t)size);
    fclose(file);
    fprintf(stderr, "%s\n", path);               /* so that a crash shows the file */
    LLVMFuzzerTestOneInput(data, (size_t)size);
    free(data);
    n_files++;
}

static void replay(const char *path)
{
    DIR *folder = opendir(path);
    if (!folder) {
        replay_file(path);
        return;
    }
    for (struct dirent *entry; (entry = readdir(folder));) {
        char name[4096];
        if (entry->d_name[0] != '.') {
            MUST((size_t)snprintf(name, sizeof name, "%s/%s", path, entry->d_name) < sizeof name);
            replay_file(name);
        }
    }
    closedir(folder);
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        replay(argv[i]);
    return n_files == 0;
}
