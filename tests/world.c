/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "world.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#define ANSWER_TIME (2 * NS_PER_MS)
#define HANG_DEADLINE (10 * NS_PER_SEC)

struct ident world_ident(uint8_t uuid)
{
	struct ident id = { .have = uuid ? IDENT_UUID : 0 };

	if (uuid)
		memset(id.uuid, uuid, sizeof(id.uuid));
	return id;
}

void world_init(struct world *w, unsigned n_ctrl)
{
	struct expect_subsys *s;

	*w = (struct world){ .connected = true, .now = 1000 * NS_PER_SEC, .scan_time = 100 * NS_PER_MS };
	snprintf(w->nqn, sizeof(w->nqn), "nqn.2014-08.org.example:world");
	s = expect_add(&w->expect, "world", w->nqn);
	s->policy.grace = 5 * NS_PER_SEC;
	for (unsigned i = 0; i < n_ctrl; i++)
		w->ctrl[i] = (struct world_ctrl){ .exists = true, .state = CTRL_LIVE, .type = CTRL_TYPE_IO,
						  .queue_count = 3, .cntlid = (int)i + 1 };
	w->run_start = w->now;
}

static void forget_requests(struct world *w)
{
	for (unsigned i = 0; i < WORLD_CTRLS; i++) {
		free(w->ctrl[i].asked_nsid);
		w->ctrl[i].asked_nsid = NULL;
		for (size_t k = 0; w->ctrl[i].asked_disk && k < w->ctrl[i].asked_n; k++)
			free(w->ctrl[i].asked_disk[k]);
		free(w->ctrl[i].asked_disk);
		w->ctrl[i].asked_disk = NULL;
		w->ctrl[i].asked = false;
	}
}

void world_clear(struct world *w)
{
	forget_requests(w);
	plan_free(w->plan);
	topo_free(&w->topo);
	probes_free(&w->probes);
	rec_subsys_clear(&w->rec.r);
	expect_free(&w->expect);
}

struct policy *world_policy(struct world *w)
{
	return &w->expect.subsys[0].policy;
}

static struct expect_ns *expect_line(struct world *w, uint32_t first, uint32_t last, uint8_t uuid)
{
	struct expect_ns *ns = expect_add_ns(&w->expect.subsys[0]);

	ns->nsid_first = first;
	ns->nsid_last = last;
	ns->id = world_ident(uuid);
	return ns;
}

void world_expect(struct world *w, uint32_t nsid, uint8_t uuid)
{
	expect_line(w, nsid, nsid, uuid);
}

void world_expect_range(struct world *w, uint32_t first, uint32_t last)
{
	expect_line(w, first, last, 0);
}

void world_expect_all(struct world *w)
{
	expect_add_ns(&w->expect.subsys[0])->all = true;
}

void world_ignore(struct world *w, uint32_t nsid, uint8_t uuid)
{
	struct expect_subsys *s = &w->expect.subsys[0];

	ARRAY_GROW(s->ignore, s->n_ignore);
	s->ignore[s->n_ignore++] = (struct expect_ns){ .nsid_first = nsid, .nsid_last = nsid, .id = world_ident(uuid) };
}

struct world_ns *world_ns(struct world *w, uint32_t nsid)
{
	for (size_t i = 0; i < w->n_ns; i++)
		if (w->ns[i].nsid == nsid)
			return &w->ns[i];
	return NULL;
}

struct world_head *world_head(struct world *w, uint32_t nsid)
{
	for (size_t i = 0; i < w->n_head; i++)
		if (w->head[i].nsid == nsid)
			return &w->head[i];
	return NULL;
}

void world_map_silently(struct world *w, uint32_t nsid, uint8_t uuid)
{
	struct world_ns *ns = world_ns(w, nsid);

	assert(w->n_ns < WORLD_NAMESPACES);
	if (!ns)
		ns = &w->ns[w->n_ns++];
	*ns = (struct world_ns){ .nsid = nsid, .uuid = uuid };
	for (unsigned i = 0; i < WORLD_CTRLS; i++)
		ns->mapped[i] = true;
	w->mapping_changed_at = w->now;
}

void world_unmap_silently(struct world *w, uint32_t nsid)
{
	struct world_ns *ns = world_ns(w, nsid);

	if (ns)
		*ns = w->ns[--w->n_ns];
	w->mapping_changed_at = w->now;
}

void world_ana_silently(struct world *w, uint32_t nsid, enum ana_state ana)
{
	struct world_ns *ns = world_ns(w, nsid);

	assert(ns);
	ns->ana = ana;
}

void world_lose_path(struct world *w, unsigned ctrl, uint32_t nsid)
{
	struct world_head *h = world_head(w, nsid);

	assert(h);
	h->path[ctrl] = false;
}

