/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of users for the device. To register memory takes the kernel long, so
 * it stays registered after its use, for the next one.
 *
 * The program may unmap it meanwhile, and have other memory at its address
 * later, which the device does not see. userfaultfd(2) tells of that: munmap(2)
 * and the like return only after the monitor, a thread, has read the event. It
 * holds events_lock from before the read until the event is in the ring; so who
 * takes that lock after munmap() finds it. Nothing in events_lock frees memory,
 * as that could unmap some, and wait for the monitor. Without userfaultfd, or
 * for memory that it does not watch, nothing stays registered.
 *
 * A device with on-demand paging reads the process's page tables, so that
 * memory need not be locked, and may be unmapped. As a page that it does not
 * know makes a message wait, that is used only for memory that is not watched,
 * or that may not be locked.
 *
 * Memory of another device is registered by its dma-buf, for as long as the
 * user has it registered. */
#include "config.h"

#include "backends/net/ibverbs/ibverbs.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef UFFD_USER_MODE_ONLY /* Linux 5.11 */
#define UFFD_USER_MODE_ONLY 1
#endif

/* Registrations that are kept without a use. */
#define KEPT_MOST 256
#define EVENTS_MOST 256 /* in the ring */

struct region {
    TAILQ_ENTRY(region) in_all;
    regions_t *regions;
    struct ibv_mr *mr;
    uintptr_t begin, end;
    /* one at most if something is written there, except on a device */
    unsigned uses;
    int access; /* IBV_ACCESS_ */
    bool stale; /* not for further uses */
};

typedef struct {
    uintptr_t begin, end;
} range_t;

struct regions {
    struct ibv_pd *pd;
    TAILQ_HEAD(region_list, region) all; /* the last one used first */
    unsigned kept; /* without a use */
    uintptr_t page;
    uint64_t takes, registrations;
    bool on_demand; /* the device can page on demand */
    int faults; /* of userfaultfd; -1: there is none */
    int stop; /* event descriptor */
    pthread_t monitor;
    pthread_mutex_t events_lock;
    unsigned event_count;
    bool overflow; /* there were more events: any memory may be gone */
    range_t events[EVENTS_MOST];
};

/* The monitor. */

static void event_note(regions_t *regions, uintptr_t begin, uintptr_t end)
{
    if (regions->event_count < EVENTS_MOST)
        regions->events[regions->event_count++] = (range_t){begin, end};
    else
        regions->overflow = true;
}

static void unmapped_read(regions_t *regions)
{
    struct uffd_msg message;

    while (read(regions->faults, &message, sizeof message) == sizeof message) {
        if (message.event == UFFD_EVENT_REMAP)
            event_note(regions, message.arg.remap.from,
                       message.arg.remap.from + message.arg.remap.len);
        else if (message.event == UFFD_EVENT_REMOVE ||
                 message.event == UFFD_EVENT_UNMAP)
            event_note(regions, message.arg.remove.start,
                       message.arg.remove.end);
    }
}

static void *monitor_run(void *arg)
{
    regions_t *regions = arg;
    struct pollfd files[] = {{.fd = regions->faults, .events = POLLIN},
                             {.fd = regions->stop, .events = POLLIN}};

    while (!files[1].revents) {
        if (poll(files, G_N_ELEMENTS(files), -1) < 0)
            continue;
        pthread_mutex_lock(&regions->events_lock);
        unmapped_read(regions);
        pthread_mutex_unlock(&regions->events_lock);
    }
    return NULL;
}

/* Starts the monitor, which handles none of the program's signals; an errno. */
static int monitor_start(regions_t *regions)
{
    sigset_t all, mask;
    int error;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &mask);
    error = pthread_create(&regions->monitor, NULL, monitor_run, regions);
    pthread_sigmask(SIG_SETMASK, &mask, NULL);
    return error;
}

/* Returns the descriptor, or -1. */
static int faults_open(void)
{
    struct uffdio_api api = {
        .api = UFFD_API,
        .features = UFFD_FEATURE_EVENT_REMAP | UFFD_FEATURE_EVENT_REMOVE |
                    UFFD_FEATURE_EVENT_UNMAP | UFFD_FEATURE_PAGEFAULT_FLAG_WP};
    const int fd = (int)syscall(SYS_userfaultfd,
                                O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);

    if (fd >= 0 && ioctl(fd, UFFDIO_API, &api)) {
        close(fd);
        return -1;
    }
    return fd;
}

/* Whether a device pages on demand what connections write and read. */
static bool pages_on_demand(struct ibv_context *context)
{
    const uint32_t needed = IBV_ODP_SUPPORT_WRITE | IBV_ODP_SUPPORT_READ;
    struct ibv_device_attr_ex attr;

    return !ibv_query_device_ex(context, NULL, &attr) &&
           (attr.odp_caps.general_caps & IBV_ODP_SUPPORT) &&
           (attr.odp_caps.per_transport_caps.rc_odp_caps & needed) == needed;
}

