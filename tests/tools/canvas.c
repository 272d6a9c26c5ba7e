/* SPDX-License-Identifier: BSD-3-Clause */
/* Pictures in files: their formats and sizes, and files that cannot be
 * written. The bytes are those of the PNG specification, 11.2.2, and of XML. */
#include "config.h"

#include "tests/tap.h"
#include "tools/common/canvas.h"

#include <fcntl.h>
#include <glib/gstdio.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char *folder;

static char *path_new(const char *name)
{
    return g_build_filename(folder, name, NULL);
}

/* Draws something of everything. */
static void draw(tool_canvas_t *canvas)
{
    const tool_point_t points[] = {{10, 10}, {50, 30}, {90, 10}};
    const tool_font_t font = {.size = 10, .anchor = TOOL_TEXT_MIDDLE};
    const tool_font_t upward = {.size = 10, .bold = true, .upward = true};

    tool_canvas_rectangle(canvas, 0, 0, 50, 50, 0x336699);
    tool_canvas_line(canvas, points, 3, (tool_pen_t){2, 0xff0000, true});
    tool_canvas_dot(canvas, points[1], 3, 0x00ff00);
    tool_canvas_text(canvas, points[1], font, "text & <more>");
    tool_canvas_text(canvas, points[0], upward, "not UTF-8: \xff");
    ok(tool_canvas_text_width(canvas, font, "wider") >
           tool_canvas_text_width(canvas, font, "w"),
       "a longer text is wider");
}

/* Returns the file's bytes after drawing; g_free(). */
static char *picture_new(const char *name, bool keep, gsize *ret_size)
{
    char *path = path_new(name), *problem = NULL, *bytes = NULL;
    tool_canvas_t *canvas = tool_canvas_new(path, 100, 60, &problem);

    ok(canvas != NULL, "%s is opened", name);
    is_str(problem, NULL, "without a sentence");
    if (canvas)
        draw(canvas);
    problem = tool_canvas_end(canvas, keep);
    is_str(problem, NULL, "and %s", keep ? "completed" : "discarded");
    g_free(problem);
    if (!g_file_get_contents(path, &bytes, ret_size, NULL))
        *ret_size = 0;
    g_unlink(path);
    g_free(path);
    return bytes;
}

static guint32 big_endian(const char *bytes)
{
    guint32 word;

    memcpy(&word, bytes, sizeof word);
    return GUINT32_FROM_BE(word);
}

static void test_formats(void)
{
    gsize size;
    char *bytes = picture_new("x.png", true, &size);

    ok(size > 24 && memcmp(bytes, "\x89PNG\r\n\x1a\n", 8) == 0, "a PNG");
    is_int(size > 24 ? big_endian(bytes + 16) : 0, 200, "two pixels a point");
    is_int(size > 24 ? big_endian(bytes + 20) : 0, 120, "in height, too");
    g_free(bytes);
    bytes = picture_new("x.svg", true, &size);
    ok(size > 5 && strncmp(bytes, "<?xml", 5) == 0 && strstr(bytes, "<svg"),
       "an SVG");
    ok(size > 7 && strcmp(bytes + size - 7, "</svg>\n") == 0, "to its end");
    g_free(bytes);
    bytes = picture_new("y.svg", false, &size);
    ok(!bytes, "a discarded picture leaves no file");
    g_free(bytes);
}

/* A reader of a pipe gets nothing of a picture that is discarded. */
static void test_pipe(void)
{
    char *path = path_new("pipe.svg"), *problem = NULL, byte;

    ok(mkfifo(path, 0600) == 0, "a pipe");
    const int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    tool_canvas_t *canvas = tool_canvas_new(path, 1, 1, &problem);
    is_str(problem, NULL, "is opened");
    g_free(tool_canvas_end(canvas, false));
    is_int((int)read(fd, &byte, 1), 0, "nothing is written into it");
    close(fd);
    g_unlink(path);
    g_free(problem);
    g_free(path);
}

/* Expects a sentence, from opening or from completing, that begins with the
 * path and contains reason. */
static void refuse(const char *path, const char *reason)
{
    char *problem = NULL;
    tool_canvas_t *canvas = tool_canvas_new(path, 100, 60, &problem);

    if (canvas) {
        draw(canvas);
        problem = tool_canvas_end(canvas, true);
    }
    ok(problem && g_str_has_prefix(problem, path) && strstr(problem, reason),
       "%s: %s", path, problem ? problem : "no sentence");
    g_free(problem);
}

static void test_refusals(void)
{
    char *full_png = path_new("full.png"), *full_svg = path_new("full.svg");

    refuse("/tmp/x.jpeg", "a name that ends in .png or .svg");
    refuse("/no/such/folder/x.png", "No such file");
    if (symlink("/dev/full", full_png) == 0 &&
        symlink("/dev/full", full_svg) == 0 &&
        g_file_test("/dev/full", G_FILE_TEST_EXISTS)) {
        refuse(full_png, "No space left");
        refuse(full_svg, "No space left");
    } else {
        skip("full disks: there is no /dev/full");
    }
    g_unlink(full_png);
    g_unlink(full_svg);
    g_free(full_png);
    g_free(full_svg);
}

int main(void)
{
    char *problem = NULL;

    folder = g_dir_make_tmp("canvas-XXXXXX", NULL);
    if (!folder)
        bail("no folder for files");
    char *path = path_new("x.png");
    tool_canvas_t *canvas = tool_canvas_new(path, 10, 10, &problem);
    g_free(tool_canvas_end(canvas, false));
    if (problem && strstr(problem, "built without cairo")) {
        ok(strstr(problem, "libcairo2-dev") != NULL, "the remedy is named");
    } else {
        test_formats();
        test_pipe();
        test_refusals();
    }
    ok(g_rmdir(folder) == 0, "nothing is left");
    g_free(problem);
    g_free(path);
    g_free(folder);
    return tap_done();
}
