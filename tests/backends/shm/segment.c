/* SPDX-License-Identifier: BSD-3-Clause */
/* The segment: its layout for any number of ranks, its limits, its seals. */
#include "tests/backends/shm/fixture.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#define KIB ((uint64_t)1 << 10)
#define MIB ((uint64_t)1 << 20)

static void test_layout(void)
{
    /* As documented: ring 32 MiB / ranks within 512 KiB ... 4 MiB, channel 8
     * MiB / ranks within 64 KiB ... 4 MiB, in powers of two. */
    static const struct {
        int ranks;
        uint64_t ring, channel;
    } rows[] = {{2, 4 * MIB, 4 * MIB},     {3, 4 * MIB, 2 * MIB},
                {8, 4 * MIB, 1 * MIB},     {9, 2 * MIB, 512 * KIB},
                {16, 2 * MIB, 512 * KIB},  {64, 512 * KIB, 128 * KIB},
                {65, 512 * KIB, 64 * KIB}, {1024, 512 * KIB, 64 * KIB}};

    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        uint64_t p = (uint64_t)rows[i].ranks;
        shm_layout_t l;

        is_int(shm_layout_make(rows[i].ranks, &l), DSCOMM_OK, "layout for %d",
               rows[i].ranks);
        is_int((long long)l.ring_size, (long long)rows[i].ring, "its ring");
        is_int((long long)l.channel_size, (long long)rows[i].channel,
               "its channel");
        ok(l.control >= sizeof(shm_header_t) &&
               l.control_stride >= sizeof(shm_control_t) &&
               l.ring >= l.control + p * l.control_stride &&
               l.channel >= l.ring + p * l.ring_size &&
               l.heap >= l.channel + p * p * l.channel_size &&
               l.total >= l.heap + p * l.heap_size,
           "its parts do not overlap");
        ok(!((l.control | l.control_stride | l.ring | l.channel | l.heap |
              l.ring_size | l.channel_size) %
             4096),
           "its parts are whole pages");
    }
}

/* With the smallest ring: a piece of some collectives takes a line for each
 * rank, and several pieces are in use at a time. */
static void test_small_ring(void)
{
    shm_layout_t layout;

    g_setenv("DSCOMM_SHM_RING", "4K", TRUE);
    for (int ranks = 2; ranks <= 1024; ranks *= 2) {
        is_int(shm_layout_make(ranks, &layout), DSCOMM_OK,
               "a ring of 4 KiB and %d ranks", ranks);
        ok(layout.ring_size >= 8 * 64 * (uint64_t)ranks,
           "has room for eight lines of each");
    }
    g_unsetenv("DSCOMM_SHM_RING");
}

static void test_file_limit(void)
{
    struct rlimit before, low = {64 * MIB, RLIM_INFINITY};
    shm_layout_t layout;
    int fd = -1;

    getrlimit(RLIMIT_FSIZE, &before);
    low.rlim_max = before.rlim_max;
    shm_layout_make(2, &layout);
    if (layout.heap > low.rlim_cur) {
        skip("the segment of two ranks is larger than 64 MiB");
        return;
    }
    setrlimit(RLIMIT_FSIZE, &low);
    is_int(shm_segment_create("g", &layout, &fd), DSCOMM_OK,
           "a file limit of 64 MiB leaves room for rings");
    is_int((long long)layout.heap_size, 0, "but none for heaps");
    close(fd);
    low.rlim_cur = MIB;
    setrlimit(RLIMIT_FSIZE, &low);
    shm_layout_make(2, &layout);
    is_int(shm_segment_create("g", &layout, &fd), DSCOMM_ERR_NO_MEMORY,
           "a file limit of 1 MiB is too low");
    ok(strstr(dscomm_last_error(), "ulimit -f") != NULL,
       "and the sentence names the limit: %s", dscomm_last_error());
    setrlimit(RLIMIT_FSIZE, &before);
}

static void test_bad_setting(void)
{
    shm_layout_t layout;

    g_setenv("DSCOMM_SHM_RING", "many", TRUE);
    is_int(shm_layout_make(2, &layout), DSCOMM_ERR_ENVIRONMENT,
           "DSCOMM_SHM_RING=many is refused");
    ok(strstr(dscomm_last_error(), "DSCOMM_SHM_RING") != NULL,
       "and the sentence names it");
    g_setenv("DSCOMM_SHM_RING", "1M", TRUE);
    is_int(shm_layout_make(2, &layout), DSCOMM_OK, "1M is taken");
    is_int((long long)layout.ring_size, (long long)MIB, "as it is");
    g_unsetenv("DSCOMM_SHM_RING");
}

static void test_sharing(void)
{
    shm_t *shms[2];
    struct stat status;

    fixture_open(shms, 2);
    shms[0]->own->pid = 17;
    is_int(shm_control(shms[1], 0)->pid, 17, "what one writes the other reads");
    fstat(shms[0]->fd, &status);
    is_int(ftruncate(shms[1]->fd, 0), -1, "nobody can shrink the segment");
    is_int(ftruncate(shms[1]->fd, status.st_size + 4096), -1, "or let it grow");
    ok(status.st_nlink == 0, "it has no name");
    ok((uint64_t)status.st_blocks * 512 < MIB,
       "and takes little memory before it is used (%lld bytes)",
       (long long)status.st_blocks * 512);
    is_int(shm_segment_reserve(shms[0], shms[0]->base + shms[0]->layout.ring,
                               shms[0]->layout.ring, shms[0]->layout.ring_size,
                               "ring"),
           DSCOMM_OK, "a ring can be reserved");
    fstat(shms[0]->fd, &status);
    ok((uint64_t)status.st_blocks * 512 >= shms[0]->layout.ring_size,
       "and then has its memory");
    fixture_close(shms, 2);
}

int main(void)
{
    test_layout();
    test_small_ring();
    test_file_limit();
    test_bad_setting();
    test_sharing();
    return tap_done();
}
