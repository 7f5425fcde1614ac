/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "ask-parts.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* A line of the protocol is 1,024 NSIDs at most; what is longer is no answer of ours. */
#define MAX_LINE 16384
/* identify requests name NSIDs one by one: 1,024 missing ones are 12 KiB, below what a pipe takes at once */
#define MAX_REQUEST 60000

struct ask *ask_new(const char *program, const char *rundir, size_t max, struct probes *probes)
{
	struct ask *a = xcalloc(1, sizeof(*a));

	a->program = xstrdup(program);
	a->rundir = xstrdup(rundir);
	a->max = max;
	a->deadline = ASK_DEADLINE;
	a->probes = probes;
	return a;
}

void ask_set_deadline(struct ask *a, int64_t deadline)
{
	a->deadline = deadline;
}

struct probe *ask_probe(const struct ask *a, const struct child *c)
{
	return probes_get(a->probes, c->instance, c->nqn);
}

void ask_status(const struct ask *a, const struct child *c, enum probe_status status, char *error)
{
	struct probe *p = ask_probe(a, c);

	p->status = status;
	free(p->error);
	p->error = error;
}

/* ---- start ---- */

/*
 * Only the two pipes and stderr go along: not even what we inherited ourselves, such as the lock of a script that
 * started us, which a hung child would hold. Signals as a program expects them. No environment: the child needs none.
 */
static int spawn(const struct ask *a, struct child *c, int in, int out, char *const argv[])
{
	static char *const no_environment[] = { NULL };
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	sigset_t none, dfl;
	int err;

	sigemptyset(&none);
	sigemptyset(&dfl);
	sigaddset(&dfl, SIGTERM);
	sigaddset(&dfl, SIGINT);
	sigaddset(&dfl, SIGPIPE);
	if (posix_spawn_file_actions_init(&actions) != 0)
		return -ENOMEM;
	if (posix_spawnattr_init(&attr) != 0) {
		posix_spawn_file_actions_destroy(&actions);
		return -ENOMEM;
	}
	/* the pipes are above 2: main sees to that */
	err = posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
	if (!err)
		err = posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
	if (!err)
		err = posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
	if (!err)
		err = posix_spawnattr_setsigmask(&attr, &none);
	if (!err)
		err = posix_spawnattr_setsigdefault(&attr, &dfl);
	/* a session of its own: Ctrl-C at the terminal is for us, the child ends with its pipe */
	if (!err)
		err = posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSID);
	if (!err)
		err = posix_spawn(&c->pid, a->program, &actions, &attr, argv, no_environment);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attr);
	return -err;
}

static int start(struct ask *a, struct child *c)
{
	cleanup_free char *name = xasprintf("nvme%d", c->instance);
	cleanup_free char *lock = xasprintf("%s/ask-nvme%d", a->rundir, c->instance);
	cleanup_free char *nqn = xstrdup(c->nqn);
	cleanup_free char *host = xstrdup(c->hostnqn ? c->hostnqn : "");
	cleanup_free char *program = xstrdup(a->program);
	char *argv[] = { program, name, nqn, host, lock, NULL };
	int in[2], out[2], err;

	if (pipe2(in, O_CLOEXEC) < 0)
		return -errno;
	if (pipe2(out, O_CLOEXEC) < 0) {
		err = -errno;
		close(in[0]);
		close(in[1]);
		return err;
	}
	err = spawn(a, c, in[0], out[1], argv);
	close(in[0]);
	close(out[1]);
	if (!err && (fcntl(in[1], F_SETFL, O_NONBLOCK) < 0 || fcntl(out[0], F_SETFL, O_NONBLOCK) < 0))
		err = -errno;
	if (err) {
		close(in[1]);
		close(out[0]);
		return err;
	}
	c->to = in[1];
	c->from = out[0];
	return 0;
}

/* ---- end ---- */

static void close_pipes(struct child *c)
{
	if (c->to >= 0)
		close(c->to);
	if (c->from >= 0)
		close(c->from);
	c->to = c->from = -1;
}

