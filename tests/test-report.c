/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What people read: the table of `status`, and `heal --dry-run`. Each test says what is true and compares all of the
 * text.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "findings.h"
#include "report.h"

/* ---- what came out ---- */

/* Blanks at line ends differ between versions of libsmartcols. */
static void strip_line_ends(char *text)
{
	char *to = text;

	for (const char *from = text; *from; from++) {
		if (*from == '\n')
			while (to > text && to[-1] == ' ')
				to--;
		*to++ = *from;
	}
	*to = '\0';
}

static void assert_table(struct fixture *fx, struct report_options o, const char *want)
{
	cleanup_free char *got = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&got, &len);

	assert_non_null(out);
	o.now = NOW;
	assert_int_equal(report_table(out, &fx->plan, &o), 0);
	fclose(out);
	strip_line_ends(got);
	assert_string_equal(got, want);
}

static void assert_dry_run(struct fixture *fx, const char *want)
{
	cleanup_free char *got = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&got, &len);

	assert_non_null(out);
	assert_int_equal(report_dry_run(out, &fx->plan), 0);
	fclose(out);
	assert_string_equal(got, want);
}

/* ---- the table ---- */

static void table_shows_a_row_for_what_is_not_there(void **state)
{
	struct fixture *fx = *state;
	struct finding *f;

	subsystem(fx, "mine", NQN);
	present(fx, line(fx, 1, NULL, NULL), 1, "nvme0n1");
	f = finding(fx, line(fx, 0, UUID_A, "pvc-4f1e"), STATE_HIDDEN, ACTION_RESCAN, "nvme3 lists NSID 17");
	f->nsid = 17;
	assert_table(fx, (struct report_options){ 0 },
		     "NAME                                                 NSID STATE  ACTION PATHS DEVICE EVIDENCE\n"
		     "mine                                                                                 "
		     "1 of 2 present, 2 of 2 controllers live: " NQN "\n"
		     "`-pvc-4f1e uuid=" UUID_A "   17 hidden rescan     0        nvme3 lists NSID 17\n");
}

static void table_with_all_shows_what_is_there_too(void **state)
{
	struct fixture *fx = *state;

	subsystem(fx, "mine", NQN);
	present(fx, line(fx, 0, UUID_A, NULL), 12, "nvme0n2");
	finding(fx, line(fx, 3, NULL, NULL), STATE_UNMAPPED, ACTION_NONE, "not listed by nvme3");
	assert_table(fx, (struct report_options){ .all = true },
		     "NAME                                        NSID STATE    ACTION PATHS DEVICE  EVIDENCE\n"
		     "mine                                                                           "
		     "1 of 2 present, 2 of 2 controllers live: " NQN "\n"
		     "|-uuid=" UUID_A "   12 present  none       2 nvme0n2\n"
		     "`-nsid=3                                       3 unmapped none       0         "
		     "not listed by nvme3\n");
}

static void table_of_a_healthy_host_has_one_row_a_subsystem(void **state)
{
	struct fixture *fx = *state;

	subsystem(fx, "a", "nqn.a");
	present(fx, line(fx, 1, NULL, NULL), 1, "nvme0n1");
	subsystem(fx, "b", "nqn.b")->n_ctrl = 1;
	last_subsys(fx)->n_live = 1;
	present(fx, line(fx, 1, NULL, NULL), 1, "nvme1n1");
	assert_table(fx, (struct report_options){ 0 },
		     "NAME NSID STATE ACTION PATHS DEVICE EVIDENCE\n"
		     "a                                   1 of 1 present, 2 of 2 controllers live: nqn.a\n"
		     "b                                   1 of 1 present, 1 of 1 controller live: nqn.b\n");
}

