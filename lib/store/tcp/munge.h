/* SPDX-License-Identifier: BSD-3-Clause */
/* A secret of the job that MUNGE carries: the daemon of each machine of a
 * cluster, which Slurm needs, encrypts it so that only processes of the same
 * user, on machines with the same key, can read it. So the server may give it
 * to everyone. libmunge.so.2 is loaded if it is there. Calls take as long as
 * the daemon on this machine, which libmunge gives some seconds. */
#ifndef LIB_STORE_MUNGE_H
#define LIB_STORE_MUNGE_H

#include "lib/store/tcp/secret.h"

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
