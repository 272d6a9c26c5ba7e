/* SPDX-License-Identifier: BSD-3-Clause */
/* The state of a compressor: a saved state continues as if it had never been
 * saved; a damaged one, or one of another compressor, is refused and changes
 * nothing. */
#include "config.h"

#include "tests/compression/compress.h"

#include <sys/stat.h>

#define COUNT 1500

/* Makes calls after which both errors are not zero. */
static void warm_up(rank_t *self, dscomm_compressor_t *c)
{
    float x[COUNT];

    for (int call = 0; call < 3; call++) {
        fill_noise(x, COUNT, self->rank, call);
        reduce(self, c, x);
    }
}

static size_t state_bytes(rank_t *self, const dscomm_compressor_t *c)
{
    return info_of(self, c).state_bytes;
}

/* Checks that the next call gives the same bits with both. */
static void same_next(rank_t *self, dscomm_compressor_t *a,
                      dscomm_compressor_t *b)
{
    float x[COUNT], y[COUNT];

    fill_noise(x, COUNT, self->rank, 77);
    memcpy(y, x, sizeof x);
    reduce(self, a, x);
    reduce(self, b, y);
    CHECK(self, !memcmp(x, y, sizeof x));
}

static void saved(rank_t *self)
{
    static const char *const codecs[] = {"onebit", "int8", "topk", "none"};

    for (int i = 0; i < 4; i++) {
        dscomm_compressor_t *cs[2] = {open_with(self, COUNT, codecs[i]),
                                      open_with(self, COUNT, codecs[i])};
        size_t bytes = state_bytes(self, cs[0]);
        size_t room = bytes + (size_t)i * 100;
        void *memory = calloc(1, room);

        warm_up(self, cs[0]);
        CHECK(self, !dscomm_compressor_save(cs[0], memory, room));
        CHECK(self, !dscomm_compressor_load(cs[1], memory, room));
        same_next(self, cs[0], cs[1]);
        close_all(self, cs, 2);
        free(memory);
    }
}

static void in_file(rank_t *self)
{
    dscomm_compressor_t *cs[2] = {open_with(self, COUNT, NULL),
                                  open_with(self, COUNT, NULL)};
    char path[] = "/tmp/dscomm-state-XXXXXX", none[64];
    int fd = mkstemp(path);

    warm_up(self, cs[0]);
    CHECK(self, fd >= 0 && !dscomm_compressor_save_file(cs[0], path));
    CHECK(self, !dscomm_compressor_load_file(cs[1], path));
    same_next(self, cs[0], cs[1]);
    for (int i = 0; i < 3; i++) {
        const off_t sizes[] = {(off_t)state_bytes(self, cs[0]) + 1, 100, 0};

        CHECK(self, !truncate(path, sizes[i]));
        CHECK(self,
              dscomm_compressor_load_file(cs[1], path) == DSCOMM_ERR_PROTOCOL);
        CHECK(self, strstr(dscomm_last_error(), path));
    }
    close(fd);
    unlink(path);
    CHECK(self, dscomm_compressor_load_file(cs[1], path) == DSCOMM_ERR_IO);
    snprintf(none, sizeof none, "%s/x/y", path);
    CHECK(self, dscomm_compressor_save_file(cs[0], none) == DSCOMM_ERR_IO);
    CHECK(self, dscomm_compressor_save_file(cs[0], NULL) == DSCOMM_ERR_INVALID);
    CHECK(self, dscomm_compressor_load_file(cs[0], NULL) == DSCOMM_ERR_INVALID);
    close_all(self, cs, 2);
}

/* A file that is not a regular one is neither replaced, nor does reading it
 * block. */
static void no_files(rank_t *self)
{
    char folder[] = "/tmp/dscomm-state-XXXXXX", path[64];
    dscomm_compressor_t *c = open_with(self, COUNT, NULL);
    struct stat file;

    CHECK(self, mkdtemp(folder) != NULL);
    snprintf(path, sizeof path, "%s/pipe", folder);
    CHECK(self, !mkfifo(path, 0600));
    CHECK(self, dscomm_compressor_save_file(c, path) == DSCOMM_ERR_IO);
    CHECK(self, strstr(dscomm_last_error(), "no regular file"));
    CHECK(self, !stat(path, &file) && S_ISFIFO(file.st_mode));
    CHECK(self, dscomm_compressor_load_file(c, path) == DSCOMM_ERR_IO);
    CHECK(self, strstr(dscomm_last_error(), "no regular file"));
    CHECK(self, dscomm_compressor_load_file(c, "/dev/zero") == DSCOMM_ERR_IO);
    CHECK(self, dscomm_compressor_load_file(c, folder) == DSCOMM_ERR_IO);
    CHECK(self, dscomm_compressor_load_file(c, "") == DSCOMM_ERR_INVALID);
    CHECK(self, dscomm_compressor_save_file(c, "") == DSCOMM_ERR_INVALID);
    unlink(path);
    rmdir(folder);
    CHECK(self, !dscomm_compressor_free(c));
}

