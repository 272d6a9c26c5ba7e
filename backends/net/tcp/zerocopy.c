/* SPDX-License-Identifier: BSD-3-Clause */
/* Sends without a copy in the kernel. Each call with MSG_ZEROCOPY has a number,
 * from 0, and the socket's error queue says which numbers are over; until then
 * the memory must not change, so the frame is held. The kernel also says
 * whether it has copied after all, as it does on loopback and between
 * namespaces, where the detour costs more than the copy: the connection then
 * goes back to copies. */
#include "config.h"

#include "backends/net/tcp/tcp.h"

#include <errno.h>
#include <linux/errqueue.h>
#include <string.h>
#include <sys/socket.h>

#ifndef SO_EE_CODE_ZEROCOPY_COPIED
#define SO_EE_CODE_ZEROCOPY_COPIED 1
#endif

void tcp_zerocopy_open(conn_t *conn)
{
    const int on = 1;

    conn->zerocopy =
        conn->tcp->zerocopy && !conn->unix_socket &&
        !setsockopt(conn->fd, SOL_SOCKET, SO_ZEROCOPY, &on, sizeof on);
}

void tcp_held_release(conn_t *conn)
{
    tcp_t *tcp = conn->tcp;
    dscomm_wire_frame_t *frame;

    while ((frame = conn->held.first) != NULL &&
           (int32_t)(conn->zerocopy_over - (uint32_t)frame->done) > 0) {
        tcp_queue_remove_first(&conn->held);
        tcp->moved++;
        tcp->calls->sent(tcp->args.arg, frame);
    }
}

/* Notes that the calls from first to last are over. TCP ends them in order. */
static void calls_over(conn_t *conn, const struct sock_extended_err *error)
{
    if ((int32_t)(error->ee_data + 1 - conn->zerocopy_over) > 0)
        conn->zerocopy_over = error->ee_data + 1;
    if (!(error->ee_code & SO_EE_CODE_ZEROCOPY_COPIED) || !conn->zerocopy)
        return;
    conn->zerocopy = false;
    dscomm_log(
        DSCOMM_LOG_DEBUG, "tcp",
        "the kernel copies what goes to rank %d: MSG_ZEROCOPY is of no use",
        conn->peer);
}

void tcp_zerocopy_read(conn_t *conn)
{
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(sizeof(struct sock_extended_err)) +
                   CMSG_SPACE(sizeof(struct sockaddr_in6))];
    } control;

    /* Unix sockets have no such queue: recvmsg() reads their data, and returns
     * 0 forever after the end. */
    if (conn->unix_socket)
        return;
    for (;;) {
        struct msghdr message = {.msg_control = &control,
                                 .msg_controllen = sizeof control};
        const struct cmsghdr *part;
        struct sock_extended_err error;

        if (recvmsg(conn->fd, &message, MSG_ERRQUEUE | MSG_DONTWAIT) < 0)
            break;
        part = CMSG_FIRSTHDR(&message);
        if (!part || part->cmsg_len < CMSG_LEN(sizeof error))
            continue;
        memcpy(&error, CMSG_DATA(part), sizeof error);
        if (error.ee_errno == 0 && error.ee_origin == SO_EE_ORIGIN_ZEROCOPY)
            calls_over(conn, &error);
    }
    tcp_held_release(conn);
}
