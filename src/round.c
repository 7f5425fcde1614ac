/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "pass.h"

#include <stdlib.h>

/* Rule 7: 6.1 needs about six Identify per namespace, one after another, and some time of its own. */
#define SETTLE_MIN (10 * NS_PER_SEC)
#define SETTLE_PER_NS (60 * NS_PER_MS)
#define IDENTIFIES_PER_NS 6

#define DAY (24 * 3600 * NS_PER_SEC)
#define ADVISE_AT 3 /* rescans of one controller within a day */

int64_t settle_time(const struct pass *p, const struct probe *probe)
{
	int64_t n = probe ? (int64_t)probe->n_listed : p->view.s ? (int64_t)p->view.s->n_disk : 0;

	if (p->e->policy.settle != SETTLE_AUTO)
		return p->e->policy.settle;
	return max_time(SETTLE_MIN, n * (IDENTIFIES_PER_NS * (probe ? probe->latency : 0) + SETTLE_PER_NS));
}

/* ---- the effect of what was asked for ---- */

/* The request itself was refused, or its child never came back. */
static bool request_failed(const struct pass *p, const struct ctrl_pass *c, const struct rec_ctrl *rc)
{
	return c->probe && rc->rescanned_at >= p->in->run_start && c->probe->rescan_at < rc->rescanned_at &&
	       c->probe->status != PROBE_RUNNING && (c->probe->rescan_error || !c->askable);
}

static bool is_accessible(enum ana_state ana)
{
	return ana == ANA_OPTIMIZED || ana == ANA_NON_OPTIMIZED;
}

bool ctrl_ana_is_stale(const struct pass *p, size_t ctrl, uint32_t nsid)
{
	const struct probe *probe = p->ctrl[ctrl].probe;
	const struct probe_ns *ns = probe ? probe_ns_find(probe, nsid) : NULL;

	return ns && ns->ana_at >= p->in->run_start && !ns->ana_error && is_accessible(ns->ana) &&
	       view_has_path(&p->view, ctrl, nsid) && !is_accessible(view_path_ana(&p->view, ctrl, nsid));
}

static uint64_t ident_hash(const struct ident *id)
{
	cleanup_free char *text = ident_format(id); /* the strongest: the others are not read at every look */

	return hash_bytes(HASH_INIT, text, strlen(text));
}

/* Rule 6: has the disk that held the NSID before left sysfs? */
static bool old_is_gone(const struct pass *p, const struct rec_ns *r)
{
	const struct topo_disk *d = view_disk(&p->view, r->nsid);

	return !d || ident_hash(&d->id) != r->old_ident;
}

/* What a rescan of one controller is to bring for a namespace in that state: is it there? */
static bool has_effect(const struct pass *p, size_t ctrl, const struct rec_ns *r)
{
	switch (r->verdict) {
	case STATE_CONFLICT: /* the first round removes (rule 6) */
		return !view_has_path(&p->view, ctrl, r->nsid) || old_is_gone(p, r);
	case STATE_HEADLESS:
		return view_disk(&p->view, r->nsid);
	case STATE_STALE_ANA: /* ana_state is read of paths without a head: with one it was accessible */
		return view_disk(&p->view, r->nsid) || is_accessible(view_path_ana(&p->view, ctrl, r->nsid));
	default:
		return view_has_path(&p->view, ctrl, r->nsid);
	}
}

static void observe_effect(struct pass *p, size_t i, struct rec_ctrl *rc)
{
	const struct ctrl_pass *c = &p->ctrl[i];
	bool all = true, unmapped = false;

	for (size_t k = 0; k < p->rec->n_ns; k++) {
		const struct rec_ns *r = &p->rec->ns[k];

		if (!r->in_round)
			continue;
		if (has_effect(p, i, r))
			rc->effect = true;
		else if (!c->listed || ctrl_lists(c, r->nsid, NULL))
			all = false;
		else
			unmapped = true;
	}
	/* what was unmapped meanwhile is not waited for, but a scan that has shown nothing yet may still be under way */
	if (unmapped && !rc->effect)
		all = false;
	if (all || !c->usable || p->in->now >= rc->settle_until || request_failed(p, c, rc))
		rc->awaiting = false;
}

