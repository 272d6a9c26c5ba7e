/* SPDX-License-Identifier: BSD-3-Clause */
/* A program that uses MPI itself: what its sources share. */
#ifndef TESTS_BACKENDS_MPI_HOST_H
#define TESTS_BACKENDS_MPI_HOST_H

#include <dscomm/dscomm.h>

extern dscomm_group_t *world;
extern int rank, ranks; /* in it */
extern int kept; /* communicators made, and not freed */
extern int unmade; /* groups of so many ranks get no communicator */

/* Ends the rank where cond is 0. */
void need(int cond, const char *what);
/* Makes the world; it has that backend. */
void join(const char *backend);

/* mpi-groups.c */
void withdraw(void);
void part(void);
void take_turns(void);
void fork_twice(void);
void part_late(void);
void receive_any(void);
void lack_rail(void);
void miss_one(void);
void miss_once(void);

#endif
