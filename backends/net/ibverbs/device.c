/* SPDX-License-Identifier: BSD-3-Clause */
/* The choice of device, port and GID. */
#include "config.h"

#include "backends/net/ibverbs/device.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* The least room for the GIDs of a device, some of whose ports may not tell how
 * many they have. */
#define GIDS_LEAST 256
/* Bytes that a device must be able to register, or auto does not choose it. */
#define REGISTERED ((size_t)16 << 20)

const char *verbs_gid_text(const union ibv_gid *gid, char text[GID_TEXT])
{
    if (!inet_ntop(AF_INET6, gid->raw, text, GID_TEXT))
        *text = '\0';
    return text;
}

/* The variables of Gloo's transport, which stand in for settings that are not
 * set. */
static const char *const gloo_names[] = {
    [SETTING_NAME] = "TORCH_GLOO_IBV_NAME",
    [SETTING_PORT] = "TORCH_GLOO_IBV_PORT",
    [SETTING_INDEX] = "TORCH_GLOO_IBV_INDEX",
};

/* Returns the name of the variable that has the value of a setting. */
static const char *variable(unsigned setting)
{
    const char *value = getenv(verbs_settings[setting].name);

    return value && *value ? verbs_settings[setting].name : gloo_names[setting];
}

/* Returns the value of a setting; NULL: it is not set. */
static const char *value_of(unsigned setting)
{
    const char *value = getenv(variable(setting));

    return value && *value ? value : NULL;
}

/* Reads a setting that is a number; absent: the number if it is not set. */
static dscomm_status_t number_of(unsigned setting, int64_t absent,
                                 int64_t *ret_number)
{
    const dscomm_setting_t *row = &verbs_settings[setting];
    const char *value = value_of(setting);
    gint64 number;

    *ret_number = absent;
    if (!value)
        return DSCOMM_OK;
    if (variable(setting) == row->name)
        return dscomm_setting_number(row, ret_number);
    if (!g_ascii_string_to_signed(value, 10, row->min, row->max, &number, NULL))
        return dscomm_fail(DSCOMM_ERR_ENVIRONMENT,
                           "%s='%s' is no number from %" G_GINT64_FORMAT
                           " to %" G_GINT64_FORMAT,
                           variable(setting), value, row->min, row->max);
    *ret_number = number;
    return DSCOMM_OK;
}

static dscomm_status_t selection_read(selection_t *selection)
{
    dscomm_status_t status;

    selection->name = value_of(SETTING_NAME);
    status = number_of(SETTING_PORT, 0, &selection->port);
    if (status < 0)
        return status;
    return number_of(SETTING_INDEX, -1, &selection->index);
}

static gint device_compare(gconstpointer a, gconstpointer b)
{
    struct ibv_device *const *one = a, *const *other = b;

    return strcmp(ibv_get_device_name(*one), ibv_get_device_name(*other));
}

/* Says why something cannot be used. The first reason counts. */
static void G_GNUC_PRINTF(3, 4)
    refuse(refusal_t *refusal, refusal_kind_t kind, const char *format, ...)
{
    va_list args;

    if (refusal->kind != REFUSED_NOT)
        return;
    refusal->kind = kind;
    va_start(args, format);
    vsnprintf(refusal->why, sizeof refusal->why, format, args);
    va_end(args);
}

/* How well a GID suits: RoCE v2 is routed, and an address of IPv4 is one that
 * an administrator has given; 0: not at all. */
static int gid_rank(const struct ibv_gid_entry *entry)
{
    const struct in6_addr *address = (const void *)entry->gid.raw;
    int rank = 1;

    if (entry->gid_type == IBV_GID_TYPE_IB && !entry->gid_index)
        return 8;
    if (entry->gid_type == IBV_GID_TYPE_ROCE_V2)
        rank += 4;
    if (IN6_IS_ADDR_V4MAPPED(address))
        rank += 2;
    else if (!IN6_IS_ADDR_LINKLOCAL(address))
        rank += 1;
    return rank;
}