/* Rule 8: a round is over; what it did not bring waits for the next attempt. */
static void close_round(struct pass *p)
{
	const struct policy *policy = &p->e->policy;

	for (size_t k = 0; k < p->rec->n_ns; k++) {
		struct rec_ns *r = &p->rec->ns[k];
		int64_t pause;

		if (!r->in_round)
			continue;
		r->in_round = false;
		if (r->verdict == STATE_CONFLICT && p->view.n_ours && old_is_gone(p, r)) {
			r->second_round = true; /* rule 6: the old one is gone, the next rescan creates */
			r->next_attempt = 0;
			continue;
		}
		if (r->attempts >= policy->max_attempts || r->verdict == STATE_HEADLESS)
			pause = policy->retry_after;
		else
			pause = doubled(policy->backoff, r->attempts - 1, max_time(policy->retry_after, policy->backoff));
		r->next_attempt = time_add(p->in->now, pause);
	}
}

void observe_effects(struct pass *p)
{
	int64_t until;

	for (size_t i = 0; i < p->n_ctrl; i++) {
		struct rec_ctrl *rc = p->ctrl[i].ours ? rec_ctrl_find(p->rec, p->ctrl[i].c->instance) : NULL;

		if (!rc || !rc->awaiting)
			continue;
		observe_effect(p, i, rc);
		if (!rc->awaiting && rc->canary && !rc->effect) /* rule 5: the others wait */
			for (size_t k = 0; k < p->rec->n_ctrl; k++)
				p->rec->ctrl[k].pending = false;
	}
	if (!round_is_open(p, &until))
		close_round(p);
}

bool round_is_open(const struct pass *p, int64_t *until)
{
	bool open = false;

	*until = 0;
	for (size_t k = 0; k < p->rec->n_ctrl; k++) {
		const struct rec_ctrl *rc = &p->rec->ctrl[k];

		open = open || rc->awaiting || rc->pending;
		if (rc->awaiting)
			*until = max_time(*until, rc->settle_until);
	}
	return open;
}

/* ---- rule 5: a canary first, then the others ---- */

/* Would a rescan of this controller serve that finding? */
static bool candidate_on(const struct pass *p, const struct finding *f, size_t ctrl)
{
	bool has_path;

	if (f->action != ACTION_RESCAN || f->transient || !f->nsid)
		return false;
	if (f->state == STATE_STALE_ANA)
		return ctrl_ana_is_stale(p, ctrl, f->nsid);
	if (!ctrl_lists(&p->ctrl[ctrl], f->nsid, f->line ? &f->line->id : NULL))
		return false;
	has_path = view_has_path(&p->view, ctrl, f->nsid);
	return f->state == STATE_CONFLICT || f->state == STATE_HEADLESS ? has_path : !has_path;
}

static size_t count_candidates(const struct pass *p, size_t ctrl)
{
	const struct subsys_finding *sf = &p->plan->subsys[p->index];
	size_t n = 0;

	for (size_t k = sf->first; k < p->plan->n_finding; k++)
		n += candidate_on(p, &p->plan->finding[k], ctrl);
	return n;
}

static char *say_candidates(const struct pass *p, size_t ctrl)
{
	const struct subsys_finding *sf = &p->plan->subsys[p->index];
	size_t n = 0, first = 0;

	for (size_t k = sf->first; k < p->plan->n_finding; k++)
		if (candidate_on(p, &p->plan->finding[k], ctrl) && n++ == 0)
			first = p->plan->finding[k].nsid;
	if (n == 0)
		return xstrdup("its paths follow");
	if (n == 1)
		return xasprintf("for NSID %zu", first);
	return xasprintf("for NSID %zu and %zu more", first, n - 1);
}

static void add_rescan(struct pass *p, size_t ctrl, char *why)
{
	struct plan *plan = p->plan;

	ARRAY_GROW(plan->act, plan->n_act);
	plan->act[plan->n_act++] = (struct act){ .kind = ACT_RESCAN, .subsys = p->index,
						 .instance = p->ctrl[ctrl].c->instance, .why = why,
						 .rearm = p->e->policy.rearm };
}

bool rescans_are_counted(const struct pass *p, const struct rec_ctrl *rc)
{
	return !p->e->policy.rearm && rc->n_rescan && p->in->now - rc->day_from < DAY;
}

