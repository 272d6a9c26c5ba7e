/* SPDX-License-Identifier: BSD-3-Clause */
/* The loader accepts valid modules, and refuses everything else with a
 * reason. */
#include "config.h"

#include "lib/module/module.h"
#include "tests/lib/base/child.h"
#include "tests/lib/work/ranks.h"

#include <dlfcn.h>
#include <glib.h>
#include <sys/resource.h>
#include <sys/stat.h>

static char logged[16384];

static void remember(dscomm_log_level_t level, const char *domain,
                     const char *message, void *arg)
{
    size_t length = strlen(logged);

    (void)level;
    (void)domain;
    (void)arg;
    snprintf(logged + length, sizeof logged - length, "%s\n", message);
}

/* A module, and words of the reason; NULL: it is accepted. */
static const struct {
    const char *name, *reason[2];
} modules[] = {
    {"fine", {NULL, NULL}},
    {"badabi", {"abi 42", "has " G_STRINGIFY(DSCOMM_BACKEND_ABI)}},
    {"badname", {"'another'", "'badname'"}},
    {"badsize", {"table of operations has", "at least"}},
    {"badrequest", {"requests have", "at least"}},
    {"badslot", {"required operation is missing", ""}},
    {"badops", {"no table of operations", ""}},
    {"badlibrary", {"it uses the libdscomm in", "link the program with"}},
    {"nothing", {"no symbol dscomm_backend_nothing", ""}},
    {"borrower", {"dscomm_backend_borrower belongs to another library", ""}},
    {"text", {"text.so is refused: it is cut off or no shared object", ""}},
    {"half", {"half.so is refused: it is cut off or no shared object", ""}},
    {"sections",
     {"sections.so is refused: it is cut off or no shared object", ""}},
    {"folder", {"folder.so is refused: it is cut off or no shared object", ""}},
    {"absent", {"absent.so is refused: it cannot be opened: No such file", ""}},
};

static const dscomm_module_t *find(const char *name)
{
    const dscomm_module_t *module;

    for (size_t i = 0; (module = dscomm_priv_module_get(i)); i++)
        if (!strcmp(module->name, name))
            return module;
    return NULL;
}

static void check_one(size_t i)
{
    const char *name = modules[i].name;
    const dscomm_module_t *module = find(name), *found = NULL;
    dscomm_status_t status;
    char line[128];

    if (!ok(module != NULL, "%s is found", name))
        return;
    status = dscomm_priv_module_find(name, &found);
    if (!modules[i].reason[0]) {
        ok(module->backend && status == DSCOMM_OK && found == module,
           "%s is taken", name);
        return;
    }
    ok(!module->backend && module->why, "%s is refused", name);
    is_int(status, DSCOMM_ERR_NO_BACKEND, "%s: an error when asked for", name);
    for (int k = 0; k < 2; k++)
        ok(strstr(dscomm_last_error(), modules[i].reason[k]) != NULL,
           "%s: the reason says \"%s\": %s", name, modules[i].reason[k],
           dscomm_last_error());
    snprintf(line, sizeof line, "/%s.so is refused: ", name);
    ok(strstr(logged, line) != NULL, "%s: the log names the file", name);
}

static void check_taken(void)
{
    const dscomm_module_t *module = find("fine");
    const dscomm_setting_t *row = dscomm_priv_backend_settings(0);

    ok(module->ops.progress && module->ops.status, "required slots are kept");
    ok(!module->ops.run && !module->ops.capabilities && !module->ops.quiesce,
       "slots beyond the module's table are NULL");
    ok(row && !strcmp(row->name, "DSCOMM_fine_KNOB"),
       "its settings are listed");
    ok(!dscomm_priv_backend_settings(1), "and those of refused ones are not");
}

static void forget_progress(void *impl, dscomm_backend_ops_t *ops)
{
    (void)impl;
    ops->progress = NULL;
}

static void check_trim(void)
{
    const dscomm_module_t *module = find("fine");
    dscomm_backend_ops_t ops = module->ops;

    is_int(dscomm_priv_module_trim(module, NULL, &ops), DSCOMM_OK,
           "a table without trim stays as it is");
    ops.trim = forget_progress;
    is_int(dscomm_priv_module_trim(module, NULL, &ops), DSCOMM_ERR_NO_BACKEND,
           "a trim that empties a required slot");
    ok(strstr(dscomm_last_error(), "backend fine does not work") &&
           strstr(dscomm_last_error(), "required slot"),
       "  %s", dscomm_last_error());
}

