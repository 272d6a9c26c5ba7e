/* SPDX-License-Identifier: BSD-3-Clause */
/* The library as a plugin, which DSCOMM_PROFILE loads: parses that setting,
 * attaches a profiler, and writes one profile of all ranks. */
#include "config.h"

#include "profiler/clocks.h"
#include "profiler/profiler.h"
#include "profiler/trace.h"

#include <dscomm/plugin.h>
#include <errno.h>
#include <glib.h>
#include <string.h>
#include <unistd.h>

/* Bounds of what one rank sends, and of what rank 0 gets from all, in bytes. */
#define PART_MAX ((size_t)7 << 20)
#define PARTS_MAX ((size_t)64 << 20)

/* One thing to write. */
typedef struct {
    dscomm_profile_format_t format;
    char *path; /* NULL: stderr */
} output_t;

typedef struct {
    GArray *outputs; /* output_t */
    GString *prof_ops; /* "": not given */
    dscomm_profiler_attr_t attr;
    int world_size;
    clocks_t clocks; /* with trace */
    dscomm_profiler_t *profiler;
    GByteArray *packed; /* what rank 0 gets of this rank */
} state_t;

static void output_clear(gpointer output)
{
    g_free(((output_t *)output)->path);
}

static void state_free(state_t *state)
{
    dscomm_profiler_free(state->profiler);
    if (state->packed)
        g_byte_array_unref(state->packed);
    g_array_unref(state->outputs);
    g_string_free(state->prof_ops, TRUE);
    dscomm_priv_clocks_clear(&state->clocks);
    g_free(state);
}

static dscomm_status_t word_refuse(const char *word)
{
    return dscomm_fail(
        DSCOMM_ERR_ENVIRONMENT,
        "DSCOMM_PROFILE has '%s'; it accepts summary, deepspeed, json:FILE, "
        "csv:FILE, prometheus:FILE, trace:FILE, stragglers, verbose, debug, "
        "level:1, level:2, prof_all and prof_ops:OPERATION+OPERATION, comma "
        "separated; summary and deepspeed take a :FILE, too",
        word);
}

/* True if format may be written to stderr. */
static bool format_is_table(int format)
{
    return format == DSCOMM_PROFILE_SUMMARY ||
           format == DSCOMM_PROFILE_DEEPSPEED;
}

/* True if a file is written already, which a second output would replace. */
static bool path_is_used(const state_t *state, const char *path)
{
    for (guint i = 0; path && i < state->outputs->len; i++)
        if (!g_strcmp0(g_array_index(state->outputs, output_t, i).path, path))
            return true;
    return false;
}

/* Adds an output, which the array then owns; a table that is written to stderr
 * already is not added again. */
static void output_add(state_t *state, output_t output)
{
    for (guint i = 0; !output.path && i < state->outputs->len; i++) {
        const output_t *other = &g_array_index(state->outputs, output_t, i);

        if (!other->path && other->format == output.format)
            return;
    }
    g_array_append_val(state->outputs, output);
}

static dscomm_status_t output_parse(state_t *state, const char *word)
{
    const char *colon = strchr(word, ':');
    const size_t length = colon ? (size_t)(colon - word) : strlen(word);
    const char *name;

    if (colon && path_is_used(state, colon + 1))
        return dscomm_fail(DSCOMM_ERR_ENVIRONMENT,
                           "DSCOMM_PROFILE names the file '%s' twice; each "
                           "output needs a file of its own",
                           colon + 1);
    for (int format = 0; (name = dscomm_priv_format_name(format)); format++) {
        const output_t output = {(dscomm_profile_format_t)format,
                                 colon ? g_strdup(colon + 1) : NULL};

        if (strlen(name) == length &&
            !g_ascii_strncasecmp(name, word, length) &&
            (colon ? *output.path != '\0' : format_is_table(format))) {
            if (format == DSCOMM_PROFILE_TRACE)
                state->attr.trace = 1;
            output_add(state, output);
            return DSCOMM_OK;
        }
        g_free(output.path);
    }
    return word_refuse(word);
}

/* Adds operations to those that count. */
static dscomm_status_t ops_parse(state_t *state, const char *list)
{
    uint32_t colls;

    g_string_append_printf(state->prof_ops, "%s%s",
                           state->prof_ops->len ? "+" : "", list);
    return dscomm_priv_colls_parse("DSCOMM_PROFILE", DSCOMM_ERR_ENVIRONMENT,
                                   list, &colls);
}

static dscomm_status_t word_parse(state_t *state, const char *word)
{
    const struct {
        const char *name;
        int value;
        int *member;
    } switches[] = {
        {"verbose", 1, &state->attr.verbose},
        {"debug", 1, &state->attr.debug},
        {"prof_all", 1, &state->attr.prof_all},
        {"stragglers", 1, &state->attr.trace},
        {"level:1", 1, &state->attr.level},
        {"level:2", 2, &state->attr.level},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(switches); i++) {
        if (!g_ascii_strcasecmp(word, switches[i].name)) {
            *switches[i].member = switches[i].value;
            return DSCOMM_OK;
        }
    }
    if (!g_ascii_strncasecmp(word, "prof_ops:", strlen("prof_ops:")) &&
        word[strlen("prof_ops:")])
        return ops_parse(state, word + strlen("prof_ops:"));
    return output_parse(state, word);
}

