/* SPDX-License-Identifier: BSD-3-Clause */
/* Writing the tuning file, see file.h. */
#include "config.h"

#include "tools/tune/file.h"

#include "lib/base/machine.h"
#include "lib/base/tuning.h"
#include "tools/common/save.h"

#include <dscomm/version.h>
#include <errno.h>
#include <string.h>

static void add_machine(GKeyFile *keys)
{
    dscomm_machine_fact_t facts[DSCOMM_MACHINE_FACTS];

    dscomm_priv_machine_read("", facts);
    g_key_file_set_string(keys, DSCOMM_TUNING_MACHINE, DSCOMM_TUNING_KEY,
                          DSCOMM_TUNING_FORMAT);
    for (int i = 0; i < DSCOMM_MACHINE_FACTS; i++)
        g_key_file_set_string(keys, DSCOMM_TUNING_MACHINE, facts[i].name,
                              facts[i].value);
}

char *tune_file_machine(void)
{
    GKeyFile *keys = g_key_file_new();
    char *text;

    add_machine(keys);
    text = g_key_file_to_data(keys, NULL, NULL);
    g_key_file_free(keys);
    return text;
}

char *tune_file_text(const tune_options_t *options, const char *backend,
                     char *const *settings)
{
    char *machine = tune_file_machine();
    GString *text = g_string_new(NULL);

    g_string_printf(text,
                    "# Made by dscomm tune %s, for %d ranks of backend %s on "
                    "one node; see dscomm-tune(1).\n",
                    DSCOMM_VERSION_STRING, options->ranks, backend);
    g_string_append_printf(text, "%s\n[" DSCOMM_TUNING_SETTINGS "]\n", machine);
    for (; *settings; settings++)
        g_string_append_printf(text, "%s\n", *settings);
    g_free(machine);
    return g_string_free(text, FALSE);
}

/* Whether path is a file with something else than a tuning file in it. */
static bool file_is_other(const char *path)
{
    GKeyFile *keys = g_key_file_new();
    bool other = false;

    if (g_file_test(path, G_FILE_TEST_IS_REGULAR))
        other = !g_key_file_load_from_file(keys, path, G_KEY_FILE_NONE, NULL) ||
                !g_key_file_has_group(keys, DSCOMM_TUNING_MACHINE);
    g_key_file_free(keys);
    return other;
}

static int write_fail(const tune_options_t *options, int error)
{
    return tool_fail(TOOL_FAILED, "tune", "--output %s: %s", options->output,
                     g_strerror(error));
}

int tune_file_check(const tune_options_t *options)
{
    tool_save_t *save;

    if (file_is_other(options->output))
        return tool_fail(TOOL_FAILED, "tune",
                         "--output %s: it exists and is no tuning file; remove "
                         "it, or choose another name",
                         options->output);
    save = tool_save_new(options->output);
    if (!save)
        return write_fail(options, errno);
    tool_save_end(save, NULL);
    return TOOL_OK;
}

int tune_file_write(const tune_options_t *options, const char *text)
{
    tool_save_t *save = tool_save_new(options->output);
    int error = save ? tool_save_end(save, text) : errno;

    return error ? write_fail(options, error) : TOOL_OK;
}
