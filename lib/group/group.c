/* SPDX-License-Identifier: BSD-3-Clause */
/* Groups: opening, freeing and queries. */
#include "config.h"

#include "lib/group/group.h"

#include "lib/base/clock.h"
#include "lib/base/status.h"
#include "lib/device/device.h"
#include "lib/group/creation.h"
#include "lib/group/failure.h"
#include "lib/group/published.h"
#include "lib/group/world.h"
#include "lib/rendezvous/processes.h"
#include "lib/rendezvous/rendezvous.h"
#include "lib/store/store.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Times of opening a group, in ms: the least time to open, and how long the
 * store may be used after the deadline to publish the failure. */
#define OPEN_LEAST_MS 1000
#define OPEN_GRACE_MS 1000

static bool parts_open(dscomm_group_t *group)
{
    for (const dscomm_group_part_t *const *part = dscomm_priv_group_parts;
         *part; part++)
        if ((*part)->open && !(*part)->open(group))
            return false;
    return true;
}

static void map_ranks(dscomm_group_t *group, const dscomm_group_plan_t *plan)
{
    for (int i = 0; i < plan->world->size; i++)
        group->identity.from_world[i] = -1;
    for (int i = 0; i < group->size; i++) {
        group->identity.world_ranks[i] =
            plan->ranks ? plan->parent->identity.world_ranks[plan->ranks[i]]
                        : i;
        group->identity.from_world[group->identity.world_ranks[i]] = i;
    }
}

dscomm_store_t *dscomm_priv_group_base_after(const dscomm_group_t *failed)
{
    const dscomm_meeting_t *meeting = &failed->identity.world->meeting;

    return meeting->has_standby ? meeting->standby : failed->life.base;
}

static dscomm_store_t *group_base(const dscomm_group_plan_t *plan)
{
    if (plan->after_failure)
        return dscomm_priv_group_base_after(plan->parent);
    return plan->parent ? plan->parent->life.base : plan->world->meeting.store;
}

/* Opens the group's store, a view of its base. A world of one rank has none. */
static dscomm_status_t group_open_store(const dscomm_group_plan_t *plan,
                                        dscomm_store_t **ret_store)
{
    dscomm_store_t *base = group_base(plan);
    char prefix[DSCOMM_GROUP_ID_MAX + 8];

    if (!base)
        return DSCOMM_OK;
    snprintf(prefix, sizeof prefix, "g/%s", plan->id);
    return dscomm_store_prefix(base, prefix, ret_store);
}

/* Allocates the members of group; false if there is no memory. */
static bool group_fill(dscomm_group_t *group, const dscomm_group_plan_t *plan)
{
    const gsize count = (gsize)plan->count;
    const dscomm_nodes_t *nodes = &plan->world->meeting.nodes;

    group->identity.world_ranks = g_try_new(int, count);
    group->identity.from_world = g_try_new(int, (gsize)plan->world->size);
    group->scratch = g_try_new0(size_t, 2 * count);
    group->works.request = g_try_malloc0(group->ops.request_size);
    if (!group->identity.world_ranks || !group->identity.from_world ||
        !group->scratch || !group->works.request || !parts_open(group))
        return false;
    map_ranks(group, plan);
    if (!dscomm_priv_nodes_within(nodes, group->identity.world_ranks,
                                  group->size, &group->identity.nodes))
        return false;
    dscomm_priv_nodes_place(
        nodes, group->identity.world_ranks, &group->identity.nodes, group->rank,
        &group->identity.local_rank, &group->identity.local_size,
        &group->identity.node_rank);
    return group_open_store(plan, &group->life.store) == DSCOMM_OK;
}

/* NULL: no memory. */
static dscomm_group_t *group_new(const dscomm_group_plan_t *plan)
{
    static _Atomic uint64_t groups; /* made by this process */
    const size_t name = strlen(plan->name) + 1, id = strlen(plan->id) + 1;
    dscomm_group_t *group = g_try_malloc0(sizeof *group + name + id);

    if (!group)
        return NULL;
    group->identity.name = memcpy(group + 1, plan->name, name);
    group->identity.id = memcpy(group->identity.name + name, plan->id, id);
    group->number = atomic_fetch_add(&groups, 1) + 1;
    group->generation = dscomm_priv_generation();
    group->rank = plan->rank;
    group->size = plan->count;
    group->max_count = (size_t)PTRDIFF_MAX / 8 / (size_t)plan->count;
    group->ops = plan->module->ops;
    group->module = plan->module;
    group->timeout_ms = plan->timeout_ms;
    group->identity.world = plan->world;
    group->schedules.rules = plan->world->rules;
    group->life.base = group_base(plan);
    group->recorder = plan->world->recorder.slot ? plan->world->recorder.slot
                                                 : &dscomm_priv_recorder_spare;
    atomic_init(&group->life.uses, 1);
    atomic_init(&group->life.holds, 1);
    pthread_mutex_init(&group->works.lock, NULL);
    dscomm_priv_world_enlist(group);
    if (group_fill(group, plan))
        return group;
    dscomm_priv_group_destroy(group);
    return NULL;
}

