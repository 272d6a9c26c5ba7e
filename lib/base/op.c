/* SPDX-License-Identifier: BSD-3-Clause */
/* Operators: the built-in ones, and the program's own; calls as text. The
 * handle of an own operator is the number of a slot in a table and how often
 * that slot was used before, so that the handle of a freed one is recognized.
 */
#include "config.h"
#include "lib/base/op.h"
#include "lib/base/attr.h"
#include "lib/base/types.h"

#include <dscomm/op.h>
#include <glib.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SLOTS 1024
/* A handle: HANDLE_MARK | uses << HANDLE_SLOT_BITS | slot. */
#define HANDLE_MARK (1 << 30)
#define HANDLE_SLOT_BITS 10
#define HANDLE_USES_MASK ((1 << (30 - HANDLE_SLOT_BITS)) - 1)

G_STATIC_ASSERT(SLOTS == 1 << HANDLE_SLOT_BITS);

/* Bytes of inputs that are reduced at a time; they fit into the first-level
 * cache. */
#define CHUNK 4096

typedef struct {
    /* first, so that a pointer to it is a pointer to the whole */
    dscomm_user_op_t user;
    atomic_uint holds; /* 1 for the handle, and 1 for each call that uses it */
    uint32_t dtypes; /* one bit for each dtype; 0: all */
    uint32_t hash; /* hash of all properties that ranks must give alike */
    char name[DSCOMM_OP_NAME_MAX + 1];
    char text[DSCOMM_OP_TEXT];
} user_op_t;

static const char *const op_names[DSCOMM_OP_COUNT] = {
    [DSCOMM_SUM] = "sum",
    [DSCOMM_PRODUCT] = "product",
    [DSCOMM_MIN] = "min",
    [DSCOMM_MAX] = "max",
    [DSCOMM_AVG] = "avg",
    [DSCOMM_BAND] = "band",
    [DSCOMM_BOR] = "bor",
    [DSCOMM_BXOR] = "bxor",
    [DSCOMM_PREMUL_SUM] = "premul_sum",
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    user_op_t *op; /* NULL: free */
    unsigned uses;
} slots[SLOTS];

static user_op_t *op_of(const dscomm_user_op_t *user)
{
    return (user_op_t *)(uintptr_t)user;
}

void dscomm_priv_op_hold(const dscomm_user_op_t *user)
{
    if (user)
        atomic_fetch_add(&op_of(user)->holds, 1);
}

void dscomm_priv_op_drop(const dscomm_user_op_t *user)
{
    if (user && atomic_fetch_sub(&op_of(user)->holds, 1) == 1)
        free(op_of(user));
}

/* Returns the slot of a live handle, or -1. Called with the lock held. */
static int slot_of(dscomm_op_t op)
{
    const int slot = (int)op & (SLOTS - 1);
    const unsigned uses = (unsigned)op >> HANDLE_SLOT_BITS & HANDLE_USES_MASK;

    if (!((unsigned)op & HANDLE_MARK) || (unsigned)op >> 31)
        return -1;
    return slots[slot].op && slots[slot].uses == uses ? slot : -1;
}

/* Returns the operator of a live handle and holds it; or NULL. */
static user_op_t *op_find(dscomm_op_t op)
{
    user_op_t *found = NULL;
    int slot;

    pthread_mutex_lock(&lock);
    slot = slot_of(op);
    if (slot >= 0) {
        found = slots[slot].op;
        dscomm_priv_op_hold(&found->user);
    }
    pthread_mutex_unlock(&lock);
    return found;
}

static bool op_takes(const user_op_t *op, dscomm_dtype_t dtype)
{
    return (unsigned)dtype < DSCOMM_DTYPE_COUNT &&
           (!op->dtypes || op->dtypes >> dtype & 1);
}

dscomm_status_t dscomm_priv_op_take(dscomm_op_t op, const char *name,
                                    const char *group, size_t common,
                                    dscomm_coll_args_t *args)
{
    const dscomm_dtype_t dtype = (dscomm_dtype_t)args->dtype;
    user_op_t *found = op_find(op);

    if (!found)
        return dscomm_fail(DSCOMM_ERR_INVALID,
                           "%s on group '%s': %d is no operator%s", name, group,
                           (int)op,
                           (unsigned)op & HANDLE_MARK && (int)op > 0
                               ? "; it was freed, or never made"
                               : "");
    if (!op_takes(found, dtype)) {
        dscomm_fail(DSCOMM_ERR_INVALID,
                    "%s on group '%s': operator %s does not apply to %s", name,
                    group, found->name, dscomm_dtype_name(dtype));
        dscomm_priv_op_drop(&found->user);
        return DSCOMM_ERR_INVALID;
    }
    args->op = DSCOMM_OP_USER;
    args->user = &found->user;
    args->fingerprint =
        dscomm_priv_fingerprint(args->coll, args->dtype, DSCOMM_OP_USER,
                                args->root, common) ^
        found->hash;
    return DSCOMM_OK;
}