/* A namespace that is expected by its NSID, or by `all`, goes by the identity that its device shows. */
static void table_names_what_all_stands_for(void **state)
{
	struct fixture *fx = *state;
	struct finding *f;

	subsystem(fx, "mine", NQN);
	f = present(fx, NULL, 7, "nvme0n1");
	assert_int_equal(ident_parse(&fx->disk[0].id, IDENT_UUID, UUID_B), 0);
	assert_ptr_equal(f->disk, &fx->disk[0]);
	f = finding(fx, NULL, STATE_HIDDEN, ACTION_RESCAN, "nvme3 lists NSID 8");
	f->nsid = 8;
	assert_table(fx, (struct report_options){ .all = true },
		     "NAME                                        NSID STATE   ACTION PATHS DEVICE  EVIDENCE\n"
		     "mine                                                                          "
		     "1 of 2 present, 2 of 2 controllers live: " NQN "\n"
		     "|-uuid=" UUID_B "    7 present none       2 nvme0n1\n"
		     "`-nsid=8                                       8 hidden  rescan     0         "
		     "nvme3 lists NSID 8\n");
}

static void table_says_that_the_list_behind_all_is_unknown(void **state)
{
	struct fixture *fx = *state;
	struct expect_ns *all = line(fx, 0, NULL, NULL);

	all->all = true;
	subsystem(fx, "mine", NQN);
	finding(fx, all, STATE_UNKNOWN, ACTION_NONE, "its list of namespaces is not known: nvme3 did not answer");
	assert_table(fx, (struct report_options){ 0 },
		     "NAME  NSID STATE   ACTION PATHS DEVICE EVIDENCE\n"
		     "mine                                   0 of 1 present, 2 of 2 controllers live: " NQN "\n"
		     "`-all      unknown none       0        "
		     "its list of namespaces is not known: nvme3 did not answer\n");
}

static void table_says_how_old_an_answer_is(void **state)
{
	struct fixture *fx = *state;

	subsystem(fx, "mine", NQN);
	finding(fx, line(fx, 3, NULL, NULL), STATE_UNMAPPED, ACTION_NONE, "not listed by nvme3")->answered_at =
		NOW - 75 * NS_PER_SEC;
	assert_table(fx, (struct report_options){ .remembered = true },
		     "NAME     NSID STATE    ACTION PATHS DEVICE EVIDENCE\n"
		     "mine                                       0 of 1 present, 2 of 2 controllers live: " NQN "\n"
		     "`-nsid=3    3 unmapped none       0        not listed by nvme3 (asked 1 min 15 s ago)\n");
}

/* An answer that claims to be of the future is not older than now. */
static void table_survives_a_time_ahead(void **state)
{
	struct fixture *fx = *state;
	struct finding *f;

	subsystem(fx, "mine", NQN);
	f = finding(fx, line(fx, 3, NULL, NULL), STATE_HIDDEN, ACTION_GRACE, "missing");
	f->answered_at = NOW + NS_PER_SEC;
	f->until = NOW - NS_PER_SEC;
	assert_table(fx, (struct report_options){ .remembered = true },
		     "NAME     NSID STATE  ACTION PATHS DEVICE EVIDENCE\n"
		     "mine                                     0 of 1 present, 2 of 2 controllers live: " NQN "\n"
		     "`-nsid=3    3 hidden grace      0        missing; given 0 s more to appear by itself "
		     "(asked 0 s ago)\n");
}

static void table_says_who_can_tell_why_something_is_missing(void **state)
{
	struct fixture *fx = *state;

	subsystem(fx, "mine", NQN);
	finding(fx, line(fx, 3, NULL, NULL), STATE_MISSING, ACTION_NONE, NULL);
	assert_table(fx, (struct report_options){ .remembered = true },
		     "NAME     NSID STATE   ACTION PATHS DEVICE EVIDENCE\n"
		     "mine                                      0 of 1 present, 2 of 2 controllers live: " NQN "\n"
		     "`-nsid=3    3 missing none       0        "
		     "nobody has asked the controllers why yet: status --probe does\n");
}

