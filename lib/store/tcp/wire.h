/* SPDX-License-Identifier: BSD-3-Clause */
/* The bytes of torch's TCPStore protocol, for client and server: a command byte
 * before each request, integers in host order, strings as u64 length and bytes.
 */
#ifndef LIB_STORE_WIRE_H
#define LIB_STORE_WIRE_H

#include "lib/base/array.h"
#include "lib/store/tcp/secret.h"

#include <dscomm/store.h>

#include <glib.h>
#include <stdbool.h>

enum {
    WIRE_VALIDATE = 0,
    WIRE_SET = 1,
    WIRE_COMPARE_SET = 2,
    WIRE_GET = 3,
    WIRE_ADD = 4,
    WIRE_CHECK = 5,
    WIRE_WAIT = 6,
    WIRE_GETNUMKEYS = 7,
    WIRE_DELETE_KEY = 8,
    WIRE_APPEND = 9,
    WIRE_MULTI_GET = 10,
    WIRE_MULTI_SET = 11,
    WIRE_CANCEL_WAIT = 12,
    WIRE_PING = 13,
    WIRE_QUEUE_PUSH = 14,
    WIRE_QUEUE_POP = 15,
    WIRE_QUEUE_LEN = 16,
    WIRE_LIST_KEYS = 17,
    WIRE_BARRIER = 18,
    /* dscomm's own commands, with numbers that torch does not use, see
     * secret.h. CHALLENGE carries a nonce; its answer is a
     * dscomm_priv_challenge_t. PROOF carries the client's proof and has no
     * answer. Before it, a server with a secret executes only VALIDATE, PING
     * (whose nonce it returns inverted), CHALLENGE, CREDENTIAL and REFUSED. */
    WIRE_CHALLENGE = 64,
    WIRE_PROOF = 65,
    /* Carries the client's identifier, a key and a value, see session.h:
     * the client of this connection has this last will. An empty value
     * withdraws the will for the key, or all wills if the key is empty. There
     * is no answer. A client sends it only to a server that has named itself;
     * torch's has no such command. */
    WIRE_WILL = 66,
    /* The answer is the credential with the job's secret, see secret.h, or
     * empty; allowed before PROOF. If rank 0 cannot make one, the answer is
     * WIRE_NO_CREDENTIAL, its job's name, a line feed and the reason. */
    WIRE_CREDENTIAL = 67,
    /* Carries a dscomm_priv_rank_t: that process does not use the store,
     * because secrets differ, see secret.h. There is no answer; allowed before
     * PROOF. */
    WIRE_REFUSED = 68,
    WIRE_COMMANDS
};

/* The answer to CHALLENGE; all 0 if the server has no secret. */
typedef struct {
    uint8_t guarded; /* 1 */
    uint8_t nonce[SECRET_NONCE_SIZE];
    uint8_t proof[SECRET_PROOF_SIZE];
} dscomm_priv_challenge_t;

#define WIRE_MAGIC 0x3C85F7CEu
#define WIRE_KEYS_MAX ((uint64_t)128 << 10) /* in one request */
#define WIRE_FRAME_MAX ((size_t)64 << 20) /* bytes of one request */
/* Keys without '/', so no user's key collides with them: torch's counter of
 * clients; a name that distinguishes a server from the next one on its port;
 * and the server's job. Our server has the last two from the start and does not
 * count them as keys. On torch's server the first of our clients sets them. */
#define WIRE_INIT_KEY "init/"
#define WIRE_SERVER_KEY "dscomm/server"
#define WIRE_JOB_KEY "dscomm/job"
#define WIRE_NAME_SIZE 16
#define WIRE_WILL_MAX ((size_t)1 << 10) /* bytes of a will's key and value */
#define WIRE_NAMED_ITSELF 's' /* first byte of the name of our server */
#define WIRE_NAMED_BY_CLIENT 'c'

#define WIRE_NO_CREDENTIAL '-' /* a MUNGE credential begins with a letter */
enum { WIRE_READY = 0, WIRE_NOT_READY = 1 }; /* answers to CHECK */
enum { WIRE_STOP_WAITING = 0, WIRE_CANCELED = 1 }; /* to WAIT, CANCEL_WAIT */

/* A byte buffer that grows. If growing fails, bad is set and further bytes are
 * dropped, so one check at the end is enough. {0} is empty. */
typedef struct {
    uint8_t *data;
    size_t size, room;
    bool bad;
} dscomm_priv_buffer_t;

void dscomm_priv_buffer_clear(dscomm_priv_buffer_t *buffer);
/* Makes room for more bytes after size; false: no memory. */
bool dscomm_priv_buffer_reserve(dscomm_priv_buffer_t *buffer, size_t more);
void dscomm_priv_buffer_put(dscomm_priv_buffer_t *buffer, const void *data,
                            size_t size);
void dscomm_priv_put_u8(dscomm_priv_buffer_t *buffer, uint8_t value);
void dscomm_priv_put_u32(dscomm_priv_buffer_t *buffer, uint32_t value);
void dscomm_priv_put_u64(dscomm_priv_buffer_t *buffer, uint64_t value);
/* Appends a u64 size and the bytes. */
void dscomm_priv_put_bytes(dscomm_priv_buffer_t *buffer, const void *data,
                           size_t size);
void dscomm_priv_put_key(dscomm_priv_buffer_t *buffer, const char *key);
/* Makes a random name of WIRE_NAME_SIZE bytes; the first byte is named, the
 * kind of name. */
void dscomm_priv_wire_name(uint8_t *name, uint8_t named);
/* Appends a complete request for many keys. */
void dscomm_priv_put_keys(dscomm_priv_buffer_t *request, int command,
                          const char *const *keys, size_t count);

/* Position of a key, value or integer in the scanned bytes. */
typedef struct {
    size_t offset, size;
} dscomm_priv_span_t;

/* Finds the end of one request in bytes that arrive in pieces of any size. */
typedef struct {
    int command; /* -1 before the first byte */
    size_t end; /* bytes scanned so far */
    const char *field; /* the next field, see the table in wire.c */
    const char *loop; /* fields that repeat, or NULL */
    uint64_t left; /* repetitions left */
    size_t want; /* end of the current key or value, or 0 */
    dscomm_array_t spans; /* keys, values and integers: dscomm_priv_span_t */
    const char *problem; /* after SCAN_BAD: what is wrong */
} dscomm_priv_scan_t;

typedef enum { SCAN_MORE, SCAN_DONE, SCAN_BAD } dscomm_priv_scan_result_t;

void dscomm_priv_scan_init(dscomm_priv_scan_t *scan);
void dscomm_priv_scan_clear(dscomm_priv_scan_t *scan);
/* Prepares for the next request, whose bytes begin at 0 again. */
void dscomm_priv_scan_next(dscomm_priv_scan_t *scan);
/* data holds all bytes of the request so far. SCAN_DONE: the request has
 * scan->end bytes. SCAN_BAD: it violates the protocol or its limits, or there
 * is no memory. */
dscomm_priv_scan_result_t dscomm_priv_scan(dscomm_priv_scan_t *scan,
                                           const uint8_t *data, size_t size);

#endif
