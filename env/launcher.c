/* SPDX-License-Identifier: BSD-3-Clause */
/* The sources of rank and world size, in the order tried: the first one present
 * gives all numbers, so that two launchers are never mixed. */
#include "config.h"

#include "env/launcher.h"
#include "env/settings.h"
#include "lib/status.h"

#include <glib.h>
#include <limits.h>
#include <string.h>

#define QUOTED 80

typedef struct {
    const char *(*get)(const char *name, void *arg);
    void *arg;
} lookup_t;

enum { RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_SIZE, NODE_RANK, NUMBERS };

typedef struct source source_t;
struct source {
    const char *name;
    int (*present)(const source_t *source, const lookup_t *lookup);
    const char *marker; /* what has_marker looks for */
    const char *names[NUMBERS]; /* of the variables; NULL where there is none */
    int agrees; /* 1: RANK and WORLD_SIZE, if set, must say the
                                   same */
    int elastic; /* 1: TORCHELASTIC_* say who serves the store */
};

static const struct {
    const char *what;
    int min, max;
} limits[NUMBERS] = {
    [RANK] = {"a rank", 0, INT_MAX - 1},
    [WORLD_SIZE] = {"a number of ranks", 1, INT_MAX},
    [LOCAL_RANK] = {"a rank", 0, INT_MAX - 1},
    [LOCAL_SIZE] = {"a number of ranks", 1, INT_MAX},
    [NODE_RANK] = {"the number of a node", 0, INT_MAX - 1},
};

static const char *value_of(const lookup_t *lookup, const char *name)
{
    const char *text = name ? lookup->get(name, lookup->arg) : NULL;

    return text && *text ? text : NULL;
}

static int has_marker(const source_t *source, const lookup_t *lookup)
{
    return value_of(lookup, source->marker) != NULL;
}

static int has_pair_or_half(const source_t *source, const lookup_t *lookup)
{
    return value_of(lookup, source->names[RANK]) ||
           value_of(lookup, source->names[WORLD_SIZE]);
}

static int has_any_number(const source_t *source, const lookup_t *lookup)
{
    for (int i = 0; i < NUMBERS; i++) {
        if (value_of(lookup, source->names[i]))
            return 1;
    }
    return 0;
}

/* torchrun before what may have started it; the generic names last, since they
 * may be left over from another job. */
