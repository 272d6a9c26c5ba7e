/* SPDX-License-Identifier: BSD-3-Clause */
/* The file store if sizes are cached until a lock is taken, as on NFS. Most
 * machines have no such file system, so the test replaces fstat(). */
#include "config.h"

#include <dscomm/store.h>

#include "tests/lib/store/fixture.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define FDS 64

static struct stat cached[FDS];
static int is_cached[FDS];

int fstat(int fd, struct stat *ret_info)
{
    int (*real)(int, struct stat *) =
        (int (*)(int, struct stat *))(uintptr_t)dlsym(RTLD_NEXT, "fstat");

    if (fd >= FDS)
        return real(fd, ret_info);
    if (!is_cached[fd] && real(fd, &cached[fd]) != 0)
        return -1;
    is_cached[fd] = 1;
    *ret_info = cached[fd];
    return 0;
}

int flock(int fd, int how)
{
    int (*real)(int, int) =
        (int (*)(int, int))(uintptr_t)dlsym(RTLD_NEXT, "flock");

    if (fd < FDS)
        is_cached[fd] = 0;
    return real(fd, how);
}

static void *set_later(void *store)
{
    usleep(150 * 1000);
    return (void *)(intptr_t)dscomm_store_set(store, "k", "v", 1);
}

static void test_wait(const char *url, int timeout_ms)
{
    const char *keys[] = {"k"};
    dscomm_store_t *store, *other;
    double start = raw_now_ms();
    pthread_t thread;
    void *result;

    if (dscomm_store_open(url, NULL, &store) ||
        dscomm_store_open(url, NULL, &other))
        bail("%s", dscomm_last_error());
    dscomm_store_delete(store, "k", NULL);
    pthread_create(&thread, NULL, set_later, other);
    is_int(dscomm_store_wait(store, keys, 1, timeout_ms), DSCOMM_OK,
           "a key is seen within %d ms", timeout_ms);
    ok(raw_now_ms() - start < 3000, "soon: in %.0f ms", raw_now_ms() - start);
    pthread_join(thread, &result);
    is_int((intptr_t)result, DSCOMM_OK, "when it is set");
    dscomm_store_close(other);
    dscomm_store_close(store);
}

int main(void)
{
    char folder[] = "/tmp/dscomm-nfs-XXXXXX", url[64];

    if (!mkdtemp(folder))
        bail("mkdtemp failed");
    snprintf(url, sizeof url, "file://%s/store", folder);
    test_wait(url, 500);
    test_wait(url, 20000);
    unlink(url + strlen("file://"));
    rmdir(folder);
    return tap_done();
}
