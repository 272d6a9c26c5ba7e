/* SPDX-License-Identifier: BSD-3-Clause */
/* The environment and the file system from which discovery reads everything:
 * those of the process, or of a test. */
#ifndef ENV_VIEW_H
#define ENV_VIEW_H

#include <glib.h>

/* The result of checking a text: what is wrong with it, and where. */
typedef struct {
    const char *what; /* static; NULL: the text is valid */
    size_t at; /* byte, from 0 */
} env_problem_t;

typedef struct {
    const char *(*get)(const char *name, void *arg);
    void *arg;
    const char *root; /* "" for "/" */
} env_view_t;

/* A variable's value; NULL if it is not set, or empty. */
const char *dscomm_priv_view_value(const env_view_t *view, const char *name);

/* The first of two variables that is set; NULL if neither is. */
const char *dscomm_priv_view_either(const env_view_t *view, const char *first,
                                    const char *second);

/* 1: both are set, to the same decimal number. */
int dscomm_priv_view_same(const env_view_t *view, const char *name,
                          const char *other);

/* A regular file's first bytes, at most 4 KiB; NULL if it cannot be read;
 * g_free(). */
char *dscomm_priv_view_file(const env_view_t *view, const char *path);

/* This host's name; NULL if it cannot be read; g_free(). */
char *dscomm_priv_view_host(const env_view_t *view);

/* Returns "NAME/PID/START" of the nearest ancestor process whose kernel name is
 * NAME; the text is the same in all its descendants. NULL if there is none;
 * g_free(). */
char *dscomm_priv_view_ancestor(const env_view_t *view, const char *name);

/* 1: process pid, a decimal number, is this one or an ancestor of it. */
int dscomm_priv_view_descends(const env_view_t *view, const char *pid);

/* 1: text may be a host: not empty, at most 255 bytes, no blanks. */
int dscomm_priv_is_host(const char *text);

/* 1: text is an address, or the name, of the loopback interface. */
int dscomm_priv_is_loopback(const char *text);

#endif
