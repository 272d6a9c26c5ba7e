/* SPDX-License-Identifier: BSD-3-Clause */
/* A libmunge for tests, without a daemon: a credential is its contents, after
 * the user who may read them. FAKE_MUNGE_ENCODE and FAKE_MUNGE_DECODE are the
 * errors to return, by their numbers in munge.h; FAKE_MUNGE_USER is the user
 * that has made the credentials. */
#include "config.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FAKE_UNAUTHORIZED 18

#pragma GCC visibility push(default)

typedef struct {
    uid_t reader;
} context_t;

context_t *munge_ctx_create(void);
void munge_ctx_destroy(context_t *context);
int munge_ctx_set(context_t *context, int option, ...);
int munge_encode(char **ret_credential, context_t *context, const void *data,
                 int size);
int munge_decode(const char *credential, context_t *context, void **ret_data,
                 int *ret_size, uid_t *ret_user, gid_t *ret_group);
const char *munge_strerror(int error);

static int number(const char *variable, int otherwise)
{
    const char *text = getenv(variable);

    return text ? atoi(text) : otherwise;
}

context_t *munge_ctx_create(void)
{
    return calloc(1, sizeof(context_t));
}

void munge_ctx_destroy(context_t *context)
{
    free(context);
}

int munge_ctx_set(context_t *context, int option, ...)
{
    va_list list;

    if (option != 9)
        return 2;
    va_start(list, option);
    context->reader = va_arg(list, uid_t);
    va_end(list);
    return 0;
}

int munge_encode(char **ret_credential, context_t *context, const void *data,
                 int size)
{
    int error = number("FAKE_MUNGE_ENCODE", 0);

    *ret_credential = malloc((size_t)size + 16);
    if (*ret_credential)
        sprintf(*ret_credential, "FAKE:%u:%.*s", (unsigned)context->reader,
                size, (const char *)data);
    return error;
}

int munge_decode(const char *credential, context_t *context, void **ret_data,
                 int *ret_size, uid_t *ret_user, gid_t *ret_group)
{
    unsigned reader;
    int start = 0;

    (void)context;
    *ret_user = (uid_t)number("FAKE_MUNGE_USER", (int)geteuid());
    *ret_group = 0;
    if (sscanf(credential, "FAKE:%u:%n", &reader, &start) != 1 || !start)
        return 8;
    if (reader != geteuid())
        return FAKE_UNAUTHORIZED;
    *ret_data = strdup(credential + start);
    *ret_size = (int)strlen(credential + start);
    return number("FAKE_MUNGE_DECODE", 0);
}

const char *munge_strerror(int error)
{
    static char text[16];

    snprintf(text, sizeof text, "error %d", error);
    return text;
}
