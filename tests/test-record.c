/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What is remembered of a subsystem, as values and as text. */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "history.h"

#define NQN "nqn.2014-08.org.example:array.node1"
#define HOST "nqn.2014-08.org.nvmexpress:uuid:1b4e28ba-2fa1-11d2-883f-0016d3cca427"
#define BOOT "11111111-2222-3333-4444-555555555555"
#define HOUR (3600 * NS_PER_SEC)
#define NOW (10 * HOUR)

static struct rec_subsys subsys(const char *nqn, const char *hostnqn)
{
	return (struct rec_subsys){ .nqn = xstrdup(nqn), .hostnqn = xstrdup_null(hostnqn) };
}

/* Every member has a value of its own that no default has. */
static struct rec_subsys full_record(void)
{
	struct rec_subsys r = subsys(NQN, HOST);
	struct rec_ctrl *c;
	char *key;

	*rec_ns_get(&r, "b") = (struct rec_ns){
		.key = r.ns[0].key, .nsid = UINT32_MAX, .since = 1, .grace_first = 2, .grace_from = 3, .attempts = UINT_MAX,
		.attempted_at = 4, .next_attempt = TIME_NEVER, .second_round = true, .old_ident = UINT64_MAX - 1,
		.in_round = true, .absent_since = 5,
		.walk_hash = UINT64_MAX, .walk_next = 6, .walk_pause = 7, .blocked_at = 8,
		.blocked_until = NOW + HOUR, .blocked_text = xstrdup("nvme0n1 is mounted"), .verdict = 8, .verdict_at = NOW,
		.verdict_text = xstrdup("nobody lists it"), .said_state = 9, .said_action = 4,
	};
	key = rec_ns_get(&r, "a")->key;
	assert_string_equal(key, "a");
	c = rec_ctrl_get(&r, INT_MAX);
	*c = (struct rec_ctrl){
		.instance = INT_MAX, .cntlid = 65535, .live = true, .live_at = 1, .n_paths = 1024, .gained_at = 2,
		.pending = true, .rescanned_at = 3, .settle_until = NOW + HOUR, .settle_limit = NOW + 2 * HOUR,
		.awaiting = true, .canary = true, .effect = true, .n_rescan = 2, .day_from = 6, .fails = 4, .hung = true, .failed_at = 5,
	};
	rec_ctrl_get(&r, 0);
	*rec_dead_get(&r, "nvme0n9") = (struct rec_dead){ .disk = r.dead[0].disk, .nsid = 9, .first_at = 11 };
	return r;
}

static char *format(const struct rec_subsys *r)
{
	char *text = history_format(r, BOOT, NOW);

	assert_non_null(text);
	return text;
}

/* As history_parse() of this boot; what was parsed is thrown away. */
static int parses(const char *text)
{
	struct rec_subsys r;
	int found = history_parse(text, strlen(text), BOOT, NOW, &r);

	if (!found)
		assert_true(!r.nqn && !r.hostnqn && !r.ns && !r.ctrl && !r.dead && r.n_ns == 0 && r.n_ctrl == 0);
	rec_subsys_clear(&r);
	return found;
}

