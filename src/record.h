/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What is remembered about a subsystem from one run to the next, within this boot. Values: history.c reads and writes
 * them, plan.c alone changes them. A subsystem about which there is nothing to remember has no record.
 * Times are CLOCK_BOOTTIME in nanoseconds; 0 = never.
 */
#pragma once

#include "util.h"

/* One expected namespace that is, or lately was, not there. */
struct rec_ns {
	char *key;           /* its identity as the configuration gives it: see plan.c expectation_key() */
	uint32_t nsid;       /* the NSID under which a controller lists it; 0 unknown */
	int64_t since;       /* first seen missing */
	int64_t grace_first; /* the first start of its grace time while a controller was live */
	int64_t grace_from;  /* its latest start (rule 2) */
	unsigned attempts;   /* rescans without effect (rule 8) */
	int64_t attempted_at;
	int64_t next_attempt; /* backoff or retry-after ends */
	bool second_round;    /* its old namesake was removed; the rescan that creates it is no attempt of its own (rule 6) */
	uint64_t old_ident;   /* of the disk that its first round is to remove: a hash */
	bool in_round;        /* the last rescan was also for this one, and its effect is still awaited */
	int64_t absent_since; /* since when no controller lists it; 0 = one does, or unknown */
	uint64_t walk_hash;   /* the active lists that were walked in vain */
	int64_t walk_next;    /* no full walk before this, while the lists stay the same */
	int64_t walk_pause;
	int64_t blocked_at;    /* when a rescan for it was last found to take away what must stay */
	int64_t blocked_until; /* not looked into again in the same run before this */
	char *blocked_text;    /* what it would take away, and the way out */
	int verdict;          /* enum ns_state from the last answers; -1 none */
	int64_t verdict_at;
	char *verdict_text;   /* its evidence */
	int said_state, said_action; /* what was last reported; -1 nothing */
};

/* One controller of a subsystem that has a record. */
struct rec_ctrl {
	int instance, cntlid;
	bool live;           /* at the last look */
	int64_t live_at;     /* when it was seen going live; 0 it was live from the first look on */
	size_t n_paths;      /* at the last look */
	int64_t gained_at;   /* when it was last seen to have gained a path */
	bool pending;        /* to be rescanned in the round that its canary opened (rule 5) */
	int64_t rescanned_at;
	int64_t settle_until, settle_limit; /* the wait for its effect, and how far appearances may extend it (rule 7) */
	bool awaiting;       /* not all of its effect is there yet, and it has not settled */
	bool canary;         /* it was the first of its round */
	bool effect;         /* something of its effect was seen */
	unsigned n_rescan;   /* asked for since day_from, which is at most a day ago (advice on rule 9) */
	int64_t day_from;
	unsigned fails;      /* times in a row it gave no answer */
	bool hung;           /* the last time it did not answer at all */
	int64_t failed_at;   /* the last time; the pause grows with fails */
};

/* A disk in use that every controller says is gone: `removals = dead` lets it go when that is seen twice (rule 4). */
struct rec_dead {
	char *disk; /* kernel name */
	uint32_t nsid;
	int64_t first_at; /* when it was first found dead */
};

struct rec_subsys {
	char *nqn, *hostnqn; /* as in the configuration section; hostnqn NULL = any */
	struct rec_ns *ns;   /* by key */
	size_t n_ns;
	struct rec_ctrl *ctrl; /* by instance */
	size_t n_ctrl;
	struct rec_dead *dead;
	size_t n_dead;
};

struct rec_ns *rec_ns_find(const struct rec_subsys *r, const char *key);
struct rec_ns *rec_ns_get(struct rec_subsys *r, const char *key);
struct rec_ctrl *rec_ctrl_find(const struct rec_subsys *r, int instance);
struct rec_ctrl *rec_ctrl_get(struct rec_subsys *r, int instance);
struct rec_dead *rec_dead_find(const struct rec_subsys *r, const char *disk);
struct rec_dead *rec_dead_get(struct rec_subsys *r, const char *disk);
void rec_dead_drop(struct rec_subsys *r, struct rec_dead *d);
void rec_ns_drop(struct rec_subsys *r, struct rec_ns *ns);
void rec_ctrl_drop(struct rec_subsys *r, struct rec_ctrl *c);
void rec_subsys_clear(struct rec_subsys *r);
/* Changes when anything in it does: to see whether it must be written again. Good within one process. */
uint64_t rec_subsys_hash(const struct rec_subsys *r);
