/* SPDX-License-Identifier: BSD-3-Clause */
#include "config.h"

#include "tests/backends/net/fake-verbs.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#define CONTEXTS_MOST 8
#define EVENTS_MOST 16

typedef struct {
    struct verbs_context verbs; /* first; the program has verbs.context */
    struct ibv_async_event events[EVENTS_MOST];
    unsigned event_count;
} fake_context_t;

typedef struct {
    struct ibv_wc wc;
    uint64_t source; /* completions of one source keep their order */
} fake_wc_t;

typedef struct {
    struct ibv_cq cq; /* first */
    GArray *wcs; /* fake_wc_t */
    bool armed;
    unsigned events; /* that were not read */
} fake_cq_t;

typedef struct {
    struct ibv_srq srq; /* first */
    GQueue receives; /* struct ibv_recv_wr *, with its own sg_list */
    unsigned max;
} fake_srq_t;

typedef struct {
    struct ibv_qp qp; /* first */
    GQueue receives;
    fake_srq_t *srq;
    uint32_t peer;
    unsigned access, max_inline;
    unsigned reads, reads_served; /* at a time */
} fake_qp_t;

typedef struct {
    struct ibv_mr mr; /* first */
    int access;
    /* The place where the memory of a dma-buf is mapped; else NULL. */
    char *mapped;
    size_t mapped_bytes;
    uint64_t offset; /* in what is mapped */
} fake_mr_t;

fake_t fake;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static GHashTable *qps, *mrs; /* by number, by key */
static uint32_t last_number = 16;
static fake_context_t *contexts[CONTEXTS_MOST];

void fake_reset(void)
{
    if (!qps) {
        qps = g_hash_table_new(NULL, NULL);
        mrs = g_hash_table_new(NULL, NULL);
    }
    g_clear_pointer(&fake.order, g_rand_free);
    fake = (fake_t){.devices = 1,
                    .state = IBV_PORT_ACTIVE,
                    .link_layer = IBV_LINK_LAYER_ETHERNET,
                    .max_msg_sz = 1U << 30,
                    .max_cqe = 32767,
                    .max_srq_wr = 32767,
                    .max_reads = 128,
                    .in_order = true,
                    .max_inline = 512};
    for (int i = 0; i < FAKE_DEVICES; i++)
        fake.device[i].ports = 1;
}

bool fake_fails(fake_call_t call)
{
    if (!fake.fails[call])
        return false;
    if (fake.after[call]) {
        fake.after[call]--;
        return false;
    }
    errno = fake.fails[call];
    return true;
}

static void *made(void *object)
{
    __atomic_add_fetch(&fake.objects, 1, __ATOMIC_RELAXED);
    return object;
}

static int unmade(void *object)
{
    __atomic_sub_fetch(&fake.objects, 1, __ATOMIC_RELAXED);
    g_free(object);
    return 0;
}

/* Completions. */

static void complete(struct ibv_cq *cq, uint64_t source,
                     const struct ibv_wc *wc)
{
    fake_cq_t *queue = (fake_cq_t *)cq;
    const fake_wc_t entry = {.wc = *wc, .source = source};
    const uint64_t one = 1;

    g_assert((int)queue->wcs->len < cq->cqe);
    g_array_append_val(queue->wcs, entry);
    if (!queue->armed || fake.silent)
        return;
    queue->armed = false;
    queue->events++;
    g_assert(write(cq->channel->fd, &one, sizeof one) == sizeof one);
}

/* The index of a completion that may come next. */
static guint next_index(const GArray *wcs)
{
    const guint index =
        fake.order ? (guint)g_rand_int_range(fake.order, 0, (gint32)wcs->len)
                   : 0;
    const uint64_t source = g_array_index(wcs, fake_wc_t, index).source;
    guint first = 0;

    while (g_array_index(wcs, fake_wc_t, first).source != source)
        first++;
    return first;
}

