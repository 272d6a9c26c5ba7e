/* SPDX-License-Identifier: BSD-3-Clause */
/* Writing a profile to a file or to stderr. */
#include "config.h"

#include "profiler/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The functions of one format; write is for those that are written at once. */
static const struct {
    const char *name; /* in DSCOMM_PROFILE */
    void (*write)(const dscomm_profile_t *profile, GString *out);
    void (*stream)(const dscomm_profile_t *profile, profile_sink_t *sink);
} formats[] = {
    [DSCOMM_PROFILE_SUMMARY] = {"summary", dscomm_priv_write_summary, NULL},
    [DSCOMM_PROFILE_DEEPSPEED] = {"deepspeed", dscomm_priv_write_deepspeed,
                                  NULL},
    [DSCOMM_PROFILE_JSON] = {"json", dscomm_priv_write_json, NULL},
    [DSCOMM_PROFILE_CSV] = {"csv", dscomm_priv_write_csv, NULL},
    [DSCOMM_PROFILE_PROMETHEUS] = {"prometheus", dscomm_priv_write_prometheus,
                                   NULL},
    [DSCOMM_PROFILE_TRACE] = {"trace", NULL, dscomm_priv_write_trace},
};

const char *dscomm_priv_format_name(int format)
{
    return (unsigned)format < G_N_ELEMENTS(formats) ? formats[format].name
                                                    : NULL;
}

/* Writes profile to a descriptor. Returns 0 or errno. */
static int write_all(const dscomm_profile_t *profile,
                     dscomm_profile_format_t format, int fd)
{
    profile_sink_t sink = {.text = g_string_new(NULL), .fd = fd};

    if (formats[format].stream)
        formats[format].stream(profile, &sink);
    else
        formats[format].write(profile, sink.text);
    dscomm_priv_sink_flush(&sink);
    g_string_free(sink.text, TRUE);
    return sink.problem;
}

/* True if path is there and no regular file: a device, a pipe, a link. Renaming
 * a file to it would remove it. */
static bool is_special(const char *path)
{
    struct stat status;

    return !lstat(path, &status) && !S_ISREG(status.st_mode);
}

/* Appends to a special file. A pipe that nobody reads is an error. Returns 0 or
 * errno. */
static int write_special(const dscomm_profile_t *profile,
                         dscomm_profile_format_t format, const char *path)
{
    const int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NONBLOCK);
    int problem = fd < 0 ? errno : 0;

    if (!problem && fcntl(fd, F_SETFL, O_APPEND))
        problem = errno;
    if (!problem)
        problem = write_all(profile, format, fd);
    if (fd >= 0)
        close(fd);
    return problem;
}

/* Writes to another file, which then gets the name. Returns 0 or errno. */
static int write_file(const dscomm_profile_t *profile,
                      dscomm_profile_format_t format, const char *path)
{
    char *other = g_strdup_printf("%s.XXXXXX", path);
    const int fd = g_mkstemp_full(other, O_WRONLY | O_CLOEXEC, 0666);
    int problem = fd < 0 ? errno : write_all(profile, format, fd);

    if (fd >= 0 && close(fd) && !problem)
        problem = errno;
    if (!problem && rename(other, path))
        problem = errno;
    if (problem && fd >= 0)
        unlink(other);
    g_free(other);
    return problem;
}

dscomm_status_t dscomm_profile_write(const dscomm_profile_t *profile,
                                     dscomm_profile_format_t format,
                                     const char *path)
{
    int problem;

    if (!profile || !dscomm_priv_format_name((int)format))
        return dscomm_fail(DSCOMM_ERR_INVALID,
                           "dscomm_profile_write: profile is NULL, or format "
                           "is %d, which is no dscomm_profile_format_t",
                           (int)format);
    if (path && !*path)
        return dscomm_fail(DSCOMM_ERR_INVALID,
                           "dscomm_profile_write: path is empty; give the name "
                           "of a file, or NULL for stderr");
    if (!path)
        problem = write_all(profile, format, STDERR_FILENO);
    else if (is_special(path))
        problem = write_special(profile, format, path);
    else
        problem = write_file(profile, format, path);
    if (!problem)
        return DSCOMM_OK;
    return dscomm_fail(DSCOMM_ERR_IO,
                       "dscomm_profile_write: %s cannot be written: %s",
                       path ? path : "stderr", strerror(problem));
}
