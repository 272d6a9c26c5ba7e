/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading tuning files, see tuning.h. GLib's key files abort without memory, as
 * HACKING.md says. */
#include "config.h"

#include "lib/base/tuning.h"

#include "lib/base/machine.h"
#include "lib/base/status.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define REMEDY "write one with `dscomm tune`, or unset DSCOMM_TUNING_FILE"
#define QUOTED 160 /* bytes of a path, key or value in a sentence */

typedef struct tuning_file {
    struct tuning_file *next;
    char *path;
    char quoted[QUOTED]; /* the path */
    char **names, **values; /* of the settings */
    gsize count;
    char problem[DSCOMM_ERROR_MAX]; /* "": none */
} tuning_file_t;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* all files that were named, the last first; never freed */
static tuning_file_t *files;

/* Notes why the file cannot be used; returns false. */
static bool file_refuse(tuning_file_t *file, const char *format, ...)
    G_GNUC_PRINTF(2, 3);
static bool file_refuse(tuning_file_t *file, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    g_vsnprintf(file->problem, sizeof file->problem, format, args);
    va_end(args);
    return false;
}

static bool file_refuse_errno(tuning_file_t *file, int error)
{
    return file_refuse(file, "tuning file %s cannot be read: %s; " REMEDY,
                       file->quoted, strerror(error));
}

/* Reads all bytes of an open file into text, whose last byte is left for a 0.
 * Returns their number, or -1. */
static ssize_t read_all(int fd, char *text, size_t size)
{
    size_t length = 0;
    ssize_t got;

    do {
        got = read(fd, text + length, size - 1 - length);
        length += got > 0 ? (size_t)got : 0;
    } while (got > 0 || (got < 0 && errno == EINTR));
    return got < 0 ? -1 : (ssize_t)length;
}

/* Reads an open file; the text is in a buffer of DSCOMM_TUNING_MAX + 2 bytes.
 */
static bool file_take(tuning_file_t *file, int fd, char *text,
                      size_t *ret_length)
{
    struct stat status;
    ssize_t length;

    if (fstat(fd, &status))
        return file_refuse_errno(file, errno);
    if (!S_ISREG(status.st_mode))
        return file_refuse(file, "tuning file %s is %s; " REMEDY, file->quoted,
                           S_ISDIR(status.st_mode) ? "a directory"
                                                   : "no regular file");
    length = read_all(fd, text, DSCOMM_TUNING_MAX + 2);
    if (length < 0)
        return file_refuse_errno(file, errno);
    if (length > DSCOMM_TUNING_MAX)
        return file_refuse(file,
                           "tuning file %s has more than %d bytes; " REMEDY,
                           file->quoted, DSCOMM_TUNING_MAX);
    *ret_length = (size_t)length;
    return true;
}

