/* SPDX-License-Identifier: BSD-3-Clause */
/* Backend modules that the loader must refuse; -DBREAK_x selects the defect and
 * -DNAME the name. Only BREAK_LIBRARY links libdscomm, because a unit test
 * contains the library. Without BREAK_x the module is valid, but old: it has
 * only the required slots. */
#include "config.h"

#include <dscomm/backend.h>

#define JOIN2(a, b) a##b
#define JOIN(a, b) JOIN2(a, b)
#define TEXT2(a) #a
#define TEXT(a) TEXT2(a)
#define SYMBOL JOIN(dscomm_backend_, NAME)

static dscomm_status_t fake_open(const dscomm_backend_args_t *args,
                                 void **ret_impl)
{
    (void)args;
    (void)ret_impl;
#ifdef BREAK_LIBRARY
    return dscomm_fail(DSCOMM_ERR_UNSUPPORTED, "this is no real backend");
#else
    return DSCOMM_ERR_UNSUPPORTED;
#endif
}

static void fake_close(void *impl)
{
    (void)impl;
}

static dscomm_status_t fake_message(void *impl, const dscomm_message_t *message,
                                    dscomm_request_t *request)
{
    (void)impl;
    (void)message;
    (void)request;
    return DSCOMM_ERR_UNSUPPORTED;
}

static void fake_cancel(void *impl, dscomm_request_t *request)
{
    (void)impl;
    (void)request;
}

#ifndef BREAK_SLOT
static unsigned fake_progress(void *impl)
{
    (void)impl;
    return 0;
}
#endif

static void fake_revoke(void *impl, const dscomm_failure_t *failure)
{
    (void)impl;
    (void)failure;
}

static dscomm_status_t fake_status(void *impl, dscomm_failure_t *ret_failure)
{
    (void)impl;
    (void)ret_failure;
    return DSCOMM_OK;
}

__attribute__((unused)) static const dscomm_backend_ops_t fake_ops = {
#ifdef BREAK_SIZE
    .size = offsetof(dscomm_backend_ops_t, status),
#else
    .size = offsetof(dscomm_backend_ops_t, capabilities),
#endif
#ifdef BREAK_REQUEST
    .request_size = sizeof(dscomm_request_t) - 1,
#else
    .request_size = sizeof(dscomm_request_t),
#endif
    .open = fake_open,
    .close = fake_close,
    .isend = fake_message,
    .irecv = fake_message,
    .cancel = fake_cancel,
#ifndef BREAK_SLOT
    .progress = fake_progress,
#endif
    .revoke = fake_revoke,
    .status = fake_status,
};

static const dscomm_setting_t settings[] = {
    {"DSCOMM_" TEXT(NAME) "_KNOB", DSCOMM_SETTING_INT, "7", 0, 10, NULL,
     "a number for tests"},
    {NULL, DSCOMM_SETTING_INT, NULL, 0, 0, NULL, NULL},
};

DSCOMM_BACKEND_EXPORT extern const dscomm_backend_t SYMBOL;
const dscomm_backend_t SYMBOL = {
#ifdef BREAK_ABI
    .abi = 42,
#else
    .abi = DSCOMM_BACKEND_ABI,
#endif
    .priority = 3,
#ifdef BREAK_NAME
    .name = "another",
#else
    .name = TEXT(NAME),
#endif
#ifndef BREAK_OPS
    .ops = &fake_ops,
#endif
    .settings = settings,
};
