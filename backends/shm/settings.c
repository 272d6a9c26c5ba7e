/* SPDX-License-Identifier: BSD-3-Clause */
/* The settings of shm. */
#include "config.h"

#include "backends/shm/shm.h"

#include <stdio.h>

const dscomm_setting_t shm_settings[] = {
    [SHM_SETTING_RING] =
        {"DSCOMM_SHM_RING", DSCOMM_SETTING_BYTES | DSCOMM_SETTING_TUNABLE, "0",
         0, (int64_t)1 << 30, NULL,
         "Bytes of a rank's ring in each group, at least 512 a rank; 0 = 4 "
         "MiB, less with more than 8 ranks, at least 512 KiB."},
    [SHM_SETTING_CHANNEL] = {"DSCOMM_SHM_CHANNEL",
                             DSCOMM_SETTING_BYTES | DSCOMM_SETTING_TUNABLE, "0",
                             0, (int64_t)1 << 30, NULL,
                             "Bytes of a channel from one rank to another; 0 = "
                             "4 MiB, less with more than 2 ranks, at least 64 "
                             "KiB."},
    [SHM_SETTING_HEAP] =
        {"DSCOMM_SHM_HEAP", DSCOMM_SETTING_BYTES, "16G", 0, (int64_t)1 << 40,
         NULL,
         "Address space of a rank for dscomm_mem_alloc in each "
         "group; 0 = plain memory."},
    [SHM_SETTING_SPIN] =
        {"DSCOMM_SHM_SPIN", DSCOMM_SETTING_INT, "-1", -1, 1000000000, NULL,
         "Looks at a flag before yielding; -1 = 2000, or 0 when "
         "ranks outnumber processors, but then 100 for a short message."},
    [SHM_SETTING_STORE] =
        {"DSCOMM_SHM_STORE", DSCOMM_SETTING_ENUM | DSCOMM_SETTING_TUNABLE,
         "auto", 0, 0, "auto|plain|stream",
         "How payloads are put into shared memory: plain stores "
         "leave them in the cache, streaming ones do not; auto "
         "tries both before collectives, and dscomm perf shows the choice."},
    [SHM_SETTING_SINGLE_COPY] =
        {"DSCOMM_SHM_SINGLE_COPY", DSCOMM_SETTING_ENUM | DSCOMM_SETTING_TUNABLE,
         "auto", 0, 0, "auto|yes|no",
         "Whether long payloads are read out of the sender's memory, in one "
         "copy, if the kernel allows it; auto: if that is faster in a trial, "
         "and dscomm perf shows the choice."},
    [SHM_SETTING_NATIVE] =
        {"DSCOMM_SHM_NATIVE", DSCOMM_SETTING_BOOL, "1", 0, 1, NULL,
         "Collectives by shared memory itself; 0 = by schedules over "
         "messages, as on other backends."},
    {0},
};

const char *shm_describe(void)
{
    static const char *const stores[] = {"auto", "plain", "stream"};
    static const char *const copies[] = {"auto", "yes", "no"};
    int64_t store = 0, copy = 0;
    char text[160];

    if (dscomm_setting_number(&shm_settings[SHM_SETTING_STORE], &store) ||
        dscomm_setting_number(&shm_settings[SHM_SETTING_SINGLE_COPY], &copy))
        return NULL;
    snprintf(text, sizeof text, "stores: %s, single copies: %s%s",
             stores[store],
             store && !copy ? "no, without a trial of stores" : copies[copy],
             store ? "" : "; dscomm perf shows what a group has chosen");
    return g_intern_string(text);
}
