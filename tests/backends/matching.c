/* SPDX-License-Identifier: BSD-3-Clause */
/* Which message a receive gets: tags, order, any source, any tag,
 * truncation. */
#include "config.h"

#include "tests/backends/conform.h"

#include <stdlib.h>
#include <string.h>

/* Tags are received in the reverse order of sending. */
static void test_tags_reversed(void)
{
    enum { MANY = 30 };
    dscomm_work_t *works[MANY] = {NULL};
    int32_t out[MANY], in;

    for (int i = 0; i < MANY; i++) {
        out[i] = my.rank * 1000 + i;
        CHECK_OK(dscomm_isend(my.group, &out[i], 1, DSCOMM_INT32, next_rank(),
                              i, &works[i]));
    }
    for (int i = MANY - 1; i >= 0; i--) {
        in = -1;
        CHECK_OK(dscomm_recv(my.group, &in, 1, DSCOMM_INT32, prev_rank(), i,
                             NULL, NULL));
        check(in == prev_rank() * 1000 + i, "tag %d brought %d", i, in);
    }
    conform_finish(works, MANY);
}

/* The same with messages too long to be buffered. */
static void test_tags_reversed_large(void)
{
    enum { MANY = 4 };
    message_t in[MANY], out[MANY];

    for (int i = 0; i < MANY; i++) {
        out[i] = message_with(next_rank(), i, conform_scale(600000),
                              (uint64_t)(my.rank * 10 + i));
        message_isend(&out[i]);
    }
    for (int i = MANY - 1; i >= 0; i--) {
        in[i] = message_with(prev_rank(), i, conform_scale(600000),
                             (uint64_t)(prev_rank() * 10 + i));
        message_irecv(&in[i]);
    }
    for (int i = 0; i < MANY; i++) {
        message_end(&in[i]);
        message_end(&out[i]);
    }
}

/* Long and short messages with one tag arrive in the order sent. */
static void test_order(void)
{
    enum { MANY = 60 };
    message_t out[MANY];

    for (int i = 0; i < MANY; i++) {
        size_t bytes =
            i % 4 == 0 ? conform_scale(90000 + (size_t)i) : (size_t)i;

        out[i] =
            message_with(next_rank(), 7, bytes, (uint64_t)(my.rank * 100 + i));
        message_isend(&out[i]);
    }
    for (int i = 0; i < MANY; i++) {
        message_t in = out[i];

        in.peer = prev_rank();
        in.seed = (uint64_t)(prev_rank() * 100 + i);
        if (i % 5 == 0)
            in.tag = DSCOMM_ANY_TAG;
        message_recv(&in);
    }
    for (int i = 0; i < MANY; i++)
        message_end(&out[i]);
}

/* Receives posted first are filled in the order posted. */
static void test_order_posted(void)
{
    enum { MANY = 40 };
    dscomm_work_t *works[MANY] = {NULL};
    int32_t in[MANY];

    for (int i = 0; i < MANY; i++)
        CHECK_OK(dscomm_irecv(my.group, &in[i], 1, DSCOMM_INT32, prev_rank(),
                              i % 3 ? 1 : DSCOMM_ANY_TAG, &works[i]));
    for (int32_t i = 0; i < MANY; i++)
        CHECK_OK(dscomm_send(my.group, &i, 1, DSCOMM_INT32, next_rank(), 1));
    CHECK_OK(dscomm_work_wait_all(works, MANY, DSCOMM_TIMEOUT_DEFAULT));
    for (int i = 0; i < MANY; i++) {
        check(in[i] == i, "receive %d got message %d", i, in[i]);
        dscomm_work_free(works[i]);
    }
}

/* Returns whether the backend supports receives from any source; a backend
 * without them says so. */
static int has_any_source(void)
{
    if (dscomm_group_capabilities(my.group) & DSCOMM_CAP_ANY_SOURCE)
        return 1;
    conform_skip("the backend cannot receive from any source");
    return 0;
}

/* Rank 0 receives from all ranks, in any order; messages of one sender arrive
 * in order. */