static int poll_cq(struct ibv_cq *cq, int count, struct ibv_wc *wcs)
{
    fake_cq_t *queue = (fake_cq_t *)cq;
    int i = 0;

    for (; i < count && queue->wcs->len; i++) {
        const guint index = next_index(queue->wcs);

        wcs[i] = g_array_index(queue->wcs, fake_wc_t, index).wc;
        g_array_remove_index(queue->wcs, index);
    }
    return i;
}

static int req_notify_cq(struct ibv_cq *cq, int solicited)
{
    (void)solicited;
    ((fake_cq_t *)cq)->armed = true;
    return 0;
}

int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq,
                     void **context)
{
    uint64_t count;

    (void)cq;
    (void)context;
    return read(channel->fd, &count, sizeof count) == sizeof count ? 0 : -1;
}

void ibv_ack_cq_events(struct ibv_cq *cq, unsigned count)
{
    fake_cq_t *queue = (fake_cq_t *)cq;

    g_assert(queue->events >= count);
    queue->events -= count;
}

/* Memory. */

struct ibv_mr *(ibv_reg_mr)(struct ibv_pd *pd, void *memory, size_t bytes,
                            int access)
{
    fake_mr_t *mr;

    pthread_mutex_lock(&lock);
    fake.paged += (access & IBV_ACCESS_ON_DEMAND) != 0;
    if (!(access & IBV_ACCESS_ON_DEMAND) && fake_fails(FAKE_REG_MR)) {
        pthread_mutex_unlock(&lock);
        return NULL;
    }
    mr = made(g_new0(fake_mr_t, 1));
    mr->mr = (struct ibv_mr){.context = pd->context,
                             .pd = pd,
                             .addr = memory,
                             .length = bytes,
                             .lkey = ++last_number};
    mr->mr.rkey = mr->mr.lkey;
    mr->access = access;
    g_hash_table_insert(mrs, GUINT_TO_POINTER(mr->mr.lkey), mr);
    fake.registrations++;
    pthread_mutex_unlock(&lock);
    return &mr->mr;
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *memory, size_t bytes,
                                uint64_t iova, unsigned int access)
{
    (void)iova;
    return (ibv_reg_mr)(pd, memory, bytes, (int)access);
}

#ifdef HAVE_IBV_REG_DMABUF_MR
/* The memory begins at the descriptor's position. */
struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset,
                                 size_t bytes, uint64_t iova, int descriptor,
                                 int access)
{
    const off_t begin = lseek(descriptor, 0, SEEK_CUR);
    struct ibv_mr *mr;
    char *mapped;

    if (!fake.dma_bufs || begin < 0) {
        errno = fake.dma_bufs ? EBADF : EOPNOTSUPP;
        return NULL;
    }
    mapped = mmap(NULL, offset + bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
                  descriptor, begin);
    if (mapped == MAP_FAILED)
        return NULL;
    mr = (ibv_reg_mr)(pd, (void *)(uintptr_t)iova, bytes, access);
    if (!mr) {
        munmap(mapped, offset + bytes);
        return NULL;
    }
    ((fake_mr_t *)mr)->mapped = mapped;
    ((fake_mr_t *)mr)->mapped_bytes = offset + bytes;
    ((fake_mr_t *)mr)->offset = offset;
    return mr;
}
#endif

int ibv_dereg_mr(struct ibv_mr *mr)
{
    const fake_mr_t *fake_mr = (fake_mr_t *)mr;

    if (fake_mr->mapped)
        munmap(fake_mr->mapped, fake_mr->mapped_bytes);
    pthread_mutex_lock(&lock);
    g_hash_table_remove(mrs, GUINT_TO_POINTER(mr->lkey));
    pthread_mutex_unlock(&lock);
    return unmade(mr);
}

/* Whether a key allows an access to memory. */
static bool allowed(uint32_t key, uint64_t address, size_t bytes, int access)
{
    const fake_mr_t *mr = g_hash_table_lookup(mrs, GUINT_TO_POINTER(key));
    const uint64_t begin = mr ? (uintptr_t)mr->mr.addr : 0;

    return mr && (mr->access & access) == access && address >= begin &&
           bytes <= mr->mr.length && address - begin <= mr->mr.length - bytes;
}