/* Returns the GID of a port with that index or, if index is -1, the one that
 * suits best; NULL: there is none. */
static const struct ibv_gid_entry *gid_choose(const candidate_t *candidate,
                                              const port_t *port, int64_t index)
{
    const struct ibv_gid_entry *chosen = NULL;
    int best = 0;

    for (size_t i = 0; i < candidate->gid_count; i++) {
        const struct ibv_gid_entry *entry = &candidate->gids[i];
        const int rank = gid_rank(entry);

        if (entry->port_num != port->number ||
            (index >= 0 ? entry->gid_index != index : rank <= best))
            continue;
        best = rank;
        chosen = entry;
    }
    return chosen;
}

/* Reads the GIDs of all ports. */
static void gids_read(candidate_t *candidate)
{
    size_t most = GIDS_LEAST;
    ssize_t count;

    for (int p = 0; p < candidate->port_count; p++)
        most += (size_t)MAX(candidate->ports[p].attr.gid_tbl_len, 0);
    candidate->gids = g_new0(struct ibv_gid_entry, most);
    count = ibv_query_gid_table(candidate->context, candidate->gids, most, 0);
    if (count >= 0)
        candidate->gid_count = (size_t)count;
    else
        refuse(&candidate->refusal, REFUSED_FAULT,
               "its GIDs cannot be queried: %s", strerror((int)-count));
}

/* Refuses a port that cannot be used, and chooses the GID of one that can. */
static void port_examine(const candidate_t *candidate, port_t *port,
                         const selection_t *selection)
{
    if (selection->port && port->number != selection->port)
        refuse(&port->refusal, REFUSED_OTHER,
               "%s=%" PRId64 " names another port", variable(SETTING_PORT),
               selection->port);
    if (port->attr.state != IBV_PORT_ACTIVE)
        refuse(&port->refusal, REFUSED_FAULT,
               "it is not active but %s; see ibv_devinfo",
               verbs_port_state(&port->attr));
    if (port->attr.link_layer == IBV_LINK_LAYER_INFINIBAND && !port->attr.lid)
        refuse(&port->refusal, REFUSED_FAULT,
               "it has no LID: no subnet manager runs");
    port->gid = gid_choose(candidate, port, selection->index);
    if (port->gid)
        return;
    if (selection->index >= 0)
        refuse(&port->refusal, REFUSED_SETTING,
               "it has no GID %" PRId64 ", which %s names; see ibv_devinfo -v",
               selection->index, variable(SETTING_INDEX));
    else
        refuse(&port->refusal, REFUSED_FAULT,
               "it has no GID; give its network interface an address");
}

static void ports_read(candidate_t *candidate)
{
    candidate->port_count = candidate->attr.phys_port_cnt;
    candidate->ports = g_new0(port_t, (gsize)candidate->port_count);
    for (int p = 0; p < candidate->port_count; p++) {
        port_t *port = &candidate->ports[p];
        int error;

        port->number = (uint8_t)(p + 1);
        error = ibv_query_port(candidate->context, port->number, &port->attr);
        port->known = !error;
        if (error)
            refuse(&port->refusal, REFUSED_FAULT, "it cannot be queried: %s",
                   strerror(abs(error)));
    }
}

/* Returns why a device cannot be opened: libibverbs says ENOENT in any case. */
static int open_error(const struct ibv_device *device, int error)
{
    char path[sizeof "/dev/infiniband/" + sizeof device->dev_name];

    snprintf(path, sizeof path, "/dev/infiniband/%.*s",
             (int)sizeof device->dev_name, device->dev_name);
    return !access(path, F_OK) && access(path, R_OK | W_OK) ? EACCES : error;
}

