/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "pass.h"

#include <stdlib.h>

/* A prediction is only as good as the answers behind it are new. */
#define CHECK_FRESH (5 * NS_PER_SEC)

/* Asked after the last rescan of the subsystem, and answered moments ago. */
static bool is_fresh(const struct pass *p, int64_t asked_at, int64_t answered_at)
{
	if (!asked_at || asked_at < p->in->run_start || p->in->now - answered_at > CHECK_FRESH)
		return false;
	for (size_t k = 0; k < p->rec->n_ctrl; k++)
		if (asked_at <= p->rec->ctrl[k].rescanned_at)
			return false;
	return true;
}

enum fate { FATE_STAYS, FATE_GOES, FATE_UNKNOWN };

/* What a rescan would make of this controller's path to a disk, by its answers. The kernel compares all identifiers. */
static enum fate path_fate(const struct ctrl_pass *c, const struct topo_disk *d)
{
	const struct probe_ns *ns = probe_ns_find(c->probe, d->nsid);

	if (!ns || !ns->listed || ns->error)
		return FATE_GOES;
	if (ident_anonymous(&d->id)) /* the NSID alone is compared */
		return FATE_STAYS;
	if (!ns->ident_at)
		return FATE_UNKNOWN;
	return ident_agree(&d->id, &ns->id) ? FATE_STAYS : FATE_GOES;
}

/* A head stays while another controller, by what it answered in this run, keeps a path to it. */
static enum fate head_fate(struct pass *p, const struct topo_disk *d, size_t but)
{
	enum fate fate = FATE_GOES;

	for (size_t i = 0; i < p->n_ctrl; i++) {
		struct ctrl_pass *c = &p->ctrl[i];

		if (i == but || !c->listed || !view_has_path(&p->view, i, d->nsid))
			continue;
		switch (path_fate(c, d)) {
		case FATE_STAYS:
			return FATE_STAYS;
		case FATE_UNKNOWN:
			if (c->askable) {
				c->want_walk = true;
				fate = FATE_UNKNOWN;
			}
			break;
		default:
			break;
		}
	}
	return fate;
}

static bool on_ctrl(const struct pass *p, const struct topo_disk *d, size_t ctrl)
{
	if (d->ctrl >= 0)
		return (size_t)d->ctrl == ctrl;
	for (size_t i = 0; i < p->view.s->n_path; i++)
		if (p->view.s->path[i].disk == d - p->view.s->disk && (size_t)p->view.s->path[i].ctrl == ctrl)
			return true;
	return false;
}

struct removals {
	const struct topo_disk **disk;
	size_t n;
};

/* The disks that a rescan of this controller would remove. False: another controller must be asked first. */
static bool predict(struct pass *p, size_t ctrl, struct removals *r)
{
	bool known = true;

	for (size_t k = 0; k < p->view.s->n_disk; k++) {
		const struct topo_disk *d = &p->view.s->disk[k];
		enum fate fate = path_fate(&p->ctrl[ctrl], d);

		if (fate == FATE_STAYS || !on_ctrl(p, d, ctrl))
			continue;
		if (d->ctrl < 0 && fate == FATE_GOES)
			fate = head_fate(p, d, ctrl);
		if (fate == FATE_GOES) {
			ARRAY_GROW(r->disk, r->n);
			r->disk[r->n++] = d;
		}
		known = known && fate != FATE_UNKNOWN;
	}
	return known;
}

/* ---- which of them may go ---- */

static void want_gone(struct ctrl_pass *c, const struct topo_disk *d)
{
	ARRAY_GROW(c->want_gone, c->n_want_gone);
	c->want_gone[c->n_want_gone++] = d;
}

/*
 * `dead`: every controller that holds a path says that the namespace is gone, and no block of it can be read. Seen twice,
 * at least the grace time apart. CHECK_BLOCKED with *when: it may become dead then.
 */
static enum check check_dead(struct pass *p, const struct topo_disk *d, int64_t *when)
{
	const struct probe_use *use = probes_use(p->in->probes, d->name);
	bool dead = true, known = true;
	struct rec_dead *rd;

