/* SPDX-License-Identifier: BSD-3-Clause */
/* Prometheus' text format, for its node exporter to read from a file: a metric
 * after the other, each with a sample for each class of sizes, or peer. */
#include "config.h"

#include "profiler/profile.h"

#include <string.h>

/* Prints the samples of one row. */
typedef void (*sample_t)(const char *name, const char *labels,
                         const dscomm_profile_row_t *row, GString *out);

typedef struct {
    const char *name, *type, *help;
    dscomm_profile_by_t by;
    sample_t print;
} metric_t;

static void sample_put_number(const char *name, const char *labels,
                              uint64_t number, GString *out)
{
    g_string_append_printf(out, "%s{%s} %" G_GUINT64_FORMAT "\n", name, labels,
                           number);
}

static void sample_put_seconds(const char *name, const char *labels, int64_t ns,
                               GString *out)
{
    g_string_append_printf(out, "%s{%s} %" G_GINT64_FORMAT ".%09d\n", name,
                           labels, ns / 1000000000, (int)(ns % 1000000000));
}

static void sample_count(const char *name, const char *labels,
                         const dscomm_profile_row_t *row, GString *out)
{
    sample_put_number(name, labels, row->count, out);
}

static void sample_failed(const char *name, const char *labels,
                          const dscomm_profile_row_t *row, GString *out)
{
    sample_put_number(name, labels, row->failed, out);
}

static void sample_bytes(const char *name, const char *labels,
                         const dscomm_profile_row_t *row, GString *out)
{
    sample_put_number(name, labels, row->total_bytes, out);
}

static void sample_sent(const char *name, const char *labels,
                        const dscomm_profile_row_t *row, GString *out)
{
    sample_put_number(name, labels, row->sent_bytes, out);
}

static void sample_plain(const char *name, const char *labels,
                         const dscomm_profile_row_t *row, GString *out)
{
    sample_put_number(name, labels, row->plain_bytes, out);
}

static void sample_waited(const char *name, const char *labels,
                          const dscomm_profile_row_t *row, GString *out)
{
    sample_put_seconds(name, labels, row->waited_ns, out);
}

static void sample_total(const char *name, const char *labels,
                         const dscomm_profile_row_t *row, GString *out)
{
    sample_put_seconds(name, labels, row->total_ns, out);
}

static void sample_device_count(const char *name, const char *labels,
                                const dscomm_profile_row_t *row, GString *out)
{
    sample_put_number(name, labels, row->device_count, out);
}

static void sample_device(const char *name, const char *labels,
                          const dscomm_profile_row_t *row, GString *out)
{
    sample_put_seconds(name, labels, row->device_ns, out);
}

static void sample_latency(const char *name, const char *labels,
                           const dscomm_profile_row_t *row, GString *out)
{
    char *half = g_strdup_printf("%s,quantile=\"0.5\"", labels);
    char *most = g_strdup_printf("%s,quantile=\"0.99\"", labels);
    char *sum = g_strconcat(name, "_sum", NULL);
    char *count = g_strconcat(name, "_count", NULL);

    sample_put_seconds(name, half, row->p50_ns, out);
    sample_put_seconds(name, most, row->p99_ns, out);
    sample_put_seconds(sum, labels, row->total_ns, out);
    sample_put_number(count, labels, row->count, out);
    g_free(half);
    g_free(most);
    g_free(sum);
    g_free(count);
}

