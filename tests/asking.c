/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "asking.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int start_asking(void **state)
{
	struct asking *t = xcalloc(1, sizeof(*t));
	void *fake;

	start_fake(&fake);
	t->f = fake;
	t->a = ask_new(asker(t->f), rundir(t->f), 4, &t->probes);
	t->now = 1000 * NS_PER_SEC;
	*state = t;
	return 0;
}

int stop_asking(void **state)
{
	struct asking *t = *state;
	void *fake = t->f;

	ask_free(t->a);
	probes_free(&t->probes);
	stop_fake(&fake);
	free(t);
	return 0;
}

struct probe *probe(const struct asking *t, int instance)
{
	struct probe *p = probes_find(&t->probes, instance, NQN);

	assert_non_null(p);
	return p;
}

void wait_for_children(struct ask *a)
{
	cleanup_free struct pollfd *fds = NULL;
	size_t n = ask_poll(a, &fds, 0);

	assert_int_not_equal(n, 0);
	assert_true(poll(fds, n, LIMIT / NS_PER_MS) > 0);
}

void wait_for_answer(struct asking *t, struct ask *a, const struct probe *p)
{
	while (p->status == PROBE_RUNNING) {
		wait_for_children(a);
		ask_collect(a, t->now);
	}
}

int request(struct asking *t, enum ask_what what, const uint32_t *nsid, size_t n)
{
	return ask_request(t->a, 0, NQN, NULL, what, nsid, n, t->now);
}

struct probe *ask_it(struct asking *t, enum ask_what what)
{
	assert_int_equal(request(t, what, NULL, 0), 0);
	wait_for_answer(t, t->a, probe(t, 0));
	return probe(t, 0);
}

struct probe *identify_it(struct asking *t, uint32_t nsid)
{
	assert_int_equal(request(t, ASK_IDENTIFY, &nsid, 1), 0);
	wait_for_answer(t, t->a, probe(t, 0));
	return probe(t, 0);
}

void assert_listed(const struct probe *p, const uint32_t *nsid, size_t n)
{
	size_t k = 0;

	assert_int_equal(p->status, PROBE_IDLE);
	assert_int_equal(p->n_listed, n);
	for (size_t i = 0; i < p->n_ns; i++)
		if (p->ns[i].listed)
			assert_int_equal(p->ns[i].nsid, nsid[k++]);
	assert_int_equal(k, n);
}

void assert_identity(const struct probe *p, uint32_t nsid, const char *all)
{
	const struct probe_ns *ns = probe_ns_find(p, nsid);
	cleanup_free char *text = NULL;

	assert_non_null(ns);
	assert_int_equal(ns->error, 0);
	assert_int_not_equal(ns->ident_at, 0);
	text = ident_format_all(&ns->id);
	assert_string_equal(text, all);
}

void assert_failed(const struct probe *p, enum probe_status status, const char *words)
{
	assert_int_equal(p->status, status);
	assert_non_null(p->error);
	if (!strstr(p->error, words))
		assert_string_equal(p->error, words);
}

pid_t child_pid(void)
{
	FILE *file = fopen("pid", "r");
	int pid = 0;

	assert_non_null(file);
	assert_int_equal(fscanf(file, "%d", &pid), 1);
	fclose(file);
	return pid;
}

bool ends(pid_t pid, bool reaped)
{
	for (int ms = 0; ms < LIMIT / NS_PER_MS; ms += 5) {
		cleanup_free char *path = xasprintf("/proc/%d/stat", pid);
		FILE *file = fopen(path, "r");
		char condition = 0;

		if (!file)
			return true;
		if (fscanf(file, "%*d (%*[^)]) %c", &condition) != 1)
			condition = 'X'; /* it went between the two */
		fclose(file);
		if (condition == 'X' || (condition == 'Z' && !reaped))
			return true;
		usleep(5000);
	}
	return false;
}
