/* SPDX-License-Identifier: BSD-3-Clause */
/* 512 ranks at once: they connect, claim, register, and read the decision. They
 * are threads with their own connections; the server starts last. */
#include "config.h"

#include "lib/rendezvous/join-decision.h"
#include "lib/store/store.h"
#include "tests/lib/store/fixture.h"
#include "tests/port.h"
#include "tests/tap.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/resource.h>

#define RANKS 512
#define LIMIT_MS 2000 /* on an idle machine, without sanitizers */

static const dscomm_priv_job_t storm = {.name = "storm", .ports = 1};
static char url[64];
static double came[RANKS];
static dscomm_status_t statuses[RANKS];
static char failure[1024];

/* What a rank says to the store in a rendezvous; rank 0's side is in main(). */
static dscomm_status_t join(dscomm_store_t *store, int rank)
{
    char key[32], record[200];
    void *value;
    size_t size;
    dscomm_status_t status;

    memset(record, 'r', sizeof record);
    snprintf(key, sizeof key, "claim/%d", rank);
    status =
        dscomm_store_compare_set(store, key, "", 0, "me", 2, &value, &size);
    if (status)
        return status;
    dscomm_store_free(value);
    snprintf(key, sizeof key, "r/%d", rank);
    status = dscomm_store_set(store, key, record, sizeof record);
    if (!status)
        status = dscomm_store_get(store, "summary", 60000, &value, &size);
    if (!status)
        dscomm_store_free(value);
    return status;
}

static void *live(void *arg)
{
    const int rank = (int)(intptr_t)arg;
    dscomm_store_t *store = NULL;

    statuses[rank] = open_store(url, &storm, 0, 60000, &store);
    if (!statuses[rank])
        statuses[rank] = join(store, rank);
    if (statuses[rank])
        snprintf(failure, sizeof failure, "%s", dscomm_last_error());
    came[rank] = raw_now_ms();
    dscomm_store_close(store);
    return NULL;
}

static dscomm_status_t lead(dscomm_store_t *store)
{
    static char names[RANKS][16];
    static const char *keys[RANKS];
    static void *values[RANKS];
    static size_t sizes[RANKS];
    dscomm_status_t status;

    for (int i = 0; i < RANKS; i++) {
        snprintf(names[i], sizeof names[i], "r/%d", i);
        keys[i] = names[i];
    }
    status = dscomm_store_multi_get(store, keys, RANKS, 60000, values, sizes);
    for (int i = 0; i < RANKS && !status; i++)
        dscomm_store_free(values[i]);
    if (!status)
        status = dscomm_store_set(store, "summary", "ok", 2);
    return status;
}

static void raise_limit(void)
{
    struct rlimit files;

    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    if (files.rlim_cur < 2 * RANKS + 64)
        skip_all("a process may have %lu files only",
                 (unsigned long)files.rlim_cur);
}

/* How many times slower than on an idle machine all may be. */
static double slowness(void)
{
    const char *flags = getenv("SANITIZER_FLAGS");
    const char *valgrind = getenv("VALGRIND");
    double load = 0;

    if (getloadavg(&load, 1) < 1)
        load = 0;
    load = 1 + load / (double)sysconf(_SC_NPROCESSORS_ONLN);
    return (flags && strstr(flags, "sanitize")) || (valgrind && *valgrind)
               ? 20 * load
               : load;
}

int main(void)
{
    static pthread_t threads[RANKS];
    dscomm_store_t *store = NULL;
    double begin, last = 0, limit = LIMIT_MS * slowness();
    int failed = 0;

    raise_limit();
    snprintf(url, sizeof url, "%s", url_of(port_find_free(1)));
    begin = raw_now_ms();
    for (int i = 0; i < RANKS; i++)
        if (pthread_create(&threads[i], NULL, live, (void *)(intptr_t)i))
            bail("no thread for rank %d", i);
    if (open_store(url, &storm, 1, 60000, &store))
        bail("%s", dscomm_last_error());
    is_int(lead(store), DSCOMM_OK, "rank 0 hears from all");
    for (int i = 0; i < RANKS; i++) {
        pthread_join(threads[i], NULL);
        failed += statuses[i] != DSCOMM_OK;
        last = came[i] > last ? came[i] : last;
    }
    dscomm_store_close(store);
    is_int(failed, 0, "%d ranks join %s", RANKS, failure);
    ok(last - begin < limit, "within %.0f ms of %.0f", last - begin, limit);
    return tap_done();
}
