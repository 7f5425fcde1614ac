/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "plan.h"

#include <stdio.h>
#include <stdlib.h>

#include "pass.h"

/* ---- small words ---- */

int64_t doubled(int64_t first, unsigned times, int64_t most)
{
	int64_t pause = first;

	while (times-- > 0 && pause < most)
		pause *= 2;
	return min_time(pause, most);
}

static struct subsys_finding *subsys_of(const struct pass *p)
{
	return &p->plan->subsys[p->index];
}

char *say_ctrls(const struct pass *p, bool (*which)(const struct pass *p, size_t ctrl, const void *arg), const void *arg)
{
	char *text = xstrdup("");

	for (size_t i = 0; i < p->n_ctrl; i++) {
		char *longer;

		if (!p->ctrl[i].ours || !which(p, i, arg))
			continue;
		longer = xasprintf("%s%snvme%d", text, *text ? ", " : "", p->ctrl[i].c->instance);
		free(text);
		text = longer;
	}
	return text;
}

/* Rule 15. Exactly 5.14.0-N...el9 below N = 586: a partition scan inside the namespace scan can hang there. */
static bool kernel_hangs(const char *release)
{
	char *end;
	unsigned long build;

	if (!release || !starts_with(release, "5.14.0-"))
		return false;
	build = strtoul(release + strlen("5.14.0-"), &end, 10);
	return end != release + strlen("5.14.0-") && (*end == '.' || *end == '\0') && strstr(end, ".el9") && build < 586;
}

/* ---- controllers: what changed since the last look ---- */

static bool gave_no_answer(const struct probe *probe)
{
	return probe && (probe->status == PROBE_HUNG || probe->status == PROBE_FAILED || probe->status == PROBE_BUSY ||
			 probe->status == PROBE_GONE);
}

/* A controller that gave no answer is left alone for a pause that doubles; one that hung even if it reconnects. */
static void note_failure(struct pass *p, struct ctrl_pass *c, struct rec_ctrl *rc)
{
	bool failed = gave_no_answer(c->probe);
	int64_t pause;

	if (failed && rc->failed_at < p->in->run_start) {
		rc->fails++;
		rc->failed_at = p->in->now;
		rc->hung = c->probe->status == PROBE_HUNG || c->probe->status == PROBE_BUSY;
	} else if (!failed && c->listed) {
		rc->fails = 0;
		rc->hung = false;
		rc->failed_at = 0;
	}
	if (!rc->hung && rc->live_at > rc->failed_at)
		rc->fails = 0;
	if (!rc->fails)
		return;
	if (p->in->mode != PLAN_HEAL && !failed)
		return; /* a person asks: now */
	pause = doubled(PAUSE_FIRST, rc->fails - 1, max_time(p->e->policy.retry_after, PAUSE_FIRST));
	if ((failed && c->probe->status == PROBE_HUNG) || p->in->now < time_add(rc->failed_at, pause)) {
		c->askable = false;
		c->trouble = failed && c->probe->error ? c->probe->error :
			     rc->hung		       ? "did not answer the last time" :
							 "failed the last time";
	}
}

static void note_controller(struct pass *p, size_t i, bool known_subsystem)
{
	struct ctrl_pass *c = &p->ctrl[i];
	bool live = c->c->state == CTRL_LIVE;
	struct rec_ctrl *rc = rec_ctrl_find(p->rec, c->c->instance);

	if (!rc) {
		rc = rec_ctrl_get(p->rec, c->c->instance);
		rc->live_at = known_subsystem && live ? p->in->now : 0;
	} else if (live && (!rc->live || rc->cntlid != c->c->cntlid)) {
		rc->live_at = p->in->now;
	} else if (rc->n_paths < c->c->n_paths) {
		rc->gained_at = p->in->now;
		if (rc->awaiting) /* rule 7: appearances extend the wait, to twice in all; the limit is two settles off */
			rc->settle_until = min_time(rc->settle_limit,
						    p->in->now + (rc->settle_limit - rc->rescanned_at) / 2);
	}
	for (size_t k = 0; k < p->in->n_event; k++) {
		const struct plan_event *ev = &p->in->event[k];

		if (ev->instance == c->c->instance && streq(ev->nqn, p->nqn) && ev->at <= p->in->now)
			rc->live_at = max_time(rc->live_at, ev->at);
	}
	rc->cntlid = c->c->cntlid;
	rc->live = live;
	rc->n_paths = c->c->n_paths;
	note_failure(p, c, rc);
	p->fresh_at = max_time(p->fresh_at, rc->live_at);
	p->live_at = max_time(p->live_at, max_time(rc->live_at, rc->gained_at));
}

