/* SPDX-License-Identifier: BSD-3-Clause */
/* Reports. The text of a report is the group's id, a line of
 * ranks, and a line for each call. */
#include "config.h"
#include "lib/diagnosis/history.h"
#include "lib/base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WAITS_FOR_RANKS 256 /* ranks that waits_for has bits for */

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

static void history_write_call(const dscomm_recorder_slot_t *slot,
                               const dscomm_recorded_t *call, writer_t *writer)
{
    char what[200];

    writer_append(writer, "%llu %x %d %s\n", (unsigned long long)call->sequence,
                  (unsigned)call->fingerprint, call->coll,
                  dscomm_priv_recorder_describe(slot, call, what, sizeof what));
}

/* Writes the group's last HISTORY_CALLS collectives, youngest first. If other
 * groups have made so many calls that the recorder has lost the current one,
 * that comes first. */
static void history_write(const dscomm_recorder_slot_t *slot, uint32_t group,
                          const dscomm_coll_args_t *current, uint64_t serial,
                          writer_t *writer)
{
    const uint64_t last = atomic_load(&slot->calls);
    dscomm_recorded_t call;
    char what[200];
    int written = 0;

    if (current && !dscomm_priv_recorder_read(slot, serial, &call))
        writer_append(writer, "%llu %x %d %s\n",
                      (unsigned long long)current->sequence,
                      (unsigned)current->fingerprint, current->coll,
                      dscomm_coll_describe(current, what, sizeof what));
    for (uint64_t i = 0; i < MIN(last, RECORDER_CALLS); i++) {
        if (!dscomm_priv_recorder_read(slot, last - i, &call) ||
            call.group != group || call.coll >= DSCOMM_COLL_SEND)
            continue;
        history_write_call(slot, &call, writer);
        if (++written == HISTORY_CALLS)
            return;
    }
}

void dscomm_priv_report_write(const dscomm_recorder_slot_t *slot,
                              uint32_t group, const char *id,
                              const dscomm_coll_args_t *current,
                              uint64_t serial, const int *waits_for, int nwaits,
                              char text[REPORT_MAX])
{
    writer_t writer = {text, 0, REPORT_MAX};

    writer_append(&writer, "%s\n", id);
    for (int i = 0; i < nwaits; i++)
        if (waits_for[i] < WAITS_FOR_RANKS)
            writer_append(&writer, "%d ", waits_for[i]);
    writer_append(&writer, "\n");
    history_write(slot, group, current, serial, &writer);
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
