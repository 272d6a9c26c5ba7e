/* SPDX-License-Identifier: BSD-3-Clause */
/* A backend of one's own: messages through mailboxes in shared memory, and
 * nothing else. The library makes every collective of them. See README.md. */
#define _GNU_SOURCE
#include <dscomm/backend.h>

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/param.h>
#include <sys/queue.h>
#include <unistd.h>

#define PIECE ((size_t)1 << 16)

/* A piece on its way from one rank to another: the receiver's while full. */
typedef struct {
    _Alignas(64) atomic_int full;
    dscomm_message_t whole; /* peer: the sender */
    char data[PIECE];
} box_t;

/* The memory that the ranks of a group share. revoked: 1 while failure is being
 * written. */
typedef struct {
    atomic_int revoked;
    char failure[DSCOMM_FAILURE_PACKED];
    box_t boxes[]; /* from each rank to each rank */
} shared_t;

/* A message that has arrived, as far as it has. */
typedef struct parcel {
    TAILQ_ENTRY(parcel) link;
    dscomm_message_t whole;
    size_t have;
    int taken; /* set aside by a probe */
    char data[];
} parcel_t;

/* The part that the library knows comes first. */
typedef struct request {
    dscomm_request_t common;
    TAILQ_ENTRY(request) link;
    TAILQ_HEAD(requests, request) * list; /* where it waits */
    dscomm_message_t message;
    size_t sent;
} request_t;

/* One group in one process. Lists have the oldest first. */
typedef struct {
    int rank, ranks;
    dscomm_group_t *group;
    size_t size; /* of shared */
    shared_t *shared;
    TAILQ_HEAD(, parcel) parcels;
    struct requests receives, sends[]; /* to each rank */
} impl_t;

/* From any thread: without a lock, and the first call wins. */
static void stop(void *self, const dscomm_failure_t *failure)
{
    shared_t *shared = ((impl_t *)self)->shared;
    int none = 0;

    if (!atomic_compare_exchange_strong(&shared->revoked, &none, 1))
        return;
    dscomm_backend_failure_pack(failure, shared->failure);
    shared->revoked = failure->status;
}

static dscomm_status_t status_of(void *self, dscomm_failure_t *ret_failure)
{
    shared_t *shared = ((impl_t *)self)->shared;
    int status = shared->revoked;

    if (status < 0 && ret_failure)
        dscomm_backend_failure_unpack(shared->failure, sizeof shared->failure,
                                      ret_failure);
    return status < 0 ? (dscomm_status_t)status : DSCOMM_OK;
}

/* The status comes last: from there on the request is the library's. */
static unsigned mailbox_complete(request_t *request, dscomm_status_t status)
{
    TAILQ_REMOVE(request->list, request, link);
    request->common.status = status;
    return 1;
}

/* The oldest message that a receive takes, if it is whole. */
static parcel_t *parcel_find(impl_t *impl, const dscomm_message_t *want)
{
    parcel_t *parcel = want->taken;

    if (parcel)
        return parcel;
    TAILQ_FOREACH (parcel, &impl->parcels, link)
        if (!parcel->taken && parcel->whole.peer == want->peer &&
            (parcel->whole.tag == want->tag ||
             (want->tag == DSCOMM_ANY_TAG && parcel->whole.tag >= 0)))
            break;
    return parcel && parcel->have == parcel->whole.bytes ? parcel : NULL;
}

/* Gives receive its message. */
static unsigned receive_match(impl_t *impl, request_t *receive)
{
    const dscomm_message_t *want = &receive->message, *got;
    parcel_t *parcel = parcel_find(impl, want);

    if (!parcel)
        return 0;
    got = &parcel->whole;
    if (got->bytes && want->bytes)
        memcpy(want->recv, parcel->data, MIN(got->bytes, want->bytes));
    receive->common.source = got->peer;
    receive->common.tag = got->tag;
    receive->common.bytes = got->bytes;
    mailbox_complete(receive, got->bytes > want->bytes ? DSCOMM_ERR_TRUNCATED
                                                       : DSCOMM_OK);
    TAILQ_REMOVE(&impl->parcels, parcel, link);
    free(parcel);
    return 1;
}

