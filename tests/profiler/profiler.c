/* SPDX-License-Identifier: BSD-3-Clause */
/* A profiler in a world of one rank: what counts, and what does not. */
#include "config.h"

#include "tests/tap.h"

#include <dscomm/dscomm.h>
#include <dscomm/profiler.h>
#include <pthread.h>

static dscomm_group_t *world;

static dscomm_profiler_t *attach(const dscomm_profiler_attr_t *attr)
{
    dscomm_profiler_t *profiler = NULL;

    if (dscomm_profiler_attach(attr, &profiler))
        bail("%s", dscomm_last_error());
    return profiler;
}

static dscomm_profile_t *snapshot(const dscomm_profiler_t *profiler)
{
    dscomm_profile_t *profile = NULL;

    if (dscomm_profiler_snapshot(profiler, &profile))
        bail("%s", dscomm_last_error());
    return profile;
}

/* Finds the row of an operation; bytes: of that size; site NULL: any. All
 * members are 0 if there is none. */
static dscomm_profile_row_t row_of(const dscomm_profile_t *profile,
                                   dscomm_profile_by_t by, const char *op,
                                   uint64_t bytes, const char *site)
{
    dscomm_profile_row_t row = {.size = sizeof row};

    for (size_t i = 0; !dscomm_profile_row(profile, by, i, &row); i++)
        if (!strcmp(row.op, op) && row.bytes == bytes &&
            (!site || !strcmp(row.site, site)))
            return row;
    memset(&row, 0, sizeof row);
    return row;
}

static uint64_t count_of(const dscomm_profiler_t *profiler, const char *op,
                         uint64_t bytes)
{
    dscomm_profile_t *profile = snapshot(profiler);
    const dscomm_profile_row_t row =
        row_of(profile, DSCOMM_PROFILE_BY_SIZE, op, bytes, NULL);

    dscomm_profile_free(profile);
    return row.count;
}

static dscomm_status_t reduce(dscomm_group_t *group, size_t count)
{
    static float in[4096], out[4096];

    return dscomm_all_reduce(group, in, out, count, DSCOMM_FLOAT32, DSCOMM_SUM,
                             NULL);
}

static void counts(void)
{
    dscomm_profiler_attr_t attr = DSCOMM_PROFILER_ATTR_INIT;
    dscomm_profile_row_t row = {.size = sizeof row};
    dscomm_profiler_t *profiler, *second = NULL;
    dscomm_profile_t *profile;

    attr.enabled = 1;
    profiler = attach(&attr);
    is_int(dscomm_profiler_attach(NULL, &second), DSCOMM_ERR_STATE,
           "only one profiler is attached at a time");
    for (int i = 0; i < 5; i++)
        reduce(world, 2);
    for (int i = 0; i < 3; i++)
        reduce(world, 300);
    dscomm_barrier(world, NULL);
    profile = snapshot(profiler);
    row = row_of(profile, DSCOMM_PROFILE_BY_SIZE, "all_reduce", 8, NULL);
    is_int((long long)row.count, 5, "calls of 8 bytes");
    is_int((long long)row.total_bytes, 40, "their bytes");
    is_int(row.group_size, 1, "the group's size");
    is_str(row.group, dscomm_group_name(world), "and its name");
    ok(row.min_ns <= row.p50_ns && row.p50_ns <= row.p99_ns &&
           row.p99_ns <= row.max_ns && row.mean_ns >= row.min_ns &&
           row.mean_ns <= row.max_ns && row.total_ns >= 5 * row.min_ns,
       "times are in order");
    ok(row.waited_ns == row.total_ns, "a blocking call waits all the time");
    ok(row.busbw == 0 && row.algbw > 0, "one rank needs no bus");
    row = row_of(profile, DSCOMM_PROFILE_BY_SIZE, "all_reduce", 1200, NULL);
    is_int((long long)row.count, 3, "calls of 1200 bytes");
    row = row_of(profile, DSCOMM_PROFILE_BY_CLASS, "all_reduce", 1024, NULL);
    ok(row.count == 3 && row.bytes_most == 2047 && row.total_bytes == 3600,
       "the class of 1200 bytes is 1024 to 2047");
    row = row_of(profile, DSCOMM_PROFILE_BY_SIZE, "barrier", 0, NULL);
    ok(row.count == 1 && row.algbw == 0, "a barrier has no bandwidth");
    reduce(world, 2);
    row = row_of(profile, DSCOMM_PROFILE_BY_SIZE, "all_reduce", 8, NULL);
    is_int((long long)row.count, 5, "a profile does not change");
    dscomm_profile_free(profile);
    dscomm_profiler_detach(profiler);
    reduce(world, 2);
    is_int((long long)count_of(profiler, "all_reduce", 8), 6,
           "nothing counts after the profiler was detached");
    dscomm_profiler_free(profiler);
}

