/* SPDX-License-Identifier: BSD-3-Clause */
/* JSON in variables of platforms. A text is checked once as a whole, then
 * walked in place: a value is a pointer to its first byte. Functions return
 * NULL for NULL and for a value of a kind that they do not accept. */
#ifndef ENV_JSON_H
#define ENV_JSON_H

#include "env/view.h"

#include <stdint.h>

/* Checks that text is one value of RFC 8259, not nested deeper than 32;
 * *ret_value is that value. */
env_problem_t dscomm_priv_json_check(const char *text, const char **ret_value);

/* The first value of an array, and the next value after one of an array. */
const char *dscomm_priv_json_first(const char *array);
const char *dscomm_priv_json_next(const char *value);

/* The next value, if the end of a value is known. */
const char *dscomm_priv_json_behind(const char *end);

/* The number of values of an array, 0 for another kind of value, and its end,
 * in one pass. Not for NULL. */
int64_t dscomm_priv_json_count(const char *array, const char **ret_end);

/* The number of strings of an array that are not empty, 0 for another kind of
 * value, -1 if it has other values as well; and its end. Not for NULL. */
int64_t dscomm_priv_json_strings(const char *array, const char **ret_end);

/* An object's first name, and the value of a name. The value after that is the
 * next name. */
const char *dscomm_priv_json_key(const char *object);
const char *dscomm_priv_json_value(const char *key);

/* The object's member of that name. */
const char *dscomm_priv_json_member(const char *object, const char *name);

/* A string's bytes, UTF-8 if the text is; g_free(). NULL for one that holds
 * "\u0000". */
char *dscomm_priv_json_string(const char *value);

/* A whole number that is not negative: 0 and *ret_number, or -1. */
int dscomm_priv_json_number(const char *value, int64_t *ret_number);

#endif
