/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions that exchange.c asks of a library. Each ends the process if it
 * fails. */
#ifndef TESTS_BENCH_HOSTS_EXCHANGE_H
#define TESTS_BENCH_HOSTS_EXCHANGE_H

#include <stddef.h>

void peer_open(int *ret_rank, int *ret_ranks);
void peer_close(void);
/* Messages between ranks 0 and 1. */
void peer_send(const char *data, size_t bytes);
void peer_recv(char *data, size_t bytes);
/* Rank 0 sends rank 1 the data so many times. */
void peer_stream(int rank, char *data, size_t bytes, int times);
/* Sums float32. */
void peer_all_reduce(const float *in, float *out, size_t count);

#endif
