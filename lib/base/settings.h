/* SPDX-License-Identifier: BSD-3-Clause */
/* The settings table: every DSCOMM_* variable that the core reads, one row
 * each. Backends bring their own rows (dscomm_backend_t.settings). A table ends
 * with a row whose name is NULL. An empty value counts as unset. */
#ifndef LIB_SETTINGS_H
#define LIB_SETTINGS_H

#include <dscomm/backend.h>

/* Largest number of ranks of a world. Each rank has a connection to the store,
 * and Linux limits a process to about so many descriptors. */
#define DSCOMM_RANKS_MAX 1048576

/* Indices into the core's table. */
enum {
    SETTING_BACKEND, /* STRING "auto" */
    SETTING_BACKEND_PATH, /* STRING, ignored in set-uid programs */
    SETTING_INIT_METHOD, /* STRING "env://", ignored in set-uid programs */
    SETTING_TIMEOUT, /* MSEC 1800 */
    SETTING_LOG, /* STRING "warn" */
    SETTING_CPU, /* ENUM auto|c|avx2|avx512|neon */
    SETTING_BIND, /* STRING "none" */
    SETTING_CUDA_IPC, /* ENUM yes|no, for compression */
    SETTING_ALGORITHM, /* STRING */
    SETTING_TUNING_FILE, /* STRING, ignored in set-uid programs */
    SETTING_PROGRESS, /* ENUM caller|thread */
    SETTING_WATCHDOG, /* BOOL 1 */
    SETTING_RANK, /* INT */
    SETTING_WORLD_SIZE, /* INT */
    SETTING_LOCAL_RANK, /* INT */
    SETTING_LOCAL_SIZE, /* INT */
    SETTING_NODE_RANK, /* INT */
    SETTING_MASTER_ADDR, /* STRING */
    SETTING_MASTER_PORT, /* INT 1-65535 */
    SETTING_SOCKET_IFNAME, /* STRING */
    SETTING_STORE_LISTEN, /* STRING, as SOCKET_IFNAME, or "*" */
    SETTING_JOB_SECRET, /* STRING, never shown */
    SETTING_JOB_SECRET_FILE, /* STRING, a path */
    SETTING_LAUNCHER, /* STRING "auto" */
    SETTING_HOST_ID, /* STRING */
    SETTING_LEVEL_INSIDE, /* STRING "shm" */
    SETTING_LEVEL_BETWEEN, /* STRING "auto" */
    SETTING_LEVEL_ANY_SOURCE, /* BOOL 1 */
    SETTING_LEVEL_SLICE, /* BYTES, unset: as the processors allow */
    SETTING_PROFILE, /* STRING, ignored in set-uid programs */
    SETTING_PROFILER_PLUGIN, /* STRING, ignored in set-uid programs */
    SETTING_DUMP, /* STRING, a folder */
    SETTING_DUMP_SIGNAL, /* ENUM none|hup|quit|usr1|usr2 */
    SETTING_RECORDER, /* STRING PID:FD, set by dscomm run */
    SETTING_COUNT
};

/* Row of a SETTING_* index; row 0 begins the table. */
const dscomm_setting_t *dscomm_priv_setting(int index);

/* Return a number, or a text, of the core's own table. A number that neither
 * environment nor default gives is -1. */
dscomm_status_t dscomm_priv_setting_number(int index, int64_t *ret_value);
const char *dscomm_priv_setting_text(int index);

/* Parses text as row says; the sentence names the variable, the value and what
 * is accepted. */
dscomm_status_t dscomm_priv_setting_parse(const dscomm_setting_t *row,
                                          const char *text, int64_t *ret_value);

/* Like the function above, but makes no sentence. Returns 0 and *ret_value, or
 * -1. */
int dscomm_priv_setting_try(const dscomm_setting_t *row, const char *text,
                            int64_t *ret_value);

/* The values that row accepts, as text: "1 to 65535", "caller or thread";
 * static. */
const char *dscomm_priv_setting_accepted(const dscomm_setting_t *row);

/* The type of row, without DSCOMM_SETTING_TUNABLE. */
dscomm_setting_type_t dscomm_priv_setting_type(const dscomm_setting_t *row);

/* The environment's value of row, or NULL. Paths are ignored in set-uid
 * programs. */
const char *dscomm_priv_setting_environment(const dscomm_setting_t *row);
/* The value of row in the environment or, if it may be tuned, in the tuning
 * file; NULL: it has none but the default. */
const char *dscomm_priv_setting_value(const dscomm_setting_t *row);
/* The tuning file that gives the value of row; NULL: none does. */
const char *dscomm_priv_setting_file(const dscomm_setting_t *row);

/* ERR_ENVIRONMENT with a sentence if a row of the core's table has an invalid
 * value in the environment. */
dscomm_status_t dscomm_priv_settings_validate(void);

/* Returns the setting whose name is most similar to name, or NULL if none is
 * similar. */
const char *dscomm_priv_setting_nearest(const char *name,
                                        const dscomm_setting_t *const *tables,
                                        size_t count);

/* Name of DSCOMM_* variable index = 0, 1, ... of those in environment that are
 * in no table; static. NULL beyond the last. */
const char *dscomm_priv_settings_unknown(char *const *environment,
                                         const dscomm_setting_t *const *tables,
                                         size_t count, size_t index);

/* Warns, once a process, about every DSCOMM_* variable that is in environ but
 * in no table, and suggests the most similar name. tables: the core's and the
 * loaded backends'. */
void dscomm_priv_settings_check(char *const *environment,
                                const dscomm_setting_t *const *tables,
                                size_t count);

/* Reads a decimal number without sign; blanks around it are allowed. Returns 0
 * and *ret_value, or -1. */
int dscomm_priv_parse_decimal(const char *text, int64_t *ret_value);

#endif
