/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line, see options.h. */
#include "config.h"

#include "lib/base/nearest.h"
#include "tools/perf/model-run.h"
#include "tools/perf/operations.h"
#include "tools/perf/options.h"
#include "tools/perf/sequences.h"
#include "tools/perf/sweep.h"

#include <dscomm/codec.h>
#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

/* The options that are numbers. */
enum { RANKS, FACTOR, TIME, ITERATIONS, WARMUP, AGGREGATE, CHECKS, REGISTERED };

/* Both limits are included. what: as a sentence tells them. offset: of the int
 * in the options, or of the double for a fraction. */
static const struct {
    const char *option, *what;
    double min, max;
    size_t offset;
    bool fraction;
} numbers[] = {
#define MEMBER(name) offsetof(perf_options_t, name)
    [RANKS] = {"-n", "a whole number from 1 to 4096", 1, 4096, MEMBER(ranks),
               false},
    [FACTOR] = {"-f", "a number of more than 1, and 1000000000 at most",
                1 + DBL_EPSILON, 1e9, MEMBER(factor), true},
    [TIME] = {"-t", "seconds, 0.000001 to 1000000", 1e-6, 1e6, MEMBER(time),
              true},
    [ITERATIONS] = {"-i", "a whole number from 1 to 2147483647", 1, G_MAXINT,
                    MEMBER(iterations), false},
    [WARMUP] = {"-w", "a whole number from 0 to 2147483647", 0, G_MAXINT,
                MEMBER(warmup), false},
    [AGGREGATE] = {"-m", "a whole number from 1 to 10000", 1, 10000,
                   MEMBER(aggregate), false},
    [CHECKS] = {"-c", "a whole number from 0 to 2147483647", 0, G_MAXINT,
                MEMBER(checks), false},
    [REGISTERED] = {"-R", "0 or 1", 0, 1, MEMBER(registered), false},
#undef MEMBER
};

/* The options as GOption stores them. */
typedef struct {
    char *min, *max, *step, *dtypes, *ops, *root, *compare, *part;
    char *numbers[G_N_ELEMENTS(numbers)];
} words_t;

/* text as a word of a command line, which outlives the options; frees text. */
static char *word_keep(char *text)
{
    const char *word = g_intern_string(text);

    g_free(text);
    return (char *)word;
}

/* Replaces "--ranks=4" by "-n4": users write the former, which GOption does not
 * know. Other words are returned unchanged. */
static char *spell_out(const GOptionEntry *entries, char *word)
{
    if (word[0] != '-' || !word[1] || !g_ascii_isdigit(word[2]))
        return word;
    for (; entries->long_name; entries++)
        if (word[1] == entries->short_name)
            return word_keep(
                g_strdup_printf("--%s=%s", entries->long_name, word + 2));
    return word;
}

/* Also true for "-1": it is refused as a number, not as an unknown option. */
static bool is_number(const char *word)
{
    return g_ascii_isdigit(word[word[0] == '-']);
}

/* Returns the long name of an option that may have no value, and then means 1;
 * or NULL. */
static const char *find_alone(const char *word)
{
    static const char *const words[][2] = {{"-c", "--check"},
                                           {"-R", "--register"}};

    for (size_t i = 0; i < G_N_ELEMENTS(words); i++)
        if (strcmp(word, words[i][0]) == 0 || strcmp(word, words[i][1]) == 0)
            return words[i][1];
    return NULL;
}

/* The word after an option that may have no value belongs to it only if it is a
 * number. */
static void prepare_words(const GOptionEntry *entries, int argc, char **argv)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        const char *name = find_alone(argv[i]);

        argv[i] = spell_out(entries, argv[i]);
        if (name && (i + 1 >= argc || !is_number(argv[i + 1])))
            argv[i] = word_keep(g_strdup_printf("%s=1", name));
    }
}