static void table_of_a_disconnected_subsystem(void **state)
{
	struct fixture *fx = *state;
	struct subsys_finding *sf = subsystem(fx, "mine", NQN);

	sf->n_ctrl = sf->n_live = 0;
	finding(fx, line(fx, 3, NULL, NULL), STATE_DISCONNECTED, ACTION_NONE, "this host is not connected to it");
	assert_table(fx, (struct report_options){ 0 },
		     "NAME     NSID STATE        ACTION PATHS DEVICE EVIDENCE\n"
		     "mine                                           0 of 1 present, not connected: " NQN "\n"
		     "`-nsid=3    3 disconnected none       0        this host is not connected to it\n");
}

/* DEVICE is the device of the namespace; what holds its NSID instead is told in the evidence. */
static void table_of_a_conflict_names_the_device_in_the_way(void **state)
{
	struct fixture *fx = *state;
	struct finding *f;

	subsystem(fx, "mine", NQN);
	f = present(fx, line(fx, 3, UUID_A, NULL), 3, "nvme0n1");
	f->state = STATE_CONFLICT;
	f->n_paths = 0;
	f->evidence = xstrdup("NSID 3 is another namespace");
	last_subsys(fx)->n_good = 0;
	assert_table(fx, (struct report_options){ 0 },
		     "NAME                                        NSID STATE    ACTION PATHS DEVICE EVIDENCE\n"
		     "mine                                                                          "
		     "0 of 1 present, 2 of 2 controllers live: " NQN "\n"
		     "`-uuid=" UUID_A "    3 conflict none       0        "
		     "NSID 3 is another namespace (nvme0n1)\n");
}

static void table_without_any_subsystem_says_so(void **state)
{
	assert_table(*state, (struct report_options){ 0 },
		     "nothing is expected: no subsystem is configured, or `nqn = *` and none is connected\n");
}

static void table_says_that_another_process_is_at_work(void **state)
{
	struct fixture *fx = *state;

	subsystem(fx, "mine", NQN)->locked_out = true;
	present(fx, line(fx, 1, NULL, NULL), 1, "nvme0n1");
	assert_table(fx, (struct report_options){ 0 },
		     "NAME NSID STATE ACTION PATHS DEVICE EVIDENCE\n"
		     "mine                                1 of 1 present, 2 of 2 controllers live, "
		     "another nvme-nsheal is at work on it: " NQN "\n");
}

/* Where it breaks lines is libsmartcols's affair: within the width, and nothing is lost. */
static void table_wraps_the_evidence_on_a_terminal(void **state)
{
	struct fixture *fx = *state;
	cleanup_free char *got = NULL;
	size_t len = 0, column = 0, n = 0;
	FILE *out = open_memstream(&got, &len);
	char letters[512];

	subsystem(fx, "mine", "nqn.a");
	finding(fx, line(fx, 3, NULL, NULL), STATE_UNMAPPED, ACTION_NONE,
		"not listed by nvme3, nvme4: the storage does not map it");
	assert_int_equal(report_table(out, &fx->plan, &(struct report_options){ .width = 80 }), 0);
	fclose(out);
	for (size_t i = 0; i < len; i++) {
		column = got[i] == '\n' ? 0 : column + 1;
		assert_true(column <= 80);
		if (!strchr(" \n|", got[i]))
			letters[n++] = got[i];
	}
	letters[n] = '\0';
	assert_string_equal(letters, "NAMENSIDSTATEACTIONPATHSDEVICEEVIDENCE"
				     "mine0of1present,2of2controllerslive:nqn.a"
				     "`-nsid=33unmappednone0notlistedbynvme3,nvme4:thestoragedoesnotmapit");
}

