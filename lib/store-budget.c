/* SPDX-License-Identifier: BSD-3-Clause */
/* Counting bytes while they live. */
#include "config.h"

#include "lib/store-budget.h"

#include "lib/status.h"

#include <string.h>

/* What the bytes are freed with; those of a copy follow it. */
typedef struct {
    dscomm_priv_budget_t *budget;
    size_t cost;
    void *taken;
} holder_t;

gboolean dscomm_priv_budget_has_room(const dscomm_priv_budget_t *budget,
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

static void release(gpointer data)
{
    holder_t *holder = data;

    holder->budget->used -= holder->cost;
    g_free(holder->taken);
    g_free(holder);
}

static GBytes *hold(holder_t *holder, dscomm_priv_budget_t *budget, size_t cost,
                    void *taken, const void *data, size_t size)
{
    holder->budget = budget;
    holder->cost = cost;
    holder->taken = taken;
    budget->used += cost;
    return g_bytes_new_with_free_func(data, size, release, holder);
}

GBytes *dscomm_priv_budget_copy(dscomm_priv_budget_t *budget, const void *data,
                                size_t size)
{
    holder_t *holder;

    if (!dscomm_priv_budget_has_room(budget, size + BUDGET_COPY_COST)) {
        dscomm_priv_budget_fail(budget, size + BUDGET_COPY_COST);
        return NULL;
    }
    holder = g_try_malloc(sizeof *holder + size);
    if (!holder) {
        dscomm_fail(DSCOMM_ERR_NO_MEMORY, "no memory for a value of %zu bytes",
                    size);
        return NULL;
    }
    if (size)
        memcpy(holder + 1, data, size);
    return hold(holder, budget, size + BUDGET_COPY_COST, NULL, holder + 1,
                size);
}

GBytes *dscomm_priv_budget_take(dscomm_priv_budget_t *budget, void *data,
                                size_t size, size_t cost)
{
    return hold(g_new(holder_t, 1), budget, cost, data, data, size);
}
