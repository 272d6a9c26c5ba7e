/* SPDX-License-Identifier: BSD-3-Clause */
/* `dscomm run`: its own options, and torchrun's words for the same. */
#include "config.h"

#include "tools/common/tool.h"
#include "tools/run/hosts.h"
#include "tools/run/job.h"
#include "tools/run/words.h"

#include <arpa/inet.h>
#include <dscomm/env.h>
#include <stdbool.h>
#include <string.h>

#define PORT_DEFAULT 29500 /* torchrun's */
#define SECONDS_MAX 1e9
#define RESTARTS_MAX 1000000

typedef struct {
    int ranks, master_port;
    double timeout, grace, join_timeout, last_call, node_timeout; /* seconds */
    char *nodes, *master, *master_addr, *id, *log_dir, *bind, *color;
    tool_hosts_t hosts;
    gboolean deepspeed_table;
    tool_limits_t limits;
    tool_place_t place;
} options_t;

static const char description[] =
    "PROGRAM is searched in PATH and gets ARGUMENTS. The exit status is that "
    "of the\n"
    "first rank that fails (128 + N for signal N), after which the others are\n"
    "ended, on all nodes; 0 if none fails; 124 after --timeout; 125 if dscomm\n"
    "itself fails, or a node is missing; 126 if PROGRAM cannot be executed, "
    "127 if\n"
    "it is not found; 2 for wrong use. torchrun's --nproc-per-node and\n"
    "--rdzv-endpoint mean --ranks and --master; '_' is as good as '-'.";

static int options_refuse(const char *text)
{
    return tool_fail(TOOL_USAGE, "run", "%s", text);
}

/* Reads a number such as "4", without anything after it. */
static bool read_count(const char *text, int most, int *ret_count)
{
    gint64 number;

    if (!g_ascii_string_to_signed(text, 10, 1, most, &number, NULL))
        return false;
    *ret_count = (int)number;
    return true;
}

/* Reads --nnodes MIN:MAX. Node 0 is where the store is; the others have no
 * number. */
static int options_read_range(options_t *o)
{
    tool_place_t *place = &o->place;
    char **words = g_strsplit(o->nodes, ":", 2);
    const bool valid = read_count(words[0], TOOL_NODES_MAX, &place->least) &&
                       read_count(words[1], TOOL_NODES_MAX, &place->nodes) &&
                       place->least <= place->nodes;

    g_strfreev(words);
    if (!valid)
        return tool_fail(TOOL_USAGE, "run",
                         "--nnodes '%s' must be MIN:MAX, with 1 <= MIN <= MAX "
                         "<= %d",
                         o->nodes, TOOL_NODES_MAX);
    if (place->node_rank > 0)
        return options_refuse(
            "with --nnodes MIN:MAX, give --node-rank 0 on the host of "
            "--master, "
            "and none on the others: they are numbered when they have come");
    return TOOL_OK;
}

static int options_read_nodes(options_t *o)
{
    tool_place_t *place = &o->place;

    if (o->nodes && strchr(o->nodes, ':'))
        return options_read_range(o);
    if (o->nodes && !read_count(o->nodes, TOOL_NODES_MAX, &place->nodes))
        return tool_fail(TOOL_USAGE, "run",
                         "--nnodes '%s' must be 1 to %d, or MIN:MAX", o->nodes,
                         TOOL_NODES_MAX);
    if (place->nodes == 1 && place->node_rank < 0)
        place->node_rank = 0;
    if (place->node_rank < 0 || place->node_rank >= place->nodes)
        return tool_fail(TOOL_USAGE, "run",
                         "give this node's number, 0 to %d, with --node-rank",
                         place->nodes - 1);
    return TOOL_OK;
}

