/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory to which devices write, with the wire ibverbs: puts, accesses, rings
 * and registrations. */
#include "config.h"

#include "tests/backends/net/verbs-ranks.h"
#include "tests/tap.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static void *pages_new(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (memory == MAP_FAILED)
        bail("no memory");
    return memory;
}

/* Rank 0 puts a part of its message. */
static int put(dscomm_wire_frame_t *frame, const unsigned char *key,
               uint64_t offset, uint32_t tag, const char *message, size_t bytes)
{
    dscomm_wire_put_t where = {.size = sizeof where,
                               .offset = offset,
                               .tag = tag,
                               .message = message,
                               .bytes = bytes};

    memcpy(where.key, key, sizeof where.key);
    return verbs_wire.put(ranks[0].wire, 1, frame, &where);
}

static bool has_userfaultfd(void)
{
    const int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | 1);

    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

/* Two memories that are exposed side by side are independent. */
static void test_two_exposed(void)
{
    enum { BYTES = 10000 };
    char *to = pages_new(2 * BYTES), *from = pages_new(BYTES);
    unsigned char whole[DSCOMM_WIRE_KEY], first[DSCOMM_WIRE_KEY],
        second[DSCOMM_WIRE_KEY];
    void *exposed, *one, *other;

    memset(from, 5, BYTES);
    fake_reset();
    both_connect();
    exposed = verbs_wire.expose(ranks[1].wire, 0, to, 2 * BYTES, whole);
    verbs_wire.conceal(ranks[1].wire, 0, exposed, 1);
    one = verbs_wire.expose(ranks[1].wire, 0, to, BYTES, first);
    other = verbs_wire.expose(ranks[1].wire, 0, to + BYTES, BYTES, second);
    verbs_wire.conceal(ranks[1].wire, 0, one, 0);
    put(frame_new(from, BYTES), second, 0, 9, from, BYTES);
    poll_both(10);
    ok(ranks[1].written == 1 && to[BYTES] == 5 && to[2 * BYTES - 1] == 5 &&
           !ranks[0].lost,
       "one that is concealed leaves the other one exposed");
    verbs_wire.conceal(ranks[1].wire, 0, other, 0);
    is_int(to[0], 0, "and was not written to");
    both_close("two exposed");
    munmap(to, 2 * BYTES);
    munmap(from, BYTES);
}

static void test_put(void)
{
    enum { BYTES = 100000, PARTS = 10 };
    /* Ranks that watch the same pages would disturb each other. */
    char *from = pages_new(BYTES), *to = pages_new(BYTES + 2);
    unsigned char key[DSCOMM_WIRE_KEY];
    dscomm_wire_frame_t *frame;
    unsigned registrations;
    void *exposed;

    for (int i = 0; i < BYTES; i++)
        from[i] = (char)(i * 7 + 1);
    fake_reset();
    both_connect();
    exposed = verbs_wire.expose(ranks[1].wire, 0, to + 1, BYTES, key);
    ok(exposed != NULL, "memory can be exposed");
    for (int i = PARTS - 1; i >= 0; i--)
        put(frame_new(from + i * (BYTES / PARTS), BYTES / PARTS), key,
            (uint64_t)i * (BYTES / PARTS), (uint32_t)i + 70, from, BYTES);
    poll_both(10);
    ok(!memcmp(to + 1, from, BYTES) && !to[0] && !to[BYTES + 1],
       "puts write where they should, and nowhere else");
    ok(ranks[1].written == PARTS && ranks[1].written_bytes == BYTES &&
           ranks[1].last_tag == 70 && ranks[0].sent == 1 + PARTS,
       "both ranks learn of each");
    registrations = fake.registrations;
    for (int i = 0; i < 1000; i++) {
        put(frame_new(from, BYTES), key, 0, 1, from, BYTES);
        poll_both(1);
        verbs_wire.conceal(ranks[1].wire, 0, exposed, 1);
        exposed = verbs_wire.expose(ranks[1].wire, 0, to + 1, BYTES, key);
    }
    poll_both(10);
    is_int(ranks[1].written, PARTS + 1000, "1000 more puts are done");
    if (has_userfaultfd())
        is_int(fake.registrations - registrations, 0,
               "for which no memory is registered again");
    else
        skip("for which no memory is registered again: this kernel has no "
             "userfaultfd");
    frame = frame_new(from, BYTES);
    is_int(put(frame, key, 1, 1, from, BYTES), 0,
           "a put beyond the memory is refused");
    fake.max_msg_sz = 4096;
    rank_close(0);
    rank_close(1);
    both_connect();
    exposed = verbs_wire.expose(ranks[1].wire, 0, to + 1, BYTES, key);
    is_int(put(frame, key, 0, 1, from, BYTES), 0,
           "so is one beyond the device's longest message");
    frame->bytes = 4096;
    frame->data = NULL;
    put(frame, key, 0, 1, from, BYTES);
    poll_both(10);
    is_int(ranks[0].sent, 2, "a put that was taken back is sent without data");
    is_int(ranks[1].written, 0, "and writes nothing");
    verbs_wire.conceal(ranks[1].wire, 0, exposed, 1);
    both_close("puts");
    munmap(from, BYTES);
    munmap(to, BYTES + 2);
}

