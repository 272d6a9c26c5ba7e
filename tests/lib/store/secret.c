/* SPDX-License-Identifier: BSD-3-Clause */
/* The job's secret: clients with it are served, clients without it are not. */
#include "tests/lib/store/fixture.h"

#include "lib/rendezvous/roster.h"
#include "lib/store/tcp/secret.h"

#include <dscomm/log.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define FOREIGN_USER 65533
#define SECRET "sixteen letters."
#define OTHER "sixteen letters!"
#define LATE_MS 300 /* time for a first command, and for a proof */

enum { SET = 1, PING = 13, CHALLENGE = 64, PROOF = 65, REFUSED = 68 };

static void hex(const uint8_t *bytes, size_t size, char *text)
{
    for (size_t i = 0; i < size; i++)
        snprintf(text + 2 * i, 3, "%02x", bytes[i]);
}

/* Computed by Python's hmac: key SECRET, text "dscomm store client" or "...
 * server" and the bytes 0 to 31. */
static void test_proofs(void)
{
    static const char *const want[] = {
        "2dbf793a9c6905810c879be16eea11437098fc8c3d7b4b18bf3f68a48899dcab",
        "ec507d8113fd1d6b98fa8e125568a62fda561162ad9a3d89d3628f0dfb6c1fec",
    };
    uint8_t nonces[2 * SECRET_NONCE_SIZE], proof[SECRET_PROOF_SIZE];
    char text[2 * SECRET_PROOF_SIZE + 1];

    for (size_t i = 0; i < sizeof nonces; i++)
        nonces[i] = (uint8_t)i;
    for (int role = SECRET_CLIENT; role <= SECRET_SERVER; role++) {
        dscomm_priv_secret_prove(SECRET, role, nonces, proof);
        hex(proof, sizeof proof, text);
        is_str(text, want[role], "the proof of role %d", role);
        ok(dscomm_priv_secret_check(SECRET, role, nonces, proof), "is right");
        ok(!dscomm_priv_secret_check(OTHER, role, nonces, proof),
           "but for another secret");
        ok(!dscomm_priv_secret_check(SECRET, !role, nonces, proof),
           "and for the other role");
        proof[31] ^= 1;
        ok(!dscomm_priv_secret_check(SECRET, role, nonces, proof),
           "and with another last bit");
    }
}

/* Expected secret of the environment; want NULL: an error that contains
 * says. */
static void find_is(const char *want, const char *says, const char *about)
{
    char *secret = NULL;
    dscomm_status_t status = dscomm_priv_secret_find(&secret);

    if (says) {
        is_int(status, DSCOMM_ERR_ENVIRONMENT, "%s: refused", about);
        error_says(says);
        ok(!strstr(dscomm_last_error(), "letters"), "  which keeps it");
    } else {
        is_int(status, DSCOMM_OK, "%s: taken", about);
        is_str(secret ? secret : "none", want ? want : "none", "  as it is");
    }
    dscomm_priv_secret_free(secret);
}

static void test_sources(void)
{
    char path[] = "/tmp/dscomm-secret-XXXXXX", link[sizeof path + 5];
    int fd = mkstemp(path);

    if (fd < 0 || dprintf(fd, "\n%s\n", SECRET) < 0)
        bail("%s", path);
    find_is(NULL, NULL, "nothing");
    setenv("DSCOMM_JOB_SECRET", "letters", 1);
    find_is(NULL, "less than 16", "a short one");
    setenv("DSCOMM_JOB_SECRET", SECRET, 1);
    find_is(SECRET, NULL, "a variable");
    unsetenv("DSCOMM_JOB_SECRET");
    setenv("DSCOMM_JOB_SECRET_FILE", path, 1);
    find_is(SECRET, NULL, "a file");
    fchmod(fd, 0640);
    find_is(NULL, "chmod 600", "a file that others may read");
    fchmod(fd, 0600);
    snprintf(link, sizeof link, "%s.link", path);
    if (symlink(path, link))
        bail("%s", link);
    setenv("DSCOMM_JOB_SECRET_FILE", link, 1);
    find_is(NULL, "symbolic link", "a link to the file");
    unlink(link);
    if (mkfifo(link, 0600))
        bail("%s", link);
    find_is(NULL, "no regular file", "a FIFO without a writer");
    unlink(link);
    setenv("DSCOMM_JOB_SECRET_FILE", path, 1);
    if (fchown(fd, FOREIGN_USER, (gid_t)-1) == 0) {
        find_is(NULL, "belongs to user 65533", "a file of another user");
        fchown(fd, geteuid(), (gid_t)-1);
    } else {
        skip("a file of another user: the test does not run as root");
    }
    if (ftruncate(fd, SECRET_MAX + 100))
        bail("ftruncate");
    find_is(NULL, "byte 0", "a file of zeros");
    setenv("DSCOMM_JOB_SECRET_FILE", "/tmp", 1);
    find_is(NULL, "no regular file", "a folder");
    setenv("DSCOMM_JOB_SECRET_FILE", "/tmp/dscomm/nosuch", 1);
    find_is(NULL, "No such file", "no file");
    unsetenv("DSCOMM_JOB_SECRET_FILE");
    close(fd);
    unlink(path);
}