static void note_controllers(struct pass *p)
{
	bool known = p->rec->n_ctrl > 0;

	for (size_t k = p->rec->n_ctrl; k-- > 0;) {
		bool there = false;

		for (size_t i = 0; i < p->n_ctrl; i++)
			there = there || (p->ctrl[i].ours && p->ctrl[i].c->instance == p->rec->ctrl[k].instance);
		if (!there)
			rec_ctrl_drop(p->rec, &p->rec->ctrl[k]);
	}
	for (size_t i = 0; i < p->n_ctrl; i++)
		if (p->ctrl[i].ours)
			note_controller(p, i, known);
}

/* ---- what a section expects ---- */

static bool in_range(const struct expect_ns *line, uint32_t nsid)
{
	return line->nsid_first && nsid >= line->nsid_first && nsid <= line->nsid_last;
}

/* The identity under which an NSID is known, by the host or by a controller; NULL nobody asked. */
static const struct ident *known_ident(const struct pass *p, uint32_t nsid)
{
	const struct topo_disk *d = p->view.n_ours ? view_disk(&p->view, nsid) : NULL;

	if (d)
		return &d->id;
	for (size_t i = 0; i < p->n_ctrl; i++) {
		const struct probe_ns *ns = p->ctrl[i].listed ? probe_ns_find(p->ctrl[i].probe, nsid) : NULL;

		if (ns && ns->ident_at && !ns->error)
			return &ns->id;
	}
	return NULL;
}

static bool is_ignored(struct pass *p, uint32_t nsid)
{
	for (size_t i = 0; i < p->e->n_ignore; i++) {
		const struct expect_ns *line = &p->e->ignore[i];
		const struct ident *id;

		if (line->nsid_first && !in_range(line, nsid))
			continue;
		if (ident_empty(&line->id))
			return true;
		id = known_ident(p, nsid);
		if (id && ident_match(&line->id, id))
			return true;
		for (size_t c = 0; !id && c < p->n_ctrl && pass_asks(p); c++) {
			/* it may be the ignored one: ask before anything is made of it */
			if (!p->ctrl[c].askable || !ctrl_lists(&p->ctrl[c], nsid, NULL) ||
			    probe_ns_find(p->ctrl[c].probe, nsid)->ident_at)
				continue;
			want_nsid(&p->ctrl[c].want, nsid);
			p->pending = true;
			return true;
		}
	}
	return false;
}