/* A put that fails for another reason than the peer's memory ends the pair. */
static void test_put_fails(void)
{
    static const struct {
        enum ibv_wc_status status;
        unsigned
            lost; /* this rank is lost, too, if its device alone has failed */
        dscomm_failure_kind_t kind;
    } cases[] = {
        {IBV_WC_LOC_QP_OP_ERR, 2, DSCOMM_FAILURE_RESOURCE},
        {IBV_WC_LOC_PROT_ERR, 1, DSCOMM_FAILURE_DIED}, /* it was unmapped */
        {IBV_WC_RETRY_EXC_ERR, 1, DSCOMM_FAILURE_SILENT},
    };
    enum { BYTES = 50000 };
    char *from = pages_new(BYTES), *to = pages_new(BYTES);
    unsigned char key[DSCOMM_WIRE_KEY];
    void *exposed;

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        fake_reset();
        both_connect();
        exposed = verbs_wire.expose(ranks[1].wire, 0, to, BYTES, key);
        put(frame_new(from, BYTES), key, 0, 1, from, BYTES);
        poll_both(10); /* the connection for puts is there */
        fake.next_status = cases[i].status;
        put(frame_new(from, BYTES), key, 0, 1, from, BYTES);
        poll_both(10);
        ok(ranks[0].lost == cases[i].lost && ranks[0].kind == cases[i].kind,
           "put with status %d: '%s'", cases[i].status, ranks[0].why);
        is_int(ranks[0].sent + ranks[0].dropped, 3,
               "all frames are given back");
        verbs_wire.conceal(ranks[1].wire, 0, exposed, 1);
        rank_close(0);
        rank_close(1);
    }
    munmap(from, BYTES);
    munmap(to, BYTES);
}

/* Puts to memory that is concealed come back, with those that follow them;
 * later ones have a new connection. The order of completions is that of each
 * queue pair alone. */
static void test_concealed(void)
{
    enum { BYTES = 100000, PART = 10000, TURNS = 50 };
    char *from = pages_new(BYTES), *gone = pages_new(BYTES),
         *to = pages_new(BYTES);
    unsigned char first[DSCOMM_WIRE_KEY], second[DSCOMM_WIRE_KEY];
    unsigned back = 0, landed;
    void *exposed;

    for (int i = 0; i < BYTES; i++)
        from[i] = (char)(i * 11 + 5);
    fake_reset();
    fake.order = g_rand_new_with_seed(7);
    both_connect();
    landed = ranks[1].landed;
    exposed = verbs_wire.expose(ranks[1].wire, 0, to, BYTES, second);
    for (int turn = 0; turn < TURNS; turn++) {
        void *given_up =
            verbs_wire.expose(ranks[1].wire, 0, gone, BYTES, first);

        memset(to, 0, BYTES);
        put(frame_new(from, PART), second, 0, 5, from, BYTES);
        verbs_wire.conceal(ranks[1].wire, 0, given_up, 0);
        for (int i = 0; i < 2; i++)
            put(frame_new(from, PART), first, 0, 6, from, BYTES);
        for (int i = 1; i < BYTES / PART; i++)
            put(frame_new(from + i * PART, PART), second, (uint64_t)i * PART, 5,
                from, BYTES);
        poll_both(20);
        back = ranks[0].refused - back;
        if (ranks[0].lost || ranks[1].lost || back < 2 || gone[0] ||
            ranks[1].written + ranks[1].landed - landed !=
                (unsigned)(turn + 1) * (BYTES / PART + 2))
            break;
        back = ranks[0].refused;
    }
    is_int(back, ranks[0].refused,
           "puts to memory that is concealed come back");
    ok(!ranks[0].lost && !ranks[1].lost && !gone[0],
       "write nothing, and end no connection");
    is_int(ranks[1].written + ranks[1].landed - landed,
           TURNS * (BYTES / PART + 2), "each payload arrives once");
    put(frame_new(from, BYTES), second, 0, 5, from, BYTES);
    poll_both(20);
    ok(!memcmp(to, from, BYTES), "the next put writes");
    verbs_wire.conceal(ranks[1].wire, 0, exposed, 1);
    both_close("puts that come back");
    munmap(from, BYTES);
    munmap(gone, BYTES);
    munmap(to, BYTES);
}

