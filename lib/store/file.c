/* SPDX-License-Identifier: BSD-3-Clause */
/* file://: a store in a file that all ranks see, in the format of torch's
 * FileStore: records that are only appended. A record is a u32 length and a
 * key, a u32 length and a value; the last one of a key counts. The key "-/KEY"
 * removes /KEY. Writers hold flock exclusively, readers shared. Waiting is
 * polling, because a network file system sends no notifications. */
#include "config.h"

#include "lib/store/memory.h"
#include "lib/store/tcp/wire.h"

#include "lib/base/kernel.h"
#include "lib/base/status.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* First pauses between attempts to get the lock, and between looks at the
 * file's size; the longest of both. */
#define LOCK_PAUSE_NS (NS_PER_MS / 5)
#define LOOK_PAUSE_NS NS_PER_MS
#define MOST_PAUSE_NS (10 * NS_PER_MS)
/* NFS may show an old size for this long. */
#define LOCKED_LOOK_NS (1000 * NS_PER_MS)
#define CLOSE_MS 5000
#define READ_SIZE ((size_t)64 << 10)
#define KEY_MAX (WHOLE_KEY_MAX + 1) /* includes the '-' of a removal */
#define COUNTERS_ROOM ((size_t)16 << 10)

/* Keys without '/', so no user's key collides with them. REFERENCES and
 * CLEANUPS are torch's counts of processes that have opened and closed the
 * file. The third key counts the processes that have opened it with dscomm, and
 * never falls: it shows that a file is left over from an earlier run. */
#define REFERENCES "refcount/"
#define CLEANUPS "cleanup/"
#define USERS "users/"

typedef struct {
    dscomm_priv_local_t local; /* its table holds the records before end */
    dscomm_priv_gate_t gate;
    int world_size;
    int fd;
    off_t end;
    dscomm_priv_buffer_t buffer; /* bytes of the file, of which */
    size_t taken; /* this many come before end */
    bool torn; /* a record is cut off */
    bool anonymous; /* the file has no name; path is for messages */
    char path[];
} file_t;

static dscomm_status_t fail_io(const file_t *file, const char *what)
{
    int problem = errno;

    return dscomm_fail(DSCOMM_ERR_IO, "%s store file %s: %s", what, file->path,
                       strerror(problem));
}

/* True if every user may create files in the folder of path, as in /tmp. */
static bool is_in_public_folder(const char *path)
{
    char folder[PATH_MAX];
    struct stat info;

    g_strlcpy(folder, path, sizeof folder);
    return stat(dirname(folder), &info) == 0 && (info.st_mode & S_ISVTX) &&
           (info.st_mode & S_IWOTH);
}

/* Refuses a file that another user may have created in order to read or forge
 * what the ranks exchange. */
static dscomm_status_t file_check(const file_t *file)
{
    const char *path = file->path;
    struct stat info;

    if (fstat(file->fd, &info) != 0)
        return fail_io(file, "stat");
    if (!S_ISREG(info.st_mode))
        return dscomm_fail(DSCOMM_ERR_INVALID,
                           "store file %s is no regular file: name one, or "
                           "a new name in a shared folder",
                           path);
    if (info.st_uid != geteuid() && info.st_uid != 0 &&
        is_in_public_folder(path))
        return dscomm_fail(DSCOMM_ERR_INVALID,
                           "store file %s belongs to user %u, in a folder "
                           "where everybody may put files: name a file in a "
                           "folder of your own",
                           path, (unsigned)info.st_uid);
    return DSCOMM_OK;
}

static void file_shut(file_t *file)
{
    if (file->fd >= 0)
        close(file->fd);
    dscomm_priv_table_clear(&file->local.table);
}

/* Opens the file, or creates it. On failure nothing is left to close. */
static dscomm_status_t file_open(file_t *file)
{
    dscomm_status_t status;

    file->end = 0;
    do {
        file->fd =
            open(file->path,
                 O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW, 0600);
    } while (file->fd < 0 && errno == EINTR);
    if (file->fd >= 0)
        status = file_check(file);
    else if (errno == ELOOP)
        status = dscomm_fail(DSCOMM_ERR_INVALID,
                             "store file %s is a symbolic link: name the file "
                             "that it leads to",
                             file->path);
    else
        status = fail_io(file, "open");
    if (status)
        file_shut(file);
    return status;
}

