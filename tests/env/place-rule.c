/* SPDX-License-Identifier: BSD-3-Clause */
/* The words of DSCOMM_BIND, and the lists that DeepSpeed accepts and refuses.
 */
#include "config.h"

#include "env/place-rule.h"
#include "tests/tap.h"

#include <glib.h>

static const struct {
    const char *text;
    dscomm_place_kind_t kind;
    bool force;
    const char *list; /* as hwloc writes it, or NULL */
} rules[] = {
    {"none", DSCOMM_PLACE_NONE, false, NULL},
    {"numa", DSCOMM_PLACE_NUMA, false, NULL},
    {"core", DSCOMM_PLACE_CORE, false, NULL},
    {"socket", DSCOMM_PLACE_SOCKET, false, NULL},
    {"gpu", DSCOMM_PLACE_GPU, false, NULL},
    {"force:gpu", DSCOMM_PLACE_GPU, true, NULL},
    {"0", DSCOMM_PLACE_LIST, false, "0"},
    {"0-3,8,10-11", DSCOMM_PLACE_LIST, false, "0-3,8,10-11"},
    {"0,2-4,6", DSCOMM_PLACE_LIST, false, "0,2-4,6"},
    {"0,1,2", DSCOMM_PLACE_LIST, false, "0-2"},
    {"007", DSCOMM_PLACE_LIST, false, "7"},
    {"4-4", DSCOMM_PLACE_LIST, false, "4"},
    {"65535", DSCOMM_PLACE_LIST, false, "65535"},
    {"force:1-2", DSCOMM_PLACE_LIST, true, "1-2"},
};

static const char *const refused[] = {
    "",        "cpu",    "NUMA",
    "numa ",   " numa",  "force:",
    "0-3,2",   "3,2",    "0,0",
    "0-3,3-4", "3-2",    "0 1",
    "0, 1",    "0-",     "-1",
    ",0",      "0,",     "0,,1",
    "0-1-2",   "1.5",    "0x1",
    "65536",   "+1",     "99999999999999999999",
    "0-65536", "numa,0", "force:force:0",
    "0;1",
};

int main(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(rules); i++) {
        dscomm_place_rule_t rule = {0};
        char list[64] = "none", *problem;

        ok(dscomm_priv_place_rule_read(rules[i].text, &rule, &problem),
           "'%s': a rule", rules[i].text);
        is_int(rule.kind, rules[i].kind, "'%s': kind", rules[i].text);
        is_int(rule.force, rules[i].force, "'%s': force", rules[i].text);
        if (rule.list)
            hwloc_bitmap_list_snprintf(list, sizeof list, rule.list);
        is_str(list, rules[i].list ? rules[i].list : "none", "'%s': list",
               rules[i].text);
        dscomm_priv_place_rule_clear(&rule);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(refused); i++) {
        dscomm_place_rule_t rule;
        char *problem = NULL;

        ok(!dscomm_priv_place_rule_read(refused[i], &rule, &problem),
           "'%s': refused", refused[i]);
        ok(problem && strstr(problem, "0-3,8"), "'%s': with what to give",
           refused[i]);
        g_free(problem);
    }
    return tap_done();
}
