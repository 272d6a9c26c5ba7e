/* SPDX-License-Identifier: BSD-3-Clause */
/* Descriptors for event loops: one eventfd a group. Each completed work of the
 * program adds one to it, and so does the group's failure. Backends have no
 * descriptors that could be polled (shm sleeps on futexes, MPI does not sleep),
 * so the progress thread makes progress for the event loop. */
#include "config.h"
#include "lib/work/event.h"
#include "lib/group/failure.h"

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* Groups with descriptors. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static LIST_HEAD(, dscomm_group) watched;
static atomic_int wanted;

int dscomm_priv_event_fd(const dscomm_group_t *group)
{
    return atomic_load(&group->works.event) - 1;
}

/* The counter cannot overflow: that would take 2^64 - 2 completions. */
void dscomm_priv_event_write(dscomm_group_t *group)
{
    const uint64_t one = 1;
    ssize_t written;

    do
        written = write(dscomm_priv_event_fd(group), &one, sizeof one);
    while (written < 0 && errno == EINTR);
}

/* Adds the group to the list that the progress thread checks. */
static void event_watch(dscomm_group_t *group, int fd)
{
    pthread_mutex_lock(&lock);
    atomic_store(&group->works.event, fd + 1);
    LIST_INSERT_HEAD(&watched, group, works.in_watched);
    atomic_fetch_add(&wanted, 1);
    pthread_mutex_unlock(&lock);
}

/* Called before the group's impl is closed. */
static void event_close(dscomm_group_t *group)
{
    const int fd = dscomm_priv_event_fd(group);

    if (fd < 0)
        return;
    pthread_mutex_lock(&lock);
    LIST_REMOVE(group, works.in_watched);
    atomic_fetch_sub(&wanted, 1);
    atomic_store(&group->works.event, 0);
    pthread_mutex_unlock(&lock);
    close(fd);
}

const dscomm_group_part_t dscomm_priv_event_part = {
    .on[PART_REVOKED] = dscomm_priv_event_signal,
    .on[PART_END] = event_close,
};

int dscomm_priv_event_wanted(void)
{
    return atomic_load_explicit(&wanted, memory_order_relaxed) != 0;
}

/* Checks the groups whose failure has not been signalled; their state shows
 * that. */
void dscomm_priv_event_look(void)
{
    dscomm_group_t *group;

    if (!dscomm_priv_event_wanted())
        return;
    pthread_mutex_lock(&lock);
    LIST_FOREACH (group, &watched, works.in_watched)
        if (!dscomm_priv_group_is(group, GROUP_REVOKED))
            dscomm_priv_group_revoked(group, NULL);
    pthread_mutex_unlock(&lock);
}

void dscomm_priv_event_forked(void)
{
    pthread_mutex_init(&lock, NULL);
    LIST_INIT(&watched);
    atomic_store(&wanted, 0);
}

dscomm_status_t dscomm_priv_event_open(dscomm_group_t *group)
{
    const int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

    if (fd < 0)
        return dscomm_fail(DSCOMM_ERR_IO,
                           "dscomm_group_fd on group '%s': eventfd: %s",
                           group->identity.name, strerror(errno));
    event_watch(group, fd);
    if (dscomm_priv_group_revoked(group, NULL) != DSCOMM_OK)
        dscomm_priv_event_write(group);
    return DSCOMM_OK;
}
