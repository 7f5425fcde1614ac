/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the children say, and what is believed of it. */
#include <errno.h>
#include <stdio.h>

#include "children.h"

/* ---- good answers ---- */

static void a_list(void **state)
{
	struct stage *s = *state;

	child_is(s, PROLOGUE "echo ready; take; [ \"$request\" = list ] || exit; echo ns 1 2 7; echo done 5000; take\n");
	assert_int_equal(ask_wake(s->ask), TIME_NEVER);
	assert_int_equal(request(s, 0, ASK_LIST, T0), 0);
	assert_int_equal(ask_wake(s->ask), T0 + ASK_DEADLINE);
	assert_int_equal(answer_of(s, 0, T0 + NS_PER_SEC), PROBE_IDLE);
	assert_int_equal(ask_wake(s->ask), TIME_NEVER);
	assert_null(probe(s, 0)->error);
	assert_int_equal(probe(s, 0)->n_listed, 3);
	assert_true(probe_ns_find(probe(s, 0), 7)->listed);
	assert_null(probe_ns_find(probe(s, 0), 3));
	assert_int_equal(probe_ns_find(probe(s, 0), 7)->ident_at, 0);
	assert_int_equal(probe(s, 0)->list_at, T0); /* when it began, not when it came */
	assert_int_equal(probe(s, 0)->walk_at, 0);
	assert_int_equal(probe(s, 0)->latency, 5000);
}

static void an_empty_list_is_an_answer(void **state)
{
	struct stage *s = *state;

	child_is(s, ANSWERS);
	answer_is(s, "ns 1 2\ndone 9\n");
	assert_int_equal(ask(s, 0, ASK_LIST, T0), PROBE_IDLE);
	answer_is(s, "done 4\n");
	assert_int_equal(ask(s, 0, ASK_LIST, T0 + 1), PROBE_IDLE);
	assert_int_equal(probe(s, 0)->n_listed, 0);
	assert_false(probe_ns_find(probe(s, 0), 1)->listed);
	assert_int_equal(probe(s, 0)->list_at, T0 + 1);
	assert_int_equal(probe(s, 0)->latency, 9); /* the longest of the run */
	assert_int_equal(n_lines(s, "log"), 1);    /* one child has answered both */
}

static void unsorted_and_twice(void **state)
{
	static const uint32_t sorted[] = { 1, 3, 9, 4294967294 };
	struct stage *s = *state;
	const struct probe *p;

	child_is(s, ANSWERS);
	answer_is(s, "ns 9 3 9\nns 3 4294967295 1 4294967294\ndone 0\n"); /* FFFFFFFFh is no namespace */
	assert_int_equal(ask(s, 0, ASK_LIST, T0), PROBE_IDLE);
	p = probe(s, 0);
	assert_int_equal(p->n_listed, 4);
	assert_int_equal(p->n_ns, 4);
	for (size_t i = 0; i < p->n_ns; i++)
		assert_int_equal(p->ns[i].nsid, sorted[i]);
}

/* n NSIDs from the given one on, 1,024 a line */
static void answer_is_long(const struct stage *s, size_t n, uint32_t first)
{
	cleanup_free char *text = xmalloc(n * sizeof(" 4294967295") + n / 1024 * 3 + 64);
	char *at = text;

	for (size_t i = 0; i < n; i++)
		at += snprintf(at, 16, "%s %u%s", i % 1024 ? "" : "ns", first + (uint32_t)i,
			       i % 1024 == 1023 || i + 1 == n ? "\n" : "");
	stpcpy(at, "done 1\n");
	answer_is(s, text);
}

