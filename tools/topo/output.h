/* SPDX-License-Identifier: BSD-3-Clause */
/* The output of `dscomm topo`: to a file or not, and in which format. */
#ifndef TOOLS_TOPO_OUTPUT_H
#define TOOLS_TOPO_OUTPUT_H

#include <stdbool.h>

/* Trees have all of these, pairs only those before TOPO_FORMATS_PAIRS. */
typedef enum {
    TOPO_FORMAT_TEXT,
    TOPO_FORMAT_JSON,
    TOPO_FORMATS_PAIRS,
    TOPO_FORMAT_DOT = TOPO_FORMATS_PAIRS,
    TOPO_FORMAT_NCCL,
    TOPO_FORMAT_PICTURE, /* chosen by the end of a file's name only */
    TOPO_FORMATS
} topo_format_t;

/* Finds the format by its name; or, if name is NULL, by the end of path: text
 * if no other one has this end, or path is NULL. TOPO_FORMATS: there is no
 * format of that name, or path is that of a picture of another kind. */
topo_format_t topo_format_find(const char *name, const char *path);

/* Writes text to a file, or to standard output if path is NULL. Returns the
 * exit status; a sentence about a failure begins with the command and option.
 */
int topo_output_write(const char *command, const char *option, const char *path,
                      const char *text);

#endif