static int by_nsid(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

static void add_nsid(uint32_t **list, size_t *n, uint32_t nsid)
{
	ARRAY_GROW(*list, *n);
	(*list)[(*n)++] = nsid;
}

/* NSIDs that `all` stands for: what the controllers list; where they were not asked, what the host shows or remembers. */
static size_t all_nsids(struct pass *p, bool lists_known, uint32_t **list)
{
	size_t n = 0;

	for (size_t i = 0; i < p->n_ctrl; i++) {
		const struct ctrl_pass *c = &p->ctrl[i];

		for (size_t k = 0; c->listed && k < c->probe->n_ns; k++)
			if (c->probe->ns[k].listed)
				add_nsid(list, &n, c->probe->ns[k].nsid);
	}
	if (!lists_known) {
		for (size_t k = 0; p->view.n_ours && k < p->view.s->n_disk; k++)
			if (view_disk(&p->view, p->view.s->disk[k].nsid) == &p->view.s->disk[k])
				add_nsid(list, &n, p->view.s->disk[k].nsid);
		for (size_t k = 0; k < p->rec->n_ns; k++)
			if (starts_with(p->rec->ns[k].key, "nsid=") && !strchr(p->rec->ns[k].key, ' ') && p->rec->ns[k].nsid)
				add_nsid(list, &n, p->rec->ns[k].nsid);
	}
	if (n)
		qsort(*list, n, sizeof(**list), by_nsid);
	return n;
}

/* The line `all` itself, where it cannot be told what it stands for. */
static void judge_all_line(struct pass *p, const struct expect_ns *line, const char *trouble)
{
	struct finding *f;
	struct rec_ns *r = rec_ns_get(p->rec, "all");

	ARRAY_GROW(p->plan->finding, p->plan->n_finding);
	f = &p->plan->finding[p->plan->n_finding++];
	*f = (struct finding){ .expect = p->e, .line = line, .nqn = p->nqn, .state = STATE_UNKNOWN, .key = xstrdup("all") };
	if (!r->since && p->in->mode == PLAN_HEAL)
		r->since = p->in->now;
	f->since = r->since;
	if (trouble)
		f->evidence = xasprintf("its list of namespaces is not known: %s", trouble);
	else
		judge_without_controllers(p, f, r);
	decide_news(p, f, r);
}

static void judge_all(struct pass *p, const struct expect_ns *line)
{
	size_t first = subsys_of(p)->first, n_explicit = p->plan->n_finding - first;
	cleanup_free uint32_t *taken = xcalloc(n_explicit, sizeof(*taken));
	cleanup_free uint32_t *list = NULL;
	cleanup_free char *trouble = NULL;
	bool known = true, waiting = false;
	size_t n;

	if (!p->view.n_usable) {
		judge_all_line(p, line, NULL);
		return;
	}
	for (size_t i = 0; i < p->n_ctrl; i++) {
		struct ctrl_pass *c = &p->ctrl[i];

		if (!c->usable || c->listed)
			continue;
		known = false;
		if (pass_asks(p) && c->askable)
			c->want_list = p->pending = waiting = true;
		else if (pass_asks(p) && !trouble)
			trouble = xasprintf("nvme%d %s", c->c->instance, c->trouble ? c->trouble : "was not asked");
	}
	for (size_t k = 0; k < n_explicit; k++)
		taken[k] = p->plan->finding[first + k].nsid;
	qsort(taken, n_explicit, sizeof(*taken), by_nsid);
	n = all_nsids(p, known, &list);
	for (size_t k = 0; k < n; k++)
		if ((k == 0 || list[k] != list[k - 1]) && !bsearch(&list[k], taken, n_explicit, sizeof(*taken), by_nsid) &&
		    !is_ignored(p, list[k]))
			judge(p, NULL, list[k]);
	if (trouble && !waiting)
		judge_all_line(p, line, trouble);
}

static void judge_expected(struct pass *p)
{
	const struct expect_ns *all = NULL;

	for (size_t i = 0; i < p->e->n_ns; i++) {
		const struct expect_ns *line = &p->e->ns[i];

		if (line->all) {
			all = line;
		} else if (!line->nsid_first) {
			judge(p, line, 0);
		} else {
			for (uint64_t nsid = line->nsid_first; nsid <= line->nsid_last; nsid++)
				if (!is_ignored(p, (uint32_t)nsid))
					judge(p, line, (uint32_t)nsid);
		}
	}
	if (all)
		judge_all(p, all);
}

/* ---- the pass ---- */

/* Records of what is there again, or no longer expected, go; when nothing is left to remember, all of it goes. */
static void forget(struct pass *p)
{
	cleanup_free bool *keep = xcalloc(p->rec->n_ns, sizeof(*keep));
	const struct subsys_finding *sf = subsys_of(p);
	int64_t until;
	bool open = round_is_open(p, &until), needed = open;

	if (p->pending)
		return; /* not yet known what `all` stands for */
	for (size_t k = 0; k < p->rec->n_ns; k++)
		keep[k] = p->in->partial;
	for (size_t k = sf->first; k < p->plan->n_finding; k++) {
		const struct finding *f = &p->plan->finding[k];
		const struct rec_ns *r = f->key ? rec_ns_find(p->rec, f->key) : NULL;

		if (r)
			keep[r - p->rec->ns] = !ns_state_is_good(f->state, &p->e->policy);
	}
	/* what a round is under way for is its measure, also if it goes by another name meanwhile or is not expected any more */
	for (size_t k = p->rec->n_ns; k-- > 0;)
		if (!keep[k] && !(open && p->rec->ns[k].in_round))
			rec_ns_drop(p->rec, &p->rec->ns[k]);
	for (size_t k = 0; k < p->rec->n_ctrl; k++)
		needed = needed || p->rec->ctrl[k].fails || rescans_are_counted(p, &p->rec->ctrl[k]);
	while (p->rec->n_ns == 0 && p->rec->n_dead)
		rec_dead_drop(p->rec, &p->rec->dead[p->rec->n_dead - 1]);
	if (!needed && p->rec->n_ns == 0)
		while (p->rec->n_ctrl)
			rec_ctrl_drop(p->rec, &p->rec->ctrl[p->rec->n_ctrl - 1]);
}

static void move_nsids(struct act *act, enum act_kind kind, struct wanted_nsids *w)
{
	act->kind = kind;
	act->nsid = w->nsid;
	act->n = w->n;
	*w = (struct wanted_nsids){ 0 };
}

/* The next request of one controller: what decides most comes first. False: it is wanted for nothing. */
static bool next_request(struct ctrl_pass *c, struct act *act)
{
	if (c->want_walk) {
		act->kind = ACT_IDENTIFY_ALL;
	} else if (c->want_list) {
		act->kind = ACT_LIST;
	} else if (c->want.n) {
		move_nsids(act, ACT_IDENTIFY, &c->want);
	} else if (c->want_ana.n) {
		move_nsids(act, ACT_ANA, &c->want_ana);
	} else if (c->n_want_use || c->n_want_gone) {
		act->kind = c->n_want_use ? ACT_USE : ACT_GONE;
		act->n = c->n_want_use ? c->n_want_use : c->n_want_gone;
		act->disk = xcalloc(act->n, sizeof(*act->disk));
		act->nsid = xcalloc(act->n, sizeof(*act->nsid));
		for (size_t i = 0; i < act->n; i++) {
			act->disk[i] = xstrdup(c->n_want_use ? c->want_use[i] : c->want_gone[i]->name);
			act->nsid[i] = c->n_want_use ? 0 : c->want_gone[i]->nsid;
		}
	} else {
		return false;
	}
	return true;
}

static bool acts_on(const struct pass *p, int instance)
{
	for (size_t i = p->first_act; i < p->plan->n_act; i++)
		if (p->plan->act[i].instance == instance)
			return true;
	return false;
}

/* What the pass wants to know becomes requests, one at a time for each controller. */
static void request_answers(struct pass *p)
{
	for (size_t i = 0; i < p->n_ctrl && pass_asks(p); i++) {
		struct ctrl_pass *c = &p->ctrl[i];
		struct act act = { .subsys = p->index, .instance = c->c->instance };

		if (!c->askable || (c->probe && c->probe->status == PROBE_RUNNING) || acts_on(p, c->c->instance) ||
		    !next_request(c, &act))
			continue;
		ARRAY_GROW(p->plan->act, p->plan->n_act);
		p->plan->act[p->plan->n_act++] = act;
	}
}

static void pass_init(struct pass *p)
{
	const struct topo_subsys *s = topo_find(p->in->topo, p->nqn);

	view_init(&p->view, s, p->e->hostnqn);
	p->n_ctrl = s ? s->n_ctrl : 0;
	p->ctrl = xcalloc(p->n_ctrl, sizeof(*p->ctrl));
	for (size_t i = 0; i < p->n_ctrl; i++) {
		struct ctrl_pass *c = &p->ctrl[i];

		c->c = &s->ctrl[i];
		c->ours = p->view.ours[i];
		c->usable = c->askable = p->view.usable[i];
		c->probe = probes_find(p->in->probes, c->c->instance, p->nqn);
		/* an answer of another run is a memory, not an answer */
		c->listed = c->usable && c->probe && c->probe->list_at && c->probe->list_at >= p->in->run_start;
	}
	p->report_only = p->e->policy.action == POLICY_REPORT;
	if (!p->report_only && !p->e->policy.action_given && p->e->policy.kernel_guard && kernel_hangs(p->in->kernel))
		p->report_only = subsys_of(p)->guarded = true;
}

static void pass_clear(struct pass *p)
{
	for (size_t i = 0; i < p->n_ctrl; i++) {
		free(p->ctrl[i].want.nsid);
		free(p->ctrl[i].want_ana.nsid);
		free(p->ctrl[i].want_use);
		free(p->ctrl[i].want_gone);
	}
	free(p->ctrl);
	view_clear(&p->view);
}

static bool expects_all(const struct expect_subsys *e)
{
	for (size_t i = 0; i < e->n_ns; i++)
		if (e->ns[i].all)
			return true;
	return false;
}

/* Disks of ours that none of the controllers lists: only where every list is known. */
static void find_stale(struct pass *p)
{
	struct subsys_finding *sf = subsys_of(p);

	for (size_t i = 0; i < p->n_ctrl; i++)
		if (p->ctrl[i].ours && !p->ctrl[i].listed)
			return;
	for (size_t k = 0; p->view.n_usable && k < p->view.s->n_disk; k++) {
		const struct topo_disk *d = &p->view.s->disk[k];
		bool listed = view_disk(&p->view, d->nsid) != d;

		for (size_t i = 0; i < p->n_ctrl; i++)
			listed = listed || ctrl_lists(&p->ctrl[i], d->nsid, NULL);
		if (listed)
			continue;
		ARRAY_GROW(sf->stale, sf->n_stale);
		sf->stale[sf->n_stale++] = d;
	}
}

static void pass_run(struct pass *p)
{
	struct subsys_finding *sf;

	pass_init(p);
	note_controllers(p);
	observe_effects(p);
	judge_expected(p);
	drive_round(p);
	request_answers(p);
	forget(p);
	find_stale(p);

	sf = subsys_of(p);
	sf->subsys = p->view.s;
	sf->n_ctrl = p->view.n_ours;
	sf->n_live = p->view.n_live;
	sf->n = p->plan->n_finding - sf->first;
	for (size_t k = sf->first; k < p->plan->n_finding; k++) {
		sf->n_good += ns_state_is_good(p->plan->finding[k].state, &p->e->policy);
		sf->n_degraded += p->plan->finding[k].state == STATE_DEGRADED;
	}
	sf->needs_lock = p->in->mode == PLAN_HEAL &&
			 (sf->n_good < sf->n || p->rec->n_ns || p->rec->n_ctrl || p->pending ||
			  (p->view.n_usable && expects_all(p->e)));
	p->plan->pending = p->plan->pending || p->pending;
	pass_clear(p);
}

struct plan_pair *plan_pairs(const struct expect *e, const struct topo *t, size_t *n)
{
	struct plan_pair *pair = NULL;

	*n = 0;
	for (size_t i = 0; i < e->n_subsys; i++) {
		const struct expect_subsys *s = &e->subsys[i];

		for (size_t k = 0; expect_any_nqn(s) && k < t->n_subsys; k++) {
			bool own = false;

			for (size_t j = 0; j < e->n_subsys; j++)
				own = own || streq(e->subsys[j].nqn, t->subsys[k].nqn);
			if (own)
				continue;
			ARRAY_GROW(pair, *n);
			pair[(*n)++] = (struct plan_pair){ .expect = s, .nqn = t->subsys[k].nqn };
		}
		if (!expect_any_nqn(s)) {
			ARRAY_GROW(pair, *n);
			pair[(*n)++] = (struct plan_pair){ .expect = s, .nqn = s->nqn };
		}
	}
	return pair;
}

struct plan *plan_make(struct plan_input *in)
{
	struct plan *plan = xcalloc(1, sizeof(*plan));
	size_t n;
	cleanup_free struct plan_pair *pair = plan_pairs(in->expect, in->topo, &n);

	plan->wake = TIME_NEVER;
	for (size_t i = 0; i < n && i < in->n_rec; i++) {
		struct pass p = { .in = in, .plan = plan, .index = plan->n_subsys, .e = pair[i].expect, .nqn = pair[i].nqn,
				  .rec = &in->rec[i].r, .may_act = in->rec[i].may_act,
				  .blocked_until = TIME_NEVER, .first_act = plan->n_act };

		ARRAY_GROW(plan->subsys, plan->n_subsys);
		plan->subsys[plan->n_subsys++] = (struct subsys_finding){ .expect = pair[i].expect, .nqn = pair[i].nqn,
									  .first = plan->n_finding,
									  .locked_out = in->rec[i].locked_out };
		pass_run(&p);
	}
	return plan;
}

void plan_free(struct plan *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->n_finding; i++) {
		free(p->finding[i].evidence);
		free(p->finding[i].key);
	}
	for (size_t i = 0; i < p->n_act; i++) {
		for (size_t k = 0; k < p->act[i].n && p->act[i].disk; k++)
			free(p->act[i].disk[k]);
		free(p->act[i].disk);
		free(p->act[i].nsid);
		free(p->act[i].why);
	}
	for (size_t i = 0; i < p->n_subsys; i++)
		free(p->subsys[i].stale);
	free(p->subsys);
	free(p->finding);
	free(p->act);
	free(p);
}