static void long_lists_come_in_several_lines(void **state)
{
	struct stage *s = *state;

	child_is(s, ANSWERS);
	answer_is_long(s, 2500, 1);
	assert_int_equal(ask(s, 0, ASK_LIST, T0), PROBE_IDLE);
	assert_int_equal(probe(s, 0)->n_listed, 2500);
	answer_is_long(s, 65536, 4294900000); /* the most there can be, in the longest lines */
	assert_int_equal(ask(s, 0, ASK_LIST, T0 + 1), PROBE_IDLE);
	assert_int_equal(probe(s, 0)->n_listed, 65536);
	answer_is_long(s, 65 * 1024 + 1, 1);
	assert_int_equal(ask(s, 0, ASK_LIST, T0 + 2), PROBE_FAILED);
	assert_int_equal(probe(s, 0)->n_listed, 65536);
	assert_int_equal(probe(s, 0)->list_at, T0 + 1);
}

static void identities(void **state)
{
	static const uint32_t nsid[] = { 4, 4294967294, 5 };
	struct stage *s = *state;
	const struct probe_ns *ns;
	cleanup_free char *id = NULL;

	child_is(s, PROLOGUE "echo ready; take; [ \"$request\" = 'identify 4 4294967294 5' ] || exit\n"
			     "echo id 4 1b4e28ba2fa111d2883f0016d3cca427 d07f718b1d2344577bc1bb4d4d516c40 002538b9114a9e01 02\n"
			     "echo no 4294967294 11; echo id 5 - - - -; echo done 77; take\n");
	assert_int_equal(ask_request(s->ask, 0, NQN, NULL, ASK_IDENTIFY, nsid, 3, T0), 0);
	assert_int_equal(answer_of(s, 0, T0 + 5), PROBE_IDLE);
	ns = probe_ns_find(probe(s, 0), 4);
	assert_int_equal(ns->id.have, IDENT_UUID | IDENT_NGUID | IDENT_EUI64 | IDENT_CSI);
	id = ident_format_all(&ns->id);
	assert_non_null(strstr(id, "1b4e28ba-2fa1-11d2-883f-0016d3cca427"));
	assert_non_null(strstr(id, "d07f718b1d2344577bc1bb4d4d516c40"));
	assert_non_null(strstr(id, "002538b9114a9e01"));
	assert_int_equal(ns->id.csi, 2);
	assert_int_equal(ns->error, 0);
	assert_int_equal(ns->ident_at, T0 + 5);
	assert_false(ns->listed); /* nobody asked for the list */
	ns = probe_ns_find(probe(s, 0), 4294967294);
	assert_int_equal(ns->error, 11);
	assert_int_equal(ns->id.have, 0);
	assert_int_equal(ns->ident_at, T0 + 5);
	ns = probe_ns_find(probe(s, 0), 5);
	assert_int_equal(ns->error, 0);
	assert_int_equal(ns->id.have, 0);
	assert_int_equal(ns->ident_at, T0 + 5);
	assert_int_equal(probe(s, 0)->list_at, 0);
	assert_int_equal(probe(s, 0)->walk_at, 0);
}

static void a_later_answer_replaces_the_earlier(void **state)
{
	struct stage *s = *state;
	const struct probe_ns *ns;

	child_is(s, ANSWERS);
	answer_is(s, "id 7 - - 002538b9114a9e01 -\ndone 1\n");
	assert_int_equal(ask_about(s, 7, T0), PROBE_IDLE);
	assert_int_equal(probe_ns_find(probe(s, 0), 7)->id.have, IDENT_EUI64);
	answer_is(s, "no 7 -5\ndone 1\n");
	assert_int_equal(ask_about(s, 7, T0 + 1), PROBE_IDLE);
	ns = probe_ns_find(probe(s, 0), 7);
	assert_int_equal(ns->id.have, 0);
	assert_int_equal(ns->error, -5);
	answer_is(s, "id 7 - - - 00\ndone 1\n");
	assert_int_equal(ask_about(s, 7, T0 + 2), PROBE_IDLE);
	ns = probe_ns_find(probe(s, 0), 7);
	assert_int_equal(ns->id.have, IDENT_CSI);
	assert_int_equal(ns->error, 0);
	assert_int_equal(ns->ident_at, T0 + 2);
}

