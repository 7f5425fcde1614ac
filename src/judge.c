/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "pass.h"

#include <stdio.h>
#include <stdlib.h>

/* What no controller lists is asked for in every run for so long, then once in such a time (rule 3). */
#define ABSENT_EAGER (600 * NS_PER_SEC)
#define ABSENT_PACE (600 * NS_PER_SEC)

/* How long a disk may be without its node in /dev at least, before that is worth a word. */
#define NODE_GRACE (5 * NS_PER_SEC)

const struct ident no_ident;

static bool was_listed(const struct pass *p, size_t ctrl, const void *arg)
{
	return p->ctrl[ctrl].listed;
}

static char *expectation_key(uint32_t nsid, const struct ident *id)
{
	cleanup_free char *names = ident_format_all(id);

	if (!nsid)
		return xstrdup(names);
	return xasprintf("nsid=%u%s%s", nsid, *names ? " " : "", names);
}

static bool finding_lists(const struct pass *p, size_t ctrl, const void *arg)
{
	const struct finding *f = arg;

	return ctrl_lists(&p->ctrl[ctrl], f->nsid, f->line ? &f->line->id : NULL);
}

/* Rule 8: what changed so that earlier attempts do not count any more. */
static void start_afresh(struct rec_ns *r)
{
	r->attempts = 0;
	r->next_attempt = 0;
	r->walk_next = 0;
	r->walk_pause = 0;
	r->absent_since = 0;
	r->in_round = false;
	r->second_round = false;
}

/* Rule 2. The end of the grace time of a namespace that is missing now. */
static int64_t grace_end(struct pass *p, struct rec_ns *r)
{
	if (!r->grace_first)
		r->grace_first = r->grace_from = p->in->now;
	if (p->live_at > r->grace_from) /* the kernel scans by itself then: wait for that, but not for ever */
		r->grace_from = min_time(p->live_at, time_add(r->grace_first, settle_time(p, NULL)));
	return time_add(r->grace_from, p->e->policy.grace);
}

/* Rules 3 and 8: is it time to ask about this one, or does the remembered answer do? */
static bool asking_is_due(const struct pass *p, const struct rec_ns *r)
{
	int64_t since = r->absent_since;

	if (p->in->mode == PLAN_PROBE || r->verdict < 0 || p->fresh_at > r->verdict_at)
		return true;
	if (r->verdict_at >= p->in->run_start) /* in this run: go on as begun */
		return true;
	if (r->next_attempt > p->in->now)
		since = r->attempts >= p->e->policy.max_attempts ? r->attempted_at : 0;
	else if (!since)
		return true;
	if (!since)
		return false; /* backing off: the next attempt asks */
	return p->in->now - since < ABSENT_EAGER || p->in->now - r->verdict_at >= ABSENT_PACE;
}

static void set_evidence(struct finding *f, char *text)
{
	free(f->evidence);
	f->evidence = text;
}

/* Nobody is asked: what was learnt last. */
static void recall(struct finding *f, const struct rec_ns *r, enum plan_mode mode)
{
	if (r->verdict < 0)
		return;
	f->state = r->verdict;
	f->nsid = f->nsid ? f->nsid : r->nsid;
	f->answered_at = r->verdict_at;
	f->curable = !r->absent_since && f->state != STATE_UNKNOWN;
	if (r->verdict_text)
		set_evidence(f, xstrdup(r->verdict_text));
	/* who only looks is told what the last run made of it */
	if (mode != PLAN_STATUS || r->said_state != r->verdict || r->said_action < 0)
		return;
	f->action = r->said_action;
	if (f->action == ACTION_BLOCKED && r->blocked_text)
		set_evidence(f, xstrdup(r->blocked_text));
}

/* Rule 6: every controller that holds the old device is live and lists the new one, or nothing is done. */
static bool conflict_is_curable(struct pass *p, const struct finding *f, char **trouble)
{
	for (size_t i = 0; i < p->n_ctrl; i++) {
		const struct ctrl_pass *c = &p->ctrl[i];

		if (!view_has_path(&p->view, i, f->nsid) || finding_lists(p, i, f))
			continue;
		*trouble = xasprintf("nvme%d, which holds the old one, %s", c->c->instance,
				     c->listed ? "does not list it" : c->trouble ? c->trouble : ctrl_state_name(c->c->state));
		return false;
	}
	return true;
}

