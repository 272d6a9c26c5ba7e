/* SPDX-License-Identifier: BSD-3-Clause */
/* Two ranks of this process, each with the wire ibverbs, on the device of
 * fake-verbs.h. Frames are freed when they were sent or dropped. */
#ifndef TESTS_BACKENDS_NET_VERBS_RANKS_H
#define TESTS_BACKENDS_NET_VERBS_RANKS_H

#include "backends/net/ibverbs/ibverbs.h"
#include "tests/backends/net/fake-verbs.h"
#include "tests/tap.h"

#define RANKS 3 /* the last one has no wire */
#define TIMEOUT_MS 400

extern const dscomm_wire_ops_t verbs_wire;

/* What is there of an engine. */
typedef struct {
    void *wire;
    int rank;
    unsigned opened, sent, dropped, lost, written, refused;
    size_t written_bytes;
    uint32_t last_tag;
    dscomm_failure_kind_t kind;
    char why[512];
    dscomm_wire_sink_t sink; /* of the frame that is arriving */
    GByteArray *received; /* payloads, one after the other */
    unsigned landed;
    unsigned char address[DSCOMM_WIRE_ADDRESS_MAX];
    size_t address_bytes;
} rank_t;

extern rank_t ranks[RANKS];

dscomm_status_t rank_open(int rank);
void rank_close(int rank);
void both_open(void);
dscomm_status_t connect_to(int rank, int peer);
/* Opens both, and connects them by an empty frame of rank 0. */
void both_connect(void);
void poll_both(unsigned times);

dscomm_wire_frame_t *frame_new(const void *data, size_t bytes);
void post(int rank, int peer, const void *data, size_t bytes);
/* Polls, at most for ms, until a number is at least so large. */
bool becomes(const unsigned *number, unsigned least, unsigned ms);

/* Closes both, and tests that nothing is left behind. The results are counted
 * by the file that calls it, see tap.h. */
static inline void both_close(const char *what)
{
    rank_close(0);
    rank_close(1);
    is_int(fake.objects, 0, "%s: nothing is left behind", what);
    is_int(fake.not_ready, 0, "%s: a slot was there for each part", what);
}

#endif