/* text with the first `from` replaced */
static char *replaced(const char *text, const char *from, const char *to)
{
	const char *at = strstr(text, from);

	if (!at)
		fail_msg("%s is not in the record", from);
	return xasprintf("%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
}

/* --- record.h ---------------------------------------------------------------------------------------------------- */

static void namespaces_are_kept_by_key(void **state)
{
	static const char *const keys[] = { "nsid=9", "nsid=1", "uuid=b", "", "nsid=10", "uuid=a" };
	struct rec_subsys r = subsys(NQN, NULL);

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		rec_ns_get(&r, keys[i])->nsid = (uint32_t)i + 1;
	assert_int_equal(r.n_ns, ARRAY_SIZE(keys));
	for (size_t i = 1; i < r.n_ns; i++)
		assert_true(strcmp(r.ns[i - 1].key, r.ns[i].key) < 0);
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		assert_int_equal(rec_ns_find(&r, keys[i])->nsid, i + 1);
		assert_int_equal(rec_ns_get(&r, keys[i])->nsid, i + 1);
	}
	assert_int_equal(r.n_ns, ARRAY_SIZE(keys));
	assert_null(rec_ns_find(&r, "nsid=2"));
	assert_null(rec_ns_find(&r, "zzz"));
	rec_ns_drop(&r, rec_ns_find(&r, ""));
	rec_ns_drop(&r, rec_ns_find(&r, "uuid=b"));
	rec_ns_drop(&r, rec_ns_find(&r, "nsid=10"));
	assert_null(rec_ns_find(&r, "nsid=10"));
	assert_int_equal(rec_ns_find(&r, "uuid=a")->nsid, 6);
	assert_int_equal(rec_ns_find(&r, "nsid=9")->nsid, 1);
	assert_int_equal(r.n_ns, 3);
	rec_subsys_clear(&r);
	assert_null(r.ns);
}

static void many_come_and_go(void **state)
{
	struct rec_subsys r = subsys(NQN, NULL);
	char key[32];

	for (unsigned i = 0; i < 2000; i++) {
		snprintf(key, sizeof(key), "%08x", i * 2654435761u);
		rec_ns_get(&r, key)->nsid = i;
		if (i % 3 == 0)
			rec_ns_drop(&r, &r.ns[i % r.n_ns]);
	}
	assert_int_equal(r.n_ns, 2000 - 667);
	while (r.n_ns > 0)
		rec_ns_drop(&r, &r.ns[r.n_ns / 2]);
	rec_subsys_clear(&r);
}

static void a_new_entry_knows_nothing(void **state)
{
	struct rec_subsys r = subsys(NQN, NULL);
	const struct rec_ns *ns = rec_ns_get(&r, "k");
	const struct rec_ctrl *c = rec_ctrl_get(&r, 3);

	assert_int_equal(ns->verdict, -1);
	assert_int_equal(ns->said_state, -1);
	assert_int_equal(ns->said_action, -1);
	assert_true(ns->since == 0 && ns->attempts == 0 && !ns->verdict_text);
	assert_int_equal(c->cntlid, -1);
	assert_true(!c->live && c->live_at == 0 && c->settle_until == 0);
	rec_subsys_clear(&r);
}

static void controllers_are_kept_by_number(void **state)
{
	struct rec_subsys r = subsys(NQN, NULL);

	for (int i = 9; i >= 0; i -= 3)
		rec_ctrl_get(&r, i)->cntlid = i;
	rec_ctrl_get(&r, 9)->live = true;
	assert_int_equal(r.n_ctrl, 4);
	for (size_t i = 0; i < r.n_ctrl; i++)
		assert_int_equal(r.ctrl[i].instance, i * 3);
	assert_true(rec_ctrl_find(&r, 9)->live);
	assert_null(rec_ctrl_find(&r, 1));
	assert_null(rec_ctrl_find(&r, 10));
	rec_ctrl_drop(&r, rec_ctrl_find(&r, 3));
	assert_null(rec_ctrl_find(&r, 3));
	assert_int_equal(rec_ctrl_find(&r, 6)->cntlid, 6);
	rec_subsys_clear(&r);
}

/* --- a record as text -------------------------------------------------------------------------------------------- */