static bool list_without_path(const struct pass *p, size_t ctrl, const void *arg)
{
	const struct finding *f = arg;

	return finding_lists(p, ctrl, f) && !view_has_path(&p->view, ctrl, f->nsid);
}

static void verdict_listed(struct pass *p, struct finding *f, struct rec_ns *r, const struct consult *q)
{
	cleanup_free char *who = say_ctrls(p, finding_lists, f);
	cleanup_free char *lacking = say_ctrls(p, list_without_path, f);
	cleanup_free char *trouble = NULL;
	const char *list = q->n_lists > 1 ? "list" : "lists";

	if (r->absent_since)
		start_afresh(r); /* its own listing changed */
	r->nsid = q->nsid;
	p->plan->want_ids = true; /* a prediction may be next */
	if (f->state == STATE_MISSING)
		f->state = view_disk(&p->view, q->nsid) ? STATE_CONFLICT : STATE_HIDDEN;
	f->curable = true;
	switch (f->state) {
	case STATE_CONFLICT:
		f->disk = view_disk(&p->view, q->nsid);
		f->curable = conflict_is_curable(p, f, &trouble);
		if (f->curable)
			set_evidence(f, xasprintf("%s %s it as NSID %u, which this host still has as another namespace: a rescan "
						  "removes the old device, a second one creates the new", who, list, q->nsid));
		else
			set_evidence(f, xasprintf("%s %s it as NSID %u, which this host still has as another namespace, but %s",
						  who, list, q->nsid, trouble));
		break;
	case STATE_DEGRADED:
		f->curable = *lacking;
		if (f->curable)
			set_evidence(f, xasprintf("%s %s NSID %u, the host has no path there: a rescan will create it", lacking,
						  strchr(lacking, ',') ? "list" : "lists", q->nsid));
		else if (f->disk && f->disk->ctrl >= 0)
			f->state = STATE_PRESENT; /* private to its controller */
		else
			set_evidence(f, xasprintf("only %s %s it: the storage does not map it everywhere", who, list));
		break;
	case STATE_HEADLESS:
		set_evidence(f, xasprintf("%s %s NSID %u and the host has a usable path, yet no block device: one rescan is tried, "
					  "then look at the kernel's log", who, list, q->nsid));
		break;
	default:
		set_evidence(f, xasprintf("%s %s NSID %u; the host has no path: a rescan will create it", who, list, q->nsid));
	}
	r->absent_since = f->curable ? 0 : r->absent_since ? r->absent_since : p->in->now;
}

static void note_walk(struct pass *p, struct rec_ns *r, const struct consult *q)
{
	int64_t most = max_time(p->e->policy.retry_after, PAUSE_FIRST);

	if (!q->walked || (p->in->now < r->walk_next && r->walk_hash == lists_hash(p)))
		return;
	r->walk_hash = lists_hash(p);
	r->walk_pause = r->walk_pause ? doubled(r->walk_pause, 1, most) : PAUSE_FIRST;
	r->walk_next = time_add(p->in->now, r->walk_pause);
}

/* No controller lists it: what the host shows of it is all that is left. */
static void verdict_unlisted(struct pass *p, struct finding *f, struct rec_ns *r, const struct consult *q)
{
	cleanup_free char *who = say_ctrls(p, was_listed, NULL);

	if (!r->absent_since)
		r->absent_since = p->in->now;
	if (f->state == STATE_CONFLICT) /* it was told from sysfs; the controllers do not contradict */
		return;
	if (f->state == STATE_MISSING)
		f->state = STATE_UNMAPPED;
	set_evidence(f, q->other ? xasprintf("%s: NSID %u is another namespace there, %s", who, q->nsid, q->other) :
				   xasprintf("not listed by %s: the storage does not map it to this host", who));
	note_walk(p, r, q);
}