/* Chooses the nodes and node 0 of --hostfile. */
static int read_hosts(options_t *o)
{
    tool_place_t *place = &o->place;
    int status = tool_hosts_read(&o->hosts);
    int count;

    if (status == TOOL_OK && place->node_rank >= 0)
        status = options_refuse("--hostfile numbers the nodes in the order of "
                                "its hosts; leave --node-rank out");
    if (status != TOOL_OK)
        return status;
    place->node_rank = 0;
    count = (int)o->hosts.list->len;
    place->nodes = count;
    status = options_read_nodes(o);
    if (status == TOOL_OK &&
        (place->least ? place->least : place->nodes) > count)
        return tool_fail(TOOL_USAGE, "run", "--nnodes %s: %s has %d host%s",
                         o->nodes, o->hosts.path, count, count > 1 ? "s" : "");
    if (status == TOOL_OK && !place->least)
        tool_hosts_keep(&o->hosts, (guint)place->nodes);
    if (!o->master && !o->master_addr)
        o->master_addr =
            tool_hosts_address(&g_array_index(o->hosts.list, tool_host_t, 0));
    for (guint i = 0; i < o->hosts.list->len && status == TOOL_OK; i++) {
        tool_host_t *host = &g_array_index(o->hosts.list, tool_host_t, i);

        if (!host->ranks)
            host->ranks = o->ranks;
        if (!host->ranks)
            status = tool_fail(TOOL_USAGE, "run",
                               "%s: host %s has no slots=N; give the ranks of "
                               "such hosts with -n",
                               o->hosts.path, host->name);
    }
    return status;
}

/* Returns whether text is an IPv6 address without brackets: its last colon
 * could also separate a port. */
static bool lacks_brackets(const char *text)
{
    return text && *text != '[' && strchr(text, ':') != strrchr(text, ':');
}

/* HOST, HOST:PORT, [IPV6] or [IPV6]:PORT. */
static bool split_master(char *master, tool_place_t *place)
{
    char *colon = strrchr(master, ':');
    char *bracket = *master == '[' ? strchr(master, ']') : NULL;

    if (*master == '[' && !bracket)
        return false;
    if (bracket) {
        *bracket = '\0';
        master++;
        colon = bracket[1] == ':' ? bracket + 1 : NULL;
        if ((bracket[1] && !colon) || !strchr(master, ':'))
            return false;
    } else if (colon) {
        *colon = '\0';
    }
    place->host = master;
    return *master && (!colon || read_count(colon + 1, 65535, &place->port));
}

/* Reads an address. An IPv6 address needs no brackets if no port can follow. */
static bool read_address(char *text, tool_place_t *place)
{
    struct in6_addr address;

    if (!lacks_brackets(text))
        return split_master(text, place);
    place->host = text;
    return inet_pton(AF_INET6, text, &address) == 1;
}

static int read_master(options_t *o)
{
    tool_place_t *place = &o->place;

    if (o->master && (o->master_addr || o->master_port))
        return options_refuse("give --master HOST:PORT, or --master-addr and "
                              "--master-port, not both");
    if (o->master_port < 0 || o->master_port > 65535)
        return options_refuse("--master-port must be 1 to 65535");
    if (lacks_brackets(o->master))
        return tool_fail(TOOL_USAGE, "run",
                         "--master '%s': an IPv6 address needs brackets, as "
                         "in [::1]:29500",
                         o->master);
    if (o->master && !split_master(o->master, place))
        return options_refuse(
            "--master must be HOST:PORT, with a port of 1 to 65535, "
            "and brackets around an address of IPv6 alone");
    if (o->master_addr && !read_address(o->master_addr, place))
        return options_refuse(
            "--master-addr must be the name or address of a host; with "
            "a port, an IPv6 address needs brackets");
    if (o->master_port)
        place->port = o->master_port;
    if ((place->nodes > 1 || place->least) && !place->host)
        return options_refuse(
            "where do the nodes meet? Give all of them the same "
            "--master HOST:PORT, of node 0");
    if (!place->host && o->master_port)
        place->host = "127.0.0.1";
    o->limits.place = place->host ? place : NULL;
    return TOOL_OK;
}

/* Converts seconds to microseconds. Only 0 becomes 0, which may mean
 * "never". */
static gint64 to_us(double seconds)
{
    gint64 us = (gint64)(seconds * G_USEC_PER_SEC);

    return seconds > 0 ? MAX(us, 1) : 0;
}

