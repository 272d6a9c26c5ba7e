/* SPDX-License-Identifier: BSD-3-Clause */
/* The shared-memory backend: declarations that its files share.
 *
 * One memfd segment a group:
 *
 *   header | control block of rank 0, 1, ... | ring of rank 0, 1, ... |
 *   channel 0->0, 0->1, ... | heap of rank 0, 1, ...
 *
 * A rank writes its own control block, ring, outgoing channels and heap, and
 * reads those of all ranks. The file is sparse; each rank reserves its own
 * pages before it first uses them, so memory is on its NUMA node, and a lack of
 * memory is a status, never SIGBUS.
 *
 * Collectives are divided into steps, numbered equally on all ranks. For a step
 * a rank may put bytes into its ring, and then raises the flag in its line
 * number (step mod SHM_LINES): step << 32 | chain, where chain is a hash of the
 * fingerprints of all collectives so far. A rank that waits for that flag sees
 * by the same comparison whether the peer makes the same calls. When a rank has
 * read all that it needs of a step, it says so in its done counter. Ring space
 * and lines are reused only after the done counters of all ranks have passed
 * them. */
#ifndef SHM_SHM_H
#define SHM_SHM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include <dscomm/backend.h>
#include <glib.h>

#define NS_PER_MS INT64_C(1000000)

#define SHM_MAGIC 0x6473636f6d6d3033u /* "dscomm03" */
#define SHM_LINES 256
#define SHM_LINE 64 /* bytes of a cache line */
#define SHM_INLINE 56
#define SHM_INLINE_PREMUL 48 /* the last word is for the factor */
#define SHM_RECORDS 64
#define SHM_COUNTS 8
#define SHM_MAX_RANKS 1024
/* Buffers that are known to be readable: a prime number, because many buffers
 * begin at multiples of powers of two. */
#define SHM_READABLE 31

/* States of a rank that leaves in good order. From SHM_LEAVING on it sends
 * nothing more, and begins no collective but a world's last barrier; from
 * SHM_LEFT on its process may end. */
typedef enum { SHM_STAYS, SHM_LEAVING, SHM_LEFT, SHM_FREED } shm_left_t;

/* A flag and the bytes in its cache line. */
typedef struct {
    _Alignas(SHM_LINE) _Atomic uint64_t flag;
    union {
        uint64_t word[SHM_INLINE / 8];
        unsigned char byte[SHM_INLINE];
    };
} shm_line_t;

