/* SPDX-License-Identifier: BSD-3-Clause */
/* DSCOMM_PROFILE with several worlds in a process, and in a forked child. */
#include "config.h"

#include "tests/tap.h"

#include <dscomm/dscomm.h>
#include <dscomm/profiler.h>
#include <sys/wait.h>
#include <unistd.h>

static char path[64];

static dscomm_group_t *init(void)
{
    dscomm_init_attr_t attr = DSCOMM_INIT_ATTR_INIT;
    dscomm_group_t *world;

    attr.has_rank = 1;
    attr.world_size = 1;
    if (dscomm_init(&attr, &world))
        bail("%s", dscomm_last_error());
    return world;
}

static void barriers(dscomm_group_t *world, int count)
{
    for (int i = 0; i < count; i++)
        dscomm_barrier(world, NULL);
}

/* The barriers in the profile that was written last, which is removed; -1: none
 * was written. */
static int written(void)
{
    FILE *file = fopen(path, "r");
    char line[1024];
    int count = -1;

    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "sizes,barrier,world,1,,-1,0,0,1,%d,", &count) == 1)
            break;
    if (file)
        fclose(file);
    unlink(path);
    return count;
}

/* Returns the child's exit status: the barriers in its profile. */
static int in_child(dscomm_group_t *inherited)
{
    dscomm_group_t *world;
    int status;
    pid_t pid = fork();

    if (pid)
        return waitpid(pid, &status, 0) == pid && WIFEXITED(status)
                   ? WEXITSTATUS(status)
                   : -1;
    dscomm_finalize(inherited);
    world = init();
    barriers(world, 3);
    dscomm_finalize(world);
    _exit(written());
}

int main(void)
{
    dscomm_profiler_t *profiler = NULL;
    dscomm_group_t *world, *second;
    char setting[80];

    snprintf(path, sizeof path, "/tmp/dscomm-test.%d.csv", (int)getpid());
    snprintf(setting, sizeof setting, "csv:%s", path);
    setenv("DSCOMM_PROFILE", setting, 1);
    world = init();
    second = init();
    is_int(dscomm_profiler_attach(NULL, &profiler), DSCOMM_ERR_STATE,
           "a program's own profiler is refused");
    barriers(world, 2);
    barriers(second, 5);
    dscomm_finalize(second);
    is_int(written(), -1, "a second world writes nothing");
    dscomm_finalize(world);
    is_int(written(), 7, "the first one has the operations of both");
    world = init();
    barriers(world, 4);
    is_int(in_child(world), 3, "a child that leaves this world has its own");
    barriers(world, 1);
    dscomm_finalize(world);
    is_int(written(), 5, "which is not the parent's");
    return tap_done();
}