static void everything_comes_back(void **state)
{
	struct rec_subsys r = full_record(), back;
	cleanup_free char *text = format(&r);
	cleanup_free char *again = NULL;
	const struct rec_ns *ns;
	const struct rec_ctrl *c;

	assert_int_equal(history_parse(text, strlen(text), BOOT, NOW, &back), 1);
	again = format(&back);
	assert_string_equal(text, again);
	assert_string_equal(back.nqn, NQN);
	assert_string_equal(back.hostnqn, HOST);
	ns = rec_ns_find(&back, "b");
	assert_true(ns->nsid == UINT32_MAX && ns->since == 1 && ns->grace_first == 2 && ns->grace_from == 3);
	assert_true(ns->attempts == UINT_MAX && ns->attempted_at == 4 && ns->next_attempt == TIME_NEVER && ns->in_round);
	assert_true(ns->absent_since == 5 && ns->walk_hash == UINT64_MAX && ns->walk_next == 6 && ns->walk_pause == 7);
	assert_true(ns->verdict == 8 && ns->verdict_at == NOW && ns->said_state == 9 && ns->said_action == 4);
	assert_string_equal(ns->verdict_text, "nobody lists it");
	assert_null(rec_ns_find(&back, "a")->verdict_text);
	c = rec_ctrl_find(&back, INT_MAX);
	assert_true(c->cntlid == 65535 && c->live && c->live_at == 1 && c->n_paths == 1024 && c->gained_at == 2);
	assert_true(c->pending && c->rescanned_at == 3 && c->settle_until == NOW + HOUR);
	assert_true(c->settle_limit == NOW + 2 * HOUR && c->awaiting && c->canary && c->effect && c->fails == 4);
	assert_true(c->hung && c->failed_at == 5 && c->n_rescan == 2 && c->day_from == 6);
	assert_int_equal(rec_ctrl_find(&back, 0)->cntlid, -1);
	rec_subsys_clear(&r);
	rec_subsys_clear(&back);
}

/* record.h is read as text: whoever adds a member and forgets to write it down is told so here */
static void no_member_is_forgotten(void **state)
{
	struct rec_subsys r = full_record();
	cleanup_free char *text = format(&r);
	cleanup_free char *path = xasprintf("%s/src/record.h", getenv("top_srcdir") ?: ".");
	FILE *f = fopen(path, "r");
	bool inside = false;
	size_t members = 0;
	char line[256];

	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		char *comment = strstr(line, "/*"), *word, *rest = line;

		if (starts_with(line, "struct rec_ns {") || starts_with(line, "struct rec_ctrl {") ||
		    starts_with(line, "struct rec_dead {")) {
			inside = true;
			continue;
		}
		if (line[0] == '}')
			inside = false;
		if (!inside)
			continue;
		if (comment)
			*comment = '\0';
		/* "int64_t a, b;": whatever is followed by ',' or ';' */
		while ((word = strpbrk(rest, ",;")) != NULL) {
			char *begin = word;
			cleanup_free char *quoted = NULL;

			while (begin > line && strchr(" \t*", begin[-1]) == NULL)
				begin--;
			quoted = xasprintf("\"%.*s\":", (int)(word - begin), begin);
			if (!strstr(text, quoted))
				fail_msg("%s is in record.h and not in the record", quoted);
			members++;
			rest = word + 1;
		}
	}
	fclose(f);
	assert_true(members > 30);
	rec_subsys_clear(&r);
}

static void any_byte_comes_back_and_the_text_is_ascii(void **state)
{
	char all[256];
	struct rec_subsys r, back;
	cleanup_free char *text = NULL;

	for (int i = 0; i < 255; i++)
		all[i] = (char)(i + 1);
	all[255] = '\0';
	r = subsys(all, "");
	rec_ns_get(&r, all)->verdict_text = xstrdup("100% \"quoted\" \\ / \xff%41");
	text = format(&r);
	for (const char *p = text; *p; p++)
		assert_true((*p >= ' ' && *p <= '~') || (*p == '\n' && p[1] == '\0'));
	assert_int_equal(history_parse(text, strlen(text), BOOT, NOW, &back), 1);
	assert_string_equal(back.nqn, all);
	assert_string_equal(back.hostnqn, "");
	assert_string_equal(back.ns[0].key, all);
	assert_string_equal(back.ns[0].verdict_text, r.ns[0].verdict_text);
	rec_subsys_clear(&r);
	rec_subsys_clear(&back);
}

