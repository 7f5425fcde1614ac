/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* nvme-nsheal-ask as a process: the controller that it opens, its lock, hanging, ends. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "asking.h"

/* --- the right controller ----------------------------------------------------------------------------------------- */

static void another_controller_under_that_number(void **state)
{
	struct asking *t = *state;
	struct controller *c = controller(t->f, 0, OTHER);

	assert_failed(ask_it(t, ASK_LIST), PROBE_GONE, "is another controller by now");
	assert_string_equal(asked(c), "");
}

/* What is open counts, not what its name leads to. */
static void the_number_of_the_open_device_counts(void **state)
{
	struct asking *t = *state;
	struct controller *c = controller(t->f, 0, NQN);

	number_passes_to(c, controller(t->f, 1, OTHER));
	assert_failed(ask_it(t, ASK_LIST), PROBE_GONE, "is another controller by now");
	assert_string_equal(asked(c), "");
}

static void nqns_as_sysfs_shows_them(void **state)
{
	static const struct {
		const char *sysfs;
		enum probe_status status;
	} rows[] = {
		{ NQN, PROBE_IDLE },        { NQN "   ", PROBE_IDLE }, /* the kernel pads those that it makes up */
		{ NQN "b", PROBE_GONE },    { " " NQN, PROBE_GONE },   { "(efault)", PROBE_GONE },
		{ "", PROBE_GONE },
	};
	struct asking *t = *state;
	struct controller *c = controller(t->f, 0, NQN);

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		attribute(c, "subsysnqn", rows[i].sysfs);
		assert_int_equal(ask_it(t, ASK_LIST)->status, rows[i].status);
		ask_release(t->a, 0); /* it is looked at when the device is opened */
	}
	attribute(c, "subsysnqn", NQN);
	assert_int_equal(ask_request(t->a, 0, NQN "  ", NULL, ASK_LIST, NULL, 0, t->now), 0);
	wait_for_answer(t, t->a, probes_find(&t->probes, 0, NQN "  "));
	assert_int_equal(probes_find(&t->probes, 0, NQN "  ")->status, PROBE_IDLE);
}

static void the_host_identity_counts_if_it_is_given(void **state)
{
	struct asking *t = *state;
	struct controller *c = controller(t->f, 0, NQN);

	assert_int_equal(ask_request(t->a, 0, NQN, "nqn.host", ASK_LIST, NULL, 0, t->now), 0);
	wait_for_answer(t, t->a, probe(t, 0));
	assert_int_equal(probe(t, 0)->status, PROBE_IDLE);
	attribute(c, "hostnqn", "nqn.other-host");
	ask_it(t, ASK_LIST);
	assert_int_equal(probe(t, 0)->status, PROBE_IDLE);
	ask_release(t->a, 0);
	assert_int_equal(ask_request(t->a, 0, NQN, "nqn.host", ASK_LIST, NULL, 0, t->now), 0);
	wait_for_answer(t, t->a, probe(t, 0));
	assert_failed(probe(t, 0), PROBE_GONE, "is another controller by now");
}

/* One that was opened for any host identity is opened anew when a certain one is wanted. */
static void a_host_identity_that_is_given_later(void **state)
{
	struct asking *t = *state;
	struct controller *c = controller(t->f, 0, NQN);

	ask_it(t, ASK_LIST);
	attribute(c, "hostnqn", "nqn.other-host");
	asked(c);
	assert_int_equal(ask_request(t->a, 0, NQN, "nqn.host", ASK_LIST, NULL, 0, t->now), 0);
	wait_for_answer(t, t->a, probe(t, 0));
	assert_failed(probe(t, 0), PROBE_GONE, "is another controller by now");
	assert_string_equal(asked(c), "");
}

static void one_that_is_not_live(void **state)
{
	struct asking *t = *state;
	struct controller *c = controller(t->f, 0, NQN);

	attribute(c, "state", "connecting");
	assert_failed(ask_it(t, ASK_LIST), PROBE_GONE, "is not live");
	assert_string_equal(asked(c), "");
	attribute(c, "state", "live");
	assert_listed(ask_it(t, ASK_LIST), NULL, 0);
}

