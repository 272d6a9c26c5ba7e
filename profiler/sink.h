/* SPDX-License-Identifier: BSD-3-Clause */
/* Text that is written to a descriptor, piece by piece. */
#ifndef PROFILER_SINK_H
#define PROFILER_SINK_H

#include <glib.h>

typedef struct {
    GString *text; /* the next piece */
    int fd;
    int problem; /* errno of the first failure; 0: none */
} profile_sink_t;

/* Writes the text. */
void dscomm_priv_sink_flush(profile_sink_t *sink);
/* The same, if it is long enough to be a piece. */
void dscomm_priv_sink_step(profile_sink_t *sink);

#endif
