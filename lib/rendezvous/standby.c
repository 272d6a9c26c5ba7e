/* SPDX-License-Identifier: BSD-3-Clause */
#include "config.h"

#include "lib/rendezvous/standby.h"

#include "lib/store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static dscomm_status_t record_put(dscomm_store_t *store, int rank,
                                  dscomm_record_t *record)
{
    char *text = dscomm_priv_record_write(record), key[16];
    dscomm_status_t status = DSCOMM_ERR_NO_MEMORY;

    snprintf(key, sizeof key, "r/%d", rank);
    if (text)
        status = dscomm_store_set(store, key, text, strlen(text));
    g_free(text);
    return status;
}

/* Opens the store in fd, which it takes over, also on failure. */
static dscomm_store_t *standby_open(int fd)
{
    dscomm_store_t *store = NULL;

    if (dscomm_priv_store_open_anonymous(fd, &store) < 0)
        close(fd);
    return store;
}

dscomm_store_t *dscomm_priv_standby_make(dscomm_record_t *records, int size,
                                         char text[DSCOMM_STANDBY_MAX])
{
    dscomm_status_t status = DSCOMM_OK;
    dscomm_store_t *store;
    struct stat info;
    int fd;

    strcpy(text, DSCOMM_STANDBY_NONE);
    for (int i = 0; i < size; i++)
        if (!dscomm_priv_record_here(&records[i]))
            return NULL;
    fd = memfd_create("dscomm-standby", MFD_CLOEXEC);
    if (fd < 0 || fstat(fd, &info) != 0) {
        dscomm_log(DSCOMM_LOG_INFO, "core", "no standby store: %s",
                   strerror(errno));
        if (fd >= 0)
            close(fd);
        return NULL;
    }
    store = standby_open(fd);
    for (int i = 0; store && i < size && status == DSCOMM_OK; i++)
        status = record_put(store, i, &records[i]);
    if (!store || status < 0) {
        dscomm_store_close(store);
        return NULL;
    }
    snprintf(text, DSCOMM_STANDBY_MAX, "%d %llu", fd,
             (unsigned long long)info.st_ino);
    return store;
}

/* True if stat() has succeeded, and the file is rank 0's store. */
static bool is_standby(int failed, const struct stat *info,
                       unsigned long long inode)
{
    return !failed && S_ISREG(info->st_mode) && info->st_nlink == 0 &&
           info->st_ino == inode;
}

/* The file has no name, so it is opened through rank 0's descriptor. This
 * process gets an open file of its own, with locks of its own. The number may
 * be that of another file by now: it is looked at first, because to open a
 * device or a pipe may have an effect. */
dscomm_store_t *dscomm_priv_standby_join(int64_t pid, const char *text)
{
    unsigned long long inode;
    struct stat info;
    char path[64];
    int number, fd;

    if (sscanf(text, "%d %llu", &number, &inode) != 2)
        return NULL;
    snprintf(path, sizeof path, "/proc/%lld/fd/%d", (long long)pid, number);
    errno = 0;
    fd = is_standby(stat(path, &info), &info, inode)
             ? open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK)
             : -1;
    if (fd >= 0 && is_standby(fstat(fd, &info), &info, inode))
        return standby_open(fd);
    dscomm_log(DSCOMM_LOG_INFO, "core",
               "this rank cannot open the standby store %s: %s", path,
               errno ? strerror(errno) : "another file");
    if (fd >= 0)
        close(fd);
    return NULL;
}
