/* SPDX-License-Identifier: BSD-3-Clause */
/* The missing ranks in a sentence, with a store and a clock of the test: each
 * query takes as long as a case says. And members that meet, all in this
 * process. */
#include "config.h"

#include "lib/rendezvous/join.h"
#include "lib/rendezvous/roster.h"

#include "lib/base/clock.h"
#include "tests/tap.h"

#include <string.h>

#define FIRST_32                                                               \
    "2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, " \
    "22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33"

typedef struct {
    /* number of ranks, of which the first `present` have come */
    int size, present;
    int look_ms; /* time of one query */
    int broken; /* the query for this rank fails; -1: none */
    dscomm_status_t status;
    int came;
    const char *sentence;
} case_t;

static const case_t cases[] = {
    {4, 4, 0, -1, DSCOMM_OK, 4, ""},
    {3, 2, 0, -1, DSCOMM_ERR_TIMEOUT, 2,
     "rank 2 of 3 did not come within 3.0 s"},
    {34, 2, 0, -1, DSCOMM_ERR_TIMEOUT, 2,
     "ranks " FIRST_32 " of 34 did not come within 3.0 s"},
    {35, 2, 0, -1, DSCOMM_ERR_TIMEOUT, 2,
     "ranks " FIRST_32 " and others of 35 did not come within 3.0 s"},
    /* Half a second is enough for five, three and two ranks. */
    {100, 2, 100, -1, DSCOMM_ERR_TIMEOUT, 2,
     "ranks 2, 3, 4 of 100 (the others were not all checked) did not come "
     "within 3.0 s"},
    {100, 2, 200, -1, DSCOMM_ERR_TIMEOUT, 2,
     "rank 2 of 100 (the others were not all checked) did not come within 3.0 "
     "s"},
    {100, 2, 300, -1, DSCOMM_ERR_TIMEOUT, 2,
     "not all 100 ranks came within 3.0 s"},
    {100, 2, 0, 3, DSCOMM_ERR_NO_MEMORY, 2, NULL},
};

static const case_t *now_case; /* NULL: the store and the clock are real. */
static int64_t now_ns;

/* Visible: a libc without versions of symbols lets GLib refer to it, too. */
__attribute__((visibility("default"))) int
__wrap_clock_gettime(clockid_t id, struct timespec *now);
int __real_clock_gettime(clockid_t id, struct timespec *now);
dscomm_status_t __real_dscomm_store_check(dscomm_store_t *store,
                                          const char *const *keys, size_t count,
                                          int *present);
dscomm_status_t __wrap_dscomm_store_check(dscomm_store_t *store,
                                          const char *const *keys, size_t count,
                                          int *present);

int __wrap_clock_gettime(clockid_t id, struct timespec *now)
{
    if (!now_case)
        return __real_clock_gettime(id, now);
    now->tv_sec = (time_t)(now_ns / (1000 * NS_PER_MS));
    now->tv_nsec = (long)(now_ns % (1000 * NS_PER_MS));
    return 0;
}

dscomm_status_t __wrap_dscomm_store_check(dscomm_store_t *store,
                                          const char *const *keys, size_t count,
                                          int *present)
{
    const int rank = atoi(keys[0] + strlen("came/"));

    if (!now_case)
        return __real_dscomm_store_check(store, keys, count, present);
    now_ns += now_case->look_ms * NS_PER_MS;
    *present = rank < now_case->present;
    return rank == now_case->broken ? DSCOMM_ERR_NO_MEMORY : DSCOMM_OK;
}

static void check_case(const case_t *one)
{
    int came = -1;

    now_case = one;
    is_int(dscomm_priv_missing_ranks(NULL, "came/", one->size, 3000, &came),
           one->status, "%d of %d ranks, %d ms a look", one->present, one->size,
           one->look_ms);
    is_int(came, one->came, "  so many came");
    if (one->status == DSCOMM_ERR_TIMEOUT)
        is_str(dscomm_last_error(), one->sentence, "  the sentence");
}

/* Three members, which this process plays one after the other. */
typedef struct {
    dscomm_roster_t roster;
    dscomm_status_t looked, took; /* results of look and of take */
    int looks;
    char taken[64]; /* the records, in the order in which they were taken */
} members_t;

/* The last member comes during the first member's look. */
static dscomm_status_t look(void *arg)
{
    members_t *members = arg;
    dscomm_roster_t last = members->roster;

    last.own = 2;
    if (!members->looks++ && !members->looked)
        dscomm_priv_roster_put(&last, "c");
    return members->looked;
}

