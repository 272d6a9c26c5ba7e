/* SPDX-License-Identifier: BSD-3-Clause */
/* An environment and a file system to look at, those of the process or others:
 * all that discovery knows of the world. */
#ifndef ENV_VIEW_H
#define ENV_VIEW_H

#include <glib.h>

typedef struct {
    const char *(*get)(const char *name, void *arg);
    void *arg;
    const char *root; /* "" for "/" */
} env_view_t;

/* A variable's value; NULL where it is not set, or empty. */
const char *dscomm_priv_view_value(const env_view_t *view, const char *name);

/* The first of two variables that is set; NULL where neither is. */
const char *dscomm_priv_view_either(const env_view_t *view, const char *first,
                                    const char *second);

/* 1: both are set, and the same decimal number. */
int dscomm_priv_view_same(const env_view_t *view, const char *name,
                          const char *other);

/* A regular file's first bytes, at most 4 KiB; NULL where it cannot be read;
 * g_free(). */
char *dscomm_priv_view_file(const env_view_t *view, const char *path);

/* This host's name; NULL where it cannot be read; g_free(). */
char *dscomm_priv_view_host(const env_view_t *view);

/* "NAME/PID/START" of the nearest ancestor that the kernel calls name, equal in
 * all that descend from it; NULL where there is none; g_free(). */
char *dscomm_priv_view_ancestor(const env_view_t *view, const char *name);

/* 1: process pid, a decimal number, is this one or an ancestor of it. */
int dscomm_priv_view_descends(const env_view_t *view, const char *pid);

/* 1: text may be a host: not empty, at most 255 bytes, none of them blank. */
int dscomm_priv_is_host(const char *text);
int dscomm_priv_is_host_of(const char *text, size_t length);

/* 1: text is an address, or the name, of the loopback interface. */
int dscomm_priv_is_loopback(const char *text);

#endif