static int is_op(dscomm_op_t op)
{
    return (unsigned)op < DSCOMM_OP_COUNT;
}

const char *dscomm_op_name(dscomm_op_t op)
{
    user_op_t *found;

    if (is_op(op))
        return op_names[op];
    found = op_find(op);
    if (!found)
        return "invalid";
    dscomm_priv_op_drop(&found->user);
    return found->name;
}

int dscomm_op_from_name(const char *name, dscomm_op_t *ret_op)
{
    const int found = dscomm_priv_name_find(op_names, DSCOMM_OP_COUNT, name);

    if (found < 0 || !ret_op)
        return -1;
    *ret_op = (dscomm_op_t)found;
    return 0;
}

int dscomm_op_applies(dscomm_op_t op, dscomm_dtype_t dtype)
{
    user_op_t *found;
    bool takes;

    if (is_op(op))
        return (unsigned)dtype < DSCOMM_DTYPE_COUNT &&
               (dscomm_priv_applies[op] >> dtype & 1);
    found = op_find(op);
    takes = found && op_takes(found, dtype);
    if (found)
        dscomm_priv_op_drop(&found->user);
    return takes;
}

/* Returns what is wrong with the attributes, or NULL. */
static const char *attr_defect(const dscomm_op_attr_t *attr)
{
    dscomm_op_t known;

    if (attr->commutative != 0 && attr->commutative != 1)
        return "attr.commutative is neither 0 nor 1";
    if (attr->dtypes >> DSCOMM_DTYPE_COUNT)
        return "attr.dtypes has bits that are no dtype";
    if (attr->name && (!*attr->name || strlen(attr->name) > DSCOMM_OP_NAME_MAX))
        return "attr.name is empty or longer than 31 bytes";
    if (attr->name && !dscomm_op_from_name(attr->name, &known))
        return "attr.name is that of a built-in operator";
    return NULL;
}

/* FNV-1a. */
static uint32_t text_hash(const char *text)
{
    uint32_t hash = UINT32_C(0x811c9dc5);

    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * UINT32_C(0x01000193);
    return hash;
}

static user_op_t *op_new(dscomm_op_fn function, const dscomm_op_attr_t *attr)
{
    user_op_t *op = calloc(1, sizeof *op);

    if (!op)
        return NULL;
    g_strlcpy(op->name, attr->name ? attr->name : "user", sizeof op->name);
    op->user = (dscomm_user_op_t){.size = sizeof op->user,
                                  .function = function,
                                  .arg = attr->arg,
                                  .commutative = attr->commutative,
                                  .text = op->text};
    snprintf(op->text, sizeof op->text, "%s%s", op->name,
             attr->commutative ? "" : " in rank order");
    op->dtypes = attr->dtypes;
    op->hash = text_hash(op->text);
    atomic_init(&op->holds, 1);
    return op;
}

/* Publishes an operator and returns its handle, or 0 if all slots are taken.
 * Takes the slot that was used least often, so that a handle comes again as
 * late as possible. */
static int op_publish(user_op_t *op)
{
    int best = -1;

    pthread_mutex_lock(&lock);
    for (int i = 0; i < SLOTS; i++)
        if (!slots[i].op && (best < 0 || slots[i].uses < slots[best].uses))
            best = i;
    if (best >= 0) {
        slots[best].op = op;
        op->user.handle =
            HANDLE_MARK | (int)slots[best].uses << HANDLE_SLOT_BITS | best;
    }
    pthread_mutex_unlock(&lock);
    return best < 0 ? 0 : op->user.handle;
}

dscomm_status_t dscomm_op_attr_init(dscomm_op_attr_t *attr, size_t size)
{
    return dscomm_priv_attr_init("dscomm_op_attr_init", attr, size);
}

