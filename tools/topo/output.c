/* SPDX-License-Identifier: BSD-3-Clause */
/* Output of `dscomm topo`, see output.h. */
#include "config.h"

#include "tools/topo/output.h"

#include "tools/common/canvas.h"
#include "tools/common/save.h"
#include "tools/common/tool.h"

#include <errno.h>
#include <glib.h>
#include <stdio.h>
#include <string.h>

/* ends: of a file's name. Pictures have several, see
 * tool_canvas_is_picture(). */
static const struct {
    const char *name, *ends;
} formats[TOPO_FORMAT_PICTURE] = {
    [TOPO_FORMAT_TEXT] = {"text", ".txt"},
    [TOPO_FORMAT_JSON] = {"json", ".json"},
    [TOPO_FORMAT_DOT] = {"dot", ".dot"},
    [TOPO_FORMAT_NCCL] = {"nccl", ".xml"},
};

/* Whether path, or NULL, is that of a picture that cannot be drawn. */
static bool is_other_picture(const char *path)
{
    static const char *const ends[] = {".gif",  ".jpg", ".jpeg", ".pdf",
                                       ".eps",  ".ps",  ".bmp",  ".tif",
                                       ".tiff", ".webp"};

    for (gsize i = 0; path && i < G_N_ELEMENTS(ends); i++)
        if (g_str_has_suffix(path, ends[i]))
            return true;
    return false;
}

topo_format_t topo_format_find(const char *name, const char *path)
{
    for (topo_format_t i = 0; i < TOPO_FORMAT_PICTURE; i++)
        if (name ? !strcmp(name, formats[i].name)
                 : path && g_str_has_suffix(path, formats[i].ends))
            return i;
    if (name || is_other_picture(path))
        return TOPO_FORMATS;
    return tool_canvas_is_picture(path) ? TOPO_FORMAT_PICTURE
                                        : TOPO_FORMAT_TEXT;
}

int topo_output_write(const char *command, const char *option, const char *path,
                      const char *text)
{
    tool_save_t *save;
    int error;

    if (!path) {
        fputs(text, stdout);
        return TOOL_OK;
    }
    save = tool_save_new(path);
    error = save ? tool_save_end(save, text) : errno;
    return error ? tool_fail(TOOL_FAILED, command, "%s %s: %s", option, path,
                             g_strerror(error))
                 : TOOL_OK;
}