/* False: it lives. Nothing to wait for (ECHILD: SIGCHLD is ignored, and the kernel reaps) is as good as reaped. */
static bool reap(pid_t *pid)
{
	if (*pid > 0 && waitpid(*pid, NULL, WNOHANG) != 0)
		*pid = 0;
	return *pid <= 0;
}

static void reap_leaving(struct ask *a)
{
	size_t kept = 0;

	for (size_t i = 0; i < a->n_leaving; i++)
		if (!reap(&a->leaving[i]))
			a->leaving[kept++] = a->leaving[i];
	a->n_leaving = kept;
}

/* Gone, or to be left to itself. Its entry stays, so that a hung one is remembered. */
void ask_give_up(struct ask *a, struct child *c, enum probe_status status, char *error)
{
	close_pipes(c);
	(void)reap(&c->pid);
	if (c->waiting && (c->what == ASK_RESCAN || c->what == ASK_REARM_RESCAN))
		ask_probe(a, c)->rescan_error = -EIO;
	c->over = true;
	c->hung = status == PROBE_HUNG;
	c->waiting = false;
	ask_status(a, c, status, error);
}

static void child_clear(struct child *c)
{
	close_pipes(c);
	free(c->nqn);
	free(c->hostnqn);
	for (size_t i = 0; i < c->n_disk; i++)
		free(c->disk[i]);
	free(c->disk);
	free(c->request);
	free(c->line);
	free(c->list);
}

/* ---- request ---- */

/* "identify 1 2 3": the NSIDs also go into c->list, what is to be answered. */
static char *nsids_text(struct child *c, const char *word, const uint32_t *nsid, size_t n)
{
	char *text = xmalloc(strlen(word) + n * sizeof(" 4294967295") + sizeof("\n"));
	char *at = stpcpy(text, word);

	for (size_t i = 0; i < n && at - text < MAX_REQUEST; i++) { /* the rest is asked for in the next request */
		at += snprintf(at, sizeof(" 4294967295"), " %u", nsid[i]);
		ARRAY_GROW(c->list, c->n_list);
		c->list[c->n_list++] = nsid[i];
	}
	stpcpy(at, "\n");
	return text;
}

/* "use nvme0n1 nvme0n2", "gone 1 nvme0n1": likewise with c->disk. All of them: it is one question. */
static char *disks_text(struct child *c, const char *word, const uint32_t *nsid, char *const *disk, size_t n)
{
	char *text = xstrdup(word), *longest;

	for (size_t i = 0; i < n; i++) {
		char *longer = nsid ? xasprintf("%s %u %s", text, nsid[i], disk[i]) : xasprintf("%s %s", text, disk[i]);

		free(text);
		text = longer;
		ARRAY_GROW(c->disk, c->n_disk);
		c->disk[c->n_disk++] = xstrdup(disk[i]);
		if (!nsid)
			continue;
		ARRAY_GROW(c->list, c->n_list);
		c->list[c->n_list++] = nsid[i];
	}
	longest = xasprintf("%s\n", text);
	free(text);
	return longest;
}

/* What goes into the pipe. */
static char *request_text(struct child *c, const uint32_t *nsid, char *const *disk, size_t n)
{
	switch (c->what) {
	case ASK_LIST:
		return xstrdup("list\n");
	case ASK_IDENTIFY:
		return nsids_text(c, "identify", nsid, n);
	case ASK_IDENTIFY_ALL:
		return xstrdup("identify all\n");
	case ASK_ANA:
		return nsids_text(c, "ana", nsid, n);
	case ASK_USE:
		return disks_text(c, "use", NULL, disk, n);
	case ASK_GONE:
		return disks_text(c, "gone", nsid, disk, n);
	case ASK_REARM_RESCAN:
		return xstrdup("rescan rearm\n");
	case ASK_RESCAN:
		break;
	}
	return xstrdup("rescan\n");
}