dscomm_status_t dscomm_op_create(dscomm_op_fn function,
                                 const dscomm_op_attr_t *attr,
                                 dscomm_op_t *ret_op)
{
    const char *name = "dscomm_op_create", *wrong;
    dscomm_op_attr_t own = DSCOMM_OP_ATTR_INIT;
    dscomm_status_t status = dscomm_priv_attr_read(
        "dscomm_op_create: attr", "start from DSCOMM_OP_ATTR_INIT", attr,
        sizeof own, &own);
    user_op_t *op;
    int handle;

    if (status < 0)
        return status;
    wrong = !function ? "function is NULL"
            : !ret_op ? "ret_op is NULL"
                      : attr_defect(&own);
    if (wrong)
        return dscomm_fail(DSCOMM_ERR_INVALID, "%s: %s", name, wrong);
    op = op_new(function, &own);
    if (!op)
        return dscomm_fail(DSCOMM_ERR_NO_MEMORY, "%s: out of memory", name);
    handle = op_publish(op);
    if (!handle) {
        free(op);
        return dscomm_fail(DSCOMM_ERR_NO_MEMORY,
                           "%s: this process has %d operators; free some", name,
                           SLOTS);
    }
    *ret_op = (dscomm_op_t)handle;
    return DSCOMM_OK;
}

dscomm_status_t dscomm_op_free(dscomm_op_t op)
{
    user_op_t *found = NULL;
    int slot;

    pthread_mutex_lock(&lock);
    slot = slot_of(op);
    if (slot >= 0) {
        found = slots[slot].op;
        slots[slot].op = NULL;
        slots[slot].uses = (slots[slot].uses + 1) & HANDLE_USES_MASK;
    }
    pthread_mutex_unlock(&lock);
    if (!found)
        return dscomm_fail(DSCOMM_ERR_INVALID,
                           "dscomm_op_free: %d is no operator that "
                           "dscomm_op_create() made, or was freed",
                           (int)op);
    dscomm_priv_op_drop(&found->user);
    return DSCOMM_OK;
}

/* Computes each chunk on the stack, because dest may be one of the sources, and
 * buffers may have any alignment. */
void dscomm_reduce_user(const dscomm_coll_args_t *args, void *dest,
                        const void *const *sources, size_t nsources,
                        size_t count)
{
    const dscomm_user_op_t *user = args->user;
    const size_t element = args->element;
    _Alignas(64) char left[CHUNK], aligned[CHUNK];

    for (size_t from = 0, n; from < count; from += n) {
        const size_t offset = from * element;

        n = MIN(count - from, CHUNK / element);
        memcpy(left, (const char *)sources[0] + offset, n * element);
        for (size_t i = 1; i < nsources; i++) {
            const void *right = (const char *)sources[i] + offset;

            if ((uintptr_t)right % element)
                right = memcpy(aligned, right, n * element);
            user->function(left, right, n, (dscomm_dtype_t)args->dtype,
                           user->arg);
        }
        memcpy((char *)dest + offset, left, n * element);
    }
}

void dscomm_priv_op_forked(void)
{
    pthread_mutex_init(&lock, NULL);
}

/* The public call that a collective is a part of. */
static const char *const callers[] = {
    [-DSCOMM_ROOT_FINALIZE] = "dscomm_finalize",
    [-DSCOMM_ROOT_GROUP_NEW] = "dscomm_group_new",
    [-DSCOMM_ROOT_GROUP_SPLIT] = "dscomm_group_split",
    [-DSCOMM_ROOT_GROUP_MESH] = "dscomm_group_mesh",
};

const char *dscomm_priv_caller(int root)
{
    const int last = (int)(sizeof callers / sizeof callers[0]) - 1;

    return root < -1 && root >= -last ? callers[-root] : NULL;
}

const char *dscomm_coll_describe(const dscomm_coll_args_t *args, char *buffer,
                                 size_t size)
{
    const char *caller = dscomm_priv_caller(args->root);
    char op[DSCOMM_OP_TEXT + 2] = "", root[32] = "";

    if (args->op >= 0)
        snprintf(op, sizeof(op), ", %s", dscomm_priv_op_text(args));
    if (args->root >= 0)
        snprintf(root, sizeof(root), ", root %d", args->root);
    if (caller || args->coll == DSCOMM_COLL_BARRIER)
        snprintf(buffer, size, "%s() #%llu", caller ? caller : "barrier",
                 (unsigned long long)args->sequence);
    else
        snprintf(buffer, size, "%s(%scount %zu, %s%s%s) #%llu",
                 dscomm_priv_coll(args->coll)->name,
                 dscomm_priv_coll_has(args->coll, SHAPE_COUNTS) ? "own " : "",
                 args->count, dscomm_dtype_name((dscomm_dtype_t)args->dtype),
                 op, root, (unsigned long long)args->sequence);
    return buffer;
}
