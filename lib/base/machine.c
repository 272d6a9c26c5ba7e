/* SPDX-License-Identifier: BSD-3-Clause */
/* The facts of a machine, see machine.h. They do not depend on the processors
 * to which a process is bound. */
#include "config.h"

#include "lib/base/machine.h"

#include <glib.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE_MAX_BYTES 512
#define CACHES_MAX 16 /* caches of a processor that are looked at */
#define PROCESSORS_MAX (1 << 20)

static FILE *open_below(const char *root, const char *path)
{
    char full[PATH_MAX];

    if (g_snprintf(full, sizeof full, "%s%s", root, path) >= (int)sizeof full)
        return NULL;
    return fopen(full, "re");
}

/* Reads the first line of a file, without its end; false: there is none. */
static bool read_line(const char *root, const char *path, char *line,
                      size_t size)
{
    FILE *file = open_below(root, path);
    bool got;

    if (!file)
        return false;
    got = fgets(line, (int)size, file) != NULL;
    fclose(file);
    if (got)
        line[strcspn(line, "\n")] = '\0';
    return got && *line;
}

/* Appends text to value, with single blanks and without characters that are
 * not printable. */
static void value_append(char value[DSCOMM_MACHINE_FACT_MAX], const char *text)
{
    size_t length = strlen(value);

    for (; *text && length + 1 < DSCOMM_MACHINE_FACT_MAX; text++) {
        const bool blank = !g_ascii_isgraph(*text);

        if (blank && (!length || value[length - 1] == ' '))
            continue;
        value[length++] = blank ? ' ' : *text;
    }
    while (length && value[length - 1] == ' ')
        length--;
    value[length] = '\0';
}

/* The lines of /proc/cpuinfo that tell the model of a processor: three of x86,
 * of which the name alone is not exact in virtual machines, one of POWER, one
 * of RISC-V, and three of Arm. */
static const struct {
    const char *key, *prefix;
} models[] = {
    {"cpu family", "family "},
    {"model", "model "},
    {"model name", ""},
    {"cpu", ""},
    {"uarch", ""},
    {"CPU implementer", "implementer "},
    {"CPU variant", "variant "},
    {"CPU part", "part "},
};

/* Appends the value of a line of /proc/cpuinfo, if it tells the model. */
static void model_take(char *line, char value[DSCOMM_MACHINE_FACT_MAX])
{
    char *colon = strchr(line, ':');

    if (!colon)
        return;
    *colon = '\0';
    for (size_t i = 0; i < G_N_ELEMENTS(models); i++) {
        if (strcmp(g_strchomp(line), models[i].key))
            continue;
        if (*value)
            g_strlcat(value, ", ", DSCOMM_MACHINE_FACT_MAX);
        g_strlcat(value, models[i].prefix, DSCOMM_MACHINE_FACT_MAX);
        value_append(value, colon + 1);
    }
}

/* Reads what /proc/cpuinfo says of the first processor; a blank line ends
 * that, except before anything is known. */
static void find_processor(const char *root,
                           char value[DSCOMM_MACHINE_FACT_MAX])
{
    FILE *file = open_below(root, "/proc/cpuinfo");
    char line[LINE_MAX_BYTES];

    while (file && fgets(line, sizeof line, file) && (*line != '\n' || !*value))
        model_take(line, value);
    if (file)
        fclose(file);
}

/* Counts the numbers in a list such as "0-3,8"; 0 if it is malformed. */
static int count_listed(const char *list)
{
    const char *at = list - 1;
    int count = 0;

    do {
        char *end;
        long from = strtol(++at, &end, 10), to = from;

        if (end != at && *end == '-')
            to = strtol(end + 1, &end, 10);
        if (end == at || from < 0 || to < from || to - from >= PROCESSORS_MAX)
            return 0;
        count += (int)(to - from) + 1;
        at = end;
    } while (*at == ',' && count < PROCESSORS_MAX);
    return *at ? 0 : count;
}

static void find_count(const char *root, const char *path,
                       char value[DSCOMM_MACHINE_FACT_MAX])
{
    char line[LINE_MAX_BYTES];
    int count =
        read_line(root, path, line, sizeof line) ? count_listed(line) : 0;

    if (count > 0)
        g_snprintf(value, DSCOMM_MACHINE_FACT_MAX, "%d", count);
}

static void find_processors(const char *root,
                            char value[DSCOMM_MACHINE_FACT_MAX])
{
    find_count(root, "/sys/devices/system/cpu/online", value);
}

static void find_nodes(const char *root, char value[DSCOMM_MACHINE_FACT_MAX])
{
    find_count(root, "/sys/devices/system/node/online", value);
}

/* Reads "32768K" as bytes; 0 if it is malformed. */
static guint64 size_bytes(const char *text)
{
    char *end;
    guint64 size = g_ascii_strtoull(text, &end, 10);

    return size << (*end == 'K' ? 10 : *end == 'M' ? 20 : 0);
}

/* Finds the cache of the highest level. */
static void find_cache(const char *root, char value[DSCOMM_MACHINE_FACT_MAX])
{
    static const char folder[] = "/sys/devices/system/cpu/cpu0/cache/index";
    char path[sizeof folder + 32], line[LINE_MAX_BYTES];
    int highest = 0;

    for (int i = 0; i < CACHES_MAX; i++) {
        guint64 size;
        int level;

        g_snprintf(path, sizeof path, "%s%d/level", folder, i);
        if (!read_line(root, path, line, sizeof line))
            return;
        level = atoi(line);
        g_snprintf(path, sizeof path, "%s%d/size", folder, i);
        if (level <= highest || !read_line(root, path, line, sizeof line) ||
            !(size = size_bytes(line)))
            continue;
        highest = level;
        g_snprintf(value, DSCOMM_MACHINE_FACT_MAX, "%" G_GUINT64_FORMAT, size);
    }
}

static const struct {
    const char *name;
    void (*find)(const char *root, char value[DSCOMM_MACHINE_FACT_MAX]);
} facts[DSCOMM_MACHINE_FACTS] = {
    {"processor", find_processor},
    {"processors", find_processors},
    {"cache", find_cache},
    {"numa_nodes", find_nodes},
};

void dscomm_priv_machine_read(
    const char *root, dscomm_machine_fact_t ret_facts[DSCOMM_MACHINE_FACTS])
{
    for (int i = 0; i < DSCOMM_MACHINE_FACTS; i++) {
        ret_facts[i].name = facts[i].name;
        ret_facts[i].value[0] = '\0';
        facts[i].find(root, ret_facts[i].value);
        if (!ret_facts[i].value[0])
            g_strlcpy(ret_facts[i].value, "unknown", DSCOMM_MACHINE_FACT_MAX);
    }
}
