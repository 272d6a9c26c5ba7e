/* SPDX-License-Identifier: BSD-3-Clause */
/* The descriptors that this process has open. */
#ifndef TESTS_DESCRIPTORS_H
#define TESTS_DESCRIPTORS_H

#include <dirent.h>

/* Returns their number, and always the same more: ".", "..", and that of the
 * folder itself. */
static inline int descriptors_count(void)
{
    DIR *folder = opendir("/proc/self/fd");
    int count = 0;

    while (folder && readdir(folder))
        count++;
    if (folder)
        closedir(folder);
    return count;
}

#endif
