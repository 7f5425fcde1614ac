/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The configuration reader. tests/fixtures/config holds files and, beside each, X.expect: the faults that it has, or,
 * where it has none, what is expected of the host. Each of inih's traps is one of them, by name.
 */
#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "config.h"

#define UUID "1b4e28ba-2fa1-11d2-883f-0016d3cca427"

/* ---- what was understood, as text ---- */

static const char *const action_word[] = { "rescan", "report" };
static const char *const removals_word[] = { "never", "idle", "dead", "always" };
static const char *const paths_word[] = { "any", "all" };

static void dump_policy(FILE *f, const struct policy *p)
{
	fprintf(f, "  action=%s%s grace=%lldms settle=%lldms max-attempts=%u backoff=%lldms retry-after=%lldms\n",
		action_word[p->action], p->action_given ? "(given)" : "", (long long)(p->grace / NS_PER_MS),
		(long long)(p->settle == SETTLE_AUTO ? -1 : p->settle / NS_PER_MS), p->max_attempts,
		(long long)(p->backoff / NS_PER_MS), (long long)(p->retry_after / NS_PER_MS));
	fprintf(f, "  removals=%s rearm=%d paths=%s kernel-guard=%d\n", removals_word[p->removals], p->rearm,
		paths_word[p->paths], p->kernel_guard);
}

static void dump_ns(FILE *f, const char *key, const struct expect_ns *ns)
{
	cleanup_free char *id = ident_format_all(&ns->id);

	fprintf(f, "  %s", key);
	if (ns->all)
		fputs(" all", f);
	if (ns->nsid_first)
		fprintf(f, " nsid=%u-%u", ns->nsid_first, ns->nsid_last);
	if (*id)
		fprintf(f, " %s", id);
	if (ns->name)
		fprintf(f, " name=%s", ns->name);
	fprintf(f, " at %s\n", ns->where);
}

static void dump_subsys(FILE *f, const struct expect_subsys *s)
{
	fprintf(f, "%s\n  nqn=%s|\n", s->label, s->nqn);
	if (s->hostnqn)
		fprintf(f, "  hostnqn=%s|\n", s->hostnqn);
	fprintf(f, "  at %s\n", s->where);
	dump_policy(f, &s->policy);
	for (size_t i = 0; i < s->n_ns; i++)
		dump_ns(f, "namespace", &s->ns[i]);
	for (size_t i = 0; i < s->n_ignore; i++)
		dump_ns(f, "ignore", &s->ignore[i]);
}

/* Caller frees. */
static char *dump(const struct config *c)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	assert_non_null(f);
	for (size_t i = 0; i < c->faults.n; i++)
		fprintf(f, "%s\n", c->faults.text[i]);
	for (size_t i = 0; i < c->expect.n_subsys; i++)
		dump_subsys(f, &c->expect.subsys[i]);
	fclose(f);
	return text;
}

static char *dump_faults(const struct config *c)
{
	struct config only = { .faults = c->faults };

	return dump(&only);
}

/* ---- fixtures ---- */

static char *source_path(const char *path)
{
	return xasprintf("%s/%s", getenv("top_srcdir") ?: ".", path);
}

static char *slurp(const char *path, size_t *len)
{
	FILE *f = fopen(path, "re");
	char *text = NULL;
	size_t room = 0;

	if (!f)
		fail_msg("%s: %s", path, strerror(errno));
	*len = 0;
	for (size_t n = 1; n > 0; *len += n) {
		room = *len + 65536;
		text = xreallocarray(text, room + 1, 1);
		n = fread(text + *len, 1, room - *len, f);
	}
	text[*len] = '\0';
	fclose(f);
	return text;
}

#define FIXTURES "tests/fixtures/config"

static void fixture(void **state)
{
	const char *name = *state;
	cleanup_free char *rel = xasprintf(FIXTURES "/%s.conf", name), *path = source_path(rel);
	cleanup_free char *rel_want = xasprintf(FIXTURES "/%s.expect", name), *path_want = source_path(rel_want);
	cleanup_free char *file = xasprintf("%s.conf", name);
	size_t len, want_len;
	cleanup_free char *text = slurp(path, &len), *want = slurp(path_want, &want_len), *got = NULL;
	struct config c;
	int err = config_load_text(&c, file, text, len);

	got = dump(&c);
	assert_int_equal(err, c.faults.n ? -EINVAL : 0);
	if (c.faults.n)
		assert_int_equal(c.expect.n_subsys, 0);
	assert_string_equal(got, want);
	config_free(&c);
}

