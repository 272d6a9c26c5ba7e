/* SPDX-License-Identifier: BSD-3-Clause */
/* Tagged output, see output.h. Pipes are read, without blocking, into one line
 * buffer each. Whole lines are appended to the queue of a sink, which is
 * written when poll says that it has room: at most PIPE_BUF bytes at a time, so
 * that a slow or stopped reader never blocks the loop, which also passes on
 * signals. */
#include "config.h"

#include "tools/common/terminal.h"
#include "tools/common/tool.h"
#include "tools/run/output.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Pipes are not read while a sink has this many bytes to write. */
#define QUEUE_MAX ((gsize)1 << 20)

typedef struct {
    int fd; /* -1: the reader has closed it */
    GByteArray *queue;
    gsize written; /* of queue */
    int slot;
    bool untagged;
    bool colored;
    bool timed;
} sink_t;

typedef struct {
    int fd; /* -1: closed */
    int slot; /* index in the poll array, -1 = not polled */
    sink_t *sink;
    int log_fd; /* -1: none */
    GByteArray *line; /* begun, not ended */
} stream_t;

struct tool_output {
    const char *command;
    int first, ranks;
    stream_t *streams; /* two a rank */
    sink_t sinks[2];
    sink_t *errors; /* where stderr goes */
    bool failed; /* to write */
    gint64 taken; /* time at which a reader last took output; 0: never */
};

static bool is_same_file(int a, int b)
{
    struct stat x, y;

    return fstat(a, &x) == 0 && fstat(b, &y) == 0 && x.st_dev == y.st_dev &&
           x.st_ino == y.st_ino;
}

/* Returns whether tags that go to fd get colors. */
static bool has_colors(int fd, tool_color_t color)
{
    return color == TOOL_COLOR_AUTO ? tool_has_colours(fd)
                                    : color == TOOL_COLOR_ALWAYS;
}

tool_output_t *tool_output_new(const char *command, const tool_tags_t *tags,
                               int first, int ranks)
{
    tool_output_t *output = g_new0(tool_output_t, 1);
    bool same = is_same_file(STDOUT_FILENO, STDERR_FILENO);

    output->command = command;
    output->first = first;
    output->ranks = ranks;
    for (int i = 0; i < 2; i++) {
        output->sinks[i].fd = i == 0 ? STDOUT_FILENO : STDERR_FILENO;
        output->sinks[i].queue = g_byte_array_new();
        output->sinks[i].colored = has_colors(output->sinks[i].fd, tags->color);
        output->sinks[i].timed = tags->timestamps;
        output->sinks[i].untagged = tags->none;
    }
    output->streams = g_new0(stream_t, 2 * ranks);
    output->errors = &output->sinks[same ? 0 : 1];
    for (int i = 0; i < 2 * ranks; i++) {
        output->streams[i].fd = output->streams[i].log_fd = -1;
        output->streams[i].sink = i % 2 ? output->errors : &output->sinks[0];
        output->streams[i].line = g_byte_array_new();
    }
    return output;
}

static void close_stream(stream_t *stream)
{
    if (stream->fd >= 0)
        close(stream->fd);
    if (stream->log_fd >= 0)
        close(stream->log_fd);
    stream->fd = stream->log_fd = -1;
}

void tool_output_free(tool_output_t *output)
{
    if (!output)
        return;
    for (int i = 0; i < 2 * output->ranks; i++) {
        close_stream(&output->streams[i]);
        g_byte_array_unref(output->streams[i].line);
    }
    for (int i = 0; i < 2; i++)
        g_byte_array_unref(output->sinks[i].queue);
    g_free(output->streams);
    g_free(output);
}

int tool_output_open(tool_output_t *output, int rank, int fds[2])
{
    for (int i = 0; i < 2; i++) {
        output->streams[2 * rank + i].log_fd = fds[i];
        fds[i] = -1;
    }
    for (int i = 0; i < 2; i++) {
        int ends[2];

        if (pipe2(ends, O_CLOEXEC) < 0)
            return errno;
        fcntl(ends[0], F_SETFL, O_NONBLOCK);
        output->streams[2 * rank + i].fd = ends[0];
        fds[i] = ends[1];
    }
    return 0;
}

