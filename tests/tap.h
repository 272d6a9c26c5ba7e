/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks that print the Test Anything Protocol. A test calls ok() and similar
 * functions any number of times and ends with `return tap_done();`. Not for
 * several threads or processes at once: reduce the results, and let one of them
 * print. */
#ifndef TESTS_TAP_H
#define TESTS_TAP_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TAP_PRINTF(format_, first_)                                            \
    __attribute__((unused, format(printf, format_, first_)))

static int tap_count, tap_failed;

/* Prints one result line; replaces '#', which would begin a directive, and
 * newlines. */
static inline TAP_PRINTF(2, 0) int tap_result(int passed, const char *format,
                                              va_list args)
{
    char name[512];

    vsnprintf(name, sizeof name, format, args);
    for (char *c = name; *c; c++) {
        if (*c == '#' || *c == '\n' || *c == '\r')
            *c = ' ';
    }
    tap_count++;
    if (!passed)
        tap_failed++;
    printf("%s %d - %s\n", passed ? "ok" : "not ok", tap_count, name);
    fflush(stdout);
    return passed;
}

/* Passes if cond is not 0. Returns whether it passed, like all checks. */
static inline TAP_PRINTF(2, 3) int ok(int cond, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    tap_result(cond != 0, format, args);
    va_end(args);
    return cond != 0;
}

static inline TAP_PRINTF(3, 4) int is_int(long long got, long long want,
                                          const char *format, ...)
{
    va_list args;

    va_start(args, format);
    tap_result(got == want, format, args);
    va_end(args);
    if (got != want)
        printf("#   got %lld, want %lld\n", got, want);
    fflush(stdout);
    return got == want;
}

/* Prints a text as comment lines. */
static inline __attribute__((unused)) void tap_text(const char *label,
                                                    const char *text)
{
    printf("#   %s ", label);
    for (const char *c = text ? text : "(NULL)"; *c; c++) {
        putchar(*c);
        if (*c == '\n')
            printf("#   ");
    }
    putchar('\n');
    fflush(stdout);
}

/* NULL equals only NULL. */
static inline TAP_PRINTF(3, 4) int is_str(const char *got, const char *want,
                                          const char *format, ...)
{
    va_list args;
    int passed = got && want ? strcmp(got, want) == 0 : got == want;

    va_start(args, format);
    tap_result(passed, format, args);
    va_end(args);
    if (!passed) {
        tap_text("got ", got);
        tap_text("want", want);
    }
    return passed;
}

/* Skips one check, with the reason. */
static inline TAP_PRINTF(1, 2) int skip(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    printf("ok %d # SKIP ", ++tap_count);
    vprintf(format, args);
    printf("\n");
    fflush(stdout);
    va_end(args);
    return 1;
}

/* Skips the whole program and exits; only before the first check. */
static inline TAP_PRINTF(1, 2)
    __attribute__((noreturn)) void skip_all(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    printf("1..0 # SKIP ");
    vprintf(format, args);
    printf("\n");
    va_end(args);
    exit(0);
}

/* Prints why no more tests are possible, and exits. */
static inline TAP_PRINTF(1, 2)
    __attribute__((noreturn)) void bail(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    printf("Bail out! ");
    vprintf(format, args);
    printf("\n");
    va_end(args);
    exit(1);
}

/* Prints the plan; returns the exit status for main. */
static inline __attribute__((unused)) int tap_done(void)
{
    printf("1..%d\n", tap_count);
    if (tap_failed)
        printf("# %d of %d failed\n", tap_failed, tap_count);
    fflush(stdout);
    return tap_failed != 0;
}

#endif
