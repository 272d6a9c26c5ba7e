/* SPDX-License-Identifier: BSD-3-Clause */
/* The bytes that are sent: a header and the codes of each rank's part, and no
 * more. */
#include "config.h"

#include "tests/compression/compress.h"

#include <dscomm/hook.h>

#define ROW_HEADER 16
#define TILE 1024

/* bytes sent by each rank, between compressors */
static size_t sent[RANKS_MAX];

static uint64_t count_sent(const dscomm_op_info_t *info, void *arg)
{
    (void)arg;
    if (info->coll == DSCOMM_COLL_SEND &&
        strstr(dscomm_group_name(info->group), "/compressed"))
        sent[dscomm_group_rank(info->group)] += info->bytes;
    return 0;
}

static const struct {
    const char *codec;
    size_t count;
    size_t bits; /* of an element */
} cases[] = {
    {"onebit", 0, 1},     {"onebit", 1, 1},      {"onebit", 1000, 1},
    {"onebit", 5000, 1},  {"float16", 3000, 16}, {"none", 1000, 32},
    {"none", 200000, 32}, {"none", 70000, 32},
};
static size_t current;

static size_t part_of(int rank, int ranks)
{
    size_t count = cases[current].count, n = (size_t)ranks;
    size_t chunk = ((count + n - 1) / n + TILE - 1) / TILE * TILE;
    size_t first = (size_t)rank * chunk;

    return first >= count ? 0 : count - first < chunk ? count - first : chunk;
}

static size_t row_of(int rank, int ranks)
{
    return cases[current].count
               ? ROW_HEADER +
                     (part_of(rank, ranks) * cases[current].bits + 7) / 8
               : 0;
}

/* Each rank sends a part to each other rank, and the result of its own part to
 * each. */
static void no_more(rank_t *self)
{
    size_t count = cases[current].count, want = 0;
    dscomm_compressor_t *c = open_with(self, count, cases[current].codec);
    dscomm_compressor_info_t info = {.size = sizeof info};
    float *x = malloc((count + 1) * sizeof *x);
    int wrong = 0;

    for (int r = 0; r < self->size; r++)
        if (r != self->rank)
            want += row_of(r, self->size) + row_of(self->rank, self->size);
    for (size_t i = 0; i < count; i++)
        x[i] = i % 3 ? 2 : -2;
    sent[self->rank] = 0;
    reduce(self, c, x);
    for (size_t i = 0; i < count; i++)
        wrong += fabsf(x[i] - (i % 3 ? 2 : -2)) > 1e-3f;
    CHECK(self, !wrong);
    CHECK(self, sent[self->rank] == want);
    CHECK(self, !dscomm_compressor_info(c, &info));
    CHECK(self, info.wire_bytes == want);
    CHECK(self, !dscomm_compressor_free(c));
    free(x);
}

/* The notes that the hooks got of each rank's last call. */
static dscomm_note_t noted[RANKS_MAX];
static int notes[RANKS_MAX];

static void on_note(const dscomm_note_t *note, void *arg)
{
    const int rank = dscomm_group_rank(note->group);

    (void)arg;
    noted[rank] = *note;
    notes[rank]++;
}

/* Worked out by hand, for calls of 5000 and 1000 float32. In the native
 * geometry parts are whole tiles of 1024 elements: 3072 and 1928 of 2 ranks,
 * 2048, 2048 and 904 of 3. In DeepSpeed's, parts are equal: of 1000 elements
 * with padding up to 1008, 1008 and 1000. A row is 16 bytes, and one for 8
 * elements: 400 and 257; 272, 272 and 129; 79; 58; 41. Uncompressed, each rank
 * sends 2(n-1)/n times 20000, or 4000, bytes at least. */
