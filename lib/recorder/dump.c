/* SPDX-License-Identifier: BSD-3-Clause */
/* See dump.h. Times are in ns since 1970. */
#include "config.h"

#include "lib/recorder/dump.h"

#include "lib/base/clock.h"
#include "lib/base/kernel.h"
#include "lib/base/write-guard.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <limits.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define WAIT_MS 2000 /* for another process that writes the same file */

slot_state_t dscomm_priv_recorder_state(const dscomm_recorder_slot_t *slot)
{
    if (!atomic_load(&slot->owner))
        return SLOT_LEFT;
    switch (dscomm_priv_process_state(atomic_load(&slot->pid))) {
    case 'T':
    case 't':
        return SLOT_STOPPED;
    case 'Z':
    case 'X':
    case 0:
        return SLOT_DEAD;
    default:
        return SLOT_RUNNING;
    }
}

const char *dscomm_priv_recorder_state_name(slot_state_t state)
{
    static const char *const names[] = {"running", "stopped", "dead", "left"};

    return names[state];
}

/* Prints text up to its 0, or size bytes of it: another process may write
 * anything to shared memory. */
static void print_text(FILE *file, const char *text, size_t size)
{
    putc('"', file);
    for (size_t i = 0; i < size && text[i]; i++) {
        const unsigned char c = (unsigned char)text[i];

        if (c == '"' || c == '\\')
            fprintf(file, "\\%c", c);
        else if (c < 0x20 || c >= 0x7f)
            fprintf(file, "\\u%04x", c);
        else
            putc(c, file);
    }
    putc('"', file);
}

/* Prints "name": text, a comma, and a blank. */
static void print_array(FILE *file, const char *name, const char *text,
                        size_t size)
{
    fprintf(file, "\"%s\": ", name);
    print_text(file, text, size);
    fputs(", ", file);
}

static void print_member(FILE *file, const char *name, const char *text)
{
    print_array(file, name, text, SIZE_MAX);
}

static void print_failure(const dscomm_recorder_slot_t *slot, FILE *file)
{
    const dscomm_failure_t *failure = &slot->failure;

    if (atomic_load(&slot->has_failed) != 2) {
        fputs("null", file);
        return;
    }
    fputs("{", file);
    print_member(file, "status", dscomm_status_name(failure->status));
    print_array(file, "group", failure->group, sizeof failure->group);
    print_array(file, "host", failure->host, sizeof failure->host);
    print_array(file, "sentence", slot->sentence, sizeof slot->sentence);
    fprintf(file,
            "\"kind\": %d, \"rank\": %d, \"group_rank\": %d, \"pid\": %lld, "
            "\"sequence\": %llu}",
            (int)failure->kind, failure->rank, failure->group_rank,
            (long long)failure->pid, (unsigned long long)failure->sequence);
}

static void print_groups(const dscomm_recorder_slot_t *slot, FILE *file)
{
    const uint32_t last = atomic_load(&slot->groups);
    const char *separator = "";
    dscomm_recorder_group_t group;

    for (uint32_t i = MIN(last, RECORDER_GROUPS); i > 0; i--) {
        if (!dscomm_priv_recorder_read_group(slot, last - i + 1, &group))
            continue;
        fprintf(file, "%s\n    {\"number\": %u, ", separator,
                (unsigned)(last - i + 1));
        print_member(file, "name", group.name);
        print_member(file, "id", group.id);
        print_member(file, "backend", group.backend);
        fprintf(file, "\"rank\": %d, \"size\": %d}", group.rank, group.size);
        separator = ",";
    }
}

typedef struct {
    const dscomm_recorder_slot_t *slot;
    dscomm_moment_t now;
} times_t;

/* In ns since 1970; 0 for a time that was not read. */
static int64_t time_of(const times_t *times, uint64_t ticks)
{
    const dscomm_moment_t *opened = &times->slot->opened;

    if (ticks <= RECORDER_ENDED)
        return 0;
    return dscomm_priv_ticks_to_ns(ticks, opened, &times->now) +
           opened->real_ns - opened->monotonic_ns;
}

static const char *call_state(const dscomm_recorded_t *call)
{
    if (call->ended)
        return call->status < 0 ? "failed" : "completed";
    return call->flags & RECORDED_STARTED ? "started" : "called";
}

