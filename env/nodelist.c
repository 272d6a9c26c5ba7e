/* SPDX-License-Identifier: BSD-3-Clause */
/* Slurm's lists of nodes, which are checked as a whole, and of tasks. */
#include "config.h"

#include "env/nodelist.h"

#include <glib.h>
#include <string.h>

#define HOSTS_MAX 65536
#define GROUPS_MAX 16
#define DIGITS_MAX 18
#define HOST_BYTES 256

/* One pair of brackets: its contents, and the number of names that it stands
 * for. */
typedef struct {
    const char *start, *end;
    int64_t count;
    size_t bytes; /* that the longest may have */
} group_t;

/* One element of the list, "rack[1-2]-n[08-10]". */
typedef struct {
    const char *start, *end;
    group_t groups[GROUPS_MAX];
    int group_count;
    int64_t count; /* of its hosts */
    size_t bytes; /* of its longest */
} element_t;

/* "08-10", or "8" */
typedef struct {
    int64_t low, high;
    size_t bytes; /* that the longest number may have */
} range_t;

/* The position of the reader; wrong is NULL until an error is found. */
typedef struct {
    const char *at;
    const char *wrong;
} reader_t;

static int64_t nodelist_read_number(reader_t *reader)
{
    const char *at = reader->at;
    int64_t number = 0;
    unsigned digit;

    while ((digit = (unsigned)*at - '0') < 10 && at - reader->at < DIGITS_MAX) {
        number = number * 10 + digit;
        at++;
    }
    if (digit < 10)
        reader->wrong = "a number of more than 18 digits";
    else if (at == reader->at)
        reader->wrong = "no number where one must be";
    reader->at = at;
    return number;
}

static range_t nodelist_read_range(reader_t *reader)
{
    const char *start = reader->at;
    range_t range = {0};

    range.low = range.high = nodelist_read_number(reader);
    range.bytes = (size_t)(reader->at - start);
    if (!reader->wrong && *reader->at == '-') {
        start = ++reader->at;
        range.high = nodelist_read_number(reader);
        range.bytes = MAX(range.bytes, (size_t)(reader->at - start));
    }
    if (reader->wrong)
        return range;
    if (range.high < range.low)
        reader->wrong = "a range that runs backwards";
    else if (range.high - range.low >= HOSTS_MAX)
        reader->wrong = "a range of more than 65536 hosts";
    return range;
}

/* Reads from after "[" to after "]". */
static group_t read_group(reader_t *reader)
{
    group_t group = {.start = reader->at};

    for (;;) {
        range_t range = nodelist_read_range(reader);

        if (reader->wrong)
            return group;
        group.bytes = MAX(group.bytes, range.bytes);
        group.count += range.high - range.low + 1;
        if (*reader->at != ',')
            break;
        reader->at++;
    }
    group.end = reader->at;
    if (*reader->at == ']')
        reader->at++;
    else
        reader->wrong = *reader->at ? "what is neither number nor range"
                                    : "a bracket that is not closed";
    return group;
}

static void add_group(reader_t *reader, element_t *element)
{
    group_t group;

    if (element->group_count == GROUPS_MAX) {
        reader->wrong = "more than 16 pairs of brackets";
        return;
    }
    reader->at++;
    group = read_group(reader);
    if (reader->wrong)
        return;
    element->groups[element->group_count++] = group;
    element->bytes += group.bytes;
    if (group.count > HOSTS_MAX || element->count * group.count > HOSTS_MAX)
        reader->wrong = "more than 65536 hosts";
    else
        element->count *= group.count;
}

/* 1: characters of a host's name and of an IPv4 address; 2: separators of
 * elements. */
static const char kinds[256] = {
    ['-'] = 1,         ['.'] = 1,         ['_'] = 1, ['0' ... '9'] = 1,
    ['A' ... 'Z'] = 1, ['a' ... 'z'] = 1, [','] = 2, [' '] = 2,
    ['\t'] = 2,        ['\n'] = 2,
};

static inline int nodelist_is_plain(char c)
{
    return kinds[(unsigned char)c] == 1;
}

static inline int is_separator(char c)
{
    return kinds[(unsigned char)c] == 2;
}

/* Does not read brackets that need not be counted, because a list may have
 * thousands of elements. */
