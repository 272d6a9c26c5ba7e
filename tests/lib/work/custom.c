/* SPDX-License-Identifier: BSD-3-Clause */
/* Custom works: made of messages on another group, ended by failure, abort and
 * free. */
#include "config.h"

#include "tests/lib/work/ranks.h"

#include <dscomm/backend.h>

/* Passes a number round twice: the number received in the first round is sent
 * in the second. */
typedef struct {
    rank_t *self;
    dscomm_group_t *ring;
    int32_t out, in;
    int rounds, cancelled;
    dscomm_work_t *send, *recv;
} tour_t;

static dscomm_status_t step(tour_t *tour)
{
    int size = tour->self->size, rank = tour->self->rank;
    dscomm_status_t status =
        dscomm_isend(tour->ring, &tour->out, 1, DSCOMM_INT32, (rank + 1) % size,
                     4, &tour->send);

    return status < 0 ? status
                      : dscomm_irecv(tour->ring, &tour->in, 1, DSCOMM_INT32,
                                     (rank + size - 1) % size, 4, &tour->recv);
}

static dscomm_status_t tour_advance(void *state)
{
    tour_t *tour = state;

    if (tour->send) {
        dscomm_work_t *both[2] = {tour->send, tour->recv};
        dscomm_status_t status = dscomm_work_wait_all(both, 2, 0);

        if (status != DSCOMM_OK)
            return status;
        dscomm_work_free(tour->send);
        dscomm_work_free(tour->recv);
        tour->send = tour->recv = NULL;
        tour->out = tour->in;
        if (++tour->rounds == 2)
            return DSCOMM_OK;
    }
    return step(tour) < 0 ? DSCOMM_ERR_INTERNAL : DSCOMM_IN_PROGRESS;
}

static void tour_cancel(void *state, dscomm_status_t status)
{
    tour_t *tour = state;

    tour->cancelled = status;
}

static const dscomm_work_ops_t tour_ops = {sizeof tour_ops, tour_advance,
                                           tour_cancel};

static void start(rank_t *self, tour_t *tour, dscomm_work_t **work)
{
    memset(tour, 0, sizeof *tour);
    tour->self = self;
    tour->out = self->rank;
    tour->ring = split_all(self, 0);
    CHECK(self, !dscomm_work_create(self->world, &tour_ops, tour, work));
}

static void finish(rank_t *self, tour_t *tour)
{
    CHECK(self, tour->rounds == 2 && !tour->cancelled);
    CHECK(self, tour->in == (self->rank + self->size - 2) % self->size);
    CHECK(self, !dscomm_group_free(tour->ring));
}

static void ends(rank_t *self)
{
    tour_t tours[3];
    dscomm_work_t *works[3] = {NULL};
    size_t index;

    for (int i = 0; i < 3; i++)
        start(self, &tours[i], &works[i]);
    CHECK(self, dscomm_work_group(works[0]) == self->world);
    CHECK(self, dscomm_work_sequence(works[0]) == 0);
    CHECK(self,
          dscomm_work_received(works[0], NULL, NULL, NULL) == DSCOMM_ERR_STATE);
    CHECK(self, !dscomm_work_wait_any(works + 1, 1, -1, &index));
    CHECK(self, !dscomm_work_wait(works[0], -1));
    while (dscomm_work_test(works[2]) == DSCOMM_IN_PROGRESS)
        ;
    CHECK(self, !dscomm_work_test(works[2]));
    for (int i = 0; i < 3; i++) {
        finish(self, &tours[i]);
        dscomm_work_free(works[i]);
    }
}

/* No rank waits for it: calls on other groups advance it, a few calls for each
 * step of a rank, however fast the others are. */
static void freed(rank_t *self)
{
    tour_t tour;
    dscomm_work_t *work = NULL;
    int32_t rounds = 0;

    start(self, &tour, &work);
    dscomm_work_free(work);
    for (int i = 0; i < 10000 && rounds < 2; i++) {
        int32_t mine = tour.rounds;

        CHECK(self, !dscomm_all_reduce(self->world, &mine, &rounds, 1,
                                       DSCOMM_INT32, DSCOMM_MIN, NULL));
    }
    finish(self, &tour);
}

static dscomm_status_t fail_third(void *state)
{
    int *calls = state;

    if (++*calls < 3)
        return DSCOMM_IN_PROGRESS;
    return dscomm_fail(DSCOMM_ERR_IO, "the third call has failed");
}

static dscomm_status_t fail_first(void *state)
{
    (void)state;
    return dscomm_fail(DSCOMM_ERR_IO, "the first call has failed");
}

static dscomm_status_t never(void *state)
{
    (void)state;
    return DSCOMM_IN_PROGRESS;
}

static void note_cancel(void *state, dscomm_status_t status)
{
    *(int *)state = (int)status;
}

