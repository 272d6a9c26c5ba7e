/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of arguments that are obsolete, harmful or of another mpirun, and
 * of what to write instead. */
#include "config.h"

#include "tools/env/advice/state.h"

#include <arpa/inet.h>
#include <string.h>

const char *const tool_advice_verdicts[] = {"kept", "replaced", "dropped",
                                            "unknown"};

/* One of those in list, "a,b", which names no component with "^". */
static gboolean lists(const char *list, const char *component)
{
    char **words = g_strsplit(list, ",", -1);
    gboolean found = FALSE;

    for (int i = 0; words[i] && *list != '^'; i++)
        found = found || strcmp(words[i], component) == 0;
    g_strfreev(words);
    return found;
}

/* A list without "^" leaves out all that it does not name. */
static gboolean lacks(const char *list, const char *component)
{
    return *list != '^' && !lists(list, component);
}

static gboolean lacks_collectives(const char *value)
{
    return lacks(value, "basic") || lacks(value, "libnbc") ||
           lacks(value, "self");
}

static gboolean lacks_self(const char *value)
{
    return lacks(value, "self");
}

static gboolean lists_openib(const char *value)
{
    return lists(value, "openib");
}

static gboolean lists_sm(const char *value)
{
    return lists(value, "sm");
}

static gboolean lists_vader(const char *value)
{
    return lists(value, "vader");
}

static gboolean excludes(const char *value)
{
    return *value == '^';
}

static gboolean is_ucx(const char *value)
{
    return strcmp(value, "ucx") == 0;
}

static gboolean is_ob1(const char *value)
{
    return strcmp(value, "ob1") == 0;
}

static gboolean is_cm(const char *value)
{
    return strcmp(value, "cm") == 0;
}

static gboolean is_core_or_none(const char *value)
{
    return strcmp(value, "core") == 0 || strcmp(value, "none") == 0;
}

static gboolean is_tcp(const char *value)
{
    return strcmp(value, "tcp") == 0;
}

static gboolean maps_dist(const char *value)
{
    return g_str_has_prefix(value, "dist");
}

static gboolean has_package(const char *value)
{
    return strstr(value, "package") != NULL;
}

static gboolean ranks_by_object(const char *value)
{
    return strcmp(value, "slot") != 0 && strcmp(value, "node") != 0 &&
           strcmp(value, "fill") != 0 && strcmp(value, "span") != 0;
}

static gboolean is_old_fabric(const char *value)
{
    return strcmp(value, "shm") != 0 && strcmp(value, "ofi") != 0 &&
           strcmp(value, "shm:ofi") != 0;
}

gboolean tool_advice_is_network(const char *text)
{
    char **words = g_strsplit(text, ",", -1);
    gboolean good = words[0] != NULL;

    for (int i = 0; words[i]; i++) {
        char *slash = strchr(words[i], '/');
        struct in6_addr address;

        if (slash)
            *slash = 0;
        good = good && slash &&
               (inet_pton(AF_INET, words[i], &address) == 1 ||
                inet_pton(AF_INET6, words[i], &address) == 1);
    }
    g_strfreev(words);
    return good;
}

static gboolean is_no_count(const char *value)
{
    return !tool_advice_decimal(value, ADVICE_JOB_MAX);
}

static gboolean is_no_local_count(const char *value)
{
    return !tool_advice_decimal(value, ADVICE_RANKS_MAX);
}

static gboolean is_interface(const char *value)
{
    return !tool_advice_is_network(value);
}

/* The first row that fits says what becomes of an argument. */
typedef struct {
    unsigned masks;
    advice_kind_t kind;
    const char *name; /* "*" stands for any text */
    gboolean (*check)(const char *value); /* NULL: any value */
    unsigned needs, without; /* facts */
    tool_advice_verdict_t verdict;
    const char *why;
    /* NULL: nothing; "=--map-by": what the line has there. {rest}: what "*"
     * stands for */
    const char *instead;
} row_t;

#define OMPI4 ADVICE_OPENMPI_4
#define OMPI5 ADVICE_OPENMPI_5
#define OMPI ADVICE_OPENMPI
#define DROPPED ADVICE_DROPPED
#define REPLACED ADVICE_REPLACED
#define KEPT ADVICE_KEPT