/* Takes in the piece that has come from source. */
static void box_pull(impl_t *impl, int source)
{
    box_t *box = &impl->shared->boxes[source * impl->ranks + impl->rank];
    dscomm_failure_t failure;
    parcel_t *parcel;
    size_t n;

    if (!box->full)
        return;
    TAILQ_FOREACH (parcel, &impl->parcels, link)
        if (parcel->whole.peer == source && parcel->have < parcel->whole.bytes)
            break;
    if (!parcel && !(parcel = calloc(1, sizeof *parcel + box->whole.bytes))) {
        dscomm_backend_failure_last(
            impl->group,
            dscomm_fail(DSCOMM_ERR_NO_MEMORY, "no memory for a message"),
            &failure);
        stop(impl, &failure);
        return;
    }
    if (!parcel->have) {
        parcel->whole = box->whole;
        TAILQ_INSERT_TAIL(&impl->parcels, parcel, link);
    }
    n = MIN(parcel->whole.bytes - parcel->have, PIECE);
    memcpy(parcel->data + parcel->have, box->data, n);
    parcel->have += n;
    box->full = 0;
}

/* Sends the next piece to a rank, if its box is empty. */
static unsigned box_push(impl_t *impl, int to)
{
    box_t *box = &impl->shared->boxes[impl->rank * impl->ranks + to];
    request_t *request = TAILQ_FIRST(&impl->sends[to]);
    size_t n;

    if (!request || box->full)
        return 0;
    n = MIN(request->message.bytes - request->sent, PIECE);
    if (n)
        memcpy(box->data, (char *)request->message.send + request->sent, n);
    request->sent += n;
    box->whole = request->message;
    box->whole.peer = impl->rank;
    box->full = 1;
    return request->sent == request->message.bytes &&
           mailbox_complete(request, DSCOMM_OK);
}

static unsigned progress(void *self)
{
    impl_t *impl = self;
    request_t *receive = TAILQ_FIRST(&impl->receives), *next;
    unsigned completed = 0;

    for (int r = 0; r < impl->ranks; r++) {
        completed += box_push(impl, r);
        box_pull(impl, r);
    }
    for (; receive; receive = next) {
        next = TAILQ_NEXT(receive, link);
        completed += receive_match(impl, receive);
    }
    return completed;
}

static dscomm_status_t request_start(impl_t *impl,
                                     const dscomm_message_t *message,
                                     request_t *request, struct requests *list)
{
    dscomm_failure_t failure;

    if (status_of(impl, &failure) < 0)
        return dscomm_backend_fail(&failure);
    request->message = *message;
    request->list = list, request->sent = 0;
    TAILQ_INSERT_TAIL(list, request, link);
    return DSCOMM_OK;
}

static dscomm_status_t isend(void *self, const dscomm_message_t *message,
                             dscomm_request_t *request)
{
    return request_start(self, message, (request_t *)request,
                         &((impl_t *)self)->sends[message->peer]);
}

static dscomm_status_t irecv(void *self, const dscomm_message_t *message,
                             dscomm_request_t *request)
{
    return request_start(self, message, (request_t *)request,
                         &((impl_t *)self)->receives);
}

static void mailbox_cancel(void *self, dscomm_request_t *request)
{
    (void)self;
    TAILQ_REMOVE(((request_t *)request)->list, (request_t *)request, link);
}

/* receive_match() gives a receive its message all at once. */
static int withdraw(void *self, dscomm_request_t *request)
{
    mailbox_cancel(self, request);
    return 1;
}