static void table_tells_the_evidence_below_on_a_narrow_terminal(void **state)
{
	struct fixture *fx = *state;
	struct finding *f;

	subsystem(fx, "a", "nqn.a");
	for (uint32_t nsid = 1; nsid <= 2; nsid++)
		finding(fx, line(fx, nsid, NULL, NULL), STATE_UNMAPPED, ACTION_NONE, "not listed by nvme3");
	subsystem(fx, "b", "nqn.b");
	f = finding(fx, line(fx, 3, NULL, NULL), STATE_HIDDEN, ACTION_GRACE, "nvme5 lists it");
	f->until = NOW + 3 * NS_PER_SEC;
	assert_table(fx, (struct report_options){ .width = 40 },
		     "NAME     NSID STATE    ACTION PATHS DEVICE\n"
		     "a\n"
		     "|-nsid=1    1 unmapped none       0\n"
		     "`-nsid=2    2 unmapped none       0\n"
		     "b\n"
		     "`-nsid=3    3 hidden   grace      0\n"
		     "\n"
		     "a: 0 of 2 present, 2 of 2 controllers live: nqn.a\n"
		     "a: 2 namespaces are unmapped: nsid=1, nsid=2: not listed by nvme3\n"
		     "b: 0 of 1 present, 2 of 2 controllers live: nqn.b\n"
		     "b: nsid=3 is hidden, grace: nvme5 lists it; given 3 s more to appear by itself\n");
}

static void table_is_coloured_only_if_told_so(void **state)
{
	struct fixture *fx = *state;
	cleanup_free char *got = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&got, &len);

	subsystem(fx, "mine", NQN);
	finding(fx, line(fx, 3, NULL, NULL), STATE_UNMAPPED, ACTION_NONE, "not listed");
	assert_int_equal(report_table(out, &fx->plan, &(struct report_options){ .color = true }), 0);
	fflush(out);
	assert_non_null(strstr(got, "\033[31munmapped"));
	rewind(out);
	assert_int_equal(report_table(out, &fx->plan, &(struct report_options){ 0 }), 0);
	fclose(out);
	got[len] = '\0'; /* the second table is the shorter one */
	assert_null(strchr(got, '\033'));
}

/* Labels, names, NQNs, device names, evidence: bytes from outside. None reaches a terminal, none breaks a row. */
static void table_disarms_hostile_names(void **state)
{
	struct fixture *fx = *state;
	cleanup_free char *got = NULL;
	size_t len = 0, rows = 0;
	FILE *out = open_memstream(&got, &len);
	char huge[4000];
	struct finding *f;

	memset(huge, 'x', sizeof(huge) - 1);
	huge[sizeof(huge) - 1] = '\0';
	subsystem(fx, "la\033]0;owned\abel\n", "nqn.\033[2J\r\nb\xff");
	f = present(fx, line(fx, 0, UUID_A, "name\twith\n\x9b" "31mcontrols"), 1, "nvme0\n1");
	f->state = STATE_UNUSABLE;
	f->evidence = xstrdup("evidence\b\b\b\b\x7f\ntwo");
	finding(fx, line(fx, 2, NULL, huge), STATE_UNMAPPED, ACTION_NONE, huge);
	last_subsys(fx)->n_good = 0;
	assert_int_equal(report_table(out, &fx->plan, &(struct report_options){ 0 }), 0);
	fclose(out);
	for (size_t i = 0; i < len; i++) {
		rows += got[i] == '\n';
		assert_true(got[i] == '\n' || (got[i] >= ' ' && got[i] <= '~'));
	}
	assert_int_equal(rows, 4);
	assert_true(len < 4 * 1000);
	assert_non_null(strstr(got, "la?]0;owned?bel?"));
	assert_non_null(strstr(got, "nqn.?[2J??b?"));
	assert_non_null(strstr(got, "name?with??31mcontrols"));
	assert_non_null(strstr(got, "nvme0?1"));
	assert_non_null(strstr(got, "evidence?????"));
}

static void table_reports_a_full_disk(void **state)
{
	struct fixture *fx = *state;
	FILE *full = fopen("/dev/full", "we");

	assert_non_null(full);
	subsystem(fx, "mine", NQN);
	/* more than a stdio buffer holds, so that it fails in the middle */
	for (uint32_t nsid = 1; nsid <= 500; nsid++)
		finding(fx, line(fx, nsid, NULL, NULL), STATE_UNMAPPED, ACTION_NONE, "not listed by nvme3, nvme4");
	assert_int_equal(report_table(full, &fx->plan, &(struct report_options){ 0 }), -ENOSPC);
	fclose(full);
}

