/* SPDX-License-Identifier: BSD-3-Clause */
/* TCPStore's protocol by hand, independent of the library. Numbers as in
 * torch's sources, in the host's byte order. */
#ifndef TESTS_LIB_STORE_RAW_H
#define TESTS_LIB_STORE_RAW_H

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define RAW_MAX (256 << 10)

/* Numbers as parts of string literals; their lowest three bytes, or the lowest
 * alone, are given, lowest first. */
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define RAW_U32(a, b, c) "\0" c b a
#define RAW_U64(a, b, c) "\0\0\0\0\0" c b a
#else
#define RAW_U32(a, b, c) a b c "\0"
#define RAW_U64(a, b, c) a b c "\0\0\0\0\0"
#endif
#define RAW_LENGTH(low) RAW_U32(low, "\0", "\0") /* in files */
#define RAW_SIZE(low) RAW_U64(low, "\0", "\0") /* in requests */

/* Bytes to send. */
typedef struct {
    uint8_t data[RAW_MAX];
    size_t size;
} raw_t;

void raw_put(raw_t *raw, uint64_t value, size_t bytes);
void raw_hello(raw_t *raw);
void raw_text(raw_t *raw, const char *text);
/* Appends a command with up to three texts. */
void raw_command(raw_t *raw, int command, const char *a, const char *b,
                 const char *c);
/* Appends CHECK, WAIT or MULTI_GET with up to two keys. */
void raw_keys(raw_t *raw, int command, const char *a, const char *b);
void raw_ping(raw_t *raw, uint32_t nonce);

double raw_now_ms(void);
/* 127.0.0.1 at port. */
struct sockaddr_in raw_loopback(int port);
/* Makes a blocking connection to port; or -1. */
int raw_connect(int port);
/* Makes a socket that listens on a free port of 127.0.0.1; or -1. */
int raw_listen(int *ret_port);
/* Returns 1, or 0 if the other end does not accept it. */
int raw_send(int fd, const void *data, size_t size);
/* Sends all of raw, and empties it. */
void raw_flush(int fd, raw_t *raw);
/* The same with a PING after it; returns the nonce in its answer, or 0 after 5
 * s. */
uint32_t raw_echo(int fd, raw_t *raw, uint32_t nonce);
/* Returns how many of size bytes came within ms; -1 if the end or a reset came
 * first. */
long raw_recv(int fd, void *data, size_t size, int ms);
/* Returns 1 if the other end closes within ms; bytes before that are
 * dropped. */
int raw_closes(int fd, int ms);

#endif
