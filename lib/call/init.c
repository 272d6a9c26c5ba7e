/* SPDX-License-Identifier: BSD-3-Clause */
/* Joining a job: discover rank and size, meet the other ranks, open the world
 * group. */
#include "config.h"

#include "env/bind.h"
#include "lib/base/attr.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/process.h"
#include "lib/base/settings.h"
#include "lib/base/tuning-check.h"
#include "lib/call/access.h"
#include "lib/call/group-new.h"
#include "lib/call/profile.h"
#include "lib/call/receive.h"
#include "lib/call/recording.h"
#include "lib/group/world.h"
#include "lib/rendezvous/rendezvous.h"
#include "lib/schedule/cache.h"
#include "lib/schedule/choice.h"
#include "lib/schedule/levels.h"
#include "lib/work/event.h"
#include "lib/work/pending.h"
#include "lib/work/progress.h"

#include <dscomm/init.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

static dscomm_status_t init_attr_merge(const dscomm_init_attr_t *attr,
                                       dscomm_init_attr_t *merged)
{
    const char *name = "dscomm_init";
    dscomm_status_t status = dscomm_priv_attr_read(
        "dscomm_init: attr", "start from DSCOMM_INIT_ATTR_INIT", attr,
        sizeof *attr, merged);

    if (!attr || status < 0)
        return status;
    if (merged->timeout_ms < 0)
        return dscomm_fail(DSCOMM_ERR_INVALID,
                           "%s: attr.timeout_ms is %d; give milliseconds, or 0 "
                           "for the default",
                           name, merged->timeout_ms);
    if (!merged->has_rank && (merged->rank || merged->world_size))
        return dscomm_fail(DSCOMM_ERR_INVALID,
                           "%s: attr.rank is %d and attr.world_size %d, but "
                           "attr.has_rank is 0; set it to 1, or the others to "
                           "0",
                           name, merged->rank, merged->world_size);
    return DSCOMM_OK;
}

/* Checks unknown variables. Such a variable may be a module's, so all modules
 * are loaded, but only if there is an unknown variable. */
static void check_environment(void)
{
    const dscomm_setting_t *tables[DSCOMM_TABLES_MAX];

    tables[0] = dscomm_priv_setting(0);
    if (dscomm_priv_settings_unknown(environ, tables, 1, 0))
        dscomm_priv_settings_check(environ, tables,
                                   dscomm_priv_setting_tables(tables));
}

/* Checks the tuning file. Its settings may be a module's, so all modules are
 * loaded, but only if there is a file. */
static dscomm_status_t check_tuning(void)
{
    const dscomm_setting_t *tables[DSCOMM_TABLES_MAX];

    if (!dscomm_priv_setting_text(SETTING_TUNING_FILE))
        return DSCOMM_OK;
    return dscomm_priv_tuning_check(tables, dscomm_priv_setting_tables(tables));
}

/* Functions of each room, called in a forked child. */
static void (*const forked[])(void) = {
    dscomm_priv_module_forked,
    dscomm_priv_rendezvous_forked,
    dscomm_priv_world_forked,
    dscomm_priv_hook_forked,
    dscomm_priv_pending_forked,
    dscomm_priv_event_forked,
    dscomm_priv_progress_forked,
    dscomm_priv_progress_thread_forked,
    dscomm_priv_helper_forked,
    dscomm_priv_device_times_forked,
    dscomm_priv_world_dump_forked,
    dscomm_priv_overdue_forked,
    NULL,
};

/* The parts that rooms keep with each group, in the order in which they end:
 * works end before the descriptor that signals them, and attachments end
 * last. */
static const dscomm_group_part_t *const parts[] = {
    &dscomm_priv_recording_part,
    &dscomm_priv_works_part,
    &dscomm_priv_event_part,
    &dscomm_priv_cache_part,
    &dscomm_priv_lists_part,
    &dscomm_priv_matched_part,
    &dscomm_priv_registered_part,
    &dscomm_priv_memory_part,
    &dscomm_priv_attachments_part,
    &dscomm_priv_recorder_part,
    &dscomm_priv_overdue_part,
    &dscomm_priv_device_times_part,
    NULL,
};

/* Gives lower rooms the functions of higher rooms that they call. */
static void rooms_connect(void)
{
    dscomm_priv_process_set_forked(forked);
    dscomm_priv_group_parts = parts;
    dscomm_priv_module_set_levels(&dscomm_priv_levels_ops);
}

