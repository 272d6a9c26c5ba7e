/* SPDX-License-Identifier: BSD-3-Clause */
/* Failure records: packed and unpacked, and the sentence of each kind. */
#include "config.h"

#include "lib/base/failure.h"

#include "tests/tap.h"

#include <dscomm/backend.h>
#include <glib.h>
#include <string.h>

static const dscomm_failure_t died = {
    .size = sizeof died,
    .status = DSCOMM_ERR_PEER_FAILED,
    .kind = DSCOMM_FAILURE_DIED,
    .rank = 3,
    .group_rank = 1,
    .coll = DSCOMM_COLL_ALL_REDUCE,
    .pid = 812,
    .sequence = 0x123456789a,
    .host = "b",
    .group = "g",
    .detail = "during barrier() #4",
};

static int is_same(const dscomm_failure_t *a, const dscomm_failure_t *b)
{
    unsigned char one[DSCOMM_FAILURE_PACKED], other[DSCOMM_FAILURE_PACKED];
    const size_t size = dscomm_backend_failure_pack(a, one);

    return size == dscomm_backend_failure_pack(b, other) &&
           !memcmp(one, other, size);
}

/* The bytes are the same on any machine: little-endian, texts with lengths. */
static void test_bytes(void)
{
    static const unsigned char wanted[] = {
        1,    0,   0,   0,   0xf9, 0xff, 0xff, 0xff, 1,    0,    0,    0,
        3,    0,   0,   0,   1,    0,    0,    0,    2,    0,    0,    0,
        0x2c, 3,   0,   0,   0,    0,    0,    0,    0x9a, 0x78, 0x56, 0x34,
        0x12, 0,   0,   0,   1,    0,    'b',  1,    0,    'g',  19,   0,
        'd',  'u', 'r', 'i', 'n',  'g',  ' ',  'b',  'a',  'r',  'r',  'i',
        'e',  'r', '(', ')', ' ',  '#',  '4'};
    unsigned char packed[DSCOMM_FAILURE_PACKED];
    const size_t size = dscomm_backend_failure_pack(&died, packed);

    is_int((long)size, (long)sizeof wanted, "as many bytes");
    ok(size == sizeof wanted && !memcmp(packed, wanted, size), "the bytes");
}

static void test_again(void)
{
    unsigned char packed[DSCOMM_FAILURE_PACKED];
    const size_t size = dscomm_backend_failure_pack(&died, packed);
    dscomm_failure_t failure;
    int refused = 0;

    ok(dscomm_backend_failure_unpack(packed, size, &failure) &&
           is_same(&failure, &died),
       "the same record comes out");
    ok(dscomm_backend_failure_unpack(packed, sizeof packed, &failure),
       "more bytes do no harm");
    for (size_t less = 0; less < size; less++)
        refused += !dscomm_backend_failure_unpack(packed, less, &failure);
    is_int(refused, (int)size, "a record that is cut off is none");
    packed[0] = 2;
    ok(!dscomm_backend_failure_unpack(packed, size, &failure),
       "nor is one of another version");
    packed[0] = 1;
    packed[7] = 0;
    ok(!dscomm_backend_failure_unpack(packed, size, &failure),
       "nor one without a failure");
}

/* Texts that are too long for their members, and texts that just fit. */
static void test_lengths(void)
{
    unsigned char packed[DSCOMM_FAILURE_PACKED];
    dscomm_failure_t failure = died, again;
    size_t size;

    memset(failure.host, 'h', sizeof failure.host - 1);
    memset(failure.group, 'g', sizeof failure.group - 1);
    memset(failure.detail, 'd', sizeof failure.detail - 1);
    size = dscomm_backend_failure_pack(&failure, packed);
    ok(dscomm_backend_failure_unpack(packed, size, &again) &&
           is_same(&failure, &again),
       "full texts come through");
    packed[40]++;
    ok(!dscomm_backend_failure_unpack(packed, size, &again),
       "a longer one is refused");
    dscomm_backend_failure_detail(&failure, "%0600d\n", 7);
    is_int((long)strlen(failure.detail), DSCOMM_FAILURE_DETAIL_MAX - 1,
           "a detail is cut off");
    dscomm_backend_failure_detail(&failure, "a\nb");
    is_str(failure.detail, "a b", "and one line");
}