/* Returns where the device finds an address that a key allows. */
static void *place(uint32_t key, uint64_t address)
{
    const fake_mr_t *mr = g_hash_table_lookup(mrs, GUINT_TO_POINTER(key));

    return mr && mr->mapped
               ? mr->mapped + mr->offset + address - (uintptr_t)mr->mr.addr
               : (void *)(uintptr_t)address;
}

/* Queue pairs. */

struct ibv_qp *fake_qp(uint32_t number)
{
    return g_hash_table_lookup(qps, GUINT_TO_POINTER(number));
}

static uint64_t source_of(const fake_qp_t *qp, bool sends)
{
    return (uint64_t)qp->qp.qp_num << 1 | sends;
}

static void send_complete(fake_qp_t *qp, const struct ibv_send_wr *wr,
                          enum ibv_wc_status status)
{
    struct ibv_wc wc = {.wr_id = wr->wr_id, .status = status};

    if (status == IBV_WC_SUCCESS && !(wr->send_flags & IBV_SEND_SIGNALED))
        return;
    if (status == IBV_WC_SUCCESS) {
        wc.opcode = IBV_WC_SEND;
        wc.qp_num = qp->qp.qp_num;
    } else { /* nothing else is valid */
        wc.opcode = (enum ibv_wc_opcode)0xbad;
        wc.byte_len = 0xbadbad;
        qp->qp.state = IBV_QPS_ERR;
    }
    complete(qp->qp.send_cq, source_of(qp, true), &wc);
}

/* Takes the next receive of a queue pair, if data fits, and completes it. */
static bool receive(fake_qp_t *qp, const void *data, size_t bytes, size_t skip,
                    struct ibv_wc *wc)
{
    GQueue *receives = qp->srq ? &qp->srq->receives : &qp->receives;
    struct ibv_recv_wr *wr = g_queue_pop_head(receives);

    if (!wr)
        return false;
    wc->wr_id = wr->wr_id;
    wc->qp_num = qp->qp.qp_num;
    wc->byte_len = (uint32_t)(bytes + skip);
    if (wc->opcode == IBV_WC_RECV) {
        g_assert(bytes + skip <= wr->sg_list->length);
        g_assert(allowed(wr->sg_list->lkey, wr->sg_list->addr, bytes + skip,
                         IBV_ACCESS_LOCAL_WRITE));
        if (bytes)
            memcpy((char *)(uintptr_t)wr->sg_list->addr + skip, data, bytes);
    }
    complete(qp->qp.recv_cq, source_of(qp, false), wc);
    g_free(wr->sg_list);
    g_free(wr);
    return true;
}

void fake_datagram(uint32_t number, const void *data, size_t bytes)
{
    struct ibv_wc wc = {.opcode = IBV_WC_RECV, .wc_flags = IBV_WC_GRH};
    fake_qp_t *to = (fake_qp_t *)fake_qp(number);

    if (to)
        receive(to, data, bytes, 40, &wc);
}

