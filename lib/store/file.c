/* SPDX-License-Identifier: BSD-3-Clause */
/* file://: a store in a file that all ranks see, in the format of torch's
 * FileStore. Waiting is polling, because a network file system sends no
 * notifications. */
#include "config.h"

#include "lib/store/local.h"
#include "lib/store/records.h"

#include "lib/base/status.h"

#include <stdio.h>
#include <string.h>

#define FIRST_PAUSE_US 1000 /* between reads of the file */
#define MOST_PAUSE_US 10000
#define LOCKED_LOOK_US 1000000 /* NFS may show an old size until then */
#define CLOSE_MS 5000

/* Keys without '/', so no user's key collides with them. REFERENCES and
 * CLEANUPS are torch's counts of processes that have opened and closed the
 * file. The third key counts the processes that have opened it with dscomm, and
 * never falls: it shows that a file is left over from an earlier run. */
#define REFERENCES "refcount/"
#define CLEANUPS "cleanup/"
#define USERS "users/"

typedef struct {
    dscomm_priv_local_t local; /* its table holds the records */
    dscomm_priv_gate_t gate;
    dscomm_priv_records_t records;
    int world_size;
} file_t;

/* Takes the file for this thread, and locks it. */
static dscomm_status_t file_enter(dscomm_priv_local_t *self, bool exclusive,
                                  dscomm_priv_deadline_t deadline)
{
    file_t *file = (file_t *)self;
    dscomm_status_t status = dscomm_priv_gate_enter(&file->gate, deadline);

    if (status)
        return status;
    status = dscomm_priv_records_lock(&file->records, exclusive, deadline);
    if (status)
        dscomm_priv_gate_leave(&file->gate);
    return status;
}

static void file_leave(dscomm_priv_local_t *self)
{
    file_t *file = (file_t *)self;

    dscomm_priv_records_unlock(&file->records);
    dscomm_priv_gate_leave(&file->gate);
}

/* Appends a record. The table gets it at the next lock. */
static dscomm_status_t file_put(dscomm_priv_local_t *self, const char *key,
                                dscomm_priv_bytes_t *value)
{
    file_t *file = (file_t *)self;
    char removal[WHOLE_KEY_MAX + 2];
    dscomm_status_t status;

    if (value) {
        status = dscomm_priv_records_append(&file->records, key,
                                            value->data.data, value->data.size);
    } else {
        snprintf(removal, sizeof removal, "-%s", key);
        status = dscomm_priv_records_append(&file->records, removal, NULL, 0);
    }
    dscomm_priv_bytes_unref(value);
    return status;
}

/* Counters */

static dscomm_status_t file_count(file_t *file, const char *counter,
                                  int64_t delta, int64_t *ret_sum)
{
    dscomm_priv_bytes_t *text;
    dscomm_status_t status;

    status = dscomm_priv_table_sum(file->records.table,
                                   dscomm_priv_data_text(counter), delta,
                                   ret_sum, &text);
    if (status == DSCOMM_ERR_NO_MEMORY)
        return status;
    if (status)
        return dscomm_fail(DSCOMM_ERR_PROTOCOL,
                           "store file %s: its counter %s is no number; remove "
                           "it and start anew",
                           file->records.path, counter);
    if (!delta) {
        dscomm_priv_bytes_unref(text);
        return DSCOMM_OK;
    }
    return file_put(&file->local, counter, text);
}

static int file_count_own(const dscomm_priv_local_t *self)
{
    static const char *const counters[] = {REFERENCES, CLEANUPS, USERS};
    uint8_t present[G_N_ELEMENTS(counters)];

    return (int)dscomm_priv_local_present(self, counters,
                                          G_N_ELEMENTS(counters), present);
}

/* Waiting */

/* Checks once whether all keys are there, and copies their values if so.
 * locked: reads the file also if it seems unchanged. */
static dscomm_status_t file_look(file_t *file, bool locked,
                                 dscomm_priv_request_t *request,
                                 uint8_t *present, bool *ret_all)
{
    const dscomm_priv_deadline_t deadline = request->deadline;
    dscomm_status_t status = dscomm_priv_gate_enter(&file->gate, deadline);

    *ret_all = false;
    if (status)
        return status;
    if (locked || dscomm_priv_records_changed(&file->records)) {
        status = dscomm_priv_records_lock(&file->records, FALSE, deadline);
        if (!status)
            dscomm_priv_records_unlock(&file->records);
    }
    if (!status)
        *ret_all = dscomm_priv_local_present(&file->local, request->keys,
                                             request->count,
                                             present) == request->count;
    if (*ret_all)
        status = dscomm_priv_local_copy(&file->local, request);
    dscomm_priv_gate_leave(&file->gate);
    return status;
}