static void the_whole_walk(void **state)
{
	struct stage *s = *state;

	child_is(s, PROLOGUE "echo ready; take; [ \"$request\" = 'identify all' ] || exit\n"
			     "echo ns 1 2; echo no 1 2; echo id 2 - - - -; echo done 1; take\n");
	assert_int_equal(request(s, 0, ASK_IDENTIFY_ALL, T0), 0);
	assert_int_equal(answer_of(s, 0, T0 + 9), PROBE_IDLE);
	assert_int_equal(probe(s, 0)->n_listed, 2);
	assert_int_equal(probe(s, 0)->list_at, T0);
	assert_int_equal(probe(s, 0)->walk_at, T0);
	assert_int_equal(probe(s, 0)->walk_done, T0 + 9);
	assert_int_equal(probe_ns_find(probe(s, 0), 1)->error, 2);
}

/* A request goes into the pipe at once, or not at all: what does not fit is for the next one. */
static void a_request_is_never_longer_than_a_pipe(void **state)
{
	struct stage *s = *state;
	uint32_t nsid[8000];
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(nsid); i++)
		nsid[i] = 4000000000 + (uint32_t)i;
	child_is(s, PROLOGUE "echo ready; take; for n in ${request#identify}; do echo no $n 11; done; echo done 1; take\n");
	assert_int_equal(ask_request(s->ask, 0, NQN, NULL, ASK_IDENTIFY, nsid, ARRAY_SIZE(nsid), T0), 0);
	assert_int_equal(answer_of(s, 0, T0), PROBE_IDLE);
	for (size_t i = 0; i < probe(s, 0)->n_ns; i++)
		n += probe(s, 0)->ns[i].error == 11;
	assert_in_range(n, 5000, 6000);
	assert_non_null(probe_ns_find(probe(s, 0), nsid[n - 1]));
	assert_null(probe_ns_find(probe(s, 0), nsid[n]));
}

/* ---- answers that are none ---- */

#define TEXT(s) (s), sizeof(s) - 1