static char *describe_operations(void)
{
    GString *text = g_string_new("Operations:\n");
    const perf_operation_t *operation;

    for (size_t i = 0; (operation = perf_operation(i)); i++)
        g_string_append_printf(text, "  %-25s  %s\n", operation->name,
                               operation->summary);
    g_string_append(text, "\nIn its own job (-n) or under any launcher. Sizes "
                          "are bytes and may end in K, M, G\nor T, of 1024. "
                          "With --pairs it is dscomm topo --p2p --ranks.");
    return g_string_free(text, false);
}

static bool options_parse(int *argc, char ***argv, perf_options_t *o,
                          words_t *w)
{
    const GOptionEntry entries[] = {
        {"ranks", 'n', 0, G_OPTION_ARG_STRING, &w->numbers[RANKS],
         "Start N ranks here (without a launcher), or 2,4,8", "N"},
        {"minbytes", 'b', 0, G_OPTION_ARG_STRING, &w->min, "Smallest size (8)",
         "SIZE"},
        {"maxbytes", 'e', 0, G_OPTION_ARG_STRING, &w->max, "Largest size (32M)",
         "SIZE"},
        {"stepfactor", 'f', 0, G_OPTION_ARG_STRING, &w->numbers[FACTOR],
         "Factor from one size to the next (4)", "F"},
        {"stepbytes", 0, 0, G_OPTION_ARG_STRING, &w->step,
         "Difference between sizes, instead of a factor", "SIZE"},
        {"datatype", 'd', 0, G_OPTION_ARG_STRING, &w->dtypes,
         "Element types, or all (float32)", "LIST"},
        {"op", 'o', 0, G_OPTION_ARG_STRING, &w->ops,
         "Reduction operators, or all (sum)", "LIST"},
        {"root", 'r', 0, G_OPTION_ARG_STRING, &w->root,
         "Root, all, or rotate (0)", "RANK"},
        {"time", 't', 0, G_OPTION_ARG_STRING, &w->numbers[TIME],
         "Seconds of a figure (0.1)", "S"},
        {"iters", 'i', 0, G_OPTION_ARG_STRING, &w->numbers[ITERATIONS],
         "Calls of a figure, instead of its time", "N"},
        {"warmup_iters", 'w', 0, G_OPTION_ARG_STRING, &w->numbers[WARMUP],
         "Calls before a figure (5)", "N"},
        {"agg_iters", 'm', 0, G_OPTION_ARG_STRING, &w->numbers[AGGREGATE],
         "Coalesce N calls into one (1)", "N"},
        {"check", 'c', 0, G_OPTION_ARG_STRING, &w->numbers[CHECKS],
         "Verified calls of a figure, 0 for none (1)", "N"},
        {"backend", 0, 0, G_OPTION_ARG_STRING, &o->backend, "Backend (auto)",
         "NAME"},
        {"compress", 0, 0, G_OPTION_ARG_STRING, &o->compress,
         "Compressed all_reduce beside the plain one", "CODEC"},
        {"sweep-part", 0, G_OPTION_FLAG_HIDDEN, G_OPTION_ARG_STRING, &w->part,
         NULL, NULL},
        {"compare", 0, 0, G_OPTION_ARG_STRING, &w->compare,
         "Operations with the same result, in turn", "LIST"},
        {"model", 0, 0, G_OPTION_ARG_NONE, &o->model,
         "Fit a model, and predict times by it", NULL},
        {"model-parameters", 0, 0, G_OPTION_ARG_STRING, &o->model_parameters,
         "Predict by these parameters, without ranks", "LIST"},
        {"model-ranks", 0, 0, G_OPTION_ARG_STRING, &o->model_ranks,
         "Numbers of ranks to predict for", "LIST"},
        {"model-save", 0, 0, G_OPTION_ARG_FILENAME, &o->model_save,
         "Write what is predicted to a tuning file", "FILE"},
        {"async", 0, 0, G_OPTION_ARG_NONE, &o->async,
         "Start calls, and wait for their works", NULL},
        {"overlap", 0, 0, G_OPTION_ARG_NONE, &o->overlap,
         "How much of a call a computation hides", NULL},
        {"register", 'R', 0, G_OPTION_ARG_STRING, &w->numbers[REGISTERED],
         "Buffers of dscomm_mem_alloc(), 1 for yes (0)", "N"},
        {"accelerator", 0, 0, G_OPTION_ARG_STRING, &o->accelerator,
         "Buffers in memory of a device: cuda", "TYPE"},
        {"no-pin", 0, 0, G_OPTION_ARG_NONE, &o->unpinned,
         "Do not bind ranks to processors", NULL},
        {"no-roof", 0, 0, G_OPTION_ARG_NONE, &o->no_roof,
         "Do not measure the lower limit of times", NULL},
        {"json", 'J', 0, G_OPTION_ARG_NONE, &o->json, "Print JSON", NULL},
        {"csv", 0, 0, G_OPTION_ARG_NONE, &o->csv, "Print CSV", NULL},
        {"save", 0, 0, G_OPTION_ARG_FILENAME, &o->save,
         "Write a baseline, as JSON", "FILE"},
        {"against", 0, 0, G_OPTION_ARG_FILENAME, &o->against,
         "Compare with a baseline", "FILE"},
        {"plot", 0, 0, G_OPTION_ARG_FILENAME, &o->plot,
         "Draw times and bandwidths, as PNG or SVG", "FILE"},
        {NULL, 0, 0, 0, NULL, NULL, NULL},
    };
    char *description = describe_operations();
    bool parsed;

    prepare_words(entries, *argc, *argv);
    parsed = tool_parse(argc, argv, entries, "OPERATION...", description, false,
                        NULL);
    g_free(description);
    return parsed;
}

