/* SPDX-License-Identifier: BSD-3-Clause */
/* The public functions of libdscomm-net: which tables of a wire are refused,
 * and what a backend above a wire gets from the library. */
#include "tests/tap.h"

#include <dscomm/wire.h>

static int opens, secrets, sleeps;

static dscomm_status_t wire_open(const dscomm_wire_args_t *args,
                                 void **ret_wire)
{
    static const unsigned char zeros[32];

    (void)ret_wire;
    opens++;
    secrets += memcmp(args->secret, zeros, sizeof zeros) != 0;
    is_int((long long)args->size, sizeof *args, "the wire's arguments: size");
    is_int(args->rank * 100 + args->ranks, 1, "rank and number of ranks");
    is_int(args->timeout_ms, 1234, "deadline");
    return dscomm_fail(DSCOMM_ERR_IO, "no cable");
}

static void wire_close(void *wire)
{
    (void)wire;
}

static size_t wire_address(void *wire, void *buffer)
{
    (void)wire, (void)buffer;
    return 0;
}

static dscomm_status_t wire_connect(void *wire, int peer, const void *address,
                                    size_t bytes)
{
    (void)wire, (void)peer, (void)address, (void)bytes;
    return DSCOMM_OK;
}

static void wire_post(void *wire, int peer, dscomm_wire_frame_t *frame)
{
    (void)wire, (void)peer, (void)frame;
}

static size_t wire_unsent(void *wire)
{
    (void)wire;
    return 0;
}

static void wire_wait(void *wire, unsigned timeout_us)
{
    (void)wire, (void)timeout_us;
    sleeps++;
}

static const dscomm_wire_ops_t whole = {
    .size = sizeof whole,
    .name = "string",
    .open = wire_open,
    .close = wire_close,
    .address = wire_address,
    .connect = wire_connect,
    .post = wire_post,
    .poll = wire_close,
    .unsent = wire_unsent,
    .wait = wire_wait,
};

DSCOMM_WIRE_SLOTS(slots, whole);

static dscomm_store_t *store;

static dscomm_status_t world_open(const dscomm_wire_ops_t *wire)
{
    const int rank = 0;
    dscomm_backend_args_t args = {.size = sizeof args,
                                  .name = "world",
                                  .id = "world",
                                  .ranks = 1,
                                  .world_ranks = &rank,
                                  .store = store,
                                  .timeout_ms = 1234};
    void *impl;

    return dscomm_wire_open(wire, &args, &impl);
}

/* The table is refused, and the sentence has text. */
static void refused(const dscomm_wire_ops_t *wire, const char *text,
                    const char *what)
{
    const int before = opens;

    is_int(world_open(wire), DSCOMM_ERR_NO_BACKEND, "%s", what);
    ok(strstr(dscomm_last_error(), text) != NULL, "its sentence has '%s': %s",
       text, dscomm_last_error());
    is_int(opens, before, "the wire is not opened");
}

static void tables(void)
{
    dscomm_wire_ops_t wire = whole;

    wire.size = offsetof(dscomm_wire_ops_t, unsent);
    refused(&wire, "needs", "a table that is too short");
    wire.size = 0;
    refused(&wire, "has 0 bytes", "a table without its size");
    wire.size = (size_t)-1;
    refused(&wire, "this version's dscomm/wire.h",
            "a size that makes no sense");
#define LACKS(member)                                                          \
    wire = whole;                                                              \
    wire.member = NULL;                                                        \
    refused(&wire, "'" #member "'", "a wire without " #member);
    LACKS(open)
    LACKS(close)
    LACKS(address)
    LACKS(connect)
    LACKS(post)
    LACKS(poll)
    LACKS(unsent)
    wire = whole;
    wire.name = NULL;
    refused(&wire, "no name", "a wire without a name");
}

/* A wire's failure is that of the backend. */
static void opening(void)
{
    dscomm_wire_ops_t wire = whole;

    is_int(world_open(&whole), DSCOMM_ERR_IO, "a whole table reaches open");
    ok(strstr(dscomm_last_error(), "no cable") != NULL, "its sentence: %s",
       dscomm_last_error());
    is_int(opens, 1, "the wire was opened");
    is_int(secrets, 1, "with a secret");
    wire.size = offsetof(dscomm_wire_ops_t, wait);
    is_int(world_open(&wire), DSCOMM_ERR_IO,
           "so does one without the optional functions");
}

static dscomm_status_t open_slot(const dscomm_backend_args_t *args,
                                 void **ret_impl)
{
    (void)args, (void)ret_impl;
    return DSCOMM_OK;
}

static void tables_of_slots(void)
{
    union {
        dscomm_backend_ops_t ops;
        char bytes[2 * sizeof(dscomm_backend_ops_t)];
    } table;
    const size_t old = offsetof(dscomm_backend_ops_t, capabilities);
    size_t changed = 0;

    is_int((long long)slots.size, sizeof slots, "DSCOMM_WIRE_SLOTS: size");
    ok(slots.open && slots.close && slots.isend && slots.irecv &&
           slots.cancel && slots.progress && slots.revoke && slots.status,
       "the required slots are there");
    ok(slots.request_size >= sizeof(dscomm_request_t), "requests have room");
    memset(&table, 0x5a, sizeof table);
    dscomm_wire_slots(&table.ops, old, open_slot);
    is_int((long long)table.ops.size, (long long)old,
           "a module of an older table gets so much");
    ok(table.ops.open == open_slot, "its open");
    for (size_t i = old; i < sizeof table; i++)
        changed += table.bytes[i] != 0x5a;
    is_int((long long)changed, 0, "nothing is written beyond it");
    dscomm_wire_slots(&table.ops, sizeof table, open_slot);
    is_int((long long)table.ops.size, sizeof table.ops,
           "one of a newer table gets what the library knows");
}

int main(void)
{
    if (!is_int(dscomm_store_open("memory://", NULL, &store), DSCOMM_OK,
                "a store"))
        return tap_done();
    opening();
    tables();
    tables_of_slots();
    is_int(sleeps, 0, "nothing has slept");
    dscomm_store_close(store);
    return tap_done();
}
