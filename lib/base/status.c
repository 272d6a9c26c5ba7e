/* SPDX-License-Identifier: BSD-3-Clause */
/* The status table, and each thread's sentence on its last failure. */
#include "config.h"

#include "lib/base/status.h"

#include <errno.h>
#include <glib.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct {
    int value;
    const char *name, *text;
} statuses[] = {
#define STATUS_ROW(name, value, text) {value, #name, text},
    DSCOMM_STATUS_MAP(STATUS_ROW)
#undef STATUS_ROW
};

static _Thread_local char sentence[DSCOMM_ERROR_MAX];
static _Thread_local uint64_t serial; /* number of the sentence, from 1 */
static _Thread_local int holds; /* if not 0, the sentence stays */

const char *dscomm_strerror(dscomm_status_t status)
{
    for (size_t i = 0; i < G_N_ELEMENTS(statuses); i++) {
        if (statuses[i].value == (int)status)
            return statuses[i].text;
    }
    return "unknown status";
}

const char *dscomm_status_name(dscomm_status_t status)
{
    for (size_t i = 0; i < G_N_ELEMENTS(statuses); i++) {
        if (statuses[i].value == (int)status)
            return statuses[i].name;
    }
    return "UNKNOWN";
}

const char *dscomm_last_error(void)
{
    return sentence;
}

uint64_t dscomm_priv_fail_serial(void)
{
    return serial;
}

/* Cuts text after its last whole character within size - 1 bytes. In UTF-8 a
 * character has at most three continuation bytes; a longer run of them is not
 * UTF-8. */
static void text_clip(char *text, size_t size)
{
    size_t end = size - 1;

    if (strnlen(text, size) < size)
        return;
    for (int i = 0; i < 3 && end && (text[end] & 0xc0) == 0x80; i++)
        end--;
    text[end] = '\0';
}

void dscomm_priv_tidy(char *text, size_t size)
{
    text_clip(text, size);
    for (char *c = text; *c; c++) {
        if (g_ascii_iscntrl(*c))
            *c = ' ';
    }
}

/* Copies one byte more than fits, so that text_clip() sees whether it must cut.
 */
const char *dscomm_priv_quote(const char *text, char *buffer, size_t size)
{
    size_t length = strnlen(text, size);

    memcpy(buffer, text, MIN(length, size));
    if (length < size)
        buffer[length] = '\0';
    dscomm_priv_tidy(buffer, size);
    return buffer;
}

void dscomm_priv_fail_hold(void)
{
    holds++;
}

void dscomm_priv_fail_release(void)
{
    holds--;
}

dscomm_status_t dscomm_priv_fail_with(dscomm_status_t status, const char *text)
{
    size_t length;

    if (holds)
        return status;
    if (!text)
        text = dscomm_strerror(status);
    length = strnlen(text, sizeof sentence);
    memmove(sentence, text, length);
    if (length < sizeof sentence)
        sentence[length] = '\0';
    text_clip(sentence, sizeof sentence);
    serial++;
    return status;
}

/* Formats into another buffer, because the thread's sentence may be among the
 * arguments. */
dscomm_status_t dscomm_fail(dscomm_status_t status, const char *format, ...)
{
    int saved = errno;
    char text[DSCOMM_ERROR_MAX + 1];
    va_list args;

    va_start(args, format);
    if (vsnprintf(text, sizeof text, format, args) < 0)
        g_strlcpy(text, format, sizeof text);
    va_end(args);
    dscomm_priv_tidy(text, DSCOMM_ERROR_MAX);
    dscomm_priv_fail_with(status, text);
    errno = saved;
    return status;
}
