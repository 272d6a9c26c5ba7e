/* SPDX-License-Identifier: BSD-3-Clause */
/* Backend modules: found, checked, loaded when first asked for, never
 * unloaded. */
#ifndef LIB_MODULE_H
#define LIB_MODULE_H

#include <dscomm/backend.h>
#include <dscomm/info.h>

typedef struct {
    const char *name; /* from the file's name */
    const char *path; /* NULL = built in */
    const dscomm_backend_t *backend; /* NULL where refused */
    dscomm_backend_ops_t ops; /* missing optional slots are NULL */
    const char *why; /* refused: the reason */
    int opened; /* for a group, at least once */
} dscomm_module_t;

/* The module named name, loaded; ERR_NO_BACKEND with the reason, or with the
 * names of those there are. */
dscomm_status_t dscomm_priv_module_find(const char *name,
                                        const dscomm_module_t **ret_module);

/* Module index = 0, 1, ..., loaded if it can be; NULL beyond the last. */
const dscomm_module_t *dscomm_priv_module_get(size_t index);

/* Called when a group of the module was opened: a library that the first group
 * has loaded, such as MPI, is pinned like the module. */
void dscomm_priv_module_opened(const dscomm_module_t *module);

/* The built-in backend for groups of one rank. */
const dscomm_module_t *dscomm_priv_module_self(void);

/* The built-in backend two_level, also found by the name hierarchical: the
 * backend that DSCOMM_TWO_LEVEL_BETWEEN names, between nodes on which shared
 * memory serves. The core's slots for it, set before it is opened. */
void dscomm_priv_module_set_levels(const dscomm_backend_ops_t *ops);

/* For the end of a sentence: "", or "; FOLDER cannot be read: ..." for each
 * folder of modules that could not be. */
const char *dscomm_priv_module_unreadable(void);

/* Settings table of module index = 0, 1, ..., modules without one left out;
 * NULL beyond the last. */
const dscomm_setting_t *dscomm_priv_backend_settings(size_t index);

#define DSCOMM_TABLES_MAX 64

/* The core's settings table and those of all modules, which are loaded for it;
 * returns how many there are. */
size_t dscomm_priv_setting_tables(
    const dscomm_setting_t *ret_tables[DSCOMM_TABLES_MAX]);

/* NULL if path is a complete shared object, else what is wrong (to be freed).
 */
char *dscomm_priv_check_shared_object(const char *path);

/* In a forked child: its lock is new. */
void dscomm_priv_module_forked(void);

#endif
