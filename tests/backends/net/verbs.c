/* SPDX-License-Identifier: BSD-3-Clause */
/* The wire ibverbs between two ranks of this process, on a device that does
 * what no real one does when it is asked to (fake-verbs.h). */
#include "config.h"

#include "backends/net/ibverbs/ibverbs.h"
#include "tests/backends/net/fake-verbs.h"
#include "tests/tap.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define RANKS 3 /* the last one has no wire */
#define HEADER DSCOMM_WIRE_HEADER
#define FRAMES 400
#define TIMEOUT_MS 400

extern const dscomm_wire_ops_t verbs_wire;

/* What is there of an engine. */
typedef struct {
    void *wire;
    int rank;
    unsigned opened, sent, dropped, lost, written;
    size_t written_bytes;
    uint32_t last_tag;
    dscomm_failure_kind_t kind;
    char why[512];
    dscomm_wire_sink_t sink; /* of the frame that is arriving */
    GByteArray *received; /* payloads, one after the other */
    unsigned landed;
    unsigned char address[DSCOMM_WIRE_ADDRESS_MAX];
    size_t address_bytes;
} rank_t;

static rank_t ranks[RANKS];
static const unsigned char secret[32] = "they know it";

static void opened(void *arg, int peer)
{
    rank_t *me = arg;

    me->opened++;
    verbs_wire.connect(me->wire, peer, ranks[peer].address,
                       ranks[peer].address_bytes);
}

static dscomm_wire_sink_t *arrive(void *arg, int peer,
                                  const unsigned char *header)
{
    rank_t *me = arg;
    uint64_t bytes;

    (void)peer;
    memcpy(&bytes, header, sizeof bytes);
    bytes = GUINT64_FROM_LE(bytes);
    if (header[HEADER - 1] != 0x5a)
        return NULL;
    me->sink = (dscomm_wire_sink_t){.bytes = bytes,
                                    .memory = bytes ? g_malloc(bytes) : NULL};
    return &me->sink;
}

static void landed(void *arg, int peer, dscomm_wire_sink_t *sink)
{
    rank_t *me = arg;

    (void)peer;
    me->landed++;
    if (sink->bytes)
        g_byte_array_append(me->received, sink->memory, (guint)sink->bytes);
    g_free(sink->memory);
    sink->memory = NULL;
}

static void frame_free(dscomm_wire_frame_t *frame)
{
    g_free(frame);
}

static void sent(void *arg, dscomm_wire_frame_t *frame)
{
    ((rank_t *)arg)->sent++;
    frame_free(frame);
}

static void dropped(void *arg, dscomm_wire_frame_t *frame)
{
    ((rank_t *)arg)->dropped++;
    frame_free(frame);
}

static void lost(void *arg, int peer, dscomm_failure_kind_t kind,
                 const char *text)
{
    rank_t *me = arg;

    (void)peer;
    me->lost++;
    me->kind = kind;
    g_strlcpy(me->why, text, sizeof me->why);
}

static void written(void *arg, int peer, uint32_t tag, size_t bytes)
{
    rank_t *me = arg;

    (void)peer;
    me->written++;
    me->last_tag = tag;
    me->written_bytes += bytes;
}

static const dscomm_wire_calls_t calls = {.size = sizeof calls,
                                          .opened = opened,
                                          .arrive = arrive,
                                          .landed = landed,
                                          .sent = sent,
                                          .dropped = dropped,
                                          .lost = lost,
                                          .written = written};

static dscomm_status_t rank_open(int rank)
{
    rank_t *me = &ranks[rank];
    const dscomm_wire_args_t args = {.size = sizeof args,
                                     .calls = &calls,
                                     .arg = me,
                                     .rank = rank,
                                     .ranks = RANKS,
                                     .secret = secret,
                                     .timeout_ms = TIMEOUT_MS};
    dscomm_status_t status;

    *me = (rank_t){.rank = rank, .received = g_byte_array_new()};
    status = verbs_wire.open(&args, &me->wire);
    if (status == DSCOMM_OK)
        me->address_bytes = verbs_wire.address(me->wire, me->address);
    else
        g_byte_array_unref(me->received);
    return status;
}

static void rank_close(int rank)
{
    rank_t *me = &ranks[rank];

    if (me->wire)
        verbs_wire.close(me->wire);
    g_free(me->sink.memory);
    g_byte_array_unref(me->received);
    me->wire = NULL;
}

static void both_open(void)
{
    rank_open(0);
    rank_open(1);
}

static void both_close(const char *what)
{
    rank_close(0);
    rank_close(1);
    is_int(fake.objects, 0, "%s: nothing is left behind", what);
    is_int(fake.not_ready, 0, "%s: a slot was there for each part", what);
}

static dscomm_status_t connect_to(int rank, int peer)
{
    return verbs_wire.connect(ranks[rank].wire, peer, ranks[peer].address,
                              ranks[peer].address_bytes);
}

