/* SPDX-License-Identifier: BSD-3-Clause */
/* The collectives: names and shapes. A file of its own, because programs have
 * an object of it beside the library. */
#include "config.h"

#include "lib/base/types.h"

const dscomm_priv_coll_t dscomm_priv_colls[DSCOMM_COLL_COUNT + 1] = {
    [DSCOMM_COLL_BROADCAST] = {"broadcast", SHAPE_OWN, SHAPE_OWN, ROOTED_BUFFER,
                               0},
    [DSCOMM_COLL_REDUCE] = {"reduce", SHAPE_OWN, SHAPE_OWN, ROOTED_RECV, 1},
    [DSCOMM_COLL_ALL_REDUCE] = {"all_reduce", SHAPE_OWN, SHAPE_OWN, ROOTED_NOT,
                                1},
    [DSCOMM_COLL_ALL_GATHER] = {"all_gather", SHAPE_OWN, SHAPE_ALL, ROOTED_NOT,
                                0},
    [DSCOMM_COLL_ALL_GATHER_V] = {"all_gather_v", SHAPE_OWN, SHAPE_COUNTS,
                                  ROOTED_NOT, 0},
    [DSCOMM_COLL_REDUCE_SCATTER] = {"reduce_scatter", SHAPE_ALL, SHAPE_OWN,
                                    ROOTED_NOT, 1},
    [DSCOMM_COLL_REDUCE_SCATTER_V] = {"reduce_scatter_v", SHAPE_COUNTS,
                                      SHAPE_OWN, ROOTED_NOT, 1},
    [DSCOMM_COLL_GATHER] = {"gather", SHAPE_OWN, SHAPE_ALL, ROOTED_RECV, 0},
    [DSCOMM_COLL_GATHER_V] = {"gather_v", SHAPE_OWN, SHAPE_COUNTS, ROOTED_RECV,
                              0},
    [DSCOMM_COLL_SCATTER] = {"scatter", SHAPE_ALL, SHAPE_OWN, ROOTED_SEND, 0},
    [DSCOMM_COLL_SCATTER_V] = {"scatter_v", SHAPE_COUNTS, SHAPE_OWN,
                               ROOTED_SEND, 0},
    [DSCOMM_COLL_ALL_TO_ALL] = {"all_to_all", SHAPE_ALL, SHAPE_ALL, ROOTED_NOT,
                                0},
    [DSCOMM_COLL_ALL_TO_ALL_V] = {"all_to_all_v", SHAPE_COUNTS, SHAPE_COUNTS,
                                  ROOTED_NOT, 0},
    [DSCOMM_COLL_BARRIER] = {.name = "barrier"},
    [DSCOMM_COLL_SEND] = {.name = "send"},
    [DSCOMM_COLL_RECV] = {.name = "recv"},
    [DSCOMM_COLL_COUNT] = {.name = "invalid"},
};
