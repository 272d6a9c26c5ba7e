/* SPDX-License-Identifier: BSD-3-Clause */
/* The devices of fake-verbs.h, with their ports and GIDs. */
#include "config.h"

#include "tests/backends/net/fake-verbs.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static struct ibv_device devices[FAKE_DEVICES];

static const fake_device_t *device_of(const struct ibv_device *device)
{
    return &fake.device[device - devices];
}

struct ibv_device **ibv_get_device_list(int *count)
{
    struct ibv_device **list = g_new0(struct ibv_device *, fake.devices + 1);

    for (unsigned i = 0; i < fake.devices; i++) {
        /* The last one by name is listed first. */
        struct ibv_device *device = &devices[fake.devices - 1 - i];

        snprintf(device->name, sizeof device->name, "fake%u",
                 fake.devices - 1 - i);
        device->transport_type = device_of(device)->transport;
        g_strlcpy(device->ibdev_path,
                  device_of(device)->path ? device_of(device)->path : "",
                  sizeof device->ibdev_path);
        list[i] = device;
    }
    *count = (int)fake.devices;
    return list;
}

void ibv_free_device_list(struct ibv_device **list)
{
    g_free(list);
}

const char *ibv_get_device_name(struct ibv_device *device)
{
    return device->name;
}

int ibv_fork_init(void)
{
    return 0;
}

int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
    if (fake_fails(FAKE_QUERY_DEVICE))
        return errno;
    *attr = (struct ibv_device_attr){
        .phys_port_cnt = device_of(context->device)->ports,
        .vendor_id = device_of(context->device)->emulated ? 0xffffff : 0x2c9,
        .max_cqe = fake.max_cqe,
        .max_qp_rd_atom = fake.max_reads,
        .max_qp_init_rd_atom = fake.max_reads,
        .max_srq_wr = fake.max_srq_wr};
    return 0;
}

int(ibv_query_port)(struct ibv_context *context, uint8_t port,
                    struct _compat_ibv_port_attr *attr)
{
    struct ibv_port_attr *full = (struct ibv_port_attr *)attr;

    if (fake_fails(FAKE_QUERY_PORT))
        return errno;
    full->state = device_of(context->device)->down >> port & 1 ? IBV_PORT_DOWN
                                                               : fake.state;
    full->active_mtu = IBV_MTU_4096;
    full->max_msg_sz = fake.max_msg_sz;
    full->link_layer = fake.link_layer;
    full->gid_tbl_len = 3;
    full->active_width = 2; /* 4 lanes of 25 Gbit/s */
    full->active_speed = 32;
    return 0;
}

/* Writes the GIDs of a port; returns their number. */
static uint32_t gids_write(struct ibv_gid_entry *entries, uint32_t port)
{
    static const uint8_t types[] = {IBV_GID_TYPE_ROCE_V1, IBV_GID_TYPE_ROCE_V2,
                                    IBV_GID_TYPE_ROCE_V2};

    for (uint32_t i = 0; i < 3; i++) {
        entries[i] = (struct ibv_gid_entry){
            .gid_index = i, .port_num = port, .gid_type = types[i]};
        entries[i].gid.raw[0] = 0xfe;
        entries[i].gid.raw[1] = 0x80;
        if (fake.link_layer == IBV_LINK_LAYER_INFINIBAND)
            entries[i].gid_type = IBV_GID_TYPE_IB;
    }
    /* The last one is of IPv4. */
    memset(entries[2].gid.raw, 0, 16);
    entries[2].gid.raw[10] = entries[2].gid.raw[11] = 0xff;
    entries[2].gid.raw[12] = 10;
    return 3;
}

ssize_t _ibv_query_gid_table(struct ibv_context *context,
                             struct ibv_gid_entry *entries, size_t most,
                             uint32_t flags, size_t entry_size)
{
    const fake_device_t *device = device_of(context->device);
    uint32_t count = 0;

    (void)flags;
    g_assert(entry_size == sizeof *entries);
    if (fake_fails(FAKE_QUERY_GIDS))
        return -errno;
    g_assert(device->ports * (size_t)3 <= most);
    for (uint32_t p = 1; !device->no_gids && p <= device->ports; p++)
        count += gids_write(entries + count, p);
    return count;
}
