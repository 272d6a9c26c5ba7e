/* SPDX-License-Identifier: BSD-3-Clause */
/* Declarations that the areas of the conformance suite share.
 *
 * Every rank runs every test and collects failures with check() and similar
 * functions. After a test the results are reduced, and rank 0 prints one TAP
 * line. A rank that fails prints its sentences itself, as "# rank 2: ...". A
 * test must not return early if its peers would then wait for it. */
#ifndef TESTS_BACKENDS_CONFORM_H
#define TESTS_BACKENDS_CONFORM_H

#include <dscomm/dscomm.h>

#define CONFORM_PRINTF(f, a) __attribute__((format(printf, f, a)))
#define CONFORM_LENGTH(array) (sizeof(array) / sizeof(array)[0])

/* This process's place in the job. group has all ranks of the world; it is made
 * anew for each test, which may break it. */
typedef struct {
    dscomm_group_t *world;
    dscomm_group_t *group;
    int rank, ranks;
} conform_t;
extern conform_t my;

typedef struct {
    const char *name;
    void (*run)(void);
} conform_test_t;

/* A test of several that differ in a number. */
typedef struct {
    const char *name;
    void (*run)(int arg);
    int arg;
} conform_case_t;

/* Both end with a row whose name is NULL; without cases, they are NULL. */
typedef struct {
    const char *name;
    const conform_case_t *cases;
    const conform_test_t *tests;
} conform_area_t;

extern const conform_area_t conform_collectives, conform_reductions,
    conform_numbers, conform_variants, conform_p2p, conform_matching,
    conform_groups, conform_works, conform_memory, conform_coalescing,
    conform_blobs, conform_hooks, conform_threads, conform_arguments,
    conform_stress, conform_crowd, conform_aborted, conform_receives,
    conform_operators, conform_events, conform_failures, conform_access;

/* Fails the test on this rank unless cond; returns cond. Any thread. */
int check(int cond, const char *format, ...) CONFORM_PRINTF(2, 3);
/* The same for a status; prints the library's sentence on failure. Returns
 * whether the status was the wanted one. */
int check_status(dscomm_status_t got, dscomm_status_t want, const char *format,
                 ...) CONFORM_PRINTF(3, 4);
#define CHECK_OK(call) check_status(call, DSCOMM_OK, "%s", #call)
#define CHECK_FAILS(call, status) check_status(call, status, "%s", #call)
/* Fails unless the last sentence contains text. */
int check_sentence(const char *text, const char *what);
/* Skips the test on every rank, with the reason. */
void conform_skip(const char *reason);

/* A mixing function, for random numbers that are equal on all ranks. */
uint64_t mix(uint64_t x);

/* This rank's neighbours in a ring of all. */
static inline int next_rank(void)
{
    return (my.rank + 1) % my.ranks;
}

static inline int prev_rank(void)
{
    return (my.rank + my.ranks - 1) % my.ranks;
}

/* An element of up to 8 bytes as bits, in the host's byte order. */
void pattern_bits_put(void *dest, size_t element, uint64_t bits);
uint64_t pattern_bits_get(const void *from, size_t element);
/* Bytes of elements first ... first + count - 1 of a stream of random bytes. */
void pattern_bytes(void *dest, size_t element, uint64_t stream, size_t first,
                   size_t count);
/* A rank's inputs to a reduction, elements first and following. */
typedef struct {
    dscomm_dtype_t dtype;
    dscomm_op_t op;
    int ranks;
    uint64_t seed;
} pattern_t;
void pattern_input(const pattern_t *pattern, int rank, size_t first,
                   size_t count, void *dest);
/* Computes the result of reducing all ranks' inputs by exact arithmetic. */
void pattern_result(const pattern_t *pattern, size_t first, size_t count,
                    void *dest);
/* The factor that rank passes with PREMUL_SUM. */
double pattern_factor(int rank);
/* Sets element index of an array of dtype to value, rounded to nearest even. */
void pattern_put(dscomm_dtype_t dtype, void *array, size_t index, double value);
/* Returns an element as a number, exactly; for floating-point dtypes. */
double pattern_get(dscomm_dtype_t dtype, const void *array, size_t index);
int pattern_is_float(dscomm_dtype_t dtype);

