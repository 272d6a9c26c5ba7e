/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests for memory that fail, of the program and its libraries. */
#ifndef TESTS_BACKENDS_INJECT_MEMORY_H
#define TESTS_BACKENDS_INJECT_MEMORY_H

/* Of the test: 1 if the request under way fails. Asks for no memory itself. */
int inject_memory_fails(void);
/* Finds libc's functions, before the first request that may fail. */
void inject_memory_prepare(void);

#endif
