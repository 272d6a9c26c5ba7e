/* SPDX-License-Identifier: BSD-3-Clause */
/* The wire ibverbs: frames by SEND between reliable connections (RC), which are
 * made when they are needed, with datagrams (UD) between the ranks' devices.
 *
 * Frames to a rank are a stream, cut into parts of at most SLOT_BYTES; a header
 * is in one part. Each part goes into a slot of the receiver, which the ranks
 * that send to it share. A sender may have WINDOW parts without a slot that was
 * given back; the immediate data of each part gives slots back. So no part
 * comes without a slot for it. A part that only gives slots back needs none of
 * the window: SPARE slots are for those.
 *
 * A rank polls the memory of some of the peers that send it many short parts:
 * those then write short parts to a ring there (ring.c), which takes neither a
 * slot nor a completion of the receiver. Parts have numbers, because the
 * receiver may see one of the ring before an older one of a slot.
 *
 * Long messages are written to the receiver's memory by other connections
 * (writes.c).
 *
 * All completions are of one queue (CQ). The id of a work request is the
 * address of its op_t. */
#ifndef BACKENDS_NET_IBVERBS_IBVERBS_H
#define BACKENDS_NET_IBVERBS_IBVERBS_H

#include <dscomm/wire.h>

#include <infiniband/verbs.h>

#include <glib.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/queue.h>

/* Bytes of a slot: two packets of the largest MTU. */
#define SLOT_BYTES ((size_t)8 << 10)
/* Parts that a rank may have sent to another one beyond what that has given
 * back. */
#define WINDOW 32
/* Slots for parts that only give slots back, each at least half a window or
 * half a ring: a rank that does not poll may get four. */
#define SPARE 8
/* Parts of a ring, and bytes of each: one packet with most MTUs. */
#define RING_SLOTS 32
#define RING_SLOT_BYTES ((size_t)1 << 10)
/* Bytes of frames in a part of a ring. */
#define RING_BYTES (RING_SLOT_BYTES - sizeof(uint64_t))
/* Rings that a rank polls at most. */
#define RINGS_POLLED 8
/* Work requests of a connection for what it sends. */
#define SEND_DEPTH (WINDOW + SPARE + 2)
/* Parts of this rank that may be on their way. */
#define SENDS 128
/* One of so many work requests of a connection has a completion, which stands
 * for those before it; each one has while less than half of SENDS are free. */
#define SIGNAL_ONE_OF 8
/* Puts of a connection that may be on their way. */
#define WRITE_DEPTH 8
/* Bytes of a part about a connection for puts (writes.c). */
#define TELL_BYTES 12
/* Reads of a peer that a connection serves at a time. */
#define READS_MOST 16
/* Longest text of a failure. */
#define VERBS_TEXT 256
/* Bytes of a text of a GID. */
#define GID_TEXT 64

typedef struct verbs verbs_t;

typedef enum {
    OP_PART, /* a part is received */
    OP_SEND, /* a part, or an empty write, is sent */
    OP_PUT, /* a frame is written to the peer's memory */
    OP_ACCESS, /* the same, or read, for a user's access */
    OP_HELLO, /* a datagram is received */
    OP_GREET /* a datagram is sent */
} op_kind_t;

/* Memory of a user that the device may read, or write. */
typedef struct region region_t;
typedef struct regions regions_t;

/* A work request. */
typedef struct op {
    SLIST_ENTRY(op) in_free;
    TAILQ_ENTRY(op) in_pair; /* of what is sent */
    op_kind_t kind;
    int peer; /* of what is sent */
    size_t bytes; /* of what is sent, or read */
    char *slot; /* its memory */
    uint32_t lkey;
    /* The frame of a put or an access, its data, and where it goes. */
    dscomm_wire_frame_t *frame;
    region_t *region; /* NULL: an access whose data are copied by a slot */
    bool reads;
    uint64_t remote;
    uint32_t rkey, tag;
} op_t;

SLIST_HEAD(ops, op);
TAILQ_HEAD(op_queue, op);