/* Opens a device, and reads what it has; refuses it if that fails. */
static void candidate_read(candidate_t *candidate)
{
    int error;

    candidate->context = ibv_open_device(candidate->device);
    if (!candidate->context) {
        error = open_error(candidate->device, errno);
        refuse(&candidate->refusal, REFUSED_FAULT, "it cannot be opened: %s%s",
               strerror(error), verbs_remedy(error));
        return;
    }
    error = ibv_query_device(candidate->context, &candidate->attr);
    if (error) {
        refuse(&candidate->refusal, REFUSED_FAULT, "it cannot be queried: %s",
               strerror(abs(error)));
        return;
    }
    ports_read(candidate);
    gids_read(candidate);
}

/* Refuses a device that the selection or its transport excludes. */
static void device_check(candidate_t *candidate, const selection_t *selection)
{
    const enum ibv_transport_type transport = candidate->device->transport_type;

    if (selection->name &&
        strcmp(ibv_get_device_name(candidate->device), selection->name))
        refuse(&candidate->refusal, REFUSED_OTHER, "%s=%s names another device",
               variable(SETTING_NAME), selection->name);
    if (transport != IBV_TRANSPORT_IB)
        refuse(&candidate->refusal, REFUSED_FAULT,
               "its transport is %s, neither InfiniBand nor RoCE",
               verbs_transport(candidate->device));
}

/* Examines a device and its ports; all: also those of a device that is refused.
 */
static void candidate_examine(candidate_t *candidate,
                              const selection_t *selection, bool all)
{
    device_check(candidate, selection);
    if (candidate->refusal.kind == REFUSED_NOT || all)
        candidate_read(candidate);
    if (candidate->attr.phys_port_cnt &&
        selection->port > candidate->attr.phys_port_cnt)
        refuse(&candidate->refusal, REFUSED_SETTING,
               "it has ports 1 to %d, not %s=%" PRId64,
               candidate->attr.phys_port_cnt, variable(SETTING_PORT),
               selection->port);
    for (int p = 0; p < candidate->port_count; p++) {
        port_t *port = &candidate->ports[p];

        port_examine(candidate, port, selection);
        if (candidate->refusal.kind == REFUSED_NOT &&
            port->refusal.kind == REFUSED_NOT && !candidate->chosen)
            candidate->chosen = port;
    }
}

static void candidate_free(candidate_t *candidate)
{
    if (candidate->context)
        ibv_close_device(candidate->context);
    g_free(candidate->ports);
    g_free(candidate->gids);
}

static void reason_add(walk_t *walk, const refusal_t *refusal,
                       const char *device, int port)
{
    if (refusal->kind == REFUSED_NOT || refusal->kind == REFUSED_OTHER)
        return;
    walk->by_setting |= refusal->kind == REFUSED_SETTING;
    if (port)
        g_string_append_printf(walk->reasons, "; port %d of %s: %s", port,
                               device, refusal->why);
    else
        g_string_append_printf(walk->reasons, "; %s: %s", device, refusal->why);
}

/* Notes what the walk has found, for its result. */
static void walk_note(walk_t *walk, const candidate_t *candidate)
{
    const char *name = ibv_get_device_name(candidate->device);

    walk->chosen |= candidate->chosen != NULL;
    walk->found |= !walk->selection.name || !strcmp(name, walk->selection.name);
    reason_add(walk, &candidate->refusal, name, 0);
    for (int p = 0;
         candidate->refusal.kind == REFUSED_NOT && p < candidate->port_count;
         p++)
        reason_add(walk, &candidate->ports[p].refusal, name, p + 1);
}

static dscomm_status_t walk_result(const walk_t *walk, int count)
{
    if (!count)
        return dscomm_fail(DSCOMM_ERR_NO_BACKEND,
                           "this host has no RDMA device; see ibv_devices");
    if (!walk->found)
        return dscomm_fail(DSCOMM_ERR_ENVIRONMENT,
                           "%s='%s': this host has no such RDMA device; see "
                           "ibv_devices",
                           variable(SETTING_NAME), walk->selection.name);
    if (!walk->chosen)
        return dscomm_fail(walk->by_setting ? DSCOMM_ERR_ENVIRONMENT
                                            : DSCOMM_ERR_NO_BACKEND,
                           "no RDMA device can be used%s", walk->reasons->str);
    return DSCOMM_OK;
}