	*when = TIME_NEVER;
	for (size_t i = 0; i < p->n_ctrl; i++) {
		struct ctrl_pass *c = &p->ctrl[i];
		const struct probe_ns *ns = c->probe ? probe_ns_find(c->probe, d->nsid) : NULL;

		if (!on_ctrl(p, d, i))
			continue;
		if (!c->askable) {
			dead = false; /* it may know better */
		} else if (!ns || !is_fresh(p, ns->gone_at, ns->gone_at)) {
			want_gone(c, d);
			known = false;
		} else {
			dead = dead && ns->gone;
		}
	}
	if (!known)
		return CHECK_WAIT;
	rd = rec_dead_find(p->rec, d->name);
	if (!dead || !use || !is_fresh(p, use->read_at, use->read_at) || use->readable) {
		if (rd)
			rec_dead_drop(p->rec, rd);
		return CHECK_BLOCKED;
	}
	rd = rec_dead_get(p->rec, d->name);
	if (!rd->first_at || rd->nsid != d->nsid) {
		rd->first_at = p->in->now;
		rd->nsid = d->nsid;
	}
	*when = time_add(rd->first_at, max_time(p->e->policy.grace, NS_PER_SEC));
	return p->in->now >= *when ? CHECK_OK : CHECK_BLOCKED;
}

static char *say_blocked(const struct pass *p, size_t ctrl, const struct topo_disk *d, const char *because)
{
	cleanup_free char *id = ident_format(&d->id);

	return xasprintf("a rescan of nvme%d would remove /dev/%s (NSID %u %s), which it %s: %s", p->ctrl[ctrl].c->instance,
			 d->name, d->nsid, id,
			 ctrl_lists(&p->ctrl[ctrl], d->nsid, NULL) ? "now lists with another identity" : "does not list any more",
			 because);
}

static enum check check_removal(struct pass *p, size_t ctrl, const struct topo_disk *d, char **why)
{
	const struct probe_use *use = probes_use(p->in->probes, d->name);
	cleanup_free char *because = NULL;
	enum check check;
	int64_t when;

	if (p->e->policy.removals == REMOVALS_ALWAYS)
		return CHECK_OK;
	if (p->e->policy.removals == REMOVALS_NEVER) {
		*why = say_blocked(p, ctrl, d, "removals = never; if nobody needs it, heal once with --removals=idle");
		return CHECK_BLOCKED;
	}
	if (!use || !is_fresh(p, use->at, use->at)) {
		struct ctrl_pass *c = &p->ctrl[ctrl];

		ARRAY_GROW(c->want_use, c->n_want_use);
		c->want_use[c->n_want_use++] = d->name;
		return CHECK_WAIT;
	}
	if (!use->used)
		return CHECK_OK;
	if (p->e->policy.removals == REMOVALS_DEAD) {
		check = check_dead(p, d, &when);
		if (check != CHECK_BLOCKED)
			return check;
		p->blocked_until = min_time(p->blocked_until, when);
	}
	because = xasprintf("it is in use, %s; end that, or heal once with --removals=always", use->user ? use->user : "by somebody");
	*why = say_blocked(p, ctrl, d, because);
	return CHECK_BLOCKED;
}

static char *say_removals(const struct removals *r)
{
	char *text = xstrdup("removes");

	for (size_t k = 0; k < r->n; k++) {
		char *longer = xasprintf("%s%s /dev/%s", text, k ? "," : "", r->disk[k]->name);

		free(text);
		text = longer;
	}
	return text;
}

enum check check_ctrl(struct pass *p, size_t ctrl, char **why)
{
	struct ctrl_pass *c = &p->ctrl[ctrl];
	struct removals r = { 0 };
	enum check result = CHECK_OK;

	*why = NULL;
	if (!c->usable || !c->askable)
		return CHECK_FAILED;
	p->plan->want_ids = true;
	if (!c->listed || c->probe->status == PROBE_RUNNING || !is_fresh(p, c->probe->walk_at, c->probe->walk_done))
		c->want_walk = true;
	if (c->want_walk || !p->in->topo->ids_complete)
		return CHECK_WAIT;
	if (!predict(p, ctrl, &r))
		result = CHECK_WAIT;
	for (size_t k = 0; k < r.n && result == CHECK_OK; k++) {
		char *reason = NULL;

		switch (check_removal(p, ctrl, r.disk[k], &reason)) {
		case CHECK_BLOCKED:
			result = CHECK_BLOCKED;
			*why = reason;
			break;
		case CHECK_WAIT: /* ask about all of them at once */
			for (size_t j = k + 1; j < r.n; j++) {
				(void)check_removal(p, ctrl, r.disk[j], &reason);
				free(reason);
				reason = NULL;
			}
			result = CHECK_WAIT;
			break;
		default:
			break;
		}
	}
	if (result == CHECK_OK && r.n)
		*why = say_removals(&r);
	free(r.disk);
	return result;
}
