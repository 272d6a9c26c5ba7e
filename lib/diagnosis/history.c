/* SPDX-License-Identifier: BSD-3-Clause */
/* Call history and reports. The text of a report is the group's id, a line of
 * ranks, and a line for each call. */
#include "config.h"
#include "lib/diagnosis/history.h"
#include "lib/base/op.h"
#include "lib/base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WAITS_FOR_RANKS 256 /* ranks that waits_for has bits for */

static bool history_new(dscomm_group_t *group)
{
    group->schedules.history = g_try_new0(dscomm_history_t, 1);
    return group->schedules.history != NULL;
}

static void history_free(dscomm_group_t *group)
{
    g_clear_pointer(&group->schedules.history, g_free);
}

const dscomm_group_part_t dscomm_priv_history_part = {
    .open = history_new,
    .on[PART_FREE] = history_free,
};

void dscomm_priv_history_note(dscomm_history_t *history,
                              const dscomm_coll_args_t *args, int ranks)
{
    dscomm_past_call_t *call = &history->calls[args->sequence % HISTORY_CALLS];

    call->args = *args;
    call->args.user = NULL;
    if (args->user)
        g_strlcpy(call->op, args->user->text, sizeof call->op);
    call->ncounts = 0;
    if (args->coll != DSCOMM_COLL_ALL_GATHER_V &&
        args->coll != DSCOMM_COLL_REDUCE_SCATTER_V)
        return;
    call->ncounts = ranks;
    call->sum = 0;
    for (int r = 0; r < ranks; r++)
        call->sum += args->recv_counts[r];
    memcpy(call->counts, args->recv_counts,
           (size_t)MIN(ranks, HISTORY_COUNTS) * sizeof *call->counts);
}

/* Text in a buffer of size bytes; what does not fit is cut off. */
typedef struct {
    char *text;
    size_t used, size;
} writer_t;

static void G_GNUC_PRINTF(2, 3)
    writer_append(writer_t *writer, const char *format, ...)
{
    const size_t left = writer->size - writer->used;
    va_list args;
    int length;

    va_start(args, format);
    length = vsnprintf(writer->text + writer->used, left, format, args);
    va_end(args);
    writer->used += MIN((size_t)MAX(length, 0), left - 1);
}

/* "all_gather_v(counts 5, 12, 5, sum 22, int32) #7". */
static void history_write_counts(const dscomm_past_call_t *call,
                                 const dscomm_coll_args_t *args,
                                 writer_t *writer)
{
    int shown = MIN(call->ncounts, HISTORY_COUNTS);

    writer_append(writer, "%s(counts ",
                  dscomm_coll_name((dscomm_coll_t)args->coll));
    for (int r = 0; r < shown; r++)
        writer_append(writer, "%zu, ", call->counts[r]);
    writer_append(writer, "%ssum %llu, %s",
                  shown < call->ncounts ? "..., " : "",
                  (unsigned long long)call->sum,
                  dscomm_dtype_name((dscomm_dtype_t)args->dtype));
    if (args->op >= 0)
        writer_append(writer, ", %s", dscomm_priv_op_text(args));
    writer_append(writer, ") #%llu", (unsigned long long)args->sequence);
}

static void history_write_call(const dscomm_past_call_t *call, writer_t *writer)
{
    const dscomm_user_op_t user = {.text = call->op};
    dscomm_coll_args_t args = call->args;
    char what[160];

    if (args.op == DSCOMM_OP_USER)
        args.user = &user;
    writer_append(writer, "%llu %x %d ",
                  (unsigned long long)call->args.sequence,
                  (unsigned)call->args.fingerprint, call->args.coll);
    if (call->ncounts)
        history_write_counts(call, &args, writer);
    else
        writer_append(writer, "%s",
                      dscomm_coll_describe(&args, what, sizeof what));
    writer_append(writer, "\n");
}

void dscomm_priv_report_write(const dscomm_history_t *history, const char *id,
                              const int *waits_for, int nwaits,
                              char text[REPORT_MAX])
{
    writer_t writer = {text, 0, REPORT_MAX};

    writer_append(&writer, "%s\n", id);
    for (int i = 0; i < nwaits; i++)
        if (waits_for[i] < WAITS_FOR_RANKS)
            writer_append(&writer, "%d ", waits_for[i]);
    writer_append(&writer, "\n");
    for (int i = 0; i < HISTORY_CALLS; i++)
        if (history->calls[i].args.sequence)
            history_write_call(&history->calls[i], &writer);
}

/* Reads the ranks of the line at text, which ends before end. */
static void report_read_waits(const char *text, const char *end,
                              dscomm_report_t *report)
{
    while (text < end) {
        char *behind;
        const unsigned long rank = strtoul(text, &behind, 10);

        if (behind == text || *behind != ' ')
            return;
        if (rank < WAITS_FOR_RANKS)
            report->waits_for[rank / 64] |= UINT64_C(1) << rank % 64;
        text = behind + 1;
    }
}

/* Reads a call from the line of size bytes at text. */
static void report_read_call(const char *text, size_t size,
                             dscomm_call_seen_t *call)
{
    char line[sizeof call->text + 64], *end;

    g_strlcpy(line, text, MIN(size + 1, sizeof line));
    call->sequence = strtoull(line, &end, 10);
    call->fingerprint = (uint32_t)strtoul(end, &end, 16);
    call->coll = (int)strtol(end, &end, 10);
    if (*end == ' ')
        end++;
    dscomm_priv_quote(end, call->text, sizeof call->text);
}

int dscomm_priv_report_read(const char *text, const char *id,
                            dscomm_report_t *ret_report)
{
    const size_t length = strlen(id);
    const char *end;

    if (strncmp(text, id, length) || text[length] != '\n')
        return -1;
    text += length + 1;
    end = strchr(text, '\n');
    if (!end)
        return -1;
    memset(ret_report, 0, sizeof *ret_report);
    ret_report->known = 1;
    report_read_waits(text, end, ret_report);
    for (int i = 0; *end && i < HISTORY_CALLS; i++) {
        dscomm_call_seen_t *call = &ret_report->calls[i];

        text = end + 1;
        end = text + strcspn(text, "\n");
        report_read_call(text, (size_t)(end - text), call);
        ret_report->last = MAX(ret_report->last, call->sequence);
    }
    return 0;
}

const dscomm_call_seen_t *dscomm_priv_report_call(const dscomm_report_t *report,
                                                  uint64_t sequence)
{
    for (int i = 0; report->known && sequence && i < HISTORY_CALLS; i++)
        if (report->calls[i].sequence == sequence)
            return &report->calls[i];
    return NULL;
}

uint64_t dscomm_priv_report_difference(const dscomm_report_t *a,
                                       const dscomm_report_t *b)
{
    uint64_t first = 0;

    for (int i = 0; a->known && i < HISTORY_CALLS; i++) {
        const dscomm_call_seen_t *one = &a->calls[i];
        const dscomm_call_seen_t *other =
            dscomm_priv_report_call(b, one->sequence);

        if (other && other->fingerprint != one->fingerprint &&
            (!first || one->sequence < first))
            first = one->sequence;
    }
    return first;
}

int dscomm_priv_report_waits(const dscomm_report_t *report, int rank)
{
    return report->known && rank < WAITS_FOR_RANKS &&
           report->waits_for[rank / 64] >> rank % 64 & 1;
}
