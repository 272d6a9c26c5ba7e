/* SPDX-License-Identifier: BSD-3-Clause */
/* Files of hosts, see hosts.h; the form is Open MPI's, or MPICH's. */
#include "config.h"

#include "tools/common/tool.h"
#include "tools/run/hosts.h"
#include "tools/run/spawn.h"

#include <string.h>

/* Characters of names and addresses besides letters and digits. A name must not
 * begin with '-', because it would be an option of ssh. */
#define NAME_CHARACTERS "._-@%"

static bool read_slots(const char *text, int *ret_slots)
{
    gint64 number;

    if (!g_ascii_string_to_signed(text, 10, 1, TOOL_RANKS_MAX, &number, NULL))
        return false;
    *ret_slots = (int)number;
    return true;
}

static bool is_name(const char *text)
{
    if (!*text || *text == '-')
        return false;
    for (; *text; text++)
        if (!g_ascii_isalnum(*text) && !strchr(NAME_CHARACTERS, *text))
            return false;
    return true;
}

static bool is_ipv6(const char *text)
{
    return *text && strspn(text, "0123456789abcdefABCDEF:.") == strlen(text) &&
           strchr(text, ':');
}

/* Reads "HOST", "HOST:N", "[IPV6]" or "[IPV6]:N". Returns what is wrong, or
 * NULL. */
static const char *read_host(char *word, tool_host_t *host)
{
    char *end = *word == '[' ? strchr(word, ']') : strchr(word, ':');

    if (*word == '[') {
        char *inner = end ? g_strndup(word + 1, (gsize)(end - word) - 1) : NULL;
        const bool valid = inner && is_ipv6(inner);

        g_free(inner);
        if (!valid || (end[1] && end[1] != ':'))
            return "it must be [ADDRESS] or [ADDRESS]:N";
        end = end[1] ? end + 1 : NULL;
    } else if (end && strchr(end + 1, ':')) {
        return "an IPv6 address needs brackets, as in [::1]";
    }
    if (end && !read_slots(end + 1, &host->ranks))
        return "the slots after ':' must be 1 to 4096";
    if (end)
        *end = '\0';
    if (*word != '[' && !is_name(word))
        return "that is not the name of a host";
    host->name = word;
    return NULL;
}

/* Reads the words of a line. Returns what is wrong, or NULL. */
static const char *read_line(char **words, tool_host_t *host)
{
    const char *wrong = read_host(words[0], host);

    for (int i = 1; words[i] && !wrong; i++) {
        if (!*words[i])
            continue;
        if (g_str_has_prefix(words[i], "max_slots=") ||
            g_str_has_prefix(words[i], "max-slots="))
            continue; /* Open MPI's */
        if (!g_str_has_prefix(words[i], "slots="))
            return "after the host there may be slots=N, and no more";
        if (host->ranks)
            return "the slots are given twice";
        if (!read_slots(words[i] + strlen("slots="), &host->ranks))
            return "slots must be 1 to 4096";
    }
    return wrong;
}

/* Adds the host, or its slots if it is there. */
static const char *add_host(GArray *list, const tool_host_t *host)
{
    tool_host_t copy = *host;

    for (guint i = 0; i < list->len; i++) {
        tool_host_t *other = &g_array_index(list, tool_host_t, i);

        if (g_ascii_strcasecmp(other->name, host->name))
            continue;
        other->ranks = MAX(other->ranks, 1) + MAX(host->ranks, 1);
        return other->ranks > TOOL_RANKS_MAX
                   ? "the host's slots are more than 4096 in all"
                   : NULL;
    }
    copy.name = g_strdup(host->name);
    g_array_append_val(list, copy);
    return NULL;
}

int tool_hosts_read(tool_hosts_t *hosts)
{
    GError *error = NULL;
    char *text, **lines;
    int status = TOOL_OK;

    if (!g_file_get_contents(hosts->path, &text, NULL, &error)) {
        tool_fail(0, "run", "--hostfile: %s", error->message);
        g_error_free(error);
        return TOOL_USAGE;
    }
    hosts->list = g_array_new(false, true, sizeof(tool_host_t));
    lines = g_strsplit(text, "\n", -1);
    for (int i = 0; lines[i] && status == TOOL_OK; i++) {
        tool_host_t host = {NULL, 0};
        const char *wrong = NULL;
        char **words;

        lines[i][strcspn(lines[i], "#")] = '\0';
        words = g_strsplit_set(g_strstrip(lines[i]), " \t\r", -1);
        if (words[0] && *words[0])
            wrong = read_line(words, &host);
        if (!wrong && host.name)
            wrong = add_host(hosts->list, &host);
        if (wrong)
            status = tool_fail(TOOL_USAGE, "run", "%s:%d: %s: %s", hosts->path,
                               i + 1, lines[i], wrong);
        g_strfreev(words);
    }
    g_strfreev(lines);
    g_free(text);
    if (status == TOOL_OK && hosts->list->len == 0)
        status = tool_fail(TOOL_USAGE, "run",
                           "%s names no host; write one a line", hosts->path);
    return status;
}

void tool_hosts_keep(tool_hosts_t *hosts, guint count)
{
    for (guint i = count; i < hosts->list->len; i++)
        g_free(g_array_index(hosts->list, tool_host_t, i).name);
    g_array_set_size(hosts->list, MIN(count, hosts->list->len));
}

char *tool_hosts_address(const tool_host_t *host)
{
    const char *at = strchr(host->name, '@');

    return g_strdup(at ? at + 1 : host->name);
}

void tool_hosts_free(tool_hosts_t *hosts)
{
    if (hosts->list) {
        tool_hosts_keep(hosts, 0);
        g_array_free(hosts->list, true);
    }
    g_free(hosts->path);
    g_free(hosts->rsh);
}
