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
    const char *text, *want; /* blanks between */
} expanded[] = {
    /* T22 */
    {"rack[1-2]-n[08-10],login",
     "rack1-n08 rack1-n09 rack1-n10 rack2-n08 rack2-n09 rack2-n10 login"},
    {"n[1,3-5,07]", "n1 n3 n4 n5 n07"},
    {"n[9-11]", "n9 n10 n11"},
    {"n[09-11]", "n09 n10 n11"},
    {"10.0.0.[1-3]", "10.0.0.1 10.0.0.2 10.0.0.3"},
    {"a-b-c", "a-b-c"},
    {"a[1,3]-ib", "a1-ib a3-ib"},
    {"rack1-n[08-10]", "rack1-n08 rack1-n09 rack1-n10"},
    {"b,a,a", "b a a"},
    {" b\ta \n,, c,", "b a c"},
    {"[1-2]", "1 2"},
    {"x[1][2-3]y", "x12y x13y"},
    {"n[007]", "n007"},
    {"n[0-0]", "n0"},
    {"n[99-101]", "n99 n100 n101"},
    {"n[5,5]", "n5 n5"},
    {"n[999999999999999999]", "n999999999999999999"},
    {"n1", "n1"},
    {"n[98-0101]", "n98 n99 n100 n101"},
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

static int add(const char *host, void *arg)
{
    g_string_append_printf(arg, "%s%s", ((GString *)arg)->len ? " " : "", host);
    return 0;
}

static int count(const char *host, void *arg)
{
    (void)host;
    return ++*(int *)arg == 1000000;
}

static int stop(const char *host, void *arg)
{
    add(host, arg);
    return 1;
}

/* What is wrong further on makes the list none. */
static const struct {
    const char *text, *want; /* NULL: refused */
} firsts[] = {
    {"rack[1-2]-n[08-10],login", "rack1-n08"},
    {" b\ta", "b"},
    {"n[1,3-5,07]", "n1"},
    {"a,n[3-1]", NULL},
    {"n1,tux[1-3", NULL},
    {"n1,n[]", NULL},
    {"n1:5", NULL},
    {"n1,a/b", NULL},
    {"n_1.x,b", "n_1.x"},
    {"n[1,3-2]", NULL},
    {"n[1", NULL},
    {"", NULL},
    {" ,", NULL},
    {"n[1000000000000000000]", NULL},
};

static void test_first(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(firsts); i++) {
        char *host = NULL;
        env_problem_t problem =
            dscomm_priv_nodelist_first(firsts[i].text, &host);

        is_str(host, firsts[i].want, "first of '%s'", firsts[i].text);
        is_int(problem.what != NULL, !firsts[i].want, "wrong or not");
        g_free(host);
    }
}

static void test_lists(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(expanded); i++) {
        GString *text = g_string_new(NULL);
        env_problem_t problem =
            dscomm_priv_nodelist(expanded[i].text, add, text);

        is_str(problem.what, NULL, "'%s' is a list", expanded[i].text);
        is_str(text->str, expanded[i].want, "of these");
        g_string_free(text, TRUE);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(refused); i++) {
        GString *text = g_string_new(NULL);
        env_problem_t problem =
            dscomm_priv_nodelist(refused[i].text, add, text);

        ok(problem.what != NULL, "'%s' is none: %s", refused[i].text,
           problem.what ? problem.what : "");
        is_int((long long)problem.at, (long long)refused[i].at, "where");
        is_str(text->str, "", "no host is visited");
        g_string_free(text, TRUE);
    }
}

/* What Slurm's own program says, blanks between; NULL where it says nothing. */
static char *ask_slurm(const char *list)
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
    return text ? g_strdelimit(g_strstrip(text), "\n", ' ') : NULL;
}

/* It wants a file of settings. That of 22.05 takes nothing behind the last
 * bracket. Of blanks it makes hosts without a name. */
static void test_slurm(void)
{
    static const char settings[] = "ClusterName=x\nSlurmctldHost=localhost\n";
    char *folder = g_dir_make_tmp("dscomm-XXXXXX", NULL);
    char *path = g_build_filename(folder, "slurm.conf", NULL);
    char *text;

    g_file_set_contents(path, settings, -1, NULL);
    g_setenv("SLURM_CONF", path, TRUE);
    for (size_t i = 0; i < G_N_ELEMENTS(expanded); i++) {
        if (strchr(expanded[i].text, ' '))
            continue;
        text = ask_slurm(expanded[i].text);
        if (text && *text)
            is_str(text, expanded[i].want, "scontrol on '%s'",
                   expanded[i].text);
        else
            skip("scontrol on '%s': there is none, or it does not take it",
                 expanded[i].text);
        g_free(text);
    }
    g_unlink(path);
    g_rmdir(folder);
    g_free(path);
    g_free(folder);
}

static void test_limits(void)
{
    GString *text = g_string_new(NULL);
    char *list = g_strdup_printf("%0*d", 253, 7);
    int hosts = 0;

    ok(!dscomm_priv_nodelist("n[0-65535]", count, &hosts).what &&
           hosts == 65536,
       "65536 hosts in a range");
    hosts = 0;
    ok(!dscomm_priv_nodelist("[0-255]-[0-255],z", count, &hosts).what &&
           hosts == 65537,
       "65536 hosts in an element");
    ok(!dscomm_priv_nodelist("n[08-65000]", stop, text).what, "a visit");
    is_str(text->str, "n08", "that ends with the first");
    for (int length = 254; length < 258; length++) {
        g_string_printf(text, "%s%.*s[1-2]", list, length - 254, TEN);
        hosts = 0;
        is_int(dscomm_priv_nodelist(text->str, count, &hosts).what == NULL,
               length < 256, "a host of %d bytes", length);
    }
    g_free(list);
    g_string_free(text, TRUE);
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
    test_first();
    test_lists();
    test_slurm();
    test_limits();
    test_tasks();
    return tap_done();
}
