/* SPDX-License-Identifier: BSD-3-Clause */
/* Byte blobs whose length only their owner has: sizes are sent first, then
 * bytes. If a rank has no memory for the result, all ranks fail together,
 * before the bytes are sent. */
#include "config.h"
#include "lib/group/group.h"

#include <string.h>

/* Fails unless every rank has memory for the result. */
static dscomm_status_t blob_agree(dscomm_group_t *group, const char *name,
                                  const void *memory, uint64_t size)
{
    int32_t *lacks = dscomm_priv_group_memory(group, name, 1, sizeof *lacks);
    dscomm_status_t status;

    if (!lacks)
        return DSCOMM_ERR_NO_MEMORY;
    *lacks = memory ? group->size : group->rank;
    status = dscomm_all_reduce(group, lacks, lacks, 1, DSCOMM_INT32, DSCOMM_MIN,
                               NULL);
    if (status == DSCOMM_OK && *lacks < group->size)
        status = dscomm_fail(DSCOMM_ERR_NO_MEMORY,
                             "%s on group '%s': rank %d has no memory for %llu "
                             "bytes",
                             name, group->identity.name, *lacks,
                             (unsigned long long)size);
    dscomm_priv_buffer_drop(group, lacks);
    return status;
}

static dscomm_status_t blob_check(dscomm_group_t *group, const char *name,
                                  const void *blob, size_t size,
                                  const void *ret_blob, const void *ret_size)
{
    dscomm_status_t status = dscomm_priv_group_ready(group, name);

    if (status < 0)
        return status;
    if (!ret_blob || !ret_size)
        return dscomm_priv_invalid(group, name, "an output is NULL");
    if (!blob && size)
        return dscomm_priv_invalid(group, name,
                                   "blob is NULL, but its size is %zu", size);
    return DSCOMM_OK;
}

/* Allocates one byte more, so that no blob is NULL. */
static void *blob_allocate(uint64_t size)
{
    return size < PTRDIFF_MAX ? g_try_malloc((gsize)size + 1) : NULL;
}

/* Broadcasts the root's size. */
static dscomm_status_t blob_share_size(dscomm_group_t *group, const char *name,
                                       uint64_t *size, int root)
{
    uint64_t *copy = dscomm_priv_group_memory(group, name, 1, sizeof *copy);
    dscomm_status_t status;

    if (!copy)
        return DSCOMM_ERR_NO_MEMORY;
    *copy = *size;
    status = dscomm_broadcast(group, copy, 1, DSCOMM_UINT64, root, NULL);
    *size = *copy;
    dscomm_priv_buffer_drop(group, copy);
    return status;
}

dscomm_status_t dscomm_broadcast_blob(dscomm_group_t *group, const void *blob,
                                      size_t size, int root, void **ret_blob,
                                      size_t *ret_size)
{
    const char *name = "dscomm_broadcast_blob";
    int mine = group && group->rank == root;
    uint64_t bytes = mine ? size : 0;
    void *result;
    dscomm_status_t status =
        blob_check(group, name, mine ? blob : NULL, bytes, ret_blob, ret_size);

    if (status == DSCOMM_OK)
        status = blob_share_size(group, name, &bytes, root);
    if (status < 0)
        return status;
    result = blob_allocate(bytes);
    if (mine && result && bytes)
        memcpy(result, blob, bytes);
    status = blob_agree(group, name, result, bytes);
    if (status == DSCOMM_OK)
        status = dscomm_broadcast(group, result, (size_t)bytes, DSCOMM_UINT8,
                                  root, NULL);
    if (status < 0) {
        dscomm_priv_buffer_drop(group, result);
        return status;
    }
    *ret_blob = result;
    *ret_size = (size_t)bytes;
    return DSCOMM_OK;
}

/* Gathers all ranks' sizes into counts. The sum is at most PTRDIFF_MAX, for
 * which there is never enough memory. */
static dscomm_status_t blob_gather_sizes(dscomm_group_t *group,
                                         const char *name, size_t size,
                                         size_t *counts, uint64_t *ret_sum)
{
    const uint64_t own = size;
    uint64_t sum = 0, *sizes = dscomm_priv_group_memory(
                          group, name, (size_t)group->size, sizeof *sizes);
    dscomm_status_t status;

    if (!sizes)
        return DSCOMM_ERR_NO_MEMORY;
    status = dscomm_all_gather(group, &own, sizes, 1, DSCOMM_UINT64, NULL);
    for (int i = 0; status == DSCOMM_OK && i < group->size; i++) {
        counts[i] = (size_t)sizes[i];
        sum = sizes[i] > PTRDIFF_MAX - sum ? PTRDIFF_MAX : sum + sizes[i];
    }
    dscomm_priv_buffer_drop(group, sizes);
    *ret_sum = sum;
    return status;
}

static dscomm_status_t blob_gather_bytes(dscomm_group_t *group,
                                         const char *name, const void *blob,
                                         size_t size, const size_t *counts,
                                         uint64_t sum, void **ret_blob)
{
    void *result = blob_allocate(sum);
    dscomm_status_t status = blob_agree(group, name, result, sum);

    if (status == DSCOMM_OK)
        status = dscomm_all_gather_v(group, blob, size, result, counts, NULL,
                                     DSCOMM_UINT8, NULL);
    if (status < 0)
        dscomm_priv_buffer_drop(group, result);
    else
        *ret_blob = result;
    return status;
}

dscomm_status_t dscomm_all_gather_blob(dscomm_group_t *group, const void *blob,
                                       size_t size, void **ret_blob,
                                       size_t *ret_sizes)
{
    const char *name = "dscomm_all_gather_blob";
    size_t *counts;
    uint64_t sum;
    dscomm_status_t status =
        blob_check(group, name, blob, size, ret_blob, ret_sizes);

    if (status < 0)
        return status;
    counts = dscomm_priv_group_memory(group, name, (size_t)group->size,
                                      sizeof *counts);
    if (!counts)
        return DSCOMM_ERR_NO_MEMORY;
    status = blob_gather_sizes(group, name, size, counts, &sum);
    if (status == DSCOMM_OK)
        status =
            blob_gather_bytes(group, name, blob, size, counts, sum, ret_blob);
    if (status == DSCOMM_OK)
        memcpy(ret_sizes, counts, (size_t)group->size * sizeof(*counts));
    g_free(counts);
    return status;
}

void dscomm_blob_free(void *blob)
{
    g_free(blob);
}
