/* SPDX-License-Identifier: BSD-3-Clause */
/* A reader of JSON that builds nothing. json-glib would bring nine shared
 * libraries, GIO and GObject among them, into every program that links the
 * library, and its parser recurses as deep as the text nests. */
#include "config.h"

#include "env/json.h"

#include <glib.h>
#include <string.h>

#define BLANKS " \t\r\n"
#define DEPTH_MAX 32

/* The position of the check; wrong is NULL until an error is found. */
typedef struct {
    const char *at;
    const char *wrong;
    int depth;
} reader_t;

static void json_check_value(reader_t *reader);

static int json_fail(reader_t *reader, const char *wrong)
{
    if (!reader->wrong)
        reader->wrong = wrong;
    return 0;
}

/* Skips blanks. Most texts have none here. */
static inline const char *json_after_blanks(const char *at)
{
    while ((unsigned char)*at <= ' ' &&
           (*at == ' ' || *at == '\t' || *at == '\r' || *at == '\n'))
        at++;
    return at;
}

static void skip_blanks(reader_t *reader)
{
    reader->at = json_after_blanks(reader->at);
}

/* Steps over c, with blanks on both sides. */
static inline int json_take(reader_t *reader, char c)
{
    skip_blanks(reader);
    if (reader->wrong || *reader->at != c)
        return 0;
    reader->at++;
    skip_blanks(reader);
    return 1;
}

static int is_hex(const char *at, int count)
{
    for (int i = 0; i < count; i++) {
        if (!g_ascii_isxdigit(at[i]))
            return 0;
    }
    return 1;
}

static void check_escape(reader_t *reader)
{
    const char *at = ++reader->at;

    if (*at && strchr("\"\\/bfnrt", *at))
        reader->at++;
    else if (*at == 'u' && is_hex(at + 1, 4))
        reader->at += 5;
    else
        json_fail(reader, "no such escape");
}

/* 1 for characters of a string that need no escape. */
static const uint8_t plain[256] = {
    [0x20] = 1,
    [0x21] = 1,
    [0x23 ... 0x5b] = 1,
    [0x5d ... 0xff] = 1,
};

static inline int json_is_plain(char c)
{
    return plain[(unsigned char)c];
}

static void check_string(reader_t *reader)
{
    const char *at = reader->at;

    if (*at != '"') {
        json_fail(reader, "no string where one must be");
        return;
    }
    at++;
    for (;;) {
        while (json_is_plain(*at))
            at++;
        reader->at = at;
        if (*at != '\\')
            break;
        check_escape(reader);
        if (reader->wrong)
            return;
        at = reader->at;
    }
    if (*at == '"')
        reader->at++;
    else
        json_fail(reader,
                  *at ? "a control character" : "a string that does not end");
}

static void check_digits(reader_t *reader)
{
    if (!g_ascii_isdigit(*reader->at))
        json_fail(reader, "no digit where one must be");
    while (g_ascii_isdigit(*reader->at))
        reader->at++;
}

static void check_number(reader_t *reader)
{
    reader->at += *reader->at == '-';
    if (*reader->at == '0')
        reader->at++;
    else
        check_digits(reader);
    if (!reader->wrong && *reader->at == '.') {
        reader->at++;
        check_digits(reader);
    }
    if (!reader->wrong && (*reader->at == 'e' || *reader->at == 'E')) {
        reader->at++;
        reader->at += *reader->at == '+' || *reader->at == '-';
        check_digits(reader);
    }
}

static void json_check_word(reader_t *reader)
{
    static const char *const words[] = {"true", "false", "null"};

    for (size_t i = 0; i < G_N_ELEMENTS(words); i++) {
        if (g_str_has_prefix(reader->at, words[i])) {
            reader->at += strlen(words[i]);
            return;
        }
    }
    json_fail(reader, *reader->at ? "no value where one must be" : "no end");
}

static void check_member(reader_t *reader)
{
    check_string(reader);
    if (!json_take(reader, ':'))
        json_fail(reader, "no colon after a name");
    else
        json_check_value(reader);
}

/* Skips strings without escapes, each with a comma after it: lists have
 * thousands of them. */
static const char *after_plain(const char *at)
{
    while (*at == '"') {
        const char *end = at + 1;

        while (json_is_plain(*end))
            end++;
        if (*end != '"' || end[1] != ',')
            break;
        at = json_after_blanks(end + 2);
    }
    return at;
}

/* Called after the opening bracket. */
static void check_list(reader_t *reader, char close,
                       void (*check)(reader_t *reader))
{
    if (++reader->depth > DEPTH_MAX)
        json_fail(reader, "nested deeper than 32");
    reader->at++;
    if (!json_take(reader, close)) {
        do {
            if (close == ']')
                reader->at = after_plain(reader->at);
            check(reader);
        } while (json_take(reader, ','));
        if (!reader->wrong && *reader->at != close)
            json_fail(reader, "neither comma nor closing bracket");
        reader->at += !reader->wrong;
    }
    reader->depth--;
}

static void json_check_value(reader_t *reader)
{
    skip_blanks(reader);
    if (reader->wrong)
        return;
    if (*reader->at == '"')
        check_string(reader);
    else if (*reader->at == '{')
        check_list(reader, '}', check_member);
    else if (*reader->at == '[')
        check_list(reader, ']', json_check_value);
    else if (*reader->at == '-' || g_ascii_isdigit(*reader->at))
        check_number(reader);
    else
        json_check_word(reader);
}