static int read_times(options_t *o)
{
    const struct {
        const char *name;
        double seconds, min, max;
        gint64 *us;
    } times[] = {
        {"--timeout", o->timeout, 0, SECONDS_MAX, &o->limits.timeout_us},
        {"--grace", o->grace, 0, SECONDS_MAX, &o->limits.grace_us},
        {"--join-timeout", o->join_timeout, 0, SECONDS_MAX, &o->place.join_us},
        {"--last-call", o->last_call, 0, SECONDS_MAX, &o->place.last_call_us},
        {"--node-timeout", o->node_timeout, 1, 86400, &o->place.silence_us},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(times); i++) {
        if (!(times[i].seconds >= times[i].min &&
              times[i].seconds <= times[i].max))
            return tool_fail(TOOL_USAGE, "run",
                             "%s must be %.0f to %.0f seconds", times[i].name,
                             times[i].min, times[i].max);
        *times[i].us = to_us(times[i].seconds);
    }
    return TOOL_OK;
}

/* Reads a word of names, of which the last is NULL. The number of the name;
 * TOOL_USAGE as *ret_status: a sentence went to stderr. */
static int read_word(const char *option, const char *word,
                     const char *const *names, int *ret_status)
{
    char *all;

    for (int i = 0; names[i]; i++)
        if (!word || strcmp(word, names[i]) == 0)
            return i;
    all = g_strjoinv(", ", (char **)names);
    *ret_status = tool_fail(TOOL_USAGE, "run", "%s '%s' must be one of %s",
                            option, word, all);
    g_free(all);
    return 0;
}

/* Reads --bind and those of the tags. */
static int read_words_of_ranks(options_t *o)
{
    static const char *const color[] = {"auto", "always", "never", NULL};
    int status = TOOL_OK;

    if (o->bind)
        status = tool_bind_check(o->bind);
    o->limits.bind = o->bind;
    o->limits.tags.color =
        (tool_color_t)read_word("--color", o->color, color, &status);
    o->limits.tag_output |= o->limits.tags.timestamps;
    return status;
}

static int run_check_options(options_t *o, char **argv)
{
    int status;

    if (o->ranks < 0 || o->ranks > TOOL_RANKS_MAX ||
        (!o->ranks && !o->hosts.path))
        return tool_fail(TOOL_USAGE, "run",
                         "give the number of ranks, 1 to %d, with -n",
                         TOOL_RANKS_MAX);
    status = read_times(o);
    if (status == TOOL_OK)
        status = read_words_of_ranks(o);
    if (status == TOOL_OK)
        status = o->hosts.path ? read_hosts(o) : options_read_nodes(o);
    if (status == TOOL_OK)
        status = read_master(o);
    if (status != TOOL_OK)
        return status;
    if (o->hosts.rsh && !o->hosts.path)
        return options_refuse("--rsh starts the hosts of a file; give it with "
                              "--hostfile FILE");
    if (o->limits.max_restarts < 0 || o->limits.max_restarts > RESTARTS_MAX)
        return tool_fail(TOOL_USAGE, "run", "--max-restarts must be 0 to %d",
                         RESTARTS_MAX);
    if (o->limits.survive && o->limits.max_restarts > 0)
        return options_refuse("--survive lets the other ranks go on after a "
                              "failure, and --max-restarts ends them; give one "
                              "of the two");
    if (o->id && !tool_is_id(o->id))
        return options_refuse(
            "--rdzv-id must be 1 to 100 letters, digits, '.', '_' "
            "and '-'");
    if (o->log_dir && !*o->log_dir)
        return options_refuse("--log-dir must be the path of a folder");
    if (!argv[0])
        return options_refuse("which program? Usage: dscomm run -n N PROGRAM "
                              "[ARGUMENTS]");
    o->limits.id = o->place.id = o->id;
    o->limits.log_dir = o->log_dir;
    return TOOL_OK;
}

static const char *get_launcher(const char *name, void *arg)
{
    return strcmp(name, "DSCOMM_LAUNCHER") == 0 ? arg : NULL;
}

/* Checks DSCOMM_LAUNCHER. dscomm run tells ranks who they are, whatever its
 * value; but an unknown name is refused, as in all other programs. */
