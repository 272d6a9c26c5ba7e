/* SPDX-License-Identifier: BSD-3-Clause */
/* Recognizes the MPI library by the text of --version. */
#include "config.h"

#include "tools/env/advice/advice.h"

#include <stdlib.h>
#include <string.h>

#define NEWEST 9999 /* a year, at most */

/* The mpiruns: mark in the text identifies one; its version number follows the
 * text before. */
static const struct {
    const char *mark, *before, *launcher, *library;
    int oldest;
} makers[] = {
    {"(Open MPI) ", "(Open MPI) ", "openmpi", "Open MPI", 4},
    {"(OpenRTE) ", "(OpenRTE) ", "openmpi", "Open MPI", 4},
    {"Intel(R) MPI Library", "Version ", "intel", "Intel MPI", 2019},
    {"HYDRA build details:", "Version:", "mpich", "MPICH", 3},
};

static char *version_number(const char *text)
{
    size_t length;

    text += strspn(text, " \t");
    length = strspn(text, "0123456789.");
    return length && g_ascii_isdigit(*text) ? g_strndup(text, length) : NULL;
}

gboolean tool_advice_version(const char *text, tool_advice_t *advice)
{
    for (size_t i = 0; i < G_N_ELEMENTS(makers); i++) {
        const char *mark = strstr(text, makers[i].mark);
        const char *before = mark ? strstr(mark, makers[i].before) : NULL;
        char *version =
            before ? version_number(before + strlen(makers[i].before)) : NULL;
        gint64 major = version ? g_ascii_strtoll(version, NULL, 10) : 0;

        if (major >= makers[i].oldest && major <= NEWEST) {
            advice->launcher = makers[i].launcher;
            advice->library = makers[i].library;
            advice->version = version;
            return TRUE;
        }
        g_free(version);
    }
    return FALSE;
}