static void run_any_source(int tag)
{
    int32_t value, seen[64] = {0};
    int source = -1;
    size_t bytes = 0;

    if (!has_any_source())
        return;
    if (my.rank != 0) {
        for (int32_t i = 0; i < 20; i++) {
            value = my.rank * 1000 + i;
            CHECK_OK(dscomm_send(my.group, &value, 1, DSCOMM_INT32, 0, 11));
        }
        return;
    }
    for (int i = 0; i < 20 * (my.ranks - 1); i++) {
        value = -1;
        if (!CHECK_OK(dscomm_recv(my.group, &value, 1, DSCOMM_INT32,
                                  DSCOMM_ANY_SOURCE, tag, &source, &bytes)))
            return;
        if (check(source > 0 && source < my.ranks && bytes == 4,
                  "source %d, %zu bytes", source, bytes)) {
            check(value == source * 1000 + seen[source],
                  "rank %d's message %d is %d", source, seen[source], value);
            seen[source]++;
        }
    }
}

/* Receives from any source are posted before anything is sent. */
static void test_any_source_posted(void)
{
    dscomm_work_t *works[64] = {NULL};
    unsigned char *in, out[5000];
    int seen[64] = {0}, source = -1, tag = -1;
    size_t bytes = 0;

    if (!has_any_source())
        return;
    in = malloc(64 * 5000);
    for (int i = 0; in && i < my.ranks; i++)
        CHECK_OK(dscomm_irecv(my.group, in + i * 5000, 5000, DSCOMM_UINT8,
                              DSCOMM_ANY_SOURCE, DSCOMM_ANY_TAG, &works[i]));
    CHECK_OK(dscomm_barrier(my.group, NULL));
    memset(out, my.rank + 1, sizeof out);
    for (int i = 0; i < my.ranks; i++)
        CHECK_OK(dscomm_send(my.group, out, sizeof out, DSCOMM_UINT8, i,
                             100 + my.rank));
    for (int i = 0; i < my.ranks; i++) {
        CHECK_OK(dscomm_work_wait(works[i], DSCOMM_TIMEOUT_DEFAULT));
        CHECK_OK(dscomm_work_received(works[i], &source, &tag, &bytes));
        check(source >= 0 && source < my.ranks && !seen[source]++,
              "source %d twice or out of range", source);
        check(tag == 100 + source, "tag %d from rank %d", tag, source);
        check(bytes == 5000 && in && in[i * 5000] == source + 1 &&
                  in[i * 5000 + 4999] == source + 1,
              "contents from rank %d", source);
        dscomm_work_free(works[i]);
    }
    free(in);
}

/* A receive for one rank or tag never gets a message of another. */
static void test_selective(void)
{
    int32_t out[2] = {my.rank, -my.rank}, in[2] = {77, 77};
    dscomm_work_t *works[2] = {NULL, NULL};

    CHECK_OK(dscomm_irecv(my.group, &in[1], 1, DSCOMM_INT32, prev_rank(), 21,
                          &works[1]));
    CHECK_OK(dscomm_irecv(my.group, &in[0], 1, DSCOMM_INT32, prev_rank(), 20,
                          &works[0]));
    CHECK_OK(dscomm_send(my.group, &out[0], 1, DSCOMM_INT32, next_rank(), 20));
    CHECK_OK(dscomm_work_wait(works[0], DSCOMM_TIMEOUT_DEFAULT));
    CHECK_OK(dscomm_send(my.group, &out[1], 1, DSCOMM_INT32, next_rank(), 21));
    CHECK_OK(dscomm_work_wait(works[1], DSCOMM_TIMEOUT_DEFAULT));
    check(in[0] == prev_rank() && in[1] == -prev_rank(), "got %d and %d", in[0],
          in[1]);
    dscomm_work_free(works[0]);
    dscomm_work_free(works[1]);
}

/* A message that is too long is cut off, and that is reported; the next message
 * is complete. */
