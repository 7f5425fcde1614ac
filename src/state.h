/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The words for what is true of an expected namespace, and for what is done about it. They are an interface: reports,
 * JSON and the manual use them as spelt in state.c.
 */
#pragma once

#include "expect.h"

/* In the design's order: where several fit, the first. */
enum ns_state {
	STATE_DISCONNECTED,
	STATE_AMBIGUOUS,
	STATE_UNUSABLE,
	STATE_PATHLESS,
	STATE_NODELESS,
	STATE_DEGRADED,
	STATE_PRESENT,
	STATE_STALE_ANA,
	STATE_INACCESSIBLE,
	STATE_HEADLESS,
	STATE_CONFLICT,
	STATE_HIDDEN,
	STATE_UNREADY,
	STATE_NO_QUEUES,
	STATE_UNMAPPED,
	STATE_UNKNOWN,
	STATE_MISSING,
	N_STATES
};

enum ns_action {
	ACTION_NONE,
	ACTION_GRACE,
	ACTION_RESCAN,
	ACTION_SETTLING,
	ACTION_BACKOFF,
	ACTION_GAVE_UP,
	ACTION_BLOCKED,
	ACTION_REPORT,
	N_ACTIONS
};

const char *ns_state_name(enum ns_state s);   /* "stale-ana" */
const char *ns_action_name(enum ns_action a); /* "gave-up" */
int ns_state_parse(const char *name);         /* -1: no such state */
/* Is everything all right with a namespace in this state, as far as `status` and `wait` are concerned? */
bool ns_state_is_good(enum ns_state s, const struct policy *policy);
