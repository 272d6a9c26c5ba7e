/* SPDX-License-Identifier: BSD-3-Clause */
/* See window.h. */
#include "config.h"

#include "compression/codecs/codecs.h"
#include "compression/core/lease.h"
#include "compression/core/window.h"
#include "compression/device/device.h"

#include <dscomm/dscomm.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PAGE ((size_t)4096)
/* Drivers share device memory with other processes in whole blocks of this
 * size. */
#define BLOCK ((size_t)2 << 20)
/* An idle device reports within this time that it is idle. */
#define MOMENT_MS 2

/* Values of dscomm_priv_window_wish() for ranks that can have no window. */
enum { NONE = -1, SEVERAL_NODES = -2, SWITCHED_OFF = -3, NO_DEVICE = -4 };

typedef struct {
    char *memory;
    int lease; /* -1: not mapped */
} view_t;

struct dscomm_window {
    dscomm_window_t *next; /* an older one */
    dscomm_device_queue_t *queue;
    char *memory;
    size_t bytes;
    int lease; /* -1: no other process can have mapped it */
    uint32_t page; /* the first one */
    dscomm_window_slot_t *first; /* slots in the order of their addresses */
    int ranks;
    view_t views[]; /* the mapped windows of the other ranks */
};

/* The message of a rank to the others: its own window, and whether it could map
 * theirs. */
typedef struct {
    dscomm_lease_t lease;
    dscomm_device_card_t device;
    char why[160]; /* why there can be no window; empty: no problem */
} card_t;

/* Windows that other processes may still have mapped, and windows that are
 * never released. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static dscomm_window_t *waiting, *kept;

static void window_push(pthread_mutex_t *mutex, dscomm_window_t **list,
                        dscomm_window_t *window)
{
    pthread_mutex_lock(mutex);
    window->next = *list;
    g_atomic_pointer_set(list, window);
    pthread_mutex_unlock(mutex);
}

/* 1: no other process has the window mapped, and releasing it does not
 * block. */
static int is_free(dscomm_window_t *window, int most_ms)
{
    if (window->lease >= 0 && dscomm_priv_lease_end(window->lease))
        window->lease = -1;
    return window->lease < 0 &&
           dscomm_priv_device_is_idle(window->queue, MAX(most_ms, MOMENT_MS));
}

/* Releases windows of freed channels that no other process has mapped any more.
 * Waits at most most_ms for a busy device. */
static void window_reap(int most_ms)
{
    dscomm_window_t **at = &waiting;

    if (!g_atomic_pointer_get(&waiting))
        return;
    if (most_ms)
        pthread_mutex_lock(&lock);
    else if (pthread_mutex_trylock(&lock))
        return;
    while (*at) {
        dscomm_window_t *window = *at;

        if (is_free(window, most_ms)) {
            g_atomic_pointer_set(at, window->next);
            device_ops()->release(window->queue, 0, window->memory);
            g_free(window);
        } else {
            at = &window->next;
        }
    }
    pthread_mutex_unlock(&lock);
}

void dscomm_priv_device_use(const dscomm_device_ops_t *device_ops)
{
    window_reap(DSCOMM_SETTLE_MS);
    dscomm_priv_device_replace(device_ops);
}

static bool has_views(const dscomm_window_t *window)
{
    for (int r = 0; r < window->ranks; r++)
        if (window->views[r].memory)
            return true;
    return false;
}

/* Gives up a window, after the device has finished with the windows of the
 * other ranks, if any is mapped. */
static void window_discard(dscomm_window_t *window, int most_ms)
{
    if (!window || !window->memory) {
        g_free(window);
        return;
    }
    if (has_views(window) &&
        !dscomm_priv_device_is_idle(window->queue, most_ms)) {
        window_push(&lock, &kept, window);
        return;
    }
    for (int r = 0; r < window->ranks; r++) {
        view_t *view = &window->views[r];

        if (view->memory)
            device_ops()->unmap(window->queue, view->memory);
        if (view->lease >= 0)
            dscomm_priv_lease_give(view->lease);
    }
    window_push(&lock, &waiting, window);
}

void dscomm_priv_window_leave(dscomm_channel_t *channel)
{
    const int most_ms =
        MIN(dscomm_priv_channel_timeout(channel), DSCOMM_SETTLE_MS);
    dscomm_windows_t *windows = &channel->windows;

    while (windows->newest) {
        dscomm_window_t *window = windows->newest;

        windows->newest = window->next;
        if (windows->abandoned)
            window_push(&lock, &kept, window);
        else
            window_discard(window, most_ms);
    }
    windows->abandoned = 0;
    window_reap(most_ms);
}

size_t dscomm_priv_window_need(const dscomm_compressor_t *c, int ranks)
{
    return c->codec == &dscomm_priv_codec_onebit && c->feedback &&
                   !c->recoverable
               ? dscomm_priv_round_up(2 * (size_t)ranks * c->row, PAGE)
               : 0;
}

/* Compares with "no" only, because dscomm_init() refuses anything but yes and
 * no. */
