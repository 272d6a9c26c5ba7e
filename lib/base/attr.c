/* SPDX-License-Identifier: BSD-3-Clause */
/* See attr.h. */
#include "config.h"
#include "lib/base/attr.h"

#include <glib.h>
#include <stdbool.h>
#include <string.h>

/* Upper limit of the sizes of all structures. A larger value shows that size
 * was not initialised. */
#define SIZE_MOST 4096

static bool attr_has_size(size_t size)
{
    return size >= sizeof size && size <= SIZE_MOST;
}

static dscomm_status_t size_refuse(const char *what, const char *remedy,
                                   size_t size)
{
    return dscomm_fail(DSCOMM_ERR_INVALID, "%s.size is %zu; %s", what, size,
                       remedy);
}

dscomm_status_t dscomm_priv_attr_read(const char *what, const char *remedy,
                                      const void *attr, size_t size,
                                      void *ret_attr)
{
    const unsigned char *bytes = attr;
    size_t theirs;

    if (!attr)
        return DSCOMM_OK;
    memcpy(&theirs, attr, sizeof theirs);
    if (!attr_has_size(theirs))
        return size_refuse(what, remedy, theirs);
    for (size_t i = size; i < theirs; i++)
        if (bytes[i])
            return dscomm_fail(DSCOMM_ERR_INVALID,
                               "%s has members that this libdscomm does not "
                               "know (byte %zu is set); leave them zero",
                               what, i);
    memcpy(ret_attr, attr, MIN(theirs, size));
    return DSCOMM_OK;
}

dscomm_status_t dscomm_priv_table_read(const char *what, const char *remedy,
                                       const void *table, size_t size,
                                       void *ret_table)
{
    size_t theirs = 0;

    if (table)
        memcpy(&theirs, table, sizeof theirs);
    if (theirs % sizeof(void *))
        return size_refuse(what, remedy, theirs);
    return dscomm_priv_attr_read(what, remedy, table, size, ret_table);
}

dscomm_status_t dscomm_priv_attr_init(const char *name, void *attr, size_t size)
{
    if (!attr || !attr_has_size(size))
        return dscomm_fail(DSCOMM_ERR_INVALID,
                           "%s: attr is %p and size %zu; give a structure and "
                           "its size",
                           name, attr, size);
    memset(attr, 0, size);
    memcpy(attr, &size, sizeof size);
    return DSCOMM_OK;
}

dscomm_status_t dscomm_priv_info_check(const char *name, const char *argument,
                                       const size_t *size)
{
    if (size && attr_has_size(*size))
        return DSCOMM_OK;
    return dscomm_fail(DSCOMM_ERR_INVALID,
                       "%s: %s must not be NULL, and its size must be that of "
                       "the structure",
                       name, argument);
}

void dscomm_priv_info_copy(const void *from, size_t known, void *info)
{
    const size_t head = sizeof known, size = *(size_t *)info;

    known = MIN(size, known);
    memcpy((char *)info + head, (const char *)from + head, known - head);
    memset((char *)info + known, 0, size - known);
}
