/* SPDX-License-Identifier: BSD-3-Clause */
/* The rows of kernels, and which one serves here: the first that the core's
 * own kernels name as well. */
#include "config.h"

#include "compression/kernels.h"

#include <dscomm/info.h>
#include <glib.h>

static const dscomm_codec_kernels_t *const rows[] = {
#ifdef HAVE_KERNELS_NEON
    &dscomm_priv_codec_kernels_neon,
#endif
#ifdef HAVE_KERNELS_AVX512
    &dscomm_priv_codec_kernels_avx512,
#endif
#ifdef HAVE_KERNELS_AVX2
    &dscomm_priv_codec_kernels_avx2,
#endif
    &dscomm_priv_codec_kernels_c,
};

const dscomm_codec_kernels_t *dscomm_priv_codec_kernels_row(size_t index)
{
    return index < G_N_ELEMENTS(rows) ? rows[index] : NULL;
}

const dscomm_codec_kernels_t *dscomm_priv_codec_kernels(void)
{
    static gsize chosen;

    if (g_once_init_enter(&chosen)) {
        char **words = g_strsplit(dscomm_kernels(), " ", -1);
        size_t row = 0;

        while (!g_strv_contains((const char *const *)words, rows[row]->name))
            row++;
        g_strfreev(words);
        g_once_init_leave(&chosen, (gsize)rows[row]);
    }
    return (const dscomm_codec_kernels_t *)chosen;
}