int ask_send(struct ask *a, struct child *c)
{
	int err = write_all(c->to, c->request, strlen(c->request));

	free(c->request);
	c->request = NULL;
	if (err < 0) /* -EAGAIN too: a child that lets 64 KiB pile up is not at its work */
		ask_give_up(a, c, PROBE_FAILED, xasprintf("could not be asked: %s", strerror(-err)));
	return err;
}

static struct child *find_child(const struct ask *a, int instance, const char *nqn)
{
	for (size_t i = 0; i < a->n; i++)
		if (a->child[i].instance == instance && streq(a->child[i].nqn, nqn))
			return &a->child[i];
	return NULL;
}

static size_t count_open(const struct ask *a)
{
	size_t n = 0;

	for (size_t i = 0; i < a->n; i++)
		n += a->child[i].from >= 0;
	return n;
}

/* It ends by itself: its stdin has. */
static void drop_child(struct ask *a, struct child *c)
{
	child_clear(c);
	if (!reap(&c->pid)) {
		ARRAY_GROW(a->leaving, a->n_leaving);
		a->leaving[a->n_leaving++] = c->pid;
	}
	*c = a->child[--a->n];
}

/*
 * Another one has to take its place: it failed (when to ask again is the planner's decision), or hung and has ended
 * since, or ended while it had nothing to do, or was not told to compare this host NQN (rule 10).
 */
static bool is_spent(struct child *c, const char *hostnqn)
{
	if (c->waiting)
		return false;
	return reap(&c->pid) || (c->over && !c->hung) || (!c->over && hostnqn && !str_same(c->hostnqn, hostnqn));
}

/* The child of a controller, started if need be. NULL and *err if there is none to be had. */
static struct child *get_child(struct ask *a, int instance, const char *nqn, const char *hostnqn, int *err)
{
	struct child *c = find_child(a, instance, nqn);

	*err = 0;
	if (c && is_spent(c, hostnqn)) {
		drop_child(a, c);
		c = NULL;
	}
	if (c && (c->over || c->waiting)) {
		*err = c->over ? -EHOSTDOWN : -EBUSY;
		return NULL;
	}
	if (c)
		return c;
	if (count_open(a) >= a->max) {
		*err = -EBUSY;
		return NULL;
	}
	ARRAY_GROW(a->child, a->n);
	c = &a->child[a->n]; /* counts only once it runs */
	*c = (struct child){ .instance = instance, .nqn = xstrdup(nqn), .hostnqn = xstrdup_null(hostnqn), .to = -1,
			     .from = -1 };
	*err = start(a, c);
	if (*err) {
		child_clear(c);
		return NULL;
	}
	a->n++;
	return c;
}

static void forget_question(struct child *c)
{
	for (size_t i = 0; i < c->n_disk; i++)
		free(c->disk[i]);
	free(c->disk);
	c->disk = NULL;
	c->n_disk = c->n_list = c->n_answered = 0;
	free(c->request);
	c->request = NULL;
}

static int request(struct ask *a, int instance, const char *nqn, const char *hostnqn, enum ask_what what,
		   const uint32_t *nsid, char *const *disk, size_t n, int64_t now)
{
	int err;
	struct child *c = get_child(a, instance, nqn, hostnqn, &err);

	if (!c)
		return err;
	forget_question(c);
	c->what = what;
	c->waiting = true;
	c->began = c->progress_at = now;
	c->request = request_text(c, nsid, disk, n);
	if (what == ASK_RESCAN || what == ASK_REARM_RESCAN)
		ask_probe(a, c)->rescan_error = 0;
	ask_status(a, c, PROBE_RUNNING, NULL);
	return c->ready ? ask_send(a, c) : 0;
}

int ask_request(struct ask *a, int instance, const char *nqn, const char *hostnqn, enum ask_what what,
		const uint32_t *nsid, size_t n, int64_t now)
{
	return request(a, instance, nqn, hostnqn, what, nsid, NULL, n, now);
}

