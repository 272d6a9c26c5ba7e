/* SPDX-License-Identifier: BSD-3-Clause */
/* Failures in the store, see published.h. */
#include "config.h"

#include "lib/group/failure.h"
#include "lib/group/published.h"
#include "lib/rendezvous/processes.h"
#include "lib/store/store.h"

#define LOOK_MS 1000 /* time limit of the requests of one look */
#define SHORT_LOOK_MS 250
/* How making a child of the group has failed, as a packed record: the last one
 * with a culprit; its sequence is that of the group's last collective then. */
#define CHILD_KEY "child"

dscomm_status_t dscomm_priv_look_store(const dscomm_group_t *group,
                                       dscomm_store_t **ret_store)
{
    const dscomm_status_t status =
        dscomm_store_prefix(group->life.store, "", ret_store);

    if (status == DSCOMM_OK)
        dscomm_priv_store_limit_diagnosis(*ret_store, LOOK_MS);
    return status;
}

dscomm_store_t *dscomm_priv_group_look_open(const dscomm_group_t *group)
{
    dscomm_store_t *store = NULL;

    if (group->life.store && !dscomm_priv_store_silent(group->life.base, NULL))
        dscomm_priv_look_store(group, &store);
    return store;
}

bool dscomm_priv_failure_blames(dscomm_status_t status)
{
    return status == DSCOMM_ERR_PEER_FAILED || status == DSCOMM_ERR_TIMEOUT ||
           status == DSCOMM_ERR_IO;
}

bool dscomm_priv_failure_is_unexplained(const dscomm_failure_t *failure)
{
    return failure->status == DSCOMM_ERR_TIMEOUT && failure->rank < 0;
}

/* Replaces the stored failure, a value of *size bytes, if it is a time-out
 * without a culprit and failure names one. The value is what is stored then. */
static void publish_culprit(dscomm_store_t *store, void **value, size_t *size,
                            const dscomm_failure_t *failure)
{
    char packed[DSCOMM_FAILURE_PACKED];
    const size_t own = dscomm_backend_failure_pack(failure, packed);
    dscomm_failure_t first;
    size_t stored_size;
    void *stored;

    if (failure->rank < 0 ||
        !dscomm_backend_failure_unpack(*value, *size, &first) ||
        !dscomm_priv_failure_is_unexplained(&first) ||
        dscomm_store_compare_set(store, DSCOMM_FAILED_KEY, *value, *size,
                                 packed, own, &stored, &stored_size) < 0)
        return;
    dscomm_store_free(*value);
    *value = stored;
    *size = stored_size;
}

dscomm_status_t dscomm_priv_failure_publish(dscomm_store_t *store,
                                            dscomm_failure_t *failure)
{
    char packed[DSCOMM_FAILURE_PACKED];
    const size_t own = dscomm_backend_failure_pack(failure, packed);
    size_t size;
    void *value;
    dscomm_status_t status = dscomm_store_compare_set(
        store, DSCOMM_FAILED_KEY, "", 0, packed, own, &value, &size);

    if (status < 0)
        return status;
    if (dscomm_priv_failure_blames(failure->status)) {
        publish_culprit(store, &value, &size, failure);
        dscomm_backend_failure_unpack(value, size, failure);
    }
    dscomm_store_free(value);
    return DSCOMM_OK;
}

void dscomm_priv_group_share_failure(const dscomm_group_t *group,
                                     dscomm_failure_t *failure)
{
    dscomm_store_t *store = dscomm_priv_group_look_open(group);

    if (!store)
        return;
    dscomm_priv_failure_publish(store, failure);
    dscomm_store_close(store);
}

dscomm_status_t dscomm_priv_published_failure(dscomm_store_t *store,
                                              dscomm_failure_t *ret_failure)
{
    void *value;
    size_t size;
    dscomm_status_t status = dscomm_store_get(
        store, DSCOMM_FAILED_KEY, DSCOMM_TIMEOUT_DEFAULT, &value, &size);

    if (status < 0)
        return status;
    if (!dscomm_backend_failure_unpack(value, size, ret_failure))
        ret_failure->status = DSCOMM_OK;
    dscomm_store_free(value);
    return status;
}

/* An accusation of this rank's own death is no cause of what it has seen. */
void dscomm_backend_failure_earlier(const dscomm_group_t *group,
                                    dscomm_failure_t *failure)
{
    const char *key = DSCOMM_FAILED_KEY;
    dscomm_failure_t earlier;
    dscomm_store_t *store;
    int present = 0;

    if (!group || (dscomm_priv_group_is_served(group) && failure->rank == 0))
        return;
    store = dscomm_priv_group_look_open(group);
    if (!store)
        return;
    dscomm_priv_store_limit_diagnosis(store, SHORT_LOOK_MS);
    if (dscomm_store_check(store, &key, 1, &present) == DSCOMM_OK && present &&
        dscomm_priv_published_failure(store, &earlier) == DSCOMM_OK &&
        earlier.status < 0 &&
        (earlier.kind != DSCOMM_FAILURE_DIED ||
         earlier.rank != group->identity.world->meeting.rank))
        *failure = earlier;
    dscomm_store_close(store);
}

void dscomm_priv_group_learn_culprit(const dscomm_group_t *group,
                                     dscomm_failure_t *failure)
{
    const dscomm_meeting_t *meeting = &group->identity.world->meeting;

    if (failure->rank < 0 || failure->pid || !meeting->processes ||
        dscomm_priv_store_silent(group->life.base, NULL))
        return;
    if (dscomm_priv_processes_learn(meeting->processes, group->life.base,
                                    &failure->rank, 1) == DSCOMM_OK)
        dscomm_priv_group_accuse_world(group, failure->rank, failure);
}

void dscomm_priv_child_publish(const dscomm_group_t *parent,
                               const dscomm_failure_t *failure)
{
    dscomm_failure_t dated = *failure;
    char packed[DSCOMM_FAILURE_PACKED];
    dscomm_store_t *store = dscomm_priv_group_look_open(parent);
    size_t size;

    if (!store)
        return;
    dated.sequence = parent->sequence;
    size = dscomm_backend_failure_pack(&dated, packed);
    dscomm_store_set(store, CHILD_KEY, packed, size);
    dscomm_store_close(store);
}

int dscomm_priv_child_culprit(const dscomm_group_t *group, uint64_t sequence)
{
    const char *key = CHILD_KEY;
    dscomm_store_t *store = dscomm_priv_group_look_open(group);
    dscomm_failure_t failure;
    int culprit = -1, present = 0;
    void *value;
    size_t size;

    if (!store)
        return -1;
    dscomm_priv_store_limit_diagnosis(store, SHORT_LOOK_MS);
    if (dscomm_store_check(store, &key, 1, &present) == DSCOMM_OK && present &&
        dscomm_store_get(store, key, DSCOMM_TIMEOUT_DEFAULT, &value, &size) ==
            DSCOMM_OK) {
        if (dscomm_backend_failure_unpack(value, size, &failure) &&
            failure.sequence + 1 >= sequence)
            culprit = failure.rank;
        dscomm_store_free(value);
    }
    dscomm_store_close(store);
    return culprit;
}
