/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The rules of the design's section 5, one test or more for each, in small worlds (world.h). Where a rule says that
 * something does not happen, the test counts that it did not.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>

#include "world.h"

#define S(n) ((n) * NS_PER_SEC)
#define UUID_A 0xaa
#define UUID_B 0xbb

static void assert_finding(const struct world *w, size_t n, enum ns_state state, enum ns_action action)
{
	const struct finding *f = world_finding(w, n);

	if (f->state != state || f->action != action)
		print_error("finding %zu: %s/%s, expected %s/%s (%s)\n", n, ns_state_name(f->state),
			    ns_action_name(f->action), ns_state_name(state), ns_action_name(action),
			    f->evidence ? f->evidence : "no evidence");
	assert_int_equal(f->state, state);
	assert_int_equal(f->action, action);
}

/* Two controllers, NSID 1 is there; NSID 2 (UUID_B) is expected and mapped, and its notice was lost. */
static void missed_world(struct world *w)
{
	world_init(w, 2);
	world_map(w, 1, UUID_A);
	world_expect(w, 0, UUID_B);
	world_map_silently(w, 2, UUID_B);
}

/* ---- rule 9 ---- */

static void lose_one_each_hour(struct world *w, uint32_t first, uint32_t last)
{
	for (uint32_t nsid = first; nsid <= last; nsid++) {
		world_expect(w, nsid, 0);
		world_map_silently(w, nsid, (uint8_t)nsid);
		world_run(w);
		assert_finding(w, nsid - 2, STATE_PRESENT, ACTION_NONE);
		world_next_run(w, S(3600));
	}
}

static void the_notification_channel_is_repaired_with_every_rescan(void **state)
{
	struct world w;

	world_init(&w, 2);
	world_map(&w, 1, 1);
	lose_one_each_hour(&w, 2, 6);
	assert_true(w.ctrl[0].rearmed && w.ctrl[1].rearmed);
	assert_int_equal(w.ctrl[0].n_advised + w.ctrl[1].n_advised, 0);
	world_clear(&w);
}

static void a_channel_that_may_not_be_repaired_is_advised_on_once_a_day(void **state)
{
	struct world w;

	world_init(&w, 2);
	world_policy(&w)->rearm = false;
	world_map(&w, 1, 1);
	lose_one_each_hour(&w, 2, 3);
	assert_int_equal(w.ctrl[0].n_advised + w.ctrl[1].n_advised, 0);
	lose_one_each_hour(&w, 4, 4);
	assert_int_equal(w.ctrl[0].n_advised, 1);
	assert_int_equal(w.ctrl[1].n_advised, 1);
	lose_one_each_hour(&w, 5, 8);
	assert_int_equal(w.ctrl[0].n_advised, 1);
	world_next_run(&w, S(24 * 3600)); /* a day later it counts from one */
	lose_one_each_hour(&w, 9, 10);
	assert_int_equal(w.ctrl[0].n_advised, 1);
	lose_one_each_hour(&w, 11, 11);
	assert_int_equal(w.ctrl[0].n_advised, 2);
	assert_false(w.ctrl[0].rearmed || w.ctrl[1].rearmed);
	world_clear(&w);
}

/* ---- rule 1 ---- */

static void all_present_asks_nothing(void **state)
{
	struct world w;

	world_init(&w, 2);
	world_map(&w, 1, UUID_A);
	world_map(&w, 2, UUID_B);
	world_expect(&w, 0, UUID_A);
	world_expect(&w, 2, UUID_B);
	for (int run = 0; run < 100; run++) {
		world_run(&w);
		assert_finding(&w, 0, STATE_PRESENT, ACTION_NONE);
		assert_finding(&w, 1, STATE_PRESENT, ACTION_NONE);
		assert_false(w.plan->subsys[0].needs_lock); /* so nothing is written either */
		world_next_run(&w, S(30));
	}
	assert_int_equal(world_requests(&w), 0);
	assert_int_equal(w.n_news, 0);
	assert_int_equal(w.rec.r.n_ns, 0);
	assert_int_equal(w.rec.r.n_ctrl, 0);
	world_clear(&w);
}

static void all_asks_one_list_a_run(void **state)
{
	struct world w;

	world_init(&w, 2);
	world_map(&w, 1, UUID_A);
	world_expect_all(&w);
	for (int run = 0; run < 10; run++) {
		world_run(&w);
		assert_int_equal(w.plan->n_finding, 1);
		assert_finding(&w, 0, STATE_PRESENT, ACTION_NONE);
		world_next_run(&w, S(30));
	}
	assert_int_equal(w.ctrl[0].n_list, 10);
	assert_int_equal(w.ctrl[1].n_list, 10);
	assert_int_equal(world_requests(&w), 20);
	assert_int_equal(w.n_news, 0);
	world_clear(&w);
}

/* ---- the main job ---- */

static void missed_notice_is_healed(void **state)
{
	struct world w;

	missed_world(&w);
	world_plan(&w);
	assert_finding(&w, 0, STATE_MISSING, ACTION_GRACE);
	world_run(&w);
	assert_finding(&w, 0, STATE_PRESENT, ACTION_NONE);
	assert_int_equal(world_finding(&w, 0)->n_paths, 2);
	assert_int_equal(w.ctrl[0].n_rescan, 1);
	assert_int_equal(w.ctrl[1].n_rescan, 1);
	assert_int_equal(w.rec.r.n_ns, 0); /* nothing is left to remember */
	assert_int_equal(w.rec.r.n_ctrl, 0);
	assert_int_equal(w.n_news, 2); /* missing, and there: not again with its second path */
	world_clear(&w);
}

static void by_nsid_and_by_range_and_by_all(void **state)
{
	for (int how = 0; how < 3; how++) {
		struct world w;

		world_init(&w, 2);
		world_map(&w, 1, UUID_A);
		world_map(&w, 3, 0x33);
		if (how == 0)
			world_expect(&w, 2, 0);
		else if (how == 1)
			world_expect_range(&w, 1, 3);
		else
			world_expect_all(&w);
		world_map_silently(&w, 2, UUID_B);
		world_run(&w);
		for (size_t i = 0; i < w.plan->n_finding; i++)
			assert_finding(&w, i, STATE_PRESENT, ACTION_NONE);
		assert_int_equal(w.plan->n_finding, how == 0 ? 1 : 3);
		assert_int_equal(world_rescans(&w), 2);
		world_clear(&w);
	}
}

