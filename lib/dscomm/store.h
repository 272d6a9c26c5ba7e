/* SPDX-License-Identifier: BSD-3-Clause */
/* A key-value store: how ranks exchange addresses before they can communicate.
 *
 * Three kinds behind one handle: memory (one process, threads), file (a shared
 * file, flock) and TCP (torch's TCPStore protocol, so Python peers can share
 * it). Keys are non-empty C strings of at most 8191 bytes including all
 * prefixes and their slashes (torch's limit, 8 KiB, counts a slash of its own
 * in front), values are at most 8 MiB of any bytes, and all of a store's keys
 * and values at most 1 GiB, with 256 bytes added for each key and for each
 * value; the limits are the same for all kinds. Beyond the last one calls fail
 * with ERR_NO_MEMORY.
 *
 * A forked child can only close a store that it inherits (the parent's stays as
 * it is) and open one of its own; other calls return ERR_STATE. */
#ifndef DSCOMM_STORE_H
#define DSCOMM_STORE_H

#include <dscomm/status.h>
#include <dscomm/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DSCOMM_STORE_KEY_MAX ((size_t)8191)
#define DSCOMM_STORE_VALUE_MAX ((size_t)8 << 20)
#define DSCOMM_STORE_TOTAL_MAX ((size_t)1 << 30)

typedef struct dscomm_store_attr {
    size_t size;
    int timeout_ms; /* default of every wait in this store; 0 = 300000 */
    int serve; /* TCP: 1 = serve the port in this process as well */
    /* TCP with serve: > 0 = an inherited listening socket, which the store
     * takes over */
    int listen_fd;
    /* TCP with serve, > 0: opening waits for that many clients (torch's
     * wait_for_workers); file: the users of the file, of which the last to
     * close removes it */
    int world_size;
} dscomm_store_attr_t;
#define DSCOMM_STORE_ATTR_INIT                                                 \
    {                                                                          \
        sizeof(dscomm_store_attr_t), 0, 0, 0, 0                                \
    }
/* Sets the size bytes at attr to the defaults, as DSCOMM_STORE_ATTR_INIT does,
 * for callers in languages that have no macros. size: of the structure that
 * the caller knows. ERR_INVALID if attr is NULL, or if size is smaller than a
 * size_t or larger than 4096. MT: safe. */
DSCOMM_API dscomm_status_t dscomm_store_attr_init(dscomm_store_attr_t *attr,
                                                  size_t size);

/* Opens the store that url names:
 *   memory://           a new private store of this process
 *   file:///PATH        created where absent; a run that was killed leaves it
 *                       behind, so give every run a name of its own
 *   tcp://HOST:PORT     [v6]:PORT too; port 0 with serve = any free port, see
 *                       dscomm_store_port()
 * attr may be NULL. Connecting retries until the time-out: a server that is not
 * up yet is no failure, nor (for 30 seconds) a name that has no address yet.
 * Several addresses are tried side by side. A port in use and a foreign server
 * are errors that say so. A server listens on the addresses of HOST, which "*"
 * makes all of this machine's; a name that is only its own loopback (127.0.1.1
 * in /etc/hosts) is served there alone. DSCOMM_STORE_LISTEN adds interfaces. If
 * HOST leads to no address of this machine (a proxy), that or
 * DSCOMM_SOCKET_IFNAME must name some: ERR_ENVIRONMENT otherwise. MT: safe. */
DSCOMM_API dscomm_status_t dscomm_store_open(const char *url,
                                             const dscomm_store_attr_t *attr,
                                             dscomm_store_t **ret_store);

/* A store of the program's own, such as one that another library has opened.
 * Each function has the contract of the call of its name below, and gets arg;
 * it returns OK, or a status < 0 after dscomm_fail(). Values that it returns
 * are from malloc(), of at most 8 MiB, and the library frees them. get and wait
 * return within timeout_ms, ERR_TIMEOUT if a key is missing; the others in
 * about a second. Threads of the library call them at the same time as the
 * program's, until close; close is called once, by the thread that closes the
 * last view. */
typedef struct dscomm_store_custom {
    size_t size;
    void *arg;
    dscomm_status_t (*set)(void *arg, const char *key, const void *value,
                           size_t size);
    dscomm_status_t (*get)(void *arg, const char *key, int timeout_ms,
                           void **ret_value, size_t *ret_size);
    dscomm_status_t (*wait)(void *arg, const char *const *keys, size_t count,
                            int timeout_ms);
    dscomm_status_t (*add)(void *arg, const char *key, int64_t delta,
                           int64_t *ret_sum);
    dscomm_status_t (*compare_set)(void *arg, const char *key,
                                   const void *expected, size_t expected_size,
                                   const void *desired, size_t desired_size,
                                   void **ret_value, size_t *ret_size);
    dscomm_status_t (*append)(void *arg, const char *key, const void *value,
                              size_t size);
    dscomm_status_t (*remove)(void *arg, const char *key, int *ret_deleted);
    dscomm_status_t (*check)(void *arg, const char *const *keys, size_t count,
                             int *ret_present);
    /* may be NULL: that call is ERR_UNSUPPORTED; the library never makes it */
    dscomm_status_t (*num_keys)(void *arg, int64_t *ret_count);
    void (*close)(void *arg); /* may be NULL */
} dscomm_store_custom_t;
#define DSCOMM_STORE_CUSTOM_INIT                                               \
    {                                                                          \
        sizeof(dscomm_store_custom_t), NULL, NULL, NULL, NULL, NULL, NULL,     \
            NULL, NULL, NULL, NULL, NULL                                       \
    }
