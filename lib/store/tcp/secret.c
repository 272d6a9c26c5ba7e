/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading the job's secret, proofs by GHmac, credentials by libmunge, and
 * reports of processes with another secret. */
#include "config.h"

#include "lib/store/tcp/secret.h"

#include "lib/base/random.h"
#include "lib/base/settings.h"
#include "lib/base/socket-table.h"
#include "lib/base/status.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LIBRARY "libmunge.so.2"
/* the kernel's id for users outside this namespace */
#define UID_UNMAPPED 65534

static dscomm_status_t fail_file(const char *path, const char *why)
{
    char shown[128];

    return dscomm_fail(DSCOMM_ERR_ENVIRONMENT, "DSCOMM_JOB_SECRET_FILE=%s: %s",
                       dscomm_priv_quote(path, shown, sizeof shown), why);
}

/* Fails if another user owns the file or may open it: that user would know the
 * secret. */
static dscomm_status_t secret_check_file(const char *path, int fd)
{
    struct stat status;
    char why[128];

    if (fstat(fd, &status) != 0)
        return fail_file(path, strerror(errno));
    if (!S_ISREG(status.st_mode))
        return fail_file(path, "this is no regular file");
    if (status.st_uid != geteuid() && status.st_uid != 0) {
        snprintf(why, sizeof why,
                 "it belongs to user %u, and not to this process's user %u or "
                 "root; make a copy",
                 (unsigned)status.st_uid, (unsigned)geteuid());
        return fail_file(path, why);
    }
    if (status.st_mode & (S_IRWXG | S_IRWXO))
        return fail_file(path, "other users may open it; chmod 600 it");
    return DSCOMM_OK;
}

static dscomm_status_t secret_read_open(const char *path, int fd, char *text)
{
    dscomm_status_t status = secret_check_file(path, fd);
    size_t have = 0;
    ssize_t got = 1;

    while (!status && got && have < SECRET_MAX + 1) {
        got = read(fd, text + have, SECRET_MAX + 1 - have);
        if (got < 0 && errno != EINTR)
            return fail_file(path, strerror(errno));
        have += got > 0 ? (size_t)got : 0;
    }
    text[have] = '\0';
    if (!status && strlen(text) != have)
        return fail_file(path, "a secret is text, and has no byte 0");
    return status;
}

static dscomm_status_t secret_read_file(const char *path, char *text)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
    dscomm_status_t status;

    if (fd < 0 && errno == ELOOP)
        return fail_file(path, "this is a symbolic link, which is not "
                               "followed; name the file itself");
    if (fd < 0)
        return fail_file(path, strerror(errno));
    status = secret_read_open(path, fd, text);
    close(fd);
    return status;
}

/* Copies text if its length is valid. */
static dscomm_status_t secret_take(const char *text, const char *variable,
                                   char **ret_secret)
{
    const size_t size = strlen(text);

    if (size < SECRET_MIN || size > SECRET_MAX)
        return dscomm_fail(DSCOMM_ERR_ENVIRONMENT,
                           "the secret of %s has %s than %d characters; make "
                           "one, the same for all ranks, with: openssl rand "
                           "-hex 32",
                           variable, size < SECRET_MIN ? "less" : "more",
                           size < SECRET_MIN ? SECRET_MIN : SECRET_MAX);
    *ret_secret = g_strdup(text);
    return DSCOMM_OK;
}

dscomm_status_t dscomm_priv_secret_find(char **ret_secret)
{
    const char *text = dscomm_priv_setting_text(SETTING_JOB_SECRET);
    const char *path = dscomm_priv_setting_text(SETTING_JOB_SECRET_FILE);
    char read[SECRET_MAX + 2];
    dscomm_status_t status;

    *ret_secret = NULL;
    if (text)
        return secret_take(text, "DSCOMM_JOB_SECRET", ret_secret);
    if (!path)
        return DSCOMM_OK;
    status = secret_read_file(path, read);
    if (status == DSCOMM_OK)
        status =
            secret_take(g_strstrip(read), "DSCOMM_JOB_SECRET_FILE", ret_secret);
    explicit_bzero(read, sizeof read);
    return status;
}

void dscomm_priv_secret_free(char *secret)
{
    if (secret)
        explicit_bzero(secret, strlen(secret));
    g_free(secret);
}

