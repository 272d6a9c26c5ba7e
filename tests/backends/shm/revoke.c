/* SPDX-License-Identifier: BSD-3-Clause */
/* Revoking a group: the first failure is kept, and a rank that fails does not
 * go on. */
#include "tests/backends/shm/fixture.h"

#include <sched.h>

static dscomm_failure_t make(dscomm_status_t status, const char *detail)
{
    dscomm_failure_t failure = DSCOMM_FAILURE_INIT;

    failure.status = status;
    failure.kind = DSCOMM_FAILURE_SILENT;
    dscomm_backend_failure_detail(&failure, "%s", detail);
    return failure;
}

static void test_first_wins(shm_t **shms)
{
    const dscomm_failure_t first = make(DSCOMM_ERR_ABORTED, "first");
    const dscomm_failure_t second = make(DSCOMM_ERR_TIMEOUT, "second");
    dscomm_failure_t failure;

    is_int(shm_status(shms[1], &failure), DSCOMM_OK, "all is well");
    shm_revoke(shms[0], &first);
    shm_revoke(shms[1], &second);
    for (int r = 0; r < 2; r++) {
        is_int(shm_status(shms[r], &failure), DSCOMM_ERR_ABORTED,
               "rank %d: the first status counts", r);
        is_str(failure.detail, "first", "and the first record");
    }
}

/* The rank whose record is completed when another rank waits for it, or
 * NULL. */
static shm_t *writing;

/* Replaces libc's function, which such ranks call. */
int sched_yield(void)
{
    if (writing) {
        const dscomm_failure_t failure = make(DSCOMM_ERR_ABORTED, "theirs");

        dscomm_backend_failure_pack(&failure, writing->header->failure);
        atomic_store(&writing->header->revoked, DSCOMM_ERR_ABORTED);
        writing = NULL;
    }
    return 0;
}

/* A rank fails while another one is still writing its record. */
static void test_meanwhile(shm_t **shms)
{
    atomic_store(&shms[0]->header->revoking, 1);
    writing = shms[0];
    dscomm_fail(DSCOMM_ERR_NO_MEMORY, "ours");
    is_int(shm_revoke_last(shms[1], DSCOMM_ERR_NO_MEMORY), DSCOMM_ERR_ABORTED,
           "who fails meanwhile gets the status of the first");
    is_str(dscomm_last_error(), "theirs", "and its sentence");
}

static void test_writer_died(shm_t **shms)
{
    atomic_store(&shms[0]->header->revoking, 1);
    dscomm_fail(DSCOMM_ERR_PEER_FAILED, "ours");
    is_int(shm_revoke_last(shms[1], DSCOMM_ERR_PEER_FAILED),
           DSCOMM_ERR_PEER_FAILED,
           "a rank that died over its record does not keep others from "
           "revoking");
    is_str(dscomm_last_error(), "ours", "theirs counts then");
}

int main(void)
{
    static void (*const tests[])(shm_t **) = {test_first_wins, test_meanwhile,
                                              test_writer_died};

    for (size_t i = 0; i < G_N_ELEMENTS(tests); i++) {
        shm_t *shms[2];

        fixture_open(shms, 2);
        tests[i](shms);
        fixture_close(shms, 2);
    }
    return tap_done();
}