static const char *const fixtures[] = {
	/* inih's traps */
	"nqn-of-223-bytes",
	"nqn-of-224-bytes",
	"long-namespace-line",
	"long-comment-is-no-line",
	"section-name-over-49-characters",
	"section-line-over-199-bytes",
	"section-without-keys",
	"section-not-ended",
	"junk-after-section",
	"indented-line-is-no-further-value",
	"key-with-colon",
	"key-over-49-characters",
	"key-without-value",
	"key-before-section",
	"semicolon-in-nqn",
	"comments",
	"line-numbers",
	"not-understood",
	/* what an editor, a copy or an accident makes of a file */
	"crlf",
	"cr-alone",
	"bom",
	"bom-inside",
	"utf-16",
	"no-final-newline",
	"nul",
	"binary",
	"control-characters",
	"not-ascii",
	"empty",
	"comments-only",
	"many-faults",
	/* the grammar */
	"design-example",
	"every-key",
	"bad-values",
	"key-twice",
	"unknown",
	"labels",
	"labels-accepted",
	"label-of-two-subsystems",
	"nqn",
	"nqn-accepted",
	"namespaces-accepted",
	"namespace-faults",
	"namespace-twice",
	"namespaces-too-many",
	"every-subsystem",
	"every-subsystem-faults",
	"merged",
	"merged-differently",
};

static void every_fixture_is_a_test(void **state)
{
	cleanup_free char *path = source_path(FIXTURES);
	DIR *dir = opendir(path);
	struct dirent *entry;
	size_t n = 0;

	assert_non_null(dir);
	while ((entry = readdir(dir)) != NULL) {
		char *dot = strrchr(entry->d_name, '.');

		if (!dot || !streq(dot, ".conf"))
			continue;
		*dot = '\0';
		n++;
		for (size_t i = 0; i <= ARRAY_SIZE(fixtures); i++) {
			if (i == ARRAY_SIZE(fixtures))
				fail_msg("%s.conf is in no test", entry->d_name);
			if (streq(fixtures[i], entry->d_name))
				break;
		}
	}
	closedir(dir);
	assert_int_equal(n, ARRAY_SIZE(fixtures));
}

/* ---- values ---- */

static void durations(void **state)
{
	static const struct {
		const char *text;
		int64_t ns;
	} good[] = {
		{ "0", 0 },
		{ "0s", 0 },
		{ "00", 0 },
		{ "350ms", 350 * NS_PER_MS },
		{ "5s", 5 * NS_PER_SEC },
		{ "2min", 120 * NS_PER_SEC },
		{ "1h", 3600 * NS_PER_SEC },
		{ "30d", 30 * 86400 * NS_PER_SEC },
		{ "2592000000ms", 30 * 86400 * NS_PER_SEC },
	};
	static const char *const bad[] = { "", "5", "s", "-1s", "+1s", "1.5s", "5 s", " 5s", "5s ", "5sec", "5S", "2m",
					   "1h30min", "0x5s", "inf", "auto", "-0", "5ms5" };
	static const char *const long_ones[] = { "31d", "721h", "2592000001ms", "18446744073709551617s",
						 "99999999999999999999999999999999999999999ms" };
	const char *why;
	int64_t ns;

	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		assert_int_equal(config_parse_duration(good[i].text, &ns, &why), 0);
		assert_int_equal(ns, good[i].ns);
	}
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		why = NULL;
		assert_int_equal(config_parse_duration(bad[i], &ns, &why), -EINVAL);
		assert_non_null(strstr(why, "2min"));
	}
	for (size_t i = 0; i < ARRAY_SIZE(long_ones); i++) {
		assert_int_equal(config_parse_duration(long_ones[i], &ns, &why), -ERANGE);
		assert_string_equal(why, "at most 30d");
	}
}

static void an_nqn_on_the_command_line_is_trimmed(void **state)
{
	const char *why;
	char *nqn;

	assert_int_equal(config_parse_nqn(" \tnqn.a  b \t", &nqn, &why), 0);
	assert_string_equal(nqn, "nqn.a  b");
	free(nqn);
	assert_int_equal(config_parse_nqn(" * ", &nqn, &why), 0);
	assert_string_equal(nqn, "*");
	free(nqn);
	assert_int_equal(config_parse_nqn(" ", &nqn, &why), -EINVAL);
	assert_string_equal(why, "an NQN is expected");
}

static void removals_by_word(void **state)
{
	enum policy_removals r = REMOVALS_NEVER;
	const char *why;

	for (size_t i = 0; i < ARRAY_SIZE(removals_word); i++) {
		assert_int_equal(config_parse_removals(removals_word[i], &r, &why), 0);
		assert_int_equal(r, i);
	}
	assert_int_equal(config_parse_removals("Idle", &r, &why), -EINVAL);
	assert_int_equal(r, REMOVALS_ALWAYS);
	assert_string_equal(why, "never, idle, dead or always");
}

