/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the configuration expects of this host: values only. config.c makes them, plan.c reads them.
 * All durations in nanoseconds.
 */
#pragma once

#include "ident.h"

enum policy_action { POLICY_RESCAN, POLICY_REPORT };
enum policy_removals { REMOVALS_NEVER, REMOVALS_IDLE, REMOVALS_DEAD, REMOVALS_ALWAYS };
enum policy_paths { PATHS_ANY, PATHS_ALL };

#define SETTLE_AUTO (-1LL)

struct policy {
	enum policy_action action;
	bool action_given; /* somebody wrote it down: then the kernel guard does not overrule it */
	int64_t grace;
	int64_t settle; /* or SETTLE_AUTO */
	unsigned max_attempts;
	int64_t backoff;
	int64_t retry_after;
	enum policy_removals removals;
	bool rearm;
	enum policy_paths paths;
	bool kernel_guard;
};

/* design.md section 4's defaults */
void policy_init(struct policy *p);

/* One `namespace =` or `ignore =` line. Everything given must match. */
struct expect_ns {
	bool all;                       /* `all`: whatever the controllers list */
	uint32_t nsid_first, nsid_last; /* 0, 0: no NSID given; else an inclusive range, often of one */
	struct ident id;                /* empty: NSID alone */
	char *name;                     /* the administrator's word for it, or NULL */
	char *where;                    /* "file:line" or the option on the command line, for reports */
};

struct expect_subsys {
	char *label;   /* from the section header, unique for reports; the NQN if there is none */
	char *nqn;     /* trailing blanks trimmed; "*" means every connected subsystem that has no section of its own */
	char *hostnqn; /* NULL: any host identity */
	char *where;
	struct policy policy;
	struct expect_ns *ns;
	size_t n_ns;
	struct expect_ns *ignore;
	size_t n_ignore;
};

struct expect {
	struct expect_subsys *subsys;
	size_t n_subsys;
};

static inline bool expect_any_nqn(const struct expect_subsys *s)
{
	return streq(s->nqn, "*");
}

/* An empty subsystem expectation with default policy, appended. The pointer is good until the next append. */
struct expect_subsys *expect_add(struct expect *e, const char *label, const char *nqn);
/* Removes one; the others keep their order. */
void expect_remove(struct expect *e, size_t at);
/* An empty line appended to s->ns. */
struct expect_ns *expect_add_ns(struct expect_subsys *s);
void expect_ns_clear(struct expect_ns *ns);
struct expect_ns expect_ns_copy(const struct expect_ns *ns);
void expect_free(struct expect *e);