static dscomm_status_t take(void *arg, int member, const void *value,
                            size_t size)
{
    members_t *members = arg;
    const size_t used = strlen(members->taken);

    snprintf(members->taken + used, sizeof members->taken - used, "%d%.*s ",
             member, (int)size, (const char *)value);
    return members->took;
}

static dscomm_status_t collect(members_t *members)
{
    dscomm_roster_wait_t wait = {1, 1, look, members};

    members->looks = 0;
    *members->taken = '\0';
    return dscomm_priv_roster_collect(&members->roster, &wait, take);
}

static bool is_first(const char *other, const char *token)
{
    return !strcmp(other, "first") && !strcmp(token, "third");
}

static void check_claim(const dscomm_roster_t *roster)
{
    char *other;

    dscomm_priv_roster_claim(roster, "first", NULL, &other);
    is_str(other, NULL, "the first process has the number");
    dscomm_priv_roster_claim(roster, "first", NULL, &other);
    is_str(other, NULL, "and may claim it again");
    dscomm_priv_roster_claim(roster, "second", is_first, &other);
    is_str(other, "first", "another one is told who has it");
    free(other);
    dscomm_priv_roster_claim(roster, "third", is_first, &other);
    is_str(other, NULL, "but one that may replaces it");
    dscomm_priv_roster_claim(roster, "first", NULL, &other);
    is_str(other, "third", "who has the number then");
    free(other);
}

static void check_records(members_t *members)
{
    dscomm_roster_t *roster = &members->roster;
    char *names;
    int came;

    for (roster->own = 0; roster->own < 2; roster->own++)
        dscomm_priv_roster_put(roster, roster->own ? "b" : "a");
    roster->own = 0;
    dscomm_priv_roster_missing(roster->store, roster->record, 3, "node", &names,
                               &came);
    is_str(names, "node 2 of 3", "who is missing");
    is_int(came, 2, "and how many have come");
    free(names);
    roster->deadline = dscomm_priv_clock();
    is_int(collect(members), DSCOMM_ERR_TIMEOUT, "the deadline has passed");
    is_int(members->looks, 0, "  so nobody looks around");
    roster->deadline = dscomm_priv_clock_after(dscomm_priv_clock(), 60000);
    members->looked = DSCOMM_ERR_PEER_FAILED;
    is_int(collect(members), DSCOMM_ERR_PEER_FAILED, "a look ends the wait");
    members->looked = DSCOMM_OK;
    is_int(collect(members), DSCOMM_OK, "all members come");
    is_int(members->looks, 1, "  while the first one looks around");
    is_str(members->taken, "0a 1b 2c ", "  whose records are taken in order");
    members->took = DSCOMM_ERR_PROTOCOL;
    is_int(collect(members), DSCOMM_ERR_PROTOCOL, "a bad record ends that");
    is_str(members->taken, "0a ", "  at once");
}

static void check_decision(const dscomm_roster_t *roster, const char *text,
                           bool failed)
{
    dscomm_roster_wait_t wait = {.slice_ms = 1000};
    void *value = NULL;
    int64_t read = -1;
    size_t size;

    is_int(dscomm_priv_roster_publish(roster, text, 0), DSCOMM_OK,
           "a decision is published");
    dscomm_priv_roster_await_decision(roster, dscomm_priv_clock(), &wait,
                                      &value, &size);
    is_str(value, text, "  and read");
    is_int(dscomm_priv_roster_failed(roster, value), failed,
           "  whether it is a failure");
    dscomm_store_add(roster->store, roster->read, 0, &read);
    is_int(read, failed, "  which alone is told to have been read");
    dscomm_store_free(value);
}

static void check_members(void)
{
    members_t members = {
        .roster = {
            .count = 3, .record = "node/", .decision = "plan", .read = "bye"}};

    if (dscomm_store_open("memory://", NULL, &members.roster.store))
        bail("%s", dscomm_last_error());
    check_claim(&members.roster);
    check_records(&members);
    check_decision(&members.roster, "ok\nplan", false);
    check_decision(&members.roster, ROSTER_FAILURE "why", true);
    dscomm_store_close(members.roster.store);
}

int main(void)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_case(&cases[i]);
    now_case = NULL;
    check_members();
    return tap_done();
}