static void remember(struct pass *p, struct finding *f, struct rec_ns *r)
{
	r->verdict = f->state;
	r->verdict_at = f->answered_at = p->in->now;
	free(r->verdict_text);
	r->verdict_text = xstrdup(f->evidence ? f->evidence : "");
}

static void ask_lists(struct pass *p, struct finding *f, struct rec_ns *r)
{
	struct consult q = { .want = f->line ? &f->line->id : &no_ident, .nsid = f->nsid,
			     .by_nsid = !f->line || f->line->nsid_first || f->nsid };

	consult(p, &q, r);
	if (q.pending) {
		p->pending = f->transient = true;
		consult_clear(&q);
		return;
	}
	f->nsid = q.nsid;
	if (q.n_lists) {
		verdict_listed(p, f, r, &q);
	} else if (q.incomplete) {
		if (f->state == STATE_MISSING)
			f->state = STATE_UNKNOWN;
		set_evidence(f, xasprintf("not every controller could be asked: %s", q.trouble));
	} else {
		verdict_unlisted(p, f, r, &q);
	}
	remember(p, f, r);
	consult_clear(&q);
}

static bool says_accessible(const struct pass *p, size_t ctrl, const void *arg)
{
	return ctrl_ana_is_stale(p, ctrl, ((const struct finding *)arg)->nsid);
}

/* Rule 14: sysfs is the kernel's cache; the controllers know. Their lists are for the prediction, if it comes to that. */
static void ask_ana(struct pass *p, struct finding *f, struct rec_ns *r)
{
	cleanup_free char *stale = NULL;
	const char *trouble = NULL;

	for (size_t i = 0; i < p->n_ctrl; i++) {
		struct ctrl_pass *c = &p->ctrl[i];
		const struct probe_ns *ns = c->probe ? probe_ns_find(c->probe, f->nsid) : NULL;

		if (!c->ours || !view_has_path(&p->view, i, f->nsid))
			continue;
		if (!c->askable) {
			trouble = c->trouble ? c->trouble : ctrl_state_name(c->c->state);
			continue;
		}
		if (!c->listed)
			c->want_list = f->transient = true;
		if (!ns || ns->ana_at < p->in->run_start) {
			want_nsid(&c->want_ana, f->nsid);
			f->transient = true;
		}
	}
	if (f->transient) {
		p->pending = true;
		return;
	}
	stale = say_ctrls(p, says_accessible, f);
	r->nsid = f->nsid;
	if (*stale) {
		f->state = STATE_STALE_ANA;
		f->curable = true;
		p->plan->want_ids = true;
		if (r->absent_since)
			start_afresh(r);
		set_evidence(f, xasprintf("the host believes that every path is inaccessible, %s %s otherwise: a rescan makes the "
					  "kernel read it anew", stale, strchr(stale, ',') ? "say" : "says"));
	} else {
		if (!r->absent_since)
			r->absent_since = p->in->now;
		if (!trouble)
			set_evidence(f, xasprintf("%s; the controllers say so too: the storage side has to make it accessible",
						  f->evidence));
	}
	remember(p, f, r);
}

/* A usable path without a head gets one rescan; the kernel has said why in its log. */
static unsigned max_attempts(const struct pass *p, const struct finding *f)
{
	return f->state == STATE_HEADLESS ? 1 : p->e->policy.max_attempts;
}

/* What may be done about a namespace that a rescan may cure (rule 8). */
static void choose_action(struct pass *p, struct finding *f, struct rec_ns *r)
{
	if (f->transient || !f->curable || p->in->mode == PLAN_STATUS)
		return;
	if (p->report_only) {
		f->action = ACTION_REPORT;
	} else if (r->next_attempt > p->in->now) {
		f->action = r->attempts >= max_attempts(p, f) ? ACTION_GAVE_UP : ACTION_BACKOFF;
		f->until = r->next_attempt;
		pass_wake_at(p, f->until);
	} else if (r->blocked_at >= p->in->run_start && p->in->now < r->blocked_until) {
		f->action = ACTION_BLOCKED;
		f->until = r->blocked_until;
		set_evidence(f, xstrdup_null(r->blocked_text));
	} else {
		f->action = ACTION_RESCAN; /* drive_round() decides when */
	}
}

