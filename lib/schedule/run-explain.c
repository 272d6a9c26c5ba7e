/* SPDX-License-Identifier: BSD-3-Clause */
/* Descriptions of what a run waits for. */
#include "config.h"
#include "lib/base/status.h"
#include "lib/schedule/algorithm.h"
#include "lib/schedule/run.h"

#include <stdio.h>
#include <string.h>

/* 1 if a message of that kind with peer is under way. */
static int waits_for(const dscomm_run_t *run, int kind, int peer)
{
    for (uint32_t i = 0; i < run->nmessages; i++)
        if (run->messages[i].step->kind == kind &&
            run->messages[i].step->peer == peer)
            return 1;
    return 0;
}

int dscomm_priv_run_awaited(const dscomm_run_t *run)
{
    int peer = -1;

    for (uint32_t i = 0; i < run->nmessages; i++) {
        if (peer >= 0 && run->messages[i].step->peer != peer)
            return -1;
        peer = run->messages[i].step->peer;
    }
    return peer;
}

int dscomm_priv_run_describe_peer(const dscomm_run_t *run, char *text,
                                  size_t size)
{
    const dscomm_port_t *port = &run->port;
    const int peer = dscomm_priv_run_awaited(run);

    *text = '\0';
    if (peer < 0 || !port->ops->explain)
        return -1;
    port->ops->explain(port->impl, run->messages[0].request, text, size);
    return peer;
}

/* Writes " from ranks 1, 3", each rank once; nothing if there are none. */
static void list_peers(const dscomm_run_t *run, int kind,
                       char text[DSCOMM_ERROR_MAX])
{
    int count = 0;
    size_t used;

    *text = '\0';
    for (int r = 0; r < run->schedule->ranks; r++)
        count += waits_for(run, kind, r);
    if (count)
        snprintf(text, DSCOMM_ERROR_MAX, " %s rank%s",
                 kind == STEP_SEND ? "to" : "from", count > 1 ? "s" : "");
    for (int r = 0; r < run->schedule->ranks; r++) {
        used = strlen(text);
        if (waits_for(run, kind, r))
            snprintf(text + used, DSCOMM_ERROR_MAX - used, " %d%s", r,
                     --count ? "," : "");
    }
}

void dscomm_priv_run_explain(const dscomm_run_t *run, char *text, size_t size)
{
    char received[DSCOMM_ERROR_MAX], sent[DSCOMM_ERROR_MAX];

    list_peers(run, STEP_RECV, received);
    list_peers(run, STEP_SEND, sent);
    snprintf(text, size, "by %s, it waits for messages%s%s%s",
             run->schedule->algorithm->name, received,
             *received && *sent ? " and" : "", sent);
}
