/* SPDX-License-Identifier: BSD-3-Clause */
/* Dumps of the flight recorder, read from files. All texts belong to the
 * dumps. */
#ifndef TOOLS_DUMP_H
#define TOOLS_DUMP_H

#include <glib.h>
#include <stdbool.h>

typedef struct member member_t;
typedef struct group group_t;
typedef struct rank rank_t;

/* A call of a rank. */
typedef struct {
    gint64 serial, sequence, fingerprint;
    gint64 called_ns, ended_ns; /* since 1970; ended_ns: 0 if not known */
    gint64 count, peer, tag; /* peer: or root; -1: any */
    const char *call; /* "all_reduce(count 4, float32, sum) #3" */
    const char *operation, *dtype; /* "all_reduce", "float32" */
    const member_t *member; /* of its group */
    bool collective, async, completed, failed;
} call_t;

/* A rank in a group. */
struct member {
    const rank_t *rank;
    const group_t *group;
    int number; /* in the group */
    GPtrArray *calls; /* call_t of its collectives there, oldest first */
};

struct rank {
    const char *world; /* identity */
    int number, size; /* in the world, and that of the world */
    guint index; /* in the dumps */
    int pid;
    const char *host, *process; /* "running", "stopped", "dead", "left" */
    const char *sentence; /* why a group has ended, or NULL: */
    const char *failed_group; /* the group's name, */
    gint64 failed_sequence; /* the collective, or 0, */
    int culprit; /* and who caused it, in the world; -1: unknown */
    gint64 calls; /* all that it has made; the dump has the last ones */
    gint64 written_ns; /* of the dump */
    GArray *entries; /* call_t, oldest first */
    member_t stray; /* of calls whose group is not in the dump */
};

struct group {
    const char *world; /* identity */
    const char *name, *id; /* id: in the world */
    int size;
    /* The first collective that the dumps of all members may have: a record
     * keeps only the last calls of its rank. */
    gint64 first_common;
    GPtrArray *members; /* member_t, by number */
};

typedef struct {
    GPtrArray *ranks; /* rank_t, by number */
    GPtrArray *groups; /* group_t, in the order of their making */
    GPtrArray *parsers; /* of the files: they own the texts */
    GHashTable *index; /* rank_t and group_t by their names in all worlds */
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

/* False if the rank has made more calls than its dump has. */
bool rank_is_whole(const rank_t *rank);
/* True if the dump does not have the group of the call. */
bool rank_lacks_group(const call_t *call);
/* The last collective of member that is in its dump; NULL: none is. */
call_t *member_last(const member_t *member);
/* False if the member's collectives may be older than the dump. */
bool member_is_known(const member_t *member);
/* The number in the world of rank r of the group; -1 - r if no dump has it. */
int group_world_rank(const group_t *group, int r);

#endif
