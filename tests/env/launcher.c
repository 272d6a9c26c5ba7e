/* SPDX-License-Identifier: BSD-3-Clause */
/* Environments as launchers make them and as people break them. */
#include "config.h"

#include "env/launcher.h"

#include <glib.h>
#include <string.h>

#include "tests/tap.h"

#define VARIABLES 16

#define OMPI(rank, size, local_rank, local_size)                               \
    "OMPI_COMM_WORLD_RANK=" #rank, "OMPI_COMM_WORLD_SIZE=" #size,              \
        "OMPI_COMM_WORLD_LOCAL_RANK=" #local_rank,                             \
        "OMPI_COMM_WORLD_LOCAL_SIZE=" #local_size

/* One node out of two, as torchrun starts it. */
#define TORCHRUN                                                               \
    "TORCHELASTIC_RUN_ID=x", "RANK=9", "WORLD_SIZE=16", "LOCAL_RANK=1",        \
        "LOCAL_WORLD_SIZE=8", "GROUP_RANK=1", "MASTER_ADDR=n0",                \
        "MASTER_PORT=29500"

static const struct {
    const char *environment[VARIABLES];
    dscomm_launch_t want;
} found[] = {
    {{NULL}, {"singleton", 0, 1, 0, 1, 0, "127.0.0.1", -1, 0, ""}},
    {{"MASTER_ADDR=h", "MASTER_PORT=1234", "LOCAL_RANK=3"},
     {"singleton", 0, 1, 0, 1, 0, "127.0.0.1", -1, 0, ""}},
    {{"RANK=", "WORLD_SIZE=", "TORCHELASTIC_RUN_ID="},
     {"singleton", 0, 1, 0, 1, 0, "127.0.0.1", -1, 0, ""}},

    {{"RANK=1", "WORLD_SIZE=4", "LOCAL_RANK=1", "LOCAL_WORLD_SIZE=2",
      "NODE_RANK=0", "MASTER_ADDR=n0", "MASTER_PORT=29500"},
     {"torch", 1, 4, 1, 2, 0, "n0", 29500, 0, ""}},
    {{"RANK=1", "WORLD_SIZE=3", "MASTER_ADDR=job-0", "MASTER_PORT=23456"},
     {"torch", 1, 3, -1, -1, -1, "job-0", 23456, 0, ""}},
    {{"RANK=0", "WORLD_SIZE=1"},
     {"torch", 0, 1, 0, 1, 0, "127.0.0.1", -1, 0, ""}},
    {{"RANK=2", "WORLD_SIZE=3", "LOCAL_WORLD_SIZE=3"},
     {"torch", 2, 3, 2, 3, 0, "127.0.0.1", -1, 0, ""}},
    {{"RANK= 3 ", "WORLD_SIZE=\t4", "MASTER_PORT= 80 ", "MASTER_ADDR= ::1 "},
     {"torch", 3, 4, -1, -1, -1, "::1", 80, 0, ""}},
    {{"RANK=007", "WORLD_SIZE=0000000000000000000000008"},
     {"torch", 7, 8, -1, -1, -1, "", -1, 0, ""}},
    {{"RANK=2147483646", "WORLD_SIZE=2147483647"},
     {"torch", 2147483646, 2147483647, -1, -1, -1, "", -1, 0, ""}},
    {{"RANK=1", "WORLD_SIZE=2",
      "LOCAL_RANK=", "MASTER_ADDR=", "TORCHELASTIC_USE_AGENT_STORE=True"},
     {"torch", 1, 2, -1, -1, -1, "", -1, 0, ""}},

    {{TORCHRUN, "TORCHELASTIC_USE_AGENT_STORE=True",
      "TORCHELASTIC_RESTART_COUNT=2", "SLURM_STEP_ID=0", "SLURM_PROCID=1",
      "SLURM_STEP_NUM_TASKS=2"},
     {"torchrun", 9, 16, 1, 8, 1, "n0", 29500, 1, "x/2"}},
    {{TORCHRUN, "TORCHELASTIC_USE_AGENT_STORE=False"},
     {"torchrun", 9, 16, 1, 8, 1, "n0", 29500, 0, "x/0"}},
    {{TORCHRUN}, {"torchrun", 9, 16, 1, 8, 1, "n0", 29500, 0, "x/0"}},
    /* torchrun started by mpirun: the inner one counts */
    {{TORCHRUN, OMPI(1, 2, 0, 1)},
     {"torchrun", 9, 16, 1, 8, 1, "n0", 29500, 0, "x/0"}},
    {{TORCHRUN, "NODE_RANK=0", "OMPI_COMM_WORLD_RANK=1"},
     {"torchrun", 9, 16, 1, 8, 1, "n0", 29500, 0, "x/0"}},
    /* dscomm run */
    {{"RANK=2", "WORLD_SIZE=4", "LOCAL_RANK=2", "LOCAL_WORLD_SIZE=4",
      "GROUP_RANK=0", "MASTER_ADDR=127.0.0.1", "MASTER_PORT=40001",
      "TORCHELASTIC_USE_AGENT_STORE=True", "TORCHELASTIC_RUN_ID=f00d",
      "TORCHELASTIC_RESTART_COUNT=0"},
     {"torchrun", 2, 4, 2, 4, 0, "127.0.0.1", 40001, 1, "f00d/0"}},
    /* 125 bytes and "/0" fit, one more is replaced by a checksum */
    {{"RANK=0", "WORLD_SIZE=2",
      "TORCHELASTIC_RUN_ID="
      "aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffff"
      "aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffff12345"},
     {"torchrun", 0, 2, -1, -1, -1, "", -1, 0,
      "aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffff"
      "aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffff12345/0"}},
    {{"RANK=0", "WORLD_SIZE=2",
      "TORCHELASTIC_RUN_ID="
      "aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffff"
      "aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffff123456"},
     {"torchrun", 0, 2, -1, -1, -1, "", -1, 0,
      /* printf aa...ff123456/0 | sha256sum */
      "21179509f7140fa319b6b0ff589315e7"
      "eaa39c30cd442e19ad90a92a858a0fec"}},

    {{OMPI(1, 2, 1, 2), "OMPI_COMM_WORLD_NODE_RANK=1", "PMIX_RANK=1"},
     {"openmpi", 1, 2, 1, 2, 0, "127.0.0.1", -1, 0, ""}},
    {{OMPI(3, 5, 1, 2), "SLURM_JOB_ID=2", "SLURM_STEP_ID=5", "SLURM_PROCID=1",
      "SLURM_STEP_NUM_TASKS=3", "SLURM_NTASKS=3", "SLURM_LOCALID=0",
      "SLURM_NODEID=1", "SLURM_STEP_NODELIST=rack1-n[08-10]"},
     {"openmpi", 3, 5, 1, 2, -1, "", -1, 0, ""}},
    /* duplicates that agree, whole or in part */
    {{OMPI(3, 8, 3, 4), "RANK=3", "WORLD_SIZE=8", "LOCAL_RANK=3",
      "MASTER_ADDR=h", "MASTER_PORT=1234"},
     {"openmpi", 3, 8, 3, 4, -1, "h", 1234, 0, ""}},
    {{OMPI(2, 3, 0, 1), "WORLD_SIZE=3", "LOCAL_SIZE=2", "MASTER_ADDR=h"},
     {"openmpi", 2, 3, 0, 1, -1, "h", -1, 0, ""}},

    {{"DSCOMM_RANK=1", "DSCOMM_WORLD_SIZE=2", "DSCOMM_LOCAL_RANK=0",
      "DSCOMM_LOCAL_SIZE=1", "DSCOMM_NODE_RANK=1", "DSCOMM_MASTER_ADDR=m",
      "DSCOMM_MASTER_PORT=5000"},
     {"dscomm", 1, 2, 0, 1, 1, "m", 5000, 0, ""}},
    /* it overrides silently, and takes no number from elsewhere */
    {{"DSCOMM_RANK=1", "DSCOMM_WORLD_SIZE=2", TORCHRUN},
     {"dscomm", 1, 2, -1, -1, -1, "n0", 29500, 0, "x/0"}},
    {{"DSCOMM_RANK=1", "DSCOMM_WORLD_SIZE=2", OMPI(7, 8, 0, 1), "RANK=abc",
      "WORLD_SIZE=0"},
     {"dscomm", 1, 2, -1, -1, -1, "", -1, 0, ""}},
    /* an address of ours is not the agent's */
    {{"DSCOMM_MASTER_PORT=5000", TORCHRUN, "TORCHELASTIC_USE_AGENT_STORE=True"},
     {"torchrun", 9, 16, 1, 8, 1, "n0", 5000, 0, "x/0"}},
    {{"DSCOMM_MASTER_ADDR=m", TORCHRUN, "TORCHELASTIC_USE_AGENT_STORE=True"},
     {"torchrun", 9, 16, 1, 8, 1, "m", 29500, 0, "x/0"}},
    {{"DSCOMM_RANK=1", "DSCOMM_WORLD_SIZE=2", TORCHRUN,
      "TORCHELASTIC_USE_AGENT_STORE=True"},
     {"dscomm", 1, 2, -1, -1, -1, "n0", 29500, 1, "x/0"}},
};