static int check_launcher(void)
{
    const char *name = g_getenv("DSCOMM_LAUNCHER");
    dscomm_env_attr_t attr = DSCOMM_ENV_ATTR_INIT;
    dscomm_env_candidate_t source = {.size = sizeof source};
    dscomm_env_t *env = NULL;
    bool known = false;

    if (!name || !*name || g_ascii_strcasecmp(name, "auto") == 0 ||
        g_ascii_strcasecmp(name, "torchrun") == 0)
        return TOOL_OK;
    attr.get = get_launcher;
    attr.arg = (char *)name;
    attr.tolerate = 1;
    if (dscomm_env_discover(&attr, &env) != DSCOMM_OK)
        return tool_fail(TOOL_INTERNAL, "run", "%s", dscomm_last_error());
    for (size_t i = 0; dscomm_env_candidate(env, i, &source) == DSCOMM_OK; i++)
        known |= g_ascii_strcasecmp(source.name, name) == 0;
    if (!known) {
        dscomm_env_status(env);
        tool_fail(TOOL_USAGE, "run", "%s", dscomm_last_error());
    }
    dscomm_env_free(env);
    if (!known)
        return TOOL_USAGE;
    return tool_fail(TOOL_OK, "run",
                     "DSCOMM_LAUNCHER='%s' is ignored: the ranks are told by "
                     "dscomm run who they are",
                     name);
}

/* Adds word to those of DSCOMM_PROFILE, which the ranks get, unless it is there
 * already. */
static void profile_add(const char *word)
{
    const char *old = g_getenv("DSCOMM_PROFILE");
    char **words = g_strsplit(old ? old : "", ",", -1);
    char *all =
        old && *old ? g_strconcat(old, ",", word, NULL) : g_strdup(word);

    for (char **item = words; *item; item++)
        g_strstrip(*item);
    if (!g_strv_contains((const char *const *)words, word))
        g_setenv("DSCOMM_PROFILE", all, TRUE);
    g_strfreev(words);
    g_free(all);
}

/* Prints the commands of the hosts of --hostfile, or starts them. */
static int run_on_hosts(const options_t *o, const GPtrArray *words, char **argv)
{
    const tool_place_t *place = &o->place;
    char *nodes =
        o->nodes ? g_strdup(o->nodes) : g_strdup_printf("%d", place->nodes);
    char *master =
        g_strdup_printf(strchr(place->host, ':') ? "[%s]:%d" : "%s:%d",
                        place->host, place->port);
    const tool_hosts_job_t job = {nodes,
                                  place->least,
                                  master,
                                  words,
                                  argv,
                                  o->limits.no_secret,
                                  o->limits.tag_output,
                                  o->limits.grace_us,
                                  o->limits.timeout_us};
    const int status = tool_hosts_run(&o->hosts, &job);

    g_free(master);
    g_free(nodes);
    return status;
}

/* Runs the job; argv begins with the program's name, as parsed. */
static int run_parsed(options_t *o, const GPtrArray *words, char **argv)
{
    int status;

    argv += 1 + (argv[1] && strcmp(argv[1], "--") == 0);
    status = run_check_options(o, argv);
    if (status == TOOL_OK)
        status = check_launcher();
    if (status != TOOL_OK)
        return status;
    if (o->hosts.path)
        return run_on_hosts(o, words, argv);
    if (o->deepspeed_table)
        profile_add("deepspeed");
    return tool_job_run("run", argv, o->ranks, &o->limits);
}

