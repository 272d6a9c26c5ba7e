/* SPDX-License-Identifier: BSD-3-Clause */
/* The roster: members that meet in a store. Each member claims its number and
 * stores a record of itself. Member 0 waits for all records and publishes a
 * decision for all members, or a failure. The ranks of a world meet so, and so
 * do the nodes of `dscomm run`, which links this file too. The users of the
 * roster define the contents of records and decisions. */
#ifndef LIB_ROSTER_H
#define LIB_ROSTER_H

#include <dscomm/store.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ROSTER_KEY_MAX 32
#define ROSTER_TOKEN_MAX 128

/* A decision that begins with this is a failure; the reason follows. */
#define ROSTER_FAILURE "error\n"

/* Time in ms that the other members wait for the decision after the deadline,
 * so that member 0 can name the missing ones. */
#define ROSTER_GRACE_MS 1000

typedef struct {
    dscomm_store_t *store; /* view of the members' keys */
    int own, count; /* this member's number; number of members */
    /* Until all must have come, in dscomm_priv_clock(). Not INT64_MAX: members
     * must give up at some time. */
    int64_t deadline;
    /* Names of keys: of a record, to which the member's number is appended; of
     * the decision; of the number of members that have read a failure. */
    const char *record, *decision, *read;
} dscomm_roster_t;

#define ROSTER_LINES_MAX 10

/* The form of a record: lines of text. The first line names the format; numbers
 * from -1 to 2^31 - 1 follow, then strings. Arrays end with NULL. */
typedef struct {
    const char *format;
    size_t most; /* limit of the text, in bytes */
    int64_t *numbers[ROSTER_LINES_MAX];
    const char **strings[ROSTER_LINES_MAX];
} dscomm_roster_lines_t;

/* Returns the text, for g_free(); NULL without memory. */
char *dscomm_priv_roster_write(const dscomm_roster_lines_t *lines);
/* Reads such a text. Strings then point into *ret_memory, which is for
 * g_free(). Returns -1 if text is not in this form, 1 without memory;
 * *ret_memory is then NULL. */
int dscomm_priv_roster_read(const dscomm_roster_lines_t *lines,
                            const char *text, size_t size, char **ret_memory);

/* How a member waits: it calls look from time to time. */
typedef struct {
    /* time until the next call of look; it doubles up to most_ms */
    int slice_ms, most_ms;
    /* Checks whether waiting still makes sense. A failure ends the wait. */
    dscomm_status_t (*look)(void *arg);
    void *arg;
} dscomm_roster_wait_t;

/* Writes a unique name of this process, for the case that another one claims
 * the same number: "pid 7 on b, 03a0", with a random last field. space: a field
 * before it, or NULL. */
void dscomm_priv_roster_token(const char *space, char token[ROSTER_TOKEN_MAX]);

/* Claims this member's number; the first process gets it. *ret_other is NULL,
 * or the token of the process that has it already, for g_free(). replaces
 * returns whether the process of token may take the place of the other one;
 * NULL: never. */
dscomm_status_t
dscomm_priv_roster_claim(const dscomm_roster_t *roster, const char *token,
                         bool (*replaces)(const char *other, const char *token),
                         char **ret_other);

/* Write the key of a member's claim, and that of its record. Return key. */
const char *dscomm_priv_roster_claim_key(int member, char key[ROSTER_KEY_MAX]);
const char *dscomm_priv_roster_key(const dscomm_roster_t *roster, int member,
                                   char key[ROSTER_KEY_MAX]);

/* Stores this member's record. */
dscomm_status_t dscomm_priv_roster_put(const dscomm_roster_t *roster,
                                       const char *record);

/* *ret_value = what key holds, for dscomm_store_free(); NULL: there is none
 * yet. */
dscomm_status_t dscomm_priv_roster_fetch(dscomm_store_t *store, const char *key,
                                         void **ret_value, size_t *ret_size);

/* Waits until the deadline for the records of all members, and passes them to
 * take in the order of their numbers, as soon as all earlier ones have come. A
 * failure of take ends the call. */
dscomm_status_t dscomm_priv_roster_collect(
    const dscomm_roster_t *roster, dscomm_roster_wait_t *wait,
    dscomm_status_t (*take)(void *arg, int member, const void *value,
                            size_t size));

/* Finds, within half a second, which of so many members have not set their key,
 * prefix and number. *ret_names is NULL if no member is known to be missing;
 * else "ranks 2, 3 of 8 (the others were not all checked)", with noun "rank";
 * g_free(). *ret_came: number of members that are known to be there. */
dscomm_status_t dscomm_priv_roster_missing(dscomm_store_t *store,
                                           const char *prefix, int count,
                                           const char *noun, char **ret_names,
                                           int *ret_came);

/* Returns how many connections the store's server has refused because of
 * another job secret (lib/store/tcp/secret.h), after dscomm_fail() with
 * ERR_MISMATCH; 0: none, or not known. certain: counts them only if the kernel
 * has verified that one of them is of a process of world. server: the server's
 * name in the sentence, such as "rank 0". */
int dscomm_priv_roster_refused(dscomm_store_t *store, const char *world,
                               const char *server, bool certain);

/* Waits until so many members have read a published value, that is, have added
 * 1 to key; at most for twice the grace period. */
void dscomm_priv_roster_await_readers(dscomm_store_t *store, const char *key,
                                      int readers);

/* Called by member 0: publishes its decision. If that is a failure, waits until
 * so many others have read it. */
dscomm_status_t dscomm_priv_roster_publish(const dscomm_roster_t *roster,
                                           const char *decision, int readers);

/* Called by the other members: waits until end for the decision, which is for
 * dscomm_store_free(). */
dscomm_status_t dscomm_priv_roster_await_decision(const dscomm_roster_t *roster,
                                                  int64_t end,
                                                  dscomm_roster_wait_t *wait,
                                                  void **ret_value,
                                                  size_t *ret_size);

/* True if the decision is a failure; then also notes for member 0 that this
 * member has read it. */
bool dscomm_priv_roster_failed(const dscomm_roster_t *roster,
                               const char *decision);

#endif
