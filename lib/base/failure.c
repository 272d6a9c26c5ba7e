/* SPDX-License-Identifier: BSD-3-Clause */
/* Failure records. A packed one is little-endian: a version, the numbers of the
 * record in the order of its members, then each text with its length before
 * it. */
#include "config.h"

#include "lib/base/failure.h"

#include "lib/base/node.h"

#include <dscomm/backend.h>
#include <glib.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define PACKED_VERSION 1
#define NUMBERS (6 * 4 + 2 * 8) /* bytes before the texts */
#define LENGTH 2 /* bytes of a text's length */

G_STATIC_ASSERT(NUMBERS + 3 * LENGTH + DSCOMM_FAILURE_HOST_MAX +
                    DSCOMM_FAILURE_GROUP_MAX + DSCOMM_FAILURE_DETAIL_MAX <=
                DSCOMM_FAILURE_PACKED);

/* The record of this thread's last failure; valid if the thread's last sentence
 * still has this number. */
static _Thread_local struct {
    dscomm_failure_t failure;
    uint64_t serial;
} last;

const char *dscomm_priv_process_describe(int rank, int world_rank, int64_t pid,
                                         const char *node,
                                         char text[DSCOMM_PROCESS_MAX])
{
    char world[40] = "", process[DSCOMM_NODE_MAX + 32] = "";

    if (rank != world_rank)
        snprintf(world, sizeof world, "rank %d of the world", world_rank);
    if (pid)
        snprintf(process, sizeof process, "pid %lld on %.*s", (long long)pid,
                 DSCOMM_NODE_MAX - 1, node);
    if (*world || *process)
        snprintf(text, DSCOMM_PROCESS_MAX, "rank %d (%s%s%s)", rank, world,
                 *world && *process ? ", " : "", process);
    else
        snprintf(text, DSCOMM_PROCESS_MAX, "rank %d", rank);
    return text;
}

static void culprit_describe(const dscomm_failure_t *failure, bool by_world,
                             char who[DSCOMM_PROCESS_MAX])
{
    dscomm_priv_process_describe(by_world ? failure->rank : failure->group_rank,
                                 failure->rank, failure->pid, failure->host,
                                 who);
}

/* Makes the sentence of a record that has a culprit, one function for each
 * kind. The buffer has one byte more than a sentence, so that
 * dscomm_priv_quote() sees whether it must cut. */

/* A rank that dies while a group is made is named by its number in the world.
 * A detail in parentheses is what the backend has seen of the death. */
static void died_describe(const dscomm_failure_t *failure, char *text,
                          size_t size)
{
    const bool is_making =
        failure->coll < 0 && *failure->detail && *failure->detail != '(';
    char who[DSCOMM_PROCESS_MAX];

    culprit_describe(failure, is_making, who);
    if (is_making)
        snprintf(text, size,
                 "%s died %s; its own output or the kernel log may say why",
                 who, failure->detail);
    else
        snprintf(text, size,
                 "%s of group '%s' died%s%s; the group cannot go on; its own "
                 "output or the kernel log may say why",
                 who, failure->group, *failure->detail ? " " : "",
                 failure->detail);
}

static void mismatch_describe(const dscomm_failure_t *failure, char *text,
                              size_t size)
{
    snprintf(text, size, "group '%s': %s", failure->group, failure->detail);
}

static void aborted_describe(const dscomm_failure_t *failure, char *text,
                             size_t size)
{
    snprintf(text, size, "rank %d aborted group '%s'%s%s", failure->group_rank,
             failure->group, *failure->detail ? ": " : "", failure->detail);
}

static void blame_describe(const dscomm_failure_t *failure, char *text,
                           size_t size)
{
    char who[DSCOMM_PROCESS_MAX];

    culprit_describe(failure, true, who);
    snprintf(text, size, "%s: %s", who, failure->detail);
}

/* For kinds that are not listed, and for records without a culprit, the
 * sentence is the detail. */
static void (*const describe[])(const dscomm_failure_t *failure, char *text,
                                size_t size) = {
    [DSCOMM_FAILURE_DIED] = died_describe,
    [DSCOMM_FAILURE_MISMATCH] = mismatch_describe,
    [DSCOMM_FAILURE_ABORTED] = aborted_describe,
    [DSCOMM_FAILURE_PROTOCOL] = blame_describe,
    [DSCOMM_FAILURE_RESOURCE] = blame_describe,
};

const char *dscomm_priv_failure_sentence(const dscomm_failure_t *failure,
                                         char text[DSCOMM_ERROR_MAX])
{
    const unsigned kind = (unsigned)failure->kind;
    char whole[DSCOMM_ERROR_MAX + 1];

    if (failure->rank >= 0 && kind < G_N_ELEMENTS(describe) && describe[kind])
        describe[kind](failure, whole, sizeof whole);
    else
        g_strlcpy(whole,
                  *failure->detail ? failure->detail
                                   : dscomm_strerror(failure->status),
                  sizeof whole);
    return dscomm_priv_quote(whole, text, DSCOMM_ERROR_MAX);
}

dscomm_status_t dscomm_backend_fail(const dscomm_failure_t *failure)
{
    const uint64_t before = dscomm_priv_fail_serial();
    char text[DSCOMM_ERROR_MAX];

    dscomm_priv_fail_with(failure->status,
                          dscomm_priv_failure_sentence(failure, text));
    if (dscomm_priv_fail_serial() == before)
        return failure->status;
    if (failure != &last.failure)
        last.failure = *failure;
    last.serial = dscomm_priv_fail_serial();
    return failure->status;
}