/* The address that a rank publishes: how datagrams reach its device, and where
 * its process is. */
typedef struct {
    union ibv_gid gid;
    uint32_t qpn; /* of its UD queue pair */
    uint16_t lid;
    uint8_t mtu; /* enum ibv_mtu of its port */
    uint8_t link_layer;
    uint8_t reads; /* of another rank that its device serves at a time */
    uint32_t pid;
    uint64_t host; /* equal: pid means the same there; 0: unknown */
} address_t;

typedef enum {
    PAIR_NONE, /* nobody has asked for a connection */
    PAIR_ASKING, /* the peer is not known to be connected to this rank */
    PAIR_UP, /* frames can be sent */
    PAIR_LOST
} pair_state_t;

/* The rings of a pair: this rank's, and the peer's. */
typedef struct {
    /* This rank's. */
    char *memory; /* NULL: there is none */
    struct ibv_mr *region;
    bool polled;
    unsigned short_parts; /* that have come, up to those that make it polled */
    unsigned taken; /* parts */
    unsigned owed; /* to be given back to the peer */
    /* The peer's. */
    uint64_t remote; /* its address there */
    uint32_t rkey;
    bool is_polled; /* by the peer */
    unsigned sent; /* parts */
    unsigned room; /* parts that may be sent */
    int64_t sent_ns; /* when frames were sent last, by any way */
} rings_t;

typedef enum {
    WRITES_NONE,
    WRITES_ASKED, /* the peer has not answered */
    WRITES_UP,
    WRITES_ENDING, /* a put was refused: the others come back */
    WRITES_ABSENT /* there is none: long messages go as frames */
} writes_state_t;

/* The connections for puts: this rank's, and that of the peer's. */
typedef struct {
    writes_state_t state;
    bool ask_due, answer_due; /* are to be sent */
    struct ibv_qp *qp; /* of this rank's puts, or NULL */
    uint32_t psn; /* of what it sends */
    struct op_queue waiting; /* puts that have no work request yet */
    struct op_queue flying; /* that have one, the oldest first */
    unsigned posted; /* of these */
    struct ibv_qp *target; /* of the peer's puts, or NULL */
} writes_t;

/* The connection to another rank. */
typedef struct {
    pair_state_t state;
    bool has_address;
    address_t address;
    int process; /* pidfd + 1; 0: its end is not watched */
    struct ibv_ah *ah; /* for datagrams */
    struct ibv_qp *qp;
    uint32_t psn; /* of what this rank sends */
    uint32_t peer_qpn; /* of the peer's end; 0: not known yet */
    int64_t end_ns; /* until then the peer is greeted */
    int64_t greet_ns; /* the next time */
    int64_t pause_ns; /* after that */
    int64_t sent_ns; /* when a completion has shown last that it lives */
    struct {
        dscomm_wire_frame_t *first, **last;
        size_t bytes; /* that are not in a part yet, with headers */
    } queue;
    struct op_queue accesses; /* that have no work request yet */
    struct op_queue flying_ops; /* that have one, the oldest first */
    size_t flying; /* bytes of frames that are on their way */
    unsigned posted; /* work requests for what is sent, not complete */
    unsigned unsignaled; /* the last ones of them, which have no completion */
    unsigned window; /* parts that may be sent */
    unsigned owed; /* slots to be given back to the peer */
    uint16_t next_sent, next_came; /* numbers of parts */
    bool has_written; /* an access, since the last part to a slot */
    rings_t rings;
    writes_t writes;
    dscomm_wire_sink_t *sink; /* of the frame that is arriving, or NULL */
    bool broken; /* what comes from the peer makes no sense */
    bool failed; /* it is to be lost at the next poll */
    dscomm_failure_kind_t why_kind;
    char why[VERBS_TEXT]; /* if failed */
} pair_t;

/* How the connections are made; of the settings. */
typedef struct {
    uint8_t service_level, traffic_class, timeout, retries, hop_limit;
    uint16_t pkey_index;
} path_t;

