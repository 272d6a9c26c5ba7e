/* SPDX-License-Identifier: BSD-3-Clause */
/* Revoking a group: the first sentence stays, and whoever fails never goes on
 * as if nothing had happened. */
#include "tests/backends/shm/fixture.h"

#include <sched.h>

static void test_first_wins(shm_t **shms)
{
    char text[SHM_TEXT];

    is_int(shm_status(shms[1], text, sizeof text), DSCOMM_OK, "all is well");
    shm_revoke(shms[0], DSCOMM_ERR_ABORTED, "first");
    shm_revoke(shms[1], DSCOMM_ERR_TIMEOUT, "second");
    for (int r = 0; r < 2; r++) {
        is_int(shm_status(shms[r], text, sizeof text), DSCOMM_ERR_ABORTED,
               "rank %d: the first status counts", r);
        is_str(text, "first", "and the first sentence");
    }
}

/* Whose writer finishes its sentence when somebody waits for that, or NULL. */
static shm_t *writing;

/* libc's, in which those wait. */
int sched_yield(void)
{
    if (writing) {
        strcpy(writing->header->text, "theirs");
        atomic_store(&writing->header->revoked, DSCOMM_ERR_ABORTED);
        writing = NULL;
    }
    return 0;
}

/* A rank that fails while another one still writes its sentence. */
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
           "a rank that died over its sentence does not keep others from "
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
