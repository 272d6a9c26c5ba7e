/* SPDX-License-Identifier: BSD-3-Clause */
/* What a rank tells the others when it joins, as lines of text: the first names
 * the format, each of the others is one value. */
#include "config.h"

#include "lib/base/node.h"
#include "lib/rendezvous/record.h"

#include "lib/base/settings.h"
#include "lib/base/process.h"
#include "lib/rendezvous/processors.h"
#include "lib/base/status.h"

#include <dscomm/version.h>
#include <errno.h>
#include <glib.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define FORMAT "dscomm-record 3"
#define RECORD_MAX 65536 /* bytes as text, */
#define TEXTS_MAX (RECORD_MAX - 512) /* numbers are the rest */

enum { LINE_FORMAT, NUMBERS = 1, TEXTS = 8, LINES = 16 };

#define ALONE_MAX 256

static void read_link(const char *path, char *text, size_t size)
{
    const ssize_t got = readlink(path, text, size - 1);

    text[MAX(got, 0)] = '\0';
}

static int resize(int fd, size_t size)
{
    int failed;

    do {
        failed = ftruncate(fd, (off_t)size);
    } while (failed && errno == EINTR);
    return !failed;
}

/* Can this process have memory that others map, and pass it on? A filter of
 * system calls may say no. "", or the call that failed. */
static void find_alone(char why[ALONE_MAX])
{
    const size_t size = 4096;
    int fd = memfd_create("dscomm-probe", MFD_CLOEXEC);
    int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    const char *call = NULL;
    void *memory;

    if (fd < 0)
        call = "memfd_create";
    else if (sock < 0)
        call = "socket";
    else if (!resize(fd, size))
        call = "ftruncate";
    else if ((memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
                            0)) == MAP_FAILED)
        call = "mmap";
    else
        munmap(memory, size);
    *why = '\0';
    if (call)
        snprintf(why, ALONE_MAX, "pid %ld: %s: %s", (long)getpid(), call,
                 strerror(errno));
    dscomm_priv_tidy(why, ALONE_MAX);
    if (sock >= 0)
        close(sock);
    if (fd >= 0)
        close(fd);
}

/* Processes that share kernel, network and pid namespace can pass each other
 * descriptors and watch each other. The machine comes first: DSCOMM_HOST_ID as
 * one word, or what the kernel says. */
static void host_identity(char text[DSCOMM_HOST_ID_MAX])
{
    const char *told = dscomm_priv_setting_text(SETTING_HOST_ID);
    char machine[DSCOMM_HOST_ID_MAX - 128] = "", net[56], pid[56];

    if (told)
        g_strlcpy(machine, told, sizeof machine);
    g_strdelimit(machine, " \t\r\n", '_');
    if (!*machine)
        dscomm_priv_node_machine(machine, sizeof machine);
    read_link("/proc/self/ns/net", net, sizeof net);
    read_link("/proc/self/ns/pid", pid, sizeof pid);
    snprintf(text, DSCOMM_HOST_ID_MAX, "%s %s %s", machine, net, pid);
    dscomm_priv_tidy(text, DSCOMM_HOST_ID_MAX);
}

void dscomm_priv_record_host(char *text, size_t size)
{
    char host[DSCOMM_HOST_ID_MAX], alone[ALONE_MAX];

    host_identity(host);
    find_alone(alone);
    snprintf(text, size, "%s%s%s", host, *alone ? " " : "", alone);
}

/* The strings of a record that is being made, each with a 0 behind. */
typedef struct {
    char *at, *end;
} room_t;

/* A string of one line, cut where there is no room. */
static char *put(room_t *room, const char *format, ...)
{
    char *text = room->at;
    size_t left = (size_t)(room->end - text);
    va_list args;

    va_start(args, format);
    vsnprintf(text, left, format, args);
    va_end(args);
    dscomm_priv_tidy(text, left);
    room->at = MIN(text + strlen(text) + 1, room->end - 1);
    return text;
}

/* The string goes on, in place of the last one's 0. */
static void add(room_t *room, const char *format, const char *text)
{
    room->at--;
    put(room, format, text);
}