/* Reading */

static dscomm_status_t fail_record(const file_t *file, off_t offset,
                                   const char *problem)
{
    return dscomm_fail(DSCOMM_ERR_PROTOCOL,
                       "store file %s, byte %lld: %s; it is no FileStore, or a "
                       "process died while writing: remove it and start anew",
                       file->path, (long long)offset, problem);
}

/* Reads until buffer holds at least need bytes of the file, counted from end.
 */
static dscomm_status_t file_read_until(file_t *file, size_t need)
{
    dscomm_priv_buffer_t *buffer = &file->buffer;

    if (buffer->size - file->taken >= need)
        return DSCOMM_OK;
    if (file->taken) {
        buffer->size -= file->taken;
        memmove(buffer->data, buffer->data + file->taken, buffer->size);
        file->taken = 0;
    }
    while (buffer->size < need) {
        size_t want = MAX(need - buffer->size, READ_SIZE);
        ssize_t got;

        if (!dscomm_priv_buffer_reserve(buffer, want))
            return dscomm_fail(DSCOMM_ERR_NO_MEMORY,
                               "no memory for store file %s", file->path);
        got = pread(file->fd, buffer->data + buffer->size, want,
                    file->end + (off_t)buffer->size);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return fail_io(file, "read");
        file->torn = got == 0;
        if (file->torn)
            return fail_record(file, file->end, "the record is cut off");
        buffer->size += (size_t)got;
    }
    return DSCOMM_OK;
}

static dscomm_status_t file_read_length(file_t *file, size_t offset,
                                        size_t most, size_t *ret_length)
{
    dscomm_status_t status = file_read_until(file, offset + sizeof(uint32_t));
    uint32_t length;

    if (status)
        return status;
    memcpy(&length, file->buffer.data + file->taken + offset, sizeof length);
    if (length > most)
        return fail_record(file, file->end + (off_t)offset,
                           "a length beyond what keys and values may have");
    *ret_length = length;
    return file_read_until(file, offset + sizeof length + length);
}

static dscomm_status_t file_apply(file_t *file, const uint8_t *key,
                                  size_t key_size, const uint8_t *value,
                                  size_t value_size)
{
    const bool removes = key[0] == '-';
    const dscomm_priv_data_t name = {key + removes, key_size - removes};
    dscomm_status_t status = DSCOMM_ERR_NO_MEMORY;
    dscomm_priv_bytes_t *copy;

    if (removes) {
        dscomm_priv_table_remove(&file->local.table, name);
        return DSCOMM_OK;
    }
    copy =
        dscomm_priv_budget_copy(&file->local.table.budget, value, value_size);
    if (copy) {
        status = dscomm_priv_table_set(&file->local.table, name, copy);
        dscomm_priv_bytes_unref(copy);
    }
    return status;
}

static dscomm_status_t file_read_record(file_t *file)
{
    dscomm_status_t status;
    const uint8_t *record;
    size_t key, value;

    status = file_read_length(file, 0, KEY_MAX, &key);
    if (status)
        return status;
    if (!key)
        return fail_record(file, file->end, "an empty key");
    status = file_read_length(file, 4 + key, DSCOMM_STORE_VALUE_MAX, &value);
    if (status)
        return status;
    record = file->buffer.data + file->taken;
    status = file_apply(file, record + 4, key, record + 4 + key + 4, value);
    if (status)
        return status;
    file->end += (off_t)(4 + key + 4 + value);
    file->taken += 4 + key + 4 + value;
    return DSCOMM_OK;
}

/* Handles a failed read. The writer of a torn record has died, because the file
 * is locked. An anonymous file is for what follows a death, so it goes on
 * without that record, which a writer removes. */
