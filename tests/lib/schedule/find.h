/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds an algorithm by its name, which must exist. */
#ifndef TESTS_LIB_FIND_H
#define TESTS_LIB_FIND_H

#include "lib/schedule/algorithm.h"

#include <string.h>

static inline const dscomm_algorithm_t *find_algorithm(int coll,
                                                       const char *name)
{
    const dscomm_algorithm_t *algorithm = dscomm_priv_algorithms;

    while (algorithm->coll != coll || strcmp(algorithm->name, name))
        algorithm++;
    return algorithm;
}

#endif