static dscomm_status_t settings_parse(state_t *state, const char *settings)
{
    char **words = g_strsplit(settings, ",", -1);
    dscomm_status_t status = DSCOMM_OK;

    for (char **word = words; *word && status == DSCOMM_OK; word++)
        if (*g_strstrip(*word))
            status = word_parse(state, *word);
    g_strfreev(words);
    if (state->prof_ops->len)
        state->attr.prof_ops = state->prof_ops->str;
    return status;
}

static dscomm_status_t plugin_open(const char *settings, void **ret_state)
{
    state_t *state = g_new0(state_t, 1);
    dscomm_status_t status;

    dscomm_profiler_attr_init(&state->attr, sizeof state->attr);
    state->prof_ops = g_string_new(NULL);
    state->outputs = g_array_new(FALSE, FALSE, sizeof(output_t));
    g_array_set_clear_func(state->outputs, output_clear);
    status = settings_parse(state, settings);
    if (status == DSCOMM_OK)
        status = dscomm_profiler_attach(&state->attr, &state->profiler);
    if (status < 0) {
        state_free(state);
        return status;
    }
    *ret_state = state;
    return DSCOMM_OK;
}

/* Time for comparing clocks, in ms: at the begin and at the end each. */
#define CLOCKS_MS 2000

static void plugin_meet(void *arg, dscomm_group_t *world, dscomm_store_t *store)
{
    state_t *state = arg;

    if (!state->attr.trace)
        return;
    if (!state->clocks.size)
        dscomm_priv_clocks_init(&state->clocks, dscomm_group_rank(world),
                                dscomm_group_size(world));
    dscomm_priv_clocks_measure(&state->clocks, store, CLOCKS_MS);
    if (dscomm_priv_clocks_error(&state->clocks) < 0)
        dscomm_log(DSCOMM_LOG_WARN, "profiler",
                   "the clock of this rank could not be compared with rank "
                   "0's within %d ms; its events are at the wrong times",
                   CLOCKS_MS);
}

/* Warns now of a file that cannot be written when the job ends. */
static void output_check(const output_t *output)
{
    char *folder;
    int problem = 0;

    if (!output->path)
        return;
    folder = g_path_get_dirname(output->path);
    if (g_file_test(output->path, G_FILE_TEST_IS_DIR))
        problem = EISDIR;
    else if (access(access(output->path, F_OK) ? folder : output->path, W_OK))
        problem = errno;
    if (problem)
        dscomm_log(DSCOMM_LOG_WARN, "profiler",
                   "DSCOMM_PROFILE: %s cannot be written at the end of the "
                   "job: %s",
                   output->path, g_strerror(problem));
    g_free(folder);
}

static void plugin_begin(void *arg, dscomm_group_t *world)
{
    state_t *state = arg;

    for (guint i = 0; !dscomm_group_rank(world) && i < state->outputs->len; i++)
        output_check(&g_array_index(state->outputs, output_t, i));

    state->profiler->rank = dscomm_group_rank(world);
    state->world_size = dscomm_group_size(world);
    dscomm_profiler_start(state->profiler, NULL);
}

static void plugin_collect(void *arg, dscomm_profiler_part_t *ret_part)
{
    state_t *state = arg;
    dscomm_profile_t *profile;

    dscomm_profiler_detach(state->profiler);
    if (dscomm_profiler_snapshot(state->profiler, &profile) < 0)
        return;
    if (profile->traces->len && state->clocks.size)
        dscomm_priv_trace_shift(g_ptr_array_index(profile->traces, 0),
                                &state->clocks);
    state->packed = dscomm_priv_profile_pack(
        profile, MIN(PART_MAX, PARTS_MAX / (size_t)state->world_size));
    dscomm_profile_free(profile);
    ret_part->data = state->packed->data;
    ret_part->size = state->packed->len;
}

static void plugin_finish(void *arg, const dscomm_profiler_part_t *parts,
                          int count)
{
    const state_t *state = arg;
    dscomm_profile_t *profile = dscomm_priv_profile_new(count);

    for (int i = 0; i < count; i++)
        if (!parts[i].data ||
            !dscomm_priv_profile_unpack(profile, parts[i].data, parts[i].size))
            dscomm_priv_profile_miss(profile, i);
    dscomm_priv_profile_finish(profile);
    for (guint i = 0; i < state->outputs->len; i++) {
        const output_t *output = &g_array_index(state->outputs, output_t, i);

        if (dscomm_profile_write(profile, output->format, output->path) < 0)
            dscomm_log(DSCOMM_LOG_ERROR, "profiler", "%s", dscomm_last_error());
    }
    dscomm_profile_free(profile);
}

static void plugin_close(void *state)
{
    state_free(state);
}

static const dscomm_profiler_plugin_t plugin = {
    .size = sizeof plugin,
    .name = "dscomm-profiler",
    .open = plugin_open,
    .begin = plugin_begin,
    .collect = plugin_collect,
    .finish = plugin_finish,
    .close = plugin_close,
    .meet = plugin_meet,
};

const dscomm_profiler_plugin_t *dscomm_profiler_plugin(unsigned abi)
{
    return abi == DSCOMM_PROFILER_PLUGIN_ABI ? &plugin : NULL;
}
