/* SPDX-License-Identifier: BSD-3-Clause */
/* A backend whose ranks are threads of one process, for tests of the core. The
 * last rank to call a collective carries it out for all, on their own buffers.
 * Messages are copied at once. It has no blocking slots, supports only some
 * collectives, and has one lock for each group. */
#include "config.h"

#include <dscomm/backend.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/queue.h>
#include <unistd.h>

#define RANKS_MAX 16
#define FAILING "fragile/1.0" /* a group that rank 0 cannot open */

/* A message in transit. */
typedef struct parcel {
    TAILQ_ENTRY(parcel) link;
    int source, tag;
    size_t bytes;
    char data[];
} parcel_t;

/* One collective: the arguments of all ranks. */
typedef struct round {
    SLIST_ENTRY(round) link;
    uint64_t sequence;
    int came, left;
    dscomm_coll_args_t args[RANKS_MAX];
} round_t;

/* The state that the ranks of a group share. */
typedef struct hall {
    LIST_ENTRY(hall) link;
    char id[64];
    int ranks, users;
    pthread_mutex_t lock;
    TAILQ_HEAD(, parcel) mail[RANKS_MAX]; /* for each rank, oldest first */
    SLIST_HEAD(, round) rounds;
    atomic_int revoking, revoked;
    dscomm_failure_t failure;
} hall_t;

typedef enum { MESSAGE, COLLECTIVE, PUT, GET } request_kind_t;

typedef struct request {
    dscomm_request_t head;
    TAILQ_ENTRY(request) link;
    request_kind_t kind;
    uint64_t sequence;
    dscomm_message_t message;
    dscomm_access_t access;
} request_t;

typedef struct {
    hall_t *hall;
    int rank;
    /* posted receives and collectives, oldest first */
    TAILQ_HEAD(, request) posted;
} impl_t;

/* Defined by programs that have fake devices, whose memory only the device can
 * access, if the backend shall accept it. */
extern int fake_device_aware __attribute__((weak));
extern void *fake_device_shadow(const void *pointer) __attribute__((weak));

/* Defined by programs that check buffers which a transport might keep: the
 * destination of the last cancelled receive. */
extern void *thread_kept __attribute__((weak));
/* Defined by programs whose accesses to memory of devices are the backend's:
 * while 1, it can register such memory. */
extern int thread_registers __attribute__((weak));
/* Defined by such programs: whether cancel sets held. */
extern int thread_holds __attribute__((weak));

static void *place(const void *pointer)
{
    return fake_device_shadow ? fake_device_shadow(pointer) : (void *)pointer;
}

static pthread_mutex_t halls_lock = PTHREAD_MUTEX_INITIALIZER;
static LIST_HEAD(, hall) halls;

static hall_t *hall_new(const dscomm_backend_args_t *args, const char *id)
{
    hall_t *hall = calloc(1, sizeof *hall);

    snprintf(hall->id, sizeof hall->id, "%s", id);
    hall->ranks = args->ranks;
    pthread_mutex_init(&hall->lock, NULL);
    for (int r = 0; r < RANKS_MAX; r++)
        TAILQ_INIT(&hall->mail[r]);
    LIST_INSERT_HEAD(&halls, hall, link);
    return hall;
}

/* The first rank of a group makes a number for the shared state, which the
 * others read. */
static dscomm_status_t find_hall_id(const dscomm_backend_args_t *args, char *id,
                                    size_t size)
{
    static atomic_int number;
    char text[16];
    void *value;
    size_t length;
    dscomm_status_t status;

    if (args->rank == 0) {
        snprintf(text, sizeof text, "%d", atomic_fetch_add(&number, 1));
        status = dscomm_store_set(args->store, "hall", text, strlen(text));
        if (status < 0)
            return status;
    }
    status =
        dscomm_store_get(args->store, "hall", args->open_ms, &value, &length);
    if (status < 0)
        return status;
    snprintf(id, size, "%s", (char *)value);
    dscomm_store_free(value);
    return DSCOMM_OK;
}