/* Returns the number of bits of a unit, or -1; moves *text past it. */
static int parse_unit(const char **text)
{
    static const char letters[] = "KMGT";
    const char *letter =
        **text ? strchr(letters, g_ascii_toupper(**text)) : NULL;
    int bits = 0;

    if (letter) {
        bits = 10 * (int)(letter - letters + 1);
        (*text)++;
        if (**text == 'i')
            (*text)++;
    }
    if (**text == 'B' || **text == 'b')
        (*text)++;
    return **text ? -1 : bits;
}

bool perf_parse_size(const char *text, size_t *ret_bytes)
{
    char *end;
    double number;
    const char *unit;

    if (!g_ascii_isdigit(text[0]) || text[1] == 'x' || text[1] == 'X')
        return false;
    number = g_ascii_strtod(text, &end);
    unit = end;
    int bits = parse_unit(&unit);
    if (bits < 0)
        return false;
    number = ldexp(number, bits);
    if (!(number < ldexp(1, 62)))
        return false;
    *ret_bytes = (size_t)number;
    return true;
}

size_t perf_next_size(const perf_options_t *options, size_t bytes)
{
    double next = options->step ? (double)bytes + (double)options->step
                                : (double)bytes * options->factor;

    next = MAX(next, (double)bytes + 1);
    return next > (double)options->max ? 0 : (size_t)next;
}

static int read_size(const char *option, const char *text, size_t *ret_size)
{
    if (!text || perf_parse_size(text, ret_size))
        return TOOL_OK;
    return tool_fail(TOOL_USAGE, "perf",
                     "%s %s is no size; give bytes, as 8, 64K or 1.5M", option,
                     text);
}

static int read_sizes(const words_t *w, perf_options_t *o)
{
    int status = read_size("-b", w->min, &o->min);

    if (status == TOOL_OK)
        status = read_size("-e", w->max, &o->max);
    if (status == TOOL_OK)
        status = read_size("--stepbytes", w->step, &o->step);
    if (status != TOOL_OK)
        return status;
    if (!w->max)
        o->max = MAX(o->max, o->min);
    if (!w->min)
        o->min = MIN(o->min, o->max);
    if (o->min > o->max)
        return tool_fail(TOOL_USAGE, "perf",
                         "the smallest size, -b %s, is larger than the "
                         "largest, -e %s",
                         w->min, w->max);
    if (w->step && o->step == 0)
        return tool_fail(TOOL_USAGE, "perf", "--stepbytes must not be 0");
    return TOOL_OK;
}

