/* SPDX-License-Identifier: BSD-3-Clause */
/* The store as a queue of tasks, for processes that need no group.
 *
 *     dscomm run -n 4 store      in the store that dscomm run serves
 *     store URL PROCESSES        serves a store for so many processes
 *     store URL                  each of the others, at the same address
 *
 * such as tcp://127.0.0.1:29500.
 *
 * A task is to square a number, from 1 to TASKS. The first process that finds
 * no task left is the leader: it adds up the squares and publishes the sum. */
#include <dscomm/dscomm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TASKS = 100, SUM = TASKS * (TASKS + 1) * (2 * TASKS + 1) / 6 };

/* Waits for the key, and returns the number there; 0 if it is none. */
static int64_t get(dscomm_store_t *store, const char *key)
{
    int64_t number = 0;
    void *value;
    size_t size;

    DSCOMM_CHECK(
        dscomm_store_get(store, key, DSCOMM_TIMEOUT_DEFAULT, &value, &size));
    if (size == sizeof number)
        memcpy(&number, value, size);
    dscomm_store_free(value);
    return number;
}

/* Does tasks until none is left, and returns how many. */
static int work(dscomm_store_t *store)
{
    char key[32];
    int64_t task; /* no other process gets the same */

    for (int done = 0;; done++) {
        DSCOMM_CHECK(dscomm_store_add(store, "tasks", 1, &task));
        if (task > TASKS)
            return done;
        snprintf(key, sizeof key, "square/%d", (int)task);
        task *= task;
        DSCOMM_CHECK(dscomm_store_set(store, key, &task, sizeof task));
    }
}

/* Returns whether this process is the leader: the first number stored is its.
 */
static int is_leader(dscomm_store_t *store, int64_t number)
{
    void *leader;
    size_t size;

    DSCOMM_CHECK(dscomm_store_compare_set(store, "leader", NULL, 0, &number,
                                          sizeof number, &leader, &size));
    int same = size == sizeof number && !memcmp(leader, &number, size);
    dscomm_store_free(leader);
    return same;
}

int main(int argc, char **argv)
{
    const char *host = getenv("MASTER_ADDR"), *port = getenv("MASTER_PORT");
    dscomm_store_attr_t attr = DSCOMM_STORE_ATTR_INIT;
    dscomm_store_t *store;
    char text[256] = "", *end = text;
    long processes = argc > 2 ? strtol(argv[2], &end, 10) : 0;
    int64_t me, sum = 0;

    if (argc > 3 || *end || processes < (argc > 2) || processes > 1024) {
        fputs("usage: store [URL [PROCESSES]]\n", stderr);
        return 2;
    }
    if (host && port)
        snprintf(text, sizeof text, "tcp://%s:%s", host, port);
    attr.serve = processes > 0;
    DSCOMM_CHECK(dscomm_store_open(argc > 1 ? argv[1] : text, &attr, &store));
    DSCOMM_CHECK(dscomm_store_add(store, "processes", 1, &me));
    printf("process %d: %d tasks\n", (int)me, work(store));
    if (is_leader(store, me)) {
        for (int task = 1; task <= TASKS; task++) {
            snprintf(text, sizeof text, "square/%d", task);
            sum += get(store, text);
        }
        DSCOMM_CHECK(dscomm_store_set(store, "sum", &sum, sizeof sum));
        printf("process %d leads: the sum is %d\n", (int)me, (int)sum);
    }
    sum = get(store, "sum");
    snprintf(text, sizeof text, "done/%d", (int)me);
    DSCOMM_CHECK(dscomm_store_set(store, text, "", 0));
    for (int i = 1; i <= processes; i++) { /* the store ends with its server */
        snprintf(text, sizeof text, "done/%d", i);
        DSCOMM_CHECK(dscomm_store_wait(store, (const char *[]){text}, 1,
                                       DSCOMM_TIMEOUT_DEFAULT));
    }
    dscomm_store_close(store);
    if (sum != SUM)
        fprintf(stderr, "store: the sum is not %d\n", SUM);
    return sum != SUM;
}
