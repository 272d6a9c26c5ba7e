/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks that a file is a complete shared object, because dlopen() of a
 * truncated one raises SIGBUS. */
#include "config.h"

#include "lib/module/module.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <link.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CLASS (sizeof(ElfW(Addr)) == 8 ? ELFCLASS64 : ELFCLASS32)

#if G_BYTE_ORDER == G_LITTLE_ENDIAN
#define ORDER ELFDATA2LSB
#else
#define ORDER ELFDATA2MSB
#endif

typedef struct {
    int fd;
    uint64_t size;
} file_t;

static int file_has(const file_t *file, uint64_t offset, uint64_t size)
{
    return offset <= file->size && size <= file->size - offset;
}

static int read_at(const file_t *file, uint64_t offset, void *data, size_t size)
{
    char *next = data;

    if (!file_has(file, offset, size))
        return 0;
    while (size) {
        ssize_t got = pread(file->fd, next, size, (off_t)offset);

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return 0;
        next += got;
        offset += (uint64_t)got;
        size -= (size_t)got;
    }
    return 1;
}

static int is_whole(const file_t *file)
{
    ElfW(Ehdr) header;
    ElfW(Phdr) program;

    if (!read_at(file, 0, &header, sizeof header) ||
        memcmp(header.e_ident, ELFMAG, SELFMAG) ||
        header.e_ident[EI_CLASS] != CLASS || header.e_ident[EI_DATA] != ORDER ||
        header.e_type != ET_DYN || header.e_phentsize != sizeof program ||
        !header.e_phnum)
        return 0;
    if (header.e_shoff &&
        !file_has(file, header.e_shoff,
                  (uint64_t)header.e_shnum * header.e_shentsize))
        return 0;
    for (unsigned i = 0; i < header.e_phnum; i++)
        if (!read_at(file, header.e_phoff + (uint64_t)i * sizeof program,
                     &program, sizeof program) ||
            !file_has(file, program.p_offset, program.p_filesz))
            return 0;
    return 1;
}

/* The machine type is not checked, because dlopen()'s message names it. */
char *dscomm_priv_check_shared_object(const char *path)
{
    /* opening a FIFO must not block */
    file_t file = {.fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
    struct stat info;
    char *why = NULL;

    if (file.fd < 0)
        return g_strdup_printf("it cannot be opened: %s", strerror(errno));
    if (fstat(file.fd, &info) == 0 && S_ISREG(info.st_mode))
        file.size = (uint64_t)info.st_size;
    if (!is_whole(&file))
        why = g_strdup("it is cut off or no shared object; install it again");
    close(file.fd);
    return why;
}
