/* SPDX-License-Identifier: BSD-3-Clause */
/* What a rank knows before it meets the others, of attributes and
 * environment. */
#include "config.h"

#include "lib/discover.h"
#include "tests/tap.h"

#include <stdlib.h>

/* One node of four ranks, whose launcher gives the job a name and no port. */
static const char *const named[][2] = {
    {"OMPI_COMM_WORLD_RANK", "1"},
    {"OMPI_COMM_WORLD_SIZE", "4"},
    {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
    {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
    {"PMIX_NAMESPACE", "7"},
};

static const struct {
    const char *about;
    int has_rank, rank, size; /* attributes */
    const char *port; /* MASTER_PORT; "": none */
    const char *job;
    int local_rank, ports;
} rows[] = {
    {"the launcher's world", 0, 0, 0, "", "openmpi/7", 1, DSCOMM_PORTS},
    {"the same by attributes", 1, 1, 4, "", "openmpi/7", 1, DSCOMM_PORTS},
    {"the user's port", 0, 0, 0, "29500", "openmpi/7", 1, 1},
    /* two such worlds in one job have one port: neither may pass it by */
    {"another world, which has no name", 1, 0, 2, "", "", -1, 1},
};

static void check(size_t i)
{
    dscomm_init_attr_t attr = DSCOMM_INIT_ATTR_INIT;
    dscomm_join_t join = {0};

    attr.has_rank = rows[i].has_rank;
    attr.rank = rows[i].rank;
    attr.world_size = rows[i].size;
    setenv("MASTER_PORT", rows[i].port, 1);
    if (!is_int(dscomm_priv_discover(&attr, &join), DSCOMM_OK, "%s",
                rows[i].about))
        bail("%s", dscomm_last_error());
    is_str(join.job, rows[i].job, "  its job");
    is_int(join.local_rank, rows[i].local_rank, "  local rank");
    is_int(join.ports, rows[i].ports, "  ports");
    dscomm_priv_join_clear(&join);
}

int main(void)
{
    for (size_t i = 0; i < sizeof named / sizeof *named; i++)
        setenv(named[i][0], named[i][1], 1);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        check(i);
    return tap_done();
}
