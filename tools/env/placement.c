/* SPDX-License-Identifier: BSD-3-Clause */
/* Placement, see placement.h. */
#include "config.h"

#include "tools/env/placement.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NODES "sys/devices/system/node"

/* Processors among which ranks choose: a NUMA node, or what is near a device.
 */
typedef struct {
    tool_processors_t set;
    int node; /* -1: unknown */
    char *name; /* for sentences; NULL: nothing is known */
    char *absent; /* a device that is not there; or NULL */
} domain_t;

typedef struct {
    const tool_placement_question_t *question;
    const char *const *devices; /* NULL: none is named */
    tool_processors_t online, allowed;
    domain_t *domains; /* one a device, or one a NUMA node */
    int count;
    tool_placement_t *result;
} state_t;

char *tool_pci_address(const char *text)
{
    unsigned domain, bus, device, function;
    int end = 0;

    if (sscanf(text, "%8x:%2x:%2x.%1x%n", &domain, &bus, &device, &function,
               &end) != 4) {
        domain = 0;
        end = 0;
        if (sscanf(text, "%2x:%2x.%1x%n", &bus, &device, &function, &end) != 3)
            return NULL;
    }
    if (text[end] || text[strspn(text, "0123456789abcdefABCDEF:.")] ||
        device > 0x1f || function > 7)
        return NULL;
    return g_strdup_printf("%04x:%02x:%02x.%x", domain, bus, device, function);
}

static gboolean node_processors(const char *root, int node,
                                tool_processors_t *set)
{
    char *path = g_strdup_printf(NODES "/node%d/cpulist", node);
    gboolean good = tool_processors_read(root, path, set);

    g_free(path);
    return good;
}

/* Of a folder of sysfs; -1: it does not tell. */
static int read_node(const char *folder)
{
    char *path = g_strconcat(folder, "/numa_node", NULL);
    char *text = NULL;
    int node = -1;

    if (g_file_get_contents(path, &text, NULL, NULL))
        node = atoi(text);
    g_free(text);
    g_free(path);
    return node;
}

/* Firmware that does not tell the device's node may tell that of a bridge above
 * it. */
static int device_node(const char *root, const char *address)
{
    char *path = g_strdup_printf("%s/sys/bus/pci/devices/%s", root, address);
    char *at = realpath(path, NULL);
    int node = -1;

    while (at && node < 0) {
        char *slash = strrchr(at, '/');

        node = read_node(at);
        if (!slash || slash == at || !strstr(at, "/pci"))
            break;
        *slash = '\0';
    }
    free(at);
    g_free(path);
    return node;
}

/* "All processors" is what a machine says that knows nothing. */
static void read_device(const state_t *s, const char *text, domain_t *domain)
{
    const char *root = s->question->root;
    char *address = tool_pci_address(text);
    char *path;

    domain->node = -1;
    if (!address)
        return;
    domain->node = device_node(root, address);
    path = g_strdup_printf("sys/bus/pci/devices/%s/local_cpulist", address);
    if (domain->node >= 0 && node_processors(root, domain->node, &domain->set))
        domain->name =
            g_strdup_printf("NUMA node %d, near %s", domain->node, address);
    else if (tool_processors_read(root, path, &domain->set) &&
             memcmp(&domain->set, &s->online, sizeof s->online) != 0)
        domain->name = g_strdup_printf("those near %s", address);
    g_free(path);
    path = g_strdup_printf("%s/sys/bus/pci/devices/%s", root, address);
    if (!g_file_test(path, G_FILE_TEST_EXISTS))
        domain->absent = g_steal_pointer(&address);
    g_free(path);
    g_free(address);
}

static void read_devices(state_t *s)
{
    s->count = (int)g_strv_length((char **)s->devices);
    s->domains = g_new0(domain_t, s->count);
    for (int i = 0; i < s->count; i++)
        read_device(s, s->devices[i], &s->domains[i]);
}

/* Those with processors that may be used; the whole machine where it has no
 * nodes. */
static void read_nodes(state_t *s)
{
    GPtrArray *names = tool_root_names(s->question->root, NODES);

    s->domains = g_new0(domain_t, names->len + 1);
    for (int i = 0; i < 1024; i++) {
        domain_t *domain = &s->domains[s->count];
        tool_processors_t some;
        char *name = g_strdup_printf("node%d", i);
        gboolean there =
            g_ptr_array_find_with_equal_func(names, name, g_str_equal, NULL) &&
            node_processors(s->question->root, i, &domain->set);

        g_free(name);
        some = domain->set;
        tool_processors_intersect(&some, &s->allowed);
        if (!there || !tool_processors_count(&some))
            continue;
        domain->node = i;
        domain->name = g_strdup_printf("NUMA node %d", i);
        s->count++;
    }
    g_ptr_array_unref(names);
    if (s->count)
        return;
    s->domains[0] = (domain_t){s->online, -1, g_strdup("this machine"), NULL};
    s->count = 1;
}

/* Devices go round; NUMA nodes get neighbours. */
static int domain_of(const state_t *s, int local_rank)
{
    if (s->devices)
        return local_rank % s->count;
    return (int)((gint64)local_rank * s->count / s->question->local_size);
}

