/* SPDX-License-Identifier: BSD-3-Clause */
/* Channels: frames and chunks of random sizes, written and read in random
 * order, arrive once, in order and complete. */
#include "tests/backends/shm/fixture.h"

#include "backends/shm/channel.h"

#define MESSAGES 20000

static uint32_t next_random(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

/* The size and the bytes of message number i are the same on both sides. */
static size_t message_size(int i, size_t most)
{
    uint32_t state = (uint32_t)i;

    next_random(&state);
    return next_random(&state) % 3 ? next_random(&state) % 100
                                   : next_random(&state) % (most + 1);
}

static bool put_frame(shm_end_t *end, int i)
{
    size_t size = message_size(i, end->eager);
    shm_frame_t *frame = shm_frame_reserve(end, size);

    if (!frame)
        return false;
    frame->kind = FRAME_EAGER;
    frame->tag = i;
    frame->size = (uint16_t)size;
    /* Bytes of 0x01 look like flags of early frames, bytes of 0xff like no
     * flag. */
    memset(shm_frame_payload(end, frame, size), i % 2 ? 1 : i, size);
    shm_frame_commit(end, frame, size);
    return true;
}

/* Returns 1 if a frame was received, 0 if there is none, -1 if it is wrong. */
static int get_frame(shm_end_t *end, int i)
{
    shm_frame_t *frame = shm_frame_peek(end);
    const unsigned char *payload;
    bool right;

    if (!frame)
        return 0;
    right = frame->tag == i && frame->size == message_size(i, end->eager);
    payload = shm_frame_payload(end, frame, frame->size);
    for (size_t j = 0; right && j < frame->size; j++)
        right = payload[j] == (unsigned char)(i % 2 ? 1 : i);
    shm_frame_release(end, frame);
    return right ? 1 : -1;
}

static void test_frames(shm_t **shms)
{
    shm_end_t out, in;
    uint32_t state = 3;
    int sent = 0, received = 0, wrong = 0, full = 0;

    shm_end_init(&out, shms[0], 0, 1);
    shm_end_init(&in, shms[1], 0, 1);
    while (received < MESSAGES) {
        int result;

        for (uint32_t n = next_random(&state) % 20; n && sent < MESSAGES; n--) {
            if (!put_frame(&out, sent)) {
                full++;
                break;
            }
            sent++;
        }
        for (uint32_t n = next_random(&state) % 20; n; n--) {
            result = get_frame(&in, received);
            if (!result)
                break;
            received++;
            wrong += result < 0;
        }
    }
    is_int(wrong, 0, "%d frames arrive whole and in order", MESSAGES);
    ok(full > 0, "although the ring was full at times");
    ok(!shm_frame_peek(&in), "and nothing comes behind them");
}

/* The largest payload inside a frame, the smallest outside, and the longest one
 * do not overlap each other, nor the memory after them. */
static void test_long(shm_t **shms)
{
    shm_end_t out, in;

    shm_end_init(&out, shms[0], 0, 1);
    shm_end_init(&in, shms[1], 0, 1);
    for (int round = 0; round < 40; round++) {
        const size_t sizes[] = {out.inside, out.inside + 1, out.eager};
        int wrong = 0;

        for (int i = 0; i < 3; i++) {
            shm_frame_t *frame = shm_frame_reserve(&out, sizes[i]);

            if (!frame)
                bail("no room for %zu bytes", sizes[i]);
            frame->kind = FRAME_EAGER;
            frame->size = (uint16_t)sizes[i];
            memset(shm_frame_payload(&out, frame, sizes[i]), round + i,
                   sizes[i]);
            shm_frame_commit(&out, frame, sizes[i]);
        }
        for (int i = 0; i < 3; i++) {
            shm_frame_t *frame = shm_frame_peek(&in);
            const unsigned char *payload =
                shm_frame_payload(&in, frame, sizes[i]);

            for (size_t j = 0; j < sizes[i]; j++)
                wrong += payload[j] != (unsigned char)(round + i);
            shm_frame_release(&in, frame);
        }
        if (wrong || round == 39)
            is_int(wrong, 0, "payloads of %zu, %zu and %zu bytes", sizes[0],
                   sizes[1], sizes[2]);
    }
}

static void test_full(shm_t **shms)
{
    shm_end_t out, in;
    int sent = 0, received = 0;

    shm_end_init(&out, shms[1], 1, 0);
    shm_end_init(&in, shms[0], 1, 0);
    while (put_frame(&out, sent))
        sent++;
    ok(sent > 10, "a ring takes %d frames", sent);
    ok(!put_frame(&out, sent), "and no more");
    while (get_frame(&in, received) > 0)
        received++;
    is_int(received, sent, "all come out");
    ok(put_frame(&out, sent), "then there is room again");
}

static void test_chunks(shm_t **shms)
{
    size_t total = 5000001, sent = 0, received = 0, n;
    uint64_t id = 0;
    bool named = true;
    unsigned char *source = g_malloc(total), *dest = g_malloc0(total);
    shm_end_t out, in;

    shm_end_init(&out, shms[0], 0, 1);
    shm_end_init(&in, shms[1], 0, 1);
    for (size_t i = 0; i < total; i++)
        source[i] = (unsigned char)(i * 2654435761u >> 24);
    ok(!shm_chunk_peek(&in, &id), "an empty bulk ring is empty");
    while (received < total) {
        while (sent < total &&
               (n = shm_chunk_put(&out, total, source + sent, total - sent)))
            sent += n;
        while (shm_chunk_peek(&in, &id)) {
            named = named && id == total;
            received +=
                shm_chunk_get(&in, dest + received, total - received, false);
        }
    }
    ok(!memcmp(source, dest, total), "5000001 bytes arrive in chunks");
    ok(named && received == sent, "which name their message");
    shm_chunk_put(&out, 7, source, 1000);
    memset(dest, 0, 1000);
    is_int((long long)shm_chunk_get(&in, dest, 10, true), 1000,
           "a short receive takes a whole chunk");
    ok(!memcmp(source, dest, 10) && !dest[10], "and keeps its beginning");
    g_free(source);
    g_free(dest);
}

static void test_sizes(void)
{
    for (int ranks = 2; ranks <= 64; ranks *= 2) {
        shm_t *shms[1];
        shm_layout_t layout;
        shm_end_t end;
        int fd = -1;

        shm_layout_make(ranks, &layout);
        if (shm_segment_create("test", &layout, &fd))
            bail("%s", dscomm_last_error());
        shms[0] = fixture_rank(0, ranks, &layout, fd);
        close(fd);
        shm_end_init(&end, shms[0], 0, 1);
        ok(end.nchunks >= 3 && end.chunk_bytes >= 4096 && end.eager >= 1024 &&
               end.chunk + end.nchunks * end.chunk_bytes <=
                   (unsigned char *)end.credit + layout.channel_size,
           "a channel of %d ranks: %zu chunks of %zu, eager to %zu", ranks,
           end.nchunks, end.chunk_bytes, end.eager);
        fixture_close(shms, 1);
    }
}

int main(void)
{
    shm_t *shms[2];

    g_setenv("DSCOMM_SHM_CHANNEL", "64K", TRUE);
    fixture_open(shms, 2);
    test_long(shms);
    fixture_close(shms, 2);
    fixture_open(shms, 2);
    test_frames(shms);
    test_full(shms);
    fixture_close(shms, 2);
    fixture_open(shms, 2);
    test_chunks(shms);
    fixture_close(shms, 2);
    g_unsetenv("DSCOMM_SHM_CHANNEL");
    test_sizes();
    return tap_done();
}
