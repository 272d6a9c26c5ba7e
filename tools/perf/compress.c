/* SPDX-License-Identifier: BSD-3-Clause */
/* Compares a compressed all_reduce with the plain one: times, the time of the
 * codec alone, bytes sent, and the bandwidth of a link below which compression
 * is faster.
 *
 * With n ranks, a ring sends 2 (n - 1) / n times the bytes of the buffer.
 * Compression is faster if it saves more time on the link than the codec needs,
 * that is, on links slower than (bytes of the ring - compressed bytes) / time
 * of the codec. The codec is timed by a compressor in a group of one rank,
 * which sums as much as one of n ranks and encodes more. If the whole
 * compressed call takes less than that, its time is used instead. */
#include "config.h"

#include "tools/common/json.h"
#include "tools/perf/measure.h"
#include "tools/perf/operations.h"
#include "tools/perf/options.h"

#include <dscomm/compression.h>
#include <math.h>
#include <string.h>

typedef struct {
    size_t bytes, count;
    dscomm_dtype_t dtype;
    double ring, wire; /* bytes that a rank sends: by a ring, and compressed */
    perf_times_t plain, compressed, codec;
    gint64 wrong; /* ranks whose result is not that of rank 0; -1: unknown */
} line_t;

static const struct {
    const char *title, *unit; /* of the table */
    const char *name; /* in JSON and CSV */
    int width, decimals;
} columns[] = {
    {"size", "(B)", "bytes", 12, 0},
    {"count", "(elements)", "count", 12, 0},
    {"plain", "(us)", "plain_us", 10, 2},
    {"algbw", "(GB/s)", "plain_algbw_gbs", 7, 2},
    {"compr.", "(us)", "time_us", 10, 2},
    {"min", "(us)", "min_us", 10, 2},
    {"p99", "(us)", "p99_us", 10, 2},
    {"algbw", "(GB/s)", "algbw_gbs", 7, 2},
    {"speedup", "", "speedup", 7, 2},
    {"codec", "(us)", "codec_us", 10, 2},
    {"rate", "(GB/s)", "codec_gbs", 7, 2},
    {"wire", "(B)", "wire_bytes", 12, 0},
    {"of ring", "(%)", "wire_percent", 7, 2},
    {"pays <", "(GB/s)", "pays_below_gbs", 7, 2},
    {"#wrong", "", "wrong", 6, 0},
};
#define COLUMNS G_N_ELEMENTS(columns)

/* Percent of the bytes of a ring that travel. */
static double line_part(const line_t *l)
{
    return l->ring > 0 ? 100 * l->wire / l->ring : 0;
}

/* The bandwidth of a link, in GB/s, below which compression pays. */
static double line_pays(const line_t *l)
{
    return MAX(l->ring - l->wire, 0) / MIN(l->codec.p50, l->compressed.p50) /
           1e3;
}

/* Sets the values of the columns, which are not finite where nothing was
 * measured. */
static void line_values(const line_t *l, double ret_values[COLUMNS])
{
    const double values[COLUMNS] = {
        (double)l->bytes,
        (double)l->count,
        l->plain.p50,
        perf_algbw(l->bytes, l->plain.p50),
        l->compressed.p50,
        l->compressed.min,
        l->compressed.p99,
        perf_algbw(l->bytes, l->compressed.p50),
        l->plain.p50 / l->compressed.p50,
        l->codec.p50,
        perf_algbw(l->bytes, l->codec.p50),
        l->wire,
        line_part(l),
        line_pays(l),
        l->wrong < 0 ? NAN : (double)l->wrong,
    };

    memcpy(ret_values, values, sizeof values);
}

static dscomm_status_t call_plain(const perf_call_t *call,
                                  dscomm_work_t **ret_work)
{
    return dscomm_all_reduce(call->group, call->recv, call->recv, call->count,
                             call->dtype, DSCOMM_AVG, ret_work);
}

static dscomm_status_t call_compressed(const perf_call_t *call,
                                       dscomm_work_t **ret_work)
{
    return dscomm_compressor_all_reduce(call->compressor, call->recv,
                                        call->dtype, ret_work);
}

static const perf_operation_t plain = {.run = call_plain, .messages = 1};
static const perf_operation_t compressed = {.run = call_compressed,
                                            .messages = 1};

/* Fills the buffer with noise whose magnitude stays the same however often it
 * is averaged, because the result of one call is the input of the next. */
static void buffer_fill(const perf_call_t *call)
{
    guint32 word = 1 + (guint32)call->rank;

    for (size_t i = 0; i < call->count * call->size / 4; i++) {
        word = word * 1664525 + 1013904223;
        ((guint32 *)call->recv)[i] = call->dtype == DSCOMM_FLOAT32
                                         ? 0x3f000000u | (word & 0x807fffffu)
                                         : 0x3c003c00u | (word & 0x80ff80ffu);
    }
}

/* Counts the ranks whose result differs from that of rank 0; the same on all
 * ranks. */
