/* SPDX-License-Identifier: BSD-3-Clause */
/* libibverbs without a device: queue pairs of this process, connected with each
 * other, which check keys and copy memory as a device would. Single-threaded,
 * but for memory registration. */
#ifndef TESTS_BACKENDS_NET_FAKE_VERBS_H
#define TESTS_BACKENDS_NET_FAKE_VERBS_H

#include <infiniband/verbs.h>

#include <glib.h>
#include <stdbool.h>

/* Calls that can fail. */
typedef enum {
    FAKE_OPEN_DEVICE,
    FAKE_ALLOC_PD,
    FAKE_CREATE_CHANNEL,
    FAKE_CREATE_CQ,
    FAKE_CREATE_SRQ,
    FAKE_CREATE_QP,
    FAKE_MODIFY_QP,
    FAKE_CREATE_AH,
    FAKE_REG_MR,
    FAKE_POST_SEND,
    FAKE_POST_RECV,
    FAKE_QUERY_DEVICE,
    FAKE_QUERY_PORT,
    FAKE_QUERY_GIDS,
    FAKE_CALLS
} fake_call_t;

#define FAKE_DEVICES 4

/* The members in which a device differs from others. */
typedef struct {
    enum ibv_transport_type transport;
    uint8_t ports;
    unsigned down; /* bit P: port P is down */
    bool no_gids;
    bool emulated;
    const char *path; /* its folder in sysfs */
} fake_device_t;

typedef struct {
    int fails[FAKE_CALLS]; /* the errno with which a call fails; 0: it works */
    unsigned after[FAKE_CALLS]; /* calls that still work before that */
    unsigned devices; /* on this host; they have the names fake0, fake1, ... */
    fake_device_t device[FAKE_DEVICES];
    enum ibv_port_state state;
    uint8_t link_layer;
    uint32_t max_msg_sz;
    int max_cqe, max_srq_wr, max_reads;
    unsigned max_inline;
    unsigned drop_datagrams; /* so many are lost from now on */
    bool in_order; /* data is written so */
    bool on_demand; /* memory can be paged */
    bool dma_bufs; /* memory of other devices can be registered */
    bool silent; /* completions make no channel readable */
    GRand *order; /* completions of different queue pairs come in any order */
    enum ibv_wc_status next_status; /* of the next thing that is sent */
    /* What was seen. */
    unsigned objects; /* that were made and not destroyed */
    unsigned registrations, paged, sends, datagrams, not_ready;
} fake_t;

extern fake_t fake;

/* One device, all as it should be. */
void fake_reset(void);
/* Whether a call fails; its errno is then set. */
bool fake_fails(fake_call_t call);
/* Queues an event for all contexts that are open. */
void fake_event(enum ibv_event_type type, struct ibv_qp *qp);
/* The queue pair with that number, or NULL. */
struct ibv_qp *fake_qp(uint32_t number);
/* Delivers a datagram to a queue pair. */
void fake_datagram(uint32_t number, const void *data, size_t bytes);

#endif