static void many_missed_take_one_rescan_a_controller(void **state)
{
	struct world w;

	world_init(&w, 3);
	world_expect_range(&w, 1, 60);
	for (uint32_t nsid = 1; nsid <= 60; nsid++)
		world_map_silently(&w, nsid, (uint8_t)nsid);
	world_run(&w);
	assert_int_equal(w.plan->subsys[0].n_good, 60);
	for (int i = 0; i < 3; i++)
		assert_int_equal(w.ctrl[i].n_rescan, 1);
	world_clear(&w);
}

/* ---- rule 2 ---- */

static void nothing_within_the_grace_time(void **state)
{
	struct world w;

	missed_world(&w);
	world_pass(&w, S(5) - NS_PER_MS);
	assert_int_equal(world_requests(&w), 0);
	world_pass(&w, S(3));
	assert_true(world_rescans(&w) > 0);
	world_clear(&w);
}

static void grace_counts_across_runs(void **state)
{
	struct world w;

	missed_world(&w);
	world_policy(&w)->grace = S(300);
	world_run(&w);
	assert_finding(&w, 0, STATE_MISSING, ACTION_GRACE);
	world_next_run(&w, S(200));
	world_run(&w);
	assert_finding(&w, 0, STATE_PRESENT, ACTION_NONE);
	world_clear(&w);
}

static void appears_by_itself_within_the_grace_time(void **state)
{
	struct world w;

	missed_world(&w);
	world_pass(&w, S(3));
	world_kernel_scan(&w, 0);
	world_kernel_scan(&w, 1);
	world_run(&w);
	assert_finding(&w, 0, STATE_PRESENT, ACTION_NONE);
	assert_int_equal(world_requests(&w), 0);
	world_clear(&w);
}

static void grace_starts_again_when_a_controller_goes_live(void **state)
{
	struct world w;

	missed_world(&w);
	world_pass(&w, S(4));
	w.ctrl[1].state = CTRL_CONNECTING;
	world_plan(&w);
	w.ctrl[1].state = CTRL_LIVE;
	world_pass(&w, S(4));
	assert_int_equal(world_requests(&w), 0);
	world_pass(&w, S(3));
	assert_true(world_rescans(&w) > 0);
	world_clear(&w);
}

static void a_flapping_controller_postpones_for_one_settle_at_most(void **state)
{
	struct world w;

	missed_world(&w);
	for (int i = 0; i < 20 && !world_requests(&w); i++) {
		w.ctrl[1].state = CTRL_CONNECTING;
		world_plan(&w);
		w.ctrl[1].state = CTRL_LIVE;
		world_pass(&w, S(1));
	}
	assert_true(world_requests(&w) > 0);
	assert_true(w.now <= 1000 * NS_PER_SEC + S(10) + S(5) + S(2)); /* settle is 10 s here, grace 5 s */
	world_clear(&w);
}

static void a_connected_event_starts_the_grace_again(void **state)
{
	struct world w;
	struct plan_event event;

	missed_world(&w);
	world_pass(&w, S(4));
	event = (struct plan_event){ .nqn = w.nqn, .instance = 0, .at = w.now };
	w.in.event = &event;
	w.in.n_event = 1;
	world_plan(&w);
	w.in.n_event = 0;
	world_pass(&w, S(4));
	assert_int_equal(world_requests(&w), 0);
	world_pass(&w, S(3));
	assert_true(world_rescans(&w) > 0);
	world_clear(&w);
}

static void each_namespace_has_a_grace_of_its_own(void **state)
{
	struct world w;

	missed_world(&w);
	world_expect(&w, 0, 0xcc);
	world_plan(&w);
	w.now += S(4);
	world_map_silently(&w, 1, 0x77); /* something else, the host keeps NSID 1's old device for now */
	world_map_silently(&w, 1, UUID_A);
	world_expect(&w, 9, 0);
	world_plan(&w);
	assert_true(world_finding(&w, 2)->until - world_finding(&w, 0)->until == S(4));
	world_clear(&w);
}

static void now_skips_the_grace_time(void **state)
{
	struct world w;

	missed_world(&w);
	w.in.skip_grace = true;
	world_pass(&w, S(2));
	assert_finding(&w, 0, STATE_PRESENT, ACTION_NONE);
	world_clear(&w);
}

/* ---- rule 3 and the states that answers tell ---- */

static void not_mapped_is_told_and_paced(void **state)
{
	struct world w;
	unsigned lists;

	world_init(&w, 2);
	world_map(&w, 1, UUID_A);
	world_expect(&w, 7, 0);
	world_run(&w);
	assert_finding(&w, 0, STATE_UNMAPPED, ACTION_NONE);
	assert_int_equal(world_requests(&w), 2);
	assert_int_equal(w.ctrl[0].n_list, 1);
	for (int run = 0; run < 10; run++) { /* within ten minutes: one a run */
		world_next_run(&w, S(30));
		world_run(&w);
	}
	assert_int_equal(w.ctrl[0].n_list, 11);
	while (w.now < 1000 * NS_PER_SEC + S(700)) {
		world_next_run(&w, S(30));
		world_run(&w);
	}
	lists = w.ctrl[0].n_list;
	for (int run = 0; run < 120; run++) { /* an hour: one every ten minutes */
		world_next_run(&w, S(30));
		world_run(&w);
		assert_finding(&w, 0, STATE_UNMAPPED, ACTION_NONE);
	}
	assert_in_range(w.ctrl[0].n_list - lists, 5, 7);
	assert_int_equal(world_rescans(&w), 0);
	assert_int_equal(w.n_news, 2); /* missing, then unmapped; once each */
	world_clear(&w);
}

static void an_unmapped_one_that_is_mapped_later_is_healed(void **state)
{
	struct world w;

	world_init(&w, 2);
	world_map(&w, 1, UUID_A);
	world_expect(&w, 0, UUID_B);
	world_run(&w);
	assert_finding(&w, 0, STATE_UNMAPPED, ACTION_NONE);
	world_map_silently(&w, 2, UUID_B);
	world_next_run(&w, S(30));
	world_run(&w);
	assert_finding(&w, 0, STATE_PRESENT, ACTION_NONE);
	world_clear(&w);
}

