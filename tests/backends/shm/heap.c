/* SPDX-License-Identifier: BSD-3-Clause */
/* The shared heap: allocations compared with a simple model, and references in
 * both directions. */
#include "tests/backends/shm/fixture.h"

#define BLOCKS 64
#define ROUNDS 4000

static uint32_t next_random(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

/* Blocks do not overlap, keep their bytes, and begin as zeros. */
static void test_random(shm_t *shm)
{
    unsigned char *block[BLOCKS] = {NULL};
    size_t size[BLOCKS] = {0};
    uint32_t state = 7;
    int dirty = 0, damaged = 0, failed = 0;
    void *whole;

    for (int i = 0; i < ROUNDS; i++) {
        uint32_t k = next_random(&state) % BLOCKS;

        if (block[k]) {
            for (size_t j = 0; j < size[k]; j += 511)
                damaged += block[k][j] != (unsigned char)k;
            failed += shm_mem_free(shm, block[k]) != DSCOMM_OK;
            block[k] = NULL;
            continue;
        }
        size[k] = next_random(&state) % 40000;
        if (shm_mem_alloc(shm, size[k], (void **)&block[k])) {
            failed++;
            continue;
        }
        for (size_t j = 0; j < size[k]; j += 97)
            dirty += block[k][j] != 0;
        memset(block[k], (int)k, size[k]);
    }
    is_int(failed, 0, "no call fails");
    is_int(dirty, 0, "all memory comes zeroed");
    is_int(damaged, 0, "no block changes another");
    for (int k = 0; k < BLOCKS; k++)
        if (block[k])
            shm_mem_free(shm, block[k]);
    is_int(shm_mem_alloc(shm, shm->layout.heap_size, &whole), DSCOMM_OK,
           "all freed, the whole heap is one block again");
    is_int(shm_mem_alloc(shm, 1, (void **)&block[0]), DSCOMM_ERR_NO_MEMORY,
           "beyond the heap there is nothing");
    ok(strstr(dscomm_last_error(), "DSCOMM_SHM_HEAP") != NULL,
       "and the sentence names the setting");
    is_int(shm_mem_free(shm, whole), DSCOMM_OK, "it can be freed");
    is_int(shm_mem_free(shm, whole), DSCOMM_ERR_INVALID, "but once only");
    is_int(shm_mem_free(shm, &whole), DSCOMM_ERR_INVALID,
           "foreign memory is refused");
}

/* The linker replaces malloc() by this function, for GLib, too, if symbols of
 * libc have no versions. */
static bool is_out_of_memory;
void *__real_malloc(size_t size);
__attribute__((visibility("default"))) void *__wrap_malloc(size_t size);

void *__wrap_malloc(size_t size)
{
    return is_out_of_memory ? NULL : __real_malloc(size);
}

/* The heap has room, but there is no memory for the list of its parts. */
static void test_no_memory(shm_t *shm)
{
    dscomm_status_t status;
    void *memory;

    is_out_of_memory = true;
    status = shm_mem_alloc(shm, 1, &memory);
    is_out_of_memory = false;
    is_int(status, DSCOMM_ERR_NO_MEMORY, "a failed malloc is no memory");
    ok(g_str_has_prefix(dscomm_last_error(), "rank 0 (pid ") &&
           g_str_has_suffix(dscomm_last_error(),
                            "): group 'test': no memory to note a part of the "
                            "shared heap"),
       "which the sentence says: %s", dscomm_last_error());
    is_int(shm_mem_alloc(shm, 1, &memory), DSCOMM_OK, "the next one succeeds");
    shm_mem_free(shm, memory);
}

static void test_references(shm_t *a, shm_t *b)
{
    unsigned char *memory, *seen;
    uint64_t reference;
    int outside;

    if (shm_mem_alloc(a, 10000, (void **)&memory))
        bail("%s", dscomm_last_error());
    reference = shm_heap_reference(a, memory + 100, 500);
    ok(reference > 0, "memory of the heap has a reference");
    seen = shm_heap_resolve(b, 0, reference, 500);
    ok(seen != NULL, "a peer resolves it");
    memory[100 + 499] = 42;
    is_int(seen ? seen[499] : -1, 42, "and sees the owner's bytes");
    is_int((long long)shm_heap_reference(a, &outside, sizeof outside), 0,
           "other memory has none");
    is_int((long long)shm_heap_reference(a, memory, a->layout.heap_size + 1), 0,
           "nor has a range beyond the heap's end");
    ok(!shm_heap_resolve(b, 0, a->layout.heap_size + 1, 1),
       "a reference beyond the heap is refused");
    ok(!shm_heap_resolve(b, 0, a->layout.heap_size, 2),
       "so is one that ends beyond it");
    shm_mem_free(a, memory);
}

/* A peer that does not know yet that the group is revoked may write its result
 * into memory that was freed here: that memory is not given out again. */
static void test_revoked(shm_t *shm)
{
    const dscomm_failure_t broken = {.status = DSCOMM_ERR_ABORTED,
                                     .kind = DSCOMM_FAILURE_ABORTED,
                                     .rank = -1,
                                     .detail = "broken"};
    void *before, *after;

    if (shm_mem_alloc(shm, 10000, &before))
        bail("%s", dscomm_last_error());
    shm_revoke(shm, &broken);
    is_int(shm_mem_free(shm, before), DSCOMM_OK, "freed on a broken group");
    is_int(shm_mem_alloc(shm, 10000, &after), DSCOMM_OK, "allocated anew");
    ok(after != before, "elsewhere");
}

int main(void)
{
    shm_t *shms[2];

    g_setenv("DSCOMM_SHM_HEAP", "4M", TRUE);
    fixture_open(shms, 2);
    test_random(shms[0]);
    test_no_memory(shms[0]);
    test_references(shms[0], shms[1]);
    test_revoked(shms[0]);
    fixture_close(shms, 2);
    return tap_done();
}