static const struct nonsense {
	enum ask_what what; /* ASK_IDENTIFY asks for 7 */
	const char *answer;
	size_t n;
} nonsense[] = {
	{ ASK_LIST, TEXT("\n") },
	{ ASK_LIST, TEXT("rubbish\n") },
	{ ASK_LIST, TEXT("\xff\xfe\n") },
	{ ASK_LIST, TEXT("ready\n") },
	{ ASK_LIST, TEXT("busy\n") },
	{ ASK_LIST, TEXT("alive and well\n") },
	{ ASK_LIST, TEXT("done\n") },
	{ ASK_LIST, TEXT("done \n") },
	{ ASK_LIST, TEXT("done soon\n") },
	{ ASK_LIST, TEXT("done -1\n") },
	{ ASK_LIST, TEXT("done 1 2\n") },
	{ ASK_LIST, TEXT("done 9223372036854775808\n") },
	{ ASK_LIST, TEXT("ns\n") },
	{ ASK_LIST, TEXT("ns 0\n") },
	{ ASK_LIST, TEXT("ns -1\n") },
	{ ASK_LIST, TEXT("ns 4294967296\n") },
	{ ASK_LIST, TEXT("ns 1,2\n") },
	{ ASK_LIST, TEXT("ns 1\r\n") },
	{ ASK_LIST, TEXT("ns 1\0 2\ndone 1\n") },
	{ ASK_LIST, TEXT("\0\n") },
	{ ASK_LIST, TEXT("id 1 - - - -\n") },
	{ ASK_LIST, TEXT("no 1 2\n") },
	{ ASK_LIST, TEXT("error\n") },
	{ ASK_LIST, TEXT("error \n") },
	{ ASK_LIST, TEXT("error x y\n") },
	{ ASK_LIST, TEXT("error 0 nothing\n") },
	{ ASK_LIST, TEXT("error 99999999999 far\n") },
	{ ASK_RESCAN, TEXT("ns 1\n") },
	{ ASK_RESCAN, TEXT("id 1 - - - -\n") },
	{ ASK_IDENTIFY, TEXT("done 1\n") }, /* and what about 7? */
	{ ASK_IDENTIFY, TEXT("ns 7\n") },
	{ ASK_IDENTIFY, TEXT("id\n") },
	{ ASK_IDENTIFY, TEXT("id 8 - - - -\n") },
	{ ASK_IDENTIFY, TEXT("id 7 - - -\n") },
	{ ASK_IDENTIFY, TEXT("id 7 - - - - -\n") },
	{ ASK_IDENTIFY, TEXT("id 7 - - 002538b9114a9e 00\n") },
	{ ASK_IDENTIFY, TEXT("id 7 - - 002538b9114a9e0100 00\n") },
	{ ASK_IDENTIFY, TEXT("id 7 - - 002538B9114A9E01 00\n") },
	{ ASK_IDENTIFY, TEXT("id 7 - - 0x2538b9114a9e01 00\n") },
	{ ASK_IDENTIFY, TEXT("id 7 - - +02538b9114a9e01 00\n") },
	{ ASK_IDENTIFY, TEXT("id 7 1b4e28ba-2fa1-11d2-883f-0016d3cca427 - - -\n") },
	{ ASK_IDENTIFY, TEXT("id 7 - - - 0\n") },
	{ ASK_IDENTIFY, TEXT("id 7 - - - -\nid 7 - - - -\n") },
	{ ASK_IDENTIFY, TEXT("no 7\n") },
	{ ASK_IDENTIFY, TEXT("no 7 0\n") },
	{ ASK_IDENTIFY, TEXT("no 7 x\n") },
	{ ASK_IDENTIFY, TEXT("no 7 11 12\n") },
	{ ASK_IDENTIFY, TEXT("no 8 11\n") },
	{ ASK_IDENTIFY_ALL, TEXT("ns 1 2\nid 1 - - - -\ndone 1\n") },
	{ ASK_IDENTIFY_ALL, TEXT("ns 1 2\nid 2 - - - -\n") },
	{ ASK_IDENTIFY_ALL, TEXT("ns 1\nid 1 - - - -\nns 2\n") },
};

/* Each is a failure of the whole request and ends that child; the next one is believed again. */
static void nonsense_is_believed_by_nobody(void **state)
{
	static const uint32_t seven = 7;
	struct stage *s = *state;

	child_is(s, ANSWERS);
	for (int i = 0; i < (int)ARRAY_SIZE(nonsense); i++) {
		const struct nonsense *t = &nonsense[i];

		write_file(s, "answer", t->answer, t->n, 0600);
		assert_int_equal(ask_request(s->ask, i, NQN, NULL, t->what, &seven, 1, T0), 0);
		if (answer_of(s, i, T0) != PROBE_FAILED || !str_same(probe(s, i)->error, NONSENSE))
			fail_msg("%s was taken: %s", t->answer, probe(s, i)->error ? probe(s, i)->error : "good");
		assert_int_equal(n_open(s), 0);
		assert_int_equal(probe(s, i)->list_at, 0);
		assert_int_equal(probe(s, i)->walk_at, 0);
		assert_int_equal(probe(s, i)->rescan_at, 0);
		assert_int_equal(probe(s, i)->rescan_error, t->what == ASK_RESCAN ? -EIO : 0);
		assert_int_equal(ask_wake(s->ask), TIME_NEVER);

		answer_is(s, "ns 1\ndone 1\n");
		assert_int_equal(ask(s, i, ASK_LIST, T0 + 1), PROBE_IDLE);
		assert_null(probe(s, i)->error);
		assert_int_equal(probe(s, i)->list_at, T0 + 1);
		ask_release(s->ask, i);
	}
	assert_int_equal(n_lines(s, "log"), 2 * ARRAY_SIZE(nonsense)); /* a child each, and one for the good answer */
}

