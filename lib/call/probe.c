/* SPDX-License-Identifier: BSD-3-Clause */
/* Probes: finding a message that a receive would match. */
#include "config.h"
#include "lib/base/clock.h"
#include "lib/call/receive.h"
#include "lib/work/pending.h"
#include "lib/work/progress.h"

#define SPINS 64

typedef struct {
    dscomm_message_t wanted;
    dscomm_request_t found;
    void **ret_taken; /* NULL: the message stays */
} probe_t;

static dscomm_status_t check_probe(dscomm_group_t *group, const char *name,
                                   const probe_t *probe, int timeout_ms,
                                   const dscomm_message_info_t *info)
{
    dscomm_status_t status = dscomm_priv_group_ready(group, name);

    if (status == DSCOMM_OK)
        status = dscomm_priv_check_peer(group, name, probe->wanted.peer,
                                        probe->wanted.tag, 1);
    if (status == DSCOMM_OK)
        status = dscomm_priv_message_info_check(info, name);
    if (status < 0)
        return status;
    if (timeout_ms < DSCOMM_TIMEOUT_DEFAULT)
        return dscomm_priv_invalid(group, name,
                                   "timeout_ms is %d; give "
                                   "milliseconds, 0 or DSCOMM_TIMEOUT_DEFAULT",
                                   timeout_ms);
    if (!group->ops.probe)
        return dscomm_fail(DSCOMM_ERR_UNSUPPORTED,
                           "%s on group '%s': backend %s cannot probe; receive "
                           "into a buffer that is large enough",
                           name, group->identity.name, group->module->name);
    return DSCOMM_OK;
}

/* Called with the group's lock held. Backends make progress here also without
 * works. */
static int probe_once(dscomm_group_t *group, probe_t *probe)
{
    if (group->works.pending || group->works.serve)
        dscomm_priv_progress(group);
    else
        group->ops.progress(group->impl);
    group->works.unscanned = 1;
    return group->ops.probe(group->impl, &probe->wanted, &probe->found,
                            probe->ret_taken);
}

/* Called with the group's lock held: OK; IN_PROGRESS if no message has come by
 * end; or the group's failure. */
static dscomm_status_t probe_until(dscomm_group_t *group, const char *name,
                                   probe_t *probe, int64_t end)
{
    int64_t now;

    for (int spins = 0; !probe_once(group, probe); spins++) {
        if (dscomm_priv_works_broken(group))
            return dscomm_priv_group_usable(group, name);
        now = dscomm_priv_clock();
        if (now >= end)
            return DSCOMM_IN_PROGRESS;
        if (spins < SPINS)
            continue;
        dscomm_priv_progress_others(group);
        dscomm_priv_progress_rest(group, end - now,
                                  dscomm_priv_pending_others(group));
    }
    return DSCOMM_OK;
}

static dscomm_status_t probe_group(dscomm_group_t *group, const char *name,
                                   probe_t *probe, int timeout_ms,
                                   dscomm_message_info_t *ret_info)
{
    dscomm_status_t status;
    int64_t end;

    if (timeout_ms == DSCOMM_TIMEOUT_DEFAULT)
        timeout_ms = group->timeout_ms;
    end = dscomm_priv_clock_after(dscomm_priv_clock(), timeout_ms);
    pthread_mutex_lock(&group->works.lock);
    status = probe_until(group, name, probe, end);
    dscomm_priv_pending_settle(group);
    pthread_mutex_unlock(&group->works.lock);
    if (status == DSCOMM_OK)
        dscomm_priv_message_info_fill(ret_info, status, &probe->found);
    return status;
}

dscomm_status_t dscomm_probe(dscomm_group_t *group, int source, int tag,
                             int timeout_ms, dscomm_message_info_t *ret_info)
{
    const char *name = "dscomm_probe";
    probe_t probe = {.wanted = {.peer = source, .tag = tag}};
    dscomm_status_t status =
        check_probe(group, name, &probe, timeout_ms, ret_info);

    return status < 0 ? status
                      : probe_group(group, name, &probe, timeout_ms, ret_info);
}

dscomm_status_t dscomm_probe_matched(dscomm_group_t *group, int source, int tag,
                                     int timeout_ms,
                                     dscomm_message_info_t *ret_info,
                                     dscomm_matched_t **ret_matched)
{
    const char *name = "dscomm_probe_matched";
    probe_t probe = {.wanted = {.peer = source, .tag = tag}};
    dscomm_status_t status =
        check_probe(group, name, &probe, timeout_ms, ret_info);
    dscomm_matched_t *matched;

    if (status < 0)
        return status;
    if (!ret_matched)
        return dscomm_priv_invalid(group, name, "ret_matched is NULL");
    matched = g_try_new0(dscomm_matched_t, 1);
    if (!matched)
        return dscomm_fail(DSCOMM_ERR_NO_MEMORY,
                           "%s on group '%s': no memory for a handle", name,
                           group->identity.name);
    probe.ret_taken = &matched->taken;
    status = probe_group(group, name, &probe, timeout_ms, ret_info);
    if (status != DSCOMM_OK) {
        g_free(matched);
        return status;
    }
    matched->group = group;
    matched->source = probe.found.source;
    matched->tag = probe.found.tag;
    SLIST_INSERT_HEAD(&group->works.matched, matched, link);
    *ret_matched = matched;
    return DSCOMM_OK;
}

static void matched_free(dscomm_group_t *group)
{
    dscomm_matched_t *matched;

    while ((matched = SLIST_FIRST(&group->works.matched)) != NULL) {
        SLIST_REMOVE_HEAD(&group->works.matched, link);
        g_free(matched);
    }
}

const dscomm_group_part_t dscomm_priv_matched_part = {.on[PART_FREE] =
                                                          matched_free};