static void check_info(void)
{
    dscomm_backend_info_t info = {.size = sizeof info};
    size_t i, builtin = 0, refused = 0;
    const dscomm_module_t *module;

    for (i = 0; dscomm_backend_info(i, &info) == DSCOMM_OK; i++) {
        builtin +=
            (!strcmp(info.name, "self") || !strcmp(info.name, "two_level")) &&
            !info.path && info.usable;
        refused += !info.usable && info.path && info.why;
    }
    is_int((long long)i, 17,
           "dscomm_backend_info lists two that are built in, and 15 modules");
    is_int((long long)builtin, 2, "self and two_level are built in and usable");
    ok(dscomm_priv_module_find("hierarchical", &module) == DSCOMM_OK &&
           !strcmp(module->name, "two_level"),
       "hierarchical is another name of two_level");
    is_int((long long)refused, 14, "14 say why they are refused");
    is_int(dscomm_backend_info(i, &info), DSCOMM_ERR_NOT_FOUND,
           "nothing beyond");
    is_int(dscomm_backend_info(0, NULL), DSCOMM_ERR_INVALID, "info NULL");
    info.size = 0;
    is_int(dscomm_backend_info(0, &info), DSCOMM_ERR_INVALID, "info.size 0");
}

static void no_visit(void *arg, const dscomm_backend_device_t *item)
{
    (void)arg;
    (void)item;
}

/* fine has no slot devices, because its table is too short for it. */
static void check_devices(void)
{
    dscomm_backend_info_t info = {.size = sizeof info};
    size_t i;

    is_int(dscomm_backend_devices(0, NULL, NULL), DSCOMM_ERR_INVALID,
           "devices, with visit NULL");
    for (i = 0; dscomm_backend_info(i, &info) == DSCOMM_OK; i++)
        is_int(dscomm_backend_devices(i, no_visit, NULL),
               DSCOMM_ERR_UNSUPPORTED, "%s lists no devices", info.name);
    is_int(dscomm_backend_devices(i, no_visit, NULL), DSCOMM_ERR_NOT_FOUND,
           "no devices beyond");
}

static void check_unknown(void)
{
    const dscomm_module_t *module;

    is_int(dscomm_priv_module_find("teleport", &module), DSCOMM_ERR_NO_BACKEND,
           "a name that no module has");
    ok(strstr(dscomm_last_error(), "teleport") &&
           strstr(dscomm_last_error(), "fine"),
       "the sentence names it, and those there are: %s", dscomm_last_error());
    ok(strstr(dscomm_last_error(), "/absent cannot be read: No such file") !=
           NULL,
       "and the folder that is not there: %s", dscomm_last_error());
}

/* A folder that cannot be read, and the expected message. */
typedef struct {
    const char *path;
    int few_files; /* 1: no descriptor is left */
    const char *words[3];
} unreadable_t;

/* Runs in its own process, because the folders are read once. */
static int find_nothing(const void *arg, int out)
{
    const unreadable_t *row = arg;
    const dscomm_module_t *module;
    struct rlimit before, limit;
    dscomm_status_t status;

    setenv("DSCOMM_BACKEND_PATH", row->path, 1);
    getrlimit(RLIMIT_NOFILE, &before);
    limit = before;
    limit.rlim_cur = (rlim_t)out + 1;
    if (row->few_files && setrlimit(RLIMIT_NOFILE, &limit))
        return 1;
    status = dscomm_priv_module_find("shm", &module);
    setrlimit(RLIMIT_NOFILE, &before);
    dprintf(out, "%s: %s", dscomm_status_name(status), dscomm_last_error());
    return 0;
}

