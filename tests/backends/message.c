/* SPDX-License-Identifier: BSD-3-Clause */
/* One message, from filling its buffer to checking what was received. */
#include "config.h"

#include "tests/backends/conform.h"

#include <stdio.h>
#include <string.h>

static int begin(message_t *l, int receives)
{
    l->receives = receives;
    l->work = NULL;
    if (!area_make(&l->area, l->bytes, l->seed % 3, NULL))
        return 0;
    if (receives) {
        pattern_bytes(area_expect(&l->area, 0), 1, l->seed, 0, l->bytes);
    } else {
        pattern_bytes(l->area.data, 1, l->seed, 0, l->bytes);
        area_keep(&l->area);
    }
    return 1;
}

static void finish(message_t *l)
{
    char what[128];

    snprintf(what, sizeof what, "%s rank %d tag %d of %zu bytes",
             l->receives ? "message from" : "buffer of message to", l->peer,
             l->tag, l->bytes);
    area_check(&l->area, what);
    area_drop(&l->area);
}

static void check_origin(const message_t *l, int source, size_t bytes)
{
    check(l->peer < 0 || source == l->peer, "source is %d, want %d", source,
          l->peer);
    check(bytes == l->bytes, "message has %zu bytes, want %zu", bytes,
          l->bytes);
}

void message_isend(message_t *l)
{
    if (begin(l, 0))
        CHECK_OK(dscomm_isend(l->group, l->area.data, l->bytes, DSCOMM_UINT8,
                              l->peer, l->tag, &l->work));
}

void message_irecv(message_t *l)
{
    if (begin(l, 1))
        CHECK_OK(dscomm_irecv(l->group, l->area.data, l->bytes, DSCOMM_UINT8,
                              l->peer, l->tag, &l->work));
}

void message_end(message_t *l)
{
    int source = -2, tag = -2;
    size_t bytes = (size_t)-1;

    if (l->work)
        CHECK_OK(dscomm_work_wait(l->work, DSCOMM_TIMEOUT_DEFAULT));
    if (l->work && l->receives &&
        CHECK_OK(dscomm_work_received(l->work, &source, &tag, &bytes))) {
        check_origin(l, source, bytes);
        check(l->tag < 0 || tag == l->tag, "tag is %d, want %d", tag, l->tag);
    }
    dscomm_work_free(l->work);
    l->work = NULL;
    finish(l);
}

void message_send(message_t *l)
{
    if (begin(l, 0))
        CHECK_OK(dscomm_send(l->group, l->area.data, l->bytes, DSCOMM_UINT8,
                             l->peer, l->tag));
    finish(l);
}

void message_recv(message_t *l)
{
    int source = -2;
    size_t bytes = (size_t)-1;

    if (begin(l, 1) &&
        CHECK_OK(dscomm_recv(l->group, l->area.data, l->bytes, DSCOMM_UINT8,
                             l->peer, l->tag, &source, &bytes)))
        check_origin(l, source, bytes);
    finish(l);
}