/* What the sentence must say: two parts. */
static const struct {
    const char *environment[VARIABLES];
    const char *says, *says_too;
} refused[] = {
    /* no decimal numbers */
    {{"RANK=abc", "WORLD_SIZE=4"}, "RANK='abc'", "0 to"},
    {{"RANK=1 2", "WORLD_SIZE=4"}, "RANK='1 2'", ""},
    {{"RANK=-1", "WORLD_SIZE=4"}, "RANK='-1'", ""},
    {{"RANK=+1", "WORLD_SIZE=4"}, "RANK='+1'", ""},
    {{"RANK=0x1", "WORLD_SIZE=4"}, "RANK='0x1'", ""},
    {{"RANK=1.0", "WORLD_SIZE=4"}, "RANK='1.0'", ""},
    {{"RANK=1e0", "WORLD_SIZE=4"}, "RANK='1e0'", ""},
    {{"RANK=1,", "WORLD_SIZE=4"}, "RANK='1,'", ""},
    {{"RANK= ", "WORLD_SIZE=4"}, "RANK=' '", ""},
    {{"RANK=1\n", "WORLD_SIZE=4"}, "RANK='1 '", ""},
    {{"RANK=99999999999999999999", "WORLD_SIZE=4"},
     "RANK='99999999999999999999'",
     ""},
    {{"RANK=2147483648", "WORLD_SIZE=4"}, "RANK='2147483648'", ""},
    {{"RANK=4294967296", "WORLD_SIZE=4"}, "RANK='4294967296'", ""},
    {{"RANK=0", "WORLD_SIZE=0"}, "WORLD_SIZE='0'", "1 to"},
    {{"RANK=0", "WORLD_SIZE=-2"}, "WORLD_SIZE='-2'", ""},
    {{"RANK=0", "WORLD_SIZE=two"}, "WORLD_SIZE='two'", ""},
    {{"RANK=0", "WORLD_SIZE=2", "LOCAL_RANK=x"}, "LOCAL_RANK='x'", ""},
    {{"RANK=0", "WORLD_SIZE=2", "LOCAL_WORLD_SIZE=0"},
     "LOCAL_WORLD_SIZE='0'",
     ""},
    {{"RANK=0", "WORLD_SIZE=2", "NODE_RANK=-1"}, "NODE_RANK='-1'", ""},
    {{"RANK=0", "WORLD_SIZE=2", "MASTER_PORT=70000"},
     "MASTER_PORT='70000'",
     "1 to 65535"},
    {{"RANK=0", "WORLD_SIZE=2", "MASTER_PORT=0"}, "MASTER_PORT='0'", ""},
    {{"RANK=0", "WORLD_SIZE=2", "MASTER_PORT=http"}, "MASTER_PORT='http'", ""},
    {{"RANK=0", "WORLD_SIZE=2", "DSCOMM_MASTER_PORT=x", "MASTER_PORT=1"},
     "DSCOMM_MASTER_PORT='x'",
     ""},
    {{"DSCOMM_RANK=x", "DSCOMM_WORLD_SIZE=4"}, "DSCOMM_RANK='x'", ""},
    {{OMPI(x, 4, 0, 1)}, "OMPI_COMM_WORLD_RANK='x'", ""},
    {{OMPI(0, 4, 0, 1), "RANK=y"}, "RANK='y'", ""},
    {{TORCHRUN, "TORCHELASTIC_RESTART_COUNT=-1"},
     "TORCHELASTIC_RESTART_COUNT='-1'",
     ""},
    {{TORCHRUN, "TORCHELASTIC_RESTART_COUNT=x"},
     "TORCHELASTIC_RESTART_COUNT='x'",
     ""},

    /* ranges */
    {{"RANK=4", "WORLD_SIZE=4", "LOCAL_RANK=0"}, "RANK='4'", "WORLD_SIZE='4'"},
    {{"RANK=5", "WORLD_SIZE=4"}, "RANK='5'", "WORLD_SIZE='4'"},
    {{"RANK=0", "WORLD_SIZE=4", "LOCAL_RANK=2", "LOCAL_WORLD_SIZE=2"},
     "LOCAL_RANK='2'",
     "LOCAL_WORLD_SIZE='2'"},
    {{"RANK=0", "WORLD_SIZE=4", "LOCAL_WORLD_SIZE=8"},
     "LOCAL_WORLD_SIZE='8'",
     "WORLD_SIZE='4'"},
    {{"RANK=0", "WORLD_SIZE=4", "LOCAL_RANK=4"},
     "LOCAL_RANK='4'",
     "WORLD_SIZE='4'"},
    {{"RANK=0", "WORLD_SIZE=4", "NODE_RANK=4"},
     "NODE_RANK='4'",
     "WORLD_SIZE='4'"},
    {{"DSCOMM_RANK=2", "DSCOMM_WORLD_SIZE=2"},
     "DSCOMM_RANK='2'",
     "DSCOMM_WORLD_SIZE='2'"},
    {{OMPI(8, 8, 0, 1)},
     "OMPI_COMM_WORLD_RANK='8'",
     "OMPI_COMM_WORLD_SIZE='8'"},

    /* half of a pair is no reason to try the next source */
    {{"WORLD_SIZE=4"}, "WORLD_SIZE='4'", "RANK is not"},
    {{"RANK=0"}, "RANK='0'", "WORLD_SIZE is not"},
    {{"RANK=0", "WORLD_SIZE="}, "RANK='0'", "WORLD_SIZE is not"},
    {{"DSCOMM_RANK=0"}, "DSCOMM_RANK='0'", "DSCOMM_WORLD_SIZE is not"},
    {{"DSCOMM_WORLD_SIZE=2", "RANK=0", "WORLD_SIZE=2"},
     "DSCOMM_WORLD_SIZE='2'",
     "DSCOMM_RANK is not"},
    {{"DSCOMM_LOCAL_RANK=1", "RANK=0", "WORLD_SIZE=2"},
     "DSCOMM_LOCAL_RANK='1'",
     "DSCOMM_RANK is not"},
    {{"OMPI_COMM_WORLD_RANK=0", "RANK=0", "WORLD_SIZE=2"},
     "OMPI_COMM_WORLD_RANK='0'",
     "OMPI_COMM_WORLD_SIZE is not"},
    {{"OMPI_COMM_WORLD_SIZE=2"},
     "OMPI_COMM_WORLD_SIZE='2'",
     "OMPI_COMM_WORLD_RANK is not"},
    {{"TORCHELASTIC_RUN_ID=x"}, "TORCHELASTIC_RUN_ID='x'", "RANK is not"},
    {{"TORCHELASTIC_RUN_ID=x", "RANK=0"}, "RANK='0'", "WORLD_SIZE is not"},

    /* two sources that disagree */
    {{OMPI(3, 8, 3, 4), "RANK=0", "WORLD_SIZE=1", "LOCAL_RANK=0",
      "MASTER_ADDR=h", "MASTER_PORT=1234"},
     "RANK='0' disagrees",
     "OMPI_COMM_WORLD_RANK='3'"},
    {{OMPI(3, 8, 3, 4), "RANK=3", "WORLD_SIZE=4"},
     "WORLD_SIZE='4' disagrees",
     "OMPI_COMM_WORLD_SIZE='8'"},
    {{OMPI(2, 4, 0, 1), "WORLD_SIZE=3"},
     "WORLD_SIZE='3' disagrees",
     "DSCOMM_WORLD_SIZE"},

    /* the master */
    {{"RANK=0", "WORLD_SIZE=2", "MASTER_ADDR=two words"},
     "MASTER_ADDR",
     "host"},
    {{"RANK=0", "WORLD_SIZE=2", "MASTER_ADDR= "}, "MASTER_ADDR", "host"},
    {{TORCHRUN, "DSCOMM_MASTER_ADDR=two words"}, "DSCOMM_MASTER_ADDR", "host"},
    {{"TORCHELASTIC_RUN_ID=x", "RANK=0", "WORLD_SIZE=2", "MASTER_ADDR=h",
      "TORCHELASTIC_USE_AGENT_STORE=True"},
     "TORCHELASTIC_USE_AGENT_STORE",
     "MASTER_PORT is not"},
    {{"TORCHELASTIC_RUN_ID=x", "RANK=0", "WORLD_SIZE=2", "MASTER_PORT=1",
      "TORCHELASTIC_USE_AGENT_STORE=True"},
     "TORCHELASTIC_USE_AGENT_STORE",
     "MASTER_ADDR is not"},
};

