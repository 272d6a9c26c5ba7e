/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading the job's secret, and proofs by GHmac. */
#include "config.h"

#include "lib/store/tcp/secret.h"

#include "lib/base/settings.h"
#include "lib/base/random.h"
#include "lib/base/status.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static dscomm_status_t fail_file(const char *path, const char *why)
{
    char shown[128];

    return dscomm_fail(DSCOMM_ERR_ENVIRONMENT, "DSCOMM_JOB_SECRET_FILE=%s: %s",
                       dscomm_priv_quote(path, shown, sizeof shown), why);
}

/* Reads what there is of at most size bytes; -1 with errno. */
static ssize_t read_all(int fd, char *text, size_t size)
{
    size_t have = 0;

    while (have < size) {
        ssize_t got = read(fd, text + have, size - have);

        if (got < 0 && errno != EINTR)
            return -1;
        if (got == 0)
            break;
        have += got > 0 ? (size_t)got : 0;
    }
    return (ssize_t)have;
}

/* Another user who owns the file, or may open it, knows the secret. */
static dscomm_status_t check_file(const char *path, int fd)
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

static dscomm_status_t read_open(const char *path, int fd, char *text)
{
    dscomm_status_t status = check_file(path, fd);
    ssize_t got;

    if (status)
        return status;
    got = read_all(fd, text, SECRET_MAX + 1);
    if (got < 0)
        return fail_file(path, strerror(errno));
    text[got] = '\0';
    if (strlen(text) != (size_t)got)
        return fail_file(path, "a secret is text, and has no byte 0");
    return DSCOMM_OK;
}

static dscomm_status_t read_file(const char *path, char *text)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
    dscomm_status_t status;

    if (fd < 0 && errno == ELOOP)
        return fail_file(path, "this is a symbolic link, which is not "
                               "followed; name the file itself");
    if (fd < 0)
        return fail_file(path, strerror(errno));
    status = read_open(path, fd, text);
    close(fd);
    return status;
}

/* Copies text, if its length is one of a secret. */
static dscomm_status_t take(const char *text, const char *variable,
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
        return take(text, "DSCOMM_JOB_SECRET", ret_secret);
    if (!path)
        return DSCOMM_OK;
    status = read_file(path, read);
    if (status == DSCOMM_OK)
        status = take(g_strstrip(read), "DSCOMM_JOB_SECRET_FILE", ret_secret);
    explicit_bzero(read, sizeof read);
    return status;
}

void dscomm_priv_secret_free(char *secret)
{
    if (secret)
        explicit_bzero(secret, strlen(secret));
    g_free(secret);
}

bool dscomm_priv_secret_nonce(uint8_t nonce[SECRET_NONCE_SIZE])
{
    return dscomm_priv_random(nonce, SECRET_NONCE_SIZE);
}

bool dscomm_priv_secret_make(char made[SECRET_MADE_SIZE])
{
    uint8_t bytes[2 * SECRET_NONCE_SIZE];

    if (!dscomm_priv_secret_nonce(bytes) ||
        !dscomm_priv_secret_nonce(bytes + SECRET_NONCE_SIZE))
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