static void dry_run_reports_a_full_disk(void **state)
{
	FILE *full = fopen("/dev/full", "we");

	assert_non_null(full);
	assert_int_equal(report_dry_run(full, &((struct fixture *)*state)->plan), -ENOSPC);
	fclose(full);
}

/* ---- --dry-run ---- */

static void dry_run_of_a_healthy_host_has_nothing_to_do(void **state)
{
	struct fixture *fx = *state;

	subsystem(fx, "mine", NQN);
	present(fx, line(fx, 1, NULL, NULL), 1, "nvme0n1");
	assert_dry_run(fx, "nothing to do\n");
}

static void dry_run_says_each_rescan_and_what_is_left_alone(void **state)
{
	struct fixture *fx = *state;

	subsystem(fx, "a", "nqn.a");
	finding(fx, line(fx, 17, NULL, NULL), STATE_HIDDEN, ACTION_RESCAN, "nvme3 lists it");
	finding(fx, line(fx, 18, NULL, NULL), STATE_UNMAPPED, ACTION_NONE, "not listed by nvme3, nvme4");
	rescan(fx, 3, "NSID 17 would appear");
	rescan(fx, 4, "once nvme3 shows effect: NSID 17 would appear");
	subsystem(fx, "b", "nqn.b");
	finding(fx, line(fx, 1, NULL, NULL), STATE_HIDDEN, ACTION_BLOCKED, "a rescan would remove /dev/nvme1n3");
	assert_dry_run(fx, "a: would rescan nvme3: NSID 17 would appear\n"
			   "a: would rescan nvme4: once nvme3 shows effect: NSID 17 would appear\n"
			   "a: nsid=18 is unmapped: not listed by nvme3, nvme4\n"
			   "b: nsid=1 is hidden, blocked: a rescan would remove /dev/nvme1n3\n");
}

static void dry_run_with_nothing_to_rescan_says_why(void **state)
{
	struct fixture *fx = *state;

	subsystem(fx, "mine", NQN);
	finding(fx, line(fx, 18, NULL, NULL), STATE_UNMAPPED, ACTION_NONE, "not listed by nvme3");
	assert_dry_run(fx, "mine: nsid=18 is unmapped: not listed by nvme3\nnothing to do\n");
}

/* Questions to controllers change nothing: they are no part of what would be done. */
static void dry_run_does_not_mention_questions(void **state)
{
	struct fixture *fx = *state;

	subsystem(fx, "mine", NQN);
	rescan(fx, 3, NULL);
	fx->plan.act[0].kind = ACT_LIST;
	assert_dry_run(fx, "nothing to do\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(table_shows_a_row_for_what_is_not_there),
		T(table_with_all_shows_what_is_there_too),
		T(table_of_a_healthy_host_has_one_row_a_subsystem),
		T(table_names_what_all_stands_for),
		T(table_says_that_the_list_behind_all_is_unknown),
		T(table_says_how_old_an_answer_is),
		T(table_survives_a_time_ahead),
		T(table_says_who_can_tell_why_something_is_missing),
		T(table_of_a_disconnected_subsystem),
		T(table_of_a_conflict_names_the_device_in_the_way),
		T(table_without_any_subsystem_says_so),
		T(table_says_that_another_process_is_at_work),
		T(table_wraps_the_evidence_on_a_terminal),
		T(table_tells_the_evidence_below_on_a_narrow_terminal),
		T(table_is_coloured_only_if_told_so),
		T(table_disarms_hostile_names),
		T(table_reports_a_full_disk),
		T(dry_run_reports_a_full_disk),
		T(dry_run_of_a_healthy_host_has_nothing_to_do),
		T(dry_run_says_each_rescan_and_what_is_left_alone),
		T(dry_run_with_nothing_to_rescan_says_why),
		T(dry_run_does_not_mention_questions),
	};

	return cmocka_run_group_tests_name("report", tests, NULL, NULL);
}
