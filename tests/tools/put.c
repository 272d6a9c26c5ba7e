/* SPDX-License-Identifier: BSD-3-Clause */
/* A stranger at a job's store: put URL KEY VALUE; without VALUE it waits for
 * the key. */
#include "config.h"

#include <dscomm/status.h>
#include <dscomm/store.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
    dscomm_store_attr_t attr = DSCOMM_STORE_ATTR_INIT;
    dscomm_store_t *store;

    if (argc != 3 && argc != 4) {
        fprintf(stderr, "Usage: put URL KEY [VALUE]\n");
        return 2;
    }
    attr.timeout_ms = 20000;
    DSCOMM_CHECK(dscomm_store_open(argv[1], &attr, &store));
    if (argc == 4)
        DSCOMM_CHECK(
            dscomm_store_set(store, argv[2], argv[3], strlen(argv[3])));
    else
        DSCOMM_CHECK(dscomm_store_wait(store, (const char *const *)&argv[2], 1,
                                       attr.timeout_ms));
    dscomm_store_close(store);
    return 0;
}