static dscomm_status_t thread_open(const dscomm_backend_args_t *args,
                                   void **ret_impl)
{
    char id[64];
    hall_t *hall;
    impl_t *impl;
    dscomm_status_t status;

    if (args->ranks > RANKS_MAX)
        return dscomm_fail(DSCOMM_ERR_UNSUPPORTED, "%d ranks", args->ranks);
    if (args->world_ranks[args->rank] == 0 && !strcmp(args->name, FAILING))
        return dscomm_fail(DSCOMM_ERR_NO_MEMORY, "as the test wants it");
    status = find_hall_id(args, id, sizeof id);
    if (status < 0)
        return status;
    pthread_mutex_lock(&halls_lock);
    LIST_FOREACH (hall, &halls, link)
        if (!strcmp(hall->id, id))
            break;
    if (!hall)
        hall = hall_new(args, id);
    hall->users++;
    pthread_mutex_unlock(&halls_lock);
    impl = calloc(1, sizeof *impl);
    impl->hall = hall;
    impl->rank = args->rank;
    TAILQ_INIT(&impl->posted);
    *ret_impl = impl;
    return DSCOMM_OK;
}

static void hall_free(hall_t *hall)
{
    parcel_t *parcel;
    round_t *turn;

    LIST_REMOVE(hall, link);
    for (int r = 0; r < hall->ranks; r++)
        while ((parcel = TAILQ_FIRST(&hall->mail[r]))) {
            TAILQ_REMOVE(&hall->mail[r], parcel, link);
            free(parcel);
        }
    while ((turn = SLIST_FIRST(&hall->rounds))) {
        SLIST_REMOVE_HEAD(&hall->rounds, link);
        free(turn);
    }
    pthread_mutex_destroy(&hall->lock);
    free(hall);
}

/* The shared state is freed by the last rank, after all could have come. */
static void thread_close(void *self)
{
    impl_t *impl = self;

    pthread_mutex_lock(&halls_lock);
    if (--impl->hall->users == 0)
        hall_free(impl->hall);
    pthread_mutex_unlock(&halls_lock);
    free(impl);
}

/* Returns when the group is revoked, by any rank. */
static void thread_revoke(void *self, const dscomm_failure_t *failure)
{
    hall_t *hall = ((impl_t *)self)->hall;

    if (atomic_exchange(&hall->revoking, 1)) {
        while (!atomic_load(&hall->revoked))
            sched_yield();
        return;
    }
    hall->failure = *failure;
    atomic_store(&hall->revoked, failure->status);
}

static dscomm_status_t thread_status(void *self, dscomm_failure_t *ret_failure)
{
    hall_t *hall = ((impl_t *)self)->hall;
    int status = atomic_load(&hall->revoked);

    if (status && ret_failure)
        *ret_failure = hall->failure;
    return (dscomm_status_t)status;
}

static dscomm_status_t check(impl_t *impl)
{
    int status = atomic_load(&impl->hall->revoked);

    return status ? dscomm_backend_fail(&impl->hall->failure) : DSCOMM_OK;
}

/* Messages. */

static dscomm_status_t thread_isend(void *self, const dscomm_message_t *message,
                                    dscomm_request_t *request)
{
    impl_t *impl = self;
    dscomm_status_t status = check(impl);
    parcel_t *parcel;

    if (status < 0)
        return status;
    parcel = calloc(1, sizeof *parcel + message->bytes);
    parcel->source = impl->rank;
    parcel->tag = message->tag;
    parcel->bytes = message->bytes;
    if (message->bytes)
        memcpy(parcel->data, place(message->send), message->bytes);
    pthread_mutex_lock(&impl->hall->lock);
    TAILQ_INSERT_TAIL(&impl->hall->mail[message->peer], parcel, link);
    pthread_mutex_unlock(&impl->hall->lock);
    request->status = DSCOMM_OK;
    return DSCOMM_OK;
}

static int matches(const parcel_t *parcel, const dscomm_message_t *wanted)
{
    int tag = wanted->tag == DSCOMM_ANY_TAG ? parcel->tag >= 0
                                            : parcel->tag == wanted->tag;

    return tag && (wanted->peer == DSCOMM_ANY_SOURCE ||
                   wanted->peer == parcel->source);
}

/* Takes the oldest message that wanted's receive gets; NULL: none is there. */
static parcel_t *parcel_take(impl_t *impl, const dscomm_message_t *wanted)
{
    parcel_t *parcel;

    TAILQ_FOREACH (parcel, &impl->hall->mail[impl->rank], link)
        if (matches(parcel, wanted))
            break;
    if (parcel)
        TAILQ_REMOVE(&impl->hall->mail[impl->rank], parcel, link);
    return parcel;
}

