/* SPDX-License-Identifier: BSD-3-Clause */
/* Dumps of the flight recorder, read from files. All texts belong to the
 * dumps. */
#ifndef TOOLS_DUMP_H
#define TOOLS_DUMP_H

#include <glib.h>
#include <stdbool.h>

/* A call of a rank. */
typedef struct {
    gint64 serial, sequence, fingerprint;
    gint64 called_ns; /* since 1970 */
    const char *call; /* "all_reduce(count 4, float32, sum) #3" */
    const char *group; /* name */
    bool collective, completed, failed;
} call_t;

typedef struct {
    const char *world; /* identity */
    int number, pid; /* number: in the world */
    const char *host, *process; /* "running", "stopped", "dead", "left" */
    const char *sentence; /* why a group has ended, or NULL */
    gint64 calls; /* all that it has made; the dump has the last ones */
    gint64 written_ns; /* of the dump */
    GArray *entries; /* call_t, oldest first */
} rank_t;

/* A rank in a group. */
typedef struct {
    rank_t *rank;
    int number; /* in the group */
    GPtrArray *calls; /* call_t of its collectives there, oldest first */
} member_t;

typedef struct {
    const char *world; /* identity */
    const char *name, *id; /* id: in the world */
    int size;
    GPtrArray *members; /* member_t, by number */
} group_t;

typedef struct {
    GPtrArray *ranks; /* rank_t, by number */
    GPtrArray *groups; /* group_t, in the order of their making */
    GPtrArray *parsers; /* of the files: they own the texts */
} dumps_t;

dumps_t *dumps_new(void);
void dumps_free(dumps_t *dumps);
/* Reads a file, all files *.json of a folder, or, if path is a number and no
 * file, the records of the running job of that process. NULL, or a sentence;
 * g_free(). A rank of a world that is in several files counts as in the
 * youngest. */
char *dumps_read(dumps_t *dumps, const char *path);
/* Sorts what was read; called once, after the last file. */
void dumps_sort(dumps_t *dumps);

#endif
