/* SPDX-License-Identifier: BSD-3-Clause */
/* Processor features, compared with the kernel's list in /proc/cpuinfo.
 * DSCOMM_CPU is read once, so each case runs in a child. */
#include "config.h"

#include "lib/base/cpu.h"

#include <dscomm/info.h>
#include <glib.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/base/child.h"

/* In the order of dscomm_cpu_features(); the kernel calls neon asimd. */
static const struct {
    uint64_t bit;
    const char *name, *flag;
    int in_avx2; /* left by DSCOMM_CPU=avx2 */
} features[] = {
    {1, "sse2", "sse2", 1},
    {2, "avx2", "avx2", 1},
    {4, "fma", "fma", 1},
    {8, "f16c", "f16c", 1},
    {16, "avx512f", "avx512f", 0},
    {32, "avx512bw", "avx512bw", 0},
    {64, "avx512dq", "avx512dq", 0},
    {128, "avx512vl", "avx512vl", 0},
    {256, "gfni", "gfni", 0},
    {512, "neon", "asimd", 0},
};

typedef struct {
    uint64_t bits;
    char names[256];
} answer_t;

static int answer(const void *setting, int out)
{
    answer_t answer = {0, ""};

    if (setting)
        setenv("DSCOMM_CPU", setting, 1);
    g_strlcpy(answer.names, dscomm_cpu_features(), sizeof answer.names);
    answer.bits = dscomm_priv_cpu_features();
    return write(out, &answer, sizeof answer) != sizeof answer;
}

static answer_t query(const char *setting)
{
    answer_t got = {0, ""};
    int status;

    if (child_read(answer, setting, &got, sizeof got, &status) != sizeof got)
        bail("child said nothing");
    return got;
}

/* The words of the first "flags" or "Features" line. */
static gchar **kernel_flags(void)
{
    char *text, *line, **words = NULL;

    if (!g_file_get_contents("/proc/cpuinfo", &text, NULL, NULL))
        return NULL;
    line = strstr(text, "\nflags");
    if (!line)
        line = strstr(text, "\nFeatures");
    if (line && (line = strchr(line, ':'))) {
        line[strcspn(line, "\n")] = '\0';
        words = g_strsplit(line + 1, " ", -1);
    }
    g_free(text);
    return words;
}

/* Returns the features that the kernel lists and mask permits, as bits and as
 * text. */
static answer_t expect(gchar **flags, int avx2_only)
{
    answer_t answer = {0, ""};

    for (size_t i = 0; i < G_N_ELEMENTS(features); i++) {
        if ((avx2_only && !features[i].in_avx2) ||
            !g_strv_contains((const gchar *const *)flags, features[i].flag))
            continue;
        answer.bits |= features[i].bit;
        if (*answer.names)
            strcat(answer.names, " ");
        strcat(answer.names, features[i].name);
    }
    return answer;
}

static void check(const char *setting, answer_t want)
{
    answer_t got = query(setting);
    const char *name = setting ? setting : "unset";

    is_int((long long)got.bits, (long long)want.bits, "DSCOMM_CPU %s: bits",
           name);
    is_str(got.names, want.names, "DSCOMM_CPU %s: names", name);
}

/* Returns 1 under valgrind, whose processor has fewer features than the kernel
 * lists. */
static int under_valgrind(void)
{
    const char *preload = getenv("LD_PRELOAD");

    return preload && strstr(preload, "vgpreload");
}

int main(void)
{
    gchar **flags = kernel_flags();
    const answer_t none = {0, ""};

    unsetenv("DSCOMM_CPU");
    check("c", none);
    check("C", none);
    if (!flags || under_valgrind()) {
        skip("/proc/cpuinfo does not say what this processor has");
        g_strfreev(flags);
        return tap_done();
    }
    check(NULL, expect(flags, 0));
    check("", expect(flags, 0));
    check("auto", expect(flags, 0));
    check("nonsense", expect(flags, 0));
    check("avx2", expect(flags, 1));
    if (!g_strv_contains((const gchar *const *)flags, "asimd"))
        check("avx512", expect(flags, 0));
    ok(dscomm_cpu_features() == dscomm_cpu_features(), "the text is static");
    g_strfreev(flags);
    return tap_done();
}