/* Makes a store of these functions, which are copied. Of attr, which may be
 * NULL, only timeout_ms counts. ERR_INVALID if a function is missing. If the
 * call fails, close is not called. MT: safe. */
DSCOMM_API dscomm_status_t dscomm_store_open_custom(
    const dscomm_store_custom_t *custom, const dscomm_store_attr_t *attr,
    dscomm_store_t **ret_store);

/* Returns a view of store in which every key is PREFIX/key, as in torch's
 * PrefixStore. It has a reference to store, which may be closed first. MT:
 * safe. */
DSCOMM_API dscomm_status_t dscomm_store_prefix(dscomm_store_t *store,
                                               const char *prefix,
                                               dscomm_store_t **ret_store);

/* Closes a store or a view, which may be NULL. A server that this store started
 * ends when its last view is closed. MT: safe, but not while another thread
 * uses the same handle. */
DSCOMM_API void dscomm_store_close(dscomm_store_t *store);

/* TCP: the port served or connected to; otherwise 0. MT: safe. */
DSCOMM_API int dscomm_store_port(const dscomm_store_t *store);

/* All calls below: timeout_ms is in milliseconds, or DSCOMM_TIMEOUT_DEFAULT.
 * Several threads may use a store; a thread that waits for a key delays no
 * other. A lost TCP connection is made again, but only to the same server: a
 * restarted server has lost its keys, so that is ERR_PEER_FAILED. After a call
 * has returned, all clients see what it has changed. MT: safe. */

/* Stores size bytes under key, replacing an earlier value. value may be NULL if
 * size is 0. */
DSCOMM_API dscomm_status_t dscomm_store_set(dscomm_store_t *store,
                                            const char *key, const void *value,
                                            size_t size);

/* Waits for key and returns a copy of its value, which the caller frees with
 * dscomm_store_free(). *ret_value is never NULL on success, and one byte beyond
 * *ret_size is 0, so text can be used as a C string. ERR_TIMEOUT names the
 * key. */
DSCOMM_API dscomm_status_t dscomm_store_get(dscomm_store_t *store,
                                            const char *key, int timeout_ms,
                                            void **ret_value, size_t *ret_size);
DSCOMM_API void dscomm_store_free(void *value);

/* Waits for count keys, then returns all values; ret_values and ret_sizes are
 * arrays of count, each value freed with dscomm_store_free(). On failure
 * nothing is left to free. */
DSCOMM_API dscomm_status_t dscomm_store_multi_get(dscomm_store_t *store,
                                                  const char *const *keys,
                                                  size_t count, int timeout_ms,
                                                  void **ret_values,
                                                  size_t *ret_sizes);

/* Waits until all keys exist. ERR_TIMEOUT names the missing ones. */
DSCOMM_API dscomm_status_t dscomm_store_wait(dscomm_store_t *store,
                                             const char *const *keys,
                                             size_t count, int timeout_ms);

/* Adds delta to the decimal number under key (0 if absent) and returns the sum
 * (ret_sum may be NULL). ERR_INVALID if the value is not a number or the sum
 * overflows 64 bits. A server of torch's wraps the sum around instead, without
 * an error. */
DSCOMM_API dscomm_status_t dscomm_store_add(dscomm_store_t *store,
                                            const char *key, int64_t delta,
                                            int64_t *ret_sum);

/* Replaces the value by desired if it equals expected, or if the key is absent
 * and expected is empty. Returns the value stored then, as a copy that the
 * caller frees; both outputs may be NULL. If the key is absent and expected is
 * not empty, nothing is stored, and expected is returned, as by torch. */
DSCOMM_API dscomm_status_t dscomm_store_compare_set(
    dscomm_store_t *store, const char *key, const void *expected,
    size_t expected_size, const void *desired, size_t desired_size,
    void **ret_value, size_t *ret_size);

/* Appends size bytes to the value; if the key is absent, the bytes become its
 * value. ERR_INVALID if the value would become longer than 8 MiB. */
DSCOMM_API dscomm_status_t dscomm_store_append(dscomm_store_t *store,
                                               const char *key,
                                               const void *value, size_t size);

/* Removes key; *ret_deleted (may be NULL) is 1 if it existed, else 0. */
DSCOMM_API dscomm_status_t dscomm_store_delete(dscomm_store_t *store,
                                               const char *key,
                                               int *ret_deleted);

/* *ret_present = 1 if all keys exist now, else 0. Does not wait. */
DSCOMM_API dscomm_status_t dscomm_store_check(dscomm_store_t *store,
                                              const char *const *keys,
                                              size_t count, int *ret_present);

/* Number of keys in the whole store, whatever the prefix. */
DSCOMM_API dscomm_status_t dscomm_store_num_keys(dscomm_store_t *store,
                                                 int64_t *ret_count);

#ifdef __cplusplus
}
#endif

#endif
