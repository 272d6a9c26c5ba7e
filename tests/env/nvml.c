/* SPDX-License-Identifier: BSD-3-Clause */
/* CUDA_VISIBLE_DEVICES with names of GPUs, which a stand-in for NVML knows. */
#include "config.h"

#include "env/devices.h"
#include "tests/tap.h"

#include <dlfcn.h>

static const struct {
    const char *visible;
    const char *want; /* addresses; NULL: none */
    const char *says;
} vectors[] = {
    {"GPU-8932f937-d72c-4106-c12f-20bd9faed9f6", "0000:03:00.0", NULL},
    {"GPU-57b, GPU-8932f", "0000:81:00.0,0000:03:00.0", NULL},
    {"GPU-8932", NULL, "several GPUs have names that begin with GPU-8932"},
    {"GPU-57b02a5a-1", NULL, "NVML knows no device GPU-57b02a5a-1"},
    {"GPU-8932f937,GPU-no", NULL, "NVML knows no device GPU-no"},
    {"MIG-5c89852c-d268-c3f3-1b07-005d5ae1dc3f", "0000:81:00.0", NULL},
    {"MIG-00000000-d268-c3f3-1b07-005d5ae1dc3f", NULL,
     "NVML knows no device MIG-00000000"},
    {"MIG-nowhere", NULL, "NVML knows no device MIG-nowhere"},
    {"fast", NULL, "has names in place of numbers"},
    {"GPU-57b,fast", NULL, "has names in place of numbers"},
};

static void check(const dscomm_topology_t *topology, size_t i)
{
    char *problem = NULL, *list = NULL;
    char **found =
        dscomm_priv_devices_visible(topology, vectors[i].visible, &problem);

    if (found)
        list = g_strjoinv(",", found);
    is_str(list ? list : "none", vectors[i].want ? vectors[i].want : "none",
           "'%s'", vectors[i].visible);
    ok(vectors[i].says ? problem && strstr(problem, vectors[i].says) : !problem,
       "%s", problem ? problem : "is known");
    g_strfreev(found);
    g_free(problem);
    g_free(list);
}

int main(void)
{
    const char *source = g_getenv("abs_top_srcdir");
    const char *build = g_getenv("abs_top_builddir");
    char *path = g_strdup_printf("%s/tests/tools/topo/machine.xml",
                                 source ? source : ".");
    char *library = g_strdup_printf(
        "%s/tests/tools/topo/.libs/libnvidia-ml.so.1", build ? build : ".");
    dscomm_topology_t *topology = dscomm_priv_topology_new(path, true);

    if (!topology)
        bail("%s is no machine", path);
    /* NVML knows this machine's GPUs only. */
    topology->is_other = false;
    /* A library of that name, which is found then. */
    if (!g_file_test(library, G_FILE_TEST_EXISTS)) {
        skip("the stand-in for NVML is no shared library");
    } else {
        if (!dlopen(library, RTLD_NOW))
            bail("%s", dlerror());
        if (!dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_NOLOAD))
            skip_all("libc does not find a loaded library by its SONAME");
        for (size_t i = 0; i < G_N_ELEMENTS(vectors); i++)
            check(topology, i);
    }
    dscomm_priv_topology_free(topology);
    g_free(path);
    g_free(library);
    return tap_done();
}
