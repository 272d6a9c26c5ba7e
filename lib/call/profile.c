/* SPDX-License-Identifier: BSD-3-Clause */
/* The profiler plugin of a world. What the ranks collect goes to rank 0 by the
 * store, because the group's messages may have failed. */
#include "config.h"

#include "lib/call/profile.h"

#include "lib/base/clock.h"
#include "lib/base/settings.h"
#include "lib/base/status.h"
#include "lib/module/plugin.h"
#include "lib/store/store.h"

#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

/* How long a rank tries to write to the store, and how long rank 0 waits for
 * ranks that have not written, for example because they are dead, in ms. */
#define STORE_MS 3000
#define MISSING_MS 2000

struct dscomm_profile_session {
    const dscomm_profiler_plugin_t *plugin;
    void *state;
    dscomm_profiler_part_t part; /* this rank's */
};

typedef struct dscomm_profile_session session_t;

/* A world has the plugin. */
static atomic_bool taken;

/* This thread's last sentence stays, for example that of what has ended the
 * world, but the plugin may make and read sentences meanwhile. */
static void sentence_save(char before[DSCOMM_ERROR_MAX])
{
    g_strlcpy(before, dscomm_last_error(), DSCOMM_ERROR_MAX);
}

static void sentence_restore(const char *before)
{
    dscomm_priv_fail_with(DSCOMM_OK, before);
}

dscomm_status_t dscomm_priv_profile_open(dscomm_world_t *world)
{
    const char *settings = dscomm_priv_setting_text(SETTING_PROFILE);
    const dscomm_profiler_plugin_t *plugin = NULL;
    char before[DSCOMM_ERROR_MAX];
    dscomm_status_t status;
    void *state = NULL;

    if (!settings || atomic_exchange(&taken, true))
        return DSCOMM_OK;
    status = dscomm_priv_plugin_load(&plugin);
    if (status == DSCOMM_OK) {
        sentence_save(before);
        /* a plugin that fails should replace this sentence */
        dscomm_fail(DSCOMM_ERR_ENVIRONMENT,
                    "the profiler fails to open without a reason; check "
                    "DSCOMM_PROFILE and DSCOMM_PROFILER_PLUGIN, or unset them");
        status = plugin->open(settings, &state);
        if (status == DSCOMM_OK)
            sentence_restore(before);
        else if (status > 0)
            status = dscomm_fail(
                DSCOMM_ERR_ENVIRONMENT,
                "open of the profiler returned %d, which is neither DSCOMM_OK "
                "nor an error; correct the plugin, or unset "
                "DSCOMM_PROFILER_PLUGIN",
                status);
    }
    if (status < 0) {
        atomic_store(&taken, false);
        return status;
    }
    world->profile = g_new0(session_t, 1);
    world->profile->plugin = plugin;
    world->profile->state = state;
    return DSCOMM_OK;
}

static void key_write(int rank, char key[32])
{
    g_snprintf(key, 32, "rank/%d", rank);
}

/* A view of the store for this alone; NULL if there is none. */
static dscomm_store_t *store_view(const dscomm_world_t *world)
{
    const int64_t end = dscomm_priv_clock_after(dscomm_priv_clock(), STORE_MS);
    dscomm_store_t *store;

    if (!world->meeting.store ||
        dscomm_store_prefix(world->meeting.store, "profile", &store) < 0)
        return NULL;
    dscomm_priv_store_limit(store, end, end);
    return store;
}

/* Lets the plugin's ranks exchange data. Plugins of older headers
 * have no function for it. */
static void session_meet(dscomm_world_t *world)
{
    const session_t *session = world->profile;
    const dscomm_profiler_plugin_t *plugin = session->plugin;
    dscomm_store_t *store;

    if (plugin->size <
            offsetof(dscomm_profiler_plugin_t, meet) + sizeof plugin->meet ||
        !plugin->meet)
        return;
    store = store_view(world);
    if (store)
        plugin->meet(session->state, world->group, store);
    dscomm_store_close(store);
}

void dscomm_priv_profile_begin(dscomm_world_t *world)
{
    session_t *session = world->profile;

    if (!session)
        return;
    if (session->plugin->begin)
        session->plugin->begin(session->state, world->group);
    session_meet(world);
}

static void part_publish(const dscomm_world_t *world,
                         const dscomm_profiler_part_t *part)
{
    dscomm_store_t *store = store_view(world);
    char key[32];

    key_write(world->group->rank, key);
    if (store && dscomm_store_set(store, key, part->data, part->size) < 0)
        dscomm_log(DSCOMM_LOG_WARN, "core",
                   "dscomm_finalize: rank 0 does not get the profile of this "
                   "rank: %s",
                   dscomm_last_error());
    dscomm_store_close(store);
}

void dscomm_priv_profile_collect(dscomm_world_t *world)
{
    session_t *session = world->profile;
    char before[DSCOMM_ERROR_MAX];

    if (!session)
        return;
    sentence_save(before);
    if (dscomm_group_status(world->group) == DSCOMM_OK)
        session_meet(world);
    if (session->plugin->collect)
        session->plugin->collect(session->state, &session->part);
    if (world->group->rank && session->part.data)
        part_publish(world, &session->part);
    sentence_restore(before);
}

/* Reads what the other ranks have published. */
static void parts_read(dscomm_store_t *store, dscomm_profiler_part_t *parts,
                       int count)
{
    const int64_t end =
        dscomm_priv_clock_after(dscomm_priv_clock(), MISSING_MS);
    char key[32];

    for (int i = 1; store && i < count; i++) {
        void *value;
        size_t size;

        key_write(i, key);
        if (dscomm_store_get(store, key, MAX(dscomm_priv_clock_left(end), 1),
                             &value, &size) < 0)
            continue;
        parts[i] = (dscomm_profiler_part_t){value, size};
        dscomm_store_delete(store, key, NULL);
    }
}

void dscomm_priv_profile_finish(dscomm_world_t *world)
{
    session_t *session = world->profile;
    const int count = world->size;
    char before[DSCOMM_ERROR_MAX];
    dscomm_profiler_part_t *parts;
    dscomm_store_t *store;

    if (!session || world->group->rank || !session->plugin->finish)
        return;
    parts = g_try_new0(dscomm_profiler_part_t, (gsize)count);
    if (!parts)
        return;
    sentence_save(before);
    store = store_view(world);
    parts_read(store, parts, count);
    dscomm_store_close(store);
    parts[0] = session->part;
    session->plugin->finish(session->state, parts, count);
    sentence_restore(before);
    for (int i = 1; i < count; i++)
        dscomm_store_free((void *)parts[i].data);
    g_free(parts);
}

void dscomm_priv_profile_close(dscomm_world_t *world)
{
    session_t *session = world->profile;

    if (!session)
        return;
    world->profile = NULL;
    session->plugin->close(session->state);
    g_free(session);
    atomic_store(&taken, false);
}