static inline size_t shm_page(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

/* Indices into word[] of the first line of an operation whose data is not
 * inline. */
enum { WORD_REFERENCE = 0, WORD_LONGEST = 1, WORD_RESULT = 2, WORD_FACTOR = 6 };

/* A rank's last calls, for sentences about mismatches and time-outs. */
typedef struct {
    _Atomic uint64_t sequence; /* written last */
    uint64_t count;
    int32_t root;
    uint32_t fingerprint;
    int8_t coll, dtype, op;
    uint32_t number; /* of the call, of which this may be a step */
} shm_record_t;

/* The rank's last all_gather_v or reduce_scatter_v: counts of the first
 * ranks. */
typedef struct {
    uint64_t sequence, sum;
    uint64_t first[SHM_COUNTS];
} shm_counts_t;

/* The rank's last collective by a user's operator. */
typedef struct {
    uint64_t sequence;
    char text[DSCOMM_OP_TEXT];
} shm_operator_t;

#define SHM_TRIAL_WAYS 5
#define SHM_TRIAL_PIECES 9 /* by each way */

/* The stores of collectives: see trial.c. */
typedef struct {
    uint8_t choice; /* shm_store_t */
    bool chosen; /* a trial has ended */
    bool plain; /* plain stores are faster although the partner is far */
    uint64_t next; /* place in the rings from which on there is a trial */
    uint64_t ns[2]; /* of a piece by each kind, on this rank */
    /* Shortest payload that is read in place if all ranks send, and if one
     * sends; 0: none is. */
    size_t single, single_one_way;
} shm_trial_t;

typedef struct {
    uint64_t magic;
    uint32_t ranks;
    /* Number of ranks in a futex wait, plus those that always need the slow
     * wake-up. */
    _Alignas(SHM_LINE) _Atomic uint32_t sleepers;
    _Alignas(SHM_LINE) _Atomic int32_t revoked; /* status, 0 = not revoked */
    _Atomic uint32_t revoking; /* 1: a rank is writing failure */
    unsigned char failure[DSCOMM_FAILURE_PACKED];
} shm_header_t;

typedef struct {
    /* all steps below this one were read */
    _Alignas(2 * SHM_LINE) _Atomic uint64_t done;
    _Alignas(2 * SHM_LINE) _Atomic uint32_t wake; /* futex word */
    _Atomic uint32_t sleeping;
    _Atomic uint32_t left; /* shm_left_t */
    int32_t pid;
    bool unordered; /* membarrier(2) does not work for this rank */
    bool native; /* DSCOMM_SHM_NATIVE here */
    bool tries; /* this rank can take part in trials */
    uint64_t word, word_at; /* that the others try to read, and its address */
    _Atomic bool reads; /* this rank may read all others' memory */
    /* A call was given up while others might read this rank's memory, which may
     * have been used again since. */
    _Atomic bool voided;
    _Alignas(SHM_LINE) _Atomic uint8_t channel[SHM_MAX_RANKS]; /* in use */
    _Alignas(SHM_LINE) shm_record_t record[SHM_RECORDS];
    shm_counts_t counts;
    shm_operator_t operator;
    shm_line_t line[SHM_LINES];
} shm_control_t;

/* Offsets and sizes of everything in a segment: a function of the number of
 * ranks and the settings, computed by rank 0 and sent to the others. */
typedef struct {
    uint64_t ranks;
    uint64_t control, control_stride;
    uint64_t ring, ring_size; /* ring_size bytes a rank */
    uint64_t channel, channel_size; /* channel_size bytes an ordered pair */
    uint64_t heap, heap_size; /* heap_size bytes a rank; may be 0 */
    uint64_t total;
} shm_layout_t;

/* The processes of a world: shared by its groups, with a reference count. */
typedef struct {
    _Atomic int references;
    int count;
    int *fds; /* pidfds, in the memory after pids; -1 if the kernel has none */
    pid_t pids[];
} shm_peers_t;

/* A trial that is under way. */
typedef struct {
    uint64_t begin_ns; /* when the current piece was begun */
    uint64_t ns[SHM_TRIAL_WAYS][SHM_TRIAL_PIECES];
    unsigned ways; /* that are tried */
    bool refused; /* the partner's memory could not be read */
    uint8_t one_way; /* shm_store_t of pieces that go one way */
    shm_trial_t found; /* by this rank */
    uint64_t other; /* address of the partner's source */
    size_t piece; /* bytes */
    unsigned char *source, *sink; /* two pieces and one; NULL: no memory */
} shm_tried_t;

/* The kind of stores by which a payload is written: plain ones, which leave it
 * in the cache, or streaming (non-temporal) ones, which are faster between
 * distant caches. */
typedef enum { SHM_PLAIN, SHM_STREAM } shm_store_t;

/* This rank's measurements of the path to one rank, or to all: see store.c. */
typedef struct {
    uint8_t store; /* shm_store_t in use */
    uint8_t samples; /* number of samples taken at the beginning */
    uint16_t left; /* copies until the next measurement; 0: none */
    unsigned line_ns; /* ns until a cache line of the other rank arrives */
    uint64_t seen; /* value found by the last measurement */
    const shm_trial_t *trial; /* of the group, or NULL */
} shm_path_t;

/* Memory of this rank that others can read by single copies. */
typedef struct {
    const void *address;
    size_t size;
} shm_readable_t;

typedef struct shm shm_t;
typedef struct shm_op shm_op_t;
typedef struct shm_request shm_request_t;
typedef struct shm_p2p shm_p2p_t;
typedef struct shm_heap shm_heap_t;

/* Requests in a queue, oldest first. */
typedef struct {
    shm_request_t *head, *tail;
} shm_list_t;

/* A wait. Start with a zeroed shm_wait_t, call shm_wait() each time that the
 * condition does not hold, and shm_wait_end() at the end. */
typedef struct {
    unsigned spins;
    unsigned rounds; /* calls of shm_wait_slow() */
    bool sleepy; /* the wait is so long that it sleeps */
    bool announced; /* the sleep is announced to other ranks */
    uint32_t ticket; /* futex value at that time */
    /* rank + 1 of a rank whose process has ended; at the next check the group
     * is revoked */
    int suspect;
    uint64_t moves; /* shm->moves at the last check */
    /* start of the time without progress, 0 = not known yet */
    int64_t since_ns;
    int64_t checked_ns; /* time of the last check of peers */
} shm_wait_t;

struct shm {
    int rank, ranks;
    /* The first members are used by each step of a collective. */
    uint64_t step; /* next one */
    uint64_t floor; /* all steps below are known to be read by all ranks */
    uint64_t place; /* position of the ring's next byte; never wraps around */
    uint64_t tail; /* oldest step whose ring bytes are not reused */
    uint32_t chain;
    unsigned spin_limit;
    int message_spin; /* polls before these, for a short message */
    uint64_t moves; /* grows with all progress */
    uint64_t moves_seen; /* value of moves when progress was last called */
    unsigned completed; /* requests that progress has not reported yet */
    unsigned fruitless; /* consecutive calls of progress without any */
    shm_header_t *header;
    shm_control_t *own;
    unsigned char *base;
    bool ring_reserved;
    uint64_t word; /* see shm_single_look() */
    int readers; /* number of ranks, from rank 0, that may read all others */
    bool asks_single; /* DSCOMM_SHM_SINGLE_COPY is auto: the trial decides */
    shm_readable_t readable[SHM_READABLE];
    size_t cache; /* bytes of the last cache of this rank's processor */
    shm_layout_t layout;
    /* place in the rings of each step's first byte */
    uint64_t start[SHM_LINES];
    dscomm_reduce_fn kernels[DSCOMM_DTYPE_COUNT][DSCOMM_OP_COUNT];
    const void **sources; /* ranks pointers, scratch */
    double *factors; /* ranks factors, scratch */
    shm_path_t *path; /* paths of messages to each rank */
    shm_trial_t trial;
    shm_tried_t tried;
    /* DSCOMM_SHM_STORE is auto on all ranks, and each has a processor */
    bool trying;
    bool guessing; /* DSCOMM_SHM_STORE is auto */
    int far; /* of the last guesses, those for a far rank less the others */
    unsigned guesses;
    bool oversubscribed; /* ranks outnumber processors */
    uint8_t store; /* shm_store_t of the running collective */
    bool native; /* DSCOMM_SHM_NATIVE */
    /* All ranks had both buffers of the last all_reduce in heaps; they agree on
     * it. */
    bool in_heaps;
    /* Not all had the input of the last reduce_scatter that met there. */
    bool scatters_elsewhere;
    shm_list_t queue; /* running collectives */
    /* handle of the operator that own->operator describes, or 0 */
    int published;
    uint64_t op_step; /* first step of the running operation, 0 = none */
    uint32_t op_chain;
    const dscomm_coll_args_t *op_args;
    shm_p2p_t *p2p;
    shm_heap_t *heap;
    GPtrArray *regions; /* registered memory, by address; NULL: none yet */
    shm_wait_t hint;
    bool world; /* the group is a world, whose ranks meet last in a barrier */
    shm_peers_t *peers;
    int *peer; /* index of each rank in peers */
    /* Functions that advance works while this rank waits for something else.
     * They are pointers because wait.c and leave.c lie below the files of
     * collectives and messages, which themselves wait. */
    unsigned (*advance_collectives)(shm_t *shm);
    unsigned (*advance_messages)(shm_t *shm);
    dscomm_group_t *group;
    char *name;
    int *world_ranks;
    int timeout_ms;
    int fd;
};

/* The operation that this rank runs, in the user's terms. */
static inline const dscomm_coll_args_t *shm_call(const shm_t *shm)
{
    return shm->op_args->of ? shm->op_args->of : shm->op_args;
}

static inline shm_control_t *shm_control(const shm_t *shm, int rank)
{
    return (shm_control_t *)(shm->base + shm->layout.control +
                             (size_t)rank * shm->layout.control_stride);
}

static inline bool shm_is_revoked(const shm_t *shm)
{
    return atomic_load_explicit(&shm->header->revoked, memory_order_relaxed) !=
           0;
}

/* Whether the group is revoked by now, after this rank has read memory of a
 * peer's heap: then the peer may have freed that memory, or used it again,
 * before it was read. The fence keeps the processor from reading it later than
 * the flag. */
static inline bool shm_is_revoked_since(const shm_t *shm)
{
    atomic_thread_fence(memory_order_acquire);
    return shm_is_revoked(shm);
}

static inline unsigned char *shm_ring(const shm_t *shm, int rank)
{
    return shm->base + shm->layout.ring + (size_t)rank * shm->layout.ring_size;
}

/* segment.c: the file and its mapping. */
dscomm_status_t shm_layout_make(int ranks, shm_layout_t *ret_layout);
dscomm_status_t shm_segment_create(const char *name, shm_layout_t *layout,
                                   int *ret_fd);
/* ERR_PROTOCOL unless shm->fd, which came from rank 0, is sealed and as large
 * as shm->layout says, and that layout is the one of this many ranks. */
dscomm_status_t shm_segment_check(const shm_t *shm);
dscomm_status_t shm_segment_map(shm_t *shm);
void shm_segment_unmap(shm_t *shm);
/* Backs size bytes at offset, which are mapped at, with pages of the calling
 * rank's node. */
dscomm_status_t shm_segment_reserve(shm_t *shm, void *at, uint64_t offset,
                                    uint64_t size, const char *what);

/* connect.c: how ranks form a group. Sets fd, layout and, if there is no
 * parent, peers; returns when all ranks have mapped the segment. Calls attach
 * before that, on every rank. */
dscomm_status_t shm_connect(shm_t *shm, const dscomm_backend_args_t *args,
                            dscomm_status_t (*attach)(shm_t *shm));

/* trial.c: chooses the stores of collectives by trying both kinds. */
void shm_trial_init(shm_t *shm, const shm_t *parent);
/* Sets the stores of a collective before the first trial. If there are none, as
 * ranks outnumber processors, by the distances of all ranks in turn. */
void shm_trial_guess(shm_t *shm);
/* True if the next collective must begin with a trial. */
bool shm_trial_due(const shm_t *shm);
/* Begins a collective by a trial, after which op->begin() is called. */
int shm_trial_begin(shm_t *shm, shm_op_t *op);
void shm_trial_free(shm_t *shm);
/* The rank with which a rank tries, or -1. */
int shm_trial_partner(int rank, int ranks);
/* Whether a rank is the one to which pieces go one way. */
bool shm_trial_receives(int rank, int ranks);
/* Sets choice, single, single_one_way and ns by the times of pieces. */
void shm_trial_judge(const shm_tried_t *tried, shm_trial_t *ret_trial);
/* Writes the choice as text. */
void shm_tuning(void *impl, char *text, size_t size);

/* single.c: payloads that are read out of a rank's memory. Each rank publishes
 * a word; when all have, each looks whether it may read those of the others. */
void shm_single_publish(shm_t *shm);
dscomm_status_t shm_single_look(shm_t *shm);
/* Whether all ranks may read each other's memory. */
bool shm_single_allowed(shm_t *shm);
/* Reads memory of a rank; returns an errno. */
int shm_single_read(const shm_t *shm, int rank, void *dest, uint64_t address,
                    size_t size);
/* Called before this rank may use memory again to which a reference was given,
 * and whose readers have not said that they have it. It gives none from then
 * on. */
void shm_single_void(shm_t *shm);
/* Whether a reference is an address in its rank's memory. */
bool shm_reference_is_address(uint64_t reference);
/* Reads what a reference is of; false: it cannot be read. */
bool shm_reference_try(shm_t *shm, int rank, uint64_t reference, void *dest,
                       size_t size);
/* Returns a reference by which another rank reads [memory, memory + size) in
 * place, in this rank's heap or its own memory; 0: it must go through a ring.
 */
uint64_t shm_reference(shm_t *shm, const void *memory, size_t size,
                       bool one_way);
/* The same reference, which is not given to others: see shm_own_place(). */
uint64_t shm_reference_look(shm_t *shm, const void *memory, size_t size,
                            bool one_way);
/* Whether what was read by a reference of rank was what it was given for: the
 * rank has neither left nor given up a call. */
bool shm_reference_held(const shm_t *shm, int rank);
/* Copies size bytes of a rank, skip bytes behind a reference. */
dscomm_status_t shm_reference_read(shm_t *shm, int rank, uint64_t reference,
                                   size_t skip, void *dest, size_t size,
                                   bool stream);

/* store.c: chooses the stores of a path by measuring, as it is used. store: a
 * shm_store_t, or -1: to be measured. */
void shm_path_init(shm_path_t *path, int store);
/* Notes that a line of the other rank took ns to arrive. A shorter time counts
 * at once, a longer one, which may come from an interruption, gradually. */
void shm_path_learn(shm_path_t *path, uint64_t ns);
bool shm_path_is_far(const shm_path_t *path);
/* Times the read of a word that the other rank writes. */
void shm_path_look(shm_path_t *path, const _Atomic uint64_t *word);

/* peers.c: the processes of other ranks: whether they are alive, and their
 * state. */
/* NULL: no memory. */
shm_peers_t *shm_peers_new(int count);
void shm_peers_free(shm_peers_t *peers);
/* A rank of the group whose process has ended, or -1. */
int shm_peers_dead(const shm_t *shm);
bool shm_peers_ended(const shm_t *shm, int rank);
/* True if a signal or a debugger has stopped the rank's process. */
bool shm_peers_stopped(const shm_t *shm, int rank);
/* Writes "rank 3 (pid 812, stopped)"; returns buffer. */
const char *shm_peers_describe(const shm_t *shm, int rank, char *buffer,
                               size_t size);

/* wait.c: see shm_wait_t. First each rank publishes whether membarrier(2) works
 * for it (register). After all have, each rank compensates for the others
 * (agree). */
void shm_wait_register(shm_t *shm);
void shm_wait_agree(shm_t *shm);
dscomm_status_t shm_wait_slow(shm_t *shm, shm_wait_t *wait);
void shm_wait_end_slow(shm_t *shm, shm_wait_t *wait);
/* The wait slot, which counts in microseconds: sleeps once, unless progress is
 * possible. */
void shm_wait_hint(void *impl, unsigned timeout_us);
/* Checks peers from time to time, for callers that test works and never wait.
 */
void shm_watch(shm_t *shm);
/* revoke.c: wakes the ranks that sleep. */
void shm_wake_slow(shm_t *shm);

/* The clock of waits and deadlines. */
static inline int64_t shm_now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 * NS_PER_MS + t.tv_nsec;
}

