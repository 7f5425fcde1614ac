/* SPDX-License-Identifier: LGPL-2.1-or-later */
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

char *in_dir(const struct stage *s, const char *name)
{
	return xasprintf("%s/%s", s->dir, name);
}

void write_file(const struct stage *s, const char *name, const void *data, size_t n, mode_t mode)
{
	cleanup_free char *path = in_dir(s, name);
	cleanup_fd int fd = -1;

	unlink(path); /* anew: a child may not be done with the old one */
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
	assert_true(fd >= 0);
	assert_int_equal(write_all(fd, data, n), 0);
}

void answer_is(const struct stage *s, const char *text)
{
	write_file(s, "answer", text, strlen(text), 0600);
}

char *read_file(const struct stage *s, const char *name)
{
	cleanup_free char *path = in_dir(s, name);
	cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
	char buf[8192];
	ssize_t n = fd >= 0 ? read(fd, buf, sizeof(buf)) : 0;

	assert_true(n >= 0 && n < (ssize_t)sizeof(buf));
	return xstrndup(buf, (size_t)n);
}

void assert_file(const struct stage *s, const char *name, const char *text)
{
	cleanup_free char *got = read_file(s, name);

	assert_string_equal(got, text);
}

size_t n_lines(const struct stage *s, const char *name)
{
	cleanup_free char *text = read_file(s, name);
	size_t n = 0;

	for (const char *p = text; (p = strchr(p, '\n')); p++)
		n++;
	return n;
}

int start_stage(void **state)
{
	struct stage *s = xcalloc(1, sizeof(*s));

	signal(SIGPIPE, SIG_IGN); /* as main does */
	snprintf(s->dir, sizeof(s->dir), "/tmp/test-ask-XXXXXX");
	assert_non_null(mkdtemp(s->dir));
	s->program = in_dir(s, "child");
	s->ask = ask_new(s->program, s->dir, 8, &s->probes);
	*state = s;
	return 0;
}

void places_are(struct stage *s, size_t max)
{
	ask_free(s->ask);
	s->ask = ask_new(s->program, s->dir, max, &s->probes);
}

void kill_hanging(const struct stage *s)
{
	cleanup_free char *path = in_dir(s, "hangs"), *pid = read_file(s, "hangs");

	if (*pid)
		assert_int_equal(kill((pid_t)strtol(pid, NULL, 10), SIGKILL), 0);
	unlink(path);
}

/* Whatever a test did: when the pipes have ended, every child ends by itself, but for the one that hangs. */
int stop_stage(void **state)
{
	static const char *const files[] = { "child", "answer", "log", "gate" };
	struct stage *s = *state;

	ask_free(s->ask);
	kill_hanging(s);
	alarm(PATIENCE_MS / 1000); /* one that goes on is a failure */
	while (wait(NULL) > 0)
		continue;
	assert_int_equal(errno, ECHILD);
	alarm(0);
	probes_free(&s->probes);
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		cleanup_free char *path = in_dir(s, files[i]);

		unlink(path);
	}
	assert_int_equal(rmdir(s->dir), 0);
	free(s->program);
	free(s);
	return 0;
}

void child_is(const struct stage *s, const char *script)
{
	write_file(s, "child", script, strlen(script), 0700);
}

struct probe *probe(const struct stage *s, int instance)
{
	struct probe *p = probes_find(&s->probes, instance, NQN);

	assert_non_null(p);
	return p;
}

void assert_failed(const struct stage *s, int instance, const char *error)
{
	assert_int_equal(probe(s, instance)->status, PROBE_FAILED);
	assert_string_equal(probe(s, instance)->error, error);
}

int request(struct stage *s, int instance, enum ask_what what, int64_t now)
{
	return ask_request(s->ask, instance, NQN, NULL, what, NULL, 0, now);
}

size_t n_open(const struct stage *s)
{
	cleanup_free struct pollfd *fds = NULL;

	return ask_poll(s->ask, &fds, 0);
}

void wait_for_children(const struct stage *s)
{
	cleanup_free struct pollfd *fds = NULL;
	size_t n = ask_poll(s->ask, &fds, 0);

	assert_int_not_equal(n, 0);
	assert_true(poll(fds, n, PATIENCE_MS) > 0);
}

enum probe_status collect_until_answered(struct stage *s, const struct probe *p, int64_t now)
{
	while (p->status == PROBE_RUNNING) {
		wait_for_children(s);
		ask_collect(s->ask, now);
	}
	return p->status;
}

enum probe_status answer_of(struct stage *s, int instance, int64_t now)
{
	return collect_until_answered(s, probe(s, instance), now);
}

enum probe_status ask(struct stage *s, int instance, enum ask_what what, int64_t now)
{
	assert_int_equal(request(s, instance, what, now), 0);
	assert_int_equal(probe(s, instance)->status, PROBE_RUNNING);
	return answer_of(s, instance, now);
}

enum probe_status ask_about(struct stage *s, uint32_t nsid, int64_t now)
{
	assert_int_equal(ask_request(s->ask, 0, NQN, NULL, ASK_IDENTIFY, &nsid, 1, now), 0);
	return answer_of(s, 0, now);
}

void progress_at(struct stage *s, int64_t now, int64_t deadline)
{
	while (ask_wake(s->ask) != now + deadline) {
		wait_for_children(s);
		ask_collect(s->ask, now);
	}
}

void wait_for_file(const struct stage *s, const char *name)
{
	int64_t until = now_boottime() + PATIENCE_MS * NS_PER_MS;

	while (n_lines(s, name) == 0) {
		assert_true(now_boottime() < until);
		poll(NULL, 0, 1);
	}
}

void wait_until_it_hangs(const struct stage *s)
{
	wait_for_file(s, "hangs");
}

void wait_for_an_end(void)
{
	siginfo_t info;

	alarm(PATIENCE_MS / 1000);
	/* ask.c may have been quicker */
	assert_true(waitid(P_ALL, 0, &info, WEXITED | WNOWAIT) == 0 || errno == ECHILD);
	alarm(0);
}