/* Reads the file into text. Opening a FIFO must not wait for its writer. */
static bool file_read(tuning_file_t *file, char *text, size_t *ret_length)
{
    const int fd = open(file->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    bool taken;

    if (fd < 0)
        return file_refuse_errno(file, errno);
    taken = file_take(file, fd, text, ret_length);
    close(fd);
    return taken;
}

static bool file_parse(tuning_file_t *file, const char *text, size_t length,
                       GKeyFile *keys)
{
    GError *error = NULL;
    char quoted[QUOTED];

    if (!g_utf8_validate(text, (gssize)length, NULL))
        return file_refuse(file, "tuning file %s is not UTF-8; " REMEDY,
                           file->quoted);
    /* GLib refuses an empty text in some releases. */
    if (!length ||
        g_key_file_load_from_data(keys, text, length,
                                  G_KEY_FILE_KEEP_TRANSLATIONS, &error))
        return true;
    file_refuse(file, "tuning file %s is malformed: %s; " REMEDY, file->quoted,
                dscomm_priv_quote(error->message, quoted, sizeof quoted));
    g_error_free(error);
    return false;
}

static bool file_check_groups(tuning_file_t *file, GKeyFile *keys)
{
    char **groups = g_key_file_get_groups(keys, NULL), quoted[QUOTED];

    for (char **group = groups; *group && !*file->problem; group++)
        if (strcmp(*group, DSCOMM_TUNING_MACHINE) &&
            strcmp(*group, DSCOMM_TUNING_SETTINGS))
            file_refuse(
                file,
                "tuning file %s has a group [%s]; there are only "
                "[" DSCOMM_TUNING_MACHINE "] and [" DSCOMM_TUNING_SETTINGS "]",
                file->quoted, dscomm_priv_quote(*group, quoted, sizeof quoted));
    g_strfreev(groups);
    return !*file->problem;
}

static bool file_check_format(tuning_file_t *file, GKeyFile *keys)
{
    char *format = g_key_file_get_string(keys, DSCOMM_TUNING_MACHINE,
                                         DSCOMM_TUNING_KEY, NULL);
    char quoted[QUOTED];

    if (!format)
        file_refuse(file,
                    "tuning file %s does not tell its " DSCOMM_TUNING_KEY
                    " in [" DSCOMM_TUNING_MACHINE "]; " REMEDY,
                    file->quoted);
    else if (strcmp(format, DSCOMM_TUNING_FORMAT))
        file_refuse(file,
                    "tuning file %s has format %s, and this libdscomm reads "
                    "format " DSCOMM_TUNING_FORMAT "; " REMEDY,
                    file->quoted,
                    dscomm_priv_quote(format, quoted, sizeof quoted));
    g_free(format);
    return !*file->problem;
}

/* Compares one fact with that of this machine. */
static bool file_check_fact(tuning_file_t *file, GKeyFile *keys,
                            const dscomm_machine_fact_t *fact)
{
    char *value =
        g_key_file_get_string(keys, DSCOMM_TUNING_MACHINE, fact->name, NULL);
    char quoted[QUOTED];

    if (!value)
        file_refuse(file,
                    "tuning file %s does not tell the machine's %s in "
                    "[" DSCOMM_TUNING_MACHINE "]; " REMEDY,
                    file->quoted, fact->name);
    else if (strcmp(value, fact->value))
        file_refuse(file,
                    "tuning file %s was made for another machine: its %s is "
                    "'%s', here it is '%s'; run `dscomm tune` here, or unset "
                    "DSCOMM_TUNING_FILE",
                    file->quoted, fact->name,
                    dscomm_priv_quote(value, quoted, sizeof quoted),
                    fact->value);
    g_free(value);
    return !*file->problem;
}

static bool file_check_machine(tuning_file_t *file, GKeyFile *keys)
{
    dscomm_machine_fact_t facts[DSCOMM_MACHINE_FACTS];

    dscomm_priv_machine_read("", facts);
    for (int i = 0; i < DSCOMM_MACHINE_FACTS; i++)
        if (!file_check_fact(file, keys, &facts[i]))
            return false;
    return true;
}

/* Takes names and values of the group of settings; it may be missing. */
static bool file_take_settings(tuning_file_t *file, GKeyFile *keys)
{
    GError *error = NULL;
    char quoted[QUOTED];

    file->names =
        g_key_file_get_keys(keys, DSCOMM_TUNING_SETTINGS, &file->count, NULL);
    file->values = g_new0(char *, file->count + 1);
    for (gsize i = 0; i < file->count; i++) {
        file->values[i] = g_key_file_get_string(keys, DSCOMM_TUNING_SETTINGS,
                                                file->names[i], &error);
        if (!error)
            continue;
        file_refuse(file, "tuning file %s: %s; " REMEDY, file->quoted,
                    dscomm_priv_quote(error->message, quoted, sizeof quoted));
        g_error_free(error);
        return false;
    }
    return true;
}

static void file_load(tuning_file_t *file)
{
    char *text = g_malloc(DSCOMM_TUNING_MAX + 2);
    GKeyFile *keys = g_key_file_new();
    size_t length = 0;

    (void)(file_read(file, text, &length) &&
           file_parse(file, text, length, keys) &&
           file_check_groups(file, keys) && file_check_format(file, keys) &&
           file_check_machine(file, keys) && file_take_settings(file, keys));
    g_key_file_free(keys);
    g_free(text);
}

static tuning_file_t *file_new(const char *path)
{
    tuning_file_t *file = g_new0(tuning_file_t, 1);

    file->path = g_strdup(path);
    dscomm_priv_quote(path, file->quoted, sizeof file->quoted);
    file_load(file);
    return file;
}

static const tuning_file_t *file_get(const char *path)
{
    tuning_file_t *file;

    pthread_mutex_lock(&lock);
    for (file = files; file && strcmp(file->path, path);)
        file = file->next;
    if (!file) {
        file = file_new(path);
        file->next = files;
        files = file;
    }
    pthread_mutex_unlock(&lock);
    return file;
}

const char *dscomm_priv_tuning_problem(const char *path)
{
    const tuning_file_t *file = file_get(path);

    return *file->problem ? file->problem : NULL;
}

const char *dscomm_priv_tuning_item(const char *path, size_t index,
                                    const char **ret_value)
{
    const tuning_file_t *file = file_get(path);

    if (*file->problem || index >= file->count)
        return NULL;
    *ret_value = file->values[index];
    return file->names[index];
}

const char *dscomm_priv_tuning_value(const char *path, const char *name)
{
    const char *value, *other;

    for (size_t i = 0; (other = dscomm_priv_tuning_item(path, i, &value)); i++)
        if (!strcmp(other, name))
            return *value ? value : NULL;
    return NULL;
}