/* Frees what the group owns. The structure itself is freed later, so that calls
 * on the handle can fail with a sentence; they read only its state, numbers and
 * name. */
void dscomm_priv_group_destroy(dscomm_group_t *group)
{
    dscomm_priv_world_delist(group);
    dscomm_priv_group_parts_call(group, PART_FREE);
    dscomm_priv_group_set(group, GROUP_FREED);
    pthread_mutex_destroy(&group->works.lock);
    g_clear_pointer(&group->works.request, g_free);
    g_clear_pointer(&group->scratch, g_free);
    g_clear_pointer(&group->identity.from_world, g_free);
    g_clear_pointer(&group->identity.world_ranks, g_free);
    dscomm_priv_nodes_clear(&group->identity.nodes);
    group->identity.world = NULL;
    dscomm_priv_world_defer_free(group);
}

void *dscomm_priv_group_memory(dscomm_group_t *group, const char *name,
                               size_t count, size_t size)
{
    void *memory = calloc(count, size);

    if (!memory)
        dscomm_priv_group_give_up(
            group,
            dscomm_fail(DSCOMM_ERR_NO_MEMORY,
                        "%s on group '%s': rank %d has no memory for %zu bytes",
                        name, group->identity.name, group->rank, count * size));
    return memory;
}

void dscomm_priv_group_hold(dscomm_group_t *group)
{
    atomic_fetch_add_explicit(&group->life.holds, 1, memory_order_relaxed);
}

void dscomm_priv_group_release(dscomm_group_t *group)
{
    if (atomic_fetch_sub_explicit(&group->life.holds, 1,
                                  memory_order_acq_rel) == 1)
        dscomm_priv_group_destroy(group);
}

/* Returns the rest of the call's time, in ms. It is at least a second, or the
 * whole time-out, so that ranks that agreed at the last moment can still open
 * the group. */
static int time_to_open(const dscomm_group_plan_t *plan)
{
    return MAX(dscomm_priv_clock_left(plan->deadline),
               MIN(plan->timeout_ms, OPEN_LEAST_MS));
}

static void limit_store(dscomm_store_t *store, const dscomm_group_plan_t *plan,
                        int open_ms)
{
    dscomm_priv_store_limit(
        store, plan->deadline,
        dscomm_priv_clock_after(dscomm_priv_clock(), open_ms) +
            OPEN_GRACE_MS * NS_PER_MS);
}

/* Makes the record of the failure. If the store does not answer, that becomes
 * the reason of a time-out, because ranks cannot connect without it. */
static dscomm_status_t explain_open(const dscomm_group_t *group,
                                    dscomm_status_t status)
{
    const dscomm_meeting_t *meeting = &group->identity.world->meeting;
    char text[DSCOMM_ERROR_MAX];
    dscomm_failure_t failure;

    dscomm_backend_failure_last(group, status, &failure);
    dscomm_backend_fail(&failure);
    snprintf(text, sizeof text, "group '%s': ", group->identity.name);
    return dscomm_priv_stopped_store(
        group->life.store,
        meeting->serves && group->life.base == meeting->store, text, status);
}

