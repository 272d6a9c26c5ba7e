/* SPDX-License-Identifier: BSD-3-Clause */
/* Member records: what a rank tells the other ranks about itself. */
#include "config.h"

#include "lib/base/node.h"
#include "lib/rendezvous/record.h"

#include "lib/base/process.h"
#include "lib/base/settings.h"
#include "lib/base/status.h"
#include "lib/rendezvous/roster.h"

#include <dscomm/version.h>
#include <errno.h>
#include <glib.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define RECORD_MAX 65536 /* bytes as text, */
#define TEXTS_MAX (RECORD_MAX - 512) /* the rest is for numbers */

#define ALONE_MAX 256
#define RULES_SHOWN 96 /* bytes of rules in a sentence */

static void read_link(const char *path, char *text, size_t size)
{
    const ssize_t got = readlink(path, text, size - 1);

    text[MAX(got, 0)] = '\0';
}

static int file_resize(int fd, size_t size)
{
    int failed;

    do {
        failed = ftruncate(fd, (off_t)size);
    } while (failed && errno == EINTR);
    return !failed;
}

/* Writes the host text: processes with equal texts share kernel, network and
 * pid namespace, and so can pass descriptors to each other and watch each
 * other. Its first word is the machine: DSCOMM_HOST_ID, or the kernel's
 * identifier. Returns 0, or an errno if that cannot be read now, so that other
 * processes here may have another text. */
static int host_identity(char text[DSCOMM_HOST_ID_MAX])
{
    const char *host_id = dscomm_priv_setting_text(SETTING_HOST_ID);
    char machine[DSCOMM_HOST_ID_MAX - 128] = "", net[56], pid[56];
    int error = 0;

    if (host_id)
        g_strlcpy(machine, host_id, sizeof machine);
    g_strdelimit(machine, " \t\r\n", '_');
    if (!*machine)
        error = dscomm_priv_node_machine(machine, sizeof machine);
    read_link("/proc/self/ns/net", net, sizeof net);
    read_link("/proc/self/ns/pid", pid, sizeof pid);
    snprintf(text, DSCOMM_HOST_ID_MAX, "%s %s %s", machine, net, pid);
    dscomm_priv_tidy(text, DSCOMM_HOST_ID_MAX);
    return error;
}

/* Finds out whether this process can make memory that others can map, and pass
 * it to them; a filter of system calls may forbid it. Writes "" or the call
 * that failed to why, and the host text to host. */
static void record_find_host(char host[DSCOMM_HOST_ID_MAX], char why[ALONE_MAX])
{
    const size_t size = 4096;
    int error = host_identity(host);
    int fd = memfd_create("dscomm-probe", MFD_CLOEXEC);
    int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    const char *call = NULL;
    void *memory;

    if (error)
        call = "open of the machine's identifier";
    else if (fd < 0)
        call = "memfd_create";
    else if (sock < 0)
        call = "socket";
    else if (!file_resize(fd, size))
        call = "ftruncate";
    else if ((memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
                            0)) == MAP_FAILED)
        call = "mmap";
    else
        munmap(memory, size);
    error = error ? error : errno;
    *why = '\0';
    if (call)
        snprintf(why, ALONE_MAX, "pid %ld: %s: %s%s", (long)getpid(), call,
                 strerror(error),
                 error == EMFILE ? "; raise the limit of open files (ulimit -n)"
                                 : "");
    dscomm_priv_tidy(why, ALONE_MAX);
    if (sock >= 0)
        close(sock);
    if (fd >= 0)
        close(fd);
}

/* Room for the strings of a record that is being made; each has a final 0. */
typedef struct {
    char *at, *end;
} room_t;

/* Adds a string of one line, cut off if there is no room. */
static char *room_put(room_t *room, const char *format, ...)
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

/* The modules that a record lists, and why others are left out. */
typedef struct {
    const char *host;
    const char *named[4]; /* backends that settings name; NULL ends them */
    GString *names, *why;
} modules_t;

static bool is_named(const modules_t *modules, const char *name)
{
    return g_strv_contains(modules->named, name);
}

/* Returns NULL, or why a module cannot serve this process, even alone; or, if
 * it is not named, why another one is better here. */
static const char *module_refuse(const modules_t *modules,
                                 const dscomm_module_t *module)
{
    const dscomm_backend_t *backend = module->backend;

    if (!backend)
        return module->why;
    if (backend->advisable && !is_named(modules, module->name))
        return backend->advisable();
    return backend->usable ? backend->usable(&modules->host, 1) : NULL;
}

static void list_one(modules_t *modules, const dscomm_module_t *module)
{
    const char *why = module_refuse(modules, module);

    if (why)
        g_string_append_printf(modules->why, DSCOMM_RECORD_REASON "%s: %s",
                               module->name, why);
    else
        g_string_append_printf(modules->names, "%s ", module->name);
}

static void list_named(modules_t *modules)
{
    const dscomm_module_t *module;

    for (const char **name = modules->named; *name; name++)
        if (dscomm_priv_module_find(*name, &module) == DSCOMM_OK)
            list_one(modules, module);
        else
            g_string_append_printf(modules->why, DSCOMM_RECORD_REASON "%s: %s",
                                   *name, dscomm_last_error());
}