static void one_that_is_not_there(void **state)
{
	struct asking *t = *state;

	assert_failed(ask_it(t, ASK_LIST), PROBE_GONE, "cannot be opened: No such file or directory");
}

static void nobody_opens_what_is_no_controller(void **state)
{
	static const char *const names[] = { "nvme", "nvme0n1", "nvme0/../nvme0", "/dev/nvme0", "sda", "", "nvme-1",
					     "nvme1234567890" };
	struct asking *t = *state;

	controller(t->f, 0, NQN);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		cleanup_free char *command =
			xasprintf("%s '%s' %s '' lock </dev/null", asker(t->f), names[i], NQN);
		char line[80] = "";
		FILE *out = popen(command, "r");

		assert_non_null(out);
		assert_non_null(fgets(line, sizeof(line), out));
		assert_string_equal(line, "error -22 Invalid argument\n");
		assert_int_not_equal(pclose(out), 0);
	}
}

/* --- hanging ------------------------------------------------------------------------------------------------------ */

static void hang(struct asking *t, struct controller *c)
{
	hangs(c, CNS_LIST, 0);
	assert_int_equal(request(t, ASK_LIST, NULL, 0), 0);
	while (!ask_collect(t->a, t->now)) /* ready: it gets the request */
		wait_for_children(t->a);
	wait_until_it_hangs(c);
}

static void no_answer_within_the_deadline(void **state)
{
	struct asking *t = *state;
	struct controller *c = controller(t->f, 0, NQN);

	hang(t, c);
	assert_int_equal(ask_wake(t->a), t->now + ASK_DEADLINE);
	assert_false(ask_collect(t->a, t->now + ASK_DEADLINE - 1));
	assert_int_equal(probe(t, 0)->status, PROBE_RUNNING);
	assert_true(ask_collect(t->a, t->now + ASK_DEADLINE));
	assert_failed(probe(t, 0), PROBE_HUNG, "gave no answer within 10 s");
	assert_int_equal(ask_wake(t->a), TIME_NEVER);
	assert_false(ask_collect(t->a, t->now + 2 * ASK_DEADLINE));
}

static void another_deadline(void **state)
{
	struct asking *t = *state;

	ask_set_deadline(t->a, 350 * NS_PER_MS);
	hang(t, controller(t->f, 0, NQN));
	assert_int_equal(ask_wake(t->a), t->now + 350 * NS_PER_MS);
	ask_collect(t->a, t->now + 350 * NS_PER_MS);
	assert_failed(probe(t, 0), PROBE_HUNG, "gave no answer within 350 ms");
}

static void one_that_hangs_delays_nobody(void **state)
{
	struct asking *t = *state;
	struct controller *other = controller(t->f, 1, NQN);

	map(other, 1);
	hang(t, controller(t->f, 0, NQN));
	assert_int_equal(ask_request(t->a, 1, NQN, NULL, ASK_LIST, NULL, 0, t->now), 0);
	wait_for_answer(t, t->a, probe(t, 1));
	assert_listed(probe(t, 1), (const uint32_t[]){ 1 }, 1);
	assert_int_equal(probe(t, 0)->status, PROBE_RUNNING);
}

/* It is not killed, not waited for, and ends by itself once the kernel lets it. */
static void a_hung_child_is_left_alone_until_it_has_ended(void **state)
{
	struct asking *t = *state;
	struct controller *c = controller(t->f, 0, NQN);
	pid_t pid;

	hang(t, c);
	pid = child_pid();
	ask_collect(t->a, t->now + ASK_DEADLINE);
	assert_int_equal(kill(pid, 0), 0);
	assert_int_equal(request(t, ASK_LIST, NULL, 0), -EHOSTDOWN);
	ask_release(t->a, 0);
	assert_int_equal(request(t, ASK_LIST, NULL, 0), -EHOSTDOWN);
	assert_int_equal(probe(t, 0)->status, PROBE_HUNG);
	assert_string_equal(asked(c), "02h:0");
	let_go(c);
	assert_true(ends(pid, false));
	assert_listed(ask_it(t, ASK_LIST), NULL, 0);
}