static dscomm_status_t file_mend(file_t *file, bool exclusive,
                                 dscomm_status_t status)
{
    if (!file->torn || !file->anonymous)
        return status;
    if (exclusive && ftruncate(file->fd, file->end) != 0)
        return fail_io(file, "mend");
    return DSCOMM_OK;
}

/* Reads the new records into the table. ERR_NOT_FOUND if the file has been
 * removed meanwhile. */
static dscomm_status_t file_refresh(file_t *file, bool exclusive)
{
    dscomm_status_t status = DSCOMM_OK;
    struct stat info;

    if (fstat(file->fd, &info) != 0)
        return fail_io(file, "stat");
    if (info.st_nlink == 0 && !file->anonymous)
        return dscomm_fail(DSCOMM_ERR_NOT_FOUND,
                           "store file %s was removed while in use: by hand, "
                           "or by the last of its users because world_size "
                           "says less than there are",
                           file->path);
    if (info.st_size < file->end)
        return fail_record(file, info.st_size, "the file became shorter");
    file->torn = false;
    while (file->end < info.st_size && !status)
        status = file_read_record(file);
    status = file_mend(file, exclusive, status);
    dscomm_priv_buffer_clear(&file->buffer);
    file->taken = 0;
    return status;
}

/* Locking */

static dscomm_status_t file_lock(file_t *file, bool exclusive,
                                 dscomm_priv_deadline_t deadline)
{
    const int how = (exclusive ? LOCK_EX : LOCK_SH) | LOCK_NB;
    int64_t pause = LOCK_PAUSE_NS;

    deadline = dscomm_priv_grace(deadline);
    while (flock(file->fd, how) != 0) {
        if (errno == EINTR)
            continue;
        if (errno != EWOULDBLOCK)
            return fail_io(file, "lock");
        if (dscomm_priv_clock() >= deadline.at)
            return dscomm_fail(DSCOMM_ERR_TIMEOUT,
                               "store file %s was locked for all of %d ms: "
                               "one of its users has stopped",
                               file->path, deadline.ms);
        dscomm_priv_back_off(deadline, &pause, MOST_PAUSE_NS);
    }
    return DSCOMM_OK;
}

static void file_leave(dscomm_priv_local_t *self)
{
    file_t *file = (file_t *)self;

    flock(file->fd, LOCK_UN);
    dscomm_priv_gate_leave(&file->gate);
}

/* Takes the file for this thread, locks it, and reads what is new. */
static dscomm_status_t file_enter(dscomm_priv_local_t *self, bool exclusive,
                                  dscomm_priv_deadline_t deadline)
{
    file_t *file = (file_t *)self;
    dscomm_status_t status = dscomm_priv_gate_enter(&file->gate, deadline);

    if (status)
        return status;
    status = file_lock(file, exclusive, deadline);
    if (!status)
        status = file_refresh(file, exclusive);
    if (status)
        file_leave(self); /* unlocking an unlocked file does nothing */
    return status;
}

/* True if there is something new to read, or an error to report. */
static bool file_changed(file_t *file, dscomm_priv_deadline_t deadline)
{
    struct stat info;
    bool changed;

    if (dscomm_priv_gate_enter(&file->gate, deadline))
        return true;
    changed = fstat(file->fd, &info) != 0 ||
              (info.st_nlink == 0 && !file->anonymous) ||
              info.st_size != file->end;
    dscomm_priv_gate_leave(&file->gate);
    return changed;
}

static dscomm_status_t file_wait(dscomm_priv_local_t *self,
                                 dscomm_priv_deadline_t deadline)
{
    file_t *file = (file_t *)self;
    const int64_t locked = dscomm_priv_clock();
    int64_t pause = LOOK_PAUSE_NS;

    file_leave(self);
    do
        dscomm_priv_back_off(deadline, &pause, MOST_PAUSE_NS);
    while (dscomm_priv_clock() < deadline.at &&
           dscomm_priv_clock() - locked < LOCKED_LOOK_NS &&
           !file_changed(file, deadline));
    return file_enter(self, false, deadline);
}

/* Writing */

