/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the udev helper and `heal` must agree on: where a trigger is and what it holds.
 *
 * Name: "trigger-" HASH "-" ("connected" | "changed") "-" CONTROLLER, HASH = FNV-1a of the NQN in 16 hexadecimal digits,
 * CONTROLLER = kernel name, or "none". Content: one line, "1 BOOTTIME_NS\n" (1 is the version). It is written beside
 * its place as ".trigger-PID" and renamed into it: never seen torn; many events of one controller are one trigger with
 * the last time; their number is bounded by controllers, not by events.
 * `heal` takes one by renaming it to "taken-..." first: a trigger left in that moment is a new one and stays.
 */
#pragma once

#include "util.h"

#define TRIGGER_PREFIX "trigger-"
#define TRIGGER_TAKEN "taken-"
#define TRIGGER_CONNECTED "connected"
#define TRIGGER_CHANGED "changed"
#define TRIGGER_VERSION 1

static inline uint64_t trigger_hash(const char *nqn)
{
	return hash_bytes(HASH_INIT, nqn, strlen(nqn));
}
