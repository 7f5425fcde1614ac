/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What people read: the lines in the journal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "findings.h"
#include "log.h"
#include "report.h"

/*
 * The log lines of fn. stderr is a socket meanwhile, as in a unit: then each line begins with its priority, and each is
 * a message of its own: a line is one write.
 */
static char *logged(void (*fn)(struct fixture *fx), struct fixture *fx)
{
	char *text = xstrdup("");
	char buf[8192];
	int saved = dup(STDERR_FILENO), fd[2];
	ssize_t n;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fd), 0);
	assert_true(dup2(fd[1], STDERR_FILENO) >= 0);
	fn(fx);
	dup2(saved, STDERR_FILENO);
	close(saved);
	close(fd[1]);
	while ((n = read(fd[0], buf, sizeof(buf) - 1)) > 0) {
		char *longer;

		buf[n] = '\0';
		assert_ptr_equal(strchr(buf, '\n'), buf + n - 1);
		longer = xasprintf("%s%s", text, buf);
		free(text);
		text = longer;
	}
	close(fd[0]);
	return text;
}

static void log_news(struct fixture *fx)
{
	report_news(&fx->plan, NOW);
}

static void log_acts(struct fixture *fx)
{
	for (size_t i = 0; i < fx->plan.n_act; i++)
		report_act(&fx->plan, &fx->plan.act[i]);
}

static void assert_news(struct fixture *fx, const char *want)
{
	cleanup_free char *got = logged(log_news, fx);

	assert_string_equal(got, want);
}

static void nothing_new_is_no_line(void **state)
{
	struct fixture *fx = *state;

	subsystem(fx, "mine", NQN);
	present(fx, line(fx, 1, NULL, NULL), 1, "nvme0n1");
	finding(fx, line(fx, 3, NULL, NULL), STATE_UNMAPPED, ACTION_NONE, "not listed")->news = false;
	assert_news(fx, "");
}

static void news_that_somebody_must_mend_is_a_warning(void **state)
{
	struct fixture *fx = *state;

	subsystem(fx, "mine", NQN);
	finding(fx, line(fx, 0, UUID_A, "pvc-1"), STATE_UNMAPPED, ACTION_NONE, "not listed by nvme3");
	assert_news(fx, "<4>mine: pvc-1 uuid=" UUID_A " is unmapped: not listed by nvme3\n");
}

static void news_that_is_on_its_way_is_information(void **state)
{
	struct fixture *fx = *state;
	struct finding *f;

	subsystem(fx, "mine", NQN);
	f = finding(fx, line(fx, 3, NULL, NULL), STATE_HIDDEN, ACTION_GRACE, "missing");
	f->until = NOW + 5 * NS_PER_SEC;
	f = finding(fx, line(fx, 4, NULL, NULL), STATE_HIDDEN, ACTION_BACKOFF, "nvme3 lists it");
	f->until = NOW + 30 * NS_PER_SEC;
	f = finding(fx, line(fx, 5, NULL, NULL), STATE_HIDDEN, ACTION_SETTLING, "nvme3 lists it");
	f->until = NOW + 10 * NS_PER_SEC;
	finding(fx, line(fx, 6, NULL, NULL), STATE_UNREADY, ACTION_NONE, "nvme3 connecting");
	assert_news(fx, "<6>mine: nsid=3 is hidden, grace: missing; given 5 s more to appear by itself\n"
			"<6>mine: nsid=5 is hidden, settling: nvme3 lists it; rescanned; "
			"the effect may take another 10 s\n"
			"<6>mine: nsid=4 is hidden, backoff: nvme3 lists it; a rescan had no effect, "
			"the next is due in 30 s\n"
			"<6>mine: nsid=6 is unready: nvme3 connecting\n");
}

static void news_of_a_namespace_that_is_back_is_a_notice(void **state)
{
	struct fixture *fx = *state;
	struct finding *f;

	subsystem(fx, "mine", NQN);
	f = present(fx, line(fx, 0, UUID_A, "pvc-1"), 17, "nvme0n2");
	f->news = true;
	f->since = NOW - 12 * NS_PER_SEC;
	assert_news(fx, "<5>mine: pvc-1 uuid=" UUID_A " is there as nvme0n2, after 12 s\n");
}

static void news_of_several_that_are_back_is_one_line(void **state)
{
	struct fixture *fx = *state;

	subsystem(fx, "mine", NQN);
	for (uint32_t nsid = 1; nsid <= 4; nsid++) {
		struct finding *f = finding(fx, line(fx, nsid, NULL, NULL), STATE_PRESENT, ACTION_NONE, NULL);

		f->since = NOW - nsid * 10 * NS_PER_SEC;
	}
	assert_news(fx, "<5>mine: 4 namespaces are there again, after 40 s: nsid=1, nsid=2, nsid=3 and 1 more\n");
}

static void three_hundred_equal_findings_are_one_line(void **state)
{
	struct fixture *fx = *state;

	subsystem(fx, "mine", NQN);
	for (uint32_t nsid = 1; nsid <= 300; nsid++)
		finding(fx, line(fx, nsid, NULL, NULL), STATE_INACCESSIBLE, ACTION_NONE,
			"2 paths, ANA state inaccessible");
	assert_news(fx, "<4>mine: 300 namespaces are inaccessible: nsid=1, nsid=2, nsid=3 and 297 more: "
			"2 paths, ANA state inaccessible\n");
}

