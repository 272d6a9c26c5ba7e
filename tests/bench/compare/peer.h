/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions that loop.c asks of a library. Each ends the process if it
 * fails. */
#ifndef TESTS_BENCH_COMPARE_PEER_H
#define TESTS_BENCH_COMPARE_PEER_H

#include <stddef.h>

void peer_open(int *ret_rank, int *ret_ranks);
void peer_close(void);
/* Memory that the library prefers, for as long as it is open. */
void *peer_alloc(size_t bytes);
void peer_free(void *memory);

void peer_barrier(void);
/* Sums float32; out may be in. */
void peer_all_reduce(const void *in, void *out, size_t count);
/* count: of a rank's result */
void peer_reduce_scatter(const void *in, void *out, size_t count);
/* bytes: of one rank's part */
void peer_all_gather(const void *in, void *out, size_t bytes);
void peer_all_to_all(const void *in, void *out, size_t bytes);
void peer_broadcast(void *data, size_t bytes, int root);
void peer_send(const void *data, size_t bytes, int to);
void peer_recv(void *data, size_t bytes, int from);

#endif
