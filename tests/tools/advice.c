/* SPDX-License-Identifier: BSD-3-Clause */
/* Advice on launch lines, compared with tests/tools/advice.golden, which
 * describes its own form; and the form of the rules. `advice.t --write FILE`
 * prints FILE with the present answers. */
#include "config.h"

#include "tests/tap.h"
#include "tools/env/advice/rules.h"

#include <arpa/inet.h>
#include <glib/gstdio.h>
#include <unistd.h>

/* The output of --version of each mpirun. */
static const struct {
    const char *name, *text;
} versions[] = {
    {"openmpi-4", "mpirun (Open MPI) 4.1.4\n\nReport bugs to http://x/\n"},
    {"debian-4",
     "mpirun.openmpi (OpenRTE) 4.1.4\n\nReport bugs to http://x/\n"},
    {"openmpi-5", "mpirun (Open MPI) 5.0.7\n\nReport bugs to x\n"},
    {"openmpi-6", "mpirun (Open MPI) 6.0.0\n"},
    {"mpich",
     "HYDRA build details:\n    Version:                            "
     "     4.0.2\n    Release Date:            Thu Apr  7 12:34:45 CDT "
     "2022\n"},
    {"intel", "Intel(R) MPI Library for Linux* OS, Version 2021.18.1 Build "
              "2026 (id: b4)\nCopyright 2003-2026, Intel Corporation.\n"},
};

/* FOLDER/NAME is the root of the machine NAME. */
static char *folder;

/* A path of a machine, whose folder is made; g_free(). */
static char *path_of(const char *machine, const char *path)
{
    char *name = g_build_filename(folder, machine, path, NULL);
    char *parent = g_path_get_dirname(name);

    if (g_mkdir_with_parents(parent, 0700) < 0)
        bail("cannot make %s", parent);
    g_free(parent);
    return name;
}

static void put(const char *machine, const char *path, const char *text)
{
    char *name = path_of(machine, path);

    if (!g_file_set_contents(name, text, -1, NULL))
        bail("cannot write %s", name);
    g_free(name);
}

/* Appends a line like the kernel's: addresses as numbers in this machine's byte
 * order. */
static void add_route(GString *text, const char *interface, const char *network,
                      const char *gateway, const char *mask)
{
    g_string_append_printf(
        text, "%s\t%08X\t%08X\t0003\t0\t0\t0\t%08X\t0\t0\t0\n", interface,
        inet_addr(network), inet_addr(gateway), inet_addr(mask));
}

static void put_routes(const char *machine, bool several)
{
    GString *text = g_string_new("Iface\tDestination\tGateway \tFlags\tRefCnt\t"
                                 "Use\tMetric\tMask\t\tMTU\tWindow\tIRTT\n");

    if (several) {
        add_route(text, "docker0", "172.17.0.0", "0.0.0.0", "255.255.0.0");
        add_route(text, "eth1", "192.168.7.0", "0.0.0.0", "255.255.255.0");
    }
    add_route(text, "eth0", "0.0.0.0", "10.1.0.1", "0.0.0.0");
    add_route(text, "eth0", "10.1.0.0", "0.0.0.0", "255.255.252.0");
    put(machine, "proc/net/route", text->str);
    g_string_free(text, TRUE);
}

static void put_device(const char *machine, const char *device,
                       const char *state)
{
    char *path =
        g_strdup_printf("sys/class/infiniband/%s/ports/1/state", device);

    put(machine, path, state);
    g_free(path);
}

/* Machines. plain: three networks, and a list of PBS. bare: nothing is known.
 * single: one network. rdma, down, efa, driver, opa, usnic, iwarp and cxi:
 * plain with a device. */
static void put_machines(void)
{
    static const char *const likes[] = {"plain",  "rdma",   "down",  "efa",
                                        "opa",    "usnic",  "iwarp", "cxi",
                                        "masked", "driver", "single"};
    char *name;

    for (size_t i = 0; i < G_N_ELEMENTS(likes); i++)
        put_routes(likes[i], strcmp(likes[i], "single") != 0);
    put("small", "proc/sys/kernel/hostname", "small.local\n");
    put_routes("small", true);
    put_device("rdma", "mlx5_0", "4: ACTIVE\n");
    put_device("down", "mlx5_0", "1: DOWN\n");
    put_device("efa", "efa_0", "4: ACTIVE\n");
    put_device("opa", "hfi1_0", "4: ACTIVE\n");
    put_device("usnic", "usnic_0", "4: ACTIVE\n");
    put_device("iwarp", "siw_eth0", "4: ACTIVE\n");
    put("iwarp", "sys/class/infiniband/siw_eth0/node_type", "4: RNIC\n");
    put("cxi", "sys/class/cxi/cxi0/uevent", "");
    put_device("driver", "rdmap0", "4: ACTIVE\n");
    name = path_of("driver", "sys/class/infiniband/rdmap0/device/driver");
    if (symlink("../drivers/efa", name) < 0)
        bail("cannot link %s", name);
    g_free(name);
    put("plain", "nodes", "p1.site\np2.site\n");
}

