/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls of a store, for the phases of trials. */
#include "config.h"

#include "tests/backends/trials.h"

dscomm_status_t trials_use_store(const char *url, int serves)
{
    static const char *const keys[] = {"a", "b"};
    static char large[6000];
    dscomm_store_attr_t attr = DSCOMM_STORE_ATTR_INIT;
    dscomm_store_t *store = NULL, *view = NULL;
    dscomm_status_t status;
    void *values[2] = {NULL}, *value = NULL;
    size_t sizes[2];
    int64_t number;
    int yes;

    attr.serve = serves;
    attr.timeout_ms = 3000;
    status = dscomm_store_open(url, &attr, &store);
    THEN(dscomm_store_prefix(store, "p", &view));
    THEN(dscomm_store_set(view, "a", large, sizeof large));
    THEN(dscomm_store_append(view, "b", "x", 1));
    THEN(dscomm_store_add(view, "n", 1, &number));
    THEN(dscomm_store_compare_set(view, "c", "", 0, "y", 1, &value, sizes));
    dscomm_store_free(value);
    value = NULL;
    THEN(dscomm_store_get(view, "a", 1000, &value, sizes));
    dscomm_store_free(value);
    THEN(dscomm_store_multi_get(view, keys, 2, 1000, values, sizes));
    for (int i = 0; i < 2; i++)
        dscomm_store_free(values[i]);
    THEN(dscomm_store_check(view, keys, 2, &yes));
    THEN(dscomm_store_delete(view, "a", &yes));
    THEN(dscomm_store_num_keys(view, &number));
    dscomm_store_close(view);
    dscomm_store_close(store);
    return status;
}