static bool accessible(enum ana_state ana)
{
	return ana != ANA_INACCESSIBLE && ana != ANA_PERSISTENT_LOSS && ana != ANA_CHANGE;
}

static void drop_head_if_pathless(struct world *w, size_t at)
{
	for (unsigned i = 0; i < WORLD_CTRLS; i++)
		if (w->head[at].path[i])
			return;
	w->head[at] = w->head[--w->n_head];
	w->n_removed++;
}

/* nvme_scan_ns_list, nvme_remove_invalid_namespaces, nvme_validate_ns in miniature */
void world_kernel_scan(struct world *w, unsigned ctrl)
{
	bool removed[WORLD_NAMESPACES * 4] = { false }; /* by NSID: what another identity had is created by the next scan only */

	for (size_t k = w->n_head; k-- > 0;) {
		struct world_head *h = &w->head[k];
		struct world_ns *ns = world_ns(w, h->nsid);

		if (h->path[ctrl] && (!ns || !ns->mapped[ctrl] || ns->uuid != h->uuid)) {
			if (ns && ns->mapped[ctrl] && h->nsid < ARRAY_SIZE(removed))
				removed[h->nsid] = true;
			h->path[ctrl] = false;
			drop_head_if_pathless(w, k);
		}
	}
	for (size_t k = 0; k < w->n_ns; k++) {
		struct world_head *h = world_head(w, w->ns[k].nsid);

		if (!w->ns[k].mapped[ctrl] || (w->ns[k].nsid < ARRAY_SIZE(removed) && removed[w->ns[k].nsid] && !w->eager))
			continue;
		if (!h) {
			h = &w->head[w->n_head++];
			*h = (struct world_head){ .nsid = w->ns[k].nsid, .uuid = w->ns[k].uuid, .no_head = true };
		}
		if (h->uuid != w->ns[k].uuid) /* "IDs don't match for shared namespace" */
			continue;
		h->path[ctrl] = true;
		h->ana = w->ns[k].ana ? w->ns[k].ana : ANA_OPTIMIZED; /* kernels that read the ANA log after a scan */
		if (accessible(h->ana) && !w->ns[k].broken_head)
			h->no_head = false;
	}
}

void world_map(struct world *w, uint32_t nsid, uint8_t uuid)
{
	world_map_silently(w, nsid, uuid);
	for (unsigned i = 0; i < WORLD_CTRLS; i++)
		if (w->ctrl[i].exists)
			world_kernel_scan(w, i);
}

/* ---- what the host shows ---- */

static void add_topo_ctrl(struct topo_subsys *s, const struct world *w, unsigned i)
{
	const struct world_ctrl *c = &w->ctrl[i];

	ARRAY_GROW(s->ctrl, s->n_ctrl);
	s->ctrl[s->n_ctrl] = (struct topo_ctrl){ .instance = (int)i, .state = c->state, .type = c->type, .cntlid = c->cntlid,
						 .queue_count = c->queue_count, .nqn = xstrdup(w->nqn),
						 .hostnqn = xstrdup("nqn.2014-08.org.example:host") };
	s->n_ctrl++;
}

/* Positions of controllers in the topology differ from their numbers where one does not exist. */
static int ctrl_position(const struct topo_subsys *s, unsigned instance)
{
	for (size_t i = 0; i < s->n_ctrl; i++)
		if (s->ctrl[i].instance == (int)instance)
			return (int)i;
	return -1;
}

static void add_topo_head(struct topo_subsys *s, const struct world *w, const struct world_head *h)
{
	int disk = -1;

	if (!h->no_head) {
		disk = (int)s->n_disk;
		ARRAY_GROW(s->disk, s->n_disk);
		s->disk[s->n_disk] = (struct topo_disk){ .ctrl = -1, .nsid = h->nsid, .id = world_ident(h->uuid),
							 .size = 1 << 20, .node = true };
		snprintf(s->disk[s->n_disk].name, sizeof(s->disk[0].name), "nvme0n%u", h->nsid);
		s->n_disk++;
	}
	for (unsigned i = 0; i < WORLD_CTRLS; i++) {
		int c = ctrl_position(s, i);

		if (!h->path[i] || c < 0)
			continue;
		ARRAY_GROW(s->path, s->n_path);
		s->path[s->n_path++] = (struct topo_path){ .ctrl = c, .disk = disk, .nsid = h->nsid, .ana = h->ana,
							   .id = disk < 0 ? world_ident(h->uuid) : (struct ident){ 0 } };
		s->ctrl[c].n_paths++;
		if (disk >= 0)
			s->disk[disk].n_paths++;
	}
}