/* The same words as in a file, and nothing is left behind by a failure. */
static void a_namespace_on_the_command_line(void **state)
{
	struct expect_ns ns;
	char *why;

	assert_int_equal(config_parse_ns("\tuuid=" UUID "  name=n nsid=7 ", &ns, &why), 0);
	assert_null(why);
	assert_int_equal(ns.nsid_first, 7);
	assert_int_equal(ns.id.have, IDENT_UUID);
	assert_string_equal(ns.name, "n");
	assert_null(ns.where);
	expect_ns_clear(&ns);
	assert_int_equal(config_parse_ns(" all ", &ns, &why), 0);
	assert_true(ns.all);
	assert_int_equal(config_parse_ns("uuid=" UUID " name=n nsid=x", &ns, &why), -EINVAL);
	assert_null(ns.name);
	assert_int_equal(ns.id.have, 0);
	assert_string_equal(why, "nsid=x: a number from 1 to 4294967294 (0xfffffffe), or a range such as 1-12");
	free(why);
	assert_int_equal(config_parse_ns("", &ns, &why), -EINVAL);
	assert_string_equal(why, "this identifies no namespace: nsid, uuid, nguid, eui64 or wwid is needed");
	free(why);
}

/* Around each limit that the library may have been built with, there is no length at which an NQN changes. */
static void an_nqn_of_any_length_arrives_whole(void **state)
{
	char nqn[224];

	for (size_t len = 1; len <= 223; len++) {
		cleanup_free char *text = NULL;
		struct config c;

		for (size_t i = 0; i < len; i++)
			nqn[i] = (char)('a' + (i * 7 + len) % 26);
		nqn[len] = '\0';
		text = xasprintf("[subsystem]\nnqn = %s  ; %s\nnamespace=nsid=%zu\n", nqn, nqn, len);
		assert_int_equal(config_load_text(&c, "f", text, strlen(text)), 0);
		assert_int_equal(c.expect.n_subsys, 1);
		assert_string_equal(c.expect.subsys[0].nqn, nqn);
		assert_int_equal(c.expect.subsys[0].ns[0].nsid_first, len);
		assert_string_equal(c.expect.subsys[0].ns[0].where, "f:3");
		config_free(&c);
	}
}

/* A configuration as large as hosts come, with one namespace given twice at its far ends. */
static void thirty_six_thousand_namespaces(void **state)
{
	char *text = NULL, *got;
	size_t len;
	FILE *f = open_memstream(&text, &len);
	struct config c;

	assert_non_null(f);
	for (unsigned s = 0; s < 80; s++) {
		fprintf(f, "[subsystem s%u]\nnqn = nqn.2014-08.org.example:%u\n", s, s);
		for (unsigned i = 0; i < 450; i++)
			fprintf(f, "namespace = uuid=%08x-2fa1-11d2-883f-0016d3cca427 name=pvc-%u\n", i + 1, i);
	}
	fflush(f);
	assert_int_equal(config_load_text(&c, "f", text, len), 0);
	assert_int_equal(c.expect.n_subsys, 80);
	assert_int_equal(c.expect.subsys[79].n_ns, 450);
	assert_string_equal(c.expect.subsys[79].ns[449].where, "f:36160");
	config_free(&c);

	fprintf(f, "[subsystem]\nnqn = nqn.2014-08.org.example:0\nnamespace = uuid=000000012FA111D2883F0016D3CCA427\n");
	fclose(f);
	assert_int_equal(config_load_text(&c, "f", text, len), -EINVAL);
	got = dump(&c);
	assert_string_equal(got, "f:36163: the namespace is expected at f:3 already (uuid)\n");
	free(got);
	free(text);
	config_free(&c);
}

/* ---- the file that is shipped ---- */

static char *uncomment(const char *text)
{
	char *out = xstrdup(text), *to = out;

	for (const char *line = text; *line;) {
		size_t len = strcspn(line, "\n") + 1;

		if (line[0] == '#' && line[1] != ' ' && line[1] != '\n') {
			line++;
			len--;
		}
		memcpy(to, line, len);
		to += len;
		line += len;
	}
	*to = '\0';
	return out;
}

static void as_shipped_nothing_is_expected(void **state)
{
	cleanup_free char *path = source_path("conf/nvme-nsheal.conf");
	size_t len;
	cleanup_free char *text = slurp(path, &len);
	struct config c;

	for (const char *line = text; *line; line += strcspn(line, "\n") + 1)
		assert_true(*line == '#' || *line == '\n');
	assert_int_equal(config_load_text(&c, "f", text, len), 0);
	assert_int_equal(c.expect.n_subsys, 0);
	config_free(&c);
}