/* nccl-tests' and MPI's names of types and operators that have another one
 * here. */
static const struct {
    const char *name, *ours;
} aliases[] = {
    {"half", "float16"},       {"float", "float32"}, {"double", "float64"},
    {"char", "int8"},          {"int", "int32"},     {"f8e4m3", "float8_e4m3"},
    {"f8e5m2", "float8_e5m2"}, {"prod", "product"},  {"mulsum", "premul_sum"},
    {"and", "band"},           {"or", "bor"},        {"xor", "bxor"},
};

static const char *our_name(const char *name)
{
    for (size_t i = 0; i < G_N_ELEMENTS(aliases); i++)
        if (strcmp(aliases[i].name, name) == 0)
            return aliases[i].ours;
    return name;
}

static bool find_dtype(const char *name, int *ret_number)
{
    dscomm_dtype_t dtype;

    if (dscomm_dtype_from_name(our_name(name), &dtype) != 0)
        return false;
    *ret_number = (int)dtype;
    return true;
}

static bool find_op(const char *name, int *ret_number)
{
    dscomm_op_t op;

    if (dscomm_op_from_name(our_name(name), &op) != 0)
        return false;
    *ret_number = (int)op;
    return true;
}

/* Sets the flags of the names in a list, or of all count. */
static int read_list(const char *option, const char *what, const char *list,
                     bool (*find)(const char *name, int *ret_number),
                     bool *flags, int count)
{
    char **names = g_strsplit(list, ",", -1);
    int status = TOOL_OK;

    for (int i = 0; names[i] && status == TOOL_OK; i++) {
        int number;
        if (strcmp(names[i], "all") == 0)
            for (int k = 0; k < count; k++)
                flags[k] = true;
        else if (find(names[i], &number))
            flags[number] = true;
        else
            status = tool_fail(TOOL_USAGE, "perf",
                               "%s: there is no %s '%s'; the names are those "
                               "of dscomm_types(3), lower case",
                               option, what, names[i]);
    }
    if (!names[0])
        status = tool_fail(TOOL_USAGE, "perf", "%s: which %s?", option, what);
    g_strfreev(names);
    return status;
}

static int read_root(const char *text, int *ret_root)
{
    guint64 root = 0;

    if (text && strcmp(text, "rotate") == 0)
        *ret_root = PERF_ROOT_ROTATES;
    else if (text && (strcmp(text, "all") == 0 || strcmp(text, "-1") == 0))
        *ret_root = PERF_ROOT_ALL;
    else if (!text ||
             g_ascii_string_to_unsigned(text, 10, 0, G_MAXINT - 1, &root, NULL))
        *ret_root = (int)root;
    else
        return tool_fail(TOOL_USAGE, "perf",
                         "-r %s is no rank, nor 'all' or 'rotate'", text);
    return TOOL_OK;
}

/* Reads option i; neither hexadecimal nor "inf". */
static bool read_number(const char *text, size_t i, perf_options_t *o)
{
    const char *fit = numbers[i].fraction ? "0123456789.eE+-" : "0123456789";
    char *end, *member = (char *)o + numbers[i].offset;
    double number = g_ascii_strtod(text, &end);

    if (!*text || text[strspn(text, fit)] || *end ||
        !(number >= numbers[i].min && number <= numbers[i].max))
        return false;
    if (numbers[i].fraction)
        *(double *)(void *)member = number;
    else
        *(int *)(void *)member = (int)number;
    return true;
}

