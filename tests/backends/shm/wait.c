/* SPDX-License-Identifier: BSD-3-Clause */
/* Waking: no rank misses a flag while it sleeps, with membarrier(2) or
 * without. */
#include "tests/backends/shm/fixture.h"

#include <linux/membarrier.h>

#include "tests/backends/sandbox.h"

/* Rank 1 is about to sleep, and rank 0 raises a flag. Rank 0 has loaded
 * sleepers before it stored the flag, so it has not seen rank 1's increment.
 * Returns whether rank 1 is woken. */
static int wakes(shm_t **shms)
{
    uint32_t before = atomic_load(&shms[1]->own->wake);

    atomic_store(&shms[1]->own->sleeping, 1);
    shm_wake(shms[0]);
    atomic_store(&shms[1]->own->sleeping, 0);
    return atomic_load(&shms[1]->own->wake) != before;
}

static void test_with(void)
{
    shm_t *shms[2];

    if (syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0,
                0)) {
        skip("no membarrier here: %s", strerror(errno));
        return;
    }
    fixture_open(shms, 2);
    for (int r = 0; r < 2; r++)
        shm_wait_register(shms[r]);
    for (int r = 0; r < 2; r++)
        shm_wait_agree(shms[r]);
    ok(!wakes(shms), "with membarrier nobody looks for sleepers");
    fixture_close(shms, 2);
}

/* Rank first is opened before membarrier is disabled, the other rank
 * afterwards. */
static void test_without(void)
{
    shm_t *shms[2][2];

    for (int i = 0; i < 2; i++) {
        fixture_open(shms[i], 2);
        shm_wait_register(shms[i][i]);
    }
    if (sandbox_filter(SYS_membarrier, SECCOMP_RET_ERRNO | ENOSYS)) {
        skip("system calls cannot be filtered: %s", strerror(errno));
    } else {
        for (int i = 0; i < 2; i++) {
            shm_wait_register(shms[i][1 - i]);
            for (int r = 0; r < 2; r++)
                shm_wait_agree(shms[i][r]);
            ok(wakes(shms[i]),
               "a sleeper is woken where rank %d has no membarrier", 1 - i);
        }
    }
    for (int i = 0; i < 2; i++)
        fixture_close(shms[i], 2);
}

int main(void)
{
    test_with();
    test_without();
    return tap_done();
}
