/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "base/ascii.h"
#include "base/latch.h"
#include "base/message.h"
#include "report/report_file.h"

/* Opens a stream, which takes over the descriptor. NULL: failed, and the descriptor is closed. */
static FILE *stream_of(int fd)
{
    FILE *to = fd < 0 ? NULL : fdopen(fd, "w");
    if (!to && fd >= 0)
        close(fd);
    return to;
}

/* Writes the report to the stream, and closes the stream. Returns 0 or the error; for a write that failed early, errno
 * may no longer be the cause. */
static int write_stream(FILE *to, enum report_format format, report_file_fn *put, const void *arg)
{
    put(to, format, arg);
    int error = fflush(to) != 0 ? errno : ferror(to) ? EIO : 0;
    return fclose(to) != 0 && !error ? errno : error;
}

int report_file_write(struct out_file *file, enum report_format format, report_file_fn *put, const void *arg,
                      struct latch *latch)
{
    if (out_file_begin(file, latch) < 0)
        return -1;
    FILE *to = stream_of(dup(file->fd));
    int error = to ? write_stream(to, format, put, arg) : errno;
    if (error)
        return latch_fail(latch, "writing %s failed: %s. The output is complete", file->path, strerror(error));
    return out_file_finish(file, latch) < 0 ? -1 : out_file_commit(file, latch);
}

/* Makes the name DIR/20261231T235959Z-OUTPUT-PID, in UTC. In the output's name, '_' replaces characters that are not
 * safe in all shells. */
static void name_in_folder(char *name, size_t size, const struct report_request *request)
{
    enum { MOST = 100 };                         /* bytes of the output's name; file systems allow 255 */
    char when[32] = "", output[MOST + 1];
    struct tm utc;
    time_t now = time(NULL);
    const char *path = request->output, *slash = strrchr(path, '/');
    const char *base = strcmp(path, "-") == 0 ? "stdout" : slash ? slash + 1 : path;
    if (gmtime_r(&now, &utc))
        strftime(when, sizeof when, "%Y%m%dT%H%M%SZ", &utc);
    snprintf(output, sizeof output, "%s", base);
    for (char *c = output; *c; c++)
        if (!ascii_is_alnum((unsigned char)*c) && !strchr("._-+", *c))
            *c = '_';
    snprintf(name, size, "%s/%s-%s-%ld", request->folder, when, output, (long)getpid());
}

/* Opens a new file. Another machine that shares the folder may have the same time and process number: then a number is
 * added to the name. Returns the descriptor, or -1 with errno. */
static int open_new(char *path, size_t size, const char *name, const char *ending)
{
    enum { TRIES = 1000 };
    int fd = -1;
    for (int i = 1; i <= TRIES && fd < 0; i++) {
        char number[16] = "";
        if (i > 1)
            snprintf(number, sizeof number, "-%d", i);
        if (snprintf(path, size, "%s%s%s", name, number, ending) >= (int)size) {
            errno = ENAMETOOLONG;
            return -1;
        }
        fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd < 0 && errno != EEXIST)
            return -1;
    }
    return fd;
}

static void write_in_folder(const struct report_request *request, report_file_fn *put, const void *arg)
{
    static const struct {
        const char *ending;
        enum report_format format;
    } kinds[] = {{".json", REPORT_JSON}, {".html", REPORT_HTML}};
    char name[PATH_MAX], path[PATH_MAX];
    name_in_folder(name, sizeof name, request);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        int fd = open_new(path, sizeof path, name, kinds[i].ending);
        FILE *to = stream_of(fd);
        int error = to ? write_stream(to, kinds[i].format, put, arg) : errno;
        if (error && fd >= 0)
            unlink(path);
        if (error) {
            message_warning("no report in %s: %s", request->folder, strerror(error));
            return;
        }
    }
}

int report_file_put(struct out_file *file, const struct report_request *request, report_file_fn *put, const void *arg,
                    struct latch *latch)
{
    if (request->format == REPORT_FOLDER)
        write_in_folder(request, put, arg);
    else if (!request->file)
        put(stderr, request->format, arg);
    else
        return report_file_write(file, request->format, put, arg, latch);
    return 0;
}