static int receive(impl_t *impl, request_t *request)
{
    parcel_t *parcel = request->message.taken;
    size_t bytes;

    if (!parcel)
        parcel = parcel_take(impl, &request->message);
    if (!parcel)
        return 0;
    bytes = parcel->bytes < request->message.bytes ? parcel->bytes
                                                   : request->message.bytes;
    if (bytes)
        memcpy(place(request->message.recv), parcel->data, bytes);
    request->head.source = parcel->source;
    request->head.tag = parcel->tag;
    request->head.bytes = parcel->bytes;
    request->head.status = parcel->bytes > request->message.bytes
                               ? DSCOMM_ERR_TRUNCATED
                               : DSCOMM_OK;
    free(parcel);
    return 1;
}

static dscomm_status_t thread_irecv(void *self, const dscomm_message_t *message,
                                    dscomm_request_t *head)
{
    impl_t *impl = self;
    request_t *request = (request_t *)head;
    dscomm_status_t status = check(impl);

    if (status < 0)
        return status;
    request->message = *message;
    request->kind = MESSAGE;
    TAILQ_INSERT_TAIL(&impl->posted, request, link);
    return DSCOMM_OK;
}

/* Collectives. */

static void reduce_all(round_t *turn, int ranks, int root)
{
    const dscomm_coll_args_t *args = turn->args;
    const void *sources[RANKS_MAX];
    double factors[RANKS_MAX];
    size_t bytes = args->count * args->element;
    void *sum = malloc(bytes + 1);

    for (int r = 0; r < ranks; r++) {
        sources[r] = args[r].send;
        factors[r] = args[r].op == DSCOMM_AVG ? ranks : args[r].factor;
    }
    dscomm_reduce_kernel((dscomm_dtype_t)args->dtype, (dscomm_op_t)args->op)(
        sum, sources, (size_t)ranks, args->count, factors);
    for (int r = 0; r < ranks && bytes; r++)
        if (root < 0 || r == root)
            memcpy(args[r].recv, sum, bytes);
    free(sum);
}

static void gather_all(round_t *turn, int ranks)
{
    const dscomm_coll_args_t *args = turn->args;

    for (int to = 0; to < ranks; to++)
        for (int from = 0; from < ranks; from++) {
            size_t bytes = args[from].count * args[from].element;
            size_t offset = args[to].recv_displs
                                ? args[to].recv_displs[from] * args->element
                                : bytes * (size_t)from;
            char *place = (char *)args[to].recv + offset;

            if (bytes && place != args[from].send)
                memcpy(place, args[from].send, bytes);
        }
}

static void broadcast_all(round_t *turn, int ranks)
{
    const dscomm_coll_args_t *args = turn->args;
    const dscomm_coll_args_t *root = &args[args->root];
    size_t bytes = root->count * root->element;

    for (int r = 0; r < ranks; r++)
        if (r != args->root && bytes)
            memcpy(args[r].recv, root->send, bytes);
}

static void carry_out(hall_t *hall, round_t *turn)
{
    switch (turn->args[0].coll) {
    case DSCOMM_COLL_BROADCAST:
        broadcast_all(turn, hall->ranks);
        break;
    case DSCOMM_COLL_REDUCE:
    case DSCOMM_COLL_ALL_REDUCE:
        reduce_all(turn, hall->ranks, turn->args[0].root);
        break;
    case DSCOMM_COLL_ALL_GATHER:
    case DSCOMM_COLL_ALL_GATHER_V:
        gather_all(turn, hall->ranks);
        break;
    default:
        break;
    }
}

static int thread_native(void *self, const dscomm_coll_args_t *args)
{
    static const unsigned taken =
        1u << DSCOMM_COLL_BROADCAST | 1u << DSCOMM_COLL_REDUCE |
        1u << DSCOMM_COLL_ALL_REDUCE | 1u << DSCOMM_COLL_ALL_GATHER |
        1u << DSCOMM_COLL_ALL_GATHER_V | 1u << DSCOMM_COLL_BARRIER;

    (void)self;
    return taken >> args->coll & 1;
}

static round_t *find_round(hall_t *hall, uint64_t sequence)
{
    round_t *turn;

    SLIST_FOREACH (turn, &hall->rounds, link)
        if (turn->sequence == sequence)
            return turn;
    turn = calloc(1, sizeof *turn);
    turn->sequence = sequence;
    SLIST_INSERT_HEAD(&hall->rounds, turn, link);
    return turn;
}