/* Frames without end do not keep puts of the other direction. */
static void test_beside_frames(void)
{
    enum { BYTES = 50000, POLLS = 500 };
    char *from = pages_new(BYTES), *to = pages_new(BYTES);
    unsigned char key[DSCOMM_WIRE_KEY];
    unsigned polls = 0;
    void *exposed;

    fake_reset();
    both_connect();
    exposed = verbs_wire.expose(ranks[1].wire, 0, to, BYTES, key);
    for (int i = 0; i < 100; i++)
        post(1, 0, from, BYTES);
    put(frame_new(from, BYTES), key, 0, 5, from, BYTES);
    for (; polls < POLLS && !ranks[1].written; polls++) {
        for (int i = 0; i < 8; i++) /* more than a window */
            post(1, 0, from, BYTES);
        poll_both(1);
    }
    ok(polls < 100, "a put beside a stream of frames takes %u polls", polls);
    verbs_wire.conceal(ranks[1].wire, 0, exposed, 1);
    both_close("puts beside frames");
    munmap(from, BYTES);
    munmap(to, BYTES);
}

/* Without a queue pair for puts, on either side, they come back. */
static void test_no_writer(void)
{
    enum { BYTES = 50000 };
    char *from = pages_new(BYTES), *to = pages_new(BYTES);
    unsigned char key[DSCOMM_WIRE_KEY];
    dscomm_wire_frame_t *frame;
    void *exposed;
    guint before;

    memset(from, 3, BYTES);
    for (unsigned works = 0; works < 2; works++) {
        fake_reset();
        both_connect();
        before = ranks[1].received->len;
        exposed = verbs_wire.expose(ranks[1].wire, 0, to, BYTES, key);
        fake.fails[FAKE_CREATE_QP] = ENOMEM;
        fake.after[FAKE_CREATE_QP] = works;
        put(frame_new(from, BYTES), key, 0, 5, from, BYTES);
        poll_both(20);
        ok(ranks[0].refused == 1 && ranks[1].received->len - before == BYTES &&
               !ranks[0].lost && !ranks[1].lost,
           "%s has no queue pair for a put, which comes as a frame",
           works ? "the peer" : "the writer");
        frame = frame_new(from, BYTES);
        is_int(put(frame, key, 0, 5, from, BYTES), 0,
               "and no further one is taken");
        g_free(frame);
        verbs_wire.conceal(ranks[1].wire, 0, exposed, 1);
        both_close("puts without a queue pair");
    }
    munmap(from, BYTES);
    munmap(to, BYTES);
}

/* A device that pages on demand registers what may not be locked. */
static void test_on_demand(void)
{
    enum { BYTES = 100000 };
    char *from = pages_new(BYTES), *to = pages_new(BYTES);
    unsigned char key[DSCOMM_WIRE_KEY];
    void *exposed;

    memset(from, 4, BYTES);
    for (unsigned can = 0; can < 2; can++) {
        fake_reset();
        fake.on_demand = can;
        both_connect();
        exposed = verbs_wire.expose(ranks[1].wire, 0, to, BYTES, key);
        verbs_wire.conceal(ranks[1].wire, 0, exposed, 0);
        is_int(fake.paged, !has_userfaultfd() && can,
               "memory that may be locked is not paged");
        fake.fails[FAKE_REG_MR] = ENOMEM;
        exposed = verbs_wire.expose(ranks[1].wire, 0, to, BYTES, key);
        ok((exposed != NULL) == can, "what may not be locked is %s",
           can ? "paged" : "not exposed");
        if (exposed) {
            put(frame_new(from, BYTES), key, 0, 5, from, BYTES);
            poll_both(20);
            ok(!memcmp(to, from, BYTES), "and written to");
            is_int(fake.paged, 2, "the memory of the writer is paged, too");
            verbs_wire.conceal(ranks[1].wire, 0, exposed, 1);
            for (int i = 0; i < 10; i++) {
                exposed = verbs_wire.expose(ranks[1].wire, 0,
                                            i % 2 ? to : to + BYTES / 2,
                                            BYTES / 2, key);
                verbs_wire.conceal(ranks[1].wire, 0, exposed, 1);
            }
            is_int(fake.paged, 2, "and stays registered");
        }
        fake.fails[FAKE_REG_MR] = 0;
        both_close("memory on demand");
    }
    munmap(from, BYTES);
    munmap(to, BYTES);
}

