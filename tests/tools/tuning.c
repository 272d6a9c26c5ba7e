/* SPDX-License-Identifier: BSD-3-Clause */
/* Tuning files that commands write: which rules of a file stay when it is
 * written again. */
#include "config.h"

#include "tests/tap.h"
#include "tools/common/tool.h"
#include "tools/common/tuning.h"

#include <glib/gstdio.h>
#include <unistd.h>

/* Returns what stays, to be freed, of a file with this text. */
static char *keep(const char *path, const char *text, const char *rules)
{
    GString *kept = g_string_new(rules);

    g_file_set_contents(path, text, -1, NULL);
    tool_tuning_keep(path, "shm", 2, kept);
    return g_string_free(kept, FALSE);
}

static void test_keep(const char *path)
{
    char *const settings[] = {
        (char *)"DSCOMM_ALGORITHM=barrier@shm/2:linear,all_reduce@shm/"
                "7:1K-:ring,"
                "barrier@tcp/2:linear,barrier@shm/20:linear,barrier:linear,"
                "barrier@shm:linear, gather @ SHM / 2 : linear,"
                "barrier@2:linear,barrier@shm/2-4:linear",
        (char *)"DSCOMM_SHM_RING=2M", NULL};
    char *text = tool_tuning_text("a comment", settings), *kept;

    kept = keep(path, text, "gather@shm/2:linear");
    is_str(kept,
           "gather@shm/2:linear,all_reduce@shm/7:1K-:ring,barrier@tcp/2:linear,"
           "barrier@shm/20:linear,barrier:linear,barrier@shm:linear,"
           "barrier@2:linear,barrier@shm/2-4:linear",
           "rules for other groups stay");
    g_free(kept);
    kept = keep(path, text, NULL);
    is_str(kept,
           "all_reduce@shm/7:1K-:ring,barrier@tcp/2:linear,"
           "barrier@shm/20:linear,barrier:linear,barrier@shm:linear,"
           "barrier@2:linear,barrier@shm/2-4:linear",
           "also without new ones");
    g_free(kept);
    is_int(tool_tuning_check("tune", "--output", path), TOOL_OK,
           "a file of this machine may be replaced");
    *strstr(text, "processors=") = 'P';
    kept = keep(path, text, "gather@shm/2:linear");
    is_str(kept, "gather@shm/2:linear", "not those of another machine");
    is_int(tool_tuning_check("tune", "--output", path), TOOL_FAILED,
           "whose file is not replaced");
    g_free(kept);
    kept = keep(path, "my notes", NULL);
    is_str(kept, "", "not what is no tuning file");
    g_free(kept);
    g_free(text);
}

int main(void)
{
    char *path = NULL, *text = NULL;
    const int fd = g_file_open_tmp(NULL, &path, NULL);

    if (fd < 0)
        return 1;
    close(fd);
    test_keep(path);
    is_int(tool_tuning_write("tune", "--output", path, "new"), TOOL_OK,
           "write");
    g_file_get_contents(path, &text, NULL, NULL);
    is_str(text, "new", "what was written");
    g_free(text);
    g_unlink(path);
    g_free(path);
    return tap_done();
}
