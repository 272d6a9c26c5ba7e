/* SPDX-License-Identifier: BSD-3-Clause */
/* The missing ranks that a sentence names, on a store and a clock of the test:
 * each look into the store takes as long as a case says. */
#include "config.h"

#include "lib/rendezvous/join.h"

#include "lib/base/clock.h"
#include "tests/tap.h"

#define FIRST_32                                                               \
    "2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, " \
    "22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33"

typedef struct {
    int size, present; /* ranks, of which the first ones are there */
    int look_ms; /* that one look takes */
    int broken; /* the look at this rank fails; -1 none */
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
    /* Half a second suffices for five, three and two ranks. */
    {100, 2, 100, -1, DSCOMM_ERR_TIMEOUT, 2,
     "ranks 2, 3, 4 and perhaps others of 100 did not come within 3.0 s"},
    {100, 2, 200, -1, DSCOMM_ERR_TIMEOUT, 2,
     "rank 2 and perhaps others of 100 did not come within 3.0 s"},
    {100, 2, 300, -1, DSCOMM_ERR_TIMEOUT, 2,
     "not all 100 ranks came within 3.0 s"},
    {100, 2, 0, 3, DSCOMM_ERR_NO_MEMORY, 2, NULL},
};

static const case_t *now_case;
static int64_t now_ns;

int __wrap_clock_gettime(clockid_t id, struct timespec *now);
dscomm_status_t __wrap_dscomm_store_check(dscomm_store_t *store,
                                          const char *const *keys, size_t count,
                                          int *present);

int __wrap_clock_gettime(clockid_t id, struct timespec *now)
{
    (void)id;
    now->tv_sec = (time_t)(now_ns / (1000 * NS_PER_MS));
    now->tv_nsec = (long)(now_ns % (1000 * NS_PER_MS));
    return 0;
}

dscomm_status_t __wrap_dscomm_store_check(dscomm_store_t *store,
                                          const char *const *keys, size_t count,
                                          int *present)
{
    const int rank = atoi(keys[0] + strlen("came/"));

    (void)store;
    (void)count;
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

int main(void)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_case(&cases[i]);
    return tap_done();
}
