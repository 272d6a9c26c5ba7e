/* SPDX-License-Identifier: BSD-3-Clause */
/* LANES before a loop states that its iterations are independent, so that the
 * compiler can vectorise it. At -O0 and with sanitizers the compiler does not,
 * and clang's warning about that is switched off. */
#ifndef LIB_LANES_H
#define LIB_LANES_H

#if defined(__clang__)
#pragma clang diagnostic ignored "-Wpass-failed"
#define LANES _Pragma("clang loop vectorize(assume_safety)")
#else
#define LANES _Pragma("GCC ivdep")
#endif

#endif
