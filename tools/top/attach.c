/* SPDX-License-Identifier: BSD-3-Clause */
/* See attach.h. */
#include "config.h"

#include "tools/top/attach.h"

#include <errno.h>
#include <glib.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

char *attach_name(const dscomm_recorder_t *recorder)
{
    return g_strndup(recorder->memory->job, sizeof recorder->memory->job);
}

static char *attach_pid(long pid, dscomm_recorder_t *ret_recorder)
{
    const char *why =
        dscomm_priv_recorder_find(pid, RECORDER_READ, ret_recorder);
    char path[40];
    struct stat process;

    if (!why)
        return NULL;
    g_snprintf(path, sizeof path, "/proc/%ld", pid);
    if (stat(path, &process) && errno == ENOENT)
        return g_strdup_printf("there is no process %ld", pid);
    if (process.st_uid != geteuid())
        return g_strdup_printf("process %ld is another user's (uid %u); only "
                               "that user may see its job",
                               pid, (unsigned)process.st_uid);
    return g_strdup_printf("process %ld: %s", pid, why);
}

/* Whether both are views of one job. */
static bool is_same(const dscomm_recorder_t *one,
                    const dscomm_recorder_t *other)
{
    return strncmp(one->memory->job, other->memory->job,
                   sizeof one->memory->job) == 0;
}

static bool has_name(const dscomm_recorder_t *recorder, const char *name)
{
    return strncmp(recorder->memory->job, name, sizeof recorder->memory->job) ==
           0;
}

/* Opens the job of that name, or the only one if name is NULL. */
static char *attach_named(const char *name, dscomm_recorder_t *ret_recorder)
{
    GDir *folder = g_dir_open("/proc", 0, NULL);
    dscomm_recorder_t found;
    const char *entry;
    char *problem = NULL;
    long first = 0;

    while (folder && !problem && (entry = g_dir_read_name(folder))) {
        const long pid = strtol(entry, NULL, 10);

        if (pid <= 0 || dscomm_priv_recorder_find(pid, RECORDER_READ, &found))
            continue;
        if (name ? has_name(&found, name) && !first : !first) {
            first = pid;
            *ret_recorder = found;
            continue;
        }
        if (!name && !is_same(&found, ret_recorder))
            problem = g_strdup_printf("there are several jobs, such as those "
                                      "of processes %ld and %ld; name one",
                                      first, pid);
        dscomm_priv_recorder_close(&found);
    }
    if (folder)
        g_dir_close(folder);
    if (first || problem)
        return problem;
    return name ? g_strdup_printf("this user has no job '%s' on this machine",
                                  name)
                : g_strdup("no process of this user is a rank");
}

char *attach_job(const char *job, dscomm_recorder_t *ret_recorder)
{
    char *problem, *second;
    guint64 pid;

    if (!job || !g_ascii_string_to_unsigned(job, 10, 1, G_MAXINT32, &pid, NULL))
        return attach_named(job, ret_recorder);
    problem = attach_pid((long)pid, ret_recorder);
    if (!problem)
        return NULL;
    /* A name may be a number. */
    second = attach_named(job, ret_recorder);
    if (!second)
        g_clear_pointer(&problem, g_free);
    g_free(second);
    return problem;
}
