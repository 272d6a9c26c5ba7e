/* SPDX-License-Identifier: BSD-3-Clause */
/* Operators of the program's own: the table of handles, and what keeps an
 * operator as long as calls use it. Calls as text, see also
 * dscomm_coll_describe(). */
#ifndef LIB_OP_H
#define LIB_OP_H

#include <dscomm/backend.h>

/* Makes args a reduction by the operator of handle op: sets its user, op and
 * fingerprint. common is the count that goes into the fingerprint, or 0 if
 * ranks may give different counts. ERR_INVALID if op is no handle, was freed,
 * or does not take the dtype; the sentence names the call (name) and the group.
 * On success args->user is held. */
dscomm_status_t dscomm_priv_op_take(dscomm_op_t op, const char *name,
                                    const char *group, size_t common,
                                    dscomm_coll_args_t *args);

/* hold adds a call that uses user; drop removes one. NULL is fine. */
void dscomm_priv_op_hold(const dscomm_user_op_t *user);
void dscomm_priv_op_drop(const dscomm_user_op_t *user);

/* The operator of args as text, for messages; args must have one. */
static inline const char *dscomm_priv_op_text(const dscomm_coll_args_t *args)
{
    if (args->op == DSCOMM_OP_USER)
        return args->user ? args->user->text : "user";
    return dscomm_op_name((dscomm_op_t)args->op);
}

/* "dscomm_group_new": the public call that a collective with this root is a
 * part of, or NULL. */
const char *dscomm_priv_caller(int root);

/* In a forked child: initialises the lock, which another thread of the parent
 * may have held. */
void dscomm_priv_op_forked(void);

#endif
