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
	int64_t elapsed; /* ns, of this run; JSON only, as is ... */
	size_t n_rescan; /* ... how many rescans it asked for */
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
/* One ERROR line for each group of what is not there: how `wait` ends in vain. */
void report_not_there(const struct plan *p, int64_t now);
/* The path of each device that is there, one a line. 0 or a negative errno. */
int report_devices(FILE *out, const struct plan *p) WARN_UNUSED;
/*
 * What is attached now as a configuration that check-config accepts and status finds all present; of the subsystems
 * whose NQN is_wanted(). 0 or a negative errno. In report-config.c.
 */
int report_configuration(FILE *out, const struct topo *t, bool (*is_wanted)(const void *arg, const char *nqn),
			 const void *arg) WARN_UNUSED;
/* Everything as one JSON document, schema 1: nvme-nsheal-json(5). 0 or a negative errno. In report-json.c, by json-c. */
int report_json(FILE *out, const struct plan *p, const struct report_options *o) WARN_UNUSED;
/* `heal --dry-run`: to out, what would be asked of which controller and what would appear; "nothing to do" otherwise. */
int report_dry_run(FILE *out, const struct plan *p) WARN_UNUSED;