/* Has rank 0 access memory of rank 1 with a frame. */
static int access_by(dscomm_wire_frame_t *frame, const unsigned char *key,
                     uint64_t offset, int reads)
{
    dscomm_wire_put_t put = {
        .size = sizeof put, .offset = offset, .is_access = 1, .reads = reads};

    memcpy(put.key, key, sizeof put.key);
    return verbs_wire.put(ranks[0].wire, 1, frame, &put);
}

static int access_memory(const void *data, size_t bytes,
                         const unsigned char *key, uint64_t offset, int reads)
{
    return access_by(frame_new(data, bytes), key, offset, reads);
}

/* Accesses of users move bytes both ways, and tell the peer nothing. */
static void test_access(void)
{
    enum { BYTES = 100000 };
    static const size_t sizes[] = {1,    8, 300, SLOT_BYTES, SLOT_BYTES + 1,
                                   BYTES};
    char *from = pages_new(BYTES), *to = pages_new(BYTES),
         *back = pages_new(BYTES);
    unsigned char key[DSCOMM_WIRE_KEY];
    dscomm_wire_frame_t *beyond = frame_new(from, 2);

    fake_reset();
    both_open();
    ok(verbs_wire.expose(ranks[1].wire, -1, to, BYTES, key) != NULL,
       "memory can be exposed to all");
    connect_to(0, 1);
    access_memory("early", 5, key, 0, 0);
    ok(becomes(&ranks[0].sent, 1, 1000) && !memcmp(to, "early", 5),
       "an access waits for the connection");
    for (size_t i = 0; i < G_N_ELEMENTS(sizes); i++) {
        const size_t offset = BYTES - sizes[i];

        for (size_t b = 0; b < sizes[i]; b++)
            from[b] = (char)(b * 5 + i + 1);
        memset(to, 0, BYTES);
        memset(back, 0, BYTES);
        access_memory(from, sizes[i], key, offset, 0);
        poll_both(10);
        access_memory(back, sizes[i], key, offset, 1);
        poll_both(10);
        ok(!memcmp(to + offset, from, sizes[i]) &&
               !memcmp(back, from, sizes[i]) && (!offset || !to[offset - 1]) &&
               (sizes[i] == BYTES || !back[sizes[i]]),
           "%zu bytes are put, and got", sizes[i]);
    }
    is_int(ranks[1].written, 0, "the peer is not told");
    is_int(ranks[0].sent, 1 + 2 * (int)G_N_ELEMENTS(sizes), "each has its end");
    is_int(access_by(beyond, key, BYTES - 1, 1), 0,
           "an access beyond the memory is refused");
    g_free(beyond);
    both_close("accesses");

    fake_reset();
    fake.max_reads = 0;
    both_open();
    ok(!verbs_wire.expose(ranks[1].wire, -1, to, BYTES, key),
       "a device that serves no reads exposes nothing to all");
    both_close("no reads");
    munmap(from, BYTES);
    munmap(to, BYTES);
    munmap(back, BYTES);
}

/* Frames that are posted after puts arrive after them. */
static void test_access_order(void)
{
    enum { BYTES = 100000, MANY = 300 };
    char *from = pages_new(BYTES), *to = pages_new(BYTES);
    unsigned char key[DSCOMM_WIRE_KEY];

    memset(from, 3, BYTES);
    fake_reset();
    both_connect();
    verbs_wire.expose(ranks[1].wire, -1, to, BYTES, key);
    for (int i = 0; i < MANY; i++)
        access_memory(from + i % 3, 1 + (size_t)i % 2 * SLOT_BYTES, key,
                      (uint64_t)i * 4, 0);
    post(0, 1, "after", 5);
    for (int i = 0; i < 1000 && ranks[1].landed < 2; i++)
        poll_both(1);
    ok(ranks[1].landed == 2 && to[(MANY - 2) * 4] && to[(MANY - 1) * 4],
       "a frame arrives after the puts before it");
    ok(becomes(&ranks[0].sent, 2 + MANY, 1000), "all of them have their end");
    both_close("the order of accesses");
    munmap(from, BYTES);
    munmap(to, BYTES);
}