static void choices(void)
{
    dscomm_profiler_attr_t attr = DSCOMM_PROFILER_ATTR_INIT;
    dscomm_profiler_t *profiler = NULL;

    attr.enabled = 1;
    attr.prof_ops = "barrier, send";
    profiler = attach(&attr);
    reduce(world, 2);
    dscomm_barrier(world, NULL);
    is_int((long long)count_of(profiler, "all_reduce", 8), 0,
           "prof_ops leaves out other operations");
    is_int((long long)count_of(profiler, "barrier", 0), 1,
           "and has those it names");
    dscomm_profiler_free(profiler);
    attr.prof_all = 1;
    profiler = attach(&attr);
    reduce(world, 2);
    is_int((long long)count_of(profiler, "all_reduce", 8), 1,
           "prof_all has all");
    dscomm_profiler_free(profiler);
    attr.prof_all = 0;
    attr.prof_ops = "all_reduce,allgather";
    is_int(dscomm_profiler_attach(&attr, &profiler), DSCOMM_ERR_INVALID,
           "a name that is none");
    ok(strstr(dscomm_last_error(), "'allgather'") != NULL, "is named");
    attr.prof_ops = NULL;
    attr.level = 3;
    is_int(dscomm_profiler_attach(&attr, &profiler), DSCOMM_ERR_INVALID,
           "a level that is none");
    attr.size = 3;
    is_int(dscomm_profiler_attach(&attr, &profiler), DSCOMM_ERR_INVALID,
           "a size that is none");
    is_int(dscomm_profiler_attr_init(&attr, sizeof attr), DSCOMM_OK,
           "defaults");
    ok(attr.size == sizeof attr && !attr.prof_ops && !attr.enabled, "are zero");
}

static void switches(void)
{
    dscomm_profiler_t *profiler = attach(NULL);
    dscomm_group_t *group;

    dscomm_group_split(world, 0, 0, NULL, &group);
    reduce(world, 2);
    is_int((long long)count_of(profiler, "all_reduce", 8), 0,
           "not enabled: nothing counts");
    dscomm_profiler_start(profiler, group);
    reduce(world, 2);
    reduce(group, 4);
    is_int((long long)count_of(profiler, "all_reduce", 8), 0,
           "one group started: no other counts");
    is_int((long long)count_of(profiler, "all_reduce", 16), 1, "and it does");
    dscomm_profiler_start(profiler, NULL);
    dscomm_profiler_stop(profiler, group);
    reduce(world, 2);
    reduce(group, 4);
    is_int((long long)count_of(profiler, "all_reduce", 8), 1,
           "one group stopped: others count");
    is_int((long long)count_of(profiler, "all_reduce", 16), 1, "and it not");
    dscomm_profiler_start(profiler, NULL);
    reduce(group, 4);
    is_int((long long)count_of(profiler, "all_reduce", 16), 2,
           "all started: also this one");
    dscomm_profiler_reset(profiler, group);
    is_int((long long)count_of(profiler, "all_reduce", 16), 0,
           "a group's counts are reset");
    is_int((long long)count_of(profiler, "all_reduce", 8), 1,
           "others' are not");
    dscomm_profiler_reset(profiler, NULL);
    is_int((long long)count_of(profiler, "all_reduce", 8), 0, "all are reset");
    dscomm_profiler_stop(profiler, NULL);
    reduce(world, 2);
    is_int((long long)count_of(profiler, "all_reduce", 8), 0, "all stopped");
    dscomm_group_free(group);
    is_int(dscomm_profiler_start(profiler, group), DSCOMM_ERR_INVALID,
           "a group that was freed cannot be started");
    ok(strstr(dscomm_last_error(), "freed") != NULL,
       "and the sentence says why");
    dscomm_profiler_free(profiler);
    is_int(dscomm_profiler_start(NULL, NULL), DSCOMM_ERR_INVALID,
           "no profiler");
}

