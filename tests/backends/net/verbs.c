/* SPDX-License-Identifier: BSD-3-Clause */
/* The wire ibverbs between two ranks of this process, on a device that does
 * what no real one does when it is asked to (fake-verbs.h). */
#include "config.h"

#include "backends/net/little.h"
#include "tests/backends/net/verbs-ranks.h"
#include "tests/tap.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define FRAMES 400

/* Frames of many lengths go in both directions and arrive as they were. */
static void exchange(const char *what)
{
    GByteArray *data[2] = {g_byte_array_new(), g_byte_array_new()};
    GRand *random = g_rand_new_with_seed(7);
    size_t lengths[2][FRAMES], offset[2] = {0, 0};
    unsigned posted[2] = {0, 0};

    for (int r = 0; r < 2; r++)
        for (int i = 0; i < FRAMES; i++) {
            const unsigned most = i % 7 == 0 ? 40000 : i % 3 == 0 ? 9000 : 100;
            const guint length =
                (guint)g_rand_int_range(random, 0, (gint32)most);

            lengths[r][i] = length;
            for (guint b = 0; b < length; b++) {
                const guint8 byte = (guint8)g_rand_int(random);

                g_byte_array_append(data[r], &byte, 1);
            }
        }
    connect_to(0, 1);
    while (posted[0] < FRAMES || posted[1] < FRAMES) {
        const int r = g_rand_boolean(random);

        if (posted[r] < FRAMES) {
            const size_t length = lengths[r][posted[r]++];

            if (posted[r] == 1)
                connect_to(r, !r);
            post(r, !r, data[r]->data + offset[r], length);
            offset[r] += length;
        }
        if (g_rand_int_range(random, 0, 8) == 0)
            verbs_wire.poll(ranks[g_rand_boolean(random)].wire);
    }
    for (int i = 0;
         i < 20000 &&
         (ranks[0].landed < FRAMES || ranks[1].landed < FRAMES ||
          verbs_wire.unsent(ranks[0].wire) || verbs_wire.unsent(ranks[1].wire));
         i++)
        poll_both(1);
    for (int r = 0; r < 2; r++) {
        const GByteArray *got = ranks[!r].received;

        ok(ranks[!r].landed == FRAMES && ranks[r].sent == FRAMES &&
               got->len == data[r]->len &&
               !memcmp(got->data, data[r]->data, got->len),
           "%s: what rank %d has sent arrives", what, r);
    }
    is_int((int)(ranks[0].lost + ranks[1].lost), 0, "%s: no end", what);
    is_int((long long)(verbs_wire.unsent(ranks[0].wire) +
                       verbs_wire.unsent(ranks[1].wire)),
           0, "%s: all was sent", what);
    for (int r = 0; r < 2; r++)
        g_byte_array_unref(data[r]);
    g_rand_free(random);
}

static void test_exchange(void)
{
    fake_reset();
    both_open();
    exchange("frames");
    both_close("frames");
    for (guint32 seed = 1; seed <= 3; seed++) {
        fake_reset();
        fake.order = g_rand_new_with_seed(seed);
        both_open();
        exchange("completions in any order");
        both_close("completions in any order");
    }
    fake_reset();
    fake.max_inline = 0;
    fake.max_srq_wr = 2 * (WINDOW + SPARE);
    fake.max_cqe = 512;
    both_open();
    exchange("a small device");
    both_close("a small device");
    fake_reset();
    fake.drop_datagrams = 5;
    both_open();
    connect_to(0, 1);
    connect_to(1, 0);
    post(0, 1, NULL, 0);
    ok(becomes(&ranks[1].landed, 1, TIMEOUT_MS) && !ranks[0].lost,
       "hellos that are lost are sent again");
    both_close("hellos");
}

