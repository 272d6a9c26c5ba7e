/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranks and their processors, see perf-ranks.h. */
#include "config.h"

#include "tools/perf/processors.h"
#include "tools/perf/ranks.h"

#include <string.h>
#include <unistd.h>

static dscomm_status_t meet(perf_run_t *run, dscomm_group_t *group)
{
    perf_rank_t self = {.pid = getpid(), .processor = -1};

    if (gethostname(self.host, sizeof self.host - 1) != 0)
        strcpy(self.host, "unknown");
    return dscomm_all_gather(group, &self, run->everyone, sizeof self,
                             DSCOMM_UINT8, NULL);
}

static void count_locals(perf_run_t *run)
{
    for (int i = 0; i < run->ranks; i++) {
        perf_rank_t *rank = &run->everyone[i];
        rank->local = rank->locals = 0;
        for (int k = 0; k < run->ranks; k++) {
            int same = strcmp(rank->host, run->everyone[k].host) == 0;
            rank->locals += same;
            rank->local += same && k < i;
        }
    }
}

static dscomm_status_t tell_processors(perf_run_t *run, dscomm_group_t *group,
                                       int mine)
{
    int *all = g_new(int, run->ranks);
    dscomm_status_t status =
        dscomm_all_gather(group, &mine, all, 1, DSCOMM_INT32, NULL);

    for (int i = 0; i < run->ranks && status == DSCOMM_OK; i++)
        run->everyone[i].processor = all[i];
    g_free(all);
    return status;
}

dscomm_status_t perf_ranks_place(perf_run_t *run, dscomm_group_t *group)
{
    dscomm_status_t status = meet(run, group);
    perf_rank_t *self = &run->everyone[run->rank];
    int processor;

    if (status != DSCOMM_OK)
        return status;
    count_locals(run);
    if (run->options->unpinned)
        processor = perf_processor_bound(run->topology);
    else
        processor =
            perf_processor_bind(run->topology, self->local, self->locals);
    return tell_processors(run, group, processor);
}

dscomm_status_t perf_agree(const perf_run_t *run, gboolean ok, int *ret_first)
{
    int first = ok ? run->ranks : run->rank;
    dscomm_status_t status = dscomm_all_reduce(run->group, &first, &first, 1,
                                               DSCOMM_INT32, DSCOMM_MIN, NULL);

    if (status == DSCOMM_OK)
        *ret_first = first;
    return status;
}
