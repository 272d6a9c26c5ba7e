/* SPDX-License-Identifier: BSD-3-Clause */
/* See clocks.h. Keys of the store, in the order in which they are written:
 *
 *     identity        rank 0's
 *     host/IDENTITY   number of ranks of that machine that have come
 *     leaders         number of machines that are not rank 0's
 *     leader/I        the rank that asks for the I-th of these
 *     come            number of ranks that have come, without rank 0
 *     all             all have
 *     ask/RANK/N      a question for the time
 *     time/RANK/N     its answer
 *     point/IDENTITY/N  the result of a machine
 *
 * Numbers N go on from the begin to the end, also if a measurement fails. */
#include "config.h"

#include "profiler/clocks.h"

#include "lib/base/clock.h"
#include "lib/base/node.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define QUESTIONS 16 /* of one measurement */
#define TURN_NS                                                                \
    (20 * NS_PER_MS) /* for which rank 0 waits for a leader to ask */

/* One measurement. */
typedef struct {
    clocks_t *clocks;
    dscomm_store_t *store;
    int64_t end; /* when it is given up */
} measure_t;

/* Processes in a time namespace of their own have another clock. */
void dscomm_priv_clocks_init(clocks_t *clocks, int rank, int size)
{
    char machine[100], space[48] = "";

    memset(clocks, 0, sizeof *clocks);
    dscomm_priv_node_machine(machine, sizeof machine);
    if (readlink("/proc/self/ns/time", space, sizeof space - 1) < 0)
        *space = '\0';
    snprintf(clocks->identity, sizeof clocks->identity, "%s %s", machine,
             space);
    clocks->now = dscomm_priv_clock;
    clocks->rank = rank;
    clocks->size = size;
    clocks->is_shared = rank == 0;
    clocks->leaders = g_array_new(FALSE, FALSE, sizeof(int));
}

void dscomm_priv_clocks_clear(clocks_t *clocks)
{
    if (clocks->leaders)
        g_array_unref(clocks->leaders);
    clocks->leaders = NULL;
}

static char *key_text(const char *first, const char *second, unsigned number)
{
    return g_strdup_printf("%s/%s/%u", first, second, number);
}

static bool key_set(const measure_t *measure, const char *key, const char *text)
{
    return dscomm_store_set(measure->store, key, text, strlen(text)) ==
           DSCOMM_OK;
}

/* Waits for a text, and removes it if it is for this rank alone. Returns NULL
 * if it does not come. The caller frees it by dscomm_store_free(). */
static char *key_get(const measure_t *measure, const char *key, bool remove)
{
    const int left = dscomm_priv_clock_left(measure->end);
    void *text = NULL;
    size_t size;

    if (left <= 0 ||
        dscomm_store_get(measure->store, key, left, &text, &size) < 0)
        return NULL;
    if (remove)
        dscomm_store_delete(measure->store, key, NULL);
    return text;
}

static int64_t key_add(const measure_t *measure, const char *key, int64_t delta)
{
    int64_t sum = -1;

    if (dscomm_store_add(measure->store, key, delta, &sum) < 0)
        return -1;
    return sum;
}

/* Makes this rank the leader of its machine if it is the first of it. */
static void leader_choose(const measure_t *measure)
{
    clocks_t *clocks = measure->clocks;
    char *host = g_strconcat("host/", clocks->identity, NULL);
    char rank[16], key[48];

    clocks->is_leader = key_add(measure, host, 1) == 1;
    g_free(host);
    if (!clocks->is_leader)
        return;
    snprintf(rank, sizeof rank, "%d", clocks->rank);
    snprintf(key, sizeof key, "leader/%" PRId64,
             key_add(measure, "leaders", 1));
    key_set(measure, key, rank);
}

/* Compares this rank's clock with rank 0's. False: rank 0 has not come. */
static bool identity_compare(const measure_t *measure)
{
    clocks_t *clocks = measure->clocks;
    char *text = key_get(measure, "identity", false);

    if (!text)
        return false;
    clocks->is_shared = !strcmp(text, clocks->identity);
    dscomm_store_free(text);
    if (!clocks->is_shared)
        leader_choose(measure);
    clocks->has_come = true;
    if (key_add(measure, "come", 1) == clocks->size - 1)
        key_set(measure, "all", "");
    return true;
}

/* Returns measure with a part of the time that is left, or with TURN_NS of it,
 * whatever is longer. */
static measure_t measure_part(const measure_t *measure, int64_t parts)
{
    const int64_t now = dscomm_priv_clock();
    const int64_t left = MAX(measure->end - now, 0);
    measure_t part = *measure;

    part.end = now + MAX(left / parts, MIN(left, TURN_NS));
    return part;
}

/* Rank 0: waits for all ranks, for half of the time, and learns which of those
 * that have come will ask. */
static void leaders_learn(const measure_t *measure)
{
    const measure_t half = measure_part(measure, 2);
    GArray *leaders = measure->clocks->leaders;
    int64_t count;

    if (!measure->clocks->measured) {
        if (!key_set(measure, "identity", measure->clocks->identity))
            return;
        dscomm_store_free(key_get(&half, "all", false));
    }
    count = key_add(measure, "leaders", 0);
    for (int64_t i = leaders->len + 1; i <= count; i++) {
        const measure_t part = measure_part(measure, count - i + 2);
        char key[48], *text;
        int rank;

        snprintf(key, sizeof key, "leader/%" PRId64, i);
        text = key_get(&part, key, false);
        rank = text ? atoi(text) : -1;
        dscomm_store_free(text);
        g_array_append_val(leaders, rank);
    }
}

