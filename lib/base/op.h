/* SPDX-License-Identifier: BSD-3-Clause */
/* Operators of the program's own: the table of handles, and what keeps an
 * operator as long as calls use it. Calls as text, see also
 * dscomm_coll_describe(). */
#ifndef LIB_OP_H
#define LIB_OP_H

#include <dscomm/backend.h>

/* Makes args a reduction by op, a handle: its user, op and fingerprint, whose
 * count is common (0 if ranks may give others). ERR_INVALID if op is no handle,
 * was freed, or does not take the dtype; name is the call's and group that of
 * its group, both for the sentence. On success args->user is held. */
dscomm_status_t dscomm_priv_op_take(dscomm_op_t op, const char *name,
                                    const char *group, size_t common,
                                    dscomm_coll_args_t *args);

/* One call more, or less, uses user; NULL is fine. */
void dscomm_priv_op_hold(const dscomm_user_op_t *user);
void dscomm_priv_op_drop(const dscomm_user_op_t *user);

/* The operator of args, for messages; args must have one. */
static inline const char *dscomm_priv_op_text(const dscomm_coll_args_t *args)
{
    if (args->op == DSCOMM_OP_USER)
        return args->user ? args->user->text : "user";
    return dscomm_op_name((dscomm_op_t)args->op);
}

/* "dscomm_group_new": the public call that a collective with this root is a
 * part of, or NULL. */
const char *dscomm_priv_caller(int root);

/* Renews the lock in a forked child, in which another thread may hold it. */
void dscomm_priv_op_forked(void);

#endif
