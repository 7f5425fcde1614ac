/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The policy: what is true of each expected namespace, and what is to be done about it now.
 *
 * Pure: (expected, topology, answers, records, now) -> (findings, acts, records, next wake-up). No I/O, no clock, no
 * log; it cannot fail. Every rule of the design's section 5 is here and is named there where it acts.
 */
#pragma once

#include "expect.h"
#include "probe.h"
#include "record.h"
#include "state.h"
#include "topology.h"

/* One expected namespace. Pointers into the inputs of the plan are good as long as those are. */
struct finding {
	const struct expect_subsys *expect;
	const struct expect_ns *line; /* NULL: expected by `all` and the controllers' list */
	const char *nqn;              /* the real one where the section says "*" */
	uint32_t nsid;                /* 0 unknown */
	enum ns_state state;
	enum ns_action action;
	const struct topo_disk *disk; /* NULL none */
	size_t n_paths;               /* live paths of this host to it */
	char *evidence;               /* one sentence; NULL for present */
	char *key;                    /* as in the record; NULL for present */
	int64_t since;                /* first seen missing; 0 */
	int64_t until;                /* when the action may change by time; 0 */
	int64_t answered_at;          /* when the controllers' answer behind it was given; 0 none */
	bool curable;                 /* a rescan may cure it; false where only the state is told */
	bool transient;               /* an answer is under way: not worth a line yet */
	bool news;                    /* differs from what was last reported, or is there again: worth one line */
};

/* One section of the configuration, or one connected subsystem of a "*" section. */
struct subsys_finding {
	const struct expect_subsys *expect;
	const char *nqn;
	const struct topo_subsys *subsys; /* NULL: not connected */
	size_t first, n;                  /* its findings */
	size_t n_good, n_ctrl, n_live;    /* controllers of the wanted host identity */
	bool needs_lock;                  /* something to ask, to do or to remember: the loop takes its lock */
	bool locked_out;                  /* another process acts on it */
	const struct topo_disk **stale;   /* disks that no controller lists any more: reported, left alone; owned */
	size_t n_stale;
	size_t n_degraded;                /* good ones that lack a path */
	bool guarded;                     /* report only, because of the kernel (rule 15) */
};

enum act_kind {
	ACT_LIST,
	ACT_IDENTIFY,     /* nsid, n */
	ACT_IDENTIFY_ALL, /* the list, and the identity of each */
	ACT_ANA,          /* nsid, n: the ANA state of each, and CNS 00h */
	ACT_USE,          /* disk, n: who uses them */
	ACT_GONE,         /* nsid, n and disk: is each really gone, and can its disk still be read */
	ACT_RESCAN,
};

struct act {
	enum act_kind kind;
	size_t subsys; /* index into plan.subsys */
	int instance;  /* controller */
	uint32_t *nsid;
	char **disk; /* kernel names; as many as nsid for ACT_GONE */
	size_t n;
	bool rearm; /* ACT_RESCAN: repair the notification channel right before (rule 9) */
	char *why; /* for the journal and --dry-run: "NSID 17 would appear" */
};

struct plan {
	struct subsys_finding *subsys;
	size_t n_subsys;
	struct finding *finding;
	size_t n_finding;
	struct act *act;
	size_t n_act;
	int64_t wake;  /* time alone changes nothing before this; TIME_NEVER */
	bool pending;  /* an answer or a fuller look is needed before the plan is complete */
	bool settling; /* an effect is awaited: look each second */
	bool want_ids; /* the next look needs SYSFS_IDS */
};

enum plan_mode {
	PLAN_STATUS, /* ask nobody, do nothing: sysfs now, and remembered answers */
	PLAN_PROBE,  /* ask (without grace, pacing), do nothing */
	PLAN_HEAL,
};

/* A record and whether this process is the actor of its subsystem (rule 12): without that nothing is asked or done. */
struct plan_record {
	struct rec_subsys r;
	bool may_act;
	bool locked_out; /* another process is the actor: shown, nothing else */
};

struct plan_event {
	const char *nqn;
	int instance;
	int64_t at;
};

struct plan_input {
	const struct expect *expect;
	const struct topo *topo;
	const struct probes *probes;
	/*
	 * One record for each pair of plan_pairs(), in that order; changed in place. The planner adds what is missing and
	 * empties what is over; the loop loads before and saves after.
	 */
	struct plan_record *rec;
	size_t n_rec;
	int64_t now, run_start; /* answers from before run_start are not of this run */
	enum plan_mode mode;
	bool skip_grace; /* --now */
	bool dry_run;    /* say every rescan of a round at once; the records stay as they are */
	bool partial;    /* `expect` is one caller's part of it: what is remembered of the rest stays, and nothing is news */
	const char *kernel; /* uname's release, for rule 15; NULL: no guard */
	const struct plan_event *event; /* controllers that went live since the last look, from the triggers */
	size_t n_event;
};

/*
 * The (section, real NQN) pairs that a configuration stands for on this host now: each section once, a "*" section once
 * for every connected NQN that has no section of its own. The loop loads a record for each. Caller frees the array;
 * pointers are the inputs' own.
 */
struct plan_pair {
	const struct expect_subsys *expect;
	const char *nqn;
};
struct plan_pair *plan_pairs(const struct expect *e, const struct topo *t, size_t *n);

struct plan *plan_make(struct plan_input *in);
void plan_free(struct plan *p);
