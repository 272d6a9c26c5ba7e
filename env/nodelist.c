/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads Slurm's lists of nodes, which are checked as a whole, and of tasks. */
#include "config.h"

#include "env/nodelist.h"

#include <glib.h>
#include <string.h>

#define HOSTS_MAX 65536
#define GROUPS_MAX 16
#define DIGITS_MAX 18
#define HOST_BYTES 256

/* One element of the list, "rack[1-2]-n[08-10]". */
typedef struct {
    int groups; /* pairs of brackets */
    int64_t count; /* of its hosts */
    size_t bytes; /* of its longest */
} element_t;

/* "08-10", or "8" */
typedef struct {
    int64_t low, high;
    size_t bytes; /* bytes of the longest number */
} range_t;

/* The position of the reader; wrong is NULL until an error is found. */
typedef struct {
    const char *at;
    const char *wrong;
    GString *first; /* takes the first host; NULL: it is known */
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

/* Reads from "[" to after "]". Of the first host the number is the first one,
 * as it is written. */
static void read_group(reader_t *reader, element_t *element)
{
    int64_t count = 0;
    size_t bytes = 0;

    if (element->groups++ == GROUPS_MAX) {
        reader->wrong = "more than 16 pairs of brackets";
        return;
    }
    if (reader->first)
        g_string_append_len(reader->first, reader->at + 1,
                            (gssize)strspn(reader->at + 1, "0123456789"));
    do {
        range_t range;

        reader->at++;
        range = nodelist_read_range(reader);
        bytes = MAX(bytes, range.bytes);
        count += range.high - range.low + 1;
    } while (!reader->wrong && *reader->at == ',');
    if (reader->wrong)
        return;
    element->bytes += bytes;
    if (*reader->at != ']') {
        reader->wrong = *reader->at ? "what is neither number nor range"
                                    : "a bracket that is not closed";
        return;
    }
    reader->at++;
    if (count > HOSTS_MAX || element->count * count > HOSTS_MAX)
        reader->wrong = "more than 65536 hosts";
    else
        element->count *= count;
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
    *element = (element_t){0, 1, 0};
    while (!reader->wrong && *reader->at && !is_separator(*reader->at)) {
        const char *start = reader->at;

        while (nodelist_is_plain(*reader->at))
            reader->at++;
        element->bytes += (size_t)(reader->at - start);
        if (reader->first)
            g_string_append_len(reader->first, start, reader->at - start);
        if (*reader->at == '[')
            read_group(reader, element);
        else if (*reader->at == ']')
            reader->wrong = "a bracket that was not opened";
        else if (*reader->at && !is_separator(*reader->at))
            reader->wrong = "what is in no host's name";
    }
    if (!reader->wrong && element->bytes >= HOST_BYTES)
        reader->wrong = "a host of more than 255 bytes";
}

/* Reads the next element; at the end of the list, one without hosts. */
static void next_element(reader_t *reader, element_t *element)
{
    while (is_separator(*reader->at))
        reader->at++;
    element->count = 0;
    if (*reader->at)
        read_element(reader, element);
}

/* Skips names without brackets, up to the last one before another element. It
 * has no branch for each name, because long lists consist mostly of names. */
static void skip_names(reader_t *reader)
{
    const char *at = reader->at;
    int length = 0, kind;

    for (; length < HOST_BYTES && (kind = kinds[(unsigned char)*at]); at++)
        length = (length + 1) & -(kind & 1);
    reader->at = at - length;
}

env_problem_t dscomm_priv_nodelist_first(const char *text, char **ret_host)
{
    GString *first = g_string_new(NULL);
    reader_t reader = {text, NULL, first};
    element_t element;

    next_element(&reader, &element);
    if (!reader.wrong && !element.count)
        reader.wrong = "no host";
    reader.first = NULL;
    while (!reader.wrong && element.count) {
        skip_names(&reader);
        next_element(&reader, &element);
    }
    if (reader.wrong)
        g_string_free(first, TRUE);
    else
        *ret_host = g_string_free(first, FALSE);
    return (env_problem_t){reader.wrong, (size_t)(reader.at - text)};
}

/* Reads "2" or "2(x3)": the number of tasks on a node, and the number of such
 * nodes. */
static int64_t read_repeat(reader_t *reader)
{
    int64_t repeat;

    if (*reader->at != '(')
        return 1;
    reader->at++;
    if (*reader->at != 'x') {
        reader->wrong = "no x after a parenthesis";
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
    reader_t reader = {text, NULL, NULL};
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