static dscomm_status_t group_open_impl(dscomm_group_t *group,
                                       const dscomm_group_plan_t *plan)
{
    dscomm_group_t *parent = plan->after_failure ? NULL : plan->parent;
    dscomm_backend_args_t args = {
        .size = sizeof args,
        .group = group,
        .name = group->identity.name,
        .id = group->identity.id,
        .rank = group->rank,
        .ranks = group->size,
        .world_ranks = group->identity.world_ranks,
        .store = group->life.store,
        .timeout_ms = group->timeout_ms,
        .open_ms = time_to_open(plan),
        .world = !plan->parent,
        .oversubscribed = group->identity.world &&
                          group->identity.world->meeting.oversubscribed,
    };
    dscomm_creation_t creation;
    dscomm_status_t status;

    if (parent && parent->module == group->module)
        args.parent = parent->impl;
    dscomm_priv_creation_begin(&creation, group, parent, args.open_ms);
    if (group->life.store)
        limit_store(group->life.store, plan, args.open_ms);
    status = group->ops.open(&args, &group->impl);
    if (status == DSCOMM_OK)
        status =
            dscomm_priv_module_trim(group->module, group->impl, &group->ops);
    if (status < 0)
        status = explain_open(group, status);
    status = dscomm_priv_creation_end(&args, status);
    if (group->life.store)
        dscomm_priv_store_limit(group->life.store, INT64_MAX, INT64_MAX);
    if (status < 0)
        return status;
    dscomm_priv_module_opened(group->module);
    if (args.parent) {
        group->life.parent = parent;
        atomic_fetch_add(&parent->life.uses, 1);
    }
    return DSCOMM_OK;
}

/* Chooses how blocking collectives go to the backend. */
static void choose_path(dscomm_group_t *group)
{
    if (group->ops.capabilities)
        group->capabilities = group->ops.capabilities(group->impl);
    group->run = group->ops.run;
    group->queries_native =
        group->run && group->ops.native &&
        (group->schedules.rules->len ||
         !(group->capabilities & DSCOMM_CAP_NATIVE_COLLECTIVES));
    if (!group->run || group->schedules.rules->len ||
        dscomm_priv_device_present() ||
        !(group->capabilities & DSCOMM_CAP_NATIVE_COLLECTIVES))
        dscomm_priv_group_set(group, GROUP_SLOW);
}

dscomm_status_t dscomm_priv_group_refuse(const dscomm_group_plan_t *plan,
                                         dscomm_failure_t *failure)
{
    dscomm_store_t *store = NULL;
    dscomm_status_t published = group_open_store(plan, &store);

    if (published == DSCOMM_OK && store) {
        limit_store(store, plan, time_to_open(plan));
        published = dscomm_priv_failure_publish(store, failure);
    }
    if (published < 0 && plan->parent)
        dscomm_priv_group_revoke(plan->parent, failure);
    dscomm_store_close(store);
    return dscomm_backend_fail(failure);
}

/* Fails because this rank has no memory for the group. */
static dscomm_status_t group_refuse(const dscomm_group_plan_t *plan)
{
    dscomm_group_t *parent = plan->parent;
    const int rank =
        parent ? parent->identity.world_ranks[parent->rank] : plan->rank;
    dscomm_failure_t failure;

    dscomm_backend_failure(parent, DSCOMM_ERR_NO_MEMORY,
                           DSCOMM_FAILURE_RESOURCE, rank, getpid(), &failure);
    dscomm_backend_failure_detail(&failure, "no memory for group '%s'",
                                  plan->name);
    return dscomm_priv_group_refuse(plan, &failure);
}

dscomm_status_t dscomm_priv_group_open(const dscomm_group_plan_t *plan,
                                       dscomm_group_t **ret_group)
{
    dscomm_group_t *group = group_new(plan);
    dscomm_status_t status;

    if (!group)
        return group_refuse(plan);
    status = group_open_impl(group, plan);
    if (status < 0) {
        dscomm_store_close(group->life.store);
        dscomm_priv_group_destroy(group);
        return status;
    }
    choose_path(group);
    group->recorded_as = dscomm_priv_recorder_group(
        group->recorder, group->identity.name, group->identity.id, group->rank,
        group->size, group->module->name);
    dscomm_priv_overdue_watch(group);
    dscomm_log(DSCOMM_LOG_DEBUG, "core",
               "group '%s' (%s): rank %d of %d, backend %s",
               group->identity.name, group->identity.id, group->rank,
               group->size, group->module->name);
    *ret_group = group;
    return DSCOMM_OK;
}

/* Releases one use of the impl; the last one closes it. */
static void close_impl(dscomm_group_t *group)
{
    dscomm_group_t *parent = group->life.parent;

    if (atomic_fetch_sub(&group->life.uses, 1) != 1)
        return;
    dscomm_priv_group_parts_call(group, PART_CLOSE);
    group->ops.close(group->impl);
    group->impl = NULL;
    dscomm_store_close(group->life.store);
    group->life.store = NULL;
    dscomm_priv_group_release(group);
    if (parent)
        close_impl(parent);
}

