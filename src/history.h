/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * /run/nvme-nsheal: records, locks and triggers.
 *
 *   record-HASH.json    0644  what is remembered about one subsystem (JSON by json-c), replaced atomically
 *   lock-HASH           0600  one actor per subsystem (flock; rule 12)
 *   ask-nvmeN           0600  held by the child that asks controller N (flock), see ask.h
 *   trigger-HASH-WHAT-nvmeN   left by the udev helper: what happened last, see trigger.h
 * HASH is FNV-1a of "NQN\nHOSTNQN" (locks and records) or of the NQN (triggers), in hexadecimal; the file holds the
 * names themselves, and a file of another name counts as none.
 *
 * The directory is opened without following a link in its last component, and must belong to root (or to us) and not
 * be writable by others, or nothing in it is believed.
 */
#pragma once

#include "record.h"

struct history; /* an open directory */

/*
 * create: make the directory (0755) if it is not there. 0 and *h, or a negative errno; without create an absent
 * directory is 0 and a history in which there is nothing. -EPERM: the directory is not to be trusted.
 */
int history_open(const char *dir, bool create, struct history **h) WARN_UNUSED;
void history_close(struct history *h);

/*
 * One subsystem's record. 1 and *r filled; 0 none (also torn, foreign, of another version or boot, or with an event
 * more than a minute beyond `now`: *r is then empty but for the names); else a negative errno. Within that minute, which
 * is for those who read without the lock what was written since they looked at the clock, events are set to `now`.
 */
int history_load(struct history *h, const char *nqn, const char *hostnqn, int64_t now, struct rec_subsys *r) WARN_UNUSED;
/* Replace the record; one without namespaces and controllers is removed instead. 0 or a negative errno. */
int history_save(struct history *h, const struct rec_subsys *r) WARN_UNUSED;
/* Try to become the actor of that subsystem: a file descriptor that holds the lock, -EAGAIN if another has it, -errno. */
int history_lock(struct history *h, const char *nqn, const char *hostnqn) WARN_UNUSED;
/* NQNs that have a record, for what the configuration no longer names: list of strings, NULL-terminated; caller frees all. */
char **history_list(struct history *h);

/* Text of a record, for the fuzzer and tests: as load, but from memory; history-json.c. */
int history_parse(const char *json, size_t len, const char *boot_id, int64_t now, struct rec_subsys *r) WARN_UNUSED;
char *history_format(const struct rec_subsys *r, const char *boot_id, int64_t now);

/* Triggers: what the udev helper left. */
struct trigger {
	bool connected;  /* NVME_EVENT=connected of that controller, else any other reason to look */
	int instance;    /* the controller's number, -1 not known */
	int64_t at;      /* CLOCK_BOOTTIME of the event */
};
/* Is there a trigger for that subsystem? Leaves it where it is. */
bool history_triggered(struct history *h, const char *nqn);
/*
 * Take all triggers of that subsystem: they are gone afterwards. Only for the holder of its lock. Returns how many,
 * *list allocated (caller frees), or a negative errno. A trigger left while this runs is either in the list or still there.
 */
ssize_t history_take_triggers(struct history *h, const char *nqn, struct trigger **list) WARN_UNUSED;
/* Remove triggers of subsystems for which `keep` says false (the configuration changed after they were left). */
void history_sweep_triggers(struct history *h, bool (*keep)(void *arg, uint64_t nqn_hash), void *arg);