static const source_t sources[] = {
    {"dscomm",
     has_any_number,
     NULL,
     {"DSCOMM_RANK", "DSCOMM_WORLD_SIZE", "DSCOMM_LOCAL_RANK",
      "DSCOMM_LOCAL_SIZE", "DSCOMM_NODE_RANK"},
     0,
     1},
    {"torchrun",
     has_marker,
     "TORCHELASTIC_RUN_ID",
     {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK"},
     0,
     1},
    {"openmpi",
     has_pair_or_half,
     NULL,
     {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
      "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE", NULL},
     1,
     0},
    {"torch",
     has_pair_or_half,
     NULL,
     {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "NODE_RANK"},
     0,
     0},
};

/* A number in min ... max, or -1 where the variable is not set. */
static dscomm_status_t read_number(const lookup_t *lookup, const char *name,
                                   const char *what, int min, int max,
                                   int *ret_number)
{
    const char *text = value_of(lookup, name);
    char quoted[QUOTED];
    int64_t number = -1;

    if (text && (dscomm_priv_parse_decimal(text, &number) || number < min ||
                 number > max))
        return dscomm_fail(DSCOMM_ERR_ENVIRONMENT,
                           "%s='%s' is not %s; set it to a decimal number from "
                           "%d to %d, or unset it",
                           name, dscomm_priv_quote(text, quoted, QUOTED), what,
                           min, max);
    *ret_number = (int)number;
    return DSCOMM_OK;
}

static dscomm_status_t read_numbers(const source_t *source,
                                    const lookup_t *lookup, int *ret_numbers)
{
    for (int i = 0; i < NUMBERS; i++) {
        dscomm_status_t status =
            read_number(lookup, source->names[i], limits[i].what, limits[i].min,
                        limits[i].max, &ret_numbers[i]);

        if (status != DSCOMM_OK)
            return status;
    }
    return DSCOMM_OK;
}

static dscomm_status_t incomplete(const source_t *source,
                                  const lookup_t *lookup, int missing)
{
    char quoted[QUOTED] = "";
    const char *set = source->marker;

    for (int i = 0; i < NUMBERS; i++) {
        if (value_of(lookup, source->names[i])) {
            set = source->names[i];
            break;
        }
    }
    return dscomm_fail(
        DSCOMM_ERR_ENVIRONMENT,
        "%s='%s' is set, but %s is not; set both %s and %s, or neither", set,
        dscomm_priv_quote(value_of(lookup, set), quoted, QUOTED),
        source->names[missing], source->names[RANK], source->names[WORLD_SIZE]);
}

/* What must hold between two of a source's numbers. */
static const struct {
    int low, high;
    int may_equal;
} orders[] = {
    {RANK, WORLD_SIZE, 0},       {LOCAL_RANK, LOCAL_SIZE, 0},
    {LOCAL_RANK, WORLD_SIZE, 0}, {LOCAL_SIZE, WORLD_SIZE, 1},
    {NODE_RANK, WORLD_SIZE, 0},
};

static dscomm_status_t check_order(const source_t *source, const int *numbers)
{
    for (size_t i = 0; i < G_N_ELEMENTS(orders); i++) {
        int low = orders[i].low, high = orders[i].high;

        if (numbers[low] < 0 || numbers[high] < 0 ||
            numbers[low] < numbers[high] + orders[i].may_equal)
            continue;
        return dscomm_fail(DSCOMM_ERR_ENVIRONMENT,
                           "%s='%d' must %s %s='%d' (ranks count from 0); "
                           "correct or unset both",
                           source->names[low], numbers[low],
                           orders[i].may_equal ? "not exceed" : "be less than",
                           source->names[high], numbers[high]);
    }
    return DSCOMM_OK;
}

/* A rank in a stale RANK is a common cause of jobs in which all are rank 0. */
static dscomm_status_t check_agreement(const source_t *source,
                                       const lookup_t *lookup,
                                       const int *numbers)
{
    static const char *const generic[] = {"RANK", "WORLD_SIZE"};

    for (int i = RANK; source->agrees && i <= WORLD_SIZE; i++) {
        int other;
        dscomm_status_t status =
            read_number(lookup, generic[i], limits[i].what, limits[i].min,
                        limits[i].max, &other);

        if (status != DSCOMM_OK)
            return status;
        if (other >= 0 && other != numbers[i])
            return dscomm_fail(DSCOMM_ERR_ENVIRONMENT,
                               "%s='%d' disagrees with %s='%d'; unset RANK and "
                               "WORLD_SIZE if they are left over, or set "
                               "DSCOMM_RANK and DSCOMM_WORLD_SIZE to override "
                               "both",
                               generic[i], other, source->names[i], numbers[i]);
    }
    return DSCOMM_OK;
}

static dscomm_status_t read_source(const source_t *source,
                                   const lookup_t *lookup, int *ret_numbers)
{
    dscomm_status_t status = read_numbers(source, lookup, ret_numbers);

    if (status != DSCOMM_OK)
        return status;
    for (int i = RANK; i <= WORLD_SIZE; i++) {
        if (ret_numbers[i] < 0)
            return incomplete(source, lookup, i);
    }
    status = check_order(source, ret_numbers);
    if (status != DSCOMM_OK)
        return status;
    return check_agreement(source, lookup, ret_numbers);
}

/* The first of two variables that is set. */
static const char *either(const lookup_t *lookup, const char *first,
                          const char *second)
{
    return value_of(lookup, first) ? first : second;
}

static dscomm_status_t read_master(const lookup_t *lookup,
                                   dscomm_launch_t *launch)
{
    const char *name = either(lookup, "DSCOMM_MASTER_ADDR", "MASTER_ADDR");
    const char *text = value_of(lookup, name);
    char *address;
    size_t length;

    if (text) {
        address = g_strstrip(g_strdup(text));
        length = strlen(address);
        g_strlcpy(launch->master_addr, address, sizeof launch->master_addr);
        g_free(address);
        if (!length || length >= sizeof launch->master_addr ||
            launch->master_addr[strcspn(launch->master_addr, " \t\r\n")])
            return dscomm_fail(DSCOMM_ERR_ENVIRONMENT,
                               "%s (%zu bytes) is no host; set it to a name or "
                               "address of at most %zu bytes without blanks",
                               name, length, sizeof launch->master_addr - 1);
    }
    name = either(lookup, "DSCOMM_MASTER_PORT", "MASTER_PORT");
    return read_number(lookup, name, "a port", 1, 65535, &launch->master_port);
}

/* Whether the address is torchrun's own, whose agent may serve the store
 * there. */
static dscomm_status_t read_agent(const lookup_t *lookup,
                                  dscomm_launch_t *launch)
{
    const char *text = value_of(lookup, "TORCHELASTIC_USE_AGENT_STORE");

    if (!text || g_ascii_strcasecmp(text, "true") != 0 ||
        value_of(lookup, "DSCOMM_MASTER_ADDR") ||
        value_of(lookup, "DSCOMM_MASTER_PORT"))
        return DSCOMM_OK;
    if (!*launch->master_addr || launch->master_port < 0)
        return dscomm_fail(DSCOMM_ERR_ENVIRONMENT,
                           "TORCHELASTIC_USE_AGENT_STORE='True' is set, but %s "
                           "is not; set MASTER_ADDR and MASTER_PORT to the "
                           "agent's store, or unset it",
                           *launch->master_addr ? "MASTER_PORT"
                                                : "MASTER_ADDR");
    launch->agent_store = 1;
    return DSCOMM_OK;
}

/* A restarted job finds the keys of its predecessor in the agent's store. A
 * name that is too long is replaced by its checksum. */
static dscomm_status_t read_run_id(const lookup_t *lookup,
                                   dscomm_launch_t *launch)
{
    const char *name = value_of(lookup, "TORCHELASTIC_RUN_ID");
    int restart;
    char *id;
    dscomm_status_t status = read_number(lookup, "TORCHELASTIC_RESTART_COUNT",
                                         "a count", 0, INT_MAX, &restart);

    if (!name || status != DSCOMM_OK)
        return status;
    id = g_strdup_printf("%s/%d", name, MAX(restart, 0));
    if (strlen(id) >= sizeof launch->run_id) {
        char *sum = g_compute_checksum_for_string(G_CHECKSUM_SHA256, id, -1);

        g_free(id);
        id = sum;
    }
    g_strlcpy(launch->run_id, id, sizeof launch->run_id);
    g_free(id);
    return DSCOMM_OK;
}

static void set_numbers(const source_t *source, const int *numbers,
                        dscomm_launch_t *launch)
{
    g_strlcpy(launch->source, source->name, sizeof launch->source);
    launch->rank = numbers[RANK];
    launch->world_size = numbers[WORLD_SIZE];
    launch->local_rank = numbers[LOCAL_RANK];
    launch->local_size = numbers[LOCAL_SIZE];
    launch->node_rank = numbers[NODE_RANK];
}

/* What follows from having one node. */
static void complete_single_node(dscomm_launch_t *launch)
{
    if (launch->world_size == 1)
        launch->local_size = 1;
    if (launch->local_size != launch->world_size)
        return;
    if (launch->local_rank < 0)
        launch->local_rank = launch->rank;
    if (launch->node_rank < 0)
        launch->node_rank = 0;
    if (!*launch->master_addr)
        g_strlcpy(launch->master_addr, "127.0.0.1", sizeof launch->master_addr);
}

static const source_t *find_source(const lookup_t *lookup)
{
    for (size_t i = 0; i < G_N_ELEMENTS(sources); i++) {
        if (sources[i].present(&sources[i], lookup))
            return &sources[i];
    }
    return NULL;
}

static dscomm_status_t discover(const source_t *source, const lookup_t *lookup,
                                dscomm_launch_t *launch)
{
    int numbers[NUMBERS];
    dscomm_status_t status = read_source(source, lookup, numbers);

    if (status != DSCOMM_OK)
        return status;
    set_numbers(source, numbers, launch);
    status = read_master(lookup, launch);
    if (status != DSCOMM_OK)
        return status;
    if (source->elastic) {
        status = read_agent(lookup, launch);
        if (status != DSCOMM_OK)
            return status;
        status = read_run_id(lookup, launch);
        if (status != DSCOMM_OK)
            return status;
    }
    complete_single_node(launch);
    return DSCOMM_OK;
}

dscomm_status_t
dscomm_priv_launch_discover(const char *(*get)(const char *name, void *arg),
                            void *arg, dscomm_launch_t *ret_launch)
{
    static const dscomm_launch_t singleton = {"singleton", 0,  1, 0, 1, 0,
                                              "127.0.0.1", -1, 0, ""};
    const lookup_t lookup = {get, arg};
    const source_t *source = find_source(&lookup);
    dscomm_launch_t launch = {.master_port = -1};
    dscomm_status_t status;

    if (!source) {
        *ret_launch = singleton;
        return DSCOMM_OK;
    }
    status = discover(source, &lookup, &launch);
    if (status == DSCOMM_OK)
        *ret_launch = launch;
    return status;
}
