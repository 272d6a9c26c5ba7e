/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of codecs: ours, and those that the program adds. */
#include "config.h"

#include "compression/codecs/codecs.h"

#include <glib.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>

#define NAME_MAX_BYTES 15
/* Up to the last member that the first release had, whatever comes later. */
#define SIZE_LEAST                                                             \
    (offsetof(dscomm_codec_t, decode) + sizeof((dscomm_codec_t *)0)->decode)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static GPtrArray *table; /* const dscomm_codec_t * */
static const char *names; /* interned: a list that somebody has stays */

/* With the lock held. */
static void add(const dscomm_codec_t *codec)
{
    char *list;

    g_ptr_array_add(table, (gpointer)codec);
    list = g_strjoin(names ? " " : "", names ? names : "", codec->name, NULL);
    names = g_intern_string(list);
    g_free(list);
}

static void fill(void)
{
    static const dscomm_codec_t *const own[] = {
        &dscomm_priv_codec_none,     &dscomm_priv_codec_float16,
        &dscomm_priv_codec_bfloat16, &dscomm_priv_codec_onebit,
        &dscomm_priv_codec_int8,     &dscomm_priv_codec_topk,
    };

    if (table)
        return;
    table = g_ptr_array_new();
    for (size_t i = 0; i < G_N_ELEMENTS(own); i++)
        add(own[i]);
}

static const dscomm_codec_t *find(const char *name)
{
    for (guint i = 0; i < table->len; i++) {
        const dscomm_codec_t *codec = g_ptr_array_index(table, i);

        if (!strcmp(codec->name, name))
            return codec;
    }
    return NULL;
}

const dscomm_codec_t *dscomm_codec_find(const char *name)
{
    const dscomm_codec_t *codec;

    pthread_mutex_lock(&lock);
    fill();
    codec = name ? find(name) : NULL;
    pthread_mutex_unlock(&lock);
    return codec;
}

const char *dscomm_codec_names(void)
{
    const char *text;

    pthread_mutex_lock(&lock);
    fill();
    text = names;
    pthread_mutex_unlock(&lock);
    return text;
}

static int is_name(const char *name)
{
    return *name && strlen(name) <= NAME_MAX_BYTES &&
           strspn(name,
                  "abcdefghijklmnopqrstuvwxyz"
                  "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == strlen(name);
}

/* What is wrong with codec, or NULL. */
static const char *defect(const dscomm_codec_t *codec)
{
    if (codec->size < SIZE_LEAST)
        return "its size is not that of the structure";
    if (!codec->name || !is_name(codec->name))
        return "its name is not made of 1 to 15 letters, digits and '_'";
    if (!codec->bytes || !codec->encode || !codec->accumulate || !codec->decode)
        return "bytes, encode, accumulate or decode is missing";
    if (!codec->measure != !codec->settle)
        return "measure and settle need each other";
    if (!(codec->parameter_most > 0
              ? codec->parameter > 0 &&
                    codec->parameter <= codec->parameter_most
              : codec->parameter == 0 && codec->parameter_most == 0))
        return "its parameter is not in (0, parameter_most]";
    return NULL;
}

dscomm_status_t dscomm_codec_register(const dscomm_codec_t *codec)
{
    const char *name = "dscomm_codec_register";
    const char *wrong = codec ? defect(codec) : "it is NULL";
    dscomm_status_t status = DSCOMM_OK;

    if (wrong)
        return dscomm_fail(DSCOMM_ERR_INVALID, "%s: no such codec can be: %s",
                           name, wrong);
    pthread_mutex_lock(&lock);
    fill();
    if (find(codec->name))
        status =
            dscomm_fail(DSCOMM_ERR_INVALID, "%s: there is a codec '%s' already",
                        name, codec->name);
    else
        add(codec);
    pthread_mutex_unlock(&lock);
    return status;
}