static const char *get(const char *name, void *arg)
{
    const char *const *environment = arg;
    size_t length = strlen(name);

    for (; *environment; environment++) {
        if (strncmp(*environment, name, length) == 0 &&
            (*environment)[length] == '=')
            return *environment + length + 1;
    }
    return NULL;
}

static void check_launch(const dscomm_launch_t *got,
                         const dscomm_launch_t *want, size_t i)
{
    is_str(got->source, want->source, "case %zu: source", i);
    is_int(got->rank, want->rank, "case %zu: rank", i);
    is_int(got->world_size, want->world_size, "case %zu: world size", i);
    is_int(got->local_rank, want->local_rank, "case %zu: local rank", i);
    is_int(got->local_size, want->local_size, "case %zu: local size", i);
    is_int(got->node_rank, want->node_rank, "case %zu: node rank", i);
    is_str(got->master_addr, want->master_addr, "case %zu: address", i);
    is_int(got->master_port, want->master_port, "case %zu: port", i);
    is_int(got->agent_store, want->agent_store, "case %zu: agent's store", i);
    is_str(got->run_id, want->run_id, "case %zu: run id", i);
}

static void test_found(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(found); i++) {
        dscomm_launch_t launch;

        if (is_int(dscomm_priv_launch_discover(
                       get, (void *)found[i].environment, &launch),
                   DSCOMM_OK, "case %zu is understood", i))
            check_launch(&launch, &found[i].want, i);
        else
            tap_text("", dscomm_last_error());
    }
}