static void read_element(reader_t *reader, element_t *element)
{
    element->start = reader->at;
    element->group_count = 0;
    element->count = 1;
    element->bytes = 0;
    while (!reader->wrong && *reader->at && !is_separator(*reader->at)) {
        const char *start = reader->at;

        while (nodelist_is_plain(*reader->at))
            reader->at++;
        element->bytes += (size_t)(reader->at - start);
        if (*reader->at == '[')
            add_group(reader, element);
        else if (*reader->at == ']')
            reader->wrong = "a bracket that was not opened";
        else if (*reader->at && !is_separator(*reader->at))
            reader->wrong = "what is in no host's name";
    }
    element->end = reader->at;
    if (!reader->wrong && element->bytes >= HOST_BYTES)
        reader->wrong = "a host of more than 255 bytes";
}

/* The first host of an element: of each pair of brackets the first number, as
 * it is written. To be freed. */
static char *first_host(const element_t *element)
{
    GString *host = g_string_new(NULL);
    const char *at = element->start;

    for (int i = 0; i < element->group_count; i++) {
        const group_t *group = &element->groups[i];

        g_string_append_len(host, at, group->start - 1 - at);
        g_string_append_len(host, group->start,
                            (gssize)strspn(group->start, "0123456789"));
        at = group->end + 1;
    }
    g_string_append_len(host, at, element->end - at);
    return g_string_free(host, FALSE);
}

/* The next element, or one without hosts at the end of the list. */
static void next_element(reader_t *reader, element_t *element)
{
    while (is_separator(*reader->at))
        reader->at++;
    element->count = 0;
    if (*reader->at)
        read_element(reader, element);
}

/* Skips names without brackets, and stops at the last one before another
 * element; without a branch for each, because long lists are mostly names. */
static void skip_names(reader_t *reader)
{
    const char *at = reader->at;
    int length = 0, kind;

    for (; length < HOST_BYTES && (kind = kinds[(unsigned char)*at]); at++)
        length = (length + 1) & -(kind & 1);
    reader->at = at - length;
}

/* Checks all elements; keeps the first one. */
static env_problem_t nodelist_check(const char *text, element_t *ret_first)
{
    reader_t reader = {text, NULL};
    element_t element;

    next_element(&reader, ret_first);
    element.count = ret_first->count;
    while (!reader.wrong && element.count) {
        skip_names(&reader);
        next_element(&reader, &element);
    }
    if (!reader.wrong && !ret_first->count)
        reader.wrong = "no host";
    return (env_problem_t){reader.wrong, (size_t)(reader.at - text)};
}

env_problem_t dscomm_priv_nodelist_first(const char *text, char **ret_host)
{
    element_t first;
    env_problem_t problem = nodelist_check(text, &first);

    if (!problem.what)
        *ret_host = first_host(&first);
    return problem;
}

/* "2" or "2(x3)": how many nodes, and how many tasks on each. */
static int64_t read_repeat(reader_t *reader)
{
    int64_t repeat;

    if (*reader->at != '(')
        return 1;
    reader->at++;
    if (*reader->at != 'x') {
        reader->wrong = "no x behind a parenthesis";
        return 1;
    }
    reader->at++;
    repeat = nodelist_read_number(reader);
    if (reader->wrong)
        return 1;
    if (*reader->at != ')')
        reader->wrong = "a parenthesis that is not closed";
    else if (repeat < 1 || repeat > G_MAXINT)
        reader->wrong = "a repetition that is not from 1 to 2147483647";
    else
        reader->at++;
    return repeat;
}

static void add_tasks(reader_t *reader, int64_t node, env_tasks_t *tasks)
{
    int64_t count = nodelist_read_number(reader), repeat;

    if (!reader->wrong && count > G_MAXINT)
        reader->wrong = "a number of more than 2147483647 tasks";
    repeat = reader->wrong ? 1 : read_repeat(reader);
    if (reader->wrong)
        return;
    if (node >= tasks->nodes && node < tasks->nodes + repeat)
        tasks->here = count;
    tasks->nodes += repeat;
    if (tasks->nodes > G_MAXINT ||
        __builtin_add_overflow(tasks->tasks, count * repeat, &tasks->tasks))
        reader->wrong = "more nodes or tasks than there can be";
}

env_problem_t dscomm_priv_tasks(const char *text, int64_t node,
                                env_tasks_t *ret_tasks)
{
    reader_t reader = {text, NULL};
    env_tasks_t tasks = {0, 0, -1};

    for (;;) {
        add_tasks(&reader, node, &tasks);
        if (reader.wrong || *reader.at != ',')
            break;
        reader.at++;
    }
    if (!reader.wrong && *reader.at)
        reader.wrong = "what is neither number nor comma";
    if (!reader.wrong)
        *ret_tasks = tasks;
    return (env_problem_t){reader.wrong, (size_t)(reader.at - text)};
}
