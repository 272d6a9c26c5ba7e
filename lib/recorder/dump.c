/* SPDX-License-Identifier: BSD-3-Clause */
/* See dump.h. Times are in ns since 1970. */
#include "config.h"

#include "lib/recorder/dump.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A process that a debugger or a signal has stopped is in state t or T. */
slot_state_t dscomm_priv_recorder_state(const dscomm_recorder_slot_t *slot)
{
    const int64_t pid = atomic_load(&slot->pid);
    char path[40], text[512];
    const char *end;
    FILE *file;

    if (!atomic_load(&slot->owner))
        return SLOT_LEFT;
    snprintf(path, sizeof path, "/proc/%lld/stat", (long long)pid);
    file = fopen(path, "re");
    if (!file)
        return errno == ENOENT ? SLOT_DEAD : SLOT_RUNNING;
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    end = strrchr(text, ')'); /* the name may contain any character, also ')' */
    if (!end || end[1] != ' ')
        return SLOT_DEAD;
    return strchr("ZX", end[2])   ? SLOT_DEAD
           : strchr("tT", end[2]) ? SLOT_STOPPED
                                  : SLOT_RUNNING;
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
    print_member(file, "operation",
                 dscomm_coll_name((dscomm_coll_t)call->coll));
    print_member(file, "call", text);
    print_member(file, "state", call_state(call));
    print_member(file, "status",
                 dscomm_status_name((dscomm_status_t)call->status));
    print_member(file, "dtype", dscomm_dtype_name((dscomm_dtype_t)call->dtype));
    fprintf(file,
            "\"count\": %llu, \"peer\": %d, \"tag\": %d, \"fingerprint\": %u, "
            "\"async\": %s, \"called_ns\": %lld, \"ended_ns\": ",
            (unsigned long long)call->count, call->peer, call->tag,
            (unsigned)call->fingerprint,
            call->flags & RECORDED_ASYNC ? "true" : "false",
            (long long)time_of(times, call->called));
    if (ended)
        fprintf(file, "%lld}", (long long)ended);
    else
        fputs("null}", file);
}

static void print_calls(const dscomm_recorder_slot_t *slot, FILE *file)
{
    const times_t times = {slot, dscomm_priv_moment()};
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
    static const char *const states[] = {"running", "stopped", "dead", "left"};

    fprintf(file, "  {\"rank\": %d, \"size\": %d, \"pid\": %lld, ", slot->rank,
            slot->size, (long long)atomic_load(&slot->pid));
    print_array(file, "world", slot->world, sizeof slot->world);
    print_member(file, "process", states[dscomm_priv_recorder_state(slot)]);
    fprintf(file, "\"calls\": %llu, \"failure\": ",
            (unsigned long long)atomic_load(&slot->calls));
    print_failure(slot, file);
    fputs(", \"groups\": [", file);
    print_groups(slot, file);
    fputs("],\n   \"entries\": [", file);
    print_calls(slot, file);
    fputs("]}", file);
}

void dscomm_priv_recorder_print(const dscomm_recorder_t *recorder,
                                const dscomm_recorder_slot_t *slot, FILE *file)
{
    const dscomm_recorder_memory_t *memory = recorder->memory;
    const char *separator = "";
    char host[65] = "";

    gethostname(host, sizeof host - 1);
    fputs("{\"dscomm_dump\": 1, ", file);
    print_array(file, "job", memory ? memory->job : "", sizeof memory->job);
    print_member(file, "host", host);
    fprintf(file, "\"written_ns\": %lld,\n \"ranks\": [",
            (long long)dscomm_priv_moment().real_ns);
    for (uint32_t i = 0; i < (memory ? recorder->slots : 1); i++) {
        if (memory)
            slot = &memory->slot[i];
        if (memory && !atomic_load(&slot->pid))
            continue;
        fprintf(file, "%s\n", separator);
        print_slot(slot, file);
        separator = ",";
    }
    fputs("]}\n", file);
}

/* Replaces characters that a file name should not have. */
static void clean_name(char *name)
{
    for (; *name; name++)
        if (!g_ascii_isalnum(*name) && !strchr("._-", *name))
            *name = '_';
}

static const char *dump_fail(const char *path)
{
    static _Thread_local char problem[PATH_MAX + 80];

    snprintf(problem, sizeof problem, "%s: %s", path, strerror(errno));
    return problem;
}

/* Writes path by way of part, which only one process can create. */
static const char *dump_write(const char *path, const char *part,
                              const dscomm_recorder_t *recorder,
                              const dscomm_recorder_slot_t *slot)
{
    const int fd =
        open(part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "w");
    int failed;

    if (fd < 0 && errno == EEXIST)
        return NULL;
    if (!file)
        return dump_fail(part);
    if (access(path, F_OK) == 0) { /* another process has just written it */
        fclose(file);
        unlink(part);
        return NULL;
    }
    dscomm_priv_recorder_print(recorder, slot, file);
    failed = ferror(file);
    if (fclose(file) || failed || rename(part, path))
        return dump_fail(path);
    return NULL;
}

const char *dscomm_priv_recorder_dump(const char *folder, const char *name,
                                      const dscomm_recorder_t *recorder,
                                      const dscomm_recorder_slot_t *slot)
{
    dscomm_recorder_memory_t *memory = recorder->memory;
    char file[224], host[65] = "", path[PATH_MAX], part[PATH_MAX];
    const char *problem;

    gethostname(host, sizeof host - 1);
    snprintf(file, sizeof file, "dscomm-%.*s-%s-%.60s", (int)sizeof memory->job,
             memory ? memory->job : "none", host, name);
    clean_name(file);
    if (snprintf(path, sizeof path, "%s/%s.json", folder, file) >=
            (int)sizeof path ||
        snprintf(part, sizeof part, "%s/%s.part", folder, file) >=
            (int)sizeof part)
        return "the path is too long";
    if (mkdir(folder, 0700) && errno != EEXIST)
        return dump_fail(folder);
    if (access(path, F_OK) == 0)
        return NULL;
    problem = dump_write(path, part, recorder, slot);
    if (!problem && memory)
        atomic_fetch_add(&memory->dumps, 1);
    return problem;
}