static dscomm_priv_server_t *serve_job(const char *secret, int *ret_port)
{
    const dscomm_priv_job_t job = {.ports = 1, .secret = secret};
    const dscomm_priv_server_limits_t limits = {.validate_ms = LATE_MS};

    return start_server(&limits, &job, ret_port);
}

/* Clients of the library; says NULL: the client is served. */
static void test_clients(void)
{
    static const struct {
        const char *server, *client, *says;
    } rows[] = {
        {NULL, NULL, NULL},
        {SECRET, SECRET, NULL},
        {SECRET, OTHER, "another secret"},
        {SECRET, NULL, "DSCOMM_JOB_SECRET"},
        {NULL, SECRET, "has no secret"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        dscomm_store_t *store = NULL;
        int port;
        dscomm_priv_server_t *server = serve_job(rows[i].server, &port);
        dscomm_status_t status;

        if (rows[i].client)
            setenv("DSCOMM_JOB_SECRET", rows[i].client, 1);
        status = open_store(url_of(port), NULL, 0, 1000, &store);
        unsetenv("DSCOMM_JOB_SECRET");
        is_int(status, rows[i].says ? DSCOMM_ERR_MISMATCH : DSCOMM_OK,
               "server %s, client %s", rows[i].server ? rows[i].server : "-",
               rows[i].client ? rows[i].client : "-");
        if (rows[i].says)
            error_says(rows[i].says);
        else
            is_int(dscomm_store_set(store, "k", "v", 1), DSCOMM_OK,
                   "  is served");
        dscomm_store_close(store);
        dscomm_priv_server_close(server);
    }
}

/* A store that this process serves and uses. */
static void test_own(void)
{
    dscomm_store_t *store;
    raw_t raw = {.size = 0};
    int fd;

    setenv("DSCOMM_JOB_SECRET", SECRET, 1);
    store = must_open_store("tcp://127.0.0.1:0", NULL, 1);
    unsetenv("DSCOMM_JOB_SECRET");
    is_int(dscomm_store_set(store, "k", "v", 1), DSCOMM_OK, "one's own store");
    fd = raw_client(dscomm_store_port(store));
    ok(raw_echo(fd, &raw, 0x12345678) == ~UINT32_C(0x12345678),
       "torch's client is told that it is not served");
    close(fd);
    dscomm_store_close(store);
}

/* Sends a challenge with a nonce of zeros; returns the server's nonce and
 * proof. */
static void challenge(int fd, uint8_t answer[49])
{
    raw_t raw = {.size = 0};

    raw_put(&raw, CHALLENGE, 1);
    raw.size += 16;
    raw_send(fd, raw.data, raw.size);
    is_int(raw_recv(fd, answer, 49, WAIT_MS), 49, "a challenge is answered");
}

/* Sends a proof; returns whether the client is then served. */
static int send_proof(int fd, const uint8_t proof[32])
{
    raw_t raw = {.size = 0};

    raw_put(&raw, PROOF, 1);
    memcpy(raw.data + raw.size, proof, 32);
    raw.size += 32;
    return raw_echo(fd, &raw, 0xCAFE0003) == 0xCAFE0003;
}

static void test_handshake(void)
{
    uint8_t answer[49], nonces[32] = {0}, proof[32], zeros[32] = {0};
    int port, fd, other;
    dscomm_priv_server_t *server = serve_job(SECRET, &port);

    fd = raw_client(port);
    ok(!send_proof(fd, zeros), "a proof without a challenge");
    close(fd);
    fd = raw_client(port);
    challenge(fd, answer);
    ok(!send_proof(fd, zeros), "a wrong proof");
    close(fd);
    fd = raw_client(port);
    challenge(fd, answer);
    ok(!send_proof(fd, answer + 17), "the server's own proof, sent back");
    close(fd);
    fd = raw_client(port);
    other = raw_client(port);
    challenge(fd, answer);
    memcpy(nonces + 16, answer + 1, 16);
    dscomm_priv_secret_prove(SECRET, SECRET_CLIENT, nonces, proof);
    challenge(other, answer);
    ok(memcmp(nonces + 16, answer + 1, 16) != 0, "nonces differ");
    ok(!send_proof(other, proof), "another connection's proof");
    ok(send_proof(fd, proof), "the right one");
    close(other);
    close(fd);
    dscomm_priv_server_close(server);
}

/* Commands without a proof are neither executed nor stored. */
static void test_strangers(void)
{
    int port, fd;
    dscomm_priv_server_t *server = serve_job(SECRET, &port);
    uint8_t answer[49], nonces[32] = {0}, proof[32], got[8];
    static raw_t raw;

    for (int command = 1; command <= 18; command++) {
        if (command == PING)
            continue;
        fd = raw_client(port);
        raw.size = 0;
        raw_put(&raw, (uint64_t)command, 1);
        memset(raw.data + raw.size, 0, 100000);
        raw.size += 100000;
        raw_flush(fd, &raw);
        is_int(raw_recv(fd, got, 1, 20), 0, "command %d: no answer", command);
        ok(raw_closes(fd, WAIT_MS), "command %d: and an end", command);
        close(fd);
    }
    for (int command = 19; command <= 69; command += 50) {
        fd = raw_client(port);
        raw_put(&raw, (uint64_t)command, 1);
        raw_send(fd, raw.data, raw.size);
        ok(raw_closes(fd, LATE_MS / 2), "command %d is none", command);
        close(fd);
    }
    fd = raw_client(port);
    raw.size = 0;
    raw_command(&raw, SET, "/k", "v", NULL);
    raw_flush(fd, &raw);
    challenge(raw_client(port), answer);
    close(fd);
    fd = raw_client(port);
    challenge(fd, answer);
    memcpy(nonces + 16, answer + 1, 16);
    dscomm_priv_secret_prove(SECRET, SECRET_CLIENT, nonces, proof);
    ok(send_proof(fd, proof), "one who knows it");
    raw_put(&raw, 7, 1);
    raw_send(fd, raw.data, raw.size);
    is_int(raw_recv(fd, got, 8, WAIT_MS), 8, "asks for the number of keys,");
    ok(memcmp(got, "\0\0\0\0\0\0\0\0", 8) == 0, "which is 0");
    close(fd);
    dscomm_priv_server_close(server);
}

/* A server of the world WORLD. */
#define WORLD "2 run job"

static dscomm_priv_server_t *serve_world(int *ret_port)
{
    static const dscomm_priv_rank_t rank = {.world = WORLD, .name = "rank 0"};
    const dscomm_priv_job_t job = {.ports = 1, .secret = SECRET, .rank = &rank};

    return start_server(NULL, &job, ret_port);
}

/* A rank reports that it was refused; returns when the server has the
 * report. */
static void report_refused(int port, const char *world, const char *name)
{
    raw_t raw = {.size = 0};
    int fd = raw_client(port);

    raw_put(&raw, REFUSED, 1);
    memset(raw.data + raw.size, 0, sizeof(dscomm_priv_rank_t));
    strncpy((char *)raw.data + raw.size, world, 192);
    strncpy((char *)raw.data + raw.size + 192, name, 128);
    raw.size += 192 + 128;
    raw_echo(fd, &raw, 0x12345678);
    close(fd);
}

/* Returns false if this process cannot become that user. */
static bool report_refused_as(uid_t user, int port)
{
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        if (setuid(user))
            _exit(1);
        report_refused(port, WORLD, "rank 1");
        _exit(0);
    }
    waitpid(pid, &status, 0);
    return status == 0;
}

