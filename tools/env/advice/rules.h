/* SPDX-License-Identifier: BSD-3-Clause */
/* The rules of rules.ini, which is compiled into the program, and the facts
 * that they are applied to.
 *
 * A rule is a group of the key file, [KIND NAME=CHECK if TERMS]:
 *
 * KIND   front    adds NAME and its value before the command;
 *        part     adds them to the command line;
 *        note     adds a sentence;
 *        option, mca, variable
 *                 decides about a given argument of this kind; the first rule
 *                 that matches applies.
 * NAME   patterns for the name of the argument.
 * CHECK  patterns for its value, or a test: lists(COMPONENT),
 *        lacks(COMPONENTS), number(MAX), network().
 * TERMS  conditions, which must all hold. [facts] lists their forms. Each of
 *        openmpi, mpich and intel is a fact, whose value is the major version,
 *        if that is the launcher; hydra holds for mpich and intel.
 *
 * Patterns are globs with "|" between them; "@LIST" stands for a list of
 * [names]; "!" negates patterns and tests. In a text, {NAME} is replaced by the
 * value of a fact.
 *
 * Keys: "value" is the value of a front or part. "why" is its reason, or the
 * note. "kept", "replaced" or "dropped" is the decision about an argument; the
 * key's value is the reason. The replacement is the part of the command line
 * that begins with the value of "line"; or the value of "add", which also joins
 * the command line; or the text of "instead". A note with the key "each" is
 * repeated for each variable of that list that is set; {name} is the
 * variable. */
#ifndef TOOLS_ADVICE_RULES_H
#define TOOLS_ADVICE_RULES_H

#include "tools/env/advice/advice.h"

#include <stdbool.h>

/* An argument that the user gave. */
typedef struct {
    const char *kind; /* "option", "mca" or "variable" */
    char *name; /* without dashes */
    char *value; /* NULL: none */
    char **words; /* as the user wrote them */
    bool known; /* the option is in the table of options */
    bool ambient; /* a variable of the environment, not an argument */
} advice_given_t;

typedef struct {
    const char *group;
    const char *kind, *name;
    const char *check, *terms; /* NULL: none */
} advice_rule_t;

typedef struct {
    const tool_advice_question_t *question;
    tool_advice_t *advice;
    GKeyFile *file;
    char **groups; /* names of the groups; rules point to them */
    const char *group; /* the present one, for g_error() */
    GPtrArray *rules; /* advice_rule_t, in the order of the file */
    GHashTable *values; /* of facts, by name; "": the fact does not hold */
    GPtrArray *given; /* advice_given_t */
} advice_state_t;

/* Parses the rules, and sets the facts about the launcher. */
void tool_advice_rules_open(advice_state_t *state);
void tool_advice_rules_close(advice_state_t *state);

/* Returns what is wrong with the text of a file of rules: its syntax, a kind, a
 * key or a test; NULL: nothing. g_free() */
char *tool_advice_rules_fault(const char *text);

/* Sets the facts of [facts]. */
void tool_advice_rules_facts(advice_state_t *state);

/* Returns the value of a key of group, or NULL. The text is never freed. */
const char *tool_advice_rules_get(const advice_state_t *state,
                                  const char *group, const char *key);

/* Whether one of the patterns matches text. */
bool tool_advice_matches(const advice_state_t *state, const char *patterns,
                         const char *text);

/* Whether all terms hold; NULL: there are none. */
bool tool_advice_holds(const advice_state_t *state, const char *terms);

/* Returns the first rule that matches a given argument, or NULL. */
const advice_rule_t *tool_advice_rule(advice_state_t *state,
                                      const advice_given_t *given);

/* Returns the last given argument of this kind whose name matches, or NULL. A
 * variable of the environment is returned only if no argument matches. */
const advice_given_t *tool_advice_given(const advice_state_t *state,
                                        const char *kind, const char *patterns);

/* Sets the value of a fact. */
void tool_advice_set(advice_state_t *state, const char *name,
                     const char *format, ...) G_GNUC_PRINTF(3, 4);

/* Sets whether a fact without a value holds. */
void tool_advice_set_fact(advice_state_t *state, const char *name, bool holds);

/* Returns the value of a fact, "" if it does not hold. The name must have been
 * set: an unknown name is a mistake in the rules, and ends the program. */
const char *tool_advice_fact(const advice_state_t *state, const char *name);

/* Returns text with each {NAME} replaced by the fact's value; g_free(). */
char *tool_advice_expand(const advice_state_t *state, const char *text);

/* Splits text at blanks and expands each word; g_strfreev(). */
char **tool_advice_words(const advice_state_t *state, const char *text);

/* Returns the value of a variable of the environment; NULL if it is not set, or
 * empty. */
const char *tool_advice_variable(const tool_advice_question_t *question,
                                 const char *name);

/* Returns the decimal number from 1 to max in text; 0 if text is none. */
int tool_advice_decimal(const char *text, int max);

/* Whether text is a network, such as 10.0.0.0/8, or a list of them. */
bool tool_advice_is_network(const char *text);

/* given.c: given arguments */

/* Splits the arguments into state->given, with the variables of the
 * environment that set parameters of Open MPI; the words after the arguments
 * are advice->command. */
void tool_advice_given_read(advice_state_t *state);

/* Decides about each given argument; adds those that are kept to the line. */
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

/* Sets the facts device: an RDMA device is active; rdma: a device that UCX
 * supports; no_rdma: a device that UCX does not support, and the reason;
 * fabric: an active device that another library supports; mtl: the component of
 * Open MPI that uses fabric. */
void tool_advice_devices(advice_state_t *state);

/* Sets facts wanted: the interfaces that the user names; subnet and interface:
 * the IPv4 network to use; choice: there are others. */
void tool_advice_network(advice_state_t *state);

#endif