static void a_later_run_leaves_a_hung_controller_alone(void **state)
{
	struct asking *t = *state;
	struct controller *c = controller(t->f, 0, NQN);
	struct probes later = { 0 };
	struct ask *a = ask_new(asker(t->f), rundir(t->f), 4, &later);
	pid_t pid;

	hang(t, c);
	pid = child_pid();
	ask_free(t->a); /* the first run is over */
	t->a = NULL;
	assert_int_equal(ask_request(a, 0, NQN, NULL, ASK_LIST, NULL, 0, t->now), 0);
	wait_for_answer(t, a, probes_find(&later, 0, NQN));
	assert_failed(probes_find(&later, 0, NQN), PROBE_BUSY, "is still being asked by another process");
	assert_string_equal(asked(c), "02h:0");
	let_go(c);
	assert_true(ends(pid, false));
	assert_int_equal(ask_request(a, 0, NQN, NULL, ASK_LIST, NULL, 0, t->now), 0);
	wait_for_answer(t, a, probes_find(&later, 0, NQN));
	assert_int_equal(probes_find(&later, 0, NQN)->status, PROBE_IDLE);
	ask_free(a);
	probes_free(&later);
}

/* Each answer is progress, and a list of many slow pages has not hung. */
static void slow_is_not_hung(void **state)
{
	struct asking *t = *state;
	struct controller *c = controller(t->f, 0, NQN);

	for (uint32_t n = 1; n <= 1024; n++)
		map(c, n);
	answers_after_ms(c, CNS_LIST, 1100);
	hangs(c, CNS_LIST, 1024);
	assert_int_equal(request(t, ASK_LIST, NULL, 0), 0);
	while (!ask_collect(t->a, t->now))
		wait_for_children(t->a);
	wait_for_children(t->a);
	ask_collect(t->a, t->now + ASK_DEADLINE - 1); /* the first page came just in time */
	wait_until_it_hangs(c);
	ask_collect(t->a, t->now + 2 * ASK_DEADLINE - 2);
	assert_int_equal(probe(t, 0)->status, PROBE_RUNNING);
	ask_collect(t->a, t->now + 2 * ASK_DEADLINE - 1);
	assert_int_equal(probe(t, 0)->status, PROBE_HUNG);
	assert_int_equal(probe(t, 0)->n_ns, 0);
}

static void a_rescan_whose_answer_nobody_knows_counts_as_refused(void **state)
{
	struct asking *t = *state;

	controller(t->f, 0, NQN);
	assert_int_equal(request(t, ASK_RESCAN, NULL, 0), 0);
	ask_collect(t->a, t->now + ASK_DEADLINE);
	assert_int_equal(probe(t, 0)->rescan_error, -EIO);
}

/* Whoever captures our stderr, or wants to unmount where we were started, does not wait for a hung child. */
static void a_hung_child_holds_nothing_of_its_starters(void **state)
{
	struct asking *t = *state;
	int saved = dup(STDERR_FILENO), ends_of[2];
	ssize_t n;
	char c;

	assert_int_equal(pipe2(ends_of, O_CLOEXEC), 0);
	dup2(ends_of[1], STDERR_FILENO);
	hang(t, controller(t->f, 0, NQN));
	dup2(saved, STDERR_FILENO);
	close(saved);
	close(ends_of[1]);
	while ((n = read(ends_of[0], &c, 1)) > 0)
		; /* newer umockdev has something to say there; that its end comes is what counts */
	assert_int_equal(n, 0);
	close(ends_of[0]);
	{
		cleanup_free char *link = xasprintf("/proc/%d/cwd", child_pid());
		char where[64] = "";

		assert_true(readlink(link, where, sizeof(where) - 1) > 0);
		assert_string_equal(where, "/");
	}
}

/* --- the lock ----------------------------------------------------------------------------------------------------- */

static void the_lock_is_for_nobody_else_and_lasts_as_long_as_the_child(void **state)
{
	struct asking *t = *state;
	struct stat st;
	pid_t pid;
	int fd;

	controller(t->f, 0, NQN);
	ask_it(t, ASK_LIST);
	pid = child_pid();
	assert_int_equal(stat("run/ask-nvme0", &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	fd = open("run/ask-nvme0", O_RDWR | O_CLOEXEC);
	assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), -1);
	assert_int_equal(errno, EWOULDBLOCK);
	ask_release(t->a, 0);
	assert_true(ends(pid, false));
	assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
	close(fd);
}

