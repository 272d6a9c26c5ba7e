/* SPDX-License-Identifier: BSD-3-Clause */
/* Waits of more than a few microseconds: yields, then sleeps, and checks from
 * time to time whether the wait can still end. */
#include "config.h"

#include "backends/shm/p2p.h"

#include <errno.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define YIELD_NS (2 * NS_PER_MS) /* time of yielding before the first sleep */
#define CHECK_NS NS_PER_MS /* time between checks of peers and clock */
/* first sleep, and so the cost of a lost wake-up */
#define SLEEP_SHORT_NS (2 * NS_PER_MS)
#define SLEEP_LONG_NS (20 * NS_PER_MS)

/* Other ranks raise flags by a plain store followed by a plain load of
 * sleepers. The barrier here, on all processors that run such code, replaces
 * the fence that they would need in between. Kernels before 4.16 and some
 * sandboxes do not have it. */
static void barrier_everywhere(void)
{
    atomic_thread_fence(memory_order_seq_cst);
    syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0);
}

static long register_self(void)
{
    return syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0,
                   0);
}

/* Registers when the module is loaded, because the core loads modules before it
 * starts threads. In a process with several threads, such as rank 0 with a
 * store's server, the kernel takes some 10 ms for it, while all ranks wait for
 * each other. */
__attribute__((constructor)) static void register_early(void)
{
    register_self();
}

void shm_wait_register(shm_t *shm)
{
    shm->own->unordered = register_self() != 0;
}

/* If membarrier(2) does not work for a rank, it cannot order the stores of
 * other ranks, nor can they order its own. Then all ranks that raise a flag
 * call shm_wake_slow(). */
void shm_wait_agree(shm_t *shm)
{
    for (int r = 0; r < shm->ranks; r++)
        if (shm_control(shm, r)->unordered) {
            atomic_fetch_add(&shm->header->sleepers, 1);
            return;
        }
}

/* Announces that this rank is about to sleep. The caller must check its
 * condition once more before it does. */
static void announce_sleep(shm_t *shm, shm_wait_t *wait)
{
    wait->ticket = atomic_load(&shm->own->wake);
    wait->announced = true;
    atomic_store(&shm->own->sleeping, 1);
    atomic_fetch_add(&shm->header->sleepers, 1);
    barrier_everywhere();
}

void shm_wait_end_slow(shm_t *shm, shm_wait_t *wait)
{
    wait->announced = false;
    atomic_fetch_sub(&shm->header->sleepers, 1);
    atomic_store(&shm->own->sleeping, 0);
}

static void sleep_announced(shm_t *shm, shm_wait_t *wait, int64_t timeout_ns)
{
    struct timespec timeout = {0, (long)timeout_ns};

    syscall(SYS_futex, &shm->own->wake, FUTEX_WAIT, wait->ticket, &timeout,
            NULL, 0);
    shm_wait_end_slow(shm, wait);
}

/* False if the rank has not called the collective that this rank is in. A part
 * of a collective, as on one level of a group, does not tell. */
static bool rank_may_have_called(const shm_t *shm, int rank)
{
    return shm_call(shm) != shm->op_args ||
           shm_last_sequence(shm, rank) >= shm->op_args->sequence;
}

/* in: the collective that this rank is in, or "". */
static dscomm_status_t wait_fail_dead(shm_t *shm, int rank, const char *in)
{
    const char *when = "";
    dscomm_failure_t failure;

    if (*in)
        when = rank_may_have_called(shm, rank) ? "during " : "before ";
    shm_blame(shm, DSCOMM_ERR_PEER_FAILED, DSCOMM_FAILURE_DIED, rank, &failure);
    dscomm_backend_failure_detail(&failure, "%s%s", when, in);
    return shm_fail(shm, &failure);
}

static dscomm_status_t fail_left(shm_t *shm, int rank, const char *in)
{
    char left[256];
    dscomm_failure_t failure;

    shm_blame(shm, DSCOMM_ERR_PEER_FAILED, DSCOMM_FAILURE_LEFT, rank, &failure);
    shm_left_describe(shm, rank, left, sizeof left);
    dscomm_backend_failure_detail(
        &failure, "%s, while rank %d waits for it%s%s; the group cannot go on",
        left, shm_number(shm, shm->rank), *in ? " in " : "", in);
    return shm_fail(shm, &failure);
}

/* Called if a peer's process has ended. Its earlier calls count: the caller
 * checks its condition once more, and only after that the group is revoked. The
 * core explains failures of messages, because it knows their purpose. */
static dscomm_status_t fail_peer(shm_t *shm, int rank)
{
    bool left = shm_left(shm, rank) != SHM_STAYS && !shm_peers_ended(shm, rank);
    char what[160] = "";

    if (shm->op_step)
        dscomm_coll_describe(shm_call(shm), what, sizeof what);
    return left ? fail_left(shm, rank, what) : wait_fail_dead(shm, rank, what);
}

