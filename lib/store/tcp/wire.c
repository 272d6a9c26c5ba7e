/* SPDX-License-Identifier: BSD-3-Clause */
/* Writing requests and answers, and scanning a request for its end. */
#include "config.h"

#include "lib/store/tcp/wire.h"

#include "lib/base/random.h"
#include "lib/store/store.h"

#include <stdbool.h>
#include <string.h>

#define SPANS_KEPT 1024 /* a request with more frees the memory */

/* The fields after a command byte: m magic, u 32 bits, i 64 bits, k key, v
 * value, o a nonce or a client's identifier, p a proof, r a rank; n is a count,
 * and the fields after it repeat that often. NULL: no such command. */
static const char *const layouts[WIRE_COMMANDS] = {
    [WIRE_VALIDATE] = "m",      [WIRE_SET] = "kv",
    [WIRE_COMPARE_SET] = "kvv", [WIRE_GET] = "k",
    [WIRE_ADD] = "ki",          [WIRE_CHECK] = "nk",
    [WIRE_WAIT] = "nk",         [WIRE_GETNUMKEYS] = "",
    [WIRE_DELETE_KEY] = "k",    [WIRE_APPEND] = "kv",
    [WIRE_MULTI_GET] = "nk",    [WIRE_MULTI_SET] = "nkv",
    [WIRE_CANCEL_WAIT] = "",    [WIRE_PING] = "u",
    [WIRE_QUEUE_PUSH] = "kv",   [WIRE_QUEUE_POP] = "k",
    [WIRE_QUEUE_LEN] = "k",     [WIRE_LIST_KEYS] = "",
    [WIRE_BARRIER] = "ki",      [WIRE_CHALLENGE] = "o",
    [WIRE_PROOF] = "p",         [WIRE_WILL] = "okv",
    [WIRE_CREDENTIAL] = "",     [WIRE_REFUSED] = "r",
};

void dscomm_priv_buffer_clear(dscomm_priv_buffer_t *buffer)
{
    g_free(buffer->data);
    memset(buffer, 0, sizeof *buffer);
}

bool dscomm_priv_buffer_reserve(dscomm_priv_buffer_t *buffer, size_t more)
{
    size_t room = MAX(buffer->room, 256);
    uint8_t *data;

    if (buffer->bad)
        return false;
    if (buffer->room - buffer->size >= more)
        return true;
    while (room - buffer->size < more)
        room *= 2;
    data = g_try_realloc(buffer->data, room);
    if (!data) {
        buffer->bad = true;
        return false;
    }
    buffer->data = data;
    buffer->room = room;
    return true;
}

void dscomm_priv_buffer_put(dscomm_priv_buffer_t *buffer, const void *data,
                            size_t size)
{
    if (!size || !dscomm_priv_buffer_reserve(buffer, size))
        return;
    memcpy(buffer->data + buffer->size, data, size);
    buffer->size += size;
}

void dscomm_priv_put_u8(dscomm_priv_buffer_t *buffer, uint8_t value)
{
    dscomm_priv_buffer_put(buffer, &value, sizeof value);
}

void dscomm_priv_put_u32(dscomm_priv_buffer_t *buffer, uint32_t value)
{
    dscomm_priv_buffer_put(buffer, &value, sizeof value);
}

void dscomm_priv_put_u64(dscomm_priv_buffer_t *buffer, uint64_t value)
{
    dscomm_priv_buffer_put(buffer, &value, sizeof value);
}

void dscomm_priv_put_bytes(dscomm_priv_buffer_t *buffer, const void *data,
                           size_t size)
{
    dscomm_priv_put_u64(buffer, size);
    dscomm_priv_buffer_put(buffer, data, size);
}

void dscomm_priv_put_key(dscomm_priv_buffer_t *buffer, const char *key)
{
    dscomm_priv_put_bytes(buffer, key, strlen(key));
}

void dscomm_priv_put_keys(dscomm_priv_buffer_t *request, int command,
                          const char *const *keys, size_t count)
{
    dscomm_priv_put_u8(request, (uint8_t)command);
    dscomm_priv_put_u64(request, count);
    for (size_t i = 0; i < count; i++)
        dscomm_priv_put_key(request, keys[i]);
}

void dscomm_priv_wire_name(uint8_t *name, uint8_t named)
{
    if (!dscomm_priv_random(name, WIRE_NAME_SIZE))
        for (size_t i = 0; i < WIRE_NAME_SIZE; i++)
            name[i] = (uint8_t)g_random_int();
    name[0] = named;
}

void dscomm_priv_scan_init(dscomm_priv_scan_t *scan)
{
    memset(scan, 0, sizeof *scan);
    scan->command = -1;
}