static void test_statuses(void)
{
    static const struct {
        enum ibv_wc_status status;
        dscomm_failure_kind_t kind;
        const char *text;
    } cases[] = {
        /* of this rank's device alone: the rank is lost, too */
        {IBV_WC_LOC_LEN_ERR, DSCOMM_FAILURE_RESOURCE, "status 1"},
        {IBV_WC_LOC_QP_OP_ERR, DSCOMM_FAILURE_RESOURCE, "status 2"},
        {IBV_WC_LOC_PROT_ERR, DSCOMM_FAILURE_RESOURCE, "status 4"},
        {IBV_WC_WR_FLUSH_ERR, DSCOMM_FAILURE_DIED, "ended the connection"},
        {IBV_WC_BAD_RESP_ERR, DSCOMM_FAILURE_DIED, "status 7"},
        {IBV_WC_REM_INV_REQ_ERR, DSCOMM_FAILURE_DIED, "ended the connection"},
        {IBV_WC_REM_ACCESS_ERR, DSCOMM_FAILURE_DIED, "refuses access"},
        {IBV_WC_REM_OP_ERR, DSCOMM_FAILURE_DIED, "ended the connection"},
        {IBV_WC_RETRY_EXC_ERR, DSCOMM_FAILURE_SILENT, "does not answer"},
        {IBV_WC_RNR_RETRY_EXC_ERR, DSCOMM_FAILURE_DIED, "no room"},
        {IBV_WC_FATAL_ERR, DSCOMM_FAILURE_RESOURCE, "status 19"},
        {IBV_WC_GENERAL_ERR, DSCOMM_FAILURE_RESOURCE, "status 21"},
    };
    static char data[30000];

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        fake_reset();
        both_connect();
        fake.next_status = cases[i].status;
        post(0, 1, data, sizeof data);
        poll_both(4);
        ok(ranks[0].lost == 1 + (cases[i].kind == DSCOMM_FAILURE_RESOURCE) &&
               ranks[0].kind == cases[i].kind &&
               strstr(ranks[0].why, cases[i].text),
           "completion with status %d: '%s'", cases[i].status, ranks[0].why);
        post(0, 1, data, 8);
        poll_both(4);
        is_int(ranks[0].sent + ranks[0].dropped, 3,
               "all frames are given back");
        rank_close(0);
        rank_close(1);
    }
}

static void test_calls(void)
{
    static const char *const names[] = {
        "open_device", "alloc_pd",  "create_comp_channel", "create_cq",
        "create_srq",  "create_qp", "modify_qp",           "create_ah",
        "reg_mr",      "post_send", "post_recv",           "query_device",
        "query_port",  "query_gids"};
    static char data[30000];

    for (int c = 0; c < FAKE_CALLS; c++)
        for (unsigned after = 0; after < 8; after++) {
            dscomm_status_t status;
            bool said = true;

            fake_reset();
            fake.max_cqe = 512;
            fake.fails[c] = c == FAKE_REG_MR ? ENOMEM : EIO;
            fake.after[c] = after;
            rank_open(1);
            status = rank_open(0);
            if (ranks[1].wire && status == DSCOMM_OK) {
                status = connect_to(0, 1);
                if (status == DSCOMM_OK)
                    post(0, 1, data, sizeof data);
                becomes(&ranks[0].lost, 1, 40);
                said = !ranks[0].lost || strlen(ranks[0].why) > 10;
            }
            if (status < 0)
                said = strlen(dscomm_last_error()) > 10;
            ok(said, "%s fails after %u calls: %s", names[c], after,
               status < 0 ? dscomm_last_error() : ranks[0].why);
            if (ranks[0].wire)
                rank_close(0);
            if (ranks[1].wire)
                rank_close(1);
            if (fake.objects)
                ok(0, "%u objects are left behind", fake.objects);
        }
    fake_reset();
    fake.fails[FAKE_REG_MR] = ENOMEM;
    ok(rank_open(0) < 0 && strstr(dscomm_last_error(), "ulimit -l"),
       "too little locked memory: %s", dscomm_last_error());
}

static void test_choice(void)
{
    const struct {
        const char *name, *value, *text;
    } cases[] = {
        {"DSCOMM_IBV_NAME", "mlx5_7", "no such RDMA device"},
        {"TORCH_GLOO_IBV_NAME", "mlx5_7", "no such RDMA device"},
        {"DSCOMM_IBV_PORT", "3", "has ports 1 to 1"},
        {"TORCH_GLOO_IBV_PORT", "x", "TORCH_GLOO_IBV_PORT='x' is no number"},
        {"DSCOMM_IBV_INDEX", "9", "has no GID 9"},
        {"DSCOMM_IBV_INDEX", "-1", "is not accepted"},
        {"DSCOMM_IBV_TIMEOUT", "99", "is not accepted"},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        fake_reset();
        setenv(cases[i].name, cases[i].value, 1);
        ok(rank_open(0) < 0 && strstr(dscomm_last_error(), cases[i].text),
           "%s=%s: %s", cases[i].name, cases[i].value, dscomm_last_error());
        unsetenv(cases[i].name);
        is_int(fake.objects, 0, "nothing is left behind");
    }
    fake_reset();
    fake.devices = 0;
    ok(rank_open(0) < 0 && strstr(dscomm_last_error(), "no RDMA device"),
       "no device: %s", dscomm_last_error());
    fake_reset();
    fake.state = IBV_PORT_DOWN;
    ok(rank_open(0) < 0 && strstr(dscomm_last_error(), "is not active"),
       "no active port: %s", dscomm_last_error());
    fake_reset();
    fake.devices = 3;
    rank_open(0);
    ok(!strcmp(ibv_get_device_name(((verbs_t *)ranks[0].wire)->context->device),
               "fake0"),
       "the first device by name is used");
    is_int(((verbs_t *)ranks[0].wire)->gid_index, 2,
           "with the GID of RoCE v2 and IPv4");
    rank_close(0);
    setenv("TORCH_GLOO_IBV_NAME", "fake1", 1);
    setenv("TORCH_GLOO_IBV_INDEX", "1", 1);
    rank_open(0);
    ok(!strcmp(ibv_get_device_name(((verbs_t *)ranks[0].wire)->context->device),
               "fake1") &&
           ((verbs_t *)ranks[0].wire)->gid_index == 1,
       "Gloo's variables choose device and GID");
    rank_close(0);
    unsetenv("TORCH_GLOO_IBV_NAME");
    unsetenv("TORCH_GLOO_IBV_INDEX");
}