static void remove_tree(const char *path)
{
    GDir *dir = g_dir_open(path, 0, NULL);
    const char *name;

    while (dir && (name = g_dir_read_name(dir))) {
        char *entry = g_build_filename(path, name, NULL);

        remove_tree(entry);
        g_free(entry);
    }
    if (dir)
        g_dir_close(dir);
    g_remove(path);
}

/* A question: VERSION MACHINE [root] [NODESxRANKS] [why] [NAME=VALUE...] [--
 * ARGUMENT...], in words as of a shell. */
typedef struct {
    char **words;
    GPtrArray *environment;
    char *root;
    bool why; /* the answer includes the reason of each part */
    tool_advice_question_t question;
} case_t;

static const char *version_of(const char *word)
{
    for (size_t i = 0; i < G_N_ELEMENTS(versions); i++) {
        if (strcmp(versions[i].name, word) == 0)
            return versions[i].text;
    }
    return word;
}

/* Sets the cores. small: 2 cores. bare: nothing is known. masked: a launcher
 * permits one core. All others: 8 cores, two NUMA nodes. */
static void count_cores(tool_advice_question_t *question, const char *machine)
{
    const bool small = strcmp(machine, "small") == 0;
    const bool masked = strcmp(machine, "masked") == 0;

    if (strcmp(machine, "bare") == 0)
        return;
    question->cores = small ? 2 : masked ? 1 : 8;
    question->numa_nodes = small || masked ? 0 : 2;
    question->cores_per_numa = small || masked ? 0 : 4;
}

static void case_read(case_t *v, const char *line)
{
    tool_advice_question_t *question = &v->question;

    *v = (case_t){.environment = g_ptr_array_new()};
    if (!g_shell_parse_argv(line, NULL, &v->words, NULL) ||
        g_strv_length(v->words) < 2)
        bail("no question: %s", line);
    v->root = g_build_filename(folder, v->words[1], NULL);
    *question = (tool_advice_question_t){
        .program = "P", .version = version_of(v->words[0]), .root = v->root};
    count_cores(question, v->words[1]);
    for (char **word = v->words + 2; *word && !question->given; word++) {
        if (strcmp(*word, "--") == 0)
            question->given = word + 1;
        else if (strcmp(*word, "root") == 0)
            question->superuser = true;
        else if (strcmp(*word, "why") == 0)
            v->why = true;
        else if (strchr(*word, '='))
            g_ptr_array_add(v->environment, *word);
        else if (sscanf(*word, "%dx%d", &question->nodes,
                        &question->ranks_per_node) != 2)
            bail("'%s' is no part of a question: %s", *word, line);
    }
    g_ptr_array_add(v->environment, NULL);
    question->environment = (char *const *)v->environment->pdata;
}

static void case_clear(case_t *v)
{
    g_strfreev(v->words);
    g_ptr_array_unref(v->environment);
    g_free(v->root);
}

/* Prints reasons if they were requested, or if one is missing. */
static void print_parts(const GPtrArray *parts, bool why, GString *text)
{
    for (guint i = 0; i < parts->len; i++) {
        const tool_advice_part_t *part = g_ptr_array_index(parts, i);
        char *words = tool_advice_quote(part->words);

        if (why || !*part->why || strchr(part->why, '{'))
            g_string_append_printf(text, "  %s: %s\n", words, part->why);
        g_free(words);
    }
}

static void print_judgement(const tool_advice_judgement_t *judgement,
                            GString *text)
{
    g_string_append_printf(text, "  %s %s: %s%s%s\n", judgement->verdict,
                           judgement->text, judgement->why,
                           judgement->instead ? ". Instead: " : "",
                           judgement->instead ? judgement->instead : "");
}

static void print_advice(const tool_advice_t *advice, bool why, GString *text)
{
    char *line = tool_advice_line(advice);

    g_string_append_printf(text, "  %dx%d=%d %s\n", advice->nodes,
                           advice->ranks_per_node, advice->ranks, line);
    print_parts(advice->variables, why, text);
    print_parts(advice->parts, why, text);
    for (guint i = 0; i < advice->judgements->len; i++)
        print_judgement(g_ptr_array_index(advice->judgements, i), text);
    for (guint i = 0; i < advice->notes->len; i++)
        g_string_append_printf(text, "  note: %s\n",
                               (char *)g_ptr_array_index(advice->notes, i));
    g_free(line);
}

