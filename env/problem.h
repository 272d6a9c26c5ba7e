/* SPDX-License-Identifier: BSD-3-Clause */
/* What is wrong with a text, and where. */
#ifndef ENV_PROBLEM_H
#define ENV_PROBLEM_H

#include <stddef.h>

typedef struct {
    const char *what; /* static; NULL: nothing is wrong */
    size_t at; /* byte, from 0 */
} env_problem_t;

#endif
