/* SPDX-License-Identifier: BSD-3-Clause */
/* Attributes that are initialised by a function: it gives the same values as
 * the macros, for callers of any version. */
#include "config.h"

#include "tests/tap.h"

#include <dscomm/dscomm.h>

/* The values of the macros, on which the functions do not depend. */
static const dscomm_init_attr_t init_attr = DSCOMM_INIT_ATTR_INIT;
static const dscomm_group_attr_t group_attr = DSCOMM_GROUP_ATTR_INIT;
static const dscomm_store_attr_t store_attr = DSCOMM_STORE_ATTR_INIT;
static const dscomm_env_attr_t env_attr = DSCOMM_ENV_ATTR_INIT;

static dscomm_status_t begin_init(void *attr, size_t size)
{
    return dscomm_init_attr_init(attr, size);
}

static dscomm_status_t begin_group(void *attr, size_t size)
{
    return dscomm_group_attr_init(attr, size);
}

static dscomm_status_t begin_store(void *attr, size_t size)
{
    return dscomm_store_attr_init(attr, size);
}

static dscomm_status_t begin_env(void *attr, size_t size)
{
    return dscomm_env_attr_init(attr, size);
}

static const struct {
    const char *name;
    dscomm_status_t (*begin)(void *attr, size_t size);
    const void *macro;
    size_t size;
} rows[] = {
    {"dscomm_init_attr_init", begin_init, &init_attr, sizeof init_attr},
    {"dscomm_group_attr_init", begin_group, &group_attr, sizeof group_attr},
    {"dscomm_store_attr_init", begin_store, &store_attr, sizeof store_attr},
    {"dscomm_env_attr_init", begin_env, &env_attr, sizeof env_attr},
};

/* Structs of this version, of an older and of a newer one; the memory after
 * them is not changed. */
static void check_row(size_t i)
{
    union {
        char bytes[256];
        size_t size;
    } attr, whole;
    const size_t size = rows[i].size;

    memset(&whole, 0xaa, sizeof whole);
    attr = whole;
    is_int(rows[i].begin(&attr, size), DSCOMM_OK, "%s", rows[i].name);
    memcpy(&whole, rows[i].macro, size);
    ok(memcmp(&attr, &whole, sizeof attr) == 0, "  is what the macro says");
    is_int(rows[i].begin(&attr, size - 8), DSCOMM_OK, "  an older caller's");
    is_int((long long)attr.size, (long long)size - 8, "  has its size");
    ok(memcmp(attr.bytes + 8, whole.bytes + 8, sizeof attr - 8) == 0,
       "  and the rest is as before");
    is_int(rows[i].begin(&attr, size + 8), DSCOMM_OK, "  a newer caller's");
    memset(whole.bytes + size, 0, 8);
    ok(attr.size == size + 8 &&
           memcmp(attr.bytes + 8, whole.bytes + 8, sizeof attr - 8) == 0,
       "  is zero beyond what is known");
    is_int(rows[i].begin(&attr, 7), DSCOMM_ERR_INVALID, "  size 7");
    ok(strstr(dscomm_last_error(), rows[i].name) != NULL, "  by its name");
    is_int(rows[i].begin(&attr, 4097), DSCOMM_ERR_INVALID, "  size 4097");
    is_int(rows[i].begin(NULL, size), DSCOMM_ERR_INVALID, "  no attributes");
}

int main(void)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        check_row(i);
    return tap_done();
}
