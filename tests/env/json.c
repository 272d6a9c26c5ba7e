/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading JSON as RFC 8259 defines it. */
#include "config.h"

#include "env/json.h"

#include <glib.h>
#include <string.h>

#include "tests/tap.h"

static const char *const accepted[] = {
    "null",
    " true ",
    "false",
    "0",
    "-0",
    "-12.5e+10",
    "1E0",
    "\"\"",
    "\"a\\\"b\\\\\\/\\b\\f\\n\\r\\t\\u00e9\"",
    "[]",
    "[ ]",
    "{}",
    "{ }",
    "[1,[2],{}]",
    "{\"a\":1,\"b\":[\"]\",\"}\"]}",
    "\t\r\n[ 1 , 2 ]\n",
    "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]",
};

static const struct {
    const char *text;
    size_t at;
} refused[] = {
    {"", 0},
    {" ", 1},
    {"nul", 0},
    {"True", 0},
    {"01", 1},
    {"-", 1},
    {"1.", 2},
    {".5", 0},
    {"1e", 2},
    {"+1", 0},
    {"0x1", 1},
    {"NaN", 0},
    {"'a'", 0},
    {"\"a", 2},
    {"\"a\\", 3},
    {"\"\\x\"", 2},
    {"\"\\u12g4\"", 2},
    {"\"\\u12", 2},
    {"\"a\nb\"", 2},
    {"[", 1},
    {"[1", 2},
    {"[1,", 3},
    {"[1,]", 3},
    {"[,1]", 1},
    {"[1 2]", 3},
    {"[1}", 2},
    {"{\"a\"}", 4},
    {"{\"a\":}", 5},
    {"{a:1}", 1},
    {"{\"a\":1,}", 7},
    {"{\"a\":1", 6},
    {"1 2", 2},
    {"[algo-1", 1},
    {"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]", 33},
};

static void test_check(void)
{
    const char *value;

    for (size_t i = 0; i < G_N_ELEMENTS(accepted); i++) {
        env_problem_t problem = dscomm_priv_json_check(accepted[i], &value);

        is_str(problem.what, NULL, "'%s' is JSON", accepted[i]);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(refused); i++) {
        env_problem_t problem;

        value = NULL;
        problem = dscomm_priv_json_check(refused[i].text, &value);
        ok(problem.what && !value, "'%s' is none: %s", refused[i].text,
           problem.what ? problem.what : "");
        is_int((long long)problem.at, (long long)refused[i].at, "where");
    }
}

static const char *check(const char *text)
{
    const char *value = NULL;

    dscomm_priv_json_check(text, &value);
    return value;
}

static void test_walk(void)
{
    const char *root =
        check(" {\"a\" : [ 1 , \"],\" , {\"b\":[]} , -2.5e3 , null ] , "
              "\"n\\u0061me\":\"x\", \"a\":7, \"z\" : 12 } ");
    const char *item =
        dscomm_priv_json_first(dscomm_priv_json_member(root, "a"));
    static const char *const begins[] = {"1 ,", "\"],\" ,", "{\"b\"", "-2.5",
                                         "null"};
    char *text;
    int64_t number = -7;

    for (size_t i = 0; i < G_N_ELEMENTS(begins); i++) {
        ok(item && g_str_has_prefix(item, begins[i]), "item %zu", i);
        item = item ? dscomm_priv_json_next(item) : NULL;
    }
    ok(!item, "no more");
    text = dscomm_priv_json_string(dscomm_priv_json_member(root, "name"));
    is_str(text, "x", "a member whose name is escaped");
    g_free(text);
    ok(!dscomm_priv_json_member(root, "b"), "one that is not there");
    ok(!dscomm_priv_json_member(root, ""), "nor this");
    is_int(dscomm_priv_json_number(dscomm_priv_json_member(root, "z"), &number),
           0, "a number");
    is_int(number, 12, "which");
    ok(!dscomm_priv_json_first(root), "an object is no array");
    ok(!dscomm_priv_json_member(check("[]"), "a"), "an array no object");
    ok(!dscomm_priv_json_string(root), "nor a string");
    ok(!dscomm_priv_json_first(NULL) && !dscomm_priv_json_member(NULL, "a") &&
           !dscomm_priv_json_string(NULL) &&
           dscomm_priv_json_number(NULL, &number) == -1,
       "nothing is nothing");
}

static const struct {
    const char *text, *want;
} strings[] = {
    {"\"\"", ""},
    {"\"a\\\"b\\\\c\\/d\"", "a\"b\\c/d"},
    {"\"\\b\\f\\n\\r\\t\"", "\b\f\n\r\t"},
    {"\"\\u0041\\u00e9\\u20AC\"", "A\303\251\342\202\254"},
    {"\"\\ud83d\\ude00\"", "\360\237\230\200"},
    {"\"\\ud83dx\"", "\357\277\275x"},
    {"\"\\ude00\"", "\357\277\275"},
    {"\"\\ud83d\\u0041\"", "\357\277\275A"},
    {"\"a\\u0000b\"", NULL},
};

static const struct {
    const char *text;
    int64_t want; /* -1: none */
} numbers[] = {
    {"0", 0},
    {"42", 42},
    {"999999999999999999", 999999999999999999},
    {"1000000000000000000", -1},
    {"-1", -1},
    {"1.0", -1},
    {"1e3", -1},
    {"true", -1},
    {"\"1\"", -1},
};

static void test_scalars(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(strings); i++) {
        char *text = dscomm_priv_json_string(check(strings[i].text));

        is_str(text, strings[i].want, "%s", strings[i].text);
        g_free(text);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(numbers); i++) {
        int64_t number = -1;

        dscomm_priv_json_number(check(numbers[i].text), &number);
        is_int(number, numbers[i].want, "%s", numbers[i].text);
    }
}

int main(void)
{
    test_check();
    test_walk();
    test_scalars();
    return tap_done();
}
