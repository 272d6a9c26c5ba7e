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
    return tap_done();
}