static int is_off(void)
{
    const char *text = getenv("DSCOMM_CUDA_IPC");

    return text && !strcmp(text, "no");
}

int64_t dscomm_priv_window_wish(const dscomm_compressor_t *c,
                                dscomm_group_t *group)
{
    const int ranks = dscomm_group_size(group);
    const dscomm_channel_t *channel = dscomm_priv_channel_of(group);
    const dscomm_windows_t none = {0};
    const dscomm_windows_t *windows = channel ? &channel->windows : &none;
    size_t demand = dscomm_priv_window_need(c, ranks), last;
    int device;

    if (ranks < 2 || !demand || windows->refused ||
        dscomm_group_capabilities(group) & DSCOMM_CAP_DEVICE_MEMORY)
        return NONE;
    device = dscomm_priv_device_current();
    if (device < 0)
        return NO_DEVICE;
    if (is_off())
        return SWITCHED_OFF;
    if (dscomm_group_local_size(group) != ranks)
        return SEVERAL_NODES;
    demand += windows->demand;
    last = windows->newest ? windows->newest->bytes : 0;
    if (demand <= last)
        return 0;
    demand = dscomm_priv_round_up(MAX(demand, 2 * last), BLOCK);
    if ((last && device != windows->device) ||
        demand / PAGE > DSCOMM_WINDOW_PAGES - windows->pages)
        return NONE;
    return (int64_t)demand;
}

uint32_t dscomm_priv_window_oldest(dscomm_group_t *group)
{
    const dscomm_channel_t *channel = dscomm_priv_channel_of(group);
    const dscomm_window_t *window = channel ? channel->windows.newest : NULL;
    uint32_t page = channel ? channel->windows.pages : 0;

    for (; window; window = window->next)
        page = window->page;
    return page;
}

static void windows_refuse(dscomm_channel_t *channel, int rank, const char *why)
{
    snprintf(channel->windows.why, sizeof channel->windows.why,
             "rank %d %.159s", rank, why);
}

static void fill_why(card_t *card, const char *what, const char *why)
{
    snprintf(card->why, sizeof card->why, "%s: %s", what, why);
}

static dscomm_window_t *new_window(const dscomm_channel_t *channel,
                                   size_t bytes)
{
    const size_t ranks = (size_t)channel->ranks;
    dscomm_window_t *window =
        g_try_malloc0(sizeof *window + ranks * sizeof *window->views);

    if (!window)
        return NULL;
    window->bytes = bytes;
    window->page = channel->windows.pages;
    window->ranks = channel->ranks;
    window->lease = -1;
    for (size_t r = 0; r < ranks; r++)
        window->views[r].lease = -1;
    return window;
}

/* Allocates this rank's own window, and describes it in ret_card. */
static void open_own(dscomm_window_t *window, int device, card_t *ret_card)
{
    void *memory = NULL;
    int code;

    if (dscomm_priv_device_queue(device, &window->queue) < 0) {
        fill_why(ret_card, "cannot use its device", dscomm_last_error());
        return;
    }
    code = device_ops()->alloc(window->queue, window->bytes, 0, &memory);
    window->memory = memory;
    if (!code)
        code = device_ops()->lend(window->queue, memory, &ret_card->device);
    if (code) {
        fill_why(ret_card, "has no device memory for others",
                 device_ops()->text(code));
        return;
    }
    window->lease = dscomm_priv_lease_make(&ret_card->lease);
    if (window->lease < 0)
        fill_why(ret_card, "cannot tell whether others use its memory",
                 strerror(errno));
}

/* Rank r's. */
static void open_view(dscomm_window_t *window, int r, const card_t *theirs,
                      card_t *mine)
{
    view_t *view = &window->views[r];
    void *memory = NULL;
    char what[64];
    int code;

    /* A process of another container may have the same number, but then it has
     * no such lease. */
    view->lease = dscomm_priv_lease_hold(&theirs->lease);
    if (view->lease < 0) {
        snprintf(mine->why, sizeof mine->why,
                 "does not find the process of rank %d, as in containers that "
                 "do not see each other's",
                 r);
        return;
    }
    if (theirs->device.process == mine->device.process) {
        snprintf(mine->why, sizeof mine->why,
                 "is of the same process as rank %d, and none can map its own "
                 "memory again",
                 r);
        return;
    }
    code = device_ops()->map(window->queue, &theirs->device, &memory);
    view->memory = memory;
    snprintf(what, sizeof what, "cannot map the device memory of rank %d", r);
    if (code)
        fill_why(mine, what, device_ops()->text(code));
}

/* Exchanges the cards of all ranks. The first rank with a problem determines
 * the reason for all. Uses the compressors' group, because outstanding calls
 * use the channel's own. */
