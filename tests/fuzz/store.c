/* SPDX-License-Identifier: BSD-3-Clause */
/* Bytes of strangers, for the readers of the store. The first byte selects the
 * reader:
 *
 *     0  two clients of a TCP store's server, which share its keys. Portions
 *        follow: u8 (bit 0: which client, bit 1: it reads no answers, bit 2:
 * the server writes once more), u16 length, bytes. 1  a server's value, for
 * which a client waits. 2  a rank's record, in a store in which ranks meet. 3
 * rank 0's join decision there, read by rank 1 of 4. 4  the file of a file://
 * store. 5  as 0, with a secret. */
#include "config.h"

#include "lib/rendezvous/join-decision.h"
#include "lib/store/tcp/commands.h"
#include "lib/store/tcp/connect.h"

#include <dscomm/log.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define ROOM ((size_t)32 << 10)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct {
    dscomm_priv_session_t *session; /* NULL: closed */
    int fd; /* the client's end */
} client_t;

typedef struct {
    dscomm_priv_commands_t commands;
    dscomm_priv_budget_t under_way;
    GQueue touched;
    client_t clients[2];
} server_t;

static void must(int good)
{
    if (!good)
        abort();
}

static void pair(int fds[2])
{
    must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0,
                    fds) == 0);
}

static void server_begin(server_t *server, const dscomm_priv_job_t *job)
{
    int fds[2];

    *server = (server_t){.under_way = {0, ROOM}};
    g_queue_init(&server->touched);
    must(dscomm_priv_commands_init(&server->commands, ROOM, job) == DSCOMM_OK);
    for (int i = 0; i < 2; i++) {
        pair(fds);
        server->clients[i].fd = fds[1];
        server->clients[i].session = dscomm_priv_session_new(
            fds[0], "stranger", &server->touched, &server->under_way);
    }
}

static void close_client(server_t *server, client_t *client)
{
    if (!client->session)
        return;
    dscomm_priv_commands_part(&server->commands, client->session, true);
    if (client->session->queued)
        g_queue_unlink(&server->touched, &client->session->touch);
    dscomm_priv_session_free(client->session);
    client->session = NULL;
}

static void write_answers(server_t *server, client_t *client)
{
    const char *problem = NULL;

    if (client->session && !dscomm_priv_commands_write(
                               &server->commands, client->session, &problem))
        close_client(server, client);
}

/* Does what the server's thread does after each round. */
static void write_touched(server_t *server)
{
    GList *link;

    while ((link = g_queue_pop_head_link(&server->touched)) != NULL) {
        dscomm_priv_session_t *session = link->data;

        session->queued = FALSE;
        write_answers(server,
                      &server->clients[session == server->clients[1].session]);
    }
}

static void feed(server_t *server, client_t *client, const uint8_t *data,
                 size_t size)
{
    const char *problem = NULL;
    ssize_t sent = send(client->fd, data, size, MSG_NOSIGNAL);

    if (sent > 0 && client->session &&
        !dscomm_priv_commands_read(&server->commands, client->session,
                                   &problem))
        close_client(server, client);
    write_touched(server);
}

static void drain(const client_t *client)
{
    char bytes[4096];

    while (recv(client->fd, bytes, sizeof bytes, 0) > 0)
        ;
}

static void run_server_of(const dscomm_priv_job_t *job, const uint8_t *data,
                          size_t size)
{
    server_t server;

    server_begin(&server, job);
    while (size >= 3) {
        client_t *client = &server.clients[data[0] & 1];
        size_t portion = data[1] | (size_t)data[2] << 8;
        const int no_reader = data[0] & 2, more = data[0] & 4;

        portion = MIN(portion, size - 3);
        feed(&server, client, data + 3, portion);
        if (!no_reader)
            drain(client);
        if (more)
            write_answers(&server, client);
        data += 3 + portion;
        size -= 3 + portion;
    }
    for (int i = 0; i < 2; i++) {
        if (job->secret && server.clients[i].session)
            must(!server.clients[i].session->validated);
        close_client(&server, &server.clients[i]);
        close(server.clients[i].fd);
    }
    dscomm_priv_wills_carry_out(&server.commands.wills, G_MAXINT64);
    must(server.under_way.used == 0);
    dscomm_priv_commands_clear(&server.commands);
}

static void run_server(const uint8_t *data, size_t size)
{
    run_server_of(&(dscomm_priv_job_t){.name = "job"}, data, size);
}

/* No input can prove knowledge of the secret. */
static void run_guarded(const uint8_t *data, size_t size)
{
    run_server_of(&(dscomm_priv_job_t){.name = "job",
                                       .secret = "fuzz's own secret",
                                       .credential = "for others"},
                  data, size);
}

static void run_client(const uint8_t *data, size_t size)
{
    dscomm_priv_link_t link;
    int fds[2];
    void *value;
    size_t length;

    pair(fds);
    dscomm_priv_link_init(&link, "fuzz", 1, NULL, NULL);
    link.fd = fds[0];
    if (send(fds[1], data, size, MSG_NOSIGNAL) == (ssize_t)size) {
        shutdown(fds[1], SHUT_WR);
        while (!dscomm_priv_link_answer_value(&link, dscomm_priv_deadline(1000),
                                              &value, &length))
            g_free(value);
    }
    close(fds[1]);
    dscomm_priv_link_clear(&link);
}

static void run_record(const uint8_t *data, size_t size)
{
    dscomm_record_t record = {0}, again = {0};
    char *text;

    if (dscomm_priv_record_read((const char *)data, size, &record))
        return;
    text = dscomm_priv_record_write(&record);
    must(dscomm_priv_record_read(text, strlen(text), &again) == 0);
    must(again.pid == record.pid && !strcmp(again.why, record.why));
    g_free(text);
    dscomm_priv_record_clear(&record);
    dscomm_priv_record_clear(&again);
}

static void run_decision(const uint8_t *data, size_t size)
{
    const dscomm_join_t join = {.rank = 1, .size = 4};
    char *text = dscomm_priv_value(data, size), *copy;
    dscomm_join_decision_t decision, again;

    if (!dscomm_priv_join_decision_read(&join, text, &decision)) {
        copy = dscomm_priv_join_decision_write(&decision);
        must(!dscomm_priv_join_decision_read(&join, copy, &again));
        must(!memcmp(decision.nodes.local, again.nodes.local, 4 * sizeof(int)));
        must(!memcmp(decision.hosts.node, again.hosts.node, 4 * sizeof(int)));
        dscomm_priv_join_decision_clear(&decision);
        dscomm_priv_join_decision_clear(&again);
        g_free(copy);
    }
    g_free(text);
}

static char path[64];

static void remove_file(void)
{
    unlink(path);
}

static void run_file(const uint8_t *data, size_t size)
{
    char url[80];
    dscomm_store_t *store;
    int fd;

    if (!*path) {
        g_snprintf(path, sizeof path, "/tmp/dscomm-fuzz-%ld", (long)getpid());
        atexit(remove_file);
    }
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    must(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    close(fd);
    g_snprintf(url, sizeof url, "file://%s", path);
    if (dscomm_store_open(url, NULL, &store))
        return;
    dscomm_store_set(store, "key", "value", 5);
    dscomm_store_close(store);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const runs[])(const uint8_t *data, size_t size) = {
        run_server, run_client, run_record, run_decision, run_file, run_guarded,
    };

    static int quiet;

    if (!quiet++)
        dscomm_log_set_levels("error"); /* a full store causes a warning */
    if (size && data[0] < G_N_ELEMENTS(runs))
        runs[data[0]](data + 1, size - 1);
    return 0;
}