/* Reads -n in a part of a sweep, or as several numbers, which begin a sweep. */
static int read_ranks(const words_t *w, perf_options_t *o)
{
    const char *text = w->numbers[RANKS];

    if (w->part)
        return perf_sweep_read_part(w->part, o)
                   ? TOOL_OK
                   : tool_fail(TOOL_USAGE, "perf",
                               "--sweep-part is not for "
                               "users");
    o->sweep = perf_sweep_read(text, (int)numbers[RANKS].max);
    if (o->sweep)
        return TOOL_OK;
    return tool_fail(TOOL_USAGE, "perf",
                     "-n must be %s, or up to 64 of them, as 2,4,8 or 2-8, not "
                     "'%s'",
                     numbers[RANKS].what, text);
}

static bool is_sweep(const words_t *w)
{
    const char *text = w->numbers[RANKS];

    return w->part || (text && *text && strpbrk(text + 1, ",-"));
}

static int read_numbers(const words_t *w, perf_options_t *o)
{
    if (is_sweep(w) && read_ranks(w, o) != TOOL_OK)
        return TOOL_USAGE;
    for (size_t i = 0; i < G_N_ELEMENTS(numbers); i++)
        if (w->numbers[i] && !(i == RANKS && is_sweep(w)) &&
            !read_number(w->numbers[i], i, o))
            return tool_fail(TOOL_USAGE, "perf", "%s must be %s, not '%s'",
                             numbers[i].option, numbers[i].what, w->numbers[i]);
    return TOOL_OK;
}

static int check_modes(perf_options_t *o)
{
    if ((o->save && !*o->save) || (o->against && !*o->against))
        return tool_fail(TOOL_USAGE, "perf", "%s needs a file's name",
                         o->save && !*o->save ? "--save" : "--against");
    if (o->json && o->csv)
        return tool_fail(TOOL_USAGE, "perf",
                         "--json and --csv exclude each "
                         "other");
    if (o->accelerator && perf_check_accelerator(o) != TOOL_OK)
        return TOOL_USAGE;
    if (o->sweep && o->compress)
        return tool_fail(TOOL_USAGE, "perf",
                         "--compress and several numbers of ranks exclude each "
                         "other");
    if (o->part) {
        g_clear_pointer(&o->save, g_free);
        g_clear_pointer(&o->plot, g_free);
    }
    return TOOL_OK;
}

bool perf_is_selected(const perf_options_t *options,
                      const perf_operation_t *operation, dscomm_dtype_t dtype,
                      dscomm_op_t op)
{
    if (!options->dtypes[dtype])
        return false;
    if (!(perf_kind(operation)->flags & PERF_REDUCES))
        return op == DSCOMM_SUM;
    return options->ops[op] && dscomm_op_applies(op, dtype) &&
           (op != DSCOMM_PREMUL_SUM ||
            !(operation->flags & PERF_UNEVEN || perf_parts(operation)));
}

/* Returns whether any selected type and operator can be measured with this
 * operation. */
static bool has_any(const perf_options_t *options,
                    const perf_operation_t *operation)
{
    for (int dtype = 0; dtype < DSCOMM_DTYPE_COUNT; dtype++)
        for (int op = 0; op < DSCOMM_OP_COUNT; op++)
            if (perf_is_selected(options, operation, (dscomm_dtype_t)dtype,
                                 (dscomm_op_t)op))
                return true;
    return false;
}

/* Returns an option that needs calls with a work; NULL: none was given. */
static const char *needs_works(const perf_options_t *options)
{
    if (options->overlap)
        return "--overlap";
    if (options->async)
        return "--async";
    return options->aggregate > 1 ? "-m" : NULL;
}

static int check_one(const perf_options_t *options,
                     const perf_operation_t *operation)
{
    const char *option = needs_works(options);

    if (option && operation->coll < 0)
        return tool_fail(TOOL_USAGE, "perf",
                         "%s: %s has no form that returns a work; leave out "
                         "one of them",
                         option, operation->name);
    if (options->accelerator && operation->flags & PERF_HOST)
        return tool_fail(TOOL_USAGE, "perf",
                         "--accelerator: %s needs memory of the host; leave "
                         "out one of them",
                         operation->name);
    if (!has_any(options, operation))
        return tool_fail(TOOL_USAGE, "perf",
                         "-o: none of these operators is defined for %s on "
                         "any of the types",
                         operation->name);
    return TOOL_OK;
}

