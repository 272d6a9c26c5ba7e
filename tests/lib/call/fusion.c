/* SPDX-License-Identifier: BSD-3-Clause */
/* Small coalesced calls that are fused: each rank gets the same results as with
 * separate calls, and calls that differ are detected. */
#include "config.h"

#include "tests/lib/work/ranks.h"

#include <string.h>
#include <sys/mman.h>

#define CALLS 24
#define MOST 9000 /* elements: some calls are too long to be fused */

static const size_t counts[CALLS] = {0, 1, 7,    0, 64, 64, 9000, 3,
                                     5, 0, 8191, 2, 2,  33, 8192, 8193,
                                     1, 1, 1,    0, 17, 90, 4000, 6};

/* Whole numbers so small that sums are exact in any order. */
static int value(int rank, int call, size_t k)
{
    return (int)((size_t)(7 * rank + 3 * call) + k) % 19 - 9;
}

static void fill(float *buffer, int rank, int call)
{
    for (size_t k = 0; k < counts[call]; k++)
        buffer[k] = (float)value(rank, call, k);
}

static float reduced(int ranks, int call, size_t k, dscomm_op_t op)
{
    int sum = 0, most = -9;

    for (int r = 0; r < ranks; r++) {
        sum += value(r, call, k);
        most = value(r, call, k) > most ? value(r, call, k) : most;
    }
    return op == DSCOMM_MAX ? (float)most : (float)sum / (float)ranks;
}

static void check_call(rank_t *self, const float *got, int call, int root,
                       dscomm_op_t op)
{
    for (size_t k = 0; k < counts[call]; k++)
        CHECK(self, got[k] == (root < 0 ? reduced(self->size, call, k, op)
                                        : (float)value(root, call, k)));
}

/* Averages over two or four ranks, which are exact, and maxima, in runs of
 * three calls; some are in place, some empty with NULL buffers. */
static void reductions(rank_t *self)
{
    float *in = calloc(CALLS * MOST, sizeof *in);
    float *out = calloc(CALLS * MOST, sizeof *out);
    dscomm_work_t *work;

    for (int i = 0; i < CALLS; i++)
        fill(in + i * MOST, self->rank, i);
    CHECK(self, !dscomm_coalesce_begin(self->world));
    for (int i = 0; i < CALLS; i++) {
        float *from = in + i * MOST, *to = i % 4 == 1 ? from : out + i * MOST;
        int none = counts[i] == 0 && i % 2;

        CHECK(self,
              !dscomm_all_reduce(self->world, none ? NULL : from,
                                 none ? NULL : to, counts[i], DSCOMM_FLOAT32,
                                 i / 3 % 2 ? DSCOMM_MAX : DSCOMM_AVG, NULL));
    }
    CHECK(self, !dscomm_coalesce_end(self->world, &work));
    CHECK(self, dscomm_group_sequence(self->world) == CALLS);
    CHECK(self, dscomm_work_sequence(work) == 1);
    FINISH(self, work, DSCOMM_OK);
    for (int i = 0; i < CALLS; i++)
        check_call(self, (i % 4 == 1 ? in : out) + i * MOST, i, -1,
                   i / 3 % 2 ? DSCOMM_MAX : DSCOMM_AVG);
    free(in);
    free(out);
}

/* The root's own buffer is only read. */
static void broadcasts(rank_t *self)
{
    const size_t bytes = CALLS * MOST * sizeof(float);
    float *buffer = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const int root = self->size - 1;

    for (int i = 0; i < CALLS && self->rank == root; i++)
        fill(buffer + i * MOST, root, i);
    if (self->rank == root)
        mprotect(buffer, bytes, PROT_READ);
    CHECK(self, !dscomm_coalesce_begin(self->world));
    for (int i = 0; i < CALLS; i++)
        CHECK(self, !dscomm_broadcast(self->world, buffer + i * MOST, counts[i],
                                      DSCOMM_FLOAT32, root, NULL));
    CHECK(self, !dscomm_coalesce_end(self->world, NULL));
    for (int i = 0; i < CALLS; i++)
        check_call(self, buffer + i * MOST, i, root, DSCOMM_SUM);
    munmap(buffer, bytes);
}

/* Roots alternate, and several calls have the same input. */
static void turns(rank_t *self)
{
    int32_t data[CALLS], one = 1, sums[CALLS];

    CHECK(self, !dscomm_coalesce_begin(self->world));
    for (int i = 0; i < CALLS; i++) {
        data[i] = 100 * self->rank + i;
        CHECK(self, !dscomm_broadcast(self->world, &data[i], 1, DSCOMM_INT32,
                                      i / 2 % self->size, NULL));
    }
    for (int i = 0; i < CALLS; i++)
        CHECK(self, !sum_one(self->world, &one, &sums[i], NULL));
    CHECK(self, !dscomm_coalesce_end(self->world, NULL));
    for (int i = 0; i < CALLS; i++)
        CHECK(self, data[i] == 100 * (i / 2 % self->size) + i &&
                        sums[i] == self->size);
}

