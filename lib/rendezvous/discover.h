/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds, from attributes and environment, what a rendezvous needs. */
#ifndef LIB_DISCOVER_H
#define LIB_DISCOVER_H

#include "lib/rendezvous/rendezvous.h"

#include <dscomm/init.h>

/* Fills *ret_join from attr, whose members are merged already, and the
 * environment; clear it afterwards. */
dscomm_status_t dscomm_priv_discover(const dscomm_init_attr_t *attr,
                                     dscomm_join_t *ret_join);
void dscomm_priv_join_clear(dscomm_join_t *join);

#endif
