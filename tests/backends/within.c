/* SPDX-License-Identifier: BSD-3-Clause */
/* The owner of a request that a campaign has made to fail: MPI, or the library,
 * whose survivors must know the culprit. */
#include "config.h"

#include "tests/backends/campaign.h"
#include "tests/tap.h"

#include <glib.h>
#include <stdlib.h>

void *ucs_ask(void *(*allocate)(size_t size), size_t size);

static void test_paths(void)
{
    static const struct {
        int is_mpi;
        const char *paths[6]; /* innermost first */
    } cases[] = {
        {1, {"/usr/lib/openmpi3/mca_shmem_mmap.so", "/lib/libopen-pal.so.40"}},
        {1, {"/lib/libpmix.so.2", "/lib/libmpi.so.40", "/x/openmpi.so"}},
        {1, {"/lib/libc.so.6", "/lib/libucm.so.0", "/lib/libucs.so.0"}},
        {1, {"/lib/libhwloc.so.15", "/lib/libopen-pal.so.40", "openmpi.so"}},
        {0, {"/lib/libucm.so.0", "/x/libdscomm.so.0", "/x/campaign"}},
        {0, {"/lib/libglib-2.0.so.0", "/x/openmpi.so", "/lib/libmpi.so.40"}},
        {0, {"/x/mpi.so", "/lib/libmpi.so.40"}},
        {0, {"/x/libdscomm.so.0", "/lib/libmpi.so.40"}},
        {0, {"/lib/mca_x/shm.so", "/lib/libmpi.so.40"}},
        {0, {"?", "/lib/libmpi.so.40"}},
        {0, {"/lib/libc.so.6"}},
        {0, {NULL}},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++)
        is_int(campaign_inject_is_mpi(cases[i].paths), cases[i].is_mpi,
               "called by %s", cases[i].paths[0] ? cases[i].paths[0] : "none");
}

/* The library's flight recorder asks for the first memfd. */
static void test_own(void)
{
    dscomm_init_attr_t attr = DSCOMM_INIT_ATTR_INIT;
    dscomm_group_t *world = NULL;

    setenv("DSCOMM_BACKEND", "self", 1);
    attr.has_rank = 1;
    attr.world_size = 1;
    campaign_inject_arm(CAMPAIGN_MEMFD, 1);
    if (dscomm_init(&attr, &world) == DSCOMM_OK)
        dscomm_finalize(world);
    is_int(campaign_inject_disarm(), 1, "a request of the library fails");
    is_int(campaign_inject_within(), 0, "which is not MPI's");
}

static void test_mpi(void)
{
    void *volatile memory; /* so that no call is left out */

    campaign_inject_arm(CAMPAIGN_MALLOC, 1);
    memory = ucs_ask(malloc, 8);
    campaign_inject_disarm();
    ok(!memory && campaign_inject_within(), "a request of MPI's fails");
    campaign_inject_arm(CAMPAIGN_MALLOC, 1);
    memory = ucs_ask(g_try_malloc, 8);
    campaign_inject_disarm();
    ok(!memory && campaign_inject_within(), "the same by way of GLib");
    campaign_inject_arm(CAMPAIGN_MALLOC, 1);
    memory = malloc(8);
    campaign_inject_disarm();
    ok(!memory && !campaign_inject_within(), "one of the program's");
    free(memory);
}

int main(void)
{
    campaign_inject_prepare();
    test_paths();
    test_own();
    test_mpi();
    return tap_done();
}
