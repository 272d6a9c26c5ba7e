/* SPDX-License-Identifier: BSD-3-Clause */
/* Calling the hooks around an operation. */
#ifndef LIB_HOOK_H
#define LIB_HOOK_H

#include <dscomm/hook.h>

/* An operation that began under hooks; hooks is NULL without hooks. */
typedef struct {
    const dscomm_hooks_t *hooks;
    uint64_t token;
} dscomm_hook_span_t;

/* Calls the begin hook, if there is one. call is a dscomm_call_t of
 * lib/work/work.h. */
dscomm_hook_span_t dscomm_priv_hook_begin(const dscomm_group_t *group,
                                          const void *call);
/* Calls the end hook that belongs to span, if there is one. */
void dscomm_priv_hook_end(const dscomm_group_t *group, const void *call,
                          dscomm_hook_span_t span, dscomm_status_t status);

/* In a forked child: initialises the lock. */
void dscomm_priv_hook_forked(void);

#endif
