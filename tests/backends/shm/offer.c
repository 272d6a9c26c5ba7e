/* SPDX-License-Identifier: BSD-3-Clause */
/* Offers of a segment that a member must not accept: another user's, and those
 * whose file or layout is not rank 0's. */
#include "tests/backends/shm/fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "backends/shm/connect.h"

#define NOBODY 65534
#define TIMEOUT_MS 20000

extern const dscomm_backend_t dscomm_backend_shm;

static const int world_ranks[2] = {0, 1};

typedef struct {
    dscomm_backend_args_t args;
    void *impl;
    dscomm_status_t status;
    char sentence[512];
    pthread_t thread;
} member_t;

static void *member_open(void *data)
{
    member_t *member = data;

    member->status = dscomm_backend_shm.ops->open(&member->args, &member->impl);
    g_strlcpy(member->sentence, dscomm_last_error(), sizeof member->sentence);
    return NULL;
}

static void member_start(member_t *member, int rank, dscomm_store_t *store)
{
    *member = (member_t){.args = {.size = sizeof member->args,
                                  .name = "test",
                                  .id = "w",
                                  .rank = rank,
                                  .ranks = 2,
                                  .world_ranks = world_ranks,
                                  .store = store,
                                  .timeout_ms = TIMEOUT_MS,
                                  .open_ms = TIMEOUT_MS}};
    pthread_create(&member->thread, NULL, member_open, member);
}

static void member_end(member_t *member)
{
    pthread_join(member->thread, NULL);
    if (member->status == DSCOMM_OK)
        dscomm_backend_shm.ops->close(member->impl);
}

static dscomm_store_t *open_store(void)
{
    dscomm_store_t *store;

    if (dscomm_store_open("memory://", NULL, &store))
        bail("no store: %s", dscomm_last_error());
    return store;
}

/* The ways in which an offer can be wrong. */
typedef struct {
    const char *name;
    int seals;
    off_t shorter; /* bytes that are missing in the file */
    void (*change)(shm_layout_t *layout);
    const char *word; /* expected in the member's sentence */
} wrong_t;

static void add_rank(shm_layout_t *layout)
{
    layout->ranks++;
}

static void widen_stride(shm_layout_t *layout)
{
    layout->control_stride = UINT64_C(1) << 40;
}

static void empty_channel(shm_layout_t *layout)
{
    layout->channel_size = 0;
    layout->heap = layout->channel;
    layout->total = layout->heap + 2 * layout->heap_size;
}

static void grow_ring(shm_layout_t *layout)
{
    layout->ring_size = UINT64_C(1) << 62;
}

#define ALL_SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

/* Makes a listener, and an offer of its address and a password. */
static int listen_at(char offer[OFFER + 1], const char *name)
{
    struct sockaddr_un address;
    socklen_t length = shm_connect_address(name, &address);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

    memset(offer, '0', OFFER);
    memcpy(offer, name, 2 * NAME);
    offer[OFFER] = 0;
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, length) ||
        listen(fd, 1))
        bail("cannot listen: %s", strerror(errno));
    return fd;
}

/* Makes a name that no other run of this program has. */
static void make_name(char name[2 * NAME + 1], unsigned number)
{
    snprintf(name, 2 * NAME + 1, "%08x%08x", (unsigned)getpid(), number);
}

/* Accepts one member, and sends it a wrong offer. */
static void serve_wrong(int listener, const wrong_t *wrong)
{
    int64_t soon = shm_now_ns() + 5000 * NS_PER_MS;
    join_result_t result = {.magic = SHM_MAGIC};
    int fd = accept(listener, NULL, NULL);
    int file = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    hello_t hello;

    shm_layout_make(2, &result.layout);
    if (ftruncate(file, (off_t)result.layout.total - wrong->shorter) ||
        fcntl(file, F_ADD_SEALS, wrong->seals))
        return;
    if (wrong->change)
        wrong->change(&result.layout);
    shm_message_receive(fd, &hello, sizeof hello, NULL, 0, soon);
    shm_message_send(fd, &result, sizeof result, &file, 1, soon);
    shm_message_receive(fd, &result, sizeof result, NULL, 0, soon);
    close(file);
    close(fd);
}

/* Even a process of this user must not make a rank map memory without valid
 * bounds. */
static void test_wrong(void)
{
    static const wrong_t rows[] = {
        {"a file without seals", 0, 0, NULL, "not sealed"},
        {"a file that may shrink", F_SEAL_GROW | F_SEAL_SEAL, 0, NULL,
         "not sealed"},
        {"a file that is too short", ALL_SEALS, 4096, NULL, "another size"},
        {"another number of ranks", ALL_SEALS, 0, add_rank, "another layout"},
        {"a stride of 1 TiB", ALL_SEALS, 0, widen_stride, "another layout"},
        {"channels without room", ALL_SEALS, 0, empty_channel,
         "another layout"},
        {"rings beyond the limit", ALL_SEALS, 0, grow_ring, "another layout"},
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(rows); i++) {
        dscomm_store_t *store = open_store();
        char name[2 * NAME + 1], offer[OFFER + 1];
        member_t member;
        int listener;

        make_name(name, i);
        listener = listen_at(offer, name);
        dscomm_store_set(store, SHM_KEY, offer, OFFER);
        member_start(&member, 1, store);
        serve_wrong(listener, &rows[i]);
        member_end(&member);
        is_int(member.status, DSCOMM_ERR_PROTOCOL, "refused: %s", rows[i].name);
        ok(strstr(member.sentence, rows[i].word) != NULL, "and why: %s",
           member.sentence);
        close(listener);
        dscomm_store_close(store);
    }
}

