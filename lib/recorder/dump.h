/* SPDX-License-Identifier: BSD-3-Clause */
/* Dumps of the flight recorder: JSON files, which dscomm analyze reads. */
#ifndef LIB_RECORDER_DUMP_H
#define LIB_RECORDER_DUMP_H

#include "lib/recorder/recorder.h"

#include <stdio.h>

/* The state of the process that wrote a slot; RUNNING also if it has not ended
 * and more is not known. */
typedef enum { SLOT_RUNNING, SLOT_STOPPED, SLOT_DEAD, SLOT_LEFT } slot_state_t;
slot_state_t dscomm_priv_recorder_state(const dscomm_recorder_slot_t *slot);
/* "running", "stopped", "dead", "left". */
const char *dscomm_priv_recorder_state_name(slot_state_t state);

/* Writes all used slots of recorder's memory, or only slot if it has none or
 * cannot be mapped, to file. */
void dscomm_priv_recorder_print(const dscomm_recorder_t *recorder,
                                const dscomm_recorder_slot_t *slot, FILE *file);

/* Writes the same to FOLDER/dscomm-JOB-HOST-NAME-HASH.json, unless that file
 * exists: of several processes that have the same memory, the first one writes
 * it. identity and name together are of one event alone. folder is made if it
 * does not exist. Returns NULL, or why the file could not be written. */
const char *dscomm_priv_recorder_dump(const char *folder, const char *identity,
                                      const char *name,
                                      const dscomm_recorder_t *recorder,
                                      const dscomm_recorder_slot_t *slot);

#endif