/* With "auto" everything is loaded, and what cannot be is told... */
static void list_all(room_t *room, dscomm_record_t *record)
{
    const dscomm_module_t *module;

    record->modules = put(room, " ");
    for (size_t i = 0; (module = dscomm_priv_module_get(i)); i++)
        if (module->backend)
            add(room, "%s ", module->name);
    record->why = put(room, "%s", dscomm_priv_module_unreadable());
    for (size_t i = 0; (module = dscomm_priv_module_get(i)); i++)
        if (!module->backend) {
            add(room, "; %s: ", module->name);
            add(room, "%s", module->why);
        }
}

/* ...else only what was asked for. */
static void list_modules(const char *backend, room_t *room,
                         dscomm_record_t *record)
{
    const dscomm_module_t *module;

    if (!strcmp(backend, "auto")) {
        list_all(room, record);
        return;
    }
    if (dscomm_priv_module_find(backend, &module) < 0) {
        record->modules = put(room, " ");
        record->why = put(room, "%s", dscomm_last_error());
        return;
    }
    record->modules = put(room, " %s ", backend);
    record->why = put(room, "");
}

void dscomm_priv_record_own(const dscomm_join_t *join, dscomm_record_t *record)
{
    const char *rules = dscomm_priv_setting_text(SETTING_ALGORITHM);
    char node[DSCOMM_NODE_MAX], host[DSCOMM_HOST_ID_MAX], alone[ALONE_MAX];
    char processors[DSCOMM_PROCESSORS_MAX];
    room_t room;

    *record = (dscomm_record_t){
        .version = DSCOMM_VERSION,
        .abi = DSCOMM_BACKEND_ABI,
        .size = join->size,
        .pid = getpid(),
        .local_rank = join->local_rank,
        .local_size = join->local_size,
        .node_rank = join->node_rank,
        .memory = g_try_malloc(TEXTS_MAX),
    };
    if (!record->memory)
        return;
    room = (room_t){record->memory, record->memory + TEXTS_MAX};
    dscomm_priv_node_name(node);
    host_identity(host);
    find_alone(alone);
    dscomm_priv_processors_own(processors);
    record->node = put(&room, "%s", node);
    record->host = put(&room, "%s", host);
    record->alone = put(&room, "%s", alone);
    record->backend = put(&room, "%s", join->backend);
    record->rules = put(&room, "%s", rules ? rules : "");
    record->processors = put(&room, "%s", processors);
    list_modules(join->backend, &room, record);
}

char *dscomm_priv_record_write(const dscomm_record_t *r)
{
    char *text = r->memory ? g_try_malloc(RECORD_MAX) : NULL;

    if (text)
        snprintf(
            text, RECORD_MAX,
            "%s\n%lld\n%lld\n%lld\n%lld\n%lld\n%lld\n%lld\n%s\n%s\n%s\n%s\n"
            "%s\n%s\n%s\n%s",
            FORMAT, (long long)r->version, (long long)r->abi,
            (long long)r->size, (long long)r->pid, (long long)r->local_rank,
            (long long)r->local_size, (long long)r->node_rank, r->node, r->host,
            r->alone, r->backend, r->modules, r->why, r->rules, r->processors);
    return text;
}

/* A decimal number of 31 bits from least on. */
static int read_number(const char *text, int64_t least, int64_t *ret_number)
{
    const size_t sign = *text == '-';
    const size_t digits = strspn(text + sign, "0123456789");

    if (!digits || digits > 10 || text[sign + digits])
        return -1;
    *ret_number = strtoll(text, NULL, 10);
    return *ret_number < least || *ret_number > G_MAXINT32 ? -1 : 0;
}

static int read_numbers(char **lines, dscomm_record_t *record)
{
    int64_t *const numbers[TEXTS - NUMBERS] = {
        &record->version,   &record->abi,        &record->size,
        &record->pid,       &record->local_rank, &record->local_size,
        &record->node_rank,
    };

    for (int i = 0; i < TEXTS - NUMBERS; i++)
        if (read_number(lines[NUMBERS + i], i < 4 ? 0 : -1, numbers[i]))
            return -1;
    return 0;
}

