/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory for buffers, if the backend has none. */
#include "config.h"

#include "tests/tap.h"

#include <dscomm/dscomm.h>
#include <unistd.h>

int main(void)
{
    const size_t size = 3 * (size_t)sysconf(_SC_PAGESIZE) + 5;
    dscomm_group_t *world, *group;
    unsigned char *memory = NULL;
    void *left;
    const int ranks[] = {0};

    if (dscomm_init(NULL, &world))
        bail("%s", dscomm_last_error());
    is_int(dscomm_mem_alloc(world, size, (void **)&memory), DSCOMM_OK, "alloc");
    is_int((long long)((uintptr_t)memory % (uintptr_t)sysconf(_SC_PAGESIZE)), 0,
           "page aligned");
    for (size_t i = 0; i < size; i++) {
        if (memory[i])
            ok(0, "byte %zu is zero", i);
        memory[i] = (unsigned char)i;
    }
    is_int(dscomm_mem_free(world, memory + 1), DSCOMM_ERR_INVALID,
           "freeing another address");
    is_int(dscomm_mem_free(world, memory), DSCOMM_OK, "free");
    is_int(dscomm_mem_free(world, memory), DSCOMM_ERR_INVALID, "not twice");
    is_int(dscomm_mem_alloc(world, (size_t)PTRDIFF_MAX, &left),
           DSCOMM_ERR_NO_MEMORY, "more than there is");
    dscomm_group_new(world, ranks, 1, NULL, &group);
    is_int(dscomm_mem_alloc(group, size, &left), DSCOMM_OK, "in a group");
    is_int(dscomm_mem_free(world, left), DSCOMM_ERR_INVALID,
           "which another group cannot free");
    dscomm_group_free(group);
    dscomm_mem_alloc(world, size, &left);
    is_int(dscomm_finalize(world), DSCOMM_OK,
           "what is left goes with its group");
    return tap_done();
}
