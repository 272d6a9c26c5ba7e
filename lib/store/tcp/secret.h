/* SPDX-License-Identifier: BSD-3-Clause */
/* The job's secret: where it comes from, how client and server of a TCP store
 * prove that they know it, without sending it, and which processes have another
 * one. Each side sends a nonce and the HMAC-SHA256 of its role and both nonces.
 * The rest of the connection is neither signed nor encrypted. */
#ifndef LIB_STORE_SECRET_H
#define LIB_STORE_SECRET_H

#include "lib/store/tcp/socket.h"

#include <stdint.h>

#define SECRET_MIN 16 /* characters; shorter ones can be guessed */
#define SECRET_MAX 1024
#define SECRET_NONCE_SIZE 16
#define SECRET_PROOF_SIZE 32
#define SECRET_MADE_SIZE 65 /* size of a new secret, with its 0 */

/* Finds the secret: the value of DSCOMM_JOB_SECRET, else the contents of the
 * file that DSCOMM_JOB_SECRET_FILE names, without white space at its ends.
 * NULL: none. Free it with dscomm_priv_secret_free(). ERR_ENVIRONMENT if it is
 * too short or too long, or if the file cannot be read, is a symbolic link,
 * belongs to a user other than this one and root, or is open to other users. */
dscomm_status_t dscomm_priv_secret_find(char **ret_secret);
/* Overwrites and frees secret, which may be NULL. */
void dscomm_priv_secret_free(char *secret);

/* A new random secret, as text. False: the system gives no random numbers. */
bool dscomm_priv_secret_make(char made[SECRET_MADE_SIZE]);

typedef enum { SECRET_CLIENT, SECRET_SERVER } dscomm_priv_secret_role_t;

/* Makes the proof of role for secret. nonces: the client's, then the server's.
 */
void dscomm_priv_secret_prove(const char *secret,
                              dscomm_priv_secret_role_t role,
                              const uint8_t nonces[2 * SECRET_NONCE_SIZE],
                              uint8_t ret_proof[SECRET_PROOF_SIZE]);
/* True if proof is right; takes the same time for every proof. */
bool dscomm_priv_secret_check(const char *secret,
                              dscomm_priv_secret_role_t role,
                              const uint8_t nonces[2 * SECRET_NONCE_SIZE],
                              const uint8_t proof[SECRET_PROOF_SIZE]);

/* MUNGE carries the job's secret. The daemon on each machine of a cluster,
 * which Slurm needs anyway, encrypts it so that only processes of the same user
 * on machines with the same key can decrypt it. So the server may give the
 * credential to everyone. libmunge.so.2 is loaded if it exists. Calls wait for
 * this machine's daemon, up to libmunge's time-out of some seconds. */

/* Encrypts secret; the credential is text for free(). ERR_NOT_FOUND: this
 * machine has no libmunge, or no daemon. */
dscomm_status_t dscomm_priv_munge_encode(const char *secret,
                                         char **ret_credential);

/* Decrypts a credential that another process of this user has made.
 * ERR_MISMATCH: another user made it, or it is invalid. ERR_NOT_FOUND: no
 * libmunge. A credential may be old and may be read again, so the server must
 * also prove the secret. */
dscomm_status_t dscomm_priv_munge_decode(const char *credential,
                                         char ret_secret[SECRET_MADE_SIZE]);

/* Makes a new secret and its credential, on the server. Free the secret with
 * dscomm_priv_secret_free(). Both are NULL, with a log line, if this machine
 * has no libmunge or no daemon. ERR_ENVIRONMENT: the daemon fails. */
dscomm_status_t dscomm_priv_munge_make(char **ret_secret,
                                       char **ret_credential);

/* Reports of processes whose job secret differs from the server's; also if only
 * one of the two has a secret. Such a process sends a report on a separate
 * connection before it gives up, so that the members of its job need not wait
 * for it.
 *
 * The server keeps the reports under REFUSED_KEY, where waiting ranks read them
 * (dscomm_priv_roster_refused()). Anybody can send one. The kernel shows which
 * come from a process of the server's user on this machine: these can end a
 * start-up. All others only appear in the sentence of a start-up that has
 * failed because members are missing. */

/* The text: a line with the number of reports and, if the server has a secret,
 * 1, else 0; then a line for each kept report, of four fields separated by
 * tabs: 1 if the kernel has verified it, world, address, process. */
#define REFUSED_KEY "dscomm/refused"
#define REFUSED_LOOKUPS_MAX 16 /* reports that the server verifies at most */
#define REFUSED_KEPT_MAX 4 /* kept reports that are not verified */
#define REFUSED_TEXT_MAX                                                       \
    ((REFUSED_LOOKUPS_MAX + REFUSED_KEPT_MAX) *                                \
     (sizeof(dscomm_priv_rank_t) + SOCKET_NAME_MAX + 8))
#define REFUSED_VALUE_MAX (REFUSED_TEXT_MAX + 24) /* with the first line */

typedef struct {
    bool guarded, quiet; /* the server has a secret; logs no report */
    /* the server's world */
    char world[sizeof((dscomm_priv_rank_t *)NULL)->world];
    unsigned count, lookups, strangers; /* reports; lookups; strangers kept */
    char kept[REFUSED_TEXT_MAX]; /* their lines */
} dscomm_priv_refused_t;

/* world: the server's; "": not known. */
void dscomm_priv_refused_init(dscomm_priv_refused_t *refused, const char *world,
                              bool guarded, bool quiet);
/* Notes a report of rank on the connection fd, from peer. */
void dscomm_priv_refused_note(dscomm_priv_refused_t *refused, int fd,
                              const char *peer, const dscomm_priv_rank_t *rank);
/* Writes the value of REFUSED_KEY. */
void dscomm_priv_refused_text(const dscomm_priv_refused_t *refused,
                              char text[REFUSED_VALUE_MAX]);

#endif
