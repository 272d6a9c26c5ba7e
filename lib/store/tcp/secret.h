/* SPDX-License-Identifier: BSD-3-Clause */
/* The job's secret: where it comes from, and how client and server of a TCP
 * store prove to each other that they know it, without sending it. Each gives a
 * nonce and the HMAC-SHA256 of its role and both nonces. What follows on the
 * connection is neither signed nor encrypted. */
#ifndef LIB_STORE_SECRET_H
#define LIB_STORE_SECRET_H

#include <dscomm/status.h>
#include <stdbool.h>
#include <stdint.h>

#define SECRET_MIN 16 /* characters; shorter ones can be guessed */
#define SECRET_MAX 1024
#define SECRET_NONCE_SIZE 16
#define SECRET_PROOF_SIZE 32
#define SECRET_MADE_SIZE 65 /* of a new one, with its 0 */

/* *ret_secret = that of DSCOMM_JOB_SECRET, else that in the file that
 * DSCOMM_JOB_SECRET_FILE names, without white space at its ends; NULL: there is
 * none. Free it with dscomm_priv_secret_free(). ERR_ENVIRONMENT if it is short
 * or long, or if the file cannot be read, is a symbolic link, belongs to a user
 * other than this one and root, or is open to other users. */
dscomm_status_t dscomm_priv_secret_find(char **ret_secret);
/* Clears its memory; NULL is fine. */
void dscomm_priv_secret_free(char *secret);

/* A new random secret, as text. False: the system gives no random numbers. */
bool dscomm_priv_secret_make(char made[SECRET_MADE_SIZE]);
/* A new nonce. False: the system gives no random numbers. */
bool dscomm_priv_secret_nonce(uint8_t nonce[SECRET_NONCE_SIZE]);

typedef enum { SECRET_CLIENT, SECRET_SERVER } dscomm_priv_secret_role_t;

/* What role sends to prove that it knows secret. nonces: the client's, then the
 * server's. */
void dscomm_priv_secret_prove(const char *secret,
                              dscomm_priv_secret_role_t role,
                              const uint8_t nonces[2 * SECRET_NONCE_SIZE],
                              uint8_t ret_proof[SECRET_PROOF_SIZE]);
/* Whether proof is right, in a time that does not depend on it. */
bool dscomm_priv_secret_check(const char *secret,
                              dscomm_priv_secret_role_t role,
                              const uint8_t nonces[2 * SECRET_NONCE_SIZE],
                              const uint8_t proof[SECRET_PROOF_SIZE]);

/* MUNGE carries a secret of the job: the daemon of each machine of a cluster,
 * which Slurm needs, encrypts it so that only processes of the same user, on
 * machines with the same key, can read it. So the server may give it to
 * everyone. libmunge.so.2 is loaded if it is there. Calls take as long as the
 * daemon on this machine, which libmunge gives some seconds. */

/* Encrypts secret; the credential is text to be freed with free().
 * ERR_NOT_FOUND: this machine has no libmunge, or no daemon. */
dscomm_status_t dscomm_priv_munge_encode(const char *secret,
                                         char **ret_credential);

/* Reads what dscomm_priv_munge_encode() made in another process of this user.
 * ERR_MISMATCH: another user's, or none; ERR_NOT_FOUND: there is no libmunge. A
 * credential may be old, and read any number of times: the server must prove
 * that it knows the secret. */
dscomm_status_t dscomm_priv_munge_decode(const char *credential,
                                         char ret_secret[SECRET_MADE_SIZE]);

/* For a server: a new secret, to be freed with dscomm_priv_secret_free(), and
 * its credential; both NULL, which is logged, if this machine has no libmunge
 * or no daemon. ERR_ENVIRONMENT: the daemon fails. */
dscomm_status_t dscomm_priv_munge_make(char **ret_secret,
                                       char **ret_credential);

#endif
