/* SPDX-License-Identifier: BSD-3-Clause */
/* The settings of backend mpi. */
#include "config.h"

#include "backends/mpi/engine.h"

const dscomm_setting_t mpi_settings[] = {
    [MPI_SETTING_LIBRARY] =
        {"DSCOMM_MPI_LIBRARY", DSCOMM_SETTING_STRING, NULL, 0, 0, NULL,
         "MPI library: openmpi or mpich; unset: the one that the process has "
         "loaded, else the launcher's, else the first that can be loaded"},
    [MPI_SETTING_PATH] =
        {"DSCOMM_MPI_PATH", DSCOMM_SETTING_STRING, NULL, 0, 0, "path",
         "folder of the modules for MPI libraries; unset: mpi beside mpi.so"},
    [MPI_SETTING_BLOCKING] =
        {"DSCOMM_MPI_BLOCKING", DSCOMM_SETTING_ENUM, "auto", 0, 0,
         "auto|yes|no",
         "blocking collectives are MPI's blocking calls, which nothing can "
         "interrupt, and not schedules over messages, where all ranks have "
         "MPI_THREAD_MULTIPLE; auto: for MPICH, which never yields, only where "
         "they have a processor each"},
    [MPI_SETTING_CHUNK] = {"DSCOMM_MPI_CHUNK", DSCOMM_SETTING_INT, "1073741824",
                           1, 2147483647, NULL,
                           "elements that one MPI call gets at most"},
    [MPI_SETTING_CUDA_AWARE] =
        {"DSCOMM_CUDA_AWARE", DSCOMM_SETTING_ENUM, "auto", 0, 0, "auto|yes|no",
         "MPI gets buffers in the memory of a device as they are, and not a "
         "copy in host memory; auto: where MPIX_Query_cuda_support() says that "
         "it takes them; a wrong yes crashes inside MPI"},
    [MPI_SETTINGS] = {.name = NULL},
    [MPI_SETTING_PROGRESS] = {"DSCOMM_PROGRESS", DSCOMM_SETTING_ENUM, "caller",
                              0, 0, "caller|thread", "the core's"},
};