static inline void shm_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb");
#endif
}

static inline dscomm_status_t shm_wait(shm_t *shm, shm_wait_t *wait)
{
    if (wait->spins++ < shm->spin_limit) {
        shm_pause();
        return DSCOMM_OK;
    }
    return shm_wait_slow(shm, wait);
}

static inline void shm_wait_end(shm_t *shm, shm_wait_t *wait)
{
    if (wait->announced)
        shm_wait_end_slow(shm, wait);
}

/* Call after raising a flag or a counter. The load must not move before the
 * store: wait.c ensures that on the sleeper's side, or keeps sleepers above
 * zero. */
static inline void shm_wake(shm_t *shm)
{
    atomic_signal_fence(memory_order_seq_cst);
    if (atomic_load_explicit(&shm->header->sleepers, memory_order_relaxed))
        shm_wake_slow(shm);
}

/* revoke.c: the end of the group. */
void shm_revoke(void *impl, const dscomm_failure_t *failure);
dscomm_status_t shm_status(void *impl, dscomm_failure_t *ret_failure);
/* Makes the failure of the group this thread's last one and returns its
 * status. */
dscomm_status_t shm_revoked(shm_t *shm);
/* Revokes and returns the group's status: with failure, or with this thread's
 * last one. */
dscomm_status_t shm_fail(shm_t *shm, const dscomm_failure_t *failure);
dscomm_status_t shm_revoke_last(shm_t *shm, dscomm_status_t status);
/* Fails because this rank lacks a resource. The record names the rank, and its
 * detail the group. */