#define NO_COUNT "no number that this may be, so that it is not taken"
#define FEW_SLOTS                                                              \
    "a host is one slot unless it says how many, and mpirun would refuse "     \
    "more "                                                                    \
    "ranks on it"

#define NEW_OPTION "an option of 5.x, which 4.x refuses"

static const row_t rows[] = {
    /* Open MPI's parameters */
    {OMPI4, OLD_MCA, "btl_sm_use_knem", NULL, 0, 0, DROPPED,
     "no parameter since 3.0, and silently ignored; shared memory is vader",
     "--mca btl_vader_single_copy_mechanism cma, where the default does not "
     "do"},
    {OMPI5, OLD_MCA, "btl_sm_use_knem", NULL, 0, 0, DROPPED,
     "no parameter since 3.0, and silently ignored; single copies are a "
     "framework of their own, smsc",
     "--mca smsc cma, where the default does not do"},
    {OMPI4, OLD_MCA, "btl_sm_*", NULL, 0, 0, REPLACED,
     "a name of 5.x, silently ignored by 4.x",
     "--mca btl_vader_{rest} {value}"},
    {OMPI5, OLD_MCA, "btl_vader_single_copy_mechanism", NULL, 0, 0, DROPPED,
     "a name of 4.x, silently ignored by 5.x; single copies are a framework of "
     "their own, smsc",
     "--mca smsc cma, where the default does not do"},
    {OMPI5, OLD_MCA, "btl_vader_*", NULL, 0, 0, REPLACED,
     "a name of 4.x, an alias that will go", "--mca btl_sm_{rest} {value}"},
    {OMPI4, OLD_MCA, "coll", lacks_collectives, 0, 0, DROPPED,
     "leaves out basic, libnbc or self, without which MPI_Init fails; tuned "
     "is preferred anyway",
     NULL},
    {OMPI5, OLD_MCA, "coll", lacks_collectives, 0, 0, DROPPED,
     "leaves out basic, libnbc or self, without which MPI_Init fails",
     "--mca coll ^han, to prefer tuned to han"},
    {OMPI4, OLD_MCA, "hwloc_base_binding_policy", is_core_or_none, 0, 0,
     REPLACED, "right in 4.x only; the option means the same in 4.x and 5.x",
     "=--bind-to"},
    {OMPI4, OLD_MCA, "hwloc_base_binding_policy", NULL, 0, 0, REPLACED,
     "right in 4.x only; the line says how ranks are bound", "=--bind-to"},
    {OMPI5, OLD_MCA, "hwloc_base_binding_policy", NULL, 0, 0, REPLACED,
     "a name of 4.x, silently ignored by 5.x (PRRTE calls it "
     "hwloc_default_binding_policy)",
     "=--bind-to"},
    {OMPI4, OLD_MCA, "rmaps_base_mapping_policy", NULL, 0, 0, REPLACED,
     "right in 4.x only; the line says where ranks go", "=--map-by"},
    {OMPI5, OLD_MCA, "rmaps_base_mapping_policy", NULL, 0, 0, REPLACED,
     "a name of 4.x, silently ignored by 5.x (PRRTE calls it "
     "rmaps_default_mapping_policy)",
     "=--map-by"},
    {OMPI4, OLD_MCA, "rmaps_base_oversubscribe", NULL, 0, 0, REPLACED,
     "right in 4.x only; only needed where ranks are more than cores",
     "=--map-by"},
    {OMPI5, OLD_MCA, "rmaps_base_oversubscribe", NULL, 0, 0, REPLACED,
     "a name of 4.x, silently ignored by 5.x; only needed where ranks are "
     "more than cores",
     "=--map-by"},
    {OMPI, OLD_MCA, "pml", is_ucx, 0, FACT_RDMA, REPLACED,
     "there is no RDMA device for UCX, and MPI_Init fails", "=--mca pml"},
    {OMPI, OLD_MCA, "pml", is_ob1, FACT_RDMA, 0, REPLACED,
     "leaves the RDMA device {rdma} unused", "=--mca pml"},
    {OMPI, OLD_MCA, "pml", is_ob1, FACT_MTL, FACT_OWN_PML, REPLACED,
     "leaves the device {fabric} unused", "=--mca pml"},
    {OMPI, OLD_MCA, "pml", is_cm, FACT_MTL, 0, KEPT, "right as it is", NULL},
    {OMPI, OLD_MCA, "pml", excludes, 0, 0, REPLACED,
     "one that is named is surer than those that are left", "=--mca pml"},
    {OMPI5, OLD_MCA, "btl", lists_openib, 0, 0, REPLACED,
     "5.x has no openib, and MPI_Init fails; UCX drives what it drove",
     "=--mca btl"},
    {OMPI4, OLD_MCA, "btl", lists_openib, 0, 0, REPLACED,
     "openib is on its way out in 4.x; UCX drives what it drove", "=--mca btl"},
    {OMPI4, OLD_MCA, "btl", lists_sm, 0, 0, REPLACED,
     "4.x has no sm, and MPI_Init fails; it is called vader", "=--mca btl"},
    {OMPI5, OLD_MCA, "btl", lists_vader, 0, 0, REPLACED,
     "vader is called sm since 5.0; the alias will go", "=--mca btl"},
    {OMPI, OLD_MCA, "btl", lacks_self, 0, 0, REPLACED,
     "leaves out self, by which a rank reaches itself, and MPI_Init fails",
     "=--mca btl"},
    {OMPI, OLD_MCA, "btl", excludes, FACT_RDMA, 0, KEPT,
     "but UCX does without btl", NULL},
    {OMPI, OLD_MCA, "btl", NULL, FACT_RDMA, FACT_OWN_PML, DROPPED,
     "UCX does without btl", NULL},
    {OMPI5, OLD_MCA, "btl_openib_*", NULL, 0, 0, DROPPED,
     "5.x has no openib, and ignores it silently", "-x UCX_..."},
    {OMPI4, OLD_MCA, "btl_openib_*", NULL, 0, 0, DROPPED,
     "openib is on its way out in 4.x; UCX drives what it drove", "-x UCX_..."},
    {OMPI, OLD_MCA, "btl_tcp_if_include", NULL, FACT_RDMA, 0, DROPPED,
     "TCP is not used where UCX is",
     "-x UCX_NET_DEVICES=..., where UCX's choice does not do"},
    {OMPI, OLD_MCA, "btl_tcp_if_include", NULL, FACT_MTL, FACT_OWN_PML, DROPPED,
     "TCP is not used where {fabric} is", NULL},
    {OMPI, OLD_MCA, "btl_tcp_if_include", NULL, 0, FACT_SEVERAL, DROPPED,
     "TCP is not used on one node", NULL},
    {OMPI, OLD_MCA, "btl_tcp_if_include", is_interface, FACT_SUBNET, 0,
     REPLACED,
     "an interface may be called otherwise on another node, and one that is "
     "not there is ignored with a warning",
     "=--mca btl_tcp_if_include"},
    {OMPI, OLD_MCA, "btl_tcp_if_include", is_interface, 0, 0, DROPPED,
     "an interface may be called otherwise on another node, and one that is "
     "not there is ignored with a warning",
     "--mca btl_tcp_if_include NETWORK/BITS"},
    {OMPI, OLD_MCA, "btl_tcp_if_exclude", NULL, 0, 0, DROPPED,
     "excludes btl_tcp_if_include, and replaces the default by which the "
     "loopback is left out",
     "=--mca btl_tcp_if_include"},
    {OMPI4, OLD_MCA, "oob_tcp_if_include", is_interface, 0, 0, DROPPED,
     "an interface may be called otherwise on another node",
     "=--mca oob_tcp_if_include"},
    {OMPI5, OLD_MCA, "oob_tcp_if_include", NULL, 0, 0, DROPPED,
     "a name of 4.x, silently ignored by 5.x", "=--prtemca prte_if_include"},
    {OMPI5, OLD_MCA, "orte_default_hostfile", NULL, 0, 0, REPLACED,
     "a name of 4.x, silently ignored by 5.x: all ranks would be on one node",
     "--hostfile {value}"},
    {OMPI5, OLD_MCA, "orte_*", NULL, 0, 0, DROPPED,
     "5.x has PRRTE instead of ORTE, and ignores it silently", NULL},
    {OMPI4, OLD_MCA, "btl_vader_eager_limit", NULL, 0, 0, KEPT,
     "right as it is", NULL},
    {OMPI4, OLD_MCA, "btl_vader_single_copy_mechanism", NULL, 0, 0, KEPT,
     "right as it is, where this mpirun's build has it", NULL},
    {OMPI5, OLD_MCA, "btl_sm_eager_limit", NULL, 0, 0, KEPT, "right as it is",
     NULL},
    {OMPI, OLD_MCA, "coll", NULL, 0, 0, KEPT, "right as it is", NULL},
    {OMPI, OLD_MCA, "coll_tuned_*", NULL, 0, 0, KEPT, "right as it is", NULL},

    /* How large the job is */
    {ADVICE_ALL, OLD_OPTION, "n", is_no_count, 0, 0, REPLACED, NO_COUNT, "=-n"},
    {ADVICE_ALL, OLD_OPTION, "np", is_no_count, 0, 0, REPLACED, NO_COUNT,
     "=-n"},
    {OMPI, OLD_OPTION, "c", is_no_count, 0, 0, REPLACED, NO_COUNT, "=-n"},
    {OMPI, OLD_OPTION, "npernode", is_no_local_count, 0, 0, REPLACED, NO_COUNT,
     "=--map-by"},
    {OMPI, OLD_OPTION, "N", is_no_local_count, 0, 0, REPLACED, NO_COUNT,
     "=--map-by"},
    {ADVICE_HYDRA, OLD_OPTION, "ppn", is_no_local_count, 0, 0, REPLACED,
     NO_COUNT, "=-ppn"},
    {OMPI, OLD_OPTION, "host", NULL, FACT_FEW_SLOTS, FACT_CROWDED, REPLACED,
     FEW_SLOTS, "--host {hosts}"},
    {OMPI, OLD_OPTION, "H", NULL, FACT_FEW_SLOTS, FACT_CROWDED, REPLACED,
     FEW_SLOTS, "--host {hosts}"},
    {OMPI, OLD_OPTION, "hosts", NULL, FACT_FEW_SLOTS, FACT_CROWDED, REPLACED,
     "an option of MPICH, which Open MPI refuses", "--host {hosts}"},

    /* Open MPI's options */
    {OMPI4, OLD_OPTION, "map-by", has_package, 0, 0, REPLACED,
     "4.x says socket, and refuses package", "=--map-by"},
    {OMPI4, OLD_OPTION, "bind-to", has_package, 0, 0, REPLACED,
     "4.x says socket, and refuses package", "=--bind-to"},
    {OMPI4, OLD_OPTION, "prtemca", NULL, 0, 0, DROPPED, NEW_OPTION, NULL},
    {OMPI4, OLD_OPTION, "pmixmca", NULL, 0, 0, DROPPED, NEW_OPTION, NULL},
    {OMPI4, OLD_OPTION, "display", NULL, 0, 0, DROPPED, NEW_OPTION, NULL},
    {OMPI5, OLD_OPTION, "map-by", maps_dist, 0, 0, REPLACED,
     "5.x has no dist any more", "=--map-by"},
    {OMPI5, OLD_OPTION, "rank-by", ranks_by_object, 0, 0, DROPPED,
     "5.x knows slot, node, fill and span, and refuses others", NULL},
    {OMPI, OLD_OPTION, "npernode", NULL, 0, 0, REPLACED,
     "deprecated in favour of --map-by", "=--map-by"},
    {OMPI, OLD_OPTION, "npersocket", NULL, 0, 0, REPLACED,
     "deprecated in favour of --map-by", "=--map-by"},
    {OMPI, OLD_OPTION, "pernode", NULL, 0, 0, REPLACED,
     "deprecated in favour of --map-by", "=--map-by"},
    {OMPI, OLD_OPTION, "N", NULL, 0, 0, REPLACED, "the same as --map-by says",
     "=--map-by"},
    {OMPI, OLD_OPTION, "cpus-per-*", NULL, 0, 0, REPLACED,
     "deprecated in favour of PE= in --map-by", "=--map-by"},
    {OMPI, OLD_OPTION, "by*", NULL, 0, 0, REPLACED,
     "deprecated in favour of --map-by", "=--map-by"},
    {OMPI, OLD_OPTION, "bind-to-*", NULL, 0, 0, REPLACED,
     "deprecated in favour of --bind-to", "=--bind-to"},
    {OMPI, OLD_OPTION, "oversubscribe", NULL, FACT_CROWDED, 0, REPLACED,
     "the mapping says so", "=--map-by"},
    {OMPI5, OLD_OPTION, "oversubscribe", NULL, 0, 0, DROPPED,
     "there are cores enough, and it would unbind the ranks", NULL},
    {OMPI4, OLD_OPTION, "oversubscribe", NULL, 0, 0, DROPPED,
     "there are cores enough", NULL},
    {OMPI, OLD_OPTION, "allow-run-as-root", NULL, 0, FACT_SUPERUSER, DROPPED,
     "not needed here", NULL},

    /* Of another mpirun */
    {OMPI, OLD_OPTION, "ppn", NULL, 0, 0, REPLACED,
     "an option of MPICH, which Open MPI refuses", "=--map-by"},
    {OMPI, OLD_OPTION, "perhost", NULL, 0, 0, REPLACED,
     "an option of Intel MPI", "=--map-by"},
    {OMPI, OLD_OPTION, "f", NULL, 0, 0, REPLACED,
     "an option of MPICH, which Open MPI refuses; lines say NAME slots=RANKS",
     "--hostfile {value}"},
    {OMPI, OLD_OPTION, "hosts", NULL, 0, 0, REPLACED,
     "an option of MPICH, which Open MPI refuses", "--host {value}"},
    {OMPI, OLD_OPTION, "iface", NULL, 0, 0, DROPPED,
     "an option of MPICH, which Open MPI refuses", "=--mca btl_tcp_if_include"},
    {OMPI, OLD_OPTION, "genv*", NULL, 0, 0, DROPPED,
     "an option of MPICH, which Open MPI refuses", "-x NAME"},
    {ADVICE_HYDRA, OLD_MCA, "*", NULL, 0, 0, DROPPED,
     "a parameter of Open MPI, whose option mpiexec refuses", NULL},
    {ADVICE_HYDRA, OLD_OPTION, "oversubscribe", NULL, 0, 0, DROPPED,
     "an option of Open MPI, which mpiexec refuses and does not need", NULL},
    {ADVICE_HYDRA, OLD_OPTION, "allow-run-as-root", NULL, 0, 0, DROPPED,
     "an option of Open MPI, which mpiexec refuses and does not need", NULL},
    {ADVICE_HYDRA, OLD_OPTION, "prtemca", NULL, 0, 0, DROPPED,
     "an option of Open MPI, which mpiexec refuses", NULL},
    {ADVICE_HYDRA, OLD_OPTION, "pmixmca", NULL, 0, 0, DROPPED,
     "an option of Open MPI, which mpiexec refuses", NULL},
    {ADVICE_HYDRA, OLD_OPTION, "npernode", NULL, 0, 0, REPLACED,
     "an option of Open MPI", "=-ppn"},
    {ADVICE_HYDRA, OLD_OPTION, "host", NULL, 0, 0, REPLACED,
     "an option of Open MPI", "-hosts {value}"},
    {ADVICE_HYDRA, OLD_OPTION, "H", NULL, 0, 0, REPLACED,
     "an option of Open MPI", "-hosts {value}"},
    {ADVICE_HYDRA, OLD_OPTION, "hostfile", NULL, 0, 0, REPLACED,
     "an option of Open MPI; lines say NAME or NAME:RANKS", "-f {value}"},
    {ADVICE_HYDRA, OLD_OPTION, "pmi-port", NULL, 0, 0, DROPPED,
     "hides the number of ranks from programs without MPI", NULL},

    /* Variables */
    {ADVICE_ALL, OLD_VARIABLE, "UCX_TLS", is_tcp, FACT_RDMA, 0, DROPPED,
     "keeps UCX off the RDMA device {rdma}", NULL},
    {ADVICE_ALL, OLD_VARIABLE, "*_SOCKET_IFNAME", is_interface, FACT_SEVERAL, 0,
     KEPT, "but an interface may be called otherwise on another node", NULL},
    {ADVICE_INTEL, OLD_VARIABLE, "I_MPI_FABRICS", is_old_fabric, 0, 0, DROPPED,
     "Intel MPI knows shm, ofi and shm:ofi since 2019",
     "-genv I_MPI_FABRICS shm:ofi, which is the default"},
    {ADVICE_INTEL, OLD_VARIABLE, "I_MPI_DAPL_*", NULL, 0, 0, DROPPED,
     "Intel MPI has no DAPL since 2019", "-genv I_MPI_OFI_PROVIDER NAME"},
    {ADVICE_INTEL, OLD_VARIABLE, "I_MPI_PIN*", NULL, 0,
     FACT_FREE | FACT_CROWDED, REPLACED, "the line says how ranks are pinned",
     "=-genv I_MPI_PIN"},
};

