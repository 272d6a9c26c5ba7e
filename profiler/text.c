/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of ranges and call sites. */
#include "config.h"

#include "profiler/lock.h"
#include "profiler/text.h"

#include <dscomm/profiler.h>
#include <glib.h>
#include <stdatomic.h>
#include <string.h>

static GHashTable *numbers; /* by text; never freed */
static _Atomic(char *) texts[TEXT_OTHERS]; /* from 1; never freed */
static unsigned count = 1;

static atomic_bool sites_wanted;
static _Thread_local unsigned site, tag; /* of this thread; 0: none */

/* Called with the lock. */
static unsigned text_add(const char *text)
{
    char *copy;

    if (count == TEXT_OTHERS)
        return TEXT_OTHERS;
    copy = g_strdup(text);
    texts[count] = copy;
    g_hash_table_insert(numbers, copy, GUINT_TO_POINTER(count));
    return count++;
}

unsigned dscomm_priv_text_number(const char *text)
{
    unsigned number;

    if (!text || !*text)
        return 0;
    dscomm_priv_profiler_lock();
    if (!numbers)
        numbers = g_hash_table_new(g_str_hash, g_str_equal);
    number = GPOINTER_TO_UINT(g_hash_table_lookup(numbers, text));
    if (!number)
        number = text_add(text);
    dscomm_priv_profiler_unlock();
    return number;
}

const char *dscomm_priv_text(unsigned number)
{
    const char *text = number < TEXT_OTHERS ? texts[number] : NULL;

    if (number == TEXT_OTHERS)
        return "(others)";
    return text ? text : "";
}

void dscomm_priv_text_blank(char *text)
{
    while (*text) {
        const gunichar c = g_utf8_get_char_validated(text, -1);
        const bool is_valid = g_unichar_validate(c);
        const size_t length =
            is_valid ? (size_t)(g_utf8_next_char(text) - text) : 1;

        if (!is_valid || g_unichar_iscntrl(c))
            memset(text, '?', length);
        text += length;
    }
}

void dscomm_priv_text_want_sites(bool wanted)
{
    atomic_store(&sites_wanted, wanted);
}

unsigned dscomm_priv_text_site(void)
{
    return site ? site : tag;
}

void dscomm_profiler_site_begin(const char *function, const char *file,
                                int line)
{
    char text[512];

    if (!atomic_load_explicit(&sites_wanted, memory_order_relaxed))
        return;
    g_snprintf(text, sizeof text, "%s %s:%d", function ? function : "",
               file ? file : "", line);
    site = dscomm_priv_text_number(text);
}

dscomm_status_t dscomm_profiler_site_end(dscomm_status_t status)
{
    site = 0;
    return status;
}

void dscomm_profiler_tag(const char *text)
{
    tag = dscomm_priv_text_number(text);
}