/* Returns 0 or an errno. */
static int write_all(int fd, const uint8_t *data, size_t size, off_t offset)
{
    while (size) {
        ssize_t written = pwrite(fd, data, size, offset);

        if (written < 0 && errno != EINTR)
            return errno;
        if (written > 0) {
            data += written;
            size -= (size_t)written;
            offset += written;
        }
    }
    return 0;
}

/* Fails if the table has no room for another record, because no process could
 * read a file with more. Removals, and the counters of processes, always
 * fit. */
static dscomm_status_t check_room(const file_t *file, const char *key,
                                  size_t size)
{
    const dscomm_priv_budget_t *budget = &file->local.table.budget;
    size_t more = strlen(key) + size + 2 * BUDGET_COPY_COST;

    if (key[0] != '/' ||
        dscomm_priv_budget_has_room(budget, more + COUNTERS_ROOM))
        return DSCOMM_OK;
    return dscomm_priv_budget_fail(budget, more);
}

/* Appends a whole record, or nothing: if it does not fit, the file is truncated
 * to its old size. The table gets the record at the next lock. */
static dscomm_status_t file_append(file_t *file, const char *key,
                                   dscomm_priv_data_t value)
{
    dscomm_status_t status = check_room(file, key, value.size);
    dscomm_priv_buffer_t record = {0};
    struct stat info;
    int problem = EFBIG, failed;

    if (status)
        return status;
    if (fstat(file->fd, &info) != 0)
        return fail_io(file, "write");
    dscomm_priv_put_u32(&record, (uint32_t)strlen(key));
    dscomm_priv_buffer_put(&record, key, strlen(key));
    dscomm_priv_put_u32(&record, (uint32_t)value.size);
    dscomm_priv_buffer_put(&record, value.data, value.size);
    if (record.bad) {
        dscomm_priv_buffer_clear(&record);
        return dscomm_fail(DSCOMM_ERR_NO_MEMORY,
                           "no memory for a value of %zu bytes", value.size);
    }
    /* a longer file would end this process by a signal */
    if ((uint64_t)info.st_size + record.size <= dscomm_priv_file_limit())
        problem = write_all(file->fd, record.data, record.size, info.st_size);
    dscomm_priv_buffer_clear(&record);
    if (!problem)
        return DSCOMM_OK;
    do {
        failed = ftruncate(file->fd, info.st_size);
    } while (failed && errno == EINTR);
    if (failed)
        dscomm_log(DSCOMM_LOG_ERROR, "store",
                   "store file %s ends in a torn record: %s", file->path,
                   strerror(errno));
    errno = problem;
    return fail_io(file, "write");
}

static dscomm_status_t file_put(dscomm_priv_local_t *self, const char *key,
                                dscomm_priv_bytes_t *value)
{
    const dscomm_priv_data_t nothing = {0};
    char removal[WHOLE_KEY_MAX + 2];
    dscomm_status_t status;

    if (!value)
        snprintf(removal, sizeof removal, "-%s", key);
    status = file_append((file_t *)self, value ? key : removal,
                         value ? value->data : nothing);
    dscomm_priv_bytes_unref(value);
    return status;
}

/* Counters */

static dscomm_status_t file_count(file_t *file, const char *counter,
                                  int64_t delta, int64_t *ret_sum)
{
    dscomm_priv_bytes_t *text;
    dscomm_status_t status;

    status = dscomm_priv_table_sum(&file->local.table,
                                   dscomm_priv_data_text(counter), delta,
                                   ret_sum, &text);
    if (status == DSCOMM_ERR_NO_MEMORY)
        return status;
    if (status)
        return dscomm_fail(DSCOMM_ERR_PROTOCOL,
                           "store file %s: its counter %s is no number; remove "
                           "it and start anew",
                           file->path, counter);
    if (!delta) {
        dscomm_priv_bytes_unref(text);
        return DSCOMM_OK;
    }
    return file_put(&file->local, counter, text);
}

/* Opening and closing */

/* Removes the file, unless its name now leads to another file. */
static void file_unlink(const file_t *file)
{
    struct stat own, named;

    if (fstat(file->fd, &own) == 0 && stat(file->path, &named) == 0 &&
        own.st_dev == named.st_dev && own.st_ino == named.st_ino)
        unlink(file->path);
}

