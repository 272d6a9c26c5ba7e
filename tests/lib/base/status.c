/* SPDX-License-Identifier: BSD-3-Clause */
/* Statuses are ABI. Sentences are complete, one line, and belong to the
 * thread. */
#include "config.h"

#include "lib/base/status.h"

#include <errno.h>
#include <glib.h>
#include <pthread.h>
#include <string.h>

#include "tests/tap.h"

static const struct {
    int value;
    const char *name, *text;
} statuses[] = {
    {0, "OK", "success"},
    {1, "IN_PROGRESS", "operation in progress"},
    {-1, "ERR_INVALID", "invalid argument"},
    {-2, "ERR_NO_MEMORY", "out of memory or of another resource"},
    {-3, "ERR_UNSUPPORTED", "not supported by this backend or build"},
    {-4, "ERR_NO_BACKEND", "no usable backend"},
    {-5, "ERR_ENVIRONMENT", "wrong or contradictory environment"},
    {-6, "ERR_TIMEOUT", "deadline passed"},
    {-7, "ERR_PEER_FAILED", "a peer died or left"},
    {-8, "ERR_MISMATCH", "ranks disagree about the operation"},
    {-9, "ERR_ABORTED", "group was aborted"},
    {-10, "ERR_TRUNCATED", "message longer than the receive buffer"},
    {-11, "ERR_IO", "system call failed"},
    {-12, "ERR_PROTOCOL", "peer sent bytes that make no sense"},
    {-13, "ERR_NOT_FOUND", "not found"},
    {-14, "ERR_STATE", "call is not allowed in this state"},
    {-15, "ERR_INTERNAL", "internal error"},
    {-16, "ERR_CANCELLED", "operation was cancelled by its program"},
    {2, "UNKNOWN", "unknown status"},
    {-17, "UNKNOWN", "unknown status"},
    {0x7fffffff, "UNKNOWN", "unknown status"},
};

/* A character of 1 to 4 bytes after pad bytes of text, in a buffer of `size`
 * bytes. */
static const struct {
    const char *character;
    int pad, size, want;
} cuts[] = {
    {"a", 6, 8, 7},
    {"a", 7, 8, 7},
    {"\xc3\xa9", 5, 8, 7},
    {"\xc3\xa9", 6, 8, 6},
    {"\xc3\xa9", 7, 8, 7},
    {"\xe2\x82\xac", 4, 8, 7},
    {"\xe2\x82\xac", 5, 8, 5},
    {"\xe2\x82\xac", 6, 8, 6},
    {"\xe2\x82\xac", 7, 8, 7},
    {"\xf0\x9f\x98\x80", 3, 8, 7},
    {"\xf0\x9f\x98\x80", 4, 8, 4},
    {"\xf0\x9f\x98\x80", 5, 8, 5},
    {"\xf0\x9f\x98\x80", 6, 8, 6},
    {"\xf0\x9f\x98\x80", 7, 8, 7},
    {"\xe2\x82\xac", 0, 2, 0},
    {"\xe2\x82\xac", 0, 1, 0},
    {"a", 0, 1, 0},
};

static const struct {
    const char *text, *want;
} tidied[] = {
    {"", ""},
    {"plain", "plain"},
    {"two\nlines\r\n", "two lines  "},
    {"\x1b[31mred\x7f", " [31mred "},
    {"tab\there", "tab here"},
    {"caf\xc3\xa9", "caf\xc3\xa9"},
    {"latin \xe9t\xe9", "latin \xe9t\xe9"},
};

static void test_table(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(statuses); i++) {
        dscomm_status_t status = (dscomm_status_t)statuses[i].value;

        is_str(dscomm_status_name(status), statuses[i].name, "name of %d",
               statuses[i].value);
        is_str(dscomm_strerror(status), statuses[i].text, "text of %d",
               statuses[i].value);
    }
}

