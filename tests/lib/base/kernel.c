/* SPDX-License-Identifier: BSD-3-Clause */
/* The state of a process, which waitpid() knows too; also for a process that
 * has no descriptor left. */
#include "config.h"

#include "lib/base/kernel.h"
#include "lib/recorder/dump.h"
#include "tests/tap.h"

#include <sys/wait.h>
#include <unistd.h>

/* Leaves this process no descriptor, or its former limit again. */
static void starve(bool begin)
{
    static struct rlimit former;
    struct rlimit none;
    const int next = dup(STDOUT_FILENO);

    if (begin) {
        close(next);
        getrlimit(RLIMIT_NOFILE, &former);
        none = (struct rlimit){(rlim_t)next, former.rlim_max};
    }
    if (setrlimit(RLIMIT_NOFILE, begin ? &none : &former))
        bail("no limit can be set");
}

/* Returns the state of the slot of a process. */
static const char *slot_state(pid_t pid)
{
    static dscomm_recorder_slot_t slot;

    atomic_store(&slot.owner, pid);
    atomic_store(&slot.pid, pid);
    return dscomm_priv_recorder_state_name(dscomm_priv_recorder_state(&slot));
}

int main(void)
{
    const pid_t child = fork();
    char state;
    siginfo_t info;

    if (child < 0)
        bail("no child");
    while (child == 0)
        pause();
    is_int(dscomm_priv_process_state(getpid()), 'R', "this process runs");
    kill(child, SIGSTOP);
    waitid(P_PID, (id_t)child, &info, WSTOPPED | WNOWAIT);
    is_int(dscomm_priv_process_state(child), 'T', "a child is stopped");

    starve(true);
    state = dscomm_priv_process_state(child);
    is_str(slot_state(child), "running", "without descriptors it is not dead");
    starve(false);
    is_int(state, '?', "its state is not known then");

    kill(child, SIGKILL);
    waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT);
    is_int(dscomm_priv_process_state(child), 'Z', "it has ended");
    waitpid(child, NULL, 0);
    is_int(dscomm_priv_process_state(child), 0, "it is reaped");
    starve(true);
    state = dscomm_priv_process_state(child);
    starve(false);
    is_int(state, 0, "which is known without descriptors");
    is_str(slot_state(child), "dead", "its slot has no process");
    is_int(dscomm_priv_process_state(0), 0, "no process has the number 0");
    return tap_done();
}
