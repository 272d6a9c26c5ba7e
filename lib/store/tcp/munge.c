/* SPDX-License-Identifier: BSD-3-Clause */
/* Credentials by libmunge, see munge.h. */
#include "config.h"

#include "lib/store/tcp/munge.h"

#include "lib/base/status.h"

#include <dlfcn.h>
#include <glib.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LIBRARY "libmunge.so.2"

/* Of munge.h, whose numbers are part of the library's ABI. */
enum {
    OPT_UID_RESTRICTION = 9,
    SOCKET_FAILED = 6, /* no daemon answers */
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

#define SLOT(member, symbol)                                                   \
    {                                                                          \
        offsetof(munge_t, member), symbol                                      \
    }
static const struct {
    size_t offset;
    const char *symbol;
} slots[] = {
    SLOT(create, "munge_ctx_create"), SLOT(destroy, "munge_ctx_destroy"),
    SLOT(set, "munge_ctx_set"),       SLOT(encode, "munge_encode"),
    SLOT(decode, "munge_decode"),     SLOT(text, "munge_strerror"),
};

static munge_t munge;
static bool loaded;

/* The library stays loaded from here on. */
static void load(void)
{
    void *handle = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);

    loaded = handle != NULL;
    for (size_t i = 0; loaded && i < sizeof slots / sizeof *slots; i++) {
        void *symbol = dlsym(handle, slots[i].symbol);

        memcpy((char *)&munge + slots[i].offset, &symbol, sizeof symbol);
        loaded = symbol != NULL;
    }
}

static bool find_munge(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, load);
    if (!loaded)
        dscomm_fail(DSCOMM_ERR_NOT_FOUND, "there is no " LIBRARY);
    return loaded;
}

dscomm_status_t dscomm_priv_munge_encode(const char *secret,
                                         char **ret_credential)
{
    munge_ctx_t *context;
    int error;

    *ret_credential = NULL;
    if (!find_munge())
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

/* Whether error is none, or only the credential's age or repetition, which come
 * with its contents. */
static bool is_read(int error)
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

    if (!find_munge())
        return DSCOMM_ERR_NOT_FOUND;
    error = munge.decode(credential, NULL, &data, &size, &user, &group);
    if (!is_read(error))
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

/* A machine without libmunge is one of a cluster without MUNGE. One that has
 * the library, but no daemon, may be a container, or its daemon has ended: the
 * job goes on without a secret, and its user learns it. If the daemon answers
 * but fails, the job ends, since other machines of it may have a secret. */
static dscomm_status_t make_without(dscomm_status_t status)
{
    char why[DSCOMM_ERROR_MAX];

    g_strlcpy(why, dscomm_last_error(), sizeof why);
    if (status == DSCOMM_ERR_NOT_FOUND) {
        dscomm_log(loaded ? DSCOMM_LOG_WARN : DSCOMM_LOG_INFO, "store",
                   "the job's store gets no secret by MUNGE: %s; start munged, "
                   "or set DSCOMM_JOB_SECRET (see dscomm-security(7))",
                   why);
        return DSCOMM_OK;
    }
    return dscomm_fail(status,
                       "the job's store gets no secret by MUNGE, which fails "
                       "here: %s; mend munged, or set DSCOMM_JOB_SECRET to the "
                       "same text for all processes of the job",
                       why);
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
        return make_without(status);
    if (*ret_secret)
        return DSCOMM_OK;
    free(*ret_credential);
    *ret_credential = NULL;
    return dscomm_fail(DSCOMM_ERR_NO_MEMORY, "no memory for a secret of the "
                                             "job");
}
