/* SPDX-License-Identifier: BSD-3-Clause */
/* The public calls that communicate: checks of their arguments. */
#include "config.h"

#include "compression/core/compressor.h"

#include <dscomm/dscomm.h>

static int is_float(dscomm_dtype_t dtype)
{
    return dtype == DSCOMM_FLOAT16 || dtype == DSCOMM_BFLOAT16 ||
           dtype == DSCOMM_FLOAT32 || dtype == DSCOMM_FLOAT64;
}

/* Explains why a compressor is busy: it may be twice in the list. */
static dscomm_status_t
check_twice(const char *name, dscomm_compressor_t *const *compressors, size_t i)
{
    for (size_t before = 0; before < i; before++)
        if (compressors[before] == compressors[i])
            return dscomm_fail(DSCOMM_ERR_INVALID,
                               "%s: compressor %zu is compressor %zu again; "
                               "each keeps the errors of one buffer, so make "
                               "one for every buffer, or call for one buffer "
                               "after the other",
                               name, i, before);
    return dscomm_priv_compressor_idle(compressors[i], name);
}

static dscomm_status_t all_reduce_check(const char *name,
                                        dscomm_compressor_t *const *compressors,
                                        size_t i, const void *buffer)
{
    const dscomm_compressor_t *c = compressors[i];
    dscomm_status_t status = c && g_atomic_int_get(&c->busy)
                                 ? check_twice(name, compressors, i)
                                 : dscomm_priv_compressor_idle(c, name);

    if (status == DSCOMM_OK && !buffer && c->count)
        status = dscomm_fail(DSCOMM_ERR_INVALID,
                             "%s: the buffer is NULL, but its count is %zu",
                             name, c->count);
    return status;
}

/* Marks each compressor as busy while the following ones are checked, so that
 * one that is twice in the list is found. */
static dscomm_status_t check_all(const char *name,
                                 dscomm_compressor_t *const *compressors,
                                 void *const *buffers, size_t n)
{
    dscomm_status_t status = DSCOMM_OK;
    size_t i;

    for (i = 0; i < n; i++) {
        status = all_reduce_check(name, compressors, i, buffers[i]);
        if (status < 0)
            break;
        if (compressors[i]->channel != compressors[0]->channel) {
            status = dscomm_fail(DSCOMM_ERR_INVALID,
                                 "%s: compressor %zu is one of another group",
                                 name, i);
            break;
        }
        g_atomic_int_set(&compressors[i]->busy, 1);
    }
    while (i--)
        g_atomic_int_set(&compressors[i]->busy, 0);
    return status;
}

static dscomm_status_t call(const char *name,
                            dscomm_compressor_t *const *compressors,
                            void *const *buffers, size_t n,
                            dscomm_dtype_t dtype, dscomm_work_t **ret_work)
{
    dscomm_status_t status = check_all(name, compressors, buffers, n);

    if (status < 0)
        return status;
    if (!is_float(dtype))
        return dscomm_fail(DSCOMM_ERR_INVALID,
                           "%s: the dtype is %s; it can be float16, bfloat16, "
                           "float32 or float64",
                           name, dscomm_dtype_name(dtype));
    if (!compressors[0]->channel->parent)
        return dscomm_fail(DSCOMM_ERR_STATE,
                           "%s: the group of this compressor was freed or "
                           "finalized before; make a new one of another group",
                           name);
    status = dscomm_priv_channel_status(compressors[0]->channel);
    for (size_t i = 0; i < n && status == DSCOMM_OK; i++)
        status = dscomm_priv_compressor_known(compressors[i], name);
    if (status < 0)
        return status;
    return dscomm_priv_exchange(name, compressors, buffers, n, dtype, ret_work);
}

dscomm_status_t dscomm_compressor_all_reduce(dscomm_compressor_t *compressor,
                                             void *buffer, dscomm_dtype_t dtype,
                                             dscomm_work_t **ret_work)
{
    return call("dscomm_compressor_all_reduce", &compressor, &buffer, 1, dtype,
                ret_work);
}

dscomm_status_t dscomm_compressor_all_reduce_many(
    dscomm_compressor_t *const *compressors, void *const *buffers, size_t n,
    dscomm_dtype_t dtype, dscomm_work_t **ret_work)
{
    const char *name = "dscomm_compressor_all_reduce_many";

    if (!n || !compressors || !buffers)
        return dscomm_fail(DSCOMM_ERR_INVALID, "%s: %s", name,
                           !n             ? "n is 0"
                           : !compressors ? "compressors is NULL"
                                          : "buffers is NULL");
    return call(name, compressors, buffers, n, dtype, ret_work);
}
