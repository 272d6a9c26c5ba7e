/* SPDX-License-Identifier: BSD-3-Clause */
/* NVLinks of the GPUs of a tree, by a stand-in for NVML. */
#include "config.h"

#include "tests/tap.h"
#include "tools/topo/machine.h"
#include "tools/topo/nvml.h"

#include <dlfcn.h>

static topo_tree_t *tree;

static void is_link(guint a, guint b, const char *want)
{
    char *there =
        topo_link_text(topo_link(g_ptr_array_index(tree->devices, a),
                                 g_ptr_array_index(tree->devices, b)));
    char *back = topo_link_text(topo_link(g_ptr_array_index(tree->devices, b),
                                          g_ptr_array_index(tree->devices, a)));

    is_str(there, want, "GPU%u to GPU%u", a, b);
    is_str(back, want, "and back");
    g_free(there);
    g_free(back);
}

int main(void)
{
    const char *source = g_getenv("abs_top_srcdir");
    const char *build = g_getenv("abs_top_builddir");
    char *problem = NULL;
    char *path = g_strdup_printf("%s/tests/tools/topo/machine.xml",
                                 source ? source : ".");
    char *library = g_strdup_printf(
        "%s/tests/tools/topo/.libs/libnvidia-ml.so.1", build ? build : ".");
    const topo_node_t *first;

    tree = topo_machine(path, &problem);
    if (!tree)
        bail("%s", problem);
    is_link(0, 1, "PIX");
    /* A library of that name, which is found then. */
    if (!g_file_test(library, G_FILE_TEST_EXISTS)) {
        skip("the stand-in for NVML is no shared library");
    } else {
        if (!dlopen(library, RTLD_NOW))
            bail("%s", dlerror());
        if (!dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_NOLOAD)) {
            skip("libc does not find a loaded library by its SONAME");
            return tap_done();
        }
        ok(!topo_nvml_add(tree), "NVML is there");
        is_link(0, 1, "NV4");
        is_link(4, 5, "NV2");
        is_link(0, 4, "SYS");
        is_link(0, 2, "PHB");
        first = g_ptr_array_index(tree->devices, 0);
        is_str(first->name, "Example GPU 0", "its name is NVML's");
    }
    topo_tree_free(tree);
    g_free(path);
    g_free(library);
    return tap_done();
}
