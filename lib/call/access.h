/* SPDX-License-Identifier: BSD-3-Clause */
/* One-sided accesses to registered memory. A backend may make them; else they
 * are messages:
 *
 *   put:  the origin sends what it asks and the data; the owner answers
 *   get:  the origin sends what it asks; the owner answers and, if it has
 *         answered with OK, sends the data
 *
 * The owner serves the accesses of one rank in order, so that of messages of
 * one kind the first belongs to the first access. All numbers are
 * little-endian. */
#ifndef LIB_ACCESS_H
#define LIB_ACCESS_H

#include "lib/work/work.h"

#include <dscomm/memory.h>
#include <stdbool.h>

/* Tags of the messages; see DSCOMM_TAG_COLLECTIVE. */
enum {
    TAG_ASK = -5, /* asked_t */
    TAG_PUT_DATA = -6,
    TAG_ANSWERED = -7, /* answer_t */
    TAG_GET_DATA = -8,
    TAG_SIGNALLED = -9 /* uint64_t: the puts that the signal follows */
};

typedef struct {
    uint64_t gets; /* 0: a put */
    uint64_t id, offset, bytes;
} asked_t;

typedef struct {
    int64_t status;
} answer_t;

/* Registered memory, listed by its group. */
struct dscomm_mem {
    SLIST_ENTRY(dscomm_mem) link;
    dscomm_group_t *group;
    char *address;
    size_t bytes;
    uint64_t id; /* never used again in the group; 0: deregistered */
    unsigned served; /* accesses that are under way, also this rank's */
    void *registered; /* the backend's; NULL: it has none */
    bool native; /* the backend makes the accesses */
    bool on_device; /* memory of a device */
    unsigned char key[DSCOMM_BACKEND_KEY]; /* the backend's */
};

/* A key that was read. */
typedef struct {
    int rank;
    uint64_t id, bytes;
    bool is_native;
    unsigned char native[DSCOMM_BACKEND_KEY];
} mem_key_t;

/* ERR_INVALID if key is no key of the group. name is the public call's. */
dscomm_status_t dscomm_priv_mem_key_read(const dscomm_group_t *group,
                                         const char *name, const void *key,
                                         mem_key_t *ret_key);
/* Returns the memory with that id if it has the bytes from offset on, else
 * NULL. Called with the group's lock held. */
dscomm_mem_t *dscomm_priv_mem_find(const dscomm_group_t *group, uint64_t id,
                                   uint64_t offset, uint64_t bytes);
/* Frees what is still registered. */
extern const dscomm_group_part_t dscomm_priv_registered_part;

/* The messages of an access, which a work owns. */
enum { ACCESS_ASK, ACCESS_DATA, ACCESS_ANSWER, ACCESS_MESSAGES };
typedef struct {
    bool posted[ACCESS_MESSAGES];
    asked_t asked;
    answer_t answer;
    /* then the requests of the messages */
} access_t;

static inline access_t *dscomm_priv_access_of(const dscomm_work_t *work)
{
    return work->copy;
}

/* Allocates the messages; they are freed with the work. ERR_NO_MEMORY. */
dscomm_status_t dscomm_priv_access_new(dscomm_work_t *work);
dscomm_request_t *dscomm_priv_access_request(const dscomm_work_t *work,
                                             int which);
/* Starts a message of the access; message has all but the peer. */
dscomm_status_t dscomm_priv_access_post(dscomm_work_t *work, int which,
                                        dscomm_message_t message);
/* IN_PROGRESS while a message that was started is; else OK, or the first
 * failure. */
dscomm_status_t dscomm_priv_access_status(const dscomm_work_t *work);
void dscomm_priv_access_cancel(dscomm_work_t *work, dscomm_status_t status);
/* The same for a work without messages. */
void dscomm_priv_access_forget(dscomm_work_t *work, dscomm_status_t status);
dscomm_status_t dscomm_priv_access_overdue(dscomm_work_t *work,
                                           dscomm_failure_t *ret_failure);

/* While a work has messages, blocking calls must advance it. */
void dscomm_priv_access_begin(dscomm_group_t *group);
void dscomm_priv_access_end(dscomm_work_t *work);

/* From now on the group serves accesses by messages. Called with its lock held,
 * once. */
void dscomm_priv_serve_begin(dscomm_group_t *group);
/* The counts of puts, see dscomm_group_memory_t; NULL: no memory. */
uint64_t *dscomm_priv_access_puts(dscomm_group_t *group);

#endif