static char *say_not_ready(const struct pass *p)
{
	char *text = xstrdup("");

	for (size_t i = 0; i < p->n_ctrl; i++) {
		const struct topo_ctrl *c = p->ctrl[i].c;
		char *longer;

		if (!p->ctrl[i].ours)
			continue;
		longer = xasprintf("%s%snvme%d %s", text, *text ? ", " : "", c->instance,
				   c->state == CTRL_LIVE ? "live without I/O queues" : ctrl_state_name(c->state));
		free(text);
		text = longer;
	}
	return text;
}

/* No controller may be asked: the subsystem's own state is the namespace's. */
void judge_without_controllers(struct pass *p, struct finding *f, struct rec_ns *r)
{
	cleanup_free char *who = say_not_ready(p);

	start_afresh(r);
	r->grace_first = r->grace_from = 0;
	r->verdict = -1;
	if (p->view.n_ours == 0) {
		f->state = STATE_DISCONNECTED;
		f->evidence = xstrdup(p->e->hostnqn && p->view.s ?
					      "this host is not connected to the subsystem under that host NQN" :
					      "this host is not connected to the subsystem");
	} else if (p->view.n_live) {
		f->state = STATE_NO_QUEUES;
		f->evidence = xasprintf("%s: the kernel never scans there, the controller needs a reset", who);
	} else {
		f->state = STATE_UNREADY;
		f->evidence = xasprintf("%s: the kernel scans by itself once a controller is live", who);
	}
}

static void judge_missing(struct pass *p, struct finding *f, struct rec_ns *r)
{
	int64_t end, until;

	if (p->view.n_usable == 0) {
		if (f->state == STATE_MISSING)
			judge_without_controllers(p, f, r);
		return;
	}
	if (r->in_round && round_is_open(p, &until)) {
		recall(f, r, p->in->mode);
		f->action = ACTION_SETTLING;
		f->until = until;
		return;
	}
	if (r->attempts && p->fresh_at > r->attempted_at)
		start_afresh(r);
	end = grace_end(p, r);
	if (p->in->mode == PLAN_HEAL && !p->in->skip_grace && !r->attempts && p->in->now < end) {
		f->action = ACTION_GRACE;
		f->until = end;
		pass_wake_at(p, end);
		if (!f->evidence)
			f->evidence = xstrdup("missing; the kernel may still be at it");
		return;
	}
	if (pass_asks(p) && asking_is_due(p, r))
		(f->state == STATE_INACCESSIBLE ? ask_ana : ask_lists)(p, f, r);
	else
		recall(f, r, p->in->mode);
	choose_action(p, f, r);
}

static void say_what_is_seen(struct finding *f, const struct seen *seen)
{
	switch (f->state) {
	case STATE_AMBIGUOUS:
		f->evidence = xstrdup("the identity fits more than one namespace of the subsystem: give the NSID as well");
		break;
	case STATE_UNUSABLE:
		f->evidence = xasprintf("%s is there, but hidden or of size 0: the kernel does not take its format",
					seen->disk->name);
		break;
	case STATE_PATHLESS:
		f->evidence = xasprintf("%s is there without a path", seen->disk->name);
		break;
	case STATE_NODELESS:
		f->evidence = xasprintf("the kernel has %s, /dev has no node: look at udev", seen->disk->name);
		break;
	case STATE_INACCESSIBLE:
		f->evidence = xasprintf("%zu path%s, ANA state %s: the storage side has to make it accessible",
					seen->n_paths, seen->n_paths == 1 ? "" : "s", ana_state_name(seen->ana));
		break;
	case STATE_HEADLESS:
		f->evidence = xasprintf("%zu path%s, yet no block device: look at the kernel's log", seen->n_paths,
					seen->n_paths == 1 ? "" : "s");
		break;
	case STATE_DEGRADED:
		f->evidence = xasprintf("%zu path%s through live controllers: not through every one", seen->n_paths,
					seen->n_paths == 1 ? "" : "s");
		break;
	default:
		break;
	}
}

