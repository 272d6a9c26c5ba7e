/* SPDX-License-Identifier: BSD-3-Clause */
/* jsrun, which starts the ranks of a job of LSF. */
#include "config.h"

#include "env/env.h"

#include <string.h>

static const char list_name[] = "LSB_MCPU_HOSTS";

/* Of "h1 n1 h2 n2", with numbers of slots: where reading has come to. */
typedef struct {
    const char *at;
    const char *wrong; /* NULL until something is */
} reader_t;

/* The next word; its length is 0 at the end, and before what is no text. */
static size_t read_word(reader_t *reader, const char **ret_word)
{
    const char *at = reader->at;

    while (*at == ' ' || *at == '\t' || *at == '\n')
        at++;
    *ret_word = at;
    while ((unsigned char)*at > ' ' && *at != 0x7f)
        at++;
    if (*at && *at != ' ' && *at != '\t' && *at != '\n')
        reader->wrong = "what is no host";
    reader->at = at;
    return (size_t)(at - *ret_word);
}

static int is_number(const char *text, size_t length)
{
    size_t digits = 0;

    while (digits < length && g_ascii_isdigit(text[digits]))
        digits++;
    return digits == length && digits <= 18;
}

/* The next host, and its length, 0 at the end or where something is wrong. */
static size_t read_host(reader_t *reader, const char **ret_host)
{
    size_t length = read_word(reader, ret_host), digits;
    const char *slots;

    if (!length || reader->wrong)
        return 0;
    digits = read_word(reader, &slots);
    if (length > 255)
        reader->wrong = "what is no host";
    else if (!digits)
        reader->wrong = "a host without a number of slots";
    else if (!is_number(slots, digits))
        reader->wrong = "what follows a host is no number of slots";
    return reader->wrong ? 0 : length;
}

/* The first host of a system with CSM is not one that computes. */
static reader_t start(const env_view_t *view, const char *text)
{
    reader_t reader = {text, NULL};
    const char *host;

    if (dscomm_priv_view_value(view, "CSM_ALLOCATION_ID"))
        read_host(&reader, &host);
    return reader;
}

/* Names may be short or not. */
static int is_same_host(const char *host, size_t length, const char *own)
{
    const char *dot = memchr(host, '.', length);
    size_t name = dot ? (size_t)(dot - host) : length;

    return name == strcspn(own, ".") &&
           g_ascii_strncasecmp(host, own, name) == 0;
}

static dscomm_status_t refuse(const env_view_t *view, const dscomm_env_t *env,
                              const char *why)
{
    return dscomm_priv_env_fail(view, env, list_name,
                                "not a list of hosts and slots: %s. Correct "
                                "or unset it",
                                why);
}

/* The list has all hosts of the job, of which jsrun may use a part. */
static void set_node(dscomm_env_t *env, int node)
{
    const int world = env->numbers[DSCOMM_ENV_WORLD_SIZE];
    const int local = env->numbers[DSCOMM_ENV_LOCAL_SIZE];

    if (world < 0 || node <= world - MAX(local, 1))
        dscomm_priv_env_set(env, DSCOMM_ENV_NODE_RANK, node, list_name);
}

/* All of it is read: what is malformed beyond this host is so on all ranks. */
static dscomm_status_t find_node(const env_view_t *view, dscomm_env_t *env)
{
    const char *text = dscomm_priv_view_value(view, list_name);
    char *own = text ? dscomm_priv_view_host(view) : NULL;
    reader_t reader;
    const char *host;
    size_t length;
    int node = -1;

    if (!text)
        return DSCOMM_OK;
    reader = start(view, text);
    for (int i = 0; (length = read_host(&reader, &host)); i++) {
        if (own && node < 0 && is_same_host(host, length, own))
            node = i;
    }
    g_free(own);
    if (reader.wrong)
        return refuse(view, env, reader.wrong);
    if (node >= 0)
        set_node(env, node);
    return DSCOMM_OK;
}

static dscomm_status_t find_master(const env_view_t *view, dscomm_env_t *env)
{
    const char *text = dscomm_priv_view_value(view, list_name);
    const char *first;
    reader_t reader;
    size_t length;

    if (!text) {
        dscomm_priv_env_no_address(env, "LSB_MCPU_HOSTS is not set either");
        return DSCOMM_OK;
    }
    reader = start(view, text);
    length = read_host(&reader, &first);
    if (!length)
        return refuse(view, env, "no host");
    dscomm_priv_env_set_address(env, g_strndup(first, length),
                                "first host of LSB_MCPU_HOSTS");
    return DSCOMM_OK;
}

const env_family_t dscomm_priv_env_jsrun = {
    .name = "jsrun",
    .about = "jsrun in a job of LSF",
    .tier = ENV_TIER_MANAGER,
    .any = {"JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE"},
    .numbers =
        {
            [DSCOMM_ENV_RANK] = {"JSM_NAMESPACE_RANK"},
            [DSCOMM_ENV_WORLD_SIZE] = {"JSM_NAMESPACE_SIZE"},
            [DSCOMM_ENV_LOCAL_RANK] = {"JSM_NAMESPACE_LOCAL_RANK"},
            [DSCOMM_ENV_LOCAL_SIZE] = {"JSM_NAMESPACE_LOCAL_SIZE"},
        },
    .complete = find_node,
    .find_master = find_master,
    /* Several jsrun of one job have each their namespace. */
    .job = {{"LSB_JOBID"}, {"LSB_JOBINDEX"}, {"PMIX_NAMESPACE"}},
    .telling = "PMIX_NAMESPACE",
};
