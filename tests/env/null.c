/* SPDX-License-Identifier: BSD-3-Clause */
/* What is asked of no environment at all. */
#include "config.h"

#include "tests/tap.h"

#include <dscomm/env.h>
#include <glib.h>
#include <string.h>

int main(void)
{
    static int (*const numbers[])(const dscomm_env_t *) = {
        dscomm_env_rank,       dscomm_env_world_size, dscomm_env_local_rank,
        dscomm_env_local_size, dscomm_env_node_rank,  dscomm_env_master_port,
        dscomm_env_agent_store};
    static const char *(*const texts[])(const dscomm_env_t *) = {
        dscomm_env_master_addr, dscomm_env_job, dscomm_env_source};
    static dscomm_status_t (*const statuses[])(const dscomm_env_t *) = {
        dscomm_env_status, dscomm_env_check_master, dscomm_env_export};
    dscomm_env_candidate_t info = {.size = sizeof info};

    for (size_t i = 0; i < G_N_ELEMENTS(numbers); i++)
        is_int(numbers[i](NULL), -1, "number %zu of nothing", i);
    for (size_t i = 0; i < G_N_ELEMENTS(texts); i++)
        ok(!texts[i](NULL), "text %zu of nothing", i);
    for (size_t i = 0; i < G_N_ELEMENTS(statuses); i++) {
        is_int(statuses[i](NULL), DSCOMM_ERR_INVALID, "status %zu of nothing",
               i);
        ok(strstr(dscomm_last_error(), "env is NULL") != NULL, "and says so");
    }
    ok(!dscomm_env_origin(NULL, DSCOMM_ENV_MASTER_PORT), "no origin");
    ok(!dscomm_env_overlay(NULL, 0), "no overlay");
    ok(!dscomm_env_warning(NULL, 0), "no warning");
    is_int(dscomm_env_candidate(NULL, 0, &info), DSCOMM_ERR_INVALID,
           "no candidate");
    return tap_done();
}