/* Formats into another buffer, because the detail may be among the
 * arguments. */
void dscomm_backend_failure_detail(dscomm_failure_t *failure,
                                   const char *format, ...)
{
    char text[sizeof failure->detail + 1];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    dscomm_priv_quote(text, failure->detail, sizeof failure->detail);
}

/* The kind of failure with which a group ends, by status. */
static dscomm_failure_kind_t failure_kind(dscomm_status_t status)
{
    static const struct {
        dscomm_status_t status;
        dscomm_failure_kind_t kind;
    } kinds[] = {
        {DSCOMM_ERR_PEER_FAILED, DSCOMM_FAILURE_DIED},
        {DSCOMM_ERR_TIMEOUT, DSCOMM_FAILURE_SILENT},
        {DSCOMM_ERR_MISMATCH, DSCOMM_FAILURE_MISMATCH},
        {DSCOMM_ERR_ABORTED, DSCOMM_FAILURE_ABORTED},
        {DSCOMM_ERR_NO_MEMORY, DSCOMM_FAILURE_RESOURCE},
        {DSCOMM_ERR_IO, DSCOMM_FAILURE_RESOURCE},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(kinds); i++)
        if (kinds[i].status == status)
            return kinds[i].kind;
    return DSCOMM_FAILURE_PROTOCOL;
}

bool dscomm_priv_failure_last(dscomm_status_t status,
                              dscomm_failure_t *ret_failure)
{
    const uint64_t serial = dscomm_priv_fail_serial();

    if (serial && serial == last.serial && last.failure.status == status) {
        *ret_failure = last.failure;
        return true;
    }
    *ret_failure = (dscomm_failure_t)DSCOMM_FAILURE_INIT;
    ret_failure->status = status;
    ret_failure->kind = failure_kind(status);
    g_strlcpy(ret_failure->detail, dscomm_last_error(),
              sizeof ret_failure->detail);
    return false;
}

static unsigned char *pack_number(unsigned char *at, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        *at++ = (unsigned char)(value >> 8 * i);
    return at;
}

static unsigned char *pack_text(unsigned char *at, const char *text,
                                size_t size)
{
    const size_t length = strnlen(text, size - 1);

    at = pack_number(at, length, LENGTH);
    memcpy(at, text, length);
    return at + length;
}

size_t dscomm_backend_failure_pack(const dscomm_failure_t *failure,
                                   void *buffer)
{
    unsigned char *at = buffer;

    at = pack_number(at, PACKED_VERSION, 4);
    at = pack_number(at, (uint32_t)failure->status, 4);
    at = pack_number(at, (uint32_t)failure->kind, 4);
    at = pack_number(at, (uint32_t)failure->rank, 4);
    at = pack_number(at, (uint32_t)failure->group_rank, 4);
    at = pack_number(at, (uint32_t)failure->coll, 4);
    at = pack_number(at, (uint64_t)failure->pid, 8);
    at = pack_number(at, failure->sequence, 8);
    at = pack_text(at, failure->host, sizeof failure->host);
    at = pack_text(at, failure->group, sizeof failure->group);
    at = pack_text(at, failure->detail, sizeof failure->detail);
    return (size_t)(at - (unsigned char *)buffer);
}

static uint64_t unpack_number(const unsigned char **at, int bytes)
{
    uint64_t value = 0;

    for (int i = 0; i < bytes; i++)
        value |= (uint64_t) * (*at)++ << 8 * i;
    return value;
}

static int32_t unpack_int(const unsigned char **at)
{
    return (int32_t)(uint32_t)unpack_number(at, 4);
}

/* Reads a text of a packed record. False if the bytes before end are not a text
 * that fits into size bytes. */
static bool unpack_text(const unsigned char **at, const unsigned char *end,
                        char *text, size_t size)
{
    size_t length;

    if (end - *at < LENGTH)
        return false;
    length = (size_t)unpack_number(at, LENGTH);
    if (length >= size || length > (size_t)(end - *at))
        return false;
    memset(text, 0, size);
    memcpy(text, *at, length);
    dscomm_priv_tidy(text, size);
    *at += length;
    return true;
}

int dscomm_backend_failure_unpack(const void *data, size_t size,
                                  dscomm_failure_t *ret_failure)
{
    const unsigned char *at = data, *end = at + size;
    dscomm_failure_t failure = DSCOMM_FAILURE_INIT;
    int kind;

    if (size < NUMBERS || unpack_number(&at, 4) != PACKED_VERSION)
        return 0;
    failure.status = (dscomm_status_t)unpack_int(&at);
    kind = unpack_int(&at);
    failure.kind = (dscomm_failure_kind_t)kind;
    failure.rank = unpack_int(&at);
    failure.group_rank = unpack_int(&at);
    failure.coll = unpack_int(&at);
    failure.pid = (int64_t)unpack_number(&at, 8);
    failure.sequence = unpack_number(&at, 8);
    if (failure.status >= 0 || kind <= DSCOMM_FAILURE_NONE ||
        !unpack_text(&at, end, failure.host, sizeof failure.host) ||
        !unpack_text(&at, end, failure.group, sizeof failure.group) ||
        !unpack_text(&at, end, failure.detail, sizeof failure.detail))
        return 0;
    *ret_failure = failure;
    return 1;
}