/* Returns the answer to a question, each line indented by two blanks;
 * g_free(). */
static char *answer(const char *line)
{
    GString *text = g_string_new(NULL);
    tool_advice_t *advice;
    char *problem = NULL;
    case_t v;

    case_read(&v, line);
    advice = tool_advise(&v.question, &problem);
    if (advice)
        print_advice(advice, v.why, text);
    else
        g_string_append_printf(text, "  problem: %s\n", problem);
    tool_advice_free(advice);
    g_free(problem);
    case_clear(&v);
    return g_string_free(text, FALSE);
}

/* Returns the lines of a file; g_strfreev(). */
static char **read_lines(const char *path)
{
    char *text, **lines;

    if (!g_file_get_contents(path, &text, NULL, NULL))
        bail("cannot read %s", path);
    lines = g_strsplit(g_strchomp(text), "\n", -1);
    g_free(text);
    return lines;
}

static bool is_question(const char *line)
{
    return *line && *line != ' ' && *line != '#';
}

static void write_answers(const char *path)
{
    char **lines = read_lines(path);

    for (char **line = lines; *line; line++) {
        char *text = is_question(*line) ? answer(*line) : NULL;

        if (**line != ' ')
            printf("%s\n%s", *line, text ? text : "");
        g_free(text);
    }
    g_strfreev(lines);
}

static void check_answers(const char *path)
{
    char **lines = read_lines(path), **line = lines;

    while (*line) {
        const char *question = *line++;
        GString *want = g_string_new(NULL);
        char *got = is_question(question) ? answer(question) : NULL;

        for (; *line && **line == ' '; line++)
            g_string_append_printf(want, "%s\n", *line);
        if (got)
            is_str(got, want->str, "%s", question);
        g_free(got);
        g_string_free(want, TRUE);
    }
    g_strfreev(lines);
}

/* GLib joins groups with equal names, so that one of two rules would be
 * lost. */
static void check_rules(const char *path)
{
    GHashTable *groups = g_hash_table_new(g_str_hash, g_str_equal);
    char **lines = read_lines(path);
    int rules = 0;

    for (char **line = lines; *line; line++) {
        if (**line == '[' && !g_hash_table_add(groups, *line))
            ok(0, "%s is there once", *line);
        rules += **line == '[';
    }
    ok(rules > 100, "%s has rules", path);
    g_hash_table_unref(groups);
    g_strfreev(lines);
}

static void check_fault(const char *text, const char *want)
{
    char *fault = tool_advice_rules_fault(text);

    ok(want ? fault && strstr(fault, want) : !fault, "rules: %s: %s",
       want ? want : "no fault", fault ? fault : "");
    g_free(fault);
}

/* Mistakes in rules, and the rules that are compiled in. */
static void check_faults(const char *path)
{
    static const char *const faults[][2] = {
        {"[part -n]\nwhy = x\ngarbage", "garbage"},
        {"[parts -n]\nwhy = x", "[parts -n]: there is no kind 'parts'"},
        {"[part -n]\nwhi = x", "[part -n]: there is no key 'whi'"},
        {"[part -n]\nvalue = x", "[part -n]: it needs why"},
        {"[mca a=listz(b)]\nkept = x", "there is no test 'listz(b)'"},
        {"[mca a if mca:b=!list(c)]\nkept = x", "there is no test 'list(c)'"},
        {"[mca a=!lists(b) if openmpi]\nkept = x", NULL},
    };
    char *text = NULL;

    for (size_t i = 0; i < G_N_ELEMENTS(faults); i++)
        check_fault(faults[i][0], faults[i][1]);
    if (!g_file_get_contents(path, &text, NULL, NULL))
        bail("cannot read %s", path);
    check_fault(text, NULL);
    g_free(text);
}

int main(int argc, char **argv)
{
    const char *top = getenv("abs_top_srcdir");
    char *golden =
        g_build_filename(top ? top : ".", "tests/tools/advice.golden", NULL);
    char *rules =
        g_build_filename(top ? top : ".", "tools/env/advice/rules.ini", NULL);

    folder = g_dir_make_tmp("advice-XXXXXX", NULL);
    if (!folder)
        bail("cannot make a folder");
    put_machines();
    if (argc == 3 && strcmp(argv[1], "--write") == 0) {
        write_answers(argv[2]);
    } else {
        check_answers(golden);
        check_rules(rules);
        check_faults(rules);
    }
    remove_tree(folder);
    g_free(folder);
    g_free(rules);
    g_free(golden);
    return argc == 3 ? 0 : tap_done();
}
