/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of codecs: the library's, and those that the program has added. */
#include "config.h"

#include "compression/codecs/codecs.h"

#include <glib.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>

#define NAME_MAX_BYTES 15
/* The size of the structure in the first release. */
#define SIZE_LEAST                                                             \
    (offsetof(dscomm_codec_t, decode) + sizeof((dscomm_codec_t *)0)->decode)

static const dscomm_codec_t *const own[] = {
    &dscomm_priv_codec_none,     &dscomm_priv_codec_float16,
    &dscomm_priv_codec_bfloat16, &dscomm_priv_codec_onebit,
    &dscomm_priv_codec_int8,     &dscomm_priv_codec_topk,
};
static const char own_names[] = "none float16 bfloat16 onebit int8 topk";

/* A codec that the program has added. It is never removed, because a caller may
 * have a list of codecs. */
typedef struct added {
    struct added *next;
    const dscomm_codec_t *codec;
    char names[]; /* the names of all codecs up to this one */
} added_t;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static added_t *newest;

/* This function and the next two are called with the lock held. */
static const char *all_names(void)
{
    return newest ? newest->names : own_names;
}

static dscomm_status_t codec_add(const dscomm_codec_t *codec)
{
    const size_t size = strlen(all_names()) + strlen(codec->name) + 2;
    added_t *added = g_try_malloc(sizeof *added + size);

    if (!added)
        return dscomm_fail(DSCOMM_ERR_NO_MEMORY, "no memory for codec '%s'",
                           codec->name);
    added->codec = codec;
    added->next = newest;
    g_snprintf(added->names, size, "%s %s", all_names(), codec->name);
    newest = added;
    return DSCOMM_OK;
}

static const dscomm_codec_t *codec_find(const char *name)
{
    for (size_t i = 0; i < G_N_ELEMENTS(own); i++)
        if (!strcmp(own[i]->name, name))
            return own[i];
    for (const added_t *added = newest; added; added = added->next)
        if (!strcmp(added->codec->name, name))
            return added->codec;
    return NULL;
}

const dscomm_codec_t *dscomm_codec_find(const char *name)
{
    const dscomm_codec_t *codec;

    pthread_mutex_lock(&lock);
    codec = name ? codec_find(name) : NULL;
    pthread_mutex_unlock(&lock);
    return codec;
}

const char *dscomm_codec_names(void)
{
    const char *text;

    pthread_mutex_lock(&lock);
    text = all_names();
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

/* Returns what is wrong with codec, or NULL. */
static const char *codec_defect(const dscomm_codec_t *codec)
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
    const char *wrong = codec ? codec_defect(codec) : "it is NULL";
    dscomm_status_t status = DSCOMM_OK;

    if (wrong)
        return dscomm_fail(DSCOMM_ERR_INVALID, "%s: no such codec can be: %s",
                           name, wrong);
    pthread_mutex_lock(&lock);
    if (codec_find(codec->name))
        status =
            dscomm_fail(DSCOMM_ERR_INVALID, "%s: there is a codec '%s' already",
                        name, codec->name);
    else
        status = codec_add(codec);
    pthread_mutex_unlock(&lock);
    return status;
}