static void test_addresses(void)
{
    static const struct {
        int byte, value;
        size_t bytes;
        const char *text;
    } cases[] = {
        {0, 'x', 44, "published no address"},
        {0, 'D', 0, "no address"},
        {4, 1, 44, "version 1"},
        {4, 3, 43, "same dscomm"},
        {6, 0, 44, "damaged"},
        {6, 9, 44, "damaged"},
        {15, 1, 44, "damaged"},
        {5, 1, 44, "InfiniBand"},
    };
    GRand *random = g_rand_new_with_seed(3);
    unsigned char address[64];

    fake_reset();
    both_open();
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        memcpy(address, ranks[1].address, 44);
        address[cases[i].byte] = (unsigned char)cases[i].value;
        ok(verbs_wire.connect(ranks[0].wire, 1, address, cases[i].bytes) < 0 &&
               strstr(dscomm_last_error(), cases[i].text),
           "an address with byte %d wrong: %s", cases[i].byte,
           dscomm_last_error());
    }
    /* Datagrams of strangers. */
    for (int i = 0; i < 500; i++) {
        unsigned char hello[72];

        for (size_t b = 0; b < sizeof hello; b++)
            hello[b] = (unsigned char)g_rand_int(random);
        memcpy(hello, "dscm\2\0\0\0\1\0\0\0\0\0\0", 15);
        if (i % 2)
            hello[g_rand_int_range(random, 0, 72)] ^= 1;
        fake_datagram(((verbs_t *)ranks[0].wire)->own.qpn, hello,
                      i % 5 ? sizeof hello
                            : (size_t)g_rand_int_range(random, 0, 73));
        verbs_wire.poll(ranks[0].wire);
    }
    is_int(ranks[0].opened, 0, "datagrams that prove nothing open nothing");
    exchange("after them");
    both_close("addresses");
    g_rand_free(random);
}

/* A peer whose address has the pid of another process, which ends. */
static void test_death(void)
{
    const char *const hosts[] = {NULL, "elsewhere"};
    unsigned char address[64];
    const int pidfd = (int)syscall(SYS_pidfd_open, getpid(), 0);
    pid_t child, worker;

    if (pidfd < 0) {
        skip("ends of processes: pidfd_open: %s", strerror(errno));
        return;
    }
    close(pidfd);
    for (size_t i = 0; i < G_N_ELEMENTS(hosts); i++) {
        fake_reset();
        rank_open(0);
        if (hosts[i])
            setenv("DSCOMM_HOST_ID", hosts[i], 1);
        rank_open(1);
        unsetenv("DSCOMM_HOST_ID");
        child = fork();
        if (!child)
            pause();
        memcpy(address, ranks[1].address, 44);
        put_32(address + 32, (uint32_t)child);
        is_int(verbs_wire.connect(ranks[0].wire, 1, address, 44), DSCOMM_OK,
               "a rank connects to a process");
        exchange("while that lives");
        worker = fork();
        if (!worker)
            pause();
        kill(child, SIGKILL);
        if (waitpid(child, NULL, 0) != child)
            bail("no child");
        post(1, 0, "last", 4);
        verbs_wire.poll(ranks[1].wire);
        becomes(&ranks[0].lost, 1, 30);
        if (hosts[i])
            is_int(ranks[0].lost, 0, "a pid of another host means nothing");
        else
            ok(ranks[0].lost == 1 && ranks[0].kind == DSCOMM_FAILURE_DIED &&
                   !strcmp(ranks[0].why, "its process has ended"),
               "its end is seen at once: %s", ranks[0].why);
        ok(ranks[0].received->len >= 4 &&
               !memcmp(ranks[0].received->data + ranks[0].received->len - 4,
                       "last", 4),
           "after what it has sent");
        is_int(epoll_wait(((verbs_t *)ranks[0].wire)->deaths,
                          &(struct epoll_event){0}, 1, 0),
               0, "it is seen once, although a forked process lives");
        kill(worker, SIGKILL);
        waitpid(worker, NULL, 0);
        both_close("death");
    }
    fake_reset();
    both_open();
    memcpy(address, ranks[1].address, 44);
    put_32(address + 32, (uint32_t)child);
    verbs_wire.connect(ranks[0].wire, 1, address, 44);
    post(0, 1, NULL, 0);
    ok(becomes(&ranks[0].lost, 1, 30) && ranks[0].dropped == 1,
       "a process that has ended before is not waited for: %s", ranks[0].why);
    both_close("death before");
}

