/* SPDX-License-Identifier: BSD-3-Clause */
/* jsrun, which starts the ranks of a job of LSF. */
#include "config.h"

#include "env/fields.h"

#include <string.h>

static const char list_name[] = "LSB_MCPU_HOSTS";

/* Reader of "h1 n1 h2 n2", hosts with their numbers of slots. */
typedef struct {
    const char *at;
    const char *wrong; /* NULL until an error is found */
} reader_t;

static inline int is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n';
}

static inline int is_word(char c)
{
    return (unsigned char)c > ' ' && c != 0x7f;
}

static inline const char *jsrun_after_blanks(const char *at)
{
    while (is_blank(*at))
        at++;
    return at;
}

/* Says what is wrong with an element, or NULL: slots to end are digits. */
static inline const char *jsrun_find_wrong(size_t length, const char *slots,
                                           const char *end)
{
    if (length < 1 || length > 255)
        return "what is no host";
    if (end > slots && end - slots <= 18 && (is_blank(*end) || !*end))
        return NULL;
    if (end == slots && !*end)
        return "a host without a number of slots";
    if (*end && !is_blank(*end) && !is_word(*end))
        return "what is no host";
    return "what follows a host is no number of slots";
}

/* Returns the length of the next host; 0 at the end or after an error. */
static size_t jsrun_read_host(reader_t *reader, const char **ret_host)
{
    const char *host = jsrun_after_blanks(reader->at), *at = host, *slots;
    size_t length;

    while (is_word(*at))
        at++;
    length = (size_t)(at - host);
    slots = jsrun_after_blanks(at);
    at = slots;
    while ((unsigned)*at - '0' < 10)
        at++;
    reader->at = at;
    *ret_host = host;
    if (!length && !*at)
        return 0;
    reader->wrong = jsrun_find_wrong(length, slots, at);
    return reader->wrong ? 0 : length;
}

/* The first host of the list runs no ranks on a system with CSM. */
static reader_t jsrun_start(const env_view_t *view, const char *text)
{
    reader_t reader = {text, NULL};
    const char *host;

    if (dscomm_priv_view_value(view, "CSM_ALLOCATION_ID"))
        jsrun_read_host(&reader, &host);
    return reader;
}

/* Compares names, which may be short or full; own is the short one. */
static int is_same_host(const char *host, size_t length, const char *own,
                        size_t own_length)
{
    return length >= own_length &&
           (length == own_length || host[own_length] == '.') &&
           g_ascii_strncasecmp(host, own, own_length) == 0;
}

static dscomm_status_t jsrun_refuse(const env_view_t *view,
                                    const dscomm_env_t *env, const char *why)
{
    return dscomm_priv_env_fail(view, env, list_name,
                                "not a list of hosts and slots: %s. Correct "
                                "or unset it",
                                why);
}

/* The list has all hosts of the job; jsrun may use only some of them. */
static void set_node(dscomm_env_t *env, int node)
{
    const int world = env->numbers[DSCOMM_ENV_WORLD_SIZE];
    const int local = env->numbers[DSCOMM_ENV_LOCAL_SIZE];

    if (world < 0 || node <= world - MAX(local, 1))
        dscomm_priv_env_set(env, DSCOMM_ENV_NODE_RANK, node, list_name);
}

/* Reads the whole list, so that all ranks find an error in it. */
static dscomm_status_t jsrun_find_node(const env_view_t *view,
                                       dscomm_env_t *env)
{
    const char *text = dscomm_priv_view_value(view, list_name);
    char *own = text ? dscomm_priv_view_host(view) : NULL;
    const size_t own_length = own ? strcspn(own, ".") : 0;
    reader_t reader;
    const char *host;
    size_t length;
    int node = -1;

    if (!text)
        return DSCOMM_OK;
    reader = jsrun_start(view, text);
    for (int i = 0; (length = jsrun_read_host(&reader, &host)); i++) {
        if (own && node < 0 && is_same_host(host, length, own, own_length))
            node = i;
    }
    g_free(own);
    if (reader.wrong)
        return jsrun_refuse(view, env, reader.wrong);
    if (node >= 0)
        set_node(env, node);
    return DSCOMM_OK;
}

static dscomm_status_t jsrun_find_master(const env_view_t *view,
                                         dscomm_env_t *env)
{
    const char *text = dscomm_priv_view_value(view, list_name);
    const char *first;
    reader_t reader;
    size_t length;

    if (!text) {
        dscomm_priv_env_no_address(env, "LSB_MCPU_HOSTS is not set either");
        return DSCOMM_OK;
    }
    reader = jsrun_start(view, text);
    length = jsrun_read_host(&reader, &first);
    if (!length)
        return jsrun_refuse(view, env,
                            reader.at > text
                                ? "no host is left behind the batch "
                                  "host, which CSM_ALLOCATION_ID says "
                                  "is the first"
                                : "no host");
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
    .complete = jsrun_find_node,
    .find_master = jsrun_find_master,
    /* Each jsrun of a job has a namespace of its own. */
    .job = {{"LSB_JOBID"}, {"LSB_JOBINDEX"}, {"PMIX_NAMESPACE"}},
    .unique_if = "PMIX_NAMESPACE",
    .rival = 1,
};
