/* SPDX-License-Identifier: BSD-3-Clause */
/* Costs of an operation by its algorithm: messages that follow each other,
 * and bytes between ranks and through memory. Nothing is measured here. */
#ifndef TOOLS_PERF_TRAFFIC_H
#define TOOLS_PERF_TRAFFIC_H

#include "tools/perf/perf.h"

#include <stdbool.h>

/* NAN: not known. */
typedef struct {
    /* messages that follow each other, on one rank or from rank to rank */
    double steps;
    double wire; /* bytes that a rank sends to other ranks, mean over ranks */
    /* bytes that the rank with most of them sends, or receives if that is more,
     * summed over the phases of the algorithm */
    double busiest;
    double memory; /* bytes that a rank reads and writes, mean over ranks */
    /* the same of the rank with most of them, summed over the two calls of a
     * sequence */
    double most;
    /* the algorithm is not known: the least that the operation needs */
    bool bound;
} perf_traffic_t;

/* Returns the cost of a call of ranks ranks whose row has so many bytes, by an
 * algorithm as perf_algorithm() names it, with natives from there; or natives
 * is NULL. */
perf_traffic_t perf_traffic(const perf_operation_t *operation,
                            const char *algorithm, int ranks, size_t bytes,
                            perf_place_t place,
                            const dscomm_native_info_t *natives);

#endif