struct verbs {
    dscomm_wire_args_t args;
    const dscomm_wire_calls_t *calls;
    struct ibv_context *context;
    struct ibv_device_attr device;
    struct ibv_port_attr port;
    uint8_t port_number;
    int gid_index;
    path_t path;
    address_t own; /* what this rank publishes */
    struct ibv_pd *pd;
    struct ibv_comp_channel *channel;
    struct ibv_cq *cq;
    unsigned acks; /* events of the CQ that are to be acknowledged */
    atomic_bool wants_event; /* wait was called: the next poll arms the CQ */
    atomic_bool armed; /* the next completion makes the channel readable */
    struct ibv_srq *srq;
    unsigned srq_room; /* receives that it takes beyond those it has */
    struct ibv_qp *ud;
    pair_t *pairs;
    GHashTable *by_qpn; /* number of the peer + 1 */
    GPtrArray *memories; /* memory_t: of all slots */
    regions_t *regions;
    struct ops sends; /* free ones, of parts that are sent */
    unsigned free_sends;
    struct ops greets; /* free ones, of datagrams that are sent */
    struct ops puts; /* free ones, without slots */
    GPtrArray *retired; /* queue pairs without a use */
    unsigned max_inline;
    int64_t ring_mode; /* RINGS_ */
    int polled[RINGS_POLLED]; /* peers whose rings are polled */
    atomic_uint polled_count;
    unsigned ring_polls; /* that have found something */
    _Atomic int64_t
        ring_ns; /* when one of those peers has sent something last */
    unsigned open; /* pairs that have a queue pair */
    unsigned asking; /* pairs in PAIR_ASKING */
    unsigned failed; /* pairs that are to be lost */
    bool is_down; /* this rank's device does not work: nothing is sent */
    bool starved; /* a pair found no free op of sends */
    int starved_first; /* the pair that is looked at first then */
    int wake; /* event descriptor */
    int deaths; /* readable if the process of a peer has ended; -1: none */
    int64_t timers_ns; /* when timers were looked at last */
    bool warned; /* a stranger was logged */
    bool warned_silent; /* a peer that does not answer was */
    bool port_down; /* was logged */
    int64_t port_ns; /* when the port was known to be down last; 0: never */
};

/* device.c */

/* Opens the device, port and GID that the settings choose. */
dscomm_status_t verbs_device_open(verbs_t *verbs);
/* Slots of the backend. */
const char *verbs_usable(const char *const *hosts, int ranks);
const char *verbs_advisable(void);
const char *verbs_gid_text(const union ibv_gid *gid, char text[GID_TEXT]);

/* device-list.c */

/* The function devices of the wire. */
dscomm_status_t
verbs_devices(void (*visit)(void *arg, const dscomm_backend_device_t *item),
              void *arg);

/* memory.c */

/* Adds count ops, each with a slot of bytes, to a list. -1 and errno: the
 * memory cannot be had. */
int verbs_slots_add(verbs_t *verbs, struct ops *list, op_kind_t kind,
                    unsigned count, size_t bytes);
void verbs_slots_free(verbs_t *verbs);
/* The remedy for what an errno says of a resource; "" if there is none. */
const char *verbs_remedy(int error);

/* region.c */

regions_t *verbs_regions_new(struct ibv_pd *pd);
void verbs_regions_free(regions_t *regions);
/* Registers memory of the wire's own, which the device may use by access
 * (IBV_ACCESS_); ends the registrations without a use if that helps. NULL and
 * errno: it cannot be had. */
struct ibv_mr *verbs_regions_register(regions_t *regions, void *memory,
                                      size_t bytes, int access);
/* Takes memory of a user, which the device may read and use by access
 * (IBV_ACCESS_); NULL: it cannot be had. */
region_t *verbs_region_take(regions_t *regions, const void *memory,
                            size_t bytes, int access);
void verbs_region_drop(region_t *region);
/* The same for memory of a device, for this use and those of
 * verbs_region_share(); NULL: it cannot be had, and the reason was logged. */
