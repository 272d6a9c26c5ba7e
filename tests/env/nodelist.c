/* SPDX-License-Identifier: BSD-3-Clause */
/* Slurm's lists, as `scontrol show hostnames` expands them. */
#include "config.h"

#include "env/nodelist.h"

#include <glib.h>
#include <glib/gstdio.h>
#include <string.h>

#include "tests/tap.h"

#define TEN "0123456789"

static const struct {
    const char *text, *want;
} firsts[] = {
    /* T22 */
    {"rack[1-2]-n[08-10],login", "rack1-n08"},
    {"n[1,3-5,07]", "n1"},
    {"n[9-11]", "n9"},
    {"n[09-11]", "n09"},
    {"10.0.0.[1-3]", "10.0.0.1"},
    {"a-b-c", "a-b-c"},
    {"a[1,3]-ib", "a1-ib"},
    {"rack1-n[08-10]", "rack1-n08"},
    {"b,a,a", "b"},
    {" b\ta \n,, c,", "b"},
    {"[1-2]", "1"},
    {"x[1][2-3]y", "x12y"},
    {"n[007]", "n007"},
    {"n[0-0]", "n0"},
    {"n[5,5]", "n5"},
    {"n[999999999999999999]", "n999999999999999999"},
    {"n_1.x,b", "n_1.x"},
    {"n[98-0101]", "n98"},
    {"n[0-65535]", "n0"},
    {"[0-255]-[0-255],z", "0-0"},
};

static const struct {
    const char *text;
    size_t at; /* which byte */
} refused[] = {
    {"", 0},
    {" ,\n", 3},
    {"n[3-1]", 5},
    {"n[]", 2},
    {"n[a-b]", 2},
    {"tux[1-3", 7},
    {"n[0-70000]", 9},
    {"n[0-65536]", 9},
    {"n[1-2]]", 6},
    {"n]", 1},
    {"n[1-]", 4},
    {"n[-1]", 2},
    {"n[1,]", 4},
    {"n[1 ,2]", 3},
    {"n[1[2]]", 3},
    {"n[1-2-3]", 5},
    {"a,n[1", 5},
    {"n[1000000000000000000]", 20},
    {"[0-255][0-255][0-1]", 19},
    {"n\001", 1},
    {"n1:5", 2},
    {"user@n1", 4},
    {"a/b", 1},
    {"n\303\244", 1},
    {"n1,n[3-1]", 8},
    {"n1,tux[1-3", 10},
    {"n1,n[]", 5},
    {"n1 n2:5", 5},
    {"a[1][1][1][1][1][1][1][1][1][1][1][1][1][1][1][1][1]", 49},
};

static void test_lists(void)
{
    char *host = NULL;

    for (size_t i = 0; i < G_N_ELEMENTS(firsts); i++) {
        env_problem_t problem =
            dscomm_priv_nodelist_first(firsts[i].text, &host);

        is_str(problem.what, NULL, "'%s' is a list", firsts[i].text);
        is_str(host, firsts[i].want, "which begins with this host");
        g_clear_pointer(&host, g_free);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(refused); i++) {
        env_problem_t problem =
            dscomm_priv_nodelist_first(refused[i].text, &host);

        ok(problem.what && !host, "'%s' is none: %s", refused[i].text,
           problem.what ? problem.what : "");
        is_int((long long)problem.at, (long long)refused[i].at, "where");
    }
}

/* Returns the first host that Slurm's own program prints, or NULL. */
static char *query_slurm(const char *list)
{
    char *argv[] = {(char *)"scontrol", (char *)"show", (char *)"hostnames",
                    (char *)list, NULL};
    char *text = NULL;
    int status = 0;

    if (!g_spawn_sync(NULL, argv, NULL,
                      G_SPAWN_SEARCH_PATH | G_SPAWN_STDERR_TO_DEV_NULL, NULL,
                      NULL, &text, NULL, &status, NULL) ||
        status)
        g_clear_pointer(&text, g_free);
    if (text)
        text[strcspn(text, "\n")] = '\0';
    return text;
}