static void test_refused(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(refused); i++) {
        dscomm_launch_t launch = {.rank = 77};
        int named;

        is_int(dscomm_priv_launch_discover(get, (void *)refused[i].environment,
                                           &launch),
               DSCOMM_ERR_ENVIRONMENT, "refused case %zu, %s", i,
               refused[i].says);
        named = ok(strstr(dscomm_last_error(), refused[i].says) &&
                       strstr(dscomm_last_error(), refused[i].says_too),
                   "the sentence names it and '%s'", refused[i].says_too);
        if (!named)
            tap_text("", dscomm_last_error());
        is_int(launch.rank, 77, "nothing is written");
    }
}

/* 255 bytes fit. */
static void test_long_address(void)
{
    for (size_t length = 254; length < 258; length++) {
        char address[300] = "MASTER_ADDR=";
        const char *environment[] = {"RANK=0", "WORLD_SIZE=2", address, NULL};
        dscomm_launch_t launch;

        memset(address + strlen(address), 'h', length);
        is_int(dscomm_priv_launch_discover(get, environment, &launch),
               length < 256 ? DSCOMM_OK : DSCOMM_ERR_ENVIRONMENT,
               "an address of %zu bytes", length);
    }
}

int main(void)
{
    test_found();
    test_refused();
    test_long_address();
    return tap_done();
}