/* Called when all ranks are here: checks that their calls match, then runs the
 * call. */
static void complete(impl_t *impl, round_t *turn)
{
    hall_t *hall = impl->hall;
    dscomm_failure_t failure;

    for (int r = 1; r < hall->ranks; r++)
        if (turn->args[r].fingerprint != turn->args[0].fingerprint) {
            char a[128], b[128];

            dscomm_coll_describe(&turn->args[0], a, sizeof a);
            dscomm_coll_describe(&turn->args[r], b, sizeof b);
            dscomm_backend_failure(NULL, DSCOMM_ERR_MISMATCH,
                                   DSCOMM_FAILURE_MISMATCH, -1, 0, &failure);
            dscomm_backend_failure_detail(
                &failure, "rank 0 called %s, rank %d %s", a, r, b);
            failure.coll = turn->args[r].coll;
            failure.sequence = turn->args[r].sequence;
            thread_revoke(impl, &failure);
            return;
        }
    carry_out(hall, turn);
}

static dscomm_status_t thread_start(void *self, const dscomm_coll_args_t *args,
                                    dscomm_request_t *head)
{
    impl_t *impl = self;
    request_t *request = (request_t *)head;
    dscomm_status_t status = check(impl);
    round_t *turn;

    if (status < 0)
        return status;
    request->kind = COLLECTIVE;
    request->sequence = args->sequence;
    pthread_mutex_lock(&impl->hall->lock);
    turn = find_round(impl->hall, args->sequence);
    turn->args[impl->rank] = *args;
    if (++turn->came == impl->hall->ranks)
        complete(impl, turn);
    pthread_mutex_unlock(&impl->hall->lock);
    TAILQ_INSERT_TAIL(&impl->posted, request, link);
    return DSCOMM_OK;
}

static int leave_round(impl_t *impl, request_t *request)
{
    hall_t *hall = impl->hall;
    round_t *turn = find_round(hall, request->sequence);

    if (turn->came < hall->ranks || atomic_load(&hall->revoked))
        return 0;
    if (++turn->left == hall->ranks) {
        SLIST_REMOVE(&hall->rounds, turn, round, link);
        free(turn);
    }
    request->head.status = DSCOMM_OK;
    return 1;
}

/* Memory of a device, which is mapped from its dma-buf: the fake driver's
 * begins at the descriptor's position. A key is the address of this. */
typedef struct {
    dscomm_dma_buf_t memory;
    char *mapped;
} device_t;

static dscomm_status_t device_register(void *self,
                                       const dscomm_dma_buf_t *memory,
                                       void *key, void **ret_registered)
{
    device_t *device;

    (void)self;
    if (!__atomic_load_n(&thread_registers, __ATOMIC_RELAXED))
        return DSCOMM_ERR_UNSUPPORTED;
    device = calloc(1, sizeof *device);
    device->memory = *memory;
    device->mapped = mmap(
        NULL, memory->offset + memory->bytes, PROT_READ | PROT_WRITE,
        MAP_SHARED, memory->descriptor, lseek(memory->descriptor, 0, SEEK_CUR));
    if (device->mapped == MAP_FAILED)
        abort();
    memcpy(key, &device, sizeof device);
    *ret_registered = device;
    __atomic_add_fetch(&thread_registers, 1, __ATOMIC_RELAXED);
    return DSCOMM_OK;
}

static dscomm_status_t device_deregister(void *self, void *registered)
{
    device_t *device = registered;

    (void)self;
    munmap(device->mapped, device->memory.offset + device->memory.bytes);
    free(device);
    __atomic_sub_fetch(&thread_registers, 1, __ATOMIC_RELAXED);
    return DSCOMM_OK;
}

static char *device_place(const device_t *device, size_t offset)
{
    return device->mapped + device->memory.offset + offset;
}

static char *access_data(const dscomm_access_t *access)
{
    const device_t *own = access->registered;

    return own ? device_place(own, (size_t)((char *)access->data -
                                            (char *)own->memory.address))
               : access->data;
}

static char *access_there(const dscomm_access_t *access)
{
    const device_t *device;

    memcpy(&device, access->key, sizeof device);
    return device_place(device, access->offset);
}

