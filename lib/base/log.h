/* SPDX-License-Identifier: BSD-3-Clause */
/* The library's own control of the log. */
#ifndef LIB_LOG_H
#define LIB_LOG_H

#include <dscomm/log.h>

/* Tells the default handler the rank of this process; only the first call
 * counts. Before it, the handler uses DSCOMM_RANK or RANK. */
void dscomm_priv_log_rank(int rank);

/* ERR_ENVIRONMENT if DSCOMM_LOG is invalid; the log then uses "warn". */
dscomm_status_t dscomm_priv_log_check(void);

/* In a forked child: initialises the locks. */
void dscomm_priv_log_forked(void);

#endif
