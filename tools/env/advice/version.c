/* SPDX-License-Identifier: BSD-3-Clause */
/* What `mpirun --version` prints, and whose that is. */
#include "config.h"

#include "tools/env/advice/advice.h"

#include <string.h>

#define NEWEST 9999 /* a year, at most */

/* mark is in the text, and the number follows before. */
static const struct {
    const char *mark, *before;
    unsigned mask;
    const char *library;
    int oldest;
} makers[] = {
    {"(Open MPI) ", "(Open MPI) ", ADVICE_OPENMPI_4, "Open MPI", 4},
    {"(OpenRTE) ", "(OpenRTE) ", ADVICE_OPENMPI_4, "Open MPI", 4},
    {"Intel(R) MPI Library", "Version ", ADVICE_INTEL, "Intel MPI", 2019},
    {"HYDRA build details:", "Version:", ADVICE_MPICH, "MPICH", 3},
};

static char *number(const char *text)
{
    size_t length;

    text += strspn(text, " \t");
    length = strspn(text, "0123456789.");
    return length && g_ascii_isdigit(*text) ? g_strndup(text, length) : NULL;
}

unsigned tool_advice_version(const char *text, const char **ret_library,
                             char **ret_version)
{
    for (size_t i = 0; i < G_N_ELEMENTS(makers); i++) {
        const char *mark = strstr(text, makers[i].mark);
        const char *before = mark ? strstr(mark, makers[i].before) : NULL;
        char *version =
            before ? number(before + strlen(makers[i].before)) : NULL;
        gint64 major = version ? g_ascii_strtoll(version, NULL, 10) : 0;

        if (major < makers[i].oldest || major > NEWEST) {
            g_free(version);
            continue;
        }
        *ret_library = makers[i].library;
        *ret_version = version;
        if (makers[i].mask == ADVICE_OPENMPI_4 && major >= 5)
            return ADVICE_OPENMPI_5;
        return makers[i].mask;
    }
    return 0;
}