static int add_slot(GArray *fds, int fd, short events)
{
    struct pollfd slot = {fd, events, 0};

    g_array_append_val(fds, slot);
    return (int)fds->len - 1;
}

void tool_output_prepare(tool_output_t *output, GArray *fds)
{
    for (int i = 0; i < 2 * output->ranks; i++) {
        stream_t *stream = &output->streams[i];
        stream->slot = -1;
        if (stream->fd >= 0 && stream->sink->queue->len < QUEUE_MAX)
            stream->slot = add_slot(fds, stream->fd, POLLIN);
    }
    for (int i = 0; i < 2; i++) {
        sink_t *sink = &output->sinks[i];
        sink->slot = -1;
        if (sink->queue->len > 0)
            sink->slot = add_slot(fds, sink->fd, POLLOUT);
    }
}

/* Appends the time in UTC, as "2026-01-31T12:00:00.123Z ". */
static void put_time(GByteArray *queue)
{
    const gint64 now = g_get_real_time();
    const time_t seconds = (time_t)(now / G_USEC_PER_SEC);
    char text[64];
    struct tm tm;
    size_t length;

    gmtime_r(&seconds, &tm);
    length = strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
    length += (size_t)snprintf(text + length, sizeof(text) - length, ".%03dZ ",
                               (int)(now % G_USEC_PER_SEC / 1000));
    g_byte_array_append(queue, (const guint8 *)text, (guint)length);
}

static void put_tag(const sink_t *sink, int rank)
{
    /* the terminal's colors but black and white: either may be the background
     */
    enum { RED = 31, COLORS = 6 };
    char tag[64];
    int length;

    if (sink->timed)
        put_time(sink->queue);
    if (sink->colored)
        length = snprintf(tag, sizeof(tag), "\033[%dm[%d]:\033[0m ",
                          RED + rank % COLORS, rank);
    else
        length = snprintf(tag, sizeof(tag), "[%d]: ", rank);
    g_byte_array_append(sink->queue, (const guint8 *)tag, (guint)length);
}

/* Writes one line, or piece of a line: the bytes that were begun, and size
 * more. */
static void put_line(stream_t *stream, int rank, const guint8 *bytes,
                     gsize size)
{
    GByteArray *queue = stream->sink->queue;

    if (stream->sink->fd >= 0) {
        if (!stream->sink->untagged)
            put_tag(stream->sink, rank);
        g_byte_array_append(queue, stream->line->data, stream->line->len);
        g_byte_array_append(queue, bytes, (guint)size);
        g_byte_array_append(queue, (const guint8 *)"\n", 1);
    }
    g_byte_array_set_size(stream->line, 0);
}

static void stream_feed(stream_t *stream, int rank, const guint8 *bytes,
                        gsize size)
{
    while (size > 0) {
        const guint8 *newline = memchr(bytes, '\n', size);
        gsize length = newline ? (gsize)(newline - bytes) : size;

        if (stream->line->len + length > TOOL_LINE_MAX)
            put_line(stream, rank, NULL, 0);
        if (newline) {
            put_line(stream, rank, bytes, length);
            length++;
        } else {
            g_byte_array_append(stream->line, bytes, (guint)length);
        }
        bytes += length;
        size -= length;
    }
}

/* Prints that a log cannot be written, and closes it. */
static void stream_keep(tool_output_t *output, stream_t *stream,
                        const guint8 *bytes, gsize size)
{
    while (size > 0 && stream->log_fd >= 0) {
        ssize_t written = write(stream->log_fd, bytes, size);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0) {
            tool_fail(0, output->command, "cannot write a rank's log: %s",
                      g_strerror(errno));
            output->failed = true;
            close(stream->log_fd);
            stream->log_fd = -1;
            return;
        }
        bytes += written;
        size -= (gsize)written;
    }
}

