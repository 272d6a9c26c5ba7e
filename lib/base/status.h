/* SPDX-License-Identifier: BSD-3-Clause */
/* The library's own functions on the thread's error sentence. */
#ifndef LIB_STATUS_H
#define LIB_STATUS_H

#include <dscomm/backend.h>

#define DSCOMM_ERROR_MAX 512

/* Stores text as it is; for a failure that happened elsewhere (another rank, an
 * earlier work) and is reported now. */
dscomm_status_t dscomm_priv_fail_with(dscomm_status_t status, const char *text);
/* Between these two calls, which may be nested, failures of this thread leave
 * its last one as it is: for what is done because of that failure. */
void dscomm_priv_fail_hold(void);
void dscomm_priv_fail_release(void);
/* The number of failures of this thread, which numbers its last sentence. */
uint64_t dscomm_priv_fail_serial(void);

/* Makes one line of at most size - 1 bytes out of text: cuts before a UTF-8
 * character rather than inside, and writes blanks over control characters. */
void dscomm_priv_tidy(char *text, size_t size);

/* Copies text to buffer, tidied, for use in a message; returns buffer. */
const char *dscomm_priv_quote(const char *text, char *buffer, size_t size);

#endif