/* Does what a reliable connection does with a work request. */
static enum ibv_wc_status carry_out(fake_qp_t *qp, const struct ibv_send_wr *wr,
                                    void *data, size_t bytes)
{
    fake_qp_t *to = (fake_qp_t *)fake_qp(qp->peer);
    struct ibv_wc wc = {.imm_data = wr->imm_data, .wc_flags = IBV_WC_WITH_IMM};
    const bool writes = wr->opcode != IBV_WR_SEND_WITH_IMM;
    const int remote = wr->opcode == IBV_WR_RDMA_READ ? IBV_ACCESS_REMOTE_READ
                                                      : IBV_ACCESS_REMOTE_WRITE;

    if (fake.next_status) {
        const enum ibv_wc_status status = fake.next_status;

        fake.next_status = IBV_WC_SUCCESS;
        return status;
    }
    if (!to || to->peer != qp->qp.qp_num || to->qp.state < IBV_QPS_RTR ||
        to->qp.state == IBV_QPS_ERR)
        return IBV_WC_RETRY_EXC_ERR;
    if (writes && !(to->access & remote))
        return IBV_WC_REM_INV_REQ_ERR;
    if (wr->opcode == IBV_WR_RDMA_READ && (!qp->reads || !to->reads_served))
        return IBV_WC_LOC_QP_OP_ERR;
    if (writes && bytes) {
        if (!allowed(wr->wr.rdma.rkey, wr->wr.rdma.remote_addr, bytes,
                     IBV_ACCESS_LOCAL_WRITE | remote)) {
            to->qp.state = IBV_QPS_ERR;
            return IBV_WC_REM_ACCESS_ERR;
        }
        if (wr->opcode == IBV_WR_RDMA_READ)
            memcpy(data, place(wr->wr.rdma.rkey, wr->wr.rdma.remote_addr),
                   bytes);
        else
            memcpy(place(wr->wr.rdma.rkey, wr->wr.rdma.remote_addr), data,
                   bytes);
    }
    if (wr->opcode == IBV_WR_RDMA_WRITE || wr->opcode == IBV_WR_RDMA_READ)
        return IBV_WC_SUCCESS;
    wc.opcode = writes ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV;
    if (!receive(to, data, bytes, 0, &wc)) {
        fake.not_ready++;
        return IBV_WC_RNR_RETRY_EXC_ERR;
    }
    return IBV_WC_SUCCESS;
}

static int post_send(struct ibv_qp *base, struct ibv_send_wr *wr,
                     struct ibv_send_wr **bad)
{
    fake_qp_t *qp = (fake_qp_t *)base;
    const struct ibv_sge *part = wr->num_sge ? wr->sg_list : NULL;
    const size_t bytes = part ? part->length : 0;
    const bool reads = wr->opcode == IBV_WR_RDMA_READ;
    void *data = part ? place(part->lkey, part->addr) : NULL;
    enum ibv_wc_status status = IBV_WC_SUCCESS;

    *bad = wr;
    if (fake_fails(FAKE_POST_SEND))
        return errno;
    g_assert(base->state >= IBV_QPS_RTS);
    g_assert(bytes <= fake.max_msg_sz);
    if (wr->send_flags & IBV_SEND_INLINE)
        g_assert(bytes <= qp->max_inline && !reads);
    else if (bytes && !allowed(part->lkey, part->addr, bytes,
                               reads ? IBV_ACCESS_LOCAL_WRITE : 0))
        status = IBV_WC_LOC_PROT_ERR;
    if (base->state == IBV_QPS_ERR) {
        send_complete(qp, wr, IBV_WC_WR_FLUSH_ERR);
        return 0;
    }
    if (base->qp_type == IBV_QPT_UD) {
        fake.datagrams++;
        if (fake.drop_datagrams)
            fake.drop_datagrams--;
        else
            fake_datagram(wr->wr.ud.remote_qpn, data, bytes);
    } else {
        fake.sends++;
        if (status == IBV_WC_SUCCESS)
            status = carry_out(qp, wr, data, bytes);
    }
    send_complete(qp, wr, status);
    return 0;
}

static int receive_add(GQueue *receives, const struct ibv_recv_wr *wr)
{
    struct ibv_recv_wr *copy;

    if (fake_fails(FAKE_POST_RECV))
        return errno;
    copy = g_memdup(wr, sizeof *wr);
    copy->sg_list = g_memdup(wr->sg_list, sizeof *wr->sg_list);
    g_queue_push_tail(receives, copy);
    return 0;
}

static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr,
                     struct ibv_recv_wr **bad)
{
    *bad = wr;
    return receive_add(&((fake_qp_t *)qp)->receives, wr);
}

static int post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr,
                         struct ibv_recv_wr **bad)
{
    fake_srq_t *queue = (fake_srq_t *)srq;

    *bad = wr;
    if (g_queue_get_length(&queue->receives) >= queue->max)
        return ENOMEM;
    return receive_add(&queue->receives, wr);
}