static void a_walk_in_vain_is_not_repeated_each_run(void **state)
{
	struct world w;

	world_init(&w, 1);
	for (uint32_t nsid = 1; nsid <= 20; nsid++)
		world_map(&w, nsid, (uint8_t)nsid);
	world_expect(&w, 0, UUID_B);
	world_run(&w);
	assert_finding(&w, 0, STATE_UNMAPPED, ACTION_NONE);
	assert_int_equal(w.ctrl[0].n_identify_all, 1);
	for (int run = 0; run < 100; run++) {
		world_next_run(&w, S(30));
		world_run(&w);
	}
	/* 30 s doubled up to an hour: after 50 minutes about seven */
	assert_in_range(w.ctrl[0].n_identify_all, 4, 8);
	assert_int_equal(w.ctrl[0].n_identify, 0);
	world_clear(&w);
}

static void unknown_while_a_controller_gives_no_answer(void **state)
{
	struct world w;

	world_init(&w, 2);
	world_map(&w, 1, UUID_A);
	world_expect(&w, 7, 0);
	w.ctrl[1].hangs = true;
	world_run(&w);
	assert_finding(&w, 0, STATE_UNKNOWN, ACTION_NONE);
	assert_non_null(strstr(world_finding(&w, 0)->evidence, "nvme1"));
	assert_true(w.now - w.run_start < S(20)); /* its grace and the deadline */
	world_clear(&w);
}

static void one_that_hangs_does_not_hold_up_the_others(void **state)
{
	struct world w;

	missed_world(&w);
	w.ctrl[1].hangs = true;
	world_run(&w);
	assert_finding(&w, 0, STATE_DEGRADED, ACTION_NONE);
	assert_int_equal(w.plan->subsys[0].n_good, 1);
	assert_int_equal(world_finding(&w, 0)->n_paths, 1);
	assert_int_equal(w.ctrl[1].n_rescan, 0);
	world_clear(&w);
}

static void a_hanging_controller_is_asked_ever_less(void **state)
{
	struct world w;
	unsigned asked;

	world_init(&w, 1);
	world_map(&w, 1, UUID_A);
	world_expect(&w, 7, 0);
	w.ctrl[0].hangs = true;
	for (int run = 0; run < 120; run++) { /* an hour and more */
		world_run(&w);
		world_next_run(&w, S(30));
	}
	asked = w.ctrl[0].n_list;
	assert_in_range(asked, 5, 9); /* 30 s, 1, 2, 4, ... min */
	/* a reconnect does not shorten it */
	w.ctrl[0].cntlid++;
	world_run(&w);
	assert_int_equal(w.ctrl[0].n_list, asked);
	world_clear(&w);
}

static void one_that_failed_is_asked_again_after_a_reconnect(void **state)
{
	struct world w;

	missed_world(&w);
	w.ctrl[0].refuses = w.ctrl[1].refuses = true;
	for (int run = 0; run < 5; run++) {
		world_run(&w);
		world_next_run(&w, S(30));
	}
	assert_finding(&w, 0, STATE_UNKNOWN, ACTION_NONE);
	w.ctrl[0].refuses = w.ctrl[1].refuses = false;
	w.ctrl[0].cntlid = 11;
	w.ctrl[1].cntlid = 12;
	world_run(&w);
	assert_finding(&w, 0, STATE_PRESENT, ACTION_NONE);
	world_clear(&w);
}

static void unmapped_needs_every_controller(void **state)
{
	struct world w;

	world_init(&w, 2);
	world_map(&w, 1, UUID_A);
	world_expect(&w, 7, 0);
	w.ctrl[1].state = CTRL_CONNECTING;
	world_run(&w);
	assert_finding(&w, 0, STATE_UNKNOWN, ACTION_NONE);
	world_clear(&w);
}

static void the_nsid_of_another_namespace_is_not_it(void **state)
{
	struct world w;

	world_init(&w, 2);
	world_expect(&w, 5, UUID_B);
	world_map_silently(&w, 5, UUID_A);
	world_run(&w);
	assert_finding(&w, 0, STATE_UNMAPPED, ACTION_NONE);
	assert_non_null(strstr(world_finding(&w, 0)->evidence, "aaaaaaaa"));
	assert_int_equal(world_rescans(&w), 0);
	world_clear(&w);
}

static void a_namespace_without_identifiers_goes_by_nsid(void **state)
{
	struct world w;

	world_init(&w, 1);
	world_expect(&w, 5, UUID_B);
	world_map_silently(&w, 5, 0);
	world_run(&w);
	assert_finding(&w, 0, STATE_PRESENT, ACTION_NONE);
	world_clear(&w);
}

static void ignored_ones_are_not_expected(void **state)
{
	struct world w;

	world_init(&w, 2);
	world_map(&w, 1, UUID_A);
	world_expect_all(&w);
	world_ignore(&w, 9, 0);
	world_ignore(&w, 0, UUID_B); /* known only when a controller is asked who it is */
	world_map_silently(&w, 9, 0x99);
	world_map_silently(&w, 4, UUID_B);
	world_run(&w);
	assert_int_equal(w.plan->n_finding, 1);
	assert_int_equal(world_rescans(&w), 0);
	world_clear(&w);
}

/* ---- what sysfs alone tells ---- */

static void disconnected(void **state)
{
	struct world w;

	missed_world(&w);
	w.connected = false;
	for (int run = 0; run < 5; run++) {
		world_run(&w);
		assert_finding(&w, 0, STATE_DISCONNECTED, ACTION_NONE);
		world_next_run(&w, S(30));
	}
	assert_int_equal(world_requests(&w), 0);
	assert_int_equal(w.n_news, 1);
	w.connected = true;
	world_run(&w); /* and once connected: a grace time, then healed */
	assert_finding(&w, 0, STATE_PRESENT, ACTION_NONE);
	world_clear(&w);
}

static void another_host_identity_is_not_this_one(void **state)
{
	struct world w;

	missed_world(&w);
	w.expect.subsys[0].hostnqn = xstrdup("nqn.2014-08.org.example:other-host");
	world_run(&w);
	assert_finding(&w, 0, STATE_DISCONNECTED, ACTION_NONE);
	assert_int_equal(world_requests(&w), 0);
	world_clear(&w);
}

