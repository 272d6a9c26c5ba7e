/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory allocations that fail: the k-th one within a phase of a job
 * (trials.h). */
#include "config.h"

#include "tests/backends/inject-memory.h"
#include "tests/backends/trials.h"

#include <stddef.h>

int inject_memory_fails(void)
{
    return trials_fail(NULL);
}

int main(int argc, char **argv)
{
    inject_memory_prepare();
    return trials_main(TRIALS_MEMORY, argc, argv);
}