static void receives_free(GQueue *receives)
{
    struct ibv_recv_wr *wr;

    while ((wr = g_queue_pop_head(receives)) != NULL) {
        g_free(wr->sg_list);
        g_free(wr);
    }
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
    fake_qp_t *qp;

    if (fake_fails(FAKE_CREATE_QP))
        return NULL;
    if (attr->cap.max_inline_data > fake.max_inline) {
        errno = EINVAL;
        return NULL;
    }
    qp = made(g_new0(fake_qp_t, 1));
    qp->qp = (struct ibv_qp){.context = pd->context,
                             .pd = pd,
                             .send_cq = attr->send_cq,
                             .recv_cq = attr->recv_cq,
                             .srq = attr->srq,
                             .qp_num = ++last_number,
                             .state = IBV_QPS_RESET,
                             .qp_type = attr->qp_type};
    qp->srq = (fake_srq_t *)attr->srq;
    qp->max_inline = attr->cap.max_inline_data;
    g_queue_init(&qp->receives);
    g_hash_table_insert(qps, GUINT_TO_POINTER(qp->qp.qp_num), qp);
    return &qp->qp;
}

int ibv_modify_qp(struct ibv_qp *base, struct ibv_qp_attr *attr, int mask)
{
    fake_qp_t *qp = (fake_qp_t *)base;

    if (fake_fails(FAKE_MODIFY_QP))
        return errno;
    if (mask & IBV_QP_ACCESS_FLAGS)
        qp->access = attr->qp_access_flags;
    if (mask & IBV_QP_DEST_QPN)
        qp->peer = attr->dest_qp_num;
    if (mask & IBV_QP_MAX_QP_RD_ATOMIC)
        qp->reads = attr->max_rd_atomic;
    if (mask & IBV_QP_MAX_DEST_RD_ATOMIC)
        qp->reads_served = attr->max_dest_rd_atomic;
    base->state = attr->qp_state;
    return 0;
}

int ibv_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode operation,
                               uint32_t flags)
{
    return qp->state == IBV_QPS_RTS && operation == IBV_WR_RDMA_WRITE &&
           !flags && fake.in_order;
}

int ibv_destroy_qp(struct ibv_qp *qp)
{
    g_hash_table_remove(qps, GUINT_TO_POINTER(qp->qp_num));
    receives_free(&((fake_qp_t *)qp)->receives);
    return unmade(qp);
}

/* Other objects. */

static fake_context_t *context_of(struct ibv_context *context)
{
    return (fake_context_t *)((char *)context -
                              offsetof(struct verbs_context, context));
}

static int query_device_ex(struct ibv_context *context,
                           const struct ibv_query_device_ex_input *input,
                           struct ibv_device_attr_ex *attr, size_t size)
{
    (void)input;
    memset(attr, 0, size);
    if (fake.on_demand) {
        attr->odp_caps.general_caps = IBV_ODP_SUPPORT;
        attr->odp_caps.per_transport_caps.rc_odp_caps =
            IBV_ODP_SUPPORT_WRITE | IBV_ODP_SUPPORT_READ;
    }
    return ibv_query_device(context, &attr->orig_attr);
}

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
    fake_context_t *context;

    if (fake_fails(FAKE_OPEN_DEVICE))
        return NULL;
    context = made(g_new0(fake_context_t, 1));
    context->verbs.sz = sizeof context->verbs;
    context->verbs.query_device_ex = query_device_ex;
    context->verbs.context.abi_compat = __VERBS_ABI_IS_EXTENDED;
    context->verbs.context.device = device;
    context->verbs.context.ops.poll_cq = poll_cq;
    context->verbs.context.ops.req_notify_cq = req_notify_cq;
    context->verbs.context.ops.post_send = post_send;
    context->verbs.context.ops.post_recv = post_recv;
    context->verbs.context.ops.post_srq_recv = post_srq_recv;
    context->verbs.context.async_fd = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
    for (unsigned i = 0; i < CONTEXTS_MOST; i++)
        if (!contexts[i]) {
            contexts[i] = context;
            break;
        }
    return &context->verbs.context;
}

int ibv_close_device(struct ibv_context *context)
{
    for (unsigned i = 0; i < CONTEXTS_MOST; i++)
        if (contexts[i] == context_of(context))
            contexts[i] = NULL;
    close(context->async_fd);
    return unmade(context_of(context));
}

