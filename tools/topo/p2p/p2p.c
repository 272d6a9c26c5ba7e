/* SPDX-License-Identifier: BSD-3-Clause */
/* `dscomm topo --p2p`, see p2p.h. */
#include "config.h"

#include "tools/topo/p2p/p2p.h"

#include "tools/common/canvas.h"
#include "tools/common/errors.h"
#include "tools/common/save.h"
#include "tools/common/terminal.h"
#include "tools/common/tool.h"
#include "tools/run/job.h"
#include "tools/topo/output.h"
#include "tools/topo/p2p/cores.h"
#include "tools/topo/p2p/devices.h"
#include "tools/topo/p2p/heat.h"
#include "tools/topo/p2p/ranks.h"
#include "tools/topo/p2p/write.h"

#include <dscomm/dscomm.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define GRACE_US (5 * G_USEC_PER_SEC)
/* Defaults, and the largest values: tensors of one pair may have so many bytes
 * together, and are numbered by tags. */
#define TENSORS 10
#define TENSORS_MOST 1024
#define DEVICE_ELEMENTS 10000000
#define HOST_ELEMENTS 1000000
#define BYTES_MOST ((gint64)1 << 40)
#define ITERATIONS 20
#define ITERATIONS_MOST 100000
#define WARMUPS 2
#define ENDS_MOST 16

static int fail(const topo_p2p_t *options, const char *problem)
{
    return tool_fail(TOOL_FAILED, options->command, "%s", problem);
}

static void append_text(const GPtrArray *list, GString *text)
{
    topo_pairs_text(list, false, text);
}

/* The forms of the result but pictures. */
static void (*const appends[TOPO_FORMATS_PAIRS])(const GPtrArray *list,
                                                 GString *text) = {
    [TOPO_FORMAT_TEXT] = append_text,
    [TOPO_FORMAT_JSON] = topo_pairs_json,
};

static topo_format_t format_of(const topo_p2p_t *options)
{
    return topo_format_find(options->format, options->output);
}

/* Returns what is wrong with the format, or NULL. */
static const char *format_problem(const topo_p2p_t *options)
{
    const topo_format_t format = format_of(options);

    if (format < TOPO_FORMATS_PAIRS || format == TOPO_FORMAT_PICTURE)
        return NULL;
    return options->format
               ? "--format must be text or json for copies"
               : "for copies, --output can end in .txt or .json, or .svg or "
                 ".png for a picture, not in .dot or .xml, nor as other "
                 "pictures do";
}

static bool is_given(gint64 number)
{
    return number != TOPO_NOT_GIVEN;
}

static void default_set(int *number, int value)
{
    *number = is_given(*number) ? *number : value;
}

/* Returns what is wrong with the options, or NULL; sets those that were not
 * given. */
static const char *options_end(topo_p2p_t *o)
{
    const bool is_device = !o->host && !o->ranks;

    if (format_problem(o))
        return format_problem(o);
    if (o->host && o->ranks)
        return "--host and --ranks cannot be used together";
    if ((is_given(o->rank_count) || o->backend) && !o->ranks)
        return "-n and --backend need --ranks";
    if (o->trace && !strcmp(o->trace, "-"))
        return "--trace needs the name of a file, not '-'";
    if (is_given(o->most) && !o->host)
        return "--most needs --host";
    default_set(&o->tensors, TENSORS);
    default_set(&o->iterations, ITERATIONS);
    default_set(&o->warmups, WARMUPS);
    default_set(&o->most, ENDS_MOST);
    if (!is_given(o->elements))
        o->elements = is_device ? DEVICE_ELEMENTS : HOST_ELEMENTS;
    if (o->tensors < 1 || o->tensors > TENSORS_MOST)
        return "--tensors must be 1 to 1024";
    if (o->elements < 1 || o->elements > BYTES_MOST / 4 / o->tensors)
        return "--elements must be at least 1, and all tensors at most 1 TiB";
    if (o->iterations < 1 || o->iterations > ITERATIONS_MOST ||
        o->warmups < 0 || o->warmups > ITERATIONS_MOST)
        return "--iters must be 1 to 100000, and --warmup_iters 0 to 100000";
    if (o->most < 2)
        return "--most must be at least 2";
    if (is_given(o->rank_count) && (o->rank_count < 1 || o->rank_count > 4096))
        return "-n must be 1 to 4096";
    o->rank_count = is_given(o->rank_count) ? o->rank_count : 0;
    return NULL;
}