static void list_all(modules_t *modules)
{
    const dscomm_module_t *module;

    g_string_append(modules->why, dscomm_priv_module_unreadable());
    for (size_t i = 0; (module = dscomm_priv_module_get(i)); i++)
        list_one(modules, module);
}

/* Lists the modules that this process can use: those that are named or, where
 * one is to be chosen, all. */
static void list_modules(const char *backend, const char *host, room_t *room,
                         dscomm_record_t *record)
{
    const char *inside = dscomm_priv_setting_text(SETTING_LEVEL_INSIDE);
    const char *between = dscomm_priv_setting_text(SETTING_LEVEL_BETWEEN);
    modules_t modules = {
        .host = host,
        .named = {backend},
        .names = g_string_new(" "),
        .why = g_string_new(NULL),
    };

    if (dscomm_priv_has_levels(backend)) {
        modules.named[1] = inside;
        modules.named[2] = between;
    }
    if (is_named(&modules, "auto"))
        list_all(&modules);
    else
        list_named(&modules);
    record->modules = room_put(room, "%s", modules.names->str);
    record->why = room_put(room, "%s", modules.why->str);
    g_string_free(modules.names, TRUE);
    g_string_free(modules.why, TRUE);
}

char *dscomm_priv_record_reason(const dscomm_record_t *record, const char *name)
{
    char **reasons = g_strsplit(record->why, DSCOMM_RECORD_REASON, -1);
    char *prefix = g_strdup_printf("%s: ", name), *reason = NULL;

    for (char **r = reasons; *r && !reason; r++)
        if (g_str_has_prefix(*r, prefix))
            reason = g_strdup(*r + strlen(prefix));
    if (!reason)
        reason = g_strdup_printf("it has no backend %s%s", name,
                                 *reasons ? *reasons : "");
    g_free(prefix);
    g_strfreev(reasons);
    return reason;
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
    record_find_host(host, alone);
    dscomm_priv_processors_own(processors);
    record->node = room_put(&room, "%s", node);
    record->host = room_put(&room, "%s", host);
    record->alone = room_put(&room, "%s", alone);
    record->backend = room_put(&room, "%s", join->backend);
    record->rules = room_put(&room, "%s", rules ? rules : "");
    record->processors = room_put(&room, "%s", processors);
    list_modules(join->backend, host, &room, record);
}

static dscomm_roster_lines_t record_lines_of(dscomm_record_t *r)
{
    return (dscomm_roster_lines_t){
        "dscomm-record 4",
        RECORD_MAX,
        {&r->version, &r->abi, &r->size, &r->pid, &r->local_rank,
         &r->local_size, &r->node_rank},
        {&r->node, &r->host, &r->alone, &r->backend, &r->modules, &r->why,
         &r->rules, &r->processors},
    };
}

char *dscomm_priv_record_write(dscomm_record_t *record)
{
    const dscomm_roster_lines_t lines = record_lines_of(record);

    return record->memory ? dscomm_priv_roster_write(&lines) : NULL;
}

int dscomm_priv_record_read(const char *text, size_t size,
                            dscomm_record_t *record)
{
    const dscomm_roster_lines_t lines = record_lines_of(record);
    int problem = dscomm_priv_roster_read(&lines, text, size, &record->memory);

    if (!problem && MIN(MIN(record->version, record->abi),
                        MIN(record->size, record->pid)) < 0)
        problem = -1;
    if (!problem)
        return 0;
    dscomm_priv_record_clear(record);
    return problem;
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

/* Returns where two lists of rules begin to differ, in one of them. */
static const char *rules_differ(const char *rules, const char *other)
{
    const char *at = rules;

    for (size_t i = 0; rules[i] && rules[i] == other[i]; i++)
        if (rules[i] == ',')
            at = rules + i + 1;
    return at;
}

/* ERR_MISMATCH: the rules differ, which may be long. */
static dscomm_status_t rules_refuse(const dscomm_record_t *mine,
                                    const dscomm_record_t *other, int rank)
{
    char own[RULES_SHOWN], others[RULES_SHOWN];

    dscomm_priv_quote(rules_differ(mine->rules, other->rules), own, sizeof own);
    dscomm_priv_quote(rules_differ(other->rules, mine->rules), others,
                      sizeof others);
    return dscomm_fail(DSCOMM_ERR_MISMATCH,
                       "rank 0 has DSCOMM_ALGORITHM '%s', rank %d on %s "
                       "has '%s'; give all ranks the same, also by "
                       "DSCOMM_TUNING_FILE",
                       own, rank, other->node, others);
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
        return rules_refuse(mine, other, rank);
    return DSCOMM_OK;
}

dscomm_status_t dscomm_priv_record_check_alive(const dscomm_record_t *record,
                                               int rank, bool in_file)
{
    const int fd = dscomm_priv_process_open((pid_t)record->pid);
    const int ended = dscomm_priv_process_ended((pid_t)record->pid, fd);

    if (fd >= 0)
        close(fd);
    if (!ended || !dscomm_priv_record_here(record))
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
