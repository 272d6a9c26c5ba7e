/* SPDX-License-Identifier: BSD-3-Clause */
/* The MPI library: initialising and finalising it.
 *
 * MPI can be initialised once in a process. So an MPI that was initialised
 * here is finalised when the program ends, and may serve several worlds, one
 * after the other. */
#include "config.h"

#include "backends/mpi/impl.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

pthread_mutex_t engine_library_lock = PTHREAD_MUTEX_INITIALIZER;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static TAILQ_HEAD(, engine) engines = TAILQ_HEAD_INITIALIZER(engines);
static int level, ready;
static int end_ms; /* time for MPI_Finalize(): the longest timeout of groups */
static pthread_t first; /* thread that has opened a group */
static pid_t home; /* the process that uses MPI, or 0 */
static atomic_int unsafe, stranded, entered, finalized;

/* Runs at the end of the program. MPI is not finalised after a failure, because
 * MPI_Finalize() may wait for ranks that will not come; nor if a message is
 * stranded, see engine_library_strand(); nor while a thread is inside MPI. */
static void library_finalize(void)
{
    int over = 0;

    if (home != getpid() || unsafe || stranded || entered ||
        !TAILQ_EMPTY(&engines))
        return;
    if (MPI_Finalized(&over) == MPI_SUCCESS && !over)
        engine_end(end_ms);
}

/* MPI_Finalize() deletes the attributes of MPI_COMM_SELF first. The thread
 * that has the lock may still be inside MPI; later ones see that the group has
 * ended. The other ranks can no longer be notified. */
static int see_finalize(MPI_Comm comm, int key, void *value, void *extra)
{
    dscomm_failure_t failure;
    engine_t *engine;

    (void)comm, (void)key, (void)value, (void)extra;
    finalized = 1;
    pthread_mutex_lock(&lock);
    TAILQ_FOREACH (engine, &engines, link) {
        dscomm_backend_failure(engine->group, DSCOMM_ERR_STATE,
                               DSCOMM_FAILURE_PROTOCOL, -1, 0, &failure);
        g_strlcpy(failure.detail,
                  "the program has called MPI_Finalize() before "
                  "dscomm_finalize()",
                  sizeof failure.detail);
        ending_mark(&engine->ending, &failure);
        pthread_mutex_lock(engine->lock);
        pthread_mutex_unlock(engine->lock);
    }
    pthread_mutex_unlock(&lock);
    return MPI_SUCCESS;
}

static const MPI_Comm predefined[] = {MPI_COMM_WORLD, MPI_COMM_SELF};
static MPI_Errhandler kept[G_N_ELEMENTS(predefined)];
static pthread_mutex_t errors_lock = PTHREAD_MUTEX_INITIALIZER;
static int holders;

void engine_errors_hold(void)
{
    pthread_mutex_lock(&errors_lock);
    for (size_t i = 0; i < G_N_ELEMENTS(predefined) && !holders; i++) {
        MPI_Comm_get_errhandler(predefined[i], &kept[i]);
        MPI_Comm_set_errhandler(predefined[i], MPI_ERRORS_RETURN);
    }
    holders++;
    pthread_mutex_unlock(&errors_lock);
}

void engine_errors_release(void)
{
    pthread_mutex_lock(&errors_lock);
    holders--;
    for (size_t i = 0; i < G_N_ELEMENTS(predefined) && !holders; i++) {
        MPI_Comm_set_errhandler(predefined[i], kept[i]);
        MPI_Errhandler_free(&kept[i]);
    }
    pthread_mutex_unlock(&errors_lock);
}

static dscomm_status_t library_check(void)
{
    char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length = 0, is_openmpi;

    MPI_Get_library_version(text, &length);
    text[strcspn(text, "\n")] = '\0';
    is_openmpi = strncmp(text, "Open MPI", 8) == 0;
    if (is_openmpi == (strcmp(ENGINE_NAME, "openmpi") == 0))
        return DSCOMM_OK;
    return dscomm_fail(DSCOMM_ERR_NO_BACKEND,
                       "mpi: the module for " ENGINE_NAME
                       " has met another MPI library in this process: %.100s",
                       text);
}

static dscomm_status_t library_initialize(const dscomm_backend_args_t *args,
                                          int timeout_ms)
{
    dscomm_status_t status;

    if (!mpi_family_launched())
        return dscomm_fail(DSCOMM_ERR_ENVIRONMENT,
                           "mpi: MPI was not wired up: no MPI has started this "
                           "process; use the mpirun of " ENGINE_NAME ", or %s",
                           strcmp(ENGINE_NAME, "mpich") == 0
                               ? MPI_SRUN_MPICH
                               : MPI_SRUN_OPENMPI);
    status = engine_begin(args, timeout_ms, &level);
    if (status < 0)
        return status;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    atexit(library_finalize);
    return DSCOMM_OK;
}

