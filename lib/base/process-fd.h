/* SPDX-License-Identifier: BSD-3-Clause */
/* Descriptors that are of this process alone. A forked child has copies of all
 * descriptors, and a connection ends for the peer only when its last copy is
 * closed. So a child that lives on would hide the death of its parent: it must
 * close what was kept here, which fork() does for it (lib/base/process.c). That
 * does not reach children made by clone(), which runs no handlers, nor a
 * descriptor that is being made in another thread during the fork. */
#ifndef LIB_PROCESS_FD_H
#define LIB_PROCESS_FD_H

#include <stdbool.h>

/* Keeps fd from children that are forked from now on; nothing if there is no
 * memory. From now on it is closed by dscomm_priv_fd_close() alone. */
void dscomm_priv_fd_keep(int fd);
/* Closes fd, be it kept or not. */
void dscomm_priv_fd_close(int fd);

/* Around fork(); a child closes what is kept. */
void dscomm_priv_fd_before_fork(void);
void dscomm_priv_fd_after_fork(bool child);

#endif