bool verbs_is_emulated(const struct ibv_device_attr *attr)
{
    /* A vendor of devices has a number of 24 bits that the IEEE has given;
     * Soft-RoCE has this one and, before Linux 5.9, none. */
    return attr->vendor_id == 0xffffff || !attr->vendor_id;
}

/* True if a device is better than another one. */
static bool is_better(const candidate_t *one, const candidate_t *other)
{
    const bool emulated = verbs_is_emulated(&one->attr);

    if (emulated != verbs_is_emulated(&other->attr))
        return !emulated;
    return one->distance < other->distance;
}

/* Examines the devices and chooses one. Those that cannot be chosen any more
 * are left out, unless the walk is over all: their device is NULL then. */
static void candidates_examine(walk_t *walk, struct ibv_device **list,
                               int count, candidate_t *candidates)
{
    unsigned *distances = g_new0(unsigned, count);
    candidate_t *best = NULL;

    if (count > 1 && !walk->any && !walk->selection.name)
        verbs_distances(list, count, distances);
    for (int i = 0; i < count; i++) {
        candidate_t *candidate = &candidates[i];

        if (!walk->all && best && !verbs_is_emulated(&best->attr) &&
            distances[i] >= best->distance)
            continue;
        candidate->device = list[i];
        candidate->distance = distances[i];
        candidate_examine(candidate, &walk->selection, walk->all);
        if (candidate->chosen && (!best || is_better(candidate, best)))
            best = candidate;
    }
    for (int i = 0; i < count; i++)
        if (&candidates[i] != best)
            candidates[i].chosen = NULL;
    g_free(distances);
}

dscomm_status_t verbs_devices_walk(walk_t *walk)
{
    int count = 0;
    struct ibv_device **list;
    candidate_t *candidates;
    dscomm_status_t status = selection_read(&walk->selection);

    if (status < 0)
        return status;
    list = ibv_get_device_list(&count);
    if (!list)
        count = 0;
    else
        qsort(list, (size_t)count, sizeof *list, device_compare);
    walk->reasons = g_string_new(NULL);
    candidates = g_new0(candidate_t, count);
    candidates_examine(walk, list, count, candidates);
    for (int i = 0; i < count; i++) {
        if (!candidates[i].device)
            continue;
        walk_note(walk, &candidates[i]);
        walk->visit(walk->arg, &candidates[i]);
        candidate_free(&candidates[i]);
    }
    status = walk_result(walk, count);
    if (list)
        ibv_free_device_list(list);
    g_free(candidates);
    g_string_free(walk->reasons, TRUE);
    return status;
}

/* Takes the device, port and GID that are chosen. */
static void device_take(void *arg, candidate_t *candidate)
{
    verbs_t *verbs = arg;
    const port_t *port = candidate->chosen;

    if (!port)
        return;
    verbs->context = candidate->context;
    candidate->context = NULL;
    verbs->device = candidate->attr;
    verbs->port = port->attr;
    verbs->port_number = port->number;
    verbs->gid_index = (int)port->gid->gid_index;
    verbs->own.gid = port->gid->gid;
}

