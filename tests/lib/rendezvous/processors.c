/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether a job has a processor for each rank. */
#include "config.h"

#include "lib/rendezvous/record.h"
#include "tests/tap.h"

#include <glib.h>
#include <sched.h>
#include <string.h>

#define RANKS_MAX 4

static const struct {
    const char *texts[RANKS_MAX];
    int lack;
    const char *what;
} jobs[] = {
    {{"a 0-3", "a 0-3", "a 0-3", "a 0-3"}, 0, "a processor for each rank"},
    {{"a 0-2", "a 0-2", "a 0-2", "a 0-2"}, 1, "one too few"},
    {{"a 0", "a 1", "a 2", "a 3"}, 0, "ranks that are bound, one to each"},
    {{"a 0", "a 1", "a 0", "a 1"}, 1, "two bound to each"},
    {{"a 0-1", "a 1-2", "a 2", "a 0"}, 1, "sets that overlap"},
    {{"a 0,2,4-5", "a 0,2,4-5", "a 5", "a 4"}, 0, "lists"},
    {{"a 0,2,4-5", "b 0", "c 0-1", "c 0-1"}, 0, "several machines"},
    {{"a 0-7", "b 0", "b 0", "a 0-7"}, 1, "several, one of which lacks one"},
    {{"a ", "a ", "a", "a"}, 0, "nothing is known"},
    {{"a ", "a 3", "a", "a"}, 1, "a part is known"},
    {{"a 65535", "a 0", NULL}, 0, "the last that can be told"},
    {{"a 65536", "a 65536", NULL}, 0, "beyond it"},
    {{"a 0-99999999999999999999", "a 3-1", NULL}, 0, "nonsense in numbers"},
    {{"a x", "a -5", "a 1-", NULL}, 0, "nonsense"},
    {{"a 0,,5", "a 0", NULL}, 1, "what comes before nonsense counts"},
    {{"", "", NULL}, 0, "empty texts"},
};

static void test_jobs(void)
{
    for (size_t i = 0; i < sizeof jobs / sizeof jobs[0]; i++) {
        int ranks = 0;

        while (ranks < RANKS_MAX && jobs[i].texts[ranks])
            ranks++;
        is_int(dscomm_priv_processors_lack(jobs[i].texts, ranks), jobs[i].lack,
               "%s", jobs[i].what);
    }
}

/* The test may run on a machine with only one processor, or with many. */
static void test_own(void)
{
    char text[DSCOMM_PROCESSORS_MAX], *wanted, *blank;
    cpu_set_t set;
    int some = 0;

    dscomm_priv_processors_own(text);
    blank = strchr(text, ' ');
    ok(blank && blank > text && blank[1], "this process: %s", text);
    if (sched_getaffinity(0, sizeof set, &set)) {
        skip("more processors than in a set of the C library's");
        return;
    }
    while (!CPU_ISSET((size_t)some, &set))
        some++;
    CPU_ZERO(&set);
    CPU_SET((size_t)some, &set);
    if (sched_setaffinity(0, sizeof set, &set)) {
        skip("no right to be bound");
        return;
    }
    dscomm_priv_processors_own(text);
    wanted = g_strdup_printf(" %d", some);
    is_str(strchr(text, ' '), wanted, "bound to one");
    g_free(wanted);
}

int main(void)
{
    test_jobs();
    test_own();
    return tap_done();
}
