/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations as text. */
#include "config.h"

#include "tests/tap.h"

#include <dscomm/backend.h>

static const struct {
    dscomm_coll_args_t args;
    const char *text;
} cases[] = {
    {{.coll = DSCOMM_COLL_ALL_REDUCE,
      .dtype = DSCOMM_FLOAT32,
      .op = DSCOMM_SUM,
      .root = -1,
      .count = 5,
      .sequence = 17},
     "all_reduce(count 5, float32, sum) #17"},
    {{.coll = DSCOMM_COLL_REDUCE,
      .dtype = DSCOMM_INT8,
      .op = DSCOMM_MAX,
      .root = 0,
      .count = 0,
      .sequence = 1},
     "reduce(count 0, int8, max, root 0) #1"},
    {{.coll = DSCOMM_COLL_BARRIER, .op = -1, .root = -1, .sequence = 9},
     "barrier() #9"},
    {{.coll = DSCOMM_COLL_BARRIER,
      .op = -1,
      .root = DSCOMM_ROOT_FINALIZE,
      .sequence = 9},
     "dscomm_finalize() #9"},
    {{.coll = DSCOMM_COLL_ALL_GATHER,
      .dtype = DSCOMM_UINT8,
      .op = -1,
      .root = DSCOMM_ROOT_GROUP_NEW,
      .count = 8,
      .sequence = 2},
     "dscomm_group_new() #2"},
    {{.coll = DSCOMM_COLL_ALL_GATHER,
      .op = -1,
      .root = DSCOMM_ROOT_GROUP_SPLIT,
      .sequence = 3},
     "dscomm_group_split() #3"},
    {{.coll = DSCOMM_COLL_ALL_GATHER,
      .op = -1,
      .root = DSCOMM_ROOT_GROUP_MESH,
      .sequence = 4},
     "dscomm_group_mesh() #4"},
    {{.coll = DSCOMM_COLL_GATHER_V,
      .dtype = DSCOMM_BOOL,
      .op = -1,
      .root = 3,
      .count = 2,
      .sequence = 4},
     "gather_v(own count 2, bool, root 3) #4"},
    {{.coll = DSCOMM_COLL_ALL_TO_ALL_V,
      .dtype = DSCOMM_INT32,
      .op = -1,
      .root = -1,
      .count = 7,
      .sequence = 5},
     "all_to_all_v(own count 7, int32) #5"},
};

int main(void)
{
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[160];

        is_str(dscomm_coll_describe(&cases[i].args, text, sizeof text),
               cases[i].text, "case %d", (int)i);
    }
    return tap_done();
}
