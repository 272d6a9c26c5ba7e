/* SPDX-License-Identifier: BSD-3-Clause */
/* The rows of kernels. The first row whose name is also in dscomm_kernels(),
 * the core's list, is used. */
#include "config.h"

#include "compression/codecs/kernels.h"

#include <dscomm/info.h>
#include <glib.h>
#include <string.h>

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

/* Returns 1 if name is one of the words of list. */
static int list_names(const char *list, const char *name)
{
    const size_t length = strlen(name);

    for (; *list; list += strcspn(list, " "), list += strspn(list, " "))
        if (strcspn(list, " ") == length && !memcmp(list, name, length))
            return 1;
    return 0;
}

const dscomm_codec_kernels_t *dscomm_priv_codec_kernels(void)
{
    static const dscomm_codec_kernels_t *chosen;
    const dscomm_codec_kernels_t *row = g_atomic_pointer_get(&chosen);
    size_t i = 0;

    if (row)
        return row;
    while (!list_names(dscomm_kernels(), rows[i]->name))
        i++;
    g_atomic_pointer_set(&chosen, rows[i]);
    return rows[i];
}