bool dscomm_priv_secret_make(char made[SECRET_MADE_SIZE])
{
    uint8_t bytes[SECRET_MADE_SIZE / 2];

    if (!dscomm_priv_random(bytes, sizeof bytes))
        return false;
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(made + 2 * i, 3, "%02x", bytes[i]);
    explicit_bzero(bytes, sizeof bytes);
    return true;
}

void dscomm_priv_secret_prove(const char *secret,
                              dscomm_priv_secret_role_t role,
                              const uint8_t nonces[2 * SECRET_NONCE_SIZE],
                              uint8_t ret_proof[SECRET_PROOF_SIZE])
{
    static const char *const roles[] = {
        [SECRET_CLIENT] = "dscomm store client",
        [SECRET_SERVER] = "dscomm store server",
    };
    gsize size = SECRET_PROOF_SIZE;
    GHmac *hmac =
        g_hmac_new(G_CHECKSUM_SHA256, (const guchar *)secret, strlen(secret));

    g_hmac_update(hmac, (const guchar *)roles[role],
                  (gssize)strlen(roles[role]));
    g_hmac_update(hmac, nonces, 2 * SECRET_NONCE_SIZE);
    g_hmac_get_digest(hmac, ret_proof, &size);
    g_hmac_unref(hmac);
}

bool dscomm_priv_secret_check(const char *secret,
                              dscomm_priv_secret_role_t role,
                              const uint8_t nonces[2 * SECRET_NONCE_SIZE],
                              const uint8_t proof[SECRET_PROOF_SIZE])
{
    uint8_t right[SECRET_PROOF_SIZE];
    volatile uint8_t differ = 0;

    dscomm_priv_secret_prove(secret, role, nonces, right);
    for (size_t i = 0; i < sizeof right; i++)
        differ |= right[i] ^ proof[i];
    explicit_bzero(right, sizeof right);
    return differ == 0;
}

/* MUNGE */

/* From libmunge's munge.h; these numbers are part of its ABI. */
enum {
    OPT_UID_RESTRICTION = 9,
    SOCKET_FAILED = 6, /* no daemon */
    CRED_EXPIRED = 15,
    CRED_REWOUND = 16,
    CRED_REPLAYED = 17,
};
typedef struct munge_ctx munge_ctx_t;
typedef struct {
    munge_ctx_t *(*create)(void);
    void (*destroy)(munge_ctx_t *context);
    int (*set)(munge_ctx_t *context, int option, ...);
    int (*encode)(char **ret_credential, munge_ctx_t *context, const void *data,
                  int size);
    int (*decode)(const char *credential, munge_ctx_t *context, void **ret_data,
                  int *ret_size, uid_t *ret_user, gid_t *ret_group);
    const char *(*text)(int error);
} munge_t;

static munge_t munge;
static bool munge_loaded;

static bool munge_symbol(void *handle, const char *name, void *ret_function)
{
    void *symbol = dlsym(handle, name);

    memcpy(ret_function, &symbol, sizeof symbol);
    return symbol != NULL;
}

/* Loads the library for the rest of the process's life. */
static void munge_load(void)
{
    void *handle = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);

    munge_loaded = handle &&
                   munge_symbol(handle, "munge_ctx_create", &munge.create) &&
                   munge_symbol(handle, "munge_ctx_destroy", &munge.destroy) &&
                   munge_symbol(handle, "munge_ctx_set", &munge.set) &&
                   munge_symbol(handle, "munge_encode", &munge.encode) &&
                   munge_symbol(handle, "munge_decode", &munge.decode) &&
                   munge_symbol(handle, "munge_strerror", &munge.text);
}

static bool munge_find(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, munge_load);
    if (!munge_loaded)
        dscomm_fail(DSCOMM_ERR_NOT_FOUND, "there is no " LIBRARY);
    return munge_loaded;
}