/* Messages, works, an operation in flight during a reset, a failure. */
static void messages(void)
{
    dscomm_profiler_attr_t attr = DSCOMM_PROFILER_ATTR_INIT;
    dscomm_profile_row_t row = {.size = sizeof row};
    dscomm_profiler_t *profiler;
    dscomm_profile_t *profile;
    dscomm_work_t *work;
    int32_t x = 1, y[3];

    attr.enabled = 1;
    profiler = attach(&attr);
    dscomm_irecv(world, y, 3, DSCOMM_INT32, DSCOMM_ANY_SOURCE, 1, &work);
    dscomm_work_wait(work, 1);
    dscomm_send(world, &x, 1, DSCOMM_INT32, 0, 1);
    dscomm_work_wait(work, -1);
    dscomm_work_free(work);
    dscomm_recv(world, y, 3, DSCOMM_INT32, 0, 2, NULL, NULL);
    profile = snapshot(profiler);
    row = row_of(profile, DSCOMM_PROFILE_BY_SIZE, "recv", 4, NULL);
    ok(row.count == 1 && row.total_bytes == 4,
       "a receive counts the bytes that came, not its buffer's");
    ok(row.waited_ns >= 1000000 && row.total_ns >= 1000000,
       "with its time, and that of its waits");
    row = row_of(profile, DSCOMM_PROFILE_BY_SIZE, "recv", 12, NULL);
    ok(row.failed == 1 && row.count == 0 && row.total_ns == 0,
       "a failure counts apart, without a time");
    is_int(dscomm_profile_row(profile, DSCOMM_PROFILE_BY_PEER, 0, &row),
           DSCOMM_OK, "messages by peer");
    ok(!strcmp(row.op, "send") && row.peer == 0 && row.count == 1 &&
           row.total_bytes == 4,
       "the one sent");
    is_int(dscomm_profile_row(profile, DSCOMM_PROFILE_BY_PEER, 1, &row),
           DSCOMM_OK, "and");
    ok(!strcmp(row.op, "recv") && row.peer == 0 && row.count == 1 &&
           row.failed == 1,
       "those received, by their sender");
    is_int(dscomm_profile_row(profile, DSCOMM_PROFILE_BY_PEER, 2, &row),
           DSCOMM_ERR_NOT_FOUND, "no more");
    dscomm_profile_free(profile);
    dscomm_irecv(world, y, 1, DSCOMM_INT32, 0, 3, &work);
    dscomm_profiler_reset(profiler, NULL);
    dscomm_send(world, &x, 1, DSCOMM_INT32, 0, 3);
    dscomm_work_wait(work, -1);
    dscomm_work_free(work);
    is_int((long long)count_of(profiler, "recv", 4), 0,
           "what began before a reset does not count");
    dscomm_profiler_free(profiler);
}

/* An operation that began in a freed profiler, of which the group was reset,
 * does not count in the next one. */
static void freed(void)
{
    dscomm_profiler_attr_t attr = DSCOMM_PROFILER_ATTR_INIT;
    dscomm_profile_row_t row = {.size = sizeof row};
    dscomm_profiler_t *profiler;
    dscomm_profile_t *profile;
    dscomm_work_t *work;
    int32_t x = 1, y;

    attr.enabled = 1;
    for (int resets = 0; resets < 3; resets++) {
        profiler = attach(&attr);
        dscomm_barrier(world, NULL);
        for (int i = 0; i < resets; i++)
            dscomm_profiler_reset(profiler, world);
        dscomm_irecv(world, &y, 1, DSCOMM_INT32, 0, 4, &work);
        dscomm_profiler_range_begin("range");
        dscomm_profiler_free(profiler);
        profiler = attach(&attr);
        dscomm_send(world, &x, 1, DSCOMM_INT32, 0, 4);
        dscomm_work_wait(work, -1);
        dscomm_work_free(work);
        dscomm_profiler_range_end();
        profile = snapshot(profiler);
        ok(!row_of(profile, DSCOMM_PROFILE_BY_SIZE, "recv", 4, NULL).count,
           "no receive of a freed profiler with %d resets", resets);
        is_int(dscomm_profile_row(profile, DSCOMM_PROFILE_BY_RANGE, 0, &row),
               DSCOMM_ERR_NOT_FOUND, "and no range");
        dscomm_profile_free(profile);
        dscomm_profiler_free(profiler);
    }
}