/* Accesses are made by the next progress. */
static dscomm_status_t access_post(impl_t *impl, request_kind_t kind,
                                   const dscomm_access_t *access,
                                   dscomm_request_t *head)
{
    request_t *request = (request_t *)head;

    request->kind = kind;
    request->access = *access;
    head->status = DSCOMM_IN_PROGRESS;
    TAILQ_INSERT_TAIL(&impl->posted, request, link);
    return DSCOMM_OK;
}

static dscomm_status_t device_put(void *self, const dscomm_access_t *access,
                                  dscomm_request_t *head)
{
    return access_post(self, PUT, access, head);
}

static dscomm_status_t device_get(void *self, const dscomm_access_t *access,
                                  dscomm_request_t *head)
{
    return access_post(self, GET, access, head);
}

static int access_make(impl_t *impl, request_t *request)
{
    const dscomm_access_t *access = &request->access;
    const bool gets = request->kind == GET;

    (void)impl;
    memcpy(gets ? access_data(access) : access_there(access),
           gets ? access_there(access) : access_data(access), access->bytes);
    request->head.status = DSCOMM_OK;
    return 1;
}

static unsigned thread_progress(void *self)
{
    impl_t *impl = self;
    request_t *request, *next;
    unsigned completed = 0;
    static int (*const completes[])(impl_t *, request_t *) = {
        [MESSAGE] = receive,
        [COLLECTIVE] = leave_round,
        [PUT] = access_make,
        [GET] = access_make,
    };

    pthread_mutex_lock(&impl->hall->lock);
    for (request = TAILQ_FIRST(&impl->posted); request; request = next) {
        next = TAILQ_NEXT(request, link);
        if (completes[request->kind](impl, request)) {
            TAILQ_REMOVE(&impl->posted, request, link);
            completed++;
        }
    }
    pthread_mutex_unlock(&impl->hall->lock);
    return completed;
}

static void thread_cancel(void *self, dscomm_request_t *head)
{
    impl_t *impl = self;
    request_t *request = (request_t *)head;

    TAILQ_REMOVE(&impl->posted, request, link);
    if (&thread_kept && request->kind == MESSAGE)
        __atomic_store_n(&thread_kept, place(request->message.recv),
                         __ATOMIC_RELAXED);
    head->held = &thread_holds && thread_holds;
}

static uint64_t thread_capabilities(void *self)
{
    (void)self;
    return DSCOMM_CAP_ANY_SOURCE | DSCOMM_CAP_MISMATCH_DETECTION |
           (&fake_device_aware && fake_device_aware ? DSCOMM_CAP_DEVICE_MEMORY
                                                    : 0);
}

static int thread_explain(void *self, const dscomm_request_t *request,
                          char *text, size_t size)
{
    (void)self;
    (void)request;
    snprintf(text, size, "nobody knows who is late");
    return -1;
}

/* For the core, which sets all that it finds aside. */
static int thread_probe(void *self, const dscomm_message_t *wanted,
                        dscomm_request_t *found, void **ret_taken)
{
    impl_t *impl = self;
    parcel_t *parcel;

    pthread_mutex_lock(&impl->hall->lock);
    parcel = parcel_take(impl, wanted);
    pthread_mutex_unlock(&impl->hall->lock);
    if (parcel)
        found->source = parcel->source;
    *ret_taken = parcel;
    return parcel != NULL;
}

static void thread_trim(void *self, dscomm_backend_ops_t *slots)
{
    (void)self;
    if (!&thread_registers)
        return;
    slots->probe = thread_probe;
    slots->mem_register_device = device_register;
    slots->mem_deregister = device_deregister;
    slots->put = device_put;
    slots->get = device_get;
}

static const dscomm_backend_ops_t ops = {
    .size = sizeof(dscomm_backend_ops_t),
    .request_size = sizeof(request_t),
    .open = thread_open,
    .close = thread_close,
    .isend = thread_isend,
    .irecv = thread_irecv,
    .cancel = thread_cancel,
    .progress = thread_progress,
    .revoke = thread_revoke,
    .status = thread_status,
    .capabilities = thread_capabilities,
    .native = thread_native,
    .start = thread_start,
    .explain = thread_explain,
    .trim = thread_trim,
};

DSCOMM_BACKEND_EXPORT extern const dscomm_backend_t dscomm_backend_thread;
const dscomm_backend_t dscomm_backend_thread = {
    .abi = DSCOMM_BACKEND_ABI,
    .priority = 1,
    .name = "thread",
    .ops = &ops,
};