region_t *verbs_region_take_device(regions_t *regions,
                                   const dscomm_dma_buf_t *memory, int access);
/* Adds a use, which is dropped by itself; NULL: the region was ended. */
region_t *verbs_region_share(region_t *region);
/* Whether a device registers memory of others. */
bool verbs_dma_bufs(struct ibv_context *context);
/* Drops a use of a region in which a device may still write: it does not after
 * this, for any use. */
void verbs_region_end(region_t *region);
uint32_t verbs_region_lkey(const region_t *region);
uint32_t verbs_region_rkey(const region_t *region);

/* ring.c */

/* Makes the memory of a pair's ring, if it can be had. */
void verbs_ring_open(verbs_t *verbs, pair_t *pair);
void verbs_ring_close(pair_t *pair);
/* The pair is connected, and the peer's ring is there; rkey 0: it has none. */
void verbs_ring_join(const verbs_t *verbs, pair_t *pair, uint64_t remote,
                     uint32_t rkey);
/* Returns whether what is to be sent should go by the peer's ring. */
bool verbs_ring_fits(const pair_t *pair);
/* Completes a part of so many bytes, which is in a slot; sets where it goes in
 * wr, and returns the bytes to be written. */
size_t verbs_ring_pack(pair_t *pair, char *slot, size_t bytes,
                       struct ibv_send_wr *wr);
/* Gives the next part of this rank's ring to the stream; false: it has not
 * come. */
bool verbs_ring_take(verbs_t *verbs, int peer);
/* Takes all parts of the rings that are polled; false: there were none. */
bool verbs_rings_poll(verbs_t *verbs);
/* A part of so many bytes has come by a slot. */
void verbs_ring_warm(verbs_t *verbs, int peer, size_t bytes);
/* Returns the longest sleep, in us, after which no part is found too late. */
unsigned verbs_ring_sleep(const verbs_t *verbs, unsigned most_us);

/* connect.c */

/* Completions that may be there at a time with so many connections. */
int verbs_completions(int pairs);
/* Makes a queue pair for so many work requests, to which the peer has access
 * (IBV_ACCESS_); NULL and errno: it cannot be had. */
struct ibv_qp *verbs_qp_make(verbs_t *verbs, unsigned depth, int access);
/* Connects it with the peer's queue pair qpn, which begins with number rq_psn,
 * and itself with sq_psn if it sends; an errno. */
int verbs_qp_join(verbs_t *verbs, int peer, struct ibv_qp *qp, bool sends,
                  uint32_t qpn, uint32_t rq_psn, uint32_t sq_psn);
/* Makes the UD queue pair, and receives datagrams. */
dscomm_status_t verbs_greeter_open(verbs_t *verbs);
/* A datagram could not be sent: lets further ones be. */
void verbs_greeter_mend(verbs_t *verbs);
size_t verbs_address(void *wire, void *buffer);
dscomm_status_t verbs_connect(void *wire, int peer, const void *address,
                              size_t bytes);
/* A datagram of so many bytes, with its header, has come. */
void verbs_hello(verbs_t *verbs, op_t *op, size_t bytes);
/* The peer has sent by its connection: it is up. */
void verbs_pair_up(verbs_t *verbs, int peer);
/* Greets peers that do not answer yet, and gives up those that never do. */
void verbs_greet_again(verbs_t *verbs, int64_t now);

/* death.c */

void verbs_deaths_open(verbs_t *verbs);
void verbs_deaths_close(verbs_t *verbs);
/* Watches the process of a peer, if it is on this host. */
void verbs_death_watch(verbs_t *verbs, int peer);
void verbs_death_forget(const verbs_t *verbs, pair_t *pair);
/* Lets the connections fail whose peers have ended. */
void verbs_deaths_read(verbs_t *verbs);

/* writes.c */