int tool_run(int argc, char **argv)
{
    options_t o = {
        .grace = 5,
        .join_timeout = 300,
        .last_call = 30,
        .node_timeout = 10,
        .place = {.nodes = 1, .node_rank = -1, .port = PORT_DEFAULT}};
    char **const texts[] = {&o.nodes,   &o.master, &o.master_addr, &o.id,
                            &o.log_dir, &o.bind,   &o.color};
    const GOptionEntry entries[] = {
        {"ranks", 'n', 0, G_OPTION_ARG_INT, &o.ranks,
         "Start N ranks on this machine (required)", "N"},
        {"nproc-per-node", 0, G_OPTION_FLAG_HIDDEN, G_OPTION_ARG_INT, &o.ranks,
         NULL, NULL},
        {"nnodes", 0, 0, G_OPTION_ARG_STRING, &o.nodes,
         "The job has N nodes, each with a dscomm run; or MIN to MAX", "N"},
        {"node-rank", 0, 0, G_OPTION_ARG_INT, &o.place.node_rank,
         "This is node R, from 0", "R"},
        {"master", 0, 0, G_OPTION_ARG_STRING, &o.master,
         "Node 0 serves the store there; port 29500 if none is given",
         "HOST:PORT"},
        {"rdzv-endpoint", 0, G_OPTION_FLAG_HIDDEN, G_OPTION_ARG_STRING,
         &o.master, NULL, NULL},
        {"master-addr", 0, 0, G_OPTION_ARG_STRING, &o.master_addr,
         "The same: the host", "HOST"},
        {"master-port", 0, 0, G_OPTION_ARG_INT, &o.master_port,
         "The same: the port", "PORT"},
        {"hostfile", 0, 0, G_OPTION_ARG_FILENAME, &o.hosts.path,
         "Print the command of each host in FILE, or start it by --rsh",
         "FILE"},
        {"rsh", 0, 0, G_OPTION_ARG_STRING, &o.hosts.rsh,
         "Start the nodes with this program, such as ssh", "PROGRAM"},
        {"rdzv-id", 0, 0, G_OPTION_ARG_STRING, &o.id,
         "Name of the job, the same on all nodes (a random one)", "ID"},
        {"join-timeout", 0, 0, G_OPTION_ARG_DOUBLE, &o.join_timeout,
         "Time for all nodes to come (300 seconds)", "S"},
        {"last-call", 0, 0, G_OPTION_ARG_DOUBLE, &o.last_call,
         "Wait so long for more when MIN nodes have come (30)", "S"},
        {"node-timeout", 0, 0, G_OPTION_ARG_DOUBLE, &o.node_timeout,
         "A node not heard of for S seconds is lost (10)", "S"},
        {"max-restarts", 0, 0, G_OPTION_ARG_INT, &o.limits.max_restarts,
         "Start all ranks again after a failure, at most N times (0)", "N"},
        {"survive", 0, 0, G_OPTION_ARG_NONE, &o.limits.survive,
         "Let the other ranks go on if a rank fails", NULL},
        {"tag-output", 0, 0, G_OPTION_ARG_NONE, &o.limits.tag_output,
         "Put \"[rank]: \" before every line of output", NULL},
        {"timestamps", 0, 0, G_OPTION_ARG_NONE, &o.limits.tags.timestamps,
         "--tag-output, with the time before each tag", NULL},
        {"color", 0, 0, G_OPTION_ARG_STRING, &o.color,
         "Color tags: always, never, or auto, on a terminal", "WHEN"},
        {"bind", 0, 0, G_OPTION_ARG_STRING, &o.bind,
         "Bind ranks to shares of: numa, core, socket, gpu, 0-3,8 (none)",
         "OBJECT"},
        {"deepspeed-table", 0, 0, G_OPTION_ARG_NONE, &o.deepspeed_table,
         "Print a profile in the layout of DeepSpeed's log_summary", NULL},
        {"log-dir", 0, 0, G_OPTION_ARG_FILENAME, &o.log_dir,
         "Write the ranks' output to files in DIR", "DIR"},
        {"no-secret", 0, 0, G_OPTION_ARG_NONE, &o.limits.no_secret,
         "Serve the store to whoever reaches it, as PyTorch needs", NULL},
        {"timeout", 0, 0, G_OPTION_ARG_DOUBLE, &o.timeout,
         "End all ranks after S seconds; 0 = never", "S"},
        {"grace", 0, 0, G_OPTION_ARG_DOUBLE, &o.grace,
         "Time from SIGTERM to SIGKILL (5 seconds)", "S"},
        {NULL, 0, 0, 0, NULL, NULL, NULL},
    };

    GPtrArray *words = g_ptr_array_new();
    int status = tool_words_read(argv, entries, words);

    if (status == TOOL_OK &&
        !tool_parse(&argc, &argv, entries, "PROGRAM [ARGUMENT...]", description,
                    true, NULL))
        status = TOOL_USAGE;
    if (status == TOOL_OK)
        status = run_parsed(&o, words, argv);
    g_ptr_array_free(words, true);
    for (size_t i = 0; i < G_N_ELEMENTS(texts); i++)
        g_free(*texts[i]);
    tool_hosts_free(&o.hosts);
    return status;
}
