/* SPDX-License-Identifier: BSD-3-Clause */
/* Meshes: a group along each dimension. */
#include "config.h"

#include "lib/base/clock.h"
#include "lib/base/status.h"
#include "lib/call/group-new.h"
#include "lib/group/world.h"
#include "lib/rendezvous/rendezvous.h"

#include <stdio.h>
#include <string.h>

#define NDIMS_MAX 64

/* Checks dims, and computes the one that is -1. */
static dscomm_status_t mesh_complete(const dscomm_group_t *parent,
                                     const int *dims, int ndims, int *full)
{
    const char *name = "dscomm_group_mesh";
    int64_t product = 1;
    int unknown = -1;

    for (int d = 0; d < ndims; d++) {
        full[d] = dims[d];
        if (dims[d] == -1 && unknown < 0) {
            unknown = d;
            continue;
        }
        if (dims[d] < 1)
            return dscomm_fail(DSCOMM_ERR_INVALID,
                               "%s: dims[%d] is %d; dimensions are positive, "
                               "and one may be -1",
                               name, d, dims[d]);
        product *= dims[d];
        if (product > parent->size)
            break;
    }
    if (unknown >= 0 && parent->size % product == 0) {
        full[unknown] = (int)(parent->size / product);
        product = parent->size;
    }
    if (product != parent->size)
        return dscomm_fail(DSCOMM_ERR_INVALID,
                           "%s: the product of dims does not %s the %d ranks "
                           "of '%s'",
                           name, unknown < 0 ? "equal" : "divide", parent->size,
                           parent->identity.name);
    return DSCOMM_OK;
}

/* Writes the ranks that differ from rank only in coordinate d. */
static void mesh_line(int rank, const int *dims, int ndims, int d, int *ranks,
                      int *ret_first)
{
    int stride = 1;

    for (int i = ndims - 1; i > d; i--)
        stride *= dims[i];
    *ret_first = rank - rank / stride % dims[d] * stride;
    for (int i = 0; i < dims[d]; i++)
        ranks[i] = *ret_first + i * stride;
}

/* Fails because the call's time was over after `made` of its groups. */
static dscomm_status_t mesh_fail_timeout(const dscomm_group_t *parent,
                                         const dscomm_group_attr_t *attr,
                                         int made, int ndims)
{
    char text[DSCOMM_ERROR_MAX];

    snprintf(text, sizeof text,
             "dscomm_group_mesh on group '%s': after %.1f s only %d of %d "
             "groups were made",
             parent->identity.name, attr->timeout_ms / 1000.0, made, ndims);
    dscomm_priv_stopped_append(&parent->identity.world->meeting,
                               parent->identity.world_ranks, parent->size, text,
                               sizeof text);
    return dscomm_fail(DSCOMM_ERR_TIMEOUT, "%s", text);
}

/* The group along dimension d is not opened, because another one has failed
 * with status: its other ranks must not wait for this one. If the parent was
 * revoked, they know it; if the time is over, theirs is, too. */
static dscomm_status_t mesh_refuse_line(dscomm_group_t *parent,
                                        const int *ranks, int count,
                                        const dscomm_group_attr_t *attr,
                                        int64_t deadline, int first,
                                        dscomm_status_t status)
{
    dscomm_failure_t cause, failure;
    dscomm_group_t *none;

    if (count == 1 || status == DSCOMM_ERR_TIMEOUT ||
        parent->ops.status(parent->impl, NULL) < 0)
        return status;
    dscomm_priv_failure_last(status, &cause);
    failure = cause;
    dscomm_priv_group_child(parent, ranks, count, attr, deadline, first,
                            &failure, &none);
    return dscomm_backend_fail(&cause);
}

static dscomm_status_t mesh_open_lines(dscomm_group_t *parent, const int *dims,
                                       int ndims,
                                       const dscomm_group_attr_t *attr,
                                       int64_t deadline,
                                       dscomm_group_t **groups)
{
    const uint64_t before = parent->life.children;
    int *ranks = (int *)parent->scratch, first;
    dscomm_status_t status = DSCOMM_OK;

    for (int d = 0; d < ndims; d++) {
        parent->life.children = before + (uint64_t)d;
        if (d && status == DSCOMM_OK && !dscomm_priv_clock_left(deadline))
            status = mesh_fail_timeout(parent, attr, d, ndims);
        mesh_line(parent->rank, dims, ndims, d, ranks, &first);
        if (status < 0)
            status = mesh_refuse_line(parent, ranks, dims[d], attr, deadline,
                                      first, status);
        else
            status = dscomm_priv_group_child(parent, ranks, dims[d], attr,
                                             deadline, first, NULL, &groups[d]);
    }
    /* Later groups must have the same id on all ranks, whatever has failed. */
    parent->life.children = before + (uint64_t)ndims;
    return status;
}

static uint64_t mesh_hash_dims(const int *dims, int ndims)
{
    uint64_t hash = (uint64_t)ndims;

    for (int d = 0; d < ndims; d++)
        hash = hash * UINT64_C(0x100000001b3) + (uint64_t)dims[d];
    return hash;
}

static dscomm_status_t mesh_agree(dscomm_group_t *parent, const int *dims,
                                  int ndims)
{
    char what[128];
    size_t used = (size_t)snprintf(what, sizeof what, "dscomm_group_mesh(");

    for (int d = 0; d < ndims && used < sizeof what - 16; d++)
        used += (size_t)snprintf(what + used, sizeof what - used,
                                 d ? " x %d" : "%d", dims[d]);
    snprintf(what + used, sizeof what - used, ")");
    return dscomm_priv_agree(parent, DSCOMM_ROOT_GROUP_MESH,
                             mesh_hash_dims(dims, ndims), what,
                             "all ranks must give the same dimensions");
}

dscomm_status_t dscomm_group_mesh(dscomm_group_t *parent, const int *dims,
                                  int ndims, dscomm_group_t **ret_groups)
{
    const char *name = "dscomm_group_mesh";
    dscomm_group_attr_t attr;
    dscomm_group_t *groups[NDIMS_MAX] = {NULL};
    int full[NDIMS_MAX];
    const int64_t now = dscomm_priv_clock();
    dscomm_status_t status = dscomm_priv_group_attr(parent, name, NULL, &attr);

    if (status < 0)
        return status;
    if (!dims || !ret_groups)
        return dscomm_fail(DSCOMM_ERR_INVALID, "%s: %s is NULL", name,
                           dims ? "ret_groups" : "dims");
    if (ndims < 1 || ndims > NDIMS_MAX)
        return dscomm_fail(DSCOMM_ERR_INVALID,
                           "%s: ndims is %d, not in 1 ... %d", name, ndims,
                           NDIMS_MAX);
    status = mesh_complete(parent, dims, ndims, full);
    if (status == DSCOMM_OK)
        status = mesh_agree(parent, full, ndims);
    if (status == DSCOMM_OK)
        status = mesh_open_lines(parent, full, ndims, &attr,
                                 dscomm_priv_clock_after(now, attr.timeout_ms),
                                 groups);
    if (status == DSCOMM_OK)
        memcpy(ret_groups, groups, (size_t)ndims * sizeof *groups);
    for (int d = 0; status < 0 && d < ndims; d++)
        if (groups[d])
            dscomm_priv_group_drop(groups[d]);
    return status;
}