/* The part whose words begin so, as text, or NULL; g_free(). */
static char *find_part(const advice_state_t *state, const char *begin)
{
    const GPtrArray *parts = state->advice->parts;

    for (guint i = 0; i < parts->len; i++) {
        const tool_advice_part_t *part = g_ptr_array_index(parts, i);
        char *text = tool_advice_quote(part->words);

        if (g_str_has_prefix(text, begin))
            return text;
        g_free(text);
    }
    return NULL;
}

static gboolean fits(const advice_state_t *state, const row_t *row,
                     const advice_old_t *old)
{
    return (row->masks & state->advice->mask) && row->kind == old->kind &&
           (row->needs & state->facts) == row->needs &&
           !(row->without & state->facts) &&
           g_pattern_match_simple(row->name, old->name) &&
           (!row->check || (old->value && row->check(old->value)));
}

static void judge(advice_state_t *state, const advice_old_t *old,
                  tool_advice_verdict_t verdict, const char *why, char *instead)
{
    tool_advice_judgement_t *judgement = g_new(tool_advice_judgement_t, 1);

    judgement->text = tool_advice_quote(old->words);
    judgement->verdict = verdict;
    judgement->why = tool_advice_expand(state, why);
    judgement->instead = instead;
    g_ptr_array_add(state->advice->judgements, judgement);
}

