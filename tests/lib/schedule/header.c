/* SPDX-License-Identifier: BSD-3-Clause */
/* Message headers: a written header is read again; headers of small calls are
 * short; a message that is too short has none. */
#include "config.h"

#include "lib/schedule/header.h"
#include "tests/tap.h"

#include <string.h>

static const struct {
    const char *name;
    dscomm_header_t header;
    size_t bytes;
} rows[] = {
    {"nothing", {0}, HEADER_PACKED},
    {"a small all_reduce",
     {0xfeedbeef, 2, 10, 0, 5, 0, 0x89abcdef, 2, 8},
     HEADER_PACKED},
    {"a barrier",
     {UINT32_MAX, 13, UINT8_MAX, -1, 40, -1, UINT32_MAX, 0, 0},
     HEADER_PACKED},
    {"the most that is packed",
     {1, 15, 14, 13, UINT8_MAX, 2046, 1, UINT16_MAX, UINT16_MAX},
     HEADER_PACKED},
    {"an operator of the program",
     {1, 1, 1, DSCOMM_OP_USER, 1, 1, 1, 1, 1},
     HEADER_PACKED},
    {"another count", {1, 1, 1, 1, 1, 1, 1, UINT16_MAX + 1, 1}, HEADER_WHOLE},
    {"more bytes", {1, 1, 1, 1, 1, 1, 1, 1, UINT16_MAX + 1}, HEADER_WHOLE},
    {"a far root", {1, 1, 1, 1, 1, 2047, 1, 1, 1}, HEADER_WHOLE},
    {"no such root", {1, 1, 1, 1, 1, -2, 1, 1, 1}, HEADER_WHOLE},
    {"no such dtype", {1, 1, 15, 1, 1, 1, 1, 1, 1}, HEADER_WHOLE},
    {"no such operator", {1, 1, 1, 14, 1, 1, 1, 1, 1}, HEADER_WHOLE},
    {"another operator", {1, 1, 1, -2, 1, 1, 1, 1, 1}, HEADER_WHOLE},
    {"no such collective", {1, 16, 1, 1, 1, 1, 1, 1, 1}, HEADER_WHOLE},
    {"the most of all",
     {UINT32_MAX, UINT8_MAX, UINT8_MAX, INT8_MAX, UINT8_MAX, INT32_MAX,
      UINT32_MAX, UINT64_MAX, UINT64_MAX},
     HEADER_WHOLE},
};

static int is_same(const dscomm_header_t *a, const dscomm_header_t *b)
{
    return a->fingerprint == b->fingerprint && a->coll == b->coll &&
           a->dtype == b->dtype && a->op == b->op &&
           a->algorithm == b->algorithm && a->root == b->root &&
           a->chain == b->chain && a->count == b->count && a->total == b->total;
}

int main(void)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        _Alignas(8) unsigned char message[HEADER_WHOLE + 1];
        dscomm_header_t got;
        size_t bytes = 0, left = 0;

        memset(message, 0xa5, sizeof message);
        memset(&got, 0x5a, sizeof got);
        bytes = dscomm_priv_header_put(message, &rows[i].header);
        is_int((int)bytes, (int)rows[i].bytes, "%s: bytes", rows[i].name);
        ok(message[bytes] == 0xa5, "%s: and none beyond", rows[i].name);
        left = dscomm_priv_header_get(message, bytes, &got);
        ok(left == bytes && is_same(&got, &rows[i].header), "%s: read again",
           rows[i].name);
        is_int((int)dscomm_priv_header_get(message, bytes - 1, &got), 0,
               "%s: too short", rows[i].name);
    }
    return tap_done();
}