/* That of a run that has just ended, which is a matter of milliseconds: not busy, which would count as hung. */
static void an_idle_child_gives_way(void **state)
{
	struct asking *t = *state;
	int fd;

	controller(t->f, 0, NQN);
	fd = open("run/ask-nvme0", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
	assert_int_equal(request(t, ASK_LIST, NULL, 0), 0);
	usleep(100000);
	assert_false(ask_collect(t->a, t->now));
	close(fd);
	wait_for_answer(t, t->a, probe(t, 0));
	assert_int_equal(probe(t, 0)->status, PROBE_IDLE);
}

/* Not the controller's fault, and not the same as one that has gone. */
static void a_lock_that_cannot_be_had(void **state)
{
	struct asking *t = *state;
	struct controller *c = controller(t->f, 0, NQN);

	assert_int_equal(symlink("/etc/hostname", "run/ask-nvme0"), 0);
	assert_failed(ask_it(t, ASK_LIST), PROBE_FAILED, "run/ask-nvme0: Too many levels of symbolic links");
	assert_int_equal(unlink("run/ask-nvme0"), 0);
	assert_int_equal(rmdir("run"), 0);
	assert_failed(ask_it(t, ASK_LIST), PROBE_FAILED, "run/ask-nvme0: No such file or directory");
	assert_string_equal(asked(c), "");
}

/* --- by hand ------------------------------------------------------------------------------------------------------ */

/* What it says, all of it; its status is left in *status. */
static char *said(const struct asking *t, const char *requests, const char *arguments, int *status)
{
	cleanup_free char *command = xasprintf("printf '%s' | %s %s 2>&1", requests, asker(t->f), arguments);
	char text[4096] = "";
	FILE *out = popen(command, "r");

	assert_non_null(out);
	text[fread(text, 1, sizeof(text) - 1, out)] = '\0';
	*status = pclose(out);
	return xstrdup(text);
}

static void started_by_a_person(void **state)
{
	static const struct {
		const char *arguments, *words;
		bool good;
	} rows[] = {
		{ "--help", "Usage: nvme-nsheal-ask NAME NQN HOSTNQN LOCKFILE\n", true },
		{ "--help", "not meant for people", true },
		{ "--version", "nvme-nsheal-ask " VERSION "\n", true },
		{ "", "Usage: ", false },
		{ "nvme0 " NQN " ''", "Usage: ", false },
		{ "--help me", "Usage: ", false },
	};
	struct asking *t = *state;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		int status;
		cleanup_free char *text = said(t, "", rows[i].arguments, &status);

		assert_non_null(strstr(text, rows[i].words));
		assert_int_equal(status == 0, rows[i].good);
	}
}

static void requests_that_are_none(void **state)
{
	static const struct {
		const char *requests, *said;
	} rows[] = {
		{ "", "" },
		{ "frobnicate\\n", "error -38 no such request\n" },
		{ "\\n", "error -38 no such request\n" },
		{ "identify x\\n", "error -22 not an NSID\n" },
		{ "identify 0\\n", "error -22 not an NSID\n" },
		{ "identify 4294967296\\n", "error -22 not an NSID\n" },
		{ "rescan", "" }, /* its writer ended in the middle of the line */
	};
	struct asking *t = *state;
	struct controller *c = controller(t->f, 0, NQN);

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		int status;
		cleanup_free char *text = said(t, rows[i].requests, "nvme0 " NQN " '' lock", &status);
		cleanup_free char *wanted = xasprintf("ready\n%s", rows[i].said);

		assert_string_equal(text, wanted);
		assert_int_equal(status, 0);
		assert_string_equal(asked(c), "");
	}
}

/* --- ends --------------------------------------------------------------------------------------------------------- */

static void a_child_that_is_killed(void **state)
{
	struct asking *t = *state;
	struct controller *c = controller(t->f, 0, NQN);

	ask_it(t, ASK_LIST);
	assert_int_equal(kill(child_pid(), SIGSTOP), 0);
	asked(c);
	assert_int_equal(request(t, ASK_LIST, NULL, 0), 0);
	assert_int_equal(kill(child_pid(), SIGKILL), 0);
	wait_for_answer(t, t->a, probe(t, 0));
	assert_failed(probe(t, 0), PROBE_FAILED, "its child ended without an answer");
	assert_string_equal(asked(c), "");
	assert_listed(ask_it(t, ASK_LIST), NULL, 0);
}