static void print_call(const times_t *times, const dscomm_recorded_t *call,
                       FILE *file)
{
    const int64_t ended = time_of(times, call->ended);
    char text[200];

    dscomm_priv_recorder_describe(times->slot, call, text, sizeof text);
    fprintf(file, "{\"serial\": %llu, \"group\": %u, \"sequence\": %llu, ",
            (unsigned long long)call->serial, (unsigned)call->group,
            (unsigned long long)call->sequence);
    print_member(file, "operation", dscomm_priv_recorder_operation(call->coll));
    print_member(file, "call", text);
    print_member(file, "state", call_state(call));
    print_member(file, "status",
                 dscomm_status_name((dscomm_status_t)call->status));
    print_member(file, "dtype", dscomm_dtype_name((dscomm_dtype_t)call->dtype));
    fprintf(
        file,
        "\"count\": %llu, \"peer\": %d, \"tag\": %d, \"fingerprint\": %u, "
        "\"async\": %s, \"internal\": %s, \"called_ns\": %lld, \"ended_ns\": ",
        (unsigned long long)call->count, call->peer, call->tag,
        (unsigned)call->fingerprint,
        call->flags & RECORDED_ASYNC ? "true" : "false",
        call->flags & RECORDED_INTERNAL ? "true" : "false",
        (long long)time_of(times, call->called));
    if (ended)
        fprintf(file, "%lld}", (long long)ended);
    else
        fputs("null}", file);
}

static void print_calls(const dscomm_recorder_slot_t *slot, FILE *file)
{
    const times_t times = {slot, dscomm_priv_moment_by(slot->is_counted)};
    const uint64_t last = atomic_load(&slot->calls);
    const char *separator = "";
    dscomm_recorded_t call;

    for (uint64_t i = MIN(last, RECORDER_CALLS); i > 0; i--) {
        if (!dscomm_priv_recorder_read(slot, last - i + 1, &call))
            continue;
        fprintf(file, "%s\n    ", separator);
        print_call(&times, &call, file);
        separator = ",";
    }
}

static void print_slot(const dscomm_recorder_slot_t *slot, FILE *file)
{
    fprintf(file, "  {\"rank\": %d, \"size\": %d, \"pid\": %lld, ", slot->rank,
            slot->size, (long long)atomic_load(&slot->pid));
    print_array(file, "world", slot->world, sizeof slot->world);
    print_member(
        file, "process",
        dscomm_priv_recorder_state_name(dscomm_priv_recorder_state(slot)));
    fprintf(file, "\"calls\": %llu, \"failure\": ",
            (unsigned long long)atomic_load(&slot->calls));
    print_failure(slot, file);
    fputs(", \"groups\": [", file);
    print_groups(slot, file);
    fputs("],\n   \"entries\": [", file);
    print_calls(slot, file);
    fputs("]}", file);
}

static void print_head(const dscomm_recorder_memory_t *memory, FILE *file)
{
    char host[65] = "";

    gethostname(host, sizeof host - 1);
    fputs("{\"dscomm_dump\": 1, ", file);
    print_array(file, "job", memory ? memory->job : "", sizeof memory->job);
    print_member(file, "host", host);
    fprintf(file, "\"written_ns\": %lld,\n \"ranks\": [",
            (long long)dscomm_priv_moment().real_ns);
}

void dscomm_priv_recorder_print(const dscomm_recorder_t *recorder,
                                const dscomm_recorder_slot_t *slot, FILE *file)
{
    dscomm_recorder_t view = DSCOMM_RECORDER_INIT;
    const char *separator = "";

    print_head(recorder->memory, file);
    if (recorder->memory &&
        !dscomm_priv_recorder_view(recorder, RECORDER_READ, &view))
        slot = NULL;
    for (uint32_t i = 0; i < view.slots; i++) {
        if (!atomic_load(&view.memory->slot[i].pid))
            continue;
        fprintf(file, "%s\n", separator);
        print_slot(&view.memory->slot[i], file);
        separator = ",";
    }
    if (slot)
        print_slot(slot, file);
    fputs("]}\n", file);
    dscomm_priv_recorder_close(&view);
}

/* Replaces characters that a file name should not have. */
static void clean_name(char *name)
{
    for (; *name; name++)
        if (!g_ascii_isalnum(*name) && !strchr("._-", *name))
            *name = '_';
}

