/* SPDX-License-Identifier: BSD-3-Clause */
/* The bytes of torch's TCPStore protocol, for client and server: integers in
 * host order, strings as u64 length and bytes, one byte of command before each
 * request. */
#ifndef LIB_STORE_WIRE_H
#define LIB_STORE_WIRE_H

#include "lib/base/array.h"
#include "lib/store/tcp/secret.h"

#include <dscomm/store.h>

#include <glib.h>

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
    /* dscomm's own, at numbers that torch leaves free, see secret.h.
     * CHALLENGE gives a nonce and is answered with a wire_challenge_t; PROOF
     * gives the client's proof and has no answer. Until then a server with a
     * secret executes nothing else but VALIDATE and PING, whose number it
     * answers inverted. */
    WIRE_CHALLENGE = 64,
    WIRE_PROOF = 65,
    /* Gives the client's identifier, a key and a value, see will.h: the
     * connection is one of a client that has this last will. An empty value
     * withdraws the will for the key, or all wills if the key is empty. There
     * is no answer. A client gives a will only to a server that has named
     * itself: torch's has no such command. */
    WIRE_WILL = 66,
    /* Answered with the credential that the job's secret is in, see
     * secret.h, or with no bytes; a server executes it before PROOF, too. A
     * rank 0 that cannot make one answers WIRE_NO_CREDENTIAL, its job's name, a
     * line feed and why. */
    WIRE_CREDENTIAL = 67,
    /* Gives a dscomm_priv_rank_t, whose process will not use the store since
     * their secrets differ, see peer.h. There is no answer; a server
     * executes it before PROOF, too. */
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
/* These have no '/' before them, and so are nobody's keys: torch's counter of
 * clients; a name that tells a server from the next one on its port; and the
 * job that it is for. Our server has the latter two from the start, and does
 * not count their keys; torch's gets them from the first client of ours. */
#define WIRE_INIT_KEY "init/"
#define WIRE_SERVER_KEY "dscomm/server"
#define WIRE_JOB_KEY "dscomm/job"
#define WIRE_NAME_SIZE 16
#define WIRE_WILL_MAX ((size_t)1 << 10) /* bytes of a will's key and value */
#define WIRE_NAMED_ITSELF 's' /* the first byte of the name */
#define WIRE_NAMED_BY_CLIENT 'c'

#define WIRE_NO_CREDENTIAL '-' /* MUNGE's begin with a letter */
enum { WIRE_READY = 0, WIRE_NOT_READY = 1 }; /* answers to CHECK */
enum { WIRE_STOP_WAITING = 0, WIRE_CANCELED = 1 }; /* to WAIT, CANCEL_WAIT */

/* Bytes that grow at the end. Growing may fail: bad is set then, and further
 * bytes are dropped, so that one check at the end is enough. {0} is empty. */
typedef struct {
    uint8_t *data;
    size_t size, room;
    gboolean bad;
} dscomm_priv_buffer_t;

void dscomm_priv_buffer_clear(dscomm_priv_buffer_t *buffer);
/* Makes room for more bytes behind size; FALSE where there is no memory. */
gboolean dscomm_priv_buffer_reserve(dscomm_priv_buffer_t *buffer, size_t more);
void dscomm_priv_buffer_put(dscomm_priv_buffer_t *buffer, const void *data,
                            size_t size);
void dscomm_priv_put_u8(dscomm_priv_buffer_t *buffer, uint8_t value);
void dscomm_priv_put_u32(dscomm_priv_buffer_t *buffer, uint32_t value);
void dscomm_priv_put_u64(dscomm_priv_buffer_t *buffer, uint64_t value);
/* u64 size and the bytes. */
void dscomm_priv_put_bytes(dscomm_priv_buffer_t *buffer, const void *data,
                           size_t size);
void dscomm_priv_put_key(dscomm_priv_buffer_t *buffer, const char *key);
/* A new random name of WIRE_NAME_SIZE bytes, of which the first one is named,
 * its kind. */
void dscomm_priv_wire_name(uint8_t *name, uint8_t named);
/* A whole request of many keys. */
void dscomm_priv_put_keys(dscomm_priv_buffer_t *request, int command,
                          const char *const *keys, size_t count);

/* Where a key, value or integer lies in the bytes scanned. */
typedef struct {
    size_t offset, size;
} dscomm_priv_span_t;

/* Finds the end of one request in bytes that arrive in any portions. */
typedef struct {
    int command; /* of the request; -1 before its first byte */
    size_t end; /* bytes of it that are understood */
    const char *field; /* what comes next, see the table in wire.c */
    const char *loop; /* fields that repeat, or NULL */
    uint64_t left; /* how often they still do */
    size_t want; /* end of the key or value that began, or 0 */
    dscomm_array_t spans; /* keys, values and integers: dscomm_priv_span_t */
    const char *problem; /* after SCAN_BAD: what is wrong */
} dscomm_priv_scan_t;

typedef enum { SCAN_MORE, SCAN_DONE, SCAN_BAD } dscomm_priv_scan_result_t;

void dscomm_priv_scan_init(dscomm_priv_scan_t *scan);
void dscomm_priv_scan_clear(dscomm_priv_scan_t *scan);
/* To the next request, whose bytes begin at 0 again. */
void dscomm_priv_scan_next(dscomm_priv_scan_t *scan);
/* data holds the request's bytes from its first on, those of earlier calls
 * included. SCAN_DONE: it has scan->end bytes. SCAN_BAD: it breaks the protocol
 * or its limits, or there is no memory. */
dscomm_priv_scan_result_t dscomm_priv_scan(dscomm_priv_scan_t *scan,
                                           const uint8_t *data, size_t size);

#endif