static void a_line_without_end(void **state)
{
	struct stage *s = *state;

	child_is(s, PROLOGUE "echo ready; take; exec tr '\\0' x </dev/zero\n");
	assert_int_equal(ask(s, 0, ASK_LIST, T0), PROBE_FAILED);
	assert_failed(s, 0, NONSENSE);
}

/* Before it is ready, or after the answer. */
static void nobody_asked(void **state)
{
	static const char *const early[] = {
		"echo ns 1", "echo done 1", "echo alive", "echo rubbish", "echo ready; echo ready",
	};
	static const char *const late[] = { "ns 2", "error -5 late", "alive", "done 2" };
	struct stage *s = *state;

	for (size_t i = 0; i < ARRAY_SIZE(early); i++) {
		cleanup_free char *script = xasprintf("%s%s; take; take\n", PROLOGUE, early[i]);

		child_is(s, script);
		assert_int_equal(ask(s, 0, ASK_LIST, T0), PROBE_FAILED);
		assert_failed(s, 0, NONSENSE);
	}
	for (size_t i = 0; i < ARRAY_SIZE(late); i++) {
		cleanup_free char *script =
			xasprintf("%secho ready; take; printf 'ns 1\\ndone 1\\n%s\\n'; take\n", PROLOGUE, late[i]);

		child_is(s, script);
		assert_int_equal(request(s, 1, ASK_LIST, T0 + (int64_t)i), 0);
		while (probe(s, 1)->status != PROBE_FAILED) {
			wait_for_children(s);
			ask_collect(s->ask, T0);
		}
		assert_failed(s, 1, NONSENSE);
		assert_int_equal(probe(s, 1)->n_listed, 1); /* what it answered when it was asked stays */
		assert_int_equal(probe(s, 1)->list_at, T0 + (int64_t)i);
		assert_int_equal(n_open(s), 0);
	}
}

/* ---- refusals ---- */

static const struct refusal {
	const char *line;
	enum probe_status status;
	const char *error;
} refusals[] = {
	{ "busy", PROBE_BUSY, "is still being asked by another process" },
	{ "error -116 Stale file handle", PROBE_GONE, "is another controller by now" },
	{ "error -11 Resource temporarily unavailable", PROBE_GONE, "is not live" },
	{ "error -2 No such file or directory", PROBE_GONE, "cannot be opened: No such file or directory" },
	{ "error -6 No such device or address", PROBE_GONE, "cannot be opened: No such device or address" },
	{ "error -19 No such device", PROBE_GONE, "cannot be opened: No such device" },
	{ "error -13 Permission denied", PROBE_FAILED, "cannot be opened: Permission denied" },
	{ "error -37 /run/x: No space left on device", PROBE_FAILED, "cannot be opened: /run/x: No space left on device" },
	{ "error -5", PROBE_FAILED, "cannot be opened: ?" },
	{ "error -5 \x1b[31mred", PROBE_FAILED, "cannot be opened: ?[31mred" },
	{ "error x", PROBE_FAILED, NONSENSE },
	{ "error 0 fine", PROBE_FAILED, NONSENSE },
};

static void refused_at_the_start(void **state)
{
	struct stage *s = *state;

	child_is(s, PROLOGUE "cat answer; take\n");
	for (int i = 0; i < (int)ARRAY_SIZE(refusals); i++) {
		enum ask_what what = i % 2 ? ASK_RESCAN : ASK_LIST;
		cleanup_free char *line = xasprintf("%s\n", refusals[i].line);

		answer_is(s, line);
		assert_int_equal(ask(s, i, what, T0), refusals[i].status);
		assert_string_equal(probe(s, i)->error, refusals[i].error);
		assert_int_equal(probe(s, i)->rescan_error, what == ASK_RESCAN ? -EIO : 0);
		assert_int_equal(n_open(s), 0);
		assert_int_equal(ask(s, i, ASK_LIST, T0), refusals[i].status); /* asked again, refused again */
	}
}