/* Gets that are given up write nothing any more; a key of memory that is
 * concealed ends the connection. */
static void test_access_ends(void)
{
    enum { BYTES = 100000 };
    char *to = pages_new(BYTES), *back = pages_new(BYTES);
    char small[8] = {0};
    unsigned char key[DSCOMM_WIRE_KEY];
    dscomm_wire_frame_t *frame, *halves[2];
    void *exposed;
    int objects;

    memset(to, 9, BYTES);
    fake_reset();
    both_connect();
    exposed = verbs_wire.expose(ranks[1].wire, -1, to, BYTES, key);
    frame = frame_new(small, sizeof small);
    access_by(frame, key, 0, 1);
    frame->data = NULL;
    frame = frame_new(back, BYTES);
    access_by(frame, key, 0, 1);
    objects = (int)fake.objects;
    ok(frame->pinned, "the device writes what a long get reads");
    verbs_wire.stop(ranks[0].wire, 1, frame);
    is_int(fake.objects, objects - 1, "which it cannot after it is given up");
    ok(becomes(&ranks[0].sent, 3, 1000) && !ranks[0].lost && !small[0],
       "nor is what a short one has read delivered");
    access_memory(back, BYTES, key, 0, 1);
    poll_both(10); /* the memory stays registered */
    for (int i = 0; i < 2; i++) {
        halves[i] = frame_new(back + i * (BYTES / 2), BYTES / 2);
        access_by(halves[i], key, 0, 1);
    }
    for (int i = 0; i < 2; i++)
        verbs_wire.stop(ranks[0].wire, 1, halves[i]);
    ok(becomes(&ranks[0].sent, 6, 1000) && !ranks[0].lost,
       "two gets into memory that was registered before are given up");
    fake.next_status = IBV_WC_LOC_PROT_ERR; /* the memory was taken away */
    frame = frame_new(back, BYTES);
    access_by(frame, key, 0, 1);
    verbs_wire.stop(ranks[0].wire, 1, frame);
    poll_both(10);
    ok(ranks[0].lost == 1 && ranks[0].kind == DSCOMM_FAILURE_DIED,
       "a get that fails because it was given up is no fault of the device");
    verbs_wire.conceal(ranks[1].wire, -1, exposed, 0);
    rank_close(0);
    rank_close(1);
    both_connect();
    exposed = verbs_wire.expose(ranks[1].wire, -1, to, BYTES, key);
    verbs_wire.conceal(ranks[1].wire, -1, exposed, 0);
    memset(back, 7, BYTES);
    access_memory(back, 8, key, 0, 1);
    poll_both(10);
    ok(ranks[0].lost == 1 && ranks[0].kind == DSCOMM_FAILURE_PROTOCOL &&
           strstr(ranks[0].why, "refuses access") && back[0] == 7,
       "a get from memory that is concealed ends the connection");
    access_memory(back, 8, key, 0, 1);
    poll_both(1);
    is_int(ranks[0].dropped, 2, "after which all are dropped");
    both_close("gets that are given up");
    munmap(to, BYTES);
    munmap(back, BYTES);
}

static rings_t *rings_of(int rank, int peer)
{
    return &((verbs_t *)ranks[rank].wire)->pairs[peer].rings;
}

/* Posts bytes first to last - 1 from rank 0, in a frame each. */
static void bytes_post(const unsigned char *bytes, int first, int last)
{
    for (int i = first; i < last; i++)
        post(0, 1, bytes + i, 1);
}

