/* SPDX-License-Identifier: BSD-3-Clause */
/* Counting bytes while they live. */
#include "config.h"

#include "lib/store/tcp/budget.h"

#include "lib/base/status.h"

#include <string.h>

typedef dscomm_priv_bytes_t bytes_t;

bool dscomm_priv_budget_has_room(const dscomm_priv_budget_t *budget,
                                 size_t more)
{
    return budget->used <= budget->most && more <= budget->most - budget->used;
}

void dscomm_priv_budget_hold(dscomm_priv_budget_t *budget, size_t *held,
                             size_t now)
{
    budget->used += now - *held;
    *held = now;
}

dscomm_status_t dscomm_priv_budget_fail(const dscomm_priv_budget_t *budget,
                                        size_t more)
{
    return dscomm_fail(DSCOMM_ERR_NO_MEMORY,
                       "the store is full: %zu bytes more than the %zu that "
                       "its keys and values take would exceed %zu; delete "
                       "those that are no longer used",
                       more, budget->used, budget->most);
}

/* With room for own bytes. */
static bytes_t *bytes_make(dscomm_priv_budget_t *budget, size_t size,
                           size_t cost, size_t own)
{
    bytes_t *bytes = g_try_malloc(sizeof *bytes + own);

    if (!bytes) {
        dscomm_fail(DSCOMM_ERR_NO_MEMORY, "no memory for a value of %zu bytes",
                    size);
        return NULL;
    }
    *bytes = (bytes_t){{bytes->own, size}, budget, cost, NULL, 1, own};
    budget->used += cost;
    return bytes;
}

bytes_t *dscomm_priv_bytes_new(dscomm_priv_budget_t *budget, const void *data,
                               size_t size, size_t cost)
{
    bytes_t *bytes = bytes_make(budget, size, cost, size);

    if (bytes && data && size)
        memcpy(bytes->own, data, size);
    return bytes;
}

bytes_t *dscomm_priv_bytes_take(dscomm_priv_budget_t *budget, void *data,
                                size_t size, size_t cost)
{
    bytes_t *bytes = bytes_make(budget, size, cost, 0);

    if (bytes)
        bytes->data.data = bytes->taken = data;
    return bytes;
}

bytes_t *dscomm_priv_budget_copy(dscomm_priv_budget_t *budget, const void *data,
                                 size_t size)
{
    const size_t cost = size + BUDGET_COPY_COST;

    if (dscomm_priv_budget_has_room(budget, cost))
        return dscomm_priv_bytes_new(budget, data, size, cost);
    dscomm_priv_budget_fail(budget, cost);
    return NULL;
}

bytes_t *dscomm_priv_bytes_ref(bytes_t *bytes)
{
    bytes->refs++;
    return bytes;
}

void dscomm_priv_bytes_unref(bytes_t *bytes)
{
    if (!bytes || --bytes->refs)
        return;
    bytes->budget->used -= bytes->cost;
    g_free(bytes->taken);
    g_free(bytes);
}

dscomm_priv_data_t dscomm_priv_data_text(const char *text)
{
    return (dscomm_priv_data_t){text, strlen(text)};
}

bool dscomm_priv_data_equal(dscomm_priv_data_t a, dscomm_priv_data_t b)
{
    return a.size == b.size && (!a.size || memcmp(a.data, b.data, a.size) == 0);
}