static void poll_both(unsigned times)
{
    for (unsigned i = 0; i < times; i++) {
        verbs_wire.poll(ranks[0].wire);
        verbs_wire.poll(ranks[1].wire);
    }
}

static dscomm_wire_frame_t *frame_new(const void *data, size_t bytes)
{
    dscomm_wire_frame_t *frame = g_new0(dscomm_wire_frame_t, 1);
    const uint64_t little = GUINT64_TO_LE((uint64_t)bytes);

    frame->data = data;
    frame->bytes = bytes;
    memcpy(frame->header, &little, sizeof little);
    frame->header[HEADER - 1] = 0x5a;
    return frame;
}

static void post(int rank, int peer, const void *data, size_t bytes)
{
    verbs_wire.post(ranks[rank].wire, peer, frame_new(data, bytes));
}

/* Waits, at most for ms, until a number is at least so large. */
static bool becomes(const unsigned *number, unsigned least, unsigned ms)
{
    for (unsigned i = 0; *number < least && i < ms; i++) {
        poll_both(1);
        g_usleep(1000);
    }
    return *number >= least;
}

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

/* Two ranks that are connected. */
static void both_connect(void)
{
    both_open();
    connect_to(0, 1);
    post(0, 1, NULL, 0);
    poll_both(10);
}

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
    ok(put(frame, key, 0, 1, from, BYTES) == 0 || ranks[0].sent == 2,
       "a put that was taken back is sent without data");
    poll_both(10);
    is_int(ranks[1].written, 0, "and writes nothing");
    verbs_wire.conceal(ranks[1].wire, 0, exposed, 0);
    put(frame_new(from, 4096), key, 0, 1, from, BYTES);
    poll_both(10);
    ok(ranks[0].lost == 1 && strstr(ranks[0].why, "refuses access") &&
           !ranks[1].written,
       "a put to memory that is concealed ends the connection");
    both_close("puts");
    munmap(from, BYTES);
    munmap(to, BYTES + 2);
}

/* Has rank 0 access memory of rank 1. */
static int access_memory(const void *data, size_t bytes,
                         const unsigned char *key, uint64_t offset, int reads)
{
    dscomm_wire_put_t put = {.size = sizeof put,
                             .offset = offset,
                             .message = data,
                             .bytes = bytes,
                             .is_access = 1,
                             .reads = reads};

    memcpy(put.key, key, sizeof put.key);
    return verbs_wire.put(ranks[0].wire, 1, frame_new(data, bytes), &put);
}

/* Accesses of users move bytes both ways, tell the peer nothing, and come
 * before what is posted after them. */