/* A killed writer leaves no such file, since it is renamed into place; but a file system may. */
static void a_cut_record_is_none(void **state)
{
	struct rec_subsys r = full_record(), back;
	cleanup_free char *text = format(&r);
	size_t len = strlen(text);

	for (size_t cut = 0; cut + 1 < len; cut++) {
		cleanup_free char *copy = xmalloc(cut); /* exactly as long: reading beyond is seen */

		memcpy(copy, text, cut);
		assert_int_equal(history_parse(copy, cut, BOOT, NOW, &back), 0);
	}
	assert_int_equal(parses(text), 1);
	rec_subsys_clear(&r);
}

static void only_of_this_boot_and_version(void **state)
{
	struct rec_subsys r = full_record();
	cleanup_free char *text = format(&r);
	cleanup_free char *version = replaced(text, "\"version\":2", "\"version\":1");
	cleanup_free char *boot = replaced(text, BOOT, "11111111-2222-3333-4444-555555555556");

	assert_int_equal(parses(version), 0);
	assert_int_equal(parses(boot), 0);
	rec_subsys_clear(&r);
}

static void what_is_not_our_own_writing_is_none(void **state)
{
	static const struct {
		const char *from, *to;
	} cases[] = {
		{ "{", "[" },
		{ "\"nqn\":", "\"nqm\":" },
		{ "\"nqn\":\"" NQN "\"", "\"nqn\":null" },
		{ "\"nqn\":\"" NQN "\"", "\"nqn\":7" },
		{ "\"hostnqn\":\"" HOST "\"", "\"hostnqn\":true" },
		{ "\"hostnqn\":\"" HOST "\",", "" },
		{ "\"version\":2", "\"version\":\"1\"" },
		{ "\"version\":2", "\"version\":2,\"more\":1" },
		{ "\"saved_at\":36000000000000", "\"saved_at\":-1" },
		{ "\"key\":\"a\"", "\"key\":\"b\"" },  /* twice */
		{ "\"key\":\"a\"", "\"key\":\"c\"" },  /* not in order */
		{ "\"key\":\"a\"", "\"key\":null" },
		{ "\"key\":\"a\"", "\"key\":\"%\"" },
		{ "\"key\":\"a\"", "\"key\":\"%4\"" },
		{ "\"key\":\"a\"", "\"key\":\"%4g\"" },
		{ "\"key\":\"a\"", "\"key\":\"%00\"" },
		{ "\"key\":\"a\"", "\"key\":\"a\\u0000b\"" },
		{ "\"key\":\"a\"", "\"key\":\"\xc3\xa4\"" },
		{ "\"nsid\":0", "\"nsid\":4294967296" },
		{ "\"nsid\":0", "\"nsid\":-1" },
		{ "\"nsid\":0", "\"nsid\":1.5" },
		{ "\"nsid\":0", "\"nsid\":null" },
		{ "\"nsid\":0", "\"nsid\":\"0\"" },
		{ "\"nsid\":0", "\"nsid\":true" },
		{ "\"nsid\":0,", "" },
		{ "\"nsid\":0", "\"nsid\":0,\"colour\":0" },
		{ "\"attempts\":0", "\"attempts\":4294967296" },
		{ "\"next_attempt\":0", "\"next_attempt\":-1" },
		{ "\"next_attempt\":0", "\"next_attempt\":9223372036854775808" },
		{ "\"next_attempt\":0", "\"next_attempt\":99999999999999999999999" },
		{ "\"in_round\":false", "\"in_round\":0" },
		{ "\"walk_hash\":\"0000000000000000\"", "\"walk_hash\":\"000000000000000\"" },
		{ "\"walk_hash\":\"0000000000000000\"", "\"walk_hash\":\"00000000000000000\"" },
		{ "\"walk_hash\":\"0000000000000000\"", "\"walk_hash\":\"000000000000000x\"" },
		{ "\"walk_hash\":\"0000000000000000\"", "\"walk_hash\":0" },
		{ "\"verdict\":-1", "\"verdict\":-2" },
		{ "\"verdict\":-1", "\"verdict\":17" },
		{ "\"said_action\":-1", "\"said_action\":8" },
		{ "\"instance\":0", "\"instance\":-1" },
		{ "\"instance\":0", "\"instance\":2147483647" }, /* twice */
		{ "\"cntlid\":-1", "\"cntlid\":65536" },
		{ "\"n_paths\":0", "\"n_paths\":131073" },
		{ "\"namespaces\":[", "\"namespaces\":[null," },
		{ "\"controllers\":[", "\"controllers\":[[]," },
		{ "\"controllers\":[", "\"controllers\":[{}," },
		{ "}]}\n", "}]} {}\n" },
		{ "}]}\n", "}]}x\n" },
		{ "}]}\n", "}],}\n" },
		{ "\"a\"", "'a'" },
	};
	struct rec_subsys r = full_record();
	cleanup_free char *text = format(&r);

	assert_int_equal(parses(text), 1);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		cleanup_free char *bad = replaced(text, cases[i].from, cases[i].to);

		if (parses(bad))
			fail_msg("%s instead of %s was accepted", cases[i].to, cases[i].from);
	}
	rec_subsys_clear(&r);
}

