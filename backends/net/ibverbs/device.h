/* SPDX-License-Identifier: BSD-3-Clause */
/* The walk over the RDMA devices of this host, by which one is chosen
 * (device.c) and all are listed (device-list.c). */
#ifndef BACKENDS_NET_IBVERBS_DEVICE_H
#define BACKENDS_NET_IBVERBS_DEVICE_H

#include "backends/net/ibverbs/ibverbs.h"

/* Why a device or a port cannot be used. */
typedef enum {
    REFUSED_NOT, /* it can be used */
    REFUSED_OTHER, /* the settings name another one */
    REFUSED_SETTING, /* it lacks what a setting names */
    REFUSED_FAULT
} refusal_kind_t;

typedef struct {
    refusal_kind_t kind;
    char why[VERBS_TEXT]; /* a clause: "it cannot be opened: ..." */
} refusal_t;

/* The selection by the settings. */
typedef struct {
    const char *name; /* of the device; NULL: any */
    int64_t port; /* 0: any */
    int64_t index; /* of the GID; -1: the one that suits best */
} selection_t;

typedef struct {
    uint8_t number;
    bool known; /* attr was read */
    struct ibv_port_attr attr;
    const struct ibv_gid_entry *gid; /* the one to use; NULL: none suits */
    refusal_t refusal;
} port_t;

typedef struct {
    struct ibv_device *device;
    struct ibv_context *context; /* NULL: not open */
    struct ibv_device_attr attr;
    port_t *ports;
    int port_count; /* 0 if attr could not be read */
    struct ibv_gid_entry *gids; /* of all ports */
    size_t gid_count;
    unsigned distance; /* 0: near to the rank's processors */
    const port_t *chosen; /* the port to use; NULL: none of this device */
    refusal_t refusal;
} candidate_t;

/* A walk over the devices, in the order of their names. It chooses a device of
 * hardware before one that software emulates, then the nearest one. */
typedef struct {
    /* false: opens no device that cannot be chosen */
    bool all;
    bool any; /* ends with the first device of hardware, near or not */
    /* Called for each device, which is closed afterwards unless the function
     * has taken its context and set that to NULL. chosen is set for one. */
    void (*visit)(void *arg, candidate_t *candidate);
    void *arg;
    /* The following members are the walk's own. */
    selection_t selection;
    GString *reasons;
    bool found, chosen, by_setting;
} walk_t;

/* OK, or why no device can be used. */
dscomm_status_t verbs_devices_walk(walk_t *walk);
/* True for a device that software emulates, such as Soft-RoCE. */
bool verbs_is_emulated(const struct ibv_device_attr *attr);

/* locality.c: finds how far devices are from the processors of this thread;
 * leaves ret_distances if that is unknown for all. */
void verbs_distances(struct ibv_device *const *devices, int count,
                     unsigned *ret_distances);

/* device-list.c: names, static. */
const char *verbs_port_state(const struct ibv_port_attr *port);
const char *verbs_transport(const struct ibv_device *device);

#endif