static void test_access(void)
{
    enum { BYTES = 100000, MANY = 300 };
    static const size_t sizes[] = {1,    8, 300, SLOT_BYTES, SLOT_BYTES + 1,
                                   BYTES};
    char *from = pages_new(BYTES), *to = pages_new(BYTES),
         *back = pages_new(BYTES);
    char small[8] = {0};
    unsigned char key[DSCOMM_WIRE_KEY];
    dscomm_wire_frame_t *frame, *halves[2];
    void *exposed;
    int objects;

    fake_reset();
    both_open();
    exposed = verbs_wire.expose(ranks[1].wire, -1, to, BYTES, key);
    ok(exposed != NULL, "memory can be exposed to all");
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
    memset(to, 0, BYTES);
    for (int i = 0; i < MANY; i++)
        access_memory(from + i % 3, 1 + (size_t)i % 2 * SLOT_BYTES, key,
                      (uint64_t)i * 4, 0);
    post(0, 1, "after", 5);
    for (int i = 0; i < 1000 && !ranks[1].landed; i++)
        poll_both(1);
    ok(ranks[1].landed == 1 && to[(MANY - 2) * 4] && to[(MANY - 1) * 4],
       "a frame arrives after the puts before it");
    ok(becomes(&ranks[0].sent, 2 + 2 * (int)G_N_ELEMENTS(sizes) + MANY, 1000),
       "all of them have their end");
    is_int(access_memory(from, 2, key, BYTES - 1, 1), 0,
           "an access beyond the memory is refused");
    both_close("accesses");

    fake_reset();
    both_connect();
    exposed = verbs_wire.expose(ranks[1].wire, -1, to, BYTES, key);
    memset(back, 0, BYTES);
    for (int i = 0; i < 2; i++) {
        dscomm_wire_put_t get = {.size = sizeof get,
                                 .message = i ? back : small,
                                 .bytes = i ? BYTES : sizeof small,
                                 .is_access = 1,
                                 .reads = 1};

        memcpy(get.key, key, sizeof get.key);
        frame = frame_new(get.message, get.bytes);
        verbs_wire.put(ranks[0].wire, 1, frame, &get);
        if (!i)
            frame->data = NULL;
    }
    objects = fake.objects;
    ok(frame->pinned, "the device writes what a long get reads");
    verbs_wire.stop(ranks[0].wire, 1, frame);
    is_int(fake.objects, objects - 1, "which it cannot after it is given up");
    ok(becomes(&ranks[0].sent, 3, 1000) && !ranks[0].lost && !small[0],
       "nor is what a short one has read delivered");
    access_memory(back, BYTES, key, 0, 1);
    poll_both(10); /* the memory stays registered */
    for (int i = 0; i < 2; i++) {
        dscomm_wire_put_t get = {.size = sizeof get,
                                 .message = back,
                                 .bytes = BYTES,
                                 .is_access = 1,
                                 .reads = 1};

        memcpy(get.key, key, sizeof get.key);
        halves[i] = frame_new(back + i * (BYTES / 2), BYTES / 2);
        verbs_wire.put(ranks[0].wire, 1, halves[i], &get);
    }
    for (int i = 0; i < 2; i++)
        verbs_wire.stop(ranks[0].wire, 1, halves[i]);
    ok(becomes(&ranks[0].sent, 6, 1000) && !ranks[0].lost,
       "two gets into memory that was registered before are given up");
    verbs_wire.conceal(ranks[1].wire, -1, exposed, 0);
    memset(back, 7, BYTES);
    access_memory(back, 8, key, 0, 1);
    poll_both(10);
    ok(ranks[0].lost == 1 && strstr(ranks[0].why, "refuses access") &&
           back[0] == 7,
       "a get from memory that is concealed ends the connection");
    access_memory(back, 8, key, 0, 1);
    poll_both(1);
    is_int(ranks[0].dropped, 2, "after which all are dropped");
    both_close("gets that are given up");

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
    static const char *const names[] = {
        "without rings all frames go to slots",
        "so they do if the device does not say that it writes in order",
        "unless rings are asked for"};
    unsigned char bytes[ALL];
    unsigned sent;
    uint64_t *trailer;

    for (int i = 0; i < ALL; i++)
        bytes[i] = (unsigned char)(i * 3 + 1);
    fake_reset();
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

    for (int i = 0; i < 3; i++) {
        fake_reset();
        if (i != 1)
            setenv("DSCOMM_IBV_RING", i ? "yes" : "no", 1);
        fake.in_order = i == 0;
        both_connect();
        bytes_post(bytes, 0, FEW);
        poll_both(10);
        bytes_post(bytes, FEW, ALL);
        poll_both(100);
        ok(ranks[1].received->len == ALL &&
               (i == 2) == (rings_of(0, 1)->sent > 0),
           "%s", names[i]);
        unsetenv("DSCOMM_IBV_RING");
        both_close("rings or none");
    }
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

static void test_statuses(void)
{
    static const struct {
        enum ibv_wc_status status;
        dscomm_failure_kind_t kind;
        const char *text;
    } cases[] = {
        {IBV_WC_LOC_LEN_ERR, DSCOMM_FAILURE_DIED, "status 1"},
        {IBV_WC_LOC_QP_OP_ERR, DSCOMM_FAILURE_DIED, "status 2"},
        {IBV_WC_LOC_PROT_ERR, DSCOMM_FAILURE_DIED, "status 4"},
        {IBV_WC_WR_FLUSH_ERR, DSCOMM_FAILURE_DIED, "status 5"},
        {IBV_WC_BAD_RESP_ERR, DSCOMM_FAILURE_DIED, "status 7"},
        {IBV_WC_REM_INV_REQ_ERR, DSCOMM_FAILURE_DIED, "ended the connection"},
        {IBV_WC_REM_ACCESS_ERR, DSCOMM_FAILURE_DIED, "refuses access"},
        {IBV_WC_REM_OP_ERR, DSCOMM_FAILURE_DIED, "ended the connection"},
        {IBV_WC_RETRY_EXC_ERR, DSCOMM_FAILURE_SILENT, "does not answer"},
        {IBV_WC_RNR_RETRY_EXC_ERR, DSCOMM_FAILURE_DIED, "no room"},
        {IBV_WC_FATAL_ERR, DSCOMM_FAILURE_DIED, "status 19"},
        {IBV_WC_GENERAL_ERR, DSCOMM_FAILURE_DIED, "status 21"},
    };
    static char data[30000];

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        fake_reset();
        both_connect();
        fake.next_status = cases[i].status;
        post(0, 1, data, sizeof data);
        poll_both(4);
        ok(ranks[0].lost == 1 && ranks[0].kind == cases[i].kind &&
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
        {0, 'x', 32, "published no address"},
        {0, 'D', 0, "no address"},
        {4, 1, 32, "version 1"},
        {4, 2, 31, "same dscomm"},
        {6, 0, 32, "damaged"},
        {6, 9, 32, "damaged"},
        {15, 1, 32, "damaged"},
        {5, 1, 32, "InfiniBand"},
    };
    GRand *random = g_rand_new_with_seed(3);
    unsigned char address[64];

    fake_reset();
    both_open();
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        memcpy(address, ranks[1].address, 32);
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
    test_put();
    test_access();
    test_ring();
    test_two_exposed();
    test_unmapped();
    test_statuses();
    test_calls();
    test_choice();
    test_addresses();
    test_silence();
    test_events();
    test_wait();
    return tap_done();
}
