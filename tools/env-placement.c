/* SPDX-License-Identifier: BSD-3-Clause */
/* `dscomm env --placement`: which processors this rank should have, for people
 * and for programs, and binding to them. */
#include "config.h"

#include "tools/env-placement.h"
#include "tools/placement.h"
#include "tools/tool.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>

/* FALSE, and a sentence, where one of them is no PCI address. */
static gboolean check_devices(char *const *devices)
{
    for (int i = 0; devices && devices[i]; i++) {
        char *address = tool_pci_address(devices[i]);

        g_free(address);
        if (address)
            continue;
        tool_fail(0, "env",
                  "--device '%s' is no PCI address; give one as 0000:1a:00.0, "
                  "or the node's, with commas between, in the order of its "
                  "ranks",
                  devices[i]);
        return FALSE;
    }
    return TRUE;
}

/* NULL: a sentence went to stderr. */
static tool_placement_t *ask(const dscomm_env_t *env,
                             const tool_env_placement_t *options)
{
    char **devices =
        options->devices ? g_strsplit(options->devices, ",", -1) : NULL;
    const tool_placement_question_t question = {
        .root = "",
        .devices = (const char *const *)devices,
        .local_rank = dscomm_env_local_rank(env),
        .local_size = dscomm_env_local_size(env),
        .force = options->rebind,
    };
    tool_placement_t *placement =
        check_devices(devices) ? tool_place(&question) : NULL;

    g_strfreev(devices);
    return placement;
}

static void print(const dscomm_env_t *env, const tool_placement_t *placement,
                  GString *text)
{
    char *list = tool_processors_text(&placement->processors);

    g_string_append_printf(
        text, "rank %d of %d: %s%s%s\n", dscomm_env_rank(env),
        dscomm_env_world_size(env), placement->bind ? "processors " : "",
        placement->bind ? list : "", placement->bind ? "" : "not bound");
    g_string_append_printf(text, "  %s\n", placement->why);
    if (placement->warning)
        g_string_append_printf(text, "  warning: %s\n", placement->warning);
    g_free(list);
}

/* What it says has no characters that JSON escapes. */
static void print_json(const dscomm_env_t *env,
                       const tool_placement_t *placement, GString *text)
{
    char *list = tool_processors_text(&placement->processors);
    const char *quote = placement->warning ? "\"" : "";

    g_string_append_printf(
        text,
        "{\"rank\":%d,\"local_rank\":%d,\"bind\":%s,\"processors\":\"%s\","
        "\"cores\":%d,\"numa_node\":%d,\"why\":\"%s\",\"warning\":%s%s%s}\n",
        dscomm_env_rank(env), dscomm_env_local_rank(env),
        placement->bind ? "true" : "false", list, placement->cores,
        placement->node, placement->why, quote,
        placement->warning ? placement->warning : "null", quote);
    g_free(list);
}

int tool_env_placement(const dscomm_env_t *env,
                       const tool_env_placement_t *options, GString *text)
{
    tool_placement_t *placement = ask(env, options);

    if (!placement)
        return TOOL_USAGE;
    (options->json ? print_json : print)(env, placement, text);
    tool_placement_free(placement);
    return TOOL_OK;
}

static int apply(const tool_placement_t *placement)
{
    const size_t size = CPU_ALLOC_SIZE(TOOL_PROCESSORS_MAX);
    cpu_set_t *set = CPU_ALLOC(TOOL_PROCESSORS_MAX);
    char threads[16];
    int result;

    CPU_ZERO_S(size, set);
    for (int i = 0; i < TOOL_PROCESSORS_MAX; i++)
        if (placement->processors.has[i])
            CPU_SET_S((size_t)i, size, set);
    result = sched_setaffinity(0, size, set);
    CPU_FREE(set);
    if (result < 0)
        return tool_fail(TOOL_FAILED, "env",
                         "cannot bind to the processors that --placement "
                         "tells: %s",
                         g_strerror(errno));
    g_snprintf(threads, sizeof threads, "%d", placement->cores);
    setenv("OMP_NUM_THREADS", threads, 0);
    return TOOL_OK;
}

int tool_env_bind(const dscomm_env_t *env, const tool_env_placement_t *options)
{
    tool_placement_t *placement = ask(env, options);
    int status = placement ? TOOL_OK : TOOL_USAGE;

    if (!placement)
        return status;
    if (placement->warning)
        tool_fail(0, "env", "%s", placement->warning);
    if (placement->bind)
        status = apply(placement);
    tool_placement_free(placement);
    return status;
}