/* Every damaged byte is detected. */
static void damaged(rank_t *self)
{
    dscomm_compressor_t *c = open_with(self, COUNT, NULL);
    dscomm_compressor_t *twin = open_with(self, COUNT, NULL);
    size_t bytes = state_bytes(self, c);
    char *memory;
    int taken = 0;

    warm_up(self, c);
    memory = save(self, c);
    for (size_t i = 0; i < bytes; i += i < 120 || i > bytes - 40 ? 1 : 97) {
        memory[i] ^= (char)(1 << i % 8);
        taken +=
            dscomm_compressor_load(c, memory, bytes) != DSCOMM_ERR_PROTOCOL;
        memory[i] ^= (char)(1 << i % 8);
    }
    for (size_t some = 0; some < bytes; some += 61)
        taken += dscomm_compressor_load(c, memory, some) != DSCOMM_ERR_PROTOCOL;
    CHECK(self, !taken);
    CHECK(self, dscomm_compressor_load(c, NULL, 0) == DSCOMM_ERR_INVALID);
    CHECK(self,
          dscomm_compressor_save(c, memory, bytes - 1) == DSCOMM_ERR_INVALID);
    CHECK(self, dscomm_compressor_save(c, NULL, bytes) == DSCOMM_ERR_INVALID);
    /* c is unchanged. */
    CHECK(self, !dscomm_compressor_load(twin, memory, bytes));
    same_next(self, c, twin);
    CHECK(self, !dscomm_compressor_free(c) && !dscomm_compressor_free(twin));
    free(memory);
}

/* A valid state of another compressor. */
static void foreign(rank_t *self)
{
    static const struct {
        dscomm_compressor_attr_t attr;
        size_t count;
        const char *sentence;
    } others[] = {
        {{.codec = "int8"}, COUNT, "another codec"},
        {{.sum = 0}, COUNT + 1, "another number of elements"},
        {{.sum = 1}, COUNT, "operator"},
        {{.feedback = DSCOMM_FEEDBACK_OFF}, COUNT, "keeps errors"},
        {{.geometry = DSCOMM_GEOMETRY_DEEPSPEED}, COUNT, "geometry"},
    };
    dscomm_compressor_t *c = open_with(self, COUNT, NULL), *other;
    size_t bytes = state_bytes(self, c);
    char *memory = save(self, c);
    int next = (self->rank + 1) % 2;

    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        other = open_attr(self, self->world, others[i].count, others[i].attr);
        CHECK(self, dscomm_compressor_load(other, memory, bytes) ==
                        DSCOMM_ERR_PROTOCOL);
        CHECK(self, strstr(dscomm_last_error(), others[i].sentence));
        CHECK(self, !dscomm_compressor_free(other));
    }
    CHECK(self, !dscomm_send(self->world, memory, 80, DSCOMM_UINT8, next, 1));
    CHECK(self, !dscomm_recv(self->world, memory, 80, DSCOMM_UINT8, next, 1,
                             NULL, NULL));
    CHECK(self,
          dscomm_compressor_load(c, memory, bytes) == DSCOMM_ERR_PROTOCOL);
    CHECK(self, strstr(dscomm_last_error(), "another rank"));
    CHECK(self, !dscomm_compressor_free(c));
    free(memory);
}

/* After a reset a compressor is like a new one. */
static void reset(rank_t *self)
{
    dscomm_compressor_t *cs[2] = {open_with(self, COUNT, NULL),
                                  open_with(self, COUNT, NULL)};

    warm_up(self, cs[0]);
    CHECK(self, !dscomm_compressor_reset(cs[0]));
    same_next(self, cs[0], cs[1]);
    close_all(self, cs, 2);
}

/* The bytes of a saved state, which no release may change. */
static void form(rank_t *self)
{
    static const unsigned char head[80] = {
        'd', 's', 'c', 'o', 'm', 'm', 'E', 'F', 1, 0, 0, 0, 0, 0, 0, 0,
        4,   0,   0,   0,   1,   0,   0,   0,   0, 0, 0, 0, 0, 0, 0, 0,
        'o', 'n', 'e', 'b', 'i', 't', 0,   0,   0, 0, 0, 0, 0, 0, 0, 0,
        2,   0,   0,   0,   0,   0,   0,   0,   2, 0, 0, 0, 0, 0, 0, 0,
        2,   0,   0,   0,   0,   0,   0,   0,   2, 0, 0, 0, 0, 0, 0, 0};
    dscomm_compressor_t *c = open_with(self, 2, NULL);
    unsigned char memory[80 + 4 * 4 + 32];
    float *worker, *server;

    CHECK(self, state_bytes(self, c) == sizeof memory);
    CHECK(self, !dscomm_compressor_errors(c, &worker, &server));
    worker[0] = 1;
    worker[1] = -2;
    server[1] = 0.5f;
    CHECK(self, !dscomm_compressor_save(c, memory, sizeof memory));
    CHECK(self, !memcmp(memory, head, sizeof head));
    CHECK(self, !memcmp(memory + 80,
                        "\0\0\x80\x3f"
                        "\0\0\0\xc0"
                        "\0\0\0\0"
                        "\0\0\0\x3f",
                        16));
    CHECK(self, !dscomm_compressor_free(c));
}

int main(void)
{
    ranks_use_modules();
    for (int n = 1; n <= 3; n++) {
        ranks_run(n, 10000, saved, "saved and loaded");
        ranks_run(n, 10000, reset, "forgotten");
    }
    ranks_run(2, 10000, in_file, "in a file");
    ranks_run(1, 10000, no_files, "what is no regular file");
    ranks_run(2, 10000, damaged, "damaged");
    ranks_run(2, 10000, foreign, "of another compressor");
    ranks_run(1, 10000, form, "its form");
    return tap_done();
}
