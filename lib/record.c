/* SPDX-License-Identifier: BSD-3-Clause */
/* What a rank tells the others when it joins, as lines of text: the first names
 * the format, each of the others is one value. */
#include "config.h"

#include "lib/roster.h"

#include "env/settings.h"
#include "lib/process.h"
#include "lib/processors.h"
#include "lib/status.h"

#include <dscomm/version.h>
#include <errno.h>
#include <glib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define FORMAT "dscomm-record 3"
#define RECORD_MAX 65536

enum { LINE_FORMAT, NUMBERS = 1, TEXTS = 8, LINES = 16 };

/* Trimmed text of a small file, or "". */
static char *read_line(const char *path)
{
    char *text = NULL;

    if (!g_file_get_contents(path, &text, NULL, NULL))
        return g_strdup("");
    return g_strstrip(text);
}

static char *read_link(const char *path)
{
    char *text = g_file_read_link(path, NULL);

    return text ? text : g_strdup("");
}

void dscomm_priv_node_name(char node[DSCOMM_NODE_MAX])
{
    if (gethostname(node, DSCOMM_NODE_MAX) || !*node)
        g_strlcpy(node, "unknown", DSCOMM_NODE_MAX);
    node[DSCOMM_NODE_MAX - 1] = '\0';
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
static char *find_alone(void)
{
    const size_t size = 4096;
    int fd = memfd_create("dscomm-probe", MFD_CLOEXEC);
    int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    const char *call = NULL;
    void *memory;
    char *why;

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
    why = call ? g_strdup_printf("pid %ld: %s: %s", (long)getpid(), call,
                                 strerror(errno))
               : g_strdup("");
    if (sock >= 0)
        close(sock);
    if (fd >= 0)
        close(fd);
    return why;
}

/* DSCOMM_HOST_ID as one word, or "". */
static char *host_id(void)
{
    const char *text = dscomm_priv_setting_text(SETTING_HOST_ID);

    return g_strdelimit(g_strdup(text ? text : ""), " \t\r\n", '_');
}

/* Processes that share kernel, network and pid namespace can pass each other
 * descriptors and watch each other. The machine comes first. */
static char *host_identity(void)
{
    char *told = host_id();
    char *boot = *told ? told : read_line("/proc/sys/kernel/random/boot_id");
    char *net = read_link("/proc/self/ns/net");
    char *pid = read_link("/proc/self/ns/pid");
    char node[DSCOMM_NODE_MAX], *text;

    dscomm_priv_node_name(node);
    text = g_strjoin(" ", *boot ? boot : node, net, pid, NULL);
    if (boot != told)
        g_free(told);
    g_free(boot);
    g_free(net);
    g_free(pid);
    return text;
}

/* With "auto" everything is loaded, and what cannot be is told... */
static char *list_all(char **ret_why)
{
    const dscomm_module_t *module;
    GString *names = g_string_new(" ");
    GString *why = g_string_new(dscomm_priv_module_unreadable());

    for (size_t i = 0; (module = dscomm_priv_module_get(i)); i++)
        if (module->backend)
            g_string_append_printf(names, "%s ", module->name);
        else
            g_string_append_printf(why, "; %s: %s", module->name, module->why);
    *ret_why = g_string_free(why, FALSE);
    return g_string_free(names, FALSE);
}

/* ...else only what was asked for. */
static char *list_modules(const char *backend, char **ret_why)
{
    const dscomm_module_t *module;

    if (!strcmp(backend, "auto"))
        return list_all(ret_why);
    if (dscomm_priv_module_find(backend, &module) < 0) {
        *ret_why = g_strdup(dscomm_last_error());
        return g_strdup(" ");
    }
    *ret_why = g_strdup("");
    return g_strdup_printf(" %s ", backend);
}

/* A value is one line. */
static char *one_line(char *text)
{
    dscomm_priv_tidy(text, strlen(text) + 1);
    return text;
}

char *dscomm_priv_record_host(void)
{
    char *alone = one_line(find_alone());
    char *host = one_line(host_identity());
    char *text = *alone ? g_strconcat(host, " ", alone, NULL) : NULL;

    g_free(alone);
    if (!text)
        return host;
    g_free(host);
    return text;
}

void dscomm_priv_record_own(const dscomm_join_t *join, dscomm_record_t *record)
{
    const char *rules = dscomm_priv_setting_text(SETTING_ALGORITHM);
    char node[DSCOMM_NODE_MAX];

    dscomm_priv_node_name(node);
    record->version = DSCOMM_VERSION;
    record->abi = DSCOMM_BACKEND_ABI;
    record->size = join->size;
    record->pid = getpid();
    record->local_rank = join->local_rank;
    record->local_size = join->local_size;
    record->node_rank = join->node_rank;
    record->alone = one_line(find_alone());
    record->node = one_line(g_strdup(node));
    record->host = one_line(host_identity());
    record->backend = one_line(g_strdup(join->backend));
    record->modules = list_modules(join->backend, &record->why);
    one_line(record->why);
    record->rules = one_line(g_strdup(rules ? rules : ""));
    record->processors = one_line(dscomm_priv_processors_own());
}

char *dscomm_priv_record_write(const dscomm_record_t *r)
{
    return g_strdup_printf(
        "%s\n%lld\n%lld\n%lld\n%lld\n%lld\n%lld\n%lld\n%s\n%s\n%s\n%s\n%s\n%s\n"
        "%s\n%s",
        FORMAT, (long long)r->version, (long long)r->abi, (long long)r->size,
        (long long)r->pid, (long long)r->local_rank, (long long)r->local_size,
        (long long)r->node_rank, r->node, r->host, r->alone, r->backend,
        r->modules, r->why, r->rules, r->processors);
}

static int read_numbers(char **lines, dscomm_record_t *record)
{
    int64_t *const numbers[TEXTS - NUMBERS] = {
        &record->version,   &record->abi,        &record->size,
        &record->pid,       &record->local_rank, &record->local_size,
        &record->node_rank,
    };
    gint64 number;

    for (int i = 0; i < TEXTS - NUMBERS; i++) {
        const gint64 least = i < 4 ? 0 : -1;

        if (!g_ascii_string_to_signed(lines[NUMBERS + i], 10, least, G_MAXINT32,
                                      &number, NULL))
            return -1;
        *numbers[i] = number;
    }
    return 0;
}

static int read_texts(char **lines, dscomm_record_t *record)
{
    char **const texts[LINES - TEXTS] = {
        &record->node,    &record->host, &record->alone, &record->backend,
        &record->modules, &record->why,  &record->rules, &record->processors,
    };

    for (int i = 0; i < LINES - TEXTS; i++) {
        *texts[i] = strdup(lines[TEXTS + i]);
        if (!*texts[i])
            return -1;
    }
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

int dscomm_priv_record_read(const char *text, size_t size,
                            dscomm_record_t *record)
{
    char *lines[LINES], *copy;
    int result;

    if (size > RECORD_MAX || memchr(text, '\0', size))
        return -1;
    memset(record, 0, sizeof *record);
    copy = strndup(text, size);
    result = !copy || split_lines(copy, lines) ||
             strcmp(lines[LINE_FORMAT], FORMAT) ||
             read_numbers(lines, record) || read_texts(lines, record);
    free(copy);
    if (result)
        dscomm_priv_record_clear(record);
    return result ? -1 : 0;
}

char *dscomm_priv_record_machine(void)
{
    return one_line(host_identity());
}

int dscomm_priv_record_here(const dscomm_record_t *record)
{
    char *host = dscomm_priv_record_machine();
    const int here = strcmp(host, record->host) == 0;

    g_free(host);
    return here;
}

int dscomm_priv_record_gone(const dscomm_record_t *record)
{
    const int fd = dscomm_priv_process_open((pid_t)record->pid);
    int ended = dscomm_priv_process_ended((pid_t)record->pid, fd);

    if (fd >= 0)
        close(fd);
    return ended && dscomm_priv_record_here(record);
}

void dscomm_priv_record_clear(dscomm_record_t *record)
{
    g_free(record->node);
    g_free(record->host);
    g_free(record->alone);
    g_free(record->backend);
    g_free(record->modules);
    g_free(record->why);
    g_free(record->rules);
    g_free(record->processors);
    memset(record, 0, sizeof *record);
}