static void run_truncation(size_t sent, size_t wanted, int posted)
{
    message_t out = message_with(next_rank(), 30, sent, (uint64_t)my.rank);
    area_t area;
    dscomm_work_t *work = NULL;

    if (!area_make(&area, wanted, 0, NULL))
        return;
    pattern_bytes(area_expect(&area, 0), 1, (uint64_t)prev_rank(), 0, wanted);
    if (posted) {
        CHECK_OK(dscomm_irecv(my.group, area.data, wanted, DSCOMM_UINT8,
                              prev_rank(), 30, &work));
        message_isend(&out);
        CHECK_FAILS(dscomm_work_wait(work, DSCOMM_TIMEOUT_DEFAULT),
                    DSCOMM_ERR_TRUNCATED);
        dscomm_work_free(work);
    } else {
        message_isend(&out);
        CHECK_FAILS(dscomm_recv(my.group, area.data, wanted, DSCOMM_UINT8,
                                prev_rank(), 30, NULL, NULL),
                    DSCOMM_ERR_TRUNCATED);
    }
    area_check(&area, "the message's beginning");
    area_drop(&area);
    message_end(&out);
}

static void test_truncation(void)
{
    static const size_t cases[][2] = {
        {1, 0},      {9, 8},      {100, 50},       {5000, 1},
        {5000, 0},   {300000, 9}, {300000, 0},     {300000, 299999},
        {700000, 9}, {700000, 0}, {700000, 699999}};

    for (size_t i = 0; i < CONFORM_LENGTH(cases); i++) {
        message_t in = message_with(prev_rank(), 31, 10, 0);
        message_t out = message_with(next_rank(), 31, 10, 0);

        run_truncation(cases[i][0], cases[i][1], i % 2 == 0);
        run_truncation(cases[i][0], cases[i][1], i % 2 != 0);
        message_isend(&out);
        message_recv(&in);
        message_end(&out);
    }
    CHECK_OK(dscomm_group_status(my.group));
}

/* A message may be shorter than the buffer, whose rest is not changed. */
static void test_shorter(void)
{
    unsigned char in[100], out[37];
    size_t bytes = 0;
    dscomm_work_t *work = NULL;

    memset(in, 0xee, sizeof in);
    memset(out, 0x11, sizeof out);
    CHECK_OK(dscomm_isend(my.group, out, sizeof out, DSCOMM_UINT8, next_rank(),
                          0, &work));
    CHECK_OK(dscomm_recv(my.group, in, sizeof in, DSCOMM_UINT8, prev_rank(),
                         DSCOMM_ANY_TAG, NULL, &bytes));
    check(bytes == 37 && in[36] == 0x11 && in[37] == 0xee && in[99] == 0xee,
          "%zu bytes, in[36] 0x%x, in[37] 0x%x", bytes, in[36], in[37]);
    CHECK_OK(dscomm_work_wait(work, DSCOMM_TIMEOUT_DEFAULT));
    dscomm_work_free(work);
}

/* The largest tag works like any other. */
static void test_largest_tag(void)
{
    message_t in = message_with(prev_rank(), DSCOMM_TAG_MAX, 10, 0);
    message_t out = message_with(next_rank(), DSCOMM_TAG_MAX, 10, 0);

    message_isend(&out);
    message_recv(&in);
    message_end(&out);
}

static const conform_case_t cases[] = {
    {"any source", run_any_source, 11},
    {"any source, any tag", run_any_source, DSCOMM_ANY_TAG},
    {NULL, NULL, 0},
};
static const conform_test_t tests[] = {
    {"tags in the opposite order", test_tags_reversed},
    {"tags in the opposite order, long messages", test_tags_reversed_large},
    {"order per tag", test_order},
    {"order of posted receives", test_order_posted},
    {"any source, posted before anything is sent", test_any_source_posted},
    {"a tag only gets its own", test_selective},
    {"truncation", test_truncation},
    {"shorter than the buffer", test_shorter},
    {"the largest tag", test_largest_tag},
    {NULL, NULL},
};
const conform_area_t conform_matching = {"matching", cases, tests};
