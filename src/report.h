/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Findings for people: the table of `status`, the lines of the journal. The one port that reads plan.h.
 * Whatever comes from sysfs, a controller or the configuration goes through printable() before it is shown.
 */
#pragma once

#include <stdio.h>

#include "plan.h"

struct report_options {
	bool all;       /* also a row for each namespace that is present */
	bool color;     /* the caller decided: a terminal, and NO_COLOR is not set */
	size_t width;   /* columns of the terminal; 0 not a terminal: nothing is cut */
	int64_t now;
	bool remembered; /* answers are the last run's: show their age */
};

/*
 * A row a subsystem (label, NQN, controllers live/all, namespaces good/expected) and below it one for each namespace
 * that is not present: SUBSYSTEM NAMESPACE STATE ACTION PATHS DEVICE, and under EVIDENCE the sentence. By libsmartcols.
 * 0 or a negative errno (output refused).
 */
int report_table(FILE *out, const struct plan *p, const struct report_options *o) WARN_UNUSED;

/*
 * One log line for each finding with `news`; many with the same subsystem, state and action become one line with their
 * number, the first few names and one evidence. Good news are NOTICE, waiting is INFO, what somebody must mend WARNING.
 */
void report_news(const struct plan *p, int64_t now);
/* One NOTICE line before an act that changes something (a rescan): the controller and what is to appear. */
void report_act(const struct plan *p, const struct act *a);
/* `heal --dry-run`: to out, what would be asked of which controller and what would appear; "nothing to do" otherwise. */
int report_dry_run(FILE *out, const struct plan *p) WARN_UNUSED;
