/* SPDX-License-Identifier: BSD-3-Clause */
/* See layout.h. */
#include "config.h"

#include "lib/schedule/layout.h"

#include <stdlib.h>

static void layout_count(dscomm_layout_t *layout, const dscomm_nodes_t *nodes)
{
    for (int r = 0; r < layout->ranks; r++) {
        const int node = nodes ? nodes->node[r] : 0;

        layout->node[r] = node;
        layout->local[r] = layout->size[node]++;
    }
    for (int n = 1; n < layout->nodes; n++) {
        layout->first[n] = layout->first[n - 1] + layout->size[n - 1];
        layout->even &= layout->size[n] == layout->size[0];
    }
    for (int r = 0; r < layout->ranks; r++) {
        const int at = layout->first[layout->node[r]] + layout->local[r];

        layout->order[at] = r;
        layout->sorted &= at == r;
    }
}

bool dscomm_priv_layout_init(const dscomm_nodes_t *nodes, int ranks,
                             dscomm_layout_t *ret_layout)
{
    const size_t count = (size_t)ranks;
    int *numbers = calloc(5 * count, sizeof(int));
    size_t *sizes = calloc(2 * count, sizeof(size_t));

    *ret_layout = (dscomm_layout_t){
        .ranks = ranks,
        .nodes = nodes ? nodes->count : 1,
        .node = numbers,
        .counts = sizes,
        .even = true,
        .sorted = true,
    };
    if (!numbers || !sizes)
        return false;
    ret_layout->local = numbers + count;
    ret_layout->order = numbers + 2 * count;
    ret_layout->size = numbers + 3 * count;
    ret_layout->first = numbers + 4 * count;
    ret_layout->displs = sizes + count;
    layout_count(ret_layout, nodes);
    return true;
}

void dscomm_priv_layout_clear(dscomm_layout_t *layout)
{
    free(layout->node);
    free(layout->counts);
    layout->node = NULL;
    layout->counts = NULL;
}
