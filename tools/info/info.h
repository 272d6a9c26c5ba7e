/* SPDX-License-Identifier: BSD-3-Clause */
/* The parts of `dscomm info`. */
#ifndef TOOLS_INFO_H
#define TOOLS_INFO_H

#include <dscomm/info.h>
#include <glib.h>

typedef struct {
    gboolean build, backends, codecs, settings;
    int ranks; /* to show algorithms for; 0: not to */
    int nodes; /* that the ranks are on */
} tool_info_parts_t;

/* Whether DSCOMM_ALGORITHM is valid; if not, see dscomm_last_error(). */
gboolean tool_info_algorithms_known(void);
/* Whether an algorithm can be used with that many ranks on that many nodes. */
gboolean tool_info_fits(const dscomm_algorithm_info_t *info, int ranks,
                        int nodes);
/* The note, or NULL. */
const char *tool_info_algorithm_setting(void);
gboolean tool_info_reduces(dscomm_coll_t coll);

void tool_info_print_algorithms(int ranks, int nodes);

/* One JSON object with a member for each part, to stdout. */
void tool_info_print_json(const tool_info_parts_t *parts);

#endif
