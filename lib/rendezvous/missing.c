/* SPDX-License-Identifier: BSD-3-Clause */
#include "config.h"

#include "lib/rendezvous/missing.h"

#include "lib/base/clock.h"
#include "lib/base/status.h"
#include "lib/store/store.h"

#include <glib.h>
#include <stdio.h>

/* How many a sentence names, and how long they are looked for. */
#define NAMES_MAX 32
#define COUNT_MS 500

typedef struct {
    GString *ranks; /* the numbers of the first that are missing */
    int missing, came;
} count_t;

static dscomm_status_t look_for(dscomm_store_t *store, const char *prefix,
                                int rank, count_t *count)
{
    char name[32];
    const char *key = name;
    int present = 0;
    dscomm_status_t status;

    snprintf(name, sizeof name, "%s%d", prefix, rank);
    status = dscomm_store_check(store, &key, 1, &present);
    if (status < 0)
        return status;
    count->came += present;
    if (!present && count->missing++ < NAMES_MAX)
        g_string_append_printf(count->ranks, "%s%d",
                               count->missing > 1 ? ", " : "", rank);
    return DSCOMM_OK;
}

static dscomm_status_t fail(const count_t *count, int size, int timeout_ms)
{
    const char *more = count->missing > NAMES_MAX ? " and others"
                       : count->missing + count->came < size
                           ? " and perhaps others"
                           : "";

    if (!count->missing)
        return dscomm_fail(DSCOMM_ERR_TIMEOUT,
                           "not all %d ranks came within %.1f s", size,
                           timeout_ms / 1000.0);
    return dscomm_fail(DSCOMM_ERR_TIMEOUT,
                       "rank%s %s%s of %d did not come within %.1f s",
                       count->missing > 1 ? "s" : "", count->ranks->str, more,
                       size, timeout_ms / 1000.0);
}

dscomm_status_t dscomm_priv_absent_name(dscomm_store_t *store,
                                        const char *prefix, int size,
                                        int timeout_ms, int *ret_came)
{
    const int64_t end = dscomm_priv_clock_after(dscomm_priv_clock(), COUNT_MS);
    count_t count = {.ranks = g_string_new(NULL)};
    dscomm_status_t status = DSCOMM_OK;

    for (int i = 0; i < size && status == DSCOMM_OK; i++) {
        if (dscomm_priv_clock() >= end)
            break;
        status = look_for(store, prefix, i, &count);
    }
    if (status == DSCOMM_OK && count.came < size)
        status = fail(&count, size, timeout_ms);
    g_string_free(count.ranks, TRUE);
    *ret_came = count.came;
    return status;
}

dscomm_status_t dscomm_priv_absent_members(const dscomm_join_t *join,
                                           dscomm_store_t *store, int *ret_came)
{
    char missing[DSCOMM_ERROR_MAX], refused[DSCOMM_ERROR_MAX];
    dscomm_status_t status = dscomm_priv_absent_name(
        store, "r/", join->size, join->timeout_ms, ret_came);

    if (status != DSCOMM_ERR_TIMEOUT || !join->url)
        return status;
    g_strlcpy(missing, dscomm_last_error(), sizeof missing);
    if (!dscomm_priv_refused_fail(dscomm_priv_store_refused(store), true))
        return dscomm_fail(status,
                           "%s; the ranks meet at %s: check that each was "
                           "started, was given this address, and can reach it",
                           missing, join->url);
    g_strlcpy(refused, dscomm_last_error(), sizeof refused);
    return dscomm_fail(DSCOMM_ERR_MISMATCH, "%s; %s", missing, refused);
}

void dscomm_priv_absent_linger(dscomm_store_t *store, const char *key,
                               int readers)
{
    int64_t end = dscomm_priv_clock_after(dscomm_priv_clock(),
                                          2 * DSCOMM_ABSENT_GRACE_MS),
            seen = 0;

    while (dscomm_priv_clock() < end) {
        if (dscomm_store_add(store, key, 0, &seen) < 0 || seen >= readers)
            return;
        g_usleep(2000);
    }
}
