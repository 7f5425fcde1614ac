/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Random worlds and clocks: whatever happens, the planner keeps its promises. Usage: test-plan-random [WORLDS [SEED]];
 * a failure prints the seed and the world's number.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

#include "world.h"

#define DEFAULT_WORLDS 10000
#define STEPS 120

static unsigned long worlds = DEFAULT_WORLDS;
static unsigned long seed = 1;
static unsigned long current;
static uint64_t random_state;

/* splitmix64: the same on every machine */
static uint64_t random_number(void)
{
	uint64_t z = (random_state += 0x9e3779b97f4a7c15ULL);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

static unsigned below(unsigned n)
{
	return (unsigned)(random_number() % n);
}

static bool one_in(unsigned n)
{
	return below(n) == 0;
}

#define promise(what, holds)                                                                                             \
	do {                                                                                                             \
		if (!(holds)) {                                                                                          \
			print_error("world %lu of seed %lu: %s\n", current, seed, what);                                 \
			fail();                                                                                          \
		}                                                                                                        \
	} while (0)

/* What the checker itself remembers, beside and without the records. */
struct watch {
	int64_t first_missing;  /* since when nothing was the matter with at least one expected namespace */
	bool silent[WORLD_CTRLS]; /* a rescan whose effect is not seen yet */
	int64_t silent_since[WORLD_CTRLS];
	uint64_t paths[WORLD_CTRLS];
};

/* Which paths a controller has and in which state; the order of heads does not matter. */
static uint64_t paths_of(const struct world *w, unsigned ctrl)
{
	uint64_t sum = 0;

	for (size_t k = 0; k < w->n_head; k++)
		if (w->head[k].path[ctrl])
			sum += hash_bytes(HASH_INIT, &w->head[k].nsid, sizeof(w->head[k].nsid)) *
			       (w->head[k].uuid * 100ULL + w->head[k].ana * 10ULL + w->head[k].no_head + 1);
	return sum;
}

/* Would the kernel's scan of this controller take away, in the world as it really is, a device that is used (or any)? */
static bool scan_removes(const struct world *real, unsigned ctrl, bool any)
{
	static struct world copy;

	copy = *real;
	world_kernel_scan(&copy, ctrl);
	for (size_t k = 0; k < real->n_head; k++) {
		const struct world_head *was = &real->head[k], *is = world_head(&copy, was->nsid);

		if (!was->no_head && (any || was->used) && (!is || is->uuid != was->uuid))
			return true;
	}
	return false;
}

/* Rule 6's second round goes on from the first, also where a path or two came with that already. */
static bool is_second_round(const struct world *w)
{
	for (size_t i = 0; i < w->plan->n_finding; i++)
		if (w->plan->finding[i].state == STATE_DEGRADED && w->plan->finding[i].action == ACTION_SETTLING)
			return w->expect.subsys[0].policy.paths == PATHS_ANY;
	return false;
}

static void check_rescan(struct world *w, struct watch *watch, const struct act *a)
{
	const struct world_ctrl *c = &w->ctrl[a->instance];
	const struct policy *policy = world_policy(w);
	const struct probe *p = probes_find(&w->probes, a->instance, w->nqn);
	const struct rec_ctrl *rc = rec_ctrl_find(&w->rec.r, a->instance); /* none: the last of a round that is over */

	promise("a rescan only of a controller that is live", c->exists && c->state == CTRL_LIVE);
	promise("a rescan only of an I/O controller",
		c->type != CTRL_TYPE_DISCOVERY && c->type != CTRL_TYPE_ADMIN && c->queue_count >= 2);
	promise("no rescan where the policy is to report", policy->action == POLICY_RESCAN);
	/* the others of a round follow their canary, also when what was missing is there already */
	promise("no rescan within the grace time", !rc || !rc->canary || is_second_round(w) ||
							   (watch->first_missing && w->now - watch->first_missing >= policy->grace));
	promise("no rescan unasked: its answers are of this run", p && p->walk_at >= w->run_start);
	for (unsigned i = 0; i < WORLD_CTRLS; i++)
		promise("never two at once: one is without effect and not settled",
			!watch->silent[i] || w->now - watch->silent_since[i] >= 10 * NS_PER_SEC);
	/* a mapping that changed after the answers were given is a race that nobody can win */
	if (p->walk_at > w->mapping_changed_at && policy->removals == REMOVALS_NEVER)
		promise("no rescan that removes a device", !scan_removes(w, (unsigned)a->instance, true));
	if (p->walk_at > w->mapping_changed_at && p->walk_at > w->use_changed_at && policy->removals == REMOVALS_IDLE)
		promise("no rescan that removes a device in use", !scan_removes(w, (unsigned)a->instance, false));
	for (size_t k = 0; k < w->rec.r.n_ns; k++)
		if (w->rec.r.ns[k].in_round && w->rec.r.ns[k].attempted_at == w->now)
			promise("no attempt within backoff or retry-after", w->rec.r.ns[k].next_attempt <= w->now);
	/* a rescan from which nothing is to come shows nothing: only a canary's effect is owed */
	watch->silent[a->instance] = rc && rc->canary;
	watch->silent_since[a->instance] = w->now;
}

static void check_plan(struct world *w, struct watch *watch)
{
	bool all_good = true;

	for (size_t i = 0; i < w->plan->n_finding; i++) {
		const struct finding *f = &w->plan->finding[i];

		promise("a state of the table", f->state < N_STATES && f->action < N_ACTIONS);
		promise("a reason for what is not there", ns_state_is_good(f->state, world_policy(w)) || f->transient || f->evidence ||
								  f->state == STATE_MISSING);
		all_good = all_good && ns_state_is_good(f->state, world_policy(w));
	}
	if (all_good && !w->plan->pending) /* pending: `all` or an `ignore` is not known yet */
		watch->first_missing = 0;
	else if (!watch->first_missing)
		watch->first_missing = w->now;
	for (unsigned i = 0; i < WORLD_CTRLS; i++) {
		uint64_t now = paths_of(w, i);

		/* its effect is seen, or it was refused, or its controller went away with it */
		if (now != watch->paths[i] || w->ctrl[i].hangs || w->ctrl[i].refuses || !w->ctrl[i].exists ||
		    w->ctrl[i].state != CTRL_LIVE || w->ctrl[i].queue_count < 2)
			watch->silent[i] = false;
		watch->paths[i] = now;
	}
	for (size_t k = 0; k < w->plan->n_act; k++) {
		for (size_t j = 0; j < k; j++)
			promise("one request for a controller at a time", w->plan->act[j].instance != w->plan->act[k].instance);
		promise("no request while one is under way", !w->ctrl[w->plan->act[k].instance].asked);
		if (w->plan->act[k].kind == ACT_RESCAN)
			check_rescan(w, watch, &w->plan->act[k]);
	}
	promise("the next wake-up is not in the past", w->plan->wake >= w->now);
}

static void change_ctrl(struct world *w)
{
	struct world_ctrl *c = &w->ctrl[below(WORLD_CTRLS)];

	if (!c->exists && !one_in(4))
		return;
	switch (below(8)) {
	case 0:
		c->state = c->state == CTRL_LIVE ? CTRL_CONNECTING : CTRL_LIVE;
		break;
	case 1:
		c->cntlid += 16; /* it reconnected between two looks */
		break;
	case 2:
		c->hangs = !c->hangs && one_in(3);
		break;
	case 3:
		c->refuses = !c->refuses && one_in(2);
		break;
	case 4:
		c->deaf_to_scan = !c->deaf_to_scan && one_in(2);
		break;
	case 5:
		c->queue_count = one_in(3) ? 1 : 3;
		break;
	case 6:
		if (one_in(3) && !c->asked) { /* an open descriptor pins the number while something is asked */
			c->exists = !c->exists;
			c->scan_done = 0;
			for (size_t k = w->n_head; k-- > 0 && !c->exists;) {
				w->head[k].path[c - w->ctrl] = false;
				if (!w->head[k].path[0] && !w->head[k].path[1] && !w->head[k].path[2] && !w->head[k].path[3])
					w->head[k] = w->head[--w->n_head];
			}
			if (c->exists)
				*c = (struct world_ctrl){ .exists = true, .state = CTRL_LIVE, .type = CTRL_TYPE_IO,
							  .queue_count = 3, .cntlid = 100 + (int)below(100) };
		}
		break;
	default:
		c->state = CTRL_LIVE;
		c->hangs = c->refuses = c->deaf_to_scan = false;
		c->queue_count = 3;
	}
}

static void change_mapping(struct world *w)
{
	uint32_t nsid = 1 + below(12);

	switch (below(5)) {
	case 0:
		world_map(w, nsid, world_ns(w, nsid) ? world_ns(w, nsid)->uuid : (uint8_t)(nsid + 16 * below(3)));
		break;
	case 1:
	case 2:
		world_map_silently(w, nsid, (uint8_t)(nsid + 16 * below(3)));
		break;
	case 3:
		world_unmap_silently(w, nsid);
		break;
	default:
		if (world_ns(w, nsid))
			world_ns(w, nsid)->mapped[below(WORLD_CTRLS)] = one_in(2);
		w->mapping_changed_at = w->now;
	}
}

static void random_expectations(struct world *w)
{
	struct policy *policy = world_policy(w);

	for (unsigned i = 1 + below(4); i > 0; i--)
		switch (below(4)) {
		case 0:
			world_expect(w, 1 + below(12), 0);
			break;
		case 1:
			world_expect(w, 0, (uint8_t)(1 + below(48)));
			break;
		case 2: {
			uint32_t nsid = 1 + below(12);

			world_expect(w, nsid, (uint8_t)(nsid + 16 * below(3)));
			break;
		}
		default:
			world_expect_range(w, 1 + below(4), 5 + below(4));
		}
	if (one_in(3))
		world_expect_all(w);
	if (one_in(4))
		world_ignore(w, 1 + below(12), 0);
	if (one_in(8))
		world_ignore(w, 0, (uint8_t)(1 + below(48)));
	policy->grace = (int64_t)below(3) * 4 * NS_PER_SEC;
	policy->backoff = (int64_t)(1 + below(60)) * NS_PER_SEC;
	policy->max_attempts = 1 + below(4);
	policy->retry_after = (int64_t)(60 + below(3600)) * NS_PER_SEC;
	policy->action = one_in(8) ? POLICY_REPORT : POLICY_RESCAN;
	policy->removals = (enum policy_removals[]){ REMOVALS_NEVER, REMOVALS_IDLE, REMOVALS_DEAD, REMOVALS_ALWAYS }[below(4)];
	policy->paths = one_in(3) ? PATHS_ALL : PATHS_ANY;
}

/* Somebody opens or closes a disk; paths are lost; ANA changes; all of it in silence. */
static void change_host(struct world *w)
{
	struct world_head *h = w->n_head ? &w->head[below((unsigned)w->n_head)] : NULL;
	struct world_ns *ns = w->n_ns ? &w->ns[below((unsigned)w->n_ns)] : NULL;

	switch (below(4)) {
	case 0:
	case 1:
		if (h) {
			h->used = !h->used;
			h->readable = one_in(2);
			w->use_changed_at = w->now;
		}
		break;
	case 2:
		if (ns)
			ns->ana = (enum ana_state[]){ ANA_OPTIMIZED, ANA_NON_OPTIMIZED, ANA_INACCESSIBLE }[below(3)];
		break;
	default:
		if (ns)
			ns->broken_head = one_in(4);
	}
}

/* The clock stands, creeps, jumps over a suspend; runs end and begin. */
static void pass_time(struct world *w)
{
	if (one_in(12))
		world_next_run(w, (int64_t)below(90) * NS_PER_SEC);
	else if (one_in(200))
		world_next_run(w, (int64_t)below(100000) * NS_PER_SEC);
	w->scan_time = (int64_t)(1 + below(8000)) * NS_PER_MS;
}

static void one_world(void)
{
	struct watch watch = { 0 };
	struct world w;

	world_init(&w, 1 + below(WORLD_CTRLS));
	random_expectations(&w);
	for (unsigned i = below(10); i > 0; i--)
		world_map(&w, 1 + below(12), (uint8_t)(1 + below(48)));
	for (unsigned i = 0; i < WORLD_CTRLS; i++)
		if (w.ctrl[i].exists)
			world_kernel_scan(&w, i);
	for (int step = 0; step < STEPS; step++) {
		world_plan(&w);
		check_plan(&w, &watch);
		world_act(&w);
		if (one_in(10))
			change_ctrl(&w);
		if (one_in(10))
			change_mapping(&w);
		if (one_in(10))
			change_host(&w);
		pass_time(&w);
	}
	world_clear(&w);
}

static void promises_hold(void **state)
{
	for (current = 0; current < worlds; current++) {
		random_state = seed * 1000003 + current;
		one_world();
	}
	print_message("%lu worlds of seed %lu, %d steps each\n", worlds, seed, STEPS);
}

/* Once nothing changes any more and nothing misbehaves, what can be healed is healed and then all is silence. */
static void a_quiet_world_comes_to_rest(void **state)
{
	for (current = 0; current < worlds / 10; current++) {
		struct world w;
		unsigned before;

		random_state = seed * 2000003 + current;
		world_init(&w, 1 + below(3));
		world_expect_range(&w, 1, 1 + below(8));
		world_policy(&w)->grace = (int64_t)below(10) * NS_PER_SEC;
		for (uint32_t nsid = 1; nsid <= 8; nsid++) {
			if (one_in(2))
				world_map(&w, nsid, (uint8_t)nsid);
			else
				world_map_silently(&w, nsid, (uint8_t)nsid);
		}
		for (int run = 0; run < 5; run++) {
			world_run(&w);
			world_next_run(&w, 30 * NS_PER_SEC);
		}
		world_plan(&w);
		promise("healed", w.plan->subsys[0].n_good == w.plan->subsys[0].n);
		before = world_requests(&w);
		world_run(&w);
		promise("present is a fixed point: nothing asked", world_requests(&w) == before && w.plan->n_act == 0);
		promise("and nothing remembered", w.rec.r.n_ns == 0 && w.rec.r.n_ctrl == 0);
		promise("and nothing removed on the way", w.n_removed == 0);
		world_clear(&w);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(promises_hold),
		cmocka_unit_test(a_quiet_world_comes_to_rest),
	};

	if (argc > 1)
		worlds = strtoul(argv[1], NULL, 10);
	if (argc > 2)
		seed = strtoul(argv[2], NULL, 10);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