dscomm_status_t dscomm_priv_munge_encode(const char *secret,
                                         char **ret_credential)
{
    munge_ctx_t *context;
    int error;

    *ret_credential = NULL;
    if (!munge_find())
        return DSCOMM_ERR_NOT_FOUND;
    context = munge.create();
    if (!context)
        return dscomm_fail(DSCOMM_ERR_NO_MEMORY,
                           "munge: no memory for a context");
    error = munge.set(context, OPT_UID_RESTRICTION, geteuid());
    if (!error)
        error =
            munge.encode(ret_credential, context, secret, (int)strlen(secret));
    munge.destroy(context);
    if (!error)
        return DSCOMM_OK;
    free(*ret_credential);
    *ret_credential = NULL;
    return dscomm_fail(error == SOCKET_FAILED ? DSCOMM_ERR_NOT_FOUND
                                              : DSCOMM_ERR_ENVIRONMENT,
                       "munge: %s", munge.text(error));
}

/* True if the credential's contents could be read. An expired or repeated one
 * is accepted too. */
static bool munge_is_read(int error)
{
    return !error || error == CRED_EXPIRED || error == CRED_REWOUND ||
           error == CRED_REPLAYED;
}

dscomm_status_t dscomm_priv_munge_decode(const char *credential,
                                         char ret_secret[SECRET_MADE_SIZE])
{
    void *data = NULL;
    uid_t user = (uid_t)-1;
    gid_t group;
    dscomm_status_t status = DSCOMM_OK;
    int size = 0, error;

    if (!munge_find())
        return DSCOMM_ERR_NOT_FOUND;
    error = munge.decode(credential, NULL, &data, &size, &user, &group);
    if (!munge_is_read(error))
        status =
            dscomm_fail(DSCOMM_ERR_MISMATCH, "munge: %s", munge.text(error));
    else if (user != geteuid())
        status = dscomm_fail(DSCOMM_ERR_MISMATCH,
                             "user %u has made the credential", (unsigned)user);
    else if (!data || size != SECRET_MADE_SIZE - 1 ||
             memchr(data, 0, (size_t)size))
        status = dscomm_fail(DSCOMM_ERR_MISMATCH,
                             "the credential holds no secret of a job");
    else
        memcpy(ret_secret, data, SECRET_MADE_SIZE); /* with its 0 */
    if (data)
        explicit_bzero(data, (size_t)size);
    free(data);
    return status;
}

/* Decides what follows if no credential can be made. Without libmunge, the
 * cluster has no MUNGE, and the job has no secret. With libmunge but without a
 * daemon (a container, or munged has ended), the same with a warning. If the
 * daemon answers but fails, this is an error, because other machines of the job
 * may have a secret. */
static dscomm_status_t munge_make_without(dscomm_status_t status)
{
    if (status == DSCOMM_ERR_NOT_FOUND) {
        dscomm_log(munge_loaded ? DSCOMM_LOG_WARN : DSCOMM_LOG_INFO, "store",
                   "the job's store gets no secret by MUNGE: %s; start munged, "
                   "or set DSCOMM_JOB_SECRET (see dscomm-security(7))",
                   dscomm_last_error());
        return DSCOMM_OK;
    }
    return dscomm_fail(status,
                       "the job's store gets no secret by MUNGE, which fails "
                       "here: %s; mend munged, or set DSCOMM_JOB_SECRET to the "
                       "same text for all processes of the job",
                       dscomm_last_error());
}

dscomm_status_t dscomm_priv_munge_make(char **ret_secret, char **ret_credential)
{
    char made[SECRET_MADE_SIZE];
    dscomm_status_t status;

    *ret_secret = *ret_credential = NULL;
    if (!dscomm_priv_secret_make(made))
        return dscomm_fail(DSCOMM_ERR_IO, "the system gives no random numbers "
                                          "for a secret of the job");
    status = dscomm_priv_munge_encode(made, ret_credential);
    if (status == DSCOMM_OK)
        *ret_secret = strdup(made);
    explicit_bzero(made, sizeof made);
    if (status)
        return munge_make_without(status);
    if (*ret_secret)
        return DSCOMM_OK;
    free(*ret_credential);
    *ret_credential = NULL;
    return dscomm_fail(DSCOMM_ERR_NO_MEMORY, "no memory for a secret of the "
                                             "job");
}

/* Processes with another secret */

typedef dscomm_priv_refused_t refused_t;

void dscomm_priv_refused_init(refused_t *refused, const char *world,
                              bool guarded, bool quiet)
{
    *refused = (refused_t){.guarded = guarded, .quiet = quiet};
    g_strlcpy(refused->world, world, sizeof refused->world);
}