/* Compares with Slurm's program, which needs a configuration file. Version
 * 22.05 accepts nothing after the last bracket, and makes hosts without a name
 * of blanks. */
static void test_slurm(void)
{
    static const char settings[] = "ClusterName=x\nSlurmctldHost=localhost\n";
    char *folder = g_dir_make_tmp("dscomm-XXXXXX", NULL);
    char *path = g_build_filename(folder, "slurm.conf", NULL);
    char *text;

    g_file_set_contents(path, settings, -1, NULL);
    g_setenv("SLURM_CONF", path, TRUE);
    for (size_t i = 0; i < G_N_ELEMENTS(firsts); i++) {
        if (strchr(firsts[i].text, ' '))
            continue;
        text = query_slurm(firsts[i].text);
        if (text && *text)
            is_str(text, firsts[i].want, "scontrol on '%s'", firsts[i].text);
        else
            skip("scontrol on '%s': there is none, or it does not take it",
                 firsts[i].text);
        g_free(text);
    }
    g_unlink(path);
    g_rmdir(folder);
    g_free(path);
    g_free(folder);
}

static void test_limits(void)
{
    char *list = g_strdup_printf("%0*d", 253, 7);

    for (int length = 254; length < 258; length++) {
        char *text = g_strdup_printf("%s%.*s[1-2]", list, length - 254, TEN);
        char *host = NULL;

        is_int(dscomm_priv_nodelist_first(text, &host).what == NULL,
               length < 256, "a host of %d bytes", length);
        g_free(host);
        g_free(text);
    }
    g_free(list);
}

static const struct {
    const char *text;
    int64_t node;
    env_tasks_t want;
} tasks[] = {
    {"2(x3),1", 0, {4, 7, 2}},
    {"2(x3),1", 2, {4, 7, 2}},
    {"2(x3),1", 3, {4, 7, 1}},
    {"2(x3),1", 4, {4, 7, -1}},
    {"5", 0, {1, 5, 5}},
    {"1,2,3(x2)", 1, {4, 9, 2}},
    {"0,2", 0, {2, 2, 0}},
    {"2147483647(x2147483647)",
     1,
     {2147483647, 4611686014132420609, 2147483647}},
};

static const struct {
    const char *text;
    size_t at;
} no_tasks[] = {
    {"", 0},
    {"2(x)", 3},
    {"2(x0)", 4},
    {"(x2)", 0},
    {"2(2)", 2},
    {"2(x2", 4},
    {"2,", 2},
    {",2", 0},
    {"2 ", 1},
    {"-2", 0},
    {"2(x2)x", 5},
    {"2147483648", 10},
    {"1(x2147483648)", 13},
    {"1(x2147483647),1", 16},
    {"9999999999999999999", 18},
};

static void test_tasks(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(tasks); i++) {
        env_tasks_t got = {-7, -7, -7};

        ok(!dscomm_priv_tasks(tasks[i].text, tasks[i].node, &got).what,
           "'%s' is tasks", tasks[i].text);
        is_int(got.nodes, tasks[i].want.nodes, "nodes");
        is_int(got.tasks, tasks[i].want.tasks, "tasks");
        is_int(got.here, tasks[i].want.here, "of node %d", (int)tasks[i].node);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(no_tasks); i++) {
        env_tasks_t got = {-7, -7, -7};
        env_problem_t problem = dscomm_priv_tasks(no_tasks[i].text, 0, &got);

        ok(problem.what != NULL, "'%s' is none: %s", no_tasks[i].text,
           problem.what ? problem.what : "");
        is_int((long long)problem.at, (long long)no_tasks[i].at, "where");
        is_int(got.nodes, -7, "nothing is written");
    }
}

int main(void)
{
    test_lists();
    test_slurm();
    test_limits();
    test_tasks();
    return tap_done();
}