/* The path, of settings. */
static dscomm_status_t path_read(verbs_t *verbs)
{
    int64_t level = 0, class = 0, timeout = 0, retries = 0, pkey = 0,
            rings = RINGS_AUTO;
    dscomm_status_t status = DSCOMM_OK;
    const struct {
        unsigned setting;
        int64_t *to;
    } numbers[] = {
        {SETTING_RING, &rings},          {SETTING_SERVICE_LEVEL, &level},
        {SETTING_TRAFFIC_CLASS, &class}, {SETTING_TIMEOUT, &timeout},
        {SETTING_RETRIES, &retries},     {SETTING_PKEY, &pkey},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(numbers) && status == DSCOMM_OK; i++)
        status = dscomm_setting_number(&verbs_settings[numbers[i].setting],
                                       numbers[i].to);
    verbs->ring_mode = rings;
    verbs->path = (path_t){.service_level = (uint8_t)level,
                           .traffic_class = (uint8_t) class,
                           .timeout = (uint8_t)timeout,
                           .retries = (uint8_t)retries,
                           .hop_limit = 64,
                           .pkey_index = (uint16_t)pkey};
    return status;
}

/* Opens a device; any: the first one that can be used. */
static dscomm_status_t device_open(verbs_t *verbs, bool any)
{
    walk_t walk = {.any = any, .visit = device_take, .arg = verbs};
    dscomm_status_t status = path_read(verbs);

    return status < 0 ? status : verbs_devices_walk(&walk);
}

/* Before Linux 5.12, a page that the device uses may become that of a child
 * which the program forks: with ibv_fork_init() the child has no such pages. */
dscomm_status_t verbs_device_open(verbs_t *verbs)
{
    const int error = ibv_fork_init();
    const dscomm_status_t status = device_open(verbs, false);

    if (error)
        dscomm_log(DSCOMM_LOG_INFO, "ibverbs",
                   "a child of this process may take the device's memory: %s",
                   strerror(error));
    if (status < 0)
        return status;
    verbs->own.lid = verbs->port.lid;
    verbs->own.mtu = (uint8_t)verbs->port.active_mtu;
    verbs->own.link_layer = verbs->port.link_layer;
    verbs->own.reads =
        (uint8_t)CLAMP(verbs->device.max_qp_rd_atom, 0, READS_MOST);
    return DSCOMM_OK;
}

const char *verbs_usable(const char *const *hosts, int ranks)
{
    verbs_t verbs = {.context = NULL};

    (void)hosts;
    if (ranks > 1)
        return NULL; /* each has been asked for its own host */
    if (device_open(&verbs, true) < 0)
        return dscomm_last_error();
    ibv_close_device(verbs.context);
    return NULL;
}

/* Returns an errno if the device cannot register the memory that some dozens
 * of connections need. */
static int registration_try(struct ibv_context *context)
{
    void *memory = mmap(NULL, REGISTERED, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct ibv_pd *pd = memory != MAP_FAILED ? ibv_alloc_pd(context) : NULL;
    struct ibv_mr *mr =
        pd ? ibv_reg_mr(pd, memory, REGISTERED, IBV_ACCESS_LOCAL_WRITE) : NULL;
    const int error = mr ? 0 : errno;

    if (mr)
        ibv_dereg_mr(mr);
    if (pd)
        ibv_dealloc_pd(pd);
    if (memory != MAP_FAILED)
        munmap(memory, REGISTERED);
    return error;
}

const char *verbs_advisable(void)
{
    const bool is_named = value_of(SETTING_NAME) != NULL;
    verbs_t verbs = {.context = NULL};
    dscomm_status_t status = device_open(&verbs, true);
    const char *name;
    int error;

    if (status < 0)
        return dscomm_last_error();
    name = ibv_get_device_name(verbs.context->device);
    error = registration_try(verbs.context);
    if (error)
        status = dscomm_fail(
            DSCOMM_ERR_NO_MEMORY, "device %s cannot register %zu MiB: %s%s",
            name, REGISTERED >> 20, strerror(error), verbs_remedy(error));
    else if (!is_named && verbs_is_emulated(&verbs.device))
        status = dscomm_fail(DSCOMM_ERR_NO_BACKEND,
                             "device %s is emulated by software; %s=%s chooses "
                             "it",
                             name, verbs_settings[SETTING_NAME].name, name);
    ibv_close_device(verbs.context);
    return status < 0 ? dscomm_last_error() : NULL;
}