static dscomm_status_t compare_ranks(const perf_call_t *call, gint64 *ret_wrong)
{
    char *sum = g_compute_checksum_for_data(G_CHECKSUM_SHA256, call->recv,
                                            call->count * call->size);
    char first[65];
    gint64 wrong;
    dscomm_status_t status;

    g_strlcpy(first, sum, sizeof first);
    status = dscomm_broadcast(call->group, first, sizeof first, DSCOMM_UINT8, 0,
                              NULL);
    wrong = strcmp(first, sum) != 0;
    if (status == DSCOMM_OK)
        status = dscomm_all_reduce(call->group, &wrong, ret_wrong, 1,
                                   DSCOMM_INT64, DSCOMM_SUM, NULL);
    g_free(sum);
    return status;
}

static dscomm_status_t compressor_check(const perf_run_t *run,
                                        perf_call_t *call, gint64 *ret_wrong)
{
    dscomm_status_t status = DSCOMM_OK;

    *ret_wrong = -1;
    for (int i = 0; i < run->options->checks && status == DSCOMM_OK; i++) {
        gint64 wrong = 0;

        buffer_fill(call);
        status = call_compressed(call, NULL);
        if (status == DSCOMM_OK)
            status = compare_ranks(call, &wrong);
        *ret_wrong = MAX(*ret_wrong, 0) + wrong;
    }
    return status;
}

static dscomm_status_t measure_times(perf_run_t *run, perf_call_t *call,
                                     const perf_operation_t *operation,
                                     perf_times_t *ret_times)
{
    buffer_fill(call);
    call->operation = operation;
    return perf_time(run, call, perf_step(run->options, call), ret_times);
}

/* Measures all three times, with compressors that live as long as the
 * measurement. */
static dscomm_status_t measure_with(perf_run_t *run, perf_call_t *call,
                                    dscomm_compressor_t *shared,
                                    dscomm_compressor_t *alone, line_t *line)
{
    dscomm_status_t status;

    call->compressor = shared;
    status = compressor_check(run, call, &line->wrong);
    if (status == DSCOMM_OK)
        status = measure_times(run, call, &plain, &line->plain);
    if (status == DSCOMM_OK)
        status = measure_times(run, call, &compressed, &line->compressed);
    buffer_fill(call);
    call->compressor = alone;
    if (status == DSCOMM_OK)
        status = perf_time(run, call, call_compressed, &line->codec);
    return status;
}

static dscomm_status_t measure_line(perf_run_t *run, perf_call_t *call,
                                    dscomm_group_t *self, line_t *line)
{
    dscomm_compressor_attr_t attr = DSCOMM_COMPRESSOR_ATTR_INIT;
    dscomm_compressor_info_t info = {.size = sizeof info};
    dscomm_compressor_t *shared = NULL, *alone = NULL;
    dscomm_status_t status;

    attr.codec = run->options->compress;
    line->count = call->count;
    line->bytes = call->count * call->size;
    line->dtype = call->dtype;
    line->ring = 2.0 * (run->ranks - 1) / run->ranks * (double)line->bytes;
    status = dscomm_compressor_create(run->group, call->count, &attr, &shared);
    if (status == DSCOMM_OK)
        status = dscomm_compressor_create(self, call->count, &attr, &alone);
    if (status == DSCOMM_OK)
        status = dscomm_compressor_info(shared, &info);
    line->wire = (double)info.wire_bytes;
    if (status == DSCOMM_OK)
        status = measure_with(run, call, shared, alone, line);
    dscomm_compressor_free(alone);
    dscomm_compressor_free(shared);
    return status;
}

/* Printing, on rank 0 */

static JsonBuilder *json_new(const perf_run_t *run)
{
    JsonBuilder *json = json_builder_new();

    tool_json_object(json, NULL);
    tool_json_text(json, "format", "dscomm-perf-compress");
    tool_json_number(json, "format_version", 1);
    tool_json_text(json, "dscomm", dscomm_version_string());
    tool_json_text(json, "codec", run->options->compress);
    tool_json_number(json, "ranks", run->ranks);
    tool_json_text(json, "backend", dscomm_group_backend(run->group));
    tool_json_flag(json, "async", run->options->async);
    tool_json_array(json, "rows");
    return json;
}

static void json_print(JsonBuilder *json)
{
    GString *text = g_string_new(NULL);

    json_builder_end_array(json);
    json_builder_end_object(json);
    tool_json_end(json, TRUE, text);
    fputs(text->str, stdout);
    g_string_free(text, TRUE);
}

static void json_add_line(JsonBuilder *json, const line_t *line)
{
    double values[COLUMNS];

    line_values(line, values);
    tool_json_object(json, NULL);
    tool_json_text(json, "type", dscomm_dtype_name(line->dtype));
    for (size_t i = 0; i < COLUMNS; i++)
        tool_json_real(json, columns[i].name,
                       columns[i].decimals ? "%.4f" : NULL, values[i]);
    json_builder_end_object(json);
}

