/* SPDX-License-Identifier: BSD-3-Clause */
/* The descriptor for event loops: which events make it readable, and which do
 * not. */
#include "config.h"

#include "tests/backends/conform.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LIMIT_MS 20000
#define DEADLINE_MS 600 /* or more, see conform_group_within() */
#define LATE_TRIES 5

/* Returns the descriptor of the test's group; or -1, and skips the test, if
 * only the program's own calls make progress. */
static int open_fd(void)
{
    int fd = -1;

    if (dscomm_group_capabilities(my.group) & DSCOMM_CAP_CALLER_PROGRESS) {
        CHECK_FAILS(dscomm_group_fd(my.group, &fd), DSCOMM_ERR_UNSUPPORTED);
        conform_skip("only the program's own calls make progress");
        return -1;
    }
    CHECK_OK(dscomm_group_fd(my.group, &fd));
    return fd;
}

static int is_readable(int fd, int timeout_ms)
{
    struct pollfd poller = {.fd = fd, .events = POLLIN};

    return poll(&poller, 1, timeout_ms) == 1 && poller.revents == POLLIN;
}

static void drain(int fd)
{
    uint64_t count = 0;

    check(read(fd, &count, sizeof count) == sizeof count && count > 0,
          "read: %s", strerror(errno));
}

/* Sleeps until the works are complete: the loop of the manual page. */
static void loop(int fd, dscomm_work_t **works, int count)
{
    int left = count;

    while (left) {
        if (!check(is_readable(fd, LIMIT_MS), "%d of %d works do not come",
                   left, count))
            return;
        drain(fd);
        for (int i = 0; i < count; i++) {
            dscomm_status_t status;

            if (!works[i] ||
                (status = dscomm_work_test(works[i])) == DSCOMM_IN_PROGRESS)
                continue;
            check_status(status, DSCOMM_OK, "work %d", i);
            dscomm_work_free(works[i]);
            works[i] = NULL;
            left--;
        }
    }
}

/* Only the library's thread makes progress: rank 0 sleeps, and the others send
 * late, also long messages. */
static void test_messages(void)
{
    enum { BYTES = 700000 };
    static char in[64][BYTES], out[BYTES];
    dscomm_work_t *works[64] = {NULL};
    int fd = open_fd(), own = my.rank;

    if (fd < 0)
        return;
    memset(out, own + 1, BYTES);
    if (own) {
        conform_pause(50 * own);
        CHECK_OK(dscomm_isend(my.group, out, own % 2 ? BYTES : 10, DSCOMM_INT8,
                              0, own, &works[0]));
        loop(fd, works, 1);
        return;
    }
    for (int r = 1; r < my.ranks; r++)
        CHECK_OK(dscomm_irecv(my.group, in[r], BYTES, DSCOMM_INT8, r, r,
                              &works[r - 1]));
    loop(fd, works, my.ranks - 1);
    for (int r = 1; r < my.ranks; r++)
        check(in[r][0] == r + 1 && in[r][9] == r + 1, "message of rank %d", r);
}

static void test_collectives(void)
{
    enum { MANY = 8 };
    dscomm_work_t *works[MANY];
    int32_t sums[MANY], ranks[MANY];
    int fd = open_fd();

    if (fd < 0)
        return;
    for (int i = 0; i < MANY; i++) {
        ranks[i] = my.rank + i;
        CHECK_OK(dscomm_all_reduce(my.group, &ranks[i], &sums[i], 1,
                                   DSCOMM_INT32, DSCOMM_SUM, &works[i]));
    }
    loop(fd, works, MANY);
    for (int i = 0; i < MANY; i++)
        check(sums[i] == my.ranks * (my.ranks - 1) / 2 + i * my.ranks,
              "sum %d is %d", i, sums[i]);
}

/* Blocking calls do not make it readable, nor do works that were freed. */
static void test_blocking(void)
{
    dscomm_work_t *work = NULL;
    int fd = open_fd(), again = -1;

    if (fd < 0)
        return;
    CHECK_OK(dscomm_group_fd(my.group, &again));
    check(fd == again, "the second descriptor is %d, not %d", again, fd);
    for (int i = 0; i < 20; i++)
        CHECK_OK(dscomm_barrier(my.group, NULL));
    CHECK_OK(dscomm_monitored_barrier(my.group, LIMIT_MS));
    check(!is_readable(fd, 0), "blocking calls make it readable");
    CHECK_FAILS(dscomm_group_fd(my.group, NULL), DSCOMM_ERR_INVALID);
    CHECK_FAILS(dscomm_group_fd(NULL, &again), DSCOMM_ERR_INVALID);
    CHECK_OK(dscomm_barrier(my.group, &work));
    loop(fd, &work, 1);
    check(!is_readable(fd, 0), "it is readable after it was read");
}

/* The last rank aborts. Ranks that wait for a work, and ranks that wait for
 * nothing, are notified. */
static void run_failure(int with_work)
{
    dscomm_work_t *work = NULL;
    int32_t value;
    int fd = open_fd();

    if (fd < 0)
        return;
    if (with_work)
        CHECK_OK(
            dscomm_irecv(my.group, &value, 1, DSCOMM_INT32, my.rank, 1, &work));
    CHECK_OK(dscomm_barrier(my.world, NULL));
    if (my.rank == my.ranks - 1) {
        conform_pause(100);
        CHECK_OK(dscomm_group_abort(my.group, "enough"));
    }
    check(is_readable(fd, LIMIT_MS), "the failure is not told");
    CHECK_FAILS(dscomm_group_status(my.group), DSCOMM_ERR_ABORTED);
    check_sentence("enough", "the reason");
    if (work)
        CHECK_FAILS(dscomm_work_wait(work, -1), DSCOMM_ERR_ABORTED);
    dscomm_work_free(work);
}

