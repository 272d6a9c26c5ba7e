/* SPDX-License-Identifier: BSD-3-Clause */
/* Why a group cannot be made: the first rank that knows puts its sentence into
 * the group's store, and whoever is about to blame another looks there. */
#include "config.h"

#include "backends/shm/connect.h"

#include <stdlib.h>
#include <string.h>

#include <glib.h>

#define KEY "failed"

/* A sentence from the store: "STATUS\nTEXT". */
static dscomm_status_t repeat_failure(const char *value, dscomm_status_t status)
{
    char *end;
    long number = strtol(value, &end, 10);

    if (number >= 0 || number < -1000 || *end != '\n')
        return status;
    return dscomm_fail((dscomm_status_t)number, "%.*s", SHM_TEXT - 1, end + 1);
}

dscomm_status_t shm_failure_settle(dscomm_store_t *store,
                                   dscomm_status_t status)
{
    bool blames = status == DSCOMM_ERR_PEER_FAILED ||
                  status == DSCOMM_ERR_TIMEOUT || status == DSCOMM_ERR_IO;
    char *sentence = g_strdup(dscomm_last_error());
    char *own =
        g_strdup_printf("%d\n%.*s", (int)status, SHM_TEXT - 1, sentence);
    void *value = NULL;
    size_t size = 0;
    dscomm_status_t stored = dscomm_store_compare_set(
        store, KEY, "", 0, own, strlen(own), &value, &size);

    dscomm_fail(status, "%s", sentence);
    if (!stored && blames)
        status = repeat_failure(value, status);
    if (!stored)
        dscomm_store_free(value);
    g_free(own);
    g_free(sentence);
    return status;
}

dscomm_status_t shm_failure_look(dscomm_store_t *store)
{
    const char *key = KEY;
    dscomm_status_t status;
    int present = 0;
    void *value;
    size_t size;

    if (dscomm_store_check(store, &key, 1, &present) || !present ||
        dscomm_store_get(store, key, DSCOMM_TIMEOUT_DEFAULT, &value, &size))
        return DSCOMM_OK;
    status = repeat_failure(value, DSCOMM_OK);
    dscomm_store_free(value);
    return status;
}
