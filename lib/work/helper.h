/* SPDX-License-Identifier: BSD-3-Clause */
/* The helper thread of dscomm_help_begin(). */
#ifndef LIB_HELPER_H
#define LIB_HELPER_H

/* Ends the thread, if there is one. Called at the end of the last world, when
 * no call is under way. A later call starts another thread. */
void dscomm_priv_helper_stop(void);
/* In a forked child: drops the parent's thread and calls. */
void dscomm_priv_helper_forked(void);

#endif
