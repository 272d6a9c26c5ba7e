/* SPDX-License-Identifier: BSD-3-Clause */
/* A program that uses MPI itself: declarations that its sources share. */
#ifndef TESTS_BACKENDS_MPI_HOST_H
#define TESTS_BACKENDS_MPI_HOST_H

#include <dscomm/dscomm.h>
#include <pthread.h>

extern dscomm_group_t *world;
extern int rank, ranks; /* in it */

/* mpi-calls.c */
extern int kept; /* communicators that were made, and not freed */
extern int made_tags[2]; /* tags of the last calls that made one */
extern int unmade; /* groups with this many ranks get no communicator */
extern int dying; /* this rank is killed when it makes a communicator */
/* the error that MPI returns when it has no communicators left */
extern int exhausted;
extern pthread_t outsider;
extern int strays; /* calls of MPI by another thread */
extern int given; /* the thread level that MPI provides, or -1 */
/* MPI_Init_thread() never comes back; after so long, endless_begun is 1 */
extern int endless_ms;
extern volatile int endless_begun;

/* Ends the rank if cond is 0. */
void need(int cond, const char *what);
/* The same where the last sentence lacks text. */
void need_sentence(const char *text);
/* Makes the world, and checks that it has that backend. */
void join(const char *backend);
/* The launcher's rank, before there is a world. */
int launched_rank(void);
/* Sums a one of each rank of group. */
void sum_ones(dscomm_group_t *group);
/* Waits for the work and frees it. */
void finish(dscomm_work_t *work);

/* mpi-groups.c */
void withdraw(void);
void part(void);
void take_turns(void);
void fork_twice(void);
void part_late(void);
void receive_any(void);
void lack_rail(void);
void use_funneled(void);
void need_more(void);
void miss_one(void);
void miss_once(void);
void lack_files(void);

/* mpi-deaths.c */
void die_meeting(void);
void die_making(void);
void die_beginning(void);
void die_finalizing(void);
void quit_beginning(void);

#endif