/* Writes "dscomm-JOB-HOST-NAME-HASH": HASH is of the whole identity of the
 * failure, because the other fields are cut off and need not be unique. */
static void file_name(char *text, size_t size,
                      const dscomm_recorder_memory_t *memory,
                      const char *identity, const char *name)
{
    char host[65] = "";
    char *whole = g_strdup_printf("%.*s %s %s", RECORDER_ID - 1,
                                  memory ? memory->id : "", identity, name);
    char *hash = g_compute_checksum_for_string(G_CHECKSUM_SHA256, whole, -1);

    gethostname(host, sizeof host - 1);
    snprintf(text, size, "dscomm-%.64s-%.40s-%.40s-%.16s",
             memory ? memory->job : "none", host, name, hash);
    clean_name(text);
    g_free(hash);
    g_free(whole);
}

static const char *dump_fail(const char *path)
{
    static _Thread_local char problem[PATH_MAX + 80];

    snprintf(problem, sizeof problem, "%s: %s", path, strerror(errno));
    return problem;
}

/* Opens part, and locks it. The lock ends with its process, so a file that a
 * dead one has left is written anew. -1: another process has the lock (errno is
 * EWOULDBLOCK), or an error. */
static int part_open(const char *part)
{
    struct stat info;
    int error;
    const int fd = open(
        part, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);

    if (fd < 0)
        return -1;
    errno = EEXIST;
    if (!fstat(fd, &info) && S_ISREG(info.st_mode) && info.st_nlink <= 1 &&
        info.st_uid == geteuid() && !flock(fd, LOCK_EX | LOCK_NB)) {
        if (!fstat(fd, &info) && info.st_nlink)
            return fd;
        errno = EWOULDBLOCK; /* another process has removed it meanwhile */
    }
    error = errno;
    close(fd);
    errno = error;
    return -1;
}

/* The same, but waits while another process writes: the launcher may end that
 * one as soon as this one, which has failed too, ends. If that does not help
 * within WAIT_MS, errno is EWOULDBLOCK. */
static int part_await(const char *part)
{
    const int64_t end = dscomm_priv_clock_after(dscomm_priv_clock(), WAIT_MS);
    int fd;

    while ((fd = part_open(part)) < 0 && errno == EWOULDBLOCK &&
           dscomm_priv_clock() < end)
        g_usleep(1000);
    return fd;
}

/* Writes path by way of part, which only one process at a time can lock. */
static const char *dump_write(const char *path, const char *part,
                              const dscomm_recorder_t *recorder,
                              const dscomm_recorder_slot_t *slot)
{
    const int fd = part_await(part);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "w");
    const char *problem = NULL;

    if (!file)
        return errno == EWOULDBLOCK ? "another process has been writing it for "
                                      "a long time"
                                    : dump_fail(part);
    if (access(path, F_OK) == 0) { /* another process has just written it */
        unlink(part);
        fclose(file);
        return NULL;
    }
    if (ftruncate(fd, 0))
        problem = dump_fail(part);
    else
        dscomm_priv_recorder_print(recorder, slot, file);
    if (!problem && (fflush(file) || ferror(file) || rename(part, path)))
        problem = dump_fail(path);
    if (problem)
        unlink(part);
    fclose(file);
    return problem;
}

const char *dscomm_priv_recorder_dump(const char *folder, const char *identity,
                                      const char *name,
                                      const dscomm_recorder_t *recorder,
                                      const dscomm_recorder_slot_t *slot)
{
    char file[200], path[PATH_MAX], part[PATH_MAX];
    dscomm_write_guard_t guard;
    const char *problem;

    file_name(file, sizeof file, recorder->memory, identity, name);
    if (snprintf(path, sizeof path, "%s/%s.json", folder, file) >=
            (int)sizeof path ||
        snprintf(part, sizeof part, "%s/%s.part", folder, file) >=
            (int)sizeof part)
        return "the path is too long";
    if (mkdir(folder, 0700) && errno != EEXIST)
        return dump_fail(folder);
    if (access(path, F_OK) == 0)
        return NULL;
    dscomm_priv_write_guard(&guard);
    problem = dump_write(path, part, recorder, slot);
    dscomm_priv_write_unguard(&guard);
    return problem;
}
