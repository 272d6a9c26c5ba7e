/* SPDX-License-Identifier: BSD-3-Clause */
/* Windows between processes. Results are those of host memory. A process is
 * killed when it is about to map other processes' memory, or before a call,
 * with all memory mapped: the others go on, and can release their memory. */
#include "config.h"

#include "compression/device/device.h"
#include "tests/backends/job.h"
#include "tests/compression/pairs.h"

#include <signal.h>

#define SHORT 5000
#define MEMORY_S 20 /* time for other processes to release their mappings */

/* What a rank does, and which rank is killed meanwhile; -1: none. */
typedef struct {
    const char *name;
    void (*body)(rank_t *self);
    int ranks, victim;
} scene_t;

static dscomm_device_ops_t ops;

static int killed(dscomm_device_queue_t *queue,
                  const dscomm_device_card_t *card, void **ret_memory)
{
    (void)queue;
    (void)card;
    (void)ret_memory;
    return raise(SIGKILL);
}

static void calls(rank_t *self)
{
    pair_t pairs[3];

    for (int i = 0; i < 3; i++)
        pairs[i] = pair_new(self, (size_t)SHORT << 3 * i);
    for (int call = 0; call < 9; call++)
        pair_call(self, &pairs[call % 3], call % 2);
    for (int i = 0; i < 3; i++)
        pair_free(self, &pairs[i]);
    CHECK(self, fake_device_counted(FAKE_READ));
}

static void without_one(rank_t *self)
{
    dscomm_compressor_t *c = NULL;

    if (self->rank == 1)
        ops.map = killed;
    CHECK(self, dscomm_compressor_create(self->world, SHORT, NULL, &c) < 0);
    CHECK(self, !c);
}

static void call_without_one(rank_t *self)
{
    dscomm_compressor_t *c = open_with(self, SHORT, NULL);
    float *x = fake_device_alloc(SHORT * sizeof *x);

    if (self->rank == 1)
        raise(SIGKILL);
    CHECK(self, try_reduce(c, x) < 0);
    CHECK(self, !dscomm_compressor_free(c));
    fake_device_free(x);
}

/* Other processes may still have this rank's memory mapped; then the next
 * compressor, possibly of another group, releases it. */
static void wait_for_memory(rank_t *self, dscomm_group_t *alone)
{
    dscomm_compressor_t *c = NULL;

    for (int i = 0; i < MEMORY_S * 1000 && fake_device_pieces(); i++) {
        usleep(1000);
        CHECK(self, !dscomm_compressor_create(alone, SHORT, NULL, &c));
        CHECK(self, !dscomm_compressor_free(c));
    }
    CHECK(self, !fake_device_pieces());
}

static void run(job_rank_t *me)
{
    const scene_t *scene = me->arg;
    rank_t self = {.rank = me->rank, .size = me->ranks};
    dscomm_group_t *alone = NULL;

    if (job_init(me) < 0)
        return;
    self.world = me->world;
    ops = *fake_device_table();
    dscomm_priv_device_use(&ops);
    fake_device_one_process = 0;
    CHECK(&self, !dscomm_group_split(self.world, me->rank, 0, NULL, &alone));
    scene->body(&self);
    wait_for_memory(&self, alone);
    dscomm_finalize(self.world);
    dscomm_priv_device_use(NULL);
    snprintf(me->report->sentence, sizeof me->report->sentence, "%.599s",
             self.failure);
    me->report->ended = 1;
}

static void show(scene_t *scene)
{
    int content = 0, wanted = scene->ranks - (scene->victim >= 0);
    job_t job;

    job_make(&job, scene->ranks, 20000, run, scene);
    job_start(&job);
    ok(job_join(&job, 60000), "%s, %d ranks: all end", scene->name,
       scene->ranks);
    for (int r = 0; r < scene->ranks; r++)
        content += r != scene->victim && job.reports[r].ended &&
                   !*job.reports[r].sentence && job_exited(&job, r);
    if (!is_int(content, wanted, "and are content"))
        job_show(&job);
    job_end(&job, scene->name);
}

int main(void)
{
    static scene_t scenes[] = {
        {"calls", calls, 2, -1},
        {"calls", calls, 3, -1},
        {"calls", calls, 4, -1},
        {"one is killed when it is to map memory", without_one, 3, 1},
        {"one is killed before a call", call_without_one, 3, 1},
    };

    setenv("DSCOMM_BACKEND", "shm", 1);
    for (size_t i = 0; i < sizeof scenes / sizeof *scenes; i++)
        show(&scenes[i]);
    return tap_done();
}
