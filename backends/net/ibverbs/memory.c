/* SPDX-License-Identifier: BSD-3-Clause */
/* Slots: memory that the device reads and writes. */
#include "config.h"

#include "backends/net/ibverbs/ibverbs.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

typedef struct {
    void *memory;
    struct ibv_mr *region;
    op_t *ops;
} memory_t;

const char *verbs_remedy(int error)
{
    switch (error) {
    case ENOMEM:
        return "; allow more locked memory (ulimit -l), or free some memory";
    case EMFILE:
        return "; allow more descriptors (ulimit -n)";
    case EACCES:
    case EPERM:
        return "; allow this user to open /dev/infiniband/*";
    default:
        return "";
    }
}

static void memory_free(memory_t *memory)
{
    if (memory->region)
        ibv_dereg_mr(memory->region);
    free(memory->memory);
    g_free(memory->ops);
    g_free(memory);
}

int verbs_slots_add(verbs_t *verbs, struct ops *list, op_kind_t kind,
                    unsigned count, size_t bytes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    memory_t *memory = g_new0(memory_t, 1);
    int error;

    error = posix_memalign(&memory->memory, page, count * bytes);
    if (!error) {
        memory->region =
            verbs_regions_register(verbs->regions, memory->memory,
                                   count * bytes, IBV_ACCESS_LOCAL_WRITE);
        error = memory->region ? 0 : errno;
        memory->ops = g_try_new0(op_t, count);
        if (!memory->ops)
            error = ENOMEM;
    }
    if (error) {
        memory_free(memory);
        errno = error;
        return -1;
    }
    for (unsigned i = 0; i < count; i++) {
        memory->ops[i] = (op_t){.kind = kind,
                                .slot = (char *)memory->memory + i * bytes,
                                .lkey = memory->region->lkey};
        SLIST_INSERT_HEAD(list, &memory->ops[i], in_free);
    }
    g_ptr_array_add(verbs->memories, memory);
    return 0;
}

void verbs_slots_free(verbs_t *verbs)
{
    for (guint i = 0; i < verbs->memories->len; i++)
        memory_free(g_ptr_array_index(verbs->memories, i));
    g_ptr_array_unref(verbs->memories);
}
