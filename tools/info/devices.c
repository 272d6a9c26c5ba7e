/* SPDX-License-Identifier: BSD-3-Clause */
/* `dscomm info --devices`. */
#include "config.h"

#include "tools/info/devices.h"

#include "tools/common/json.h"

#include <dscomm/info.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define NAME_WIDTH 16
#define INDENT 2 /* columns, for each level */

/* The devices of one backend, while they are printed. */
typedef struct {
    const char *backend;
    bool named; /* the backend's name was printed */
} print_t;

/* The devices of one backend, while they are added. */
typedef struct {
    JsonBuilder *builder;
    const char *backend;
    bool begun; /* the backend's object is open, and its array of devices */
    int depth; /* objects of devices and parts that are open */
} add_t;

static void print_fact(const dscomm_backend_fact_t *fact, const char *before)
{
    char *name = g_strdelimit(g_strdup(fact->name), "_", ' ');

    printf("%s%s %s", before, name, fact->value);
    if (fact->unit && *fact->unit)
        printf(" %s", fact->unit);
    g_free(name);
}

static void print_item(void *arg, const dscomm_backend_device_t *item)
{
    print_t *print = arg;
    const int indent = INDENT * (item->level + 2);
    const char *before = ": ";

    if (!print->named)
        printf("  %s\n", print->backend);
    print->named = true;
    printf("%*s%s %s%s", indent, "", item->kind, item->name,
           item->chosen ? ", chosen" : "");
    for (size_t i = 0; i < item->fact_count; i++) {
        if (!item->facts[i].value)
            continue;
        print_fact(&item->facts[i], before);
        before = ", ";
    }
    printf("\n");
    if (item->why)
        printf("%*snot usable: %s\n", indent + INDENT, "", item->why);
}

/* Returns whether the backend lists its devices. */
static bool print_backend(size_t index, const char *name)
{
    print_t print = {.backend = name};
    const dscomm_status_t status =
        dscomm_backend_devices(index, print_item, &print);

    if (status == DSCOMM_ERR_UNSUPPORTED)
        return false;
    if (status == DSCOMM_OK)
        return true;
    if (print.named)
        printf("    none is chosen: %s\n", dscomm_last_error());
    else
        printf("  %-*s none: %s\n", NAME_WIDTH, name, dscomm_last_error());
    return true;
}

void info_print_devices(void)
{
    dscomm_backend_info_t info = {.size = sizeof info};
    bool any = false;

    printf("Devices, and which of them the settings choose:\n");
    for (size_t i = 0; dscomm_backend_info(i, &info) == DSCOMM_OK; i++)
        any |= print_backend(i, info.name);
    if (!any)
        printf("  no backend lists devices\n");
}

static void add_fact(JsonBuilder *builder, const dscomm_backend_fact_t *fact)
{
    gint64 whole;

    if (fact->value && fact->unit &&
        g_ascii_string_to_signed(fact->value, 10, G_MININT64, G_MAXINT64,
                                 &whole, NULL))
        tool_json_number(builder, fact->name, whole);
    else if (fact->value && fact->unit)
        tool_json_real(builder, fact->name, "%.15g",
                       g_ascii_strtod(fact->value, NULL));
    else
        tool_json_text(builder, fact->name, fact->value);
}

static void add_begin(add_t *add)
{
    if (add->begun)
        return;
    add->begun = true;
    tool_json_object(add->builder, NULL);
    tool_json_text(add->builder, "backend", add->backend);
    tool_json_array(add->builder, "devices");
}

/* Ends the objects deeper than level, and their arrays; then the object at
 * level, if there is one, whose array stays open. */
static void add_close(add_t *add, int level)
{
    for (; add->depth > level + 1; add->depth--) {
        json_builder_end_object(add->builder);
        json_builder_end_array(add->builder);
    }
    if (add->depth == level + 1) {
        json_builder_end_object(add->builder);
        add->depth = level;
    }
}

/* Adds an item to the array that is named after its kind: "ports". */
static void add_item(void *arg, const dscomm_backend_device_t *item)
{
    add_t *add = arg;
    /* A module may skip a level. */
    const int level = CLAMP(item->level, 0, add->depth);
    const bool is_first = level > 0 && level == add->depth;

    add_begin(add);
    add_close(add, level);
    if (is_first) {
        char *array = g_strconcat(item->kind, "s", NULL);

        tool_json_array(add->builder, array);
        g_free(array);
    }
    tool_json_object(add->builder, NULL);
    tool_json_text(add->builder, "name", item->name);
    tool_json_flag(add->builder, "chosen", item->chosen);
    tool_json_text(add->builder, "why", item->why);
    for (size_t i = 0; i < item->fact_count; i++)
        add_fact(add->builder, &item->facts[i]);
    add->depth = level + 1;
}

/* Adds the devices of a backend, unless it does not list any. */
static void add_backend(JsonBuilder *builder, size_t index, const char *name)
{
    add_t add = {.builder = builder, .backend = name};
    const dscomm_status_t status =
        dscomm_backend_devices(index, add_item, &add);

    if (status == DSCOMM_ERR_UNSUPPORTED)
        return;
    add_begin(&add);
    add_close(&add, 0);
    json_builder_end_array(builder);
    tool_json_text(builder, "why",
                   status == DSCOMM_OK ? NULL : dscomm_last_error());
    json_builder_end_object(builder);
}

void info_add_devices(JsonBuilder *builder)
{
    dscomm_backend_info_t info = {.size = sizeof info};

    tool_json_array(builder, "devices");
    for (size_t i = 0; dscomm_backend_info(i, &info) == DSCOMM_OK; i++)
        add_backend(builder, i, info.name);
    json_builder_end_array(builder);
}
