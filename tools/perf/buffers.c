/* SPDX-License-Identifier: BSD-3-Clause */
/* The two buffers of a rank, see ranks.h. */
#include "config.h"

#include "tools/perf/ranks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ALIGNMENT 4096
/* Bytes that stay free for other processes, and for the library. */
#define MARGIN ((size_t)64 << 20)

/* The number behind key in a file; SIZE_MAX: none. */
static size_t read_number(const char *path, const char *key)
{
    char *text = NULL;
    size_t number = SIZE_MAX;
    const char *at = NULL;

    if (g_file_get_contents(path, &text, NULL, NULL))
        at = strstr(text, key);
    if (at)
        at += strlen(key) + strspn(at + strlen(key), " ");
    if (at && g_ascii_isdigit(*at))
        number = strtoull(at, NULL, 10);
    g_free(text);
    return number;
}

/* Bytes that a container's limit leaves, or SIZE_MAX: no limit. */
static size_t read_container(void)
{
    size_t limit = read_number("/sys/fs/cgroup/memory.max", "");
    size_t used = read_number("/sys/fs/cgroup/memory.current", "");

    if (limit == SIZE_MAX || used == SIZE_MAX)
        return SIZE_MAX;
    return limit > used ? limit - used : 0;
}

/* Bytes that processes of this host can still allocate, as far as is known. */
static size_t memory_available(void)
{
    size_t kib = read_number("/proc/meminfo", "MemAvailable:");
    size_t bytes = MIN(kib, SIZE_MAX >> 10) << 10;
    size_t available = MIN(bytes, read_container());

    return available > MARGIN ? available - MARGIN : 0;
}

static gboolean is_enough(const perf_run_t *run, size_t bytes,
                          size_t *ret_available)
{
    size_t locals = (size_t)run->everyone[run->rank].locals;

    *ret_available = memory_available();
    return bytes <= *ret_available / 2 / locals;
}

static gboolean allocate(perf_run_t *run, size_t bytes, void **ret_buffer)
{
    void *buffer = NULL;

    if (run->options->registered) {
        if (dscomm_mem_alloc(run->group, bytes, &buffer) != DSCOMM_OK)
            return FALSE;
    } else if (posix_memalign(&buffer, ALIGNMENT, bytes) != 0) {
        return FALSE;
    }
    *ret_buffer = buffer;
    return TRUE;
}

/* The bytes are never zero: lines of zeros may be stored faster than others. */
static void touch(perf_run_t *run, size_t bytes)
{
    memset(run->send, 0x3f, bytes);
    memset(run->recv, 0x3f, bytes);
}

static int buffers_fail(const perf_run_t *run, size_t bytes, size_t available)
{
    int locals = run->everyone[run->rank].locals;
    char *each = g_format_size_full(2 * bytes, G_FORMAT_SIZE_IEC_UNITS);
    char *left = g_format_size_full(available, G_FORMAT_SIZE_IEC_UNITS);

    tool_fail(0, "perf",
              "out of memory: buffers are %s a rank, for %d rank%s on %s, "
              "which has %s left; choose a smaller size with -e",
              each, locals, locals == 1 ? "" : "s",
              run->everyone[run->rank].host, left);
    g_free(each);
    g_free(left);
    return TOOL_FAILED;
}

int perf_buffers_new(perf_run_t *run)
{
    /* An operation's arguments must not be NULL. */
    size_t bytes = MAX(run->options->max, ALIGNMENT), available;
    gboolean enough = is_enough(run, bytes, &available);
    gboolean ok = enough && allocate(run, bytes, &run->send) &&
                  allocate(run, bytes, &run->recv);
    int first;

    if (perf_agree(run, ok, &first) != DSCOMM_OK)
        return perf_fail("start");
    if (first == run->ranks)
        touch(run, bytes);
    else if (first == run->rank && enough && run->options->registered)
        return perf_fail("buffers");
    else if (first == run->rank)
        return buffers_fail(run, bytes, available);
    return first == run->ranks ? TOOL_OK : TOOL_FAILED;
}

void perf_buffers_free(perf_run_t *run)
{
    if (run->options->registered) {
        dscomm_mem_free(run->group, run->send);
        dscomm_mem_free(run->group, run->recv);
    } else {
        free(run->send);
        free(run->recv);
    }
    run->send = run->recv = NULL;
}