static void test_closed(void)
{
    dscomm_group_t *group;
    int fd = open_fd();

    if (fd < 0)
        return;
    CHECK_OK(dscomm_group_split(my.group, 0, my.rank, NULL, &group));
    CHECK_OK(dscomm_group_fd(group, &fd));
    CHECK_OK(dscomm_group_free(group));
    check(fcntl(fd, F_GETFD) < 0 && errno == EBADF, "it is still open");
}

/* Makes a group whose deadline passes soon, and returns its descriptor and
 * deadline; NULL: the test is over. */
static dscomm_group_t *open_short_lived(int *ret_fd, int *ret_ms)
{
    dscomm_group_t *group = NULL;

    *ret_ms = DEADLINE_MS;
    if (open_fd() >= 0)
        group = conform_group_within(ret_ms);
    if (group)
        CHECK_OK(dscomm_group_fd(group, ret_fd));
    return group;
}

/* Closes the group; no rank leaves while another one still waits for it. */
static void close_short_lived(dscomm_group_t *group)
{
    CHECK_OK(dscomm_barrier(my.group, NULL));
    CHECK_OK(dscomm_group_free(group));
}

/* No rank waits or tests: the library's thread detects that the deadline has
 * passed. */
static void test_deadline(void)
{
    dscomm_work_t *work = NULL;
    int fd = -1, deadline_ms;
    dscomm_group_t *group = open_short_lived(&fd, &deadline_ms);
    double start = conform_now_ms();
    char words[64];
    int32_t in;

    if (!group)
        return;
    CHECK_OK(dscomm_irecv(group, &in, 1, DSCOMM_INT32, prev_rank(), 1, &work));
    check(is_readable(fd, LIMIT_MS), "the deadline is not told");
    check(conform_now_ms() - start > deadline_ms / 2.0, "%.0f ms",
          conform_now_ms() - start);
    CHECK_FAILS(dscomm_group_status(group), DSCOMM_ERR_TIMEOUT);
    check_status(dscomm_work_test(work), DSCOMM_ERR_TIMEOUT, "the receive");
    snprintf(words, sizeof words, "made no progress for %d ms", deadline_ms);
    check_sentence(words, "the receive");
    dscomm_work_free(work);
    close_short_lived(group);
}

/* Rank 0 does not call: the others learn which rank is late. Returns 1 if they
 * did, or if the test is over. */
static int name_late_rank(int last)
{
    dscomm_work_t *work = NULL;
    int fd = -1, deadline_ms, named = 1;
    dscomm_group_t *group = open_short_lived(&fd, &deadline_ms);

    if (!group)
        return 1;
    if (my.rank)
        CHECK_OK(dscomm_barrier(group, &work));
    if (my.ranks > 1)
        check(is_readable(fd, LIMIT_MS), "the deadline is not told");
    if (work) {
        check_status(dscomm_work_test(work), DSCOMM_ERR_TIMEOUT, "barrier");
        named = strstr(dscomm_last_error(), "rank 0") != NULL;
        if (!named && last)
            check_sentence("rank 0", "who is late");
    }
    dscomm_work_free(work);
    close_short_lived(group);
    return conform_agree(named);
}

/* On a busy machine the store may answer too late for the sentence to name the
 * rank, so the test is repeated. */
static void test_late_rank(void)
{
    for (int i = 1; i <= LATE_TRIES; i++)
        if (name_late_rank(i == LATE_TRIES))
            return;
}

/* A receive with its own deadline ends alone; a receive without a deadline goes
 * on after the group's. */
static void test_own_deadline(void)
{
    dscomm_work_t *soon = NULL, *never = NULL;
    int fd = -1, deadline_ms;
    dscomm_group_t *group = open_short_lived(&fd, &deadline_ms);
    dscomm_status_t status;
    int32_t in[2];

    if (!group)
        return;
    CHECK_OK(
        dscomm_irecv(group, &in[0], 1, DSCOMM_INT32, prev_rank(), 1, &never));
    status = dscomm_work_set_timeout(never, DSCOMM_TIMEOUT_NONE);
    CHECK_OK(
        dscomm_irecv(group, &in[1], 1, DSCOMM_INT32, prev_rank(), 2, &soon));
    if (status == DSCOMM_OK)
        status = dscomm_work_set_timeout(soon, 80);
    if (status == DSCOMM_ERR_UNSUPPORTED) {
        conform_skip("the backend cannot take back a receive");
    } else if (check_status(status, DSCOMM_OK, "set_timeout")) {
        check(is_readable(fd, LIMIT_MS), "its own deadline is not told");
        drain(fd);
        check_status(dscomm_work_test(soon), DSCOMM_ERR_TIMEOUT, "80 ms");
        check(!is_readable(fd, 2 * deadline_ms), "the group's deadline passes");
        CHECK_OK(dscomm_group_status(group));
        check_status(dscomm_work_test(never), DSCOMM_IN_PROGRESS, "no time");
    }
    dscomm_work_free(soon);
    dscomm_work_free(never);
    close_short_lived(group);
}

static const conform_case_t cases[] = {
    {"an abort does, with a work", run_failure, 1},
    {"an abort does, without", run_failure, 0},
    {NULL, NULL, 0},
};
static const conform_test_t tests[] = {
    {"messages wake a loop", test_messages},
    {"collectives wake a loop", test_collectives},
    {"blocking calls do not", test_blocking},
    {"the group closes it", test_closed},
    {"a deadline passes in a loop's sleep", test_deadline},
    {"and a late rank is named", test_late_rank},
    {"and a receive keeps its own", test_own_deadline},
    {NULL, NULL},
};
const conform_area_t conform_events = {"events", cases, tests};