void dscomm_priv_group_drop(dscomm_group_t *group)
{
    dscomm_priv_group_parts_call(group, PART_END);
    close_impl(group);
}

dscomm_status_t dscomm_group_free(dscomm_group_t *group)
{
    const char *name = "dscomm_group_free";
    dscomm_status_t status;

    if (!group)
        return DSCOMM_OK;
    status = dscomm_priv_group_alive(group, name);
    if (status < 0)
        return status;
    if (group == group->identity.world->group)
        return dscomm_fail(DSCOMM_ERR_STATE,
                           "%s: '%s' is the world; call dscomm_finalize", name,
                           group->identity.name);
    dscomm_priv_group_drop(group);
    return DSCOMM_OK;
}

int dscomm_group_rank(const dscomm_group_t *group)
{
    return group ? group->rank : -1;
}

int dscomm_group_size(const dscomm_group_t *group)
{
    return group ? group->size : -1;
}

int dscomm_group_local_rank(const dscomm_group_t *group)
{
    return group ? group->identity.local_rank : -1;
}

int dscomm_group_local_size(const dscomm_group_t *group)
{
    return group ? group->identity.local_size : -1;
}

int dscomm_group_node_rank(const dscomm_group_t *group)
{
    return group ? group->identity.node_rank : -1;
}

const char *dscomm_group_name(const dscomm_group_t *group)
{
    return group ? group->identity.name : "";
}

const char *dscomm_group_backend(const dscomm_group_t *group)
{
    return group ? group->module->name : "";
}

int dscomm_group_timeout(const dscomm_group_t *group)
{
    return group ? group->timeout_ms : -1;
}

dscomm_status_t dscomm_group_to_global(const dscomm_group_t *group, int rank,
                                       int *ret_rank)
{
    const char *name = "dscomm_group_to_global";

    if (!group || dscomm_priv_group_is(group, GROUP_FREED))
        return dscomm_priv_group_alive(group, name);
    if (!ret_rank)
        return dscomm_fail(DSCOMM_ERR_INVALID, "%s: ret_rank is NULL", name);
    if (rank < 0 || rank >= group->size)
        return dscomm_fail(DSCOMM_ERR_INVALID,
                           "%s: rank %d of group '%s' is not in 0 ... %d", name,
                           rank, group->identity.name, group->size - 1);
    *ret_rank = group->identity.world_ranks[rank];
    return DSCOMM_OK;
}

dscomm_status_t dscomm_group_from_global(const dscomm_group_t *group, int rank,
                                         int *ret_rank)
{
    const char *name = "dscomm_group_from_global";

    if (!group || dscomm_priv_group_is(group, GROUP_FREED))
        return dscomm_priv_group_alive(group, name);
    if (!ret_rank)
        return dscomm_fail(DSCOMM_ERR_INVALID, "%s: ret_rank is NULL", name);
    if (rank < 0 || rank >= group->identity.world->size)
        return dscomm_fail(DSCOMM_ERR_INVALID,
                           "%s: world rank %d is not in 0 ... %d", name, rank,
                           group->identity.world->size - 1);
    if (group->identity.from_world[rank] < 0)
        return dscomm_fail(DSCOMM_ERR_NOT_FOUND,
                           "%s: world rank %d is not in group '%s'", name, rank,
                           group->identity.name);
    *ret_rank = group->identity.from_world[rank];
    return DSCOMM_OK;
}

uint64_t dscomm_group_sequence(const dscomm_group_t *group)
{
    return group ? group->sequence : 0;
}

uint64_t dscomm_group_number(const dscomm_group_t *group)
{
    return group ? group->number : 0;
}

const char *dscomm_group_id(const dscomm_group_t *group)
{
    return group ? group->identity.id : "";
}

uint64_t dscomm_group_capabilities(const dscomm_group_t *group)
{
    return group ? group->capabilities : 0;
}

dscomm_status_t dscomm_group_set_stream(dscomm_group_t *group, void *stream)
{
    const char *name = "dscomm_group_set_stream";
    dscomm_status_t status = dscomm_priv_group_usable(group, name);

    if (status < 0)
        return status;
    if (!dscomm_priv_device_present())
        return dscomm_fail(DSCOMM_ERR_UNSUPPORTED,
                           "%s on group '%s': this process has no CUDA "
                           "driver loaded, so there are no streams",
                           name, group->identity.name);
    group->memory.stream = stream;
    return DSCOMM_OK;
}