static void test_cuts(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(cuts); i++) {
        char text[64] = "", buffer[64];

        memset(text, 'x', (size_t)cuts[i].pad);
        strcat(text, cuts[i].character);
        dscomm_priv_quote(text, buffer, (size_t)cuts[i].size);
        is_int((long long)strlen(buffer), cuts[i].want,
               "%zu byte character after %d bytes, in %d",
               strlen(cuts[i].character), cuts[i].pad, cuts[i].size);
        ok(strncmp(buffer, text, strlen(buffer)) == 0, "its text");
    }
    for (size_t i = 0; i < G_N_ELEMENTS(tidied); i++) {
        char buffer[64];

        is_str(dscomm_priv_quote(tidied[i].text, buffer, sizeof buffer),
               tidied[i].want, "tidied text %zu", i);
    }
}

static void test_sentence(void)
{
    is_str(dscomm_last_error(), "", "empty before the first failure");
    errno = 77;
    is_int(dscomm_fail(DSCOMM_ERR_IO, "open %s: %d", "x", 7), DSCOMM_ERR_IO,
           "status is returned");
    is_int(errno, 77, "errno is left alone");
    is_str(dscomm_last_error(), "open x: 7", "sentence");
    dscomm_fail(DSCOMM_ERR_IO, "init: %s", dscomm_last_error());
    is_str(dscomm_last_error(), "init: open x: 7", "made of the last one");
    dscomm_fail(DSCOMM_ERR_IO, "%s", "a\nb");
    is_str(dscomm_last_error(), "a b", "is one line");
    is_int(dscomm_priv_fail_with(DSCOMM_ERR_ABORTED, "100%s\n"),
           DSCOMM_ERR_ABORTED, "stored as it is: status");
    is_str(dscomm_last_error(), "100%s\n", "stored as it is: text");
    dscomm_priv_fail_with(DSCOMM_ERR_ABORTED, NULL);
    is_str(dscomm_last_error(), "group was aborted", "NULL: the status' text");
    dscomm_priv_fail_with(DSCOMM_ERR_IO, dscomm_last_error() + 4);
    is_str(dscomm_last_error(), "p was aborted", "made of a part of itself");
}

/* 511 bytes fit: texts of this length, and one byte more and less. */
static void test_long(void)
{
    char text[2048];

    for (int length = 509; length <= 515; length++) {
        memset(text, 'x', sizeof text);
        text[length] = '\0';
        dscomm_fail(DSCOMM_ERR_IO, "%s", text);
        is_int((long long)strlen(dscomm_last_error()), MIN(length, 511),
               "sentence of %d bytes", length);
        dscomm_priv_fail_with(DSCOMM_ERR_IO, text);
        is_int((long long)strlen(dscomm_last_error()), MIN(length, 511),
               "%d bytes from elsewhere", length);
        strcpy(text + length, "\xe2\x82\xac\xe2\x82\xac");
        dscomm_fail(DSCOMM_ERR_IO, "%s", text);
        ok(g_utf8_validate(dscomm_last_error(), -1, NULL) &&
               strlen(dscomm_last_error()) >= 509,
           "%d bytes and wide characters", length);
        dscomm_priv_fail_with(DSCOMM_ERR_IO, text);
        ok(g_utf8_validate(dscomm_last_error(), -1, NULL) &&
               strlen(dscomm_last_error()) >= 509,
           "the same from elsewhere");
    }
}

static void *other_thread(void *arg)
{
    int *passed = arg;

    *passed = *dscomm_last_error() == '\0';
    dscomm_fail(DSCOMM_ERR_IO, "theirs");
    *passed = *passed && strcmp(dscomm_last_error(), "theirs") == 0;
    return NULL;
}

static void test_threads(void)
{
    pthread_t thread;
    int passed = 0;

    dscomm_fail(DSCOMM_ERR_IO, "mine");
    if (pthread_create(&thread, NULL, other_thread, &passed))
        bail("cannot start a thread");
    pthread_join(thread, NULL);
    ok(passed, "another thread has its own sentence");
    is_str(dscomm_last_error(), "mine", "and leaves this one's alone");
}

int main(void)
{
    test_table();
    test_sentence();
    test_cuts();
    test_long();
    test_threads();
    return tap_done();
}