static dscomm_store_t *client_of_world(int port)
{
    const dscomm_priv_job_t job = {.ports = 1, .secret = SECRET};

    return must_open_store(url_of(port), &job, 0);
}

/* Checks what a waiting rank of WORLD learns at the server's port. */
static void refused_are(int port, int believed, int all, const char *says,
                        const char *about)
{
    dscomm_store_t *store = client_of_world(port);

    is_int(dscomm_priv_roster_refused(store, WORLD, "rank 0", true), believed,
           "%s: those that are believed", about);
    is_int(dscomm_priv_roster_refused(store, WORLD, "rank 0", false), all,
           "  and all");
    if (says)
        error_says(says);
    dscomm_store_close(store);
}

/* Which reports can end the start-up of a world: none of a stranger. */
static void test_refused(void)
{
    char odd[200], long_name[200];
    int port, all = 2;
    dscomm_priv_server_t *server = serve_world(&port);

    memset(odd, 'x', sizeof odd);
    memset(long_name, 'y', sizeof long_name);
    refused_are(port, 0, 0, NULL, "nobody");
    report_refused(port, "3 run job", "rank 2");
    refused_are(port, 0, 1, "that it is rank 2:", "one of another world");
    report_refused(port, odd, long_name);
    refused_are(port, 0, 2, "one from 127.0.0.1:", "endless texts");
    if (report_refused_as(FOREIGN_USER, port))
        refused_are(port, 0, ++all, "that it is rank 2:", "another user");
    else
        skip("another user: the test does not run as root");
    report_refused(port, WORLD, "rank\n1");
    all++;
    refused_are(port, all, all, "that it is rank 1:", "this user");
    ok(strstr(dscomm_last_error(), "; others came from 127.0.0.1:") != NULL,
       "  and names the others");
    dscomm_priv_server_close(server);
}

