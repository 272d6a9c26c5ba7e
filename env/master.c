/* SPDX-License-Identifier: BSD-3-Clause */
/* Address and port at which the ranks meet: the user's, else the platform's,
 * else this node if there is no other, else from the source's list of nodes. */
#include "config.h"

#include "env/env.h"

#include <arpa/inet.h>
#include <string.h>

/* Ports above those that Linux assigns itself, in blocks of eight: rank 0 takes
 * the first free one of a block. */
#define PORT_BASE 61440
#define PORT_BLOCK 8
#define PORT_BLOCKS 511

static dscomm_status_t user_port(const env_view_t *view, dscomm_env_t *env)
{
    const int taken = env->agent_port && !env->agent_store;
    const char *name = dscomm_priv_view_either(view, "DSCOMM_MASTER_PORT",
                                               taken ? NULL : "MASTER_PORT");
    int port;
    dscomm_status_t status =
        dscomm_priv_env_number(view, env, name, DSCOMM_ENV_MASTER_PORT, &port);

    if (status == DSCOMM_OK && port > 0)
        dscomm_priv_env_set_port(env, port, name);
    return status;
}

/* True for "::1", "[::1]" or "fe80::1%eth0". */
static int is_ipv6(const char *text)
{
    struct in6_addr address;
    char *inner = g_strdup(*text == '[' ? text + 1 : text);
    char *end = strchr(inner, ']');
    int is_pair = *text == '[' ? end && !end[1] : !end;

    inner[strcspn(inner, "%]")] = '\0';
    is_pair = is_pair && inet_pton(AF_INET6, inner, &address) == 1;
    g_free(inner);
    return is_pair;
}

/* 1 if text is a host, without a scheme or a port. */
static int host_is_plain(const char *text)
{
    return dscomm_priv_is_host(text) && !strchr(text, '/') &&
           (!strpbrk(text, ":[]") || is_ipv6(text));
}

/* Removes blanks at both ends. A newline stays, because other readers of the
 * variable take it as part of the name. */
static char *without_blanks(const char *text)
{
    size_t length;

    text += strspn(text, " \t");
    length = strlen(text);
    while (length > 0 && strchr(" \t", text[length - 1]))
        length--;
    return g_strndup(text, length);
}

static dscomm_status_t user_address(const env_view_t *view, dscomm_env_t *env)
{
    const char *name =
        dscomm_priv_view_either(view, "DSCOMM_MASTER_ADDR", "MASTER_ADDR");
    char *address;

    if (!name)
        return DSCOMM_OK;
    address = without_blanks(dscomm_priv_view_value(view, name));
    if (!host_is_plain(address)) {
        g_free(address);
        return dscomm_priv_env_fail(
            view, env, name,
            "not a host. Set it to a name or an "
            "address of at most 255 bytes without "
            "blanks, line ends, scheme and port, which goes into "
            "MASTER_PORT");
    }
    dscomm_priv_strip_brackets(address);
    dscomm_priv_env_set_address(env, address, name);
    return DSCOMM_OK;
}

/* Managers know no address, so the platform around them gives it. */
static dscomm_status_t query_overlays(const env_view_t *view, dscomm_env_t *env)
{
    dscomm_status_t status = DSCOMM_OK;

    if (env->family->tier != ENV_TIER_MANAGER)
        return DSCOMM_OK;
    for (size_t i = 0; env->overlays[i]; i++) {
        const env_overlay_t *overlay = env->overlays[i];

        if (!overlay->find_master)
            continue;
        if (!env->address)
            status = overlay->find_master(view, env);
        if (status != DSCOMM_OK)
            return status;
        if (env->port < 0 && overlay->port && !dscomm_priv_env_one_node(env))
            dscomm_priv_env_set_port(env, overlay->port, overlay->name);
    }
    return DSCOMM_OK;
}

static dscomm_status_t find_address(const env_view_t *view, dscomm_env_t *env)
{
    dscomm_status_t status = user_address(view, env);

    if (status == DSCOMM_OK)
        status = query_overlays(view, env);
    if (status != DSCOMM_OK || env->address)
        return status;
    if (dscomm_priv_env_one_node(env))
        dscomm_priv_env_set_address(env, dscomm_priv_env_text(env, "127.0.0.1"),
                                    "one node");
    else if (env->family->find_master)
        status = env->family->find_master(view, env);
    else if (env->family->no_address)
        dscomm_priv_env_no_address(env, "%s", env->family->no_address);
    return status;
}

/* Hashes the name by FNV-1a (Fowler, Noll, Vo), and then mixes its low bits. */
int dscomm_priv_env_port(const char *job)
{
    uint64_t hash = 0xcbf29ce484222325;

    for (; *job; job++)
        hash = (hash ^ (unsigned char)*job) * 0x100000001b3;
    return PORT_BASE + PORT_BLOCK * (int)((hash >> 16) % PORT_BLOCKS);
}

const char dscomm_priv_env_by_name[] = "name of job";

/* Lets the platforms give the port of a single node, where their ports for
 * several nodes may be in use. */
static void query_overlays_last(dscomm_env_t *env)
{
    for (size_t i = 0; env->overlays[i]; i++) {
        const env_overlay_t *overlay = env->overlays[i];

        if (overlay->local_port && env->family->tier == ENV_TIER_MANAGER &&
            dscomm_priv_env_one_node(env))
            dscomm_priv_env_set_port(env, overlay->local_port, overlay->name);
    }
}

void dscomm_priv_env_find_port(dscomm_env_t *env)
{
    if (env->port >= 0 || env->ancestor)
        return;
    if (env->family->port)
        dscomm_priv_env_set_port(env, env->family->port, "default");
    else if (*env->job && !env->shared)
        dscomm_priv_env_set_port(env, dscomm_priv_env_port(env->job),
                                 dscomm_priv_env_by_name);
    else
        query_overlays_last(env);
}

dscomm_status_t dscomm_priv_env_find_master(const env_view_t *view,
                                            dscomm_env_t *env)
{
    dscomm_status_t status = user_port(view, env);

    if (status == DSCOMM_OK)
        status = find_address(view, env);
    if (status == DSCOMM_OK)
        dscomm_priv_env_find_port(env);
    return status;
}
