/* SPDX-License-Identifier: BSD-3-Clause */
/* The lock of the library. It protects what is added or changed rarely: which
 * profiler is attached, and the texts. fork() waits for it, so that a child can
 * take it and finds everything whole. */
#ifndef PROFILER_LOCK_H
#define PROFILER_LOCK_H

/* Not recursive. MT: safe. */
void dscomm_priv_profiler_lock(void);
void dscomm_priv_profiler_unlock(void);

#endif