regions_t *verbs_regions_new(struct ibv_pd *pd)
{
    regions_t *regions = g_new0(regions_t, 1);

    regions->pd = pd;
    regions->page = (uintptr_t)sysconf(_SC_PAGESIZE);
    TAILQ_INIT(&regions->all);
    pthread_mutex_init(&regions->events_lock, NULL);
    regions->stop = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    regions->faults = regions->stop < 0 ? -1 : faults_open();
    if (regions->faults >= 0 && monitor_start(regions)) {
        close(regions->faults);
        regions->faults = -1;
    }
    regions->on_demand = pages_on_demand(pd->context);
    if (regions->faults < 0)
        dscomm_log(DSCOMM_LOG_INFO, "ibverbs", "no userfaultfd: memory is %s",
                   regions->on_demand ? "paged on demand"
                                      : "registered for each long message");
    return regions;
}

/* Whether the monitor learns when memory of a region is unmapped. Nothing is
 * write-protected. */
static bool region_watch(const region_t *region)
{
    struct uffdio_register range = {
        .range = {.start = region->begin, .len = region->end - region->begin},
        .mode = UFFDIO_REGISTER_MODE_WP};

    return region->regions->faults >= 0 &&
           !ioctl(region->regions->faults, UFFDIO_REGISTER, &range);
}

/* Regions. */

static void region_free(region_t *region)
{
    TAILQ_REMOVE(&region->regions->all, region, in_all);
    if (region->mr)
        ibv_dereg_mr(region->mr);
    g_free(region);
}

/* Makes a region one for no further use; frees it if it has none. */
static void region_retire(region_t *region)
{
    if (!region->uses && !region->stale)
        region->regions->kept--;
    region->stale = true;
    if (!region->uses)
        region_free(region);
}

/* Retires what overlaps a range. */
static void range_retire(regions_t *regions, const range_t *range)
{
    region_t *region = TAILQ_FIRST(&regions->all), *next;

    for (; region; region = next) {
        next = TAILQ_NEXT(region, in_all);
        if (region->begin < range->end && range->begin < region->end)
            region_retire(region);
    }
}

static void events_use(regions_t *regions)
{
    range_t events[EVENTS_MOST];
    unsigned count;

    pthread_mutex_lock(&regions->events_lock);
    count = regions->event_count;
    memcpy(events, regions->events, count * sizeof *events);
    if (regions->overflow) {
        events[0] = (range_t){0, UINTPTR_MAX};
        count = 1;
    }
    regions->event_count = 0;
    regions->overflow = false;
    pthread_mutex_unlock(&regions->events_lock);
    for (unsigned i = 0; i < count; i++)
        range_retire(regions, &events[i]);
}

/* Frees the regions without a use, but for the last ones. */
static void kept_limit(regions_t *regions, unsigned most)
{
    region_t *region = TAILQ_LAST(&regions->all, region_list), *previous;

    for (; region && regions->kept > most; region = previous) {
        previous = TAILQ_PREV(region, region_list, in_all);
        if (!region->uses)
            region_retire(region);
    }
}

struct ibv_mr *verbs_regions_register(regions_t *regions, void *memory,
                                      size_t bytes, int access)
{
    struct ibv_mr *mr = ibv_reg_mr(regions->pd, memory, bytes, access);

    if (mr)
        return mr;
    kept_limit(regions, 0);
    return ibv_reg_mr(regions->pd, memory, bytes, access);
}

static region_t *region_new(regions_t *regions, uintptr_t begin, uintptr_t end,
                            int access)
{
    region_t *region = g_new0(region_t, 1);

    *region = (region_t){
        .regions = regions, .begin = begin, .end = end, .access = access};
    TAILQ_INSERT_HEAD(&regions->all, region, in_all);
    /* Before the registration: what is unmapped in between is noticed. */
    region->stale = !region_watch(region);
    if (!regions->on_demand)
        region->mr =
            verbs_regions_register(regions, (void *)begin, end - begin, access);
    else if (!region->stale)
        region->mr =
            ibv_reg_mr(regions->pd, (void *)begin, end - begin, access);
    if (!region->mr && regions->on_demand) {
        region->stale = false;
        region->mr = ibv_reg_mr(regions->pd, (void *)begin, end - begin,
                                access | IBV_ACCESS_ON_DEMAND);
    }
    regions->registrations++;
    if (region->mr)
        return region;
    region_free(region);
    return NULL;
}

