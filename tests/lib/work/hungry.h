/* SPDX-License-Identifier: BSD-3-Clause */
/* For tests that allocate more memory than there is: sanitizers would end such
 * a program, unless told otherwise. */
#ifndef TESTS_LIB_HUNGRY_H
#define TESTS_LIB_HUNGRY_H

#define VISIBLE __attribute__((visibility("default")))

VISIBLE const char *__asan_default_options(void);
VISIBLE const char *__tsan_default_options(void);

const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}

const char *__tsan_default_options(void)
{
    return "allocator_may_return_null=1";
}

#endif