/* Reads stream i once; false if there is nothing to read now. */
static bool stream_read(tool_output_t *output, int i)
{
    stream_t *stream = &output->streams[i];
    const int rank = output->first + i / 2;
    guint8 bytes[65536];
    ssize_t size = stream->fd < 0 ? 0 : read(stream->fd, bytes, sizeof(bytes));

    if (size > 0) {
        stream_keep(output, stream, bytes, (gsize)size);
        stream_feed(stream, rank, bytes, (gsize)size);
    } else if (size == 0 || (errno != EAGAIN && errno != EINTR)) {
        close_stream(stream);
    }
    if (stream->fd < 0 && stream->line->len > 0)
        put_line(stream, rank, NULL, 0);
    return size > 0;
}

/* Called if the reader of sink has closed it: a rank that goes on writing gets
 * SIGPIPE, as without this program, unless it also writes to a log. */
static void lose_sink(tool_output_t *output, sink_t *sink)
{
    sink->fd = -1;
    g_byte_array_set_size(sink->queue, 0);
    sink->written = 0;
    for (int i = 0; i < 2 * output->ranks; i++)
        if (output->streams[i].sink == sink && output->streams[i].log_fd < 0)
            close_stream(&output->streams[i]);
}

static void sink_give(tool_output_t *output, sink_t *sink)
{
    gsize size = MIN(sink->queue->len - sink->written, PIPE_BUF);
    ssize_t written = write(sink->fd, sink->queue->data + sink->written, size);

    if (written < 0 && errno != EAGAIN && errno != EINTR) {
        if (errno != EPIPE)
            output->failed = true;
        if (errno != EPIPE && sink->fd == STDOUT_FILENO)
            tool_fail(0, output->command, "cannot write the ranks' output: %s",
                      g_strerror(errno));
        lose_sink(output, sink);
    }
    if (written > 0) {
        sink->written += (gsize)written;
        output->taken = g_get_monotonic_time();
    }
    if (sink->written == sink->queue->len) {
        g_byte_array_set_size(sink->queue, 0);
        sink->written = 0;
    }
}

static bool is_ready(const GArray *fds, int slot)
{
    return slot >= 0 && g_array_index(fds, struct pollfd, slot).revents != 0;
}

void tool_output_dispatch(tool_output_t *output, const GArray *fds)
{
    for (int i = 0; i < 2 * output->ranks; i++)
        if (is_ready(fds, output->streams[i].slot))
            stream_read(output, i);
    for (int i = 0; i < 2; i++)
        if (is_ready(fds, output->sinks[i].slot))
            sink_give(output, &output->sinks[i]);
}

void tool_output_end(tool_output_t *output)
{
    for (int i = 0; i < 2 * output->ranks; i++) {
        while (stream_read(output, i))
            continue;
        close_stream(&output->streams[i]);
        stream_read(output, i);
    }
}

void tool_output_write_line(tool_output_t *output, const char *line)
{
    if (output->errors->fd >= 0)
        g_byte_array_append(output->errors->queue, (const guint8 *)line,
                            (guint)strlen(line));
}

/* Returns whether stderr can be written: it may have no reader. */
static bool is_writable(int fd)
{
    struct pollfd poll_fd = {fd, POLLOUT, 0};

    return poll(&poll_fd, 1, 0) == 1 && (poll_fd.revents & POLLOUT);
}

/* Returns whether the last written line is incomplete, so that the queue begins
 * in the middle of a line. */
static bool is_cut(const sink_t *sink)
{
    return sink->written > 0 && sink->queue->data[sink->written - 1] != '\n';
}

void tool_output_give_up(tool_output_t *output)
{
    bool cut = is_cut(output->errors);
    gsize left = 0;

    for (int i = 0; i < 2; i++) {
        left += output->sinks[i].queue->len - output->sinks[i].written;
        lose_sink(output, &output->sinks[i]);
    }
    output->failed = true;
    if (!is_writable(STDERR_FILENO))
        return;
    if (cut)
        fputc('\n', stderr);
    tool_fail(0, output->command,
              "nobody reads what the ranks have written; giving up the last "
              "%zu bytes",
              left);
}

gint64 tool_output_taken(const tool_output_t *output)
{
    return output->taken;
}

bool tool_output_failed(const tool_output_t *output)
{
    return output->failed;
}

bool tool_output_idle(const tool_output_t *output)
{
    return output->sinks[0].queue->len == 0 && output->sinks[1].queue->len == 0;
}