region_t *verbs_region_take(regions_t *regions, const void *memory,
                            size_t bytes, int access)
{
    const uintptr_t begin = (uintptr_t)memory & ~(regions->page - 1);
    const uintptr_t end =
        ((uintptr_t)memory + bytes + regions->page - 1) & ~(regions->page - 1);
    region_t *region;

    regions->takes++;
    events_use(regions);
    TAILQ_FOREACH (region, &regions->all, in_all)
        if (!region->stale && region->begin <= begin && end <= region->end &&
            region->access == access &&
            !((access & IBV_ACCESS_LOCAL_WRITE) && region->uses))
            break;
    if (!region)
        region = region_new(regions, begin, end, access);
    else if (!region->uses)
        regions->kept--;
    if (!region)
        return NULL;
    region->uses++;
    TAILQ_REMOVE(&regions->all, region, in_all);
    TAILQ_INSERT_HEAD(&regions->all, region, in_all);
    return region;
}

/* Registers a dma-buf; NULL and errno. */
static struct ibv_mr *
dma_buf_register(struct ibv_pd *pd, const dscomm_dma_buf_t *memory, int access)
{
#ifdef HAVE_IBV_REG_DMABUF_MR
    return ibv_reg_dmabuf_mr(pd, memory->offset, memory->bytes,
                             (uintptr_t)memory->address, memory->descriptor,
                             access);
#else
    (void)pd;
    (void)memory;
    (void)access;
    errno = EOPNOTSUPP;
    return NULL;
#endif
}

bool verbs_dma_bufs(struct ibv_context *context)
{
    /* No device has looked at the descriptor if it has no such function. */
    const dscomm_dma_buf_t none = {.bytes = 1, .descriptor = -1};
    struct ibv_pd *pd = ibv_alloc_pd(context);
    struct ibv_mr *mr = pd ? dma_buf_register(pd, &none, 0) : NULL;
    const int error = mr ? 0 : errno;

    if (mr)
        ibv_dereg_mr(mr);
    if (pd)
        ibv_dealloc_pd(pd);
    return pd && error != EOPNOTSUPP && error != EPROTONOSUPPORT;
}

region_t *verbs_region_take_device(regions_t *regions,
                                   const dscomm_dma_buf_t *memory, int access)
{
    const uintptr_t begin = (uintptr_t)memory->address;
    region_t *region = g_new0(region_t, 1);

    *region = (region_t){.regions = regions,
                         .begin = begin,
                         .end = begin + memory->bytes,
                         .access = access,
                         .uses = 1,
                         .stale = true};
    TAILQ_INSERT_HEAD(&regions->all, region, in_all);
    regions->takes++;
    regions->registrations++;
    region->mr = dma_buf_register(regions->pd, memory, access);
    if (region->mr)
        return region;
    dscomm_log(DSCOMM_LOG_INFO, "ibverbs",
               "%s cannot register %zu bytes of a device: %s%s",
               ibv_get_device_name(regions->pd->context->device), memory->bytes,
               strerror(errno), verbs_remedy(errno));
    region_free(region);
    return NULL;
}

region_t *verbs_region_share(region_t *region)
{
    if (!region->mr)
        return NULL;
    region->uses++;
    return region;
}

void verbs_region_drop(region_t *region)
{
    regions_t *regions = region->regions;

    if (--region->uses)
        return;
    if (region->stale) {
        region_free(region);
        return;
    }
    regions->kept++;
    kept_limit(regions, KEPT_MOST);
}

void verbs_region_end(region_t *region)
{
    region->stale = true;
    if (region->mr && ibv_dereg_mr(region->mr))
        dscomm_log(DSCOMM_LOG_ERROR, "ibverbs",
                   "memory stays registered, and may be written to: %s",
                   strerror(errno));
    region->mr = NULL;
    verbs_region_drop(region);
}

uint32_t verbs_region_lkey(const region_t *region)
{
    return region->mr->lkey;
}

uint32_t verbs_region_rkey(const region_t *region)
{
    return region->mr->rkey;
}

void verbs_regions_free(regions_t *regions)
{
    const uint64_t one = 1;
    region_t *region;

    if (!regions)
        return;
    if (regions->faults >= 0) {
        while (write(regions->stop, &one, sizeof one) < 0 && errno == EINTR)
            continue;
        pthread_join(regions->monitor, NULL);
        close(regions->faults);
    }
    if (regions->stop >= 0)
        close(regions->stop);
    dscomm_log(DSCOMM_LOG_DEBUG, "ibverbs",
               "memory was registered %" G_GUINT64_FORMAT
               " times for %" G_GUINT64_FORMAT " uses",
               regions->registrations, regions->takes);
    while ((region = TAILQ_FIRST(&regions->all)) != NULL)
        region_free(region);
    pthread_mutex_destroy(&regions->events_lock);
    g_free(regions);
}