dscomm_status_t shm_fail_resource(const shm_t *shm, dscomm_status_t status,
                                  const char *format, ...) DSCOMM_PRINTF(3, 4);
/* Fills a failure record with rank, or -1, as the culprit in the current
 * collective, if there is one. */
void shm_blame(const shm_t *shm, dscomm_status_t status,
               dscomm_failure_kind_t kind, int rank,
               dscomm_failure_t *ret_failure);
/* A rank's number in the group, which may have more ranks than shm. */
int shm_number(const shm_t *shm, int rank);
/* Writes "rank 1 (pid 812 on b)", with that number; returns text. */
const char *shm_rank_describe(const shm_t *shm, int rank,
                              char text[DSCOMM_CREATION_RANK_MAX]);

/* explain.c: sentences about ranks that are late; returns the first of them,
 * or -1. */
int shm_explain(void *impl, const dscomm_request_t *request, char *text,
                size_t size);

/* leave.c: ranks that leave in good order, without doing what others need. */
shm_left_t shm_left(const shm_t *shm, int rank);
void shm_leave(shm_t *shm, shm_left_t how);
/* A rank that left without beginning the current collective, or -1. */
int shm_left_early(const shm_t *shm);
/* Writes "rank 3 has left (dscomm_finalize) ..."; for rank -1, that all others
 * have. */