static dscomm_status_t library_start(const dscomm_backend_args_t *args,
                                     int timeout_ms)
{
    int started = 0, over = 0, key;
    dscomm_status_t status = library_check();

    if (status < 0)
        return status;
    MPI_Initialized(&started);
    MPI_Finalized(&over);
    if (over)
        return dscomm_fail(DSCOMM_ERR_STATE,
                           "mpi: the program has finalised MPI, which cannot "
                           "be initialised again");
    if (!started || engine_has_begun())
        status = library_initialize(args, timeout_ms);
    else
        MPI_Query_thread(&level);
    if (status < 0)
        return status;
    engine_errors_hold();
    if (MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, see_finalize, &key,
                               NULL) == MPI_SUCCESS)
        MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL);
    status = engine_types_setup();
    engine_errors_release();
    first = pthread_self();
    return status;
}

/* Refuses if MPI allows only one thread at a time: two threads that make groups
 * would wait for each other, in different orders on different ranks. */
static dscomm_status_t check_threads(void)
{
    int64_t progress = 0;
    int is_main = 1;

    if (level == MPI_THREAD_MULTIPLE)
        return DSCOMM_OK;
    if (level < MPI_THREAD_SERIALIZED && engine_has_begun())
        return dscomm_fail(DSCOMM_ERR_STATE,
                           "mpi: this MPI gives less than "
                           "MPI_THREAD_SERIALIZED, so that only the thread "
                           "that has initialised it may call it; call "
                           "MPI_Init_thread() before dscomm_init(), in the "
                           "thread that makes all groups");
    if (dscomm_setting_number(&mpi_settings[MPI_SETTING_PROGRESS], &progress) <
            0 ||
        progress)
        return dscomm_fail(DSCOMM_ERR_STATE,
                           "mpi: DSCOMM_PROGRESS=thread needs "
                           "MPI_THREAD_MULTIPLE, which %s; unset it%s",
                           engine_has_begun() ? "this MPI does not give"
                                              : "the program has not got from "
                                                "MPI_Init_thread()",
                           engine_has_begun() ? "" : ", or ask for that");
    MPI_Is_thread_main(&is_main);
    if (!pthread_equal(pthread_self(), first) ||
        (level < MPI_THREAD_SERIALIZED && !is_main))
        return dscomm_fail(
            DSCOMM_ERR_STATE,
            "mpi: without MPI_THREAD_MULTIPLE one thread makes "
            "all groups, %s; %s",
            level < MPI_THREAD_SERIALIZED ? "the one that has initialised MPI"
                                          : "the one that has made the first",
            engine_has_begun() ? "this MPI gives no more"
                               : "ask MPI_Init_thread() for that");
    return DSCOMM_OK;
}

dscomm_status_t engine_library_open(const dscomm_backend_args_t *args,
                                    int timeout_ms, int *ret_level)
{
    dscomm_status_t status = DSCOMM_OK;

    pthread_mutex_lock(&lock);
    if (home && home != getpid())
        status = dscomm_fail(DSCOMM_ERR_STATE,
                             "mpi: this process was forked by one that uses "
                             "MPI, which cannot be used in both");
    else if (finalized)
        status = dscomm_fail(DSCOMM_ERR_STATE,
                             "mpi: the program has finalised MPI, which "
                             "cannot be initialised again");
    else if (!ready)
        status = library_start(args, timeout_ms);
    ready = status == DSCOMM_OK;
    if (ready || engine_has_begun())
        home = home ? home : getpid();
    if (ready)
        status = check_threads();
    end_ms = MAX(end_ms, args ? args->timeout_ms : timeout_ms);
    *ret_level = level;
    pthread_mutex_unlock(&lock);
    return status;
}

void engine_library_enlist(engine_t *engine)
{
    pthread_mutex_lock(&lock);
    TAILQ_INSERT_TAIL(&engines, engine, link);
    pthread_mutex_unlock(&lock);
}

void engine_library_delist(engine_t *engine)
{
    pthread_mutex_lock(&lock);
    TAILQ_REMOVE(&engines, engine, link);
    pthread_mutex_unlock(&lock);
}

bool engine_library_lost_rank(void)
{
    dscomm_failure_t failure;
    engine_t *engine;
    bool lost = false;

    pthread_mutex_lock(&lock);
    TAILQ_FOREACH (engine, &engines, link)
        lost |= ending_status(&engine->ending, &failure) < 0 &&
                (failure.kind == DSCOMM_FAILURE_DIED ||
                 failure.kind == DSCOMM_FAILURE_SILENT);
    pthread_mutex_unlock(&lock);
    return lost;
}

int engine_library_alive(void)
{
    return !finalized;
}

void engine_library_set_unsafe(int so)
{
    unsafe = so;
}

void engine_library_enter(int by)
{
    entered += by;
}

bool engine_must_receive(void)
{
#if defined MPICH_NUMVERSION && MPICH_NUMVERSION >= 40200000
    return true;
#else
    return false;
#endif
}

void engine_library_strand(bool so)
{
    stranded = so;
}
