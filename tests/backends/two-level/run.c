/* SPDX-License-Identifier: BSD-3-Clause */
/* A step that fails while another thread ends the group. */
#include "config.h"

#include "backends/two-level/two-level.h"
#include "tests/tap.h"

#include <string.h>

static dscomm_status_t ended;

dscomm_status_t two_check(two_t *two)
{
    (void)two;
    return ended ? dscomm_fail(ended, "enough") : DSCOMM_OK;
}

void two_revoke(void *impl, dscomm_status_t status, const char *sentence)
{
    (void)impl, (void)status, (void)sentence;
}

void two_sentence(const two_t *two, const two_level_t *level, char *text,
                  size_t size)
{
    (void)two, (void)level, (void)text, (void)size;
}

dscomm_status_t two_plan_make(two_t *two, const dscomm_coll_args_t *args)
{
    (void)two, (void)args;
    return dscomm_fail(DSCOMM_ERR_NO_MEMORY, "no room");
}

int main(void)
{
    dscomm_coll_args_t args = {.coll = DSCOMM_COLL_BARRIER};
    two_t two;

    memset(&two, 0, sizeof two);
    is_int(two_run(&two, &args), DSCOMM_ERR_NO_MEMORY,
           "a failure is one before the other thread has said why");
    is_str(dscomm_last_error(), "no room", "with its own sentence");
    return tap_done();
}