/* The same in words of this mpirun joins the line, unless it is of the
 * environment, whose rest is not in the line either; g_free(). */
static char *add_other(advice_state_t *state, const advice_old_t *old,
                       const char *template)
{
    char **words = tool_advice_words(state, template);
    char *text = tool_advice_quote(words);

    if (old->ambient)
        g_strfreev(words);
    else
        tool_advice_part_add(state->advice->parts, words,
                             "as it was given, in this mpirun's words");
    return text;
}

static gboolean judge_by_table(advice_state_t *state, const advice_old_t *old)
{
    const row_t *row = NULL;
    const char *instead;
    char *text = NULL;

    for (size_t i = 0; i < G_N_ELEMENTS(rows) && !row; i++)
        row = fits(state, &rows[i], old) ? &rows[i] : NULL;
    if (!row || (old->ambient && row->verdict == KEPT))
        return FALSE;
    instead = row->instead;
    g_hash_table_insert(state->values, g_strdup("value"),
                        g_strdup(old->value ? old->value : ""));
    g_hash_table_insert(state->values, g_strdup("rest"),
                        g_strdup(old->name + strcspn(row->name, "*")));
    if (instead && *instead == '=')
        text = find_part(state, instead + 1);
    else if (instead && row->verdict == REPLACED)
        text = add_other(state, old, instead);
    else if (instead)
        text = tool_advice_expand(state, instead);
    if (row->verdict == KEPT)
        tool_advice_part_add(state->advice->parts, g_strdupv(old->words),
                             "as it was given");
    judge(state, old, row->verdict, row->why, text);
    return TRUE;
}

