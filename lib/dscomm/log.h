/* SPDX-License-Identifier: BSD-3-Clause */
/* The log, for what a status cannot show. Silent below "warn" unless DSCOMM_LOG
 * is set, e.g. DSCOMM_LOG=info or DSCOMM_LOG=warn,shm:debug. */
#ifndef DSCOMM_LOG_H
#define DSCOMM_LOG_H

#include <dscomm/status.h>
#include <dscomm/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
    DSCOMM_LOG_ERROR = 0,
    DSCOMM_LOG_WARN = 1,
    DSCOMM_LOG_INFO = 2,
    DSCOMM_LOG_DEBUG = 3,
    DSCOMM_LOG_TRACE = 4
} dscomm_log_level_t;

/* Receives one line without a newline. domain is the part of the library
 * ("core", "store", "shm", ...). Called from any thread that uses the library;
 * must not call dscomm. */
typedef void (*dscomm_log_handler_t)(dscomm_log_level_t level,
                                     const char *domain, const char *message,
                                     void *arg);

/* Sends the log to handler instead of stderr; NULL restores stderr. The handler
 * and arg must stay valid until replaced. MT: safe. */
DSCOMM_API void dscomm_log_set_handler(dscomm_log_handler_t handler, void *arg);

/* Sets the levels as DSCOMM_LOG does: "LEVEL" for all domains, "DOMAIN:LEVEL"
 * for one, comma separated. ERR_INVALID names the first word that is not
 * understood, and nothing changes. MT: safe. */
DSCOMM_API dscomm_status_t dscomm_log_set_levels(const char *levels);

/* Writes one line to the log if level is enabled for domain (a module's name,
 * for example; NULL: "unknown"). For libraries on top of this one. MT: safe. */
DSCOMM_API void dscomm_log(dscomm_log_level_t level, const char *domain,
                           const char *format, ...) DSCOMM_PRINTF(3, 4);

#ifdef __cplusplus
}
#endif

#endif
