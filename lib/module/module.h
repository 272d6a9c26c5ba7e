/* SPDX-License-Identifier: BSD-3-Clause */
/* Backend modules: found, checked, loaded at first use, and never unloaded. */
#ifndef LIB_MODULE_H
#define LIB_MODULE_H

#include <dscomm/backend.h>
#include <dscomm/info.h>
#include <stdbool.h>

typedef struct {
    const char *name; /* from the file's name */
    const char *path; /* NULL = built in */
    const dscomm_backend_t *backend; /* NULL where refused */
    dscomm_backend_ops_t ops; /* missing optional slots are NULL */
    const char *why; /* refused: the reason */
    int opened; /* a group of the module was opened */
} dscomm_module_t;

/* Returns the module named name, loaded. ERR_NO_BACKEND with the reason, or
 * with the names of the existing modules. */
dscomm_status_t dscomm_priv_module_find(const char *name,
                                        const dscomm_module_t **ret_module);

/* Returns module index = 0, 1, ..., loaded if possible; NULL after the last. */
const dscomm_module_t *dscomm_priv_module_get(size_t index);

/* Lets ops, a copy of the module's slots, adapt to impl. Fails if a required
 * slot is empty afterwards. */
dscomm_status_t dscomm_priv_module_trim(const dscomm_module_t *module,
                                        void *impl, dscomm_backend_ops_t *ops);

/* Called when a group of the module was opened. A library that the first group
 * has loaded, such as MPI, then stays loaded as the module does. */
void dscomm_priv_module_opened(const dscomm_module_t *module);

/* The built-in backend for groups of one rank. */
const dscomm_module_t *dscomm_priv_module_self(void);

/* True for the names of two_level, and for "auto", which may choose it. */
bool dscomm_priv_has_levels(const char *backend);

/* Sets the slots of the built-in backend two_level, which is also found by the
 * name hierarchical. It uses shared memory inside nodes and the backend that
 * DSCOMM_TWO_LEVEL_BETWEEN names between them. Called before two_level is
 * opened. */
void dscomm_priv_module_set_levels(const dscomm_backend_ops_t *ops);

/* Text for the end of a sentence: "", or "; FOLDER cannot be read: ..." for
 * each such folder of modules. */
const char *dscomm_priv_module_unreadable(void);

/* Returns the settings table of the module with number index = 0, 1, ... among
 * those that have one; NULL after the last. */
const dscomm_setting_t *dscomm_priv_backend_settings(size_t index);

#define DSCOMM_TABLES_MAX 64

/* Lists the core's settings table and those of all modules, which are loaded
 * for this. Returns the number of tables. */
size_t dscomm_priv_setting_tables(
    const dscomm_setting_t *ret_tables[DSCOMM_TABLES_MAX]);

/* Returns NULL if path is a complete shared object, else what is wrong (to be
 * freed). */
char *dscomm_priv_check_shared_object(const char *path);

/* Checks that a loaded object uses the libdscomm that loads it: another one in
 * the process, or one linked statically into the program, does not know this
 * one's groups. Returns NULL, or what is wrong (to be freed). */
char *dscomm_priv_module_check_library(void *handle);

/* In a forked child: initialises the lock. */
void dscomm_priv_module_forked(void);

#endif