/* How many of the ranks below limit get domain. */
static gint64 ranks_below(const state_t *s, int domain, int limit)
{
    const gint64 size = s->question->local_size, count = s->count;
    gint64 first, end;

    if (s->devices)
        return limit > domain ? (limit - domain - 1) / count + 1 : 0;
    first = (domain * size + count - 1) / count;
    end = ((domain + 1) * size + count - 1) / count;
    return MAX(MIN(end, limit) - first, 0);
}

/* The ranks that choose among the same processors, and which of them is
 * local_rank. */
static int count_sharers(const state_t *s, const domain_t *own, int *ret_index)
{
    gint64 count = 0, index = 0;

    for (int d = 0; d < s->count; d++) {
        if (memcmp(&s->domains[d].set, &own->set, sizeof own->set) != 0)
            continue;
        count += ranks_below(s, d, s->question->local_size);
        index += ranks_below(s, d, s->question->local_rank);
    }
    *ret_index = (int)index;
    return (int)count;
}

/* Cores first to last, counted from 0, of those in cores, with all their
 * processors in set. */
static void take_cores(const state_t *s, const tool_processors_t *cores,
                       const tool_processors_t *set, int first, int count)
{
    tool_processors_t siblings, *taken = &s->result->processors;
    int core = 0;

    for (int i = 0; i < TOOL_PROCESSORS_MAX; i++) {
        if (!cores->has[i])
            continue;
        if (core >= first && core < first + count) {
            tool_processors_siblings(s->question->root, i, &siblings);
            tool_processors_intersect(&siblings, set);
            for (int j = 0; j < TOOL_PROCESSORS_MAX; j++)
                taken->has[j] |= siblings.has[j];
        }
        core++;
    }
}

/* Contiguous shares; the first ranks have one core more where they are not
 * equal. */
static void share(const state_t *s, const domain_t *domain,
                  const tool_processors_t *set)
{
    tool_placement_t *result = s->result;
    tool_processors_t cores = *set;
    int index = 0, all, sharers = count_sharers(s, domain, &index);

    tool_processors_keep_cores(s->question->root, &cores);
    all = tool_processors_count(&cores);
    if (all < sharers) {
        result->why = g_strdup_printf("%d ranks, but %d cores, of %s: not "
                                      "bound",
                                      sharers, all, domain->name);
        return;
    }
    result->cores = all / sharers + (index < all % sharers);
    take_cores(s, &cores, set,
               index * (all / sharers) + MIN(index, all % sharers),
               result->cores);
    result->bind = TRUE;
    result->node = domain->node;
    result->why = g_strdup_printf("%d of the %d cores of %s, for %d rank%s",
                                  result->cores, all, domain->name, sharers,
                                  sharers == 1 ? "" : "s");
}

static void decide(const state_t *s)
{
    const domain_t *domain = &s->domains[domain_of(s, s->question->local_rank)];
    tool_placement_t *result = s->result;
    gboolean bound = memcmp(&s->allowed, &s->online, sizeof s->online) != 0;
    tool_processors_t set = domain->set;
    char *mask = tool_processors_text(&s->allowed);

    tool_processors_intersect(&set, &s->allowed);
    if (domain->name && !tool_processors_count(&set)) {
        result->warning =
            g_strdup_printf("the launcher's mask, %s, has no processor of %s; "
                            "it is kept",
                            mask, domain->name);
        bound = TRUE;
    }
    if (domain->absent) {
        result->why = g_strdup("unknown: the device is not there");
        result->warning = g_strdup_printf("this machine has no PCI device %s",
                                          domain->absent);
    } else if (!domain->name) {
        result->why = g_strdup("unknown: the machine does not tell which "
                               "processors are near the device");
    } else if (bound && (result->warning || !s->question->force)) {
        result->why = g_strdup_printf("bound to %s already, by the launcher "
                                      "or a container",
                                      mask);
    } else {
        share(s, domain, &set);
    }
    g_free(mask);
}

tool_placement_t *tool_place(const tool_placement_question_t *question)
{
    tool_placement_t *result = g_new0(tool_placement_t, 1);
    state_t *s = g_new0(state_t, 1);

    s->question = question;
    s->result = result;
    s->devices =
        question->devices && question->devices[0] ? question->devices : NULL;
    result->node = -1;
    if (question->local_rank < 0 ||
        question->local_size <= question->local_rank) {
        result->why = g_strdup("unknown: which rank of this node this is");
    } else if (!tool_processors_online(question->root, &s->online) ||
               !tool_processors_allowed(question->root, &s->allowed)) {
        result->why = g_strdup("unknown: the machine does not tell its "
                               "processors");
    } else {
        if (s->devices)
            read_devices(s);
        else
            read_nodes(s);
        decide(s);
    }
    for (int i = 0; i < s->count; i++) {
        g_free(s->domains[i].name);
        g_free(s->domains[i].absent);
    }
    g_free(s->domains);
    g_free(s);
    return result;
}

void tool_placement_free(tool_placement_t *placement)
{
    g_free(placement->why);
    g_free(placement->warning);
    g_free(placement);
}
