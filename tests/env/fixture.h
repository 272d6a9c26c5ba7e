/* SPDX-License-Identifier: BSD-3-Clause */
/* Environments as lists of "NAME=value", and discovery in them. */
#ifndef TESTS_ENV_FIXTURE_H
#define TESTS_ENV_FIXTURE_H

#include <dscomm/env.h>
#include <glib.h>
#include <string.h>

#include "tests/tap.h"

#define VARIABLES 20

#define OMPI(rank, size, local_rank, local_size)                               \
    "OMPI_COMM_WORLD_RANK=" #rank, "OMPI_COMM_WORLD_SIZE=" #size,              \
        "OMPI_COMM_WORLD_LOCAL_RANK=" #local_rank,                             \
        "OMPI_COMM_WORLD_LOCAL_SIZE=" #local_size

#define HYDRA(rank, size, local_rank, local_size)                              \
    "PMI_RANK=" #rank, "PMI_SIZE=" #size, "MPI_LOCALRANKID=" #local_rank,      \
        "MPI_LOCALNRANKS=" #local_size

/* A step of job 1. */
#define STEP(rank, size, local_rank, node)                                     \
    "SLURM_JOB_ID=1", "SLURM_STEP_ID=0", "SLURM_PROCID=" #rank,                \
        "SLURM_STEP_NUM_TASKS=" #size, "SLURM_LOCALID=" #local_rank,           \
        "SLURM_NODEID=" #node

/* A rank of the first of two nodes. */
#define JSRUN                                                                  \
    "JSM_NAMESPACE_RANK=1", "JSM_NAMESPACE_SIZE=4",                            \
        "JSM_NAMESPACE_LOCAL_RANK=1", "JSM_NAMESPACE_LOCAL_SIZE=2"

/* One of two nodes, as torchrun starts it. */
#define TORCHRUN                                                               \
    "TORCHELASTIC_RUN_ID=x", "RANK=9", "WORLD_SIZE=16", "LOCAL_RANK=1",        \
        "LOCAL_WORLD_SIZE=8", "GROUP_RANK=1", "MASTER_ADDR=n0",                \
        "MASTER_PORT=29500"

static inline const char *fixture_get(const char *name, void *arg)
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

/* Discovers in environment, which ends with NULL, and below root; a root that
 * does not exist has no files. */
static inline __attribute__((unused)) dscomm_status_t
fixture_discover(const char *const *environment, const char *root,
                 dscomm_env_t **ret_env)
{
    dscomm_env_attr_t attr = DSCOMM_ENV_ATTR_INIT;

    attr.get = fixture_get;
    attr.arg = (void *)environment;
    attr.root = root ? root : "/nowhere";
    return dscomm_env_discover(&attr, ret_env);
}

#endif