/* Chooses the operations that the other options allow. */
static void add_all(const perf_options_t *options, GPtrArray *chosen)
{
    const perf_operation_t *operation;

    for (size_t i = 0; (operation = perf_operation(i)); i++)
        if ((operation->coll >= 0 || !needs_works(options)) &&
            !(operation->flags & PERF_ACCESSES) && !perf_parts(operation) &&
            !(options->accelerator && operation->flags & PERF_HOST) &&
            (!perf_model_is_asked(options) || perf_model_has(operation)) &&
            has_any(options, operation))
            g_ptr_array_add(chosen, (gpointer)operation);
}

static int refuse_name(const char *name)
{
    dscomm_nearest_t search = dscomm_priv_nearest_begin(name, 0);
    const perf_operation_t *operation;

    for (size_t i = 0; (operation = perf_operation(i)); i++)
        dscomm_priv_nearest_try(&search, operation->name);
    return tool_fail(TOOL_USAGE, "perf",
                     "there is no operation '%s'; %s%s%s'dscomm perf --help' "
                     "lists them, 'all' is all",
                     name, search.nearest ? "is " : "",
                     search.nearest ? search.nearest : "",
                     search.nearest ? " meant? " : "");
}

static int add_named(const perf_options_t *options, GPtrArray *chosen,
                     const char *name)
{
    const perf_operation_t *operation = perf_operation_find(name);
    int status;

    if (!operation)
        return refuse_name(name);
    status = check_one(options, operation);
    if (status == TOOL_OK)
        g_ptr_array_add(chosen, (gpointer)operation);
    return status;
}

/* Fills options->operations from names (NULL at the end), and checks that each
 * operation can be measured with the other options. */
static int select_operations(perf_options_t *options, char *const *names)
{
    GPtrArray *chosen = g_ptr_array_new();
    int status = TOOL_OK;

    if (!names[0])
        status = tool_fail(TOOL_USAGE, "perf",
                           "which operation? Usage: dscomm perf [-n N] "
                           "OPERATION...; 'dscomm perf --help' lists them");
    for (int i = 0; names[i] && status == TOOL_OK; i++)
        if (strcmp(names[i], "all") == 0)
            add_all(options, chosen);
        else if (strcmp(names[i], "--") != 0)
            status = add_named(options, chosen, names[i]);
    g_ptr_array_add(chosen, NULL);
    options->operations =
        (const perf_operation_t **)g_ptr_array_free(chosen, false);
    return status;
}

/* Whether the other options are compatible with --compress. */
static int check_compress(const perf_options_t *o, char *const *names)
{
    const struct {
        const char *name;
        bool given;
    } others[] = {
        {"-m", o->aggregate > 1},    {"--overlap", o->overlap},
        {"--save", o->save != NULL}, {"--against", o->against != NULL},
        {"-r", o->root != 0},        {"--plot", o->plot != NULL},
    };

    if (!dscomm_codec_find(o->compress))
        return tool_fail(TOOL_USAGE, "perf",
                         "--compress: there is no codec '%s'; there are %s",
                         o->compress, dscomm_codec_names());
    for (size_t i = 0; i < G_N_ELEMENTS(others); i++)
        if (others[i].given)
            return tool_fail(TOOL_USAGE, "perf",
                             "--compress and %s exclude each other",
                             others[i].name);
    for (int i = 0; i < DSCOMM_OP_COUNT; i++)
        if (o->ops[i] && i != DSCOMM_SUM && i != DSCOMM_AVG)
            return tool_fail(TOOL_USAGE, "perf",
                             "--compress: -o %s is not compressed; the mean is",
                             dscomm_op_name((dscomm_op_t)i));
    for (int i = 0; names[i]; i++)
        if (strcmp(names[i], "all_reduce") != 0 && strcmp(names[i], "--") != 0)
            return tool_fail(TOOL_USAGE, "perf",
                             "--compress: %s has no compressed form; "
                             "all_reduce has",
                             names[i]);
    for (int i = 0; i < DSCOMM_DTYPE_COUNT; i++)
        if (o->dtypes[i] && i != DSCOMM_FLOAT16 && i != DSCOMM_BFLOAT16 &&
            i != DSCOMM_FLOAT32 && i != DSCOMM_FLOAT64)
            return tool_fail(TOOL_USAGE, "perf",
                             "--compress: -d %s is not compressed; float16, "
                             "bfloat16, float32 and float64 are",
                             dscomm_dtype_name((dscomm_dtype_t)i));
    return TOOL_OK;
}