static void a_child_that_is_killed_later_takes_no_answer_back(void **state)
{
	struct asking *t = *state;
	struct controller *c = controller(t->f, 0, NQN);
	pid_t pid;

	map(c, 1);
	ask_it(t, ASK_LIST);
	fails(c, CNS_LIST, 0, INTERNAL_ERROR);
	ask_it(t, ASK_LIST);
	pid = child_pid();
	assert_int_equal(kill(pid, SIGKILL), 0);
	wait_for_children(t->a);
	ask_collect(t->a, t->now);
	assert_failed(probe(t, 0), PROBE_FAILED, "failed: Internal Error");
	assert_int_equal(probe(t, 0)->n_listed, 1);
	fails(c, CNS_LIST, 0, 0);
	assert_listed(ask_it(t, ASK_LIST), (const uint32_t[]){ 1 }, 1);
	assert_int_not_equal(child_pid(), pid);
}

static void children_end_when_their_starter_does(void **state)
{
	struct asking *t = *state;
	pid_t pid;

	controller(t->f, 0, NQN);
	ask_it(t, ASK_LIST);
	pid = child_pid();
	ask_free(t->a);
	t->a = NULL;
	assert_true(ends(pid, false));
}

/* The rest of what it was asked for would be for nobody. */
static void nothing_more_is_asked_once_nobody_listens(void **state)
{
	struct asking *t = *state;
	struct controller *c = controller(t->f, 0, NQN);
	pid_t pid;

	for (uint32_t nsid = 1; nsid <= 3; nsid++)
		map_as(c, nsid, UUID1, NGUID1);
	hangs(c, CNS_DESCS, 1);
	assert_int_equal(request(t, ASK_IDENTIFY_ALL, NULL, 0), 0);
	wait_for_children(t->a);
	ask_collect(t->a, t->now);
	wait_until_it_hangs(c);
	pid = child_pid();
	ask_free(t->a);
	t->a = NULL;
	let_go(c);
	assert_true(ends(pid, false));
	assert_string_equal(asked(c), "02h:0 01h:0 03h:1");
}

/* Days of --watch must not fill the process table. */
static void released_children_are_reaped(void **state)
{
	struct asking *t = *state;
	pid_t pid;

	controller(t->f, 0, NQN);
	ask_it(t, ASK_LIST);
	pid = child_pid();
	ask_release(t->a, 0);
	assert_true(ends(pid, false));
	ask_collect(t->a, t->now);
	assert_true(ends(pid, true));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, start_asking, stop_asking)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		CASE(another_controller_under_that_number),
		CASE(the_number_of_the_open_device_counts),
		CASE(nqns_as_sysfs_shows_them),
		CASE(the_host_identity_counts_if_it_is_given),
		CASE(a_host_identity_that_is_given_later),
		CASE(one_that_is_not_live),
		CASE(one_that_is_not_there),
		CASE(nobody_opens_what_is_no_controller),
		CASE(no_answer_within_the_deadline),
		CASE(another_deadline),
		CASE(one_that_hangs_delays_nobody),
		CASE(a_hung_child_is_left_alone_until_it_has_ended),
		CASE(a_later_run_leaves_a_hung_controller_alone),
		CASE(slow_is_not_hung),
		CASE(a_rescan_whose_answer_nobody_knows_counts_as_refused),
		CASE(a_hung_child_holds_nothing_of_its_starters),
		CASE(the_lock_is_for_nobody_else_and_lasts_as_long_as_the_child),
		CASE(an_idle_child_gives_way),
		CASE(a_lock_that_cannot_be_had),
		CASE(started_by_a_person),
		CASE(requests_that_are_none),
		CASE(a_child_that_is_killed),
		CASE(a_child_that_is_killed_later_takes_no_answer_back),
		CASE(children_end_when_their_starter_does),
		CASE(nothing_more_is_asked_once_nobody_listens),
		CASE(released_children_are_reaped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
