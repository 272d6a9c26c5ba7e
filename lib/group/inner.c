/* SPDX-License-Identifier: BSD-3-Clause */
/* Backends inside a backend: what one may open for some of its ranks. */
#include "config.h"

#include "lib/group/group.h"

#include "lib/group/creation.h"
#include "lib/rendezvous/record.h"
#include "lib/store/store.h"

#include <stdio.h>
#include <string.h>

/* What is given out comes first; name and id lie behind world_ranks. */
typedef struct {
    dscomm_inner_t given;
    dscomm_backend_ops_t ops;
    char *name, *id;
    dscomm_store_t *store;
    int world_ranks[];
} inner_t;

static int own_rank(const dscomm_backend_args_t *args,
                    const dscomm_inner_plan_t *plan)
{
    for (int i = 0; i < plan->count; i++)
        if (plan->ranks[i] == args->rank)
            return i;
    return -1;
}

/* NULL where there is no memory. */
static inner_t *inner_new(const dscomm_backend_args_t *args,
                          const dscomm_inner_plan_t *plan,
                          const dscomm_module_t *module)
{
    const size_t ranks = (size_t)plan->count * sizeof(int);
    const size_t name = strlen(plan->name) + 1;
    const size_t id = strlen(args->id) + 1 + strlen(plan->part) + 1;
    inner_t *inner = g_try_malloc0(sizeof *inner + ranks + name + id);

    if (!inner)
        return NULL;
    inner->ops = module->ops;
    inner->given.ops = &inner->ops;
    inner->name = memcpy((char *)inner->world_ranks + ranks, plan->name, name);
    inner->id = inner->name + name;
    snprintf(inner->id, id, "%s.%s", args->id, plan->part);
    for (int i = 0; i < plan->count; i++)
        inner->world_ranks[i] = args->world_ranks[plan->ranks[i]];
    return inner;
}

static void inner_free(inner_t *inner)
{
    dscomm_store_close(inner->store);
    g_free(inner);
}

dscomm_status_t dscomm_inner_open(const dscomm_backend_args_t *args,
                                  const dscomm_inner_plan_t *plan,
                                  dscomm_inner_t **ret_inner)
{
    const dscomm_module_t *module = NULL;
    dscomm_backend_args_t own = *args;
    dscomm_status_t status = dscomm_priv_module_find(plan->backend, &module);
    inner_t *inner;

    if (status < 0)
        return status;
    inner = inner_new(args, plan, module);
    if (!inner)
        return dscomm_fail(DSCOMM_ERR_NO_MEMORY, "no memory for %s",
                           plan->name);
    status = dscomm_store_prefix(args->store, plan->part, &inner->store);
    if (status < 0) {
        inner_free(inner);
        return status;
    }
    own.size = sizeof own;
    own.parent = plan->parent;
    own.name = inner->name;
    own.id = inner->id;
    own.rank = own_rank(args, plan);
    own.ranks = plan->count;
    own.world_ranks = inner->world_ranks;
    own.store = inner->store;
    own.open_ms = dscomm_priv_creation_left(args);
    status = inner->ops.open(&own, &inner->given.impl);
    dscomm_priv_store_limit(inner->store, INT64_MAX, INT64_MAX);
    if (status < 0) {
        inner_free(inner);
        return status;
    }
    if (inner->ops.trim)
        inner->ops.trim(inner->given.impl, &inner->ops);
    *ret_inner = &inner->given;
    return DSCOMM_OK;
}

void dscomm_inner_close(dscomm_inner_t *given)
{
    if (!given)
        return;
    given->ops->close(given->impl);
    inner_free((inner_t *)given);
}

const char *dscomm_inner_usable(const char *backend, const char *const *hosts,
                                int ranks, int oversubscribed)
{
    const dscomm_module_t *module;
    const char *why = NULL;

    if (dscomm_priv_module_find(backend, &module) < 0)
        return dscomm_last_error();
    if (hosts && module->backend->usable)
        why = module->backend->usable(hosts, ranks);
    if (hosts && !why && module->backend->beneath)
        why = module->backend->beneath(oversubscribed);
    return why;
}

dscomm_status_t dscomm_inner_introduce(const char *backend,
                                       dscomm_bootstrap_t *bootstrap)
{
    const dscomm_module_t *module;
    dscomm_status_t status = dscomm_priv_module_find(backend, &module);

    if (status < 0)
        return bootstrap->data ? status : DSCOMM_ERR_UNSUPPORTED;
    return module->ops.bootstrap ? module->ops.bootstrap(bootstrap)
                                 : DSCOMM_ERR_UNSUPPORTED;
}

void dscomm_backend_host(char text[DSCOMM_HOST_MAX])
{
    dscomm_priv_record_host(text, DSCOMM_HOST_MAX);
}