/* Fills options->operations from the list. */
static int select_alternatives(perf_options_t *o, const char *list,
                               char *const *names)
{
    char **alternatives = g_strsplit(list, ",", -1);
    int status = perf_check_compare(o, names);

    if (status == TOOL_OK && alternatives[0])
        status = select_operations(o, alternatives);
    else if (status == TOOL_OK)
        o->operations = g_new0(const perf_operation_t *, 1);
    if (status == TOOL_OK)
        status = perf_check_alternatives(o);
    o->compare = true;
    g_strfreev(alternatives);
    return status;
}

static int options_interpret(const words_t *w, char **names, perf_options_t *o)
{
    static char all_reduce[] = "all_reduce";
    char *const modelled[] = {all_reduce, NULL};
    int status = read_numbers(w, o);

    o->async = o->async || o->overlap;
    if (status == TOOL_OK)
        status = check_modes(o);
    if (status == TOOL_OK)
        status = read_sizes(w, o);
    if (status == TOOL_OK)
        status = read_list("-d", "type", w->dtypes ? w->dtypes : "float32",
                           find_dtype, o->dtypes, DSCOMM_DTYPE_COUNT);
    if (status == TOOL_OK)
        status = read_list("-o", "operator", w->ops ? w->ops : "sum", find_op,
                           o->ops, DSCOMM_OP_COUNT);
    if (status == TOOL_OK)
        status = read_root(w->root, &o->root);
    if (status == TOOL_OK && o->compress && !w->compare)
        status = check_compress(o, names);
    else if (status == TOOL_OK && w->compare)
        status = select_alternatives(o, w->compare, names);
    else if (status == TOOL_OK)
        status = select_operations(
            o, perf_model_is_asked(o) && !names[0] ? modelled : names);
    if (status == TOOL_OK && perf_model_is_asked(o))
        status = perf_model_check(o);
    return status;
}

static void clear_words(words_t *w)
{
    g_free(w->min);
    g_free(w->max);
    g_free(w->step);
    g_free(w->dtypes);
    g_free(w->ops);
    g_free(w->root);
    g_free(w->compare);
    g_free(w->part);
    for (size_t i = 0; i < G_N_ELEMENTS(numbers); i++)
        g_free(w->numbers[i]);
}

int perf_options_read(int argc, char **argv, perf_options_t *ret_options)
{
    perf_options_t o = {.min = 8,
                        .max = (size_t)32 << 20,
                        .factor = 4,
                        .time = 0.1,
                        .warmup = 5,
                        .aggregate = 1,
                        .checks = 1};
    words_t words = {0};
    int status = TOOL_USAGE;

    if (options_parse(&argc, &argv, &o, &words))
        status = options_interpret(&words, argv + 1, &o);
    clear_words(&words);
    if (status == TOOL_OK)
        *ret_options = o;
    else
        perf_options_clear(&o);
    return status;
}

void perf_options_clear(perf_options_t *o)
{
    g_free(o->operations);
    g_free(o->backend);
    g_free(o->compress);
    g_free(o->save);
    g_free(o->against);
    g_free(o->plot);
    g_free(o->accelerator);
    g_free(o->sweep);
    g_free(o->report);
    g_free(o->model_parameters);
    g_free(o->model_ranks);
    g_free(o->model_save);
    memset(o, 0, sizeof *o);
}
