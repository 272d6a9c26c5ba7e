/* SPDX-License-Identifier: BSD-3-Clause */
/* The protocol of backends/shm/steps.h: steps, flags, done counters and rings,
 * for RANKS ranks that make CALLS collectives of the kind KIND. model.sh has
 * spin try all interleavings; each load and store is one step of a rank, in
 * program order, as release stores and acquire loads keep it here: a flag or a
 * counter is stored after what it publishes, and loaded before what it allows.
 *
 *   FLAT       a piece is put into the ring, then all pieces are read
 *   PIPELINED  AHEAD pieces are put in before the first one is read
 *   IN_PLACE   ranks read each other's buffers, which their owners use again
 *              when all have
 *
 * A place in a ring has the number of the step whose bytes it holds, and 0 while
 * it is being written. With REVOKE a process ends the group at any time. LATE,
 * EARLY and NO_STAY are faults that the model must find. */
#ifndef RANKS
#define RANKS 2
#endif
#ifndef CALLS
#define CALLS 3
#endif
#ifndef PIECES
#define PIECES 2
#endif
#ifndef AHEAD
#define AHEAD 2
#endif
#ifndef LINES
#define LINES 2 /* of flags, and places in a ring */
#endif
#define FLAT 1
#define PIPELINED 2
#define IN_PLACE 3
#ifndef KIND
#define KIND FLAT
#endif

#ifdef LATE /* one step more than there are places */
#define WINDOW (LINES + 1)
#else
#define WINDOW LINES
#endif

#define AT(rank, step) ((rank) * LINES + (step) % LINES)

byte flag[RANKS * LINES]; /* the step that has raised it */
byte ring[RANKS * LINES];
byte done[RANKS]; /* all steps below were read */
byte buffer[RANKS]; /* the call whose bytes it holds; 0: it is used again */
bool revoked;

/* A rank may write its line and its place of a step when all others have read
 * the step that had them before: shm_writable(). */
inline await_writable(step) {
    other = 0;
    do
    :: other == RANKS -> break
    :: other < RANKS && (other == me || done[other] + WINDOW > step) -> other++
    :: revoked -> goto out
    od
}

inline put(step) {
    await_writable(step);
#ifdef EARLY /* the flag is raised before the bytes are there */
    flag[AT(me, step)] = step;
#endif
    ring[AT(me, step)] = 0;
    ring[AT(me, step)] = step;
    flag[AT(me, step)] = step
}

/* Reads a piece of all ranks. It stays while it is read. */
inline get(step) {
    other = 0;
    do
    :: other == RANKS -> break
    :: other < RANKS && flag[AT(other, step)] == step ->
        assert(revoked || ring[AT(other, step)] == step);
        assert(revoked || ring[AT(other, step)] == step);
        other++
    :: revoked -> goto out
    od;
    done[me] = step + 1
}

/* As in exchange.c: the flag publishes the buffer, and the call ends when all
 * have read it. */
inline in_place(step, call) {
    await_writable(step);
    buffer[me] = call;
    flag[AT(me, step)] = step;
    other = 0;
    do
    :: other == RANKS -> break
    :: other < RANKS && flag[AT(other, step)] == step ->
        wrong = buffer[other] != call;
        wrong = wrong || buffer[other] != call;
        /* What was read counts only if the group still goes on. */
        assert(revoked || !wrong);
        other++
    :: revoked -> goto out
    od;
    done[me] = step + 1;
#ifndef NO_STAY
    other = 0;
    do
    :: other == RANKS -> break
    :: other < RANKS && (other == me || done[other] > step) -> other++
    :: revoked -> goto out
    od;
#endif
    buffer[me] = 0
}

proctype rank(byte me) {
    byte other, call = 1, step = 1, published, finished;
    bool wrong;

    do
    :: call > CALLS -> break
    :: call <= CALLS ->
        published = 0;
        finished = 0;
#if KIND == IN_PLACE
        in_place(step, call);
        step++;
#else
        do
        :: finished == PIECES -> break
        :: published < PIECES &&
           published - finished < (KIND == PIPELINED -> AHEAD : 1) ->
            put(step + published);
            published++
        :: finished < published &&
           (published == PIECES ||
            published - finished == (KIND == PIPELINED -> AHEAD : 1)) ->
            get(step + finished);
            finished++
        od;
        step = step + PIECES;
#endif
        call++
    od;
out:
    /* The owner uses its buffer again when a call has ended, for whatever
     * reason. */
    buffer[me] = 0
}

#ifdef REVOKE
proctype revoker() {
    revoked = true
}
#endif

init {
    byte r = 0;

    atomic {
        do
        :: r < RANKS ->
            done[r] = 1;
            run rank(r);
            r++
        :: else -> break
        od;
#ifdef REVOKE
        run revoker()
#endif
    }
}