static const struct {
    dscomm_failure_kind_t kind;
    int rank, coll;
    const char *detail, *sentence;
} rows[] = {
    {DSCOMM_FAILURE_DIED, 3, 2, "during barrier() #4",
     "rank 1 (rank 3 of the world, pid 812 on b) of group 'g' died during "
     "barrier() #4; the group cannot go on; its own output or the kernel log "
     "may say why"},
    {DSCOMM_FAILURE_DIED, 3, -1, "",
     "rank 1 (rank 3 of the world, pid 812 on b) of group 'g' died; the group "
     "cannot go on; its own output or the kernel log may say why"},
    {DSCOMM_FAILURE_DIED, 3, -1, "while group 'g' was made",
     "rank 3 (pid 812 on b) died while group 'g' was made; its own output or "
     "the kernel log may say why"},
    {DSCOMM_FAILURE_DIED, -1, -1, "the store is gone", "the store is gone"},
    {DSCOMM_FAILURE_SILENT, 3, 2, "no progress", "no progress"},
    {DSCOMM_FAILURE_MISMATCH, 3, 2, "they differ", "group 'g': they differ"},
    {DSCOMM_FAILURE_ABORTED, 3, -1, "the pump is dry",
     "rank 1 aborted group 'g': the pump is dry"},
    {DSCOMM_FAILURE_ABORTED, 3, -1, "", "rank 1 aborted group 'g'"},
    {DSCOMM_FAILURE_RESOURCE, 3, -1, "no memory",
     "rank 3 (pid 812 on b): no memory"},
    {DSCOMM_FAILURE_PROTOCOL, 3, -1, "a tag makes no sense",
     "rank 3 (pid 812 on b): a tag makes no sense"},
    {DSCOMM_FAILURE_LEFT, 3, 2, "rank 1 has left", "rank 1 has left"},
    {(dscomm_failure_kind_t)99, 3, 2, "something newer", "something newer"},
    {DSCOMM_FAILURE_SILENT, 3, 2, "", "a peer died or left"},
};

static void test_sentences(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        dscomm_failure_t failure = died;
        char text[DSCOMM_ERROR_MAX];

        failure.kind = rows[i].kind;
        failure.rank = rows[i].rank;
        failure.coll = rows[i].coll;
        g_strlcpy(failure.detail, rows[i].detail, sizeof failure.detail);
        is_str(dscomm_priv_failure_sentence(&failure, text), rows[i].sentence,
               "row %zu", i);
    }
}

/* The record of the last failure is valid until the next failure. */
static void test_last(void)
{
    dscomm_failure_t failure;

    is_int(dscomm_backend_fail(&died), DSCOMM_ERR_PEER_FAILED, "its status");
    ok(dscomm_priv_failure_last(DSCOMM_ERR_PEER_FAILED, &failure) &&
           is_same(&failure, &died),
       "a failure with a record");
    ok(!dscomm_priv_failure_last(DSCOMM_ERR_IO, &failure),
       "not of another status");
    dscomm_fail(DSCOMM_ERR_TIMEOUT, "nobody came");
    ok(!dscomm_priv_failure_last(DSCOMM_ERR_TIMEOUT, &failure),
       "a failure without one");
    is_int(failure.kind, DSCOMM_FAILURE_SILENT, "its kind");
    is_str(failure.detail, "nobody came", "its detail");
    is_int(failure.rank, -1, "it has no culprit");
    dscomm_fail(DSCOMM_ERR_PEER_FAILED, "gone");
    ok(!dscomm_priv_failure_last(DSCOMM_ERR_PEER_FAILED, &failure),
       "an older record does not count");
}

/* A second failure leaves the first one, and its record, as it is. */
static void test_hold(void)
{
    dscomm_failure_t first = DSCOMM_FAILURE_INIT, other = DSCOMM_FAILURE_INIT;
    dscomm_failure_t got = DSCOMM_FAILURE_INIT;
    char text[DSCOMM_ERROR_MAX];

    first.status = DSCOMM_ERR_PEER_FAILED;
    first.kind = DSCOMM_FAILURE_DIED;
    first.rank = 3;
    other.status = DSCOMM_ERR_TIMEOUT;
    dscomm_backend_fail(&first);
    g_strlcpy(text, dscomm_last_error(), sizeof text);
    dscomm_priv_fail_hold();
    dscomm_priv_fail_hold();
    is_int(dscomm_fail(DSCOMM_ERR_IO, "later"), DSCOMM_ERR_IO,
           "a later failure returns its status");
    dscomm_priv_fail_release();
    is_int(dscomm_backend_fail(&other), DSCOMM_ERR_TIMEOUT,
           "so does one with a record");
    dscomm_priv_fail_release();
    is_str(dscomm_last_error(), text, "the sentence stays");
    ok(dscomm_priv_failure_last(DSCOMM_ERR_PEER_FAILED, &got) &&
           got.rank == 3 && got.kind == DSCOMM_FAILURE_DIED,
       "with its record");
    dscomm_fail(DSCOMM_ERR_IO, "later");
    is_str(dscomm_last_error(), "later", "then failures are told again");
}

int main(void)
{
    test_bytes();
    test_again();
    test_lengths();
    test_sentences();
    test_last();
    test_hold();
    return tap_done();
}
