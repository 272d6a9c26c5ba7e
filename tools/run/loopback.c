/* SPDX-License-Identifier: BSD-3-Clause */
/* Names and addresses of the loopback interface, see loopback.h. */
#include "config.h"

#include "tools/run/loopback.h"

#include <arpa/inet.h>
#include <netinet/in.h>

/* 1: of loopback; 0: another address; -1: none. */
static int look_at(const char *text)
{
    struct in_addr v4;
    struct in6_addr v6;

    if (inet_pton(AF_INET, text, &v4) == 1)
        return ntohl(v4.s_addr) >> 24 == 127;
    return inet_pton(AF_INET6, text, &v6) == 1 ? IN6_IS_ADDR_LOOPBACK(&v6) : -1;
}

/* "ADDRESS NAME..." that names host. */
static gboolean names(char **words, const char *host)
{
    for (int i = 1; words[0] && words[i]; i++)
        if (g_ascii_strcasecmp(words[i], host) == 0)
            return TRUE;
    return FALSE;
}

/* The address that a line gives to host, as look_at() says it. */
static int ask_line(char *line, const char *host)
{
    char **words, **to;
    int result = -1;

    g_strdelimit(line, "#", '\0');
    words = g_strsplit_set(line, " \t\r", -1);
    to = words;
    for (char **from = words; *from; from++)
        if (**from)
            *to++ = *from;
        else
            g_free(*from);
    *to = NULL;
    if (names(words, host))
        result = look_at(words[0]);
    g_strfreev(words);
    return result;
}

gboolean tool_host_is_loopback(const char *file, const char *host)
{
    int result = look_at(host);
    char *text = NULL, **lines;

    if (result >= 0 || !g_file_get_contents(file, &text, NULL, NULL))
        return result == 1;
    lines = g_strsplit(text, "\n", -1);
    for (int i = 0; lines[i] && result < 0; i++)
        result = ask_line(lines[i], host);
    g_strfreev(lines);
    g_free(text);
    return result == 1;
}
