/* SPDX-License-Identifier: BSD-3-Clause */
/* Processor features: those that the processor has, whose registers the system
 * saves on a context switch, and that DSCOMM_CPU allows. */
#include "config.h"

#include "lib/base/cpu.h"
#include "lib/base/settings.h"

#include <dscomm/info.h>
#include <glib.h>
#include <pthread.h>
#include <stdlib.h>

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#elif defined(__aarch64__)
#include <sys/auxv.h>
#ifndef HWCAP_ASIMD
#define HWCAP_ASIMD (1 << 1)
#endif
#endif

static const struct {
    uint64_t bit;
    const char *name;
} features[] = {
    {CPU_SSE2, "sse2"},         {CPU_AVX2, "avx2"},
    {CPU_FMA, "fma"},           {CPU_F16C, "f16c"},
    {CPU_AVX512F, "avx512f"},   {CPU_AVX512BW, "avx512bw"},
    {CPU_AVX512DQ, "avx512dq"}, {CPU_AVX512VL, "avx512vl"},
    {CPU_GFNI, "gfni"},         {CPU_NEON, "neon"},
};

/* The features that each word of DSCOMM_CPU allows, in the order of the
 * setting's words. */
static const uint64_t masks[] = {
    ~(uint64_t)0,
    0,
    CPU_SSE2 | CPU_AVX2 | CPU_FMA | CPU_F16C,
    CPU_SSE2 | CPU_AVX2 | CPU_FMA | CPU_F16C | CPU_AVX512F | CPU_AVX512BW |
        CPU_AVX512DQ | CPU_AVX512VL | CPU_GFNI,
    CPU_NEON,
};

#if defined(__x86_64__) || defined(__i386__)

/* The CPUID leaves in use, their registers, and the state that the system must
 * save for a feature (XCR0). */
enum { LEAF_1, LEAF_7, LEAVES };
enum { EAX, EBX, ECX, EDX, REGISTERS };
enum { SAVES_NONE = 0, SAVES_YMM = 0x06, SAVES_ZMM = 0xe6 };

static const struct {
    uint64_t bit;
    int leaf, reg, shift;
    unsigned saves;
} cpuid_bits[] = {
    {CPU_SSE2, LEAF_1, EDX, 26, SAVES_NONE},
    {CPU_FMA, LEAF_1, ECX, 12, SAVES_YMM},
    {CPU_F16C, LEAF_1, ECX, 29, SAVES_YMM},
    {CPU_AVX2, LEAF_7, EBX, 5, SAVES_YMM},
    {CPU_AVX512F, LEAF_7, EBX, 16, SAVES_ZMM},
    {CPU_AVX512DQ, LEAF_7, EBX, 17, SAVES_ZMM},
    {CPU_AVX512BW, LEAF_7, EBX, 30, SAVES_ZMM},
    {CPU_AVX512VL, LEAF_7, EBX, 31, SAVES_ZMM},
    {CPU_GFNI, LEAF_7, ECX, 8, SAVES_NONE},
};

/* XCR0, or 0 if the system does not use XSAVE (bit 27 of leaf 1's ECX). */
static unsigned saved_state(unsigned leaf1_ecx)
{
    unsigned low, high;

    if (!(leaf1_ecx & 1u << 27))
        return 0;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

static uint64_t cpu_detect(void)
{
    static const unsigned asked[LEAVES] = {1, 7};
    unsigned leaves[LEAVES][REGISTERS] = {{0}}, saved;
    uint64_t bits = 0;

    for (size_t i = 0; i < LEAVES; i++) {
        unsigned *leaf = leaves[i];

        __get_cpuid_count(asked[i], 0, &leaf[EAX], &leaf[EBX], &leaf[ECX],
                          &leaf[EDX]);
    }
    saved = saved_state(leaves[LEAF_1][ECX]);
    for (size_t i = 0; i < G_N_ELEMENTS(cpuid_bits); i++) {
        unsigned reg = leaves[cpuid_bits[i].leaf][cpuid_bits[i].reg];
        unsigned needs = cpuid_bits[i].saves;

        if (reg >> cpuid_bits[i].shift & 1 && (saved & needs) == needs)
            bits |= cpuid_bits[i].bit;
    }
    return bits;
}

#elif defined(__aarch64__)

static uint64_t cpu_detect(void)
{
    return getauxval(AT_HWCAP) & HWCAP_ASIMD ? CPU_NEON : 0;
}

#else

static uint64_t cpu_detect(void)
{
    return 0;
}

#endif

/* All features if DSCOMM_CPU is invalid: dscomm_init() refuses that. */
static uint64_t cpu_mask(void)
{
    const char *text = getenv("DSCOMM_CPU");
    int64_t word = 0;

    if (text && *text &&
        dscomm_priv_setting_try(dscomm_priv_setting(SETTING_CPU), text, &word))
        word = 0;
    g_assert((size_t)word < G_N_ELEMENTS(masks));
    return masks[word];
}

static pthread_once_t found = PTHREAD_ONCE_INIT;
static uint64_t usable;
static char names[96];

static void cpu_find(void)
{
    usable = cpu_detect() & cpu_mask();
    for (size_t i = 0; i < G_N_ELEMENTS(features); i++) {
        if (!(usable & features[i].bit))
            continue;
        if (*names)
            g_strlcat(names, " ", sizeof names);
        g_strlcat(names, features[i].name, sizeof names);
    }
}

uint64_t dscomm_priv_cpu_features(void)
{
    pthread_once(&found, cpu_find);
    return usable;
}

const char *dscomm_cpu_features(void)
{
    pthread_once(&found, cpu_find);
    return names;
}
