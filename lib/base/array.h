/* SPDX-License-Identifier: BSD-3-Clause */
/* Arrays that grow while a job runs. GLib's arrays abort the process if there
 * is no memory; these set bad. */
#ifndef LIB_ARRAY_H
#define LIB_ARRAY_H

#include <stdint.h>
#include <stdlib.h>

/* All zero: empty. */
typedef struct {
    void *data; /* free() */
    uint32_t len, room; /* elements */
    int bad; /* there was no memory for an element */
} dscomm_array_t;

/* Appends an element of size bytes and returns it uninitialised. If there is no
 * memory, sets bad and returns NULL. */
static inline void *dscomm_priv_array_add(dscomm_array_t *array, size_t size)
{
    if (array->len == array->room) {
        const size_t room = array->room ? 2 * (size_t)array->room : 8;
        void *data = room > UINT32_MAX / 2 || room > SIZE_MAX / size
                         ? NULL
                         : realloc(array->data, room * size);

        if (!data) {
            array->bad = 1;
            return NULL;
        }
        array->data = data;
        array->room = (uint32_t)room;
    }
    return (char *)array->data + size * array->len++;
}

static inline void dscomm_priv_array_clear(dscomm_array_t *array)
{
    free(array->data);
    *array = (dscomm_array_t){0};
}

#endif