void shm_left_describe(const shm_t *shm, int rank, char *text, size_t size);
/* Ends receives that wait for ranks that have left. The group goes on. */
void shm_left_receives(shm_t *shm);
/* A rank that left while messages with it were incomplete, or -1. */
int shm_left_halfway(const shm_t *shm);

/* mismatch.c: publishes the counts that must be the same on all ranks. */
void shm_counts_publish(shm_t *shm, const dscomm_coll_args_t *args);
/* The same for the operator, if it is the program's own. Its text is written
 * only if the last one was of another operator. */
void shm_operator_publish(shm_t *shm, const dscomm_coll_args_t *args);
/* ERR_MISMATCH with a sentence and the group revoked, if a peer runs another
 * collective than the current one; else OK. */
dscomm_status_t shm_mismatch(shm_t *shm);
/* The last collective that a rank has begun. */
uint64_t shm_last_sequence(const shm_t *shm, int rank);
/* See dscomm_backend_ops_t. */
int shm_begun(void *impl, int rank, uint64_t sequence, char *text, size_t size);

/* collective.c: native collectives. */
dscomm_status_t shm_run(void *impl, const dscomm_coll_args_t *args);
dscomm_status_t shm_start(void *impl, const dscomm_coll_args_t *args,
                          dscomm_request_t *request);
