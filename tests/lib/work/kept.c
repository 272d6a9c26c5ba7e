/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of the library to which a transport still writes after a call has
 * ended: it is left to the transport. */
#include "config.h"

#include "tests/lib/work/ranks.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define VISIBLE __attribute__((visibility("default")))

VISIBLE extern void *thread_kept; /* backend thread's */
VISIBLE extern int thread_holds;
void *thread_kept;
int thread_holds;

static int is_on_stack(const void *memory)
{
    const char here = 0;
    const uintptr_t a = (uintptr_t)&here, b = (uintptr_t)memory;

    return (a > b ? a - b : b - a) < (64 << 10);
}

/* Rank 0 calls too late; the word is still there for it. */
static void barrier(rank_t *self)
{
    void *others[64];

    if (self->rank == 0)
        return;
    thread_holds = 1;
    CHECK(self, dscomm_monitored_barrier(self->world, 50) < 0);
    thread_holds = 0;
    if (!thread_kept || is_on_stack(thread_kept)) {
        CHECK(self, !"memory that outlives the call");
        return;
    }
    memset(thread_kept, 0xff, sizeof(uint64_t));
    for (int i = 0; i < 64; i++) {
        others[i] = malloc(sizeof(uint64_t));
        CHECK(self, others[i] != thread_kept);
    }
    for (int i = 0; i < 64; i++)
        free(others[i]);
}

int main(void)
{
    ranks_use_modules();
    ranks_run(2, 10000, barrier, "a barrier whose call comes too late");
    thread_kept = NULL; /* the library itself must know its address at exit */
    return tap_done();
}
