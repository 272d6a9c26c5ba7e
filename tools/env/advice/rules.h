/* SPDX-License-Identifier: BSD-3-Clause */
/* The rules of rules.ini, which is compiled into the program, and the state of
 * a question that they are applied to.
 *
 * A rule is a group of the key file: [KIND NAME=CHECK if TERMS]. KIND: "front"
 * (of the command line) and "part" (of it), which NAME and the key value give;
 * "note", a sentence; "option", "mca" and "variable", given arguments: the
 * first rule that fits one says what becomes of it. NAME: patterns. CHECK:
 * patterns of the value, or a test: lists(COMPONENT), lacks(COMPONENTS),
 * number(MAX), network(). TERMS all hold; [facts] says what there is. The
 * launcher, openmpi, mpich or intel, is a fact whose value is its major
 * version; hydra is mpich or intel.
 *
 * Patterns are globs with "|" between, "@LIST" of [names] among them; "!"
 * negates patterns and tests. {NAME} in a text stands for a fact's value.
 *
 * Keys: kept, replaced or dropped, or why: the sentence. What to write instead
 * is the part of the line that begins with the value of line; the value of add,
 * which joins the line; or the text of instead. A note with a key each is said
 * of every variable listed there that is set, as {name}. */
#ifndef TOOLS_ADVICE_RULES_H
#define TOOLS_ADVICE_RULES_H

#include "tools/env/advice/advice.h"

/* A given argument; words are as they were given. */
typedef struct {
    const char *kind; /* "option", "mca" or "variable" */
    char *name; /* without dashes */
    char *value; /* NULL: none */
    char **words;
    gboolean known; /* the option is in the table of options */
    gboolean ambient; /* a variable of the environment, no argument */
} advice_given_t;

typedef struct {
    const char *group;
    const char *kind, *name, *check, *terms; /* check and terms: NULL: none */
} advice_rule_t;

typedef struct {
    const tool_advice_question_t *question;
    tool_advice_t *advice;
    GKeyFile *file;
    char **groups; /* names, which rules point at */
    GPtrArray *rules; /* advice_rule_t, in their order */
    GHashTable *values; /* facts: name to value, of which "" is no fact */
    GPtrArray *given; /* advice_given_t */
} advice_state_t;

/* Reads the rules, and sets the facts about the launcher. */
void tool_advice_rules_open(advice_state_t *state);
void tool_advice_rules_close(advice_state_t *state);

/* Sets those of [facts]. */
void tool_advice_rules_facts(advice_state_t *state);

/* The value of a key of group, or NULL; it stays for the process. */
const char *tool_advice_rules_get(const advice_state_t *state,
                                  const char *group, const char *key);

gboolean tool_advice_matches(const advice_state_t *state, const char *patterns,
                             const char *text);

/* Whether all terms hold. */
gboolean tool_advice_holds(const advice_state_t *state, const char *terms);

/* The first rule that fits, or NULL. */
const advice_rule_t *tool_advice_rule(const advice_state_t *state,
                                      const advice_given_t *given);

/* The last given argument of a kind whose name matches; one of the environment
 * if there is no other; or NULL. */
const advice_given_t *tool_advice_given(const advice_state_t *state,
                                        const char *kind, const char *patterns);

void tool_advice_set(advice_state_t *state, const char *name,
                     const char *format, ...) G_GNUC_PRINTF(3, 4);

/* Sets a fact without a value of its own. */
void tool_advice_set_fact(advice_state_t *state, const char *name,
                          gboolean holds);

/* The value of a fact, "" if it does not hold. A name that is nowhere set is a
 * mistake in the rules, and ends the program. */
const char *tool_advice_fact(const advice_state_t *state, const char *name);

/* text with each {NAME} replaced by its value; g_free(). */
char *tool_advice_expand(const advice_state_t *state, const char *text);

/* The words of text, with single blanks between, expanded; g_strfreev(). */
char **tool_advice_words(const advice_state_t *state, const char *text);

/* A variable of the environment that is set and not empty, or NULL. */
const char *tool_advice_variable(const tool_advice_question_t *question,
                                 const char *name);

/* A decimal number from 1 to max, or 0. */
int tool_advice_decimal(const char *text, int max);

/* Whether text is a network, as 10.0.0.0/8, or several. */
gboolean tool_advice_is_network(const char *text);

/* given.c: given arguments */

/* Splits the arguments into state->given, with the variables of the
 * environment that set parameters of Open MPI; the words after the arguments
 * are advice->command. */
void tool_advice_given_read(advice_state_t *state);

/* Decides about each; those that are kept are added to the line. */
void tool_advice_given_judge(advice_state_t *state);

void tool_advice_given_free(void *given);

/* Adds a part to parts; takes ownership of words, copies why. */
void tool_advice_part_add(GPtrArray *parts, char **words, const char *why);

/* job.c: the size of a job, its hosts, and the host of rank 0 */

#define ADVICE_NODES_MAX 100000
#define ADVICE_RANKS_MAX 4096 /* on each node */
#define ADVICE_JOB_MAX (ADVICE_NODES_MAX * ADVICE_RANKS_MAX)

/* Sets the numbers of nodes and ranks: those of the question, else of the
 * given arguments, else of the scheduler, else one node with a rank for each
 * core. Sets facts several, hosts-given, few-slots, hosts and master. */
void tool_advice_job(advice_state_t *state);

/* machine.c */

/* A file below root, or NULL; g_free(). */
char *tool_root_file(const char *root, const char *path);

/* Sets facts device: an RDMA device is active; rdma: one that UCX drives;
 * no_rdma: one that UCX does not drive, and why; fabric: an active device that
 * others drive; mtl: the part of Open MPI that uses fabric. */
void tool_advice_devices(advice_state_t *state);

/* Sets facts wanted: the interfaces that the user names; subnet and interface:
 * the IPv4 network to use; choice: there are others. */
void tool_advice_network(advice_state_t *state);

#endif