static void unready(void **state)
{
	struct world w;

	missed_world(&w);
	w.ctrl[0].state = CTRL_CONNECTING;
	w.ctrl[1].state = CTRL_RESETTING;
	world_run(&w);
	assert_finding(&w, 0, STATE_UNREADY, ACTION_NONE);
	assert_non_null(strstr(world_finding(&w, 0)->evidence, "nvme0 connecting"));
	assert_int_equal(world_requests(&w), 0);
	world_clear(&w);
}

static void a_controller_without_queues(void **state)
{
	struct world w;

	world_init(&w, 1);
	world_expect(&w, 1, 0);
	world_map_silently(&w, 1, UUID_A);
	w.ctrl[0].queue_count = 1;
	world_run(&w);
	assert_finding(&w, 0, STATE_NO_QUEUES, ACTION_NONE);
	assert_int_equal(world_requests(&w), 0);
	world_clear(&w);
}

static void skipped_controllers(void **state)
{
	struct world w;

	missed_world(&w);
	w.ctrl[2] = w.ctrl[0];
	w.ctrl[2].type = CTRL_TYPE_DISCOVERY;
	w.ctrl[3] = w.ctrl[0];
	w.ctrl[3].type = CTRL_TYPE_ADMIN;
	world_run(&w);
	assert_finding(&w, 0, STATE_PRESENT, ACTION_NONE);
	assert_int_equal(w.ctrl[2].n_list + w.ctrl[2].n_rescan + w.ctrl[3].n_list + w.ctrl[3].n_rescan, 0);
	world_clear(&w);
}

static void inaccessible_is_left_alone(void **state)
{
	struct world w;

	world_init(&w, 2);
	world_map(&w, 1, UUID_A);
	world_expect(&w, 0, UUID_A);
	world_ns(&w, 1)->ana = ANA_INACCESSIBLE;
	world_head(&w, 1)->no_head = true;
	world_head(&w, 1)->ana = ANA_INACCESSIBLE;
	for (int run = 0; run < 10; run++) {
		world_run(&w);
		assert_finding(&w, 0, STATE_INACCESSIBLE, ACTION_NONE);
		world_next_run(&w, S(30));
	}
	assert_int_equal(world_rescans(&w), 0);
	assert_int_equal(w.n_news, 2); /* waiting, then confirmed: once each */
	world_clear(&w);
}

/* ---- rule 6 ---- */

static void a_reused_nsid_takes_two_rounds(void **state)
{
	for (int how = 0; how < 3; how++) { /* expected with its NSID, by its identity alone; a kernel that creates at once */
		struct world w;

		world_init(&w, 2);
		w.eager = how == 2;
		world_map(&w, 1, UUID_A);
		world_map(&w, 5, 0x55);
		world_expect(&w, how == 1 ? 0 : 5, UUID_B);
		world_map_silently(&w, 5, UUID_B);
		world_run(&w);
		assert_finding(&w, 0, STATE_PRESENT, ACTION_NONE);
		assert_int_equal(world_finding(&w, 0)->n_paths, 2);
		assert_int_equal(w.n_removed, 1);
		assert_int_equal(w.ctrl[0].n_rescan, 2);
		assert_int_equal(w.ctrl[1].n_rescan, how == 2 ? 1 : 2);
		world_clear(&w);
	}
}

static void the_second_round_is_no_attempt(void **state)
{
	struct world w;

	world_init(&w, 2);
	world_map(&w, 5, 0x55);
	world_expect(&w, 5, UUID_B);
	world_policy(&w)->max_attempts = 1;
	world_map_silently(&w, 5, UUID_B);
	world_run(&w);
	assert_finding(&w, 0, STATE_PRESENT, ACTION_NONE);
	world_clear(&w);
}

static void the_old_identity_is_a_conflict_and_left_alone(void **state)
{
	struct world w;

	world_init(&w, 2);
	world_map(&w, 5, UUID_A);
	world_expect(&w, 5, UUID_B); /* what is mapped and what is there agree, the expectation is from yesterday */
	for (int run = 0; run < 5; run++) {
		world_run(&w);
		assert_finding(&w, 0, STATE_CONFLICT, ACTION_NONE);
		world_next_run(&w, S(30));
	}
	assert_int_equal(world_rescans(&w), 0);
	assert_int_equal(w.n_removed, 0);
	world_clear(&w);
}

static void one_that_still_holds_the_old_device_must_list_the_new(void **state)
{
	struct world w;

	world_init(&w, 2);
	world_map(&w, 5, 0x55);
	world_expect(&w, 5, UUID_B);
	world_map_silently(&w, 5, UUID_B);
	world_ns(&w, 5)->mapped[1] = false;
	world_run(&w);
	assert_finding(&w, 0, STATE_CONFLICT, ACTION_NONE);
	assert_non_null(strstr(world_finding(&w, 0)->evidence, "nvme1"));
	assert_int_equal(world_rescans(&w), 0);
	world_clear(&w);
}

static void an_old_device_in_use_blocks(void **state)
{
	struct world w;

	world_init(&w, 2);
	world_map(&w, 5, 0x55);
	world_head(&w, 5)->used = true;
	world_expect(&w, 5, UUID_B);
	world_map_silently(&w, 5, UUID_B);
	world_run(&w);
	assert_finding(&w, 0, STATE_CONFLICT, ACTION_BLOCKED);
	assert_non_null(strstr(world_finding(&w, 0)->evidence, "mounted on /data"));
	assert_int_equal(world_rescans(&w), 0);
	world_clear(&w);
}

/* ---- ANA ---- */

static void stale_ana_is_healed(void **state)
{
	struct world w;

	world_init(&w, 2);
	world_map_silently(&w, 1, UUID_A);
	world_ana_silently(&w, 1, ANA_INACCESSIBLE);
	world_kernel_scan(&w, 0);
	world_kernel_scan(&w, 1);
	world_expect(&w, 0, UUID_A);
	world_run(&w);
	assert_finding(&w, 0, STATE_INACCESSIBLE, ACTION_NONE);
	assert_non_null(strstr(world_finding(&w, 0)->evidence, "say so too"));
	assert_int_equal(world_rescans(&w), 0);
	world_ana_silently(&w, 1, ANA_OPTIMIZED);
	world_next_run(&w, S(30));
	world_run(&w);
	assert_finding(&w, 0, STATE_PRESENT, ACTION_NONE);
	world_clear(&w);
}

