/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "pass.h"

#include <stdlib.h>

void consult_clear(struct consult *q)
{
	free(q->trouble);
	free(q->other);
	q->trouble = q->other = NULL;
}

bool ctrl_lists(const struct ctrl_pass *c, uint32_t nsid, const struct ident *want)
{
	const struct probe_ns *ns = c->listed ? probe_ns_find(c->probe, nsid) : NULL;

	if (!ns || !ns->listed)
		return false;
	return !want || ident_empty(want) || ident_empty(&ns->id) || ident_match(want, &ns->id);
}

void want_nsid(struct wanted_nsids *w, uint32_t nsid)
{
	for (size_t i = w->n; i-- > 0;)
		if (w->nsid[i] == nsid)
			return;
	ARRAY_GROW(w->nsid, w->n);
	w->nsid[w->n++] = nsid;
}

uint64_t lists_hash(const struct pass *p)
{
	uint64_t h = HASH_INIT;

	for (size_t i = 0; i < p->n_ctrl; i++) {
		if (!p->ctrl[i].listed)
			continue;
		h = hash_bytes(h, &p->ctrl[i].c->instance, sizeof(int));
		for (size_t k = 0; k < p->ctrl[i].probe->n_ns; k++)
			if (p->ctrl[i].probe->ns[k].listed)
				h = hash_bytes(h, &p->ctrl[i].probe->ns[k].nsid, sizeof(uint32_t));
	}
	return h;
}

static void trouble(struct consult *q, const struct ctrl_pass *c, const char *what)
{
	q->incomplete = true;
	if (!q->trouble)
		q->trouble = xasprintf("nvme%d %s", c->c->instance, what);
}

/* A question about one NSID of a controller that lists it. */
static void consult_nsid(struct consult *q, struct ctrl_pass *c, const struct probe_ns *ns)
{
	if (ident_empty(q->want)) {
		q->n_lists++;
	} else if (!ns->ident_at) {
		if (!c->askable) {
			trouble(q, c, c->trouble ? c->trouble : "did not tell the identity");
			return;
		}
		want_nsid(&c->want, ns->nsid);
		q->pending = true;
	} else if (ns->error) {
		trouble(q, c, "refused to identify it");
	} else if (ident_empty(&ns->id) || ident_match(q->want, &ns->id)) {
		q->n_lists++; /* a namespace without identifiers (quirks): the NSID alone is compared */
	} else if (!q->other) {
		q->other = ident_format(&ns->id);
	}
}

/*
 * A question by identity alone. First the NSIDs that the host does not show; if it is not among them, every one, since
 * a re-used NSID hides behind the old device.
 */
static void consult_identity(struct pass *p, struct consult *q, struct ctrl_pass *c, bool may_walk)
{
	const struct probe *probe = c->probe;
	bool unknown = false, refused = false, wanting = false;

	for (size_t k = 0; k < probe->n_ns; k++)
		if (probe->ns[k].listed && ident_match(q->want, &probe->ns[k].id)) {
			q->nsid = probe->ns[k].nsid;
			q->n_lists++;
			return;
		}
	if (!may_walk)
		return;
	for (size_t k = 0; k < probe->n_ns; k++) {
		const struct probe_ns *ns = &probe->ns[k];

		if (!ns->listed)
			continue;
		refused = refused || ns->error;
		if (ns->ident_at)
			continue;
		unknown = true;
		if (c->askable && !view_disk(&p->view, ns->nsid)) {
			want_nsid(&c->want, ns->nsid);
			q->pending = wanting = true;
		}
	}
	if (unknown && !c->askable) {
		trouble(q, c, c->trouble ? c->trouble : "did not tell the identities");
	} else if (unknown && !wanting) {
		c->want_walk = q->pending = true;
	} else if (refused) {
		trouble(q, c, "refused to identify some of its namespaces");
	}
	q->walked = true;
}

static void consult_ctrl(struct pass *p, struct consult *q, struct ctrl_pass *c, bool may_walk)
{
	const struct probe_ns *ns;

	if (!c->usable) {
		trouble(q, c, c->c->state != CTRL_LIVE ? ctrl_state_name(c->c->state) : "has no I/O queues");
		return;
	}
	if (!c->listed) {
		if (!c->askable) {
			trouble(q, c, c->trouble ? c->trouble : "was not asked");
			return;
		}
		c->want_list = q->pending = true;
		return;
	}
	q->at = q->at ? min_time(q->at, c->probe->list_at) : c->probe->list_at;
	if (q->by_nsid) {
		ns = probe_ns_find(c->probe, q->nsid);
		if (ns && ns->listed)
			consult_nsid(q, c, ns);
	} else {
		consult_identity(p, q, c, may_walk);
	}
}

/* A walk in vain is not repeated before its pause is over, unless the lists changed. */
static bool walk_is_due(const struct pass *p, const struct rec_ns *r)
{
	if (p->in->mode == PLAN_PROBE || p->in->now >= r->walk_next || r->verdict_at >= p->in->run_start)
		return true;
	for (size_t i = 0; i < p->n_ctrl; i++)
		if (p->ctrl[i].askable && !p->ctrl[i].listed)
			return false; /* the lists come first */
	return r->walk_hash != lists_hash(p);
}

void consult(struct pass *p, struct consult *q, const struct rec_ns *r)
{
	bool may_walk = walk_is_due(p, r);

	for (size_t i = 0; i < p->n_ctrl; i++)
		if (p->ctrl[i].ours)
			consult_ctrl(p, q, &p->ctrl[i], may_walk);
}
