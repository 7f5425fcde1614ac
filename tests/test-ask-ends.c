/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How the children are started, how many there are, how they end, and when they are given up. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "children.h"

/* ---- what the child is given ---- */

static void arguments(void **state)
{
	struct stage *s = *state;
	cleanup_free char *want = NULL, *want_without = NULL;

	child_is(s, PROLOGUE "printf '<%s>' \"$@\" >log; echo ready; take; echo done 0; take\n");
	assert_int_equal(ask_request(s->ask, 12, "nqn.a b  ", HOST, ASK_LIST, NULL, 0, T0), 0);
	assert_int_equal(collect_until_answered(s, probes_find(&s->probes, 12, "nqn.a b  "), T0), PROBE_IDLE);
	want = xasprintf("<nvme12><nqn.a b  ><" HOST "><%s/ask-nvme12>", s->dir);
	assert_file(s, "log", want);
	assert_int_equal(ask(s, 3, ASK_LIST, T0), PROBE_IDLE);
	want_without = xasprintf("<nvme3><" NQN "><><%s/ask-nvme3>", s->dir);
	assert_file(s, "log", want_without);
}

static void no_environment(void **state)
{
	struct stage *s = *state;

	assert_int_equal(setenv("OF_NO_INTEREST", "x", 1), 0);
	child_is(s, "#!/bin/sh\n/usr/bin/wc -c </proc/$$/environ >${0%/*}/log\n"
		    "echo ready; read -r r; echo done 0; read -r r\n");
	assert_int_equal(ask(s, 0, ASK_LIST, T0), PROBE_IDLE);
	assert_file(s, "log", "0\n");
	assert_int_equal(unsetenv("OF_NO_INTEREST"), 0);
}

/* The lock of a script that started us, the pipes of another child: nothing that somebody waits for the end of. */
static void no_descriptors_but_three(void **state)
{
	struct stage *s = *state;
	int lock = open("/dev/null", O_RDONLY); /* without O_CLOEXEC, as from a shell */

	child_is(s, ANSWERS);
	answer_is(s, "done 0\n");
	assert_int_equal(ask(s, 0, ASK_LIST, T0), PROBE_IDLE);
	assert_true(fcntl(lock, F_DUPFD, 77) >= 77);
	child_is(s, PROLOGUE "ls /proc/self/fd >log; exit\n"); /* 3 is what ls reads */
	assert_int_equal(ask(s, 1, ASK_LIST, T0), PROBE_FAILED);
	assert_file(s, "log", "0\n1\n2\n3\n");
	close(77);
	close(lock);
}

static void signals_and_session(void **state)
{
	struct stage *s = *state;
	cleanup_free char *status = NULL;
	unsigned long long ignored;
	sigset_t set;
	int pid, session;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	assert_int_equal(sigprocmask(SIG_BLOCK, &set, NULL), 0); /* as the loop does, for its signalfd */
	child_is(s, PROLOGUE "exec cat /proc/self/status >log\n");
	assert_int_equal(ask(s, 0, ASK_LIST, T0), PROBE_FAILED);
	assert_int_equal(sigprocmask(SIG_UNBLOCK, &set, NULL), 0);
	wait_for_file(s, "log");
	status = read_file(s, "log");
	assert_non_null(strstr(status, "SigBlk:\t0000000000000000\n"));
	assert_int_equal(sscanf(strstr(status, "SigIgn:"), "SigIgn: %llx", &ignored), 1);
	assert_int_equal(ignored & (1ULL << (SIGPIPE - 1)), 0);
	/* Ctrl-C at a terminal is not for it */
	assert_int_equal(sscanf(strstr(status, "\nPid:"), " Pid: %d", &pid), 1);
	assert_int_equal(sscanf(strstr(status, "NSsid:"), "NSsid: %d", &session), 1);
	assert_int_equal(pid, session);
}

/* It may yet be the wrong controller, and a rescan in the pipe of one that is killed there would count as asked. */
static void a_request_is_held_back_until_ready(void **state)
{
	struct stage *s = *state;
	cleanup_free char *gate = in_dir(s, "gate");
	cleanup_fd int fd = -1;

	assert_int_equal(mkfifo(gate, 0600), 0);
	fd = open(gate, O_RDWR | O_CLOEXEC);
	child_is(s, "#!/bin/bash\ncd \"${0%/*}\"; read -r go <gate; read -t 0 && echo early >log; echo ready\n"
		    "read -r r; echo $r >>log; echo done 0; read -r r\n");
	assert_int_equal(request(s, 0, ASK_RESCAN, T0), 0);
	assert_false(ask_collect(s->ask, T0));
	assert_int_equal(request(s, 0, ASK_LIST, T0), -EBUSY); /* one at a time */
	assert_int_equal(write_all(fd, "go\n", 3), 0);
	assert_int_equal(answer_of(s, 0, T0), PROBE_IDLE);
	assert_file(s, "log", "rescan\n");
}

