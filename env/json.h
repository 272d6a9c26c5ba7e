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

/* first returns the first value of an array; next returns the value after one
 * of its values. */
const char *dscomm_priv_json_first(const char *array);
const char *dscomm_priv_json_next(const char *value);

/* The value after the one that ends at end. */
const char *dscomm_priv_json_behind(const char *end);

/* The number of values of an array, 0 for another kind of value, and its end,
 * in one pass. Not for NULL. */
int64_t dscomm_priv_json_count(const char *array, const char **ret_end);

/* The number of strings of an array that are not empty, 0 for another kind of
 * value, -1 if it has other values as well; and its end. Not for NULL. */
int64_t dscomm_priv_json_strings(const char *array, const char **ret_end);

/* key returns an object's first name, and value the value of a name. The value
 * after that is the next name. */
const char *dscomm_priv_json_key(const char *object);
const char *dscomm_priv_json_value(const char *key);

/* The value of the object's member with that name. */
const char *dscomm_priv_json_member(const char *object, const char *name);

/* The string as UTF-8; g_free(). NULL if it contains "\u0000". */
char *dscomm_priv_json_string(const char *value);

/* Reads a whole number that is not negative. Returns 0 and *ret_number, or
 * -1. */
int dscomm_priv_json_number(const char *value, int64_t *ret_number);

#endif
