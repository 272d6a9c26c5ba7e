/* SPDX-License-Identifier: BSD-3-Clause */
/* A rank that needs no backend: the ranks of an attempt exchange their numbers
 * through a store, and wait for each other there. The launcher or rank 0 serves
 * the store. keys.py does the same with torch. */
#include "config.h"

#include <dscomm/status.h>
#include <dscomm/store.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TIMEOUT_MS 20000

static const char *variable(const char *name)
{
    const char *text = getenv(name);

    if (text)
        return text;
    fprintf(stderr, "keys: %s is not set\n", name);
    exit(2);
}

static void open_store(dscomm_store_t **ret_store)
{
    dscomm_store_attr_t attr = DSCOMM_STORE_ATTR_INIT;
    const char *host = variable("MASTER_ADDR");
    char url[512], prefix[512];
    dscomm_store_t *base;

    attr.timeout_ms = TIMEOUT_MS;
    attr.serve = strcmp(variable("TORCHELASTIC_USE_AGENT_STORE"), "True") &&
                 !strcmp(variable("RANK"), "0");
    snprintf(url, sizeof url,
             strchr(host, ':') ? "tcp://[%s]:%s" : "tcp://%s:%s", host,
             variable("MASTER_PORT"));
    snprintf(prefix, sizeof prefix, "keys/%s/%s",
             variable("TORCHELASTIC_RUN_ID"),
             variable("TORCHELASTIC_RESTART_COUNT"));
    DSCOMM_CHECK(dscomm_store_open(url, &attr, &base));
    DSCOMM_CHECK(dscomm_store_prefix(base, prefix, ret_store));
    dscomm_store_close(base);
}

static int sum_all(dscomm_store_t *store, int size)
{
    int sum = 0;

    for (int i = 0; i < size; i++) {
        char key[32];
        void *value;
        size_t length;

        snprintf(key, sizeof key, "rank/%d", i);
        DSCOMM_CHECK(dscomm_store_get(store, key, TIMEOUT_MS, &value, &length));
        sum += atoi(value);
        dscomm_store_free(value);
    }
    return sum;
}

/* The last rank releases all others; rank 0, which may serve the store, leaves
 * last. */
static void await_all(dscomm_store_t *store, int rank, int size)
{
    const char *key = "all";
    int64_t count;

    DSCOMM_CHECK(dscomm_store_add(store, "count", 1, &count));
    if (count == size)
        DSCOMM_CHECK(dscomm_store_set(store, key, "", 0));
    DSCOMM_CHECK(dscomm_store_wait(store, &key, 1, TIMEOUT_MS));
    DSCOMM_CHECK(dscomm_store_add(store, "gone", 1, &count));
    for (int i = 0; i < TIMEOUT_MS / 10 && count < size && !rank; i++) {
        usleep(10000);
        DSCOMM_CHECK(dscomm_store_add(store, "gone", 0, &count));
    }
}

int main(void)
{
    const char *rank = variable("RANK");
    const int size = atoi(variable("WORLD_SIZE"));
    dscomm_store_t *store;
    char key[64];

    open_store(&store);
    snprintf(key, sizeof key, "rank/%s", rank);
    DSCOMM_CHECK(dscomm_store_set(store, key, rank, strlen(rank)));
    int sum = sum_all(store, size);
    await_all(store, atoi(rank), size);
    printf("rank %s of %d on node %s: %d\n", rank, size, variable("GROUP_RANK"),
           sum);
    dscomm_store_close(store);
    return 0;
}
