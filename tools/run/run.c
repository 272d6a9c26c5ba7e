/* SPDX-License-Identifier: BSD-3-Clause */
/* `dscomm run`. */
#include "config.h"

#include "tools/run/job.h"
#include "tools/run/options.h"
#include "tools/common/tool.h"

int tool_run(int argc, char **argv)
{
    tool_run_options_t options = {0};
    int status = tool_run_options(argc, argv, &options);

    if (status == TOOL_OK)
        status =
            tool_job_run("run", options.argv, options.ranks, &options.limits);
    tool_run_options_clear(&options);
    return status;
}