/* A socket with both ends on this machine, but not TCP: it belongs to no
 * member. */
static int connect_udp(void)
{
    const struct sockaddr_in address = raw_loopback(9);
    const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    if (connect(fd, (const struct sockaddr *)&address, sizeof address))
        bail("no UDP");
    return fd;
}

/* Adds so many reports of rank 1 of WORLD. */
static void note_often(dscomm_priv_refused_t *refused, int fd, int count)
{
    static const dscomm_priv_rank_t rank = {.world = WORLD, .name = "rank 1"};

    for (int i = 0; i < count; i++)
        dscomm_priv_refused_note(refused, fd, "elsewhere", &rank);
}

/* Checks how many of the kept reports the kernel has verified. */
static void kept_are(const dscomm_priv_refused_t *refused, int count,
                     int vouched, const char *about)
{
    char text[REFUSED_VALUE_MAX], **lines;
    int found = 0;

    dscomm_priv_refused_text(refused, text);
    lines = g_strsplit(text, "\n", -1);
    for (int i = 1; lines[0] && lines[i]; i++)
        found += lines[i][0] == '1';
    is_int(atoi(text), count, "%s: reports", about);
    is_int(found, vouched, "  of members");
    g_strfreev(lines);
}

/* Makes a connection between two sockets of this process. */
static void connect_tcp(int ends[2])
{
    int port, listening = raw_listen(&port);

    ends[0] = raw_connect(port);
    ends[1] = accept(listening, NULL, NULL);
    if (ends[0] < 0 || ends[1] < 0)
        bail("no TCP");
    close(listening);
}

/* At most 16 reports are verified: only those of this world's ranks on this
 * machine. */