/* 1: part is about the same as old. */
static gboolean is_about(const tool_advice_part_t *part,
                         const advice_old_t *old)
{
    static const struct {
        const char *name, *is;
    } synonyms[] = {{"np", "n"}, {"c", "n"}, {"perhost", "ppn"}};
    const char *name = old->name, *option = part->words[0];

    if (old->kind == OLD_MCA)
        return strcmp(option, "--mca") == 0 &&
               g_strcmp0(part->words[1], name) == 0;
    if (old->kind == OLD_VARIABLE)
        return strcmp(option, "-genv") == 0 &&
               g_strcmp0(part->words[1], name) == 0;
    for (size_t i = 0; i < G_N_ELEMENTS(synonyms); i++) {
        if (strcmp(name, synonyms[i].name) == 0)
            name = synonyms[i].is;
    }
    return strcmp(option + strspn(option, "-"), name) == 0;
}

/* What the line itself says about it, or NULL. */
static const tool_advice_part_t *own_part(const advice_state_t *state,
                                          const advice_old_t *old)
{
    const GPtrArray *parts = state->advice->parts;

    for (guint i = 0; i < parts->len; i++) {
        const tool_advice_part_t *part = g_ptr_array_index(parts, i);

        if (is_about(part, old))
            return part;
    }
    return NULL;
}