static void as_shipped_and_uncommented_it_is_valid_and_shows_the_defaults(void **state)
{
	static const char *const keys[] = { "action", "grace", "settle", "max-attempts", "backoff", "retry-after",
					    "removals", "rearm", "paths", "kernel-guard", "nqn", "hostnqn", "namespace",
					    "ignore" };
	cleanup_free char *path = source_path("conf/nvme-nsheal.conf");
	size_t len;
	cleanup_free char *shipped = slurp(path, &len), *text = uncomment(shipped), *faults = NULL;
	struct config c;
	struct policy want;
	const struct policy *is;

	if (config_load_text(&c, "f", text, strlen(text)) < 0) {
		faults = dump_faults(&c);
		fail_msg("%s", faults);
	}
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		cleanup_free char *line = xasprintf("\n#%s ", keys[i]);

		if (!strstr(shipped, line))
			fail_msg("%s is not shown", keys[i]);
	}
	assert_int_equal(c.expect.n_subsys, 2);
	assert_string_equal(c.expect.subsys[1].nqn, "*");
	policy_init(&want);
	assert_false(want.action_given);
	is = &c.expect.subsys[1].policy; /* member by member: between them are bytes that nobody sets */
	assert_true(is->action_given);
	assert_int_equal(is->action, want.action);
	assert_int_equal(is->grace, want.grace);
	assert_int_equal(is->settle, want.settle);
	assert_int_equal(is->max_attempts, want.max_attempts);
	assert_int_equal(is->backoff, want.backoff);
	assert_int_equal(is->retry_after, want.retry_after);
	assert_int_equal(is->removals, want.removals);
	assert_int_equal(is->rearm, want.rearm);
	assert_int_equal(is->paths, want.paths);
	assert_int_equal(is->kernel_guard, want.kernel_guard);
	config_free(&c);
}

/* What people copy. */
static void the_manual_s_examples_are_valid(void **state)
{
	cleanup_free char *path = source_path("man/nvme-nsheal.conf.5");
	size_t len, n = 0;
	cleanup_free char *manual = slurp(path, &len);
	const char *p = manual;

	while ((p = strstr(p, "\n.EX\n")) != NULL) {
		const char *end = strstr(p, "\n.EE\n");
		cleanup_free char *faults = NULL;
		struct config c;

		assert_non_null(end);
		p += strlen("\n.EX\n");
		if (config_load_text(&c, "example", p, (size_t)(end - p)) < 0) {
			faults = dump_faults(&c);
			fail_msg("%s", faults);
		}
		assert_true(c.expect.n_subsys > 0);
		config_free(&c);
		n++;
	}
	assert_int_equal(n, 3);
}

/* ---- struct expect ---- */

static void removing_a_subsystem_keeps_the_order_of_the_others(void **state)
{
	static const char *const nqn[] = { "a", "b", "c", "d", "e", "f", "g", "h", "i" };
	struct expect e = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(nqn); i++) {
		struct expect_subsys *s = expect_add(&e, i % 2 ? "label" : NULL, nqn[i]);

		assert_string_equal(s->label, i % 2 ? "label" : nqn[i]);
		expect_add_ns(s)->name = xstrdup("n");
		expect_add_ns(s)->nsid_first = 1;
	}
	expect_remove(&e, 8);
	expect_remove(&e, 3);
	expect_remove(&e, 0);
	assert_int_equal(e.n_subsys, 6);
	assert_string_equal(e.subsys[0].nqn, "b");
	assert_string_equal(e.subsys[1].nqn, "c");
	assert_string_equal(e.subsys[2].nqn, "e");
	assert_string_equal(e.subsys[5].nqn, "h");
	assert_string_equal(e.subsys[5].ns[0].name, "n");
	expect_free(&e);
	assert_null(e.subsys);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(every_fixture_is_a_test),
	cmocka_unit_test(durations),
	cmocka_unit_test(an_nqn_on_the_command_line_is_trimmed),
	cmocka_unit_test(removals_by_word),
	cmocka_unit_test(a_namespace_on_the_command_line),
	cmocka_unit_test(an_nqn_of_any_length_arrives_whole),
	cmocka_unit_test(thirty_six_thousand_namespaces),
	cmocka_unit_test(as_shipped_nothing_is_expected),
	cmocka_unit_test(as_shipped_and_uncommented_it_is_valid_and_shows_the_defaults),
	cmocka_unit_test(the_manual_s_examples_are_valid),
	cmocka_unit_test(removing_a_subsystem_keeps_the_order_of_the_others),
};

int main(void)
{
	struct CMUnitTest by_fixture[ARRAY_SIZE(fixtures)];
	int failed;

	for (size_t i = 0; i < ARRAY_SIZE(fixtures); i++) {
		const char *name = fixtures[i];

		by_fixture[i] = (struct CMUnitTest){ .name = name, .test_func = fixture };
		memcpy(&by_fixture[i].initial_state, &name, sizeof(name));
	}
	failed = _cmocka_run_group_tests("fixtures", by_fixture, ARRAY_SIZE(by_fixture), NULL, NULL);
	return failed + cmocka_run_group_tests_name("configuration", tests, NULL, NULL);
}