/* Memory between two guards, and its expected contents. */
typedef struct {
    unsigned char *base, *want, *data;
    size_t bytes, total;
    /* the group whose dscomm_mem_alloc() it came from, or NULL */
    dscomm_group_t *group;
} area_t;

/* Makes an area of so many bytes, misaligned by offset; group may be NULL. It
 * is filled with a pattern, which is expected to remain until area_expect()
 * says otherwise. */
int area_make(area_t *area, size_t bytes, size_t offset, dscomm_group_t *group);
/* The present contents are expected to remain. */
void area_keep(area_t *area);
/* Returns where the expected contents of data + offset are written. */
void *area_expect(area_t *area, size_t offset);
/* Compares the area with its expected contents; what names it in a failure. */
int area_check(const area_t *area, const char *what);
void area_drop(area_t *area);

/* One collective, from filling its buffers to checking them. The caller sets
 * the first members; zero is a useful default for most. */
typedef struct {
    dscomm_group_t *group;
    int coll; /* dscomm_coll_t */
    dscomm_dtype_t dtype; /* arbitrary bytes, if data is only moved */
    dscomm_op_t op;
    int root;
    size_t count; /* of one block; for _v the mean of the blocks */
    uint64_t seed; /* equal on all ranks */
    size_t offset; /* bytes of misalignment */
    int in_place;
    int gaps; /* _v: blocks lie in reverse order with holes between */
    int allocated; /* buffers come from dscomm_mem_alloc() */

    int rank, ranks;
    size_t element;
    size_t *send_counts, *send_displs, *recv_counts, *recv_displs;
    area_t send_area, recv_area;
    void *send, *recv;
    dscomm_work_t *work;
} exchange_t;

/* Makes the buffers, starts, checks and frees. begin, then post, then end,
 * which waits for the work (where post was asked for one) and frees it. run
 * does all of it with a blocking call. */
int exchange_begin(exchange_t *x);
dscomm_status_t exchange_post(exchange_t *x, dscomm_work_t **ret_work);
/* begin, and post with or without a work. */
void exchange_start(exchange_t *x, int as_work);
/* Waits for the work if there is one; may be called again. */
void exchange_wait(exchange_t *x);
int exchange_end(exchange_t *x);
int exchange_run(exchange_t *x);
/* 1 if the collective sends to, or receives on, one rank only. */
int exchange_rooted(int coll);
int exchange_reduces(int coll);
int exchange_in_place(int coll);

/* One message. The caller sets the first members. */
typedef struct {
    dscomm_group_t *group;
    int peer, tag; /* for a receive also DSCOMM_ANY_SOURCE, DSCOMM_ANY_TAG */
    size_t bytes;
    uint64_t seed; /* of the contents: equal on both sides */

    int receives;
    area_t area;
    dscomm_work_t *work;
} message_t;
static inline message_t message_with(int peer, int tag, size_t bytes,
                                     uint64_t seed)
{
    return (message_t){.group = my.group,
                       .peer = peer,
                       .tag = tag,
                       .bytes = bytes,
                       .seed = seed};
}
/* These start a message; message_end() waits, and checks contents, source, tag
 * and length. */
void message_isend(message_t *l);
void message_irecv(message_t *l);
void message_end(message_t *l);
/* Blocking forms, with the same checks. */
void message_send(message_t *l);
void message_recv(message_t *l);

void conform_pause(long ms);
double conform_now_ms(void);
/* Waits for the works, which must succeed, and frees them. */
void conform_finish(dscomm_work_t **works, size_t count);
/* Makes a group of all ranks of the test's group, with a deadline of
 * *timeout_ms; if the machine is too busy to make the group in that time, with
 * four, sixteen ... times that. NULL: the test fails. */
dscomm_group_t *conform_group_within(int *timeout_ms);
/* Returns 1 on all ranks if outcome is 1 on all ranks, else 0. */
int conform_agree(int outcome);
/* Notifications on the world, used if a test's own group is busy or broken:
 * conform_await waits until that rank has notified this one. */
void conform_notify(int rank);
void conform_await(int rank);
/* Scales a count: large for few ranks, smaller if ranks share cores. */
size_t conform_scale(size_t count);

#endif
