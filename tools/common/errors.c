/* SPDX-License-Identifier: BSD-3-Clause */
/* The ranks' error files, see errors.h. Any program may have written their
 * contents. */
#include "config.h"

#include "tools/common/errors.h"
#include "tools/common/json.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define SIZE_MAX_READ ((off_t)1 << 20)
/* Depth limit, because the parser recurses. */
#define DEPTH_MAX 32

#define FOLDER "dscomm-run-"

void tool_errors_make(char *folder, size_t size)
{
    char *name = g_build_filename(g_get_tmp_dir(), FOLDER "XXXXXX", NULL);
    char *path = g_canonicalize_filename(name, NULL);

    if (g_strlcpy(folder, path, size) >= size || !g_mkdtemp(folder))
        *folder = '\0';
    g_free(path);
    g_free(name);
}

void tool_errors_remove(const char *folder)
{
    GDir *dir = *folder ? g_dir_open(folder, 0, NULL) : NULL;
    const char *name;

    if (!dir)
        return;
    while ((name = g_dir_read_name(dir))) {
        char *path = g_build_filename(folder, name, NULL);
        g_unlink(path);
        g_free(path);
    }
    g_dir_close(dir);
    g_rmdir(folder);
}

char *tool_errors_path(const char *folder, int rank)
{
    return g_strdup_printf("%s/%d.json", folder, rank);
}

void tool_errors_forget(const char *folder, int rank)
{
    char *path = tool_errors_path(folder, rank);

    if (*folder)
        g_unlink(path);
    g_free(path);
}

/* Reads a file. Does not follow a link, or wait for a pipe's writer. */
static char *read_file(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
    char *text = NULL;
    struct stat st;

    if (!file) {
        if (fd >= 0)
            close(fd);
        return NULL;
    }
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
        st.st_size <= SIZE_MAX_READ) {
        text = g_malloc((gsize)st.st_size + 1);
        text[fread(text, 1, (size_t)st.st_size, file)] = '\0';
    }
    fclose(file);
    return text;
}

static bool is_shallow(const char *text)
{
    bool quoted = false;
    int depth = 0;

    for (; *text && depth <= DEPTH_MAX; text++) {
        if (quoted && *text == '\\' && text[1])
            text++;
        else if (*text == '"')
            quoted = !quoted;
        else if (!quoted && strchr("[{", *text))
            depth++;
        else if (!quoted && strchr("]}", *text))
            depth--;
    }
    return depth <= DEPTH_MAX;
}

/* {"message": "text"} or {"message": {"message": "text", ...}} */
static const char *find_message(JsonNode *root)
{
    JsonNode *outer = tool_json_get(root, "message");
    const char *inner = tool_json_get_text(outer, "message");

    return inner ? inner : tool_json_get_text(root, "message");
}

char *tool_errors_read(const char *folder, int rank)
{
    char *path = tool_errors_path(folder, rank);
    char *text = read_file(path);
    JsonParser *parser = json_parser_new();
    char *message = NULL;

    if (text && is_shallow(text) &&
        json_parser_load_from_data(parser, text, -1, NULL))
        message = g_strdup(find_message(json_parser_get_root(parser)));
    g_object_unref(parser);
    g_free(text);
    g_free(path);
    return message;
}

/* Path of the file in the job's folder that has a byte if the sentence was said
 * in this attempt, and is locked by who says it; NULL: it is another launcher's
 * folder; g_free(). */
static char *said_path(const char *sentence)
{
    const char *own = g_getenv("TORCHELASTIC_ERROR_FILE");
    const char *attempt = g_getenv("TORCHELASTIC_RESTART_COUNT");
    char *folder = g_path_get_dirname(own ? own : "");
    char *name = g_path_get_basename(folder);
    char *sum = g_compute_checksum_for_string(G_CHECKSUM_SHA256, sentence, -1);
    char *path = g_str_has_prefix(name, FOLDER)
                     ? g_strdup_printf("%s/%s.%s.said", folder, sum,
                                       attempt ? attempt : "0")
                     : NULL;

    g_free(sum);
    g_free(name);
    g_free(folder);
    return path;
}

bool tool_errors_is_first(const char *sentence, int *ret_file)
{
    char *path = said_path(sentence), byte;
    const int fd = path ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;

    g_free(path);
    *ret_file = fd;
    if (fd < 0 || flock(fd, LOCK_EX) || read(fd, &byte, 1) != 1)
        return true;
    close(fd);
    return false;
}

void tool_errors_said(int file)
{
    if (file < 0)
        return;
    (void)!write(file, "", 1);
    close(file);
}
