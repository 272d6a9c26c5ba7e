/* SPDX-License-Identifier: BSD-3-Clause */
/* Processors: whether a job has one for each rank. */
#ifndef LIB_PROCESSORS_H
#define LIB_PROCESSORS_H

#define DSCOMM_PROCESSORS_MAX 4096 /* bytes; what is more is left out */

/* This process's machine, a blank, and the processors on which it may run, as
 * in "0-3,8", or nothing where the system does not tell. */
void dscomm_priv_processors_own(char text[DSCOMM_PROCESSORS_MAX]);

/* Of such texts, one a rank: whether on a machine there are more ranks than
 * processors on which they may run, those of all of them together. What makes
 * no sense in a text counts for nothing. */
int dscomm_priv_processors_lack(const char *const *texts, int ranks);

#endif