static void judge_by_part(advice_state_t *state, const advice_old_t *old,
                          const tool_advice_part_t *part)
{
    const char *value = part->words[g_strv_length(part->words) - 1];

    if (!old->value && !old->known)
        judge(state, old, ADVICE_REPLACED,
              "it lacks its value; the line has its own",
              tool_advice_quote(part->words));
    else if (!old->value || strcmp(old->value, value) == 0)
        judge(state, old, ADVICE_KEPT, "the line says the same", NULL);
    else
        judge(state, old, ADVICE_REPLACED, "the line has its own",
              tool_advice_quote(part->words));
}

static void keep(advice_state_t *state, const advice_old_t *old,
                 tool_advice_verdict_t verdict, const char *why)
{
    tool_advice_part_add(state->advice->parts, g_strdupv(old->words),
                         "as it was given");
    judge(state, old, verdict, why, NULL);
}

/* -x NAME=VALUE is of Open MPI, -genv NAME VALUE of the others. */
static void convert(advice_state_t *state, const advice_old_t *old)
{
    gboolean openmpi = (state->advice->mask & ADVICE_OPENMPI) != 0;
    char *pair = g_strdup_printf("%s=%s", old->name, old->value);
    const char *to_openmpi[] = {"-x", pair, NULL};
    const char *to_hydra[] = {"-genv", old->name, old->value, NULL};
    char **words = g_strdupv((char **)(openmpi ? to_openmpi : to_hydra));

    judge(state, old, ADVICE_REPLACED,
          openmpi ? "an option of MPICH" : "an option of Open MPI",
          tool_advice_quote(words));
    tool_advice_part_add(state->advice->parts, words, "as it was given");
    g_free(pair);
}

