/* SPDX-License-Identifier: BSD-3-Clause */
/* The thread behind dscomm_help_begin(): its end. */
#ifndef LIB_HELPER_H
#define LIB_HELPER_H

/* At the end of the last world, when no call is under way: ends the thread, if
 * there is one. The next call that wants one starts another. */
void dscomm_priv_helper_stop(void);
/* In a forked child: forgets the parent's thread and calls. */
void dscomm_priv_helper_forked(void);

#endif
