/* SPDX-License-Identifier: BSD-3-Clause */
/* Counting the processors of a job by their affinity masks: a container may
 * have only some of the machine's processors, and a launcher may bind each rank
 * to its own. */
#include "config.h"

#include "lib/rendezvous/record.h"

#include "lib/base/node.h"

#include <glib.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#define PROCESSORS_MOST 65536 /* in a text */
#define OWN_MOST 8192 /* of a machine, by Linux */

/* Appends the ranges of set, as many as fit. */
static void append_list(char *text, const cpu_set_t *set, size_t size)
{
    const int count = (int)(8 * size);
    const char *comma = "";
    char range[32];

    for (int first = 0, last; first < count; first = last + 1) {
        last = first;
        if (!CPU_ISSET_S((size_t)first, size, set))
            continue;
        while (last + 1 < count && CPU_ISSET_S((size_t)last + 1, size, set))
            last++;
        snprintf(range, sizeof range, first == last ? "%s%d" : "%s%d-%d", comma,
                 first, last);
        if (strlen(text) + strlen(range) >= DSCOMM_PROCESSORS_MAX)
            return;
        strcat(text, range);
        comma = ",";
    }
}

void dscomm_priv_processors_own(char text[DSCOMM_PROCESSORS_MAX])
{
    cpu_set_t own[OWN_MOST / CPU_SETSIZE];
    char machine[DSCOMM_NODE_MAX];

    CPU_ZERO_S(sizeof own, own);
    dscomm_priv_node_machine(machine, sizeof machine);
    snprintf(text, DSCOMM_PROCESSORS_MAX, "%s ", machine);
    if (sched_getaffinity(0, sizeof own, own) == 0)
        append_list(text, own, sizeof own);
}

typedef struct {
    int ranks, processors;
    GByteArray *taken; /* of each processor */
} machine_t;

static void machine_free(gpointer data)
{
    machine_t *machine = data;

    g_byte_array_unref(machine->taken);
    g_free(machine);
}

static void machine_take(machine_t *machine, guint first, guint last)
{
    const guint known = machine->taken->len;

    if (last >= known) {
        g_byte_array_set_size(machine->taken, last + 1);
        memset(machine->taken->data + known, 0, last + 1 - known);
    }
    for (guint i = first; i <= last; i++) {
        machine->processors += !machine->taken->data[i];
        machine->taken->data[i] = 1;
    }
}

static void take_list(machine_t *machine, const char *text)
{
    for (;; text++) {
        char *end;
        guint64 first = g_ascii_strtoull(text, &end, 10), last = first;

        if (end != text && *end == '-') {
            text = end + 1;
            last = g_ascii_strtoull(text, &end, 10);
        }
        if (end == text || first > last || last >= PROCESSORS_MOST)
            return;
        machine_take(machine, (guint)first, (guint)last);
        text = end;
        if (*text != ',')
            return;
    }
}

static void machines_add(GHashTable *machines, const char *text)
{
    char *name = g_strndup(text, strcspn(text, " "));
    machine_t *machine = g_hash_table_lookup(machines, name);
    const char *blank = strchr(text, ' ');

    if (!machine) {
        machine = g_new0(machine_t, 1);
        machine->taken = g_byte_array_new();
        g_hash_table_insert(machines, g_strdup(name), machine);
    }
    g_free(name);
    machine->ranks++;
    if (blank)
        take_list(machine, blank + 1);
}

int dscomm_priv_processors_lack(const char *const *texts, int ranks)
{
    GHashTable *machines =
        g_hash_table_new_full(g_str_hash, g_str_equal, g_free, machine_free);
    GHashTableIter iter;
    gpointer value;
    int lack = 0;

    for (int i = 0; i < ranks; i++)
        machines_add(machines, texts[i]);
    g_hash_table_iter_init(&iter, machines);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        const machine_t *machine = value;

        lack |= machine->processors && machine->ranks > machine->processors;
    }
    g_hash_table_unref(machines);
    return lack;
}