/* Events of a detached profiler are not the attached one's. */
static void detached(void)
{
    dscomm_profiler_attr_t attr = DSCOMM_PROFILER_ATTR_INIT;
    dscomm_profile_info_t info = {.size = sizeof info};
    dscomm_profiler_t *first, *second;
    dscomm_profile_t *profile;
    dscomm_work_t *work;
    int32_t x = 1, y;

    attr.enabled = attr.trace = 1;
    first = attach(&attr);
    dscomm_irecv(world, &y, 1, DSCOMM_INT32, 0, 4, &work);
    dscomm_profiler_detach(first);
    second = attach(&attr);
    dscomm_send(world, &x, 1, DSCOMM_INT32, 0, 4);
    dscomm_work_wait(work, -1);
    dscomm_work_free(work);
    is_int((long long)count_of(first, "recv", 4), 1,
           "a detached profiler counts what is in flight");
    dscomm_profiler_reset(first, NULL);
    profile = snapshot(second);
    dscomm_profile_info(profile, &info);
    is_int((long long)info.events, 1, "the next one has its own events alone");
    dscomm_profile_free(profile);
    dscomm_profiler_free(first);
    dscomm_profiler_free(second);
}

/* A long name is cut off between two characters. */
static void names(void)
{
    dscomm_profiler_attr_t attr = DSCOMM_PROFILER_ATTR_INIT;
    dscomm_group_attr_t named = DSCOMM_GROUP_ATTR_INIT;
    dscomm_profile_row_t row = {.size = sizeof row};
    char name[70] = "", want[70] = "";
    dscomm_profiler_t *profiler;
    dscomm_profile_t *profile;
    dscomm_group_t *group;

    memset(name, 'a', 62);
    memset(want, 'a', 62);
    strcpy(name + 62, "\xc3\xa9x");
    named.name = name;
    attr.enabled = 1;
    profiler = attach(&attr);
    if (dscomm_group_split(world, 0, 0, &named, &group))
        bail("%s", dscomm_last_error());
    dscomm_barrier(group, NULL);
    profile = snapshot(profiler);
    row = row_of(profile, DSCOMM_PROFILE_BY_SIZE, "barrier", 0, NULL);
    is_str(row.group, want, "a name is cut off at a character");
    dscomm_profile_free(profile);
    dscomm_profiler_free(profiler);
    dscomm_group_free(group);
}

/* The first 1024 groups count, also if they were freed; later ones do not,
 * until another profiler is attached. */
static void groups(void)
{
    dscomm_profiler_attr_t attr = DSCOMM_PROFILER_ATTR_INIT;
    dscomm_profile_info_t info = {.size = sizeof info};
    dscomm_profiler_t *profiler;
    dscomm_profile_t *profile;
    dscomm_group_attr_t named = DSCOMM_GROUP_ATTR_INIT;
    dscomm_group_t *group;

    named.name = "some"; /* all in one row */
    attr.enabled = 1;
    profiler = attach(&attr);
    for (int i = 0; i < 1030; i++) {
        if (dscomm_group_split(world, 0, 0, &named, &group))
            bail("%s", dscomm_last_error());
        dscomm_barrier(group, NULL);
        dscomm_group_free(group);
    }
    dscomm_barrier(world, NULL);
    profile = snapshot(profiler);
    dscomm_profile_info(profile, &info);
    is_int(
        (long long)row_of(profile, DSCOMM_PROFILE_BY_CLASS, "barrier", 0, NULL)
            .count,
        1024, "operations of 1024 groups");
    is_int((long long)info.dropped, 7, "others are dropped");
    is_int(dscomm_profiler_start(profiler, world), DSCOMM_ERR_STATE,
           "and cannot be started");
    dscomm_profile_free(profile);
    dscomm_profiler_free(profiler);
    profiler = attach(&attr);
    dscomm_barrier(world, NULL);
    is_int((long long)count_of(profiler, "barrier", 0), 1,
           "the next profiler has room");
    dscomm_profiler_free(profiler);
}

