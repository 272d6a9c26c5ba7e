/* SPDX-License-Identifier: BSD-3-Clause */
/* The kind of this machine, as facts that are equal on equal machines and stay
 * so when a machine is restarted. */
#ifndef LIB_MACHINE_H
#define LIB_MACHINE_H

#define DSCOMM_MACHINE_FACTS 4
#define DSCOMM_MACHINE_FACT_MAX 160 /* bytes of a value, with its final 0 */

/* One fact: "processor" and the processor's model; "processors", the number of
 * those that are online; "cache", the bytes of the last-level cache of the
 * first processor; "numa_nodes", their number. A value that the system does not
 * tell is "unknown". */
typedef struct {
    const char *name;
    char value[DSCOMM_MACHINE_FACT_MAX];
} dscomm_machine_fact_t;

/* Reads the facts below the folder root, which stands for "/": "" or a path. */
void dscomm_priv_machine_read(
    const char *root, dscomm_machine_fact_t ret_facts[DSCOMM_MACHINE_FACTS]);

#endif
