/* SPDX-License-Identifier: BSD-3-Clause */
/* Accounts, as text: the group's id, a line of ranks, a line for each call. */
#include "config.h"
#include "lib/account.h"
#include "lib/op.h"
#include "lib/status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAMED 256 /* ranks that waits_for has bits for */

void dscomm_priv_history_note(dscomm_history_t *history,
                              const dscomm_coll_args_t *args, int ranks)
{
    dscomm_past_call_t *call = &history->calls[args->sequence % ACCOUNT_CALLS];

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
           (size_t)MIN(ranks, ACCOUNT_COUNTS) * sizeof *call->counts);
}

/* "all_gather_v(counts 5, 12, 5, sum 22, int32) #7". */
static void write_counts(const dscomm_past_call_t *call,
                         const dscomm_coll_args_t *args, GString *text)
{
    int shown = MIN(call->ncounts, ACCOUNT_COUNTS);

    g_string_append_printf(text, "%s(counts ",
                           dscomm_coll_name((dscomm_coll_t)args->coll));
    for (int r = 0; r < shown; r++)
        g_string_append_printf(text, "%zu, ", call->counts[r]);
    g_string_append_printf(text, "%ssum %llu, %s",
                           shown < call->ncounts ? "..., " : "",
                           (unsigned long long)call->sum,
                           dscomm_dtype_name((dscomm_dtype_t)args->dtype));
    if (args->op >= 0)
        g_string_append_printf(text, ", %s", dscomm_priv_op_text(args));
    g_string_append_printf(text, ") #%llu", (unsigned long long)args->sequence);
}

static void write_call(const dscomm_past_call_t *call, GString *text)
{
    const dscomm_user_op_t user = {.text = call->op};
    dscomm_coll_args_t args = call->args;
    char what[160];

    if (args.op == DSCOMM_OP_USER)
        args.user = &user;
    g_string_append_printf(text, "%llu %x ",
                           (unsigned long long)call->args.sequence,
                           (unsigned)call->args.fingerprint);
    if (call->ncounts)
        write_counts(call, &args, text);
    else
        g_string_append(text, dscomm_coll_describe(&args, what, sizeof what));
    g_string_append_c(text, '\n');
}

char *dscomm_priv_account_write(const dscomm_history_t *history, const char *id,
                                const int *waits_for, int nwaits)
{
    GString *text = g_string_new(id);

    g_string_append_c(text, '\n');
    for (int i = 0; i < nwaits; i++)
        g_string_append_printf(text, "%d ", waits_for[i]);
    g_string_append_c(text, '\n');
    for (int i = 0; i < ACCOUNT_CALLS; i++)
        if (history->calls[i].args.sequence)
            write_call(&history->calls[i], text);
    return g_string_free(text, FALSE);
}

static void read_waits(const char *line, dscomm_account_t *account)
{
    char **words = g_strsplit(line, " ", NAMED);

    for (char **word = words; *word; word++) {
        char *end;
        unsigned long rank = strtoul(*word, &end, 10);

        if (**word && !*end && rank < NAMED)
            account->waits_for[rank / 64] |= UINT64_C(1) << rank % 64;
    }
    g_strfreev(words);
}

static void read_call(const char *line, dscomm_account_call_t *call)
{
    char *end;

    call->sequence = strtoull(line, &end, 10);
    call->fingerprint = (uint32_t)strtoul(end, &end, 16);
    if (*end == ' ')
        end++;
    dscomm_priv_quote(end, call->text, sizeof call->text);
}

int dscomm_priv_account_read(const char *text, const char *id,
                             dscomm_account_t *ret_account)
{
    char **lines = g_strsplit(text, "\n", ACCOUNT_CALLS + 3);
    guint count = g_strv_length(lines);
    int right = count > 2 && strcmp(lines[0], id) == 0;

    if (right) {
        memset(ret_account, 0, sizeof *ret_account);
        ret_account->known = 1;
        read_waits(lines[1], ret_account);
    }
    for (guint i = 2; right && i < count && i < ACCOUNT_CALLS + 2; i++) {
        dscomm_account_call_t *call = &ret_account->calls[i - 2];

        read_call(lines[i], call);
        ret_account->last = MAX(ret_account->last, call->sequence);
    }
    g_strfreev(lines);
    return right ? 0 : -1;
}

const dscomm_account_call_t *
dscomm_priv_account_call(const dscomm_account_t *account, uint64_t sequence)
{
    for (int i = 0; account->known && sequence && i < ACCOUNT_CALLS; i++)
        if (account->calls[i].sequence == sequence)
            return &account->calls[i];
    return NULL;
}

uint64_t dscomm_priv_account_difference(const dscomm_account_t *a,
                                        const dscomm_account_t *b)
{
    uint64_t first = 0;

    for (int i = 0; a->known && i < ACCOUNT_CALLS; i++) {
        const dscomm_account_call_t *one = &a->calls[i];
        const dscomm_account_call_t *other =
            dscomm_priv_account_call(b, one->sequence);

        if (other && other->fingerprint != one->fingerprint &&
            (!first || one->sequence < first))
            first = one->sequence;
    }
    return first;
}

int dscomm_priv_account_waits(const dscomm_account_t *account, int rank)
{
    return account->known && rank < NAMED &&
           account->waits_for[rank / 64] >> rank % 64 & 1;
}