static void headless_gets_one_rescan(void **state)
{
	struct world w;

	world_init(&w, 2);
	world_map_silently(&w, 1, UUID_A);
	world_ns(&w, 1)->broken_head = true;
	world_kernel_scan(&w, 0);
	world_kernel_scan(&w, 1);
	world_expect(&w, 0, UUID_A);
	for (int run = 0; run < 10; run++) {
		world_run(&w);
		world_next_run(&w, S(30));
	}
	world_run(&w);
	assert_finding(&w, 0, STATE_HEADLESS, ACTION_GAVE_UP);
	assert_int_equal(world_rescans(&w), 1);
	world_clear(&w);
}

/* ---- paths ---- */

static void a_lost_path_is_a_fault_only_if_said_so(void **state)
{
	for (int all = 0; all < 2; all++) {
		struct world w;

		world_init(&w, 3);
		world_map(&w, 1, UUID_A);
		world_expect(&w, 0, UUID_A);
		world_lose_path(&w, 1, 1);
		world_policy(&w)->paths = all ? PATHS_ALL : PATHS_ANY;
		world_run(&w);
		assert_finding(&w, 0, all ? STATE_PRESENT : STATE_DEGRADED, ACTION_NONE);
		assert_int_equal(w.plan->subsys[0].n_degraded, all ? 0 : 1);
		assert_int_equal(w.plan->subsys[0].n_good, 1);
		assert_int_equal(w.ctrl[0].n_rescan, 0); /* only where the path is lacking */
		assert_int_equal(w.ctrl[1].n_rescan, all);
		assert_int_equal(w.ctrl[2].n_rescan, 0);
		assert_int_equal(world_requests(&w) > 0, all);
		world_clear(&w);
	}
}

static void not_mapped_through_one_controller_is_told(void **state)
{
	struct world w;

	world_init(&w, 2);
	world_map(&w, 1, UUID_A);
	world_expect(&w, 0, UUID_A);
	world_lose_path(&w, 1, 1);
	world_ns(&w, 1)->mapped[1] = false;
	world_policy(&w)->paths = PATHS_ALL;
	world_run(&w);
	assert_finding(&w, 0, STATE_DEGRADED, ACTION_NONE);
	assert_int_equal(world_rescans(&w), 0);
	world_clear(&w);
}

/* ---- rule 4 ---- */

static void a_rescan_that_would_remove_what_is_used_is_blocked(void **state)
{
	struct world w;
	size_t news;

	missed_world(&w);
	world_unmap_silently(&w, 1);
	world_head(&w, 1)->used = true;
	for (int run = 0; run < 5; run++) {
		world_run(&w);
		assert_finding(&w, 0, STATE_HIDDEN, ACTION_BLOCKED);
		assert_non_null(strstr(world_finding(&w, 0)->evidence, "/dev/nvme0n1"));
		assert_non_null(strstr(world_finding(&w, 0)->evidence, "mounted on /data"));
		assert_true(w.now - w.run_start < S(20)); /* nothing to wait for */
		news = w.n_news;
		world_next_run(&w, S(30));
	}
	assert_int_equal(news, 2); /* missing, blocked: once each */
	assert_int_equal(world_rescans(&w), 0);
	assert_int_equal(w.n_removed, 0);
	world_head(&w, 1)->used = false; /* umount */
	world_run(&w);
	assert_finding(&w, 0, STATE_PRESENT, ACTION_NONE);
	assert_int_equal(w.n_removed, 1);
	world_clear(&w);
}

static void removals_never_and_idle_and_always(void **state)
{
	static const struct {
		enum policy_removals removals;
		bool used, healed;
	} row[] = {
		{ REMOVALS_NEVER, false, false }, { REMOVALS_NEVER, true, false }, { REMOVALS_IDLE, false, true },
		{ REMOVALS_IDLE, true, false },	  { REMOVALS_ALWAYS, true, true },
	};

	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		struct world w;

		missed_world(&w);
		world_policy(&w)->removals = row[i].removals;
		world_unmap_silently(&w, 1);
		world_head(&w, 1)->used = row[i].used;
		world_run(&w);
		if (row[i].healed)
			assert_finding(&w, 0, STATE_PRESENT, ACTION_NONE);
		else
			assert_finding(&w, 0, STATE_HIDDEN, ACTION_BLOCKED);
		assert_int_equal(w.n_removed, row[i].healed);
		if (row[i].removals != REMOVALS_IDLE)
			assert_int_equal(w.ctrl[0].n_use + w.ctrl[1].n_use, 0);
		world_clear(&w);
	}
}

static void removals_dead(void **state)
{
	for (int how = 0; how < 3; how++) { /* dead; still readable; a controller still has it */
		struct world w;

		missed_world(&w);
		world_policy(&w)->removals = REMOVALS_DEAD;
		world_head(&w, 1)->used = true;
		world_head(&w, 1)->readable = how == 1;
		world_unmap_silently(&w, 1);
		world_pass(&w, S(9));
		assert_int_equal(w.n_removed, 0); /* it must be seen twice, the grace time apart */
		world_pass(&w, S(60));
		assert_int_equal(w.n_removed, how == 0);
		if (how == 0)
			assert_finding(&w, 0, STATE_PRESENT, ACTION_NONE);
		else
			assert_finding(&w, 0, STATE_HIDDEN, ACTION_BLOCKED);
		world_clear(&w);
		if (how == 1)
			how++; /* what a controller still has is listed, and then it is no removal at all */
	}
}

static void changed_identifiers_are_a_removal_too(void **state)
{
	struct world w;

	missed_world(&w);
	world_map_silently(&w, 1, 0x11);
	world_head(&w, 1)->used = true;
	world_run(&w);
	assert_finding(&w, 0, STATE_HIDDEN, ACTION_BLOCKED);
	assert_int_equal(world_rescans(&w), 0);
	assert_int_equal(w.n_removed, 0);
	world_clear(&w);
}

