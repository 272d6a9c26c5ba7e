/* SPDX-License-Identifier: BSD-3-Clause */
/* Attachments: values that other libraries keep with a group. */
#include "config.h"

#include "lib/group/group.h"

#include "lib/base/status.h"

struct dscomm_attachment {
    SLIST_ENTRY(dscomm_attachment) link;
    const void *key;
    void *value;
    void (*end)(void *value);
};

typedef struct dscomm_attachment attachment_t;

static attachment_t *attachment_find(const dscomm_group_t *group,
                                     const void *key)
{
    attachment_t *attachment;

    SLIST_FOREACH (attachment, &group->life.attachments, link)
        if (attachment->key == key)
            break;
    return attachment;
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
    attachment = attachment_find(group, key);
    if (attachment)
        SLIST_REMOVE(&group->life.attachments, attachment, dscomm_attachment,
                     link);
    g_free(attachment);
    if (!value)
        return DSCOMM_OK;
    attachment = g_try_new(attachment_t, 1);
    if (!attachment)
        return dscomm_fail(DSCOMM_ERR_NO_MEMORY, "%s on group '%s': no memory",
                           name, group->identity.name);
    *attachment = (attachment_t){.key = key, .value = value, .end = end};
    SLIST_INSERT_HEAD(&group->life.attachments, attachment, link);
    return DSCOMM_OK;
}

void *dscomm_group_attached(const dscomm_group_t *group, const void *key)
{
    const attachment_t *attachment = NULL;

    if (dscomm_priv_group_alive(group, "dscomm_group_attached") == DSCOMM_OK)
        attachment = attachment_find(group, key);
    return attachment ? attachment->value : NULL;
}

static void attachments_end(dscomm_group_t *group)
{
    attachment_t *attachment;

    while ((attachment = SLIST_FIRST(&group->life.attachments))) {
        SLIST_REMOVE_HEAD(&group->life.attachments, link);
        if (attachment->end)
            attachment->end(attachment->value);
        g_free(attachment);
    }
}

const dscomm_group_part_t dscomm_priv_attachments_part = {
    .on[PART_END] = attachments_end,
    .on[PART_FREE] = attachments_end,
};