static void test_refused_often(void)
{
    static dscomm_priv_refused_t refused;
    const int udp = connect_udp();
    int ends[2];

    connect_tcp(ends);
    dscomm_priv_refused_init(&refused, "another", true, false);
    note_often(&refused, ends[1], 1);
    kept_are(&refused, 1, 0, "ranks of another world");
    dscomm_priv_refused_init(&refused, "2 run other", true, false);
    note_often(&refused, ends[1], 1);
    kept_are(&refused, 0, 0, "ranks of another job");
    dscomm_priv_refused_init(&refused, "", true, false);
    note_often(&refused, ends[1], 1);
    kept_are(&refused, 1, 1, "a launcher's server");
    dscomm_priv_refused_init(&refused, WORLD, true, false);
    note_often(&refused, -1, 16);
    note_often(&refused, udp, 15);
    note_often(&refused, ends[1], 1);
    kept_are(&refused, 32, 1, "in time");
    note_often(&refused, ends[1], 20);
    kept_are(&refused, 52, 1, "too many");
    dscomm_priv_refused_init(&refused, "", true, false);
    note_often(&refused, ends[1], 20);
    kept_are(&refused, 20, 16, "as many as have room");
    close(ends[0]);
    close(ends[1]);
    close(udp);
}

static int lines;

static void count_refusal(dscomm_log_level_t level, const char *domain,
                          const char *text, void *arg)
{
    (void)arg;
    lines += level == DSCOMM_LOG_WARN && !strcmp(domain, "store") &&
             strstr(text, "PyTorch's TCPStore") && strstr(text, "--no-secret");
}

/* A client of torch's pings, and leaves for the answer, again and again. That
 * is logged once. One that says why it leaves is not taken for it. */
static void test_pings(void)
{
    int port, fd;
    dscomm_priv_server_t *server = serve_job(SECRET, &port);
    raw_t raw = {.size = 0};
    uint8_t answer[49];

    lines = 0;
    dscomm_log_set_handler(count_refusal, NULL);
    report_refused(port, WORLD, "rank 1");
    fd = raw_client(port);
    challenge(fd, answer);
    close(fd);
    for (int i = 0; i < 2; i++) {
        fd = raw_client(port);
        ok(raw_echo(fd, &raw, 0xCAFE0001) != 0xCAFE0001, "another answer");
        close(fd);
    }
    challenge(raw_client(port), answer); /* the server has seen the others */
    dscomm_priv_server_close(server);
    is_int(lines, 1, "a sentence names the remedy");
    dscomm_log_set_handler(NULL, NULL);
}

static void count_line(dscomm_log_level_t level, const char *domain,
                       const char *text, void *arg)
{
    (void)arg;
    lines += level == DSCOMM_LOG_WARN && !strcmp(domain, "store") &&
             strstr(text, "everyone who reaches") &&
             strstr(text, "DSCOMM_JOB_SECRET_FILE");
}

/* A store that other machines can reach and that has no secret is logged,
 * once. */
static void test_warning(void)
{
    static const struct {
        const char *url, *secret;
        int lines;
    } rows[] = {
        {"tcp://127.0.0.1:0", NULL, 0},
        {"tcp://*:0", SECRET, 0},
        {"tcp://*:0", NULL, 1},
        {"tcp://*:0", NULL, 1},
    };

    lines = 0;
    dscomm_log_set_handler(count_line, NULL);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        dscomm_store_t *store = NULL;

        if (rows[i].secret)
            setenv("DSCOMM_JOB_SECRET", rows[i].secret, 1);
        status_is(open_store(rows[i].url, NULL, 1, WAIT_MS, &store), DSCOMM_OK,
                  rows[i].url);
        unsetenv("DSCOMM_JOB_SECRET");
        is_int(lines, rows[i].lines, "warnings of %s %s secret", rows[i].url,
               rows[i].secret ? "with a" : "without a");
        dscomm_store_close(store);
    }
    dscomm_log_set_handler(NULL, NULL);
}

int main(void)
{
    test_warning();
    test_proofs();
    test_sources();
    test_clients();
    test_own();
    test_handshake();
    test_strangers();
    test_refused();
    test_refused_often();
    test_pings();
    return tap_done();
}