static const metric_t metrics[] = {
    {"dscomm_operations_total", "counter", "Operations that succeeded.",
     DSCOMM_PROFILE_BY_CLASS, sample_count},
    {"dscomm_operations_failed_total", "counter", "Operations that failed.",
     DSCOMM_PROFILE_BY_CLASS, sample_failed},
    {"dscomm_bytes_total", "counter", "Bytes of operations that succeeded.",
     DSCOMM_PROFILE_BY_CLASS, sample_bytes},
    {"dscomm_operation_seconds", "summary",
     "Time from the beginning of an operation to its end.",
     DSCOMM_PROFILE_BY_CLASS, sample_latency},
    {"dscomm_waited_seconds_total", "counter",
     "Time that callers have spent in calls.", DSCOMM_PROFILE_BY_CLASS,
     sample_waited},
    {"dscomm_peer_messages_total", "counter", "Messages by peer.",
     DSCOMM_PROFILE_BY_PEER, sample_count},
    {"dscomm_peer_bytes_total", "counter", "Bytes of messages by peer.",
     DSCOMM_PROFILE_BY_PEER, sample_bytes},
    {"dscomm_compressed_operations_total", "counter",
     "Compressed operations that succeeded.", DSCOMM_PROFILE_BY_CODEC,
     sample_count},
    {"dscomm_compressed_bytes_total", "counter",
     "Bytes of the buffers of compressed operations.", DSCOMM_PROFILE_BY_CODEC,
     sample_bytes},
    {"dscomm_compressed_sent_bytes_total", "counter",
     "Bytes sent for compressed operations.", DSCOMM_PROFILE_BY_CODEC,
     sample_sent},
    {"dscomm_compressed_plain_bytes_total", "counter",
     "Bytes that the same operations send at least without compression.",
     DSCOMM_PROFILE_BY_CODEC, sample_plain},
    {"dscomm_device_operations_total", "counter",
     "Operations that a device has timed.", DSCOMM_PROFILE_BY_CLASS,
     sample_device_count},
    {"dscomm_device_seconds_total", "counter",
     "Time of devices for these operations.", DSCOMM_PROFILE_BY_CLASS,
     sample_device},
    {"dscomm_phase_seconds_total", "counter",
     "Time of collectives in each phase.", DSCOMM_PROFILE_BY_PHASE,
     sample_total},
    {"dscomm_range_seconds", "summary", "Times of the program's ranges.",
     DSCOMM_PROFILE_BY_RANGE, sample_latency},
};

/* A label's value is UTF-8, which a name need not be. */
static void label_put(const char *name, const char *value, GString *labels)
{
    char *valid = g_utf8_make_valid(value, -1);

    g_string_append_printf(labels, "%s%s=\"", labels->len ? "," : "", name);
    for (const char *c = valid; *c; c++) {
        if (*c == '\n')
            g_string_append(labels, "\\n");
        else if (*c == '"' || *c == '\\')
            g_string_append_printf(labels, "\\%c", *c);
        else
            g_string_append_c(labels, *c);
    }
    g_string_append_c(labels, '"');
    g_free(valid);
}

static void labels_put(const dscomm_profile_row_t *row, dscomm_profile_by_t by,
                       GString *labels)
{
    char number[32];

    g_string_truncate(labels, 0);
    if (by == DSCOMM_PROFILE_BY_RANGE) {
        label_put("range", row->op, labels);
        return;
    }
    label_put("op", row->op, labels);
    label_put("group", row->group, labels);
    g_snprintf(number, sizeof number, "%d", row->group_size);
    label_put("group_size", number, labels);
    if (*row->site)
        label_put("site", row->site, labels);
    if (*row->codec)
        label_put("codec", row->codec, labels);
    if (*row->phase)
        label_put("phase", row->phase, labels);
    if (by == DSCOMM_PROFILE_BY_PEER)
        g_snprintf(number, sizeof number, "%d", row->peer);
    else
        g_snprintf(number, sizeof number, "%" G_GUINT64_FORMAT,
                   row->bytes_most);
    label_put(by == DSCOMM_PROFILE_BY_PEER ? "peer" : "bytes_most", number,
              labels);
}

static void metric_put(const metric_t *metric, const dscomm_profile_t *profile,
                       GString *labels, GString *out)
{
    dscomm_profile_row_t row;

    g_string_append_printf(out, "# HELP %s %s\n# TYPE %s %s\n", metric->name,
                           metric->help, metric->name, metric->type);
    for (size_t i = 0; dscomm_priv_profile_get(profile, metric->by, i, &row);
         i++) {
        labels_put(&row, metric->by, labels);
        metric->print(metric->name, labels->str, &row, out);
    }
}

void dscomm_priv_write_prometheus(const dscomm_profile_t *profile, GString *out)
{
    GString *labels = g_string_new(NULL);

    for (size_t i = 0; i < G_N_ELEMENTS(metrics); i++)
        metric_put(&metrics[i], profile, labels, out);
    g_string_append_printf(
        out,
        "# HELP dscomm_dropped_operations_total Operations not counted for "
        "lack of room.\n"
        "# TYPE dscomm_dropped_operations_total counter\n"
        "dscomm_dropped_operations_total %" G_GUINT64_FORMAT "\n"
        "# HELP dscomm_ranks Ranks whose counts these are.\n"
        "# TYPE dscomm_ranks gauge\n"
        "dscomm_ranks %d\n",
        profile->dropped, profile->ranks);
    g_string_free(labels, TRUE);
}