static void print_titles(const perf_run_t *run)
{
    const perf_options_t *o = run->options;

    if (!o->csv)
        printf("# dscomm %s, backend %s, %d ranks, codec %s\n# time: median "
               "over batches of the mean time of a call in the slowest rank\n"
               "# codec: the same call in a group of one rank\n#\n# %8s",
               dscomm_version_string(), dscomm_group_backend(run->group),
               run->ranks, o->compress, "type");
    else
        printf("codec,ranks,type");
    for (size_t i = 0; i < COLUMNS; i++)
        if (o->csv)
            printf(",%s", columns[i].name);
        else
            printf(" %*s", columns[i].width, columns[i].title);
    printf("%s", o->csv ? "\n" : "\n#         ");
    for (size_t i = 0; i < COLUMNS && !o->csv; i++)
        printf(" %*s", columns[i].width, columns[i].unit);
    printf("%s", o->csv ? "" : "\n");
}

static void print_line(const perf_run_t *run, const line_t *line)
{
    const perf_options_t *o = run->options;
    const char *type = dscomm_dtype_name(line->dtype);
    double values[COLUMNS];

    line_values(line, values);
    if (o->csv)
        printf("%s,%d,%s", o->compress, run->ranks, type);
    else
        printf("%10s", type);
    for (size_t i = 0; i < COLUMNS; i++) {
        const double value = values[i];

        if (o->csv && !isfinite(value))
            printf(",");
        else if (o->csv)
            printf(",%.*f", columns[i].decimals * 2, value);
        else if (!isfinite(value))
            printf(" %*s", columns[i].width, "N/A");
        else
            printf(" %*.*f", columns[i].width, columns[i].decimals, value);
    }
    printf("\n");
    fflush(stdout);
}

/* Prints the conclusion for the longest buffer, from the last line. */
static void print_advice(const perf_run_t *run, const line_t *line)
{
    double moves = line->ring / line->plain.p50 / 1e3;

    if (run->options->csv || run->ranks == 1)
        return;
    printf(
        "#\n# %s of %zu bytes takes %.2f ms, %.2f GB/s, and sends %.1f %% of "
        "the bytes of a ring.\n# It pays where a rank's link moves less "
        "than %.2f GB/s. Between these ranks all_reduce\n# moves %.2f GB/s: "
        "%s.\n",
        run->options->compress, line->bytes, line->codec.p50 / 1e3,
        perf_algbw(line->bytes, line->codec.p50), line_part(line),
        line_pays(line), moves,
        dscomm_group_local_size(run->group) == run->ranks
            ? "inside one node it does not pay"
        : line->plain.p50 > line->compressed.p50 ? "here it pays"
                                                 : "here it does not pay");
}

static int compressor_measure_sizes(perf_run_t *run, perf_call_t *call,
                                    dscomm_group_t *self, line_t *line,
                                    JsonBuilder *json)
{
    const perf_options_t *o = run->options;
    size_t last = 0;

    for (size_t bytes = o->min, next = 1; next; bytes = next) {
        next = perf_next_size(o, bytes);
        call->count = MAX(bytes / call->size, 1);
        if (call->count == last)
            continue;
        last = call->count;
        memset(line, 0, sizeof *line);
        perf_progress(run, "%s, %zu bytes", o->compress, bytes);
        if (measure_line(run, call, self, line) != DSCOMM_OK)
            return perf_fail("--compress");
        perf_progress(run, NULL);
        if (json)
            json_add_line(json, line);
        else if (run->rank == 0)
            print_line(run, line);
        run->wrong += MAX(line->wrong, 0);
    }
    return TOOL_OK;
}

int perf_compress(perf_run_t *run)
{
    perf_call_t call = {.group = run->group,
                        .rank = run->rank,
                        .ranks = run->ranks,
                        .aggregate = 1,
                        .recv = run->recv};
    dscomm_group_t *self = NULL;
    JsonBuilder *json = NULL;
    line_t line;
    int status = TOOL_OK;

    if (dscomm_group_split(run->group, run->rank, 0, NULL, &self) != DSCOMM_OK)
        return perf_fail("--compress");
    if (run->rank == 0 && run->options->json)
        json = json_new(run);
    else if (run->rank == 0)
        print_titles(run);
    for (int dtype = 0; dtype < DSCOMM_DTYPE_COUNT; dtype++) {
        if (!run->options->dtypes[dtype] || status != TOOL_OK)
            continue;
        call.dtype = (dscomm_dtype_t)dtype;
        call.size = dscomm_dtype_size(call.dtype);
        status = compressor_measure_sizes(run, &call, self, &line, json);
    }
    if (json && status == TOOL_OK)
        json_print(g_steal_pointer(&json));
    else if (run->rank == 0 && status == TOOL_OK)
        print_advice(run, &line);
    g_clear_object(&json);
    dscomm_group_free(self);
    return status == TOOL_OK && run->wrong ? TOOL_FAILED : status;
}
