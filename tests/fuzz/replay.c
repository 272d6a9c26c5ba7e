/* SPDX-License-Identifier: BSD-3-Clause */
/* main() for a fuzz target without a fuzzer: runs it with every file of its
 * corpus, with beginnings of each file, and with changes of each file that are
 * the same in every run. A target that crashes, hangs or leaks under a
 * sanitizer fails.
 *
 *     tests/fuzz/NAME.t [FILE...]
 *
 * Without arguments it uses $abs_top_srcdir/tests/fuzz/corpus/NAME. FUZZ_SEED=N
 * in the environment selects other changes. */
#include "config.h"

#include "tests/tap.h"

#include <dirent.h>
#include <stdint.h>
#include <stdlib.h>

#define CUTS 600 /* number of beginnings of a file that are tried */
#define CHANGES 200

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint32_t state;

static uint32_t draw(uint32_t below)
{
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return state % below;
}

/* Copies the bytes to memory of exactly that size, so that an access beyond it
 * is detected. */
static int try_bytes(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size ? size : 1);
    int result;

    if (!copy)
        bail("no memory");
    memcpy(copy, data, size);
    result = LLVMFuzzerTestOneInput(copy, size);
    free(copy);
    return result;
}

static void try_beginnings(const uint8_t *data, size_t size)
{
    const size_t step = size / CUTS + 1;

    for (size_t cut = 0; cut < size; cut += step)
        try_bytes(data, cut);
}

/* Makes one change: of a byte, a bit, or 1, 4 or 8 bytes to an extreme value;
 * or doubles or removes a part. */
static size_t change(uint8_t *data, size_t size)
{
    const size_t at = draw((uint32_t)size);
    size_t part = 1 + draw(16);
    static const uint8_t extremes[] = {0, 0x7f, 0x80, 0xff};

    part = part < size - at ? part : size - at;
    switch (draw(5)) {
    case 0:
        data[at] = (uint8_t)draw(256);
        return size;
    case 1:
        data[at] ^= (uint8_t)(1u << draw(8));
        return size;
    case 2:
        memset(data + at, extremes[draw(4)], part);
        return size;
    case 3:
        memmove(data + at + part, data + at, size - at); /* there is room */
        return size + part;
    default:
        memmove(data + at, data + at + part, size - at - part);
        return size - part;
    }
}

/* Returns the first state of the random numbers; xorshift cannot use 0. */
static uint32_t first_state(void)
{
    const char *seed = getenv("FUZZ_SEED");
    const uint32_t first = seed ? (uint32_t)strtoul(seed, NULL, 10) : 0;

    return first ? first * 2654435761u : 20261121;
}

static void try_changes(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size + 8 * 16);

    if (!copy)
        bail("no memory");
    state = first_state();
    for (int i = 0; i < CHANGES && size; i++) {
        size_t now = size;

        memcpy(copy, data, size);
        for (uint32_t n = 1 + draw(8); n && now; n--)
            now = change(copy, now);
        try_bytes(copy, now);
    }
    free(copy);
}

static void replay(const char *path)
{
    FILE *file = fopen(path, "rb");
    static uint8_t data[1 << 20];
    size_t size;
    int result;

    if (!file)
        bail("cannot open %s", path);
    size = fread(data, 1, sizeof data, file);
    fclose(file);
    result = try_bytes(data, size);
    try_beginnings(data, size);
    try_changes(data, size);
    is_int(result, 0, "%s: %zu bytes, cut and changed", strrchr(path, '/') + 1,
           size);
}

static int is_file(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

int main(int argc, char **argv)
{
    const char *top = getenv("abs_top_srcdir");
    char folder[1024], path[2048];
    struct dirent **entries;
    int count;

    for (int i = 1; i < argc; i++) {
        snprintf(path, sizeof path, "./%s", argv[i]);
        replay(argv[i][0] == '/' ? argv[i] : path);
    }
    if (argc > 1)
        return tap_done();
    snprintf(folder, sizeof folder, "%s/tests/fuzz/corpus/%s", top ? top : ".",
             FUZZ_NAME);
    count = scandir(folder, &entries, is_file, alphasort);
    ok(count > 0, "%d files in %s", count, FUZZ_NAME);
    for (int i = 0; i < count; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
        replay(path);
        free(entries[i]);
    }
    if (count >= 0)
        free(entries);
    return tap_done();
}