static int mailbox_probe(void *self, const dscomm_message_t *want,
                         dscomm_request_t *found, void **ret_taken)
{
    parcel_t *parcel = parcel_find(self, want);

    if (!parcel)
        return 0;
    found->source = parcel->whole.peer;
    found->tag = parcel->whole.tag;
    found->bytes = parcel->whole.bytes;
    if (ret_taken)
        *ret_taken = parcel;
    parcel->taken = ret_taken != NULL;
    return 1;
}

static void mailbox_leave(void *self)
{
    impl_t *impl = self;
    parcel_t *parcel;

    while ((parcel = TAILQ_FIRST(&impl->parcels)) != NULL) {
        TAILQ_REMOVE(&impl->parcels, parcel, link);
        free(parcel);
    }
    munmap(impl->shared, impl->size);
    free(impl);
}

/* Rank 0 makes a file without a name, the others open it through /proc. */
static dscomm_status_t map_file(const dscomm_backend_args_t *args, impl_t *impl,
                                char path[64], int *ret_file)
{
    dscomm_status_t status;
    void *there;
    size_t size;

    if (args->rank == 0) {
        *ret_file = memfd_create("mailbox", MFD_CLOEXEC);
        snprintf(path, 64, "/proc/%d/fd/%d", (int)getpid(), *ret_file);
    } else {
        status = dscomm_store_get(args->store, "rank 0", args->open_ms, &there,
                                  &size);
        if (status < 0)
            return status;
        *ret_file = open(there, O_RDWR | O_CLOEXEC);
        dscomm_store_free(there);
    }
    if (*ret_file < 0 || ftruncate(*ret_file, (off_t)impl->size) ||
        (impl->shared = mmap(NULL, impl->size, PROT_READ | PROT_WRITE,
                             MAP_SHARED, *ret_file, 0)) == MAP_FAILED)
        return dscomm_fail(DSCOMM_ERR_IO, "rank 0's file: %s", strerror(errno));
    return DSCOMM_OK;
}

/* Returns when all ranks have mapped the file. */
static dscomm_status_t mailbox_join(const dscomm_backend_args_t *args,
                                    void **ret_impl)
{
    const size_t ranks = (size_t)args->ranks;
    impl_t *impl = calloc(1, sizeof *impl + ranks * sizeof *impl->sends);
    dscomm_status_t status;
    char path[64] = "", key[16];
    int file = -1;

    if (!impl)
        return dscomm_fail(DSCOMM_ERR_NO_MEMORY, "no memory for a group");
    *impl = (impl_t){
        .rank = args->rank, .ranks = args->ranks, .group = args->group};
    impl->size = sizeof(shared_t) + ranks * ranks * sizeof(box_t);
    TAILQ_INIT(&impl->parcels);
    TAILQ_INIT(&impl->receives);
    for (size_t r = 0; r < ranks; r++)
        TAILQ_INIT(&impl->sends[r]);
    status = map_file(args, impl, path, &file);
    snprintf(key, sizeof key, "rank %d", args->rank);
    if (status == DSCOMM_OK)
        status = dscomm_store_set(args->store, key, path, strlen(path));
    for (int r = 0; r < args->ranks && status == DSCOMM_OK; r++) {
        snprintf(key, sizeof key, "rank %d", r);
        status = dscomm_store_wait(args->store, &(const char *){key}, 1,
                                   args->open_ms);
    }
    close(file);
    if (status == DSCOMM_OK)
        *ret_impl = impl;
    else
        mailbox_leave(impl);
    return status;
}

static const dscomm_backend_ops_t ops = {
    .size = sizeof(dscomm_backend_ops_t),
    .request_size = sizeof(request_t),
    .open = mailbox_join,
    .close = mailbox_leave,
    .isend = isend,
    .irecv = irecv,
    .cancel = mailbox_cancel,
    .progress = progress,
    .revoke = stop,
    .status = status_of,
    .withdraw = withdraw,
    .probe = mailbox_probe,
};

DSCOMM_BACKEND_EXPORT const dscomm_backend_t dscomm_backend_mailbox = {
    .abi = DSCOMM_BACKEND_ABI,
    .name = "mailbox",
    .ops = &ops,
};
