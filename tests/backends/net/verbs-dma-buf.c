/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of other devices, which the wire ibverbs registers by their dma-bufs.
 */
#include "config.h"

#include "tests/backends/net/verbs-ranks.h"
#include "tests/tap.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef HAVE_IBV_REG_DMABUF_MR

/* Memory of a device: a file that only the fake device can access, at an
 * address where there is nothing. */
typedef struct {
    dscomm_dma_buf_t dma_buf;
    char *bytes; /* what is there, for the test */
    char *nowhere;
    size_t size;
} device_t;

enum { BYTES = 200000, FIRST = 1234 };

static device_t device_new(void)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    device_t device = {.size = BYTES + 3 * page};
    const int file = (int)syscall(SYS_memfd_create, "device", 0);

    if (file < 0 || ftruncate(file, (off_t)device.size))
        bail("no memory");
    device.bytes =
        mmap(NULL, device.size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    device.nowhere =
        mmap(NULL, device.size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (device.bytes == MAP_FAILED || device.nowhere == MAP_FAILED)
        bail("no memory");
    lseek(file, (off_t)page, SEEK_SET);
    device.dma_buf =
        (dscomm_dma_buf_t){.address = device.nowhere + page + FIRST,
                           .bytes = BYTES,
                           .descriptor = file,
                           .offset = FIRST};
    device.bytes += page + FIRST;
    return device;
}

static void device_free(const device_t *device)
{
    const size_t before =
        (size_t)((char *)device->dma_buf.address - device->nowhere);

    munmap(device->bytes - before, device->size);
    munmap(device->nowhere, device->size);
}

/* Rank 0 makes an access to rank 1's memory whose data are on its device. */
static dscomm_wire_frame_t *access_device(const device_t *device,
                                          void *registered, size_t first,
                                          size_t bytes,
                                          const unsigned char *key, int reads)
{
    dscomm_wire_frame_t *frame =
        frame_new((char *)device->dma_buf.address + first, bytes);
    dscomm_wire_put_t put = {.size = sizeof put,
                             .offset = first,
                             .is_access = 1,
                             .reads = reads,
                             .registered = registered};

    memcpy(put.key, key, sizeof put.key);
    if (verbs_wire.put(ranks[0].wire, 1, frame, &put))
        return frame;
    g_free(frame);
    return NULL;
}

/* The same with data on the host. */
static void access_host(const char *data, size_t bytes,
                        const unsigned char *key)
{
    dscomm_wire_frame_t *frame = frame_new(data, bytes);
    dscomm_wire_put_t put = {.size = sizeof put, .offset = 1, .is_access = 1};

    memcpy(put.key, key, sizeof put.key);
    verbs_wire.put(ranks[0].wire, 1, frame, &put);
}

static void test_device(void)
{
    static const size_t sizes[] = {1, 8, SLOT_BYTES, SLOT_BYTES + 1, BYTES - 1};
    device_t own = device_new(), there = device_new();
    unsigned char key[DSCOMM_WIRE_KEY], own_key[DSCOMM_WIRE_KEY];
    static char host[BYTES];
    void *exposed, *registered;
    unsigned registrations, sent = 1;

    fake_reset();
    both_connect();
    ok(!verbs_wire.expose_device(ranks[1].wire, &there.dma_buf, key),
       "a device that registers no memory of others");
    fake.dma_bufs = true;
    fake.fails[FAKE_REG_MR] = ENOMEM;
    ok(!verbs_wire.expose_device(ranks[1].wire, &there.dma_buf, key),
       "one that has no room for it");
    fake.fails[FAKE_REG_MR] = 0;
    registrations = fake.registrations;
    exposed = verbs_wire.expose_device(ranks[1].wire, &there.dma_buf, key);
    registered = verbs_wire.expose_device(ranks[0].wire, &own.dma_buf, own_key);
    close(there.dma_buf.descriptor);
    close(own.dma_buf.descriptor);
    ok(exposed && registered, "memory of a device can be exposed");
    for (size_t i = 0; i < G_N_ELEMENTS(sizes); i++, sent += 3) {
        memset(there.bytes, 0, BYTES);
        memset(host, (int)i + 1, sizes[i]);
        memset(own.bytes, (int)i + 11, BYTES);
        access_device(&own, registered, 1, sizes[i], key, 0);
        poll_both(10);
        ok(there.bytes[1] == (char)(i + 11) && !there.bytes[0] &&
               there.bytes[sizes[i]] == (char)(i + 11) &&
               (sizes[i] + 1 == BYTES || !there.bytes[sizes[i] + 1]),
           "%zu bytes are put from a device", sizes[i]);
        access_host(host, sizes[i], key);
        poll_both(10);
        access_device(&own, registered, 1, sizes[i], key, 1);
        poll_both(10);
        ok(own.bytes[0] == (char)(i + 11) &&
               !memcmp(own.bytes + 1, host, sizes[i]),
           "and got to it");
    }
    ok(ranks[0].sent == sent && !ranks[0].lost, "each has its end");
    is_int(fake.registrations - registrations, 4,
           "both devices are registered once");
    verbs_wire.conceal(ranks[0].wire, -1, registered, 0);
    verbs_wire.conceal(ranks[1].wire, -1, exposed, 0);
    access_host(host, 8, key);
    poll_both(10);
    ok(ranks[0].lost == 1 && ranks[0].kind == DSCOMM_FAILURE_PROTOCOL,
       "a put to memory that is concealed ends the connection");
    both_close("memory of devices");
    device_free(&own);
    device_free(&there);
}

/* Gets to a device that are given up write nothing there any more. */
static void test_device_ends(void)
{
    device_t own = device_new();
    unsigned char key[DSCOMM_WIRE_KEY], own_key[DSCOMM_WIRE_KEY];
    static char from[BYTES];
    void *exposed, *registered;
    dscomm_wire_frame_t *frames[2];
    int objects;

    fake_reset();
    fake.dma_bufs = true;
    both_connect();
    exposed = verbs_wire.expose(ranks[1].wire, -1, from, BYTES, key);
    registered = verbs_wire.expose_device(ranks[0].wire, &own.dma_buf, own_key);
    close(own.dma_buf.descriptor);
    objects = (int)fake.objects;
    for (int i = 0; i < 2; i++)
        frames[i] = access_device(&own, registered, 0, 8, key, 1);
    ok(frames[0]->pinned && frames[1]->pinned,
       "the device writes what short gets read");
    for (int i = 0; i < 2; i++)
        verbs_wire.stop(ranks[0].wire, 1, frames[i]);
    is_int(fake.objects, objects - 1,
           "which it cannot after they are given up");
    ok(!access_device(&own, registered, 0, 8, key, 0),
       "nor can other accesses of the memory then be made");
    verbs_wire.conceal(ranks[0].wire, -1, registered, 0);
    verbs_wire.conceal(ranks[1].wire, -1, exposed, 0);
    poll_both(10);
    both_close("gets to devices");
    device_free(&own);
}

int main(void)
{
    test_device();
    test_device_ends();
    return tap_done();
}

#else

int main(void)
{
    skip("this libibverbs has no ibv_reg_dmabuf_mr");
    return tap_done();
}

#endif
