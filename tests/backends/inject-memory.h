/* SPDX-License-Identifier: BSD-3-Clause */
/* Failing memory allocations, in the program and in its libraries. */
#ifndef TESTS_BACKENDS_INJECT_MEMORY_H
#define TESTS_BACKENDS_INJECT_MEMORY_H

/* Defined by the test: returns 1 if the present allocation must fail. Must not
 * allocate memory itself. */
int inject_memory_fails(void);
/* Finds libc's functions, before the first request that may fail. */
void inject_memory_prepare(void);

#endif