static void text_that_is_no_record_is_none(void **state)
{
	static const char *const cases[] = { "", "\n", "null", "1", "\"\"", "[]", "{}", "[[[[[[[[[[]]]]]]]]]]", "{\"a\":" };
	struct rec_subsys r = full_record(), back;
	cleanup_free char *text = format(&r);
	size_t len = strlen(text);

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(parses(cases[i]), 0);
	/* a good one, and then a NUL */
	assert_int_equal(history_parse(text, len + 1, BOOT, NOW, &back), 0);
	rec_subsys_clear(&r);
}

/* A time namespace, or a clock that is not the one of the writer. */
static void a_record_of_the_future_is_none(void **state)
{
	static const char *const past[] = { "since", "grace_first", "grace_from", "attempted_at", "absent_since",
					    "verdict_at", "live_at", "gained_at", "rescanned_at", "failed_at", "day_from" };
	struct rec_subsys r = subsys(NQN, NULL), back;
	cleanup_free char *text = NULL, *saved = NULL;

	rec_ns_get(&r, "a");
	rec_ctrl_get(&r, 0);
	text = format(&r);
	saved = history_format(&r, BOOT, NOW + HOUR);
	assert_int_equal(parses(saved), 0);
	for (size_t i = 0; i < ARRAY_SIZE(past); i++) {
		cleanup_free char *from = xasprintf("\"%s\":0", past[i]);
		cleanup_free char *to = xasprintf("\"%s\":%lld", past[i], NOW + HOUR);
		cleanup_free char *bad = replaced(text, from, to);

		assert_int_equal(parses(bad), 0);
	}
	rec_subsys_clear(&r);

	/* who looked at the clock and then read what another had just written: its "now" is ours */
	r = subsys(NQN, NULL);
	rec_ns_get(&r, "a")->since = NOW + NS_PER_SEC;
	free(text);
	text = history_format(&r, BOOT, NOW + NS_PER_SEC);
	assert_int_equal(history_parse(text, strlen(text), BOOT, NOW, &back), 1);
	assert_true(back.ns[0].since == NOW);
	rec_subsys_clear(&r);
	rec_subsys_clear(&back);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(namespaces_are_kept_by_key),
		cmocka_unit_test(many_come_and_go),
		cmocka_unit_test(a_new_entry_knows_nothing),
		cmocka_unit_test(controllers_are_kept_by_number),
		cmocka_unit_test(everything_comes_back),
		cmocka_unit_test(no_member_is_forgotten),
		cmocka_unit_test(any_byte_comes_back_and_the_text_is_ascii),
		cmocka_unit_test(a_cut_record_is_none),
		cmocka_unit_test(only_of_this_boot_and_version),
		cmocka_unit_test(what_is_not_our_own_writing_is_none),
		cmocka_unit_test(text_that_is_no_record_is_none),
		cmocka_unit_test(a_record_of_the_future_is_none),
	};

	return cmocka_run_group_tests_name("record", tests, NULL, NULL);
}
