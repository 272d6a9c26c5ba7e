/* SPDX-License-Identifier: BSD-3-Clause */
/* The interface between backend mpi, which needs no MPI to be loaded, and its
 * engines. There is one engine for each MPI library, compiled from the same
 * sources with that library's header. An engine is MPI/NAME.so beside mpi.so,
 * and exports the constant dscomm_mpi_engine. A process uses at most one. */
#ifndef BACKENDS_MPI_ENGINE_H
#define BACKENDS_MPI_ENGINE_H

#include <dscomm/backend.h>

/* Incremented with every change of this header. */
#define MPI_ENGINE_VERSION 5

/* Bytes of an engine's request, at most. */
#define MPI_REQUEST_BYTES 384

typedef struct {
    uint32_t version, abi; /* MPI_ENGINE_VERSION, DSCOMM_BACKEND_ABI */
    const char *name; /* "openmpi", as in the file's name */
    const dscomm_backend_ops_t *ops;
} dscomm_mpi_engine_t;

/* Rows of the settings table. */
typedef enum {
    MPI_SETTING_LIBRARY,
    MPI_SETTING_PATH,
    MPI_SETTING_BLOCKING,
    MPI_SETTING_CHUNK,
    MPI_SETTING_CUDA_AWARE,
    MPI_SETTINGS, /* of its own */
    MPI_SETTING_PROGRESS
} mpi_setting_t;
enum {
    MPI_AUTO,
    MPI_YES,
    MPI_NO
}; /* words of those settings that accept words */
extern const dscomm_setting_t mpi_settings[];

/* Families of MPI libraries; engines are named after them. */
#define MPI_FAMILIES 2
extern const char *const mpi_families[MPI_FAMILIES];
/* The family that the launcher belongs to, judged by its variables; NULL: no
 * process manager of any MPI has started this process. */
const char *mpi_family_launched(void);
/* The family of the library that this process has loaded, or NULL. */
const char *mpi_family_loaded(void);

/* Whether a family's blocking calls yield the processor, if they must.
 * oversubscribed: as in dscomm_backend_args_t. */
int mpi_family_blocks(const char *family, int oversubscribed);

/* meet.c */

/* The values that a rank publishes: its rank in MPI_COMM_WORLD, and those that
 * must be equal on all ranks. */
typedef struct {
    char engine[16];
    int32_t mpi_rank, blocking, chunk;
    /* the rank has a communicator of all ranks, from which others can be
     * made */
    int32_t based;
    int32_t number; /* of this rank in the order in which they came, from 1;
                       set by mpi_meet() */
} mpi_card_t;

/* The map: the values of all ranks, on which they agree. Two groups may have
 * equal names and be made at the same time, by independent libraries; they
 * differ in tag and mark. */
typedef struct {
    int32_t status, blocking, based;
    uint32_t tag; /* of the call that makes the communicator */
    uint32_t mark; /* in notices */
    int32_t mpi_ranks[];
} mpi_map_t;

/* Collective over the group's ranks: either all get the map, to be freed with
 * dscomm_store_free(), or none. own < 0: this rank cannot take part; the
 * sentence is set, and card may be NULL. */
dscomm_status_t mpi_meet(const dscomm_backend_args_t *args, dscomm_status_t own,
                         const mpi_card_t *card, mpi_map_t **ret_map);

/* Commands by which Slurm starts ranks of an MPI library. */
#define MPI_SRUN_MPICH "srun --mpi=pmi2, or --mpi=pmix if this MPI has that"
#define MPI_SRUN_OPENMPI "srun --mpi=pmix, or --mpi=pmi2 if this MPI has that"

/* The facts for comparing MPI's size with the launcher's. */
typedef struct {
    const char *source; /* the launcher, as discovery names it */
    const char *library; /* MPI's own name */
    int ranks, mpi_ranks;
} mpi_wiring_t;

/* ERR_ENVIRONMENT, with the remedy, if MPI has fewer ranks than the group. */
dscomm_status_t mpi_check_wiring(const mpi_wiring_t *wiring);

#endif