static void judge_variable(advice_state_t *state, const advice_old_t *old)
{
    gboolean openmpi = (state->advice->mask & ADVICE_OPENMPI) != 0;
    gboolean is_x = strspn(old->words[0], "-x") == strlen(old->words[0]);

    if (tool_advice_is_of_rank(old->name))
        judge(state, old, ADVICE_DROPPED,
              "would be the same in all ranks, each of which has its own",
              NULL);
    else if (is_x == openmpi)
        keep(state, old, ADVICE_KEPT, "right as it is");
    else if (old->value)
        convert(state, old);
    else
        judge(state, old, ADVICE_DROPPED,
              "an option of Open MPI; mpiexec hands all variables on", NULL);
}

static void judge_other(advice_state_t *state, const advice_old_t *old)
{
    const tool_advice_part_t *part = own_part(state, old);

    if (old->ambient)
        return;
    if (part)
        judge_by_part(state, old, part);
    else if (!old->known)
        keep(state, old, ADVICE_UNKNOWN,
             "not in this table; it and what follows are left as they are");
    else if (old->kind == OLD_MCA)
        keep(state, old, ADVICE_UNKNOWN,
             "not in this table; a name that Open MPI does not know either is "
             "silently ignored: see ompi_info --all");
    else if (old->kind == OLD_VARIABLE)
        judge_variable(state, old);
    else
        keep(state, old, ADVICE_KEPT, "right as it is");
}

void tool_advice_old_judge(advice_state_t *state)
{
    for (guint i = 0; i < state->old->len; i++) {
        const advice_old_t *old = g_ptr_array_index(state->old, i);

        if (!judge_by_table(state, old))
            judge_other(state, old);
    }
}
