/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading, appending and locking a file of records. */
#include "config.h"

#include "lib/store/records.h"

#include "lib/base/status.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define FIRST_PAUSE_US 200 /* between attempts to get the lock */
#define MOST_PAUSE_US 10000
#define READ_SIZE ((size_t)64 << 10)
#define KEY_MAX (WHOLE_KEY_MAX + 1) /* with the '-' of a removal */
#define COUNTERS_ROOM ((size_t)16 << 10)

typedef dscomm_priv_records_t records_t;

static dscomm_status_t fail_io(const records_t *records, const char *what)
{
    int problem = errno;

    return dscomm_fail(DSCOMM_ERR_IO, "%s store file %s: %s", what,
                       records->path, strerror(problem));
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
static dscomm_status_t records_check_file(const records_t *records)
{
    const char *path = records->path;
    struct stat info;

    if (fstat(records->fd, &info) != 0)
        return fail_io(records, "stat");
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

dscomm_status_t dscomm_priv_records_open(records_t *records, const char *path)
{
    dscomm_status_t status;

    memset(records, 0, sizeof *records);
    records->table = dscomm_priv_table_new(DSCOMM_STORE_TOTAL_MAX);
    records->path = dscomm_priv_value(path, strlen(path));
    if (!records->table || !records->path) {
        dscomm_priv_table_free(records->table);
        g_free(records->path);
        return DSCOMM_ERR_NO_MEMORY;
    }
    do {
        records->fd = open(
            path, O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW, 0600);
    } while (records->fd < 0 && errno == EINTR);
    if (records->fd >= 0)
        status = records_check_file(records);
    else if (errno == ELOOP)
        status = dscomm_fail(DSCOMM_ERR_INVALID,
                             "store file %s is a symbolic link: name the file "
                             "that it leads to",
                             path);
    else
        status = fail_io(records, "open");
    if (status) {
        if (records->fd >= 0)
            close(records->fd);
        dscomm_priv_table_free(records->table);
        g_free(records->path);
    }
    return status;
}

void dscomm_priv_records_close(records_t *records)
{
    close(records->fd);
    dscomm_priv_table_free(records->table);
    dscomm_priv_buffer_clear(&records->buffer);
    g_free(records->path);
}

/* Reading */

static dscomm_status_t fail_record(const records_t *records, off_t offset,
                                   const char *problem)
{
    return dscomm_fail(DSCOMM_ERR_PROTOCOL,
                       "store file %s, byte %lld: %s; it is no FileStore, or a "
                       "process died while writing: remove it and start anew",
                       records->path, (long long)offset, problem);
}

/* Reads until buffer holds at least need bytes of the file, counted from end.
 */
static dscomm_status_t read_until(records_t *records, size_t need)
{
    dscomm_priv_buffer_t *buffer = &records->buffer;

    if (buffer->size - records->taken >= need)
        return DSCOMM_OK;
    if (records->taken) {
        buffer->size -= records->taken;
        memmove(buffer->data, buffer->data + records->taken, buffer->size);
        records->taken = 0;
    }
    while (buffer->size < need) {
        size_t want = MAX(need - buffer->size, READ_SIZE);
        ssize_t got;

        if (!dscomm_priv_buffer_reserve(buffer, want))
            return dscomm_fail(DSCOMM_ERR_NO_MEMORY,
                               "no memory for store file %s", records->path);
        got = pread(records->fd, buffer->data + buffer->size, want,
                    records->end + (off_t)buffer->size);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return fail_io(records, "read");
        if (got == 0)
            return fail_record(records, records->end, "the record is cut off");
        buffer->size += (size_t)got;
    }
    return DSCOMM_OK;
}

static dscomm_status_t read_length(records_t *records, size_t offset,
                                   size_t most, size_t *ret_length)
{
    dscomm_status_t status = read_until(records, offset + sizeof(uint32_t));
    uint32_t length;

    if (status)
        return status;
    memcpy(&length, records->buffer.data + records->taken + offset,
           sizeof length);
    if (length > most)
        return fail_record(records, records->end + (off_t)offset,
                           "a length beyond what keys and values may have");
    *ret_length = length;
    return read_until(records, offset + sizeof length + length);
}

static dscomm_status_t records_apply(records_t *records, const uint8_t *key,
                                     size_t key_size, const uint8_t *value,
                                     size_t value_size)
{
    const bool removes = key[0] == '-';
    const dscomm_priv_data_t name = {key + removes, key_size - removes};
    dscomm_status_t status = DSCOMM_ERR_NO_MEMORY;
    dscomm_priv_bytes_t *copy;

    if (removes) {
        dscomm_priv_table_remove(records->table, name);
        return DSCOMM_OK;
    }
    copy = dscomm_priv_budget_copy(dscomm_priv_table_budget(records->table),
                                   value, value_size);
    if (copy) {
        status = dscomm_priv_table_set(records->table, name, copy);
        dscomm_priv_bytes_unref(copy);
    }
    return status;
}

static dscomm_status_t read_record(records_t *records)
{
    dscomm_status_t status;
    const uint8_t *record;
    size_t key, value;

    status = read_length(records, 0, KEY_MAX, &key);
    if (status)
        return status;
    if (!key)
        return fail_record(records, records->end, "an empty key");
    status = read_length(records, 4 + key, DSCOMM_STORE_VALUE_MAX, &value);
    if (status)
        return status;
    record = records->buffer.data + records->taken;
    status =
        records_apply(records, record + 4, key, record + 4 + key + 4, value);
    if (status)
        return status;
    records->end += (off_t)(4 + key + 4 + value);
    records->taken += 4 + key + 4 + value;
    return DSCOMM_OK;
}

static dscomm_status_t refresh(records_t *records)
{
    dscomm_status_t status = DSCOMM_OK;
    struct stat info;

    if (fstat(records->fd, &info) != 0)
        return fail_io(records, "stat");
    if (info.st_nlink == 0)
        return dscomm_fail(DSCOMM_ERR_NOT_FOUND,
                           "store file %s was removed while in use: by hand, "
                           "or by the last of its users because world_size "
                           "says less than there are",
                           records->path);
    if (info.st_size < records->end)
        return fail_record(records, info.st_size, "the file became shorter");
    while (records->end < info.st_size && !status)
        status = read_record(records);
    dscomm_priv_buffer_clear(&records->buffer);
    records->taken = 0;
    return status;
}

/* Locking */

dscomm_status_t dscomm_priv_records_lock(records_t *records, gboolean exclusive,
                                         dscomm_priv_deadline_t deadline)
{
    int how = (exclusive ? LOCK_EX : LOCK_SH) | LOCK_NB;
    gint64 pause = FIRST_PAUSE_US;
    dscomm_status_t status;

    deadline = dscomm_priv_grace(deadline);
    while (flock(records->fd, how) != 0) {
        if (errno == EINTR)
            continue;
        if (errno != EWOULDBLOCK)
            return fail_io(records, "lock");
        if (dscomm_priv_deadline_passed(deadline))
            return dscomm_fail(DSCOMM_ERR_TIMEOUT,
                               "store file %s was locked for all of %d ms: "
                               "one of its users has stopped",
                               records->path, deadline.ms);
        dscomm_priv_back_off(deadline, &pause, MOST_PAUSE_US);
    }
    status = refresh(records);
    if (status)
        dscomm_priv_records_unlock(records);
    return status;
}

void dscomm_priv_records_unlock(records_t *records)
{
    flock(records->fd, LOCK_UN);
}

gboolean dscomm_priv_records_changed(const records_t *records)
{
    struct stat info;

    return fstat(records->fd, &info) != 0 || info.st_nlink == 0 ||
           info.st_size != records->end;
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

/* A write beyond the limit would raise SIGXFSZ, so the limit is checked first.
 */
static int exceeds_limit(off_t size)
{
    struct rlimit limit;

    return getrlimit(RLIMIT_FSIZE, &limit) == 0 &&
           limit.rlim_cur != RLIM_INFINITY && (rlim_t)size > limit.rlim_cur;
}

/* Fails if the table has no room: a file with more could not be read by any
 * process. Removals and the counters of processes always fit. */
static dscomm_status_t check_room(const records_t *records, const char *key,
                                  size_t size)
{
    dscomm_priv_budget_t *budget = dscomm_priv_table_budget(records->table);
    size_t more = strlen(key) + size + 2 * BUDGET_COPY_COST;

    if (key[0] != '/' ||
        dscomm_priv_budget_has_room(budget, more + COUNTERS_ROOM))
        return DSCOMM_OK;
    return dscomm_priv_budget_fail(budget, more);
}

/* Appends a whole record, or nothing: if it does not fit, the file is truncated
 * to its old size. */
dscomm_status_t dscomm_priv_records_append(records_t *records, const char *key,
                                           const void *value, size_t size)
{
    dscomm_status_t status = check_room(records, key, size);
    dscomm_priv_buffer_t record = {0};
    struct stat info;
    int problem, failed;

    if (status)
        return status;
    dscomm_priv_put_u32(&record, (uint32_t)strlen(key));
    dscomm_priv_buffer_put(&record, key, strlen(key));
    dscomm_priv_put_u32(&record, (uint32_t)size);
    dscomm_priv_buffer_put(&record, value, size);
    if (record.bad) {
        dscomm_priv_buffer_clear(&record);
        return dscomm_fail(DSCOMM_ERR_NO_MEMORY,
                           "no memory for a value of %zu bytes", size);
    }
    if (fstat(records->fd, &info) != 0)
        problem = errno;
    else if (exceeds_limit(info.st_size + (off_t)record.size))
        problem = EFBIG;
    else
        problem =
            write_all(records->fd, record.data, record.size, info.st_size);
    dscomm_priv_buffer_clear(&record);
    if (!problem)
        return DSCOMM_OK;
    do {
        failed = ftruncate(records->fd, info.st_size);
    } while (failed && errno == EINTR);
    if (failed)
        dscomm_log(DSCOMM_LOG_ERROR, "store",
                   "store file %s ends in a torn record: %s", records->path,
                   strerror(errno));
    errno = problem;
    return fail_io(records, "write");
}

void dscomm_priv_records_unlink(const records_t *records)
{
    struct stat own, named;

    if (fstat(records->fd, &own) == 0 && stat(records->path, &named) == 0 &&
        own.st_dev == named.st_dev && own.st_ino == named.st_ino)
        unlink(records->path);
}