static void look(struct world *w)
{
	struct topo_subsys *s;

	topo_free(&w->topo);
	w->topo.ids_complete = w->plan && w->plan->want_ids;
	if (!w->connected)
		return;
	ARRAY_GROW(w->topo.subsys, w->topo.n_subsys);
	s = &w->topo.subsys[w->topo.n_subsys++];
	*s = (struct topo_subsys){ .nqn = xstrdup(w->nqn) };
	for (unsigned i = 0; i < WORLD_CTRLS; i++)
		if (w->ctrl[i].exists)
			add_topo_ctrl(s, w, i);
	for (size_t k = 0; k < w->n_head; k++)
		add_topo_head(s, w, &w->head[k]);
	topo_finish(&w->topo);
}

struct plan *world_plan(struct world *w)
{
	look(w);
	if (!w->rec.r.nqn)
		w->rec.r.nqn = xstrdup(w->nqn);
	w->rec.may_act = true;
	w->in.expect = &w->expect;
	w->in.topo = &w->topo;
	w->in.probes = &w->probes;
	w->in.rec = &w->rec;
	w->in.n_rec = 1;
	w->in.now = w->now;
	w->in.run_start = w->run_start;
	if (w->in.mode == PLAN_STATUS)
		w->in.mode = PLAN_HEAL;
	plan_free(w->plan);
	w->plan = plan_make(&w->in);
	for (size_t i = 0; i < w->plan->n_finding; i++)
		w->n_news += w->plan->finding[i].news;
	return w->plan;
}

/* ---- what controllers answer ---- */

static void answer_list(struct world *w, unsigned i, struct probe *p)
{
	uint32_t list[WORLD_NAMESPACES];
	size_t n = 0;

	for (size_t k = 0; k < w->n_ns; k++)
		if (w->ns[k].mapped[i])
			list[n++] = w->ns[k].nsid;
	probe_set_list(p, list, n, w->ctrl[i].asked_at);
}

static void answer_ident(struct world *w, struct probe *p, uint32_t nsid)
{
	struct world_ns *ns = world_ns(w, nsid);
	struct probe_ns *answer = probe_ns_get(p, nsid);

	answer->ident_at = w->now;
	answer->error = ns ? 0 : 0x400b;
	answer->id = world_ident(ns ? ns->uuid : 0);
}

static void answer(struct world *w, unsigned i)
{
	struct world_ctrl *c = &w->ctrl[i];
	struct probe *p = probes_get(&w->probes, (int)i, w->nqn);

	c->asked = false;
	free(p->error);
	p->error = NULL;
	p->status = PROBE_IDLE;
	if (c->hangs || c->refuses || c->state != CTRL_LIVE) {
		p->status = c->hangs ? PROBE_HUNG : c->refuses ? PROBE_FAILED : PROBE_GONE;
		p->error = xstrdup("did not answer");
		if (c->asked_what == ACT_RESCAN)
			p->rescan_error = -11;
		return;
	}
	p->latency = NS_PER_MS;
	switch (c->asked_what) {
	case ACT_LIST:
		answer_list(w, i, p);
		break;
	case ACT_IDENTIFY:
		for (size_t k = 0; k < c->asked_n; k++)
			answer_ident(w, p, c->asked_nsid[k]);
		break;
	case ACT_IDENTIFY_ALL:
		answer_list(w, i, p);
		for (size_t k = 0; k < w->n_ns; k++)
			if (w->ns[k].mapped[i])
				answer_ident(w, p, w->ns[k].nsid);
		p->walk_at = c->asked_at;
		p->walk_done = w->now;
		break;
	case ACT_ANA:
		for (size_t k = 0; k < c->asked_n; k++) {
			struct world_ns *ns = world_ns(w, c->asked_nsid[k]);
			struct probe_ns *said = probe_ns_get(p, c->asked_nsid[k]);

			said->ana_at = w->now;
			said->ana = ns && ns->ana ? ns->ana : ANA_OPTIMIZED;
			said->ana_error = ns ? 0 : 0x400b;
		}
		break;
	case ACT_USE:
	case ACT_GONE:
		for (size_t k = 0; k < c->asked_n; k++) {
			struct probe_use *use = probe_use_get(p, c->asked_disk[k]);
			struct world_head *h = world_head(w, (uint32_t)strtoul(c->asked_disk[k] + strlen("nvme0n"), NULL, 10));

			if (c->asked_what == ACT_GONE) {
				struct probe_ns *said = probe_ns_get(p, c->asked_nsid[k]);
				struct world_ns *ns = world_ns(w, c->asked_nsid[k]);

				said->gone = !ns || !ns->mapped[i];
				said->gone_at = use->read_at = w->now;
				use->readable = h && h->readable;
				continue;
			}
			use->at = w->now;
			use->used = h && h->used;
			free(use->user);
			use->user = use->used ? xstrdup("mounted on /data") : NULL;
		}
		break;
	case ACT_RESCAN:
		p->rescan_at = w->now;
		p->rescan_error = 0;
		c->scan_done = w->now + w->scan_time;
		break;
	}
}

