/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether the tuning file can be used. */
#ifndef LIB_TUNING_CHECK_H
#define LIB_TUNING_CHECK_H

#include <dscomm/backend.h>

/* ERR_ENVIRONMENT, with the file, the cause and the remedy in the sentence, if
 * DSCOMM_TUNING_FILE names a file that cannot be used: it cannot be read, is
 * malformed, was made for another kind of machine, or has a key that is in none
 * of the tables, may not be tuned or has an invalid value. The tables are those
 * of the core and of all modules. MT: safe. */
dscomm_status_t dscomm_priv_tuning_check(const dscomm_setting_t *const *tables,
                                         size_t count);

#endif
