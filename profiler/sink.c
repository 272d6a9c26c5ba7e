/* SPDX-License-Identifier: BSD-3-Clause */
/* See sink.h. */
#include "config.h"

#include "profiler/sink.h"

#include "lib/base/write-guard.h"

#include <errno.h>
#include <unistd.h>

#define PIECE ((gsize)1 << 16)

void dscomm_priv_sink_flush(profile_sink_t *sink)
{
    dscomm_write_guard_t guard;

    dscomm_priv_write_guard(&guard);
    for (gsize done = 0; !sink->problem && done < sink->text->len;) {
        const ssize_t n =
            write(sink->fd, sink->text->str + done, sink->text->len - done);

        if (n < 0 && errno != EINTR)
            sink->problem = errno;
        done += n > 0 ? (gsize)n : 0;
    }
    dscomm_priv_write_unguard(&guard);
    g_string_truncate(sink->text, 0);
}

void dscomm_priv_sink_step(profile_sink_t *sink)
{
    if (sink->text->len >= PIECE)
        dscomm_priv_sink_flush(sink);
}