/* Short frames to a rank that gets many go by the ring in its memory. */
static void test_ring(void)
{
    enum { FEW = 20, MANY = 200, ALL = 250 };
    static const struct {
        const char *setting;
        bool in_order, used;
        const char *text;
    } cases[] = {
        {"no", true, false, "without rings all frames go to slots"},
        {"auto", false, false,
         "so they do if the device does not say that it writes in order"},
#ifdef HAVE_IBV_QUERY_QP_DATA_IN_ORDER
        {"auto", true, true, "but not if it does"},
#endif
        {"yes", false, true, "nor if rings are asked for"},
    };
    unsigned char bytes[ALL];
    unsigned sent;
    uint64_t *trailer;

    for (int i = 0; i < ALL; i++)
        bytes[i] = (unsigned char)(i * 3 + 1);
    fake_reset();
    setenv("DSCOMM_IBV_RING", "yes", 1);
    both_connect();
    bytes_post(bytes, 0, FEW);
    is_int(rings_of(0, 1)->sent, 0, "the first short frames go to slots");
    poll_both(10);
    bytes_post(bytes, FEW, MANY);
    is_int(rings_of(0, 1)->sent, RING_SLOTS,
           "later ones fill the ring of a rank that does not poll");
    for (int i = 0; i < 1000 && ranks[1].landed < 1 + MANY; i++)
        poll_both(1);
    ok(ranks[1].received->len == MANY &&
           !memcmp(ranks[1].received->data, bytes, MANY),
       "and all arrive in order");
    poll_both(10);
    sent = rings_of(0, 1)->sent;
    g_usleep(30000);
    bytes_post(bytes, MANY, MANY + 1);
    is_int(rings_of(0, 1)->sent, sent,
           "after a pause a frame goes to a slot, which wakes the receiver");
    for (int i = MANY + 1; i < ALL; i++) {
        bytes_post(bytes, i, i + 1);
        verbs_wire.poll(ranks[1].wire);
    }
    poll_both(10);
    ok(rings_of(0, 1)->sent > sent && ranks[1].received->len == ALL &&
           !memcmp(ranks[1].received->data, bytes, ALL),
       "frames after it go by the ring");
    trailer = (uint64_t *)(void *)(rings_of(1, 0)->memory +
                                   (rings_of(1, 0)->taken % RING_SLOTS + 1) *
                                       RING_SLOT_BYTES) -
              1;
    *trailer = GUINT64_TO_LE(
        2000 | (uint64_t)((verbs_t *)ranks[1].wire)->pairs[0].next_came << 16 |
        (uint64_t)(rings_of(1, 0)->taken / RING_SLOTS + 1) << 48);
    poll_both(10);
    ok(ranks[1].lost == 1 && strstr(ranks[1].why, "makes no sense"),
       "a part of the ring that makes no sense ends the connection");
    both_close("ring");

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        fake_reset();
        fake.in_order = cases[i].in_order;
        setenv("DSCOMM_IBV_RING", cases[i].setting, 1);
        both_connect();
        bytes_post(bytes, 0, FEW);
        poll_both(10);
        bytes_post(bytes, FEW, ALL);
        poll_both(100);
        ok(ranks[1].received->len == ALL &&
               cases[i].used == (rings_of(0, 1)->sent > 0),
           "%s", cases[i].text);
        both_close("rings or none");
    }
    unsetenv("DSCOMM_IBV_RING");
}

/* Memory that comes after other memory at the same address is registered. */
static void test_unmapped(void)
{
    const size_t bytes = (size_t)1 << 20;
    unsigned char key[DSCOMM_WIRE_KEY];
    unsigned registrations;
    void *memory, *exposed;

    fake_reset();
    both_connect();
    memory = pages_new(bytes);
    for (int i = 0; i < 3; i++) {
        exposed = verbs_wire.expose(ranks[1].wire, 0, memory, bytes, key);
        verbs_wire.conceal(ranks[1].wire, 0, exposed, 1);
    }
    registrations = fake.registrations;
    munmap(memory, bytes);
    memory = mmap(memory, bytes, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    exposed = verbs_wire.expose(ranks[1].wire, 0, memory, bytes, key);
    is_int(fake.registrations - registrations, 1,
           "other memory at an address is registered");
    verbs_wire.conceal(ranks[1].wire, 0, exposed, 1);
    registrations = fake.registrations;
    madvise(memory, bytes, MADV_DONTNEED);
    exposed = verbs_wire.expose(ranks[1].wire, 0, memory, bytes, key);
    is_int(fake.registrations - registrations, 1,
           "so is memory whose pages were given up");
    verbs_wire.conceal(ranks[1].wire, 0, exposed, 1);
    munmap(memory, bytes);
    both_close("memory");
}

int main(void)
{
    test_put();
    test_put_fails();
    test_concealed();
    test_beside_frames();
    test_no_writer();
    test_on_demand();
    test_access();
    test_access_order();
    test_access_ends();
    test_ring();
    test_two_exposed();
    test_unmapped();
    return tap_done();
}