static void sites(void)
{
    dscomm_profiler_attr_t attr = DSCOMM_PROFILER_ATTR_INIT;
    dscomm_profile_row_t row;
    dscomm_profiler_t *profiler;
    dscomm_profile_t *profile;
    char here[512];
    int line;

    attr.enabled = attr.debug = 1;
    profiler = attach(&attr);
    for (int i = 0; i < 2; i++) {
        line = __LINE__ + 1;
        is_int(DSCOMM_PROFILER_SITE(reduce(world, 2)), DSCOMM_OK, "a site");
    }
    dscomm_profiler_tag("warm-up");
    reduce(world, 2);
    dscomm_profiler_tag(NULL);
    reduce(world, 2);
    profile = snapshot(profiler);
    snprintf(here, sizeof here, "%s %s:%d", __func__, __FILE__, line);
    row = row_of(profile, DSCOMM_PROFILE_BY_SIZE, "all_reduce", 8, here);
    is_int((long long)row.count, 2, "calls at %s", here);
    row = row_of(profile, DSCOMM_PROFILE_BY_SIZE, "all_reduce", 8, "warm-up");
    is_int((long long)row.count, 1, "a call at a tag");
    row = row_of(profile, DSCOMM_PROFILE_BY_SIZE, "all_reduce", 8, "");
    is_int((long long)row.count, 1, "a call at neither");
    dscomm_profile_free(profile);
    dscomm_profiler_free(profiler);
}

static void ranges(void)
{
    dscomm_profile_info_t info = {.size = sizeof info};
    dscomm_profiler_attr_t attr = DSCOMM_PROFILER_ATTR_INIT;
    dscomm_profile_row_t outer, inner;
    dscomm_profiler_t *profiler;
    dscomm_profile_t *profile;

    dscomm_profiler_range_end();
    dscomm_profiler_range_begin("before");
    attr.enabled = 1;
    profiler = attach(&attr);
    dscomm_profiler_range_end();
    for (int i = 0; i < 3; i++) {
        dscomm_profiler_range_begin("step");
        dscomm_profiler_range_begin("forward");
        dscomm_profiler_range_end();
        dscomm_profiler_range_end();
    }
    dscomm_profiler_range_begin("");
    dscomm_profiler_range_end();
    for (int i = 0; i < 20; i++)
        dscomm_profiler_range_begin("deep");
    for (int i = 0; i < 20; i++)
        dscomm_profiler_range_end();
    profile = snapshot(profiler);
    outer = row_of(profile, DSCOMM_PROFILE_BY_RANGE, "step", 0, NULL);
    inner = row_of(profile, DSCOMM_PROFILE_BY_RANGE, "forward", 0, NULL);
    ok(outer.count == 3 && inner.count == 3, "ranges count");
    ok(outer.total_ns >= inner.total_ns, "an outer one takes longer");
    ok(outer.algbw == 0 && outer.group_size == 0, "they move nothing");
    outer = row_of(profile, DSCOMM_PROFILE_BY_RANGE, "deep", 0, NULL);
    is_int((long long)outer.count, 16, "16 are timed at a time");
    outer = row_of(profile, DSCOMM_PROFILE_BY_RANGE, "before", 0, NULL);
    is_int((long long)outer.count, 0, "none that began without a profiler");
    dscomm_profile_info(profile, &info);
    is_int((long long)info.dropped, 1 + 4,
           "deeper ones and one without a "
           "name are dropped");
    dscomm_profile_free(profile);
    dscomm_profiler_free(profiler);
}

/* Calls that another library reports, by the same switches. */
static void codecs(void)
{
    dscomm_profiler_attr_t attr = DSCOMM_PROFILER_ATTR_INIT;
    dscomm_note_t note = {.size = sizeof note,
                          .group = world,
                          .coll = DSCOMM_COLL_ALL_REDUCE,
                          .codec = "onebit",
                          .nanoseconds = 1000,
                          .bytes = 400,
                          .sent_bytes = 30,
                          .plain_bytes = 500};
    dscomm_profile_row_t row = {.size = sizeof row};
    dscomm_profiler_t *profiler;
    dscomm_profile_t *profile;

    attr.prof_ops = "all_reduce";
    profiler = attach(&attr);
    dscomm_hook_note(&note);
    dscomm_profiler_start(profiler, world);
    dscomm_hook_note(&note);
    dscomm_hook_note(&note);
    note.status = DSCOMM_ERR_TIMEOUT;
    dscomm_hook_note(&note);
    note.status = DSCOMM_OK;
    note.coll = DSCOMM_COLL_SEND;
    dscomm_hook_note(&note);
    profile = snapshot(profiler);
    is_int(dscomm_profile_row(profile, DSCOMM_PROFILE_BY_CODEC, 0, &row),
           DSCOMM_OK, "compressed operations have rows");
    ok(row.count == 2 && row.failed == 1 && row.total_ns == 2000 &&
           row.sent_bytes == 60 && row.plain_bytes == 1000 &&
           row.saved_bytes == 940 && !strcmp(row.codec, "onebit") &&
           !strcmp(row.group, dscomm_group_name(world)),
       "those that count");
    is_int(dscomm_profile_row(profile, DSCOMM_PROFILE_BY_CODEC, 1, &row),
           DSCOMM_ERR_NOT_FOUND, "and no others");
    dscomm_profile_free(profile);
    dscomm_profiler_free(profiler);
}