/* The offer is deleted when all members have the segment. */
static void test_deleted(void)
{
    dscomm_store_t *store = open_store();
    member_t members[2];
    int64_t keys = -1;

    for (int rank = 0; rank < 2; rank++)
        member_start(&members[rank], rank, store);
    for (int rank = 0; rank < 2; rank++) {
        pthread_join(members[rank].thread, NULL);
        is_int(members[rank].status, DSCOMM_OK, "rank %d is there", rank);
    }
    dscomm_store_num_keys(store, &keys);
    is_int(keys, 0, "and the group has left no key in the store");
    for (int rank = 0; rank < 2; rank++)
        if (members[rank].status == DSCOMM_OK)
            dscomm_backend_shm.ops->close(members[rank].impl);
    dscomm_store_close(store);
}

/* As another user: accepts all connections, until killed. */
static void be_foreigner(int listener, int ready)
{
    static const wrong_t wrong = {"", 0, 1 << 20, NULL, ""};
    struct ucred self;
    socklen_t length = sizeof self;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    /* The credentials of a listener are those at the time of listen(). */
    if (setresuid(NOBODY, NOBODY, NOBODY) || listen(listener, 8) ||
        getsockopt(listener, SOL_SOCKET, SO_PEERCRED, &self, &length) ||
        write(ready, "", 1) != 1)
        _exit(1);
    for (;;)
        serve_wrong(listener, &wrong);
}

static pid_t start_foreigner(int listener)
{
    int ready[2];
    char byte;
    pid_t pid;

    if (pipe(ready))
        bail("pipe: %s", strerror(errno));
    pid = fork();
    if (pid == 0)
        be_foreigner(listener, ready[1]);
    close(ready[1]);
    if (pid < 0 || read(ready[0], &byte, 1) != 1)
        bail("cannot have a process of another user");
    close(ready[0]);
    return pid;
}

/* Another user replaces rank 0's offer by his own, or by an invalid one, before
 * rank 1 reads it: the two ranks meet all the same. */
static void run_foreigner(const char *what, const char *offer)
{
    dscomm_store_t *store = open_store();
    member_t members[2];
    const shm_t *first, *second;
    void *value;
    size_t size;

    member_start(&members[0], 0, store);
    if (dscomm_store_get(store, SHM_KEY, TIMEOUT_MS, &value, &size))
        bail("rank 0 offers nothing: %s", dscomm_last_error());
    dscomm_store_free(value);
    dscomm_store_set(store, SHM_KEY, offer, strlen(offer));
    member_start(&members[1], 1, store);
    for (int r = 0; r < 2; r++)
        pthread_join(members[r].thread, NULL);
    for (int r = 0; r < 2; r++)
        if (!is_int(members[r].status, DSCOMM_OK, "%s: rank %d", what, r))
            printf("# %s\n", members[r].sentence);
    first = members[0].impl;
    second = members[1].impl;
    if (!members[0].status && !members[1].status) {
        atomic_store(&first->own->done, 4711);
        is_int((long long)atomic_load(&shm_control(second, 0)->done), 4711,
               "rank 1 has mapped rank 0's segment");
    }
    for (int r = 0; r < 2; r++)
        if (!members[r].status)
            dscomm_backend_shm.ops->close(members[r].impl);
    dscomm_store_close(store);
}

static void test_foreigner(void)
{
    char name[2 * NAME + 1], offer[OFFER + 1];
    int listener;
    pid_t pid;

    run_foreigner("nonsense for an offer", "nonsense");
    if (geteuid() != 0) {
        skip("needs root, for a process of another user");
        return;
    }
    make_name(name, 1000);
    listener = listen_at(offer, name);
    pid = start_foreigner(listener);
    run_foreigner("another user's offer", offer);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    close(listener);
}

/* A listener that accepts nobody, and whose queue is full: rank 1 does not wait
 * there. */
static void test_full_queue(void)
{
    enum { MOST = 16 };
    char name[2 * NAME + 1], offer[OFFER + 1];
    struct sockaddr_un address;
    int listener, fds[MOST], count = 0, failed = 0;
    socklen_t length;

    make_name(name, 2000);
    listener = listen_at(offer, name);
    length = shm_connect_address(name, &address);
    while (count < MOST && !failed) {
        fds[count] = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0);
        failed =
            connect(fds[count++], (struct sockaddr *)&address, length) != 0;
    }
    ok(failed && errno == EAGAIN, "the queue is full");
    run_foreigner("an offer with a full queue", offer);
    while (count)
        close(fds[--count]);
    close(listener);
}

int main(void)
{
    test_wrong();
    test_deleted();
    test_foreigner();
    test_full_queue();
    return tap_done();
}
