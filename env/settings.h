/* SPDX-License-Identifier: BSD-3-Clause */
/* The settings table: every DSCOMM_* variable that the core reads, one row each.
 * Backends bring their own rows (dscomm_backend_t.settings). */
#ifndef ENV_SETTINGS_H
#define ENV_SETTINGS_H

#include <dscomm/backend.h>

/* Indices into the core's table. */
enum {
    SETTING_BACKEND,      /* STRING "auto" */
    SETTING_BACKEND_PATH, /* STRING, ignored in set-uid programs */
    SETTING_INIT_METHOD,  /* STRING "env://" */
    SETTING_TIMEOUT,      /* MSEC 1800 */
    SETTING_LOG,          /* STRING "warn" */
    SETTING_CPU,          /* ENUM auto|c|avx2|avx512 */
    SETTING_PROGRESS,     /* ENUM caller|thread */
    SETTING_RANK,         /* INT */
    SETTING_WORLD_SIZE,   /* INT */
    SETTING_LOCAL_RANK,   /* INT */
    SETTING_LOCAL_SIZE,   /* INT */
    SETTING_NODE_RANK,    /* INT */
    SETTING_MASTER_ADDR,  /* STRING */
    SETTING_MASTER_PORT,  /* INT 1-65535 */
    SETTING_COUNT
};

/* Row of a SETTING_* index. */
const dscomm_setting_t *dscomm_priv_setting(int index);

/* A number, or text, of the core's own table. */
dscomm_status_t dscomm_priv_setting_number(int index, int64_t *ret_value);
const char *dscomm_priv_setting_text(int index);

/* Parses text as row says; the sentence names the variable, the value and what is
 * accepted. */
dscomm_status_t dscomm_priv_setting_parse(const dscomm_setting_t *row,
                                          const char *text, int64_t *ret_value);

/* Warns, once a process, about every DSCOMM_* variable that is in environ but in no
 * table, with the nearest name. tables: core's and the loaded backends'. */
void dscomm_priv_settings_check(char *const *environment,
                                const dscomm_setting_t *const *tables,
                                size_t count);

#endif
