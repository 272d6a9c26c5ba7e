/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds the MPI library: the one that the process has loaded, or the one that
 * its launcher belongs to. */
#define _GNU_SOURCE
#include "config.h"

#include "backends/mpi/engine.h"

#include <dlfcn.h>
#include <glib.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

#define OPENMPI "openmpi"
#define MPICH "mpich"

const char *const mpi_families[MPI_FAMILIES] = {OPENMPI, MPICH};

/* Variables of process managers, the most specific first. Slurm's srun sets
 * those of PMIx, of PMI, or on Cray of PALS. They do not identify the library:
 * Open MPI up to version 4 uses PMI-2, too. */
static const struct {
    const char *variable, *family;
} marks[] = {
    {"OMPI_COMM_WORLD_SIZE", OPENMPI},
    {"PMI_RANK", MPICH},
    {"PMI_ID", MPICH},
    {"PMI_FD", MPICH},
    {"PMI_LOCAL_RANK", MPICH},
    {"PALS_RANKID", MPICH},
    {"MV2_COMM_WORLD_RANK", MPICH},
    {"MVP_COMM_WORLD_RANK", MPICH},
    {"PMIX_RANK", OPENMPI},
};

const char *mpi_family_launched(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(marks); i++)
        if (getenv(marks[i].variable))
            return marks[i].family;
    return NULL;
}

static int library_note(struct dl_phdr_info *info, size_t size, void *names)
{
    const char *slash = strrchr(info->dlpi_name, '/');
    const char *base = slash ? slash + 1 : info->dlpi_name;

    (void)size;
    if (g_str_has_prefix(base, "libmpi"))
        g_ptr_array_add(names, g_strdup(info->dlpi_name));
    return 0;
}

static const char *family_of(const char *path)
{
    void *handle = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
    const char *family = NULL;

    if (!handle)
        return NULL;
    if (dlsym(handle, "ompi_mpi_comm_world"))
        family = OPENMPI;
    else if (dlsym(handle, "MPI_Init"))
        family = MPICH;
    dlclose(handle);
    return family;
}

const char *mpi_family_loaded(void)
{
    GPtrArray *names = g_ptr_array_new_with_free_func(g_free);
    const char *family = NULL;

    dl_iterate_phdr(library_note, names);
    for (guint i = 0; i < names->len && !family; i++)
        family = family_of(g_ptr_array_index(names, i));
    g_ptr_array_free(names, TRUE);
    return family;
}

/* While it waits, Open MPI yields the processor only if a parameter says so;
 * its mpirun sets that if ranks outnumber processors. MPICH never yields. */
int mpi_family_blocks(const char *family, int oversubscribed)
{
    return !oversubscribed || strcmp(family, MPICH) != 0;
}