/* More sizes than there are rows: all operations are counted, by class. */
static void bounds(void)
{
    dscomm_profiler_attr_t attr = DSCOMM_PROFILER_ATTR_INIT;
    dscomm_profile_info_t info = {.size = sizeof info};
    dscomm_profile_row_t row = {.size = sizeof row};
    uint64_t count = 0, bytes = 0, want = 0, sizes = 0;
    dscomm_profiler_t *profiler;
    dscomm_profile_t *profile;

    attr.enabled = 1;
    profiler = attach(&attr);
    for (size_t i = 0; i < 2000; i++) {
        reduce(world, i);
        want += 4 * i;
    }
    profile = snapshot(profiler);
    for (size_t i = 0;
         !dscomm_profile_row(profile, DSCOMM_PROFILE_BY_SIZE, i, &row); i++) {
        count += row.count;
        bytes += row.total_bytes;
        sizes++;
    }
    ok(sizes < 800, "sizes beyond the bound share rows");
    is_int((long long)count, 2000, "all operations are there");
    is_int((long long)bytes, (long long)want, "and all bytes");
    count = 0;
    for (size_t i = 0;
         !dscomm_profile_row(profile, DSCOMM_PROFILE_BY_CLASS, i, &row); i++)
        count += row.count;
    is_int((long long)count, 2000, "also by class");
    dscomm_profile_info(profile, &info);
    ok(info.dropped == 0 && info.ranks == 1 && !*info.missing,
       "nothing was dropped");
    dscomm_profile_free(profile);
    dscomm_profiler_free(profiler);
}

/* More names than a process may have; the last test, because they stay. */
static void many_names(void)
{
    dscomm_profiler_attr_t attr = DSCOMM_PROFILER_ATTR_INIT;
    dscomm_profile_info_t info = {.size = sizeof info};
    dscomm_profile_row_t row = {.size = sizeof row};
    dscomm_profiler_t *profiler;
    dscomm_profile_t *profile;
    uint64_t count = 0;

    attr.enabled = attr.debug = 1;
    for (int i = 0; i < 2; i++) {
        profiler = attach(&attr);
        for (int j = 0; j < 5000; j++) {
            char name[32];

            snprintf(name, sizeof name, "step %d of %d", j, i);
            dscomm_profiler_range_begin(name);
            dscomm_profiler_range_end();
        }
        profile = snapshot(profiler);
        count = 0;
        for (size_t r = 0;
             !dscomm_profile_row(profile, DSCOMM_PROFILE_BY_RANGE, r, &row);
             r++)
            count += row.count;
        dscomm_profile_info(profile, &info);
        ok(count + info.dropped == 5000,
           "each range is there or dropped: %llu, %llu",
           (unsigned long long)count, (unsigned long long)info.dropped);
        dscomm_profile_free(profile);
        if (i == 0)
            dscomm_profiler_free(profiler);
    }
    dscomm_profiler_tag("a new tag");
    reduce(world, 2);
    dscomm_profiler_tag(NULL);
    profile = snapshot(profiler);
    row = row_of(profile, DSCOMM_PROFILE_BY_SIZE, "all_reduce", 8, "(others)");
    is_int((long long)row.count, 1, "tags beyond the bound share a name");
    dscomm_profile_free(profile);
    dscomm_profiler_free(profiler);
}

int main(void)
{
    if (dscomm_init(NULL, &world))
        bail("%s", dscomm_last_error());
    counts();
    choices();
    switches();
    messages();
    freed();
    detached();
    groups();
    names();
    sites();
    ranges();
    codecs();
    bounds();
    many_names();
    dscomm_profiler_free(NULL);
    dscomm_profile_free(NULL);
    dscomm_finalize(world);
    return tap_done();
}
