/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What controllers answered: entries in order, whatever order they come in. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "probe.h"

#define NQN "nqn.2014-08.org.example:a"
#define OTHER "nqn.2014-08.org.example:b"

static struct probe *a_probe(struct probes *p)
{
	return probes_get(p, 0, NQN);
}

static void assert_ordered(const struct probe *p)
{
	size_t listed = 0;

	for (size_t i = 0; i < p->n_ns; i++) {
		assert_true(i == 0 || p->ns[i - 1].nsid < p->ns[i].nsid);
		assert_ptr_equal(probe_ns_find(p, p->ns[i].nsid), &p->ns[i]);
		listed += p->ns[i].listed;
	}
	assert_int_equal(listed, p->n_listed);
}

/* "+1 -2": 1 is listed, 2 is known and is not. */
static void assert_ns(const struct probe *p, const char *wanted)
{
	char *text = xstrdup("");

	assert_ordered(p);
	for (size_t i = 0; i < p->n_ns; i++) {
		cleanup_free char *before = text;

		text = xasprintf("%s%s%c%u", before, i ? " " : "", p->ns[i].listed ? '+' : '-', p->ns[i].nsid);
	}
	assert_string_equal(text, wanted);
	free(text);
}

static void a_number_alone_is_no_identity(void **state)
{
	struct probes p = { 0 };

	assert_null(probes_find(&p, 0, NQN));
	assert_int_equal(probes_get(&p, 0, NQN)->status, PROBE_IDLE);
	assert_null(probes_find(&p, 0, OTHER));
	assert_null(probes_find(&p, 1, NQN));
	probes_get(&p, 0, OTHER)->latency = 7;
	assert_int_equal(p.n, 2);
	assert_int_equal(probes_find(&p, 0, NQN)->latency, 0);
	assert_int_equal(probes_get(&p, 0, OTHER)->latency, 7);
	assert_int_equal(p.n, 2);
	probes_free(&p);
	assert_int_equal(p.n, 0);
}

static void namespaces_in_any_order(void **state)
{
	static const uint32_t nsids[] = { 5, 9, 1, 7, 4294967294, 2, 5, 1, 3, 8 };
	struct probes p = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(nsids); i++)
		assert_int_equal(probe_ns_get(a_probe(&p), nsids[i])->nsid, nsids[i]);
	assert_ns(a_probe(&p), "-1 -2 -3 -5 -7 -8 -9 -4294967294");
	assert_null(probe_ns_find(a_probe(&p), 4));
	assert_null(probe_ns_find(a_probe(&p), 0));
	assert_null(probe_ns_find(a_probe(&p), UINT32_MAX));
	probes_free(&p);
}

static void a_list_says_what_is_listed_now(void **state)
{
	struct probes p = { 0 };
	struct probe *probe = a_probe(&p);

	probe_ns_get(probe, 4)->error = 6;
	probe_set_list(probe, (const uint32_t[]){ 1, 2, 4 }, 3, 10);
	assert_ns(probe, "+1 +2 +4");
	assert_int_equal(probe->list_at, 10);
	probe_set_list(probe, (const uint32_t[]){ 2, 3 }, 2, 20);
	assert_ns(probe, "-1 +2 +3 -4");
	assert_int_equal(probe_ns_find(probe, 4)->error, 6); /* what is known of it stays */
	assert_int_equal(probe->list_at, 20);
	probe_set_list(probe, NULL, 0, 30);
	assert_ns(probe, "-1 -2 -3 -4");
	assert_int_equal(probe->list_at, 30);
	probes_free(&p);
}

/* Controllers have faults. */
static void lists_as_they_should_not_be(void **state)
{
	struct probes p = { 0 };

	probe_set_list(a_probe(&p), (const uint32_t[]){ 9, 3, 9, 0, 1, 3, UINT32_MAX, UINT32_MAX - 1 }, 8, 1);
	assert_ns(a_probe(&p), "+1 +3 +9 +4294967294");
	probes_free(&p);
}

/* The list itself is left as it is: it belongs to the caller. */
static void the_callers_list_is_not_sorted(void **state)
{
	uint32_t list[] = { 3, 1, 2 };
	struct probes p = { 0 };

	probe_set_list(a_probe(&p), list, 3, 1);
	assert_int_equal(list[0], 3);
	assert_int_equal(list[2], 2);
	probes_free(&p);
}

/* An insertion moves all that follow: 65,536 the wrong way round, one by one, would be 80 GB. */
static void the_longest_list_the_wrong_way_round(void **state)
{
	static uint32_t list[65536];
	struct probes p = { 0 };
	int64_t began = now_boottime();

	for (size_t i = 0; i < ARRAY_SIZE(list); i++)
		list[i] = (uint32_t)(ARRAY_SIZE(list) - i);
	probe_set_list(a_probe(&p), list, ARRAY_SIZE(list), 1);
	assert_int_equal(a_probe(&p)->n_listed, ARRAY_SIZE(list));
	assert_ordered(a_probe(&p));
	assert_true(now_boottime() - began < 5 * NS_PER_SEC);
	probes_free(&p);
}

/* Twenty thousand steps against a plain table. */
static void any_sequence(void **state)
{
	bool known[64] = { 0 }, listed[64] = { 0 };
	struct probes p = { 0 };
	unsigned seed = 1;

	for (int round = 0; round < 20000; round++) {
		uint32_t list[8], n = (uint32_t)rand_r(&seed) % 9, nsid = (uint32_t)rand_r(&seed) % 63 + 1;

		if (rand_r(&seed) % 2) {
			probe_ns_get(a_probe(&p), nsid);
			known[nsid] = true;
		} else {
			memset(listed, 0, sizeof(listed));
			for (uint32_t i = 0; i < n; i++) {
				list[i] = (uint32_t)rand_r(&seed) % 64;
				listed[list[i]] = known[list[i]] = list[i] != 0;
			}
			probe_set_list(a_probe(&p), list, n, round + 1);
		}
		assert_ordered(a_probe(&p));
		for (nsid = 0; nsid < 64; nsid++) {
			const struct probe_ns *ns = probe_ns_find(a_probe(&p), nsid);

			assert_int_equal(ns != NULL, known[nsid]);
			assert_int_equal(ns && ns->listed, listed[nsid]);
		}
		if (round % 1000 == 999) {
			probes_free(&p);
			memset(known, 0, sizeof(known));
			memset(listed, 0, sizeof(listed));
		}
	}
	probes_free(&p);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_number_alone_is_no_identity),
		cmocka_unit_test(namespaces_in_any_order),
		cmocka_unit_test(a_list_says_what_is_listed_now),
		cmocka_unit_test(lists_as_they_should_not_be),
		cmocka_unit_test(the_callers_list_is_not_sorted),
		cmocka_unit_test(the_longest_list_the_wrong_way_round),
		cmocka_unit_test(any_sequence),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
