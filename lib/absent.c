/* SPDX-License-Identifier: BSD-3-Clause */
#include "config.h"

#include "lib/absent.h"

#include "lib/clock.h"
#include "lib/status.h"

#include <glib.h>
#include <stdio.h>

/* How many a sentence names, and how long they are looked for. */
#define NAMES_MAX 32
#define COUNT_MS 500

dscomm_status_t dscomm_priv_absent_name(dscomm_store_t *store,
                                        const char *prefix, int size,
                                        int timeout_ms, int *ret_came)
{
    const int64_t end = dscomm_priv_clock_after(dscomm_priv_clock(), COUNT_MS);
    GString *ranks = g_string_new(NULL);
    char name[32];
    const char *key = name;
    int missing = 0, i;
    dscomm_status_t status = DSCOMM_OK;

    for (i = 0; i < size && status == DSCOMM_OK && dscomm_priv_clock() < end;
         i++) {
        int present = 0;

        snprintf(name, sizeof name, "%s%d", prefix, i);
        status = dscomm_store_check(store, &key, 1, &present);
        if (status == DSCOMM_OK && !present && missing++ < NAMES_MAX)
            g_string_append_printf(ranks, "%s%d", missing > 1 ? ", " : "", i);
    }
    if (missing > NAMES_MAX || i < size)
        g_string_append(ranks, " and others");
    if (status == DSCOMM_OK && missing)
        status = dscomm_fail(
            DSCOMM_ERR_TIMEOUT, "rank%s %s of %d did not come within %.1f s",
            missing > 1 ? "s" : "", ranks->str, size, timeout_ms / 1000.0);
    g_string_free(ranks, TRUE);
    *ret_came = size - missing;
    return status;
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
