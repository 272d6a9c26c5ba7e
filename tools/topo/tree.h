/* SPDX-License-Identifier: BSD-3-Clause */
/* The tree of a machine: NUMA nodes, PCI bridges, and below them the devices
 * between which data goes. */
#ifndef TOOLS_TOPO_TREE_H
#define TOOLS_TOPO_TREE_H

#include <glib.h>
#include <stdbool.h>

typedef enum {
    TOPO_MACHINE,
    TOPO_NUMA,
    TOPO_HOST_BRIDGE,
    TOPO_BRIDGE, /* of PCI */
    TOPO_GPU,
    TOPO_NIC
} topo_kind_t;

/* Lanes of a PCI link. The system gives larger numbers if it knows none. */
#define TOPO_LANES_MOST 32
#define TOPO_NO_DEVICES "There are no GPUs or NICs on PCI."
#define TOPO_NVSWITCH 0x068000u /* PCI class of a switch of NVLinks */

/* NVLinks from one GPU to one target. */
typedef struct {
    char *target; /* PCI address */
    unsigned class; /* PCI class of the target */
    int count;
} topo_nvlink_t;

typedef struct topo_node topo_node_t;
struct topo_node {
    topo_kind_t kind;
    unsigned number; /* in the tree, from 0, after topo_tree_end() */
    topo_node_t *parent; /* NULL: the root */
    GPtrArray *children;
    char *label; /* GPU: "GPU0", NIC: "NIC0"; else NULL */
    char *name; /* what the system or its maker calls it, or NULL */
    char *address; /* on PCI, "0000:1a:00.0", or NULL */
    unsigned class; /* of PCI, 24 bits */
    unsigned vendor, device;
    double gt_s; /* speed of the PCI link per lane, now; 0: unknown */
    int width; /* lanes, 0: unknown */
    /* the same, as its ends can have them: an idle device lowers its own */
    double most_gt_s;
    int most_width;
    double link_rate; /* of the same, bytes a second, if those are unknown */
    int numa; /* number of a NUMA node, or of the nearest; -1: unknown */
    char *cpus; /* of a NUMA node: "0-3,8", or NULL */
    int cores; /* of a NUMA node, 0: unknown */
    char *caches; /* of a NUMA node: "L3 32 MiB, L2 4 x 1 MiB", or NULL */
    guint64 memory; /* of a NUMA node, bytes, 0: unknown */
    GArray *nvlinks; /* topo_nvlink_t of a GPU */
    /* attributes of NCCL's XML, as text: those of its <cpu> or <pci> that have
     * no other member here, and those of the <gpu> or <net>; NULL: none */
    char *nccl, *nccl_inside;
};

typedef struct {
    topo_node_t *root;
    GPtrArray *devices; /* GPUs, then NICs; of the tree */
    char *source; /* "this machine", or a file's name */
} topo_tree_t;

/* How a pair is connected, nearest first, in the words of nvidia-smi topo. */
typedef enum {
    TOPO_SELF,
    TOPO_NV, /* NVLinks */
    TOPO_PIX, /* at most one PCI bridge, or switch */
    TOPO_PXB, /* several */
    TOPO_PHB, /* a host bridge */
    TOPO_NODE, /* host bridges of one NUMA node */
    TOPO_SYS, /* another NUMA node */
    TOPO_LINKS
} topo_link_kind_t;

typedef struct {
    topo_link_kind_t kind;
    int count; /* NVLinks */
} topo_link_t;

topo_tree_t *topo_tree_new(const char *source);
void topo_tree_free(topo_tree_t *tree);
/* Adds a node below parent. */
topo_node_t *topo_node_add(topo_node_t *parent, topo_kind_t kind);
void topo_nvlink_add(topo_node_t *gpu, const char *target, unsigned class,
                     int count);
/* Numbers all nodes, and finds and labels the devices. */
void topo_tree_end(topo_tree_t *tree);
/* The node with that PCI address, or NULL. */
topo_node_t *topo_tree_find(const topo_tree_t *tree, const char *address);

/* The nearest NUMA node of a node that is known; -1: none. */
int topo_node_numa(const topo_node_t *node);
/* Bytes a second that the slowest PCI link between two devices allows, or, if b
 * is NULL, between a and its host bridge; 0: unknown. */
double topo_path_limit(const topo_node_t *a, const topo_node_t *b);
topo_link_t topo_link(const topo_node_t *a, const topo_node_t *b);
/* "NV4", "PIX"; g_free(). */
char *topo_link_text(topo_link_t link);
/* The meaning of a kind in words; static. */
const char *topo_link_meaning(topo_link_kind_t kind);

#endif