static void an_empty_list_removes_nothing(void **state)
{
	struct world w;

	world_init(&w, 2);
	world_expect_range(&w, 1, 4);
	for (uint32_t nsid = 1; nsid <= 3; nsid++)
		world_map(&w, nsid, (uint8_t)nsid);
	world_map_silently(&w, 4, 4);
	for (size_t i = 0; i < w.n_ns; i++) /* a fault of the target: this controller lists only the new one */
		w.ns[i].mapped[0] = w.ns[i].nsid == 4;
	world_run(&w);
	/* the other one, whose list is right, brings it; a path is not a device, but this one is not even asked */
	assert_int_equal(w.n_removed, 0);
	assert_int_equal(w.plan->subsys[0].n_good, 4);
	world_clear(&w);
}

/* ---- rule 5 ---- */

static void without_effect_the_others_wait(void **state)
{
	struct world w;

	missed_world(&w);
	w.ctrl[0].deaf_to_scan = w.ctrl[1].deaf_to_scan = true;
	world_pass(&w, S(5) + S(9));
	assert_int_equal(world_rescans(&w), 1);
	world_clear(&w);
}

static void the_next_attempt_takes_another_canary(void **state)
{
	struct world w;

	missed_world(&w);
	w.ctrl[0].deaf_to_scan = true; /* the first canary does nothing; the second works */
	world_run(&w);
	assert_finding(&w, 0, STATE_DEGRADED, ACTION_NONE); /* through the one that works */
	assert_int_equal(w.ctrl[0].n_rescan, 2);
	assert_int_equal(w.ctrl[1].n_rescan, 1);
	world_clear(&w);
}

static void the_round_goes_on_although_it_is_present(void **state)
{
	struct world w;

	missed_world(&w);
	world_pass(&w, S(5));
	while (!world_finding(&w, 0)->disk) { /* killed right after the canary's effect */
		world_act(&w);
		world_plan(&w);
	}
	assert_int_equal(world_rescans(&w), 1);
	world_next_run(&w, S(1));
	world_run(&w);
	assert_int_equal(world_finding(&w, 0)->n_paths, 2);
	assert_int_equal(world_rescans(&w), 2);
	assert_int_equal(w.rec.r.n_ns, 0);
	world_clear(&w);
}

/* ---- rule 7 ---- */

static void no_second_request_while_it_settles(void **state)
{
	struct world w;

	missed_world(&w);
	w.scan_time = S(9);
	world_run(&w);
	assert_finding(&w, 0, STATE_PRESENT, ACTION_NONE);
	assert_int_equal(w.ctrl[0].n_rescan, 1);
	assert_int_equal(w.ctrl[1].n_rescan, 1);
	world_clear(&w);
}

static void a_run_may_end_while_settling_and_the_next_goes_on(void **state)
{
	struct world w;

	missed_world(&w);
	world_policy(&w)->settle = S(200);
	w.scan_time = S(150);
	world_run(&w);
	assert_finding(&w, 0, STATE_HIDDEN, ACTION_SETTLING);
	assert_int_equal(world_rescans(&w), 1);
	world_next_run(&w, S(10));
	world_plan(&w);
	assert_finding(&w, 0, STATE_HIDDEN, ACTION_SETTLING);
	assert_int_equal(w.plan->n_act, 0);
	world_run(&w); /* the scan's end is in there */
	assert_int_equal(w.plan->subsys[0].n_good, 1);
	assert_int_equal(w.ctrl[0].n_rescan, 1);
	world_clear(&w);
}

/* ---- rule 8 ---- */

static void gives_up_after_three_attempts_and_says_so_once(void **state)
{
	struct world w;
	unsigned news;

	missed_world(&w);
	w.ctrl[0].deaf_to_scan = w.ctrl[1].deaf_to_scan = true;
	for (int run = 0; run < 10; run++) {
		world_run(&w);
		world_next_run(&w, S(30));
	}
	world_run(&w);
	assert_finding(&w, 0, STATE_HIDDEN, ACTION_GAVE_UP);
	assert_int_equal(world_rescans(&w), 3);
	news = (unsigned)w.n_news;
	for (int run = 0; run < 60; run++) { /* half an hour: silence */
		world_run(&w);
		assert_finding(&w, 0, STATE_HIDDEN, ACTION_GAVE_UP);
		world_next_run(&w, S(30));
	}
	assert_int_equal(world_rescans(&w), 3);
	assert_int_equal(w.n_news, news);
	world_next_run(&w, S(3600)); /* retry-after is over */
	world_run(&w);
	assert_int_equal(world_rescans(&w), 4);
	world_clear(&w);
}

static void attempts_are_spaced_by_a_doubling_backoff(void **state)
{
	struct world w;
	int64_t at[3] = { 0 };
	unsigned seen = 0;

	missed_world(&w);
	w.ctrl[0].deaf_to_scan = w.ctrl[1].deaf_to_scan = true;
	for (int i = 0; i < 600 && seen < 3; i++) {
		world_plan(&w);
		world_act(&w);
		while (seen < world_rescans(&w))
			at[seen++] = max_time(w.ctrl[0].last_rescan, w.ctrl[1].last_rescan);
		w.run_start = w.now - S(1);
	}
	assert_int_equal(seen, 3);
	assert_true(at[1] - at[0] >= S(10) + S(30));
	assert_true(at[2] - at[1] >= S(10) + S(60));
	world_clear(&w);
}

static void a_reconnect_starts_the_attempts_afresh(void **state)
{
	struct world w;

	missed_world(&w);
	w.ctrl[0].deaf_to_scan = w.ctrl[1].deaf_to_scan = true;
	for (int run = 0; run < 10; run++) {
		world_run(&w);
		world_next_run(&w, S(30));
	}
	assert_finding(&w, 0, STATE_HIDDEN, ACTION_GAVE_UP);
	w.ctrl[0].cntlid = 33;
	w.ctrl[0].deaf_to_scan = w.ctrl[1].deaf_to_scan = false;
	world_run(&w);
	assert_finding(&w, 0, STATE_PRESENT, ACTION_NONE);
	world_clear(&w);
}

static void a_refused_rescan_is_not_waited_for(void **state)
{
	struct world w;

	missed_world(&w);
	world_pass(&w, S(5));
	while (!world_rescans(&w)) {
		world_act(&w);
		world_plan(&w);
		for (size_t i = 0; i < w.plan->n_act; i++)
			if (w.plan->act[i].kind == ACT_RESCAN)
				w.ctrl[w.plan->act[i].instance].refuses = true;
	}
	world_pass(&w, S(1));
	assert_finding(&w, 0, STATE_HIDDEN, ACTION_BACKOFF);
	world_clear(&w);
}

