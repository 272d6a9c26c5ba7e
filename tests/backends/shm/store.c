/* SPDX-License-Identifier: BSD-3-Clause */
/* Plain or streaming stores for messages: the choice by the times of a cache
 * line. */
#include "tests/backends/shm/fixture.h"

#include "backends/shm/copy.h"

#define BIG ((size_t)64 << 10)

enum { NEAR_NS = 25, FAR_NS = 150, INTERRUPTION_NS = 50000 };

static const struct {
    const char *what;
    unsigned ns[4];
    int store;
} cases[] = {
    {"near", {NEAR_NS, NEAR_NS, NEAR_NS, NEAR_NS}, SHM_PLAIN},
    {"far", {FAR_NS, FAR_NS, FAR_NS, FAR_NS}, SHM_STREAM},
    {"far at the first look", {FAR_NS}, SHM_STREAM},
    {"near with an interruption",
     {NEAR_NS, NEAR_NS, INTERRUPTION_NS},
     SHM_PLAIN},
    {"from near to far", {NEAR_NS, FAR_NS, FAR_NS, FAR_NS}, SHM_STREAM},
    {"from far to near", {FAR_NS, FAR_NS, NEAR_NS}, SHM_PLAIN},
};

static void test_learning(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        shm_path_t path;

        shm_path_init(&path, -1);
        for (int k = 0; k < 4 && cases[i].ns[k]; k++)
            shm_path_learn(&path, cases[i].ns[k]);
        is_int(path.store, cases[i].store, "%s: the right stores",
               cases[i].what);
    }
}

/* Copies of all sizes and alignments are complete, and change nothing else. */
static void test_copies(int store)
{
    static unsigned char from[BIG + 64], to[BIG + 192];
    static const size_t sizes[] = {0,    1,    63,   64,   255,  256,     257,
                                   1023, 1024, 4095, 4097, 9999, BIG - 1, BIG};
    _Atomic uint64_t word = 1;
    shm_path_t path;
    size_t wrong = 0;

    shm_path_init(&path, store);
    for (size_t i = 0; i < sizeof from; i++)
        from[i] = (unsigned char)(i * 7 + i / 256);
    for (size_t s = 0; s < G_N_ELEMENTS(sizes); s++) {
        for (size_t at = 0; at < 64; at += 9) {
            unsigned char *dest = to + 64 + at;

            memset(to, 0xa5, sizeof to);
            word++;
            shm_path_copy(&path, &word, dest, from + at / 2, sizes[s]);
            wrong += memcmp(dest, from + at / 2, sizes[s]) != 0 ||
                     dest[-1] != 0xa5 || dest[sizes[s]] != 0xa5;
        }
    }
    is_int((long long)wrong, 0, "stores %d: all copies are right", store);
    if (store >= 0)
        is_int(path.store, store, "stores %d: as they were set", store);
}

/* The sender's own cache has the word, so no measurement is possible. */
static void test_unchanged(void)
{
    _Atomic uint64_t word = 7;
    shm_path_t path;

    shm_path_init(&path, -1);
    path.seen = word;
    for (int i = 0; i < 100; i++)
        shm_path_look(&path, &word);
    is_int(path.samples, 0, "a word that nobody writes tells nothing");
    is_int(path.left, 1, "until one does, every copy looks");
}

int main(void)
{
    test_learning();
    test_copies(-1);
    test_copies(SHM_PLAIN);
    test_copies(SHM_STREAM);
    test_unchanged();
    return tap_done();
}
