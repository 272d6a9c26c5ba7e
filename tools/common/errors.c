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

/* Creates a file in the job's folder, once an attempt: the first rank that
 * asks succeeds */
bool tool_errors_is_first(const char *sentence)
{
    const char *own = g_getenv("TORCHELASTIC_ERROR_FILE");
    char *folder = g_path_get_dirname(own ? own : "");
    char *name = g_path_get_basename(folder);
    char *sum = g_compute_checksum_for_string(G_CHECKSUM_SHA256, sentence, -1);
    const char *attempt = g_getenv("TORCHELASTIC_RESTART_COUNT");
    char *path =
        g_strdup_printf("%s/%s.%s.said", folder, sum, attempt ? attempt : "0");
    int fd = -1, known = 0;

    if (g_str_has_prefix(name, FOLDER)) { /* only in this launcher's folder */
        fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        known = fd < 0 && errno == EEXIST;
    }
    if (fd >= 0)
        close(fd);
    g_free(path);
    g_free(sum);
    g_free(name);
    g_free(folder);
    return !known;
}
