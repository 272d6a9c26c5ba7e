/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory that is free, see memory.h. */
#include "config.h"

#include "tools/common/memory.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Bytes that are left free for other processes and for the library. */
#define MARGIN ((size_t)64 << 20)

/* Returns the number after key in a file; SIZE_MAX: there is none. */
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

/* Returns the bytes that a container's limit still allows; SIZE_MAX: no
 * limit. */
static size_t read_container(void)
{
    size_t limit = read_number("/sys/fs/cgroup/memory.max", "");
    size_t used = read_number("/sys/fs/cgroup/memory.current", "");

    if (limit == SIZE_MAX || used == SIZE_MAX)
        return SIZE_MAX;
    return limit > used ? limit - used : 0;
}

gsize tool_memory_available(void)
{
    size_t kib = read_number("/proc/meminfo", "MemAvailable:");
    size_t bytes = MIN(kib, SIZE_MAX >> 10) << 10;
    size_t available = MIN(bytes, read_container());

    return available > MARGIN ? available - MARGIN : 0;
}