void fake_event(enum ibv_event_type type, struct ibv_qp *qp)
{
    const uint64_t one = 1;

    for (unsigned i = 0; i < CONTEXTS_MOST; i++) {
        fake_context_t *context = contexts[i];

        if (!context || (qp && qp->context != &context->verbs.context))
            continue;
        context->events[context->event_count++] =
            (struct ibv_async_event){.event_type = type, .element.qp = qp};
        g_assert(write(context->verbs.context.async_fd, &one, sizeof one) ==
                 sizeof one);
    }
}

int ibv_get_async_event(struct ibv_context *base, struct ibv_async_event *event)
{
    fake_context_t *context = context_of(base);
    uint64_t count;

    if (read(base->async_fd, &count, sizeof count) != sizeof count)
        return -1;
    *event = context->events[0];
    context->event_count--;
    memmove(context->events, context->events + 1,
            context->event_count * sizeof *event);
    return 0;
}

void ibv_ack_async_event(struct ibv_async_event *event)
{
    (void)event;
}

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
    struct ibv_pd *pd;

    if (fake_fails(FAKE_ALLOC_PD))
        return NULL;
    pd = made(g_new0(struct ibv_pd, 1));
    pd->context = context;
    return pd;
}

int ibv_dealloc_pd(struct ibv_pd *pd)
{
    return unmade(pd);
}

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
    struct ibv_comp_channel *channel;

    if (fake_fails(FAKE_CREATE_CHANNEL))
        return NULL;
    channel = made(g_new0(struct ibv_comp_channel, 1));
    channel->context = context;
    channel->fd = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE | EFD_NONBLOCK);
    return channel;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
    close(channel->fd);
    return unmade(channel);
}

struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *arg,
                             struct ibv_comp_channel *channel, int vector)
{
    fake_cq_t *queue;

    (void)arg;
    (void)vector;
    if (fake_fails(FAKE_CREATE_CQ))
        return NULL;
    queue = made(g_new0(fake_cq_t, 1));
    queue->cq =
        (struct ibv_cq){.context = context, .channel = channel, .cqe = cqe};
    queue->wcs = g_array_new(FALSE, FALSE, sizeof(fake_wc_t));
    return &queue->cq;
}

/* A queue with events that were not acknowledged would wait for ever. */
int ibv_destroy_cq(struct ibv_cq *cq)
{
    fake_cq_t *queue = (fake_cq_t *)cq;
    uint64_t count;

    while (queue->events && read(cq->channel->fd, &count, sizeof count) > 0)
        queue->events--;
    g_assert(!queue->events);
    g_array_unref(queue->wcs);
    return unmade(queue);
}

struct ibv_srq *ibv_create_srq(struct ibv_pd *pd,
                               struct ibv_srq_init_attr *attr)
{
    fake_srq_t *queue;

    if (fake_fails(FAKE_CREATE_SRQ))
        return NULL;
    queue = made(g_new0(fake_srq_t, 1));
    queue->srq = (struct ibv_srq){.context = pd->context, .pd = pd};
    queue->max = attr->attr.max_wr;
    g_queue_init(&queue->receives);
    return &queue->srq;
}

int ibv_destroy_srq(struct ibv_srq *srq)
{
    receives_free(&((fake_srq_t *)srq)->receives);
    return unmade(srq);
}

struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
    struct ibv_ah *ah;

    (void)attr;
    if (fake_fails(FAKE_CREATE_AH))
        return NULL;
    ah = made(g_new0(struct ibv_ah, 1));
    ah->context = pd->context;
    ah->pd = pd;
    return ah;
}

int ibv_destroy_ah(struct ibv_ah *ah)
{
    return unmade(ah);
}

const char *ibv_wc_status_str(enum ibv_wc_status status)
{
    static char text[32];

    snprintf(text, sizeof text, "status %d", status);
    return text;
}

const char *ibv_event_type_str(enum ibv_event_type event)
{
    static char text[32];

    snprintf(text, sizeof text, "event %d", event);
    return text;
}