static dscomm_status_t window_cards_exchange(dscomm_channel_t *channel,
                                             const card_t *mine,
                                             card_t *ret_all)
{
    dscomm_windows_t *windows = &channel->windows;
    dscomm_status_t status = dscomm_all_gather(
        channel->parent, mine, ret_all, sizeof *mine, DSCOMM_UINT8, NULL);

    for (int r = 0; r < channel->ranks && status == DSCOMM_OK; r++) {
        ret_all[r].why[sizeof ret_all[r].why - 1] = 0;
        if (!*ret_all[r].why)
            continue;
        windows_refuse(channel, r, ret_all[r].why);
        windows->refused = 1;
        break;
    }
    return status;
}

static dscomm_status_t window_make(dscomm_channel_t *channel, size_t bytes)
{
    dscomm_windows_t *windows = &channel->windows;
    card_t mine = {.why = ""};
    card_t *all = g_try_new0(card_t, (size_t)channel->ranks);
    dscomm_window_t *window = all ? new_window(channel, bytes) : NULL;
    dscomm_status_t status;

    if (!all)
        return dscomm_priv_channel_fail(channel->parent);
    if (window)
        open_own(window, windows->device, &mine);
    else
        fill_why(&mine, "cannot share its memory", "no memory to note it");
    status = window_cards_exchange(channel, &mine, all);
    if (status == DSCOMM_OK && !windows->refused) {
        for (int r = 0; r < channel->ranks && !*mine.why; r++)
            if (r != channel->rank)
                open_view(window, r, &all[r], &mine);
        status = window_cards_exchange(channel, &mine, all);
    }
    if (status < 0) /* the backend may still write there */
        dscomm_priv_retain(all);
    else
        g_free(all);
    if (status < 0 || windows->refused) {
        window_discard(window, DSCOMM_SETTLE_MS);
        window_reap(0);
        return status;
    }
    windows->pages += (uint32_t)(bytes / PAGE);
    window_push(&windows->lock, &windows->newest, window);
    return status;
}

dscomm_status_t dscomm_priv_window_agree(dscomm_channel_t *channel,
                                         const dscomm_window_wishes_t *wishes)
{
    dscomm_windows_t *windows = &channel->windows;
    const char *why = NULL;

    pthread_mutex_lock(&windows->lock);
    windows->from = wishes->from;
    pthread_mutex_unlock(&windows->lock);
    window_reap(0);
    if (wishes->least == NO_DEVICE)
        why = "had no device when its compressor was made";
    if (wishes->least == SWITCHED_OFF)
        why = "has DSCOMM_CUDA_IPC=no";
    if (wishes->least == SEVERAL_NODES)
        why = "shares its node with some of the ranks only";
    if (why)
        windows_refuse(channel, wishes->rank, why);
    if (wishes->least < 0 || wishes->most == 0)
        return DSCOMM_OK;
    if (!windows->newest)
        windows->device = dscomm_priv_device_current();
    return window_make(channel, (size_t)wishes->most);
}

char *dscomm_priv_window_take(dscomm_channel_t *channel,
                              const dscomm_device_queue_t *queue, size_t bytes,
                              dscomm_window_slot_t *ret_slot)
{
    dscomm_windows_t *windows = &channel->windows;
    dscomm_window_t *window;
    char *memory = NULL;

    bytes = dscomm_priv_round_up(MAX(bytes, 1), PAGE);
    pthread_mutex_lock(&windows->lock);
    for (window = windows->newest; window && !memory; window = window->next) {
        dscomm_window_slot_t **next = &window->first;
        size_t at = 0;

        for (; *next && (*next)->at - at < bytes; next = &(*next)->next)
            at = (*next)->at + (*next)->bytes;
        if (window->page < windows->from || window->queue != queue ||
            window->bytes - at < bytes)
            continue;
        *ret_slot = (dscomm_window_slot_t){window, at, bytes, *next};
        *next = ret_slot;
        memory = window->memory + at;
    }
    pthread_mutex_unlock(&windows->lock);
    return memory;
}

void dscomm_priv_window_give(dscomm_channel_t *channel,
                             dscomm_window_slot_t *slot)
{
    dscomm_window_slot_t **at;

    if (!slot->window)
        return;
    pthread_mutex_lock(&channel->windows.lock);
    at = &slot->window->first;
    while (*at != slot)
        at = &(*at)->next;
    *at = slot->next;
    pthread_mutex_unlock(&channel->windows.lock);
    *slot = (dscomm_window_slot_t){0};
}

uint32_t dscomm_priv_window_page(const dscomm_window_slot_t *slot)
{
    return slot->window->page + (uint32_t)(slot->at / PAGE);
}

char *dscomm_priv_window_find(dscomm_channel_t *channel, int rank,
                              uint32_t page, size_t bytes)
{
    dscomm_windows_t *windows = &channel->windows;
    const dscomm_window_t *window;
    char *memory = NULL;

    pthread_mutex_lock(&windows->lock);
    for (window = windows->newest; window && !memory; window = window->next) {
        size_t at = ((size_t)page - window->page) * PAGE;

        if (page >= window->page && at <= window->bytes &&
            bytes <= window->bytes - at)
            memory = window->views[rank].memory + at;
    }
    pthread_mutex_unlock(&windows->lock);
    return memory;
}
