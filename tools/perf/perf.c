/* SPDX-License-Identifier: BSD-3-Clause */
/* `dscomm perf`: joins the launcher's job, or starts its own ranks, each of
 * which is this program again. */
#include "config.h"

#include "tools/common/topology.h"
#include "tools/perf/options.h"
#include "tools/perf/run.h"
#include "tools/run/job.h"

#define GRACE_US (5 * G_USEC_PER_SEC)

/* The same command line in as many processes. */
static int start_ranks(const perf_options_t *options, char **words)
{
    const tool_limits_t limits = {.grace_us = GRACE_US, .ranks_explain = TRUE};
    char *self = g_file_read_link("/proc/self/exe", NULL);
    GPtrArray *argv = g_ptr_array_new();
    int status = perf_check_files(options);

    g_ptr_array_add(argv, self ? self : (char *)"dscomm");
    for (int i = 0; words[i]; i++)
        g_ptr_array_add(argv, words[i]);
    g_ptr_array_add(argv, NULL);
    if (status == TOOL_OK)
        status =
            tool_job_run("perf", (char **)argv->pdata, options->ranks, &limits);
    g_ptr_array_free(argv, TRUE);
    g_free(self);
    return status;
}

/* A process without other ranks is alone, or was started without a launcher. */
static int join_or_start(const perf_options_t *options,
                         const tool_topology_t *topology, char **words)
{
    dscomm_init_attr_t attr = DSCOMM_INIT_ATTR_INIT;
    dscomm_group_t *world;
    int status;

    attr.backend = options->backend;
    attr.name = "perf";
    if (dscomm_init(&attr, &world) != DSCOMM_OK)
        return perf_fail("start");
    int ranks = dscomm_group_size(world);
    gboolean start = ranks == 1 && options->ranks > 1;
    if (start)
        status = TOOL_OK;
    else
        status = perf_run(options, topology, world);
    if (dscomm_finalize(world) != DSCOMM_OK && status == TOOL_OK && !start)
        status = perf_fail("end");
    return start ? start_ranks(options, words) : status;
}

int tool_perf(int argc, char **argv)
{
    perf_options_t options;
    char **words = g_strdupv(argv);
    int status = perf_options_read(argc, argv, &options);

    if (status == TOOL_OK) {
        /* Before the library starts threads, see topology.h */
        tool_topology_t *topology = tool_topology_new(FALSE);

        status = join_or_start(&options, topology, words);
        tool_topology_free(topology);
        perf_options_clear(&options);
    }
    g_strfreev(words);
    return status;
}