/* A search for the socket with these ends. */
typedef struct {
    dscomm_priv_socket_end_t near, far;
    bool own_user; /* found, and owned by this user */
} lookup_t;

static bool look_at(const dscomm_priv_socket_row_t *row, void *arg)
{
    lookup_t *lookup = arg;

    if (row->state != TCP_ESTABLISHED ||
        !dscomm_priv_socket_end_equal(&row->near, &lookup->near) ||
        !dscomm_priv_socket_end_equal(&row->far, &lookup->far))
        return true;
    lookup->own_user = row->user == geteuid() && row->user != UID_UNMAPPED;
    return false;
}

static bool is_loopback(const struct in6_addr *address)
{
    return IN6_IS_ADDR_LOOPBACK(address) ||
           (IN6_IS_ADDR_V4MAPPED(address) && address->s6_addr[12] == 127);
}

/* Prepares the search for the other end of fd. False if that end is on another
 * machine: if both are here, their addresses are equal, or both are loopback
 * addresses. */
static bool lookup_init(lookup_t *lookup, int fd)
{
    struct sockaddr_storage peer, own;
    socklen_t peer_length = sizeof peer, own_length = sizeof own;

    if (getpeername(fd, (struct sockaddr *)&peer, &peer_length) ||
        getsockname(fd, (struct sockaddr *)&own, &own_length) ||
        !dscomm_priv_socket_end(&peer, &lookup->near) ||
        !dscomm_priv_socket_end(&own, &lookup->far))
        return false;
    return IN6_ARE_ADDR_EQUAL(&lookup->near.address, &lookup->far.address) ||
           (is_loopback(&lookup->near.address) &&
            is_loopback(&lookup->far.address));
}

/* True if rank, on the connection fd, belongs to the server's world and user. A
 * search takes longer the more connections this machine has, so their number is
 * limited. A rank on another machine costs none. */
static bool is_member(refused_t *refused, int fd,
                      const dscomm_priv_rank_t *rank)
{
    lookup_t lookup = {.own_user = false};

    if ((*refused->world && strcmp(rank->world, refused->world)) ||
        !lookup_init(&lookup, fd) || refused->lookups == REFUSED_LOOKUPS_MAX)
        return false;
    refused->lookups++;
    dscomm_priv_socket_table(look_at, &lookup);
    return lookup.own_user;
}

/* True if rank belongs to another job and found this server while it tried
 * several ports. A world's name ends with the job's name. */
static bool is_of_other_job(const refused_t *refused,
                            const dscomm_priv_rank_t *rank)
{
    const char *own = strrchr(refused->world, ' ');
    const char *other = strrchr(rank->world, ' ');

    return own && other && own[1] && strcmp(own, other) != 0;
}

void dscomm_priv_refused_note(refused_t *refused, int fd, const char *peer,
                              const dscomm_priv_rank_t *rank)
{
    const size_t length = strlen(refused->kept);
    dscomm_priv_rank_t said = *rank;
    bool member;

    dscomm_priv_tidy(said.name, sizeof said.name);
    dscomm_priv_tidy(said.world, sizeof said.world);
    if (is_of_other_job(refused, &said))
        return;
    member = is_member(refused, fd, &said);
    /* there is room for all members, and for a few others */
    if (member || refused->strangers++ < REFUSED_KEPT_MAX)
        snprintf(refused->kept + length, sizeof refused->kept - length,
                 "%d\t%s\t%s\t%s\n", member, said.world, peer, said.name);
    if (refused->count++ == 0 && !refused->quiet)
        dscomm_log(DSCOMM_LOG_WARN, "store",
                   "%s, which says that it is %s, leaves, since its job secret "
                   "differs; give all processes of the job the same "
                   "DSCOMM_JOB_SECRET or DSCOMM_JOB_SECRET_FILE, or none of "
                   "them one",
                   peer, said.name);
}

void dscomm_priv_refused_text(const refused_t *refused,
                              char text[REFUSED_VALUE_MAX])
{
    snprintf(text, REFUSED_VALUE_MAX, "%u %d\n%s", refused->count,
             refused->guarded, refused->kept);
}
