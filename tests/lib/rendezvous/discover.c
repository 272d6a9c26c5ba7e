/* SPDX-License-Identifier: BSD-3-Clause */
/* What a rank knows before it meets the others, from attributes and
 * environment. */
#include "config.h"

#include "lib/rendezvous/rendezvous.h"
#include "tests/tap.h"

#include <stdlib.h>
#include <string.h>

/* One node with four ranks, whose launcher gives the job's name and no port. */
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
    /* two such worlds of one job use one port, so neither may skip it */
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

/* Methods that are refused, as an attribute and as a variable. */
static const struct {
    const char *method;
    int size; /* attribute; 0: none */
    const char *says;
} refused[] = {
    {"tcp://h:29500", 0, "which rank of how many"},
    {"file:///tmp/x", 0, "dscomm run"},
    {"file:///tmp/x?other=1", 0, "?rank=R&world_size=N"},
    {"file://tmp/x", 1, "must be absolute"},
    {"file://", 1, "must be absolute"},
    {"file:///", 1, "must be absolute"},
    {"file://tmp/x", 2, "must be absolute"},
    {"tcp://", 1, "a host and a port"},
    {"tcp://h", 1, "a host and a port"},
    {"tcp://:29500", 1, "a host and a port"},
    {"tcp://h:65536", 1, "a host and a port"},
    {"tcp://h:-1", 1, "a host and a port"},
    {"tcp://h:x", 1, "a host and a port"},
    {"tcp://::1:29500", 1, "brackets around"},
    {"tcp://h:x?rank=0&world_size=1", 0, "a host and a port"},
    {"tcp://h:0", 2, "port 0"},
    {"tcp://h:0?rank=0&world_size=2", 0, "port 0"},
    {"tcp://h:0?rank=1&world_size=2", 0, "port 0"},
};

static const struct {
    const char *method;
    int size;
} accepted[] = {
    {"tcp://h:0", 1},
    {"tcp://[::1]:29500", 2},
    {"tcp://h:65535?rank=0&world_size=2", 0},
    {"file:///x", 1},
    {"file:///x?rank=0&world_size=1", 0},
};

static dscomm_status_t discover(const char *method, int size, int variable)
{
    dscomm_init_attr_t attr = DSCOMM_INIT_ATTR_INIT;
    dscomm_join_t join = {0};
    dscomm_status_t status;

    attr.init_method = variable ? NULL : method;
    attr.has_rank = size > 0;
    attr.world_size = size;
    setenv("DSCOMM_INIT_METHOD", variable ? method : "", 1);
    status = dscomm_priv_discover(&attr, &join);
    unsetenv("DSCOMM_INIT_METHOD");
    dscomm_priv_join_clear(&join);
    return status;
}

static void check_refused(size_t i, int variable)
{
    const char *name = variable ? "DSCOMM_INIT_METHOD '" : "init_method '";
    const char *error;

    is_int(discover(refused[i].method, refused[i].size, variable),
           variable ? DSCOMM_ERR_ENVIRONMENT : DSCOMM_ERR_INVALID,
           "%s%s' for %d", name, refused[i].method, refused[i].size);
    error = dscomm_last_error();
    ok(strncmp(error, name, strlen(name)) == 0 &&
           strstr(error, refused[i].says),
       "  says %s: %s", refused[i].says, error);
}

/* Without a launcher. */
static void check_methods(void)
{
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        check_refused(i, 0);
        check_refused(i, 1);
    }
    for (size_t i = 0; i < sizeof accepted / sizeof *accepted; i++)
        is_int(discover(accepted[i].method, accepted[i].size, 0), DSCOMM_OK,
               "%s for %d", accepted[i].method, accepted[i].size);
    setenv("DSCOMM_LAUNCHER", "singleton", 1);
    is_int(discover("file:///x", 0, 0), DSCOMM_OK, "alone on request");
    unsetenv("DSCOMM_LAUNCHER");
}

/* Where ranks meet, depending on the launcher's numbers of nodes and on
 * MASTER_ADDR. */
static const struct {
    const char *local, *address, *url;
} places[] = {
    {"4", "host.test", "tcp://127.0.0.1:29500"},
    {"4", "10.1.2.3", "tcp://127.0.0.1:29500"},
    {"4", "localhost", "tcp://localhost:29500"},
    {"4", "127.0.0.2", "tcp://127.0.0.2:29500"},
    {"2", "host.test", "tcp://host.test:29500"},
    {"", "host.test", "tcp://host.test:29500"},
};

/* Other machines cannot reach the store of ranks that are all on this node. */
static void check_places(void)
{
    setenv("RANK", "1", 1);
    setenv("WORLD_SIZE", "4", 1);
    setenv("LOCAL_RANK", "1", 1);
    setenv("MASTER_PORT", "29500", 1);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        dscomm_init_attr_t attr = DSCOMM_INIT_ATTR_INIT;
        dscomm_join_t join = {0};

        setenv("LOCAL_WORLD_SIZE", places[i].local, 1);
        setenv("MASTER_ADDR", places[i].address, 1);
        if (dscomm_priv_discover(&attr, &join))
            bail("%s", dscomm_last_error());
        is_str(join.url, places[i].url, "%s of 4 ranks here, MASTER_ADDR=%s",
               places[i].local, places[i].address);
        dscomm_priv_join_clear(&join);
    }
    unsetenv("RANK");
    unsetenv("WORLD_SIZE");
    unsetenv("LOCAL_RANK");
    unsetenv("LOCAL_WORLD_SIZE");
    unsetenv("MASTER_ADDR");
    unsetenv("MASTER_PORT");
}

int main(void)
{
    check_methods();
    check_places();
    for (size_t i = 0; i < sizeof named / sizeof *named; i++)
        setenv(named[i][0], named[i][1], 1);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        check(i);
    return tap_done();
}
