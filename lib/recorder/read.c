/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading the flight recorder, of this process or of another one. */
#include "config.h"

#include "lib/recorder/recorder.h"

#include "lib/base/op.h"

#include <glib.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* False if the words are not those of one call. */
static bool entry_copy(const dscomm_recorder_entry_t *entry, uint64_t serial,
                       uint64_t words[WORDS])
{
    words[WORD_SERIAL] =
        atomic_load_explicit(&entry->word[WORD_SERIAL], memory_order_acquire);
    for (int i = WORD_SERIAL + 1; i < WORDS; i++)
        words[i] = atomic_load_explicit(&entry->word[i], memory_order_relaxed);
    atomic_thread_fence(memory_order_acquire);
    return words[WORD_SERIAL] == serial &&
           atomic_load_explicit(&entry->word[WORD_SERIAL],
                                memory_order_relaxed) == serial;
}

bool dscomm_priv_recorder_read(const dscomm_recorder_slot_t *slot,
                               uint64_t serial, dscomm_recorded_t *ret_call)
{
    uint64_t word[WORDS];

    if (!serial ||
        !entry_copy(&slot->entry[serial % RECORDER_CALLS], serial, word))
        return false;
    *ret_call = (dscomm_recorded_t){
        .serial = serial,
        .sequence = word[WORD_SEQUENCE],
        .called = word[WORD_CALLED],
        .ended = word[WORD_ENDED],
        .count = word[WORD_COUNT],
        .fingerprint = (uint32_t)word[WORD_PEER],
        .peer = (int32_t)(word[WORD_PEER] >> 32),
        .group = (uint32_t)word[WORD_GROUP],
        .tag = (int32_t)(word[WORD_GROUP] >> 32),
        .coll = (uint8_t)word[WORD_WHAT],
        .dtype = (uint8_t)(word[WORD_WHAT] >> 8),
        .op = (int8_t)(word[WORD_WHAT] >> 16),
        .flags = (uint8_t)(word[WORD_WHAT] >> 24),
        .detail = (uint16_t)(word[WORD_WHAT] >> 32),
        .status = (int8_t)(word[WORD_WHAT] >> RECORDED_STATUS_SHIFT),
    };
    return true;
}

bool dscomm_priv_recorder_read_detail(const dscomm_recorder_slot_t *slot,
                                      const dscomm_recorded_t *call,
                                      dscomm_recorder_detail_t *ret_detail)
{
    const dscomm_recorder_detail_t *detail =
        &slot->detail[call->detail % RECORDER_DETAILS];
    uint64_t serial =
        atomic_load_explicit(&detail->serial, memory_order_acquire);

    if (!call->detail || serial != call->serial)
        return false;
    memcpy(ret_detail, detail, sizeof *ret_detail);
    ret_detail->op[sizeof ret_detail->op - 1] = '\0';
    atomic_thread_fence(memory_order_acquire);
    return atomic_load_explicit(&detail->serial, memory_order_relaxed) ==
           serial;
}

bool dscomm_priv_recorder_read_group(const dscomm_recorder_slot_t *slot,
                                     uint32_t number,
                                     dscomm_recorder_group_t *ret_group)
{
    const dscomm_recorder_group_t *group =
        &slot->group[number % RECORDER_GROUPS];

    if (!number ||
        atomic_load_explicit(&group->number, memory_order_acquire) != number)
        return false;
    memcpy(ret_group, group, sizeof *ret_group);
    ret_group->name[sizeof ret_group->name - 1] = '\0';
    ret_group->id[sizeof ret_group->id - 1] = '\0';
    ret_group->backend[sizeof ret_group->backend - 1] = '\0';
    atomic_thread_fence(memory_order_acquire);
    return atomic_load_explicit(&group->number, memory_order_relaxed) == number;
}

static void G_GNUC_PRINTF(3, 4)
    text_append(char *text, size_t size, const char *format, ...)
{
    const size_t used = strlen(text);
    va_list args;

    va_start(args, format);
    vsnprintf(text + used, size - used, format, args);
    va_end(args);
}

/* "all_gather_v(counts 5, 12, 5, sum 22, int32) #7". */
static void counts_describe(const dscomm_coll_args_t *args,
                            const dscomm_recorder_detail_t *detail, char *text,
                            size_t size)
{
    const uint64_t shown = MIN(detail->ncounts, RECORDER_COUNTS_SHOWN);

    snprintf(text, size, "%s(counts ",
             dscomm_coll_name((dscomm_coll_t)args->coll));
    for (uint64_t r = 0; r < shown; r++)
        text_append(text, size, "%llu, ",
                    (unsigned long long)detail->counts[r]);
    text_append(text, size, "%ssum %llu, %s",
                shown < detail->ncounts ? "..., " : "",
                (unsigned long long)detail->sum,
                dscomm_dtype_name((dscomm_dtype_t)args->dtype));
    if (args->op >= 0)
        text_append(text, size, ", %s", dscomm_priv_op_text(args));
    text_append(text, size, ") #%llu", (unsigned long long)args->sequence);
}

static void message_describe(const dscomm_recorded_t *call, char *text,
                             size_t size)
{
    char peer[24] = "any rank", tag[24] = "any tag";

    if (call->peer >= 0)
        snprintf(peer, sizeof peer, "rank %d", call->peer);
    if (call->tag >= 0)
        snprintf(tag, sizeof tag, "tag %d", call->tag);
    snprintf(text, size, "%s %s with %s",
             call->coll == DSCOMM_COLL_RECV ? "recv from" : "send to", peer,
             tag);
}

const char *dscomm_priv_recorder_operation(int coll)
{
    return coll == RECORDED_CUSTOM ? "custom"
                                   : dscomm_coll_name((dscomm_coll_t)coll);
}

const char *dscomm_priv_recorder_describe(const dscomm_recorder_slot_t *slot,
                                          const dscomm_recorded_t *call,
                                          char *text, size_t size)
{
    dscomm_recorder_detail_t detail = {.op = "user"};
    const bool has_detail =
        dscomm_priv_recorder_read_detail(slot, call, &detail);
    const dscomm_user_op_t user = {.text = detail.op};
    const dscomm_coll_args_t args = {
        .coll = call->coll,
        .dtype = call->dtype,
        .op = call->op,
        .root = call->peer,
        .count = call->count,
        .sequence = call->sequence,
        .user = call->op == DSCOMM_OP_USER ? &user : NULL,
    };

    if (call->coll >= DSCOMM_COLL_COUNT)
        snprintf(text, size, "%s work",
                 dscomm_priv_recorder_operation(call->coll));
    else if (call->coll >= DSCOMM_COLL_SEND)
        message_describe(call, text, size);
    else if (has_detail && detail.ncounts)
        counts_describe(&args, &detail, text, size);
    else
        dscomm_coll_describe(&args, text, size);
    return text;
}