/* The same controller again and again: its notices do not come, and the configuration does not let us mend that. */
static void advise(struct pass *p, struct rec_ctrl *rc)
{
	struct act *act = &p->plan->act[p->plan->n_act - 1];
	char *why;

	if (p->e->policy.rearm)
		return;
	if (!rescans_are_counted(p, rc)) {
		rc->day_from = p->in->now;
		rc->n_rescan = 0;
	}
	if (++rc->n_rescan != ADVISE_AT)
		return;
	why = xasprintf("%s (its rescan number %d within a day: its notices seem not to come, and `rearm = yes` would mend that)",
			act->why, ADVISE_AT);
	free(act->why);
	act->why = why;
}

/* After add_rescan(). Written down before it is done (rules 8, 13): killed in between, the attempt counts. */
static void record_rescan(struct pass *p, size_t ctrl, bool canary, bool awaiting)
{
	struct rec_ctrl *rc = rec_ctrl_get(p->rec, p->ctrl[ctrl].c->instance);
	int64_t settle = settle_time(p, p->ctrl[ctrl].probe);

	rc->pending = false;
	rc->rescanned_at = p->in->now;
	rc->settle_until = time_add(p->in->now, settle);
	rc->settle_limit = time_add(rc->settle_until, settle);
	rc->awaiting = awaiting;
	rc->canary = canary;
	rc->effect = false;
	advise(p, rc);
}

/* "for NSID 17 and 3 more; removes /dev/nvme0n2": frees what is removed */
static char *say_rescan(const struct pass *p, size_t ctrl, char *removes)
{
	char *candidates = say_candidates(p, ctrl);
	char *text = removes ? xasprintf("%s; %s", candidates, removes) : xstrdup(candidates);

	free(candidates);
	free(removes);
	return text;
}

static void open_round(struct pass *p, size_t canary, char *removes)
{
	struct subsys_finding *sf = &p->plan->subsys[p->index];
	bool everywhere = false;

	add_rescan(p, canary, say_rescan(p, canary, removes));
	for (size_t k = sf->first; k < p->plan->n_finding; k++)
		everywhere = everywhere || (candidate_on(p, &p->plan->finding[k], canary) &&
					    p->plan->finding[k].state != STATE_DEGRADED);
	/* all that answered: some alone would leave paths with an old identity or size; a lost path is its controller's own */
	for (size_t i = 0; i < p->n_ctrl; i++)
		if (i != canary && p->ctrl[i].usable && p->ctrl[i].listed && (everywhere || count_candidates(p, i)))
			rec_ctrl_get(p->rec, p->ctrl[i].c->instance)->pending = true;
	for (size_t k = sf->first; k < p->plan->n_finding; k++) {
		struct finding *f = &p->plan->finding[k];
		struct rec_ns *r = candidate_on(p, f, canary) ? rec_ns_find(p->rec, f->key) : NULL;

		if (!r)
			continue;
		r->nsid = f->nsid;
		if (f->state == STATE_CONFLICT && f->disk)
			r->old_ident = ident_hash(&f->disk->id);
		r->attempts += !r->second_round;
		r->second_round = false;
		r->attempted_at = p->in->now;
		r->in_round = true;
		f->action = ACTION_SETTLING;
	}
	record_rescan(p, canary, true, true);
}

/* --dry-run: the whole round at once, without touching the records. */
static void rehearse_round(struct pass *p, size_t canary, char *removes)
{
	char *why;

	add_rescan(p, canary, say_rescan(p, canary, removes));
	for (size_t i = 0; i < p->n_ctrl; i++) {
		if (i == canary || !p->ctrl[i].usable || !p->ctrl[i].listed)
			continue;
		switch (check_ctrl(p, i, &why)) {
		case CHECK_OK:
			why = say_rescan(p, i, why);
			add_rescan(p, i, xasprintf("once nvme%d shows effect: %s", p->ctrl[canary].c->instance, why));
			break;
		case CHECK_WAIT:
			p->pending = true;
			break;
		default:
			break;
		}
		free(why);
	}
}

/* Is anything of the round's still to come on this controller? */
static bool owes_effect(const struct pass *p, size_t ctrl)
{
	for (size_t k = 0; k < p->rec->n_ns; k++) {
		const struct rec_ns *r = &p->rec->ns[k];

		if (r->in_round && !has_effect(p, ctrl, r) &&
		    (r->verdict == STATE_STALE_ANA || ctrl_lists(&p->ctrl[ctrl], r->nsid, NULL)))
			return true;
	}
	return false;
}