/* Answers a question; false: it does not come. */
static bool question_answer(const measure_t *measure, int rank, unsigned number)
{
    char *ask, *time, *question;
    char text[24], now[24];
    bool answered;

    g_snprintf(text, sizeof text, "%d", rank);
    ask = key_text("ask", text, number);
    time = key_text("time", text, number);
    question = key_get(measure, ask, true);
    g_snprintf(now, sizeof now, "%" PRId64, measure->clocks->now());
    answered = question && key_set(measure, time, now);
    dscomm_store_free(question);
    g_free(ask);
    g_free(time);
    return answered;
}

/* Answers all leaders. One that is silent does not hold up the others: each is
 * waited for in turns, and gets a share of the time once it has asked. */
static void leaders_answer(const measure_t *measure, unsigned first)
{
    GArray *leaders = g_array_copy(measure->clocks->leaders);

    while (leaders->len && dscomm_priv_clock_left(measure->end) > 0) {
        for (guint i = 0; i < leaders->len;) {
            const measure_t share = measure_part(measure, leaders->len);
            const measure_t turn = measure_part(measure, INT64_MAX);
            const int rank = g_array_index(leaders, int, i);
            unsigned question = first;

            if (rank > 0 && !question_answer(&turn, rank, question++)) {
                i++;
                continue;
            }
            while (rank > 0 && question < first + QUESTIONS &&
                   question_answer(&share, rank, question))
                question++;
            g_array_remove_index(leaders, i);
        }
    }
    g_array_unref(leaders);
}

/* Asks once; false: there is no answer. */
static bool point_ask(const measure_t *measure, unsigned number,
                      clock_point_t *ret_point)
{
    const clocks_t *clocks = measure->clocks;
    char *ask, *time, *answer;
    int64_t asked, answered;
    char rank[24];

    g_snprintf(rank, sizeof rank, "%d", clocks->rank);
    ask = key_text("ask", rank, number);
    time = key_text("time", rank, number);
    asked = clocks->now();
    answer = key_set(measure, ask, "") ? key_get(measure, time, false) : NULL;
    answered = clocks->now();
    if (answer) {
        dscomm_store_delete(measure->store, time, NULL);
        ret_point->at_ns = asked + (answered - asked) / 2;
        ret_point->offset_ns =
            g_ascii_strtoll(answer, NULL, 10) - ret_point->at_ns;
        ret_point->error_ns = (answered - asked) / 2 + 1;
    }
    dscomm_store_free(answer);
    g_free(ask);
    g_free(time);
    return answer != NULL;
}

/* Asks several times; the shortest round trip counts. */
static bool point_measure(const measure_t *measure, unsigned first,
                          clock_point_t *ret_point)
{
    clock_point_t point;

    ret_point->error_ns = INT64_MAX;
    for (unsigned i = first; i < first + QUESTIONS; i++) {
        if (!point_ask(measure, i, &point))
            return false;
        if (point.error_ns < ret_point->error_ns)
            *ret_point = point;
    }
    return true;
}

/* The leader publishes the offset of its machine, the others read it. */
static bool point_share(const measure_t *measure, clock_point_t *point)
{
    const clocks_t *clocks = measure->clocks;
    char *key = key_text("point", clocks->identity, clocks->measured);
    char text[80], *found = NULL;
    bool shared;

    snprintf(text, sizeof text, "%" PRId64 " %" PRId64 " %" PRId64,
             point->at_ns, point->offset_ns, point->error_ns);
    if (clocks->is_leader)
        shared = key_set(measure, key, text);
    else
        shared =
            (found = key_get(measure, key, false)) &&
            sscanf(found, "%" SCNd64 " %" SCNd64 " %" SCNd64, &point->at_ns,
                   &point->offset_ns, &point->error_ns) == 3;
    dscomm_store_free(found);
    g_free(key);
    return shared;
}

void dscomm_priv_clocks_measure(clocks_t *clocks, dscomm_store_t *store,
                                int timeout_ms)
{
    const measure_t measure = {
        clocks, store,
        dscomm_priv_clock_after(dscomm_priv_clock(), timeout_ms)};
    const unsigned first = clocks->measured * QUESTIONS;
    clock_point_t *point = &clocks->points[clocks->count];
    bool known;

    if (clocks->count == G_N_ELEMENTS(clocks->points) || clocks->size < 2)
        return;
    if (!clocks->rank) {
        leaders_learn(&measure);
        leaders_answer(&measure, first);
        clocks->count++;
    } else if (clocks->has_come || identity_compare(&measure)) {
        known = clocks->is_shared || !clocks->is_leader ||
                point_measure(&measure, first, point);
        if (!clocks->is_shared && known && point_share(&measure, point))
            clocks->count++;
    }
    clocks->measured++;
}

int64_t dscomm_priv_clocks_apply(const clocks_t *clocks, int64_t ns)
{
    const clock_point_t *a = &clocks->points[0], *b = &clocks->points[1];
    double part;

    if (clocks->is_shared || !clocks->count)
        return ns;
    if (clocks->count == 1 || b->at_ns <= a->at_ns)
        return ns + a->offset_ns;
    part = (double)(ns - a->at_ns) / (double)(b->at_ns - a->at_ns);
    return ns + a->offset_ns +
           (int64_t)(part * (double)(b->offset_ns - a->offset_ns));
}

int64_t dscomm_priv_clocks_error(const clocks_t *clocks)
{
    if (clocks->is_shared)
        return 0;
    if (clocks->count < 2)
        return clocks->count ? clocks->points[0].error_ns : -1;
    return MAX(clocks->points[0].error_ns, clocks->points[1].error_ns);
}
