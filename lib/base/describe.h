/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations as text; dscomm_coll_describe() is declared in dscomm/backend.h.
 */
#ifndef LIB_DESCRIBE_H
#define LIB_DESCRIBE_H

/* "dscomm_group_new": the public call that a collective with this root is a
 * part of, or NULL. */
const char *dscomm_priv_caller(int root);

#endif
