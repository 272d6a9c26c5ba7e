/* SPDX-License-Identifier: BSD-3-Clause */
/* Sets of processors, see processors.h. */
#include "config.h"

#include "tools/common/processors.h"

#include <stdlib.h>
#include <string.h>

char *tool_root_file(const char *root, const char *path)
{
    char *name = g_strconcat(root, "/", path, NULL);
    char *text = NULL;

    g_file_get_contents(name, &text, NULL, NULL);
    g_free(name);
    return text;
}

static int compare(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

GPtrArray *tool_root_names(const char *root, const char *path)
{
    char *name = g_strconcat(root, "/", path, NULL);
    GPtrArray *list = g_ptr_array_new_with_free_func(g_free);
    GDir *dir = g_dir_open(name, 0, NULL);
    const char *entry;

    while (dir && (entry = g_dir_read_name(dir)))
        g_ptr_array_add(list, g_strdup(entry));
    if (dir)
        g_dir_close(dir);
    g_free(name);
    g_ptr_array_sort(list, compare);
    return list;
}

/* "0-3,8"; FALSE where it is none. */
static gboolean parse(const char *text, tool_processors_t *set)
{
    memset(set, 0, sizeof *set);
    while (g_ascii_isdigit(*text)) {
        char *end;
        unsigned long first = strtoul(text, &end, 10), last = first;

        if (*end == '-')
            last = strtoul(end + 1, &end, 10);
        if (first > last || last >= TOOL_PROCESSORS_MAX)
            return FALSE;
        memset(set->has + first, 1, last - first + 1);
        text = end + (*end == ',');
    }
    return *text == 0 || g_ascii_isspace(*text);
}

gboolean tool_processors_read(const char *root, const char *path,
                              tool_processors_t *ret_set)
{
    char *text = tool_root_file(root, path);
    gboolean good = text && parse(text, ret_set);

    g_free(text);
    return good;
}

gboolean tool_processors_online(const char *root, tool_processors_t *ret_set)
{
    return tool_processors_read(root, "sys/devices/system/cpu/online", ret_set);
}

/* The mask that this process was started with. */
static gboolean read_mask(const char *root, tool_processors_t *ret_set)
{
    static const char mark[] = "\nCpus_allowed_list:";
    char *status = tool_root_file(root, "proc/self/status");
    const char *line = strstr(status ? status : "", mark);
    gboolean good = FALSE;

    if (line) {
        line += strlen(mark);
        good = parse(line + strspn(line, " \t"), ret_set);
    }
    g_free(status);
    return good;
}

gboolean tool_processors_allowed(const char *root, tool_processors_t *ret_set)
{
    tool_processors_t mask;

    if (!tool_processors_online(root, ret_set))
        return FALSE;
    if (read_mask(root, &mask))
        tool_processors_intersect(ret_set, &mask);
    return TRUE;
}

void tool_processors_siblings(const char *root, int processor,
                              tool_processors_t *ret_set)
{
    char *path = g_strdup_printf(
        "sys/devices/system/cpu/cpu%d/topology/thread_siblings_list",
        processor);

    if (!tool_processors_read(root, path, ret_set)) {
        memset(ret_set, 0, sizeof *ret_set);
        ret_set->has[processor] = 1;
    }
    g_free(path);
}

void tool_processors_keep_cores(const char *root, tool_processors_t *set)
{
    tool_processors_t siblings;

    for (int i = 0; i < TOOL_PROCESSORS_MAX; i++) {
        if (!set->has[i])
            continue;
        tool_processors_siblings(root, i, &siblings);
        for (int j = i + 1; j < TOOL_PROCESSORS_MAX; j++)
            set->has[j] &= !siblings.has[j];
    }
}

void tool_processors_intersect(tool_processors_t *set,
                               const tool_processors_t *other)
{
    for (int i = 0; i < TOOL_PROCESSORS_MAX; i++)
        set->has[i] &= other->has[i];
}

int tool_processors_count(const tool_processors_t *set)
{
    int count = 0;

    for (int i = 0; i < TOOL_PROCESSORS_MAX; i++)
        count += set->has[i];
    return count;
}

char *tool_processors_text(const tool_processors_t *set)
{
    GString *text = g_string_new(NULL);

    for (int i = 0; i < TOOL_PROCESSORS_MAX; i++) {
        const int first = i;

        if (!set->has[i])
            continue;
        while (i + 1 < TOOL_PROCESSORS_MAX && set->has[i + 1])
            i++;
        g_string_append_printf(text, "%s%d", text->len ? "," : "", first);
        if (i > first)
            g_string_append_printf(text, "-%d", i);
    }
    return g_string_free(text, FALSE);
}