static dscomm_status_t check_peers(shm_t *shm, shm_wait_t *wait)
{
    int gone;

    if (wait->suspect)
        return fail_peer(shm, wait->suspect - 1);
    shm_left_receives(shm);
    gone = shm_peers_dead(shm);
    if (gone < 0)
        gone = shm_left_early(shm);
    if (gone < 0)
        gone = shm_left_halfway(shm);
    wait->suspect = gone + 1;
    return DSCOMM_OK;
}

/* Works have no wait of their own, so the state of their waiting is kept in
 * shm. */
void shm_watch(shm_t *shm)
{
    shm_wait_t *wait = &shm->hint;
    int64_t now_ns = shm_now_ns();

    if (wait->moves != shm->moves)
        *wait = (shm_wait_t){.moves = shm->moves};
    if (!wait->suspect && now_ns - wait->checked_ns < CHECK_NS)
        return;
    wait->checked_ns = now_ns;
    check_peers(shm, wait);
}

void shm_wait_hint(void *impl, unsigned timeout_us)
{
    shm_t *shm = impl;
    shm_wait_t *wait = &shm->hint;
    const int64_t timeout_ns = (int64_t)timeout_us * 1000;
    int64_t now_ns = shm_now_ns();

    if (wait->moves != shm->moves) {
        *wait = (shm_wait_t){.moves = shm->moves};
        sched_yield();
        return;
    }
    if (!wait->since_ns)
        wait->since_ns = now_ns;
    if (wait->suspect || now_ns - wait->checked_ns >= CHECK_NS) {
        wait->checked_ns = now_ns;
        if (check_peers(shm, wait) || wait->suspect)
            return;
    }
    if (now_ns - wait->since_ns < YIELD_NS) {
        sched_yield();
        return;
    }
    announce_sleep(shm, wait);
    shm->advance_collectives(shm);
    shm->advance_messages(shm);
    if (shm->moves == wait->moves && !shm_is_revoked(shm))
        sleep_announced(shm, wait,
                        timeout_ns < SLEEP_SHORT_NS ? timeout_ns
                                                    : SLEEP_SHORT_NS);
    else
        shm_wait_end_slow(shm, wait);
}

static dscomm_status_t check_deadline(shm_t *shm, int64_t waited_ns)
{
    char text[DSCOMM_FAILURE_DETAIL_MAX - 64];
    dscomm_failure_t failure;
    int late;

    if (shm->timeout_ms < 0 || waited_ns < shm->timeout_ms * NS_PER_MS)
        return DSCOMM_OK;
    late = shm_explain(shm, NULL, text, sizeof text);
    shm_blame(shm, DSCOMM_ERR_TIMEOUT, DSCOMM_FAILURE_SILENT, late, &failure);
    dscomm_backend_failure_detail(&failure, "no progress for %.1f s: %s",
                                  shm->timeout_ms / 1000.0, text);
    if (!shm->op_step)
        dscomm_backend_failure_follow(shm->group, &failure);
    return shm_fail(shm, &failure);
}

static dscomm_status_t wait_look_around(shm_t *shm, shm_wait_t *wait,
                                        int64_t now_ns)
{
    dscomm_status_t status;

    if ((status = shm_mismatch(shm)))
        return status;
    if (!wait->since_ns)
        wait->since_ns = now_ns;
    wait->checked_ns = now_ns;
    if ((status = check_peers(shm, wait)))
        return status;
    return check_deadline(shm, now_ns - wait->since_ns);
}

/* One turn of a wait that already takes long: announces the sleep, so that the
 * caller checks again; then sleeps. */
static void turn_to_sleep(shm_t *shm, shm_wait_t *wait, int64_t waited_ns)
{
    if (wait->announced)
        sleep_announced(shm, wait,
                        waited_ns > 10 * YIELD_NS ? SLEEP_LONG_NS
                                                  : SLEEP_SHORT_NS);
    else
        announce_sleep(shm, wait);
}

dscomm_status_t shm_wait_slow(shm_t *shm, shm_wait_t *wait)
{
    dscomm_status_t status;
    int64_t now_ns;

    if (shm_is_revoked(shm))
        return shm_revoked(shm);
    if (shm->p2p->busy)
        shm->advance_messages(shm);
    dscomm_backend_progress_others(shm->group);
    if (wait->moves != shm->moves) {
        wait->moves = shm->moves;
        wait->since_ns = wait->checked_ns = 0;
        wait->suspect = 0;
    }
    if (wait->rounds++ % 32 && !wait->suspect && !wait->sleepy) {
        sched_yield();
        return DSCOMM_OK;
    }
    now_ns = shm_now_ns();
    if (wait->suspect || now_ns - wait->checked_ns >= CHECK_NS) {
        status = wait_look_around(shm, wait, now_ns);
        if (status || wait->suspect)
            return status;
    }
    wait->sleepy = now_ns - wait->since_ns > YIELD_NS;
    if (wait->sleepy)
        turn_to_sleep(shm, wait, now_ns - wait->since_ns);
    else
        sched_yield();
    return DSCOMM_OK;
}