void dscomm_priv_scan_clear(dscomm_priv_scan_t *scan)
{
    dscomm_priv_array_clear(&scan->spans);
}

void dscomm_priv_scan_next(dscomm_priv_scan_t *scan)
{
    dscomm_array_t spans = scan->spans;

    if (spans.len > SPANS_KEPT)
        dscomm_priv_array_clear(&spans);
    spans.len = 0;
    dscomm_priv_scan_init(scan);
    scan->spans = spans;
}

static dscomm_priv_scan_result_t scan_bad(dscomm_priv_scan_t *scan,
                                          const char *problem)
{
    scan->problem = problem;
    return SCAN_BAD;
}

/* Takes the next size bytes as one span. */
static dscomm_priv_scan_result_t scan_take(dscomm_priv_scan_t *scan,
                                           size_t available, size_t size)
{
    dscomm_priv_span_t *span;

    if (available < size)
        return SCAN_MORE;
    span = dscomm_priv_array_add(&scan->spans, sizeof *span);
    if (!span)
        return scan_bad(scan, "no memory for its request");
    *span = (dscomm_priv_span_t){scan->end, size};
    scan->end += size;
    return SCAN_DONE;
}

static dscomm_priv_scan_result_t
scan_count(dscomm_priv_scan_t *scan, const uint8_t *data, size_t available)
{
    if (available < sizeof scan->left)
        return SCAN_MORE;
    memcpy(&scan->left, data + scan->end, sizeof scan->left);
    if (scan->left > WIRE_KEYS_MAX)
        return scan_bad(scan, "more keys than a request may have");
    scan->loop = scan->field + 1;
    scan->end += sizeof scan->left;
    return SCAN_DONE;
}

static dscomm_priv_scan_result_t scan_bytes(dscomm_priv_scan_t *scan,
                                            const uint8_t *data,
                                            size_t available, uint64_t most)
{
    dscomm_priv_scan_result_t result;
    uint64_t size;

    if (!scan->want) {
        if (available < sizeof size)
            return SCAN_MORE;
        memcpy(&size, data + scan->end, sizeof size);
        if (size > most)
            return scan_bad(scan, "a key or value beyond its limit");
        if (scan->end + size > WIRE_FRAME_MAX)
            return scan_bad(scan, "a request beyond its limit");
        scan->end += sizeof size;
        available -= sizeof size;
        scan->want = scan->end + size;
    }
    result = scan_take(scan, available, scan->want - scan->end);
    if (result == SCAN_DONE)
        scan->want = 0;
    return result;
}

static dscomm_priv_scan_result_t
scan_field(dscomm_priv_scan_t *scan, const uint8_t *data, size_t available)
{
    static const size_t sizes[128] = {
        ['m'] = sizeof(uint32_t),  ['u'] = sizeof(uint32_t),
        ['i'] = sizeof(int64_t),   ['o'] = SECRET_NONCE_SIZE,
        ['p'] = SECRET_PROOF_SIZE, ['r'] = sizeof(dscomm_priv_rank_t),
    };
    const uint32_t magic = WIRE_MAGIC;
    const char field = *scan->field;

    /* a wrong magic shows at its first wrong byte */
    if (field == 'm' &&
        memcmp(data + scan->end, &magic, MIN(available, sizeof magic)) != 0)
        return scan_bad(scan, "no magic number of TCPStore");
    if (sizes[(uint8_t)field])
        return scan_take(scan, available, sizes[(uint8_t)field]);
    if (field == 'n')
        return scan_count(scan, data, available);
    return scan_bytes(scan, data, available,
                      field == 'k' ? WHOLE_KEY_MAX : DSCOMM_STORE_VALUE_MAX);
}

dscomm_priv_scan_result_t dscomm_priv_scan(dscomm_priv_scan_t *scan,
                                           const uint8_t *data, size_t size)
{
    dscomm_priv_scan_result_t result;

    if (scan->command < 0) {
        if (!size)
            return SCAN_MORE;
        if (data[0] >= WIRE_COMMANDS || !layouts[data[0]])
            return scan_bad(scan, "an unknown command");
        scan->command = data[0];
        scan->end = 1;
        scan->field = layouts[scan->command];
    }
    for (;;) {
        if (scan->loop && !*scan->field && --scan->left)
            scan->field = scan->loop;
        if (!*scan->field || (scan->loop == scan->field && !scan->left))
            return SCAN_DONE;
        result = scan_field(scan, data, size - scan->end);
        if (result != SCAN_DONE)
            return result;
        scan->field++;
    }
}