/* The last process removes the file, by the counters that torch uses too. */
static dscomm_status_t file_sign_out(file_t *file)
{
    int64_t closed = 0, open = 0;
    dscomm_status_t status;

    status = file_enter(&file->local, true, dscomm_priv_deadline(CLOSE_MS));
    if (status)
        return status;
    status = file_count(file, CLEANUPS, 1, &closed);
    if (!status)
        status = file_count(file, REFERENCES, -1, &open);
    if (!status && file->world_size && closed >= file->world_size && open <= 0)
        file_unlink(file);
    file_leave(&file->local);
    return status;
}

static void file_close(dscomm_priv_store_t *self)
{
    file_t *file = (file_t *)self;

    if (!file->anonymous && file_sign_out(file))
        dscomm_log(DSCOMM_LOG_INFO, "store", "closing %s: %s", file->path,
                   dscomm_last_error());
    file_shut(file);
    dscomm_priv_gate_clear(&file->gate);
    g_free(file);
}

static const dscomm_priv_store_ops_t ops = {
    .close = file_close,
    .execute = dscomm_priv_local_execute,
};

static dscomm_status_t file_sign_in(file_t *file,
                                    dscomm_priv_deadline_t deadline)
{
    int64_t users = 0, open = 0;
    dscomm_status_t status = file_enter(&file->local, true, deadline);

    if (status)
        return status;
    status = file_count(file, USERS, 0, &users);
    if (!status && file->world_size && users >= file->world_size)
        status = dscomm_fail(
            DSCOMM_ERR_STATE,
            "store file %s has had its %d users: it is left from an earlier "
            "run; remove it, or give every run a name of its own",
            file->path, file->world_size);
    if (!status)
        status = file_count(file, USERS, 1, &users);
    if (!status)
        status = file_count(file, REFERENCES, 1, &open);
    file_leave(&file->local);
    return status;
}

/* NULL: no memory. */
static file_t *file_new(const char *path, int world_size)
{
    static const char *const counters[] = {REFERENCES, CLEANUPS, USERS, NULL};
    file_t *file = g_try_malloc0(sizeof *file + strlen(path) + 1);

    if (!file) {
        dscomm_fail(DSCOMM_ERR_NO_MEMORY, "no memory for a store");
        return NULL;
    }
    file->local =
        (dscomm_priv_local_t){.head.ops = &ops,
                              .enter = file_enter,
                              .leave = file_leave,
                              .wait = file_wait,
                              .put = file_put,
                              .table.budget.most = DSCOMM_STORE_TOTAL_MAX,
                              .own = counters};
    file->world_size = world_size;
    strcpy(file->path, path);
    dscomm_priv_gate_init(&file->gate);
    return file;
}

dscomm_status_t dscomm_priv_store_anonymous(int fd,
                                            dscomm_priv_store_t **ret_store)
{
    file_t *file = file_new("in shared memory", 0);

    if (!file)
        return DSCOMM_ERR_NO_MEMORY;
    file->anonymous = true;
    file->fd = fd;
    *ret_store = &file->local.head;
    return DSCOMM_OK;
}

dscomm_status_t dscomm_priv_store_file(const char *path,
                                       const dscomm_store_attr_t *attr,
                                       dscomm_priv_store_t **ret_store)
{
    dscomm_priv_deadline_t deadline = dscomm_priv_deadline(attr->timeout_ms);
    file_t *file = file_new(path, attr->world_size);
    dscomm_status_t status;

    if (!file)
        return DSCOMM_ERR_NO_MEMORY;
    do {
        /* the last process of an earlier run may be removing the file */
        status = file_open(file);
        if (status)
            break;
        status = file_sign_in(file, deadline);
        if (!status) {
            *ret_store = &file->local.head;
            return DSCOMM_OK;
        }
        file_shut(file);
    } while (status == DSCOMM_ERR_NOT_FOUND &&
             dscomm_priv_clock() < deadline.at);
    dscomm_priv_gate_clear(&file->gate);
    g_free(file);
    return status;
}