static dscomm_status_t file_get(dscomm_priv_local_t *self,
                                dscomm_priv_request_t *request,
                                uint8_t *present)
{
    gint64 now, looked = 0, pause = FIRST_PAUSE_US;
    dscomm_status_t status;
    bool all, last;

    for (;;) {
        now = g_get_monotonic_time();
        last = now >= request->deadline.at;
        if (last || now - looked >= LOCKED_LOOK_US)
            looked = now;
        status =
            file_look((file_t *)self, looked == now, request, present, &all);
        if (status || all || last)
            break;
        dscomm_priv_back_off(request->deadline, &pause, MOST_PAUSE_US);
    }
    return status || all ? status : dscomm_priv_fail_missing(request, present);
}

/* Opening and closing */

/* The last process removes the file, by the counters that torch uses too. */
static dscomm_status_t sign_out(file_t *file)
{
    int64_t closed = 0, open = 0;
    dscomm_status_t status;

    status = dscomm_priv_records_lock(&file->records, TRUE,
                                      dscomm_priv_deadline(CLOSE_MS));
    if (status)
        return status;
    status = file_count(file, CLEANUPS, 1, &closed);
    if (!status)
        status = file_count(file, REFERENCES, -1, &open);
    if (!status && file->world_size && closed >= file->world_size && open <= 0)
        dscomm_priv_records_unlink(&file->records);
    dscomm_priv_records_unlock(&file->records);
    return status;
}

static void file_close(dscomm_priv_store_t *self)
{
    file_t *file = (file_t *)self;

    if (sign_out(file))
        dscomm_log(DSCOMM_LOG_INFO, "store", "closing %s: %s",
                   file->records.path, dscomm_last_error());
    dscomm_priv_records_close(&file->records);
    dscomm_priv_gate_clear(&file->gate);
    g_free(file);
}

static const dscomm_priv_store_ops_t ops = {
    .close = file_close,
    .execute = dscomm_priv_local_execute,
};

static dscomm_status_t sign_in(file_t *file, dscomm_priv_deadline_t deadline)
{
    int64_t users = 0, open = 0;
    dscomm_status_t status =
        dscomm_priv_records_lock(&file->records, TRUE, deadline);

    if (status)
        return status;
    status = file_count(file, USERS, 0, &users);
    if (!status && file->world_size && users >= file->world_size)
        status = dscomm_fail(
            DSCOMM_ERR_STATE,
            "store file %s has had its %d users: it is left from an earlier "
            "run; remove it, or give every run a name of its own",
            file->records.path, file->world_size);
    if (!status)
        status = file_count(file, USERS, 1, &users);
    if (!status)
        status = file_count(file, REFERENCES, 1, &open);
    dscomm_priv_records_unlock(&file->records);
    return status;
}

dscomm_status_t dscomm_priv_store_file(const char *path,
                                       const dscomm_store_attr_t *attr,
                                       dscomm_priv_store_t **ret_store)
{
    dscomm_priv_deadline_t deadline = dscomm_priv_deadline(attr->timeout_ms);
    file_t *file = g_try_new0(file_t, 1);
    dscomm_status_t status;

    if (!file)
        return dscomm_fail(DSCOMM_ERR_NO_MEMORY, "no memory for a store");
    file->local = (dscomm_priv_local_t){.head.ops = &ops,
                                        .enter = file_enter,
                                        .leave = file_leave,
                                        .get = file_get,
                                        .put = file_put,
                                        .count_own = file_count_own};
    file->world_size = attr->world_size;
    dscomm_priv_gate_init(&file->gate);
    do {
        /* the last process of an earlier run may be removing the file */
        status = dscomm_priv_records_open(&file->records, path);
        if (status)
            break;
        file->local.table = file->records.table;
        status = sign_in(file, deadline);
        if (!status) {
            *ret_store = &file->local.head;
            return DSCOMM_OK;
        }
        dscomm_priv_records_close(&file->records);
    } while (status == DSCOMM_ERR_NOT_FOUND &&
             !dscomm_priv_deadline_passed(deadline));
    dscomm_priv_gate_clear(&file->gate);
    g_free(file);
    return status;
}