/* What the rescan was for is unmapped; something else is missed meanwhile: the first rescan still has its time. */
static void an_unmapped_one_does_not_end_the_wait(void **state)
{
	struct world w;

	missed_world(&w);
	world_expect(&w, 4, 0);
	world_policy(&w)->grace = 0;
	w.ctrl[0].deaf_to_scan = w.ctrl[1].deaf_to_scan = true;
	world_pass(&w, S(2));
	assert_int_equal(world_rescans(&w), 1);
	world_unmap_silently(&w, 2);
	world_map_silently(&w, 4, 0x44);
	world_next_run(&w, S(1));
	world_pass(&w, S(5));
	assert_int_equal(world_rescans(&w), 1);
	world_pass(&w, S(10));
	assert_true(world_rescans(&w) > 1);
	world_clear(&w);
}

/* Found by `all` first, by its UUID a moment later: the round goes on for both. */
static void one_namespace_under_two_names_is_one_rescan(void **state)
{
	struct world w;

	world_init(&w, 1);
	for (uint32_t nsid = 1; nsid <= 3; nsid++)
		world_map(&w, nsid, (uint8_t)nsid);
	world_expect(&w, 0, UUID_B);
	world_expect_all(&w);
	world_policy(&w)->grace = 0;
	w.ctrl[0].deaf_to_scan = true;
	world_map_silently(&w, 9, UUID_B);
	world_pass(&w, S(9));
	assert_int_equal(world_rescans(&w), 1);
	world_clear(&w);
}

static void an_entry_removed_meanwhile_is_not_rescanned_again(void **state)
{
	struct world w;

	missed_world(&w);
	w.ctrl[0].deaf_to_scan = w.ctrl[1].deaf_to_scan = true;
	world_pass(&w, S(7));
	assert_int_equal(world_rescans(&w), 1);
	w.expect.subsys[0].n_ns = 0;
	world_run(&w);
	assert_int_equal(world_rescans(&w), 1);
	assert_int_equal(w.rec.r.n_ns, 0);
	w.expect.subsys[0].n_ns = 1;
	world_clear(&w);
}

/* `wait` for one namespace of a configured subsystem: what is remembered of the others is not its business. */
static void a_wait_for_one_forgets_nothing_of_the_others(void **state)
{
	struct expect_ns *both;
	struct world w;
	unsigned news;

	world_init(&w, 2);
	world_map(&w, 3, UUID_A);
	world_expect(&w, 0, UUID_B);
	world_expect(&w, 0, UUID_A);
	world_map_silently(&w, 2, UUID_B);
	w.ctrl[0].deaf_to_scan = w.ctrl[1].deaf_to_scan = true;
	for (int run = 0; run < 10; run++) {
		world_run(&w);
		world_next_run(&w, S(30));
	}
	world_run(&w);
	assert_finding(&w, 0, STATE_HIDDEN, ACTION_GAVE_UP);
	assert_int_equal(world_rescans(&w), 3);
	news = (unsigned)w.n_news;

	both = w.expect.subsys[0].ns;
	w.expect.subsys[0].ns = &both[1];
	w.expect.subsys[0].n_ns = 1;
	w.in.partial = true;
	world_next_run(&w, S(1));
	world_run(&w);
	assert_finding(&w, 0, STATE_PRESENT, ACTION_NONE);
	assert_int_equal(w.rec.r.n_ns, 1);
	assert_int_equal(w.n_news, news);

	w.expect.subsys[0].ns = both;
	w.expect.subsys[0].n_ns = 2;
	w.in.partial = false;
	world_next_run(&w, S(1));
	world_run(&w);
	assert_finding(&w, 0, STATE_HIDDEN, ACTION_GAVE_UP);
	assert_int_equal(world_rescans(&w), 3);
	assert_int_equal(w.n_news, news);
	world_clear(&w);
}

/* ---- policy ---- */

static void report_does_no_more(void **state)
{
	struct world w;

	missed_world(&w);
	world_policy(&w)->action = POLICY_REPORT;
	world_run(&w);
	assert_finding(&w, 0, STATE_HIDDEN, ACTION_REPORT);
	assert_int_equal(world_rescans(&w), 0);
	world_clear(&w);
}

static void some_kernels_hang(void **state)
{
	static const struct {
		const char *release;
		bool guarded;
	} row[] = {
		{ "5.14.0-570.12.1.el9_6.x86_64", true }, { "5.14.0-585.el9.x86_64", true },
		{ "5.14.0-586.el9.x86_64", false },	  { "5.14.0-611.5.1.el9_7.x86_64", false },
		{ "5.14.0-570.fc36.x86_64", false },	  { "5.14.0", false },
		{ "6.1.0-28-amd64", false },		  { "5.14.1-570.el9", false },
		{ "5.14.0-.el9", false },
	};

	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		struct world w;

		missed_world(&w);
		w.in.kernel = row[i].release;
		world_run(&w);
		assert_int_equal(world_rescans(&w), row[i].guarded ? 0 : 2);
		assert_int_equal(w.plan->subsys[0].guarded, row[i].guarded);
		world_clear(&w);
	}
	for (int how = 0; how < 2; how++) { /* somebody who knows better may say so */
		struct world w;

		missed_world(&w);
		w.in.kernel = "5.14.0-570.12.1.el9_6.x86_64";
		if (how)
			world_policy(&w)->action_given = true;
		else
			world_policy(&w)->kernel_guard = false;
		world_run(&w);
		assert_int_equal(world_rescans(&w), 2);
		world_clear(&w);
	}
}

static void dry_run_says_the_whole_round_and_does_nothing(void **state)
{
	struct world w;
	size_t n = 0;

	missed_world(&w);
	w.in.skip_grace = w.in.dry_run = true;
	for (int i = 0; i < 20; i++) {
		world_plan(&w);
		n = 0;
		for (size_t k = 0; k < w.plan->n_act; k++)
			n += w.plan->act[k].kind == ACT_RESCAN;
		if (n)
			break;
		world_act(&w);
	}
	/* the second controller's check may still be under way when the first is through */
	for (int i = 0; i < 3 && n < 2; i++) {
		for (size_t k = 0; k < w.plan->n_act; k++)
			if (w.plan->act[k].kind == ACT_RESCAN) {
				free(w.plan->act[k].why);
				w.plan->act[k] = w.plan->act[--w.plan->n_act];
			}
		world_act(&w);
		world_plan(&w);
		n = 0;
		for (size_t k = 0; k < w.plan->n_act; k++)
			n += w.plan->act[k].kind == ACT_RESCAN;
	}
	assert_int_equal(n, 2);
	assert_int_equal(world_rescans(&w), 0);
	for (size_t i = 0; i < w.rec.r.n_ns; i++)
		assert_int_equal(w.rec.r.ns[i].attempts, 0);
	world_clear(&w);
}