/* The node comes a moment after the disk: udev and devtmpfs get their time, counted from when the disk was seen. */
static void judge_nodeless(struct pass *p, struct finding *f, struct rec_ns *r)
{
	int64_t end;

	if (r->verdict != STATE_NODELESS)
		remember(p, f, r);
	end = time_add(r->verdict_at, max_time(p->e->policy.grace, NODE_GRACE));
	if (p->in->mode != PLAN_HEAL || p->in->now >= end)
		return;
	f->action = ACTION_GRACE;
	f->until = end;
	pass_wake_at(p, end);
}

/* Changed and not just on the way: worth one line. Remembered as said only by the one who says it. */
void decide_news(struct pass *p, struct finding *f, struct rec_ns *r)
{
	bool passing = f->transient || f->action == ACTION_RESCAN || f->action == ACTION_SETTLING ||
		       (f->action == ACTION_GRACE && (r->said_state >= 0 || f->state == STATE_NODELESS));

	/* that all is well is worth a line only after something was not, and once: a second path is no news */
	bool good = ns_state_is_good(f->state, &p->e->policy);
	bool was_good = r->said_state < 0 || ns_state_is_good((enum ns_state)r->said_state, &p->e->policy);

	if (!pass_heals(p) || p->in->partial || passing || (good && was_good))
		return;
	f->news = r->said_state != (int)f->state || r->said_action != (int)f->action;
	r->said_state = f->state;
	r->said_action = f->action;
}

/* Adds a finding for one namespace: line and nsid as expected. */
void judge(struct pass *p, const struct expect_ns *line, uint32_t nsid)
{
	const struct ident *want = line ? &line->id : &no_ident;
	struct seen seen = { .state = STATE_MISSING };
	struct finding *f;
	struct rec_ns *r = NULL;

	if (p->view.s && p->view.n_ours)
		seen = view_see(&p->view, nsid, want, p->e->policy.paths == PATHS_ALL);
	ARRAY_GROW(p->plan->finding, p->plan->n_finding);
	f = &p->plan->finding[p->plan->n_finding++];
	*f = (struct finding){ .expect = p->e, .line = line, .nqn = p->nqn, .nsid = seen.nsid ? seen.nsid : nsid,
			       .state = seen.state, .disk = seen.disk, .n_paths = seen.n_paths };
	if (ns_state_is_good(f->state, &p->e->policy) && !p->rec->n_ns)
		return; /* the common case costs no key */

	f->key = expectation_key(nsid, want);
	r = rec_ns_find(p->rec, f->key);
	/* its first round may have left it with paths through some controllers only: the second is due all the same */
	if (ns_state_is_good(f->state, &p->e->policy) && !(r && r->second_round && f->state == STATE_DEGRADED)) {
		if (!r)
			return;
		f->since = r->since;
		if (r->said_state >= 0)
			decide_news(p, f, r);
		return; /* forget() drops the record once no round needs it */
	}
	r = r ? r : rec_ns_get(p->rec, f->key);
	if (!r->nsid)
		r->nsid = nsid;
	if (!r->since && p->in->mode == PLAN_HEAL)
		r->since = p->in->now;
	f->since = r->since;
	say_what_is_seen(f, &seen);
	if (f->state == STATE_MISSING && nsid && !ident_empty(want) && p->view.n_ours && view_disk(&p->view, nsid)) {
		cleanup_free char *other = ident_format(&view_disk(&p->view, nsid)->id);

		f->state = STATE_CONFLICT;
		f->disk = view_disk(&p->view, nsid);
		f->evidence = xasprintf("NSID %u is on this host as another namespace, %s", nsid, other);
	}
	if (f->state == STATE_NODELESS)
		judge_nodeless(p, f, r);
	else if (f->state != STATE_AMBIGUOUS && f->state != STATE_UNUSABLE)
		judge_missing(p, f, r);
	decide_news(p, f, r);
}
