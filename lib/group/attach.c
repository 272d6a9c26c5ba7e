/* SPDX-License-Identifier: BSD-3-Clause */
/* Attachments: values that other libraries keep with a group. */
#include "config.h"

#include "lib/group/group.h"

#include "lib/base/status.h"

struct dscomm_attachment {
    struct dscomm_attachment *next;
    const void *key;
    void *value;
    void (*end)(void *value);
};

typedef struct dscomm_attachment attachment_t;

/* Removes the attachment of key from the list and returns it, or NULL. */
static attachment_t *attachment_take(dscomm_group_t *group, const void *key)
{
    attachment_t **link = &group->life.attachments, *found;

    while (*link && (*link)->key != key)
        link = &(*link)->next;
    found = *link;
    if (found)
        *link = found->next;
    return found;
}

dscomm_status_t dscomm_group_attach(dscomm_group_t *group, const void *key,
                                    void *value, void (*end)(void *value))
{
    const char *name = "dscomm_group_attach";
    dscomm_status_t status = dscomm_priv_group_alive(group, name);
    attachment_t *attachment;

    if (status < 0)
        return status;
    if (!key)
        return dscomm_fail(DSCOMM_ERR_INVALID, "%s: key is NULL", name);
    g_free(attachment_take(group, key));
    if (!value)
        return DSCOMM_OK;
    attachment = g_try_new(attachment_t, 1);
    if (!attachment)
        return dscomm_fail(DSCOMM_ERR_NO_MEMORY, "%s on group '%s': no memory",
                           name, group->identity.name);
    *attachment = (attachment_t){group->life.attachments, key, value, end};
    group->life.attachments = attachment;
    return DSCOMM_OK;
}

void *dscomm_group_attached(const dscomm_group_t *group, const void *key)
{
    if (dscomm_priv_group_alive(group, "dscomm_group_attached") < 0)
        return NULL;
    for (const attachment_t *a = group->life.attachments; a; a = a->next)
        if (a->key == key)
            return a->value;
    return NULL;
}

static void attachments_end(dscomm_group_t *group)
{
    attachment_t *attachment;

    while ((attachment = group->life.attachments)) {
        group->life.attachments = attachment->next;
        if (attachment->end)
            attachment->end(attachment->value);
        g_free(attachment);
    }
}

const dscomm_group_part_t dscomm_priv_attachments_part = {
    .end = attachments_end,
    .free = attachments_end,
};
