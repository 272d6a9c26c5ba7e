/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads an environment and a file system. */
#include "config.h"

#include "env/view.h"
#include "lib/base/settings.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_MAX_BYTES 4096
#define HOST_MAX_BYTES 255
#define ANCESTORS_MAX 32

const char *dscomm_priv_view_value(const env_view_t *view, const char *name)
{
    const char *text = name ? view->get(name, view->arg) : NULL;

    return text && *text ? text : NULL;
}

const char *dscomm_priv_view_either(const env_view_t *view, const char *first,
                                    const char *second)
{
    if (dscomm_priv_view_value(view, first))
        return first;
    return dscomm_priv_view_value(view, second) ? second : NULL;
}

int dscomm_priv_view_same(const env_view_t *view, const char *name,
                          const char *other)
{
    const char *a = dscomm_priv_view_value(view, name);
    const char *b = dscomm_priv_view_value(view, other);
    int64_t left, right;

    return a && b && dscomm_priv_parse_decimal(a, &left) == 0 &&
           dscomm_priv_parse_decimal(b, &right) == 0 && left == right;
}

/* Files in /proc have no size, so this reads to the end. */
static char *view_read_all(int fd)
{
    char *text = g_try_malloc(FILE_MAX_BYTES + 1);
    size_t size = 0;
    ssize_t got;

    if (!text)
        return NULL;
    do {
        got = read(fd, text + size, FILE_MAX_BYTES - size);
        if (got > 0)
            size += (size_t)got;
    } while ((got > 0 && size < FILE_MAX_BYTES) || (got < 0 && errno == EINTR));
    text[size] = '\0';
    if (got < 0)
        g_clear_pointer(&text, g_free);
    return text;
}

/* Does not wait for a writer if the file is a pipe. */
char *dscomm_priv_view_file(const env_view_t *view, const char *path)
{
    char full[PATH_MAX], *text = NULL;
    struct stat st;
    int fd;

    if (snprintf(full, sizeof full, "%s%s", view->root, path) >= PATH_MAX)
        return NULL;
    fd = open(full, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return NULL;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
        text = view_read_all(fd);
    close(fd);
    return text;
}

/* Calls gethostname(), which gives the same text as the file, but faster. */
static char *view_own_host(void)
{
    char host[HOST_MAX_BYTES + 1];

    return gethostname(host, sizeof host) == 0 ? g_strdup(host) : NULL;
}

char *dscomm_priv_view_host(const env_view_t *view)
{
    char *text;

    if (*view->root)
        text = dscomm_priv_view_file(view, "/proc/sys/kernel/hostname");
    else
        text = view_own_host();
    if (text && !dscomm_priv_is_host(g_strstrip(text)))
        g_clear_pointer(&text, g_free);
    return text;
}

/* Fields of /proc/PID/stat, "PID (NAME) STATE PPID ... START ...". NAME may
 * contain any character; START is the 22nd field. */
typedef struct {
    char name[32];
    unsigned pid, parent;
    unsigned long long start;
} process_t;

static int read_process(const env_view_t *view, const char *path,
                        process_t *ret_process)
{
    char *text = dscomm_priv_view_file(view, path);
    char *open = text ? strchr(text, '(') : NULL;
    char *close = open ? strrchr(open, ')') : NULL;
    int found = 0;

    if (close) {
        *close = '\0';
        g_strlcpy(ret_process->name, open + 1, sizeof ret_process->name);
        found = sscanf(text, "%u", &ret_process->pid) +
                sscanf(close + 1,
                       " %*c %u %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u "
                       "%*d %*d %*d %*d %*d %*d %llu",
                       &ret_process->parent, &ret_process->start);
    }
    g_free(text);
    return found == 3 ? 0 : -1;
}

char *dscomm_priv_view_ancestor(const env_view_t *view, const char *name)
{
    char path[48] = "/proc/self/stat";
    process_t process;

    /* reading the process's own file takes the kernel as long as any other */
    if (!*view->root)
        snprintf(path, sizeof path, "/proc/%d/stat", (int)getppid());
    for (int i = 0; i < ANCESTORS_MAX; i++) {
        if (read_process(view, path, &process))
            return NULL;
        if (strcmp(process.name, name) == 0)
            return g_strdup_printf("%s/%u/%llu", name, process.pid,
                                   process.start);
        snprintf(path, sizeof path, "/proc/%u/stat", process.parent);
    }
    return NULL;
}

int dscomm_priv_view_descends(const env_view_t *view, const char *pid)
{
    char path[48] = "/proc/self/stat";
    process_t process;
    int64_t wanted;

    if (dscomm_priv_parse_decimal(pid, &wanted))
        return 0;
    if (!*view->root && (wanted == getpid() || wanted == getppid()))
        return 1;
    for (int i = 0; i < ANCESTORS_MAX; i++) {
        if (read_process(view, path, &process))
            return 0;
        if (process.pid == wanted || process.parent == wanted)
            return 1;
        snprintf(path, sizeof path, "/proc/%u/stat", process.parent);
    }
    return 0;
}

int dscomm_priv_is_host(const char *text)
{
    const unsigned char *c = (const unsigned char *)text;

    while (*c > ' ' && *c != 0x7f)
        c++;
    return !*c && *text && (const char *)c - text <= HOST_MAX_BYTES;
}

int dscomm_priv_is_loopback(const char *text)
{
    int is_number = !text[strspn(text, "0123456789.")];

    return (is_number && g_str_has_prefix(text, "127.")) ||
           g_ascii_strcasecmp(text, "localhost") == 0 ||
           strcmp(text, "::1") == 0 || strcmp(text, "[::1]") == 0;
}
