/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Look, plan, act, wait. The only file that knows every module.
 */
#pragma once

#include "config.h"
#include "plan.h"

/* EXIT_...: the command line's exit codes (design, section 6) */
enum exit_code { EXIT_ALL_THERE = 0, EXIT_NOT_THERE = 1, EXIT_USAGE = 2, EXIT_CONFIG = 3, EXIT_TROUBLE = 4 };

struct loop_options {
	struct config_paths paths;
	const char *sysroot;      /* NULL: this machine's /sys */
	const char *const *only;  /* labels or NQNs to limit the run to; NULL-terminated, may be empty */
	const char *ask_program, *rundir;
	enum plan_mode mode;
	bool skip_grace, dry_run;
	bool all_rows, json;
	/* `wait`: until all is there or the time has passed */
	int64_t timeout;               /* ns; 0: not a wait */
	int64_t grace;                 /* ns; -1: as configured, or two seconds for `ns` */
	const char *nqn;               /* NULL: the configuration as it is, else only ... */
	const struct expect_ns *ns;    /* ... this namespace of that subsystem, under the rules that are configured for it */
	bool removals_given; /* --removals: instead of every section's own, this once */
	enum policy_removals removals;
};

/* `status`: look and plan, with PLAN_PROBE until the answers are in; prints the table. An exit code. */
int loop_status(const struct loop_options *o);
/* `heal`: until the plan has nothing to wait for in this run. An exit code. */
int loop_heal(const struct loop_options *o);
/* `wait`: heals until everything is there, and prints the devices; or until the time-out, and says why not. An exit code. */
int loop_wait(const struct loop_options *o);
/* `generate`: prints a configuration of what is attached now; of o->only, or of all. An exit code. */
int loop_generate(const struct loop_options *o);