/* Adjacent buffers need not be packed, and packing gives the same results.
 * Ranks have their buffers in rows, in place, with gaps, or with results where
 * inputs of earlier calls were. There are more calls than can be fused into
 * one. */
#define ROW_CALLS 60
#define ROW_MOST 8192
#define ROW_FIRST 16384 /* elements before the inputs */

static size_t row_count(int call)
{
    return call % 7 == 3 ? (size_t)call : ROW_MOST;
}

static void rows(rank_t *self)
{
    const int layout = self->rank % 4, gap = layout == 2;
    const size_t room = ROW_FIRST + ROW_CALLS * (ROW_MOST + 1);
    int32_t *in = calloc(room, sizeof *in), *out = calloc(room, sizeof *out);
    int32_t *to = layout % 2 ? in : out;
    const size_t down = layout == 3 ? ROW_MOST : 0;
    size_t at = ROW_FIRST;

    for (size_t i = 0; i < room; i++)
        in[i] = self->rank + 1;
    CHECK(self, !dscomm_coalesce_begin(self->world));
    for (int i = 0; i < ROW_CALLS; i++) {
        for (size_t k = 0; k < row_count(i); k++)
            in[at + k] = (int32_t)(self->rank * 1000 + i + (int)k % 10);
        CHECK(self,
              !dscomm_all_reduce(self->world, in + at, to + at - down,
                                 row_count(i), DSCOMM_INT32, DSCOMM_SUM, NULL));
        at += row_count(i) + (size_t)gap;
    }
    CHECK(self, !dscomm_coalesce_end(self->world, NULL));
    CHECK(self, dscomm_group_sequence(self->world) == ROW_CALLS);
    at = ROW_FIRST;
    for (int i = 0; i < ROW_CALLS; i++) {
        const int base = self->size * (self->size - 1) / 2 * 1000;

        for (size_t k = 0; k < row_count(i); k++)
            CHECK(self,
                  to[at - down + k] == base + self->size * (i + (int)k % 10));
        at += row_count(i) + (size_t)gap;
    }
    free(in);
    free(out);
}

/* How the last rank's calls differ from the others': in their sums, and in
 * which of them are fused. */
static const struct {
    const char *what;
    size_t counts[4], others[4];
    int float_at; /* index of the call with another dtype, or -1 */
} differences[] = {
    {"one is longer", {3, 3, 3, 3}, {3, 3, 4, 3}, -1},
    {"two have changed places", {3, 5, 3, 3}, {5, 3, 3, 3}, -1},
    {"one is too long to go with others", {3, 3, 3, 3}, {3, 9000, 3, 3}, -1},
    {"the last is too long", {3, 3, 3, 3}, {3, 3, 3, 9000}, -1},
    {"one is empty", {3, 3, 3, 3}, {3, 3, 0, 3}, -1},
    {"one has another dtype", {3, 3, 3, 3}, {3, 3, 3, 3}, 2},
};

static size_t difference;

/* 1: the buffers of all ranks are adjacent; 0: only the last rank's. */
static int in_rows;

static void mismatch(rank_t *self)
{
    static const float in[4 * MOST];
    static float out[RANKS_MAX][4][MOST];
    const int odd = self->rank == self->size - 1, row = in_rows || odd;
    size_t at = 0;

    CHECK(self, !dscomm_coalesce_begin(self->world));
    for (int i = 0; i < 4; i++) {
        size_t count = odd ? differences[difference].others[i]
                           : differences[difference].counts[i];

        CHECK(self,
              !dscomm_all_reduce(
                  self->world, in + (row ? at : 0),
                  row ? out[self->rank][0] + at : out[self->rank][i], count,
                  odd && differences[difference].float_at == i ? DSCOMM_FLOAT32
                                                               : DSCOMM_INT32,
                  DSCOMM_SUM, NULL));
        at += count;
    }
    FAILS(self, DSCOMM_ERR_MISMATCH, "all_reduce(",
          dscomm_coalesce_end(self->world, NULL));
}

static void all_of(const char *how)
{
    char what[128];

    for (int ranks = 2; ranks <= 4; ranks += 2) {
        snprintf(what, sizeof what, "reductions by %s", how);
        ranks_run(ranks, 20000, reductions, what);
        snprintf(what, sizeof what, "broadcasts by %s", how);
        ranks_run(ranks, 20000, broadcasts, what);
        snprintf(what, sizeof what, "roots in turn by %s", how);
        ranks_run(ranks, 20000, turns, what);
        snprintf(what, sizeof what, "buffers in rows by %s", how);
        ranks_run(ranks, 20000, rows, what);
    }
    for (difference = 0;
         difference < sizeof differences / sizeof differences[0];
         difference++) {
        for (in_rows = 0; in_rows < 2; in_rows++) {
            snprintf(what, sizeof what, "%s%s, by %s",
                     differences[difference].what, in_rows ? ", in rows" : "",
                     how);
            ranks_run(3, 20000, mismatch, what);
        }
    }
}

int main(void)
{
    ranks_use_modules();
    all_of("the backend");
    setenv("DSCOMM_ALGORITHM",
           "all_reduce:recursive_doubling,broadcast:binomial", 1);
    all_of("schedules");
    return tap_done();
}