static void check_unreadable(const char *folder)
{
    const unreadable_t rows[] = {
        {"/nonexistent/backends",
         0,
         {"/nonexistent/backends cannot be read", "No such file or directory",
          "set DSCOMM_BACKEND_PATH"}},
        {"/dev/null",
         0,
         {"/dev/null cannot be read", "Not a directory",
          "set DSCOMM_BACKEND_PATH"}},
        {folder, 1, {"cannot be read", strerror(EMFILE), "ulimit -n"}},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[600] = "";
        int status;

        child_read(find_nothing, &rows[i], text, sizeof text - 1, &status);
        ok(!strncmp(text, "ERR_NO_BACKEND", 14), "unreadable %zu: the status",
           i);
        for (int k = 0; k < 3; k++)
            ok(strstr(text, rows[i].words[k]) != NULL,
               "unreadable %zu: says \"%s\": %s", i, rows[i].words[k], text);
    }
}

static void write_file(const char *folder, const char *name, const void *bytes,
                       size_t size)
{
    char path[4096];
    FILE *file;

    snprintf(path, sizeof path, "%s/%s.so", folder, name);
    file = fopen(path, "wb");
    if (!file || fwrite(bytes, 1, size, file) != size || fclose(file))
        bail("cannot write %s", path);
}

/* Adds files that are no modules: a text; truncated modules; a folder; a
 * dangling link; and a file whose name is not valid. */
static void add_broken(const char *folder, const char *module)
{
    FILE *file = fopen(module, "rb");
    static char bytes[1 << 20];
    size_t size = file ? fread(bytes, 1, sizeof bytes, file) : 0;
    char path[4096];

    if (size < 8192 || size == sizeof bytes || fclose(file))
        bail("cannot read %s", module);
    write_file(folder, "text", "no ELF file\n", 12);
    write_file(folder, "half", bytes, 4096);
    write_file(folder, "sections", bytes, size - 1);
    write_file(folder, "odd name", bytes, size);
    snprintf(path, sizeof path, "%s/folder.so", folder);
    if (mkdir(path, 0700))
        bail("mkdir failed");
    snprintf(path, sizeof path, "%s/absent.so", folder);
    if (symlink("nowhere", path))
        bail("symlink failed");
}

/* Makes a folder with links to the modules; the path has two folders, one of
 * which does not exist. */
static void prepare(char *folder)
{
    const char *top = getenv("abs_top_builddir");
    char from[4096], to[4096], path[8192];

    if (!mkdtemp(folder))
        bail("mkdtemp failed");
    for (size_t i = 0; strcmp(modules[i].name, "text"); i++) {
        snprintf(from, sizeof from, "%s/tests/lib/modules/.libs/%s.so",
                 top ? top : ".", modules[i].name);
        snprintf(to, sizeof to, "%s/%s.so", folder, modules[i].name);
        if (symlink(from, to))
            bail("symlink failed");
    }
    snprintf(from, sizeof from, "%s/tests/lib/modules/.libs/fine.so",
             top ? top : ".");
    add_broken(folder, from);
    snprintf(path, sizeof path, "%s/absent:%s", folder, folder);
    setenv("DSCOMM_BACKEND_PATH", path, 1);
    snprintf(from, sizeof from, "%s/tests/lib/modules/.libs/liblender.so",
             top ? top : ".");
    if (!dlopen(from, RTLD_NOW | RTLD_GLOBAL))
        bail("%s", dlerror());
}

static void clean(const char *folder)
{
    char path[4096];

    for (size_t i = 0; i < sizeof modules / sizeof *modules; i++) {
        snprintf(path, sizeof path, "%s/%s.so", folder, modules[i].name);
        remove(path);
    }
    snprintf(path, sizeof path, "%s/odd name.so", folder);
    unlink(path);
    rmdir(folder);
}

int main(void)
{
    char folder[] = "/tmp/dscomm-module-XXXXXX";

    prepare(folder);
    check_unreadable(folder);
    dscomm_log_set_levels("info");
    dscomm_log_set_handler(remember, NULL);
    ok(!strncmp(dscomm_backend_directory(), folder, strlen(folder)),
       "the folder is the environment's");
    for (size_t i = 0; i < sizeof modules / sizeof *modules; i++)
        check_one(i);
    ok(strstr(logged, "'odd name.so'") != NULL,
       "the log tells of a name that no backend can have");
    check_taken();
    check_trim();
    check_info();
    check_devices();
    check_unknown();
    clean(folder);
    return tap_done();
}