static void test_silence(void)
{
    fake_reset();
    both_open();
    fake.drop_datagrams = UINT_MAX;
    connect_to(0, 1);
    post(0, 1, NULL, 0);
    ok(becomes(&ranks[0].lost, 1, 10 * TIMEOUT_MS) &&
           ranks[0].kind == DSCOMM_FAILURE_SILENT &&
           strstr(ranks[0].why, "does not answer"),
       "a peer that never answers: %s", ranks[0].why);
    is_int(ranks[0].dropped, 1, "its frame is dropped");
    both_close("silence");
    fake_reset();
    both_connect();
    rank_close(1);
    for (int i = 0; i < 3000 && !ranks[0].lost; i++) {
        verbs_wire.poll(ranks[0].wire);
        g_usleep(1000);
    }
    ok(ranks[0].lost == 1 && ranks[0].kind == DSCOMM_FAILURE_SILENT,
       "a peer to which nothing is sent is missed when it has gone: %s",
       ranks[0].why);
    rank_close(0);
}

static void test_events(void)
{
    struct ibv_qp *qp;

    fake_reset();
    both_connect();
    fake_event(IBV_EVENT_PORT_ERR, NULL);
    fake_event(IBV_EVENT_PORT_ACTIVE, NULL);
    fake_event(IBV_EVENT_CLIENT_REREGISTER, NULL);
    becomes(&ranks[0].lost, 1, 30);
    is_int(ranks[0].lost, 0, "a port that is down for a moment ends nothing");
    qp = ((verbs_t *)ranks[0].wire)->pairs[1].qp;
    fake_event(IBV_EVENT_QP_FATAL, qp);
    ok(becomes(&ranks[0].lost, 1, 100),
       "a queue pair's fatal error ends its connection: %s", ranks[0].why);
    both_close("a fatal queue pair");
    fake_reset();
    both_connect();
    fake_event(IBV_EVENT_DEVICE_FATAL, NULL);
    ok(becomes(&ranks[0].lost, 1, 100) &&
           ranks[0].kind == DSCOMM_FAILURE_RESOURCE &&
           strstr(ranks[0].why, "fake0"),
       "a device's ends all: %s", ranks[0].why);
    both_close("a fatal device");
}

/* Whether a wait of rank 1, in which nothing comes, sleeps. */
static bool sleeps(void)
{
    const gint64 begun = g_get_monotonic_time();

    verbs_wire.wait(ranks[1].wire, 20000);
    return g_get_monotonic_time() - begun >= 15000;
}

static void test_wait(void)
{
    fake_reset();
    both_connect();
    poll_both(10);
    verbs_wire.wait(ranks[1].wire, 20000);
    verbs_wire.poll(ranks[1].wire);
    ok(sleeps(), "a wait sleeps");
    post(0, 1, "x", 1);
    ok(!sleeps(), "until there is a completion");
    verbs_wire.poll(ranks[1].wire);
    is_int(ranks[1].landed, 2, "which is then read");
    verbs_wire.wait(ranks[1].wire, 20000);
    verbs_wire.poll(ranks[1].wire);
    verbs_wire.wake(ranks[1].wire);
    ok(!sleeps(), "or somebody wakes it");
    verbs_wire.poll(ranks[1].wire);
    verbs_wire.wait(ranks[1].wire, 20000);
    verbs_wire.poll(ranks[1].wire);
    fake.silent = true;
    post(0, 1, "x", 1);
    sleeps();
    verbs_wire.poll(ranks[1].wire);
    is_int(ranks[1].landed, 3, "an event that is lost delays, no more");
    fake.silent = false;
    for (int i = 0; i < 300; i++) {
        verbs_wire.wait(ranks[1].wire, 0);
        verbs_wire.poll(ranks[1].wire);
        post(0, 1, "x", 1);
        poll_both(1);
    }
    poll_both(4);
    is_int(ranks[1].landed, 303, "events do not fill up");
    both_close("waits");
}

int main(void)
{
    test_exchange();
    test_statuses();
    test_calls();
    test_choice();
    test_addresses();
    test_death();
    test_silence();
    test_events();
    test_wait();
    return tap_done();
}