/* Only what is new is counted, and subsystems are not thrown together. */
static void equal_findings_of_two_subsystems_are_two_lines(void **state)
{
	struct fixture *fx = *state;

	subsystem(fx, "a", "nqn.a");
	finding(fx, line(fx, 1, NULL, NULL), STATE_UNMAPPED, ACTION_NONE, "not listed by nvme0");
	finding(fx, line(fx, 2, NULL, NULL), STATE_UNMAPPED, ACTION_NONE, "not listed by nvme0")->news = false;
	subsystem(fx, "b", "nqn.b");
	finding(fx, line(fx, 1, NULL, NULL), STATE_UNMAPPED, ACTION_NONE, "not listed by nvme1");
	assert_news(fx, "<4>a: nsid=1 is unmapped: not listed by nvme0\n"
			"<4>b: nsid=1 is unmapped: not listed by nvme1\n");
}

/* A `nqn = *` section stands for many subsystems: its label alone would not say which. */
static void news_of_a_section_for_every_subsystem_names_the_nqn(void **state)
{
	struct fixture *fx = *state;

	subsystem(fx, "any", "*")->nqn = NQN;
	finding(fx, line(fx, 1, NULL, NULL), STATE_UNMAPPED, ACTION_NONE, "not listed by nvme0");
	assert_news(fx, "<4>any (" NQN "): nsid=1 is unmapped: not listed by nvme0\n");
}

static void giving_up_points_to_the_kernels_log(void **state)
{
	struct fixture *fx = *state;

	subsystem(fx, "mine", NQN);
	finding(fx, line(fx, 1, NULL, NULL), STATE_HIDDEN, ACTION_GAVE_UP, "nvme0 lists it")->until =
		NOW + 3600 * NS_PER_SEC;
	assert_news(fx, "<4>mine: nsid=1 is hidden, gave-up: nvme0 lists it; rescans had no effect: "
			"look at the kernel's log; the next is due in 1 h\n");
}

static void blocked_says_what_is_in_the_way_and_nothing_else(void **state)
{
	struct fixture *fx = *state;

	subsystem(fx, "mine", NQN);
	finding(fx, line(fx, 1, NULL, NULL), STATE_HIDDEN, ACTION_BLOCKED,
		"a rescan of nvme0 would remove /dev/nvme0n3");
	assert_news(fx, "<4>mine: nsid=1 is hidden, blocked: a rescan of nvme0 would remove /dev/nvme0n3\n");
}

static void report_only_says_whether_the_kernel_or_the_configuration_wants_it(void **state)
{
	struct fixture *fx = *state;

	subsystem(fx, "a", "nqn.a");
	finding(fx, line(fx, 1, NULL, NULL), STATE_HIDDEN, ACTION_REPORT, "nvme0 lists it");
	subsystem(fx, "b", "nqn.b")->guarded = true;
	finding(fx, line(fx, 1, NULL, NULL), STATE_HIDDEN, ACTION_REPORT, "nvme1 lists it");
	assert_news(fx, "<4>a: nsid=1 is hidden, report: nvme0 lists it; not rescanned: the configuration says "
			"`action = report`\n"
			"<4>b: nsid=1 is hidden, report: nvme1 lists it; not rescanned: "
			"kernels 5.14.0-N.el9 before N = 586 can hang in a rescan; "
			"`kernel-guard = no` or `action = rescan` overrides that\n");
}

static void quiet_leaves_the_warnings(void **state)
{
	struct fixture *fx = *state;

	subsystem(fx, "mine", NQN);
	finding(fx, line(fx, 1, NULL, NULL), STATE_UNREADY, ACTION_NONE, "nvme3 connecting");
	finding(fx, line(fx, 2, NULL, NULL), STATE_UNMAPPED, ACTION_NONE, "not listed");
	log_set_level(LOG_LEVEL_WARNING);
	assert_news(fx, "<4>mine: nsid=2 is unmapped: not listed\n");
}

static void hostile_names_do_not_forge_lines(void **state)
{
	struct fixture *fx = *state;

	subsystem(fx, "mine\n<0>forged", NQN);
	finding(fx, line(fx, 1, NULL, "a\nb"), STATE_UNMAPPED, ACTION_NONE, "c\n<0>d");
	assert_news(fx, "<4>mine?<0>forged: a?b nsid=1 is unmapped: c?<0>d\n");
}

static void a_rescan_is_announced(void **state)
{
	struct fixture *fx = *state;
	cleanup_free char *got = NULL;

	subsystem(fx, "mine", NQN);
	rescan(fx, 3, "NSID 17 would appear");
	rescan(fx, 4, NULL);
	got = logged(log_acts, fx);
	assert_string_equal(got, "<5>mine: rescanning nvme3: NSID 17 would appear\n<5>mine: rescanning nvme4\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(nothing_new_is_no_line),
		T(news_that_somebody_must_mend_is_a_warning),
		T(news_that_is_on_its_way_is_information),
		T(news_of_a_namespace_that_is_back_is_a_notice),
		T(news_of_several_that_are_back_is_one_line),
		T(three_hundred_equal_findings_are_one_line),
		T(equal_findings_of_two_subsystems_are_two_lines),
		T(news_of_a_section_for_every_subsystem_names_the_nqn),
		T(giving_up_points_to_the_kernels_log),
		T(blocked_says_what_is_in_the_way_and_nothing_else),
		T(report_only_says_whether_the_kernel_or_the_configuration_wants_it),
		T(quiet_leaves_the_warnings),
		T(hostile_names_do_not_forge_lines),
		T(a_rescan_is_announced),
	};

	return cmocka_run_group_tests_name("report-lines", tests, NULL, NULL);
}