int shm_native(void *impl, const dscomm_coll_args_t *args);
dscomm_status_t shm_native_info(void *impl, const dscomm_coll_args_t *args,
                                dscomm_native_info_t *info);
unsigned shm_collective_progress(shm_t *shm);

/* p2p.c: messages. */
/* False: no memory. */
bool shm_p2p_new(shm_t *shm);
void shm_p2p_free(shm_t *shm);
dscomm_status_t shm_isend(void *impl, const dscomm_message_t *message,
                          dscomm_request_t *request);
dscomm_status_t shm_irecv(void *impl, const dscomm_message_t *message,
                          dscomm_request_t *request);
dscomm_status_t shm_send(void *impl, const dscomm_message_t *message);
dscomm_status_t shm_recv(void *impl, const dscomm_message_t *message,
                         dscomm_request_t *request);
int shm_withdraw(void *impl, dscomm_request_t *request);
int shm_matched(void *impl, const dscomm_request_t *request);
int shm_probe(void *impl, const dscomm_message_t *wanted,
              dscomm_request_t *found, void **ret_taken);
void shm_p2p_cancel(shm_t *shm, shm_request_t *request);
unsigned shm_p2p_progress(shm_t *shm);

/* heap.c: memory that peers can read. */
dscomm_status_t shm_mem_alloc(void *impl, size_t size, void **ret_memory);
dscomm_status_t shm_mem_free(void *impl, void *memory);
void shm_heap_free(shm_t *shm);
/* Takes whole pages of this rank's heap, which have no memory yet.
 * ERR_UNSUPPORTED: there is no heap. */
