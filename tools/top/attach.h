/* SPDX-License-Identifier: BSD-3-Clause */
/* Finding a running job of this machine. */
#ifndef TOOLS_ATTACH_H
#define TOOLS_ATTACH_H

#include "lib/recorder/recorder.h"

/* Opens the flight recorder of a job of this user. job: the pid of one of its
 * ranks or of its dscomm run, or its name; NULL: there is only one. Returns
 * NULL, or a sentence; g_free(). */
char *attach_job(const char *job, dscomm_recorder_t *ret_recorder);

/* The job's name, of which any rank may have overwritten the end; g_free(). */
char *attach_name(const dscomm_recorder_t *recorder);

#endif