/* ---- ends ---- */

static void ended_without_an_answer(void **state)
{
	static const char *const script[] = {
		PROLOGUE "exit 1\n",
		PROLOGUE "echo ready; exit 0\n",
		PROLOGUE "echo ready; take; echo ns 1 2; kill -9 $$\n",
		PROLOGUE "echo ready; take; printf 'ns 1\\ndone 1'\n", /* the last newline is missing */
	};
	struct stage *s = *state;

	for (size_t i = 0; i < ARRAY_SIZE(script); i++) {
		child_is(s, script[i]);
		assert_int_equal(ask(s, 0, ASK_LIST, T0), PROBE_FAILED);
		/* whichever of its pipes shows it first */
		assert_true(starts_with(probe(s, 0)->error, "could not be asked: "));
		assert_int_equal(probe(s, 0)->list_at, 0);
		assert_int_equal(n_open(s), 0);
	}
}

/* Out of memory took one that had nothing to do: not a word about it, and the next request starts another. */
static void an_idle_child_may_end(void **state)
{
	struct stage *s = *state;

	child_is(s, PROLOGUE "echo $$ >>log; echo ready; take; echo ns 1; echo done 1; exit\n");
	assert_int_equal(ask(s, 0, ASK_LIST, T0), PROBE_IDLE);
	wait_for_an_end();
	ask_collect(s->ask, T0 + 1);
	assert_int_equal(n_open(s), 0);
	assert_int_equal(probe(s, 0)->status, PROBE_IDLE);
	assert_null(probe(s, 0)->error);
	assert_int_equal(probe(s, 0)->n_listed, 1);
	assert_int_equal(ask(s, 0, ASK_LIST, T0 + 2), PROBE_IDLE);
	wait_for_an_end();
	assert_int_equal(ask(s, 0, ASK_LIST, T0 + 3), PROBE_IDLE); /* nobody has looked in between */
	assert_int_equal(n_lines(s, "log"), 3);
	ask_release(s->ask, 0);

	child_is(s, PROLOGUE "echo ready; take; echo error -5 I/O; exit\n");
	assert_int_equal(ask(s, 0, ASK_LIST, T0 + 4), PROBE_FAILED);
	while (n_open(s) > 0) {
		wait_for_children(s);
		ask_collect(s->ask, T0 + 5);
	}
	assert_failed(s, 0, "failed: I/O"); /* its end does not make its answer good */
}