/* Whether a file can be written, before minutes of measuring. */
static char *path_problem(const char *option, const char *path)
{
    tool_save_t *save = tool_save_new(path);
    char *problem =
        save ? NULL
             : g_strdup_printf("%s %s: %s", option, path, g_strerror(errno));

    if (save)
        tool_save_end(save, NULL);
    return problem;
}

static char *outputs_problem(const topo_p2p_t *o)
{
    char *problem = o->trace ? path_problem("--trace", o->trace) : NULL;

    if (problem || !o->output)
        return problem;
    if (format_of(o) == TOPO_FORMAT_PICTURE) {
        tool_canvas_t *canvas = tool_canvas_new(o->output, 1, 1, &problem);

        tool_canvas_end(canvas, false);
        return problem;
    }
    return path_problem("--output", o->output);
}

static int picture_write(const topo_p2p_t *options, const GPtrArray *list)
{
    char *problem = topo_heat(list, options->output);
    const int status = problem ? fail(options, problem) : TOOL_OK;

    g_free(problem);
    return status;
}

static int result_write(const topo_p2p_t *options, const GPtrArray *list)
{
    const topo_format_t format = format_of(options);
    GString *text;
    int status;

    if (format == TOPO_FORMAT_PICTURE)
        return picture_write(options, list);
    text = g_string_new(NULL);
    if (!options->output && format == TOPO_FORMAT_TEXT)
        topo_pairs_text(list, tool_has_colours(STDOUT_FILENO), text);
    else
        appends[format](list, text);
    status = topo_output_write(options->command, "--output", options->output,
                               text->str);
    g_string_free(text, TRUE);
    return status;
}

static int trace_write(const topo_p2p_t *options, const GPtrArray *list)
{
    GString *text = g_string_new(NULL);
    int status;

    topo_pairs_trace(list, text);
    status = topo_output_write(options->command, "--trace", options->trace,
                               text->str);
    g_string_free(text, TRUE);
    return status;
}

static int show(const topo_p2p_t *options, const GPtrArray *list)
{
    const int status = result_write(options, list);

    return status == TOOL_OK && options->trace ? trace_write(options, list)
                                               : status;
}

static topo_copies_t copies_of(const topo_p2p_t *options)
{
    return (topo_copies_t){.tensors = (guint)options->tensors,
                           .elements = (gsize)options->elements,
                           .iterations = (guint)options->iterations,
                           .warmups = (guint)options->warmups,
                           .traced = options->trace != NULL};
}

static void pairs_clear(void *pairs)
{
    topo_pairs_free(pairs);
}

/* Measures between cores, and between NUMA nodes if there are several. */
static char *host_measure(const topo_p2p_t *options, GPtrArray *list)
{
    const topo_copies_t copies = copies_of(options);
    dscomm_topology_t *topology = tool_topology_new(false);
    char *problem = NULL;

    if (!topology)
        return g_strdup("hwloc cannot find this machine's topology");
    for (topo_cores_t kind = TOPO_CORES; kind <= TOPO_NUMA_NODES; kind++) {
        topo_pairs_t *pairs =
            topo_cores(topology, kind, &copies, (guint)options->most, &problem);

        if (pairs)
            g_ptr_array_add(list, pairs);
        if (problem)
            break;
    }
    dscomm_priv_topology_free(topology);
    if (!problem && !list->len)
        problem = g_strdup("this process may use one core only, so there are "
                           "no pairs; mpirun binds to cores, unless it has "
                           "--bind-to none");
    return problem;
}

static char *devices_measure(const topo_p2p_t *options, GPtrArray *list)
{
    const topo_copies_t copies = copies_of(options);
    char *problem = NULL;
    topo_pairs_t *pairs = topo_devices(options->tree, &copies, &problem);

    if (pairs)
        g_ptr_array_add(list, pairs);
    return problem;
}

static int here(const topo_p2p_t *options)
{
    GPtrArray *list = g_ptr_array_new_with_free_func(pairs_clear);
    char *problem = options->host ? host_measure(options, list)
                                  : devices_measure(options, list);
    const int status = problem ? fail(options, problem) : show(options, list);

    g_free(problem);
    g_ptr_array_unref(list);
    return status;
}

