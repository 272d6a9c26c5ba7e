/* SPDX-License-Identifier: BSD-3-Clause */
/* The roster: members that meet in a store. Each member claims its number and
 * puts a record of itself there; member 0 waits for all records and publishes a
 * decision for all members, or why there is none. The ranks of a world meet so,
 * and the nodes of `dscomm run`, which links this file too. What records and
 * decisions say is their users' affair. */
#ifndef LIB_ROSTER_H
#define LIB_ROSTER_H

#include <dscomm/store.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ROSTER_KEY_MAX 32
#define ROSTER_TOKEN_MAX 128

/* A decision that begins so is none: the rest says why. */
#define ROSTER_FAILURE "error\n"

/* How much longer than member 0, which names the missing ones, the others wait
 * for its decision, in ms. */
#define ROSTER_GRACE_MS 1000

typedef struct {
    dscomm_store_t *store; /* view of the members' keys */
    int own, count; /* this member's number; how many members there are */
    /* For all to come, of dscomm_priv_clock(); never INT64_MAX: a wait without
     * end would not look around. */
    int64_t deadline;
    /* Keys: of a record, which the member's number follows; of the decision; of
     * the number of members that have read why there is none. */
    const char *record, *decision, *read;
} dscomm_roster_t;

#define ROSTER_LINES_MAX 10

/* A member's record is text of lines: the first names the format, then numbers
 * from -1 to 2^31 - 1, and strings. Arrays end with NULL. */
typedef struct {
    const char *format;
    size_t most; /* bytes of the text */
    int64_t *numbers[ROSTER_LINES_MAX];
    const char **strings[ROSTER_LINES_MAX];
} dscomm_roster_lines_t;

/* The text, for g_free(); NULL without memory. */
char *dscomm_priv_roster_write(const dscomm_roster_lines_t *lines);
/* And back: strings point into *ret_memory then, which is for g_free(). -1:
 * this is no such text, 1: no memory; *ret_memory is NULL then. */
int dscomm_priv_roster_read(const dscomm_roster_lines_t *lines,
                            const char *text, size_t size, char **ret_memory);

/* How a member waits: it looks around at times. */
typedef struct {
    int slice_ms, most_ms; /* until the next look; doubled up to most_ms */
    /* What it looks at. A failure ends the wait. */
    dscomm_status_t (*look)(void *arg);
    void *arg;
} dscomm_roster_wait_t;

/* Names this process for those that claim the same number: "pid 7 on b, 03a0"
 * with a random last field; unique. space: a field before it, or NULL. */
void dscomm_priv_roster_token(const char *space, char token[ROSTER_TOKEN_MAX]);

/* Claims this member's number: the first process has it. *ret_other is NULL, or
 * the token of the process that has it already; g_free(). replaces: whether the
 * process of token may take the place of the other one; NULL: never. */
dscomm_status_t
dscomm_priv_roster_claim(const dscomm_roster_t *roster, const char *token,
                         bool (*replaces)(const char *other, const char *token),
                         char **ret_other);

/* The key of a member's record. Returns key. */
const char *dscomm_priv_roster_key(const dscomm_roster_t *roster, int member,
                                   char key[ROSTER_KEY_MAX]);

/* Puts this member's record there. */
dscomm_status_t dscomm_priv_roster_put(const dscomm_roster_t *roster,
                                       const char *record);

/* *ret_value = what key holds, for dscomm_store_free(); NULL: there is none
 * yet. */
dscomm_status_t dscomm_priv_roster_fetch(dscomm_store_t *store, const char *key,
                                         void **ret_value, size_t *ret_size);

/* Waits for the records of all members, until the deadline, and gives them to
 * take in the order of their numbers, some each time that all before have come.
 * A failure of take ends that. */
dscomm_status_t dscomm_priv_roster_collect(
    const dscomm_roster_t *roster, dscomm_roster_wait_t *wait,
    dscomm_status_t (*take)(void *arg, int member, const void *value,
                            size_t size));

/* Looks for half a second at most which of so many members have not set their
 * key, prefix and number. *ret_names is NULL if none is missing, or known to
 * be; else "ranks 2, 3 and perhaps others of 8", with noun "rank"; g_free().
 * *ret_came: so many are known to be there. */
dscomm_status_t dscomm_priv_roster_missing(dscomm_store_t *store,
                                           const char *prefix, int count,
                                           const char *noun, char **ret_names,
                                           int *ret_came);

/* How many connections the store's server has refused because of another job
 * secret (lib/store/tcp/peer.h), after dscomm_fail() with ERR_MISMATCH; 0:
 * none, or it does not say. certain: only if the kernel vouches for one of
 * them, whose process is of world. server: whose store it is, as "rank 0". */
int dscomm_priv_roster_refused(dscomm_store_t *store, const char *world,
                               const char *server, bool certain);

/* Waits until so many members have read what was published, that is added 1 to
 * key, for twice the grace period at most. */
void dscomm_priv_roster_await_readers(dscomm_store_t *store, const char *key,
                                      int readers);

/* Member 0: publishes its decision; one that begins with ROSTER_FAILURE until
 * so many others have read it. */
dscomm_status_t dscomm_priv_roster_publish(const dscomm_roster_t *roster,
                                           const char *decision, int readers);

/* The others: wait until end for the decision, for dscomm_store_free(). */
dscomm_status_t dscomm_priv_roster_await_decision(const dscomm_roster_t *roster,
                                                  int64_t end,
                                                  dscomm_roster_wait_t *wait,
                                                  void **ret_value,
                                                  size_t *ret_size);

/* Whether the decision is a failure, which member 0 is told to have been
 * read. */
bool dscomm_priv_roster_failed(const dscomm_roster_t *roster,
                               const char *decision);

/* This member leaves, in order. The last one to leave deletes what the members
 * have put into a store that outlives them; a member that never does so leaves
 * all of it there. */
void dscomm_priv_roster_leave(const dscomm_roster_t *roster);

#endif