dscomm_status_t shm_heap_take(shm_t *shm, size_t size, size_t *ret_offset);
/* Gives memory to pages of what was taken. */
dscomm_status_t shm_heap_reserve(shm_t *shm, size_t offset, size_t size);
/* Gives back all that was taken at offset, and its memory. */
void shm_heap_give(shm_t *shm, size_t offset);
/* The address of a byte of it, after shm_heap_take(). */
void *shm_heap_own(const shm_t *shm, size_t offset);
/* Maps pages of it in place of what is at where. */
bool shm_heap_map(const shm_t *shm, size_t offset, size_t size, void *where);
/* Offset + 1 of [memory, memory + size) in this rank's heap; 0 if it is not
 * there. */
uint64_t shm_heap_reference(const shm_t *shm, const void *memory, size_t size);
/* The address of a peer's reference; NULL, with a sentence, if it cannot be
 * mapped or is not in the peer's heap. */
void *shm_heap_resolve(shm_t *shm, int rank, uint64_t reference, size_t size);
dscomm_status_t shm_put(void *impl, const dscomm_access_t *access,
                        dscomm_request_t *request);
dscomm_status_t shm_get(void *impl, const dscomm_access_t *access,
                        dscomm_request_t *request);

/* pages.c: memory of the program that peers can read and write in place. */
dscomm_status_t shm_mem_register(void *impl, void *address, size_t bytes,
                                 void *key, void **ret_registered);
dscomm_status_t shm_mem_deregister(void *impl, void *registered);
/* The reference of memory of the heap or of registered pages, 0: it is neither.
 * Peers read there what the memory has now. */
uint64_t shm_own_reference(const shm_t *shm, const void *memory, size_t size);
/* The same reference, but peers do not read there what the memory has now: what
 * they have written stays. */
uint64_t shm_own_place(const shm_t *shm, const void *memory, size_t size);
/* Takes over what peers have written to memory by its reference. */
void shm_own_written(const shm_t *shm, void *memory, size_t size);
void shm_pages_free(shm_t *shm);

/* settings.c. */
extern const dscomm_setting_t shm_settings[];
/* How payloads are moved, as the settings say; NULL: one is invalid. */
const char *shm_describe(void);
enum {
    SHM_SETTING_RING,
    SHM_SETTING_CHANNEL,
    SHM_SETTING_HEAP,
    SHM_SETTING_SPIN,
    SHM_SETTING_STORE,
    SHM_SETTING_SINGLE_COPY,
    SHM_SETTING_NATIVE
};

#endif