/* Ends the lines of text; -1 where they are not as many as a record has. */
static int split_lines(char *text, char *lines[LINES])
{
    for (int i = 0; i < LINES; i++) {
        lines[i] = strsep(&text, "\n");
        if (!lines[i])
            return -1;
    }
    return text ? -1 : 0;
}

/* Cuts text into its lines, at which record's strings point then. */
static int read_lines(char *text, dscomm_record_t *record)
{
    char *lines[LINES];

    if (split_lines(text, lines) || strcmp(lines[LINE_FORMAT], FORMAT) ||
        read_numbers(lines, record))
        return -1;
    record->node = lines[TEXTS];
    record->host = lines[TEXTS + 1];
    record->alone = lines[TEXTS + 2];
    record->backend = lines[TEXTS + 3];
    record->modules = lines[TEXTS + 4];
    record->why = lines[TEXTS + 5];
    record->rules = lines[TEXTS + 6];
    record->processors = lines[TEXTS + 7];
    return 0;
}

int dscomm_priv_record_read(const char *text, size_t size,
                            dscomm_record_t *record)
{
    memset(record, 0, sizeof *record);
    if (size > RECORD_MAX || memchr(text, '\0', size))
        return -1;
    record->memory = strndup(text, size);
    if (!record->memory)
        return 1;
    if (!read_lines(record->memory, record))
        return 0;
    dscomm_priv_record_clear(record);
    return -1;
}

char *dscomm_priv_record_machine(void)
{
    char host[DSCOMM_HOST_ID_MAX];

    host_identity(host);
    return strdup(host);
}

int dscomm_priv_record_here(const dscomm_record_t *record)
{
    char host[DSCOMM_HOST_ID_MAX];

    host_identity(host);
    return strcmp(host, record->host) == 0;
}

int dscomm_priv_record_gone(const dscomm_record_t *record)
{
    const int fd = dscomm_priv_process_open((pid_t)record->pid);
    int ended = dscomm_priv_process_ended((pid_t)record->pid, fd);

    if (fd >= 0)
        close(fd);
    return ended && dscomm_priv_record_here(record);
}

dscomm_status_t dscomm_priv_record_compare(const dscomm_record_t *mine,
                                           const dscomm_record_t *other,
                                           int rank)
{
    if (other->version != mine->version || other->abi != mine->abi)
        return dscomm_fail(DSCOMM_ERR_MISMATCH,
                           "rank 0 has libdscomm %lld with backend abi %lld, "
                           "rank %d on %s has %lld with %lld; give all ranks "
                           "one version",
                           (long long)mine->version, (long long)mine->abi, rank,
                           other->node, (long long)other->version,
                           (long long)other->abi);
    if (other->size != mine->size)
        return dscomm_fail(DSCOMM_ERR_MISMATCH,
                           "rank 0 was told of %lld ranks, rank %d on %s of "
                           "%lld; give all the same world size",
                           (long long)mine->size, rank, other->node,
                           (long long)other->size);
    if (strcmp(other->backend, mine->backend))
        return dscomm_fail(DSCOMM_ERR_MISMATCH,
                           "rank 0 asks for backend '%s', rank %d on %s for "
                           "'%s'; give all the same DSCOMM_BACKEND",
                           mine->backend, rank, other->node, other->backend);
    if (strcmp(other->rules, mine->rules))
        return dscomm_fail(DSCOMM_ERR_MISMATCH,
                           "rank 0 has DSCOMM_ALGORITHM '%s', rank %d on %s "
                           "has '%s'; give all ranks the same",
                           mine->rules, rank, other->node, other->rules);
    return DSCOMM_OK;
}

dscomm_status_t dscomm_priv_record_check_alive(const dscomm_record_t *record,
                                               int rank, bool in_file)
{
    if (!dscomm_priv_record_gone(record))
        return DSCOMM_OK;
    return dscomm_fail(DSCOMM_ERR_PEER_FAILED,
                       "rank %d (pid %lld on %s) ended before all had come: "
                       "see its own output%s",
                       rank, (long long)record->pid, record->node,
                       in_file ? "; or its record is of an earlier run, whose "
                                 "file:// store must be removed"
                               : "");
}

void dscomm_priv_record_clear(dscomm_record_t *record)
{
    g_free(record->memory);
    memset(record, 0, sizeof *record);
}