/* A round that has shown effect goes on with the next controller. True: there is one, or it must be waited for. */
static bool continue_round(struct pass *p)
{
	for (size_t i = 0; i < p->n_ctrl; i++) {
		struct rec_ctrl *rc = p->ctrl[i].ours ? rec_ctrl_find(p->rec, p->ctrl[i].c->instance) : NULL;
		bool owes;
		char *why;

		if (!rc || !rc->pending)
			continue;
		switch (check_ctrl(p, i, &why)) {
		case CHECK_WAIT:
			p->pending = true;
			return true;
		case CHECK_OK:
			owes = owes_effect(p, i);
			add_rescan(p, i, xasprintf("the canary showed effect: %s%s%s", owes ? "the same here" : "its paths follow",
						   why ? "; " : "", why ? why : ""));
			free(why);
			record_rescan(p, i, false, owes);
			return true;
		default:
			rc->pending = false; /* it is not asked again before the next gap */
			free(why);
		}
	}
	return false;
}

/* The next best canary after those already tried: the one rescanned longest ago, then the one that lists most. */
static bool next_canary(const struct pass *p, const bool *tried, size_t *canary)
{
	bool found = false;
	size_t best_n = 0;
	int64_t best_at = 0;

	for (size_t i = 0; i < p->n_ctrl; i++) {
		const struct rec_ctrl *rc;
		int64_t at;
		size_t n;

		if (tried[i] || !p->ctrl[i].usable || !p->ctrl[i].askable)
			continue;
		n = count_candidates(p, i);
		rc = rec_ctrl_find(p->rec, p->ctrl[i].c->instance);
		at = rc ? rc->rescanned_at : 0;
		if (n == 0 || (found && (at > best_at || (at == best_at && n <= best_n))))
			continue;
		found = true;
		best_at = at;
		best_n = n;
		*canary = i;
	}
	return found;
}

static void block(struct pass *p, const char *why)
{
	struct subsys_finding *sf = &p->plan->subsys[p->index];

	for (size_t k = sf->first; k < p->plan->n_finding; k++) {
		struct finding *f = &p->plan->finding[k];
		struct rec_ns *r;

		if (f->action != ACTION_RESCAN || f->transient)
			continue;
		f->action = ACTION_BLOCKED;
		free(f->evidence);
		f->evidence = xstrdup(why);
		r = rec_ns_find(p->rec, f->key);
		if (!r)
			continue;
		r->blocked_at = p->in->now;
		r->blocked_until = p->blocked_until;
		free(r->blocked_text);
		r->blocked_text = xstrdup(why);
		if (p->blocked_until != TIME_NEVER)
			pass_wake_at(p, p->blocked_until);
		decide_news(p, f, r);
	}
}

static void start_round(struct pass *p)
{
	cleanup_free bool *tried = xcalloc(p->n_ctrl, sizeof(*tried));
	cleanup_free char *blocked = NULL;
	size_t canary = 0;

	while (next_canary(p, tried, &canary)) {
		char *why;

		tried[canary] = true;
		switch (check_ctrl(p, canary, &why)) {
		case CHECK_WAIT:
			p->pending = true;
			return;
		case CHECK_OK:
			if (p->in->dry_run)
				rehearse_round(p, canary, why);
			else
				open_round(p, canary, why);
			return;
		default:
			if (!blocked)
				blocked = why;
			else
				free(why);
		}
	}
	if (blocked)
		block(p, blocked);
}

void drive_round(struct pass *p)
{
	bool silent = false;
	int64_t until;

	if (!pass_heals(p) || p->report_only)
		return;
	for (size_t k = 0; k < p->rec->n_ctrl; k++)
		silent = silent || (p->rec->ctrl[k].awaiting && !p->rec->ctrl[k].effect);
	if (!silent && !continue_round(p) && !round_is_open(p, &until)) {
		close_round(p); /* its last controllers may just have been let go of */
		start_round(p);
	}
	if (round_is_open(p, &until)) {
		p->plan->settling = true;
		pass_wake_at(p, until ? until : p->in->now + NS_PER_SEC);
	}
}