static void a_refused_request_leaves_the_child(void **state)
{
	struct stage *s = *state;

	child_is(s, ANSWERS);
	answer_is(s, "ns 1\nerror 6 Internal Error\n");
	assert_int_equal(ask(s, 0, ASK_LIST, T0), PROBE_FAILED);
	assert_failed(s, 0, "failed: Internal Error");
	assert_int_equal(probe(s, 0)->list_at, 0); /* half a list is none */
	assert_int_equal(probe(s, 0)->n_listed, 0);
	answer_is(s, "ns 2\ndone 1\n");
	assert_int_equal(ask(s, 0, ASK_LIST, T0 + 1), PROBE_IDLE);
	assert_null(probe(s, 0)->error);
	assert_int_equal(probe(s, 0)->n_listed, 1);
	assert_null(probe_ns_find(probe(s, 0), 1));
	assert_int_equal(n_lines(s, "log"), 1);
}

static void rescans(void **state)
{
	struct stage *s = *state;

	child_is(s, ANSWERS);
	answer_is(s, "done 0\n");
	assert_int_equal(request(s, 0, ASK_RESCAN, T0), 0);
	assert_int_equal(answer_of(s, 0, T0 + 3), PROBE_IDLE);
	assert_int_equal(probe(s, 0)->rescan_at, T0 + 3);
	assert_int_equal(probe(s, 0)->rescan_error, 0);
	assert_int_equal(probe(s, 0)->list_at, 0);

	answer_is(s, "error -13 Permission denied\n");
	assert_int_equal(ask(s, 0, ASK_RESCAN, T0 + 4), PROBE_FAILED);
	assert_int_equal(probe(s, 0)->rescan_error, -EACCES);
	assert_int_equal(probe(s, 0)->rescan_at, T0 + 3); /* of the one that was accepted */
	answer_is(s, "error -11 Resource temporarily unavailable\n");
	assert_int_equal(ask(s, 0, ASK_RESCAN, T0 + 5), PROBE_GONE);
	assert_int_equal(probe(s, 0)->rescan_error, -EAGAIN);
	assert_string_equal(probe(s, 0)->error, "is not live");
	answer_is(s, "error 6 Internal Error\n"); /* a status is no errno */
	assert_int_equal(ask(s, 0, ASK_RESCAN, T0 + 6), PROBE_FAILED);
	assert_int_equal(probe(s, 0)->rescan_error, -EIO);
	answer_is(s, "error -13 Permission denied\n"); /* of a list: none of the rescan's business */
	assert_int_equal(ask(s, 0, ASK_LIST, T0 + 7), PROBE_FAILED);
	assert_int_equal(probe(s, 0)->rescan_error, -EIO);

	answer_is(s, "done 0\n");
	assert_int_equal(ask(s, 0, ASK_RESCAN, T0 + 8), PROBE_IDLE);
	assert_int_equal(probe(s, 0)->rescan_error, 0);
	assert_int_equal(probe(s, 0)->rescan_at, T0 + 8);
	assert_int_equal(n_lines(s, "log"), 1);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, start_stage, stop_stage)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_list),
		CASE(an_empty_list_is_an_answer),
		CASE(unsorted_and_twice),
		CASE(long_lists_come_in_several_lines),
		CASE(identities),
		CASE(a_later_answer_replaces_the_earlier),
		CASE(the_whole_walk),
		CASE(a_request_is_never_longer_than_a_pipe),
		CASE(nonsense_is_believed_by_nobody),
		CASE(a_line_without_end),
		CASE(nobody_asked),
		CASE(refused_at_the_start),
		CASE(a_refused_request_leaves_the_child),
		CASE(rescans),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