static const struct {
    dscomm_geometry_t geometry;
    size_t count;
    int ranks;
    uint64_t sent[3]; /* by ranks 0, 1, and all others */
    uint64_t plain;
} calls[] = {
    {DSCOMM_GEOMETRY_NATIVE, 5000, 1, {0, 0, 0}, 0},
    {DSCOMM_GEOMETRY_NATIVE, 5000, 2, {657, 657, 0}, 20000},
    {DSCOMM_GEOMETRY_NATIVE, 5000, 3, {945, 945, 802}, 26666},
    {DSCOMM_GEOMETRY_DEEPSPEED, 1000, 2, {158, 158, 0}, 4000},
    {DSCOMM_GEOMETRY_DEEPSPEED, 1000, 3, {232, 232, 232}, 5333},
    {DSCOMM_GEOMETRY_DEEPSPEED, 1000, 5, {328, 328, 328}, 6400},
};

static void note_of_call(rank_t *self)
{
    const uint64_t *want = calls[current].sent;
    const size_t count = calls[current].count;
    dscomm_compressor_t *c =
        OPEN(self, self->world, count, .geometry = calls[current].geometry);
    const dscomm_note_t *note = &noted[self->rank];
    float x[5000] = {0};

    for (int i = 0; i < 2; i++) {
        notes[self->rank] = 0;
        reduce_as(self, c, x, DSCOMM_FLOAT32, i);
        CHECK(self, notes[self->rank] == 1);
        CHECK(self, note->group == self->world && note->status == DSCOMM_OK);
        CHECK(self, note->coll == DSCOMM_COLL_ALL_REDUCE);
        CHECK(self, !strcmp(note->codec, "onebit"));
        CHECK(self, note->bytes == 4 * count);
        CHECK(self, note->sent_bytes == want[self->rank < 2 ? self->rank : 2]);
        CHECK(self, note->plain_bytes == calls[current].plain);
        CHECK(self, note->nanoseconds > 0);
    }
    CHECK(self, !dscomm_compressor_free(c));
}

/* One note for several compressors: the sums. */
static void note_of_many(rank_t *self)
{
    dscomm_compressor_t *c[2] = {open_with(self, 5000, "onebit"),
                                 open_with(self, 1000, "none")};
    float x[5000] = {0}, y[1000] = {0};
    void *buffers[] = {x, y};

    notes[self->rank] = 0;
    CHECK(self, !dscomm_compressor_all_reduce_many(c, buffers, 2,
                                                   DSCOMM_FLOAT32, NULL));
    CHECK(self, notes[self->rank] == 1);
    CHECK(self, !strcmp(noted[self->rank].codec, "several"));
    CHECK(self, noted[self->rank].bytes == 24000);
    CHECK(self, noted[self->rank].plain_bytes == 24000);
    /* the second buffer is rank 0's part, and rank 1's is a header only */
    CHECK(self, noted[self->rank].sent_bytes == 657 + 4016 + 16);
    CHECK(self, !dscomm_compressor_free(c[0]));
    CHECK(self, !dscomm_compressor_free(c[1]));
}

static void reports(void)
{
    dscomm_hooks_t hooks = {.size = sizeof hooks, .note = on_note};

    is_int(dscomm_hooks_set(&hooks), DSCOMM_OK, "hooks for notes");
    for (current = 0; current < sizeof calls / sizeof *calls; current++)
        ranks_run(calls[current].ranks, 20000, note_of_call, "a note");
    ranks_run(2, 20000, note_of_many, "a note for several compressors");
    dscomm_hooks_set(NULL);
}

int main(void)
{
    static const int sizes[] = {1, 2, 3, 5, 8};
    dscomm_hooks_t hooks = {.size = sizeof hooks, .begin = count_sent};

    ranks_use_modules();
    is_int(dscomm_hooks_set(&hooks), DSCOMM_OK, "hooks");
    for (current = 0; current < sizeof cases / sizeof *cases; current++)
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
            char what[80];

            snprintf(what, sizeof what, "%zu elements, codec %s",
                     cases[current].count, cases[current].codec);
            ranks_run(sizes[s], 20000, no_more, what);
        }
    dscomm_hooks_set(NULL);
    reports();
    return tap_done();
}