static void fails(rank_t *self)
{
    static const dscomm_work_ops_t third = {sizeof third, fail_third,
                                            note_cancel},
                                   first = {sizeof first, fail_first,
                                            note_cancel};
    int calls = 0, value = 0;
    dscomm_work_t *work = NULL;

    CHECK(self, !dscomm_work_create(self->world, &third, &calls, &work));
    FAILS(self, DSCOMM_ERR_STATE, "has no deadline",
          dscomm_work_set_timeout(work, 100));
    CHECK(self, dscomm_work_wait(work, -1) == DSCOMM_ERR_IO);
    CHECK(self, !strcmp(dscomm_last_error(), "the third call has failed"));
    CHECK(self, calls == 3);
    dscomm_work_free(work);
    CHECK(self, !dscomm_work_create(self->world, &first, &value, &work));
    CHECK(self, dscomm_work_test(work) == DSCOMM_ERR_IO);
    CHECK(self, !strcmp(dscomm_last_error(), "the first call has failed"));
    dscomm_work_free(work);
    CHECK(self, dscomm_group_status(self->world) == DSCOMM_OK);
}

static void cancelled(rank_t *self)
{
    static const dscomm_work_ops_t ops = {sizeof ops, never, note_cancel};
    int state = 0;
    dscomm_work_t *work = NULL;
    dscomm_group_t *group = NULL;

    group = split_all(self, 0);
    CHECK(self, !dscomm_work_create(group, &ops, &state, &work));
    CHECK(self, dscomm_work_wait(work, 20) == DSCOMM_IN_PROGRESS && !state);
    CHECK(self, !dscomm_barrier(self->world, NULL));
    CHECK(self, !dscomm_group_abort(group, "the brake"));
    FAILS(self, DSCOMM_ERR_ABORTED, "the brake", dscomm_work_wait(work, -1));
    CHECK(self, state == DSCOMM_ERR_ABORTED);
    dscomm_work_free(work);
    CHECK(self, !dscomm_group_free(group));

    state = 0;
    group = split_all(self, 0);
    CHECK(self, !dscomm_work_create(group, &ops, &state, &work));
    CHECK(self, !dscomm_group_free(group));
    CHECK(self, state == DSCOMM_ERR_ABORTED);
    CHECK(self, dscomm_work_test(work) == DSCOMM_ERR_ABORTED);
    dscomm_work_free(work);
}

/* Tables of callers with newer headers; the table may be freed when the call
 * returns. */
static void sizes(rank_t *self)
{
    struct {
        dscomm_work_ops_t ops;
        void *more;
    } newer = {{sizeof newer, fail_third, note_cancel}, NULL};
    dscomm_work_t *work = NULL;
    int calls = 0;

    CHECK(self, !dscomm_work_create(self->world, &newer.ops, &calls, &work));
    memset(&newer, 0xff, sizeof newer);
    CHECK(self, dscomm_work_wait(work, -1) == DSCOMM_ERR_IO && calls == 3);
    dscomm_work_free(work);
    newer.ops = (dscomm_work_ops_t){sizeof newer, never, note_cancel};
    FAILS(self, DSCOMM_ERR_INVALID, "does not know",
          dscomm_work_create(self->world, &newer.ops, NULL, &work));
}

static void refused(rank_t *self)
{
    static const dscomm_work_ops_t empty = {sizeof empty, NULL, note_cancel},
                                   small = {1, never, note_cancel},
                                   half = {sizeof half - 4, never, note_cancel};
    dscomm_work_t *work = NULL;

    CHECK(self, dscomm_work_create(NULL, &tour_ops, NULL, &work) ==
                    DSCOMM_ERR_INVALID);
    FAILS(self, DSCOMM_ERR_INVALID, "ops is NULL",
          dscomm_work_create(self->world, NULL, NULL, &work));
    FAILS(self, DSCOMM_ERR_INVALID, "ret_work is NULL",
          dscomm_work_create(self->world, &tour_ops, NULL, NULL));
    CHECK(self, dscomm_work_create(self->world, &empty, NULL, &work) ==
                    DSCOMM_ERR_INVALID);
    FAILS(self, DSCOMM_ERR_INVALID, "ops.size is 1",
          dscomm_work_create(self->world, &small, NULL, &work));
    FAILS(self, DSCOMM_ERR_INVALID, "set it to sizeof(dscomm_work_ops_t)",
          dscomm_work_create(self->world, &half, NULL, &work));
    CHECK(self, !dscomm_coalesce_begin(self->world));
    CHECK(self, dscomm_work_create(self->world, &tour_ops, NULL, &work) ==
                    DSCOMM_ERR_STATE);
    CHECK(self, !dscomm_coalesce_end(self->world, NULL) && !work);
}

int main(void)
{
    ranks_use_modules();
    ranks_run(3, 10000, ends, "made of messages");
    ranks_run(1, 10000, ends, "of one rank");
    ranks_run(3, 10000, freed, "freed while it runs");
    ranks_run(2, 10000, fails, "fails with its sentence");
    ranks_run(2, 10000, cancelled, "cancelled by abort and free");
    ranks_run(2, 10000, sizes, "tables of newer callers");
    ranks_run(2, 10000, refused, "refused");
    return tap_done();
}
