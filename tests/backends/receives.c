/* SPDX-License-Identifier: BSD-3-Clause */
/* Receives that wait for what may never come. */
#include "config.h"

#include "tests/backends/conform.h"

#define DEADLINE_MS 600
#define LONG_MS 20000 /* no test needs more */

static int prev_rank(void)
{
    return (my.rank + my.ranks - 1) % my.ranks;
}

/* All ranks, with a deadline that passes soon. */
static dscomm_group_t *short_lived_group(void)
{
    dscomm_group_attr_t attr = DSCOMM_GROUP_ATTR_INIT;
    dscomm_group_t *group = NULL;

    attr.timeout_ms = DEADLINE_MS;
    CHECK_OK(dscomm_group_split(my.group, 0, 0, &attr, &group));
    return group;
}

/* The group's deadline holds for a work that is tested, and never waited
 * for. */
static void test_polled(void)
{
    dscomm_group_t *group = short_lived_group();
    dscomm_status_t status = DSCOMM_IN_PROGRESS;
    dscomm_work_t *work = NULL;
    double start = conform_now_ms();
    int32_t in;

    if (!group)
        return;
    CHECK_OK(dscomm_irecv(group, &in, 1, DSCOMM_INT32, prev_rank(), 1, &work));
    while (status == DSCOMM_IN_PROGRESS && conform_now_ms() - start < LONG_MS) {
        status = dscomm_work_test(work);
        conform_pause(1);
    }
    check_status(status, DSCOMM_ERR_TIMEOUT, "a receive that is only tested");
    check(conform_now_ms() - start > DEADLINE_MS / 2.0, "%.0f ms",
          conform_now_ms() - start);
    dscomm_work_free(work);
    CHECK_OK(dscomm_group_free(group));
}

static const conform_test_t tests[] = {
    {"a work that is only tested has the group's deadline", test_polled},
    {NULL, NULL},
};
const conform_area_t conform_receives = {"receives", tests};
