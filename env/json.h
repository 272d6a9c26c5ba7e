/* SPDX-License-Identifier: BSD-3-Clause */
/* JSON as platforms put it into variables: checked once as a whole, then walked
 * in place. A value is a pointer to its first byte in a text that was checked.
 * Functions that get another kind of value than they are for, or NULL, return
 * NULL. */
#ifndef ENV_JSON_H
#define ENV_JSON_H

#include "env/problem.h"

#include <stdint.h>

/* Whether text is one value as RFC 8259 says, not nested deeper than 32;
 * *ret_value is that value. */
env_problem_t dscomm_priv_json_check(const char *text, const char **ret_value);

/* The first value of an array, and the one behind a value of an array. */
const char *dscomm_priv_json_first(const char *array);
const char *dscomm_priv_json_next(const char *value);

/* The same behind a value that ends there. */
const char *dscomm_priv_json_behind(const char *end);

/* How many values an array has, 0 for another kind, and its end: of a long one
 * both at once. Not for NULL. */
int64_t dscomm_priv_json_count(const char *array, const char **ret_end);

/* How many strings an array has that are not empty, 0 for another kind of
 * value, -1 where it has other values as well; and its end. Not for NULL. */
int64_t dscomm_priv_json_strings(const char *array, const char **ret_end);

/* An object's first name, and the value of a name; what is behind that value is
 * the next name. */
const char *dscomm_priv_json_key(const char *object);
const char *dscomm_priv_json_value(const char *key);

/* The object's member of that name. */
const char *dscomm_priv_json_member(const char *object, const char *name);

/* A string's bytes, UTF-8 where the text was; g_free(). NULL for one that holds
 * "\u0000". */
char *dscomm_priv_json_string(const char *value);

/* A whole number that is not negative: 0 and *ret_number, or -1. */
int dscomm_priv_json_number(const char *value, int64_t *ret_number);

#endif