/* Asks the peer for a connection for puts. */
void verbs_writes_open(verbs_t *verbs, int peer);
void verbs_writes_close(verbs_t *verbs, pair_t *pair);
/* Writes the part that is due, TELL_BYTES. */
void verbs_tell_pack(pair_t *pair, char *to);
/* Such a part has come; false: it makes no sense. */
bool verbs_told(verbs_t *verbs, int peer, const char *from, size_t bytes);
/* Takes the status of a put that has failed; true: the peer has given up the
 * receive, or that of a put before it, so that the connection for puts ends. */
bool verbs_writes_end(pair_t *pair, enum ibv_wc_status status);
/* Gives up this rank's connections for puts that are not in use; false: there
 * are none. */
bool verbs_writes_shed(verbs_t *verbs);
void verbs_put_completed(verbs_t *verbs, op_t *op, bool succeeded);
/* Called after all completions were read. */
void verbs_retired_destroy(verbs_t *verbs);

/* stream.c */

void verbs_post(void *wire, int peer, dscomm_wire_frame_t *frame);
/* Sends what the window allows. */
void verbs_send(verbs_t *verbs, int peer);
/* What was sent up to op has succeeded, or op has failed. */
void verbs_ops_ended(verbs_t *verbs, op_t *op, bool succeeded);
/* Drops what the device had of a pair, which no longer has a queue pair. */
void verbs_ops_drop(verbs_t *verbs, pair_t *pair);
/* Makes sure that a completion comes after all that was sent. */
void verbs_signal(verbs_t *verbs, int peer);
void *verbs_expose(void *wire, int peer, void *memory, size_t bytes,
                   unsigned char *key);
void *verbs_expose_device(void *wire, const dscomm_dma_buf_t *memory,
                          unsigned char *key);
void verbs_conceal(void *wire, int peer, void *exposed, int complete);
int verbs_put(void *wire, int peer, dscomm_wire_frame_t *frame,
              const dscomm_wire_put_t *put);
void verbs_stop(void *wire, int peer, dscomm_wire_frame_t *frame);
/* Frees the op of a put or an access that is in no list. */
void verbs_put_end(verbs_t *verbs, op_t *op, bool succeeded);
/* A part has come from peer, with that immediate data. */
void verbs_part(verbs_t *verbs, int peer, op_t *op, size_t bytes,
                uint32_t immediate);
/* Returns what a part says besides frames: slots and parts of the ring that its
 * sender gives back, and whether it polls its ring. */
uint16_t verbs_back_give(pair_t *pair);
#define BACK_NONSENSE UINT16_MAX /* what no rank says */
/* The bytes of a part, and what it says besides; false: they make no sense,
 * which ends the connection. */
bool verbs_part_use(verbs_t *verbs, int peer, const char *from, size_t bytes,
                    uint16_t back);
/* A put of peer has written so many bytes. */
void verbs_written(verbs_t *verbs, int peer, op_t *op, size_t bytes,
                   uint32_t tag);
/* Lets a slot receive again. */
void verbs_slot_post(verbs_t *verbs, op_t *op);
/* Sees whether the peer lives, if nothing has been sent for a while. */
void verbs_probe(verbs_t *verbs, int peer, int64_t now);
/* Drops frames that the device does not have. */
void verbs_frames_drop(verbs_t *verbs, pair_t *pair);

/* ibverbs.c */

int64_t verbs_now(void); /* ns */
/* This rank lacks something without which its groups cannot go on. */
void verbs_lack(verbs_t *verbs, const char *what, int error);
/* The connection to peer has failed: it is lost at the next poll. */
void verbs_pair_fail(verbs_t *verbs, int peer, dscomm_failure_kind_t kind,
                     const char *format, ...) G_GNUC_PRINTF(4, 5);

extern const dscomm_setting_t verbs_settings[];
enum {
    SETTING_NAME,
    SETTING_PORT,
    SETTING_INDEX,
    SETTING_SERVICE_LEVEL,
    SETTING_TRAFFIC_CLASS,
    SETTING_PKEY,
    SETTING_TIMEOUT,
    SETTING_RETRIES,
    SETTING_RING
};

/* Values of SETTING_RING. */
enum { RINGS_AUTO, RINGS_NO, RINGS_YES };

#endif