int ask_about_disks(struct ask *a, int instance, const char *nqn, const char *hostnqn, enum ask_what what,
		    const uint32_t *nsid, char *const *disk, size_t n, int64_t now)
{
	return request(a, instance, nqn, hostnqn, what, nsid, disk, n, now);
}


/* Cut what was read into lines. */
static void take_bytes(struct ask *a, struct child *c, const char *buf, size_t n, int64_t now)
{
	while (n > 0 && !c->over) {
		const char *end = memchr(buf, '\n', n);
		size_t part = end ? (size_t)(end - buf) : n;
		char *line;

		if (c->n_line + part > MAX_LINE) {
			ask_give_up(a, c, PROBE_FAILED, xstrdup(NO_ANSWER));
			return;
		}
		c->line = xreallocarray(c->line, c->n_line + part + 1, 1);
		memcpy(c->line + c->n_line, buf, part);
		c->n_line += part;
		if (!end)
			return;
		c->line[c->n_line] = '\0';
		line = c->line;
		c->line = NULL;
		if (strlen(line) != c->n_line || !ask_take_line(a, c, line, now))
			ask_give_up(a, c, PROBE_FAILED, xstrdup(NO_ANSWER));
		c->n_line = 0;
		c->progress_at = now;
		free(line);
		buf += part + 1;
		n -= part + 1;
	}
}

/* Its stdout has ended. What it answered before stays as it is. */
static void take_end(struct ask *a, struct child *c)
{
	if (c->waiting) {
		ask_give_up(a, c, PROBE_FAILED, xstrdup("could not be asked: its child ended without an answer"));
		return;
	}
	close_pipes(c);
	c->over = true;
}

/* True if anything came of it. */
static bool collect_child(struct ask *a, struct child *c, int64_t now)
{
	char buf[65536];
	bool any = false;

	while (c->from >= 0) {
		ssize_t n = read(c->from, buf, sizeof(buf));

		if (n > 0) {
			take_bytes(a, c, buf, (size_t)n, now);
			any = true;
		} else if (n < 0 && errno == EINTR) {
			continue;
		} else if (n < 0 && errno == EAGAIN) {
			break;
		} else {
			take_end(a, c);
			return true;
		}
	}
	if (c->waiting && now - c->progress_at >= a->deadline) {
		char text[32];

		ask_give_up(a, c, PROBE_HUNG, xasprintf("gave no answer within %s", format_duration(a->deadline, text)));
		return true;
	}
	return any;
}

bool ask_collect(struct ask *a, int64_t now)
{
	bool any = false;

	for (size_t i = 0; i < a->n; i++) {
		any |= collect_child(a, &a->child[i], now);
		if (a->child[i].over)
			(void)reap(&a->child[i].pid);
	}
	reap_leaving(a);
	return any;
}

size_t ask_poll(const struct ask *a, struct pollfd **fds, size_t n)
{
	for (size_t i = 0; i < a->n; i++) {
		if (a->child[i].from < 0)
			continue;
		ARRAY_GROW(*fds, n);
		(*fds)[n++] = (struct pollfd){ .fd = a->child[i].from, .events = POLLIN };
	}
	return n;
}

int64_t ask_wake(const struct ask *a)
{
	int64_t when = TIME_NEVER;

	for (size_t i = 0; i < a->n; i++)
		if (a->child[i].waiting)
			when = min_time(when, time_add(a->child[i].progress_at, a->deadline));
	return when;
}

void ask_release(struct ask *a, int instance)
{
	for (size_t i = a->n; i-- > 0;)
		if (a->child[i].instance == instance && !a->child[i].waiting && !a->child[i].hung)
			drop_child(a, &a->child[i]);
}

void ask_free(struct ask *a)
{
	if (!a)
		return;
	while (a->n > 0)
		drop_child(a, &a->child[a->n - 1]);
	reap_leaving(a); /* what still runs is adopted by init when we end */
	free(a->child);
	free(a->leaving);
	free(a->program);
	free(a->rundir);
	free(a);
}