/* Prints dscomm_last_error(), once for all ranks that share it. */
static int fail_rank(const topo_p2p_t *options, const char *what)
{
    char *sentence = g_strdup_printf("%s: %s", what, dscomm_last_error());
    int said;

    if (tool_errors_is_first(sentence, &said)) {
        fail(options, sentence);
        tool_errors_said(said);
    }
    g_free(sentence);
    return TOOL_FAILED;
}

/* Tells, on rank 0, why there are no figures. */
static int outcome_tell(const topo_p2p_t *options, topo_outcome_t outcome,
                        int rank)
{
    const topo_copies_t copies = copies_of(options);

    if (rank)
        return TOOL_FAILED;
    if (outcome == TOPO_WRONG)
        return fail(options, "a rank has received other bytes than were sent");
    return tool_fail(TOOL_FAILED, options->command,
                     "a host has no memory for twice %.4g MB for each of its "
                     "ranks, or this is more than half of what is free: use "
                     "smaller --elements",
                     (double)topo_copies_bytes(&copies) / 1e6);
}

/* Returns TOOL_OK if so many ranks can be measured. */
static int ranks_check(const topo_p2p_t *options, int ranks, int rank)
{
    if (ranks >= 2 && (!options->rank_count || options->rank_count == ranks))
        return TOOL_OK;
    if (rank)
        return TOOL_USAGE;
    if (ranks < 2)
        return tool_fail(TOOL_USAGE, options->command,
                         "copies between ranks need at least two of them: give "
                         "-n, or use a launcher");
    return tool_fail(TOOL_USAGE, options->command,
                     "-n %d: the launcher has started %d ranks; leave -n out",
                     options->rank_count, ranks);
}

static int rank_run(const topo_p2p_t *options,
                    const dscomm_topology_t *topology, dscomm_group_t *world)
{
    const topo_copies_t copies = copies_of(options);
    const int rank = dscomm_group_rank(world);
    GPtrArray *list = g_ptr_array_new_with_free_func(pairs_clear);
    topo_outcome_t outcome = TOPO_MEASURED;
    topo_pairs_t *pairs = NULL;
    int status = ranks_check(options, dscomm_group_size(world), rank);

    if (status == TOOL_OK &&
        topo_ranks(world, topology, &copies, &outcome, &pairs) < 0)
        status = fail_rank(options, "copies");
    else if (outcome != TOPO_MEASURED)
        status = outcome_tell(options, outcome, rank);
    if (pairs) {
        g_ptr_array_add(list, pairs);
        status = show(options, list);
    }
    g_ptr_array_unref(list);
    return status;
}

static int ranks_start(const topo_p2p_t *options, char **words)
{
    const tool_limits_t limits = {
        .grace_us = GRACE_US, .ranks_explain = true, .bind = "core"};

    return tool_job_run_self(options->command, words, options->rank_count,
                             &limits);
}

static int ranks_join(const topo_p2p_t *options,
                      const dscomm_topology_t *topology, char **words)
{
    dscomm_init_attr_t attr = DSCOMM_INIT_ATTR_INIT;
    dscomm_group_t *world;
    int status;

    if (tool_job_is_needed(options->rank_count))
        return ranks_start(options, words);
    attr.backend = options->backend;
    attr.name = options->command;
    if (dscomm_init(&attr, &world) != DSCOMM_OK)
        return fail_rank(options, "start");
    status = rank_run(options, topology, world);
    if (dscomm_finalize(world) != DSCOMM_OK && status == TOOL_OK)
        status = fail_rank(options, "end");
    return status;
}

int topo_p2p(topo_p2p_t *options, char **words)
{
    const char *problem = options_end(options);
    dscomm_topology_t *topology;
    char *why;
    int status;

    if (problem)
        return tool_fail(TOOL_USAGE, options->command, "%s", problem);
    why = outputs_problem(options);
    if (why) {
        status = fail(options, why);
        g_free(why);
        return status;
    }
    if (!options->ranks)
        return here(options);
    topology = tool_topology_new(false);
    status = ranks_join(options, topology, words);
    dscomm_priv_topology_free(topology);
    return status;
}