static void status_asks_nobody_and_remembers(void **state)
{
	struct world w;
	unsigned asked;

	world_init(&w, 2);
	world_expect(&w, 7, 0);
	world_run(&w);
	asked = world_requests(&w);
	world_next_run(&w, S(5));
	w.in.mode = PLAN_STATUS;
	plan_free(w.plan);
	w.in.now = w.now;
	w.in.run_start = w.run_start;
	w.plan = plan_make(&w.in);
	assert_finding(&w, 0, STATE_UNMAPPED, ACTION_NONE);
	assert_true(world_finding(&w, 0)->answered_at > 0);
	assert_int_equal(w.plan->n_act, 0);
	assert_int_equal(world_requests(&w), asked);
	world_clear(&w);
}

static void not_the_actor_does_nothing(void **state)
{
	struct world w;

	missed_world(&w);
	world_plan(&w);
	w.now += S(60);
	w.in.now = w.now;
	w.rec.may_act = false;
	plan_free(w.plan);
	w.plan = plan_make(&w.in);
	assert_int_equal(w.plan->n_act, 0);
	world_clear(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_notification_channel_is_repaired_with_every_rescan),
		cmocka_unit_test(a_channel_that_may_not_be_repaired_is_advised_on_once_a_day),
		cmocka_unit_test(all_present_asks_nothing),
		cmocka_unit_test(all_asks_one_list_a_run),
		cmocka_unit_test(missed_notice_is_healed),
		cmocka_unit_test(by_nsid_and_by_range_and_by_all),
		cmocka_unit_test(many_missed_take_one_rescan_a_controller),
		cmocka_unit_test(nothing_within_the_grace_time),
		cmocka_unit_test(grace_counts_across_runs),
		cmocka_unit_test(appears_by_itself_within_the_grace_time),
		cmocka_unit_test(grace_starts_again_when_a_controller_goes_live),
		cmocka_unit_test(a_flapping_controller_postpones_for_one_settle_at_most),
		cmocka_unit_test(a_connected_event_starts_the_grace_again),
		cmocka_unit_test(each_namespace_has_a_grace_of_its_own),
		cmocka_unit_test(now_skips_the_grace_time),
		cmocka_unit_test(not_mapped_is_told_and_paced),
		cmocka_unit_test(an_unmapped_one_that_is_mapped_later_is_healed),
		cmocka_unit_test(a_walk_in_vain_is_not_repeated_each_run),
		cmocka_unit_test(unknown_while_a_controller_gives_no_answer),
		cmocka_unit_test(one_that_hangs_does_not_hold_up_the_others),
		cmocka_unit_test(a_hanging_controller_is_asked_ever_less),
		cmocka_unit_test(one_that_failed_is_asked_again_after_a_reconnect),
		cmocka_unit_test(unmapped_needs_every_controller),
		cmocka_unit_test(the_nsid_of_another_namespace_is_not_it),
		cmocka_unit_test(a_namespace_without_identifiers_goes_by_nsid),
		cmocka_unit_test(ignored_ones_are_not_expected),
		cmocka_unit_test(disconnected),
		cmocka_unit_test(another_host_identity_is_not_this_one),
		cmocka_unit_test(unready),
		cmocka_unit_test(a_controller_without_queues),
		cmocka_unit_test(skipped_controllers),
		cmocka_unit_test(inaccessible_is_left_alone),
		cmocka_unit_test(a_reused_nsid_takes_two_rounds),
		cmocka_unit_test(the_second_round_is_no_attempt),
		cmocka_unit_test(the_old_identity_is_a_conflict_and_left_alone),
		cmocka_unit_test(one_that_still_holds_the_old_device_must_list_the_new),
		cmocka_unit_test(an_old_device_in_use_blocks),
		cmocka_unit_test(stale_ana_is_healed),
		cmocka_unit_test(headless_gets_one_rescan),
		cmocka_unit_test(a_lost_path_is_a_fault_only_if_said_so),
		cmocka_unit_test(not_mapped_through_one_controller_is_told),
		cmocka_unit_test(a_rescan_that_would_remove_what_is_used_is_blocked),
		cmocka_unit_test(removals_never_and_idle_and_always),
		cmocka_unit_test(removals_dead),
		cmocka_unit_test(changed_identifiers_are_a_removal_too),
		cmocka_unit_test(an_empty_list_removes_nothing),
		cmocka_unit_test(without_effect_the_others_wait),
		cmocka_unit_test(the_next_attempt_takes_another_canary),
		cmocka_unit_test(the_round_goes_on_although_it_is_present),
		cmocka_unit_test(no_second_request_while_it_settles),
		cmocka_unit_test(a_run_may_end_while_settling_and_the_next_goes_on),
		cmocka_unit_test(gives_up_after_three_attempts_and_says_so_once),
		cmocka_unit_test(attempts_are_spaced_by_a_doubling_backoff),
		cmocka_unit_test(a_reconnect_starts_the_attempts_afresh),
		cmocka_unit_test(a_refused_rescan_is_not_waited_for),
		cmocka_unit_test(an_unmapped_one_does_not_end_the_wait),
		cmocka_unit_test(one_namespace_under_two_names_is_one_rescan),
		cmocka_unit_test(an_entry_removed_meanwhile_is_not_rescanned_again),
		cmocka_unit_test(a_wait_for_one_forgets_nothing_of_the_others),
		cmocka_unit_test(report_does_no_more),
		cmocka_unit_test(some_kernels_hang),
		cmocka_unit_test(dry_run_says_the_whole_round_and_does_nothing),
		cmocka_unit_test(status_asks_nobody_and_remembers),
		cmocka_unit_test(not_the_actor_does_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
