/* SPDX-License-Identifier: BSD-3-Clause */
/* What a scheduler calls the job that this process is of. */
#ifndef ENV_JOB_H
#define ENV_JOB_H

#include <stddef.h>

/* Pure function of the lookup, as dscomm_priv_launch_discover(). Writes a name
 * that all processes of one launch have, and those of no other launch at the
 * same time: manager, job, step, how often it was started anew. A name that is
 * too long is replaced by its checksum. "" where none is known. */
void dscomm_priv_job_name(const char *(*get)(const char *name, void *arg),
                          void *arg, char *name, size_t size);

#endif
