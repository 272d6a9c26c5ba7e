/* SPDX-License-Identifier: BSD-3-Clause */
/* Writing a file that is complete or is not there, see save.h. */
#include "config.h"

#include "tools/common/save.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct tool_save {
    char *path;
    /* NULL: path is not a regular file, and is written directly */
    char *temporary;
    FILE *stream;
};

/* Sets the mode by the umask, because mkstemp() makes files that only their
 * owner may read. */
static void take_mode(int fd)
{
    mode_t mask = umask(0);

    umask(mask);
    if (fchmod(fd, 0666 & ~mask) != 0)
        return;
}

static int open_temporary(tool_save_t *save)
{
    save->temporary = g_strdup_printf("%s.XXXXXX", save->path);
    int fd = mkostemp(save->temporary, O_CLOEXEC);
    if (fd >= 0)
        take_mode(fd);
    return fd;
}

static void save_release(tool_save_t *save)
{
    g_free(save->temporary);
    g_free(save->path);
    g_free(save);
}

tool_save_t *tool_save_new(const char *path)
{
    tool_save_t *save = g_new0(tool_save_t, 1);
    struct stat status;
    bool special = stat(path, &status) == 0 && !S_ISREG(status.st_mode);
    int fd;

    save->path = g_strdup(path);
    if (special)
        fd = open(path, O_WRONLY | O_CLOEXEC);
    else
        fd = open_temporary(save);
    if (fd >= 0) {
        save->stream = fdopen(fd, "w");
        return save;
    }
    int error = errno;
    save_release(save);
    errno = error;
    return NULL;
}

int tool_save_write(tool_save_t *save, const void *bytes, size_t size)
{
    return fwrite(bytes, 1, size, save->stream) == size ? 0 : errno;
}

int tool_save_end(tool_save_t *save, const char *text)
{
    int error = 0;

    if (!save)
        return 0;
    if (text && fputs(text, save->stream) < 0)
        error = errno;
    if (fclose(save->stream) != 0 && !error)
        error = errno;
    if (save->temporary && text && !error &&
        rename(save->temporary, save->path) != 0)
        error = errno;
    if (save->temporary && (error || !text))
        unlink(save->temporary);
    save_release(save);
    return error;
}