static size_t count_fds(void)
{
	size_t n = 0;

	for (int fd = 0; fd < 1024; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static void no_program(void **state)
{
	struct stage *s = *state;
	size_t before = count_fds();

	places_are(s, 1);
	assert_int_equal(request(s, 0, ASK_LIST, T0), -ENOENT);
	assert_int_equal(request(s, 1, ASK_LIST, T0), -ENOENT); /* not -EBUSY: it takes no place */
	write_file(s, "child", ANSWERS, strlen(ANSWERS), 0600);
	assert_int_equal(request(s, 0, ASK_LIST, T0), -EACCES);
	assert_int_equal(n_open(s), 0);
	assert_int_equal(ask_wake(s->ask), TIME_NEVER);
	assert_int_equal(count_fds(), before);
}

/* ---- deadlines ---- */

#define DEADLINE (200 * NS_PER_MS)

static void hung(void **state)
{
	struct stage *s = *state;

	ask_set_deadline(s->ask, DEADLINE);
	child_is(s, PROLOGUE "echo ready; take; " HANGS);
	assert_int_equal(request(s, 0, ASK_RESCAN, T0), 0);
	assert_int_equal(ask_wake(s->ask), T0 + DEADLINE);
	progress_at(s, T0 + 1, DEADLINE); /* it is ready */
	wait_until_it_hangs(s);
	assert_false(ask_collect(s->ask, T0 + DEADLINE));
	assert_int_equal(probe(s, 0)->status, PROBE_RUNNING);
	assert_true(ask_collect(s->ask, T0 + 1 + DEADLINE));
	assert_int_equal(probe(s, 0)->status, PROBE_HUNG);
	assert_string_equal(probe(s, 0)->error, "gave no answer within 200 ms");
	assert_int_equal(probe(s, 0)->rescan_error, -EIO);
	assert_int_equal(n_open(s), 0);
	assert_int_equal(ask_wake(s->ask), TIME_NEVER);
	assert_int_equal(request(s, 0, ASK_LIST, T0 + 2 * DEADLINE), -EHOSTDOWN);
	ask_release(s->ask, 0);
	assert_int_equal(request(s, 0, ASK_LIST, T0 + 3600 * NS_PER_SEC), -EHOSTDOWN);
	assert_int_equal(probe(s, 0)->status, PROBE_HUNG);

	/* once it has ended after all, another one is asked */
	kill_hanging(s);
	wait_for_an_end();
	child_is(s, ANSWERS);
	answer_is(s, "ns 5\ndone 1\n");
	assert_int_equal(ask(s, 0, ASK_LIST, T0 + 3600 * NS_PER_SEC), PROBE_IDLE);
}

static void hung_before_it_was_ready(void **state)
{
	struct stage *s = *state;

	child_is(s, PROLOGUE HANGS);
	assert_int_equal(request(s, 0, ASK_LIST, T0), 0);
	wait_until_it_hangs(s);
	assert_false(ask_collect(s->ask, T0 + ASK_DEADLINE - 1));
	assert_true(ask_collect(s->ask, T0 + ASK_DEADLINE));
	assert_int_equal(probe(s, 0)->status, PROBE_HUNG);
	assert_string_equal(probe(s, 0)->error, "gave no answer within 10 s");
}

/* Lines do, whatever they say; half a line does not. */
static void progress_extends_the_deadline(void **state)
{
	struct stage *s = *state;
	cleanup_free char *gate = in_dir(s, "gate");
	cleanup_fd int fd = -1;

	assert_int_equal(mkfifo(gate, 0600), 0);
	fd = open(gate, O_RDWR | O_CLOEXEC);
	ask_set_deadline(s->ask, 10);
	child_is(s, PROLOGUE "echo ready; take; for line in 'ns 1 2' alive 'id 1 - - - -'; do\n"
			     "read -r go <gate; echo \"$line\"; done; read -r go <gate; printf 'id 2 - -'; " HANGS);
	assert_int_equal(request(s, 0, ASK_IDENTIFY_ALL, T0), 0);
	progress_at(s, T0 + 9, 10);
	for (int64_t now = T0 + 18; now <= T0 + 36; now += 9) {
		assert_int_equal(write_all(fd, "go\n", 3), 0);
		progress_at(s, now, 10);
		assert_int_equal(probe(s, 0)->status, PROBE_RUNNING);
	}
	assert_int_equal(write_all(fd, "go\n", 3), 0);
	wait_until_it_hangs(s);
	ask_collect(s->ask, T0 + 45);
	assert_int_equal(probe(s, 0)->status, PROBE_RUNNING);
	assert_int_equal(ask_wake(s->ask), T0 + 46);
	ask_collect(s->ask, T0 + 46);
	assert_int_equal(probe(s, 0)->status, PROBE_HUNG);
	assert_int_equal(probe(s, 0)->list_at, 0); /* the walk did not come to its end */
	assert_int_equal(probe(s, 0)->walk_at, 0);
}

static void one_that_hangs_holds_up_nobody(void **state)
{
	struct stage *s = *state;

	places_are(s, 1);
	child_is(s, PROLOGUE "echo ready; take; " HANGS);
	assert_int_equal(request(s, 0, ASK_LIST, T0), 0);
	assert_int_equal(request(s, 1, ASK_LIST, T0), -EBUSY); /* all places are taken */
	ask_collect(s->ask, T0);
	while (n_lines(s, "hangs") == 0)
		ask_collect(s->ask, T0 + poll(NULL, 0, 1));
	assert_true(ask_collect(s->ask, T0 + ASK_DEADLINE));
	child_is(s, ANSWERS);
	answer_is(s, "ns 1\ndone 1\n");
	assert_int_equal(ask(s, 1, ASK_LIST, T0 + ASK_DEADLINE), PROBE_IDLE); /* but not by one that is left alone */
	assert_int_equal(probe(s, 0)->status, PROBE_HUNG);
	assert_int_equal(probe(s, 1)->n_listed, 1);
}

/* ---- many ---- */

static void places(void **state)
{
	struct stage *s = *state;

	places_are(s, 2);
	child_is(s, ANSWERS);
	answer_is(s, "ns 1\ndone 1\n");
	assert_int_equal(request(s, 0, ASK_LIST, T0), 0);
	assert_int_equal(request(s, 1, ASK_LIST, T0), 0);
	assert_int_equal(request(s, 2, ASK_LIST, T0), -EBUSY);
	assert_null(probes_find(&s->probes, 2, NQN));
	ask_release(s->ask, 0); /* is at work */
	assert_int_equal(n_open(s), 2);
	assert_int_equal(answer_of(s, 0, T0), PROBE_IDLE);
	assert_int_equal(answer_of(s, 1, T0), PROBE_IDLE);
	assert_int_equal(request(s, 2, ASK_LIST, T0), -EBUSY); /* idle ones hold their place */
	ask_release(s->ask, 7);                                /* there is none */
	ask_release(s->ask, 0);
	assert_int_equal(n_open(s), 1);
	assert_int_equal(ask(s, 2, ASK_LIST, T0), PROBE_IDLE);
	assert_int_equal(probe(s, 0)->n_listed, 1); /* the answers stay */
	assert_int_equal(request(s, 0, ASK_LIST, T0), -EBUSY);
	ask_release(s->ask, 1);
	assert_int_equal(ask(s, 0, ASK_LIST, T0 + 1), PROBE_IDLE);
	assert_int_equal(n_lines(s, "log"), 4);
}

/* One number, two subsystems one after the other: their answers are not mixed. */
static void a_number_is_no_identity(void **state)
{
	struct stage *s = *state;
	const struct probe *other;

	child_is(s, PROLOGUE "echo ready; take; echo ns ${#2}; echo done 1; take\n");
	assert_int_equal(ask(s, 0, ASK_LIST, T0), PROBE_IDLE);
	assert_int_equal(ask_request(s->ask, 0, "nqn.other", NULL, ASK_LIST, NULL, 0, T0), 0);
	other = probes_find(&s->probes, 0, "nqn.other");
	assert_int_equal(collect_until_answered(s, other, T0), PROBE_IDLE);
	assert_non_null(probe_ns_find(other, strlen("nqn.other")));
	assert_null(probe_ns_find(other, strlen(NQN)));
	assert_non_null(probe_ns_find(probe(s, 0), strlen(NQN)));
}

/* Rule 10: only a child that was told the host NQN has compared it. */
static void another_host_nqn_is_another_child(void **state)
{
	static const char *const host[] = { NULL, HOST, HOST, NULL };
	struct stage *s = *state;

	child_is(s, PROLOGUE "echo \"<$3>\" >>log; echo ready; while :; do take; echo done 1; done\n");
	for (size_t i = 0; i < ARRAY_SIZE(host); i++) {
		assert_int_equal(ask_request(s->ask, 0, NQN, host[i], ASK_LIST, NULL, 0, T0), 0);
		assert_int_equal(answer_of(s, 0, T0), PROBE_IDLE);
	}
	assert_file(s, "log", "<>\n<" HOST ">\n");
	assert_int_equal(n_open(s), 1);
}

static void no_zombies(void **state)
{
	struct stage *s = *state;
	int64_t until = now_boottime() + PATIENCE_MS * NS_PER_MS;
	siginfo_t info;

	child_is(s, ANSWERS);
	answer_is(s, "done 1\n");
	for (int i = 0; i < 5; i++)
		assert_int_equal(ask(s, i, ASK_LIST, T0), PROBE_IDLE);
	for (int i = 0; i < 5; i++)
		ask_release(s->ask, i);
	answer_is(s, "nonsense\n");
	for (int i = 5; i < 8; i++)
		assert_int_equal(ask(s, i, ASK_LIST, T0), PROBE_FAILED);
	/* all of them end by themselves, and are collected by and by */
	while (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0) {
		assert_true(now_boottime() < until);
		ask_collect(s->ask, T0);
		poll(NULL, 0, 1);
	}
	assert_int_equal(errno, ECHILD);
}

/* stop_stage() holds that all but the one that hangs end by themselves. */
static void nothing_is_left_open(void **state)
{
	struct stage *s = *state;
	size_t before = count_fds();

	child_is(s, PROLOGUE "echo ready; take; " HANGS);
	assert_int_equal(request(s, 0, ASK_LIST, T0), 0);
	progress_at(s, T0, ASK_DEADLINE);
	while (n_lines(s, "hangs") == 0)
		ask_collect(s->ask, T0 + poll(NULL, 0, 1));
	assert_true(ask_collect(s->ask, T0 + ASK_DEADLINE));
	child_is(s, PROLOGUE "exit 1\n");
	assert_int_equal(ask(s, 1, ASK_LIST, T0), PROBE_FAILED);
	child_is(s, ANSWERS);
	answer_is(s, "done 1\n");
	assert_int_equal(ask(s, 2, ASK_LIST, T0), PROBE_IDLE); /* has nothing to do */
	assert_int_equal(request(s, 3, ASK_LIST, T0), 0);      /* has just been started */
	assert_true(count_fds() > before);
	ask_free(s->ask);
	s->ask = NULL;
	assert_int_equal(count_fds(), before);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, start_stage, stop_stage)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(arguments),
		CASE(no_environment),
		CASE(no_descriptors_but_three),
		CASE(signals_and_session),
		CASE(a_request_is_held_back_until_ready),
		CASE(ended_without_an_answer),
		CASE(an_idle_child_may_end),
		CASE(no_program),
		CASE(hung),
		CASE(hung_before_it_was_ready),
		CASE(progress_extends_the_deadline),
		CASE(one_that_hangs_holds_up_nobody),
		CASE(places),
		CASE(a_number_is_no_identity),
		CASE(another_host_nqn_is_another_child),
		CASE(no_zombies),
		CASE(nothing_is_left_open),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
