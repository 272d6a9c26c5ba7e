/* SPDX-License-Identifier: BSD-3-Clause */
/* How often the nodes of a job query their store. */
#include "config.h"

#include "tests/tap.h"
#include "tools/run/nodes.h"

/* Requests a second at the store of node 0: each node checks for the end and
 * for a restart, and sends heartbeats; node 0 reads all heartbeats. */
static double requests(int nodes, gint64 silence_us)
{
    const double tick = (double)tool_nodes_tick_us(nodes) / G_USEC_PER_SEC;
    const double beat =
        (double)tool_nodes_beat_us(nodes, silence_us) / G_USEC_PER_SEC;

    return nodes * (2 / tick + 2 / beat);
}

int main(void)
{
    static const int counts[] = {2, 100, 128, 500, 1000, 2000, TOOL_NODES_MAX};
    const gint64 silence = 10 * G_USEC_PER_SEC;

    is_int(tool_nodes_tick_us(2), G_USEC_PER_SEC / 10, "few nodes look often");
    is_int(tool_nodes_beat_us(2, silence), G_USEC_PER_SEC / 2, "and beat so");
    for (size_t i = 0; i < G_N_ELEMENTS(counts); i++) {
        const int nodes = counts[i];

        ok(requests(nodes, silence) <= 12000,
           "%d nodes: %.0f requests a second", nodes, requests(nodes, silence));
        ok(tool_nodes_tick_us(nodes) <= G_USEC_PER_SEC, "%d nodes hear soon",
           nodes);
        ok(4 * tool_nodes_beat_us(nodes, silence) <= silence,
           "%d nodes beat several times before they are lost", nodes);
    }
    is_int(tool_nodes_beat_us(4096, G_USEC_PER_SEC), G_USEC_PER_SEC / 2,
           "but no more often than few do");
    return tap_done();
}
