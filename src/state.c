/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "state.h"

static const char *const state_names[N_STATES] = {
	[STATE_DISCONNECTED] = "disconnected",
	[STATE_AMBIGUOUS] = "ambiguous",
	[STATE_UNUSABLE] = "unusable",
	[STATE_PATHLESS] = "pathless",
	[STATE_NODELESS] = "nodeless",
	[STATE_DEGRADED] = "degraded",
	[STATE_PRESENT] = "present",
	[STATE_STALE_ANA] = "stale-ana",
	[STATE_INACCESSIBLE] = "inaccessible",
	[STATE_HEADLESS] = "headless",
	[STATE_CONFLICT] = "conflict",
	[STATE_HIDDEN] = "hidden",
	[STATE_UNREADY] = "unready",
	[STATE_NO_QUEUES] = "no-queues",
	[STATE_UNMAPPED] = "unmapped",
	[STATE_UNKNOWN] = "unknown",
	[STATE_MISSING] = "missing",
};

static const char *const action_names[N_ACTIONS] = {
	[ACTION_NONE] = "none",
	[ACTION_GRACE] = "grace",
	[ACTION_RESCAN] = "rescan",
	[ACTION_SETTLING] = "settling",
	[ACTION_BACKOFF] = "backoff",
	[ACTION_GAVE_UP] = "gave-up",
	[ACTION_BLOCKED] = "blocked",
	[ACTION_REPORT] = "report",
};

const char *ns_state_name(enum ns_state s)
{
	return s >= 0 && s < N_STATES ? state_names[s] : "?";
}

const char *ns_action_name(enum ns_action a)
{
	return a >= 0 && a < N_ACTIONS ? action_names[a] : "?";
}

int ns_state_parse(const char *name)
{
	for (int i = 0; i < N_STATES; i++)
		if (streq(name, state_names[i]))
			return i;
	return -1;
}

bool ns_state_is_good(enum ns_state s, const struct policy *policy)
{
	return s == STATE_PRESENT || (s == STATE_DEGRADED && policy->paths == PATHS_ANY);
}