/* Connects the rooms once: groups of other threads read these tables without a
 * lock. */
static dscomm_status_t process_prepare(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    dscomm_status_t status;

    pthread_once(&once, rooms_connect);
    status = dscomm_priv_process_watch();

    if (status == DSCOMM_OK)
        status = dscomm_priv_settings_validate();
    return status;
}

/* Joins a world of one rank. A backend that was requested must exist, although
 * it is not used. */
static dscomm_status_t meet_nobody(const dscomm_join_t *join,
                                   const dscomm_module_t **ret_module)
{
    dscomm_status_t status = DSCOMM_OK;

    if (strcmp(join->backend, "auto"))
        status = dscomm_priv_module_find(join->backend, ret_module);
    *ret_module = dscomm_priv_module_self();
    return status;
}

static dscomm_status_t open_world(const dscomm_join_t *join, const char *name,
                                  const dscomm_module_t *module,
                                  int64_t deadline, dscomm_world_t *world)
{
    dscomm_status_t status = dscomm_priv_choices_read(
        dscomm_priv_setting_text(SETTING_ALGORITHM), &world->rules);

    if (status < 0)
        return status;
    return dscomm_priv_group_open(
        &(dscomm_group_plan_t){.world = world,
                               .module = module,
                               .name = name ? name : "world",
                               .id = "w",
                               .rank = join->rank,
                               .count = join->size,
                               .timeout_ms = join->timeout_ms,
                               .deadline = deadline},
        &world->group);
}

static dscomm_status_t join_world(const dscomm_join_t *join, const char *name,
                                  dscomm_world_t *world)
{
    const int64_t began = join->began ? join->began : dscomm_priv_clock();
    const dscomm_module_t *module = NULL;
    dscomm_status_t status;

    dscomm_priv_world_record_prepare(world);
    if (join->size == 1) {
        status = meet_nobody(join, &module);
        dscomm_priv_nodes_one(1, &world->meeting.nodes);
        dscomm_priv_world_identify(world->meeting.id);
    } else {
        status = dscomm_priv_rendezvous(join, &world->meeting, &module);
    }
    if (status == DSCOMM_OK)
        status = dscomm_priv_progress_start();
    if (status < 0)
        return status;
    dscomm_priv_world_record(world, join->rank);
    dscomm_priv_world_dump_begin(world);
    status =
        open_world(join, name, module,
                   dscomm_priv_clock_after(began, join->timeout_ms), world);
    if (status < 0)
        dscomm_priv_progress_stop();
    return status;
}

dscomm_status_t dscomm_init_attr_init(dscomm_init_attr_t *attr, size_t size)
{
    return dscomm_priv_attr_init("dscomm_init_attr_init", attr, size);
}

dscomm_status_t dscomm_init(const dscomm_init_attr_t *attr,
                            dscomm_group_t **ret_world)
{
    dscomm_init_attr_t merged = DSCOMM_INIT_ATTR_INIT;
    dscomm_join_t join = {0};
    dscomm_world_t *world;
    dscomm_status_t status = init_attr_merge(attr, &merged);

    if (status < 0)
        return status;
    if (!ret_world)
        return dscomm_fail(DSCOMM_ERR_INVALID,
                           "dscomm_init: ret_world is NULL");
    status = process_prepare();
    if (status == DSCOMM_OK)
        status = dscomm_priv_discover(&merged, &join);
    if (status < 0)
        return status;
    dscomm_priv_log_rank(join.rank);
    check_environment();
    status = check_tuning();
    if (status == DSCOMM_OK)
        status = dscomm_priv_bind(join.rank, join.size);
    if (status == DSCOMM_OK && join.needs_bootstrap)
        status = dscomm_priv_bootstrap(&join);
    if (status < 0) {
        dscomm_priv_join_clear(&join);
        return status;
    }
    world = dscomm_priv_world_new(join.size);
    status = dscomm_priv_profile_open(world);
    if (status == DSCOMM_OK)
        status = join_world(&join, merged.name, world);
    if (status == DSCOMM_OK) {
        dscomm_priv_profile_begin(world);
        dscomm_priv_world_publish(world);
        *ret_world = world->group;
    } else {
        dscomm_priv_profile_close(world);
        dscomm_priv_rendezvous_leave(&world->meeting, 0, 0);
        dscomm_priv_world_free(world);
    }
    dscomm_priv_join_clear(&join);
    return status;
}
