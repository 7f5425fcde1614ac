/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Inside the planner only: one pass over one subsystem. The planner is five files that share this:
 *   plan.c     what a section expects, what changed on its controllers (rules 11, 12, 15)
 *   judge.c    what is true of one expected namespace, what may be done (rules 1, 2, 8)
 *   consult.c  what the controllers say of one namespace (rule 3)
 *   removal.c  what a rescan would take away, and whether it may (rule 4)
 *   round.c    rescans: canary, the others, settling (rules 5, 6, 7)
 */
#pragma once

#include "plan.h"
#include "view.h"

/* What the pass knows of one of the subsystem's controllers. */
struct ctrl_pass {
	const struct topo_ctrl *c;
	const struct probe *probe; /* NULL: never asked in this run */
	bool ours, usable;         /* as in struct view */
	bool listed;               /* its active list of this run is known */
	bool askable;              /* may be asked now: usable, not hung, no pause */
	const char *trouble;       /* why it may not, in words; NULL */
	bool want_list, want_walk; /* what the pass wants to ask it */
	struct wanted_nsids {
		uint32_t *nsid;
		size_t n;
	} want, want_ana;          /* NSIDs whose identity, whose ANA state is wanted */
	const char **want_use;     /* disks of which it is wanted who uses them; names in the topology */
	size_t n_want_use;
	const struct topo_disk **want_gone; /* disks of which it is wanted whether they are gone */
	size_t n_want_gone;
};

struct pass {
	struct plan_input *in;
	struct plan *plan;
	size_t index; /* in plan->subsys */
	size_t first_act; /* of this pass, in plan->act */
	const struct expect_subsys *e;
	const char *nqn;
	struct rec_subsys *rec;
	bool may_act;     /* we are the actor of this subsystem (rule 12) */
	bool report_only; /* action = report, or the kernel guard */
	struct view view;
	struct ctrl_pass *ctrl; /* by position in view.s->ctrl */
	size_t n_ctrl;
	int64_t live_at;  /* the latest time that one of ours went live or gained a path (rule 2) */
	int64_t fresh_at; /* the latest time that one of ours went live (rule 8) */
	int64_t blocked_until; /* when what blocks may be looked into again; TIME_NEVER: the next run */
	bool pending;     /* an answer that decides something is under way */
};

/* Will this pass act, or at least ask? */
static inline bool pass_heals(const struct pass *p)
{
	return p->in->mode == PLAN_HEAL && p->may_act;
}

static inline bool pass_asks(const struct pass *p)
{
	return p->in->mode == PLAN_PROBE || pass_heals(p);
}

static inline void pass_wake_at(struct pass *p, int64_t when)
{
	p->plan->wake = min_time(p->plan->wake, max_time(when, p->in->now));
}

/* first, doubled `times` times, at most `most` */
int64_t doubled(int64_t first, unsigned times, int64_t most);
/* "nvme3, nvme4": those of ours for which `which` says so; "" if none. Caller frees. */
char *say_ctrls(const struct pass *p, bool (*which)(const struct pass *p, size_t ctrl, const void *arg), const void *arg);

/* Pauses before a controller that gave no answer is asked again, and before a walk in vain is repeated: doubled. */
#define PAUSE_FIRST (30 * NS_PER_SEC)

/* judge.c */
extern const struct ident no_ident; /* empty: by NSID alone */
/* Adds the finding of one namespace as expected: its line (NULL: by `all`) and NSID (0: by identity alone). */
void judge(struct pass *p, const struct expect_ns *line, uint32_t nsid);
/* No controller may be asked: the subsystem's own state is the namespace's. */
void judge_without_controllers(struct pass *p, struct finding *f, struct rec_ns *r);
/* Is a finding worth a line? What is said is remembered. */
void decide_news(struct pass *p, struct finding *f, struct rec_ns *r);

/* consult.c */
struct consult {
	const struct ident *want; /* empty: by NSID alone */
	bool by_nsid;             /* the expectation names an NSID */
	uint32_t nsid;            /* that one, or under which the identity was found; 0 */
	size_t n_lists;           /* controllers that list it */
	bool pending;             /* an answer that decides is still to come */
	bool incomplete;          /* not every controller could be asked, or not about everything */
	bool walked;              /* looked for among all identities, in vain */
	int64_t at;               /* the oldest answer that this rests on; 0 none */
	char *trouble;            /* the first reason for incomplete */
	char *other;              /* the NSID is listed, but is this one */
};

/* Ask the answers of this run; what is missing becomes wants of the controllers. Clear with consult_clear(). */
void consult(struct pass *p, struct consult *q, const struct rec_ns *r);
void consult_clear(struct consult *q);
/* As far as its list of this run is known: does this controller list the NSID, and not as something other than want? */
bool ctrl_lists(const struct ctrl_pass *c, uint32_t nsid, const struct ident *want);
void want_nsid(struct wanted_nsids *w, uint32_t nsid);
/* All lists of this run together: a walk in vain need not be repeated while they stay the same. */
uint64_t lists_hash(const struct pass *p);

/* round.c */
/* Were there rescans of it within a day that may lead to advice? Such a record outlives what it was made for. */
bool rescans_are_counted(const struct pass *p, const struct rec_ctrl *rc);
/* The host believes its path through this controller inaccessible, and the controller says otherwise (rule 14). */
bool ctrl_ana_is_stale(const struct pass *p, size_t ctrl, uint32_t nsid);
/* How long a rescan may take to show effect, by what the controller answered (NULL: nothing). */
int64_t settle_time(const struct pass *p, const struct probe *probe);
/* At the start of a pass: which effects are there, which rounds are over. */
void observe_effects(struct pass *p);
/* Is an effect awaited, or is the round not through with all controllers? *until: the end of the longest wait. */
bool round_is_open(const struct pass *p, int64_t *until);
/* removal.c */
enum check {
	CHECK_OK,
	CHECK_WAIT,    /* something is asked first */
	CHECK_BLOCKED, /* it would take away what must stay */
	CHECK_FAILED,  /* the controller cannot be asked */
};
/*
 * May this controller be rescanned now? From answers given moments ago and after the last rescan of the subsystem.
 * *why is allocated: for CHECK_BLOCKED what would go and the way out, for CHECK_OK what will go, or NULL.
 */
enum check check_ctrl(struct pass *p, size_t ctrl, char **why);

/* At the end of a pass: the next rescan, if one may be asked for now. */
void drive_round(struct pass *p);
