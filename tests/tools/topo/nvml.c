/* SPDX-License-Identifier: BSD-3-Clause */
/* NVML of some GPUs of machine.xml: four NVLinks between two of them, and of
 * two others six and two to switches. The third one has a part, PART, and one
 * more that is nowhere. */
#include <stdio.h>
#include <string.h>

#define NOT_SUPPORTED 3
#define GPUS 4
#define LINKS 18
#define PART "MIG-5c89852c-d268-c3f3-1b07-005d5ae1dc3f"
#define LOST_PART "MIG-00000000-d268-c3f3-1b07-005d5ae1dc3f"

typedef struct {
    char bus_legacy[16];
    unsigned domain, bus, device, ids, subsystem;
    char bus_id[32];
} pci_t;

static const struct {
    unsigned domain, bus;
    int links;
    unsigned target; /* bus */
    const char *uuid;
} gpus[GPUS] = {{0, 0x03, 4, 0x04, "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6"},
                {0, 0x04, 4, 0x03, "GPU-8932a111-d72c-4106-c12f-20bd9faed9f6"},
                {0, 0x81, 6, 0xf0, "GPU-57b02a5a-0001-4106-c12f-20bd9faed9f6"},
                {1, 0x01, 2, 0xf1, "GPU-6b1f0e0c-0001-4106-c12f-20bd9faed9f6"}};
static const char parts[2];

int nvmlInit_v2(void)
{
    return 0;
}

int nvmlShutdown(void)
{
    return 0;
}

int nvmlDeviceGetCount_v2(unsigned *count)
{
    *count = GPUS;
    return 0;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device)
{
    *device = (void *)&gpus[index];
    return index < GPUS ? 0 : 2;
}

static int index_of(const void *device)
{
    return (int)((const char *)device - (const char *)gpus) /
           (int)sizeof gpus[0];
}

int nvmlDeviceGetPciInfo_v3(void *device, pci_t *pci)
{
    memset(pci, 0, sizeof *pci);
    pci->domain = gpus[index_of(device)].domain;
    pci->bus = gpus[index_of(device)].bus;
    return 0;
}

int nvmlDeviceGetUUID(void *device, char *uuid, unsigned size)
{
    snprintf(uuid, size, "%s", gpus[index_of(device)].uuid);
    return 0;
}

int nvmlDeviceGetHandleByUUID(const char *uuid, void **device)
{
    const int number = strcmp(uuid, PART) ? 1 : 0;

    *device = (void *)&parts[number];
    return number && strcmp(uuid, LOST_PART) != 0 ? 6 : 0;
}

int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(void *part, void **device)
{
    *device = (void *)&gpus[2];
    return part == &parts[0] ? 0 : NOT_SUPPORTED;
}

int nvmlDeviceGetName(void *device, char *name, unsigned size)
{
    snprintf(name, size, "Example GPU %d", index_of(device));
    return 0;
}

/* The first links of each GPU are enabled, one is off, and there are no more.
 */
int nvmlDeviceGetNvLinkState(void *device, unsigned link, int *state)
{
    const int links = gpus[index_of(device)].links;

    *state = (int)link < links;
    return (int)link <= links ? 0 : NOT_SUPPORTED;
}

int nvmlDeviceGetNvLinkRemotePciInfo_v2(void *device, unsigned link, pci_t *pci)
{
    (void)link;
    memset(pci, 0, sizeof *pci);
    pci->bus = gpus[index_of(device)].target;
    return 0;
}
