/* SPDX-License-Identifier: BSD-3-Clause */
/* Writing a profile to a file or to stderr. */
#include "config.h"

#include "profiler/profile.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct {
    const char *name; /* in DSCOMM_PROFILE */
    void (*write)(const dscomm_profile_t *profile, GString *out);
} formats[] = {
    [DSCOMM_PROFILE_SUMMARY] = {"summary", dscomm_priv_write_summary},
    [DSCOMM_PROFILE_DEEPSPEED] = {"deepspeed", dscomm_priv_write_deepspeed},
    [DSCOMM_PROFILE_JSON] = {"json", dscomm_priv_write_json},
    [DSCOMM_PROFILE_CSV] = {"csv", dscomm_priv_write_csv},
    [DSCOMM_PROFILE_PROMETHEUS] = {"prometheus", dscomm_priv_write_prometheus},
};

const char *dscomm_priv_format_name(int format)
{
    return (unsigned)format < G_N_ELEMENTS(formats) ? formats[format].name
                                                    : NULL;
}

/* Writes all of text to a descriptor. Returns 0 or errno. */
static int write_all(int fd, const GString *text)
{
    for (size_t done = 0; done < text->len;) {
        ssize_t n = write(fd, text->str + done, text->len - done);

        if (n < 0 && errno != EINTR)
            return errno;
        done += n > 0 ? (size_t)n : 0;
    }
    return 0;
}

/* True if path is there and no regular file: a device, a pipe, a link. Renaming
 * a file to it would remove it. */
static bool is_special(const char *path)
{
    struct stat status;

    return !lstat(path, &status) && !S_ISREG(status.st_mode);
}

/* Appends to a special file. A pipe that nobody reads is an error. */
static dscomm_status_t write_special(const char *path, const GString *text)
{
    const int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NONBLOCK);
    int problem = fd < 0 ? errno : 0;

    if (!problem && fcntl(fd, F_SETFL, O_APPEND))
        problem = errno;
    if (!problem)
        problem = write_all(fd, text);
    if (fd >= 0)
        close(fd);
    if (!problem)
        return DSCOMM_OK;
    return dscomm_fail(DSCOMM_ERR_IO,
                       "dscomm_profile_write: %s cannot be written: %s", path,
                       strerror(problem));
}

/* GLib writes to another file, which then gets the name. */
static dscomm_status_t write_file(const char *path, const GString *text)
{
    GError *error = NULL;
    dscomm_status_t status = DSCOMM_OK;

    if (!g_file_set_contents(path, text->str, (gssize)text->len, &error))
        status = dscomm_fail(DSCOMM_ERR_IO, "dscomm_profile_write: %s",
                             error->message);
    g_clear_error(&error);
    return status;
}

dscomm_status_t dscomm_profile_write(const dscomm_profile_t *profile,
                                     dscomm_profile_format_t format,
                                     const char *path)
{
    dscomm_status_t status = DSCOMM_OK;
    GString *text;
    int problem;

    if (!profile || !dscomm_priv_format_name((int)format))
        return dscomm_fail(DSCOMM_ERR_INVALID,
                           "dscomm_profile_write: profile is NULL, or format "
                           "is %d, which is no dscomm_profile_format_t",
                           (int)format);
    text = g_string_new(NULL);
    formats[format].write(profile, text);
    if (path) {
        status = is_special(path) ? write_special(path, text)
                                  : write_file(path, text);
    } else if ((problem = write_all(STDERR_FILENO, text))) {
        status = dscomm_fail(DSCOMM_ERR_IO,
                             "dscomm_profile_write: stderr cannot be written: "
                             "%s",
                             strerror(problem));
    }
    g_string_free(text, TRUE);
    return status;
}