env_problem_t dscomm_priv_json_check(const char *text, const char **ret_value)
{
    reader_t reader = {text, NULL, 0};

    json_check_value(&reader);
    if (!reader.wrong)
        skip_blanks(&reader);
    if (*reader.at)
        json_fail(&reader, "more after the end");
    if (!reader.wrong)
        *ret_value = text + strspn(text, BLANKS);
    return (env_problem_t){reader.wrong, (size_t)(reader.at - text)};
}

static const char *after_string(const char *at)
{
    at++;
    for (;;) {
        while (json_is_plain(*at))
            at++;
        if (*at == '"')
            return at + 1;
        at += 2;
    }
}

/* Returns the end of a checked value. *ret_commas: the number of commas
 * directly in it. */
static const char *scan_value(const char *at, int64_t *ret_commas)
{
    int64_t commas = 0;
    int depth = 0;

    do {
        switch (*at) {
        case '"':
            at = after_string(at);
            break;
        case '[':
        case '{':
            depth++;
            at++;
            break;
        case ']':
        case '}':
            depth--;
            at++;
            break;
        case ',':
            commas += depth == 1;
            at++;
            break;
        case ':':
            at++;
            break;
        default:
            at += strcspn(at + 1, "\"[]{},:" BLANKS) + 1;
        }
    } while (depth > 0);
    *ret_commas = commas;
    return at;
}

static const char *json_first_of(const char *list, const char *brackets)
{
    if (!list || *list != brackets[0])
        return NULL;
    list = json_after_blanks(list + 1);
    return *list == brackets[1] ? NULL : list;
}

const char *dscomm_priv_json_first(const char *array)
{
    return json_first_of(array, "[]");
}

const char *dscomm_priv_json_behind(const char *end)
{
    end = json_after_blanks(end);
    return *end == ',' ? json_after_blanks(end + 1) : NULL;
}

const char *dscomm_priv_json_next(const char *value)
{
    int64_t commas;

    return dscomm_priv_json_behind(scan_value(value, &commas));
}

int64_t dscomm_priv_json_count(const char *array, const char **ret_end)
{
    const int empty = !dscomm_priv_json_first(array);
    int64_t commas;

    *ret_end = scan_value(array, &commas);
    return empty ? 0 : commas + 1;
}

int64_t dscomm_priv_json_strings(const char *array, const char **ret_end)
{
    const char *item = dscomm_priv_json_first(array), *end;
    int64_t count = 0;

    if (!item)
        return dscomm_priv_json_count(array, ret_end);
    while (item && item[0] == '"' && item[1] != '"') {
        end = after_string(item);
        item = dscomm_priv_json_behind(end);
        count++;
    }
    if (item) {
        dscomm_priv_json_count(array, ret_end);
        return -1;
    }
    *ret_end = json_after_blanks(end) + 1;
    return count;
}

const char *dscomm_priv_json_key(const char *object)
{
    return json_first_of(object, "{}");
}

const char *dscomm_priv_json_value(const char *key)
{
    return json_after_blanks(json_after_blanks(after_string(key)) + 1);
}

const char *dscomm_priv_json_member(const char *object, const char *name)
{
    const char *key = dscomm_priv_json_key(object);

    while (key) {
        char *text = dscomm_priv_json_string(key);
        const char *value = dscomm_priv_json_value(key);
        int found = g_strcmp0(text, name) == 0;

        g_free(text);
        if (found)
            return value;
        key = dscomm_priv_json_next(value);
    }
    return NULL;
}

static gunichar read_hex(const char *at)
{
    gunichar code = 0;

    for (int i = 0; i < 4; i++)
        code = code * 16 + (gunichar)g_ascii_xdigit_value(at[i]);
    return code;
}

/* Decodes "\uXXXX", or two of them that make one character; half a pair becomes
 * U+FFFD. Returns the last byte. */
static const char *add_code(GString *text, const char *at)
{
    gunichar code = read_hex(at + 1), low;

    at += 4;
    if (code >= 0xd800 && code < 0xdc00 && at[1] == '\\' && at[2] == 'u') {
        low = read_hex(at + 3);
        if (low >= 0xdc00 && low < 0xe000) {
            code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
            at += 6;
        }
    }
    if (code >= 0xd800 && code < 0xe000)
        code = 0xfffd;
    g_string_append_unichar(text, code);
    return at;
}

char *dscomm_priv_json_string(const char *value)
{
    static const char letters[] = "bfnrt", meant[] = "\b\f\n\r\t";
    GString *text;

    if (!value || *value != '"')
        return NULL;
    text = g_string_new(NULL);
    for (const char *at = value + 1; *at != '"'; at++) {
        const char *letter;

        if (*at != '\\') {
            g_string_append_c(text, *at);
            continue;
        }
        letter = strchr(letters, *++at);
        if (*at == 'u')
            at = add_code(text, at);
        else
            g_string_append_c(text, letter ? meant[letter - letters] : *at);
    }
    if (memchr(text->str, '\0', text->len))
        return g_string_free(text, TRUE);
    return g_string_free(text, FALSE);
}

int dscomm_priv_json_number(const char *value, int64_t *ret_number)
{
    int64_t number = 0;
    size_t length = value ? strspn(value, "0123456789") : 0;

    if (!length || length > 18 || g_ascii_isalpha(value[length]) ||
        value[length] == '.')
        return -1;
    for (size_t i = 0; i < length; i++)
        number = number * 10 + (value[i] - '0');
    *ret_number = number;
    return 0;
}