static void start_act(struct world *w, const struct act *a)
{
	struct world_ctrl *c = &w->ctrl[a->instance];

	assert(!c->asked);
	c->asked = true;
	c->asked_what = a->kind;
	c->asked_at = w->now;
	free(c->asked_nsid);
	c->asked_nsid = xcalloc(a->n, sizeof(*a->nsid));
	if (a->n && a->nsid)
		memcpy(c->asked_nsid, a->nsid, a->n * sizeof(*a->nsid));
	for (size_t k = 0; c->asked_disk && k < c->asked_n; k++)
		free(c->asked_disk[k]);
	free(c->asked_disk);
	c->asked_disk = NULL;
	if (a->disk) {
		c->asked_disk = xcalloc(a->n, sizeof(*a->disk));
		for (size_t k = 0; k < a->n; k++)
			c->asked_disk[k] = xstrdup(a->disk[k]);
	}
	c->asked_n = a->n;
	c->n_ana += a->kind == ACT_ANA;
	c->n_use += a->kind == ACT_USE;
	c->n_gone += a->kind == ACT_GONE;
	c->rearmed = c->rearmed || (a->kind == ACT_RESCAN && a->rearm);
	c->n_list += a->kind == ACT_LIST;
	c->n_identify += a->kind == ACT_IDENTIFY;
	c->n_identify_all += a->kind == ACT_IDENTIFY_ALL;
	if (a->kind == ACT_RESCAN) {
		c->n_rescan++;
		c->n_advised += a->why && strstr(a->why, "rearm = yes");
		c->last_rescan = w->now;
	}
	probes_get(&w->probes, a->instance, w->nqn)->status = PROBE_RUNNING;
}

static int64_t next_moment(const struct world *w)
{
	int64_t when = w->now + NS_PER_SEC;

	if (w->plan->wake > w->now)
		when = min_time(when, w->plan->wake);
	if (w->plan->want_ids && !w->topo.ids_complete)
		when = min_time(when, w->now + 200 * NS_PER_MS);
	for (unsigned i = 0; i < WORLD_CTRLS; i++) {
		const struct world_ctrl *c = &w->ctrl[i];

		if (c->asked)
			when = min_time(when, c->asked_at + (c->hangs ? HANG_DEADLINE : ANSWER_TIME));
		if (c->scan_done)
			when = min_time(when, c->scan_done);
	}
	return max_time(when, w->now + NS_PER_MS);
}

void world_act(struct world *w)
{
	for (size_t i = 0; i < w->plan->n_act; i++)
		start_act(w, &w->plan->act[i]);
	w->now = next_moment(w);
	for (unsigned i = 0; i < WORLD_CTRLS; i++) {
		struct world_ctrl *c = &w->ctrl[i];

		if (c->asked && w->now >= c->asked_at + (c->hangs ? HANG_DEADLINE : ANSWER_TIME))
			answer(w, i);
		if (c->scan_done && w->now >= c->scan_done) {
			c->scan_done = 0;
			if (c->exists && c->state == CTRL_LIVE && !c->deaf_to_scan)
				world_kernel_scan(w, i);
		}
	}
}

static bool is_waiting(const struct world *w)
{
	for (unsigned i = 0; i < WORLD_CTRLS; i++)
		if (w->ctrl[i].asked || w->ctrl[i].scan_done)
			return true;
	return w->plan->n_act || w->plan->pending || w->plan->wake - w->run_start < 120 * NS_PER_SEC;
}

void world_run(struct world *w)
{
	do {
		world_plan(w);
		if (!is_waiting(w) || w->now - w->run_start >= 120 * NS_PER_SEC)
			break;
		world_act(w);
	} while (true);
}

void world_next_run(struct world *w, int64_t later)
{
	w->now += later;
	w->run_start = w->now;
	forget_requests(w);
	probes_free(&w->probes);
	w->probes = (struct probes){ 0 };
}

void world_pass(struct world *w, int64_t duration)
{
	int64_t end = w->now + duration;

	while (w->now < end) {
		world_plan(w);
		world_act(w);
	}
	world_plan(w);
}

const struct finding *world_finding(const struct world *w, size_t n)
{
	assert(n < w->plan->n_finding);
	return &w->plan->finding[n];
}

unsigned world_rescans(const struct world *w)
{
	unsigned n = 0;

	for (unsigned i = 0; i < WORLD_CTRLS; i++)
		n += w->ctrl[i].n_rescan;
	return n;
}

unsigned world_requests(const struct world *w)
{
	unsigned n = world_rescans(w);

	for (unsigned i = 0; i < WORLD_CTRLS; i++)
		n += w->ctrl[i].n_list + w->ctrl[i].n_identify + w->ctrl[i].n_identify_all + w->ctrl[i].n_ana +
		     w->ctrl[i].n_use + w->ctrl[i].n_gone;
	return n;
}
