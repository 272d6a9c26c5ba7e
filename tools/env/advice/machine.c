/* SPDX-License-Identifier: BSD-3-Clause */
/* RDMA devices, from Linux's files. */
#include "config.h"

#include "tools/env/advice/machine.h"

#include <glob.h>
#include <string.h>

char *tool_root_file(const char *root, const char *path)
{
    char *name = g_strconcat(root, "/", path, NULL);
    char *text = NULL;

    g_file_get_contents(name, &text, NULL, NULL);
    g_free(name);
    return text;
}

/* Whether a file of a device's folder has mark; file is a glob. */
static gboolean device_has(const char *device, const char *file,
                           const char *mark)
{
    char *pattern = g_build_filename(device, file, NULL), *text;
    gboolean has = FALSE;
    glob_t files = {0};

    glob(pattern, 0, NULL, &files);
    for (size_t i = 0; i < files.gl_pathc && !has; i++) {
        if (g_file_get_contents(files.gl_pathv[i], &text, NULL, NULL)) {
            has = strstr(text, mark) != NULL;
            g_free(text);
        }
    }
    globfree(&files);
    g_free(pattern);
    return has;
}

/* HPE's Slingshot has a class of its own, and no ports. */
static gboolean is_slingshot(const char *device)
{
    return strstr(device, "/sys/class/cxi/") != NULL;
}

/* [device DRIVER] of the rules, or NULL if UCX drives it. The driver's name is
 * the kernel's, or that of the device, as always for Slingshot. */
static const char *device_group(const advice_state_t *state, const char *device)
{
    char *link = g_build_filename(device, "device/driver", NULL);
    char *target = is_slingshot(device) ? NULL : g_file_read_link(link, NULL);
    char *name = g_path_get_basename(target ? target : device);
    const char *found = NULL;

    for (guint i = 0; i < state->rules->len && !found; i++) {
        const advice_rule_t *rule = g_ptr_array_index(state->rules, i);

        if (strcmp(rule->kind, "device") == 0 &&
            g_str_has_prefix(name, rule->name))
            found = rule->group;
    }
    g_free(name);
    g_free(target);
    g_free(link);
    return found;
}

/* Why UCX does not drive a device, or NULL. */
static const char *device_problem(advice_state_t *state, const char *device)
{
    const char *group = device_group(state, device);
    const char *mtl;

    if (!is_slingshot(device) && !device_has(device, "ports/*/state", "ACTIVE"))
        return "has no active port";
    tool_advice_set_fact(state, "device", TRUE);
    if (device_has(device, "node_type", "RNIC"))
        return "is iWARP, which UCX does not drive";
    if (!group)
        return NULL;
    if (!*tool_advice_fact(state, "fabric")) {
        mtl = tool_advice_rules_get(state, group, "mtl");
        tool_advice_set(state, "fabric", "%s", strrchr(device, '/') + 1);
        tool_advice_set(state, "mtl", "%s", mtl ? mtl : "");
    }
    return tool_advice_rules_get(state, group, "why");
}

/* Those of a class, until UCX drives one. */
static void devices_read(advice_state_t *state, const char *class)
{
    char *pattern =
        g_strdup_printf("%s/sys/class/%s/*", state->question->root, class);
    glob_t devices = {0};

    glob(pattern, 0, NULL, &devices);
    for (size_t i = 0; i < devices.gl_pathc; i++) {
        const char *name = strrchr(devices.gl_pathv[i], '/') + 1;
        const char *problem = device_problem(state, devices.gl_pathv[i]);

        if (problem && !*tool_advice_fact(state, "no_rdma"))
            tool_advice_set(state, "no_rdma", "%s %s", name, problem);
        if (!problem) {
            tool_advice_set(state, "rdma", "%s", name);
            break;
        }
    }
    globfree(&devices);
    g_free(pattern);
}

void tool_advice_devices(advice_state_t *state)
{
    static const char *const facts[] = {"rdma", "no_rdma", "fabric", "mtl",
                                        "device"};

    for (size_t i = 0; i < G_N_ELEMENTS(facts); i++)
        tool_advice_set_fact(state, facts[i], FALSE);
    devices_read(state, "infiniband");
    devices_read(state, "cxi");
}
