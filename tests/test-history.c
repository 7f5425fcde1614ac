/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* /run/nvme-nsheal: records, locks, triggers. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "history.h"
#include "trigger.h"

#define NQN "nqn.2014-08.org.example:array.node1"
#define OTHER "nqn.2014-08.org.example:array.node2"
#define HOST "nqn.2014-08.org.nvmexpress:uuid:1b4e28ba-2fa1-11d2-883f-0016d3cca427"

/* --- a directory of its own for each test ------------------------------------------------------------------------- */

struct place {
	char top[32];   /* ours, in /tmp */
	char dir[64];   /* what would be /run/nvme-nsheal: not there yet */
	struct history *h;
};

static int setup(void **state)
{
	struct place *p = xcalloc(1, sizeof(*p));

	strcpy(p->top, "/tmp/nsheal-XXXXXX");
	assert_non_null(mkdtemp(p->top));
	snprintf(p->dir, sizeof(p->dir), "%s/run", p->top);
	umask(022);
	*state = p;
	return 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(path);
}

static int teardown(void **state)
{
	struct place *p = *state;

	history_close(p->h);
	assert_int_equal(nftw(p->top, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
	free(p);
	return 0;
}

static struct history *opened(struct place *p)
{
	if (!p->h)
		assert_int_equal(history_open(p->dir, true, &p->h), 0);
	return p->h;
}

/* Names in the directory that begin so, the last one copied to name (NULL: not wanted). */
static size_t files(const struct place *p, const char *prefix, char *name)
{
	DIR *dir = opendir(p->dir);
	const struct dirent *entry;
	size_t n = 0;

	assert_non_null(dir);
	while ((entry = readdir(dir)) != NULL) {
		if (!starts_with(entry->d_name, prefix) || streq(entry->d_name, ".") || streq(entry->d_name, ".."))
			continue;
		if (name)
			strcpy(name, entry->d_name);
		n++;
	}
	closedir(dir);
	return n;
}

static char *path_of(const struct place *p, const char *name)
{
	return xasprintf("%s/%s", p->dir, name);
}

static void put(const struct place *p, const char *name, const char *text)
{
	cleanup_free char *path = path_of(p, name);
	cleanup_fd int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(write_all(fd, text, strlen(text)), 0);
}

/* name "": the directory's own */
static unsigned mode_of(const struct place *p, const char *name)
{
	cleanup_free char *path = path_of(p, name);
	struct stat st;

	assert_int_equal(lstat(path, &st), 0);
	return st.st_mode & 07777;
}

static struct rec_subsys subsys(const char *nqn, const char *hostnqn)
{
	return (struct rec_subsys){ .nqn = xstrdup(nqn), .hostnqn = xstrdup_null(hostnqn) };
}

/* --- the directory ----------------------------------------------------------------------------------------------- */

static void no_directory_no_history(void **state)
{
	struct place *p = *state;
	struct rec_subsys r;
	struct trigger *list;
	char **nqns;

	assert_int_equal(history_open(p->dir, false, &p->h), 0);
	assert_int_equal(access(p->dir, F_OK), -1);
	assert_int_equal(history_load(p->h, NQN, HOST, TIME_NEVER, &r), 0);
	assert_true(streq(r.nqn, NQN) && streq(r.hostnqn, HOST));
	assert_int_equal(history_save(p->h, &r), 0); /* there is nothing to remove */
	rec_ns_get(&r, "a");
	assert_int_equal(history_save(p->h, &r), -ENOENT);
	rec_subsys_clear(&r);
	assert_int_equal(history_lock(p->h, NQN, NULL), -ENOENT);
	assert_false(history_triggered(p->h, NQN));
	assert_int_equal(history_take_triggers(p->h, NQN, &list), 0);
	free(list);
	nqns = history_list(p->h);
	assert_null(nqns[0]);
	free(nqns);
}

static void the_directory_is_made(void **state)
{
	struct place *p = *state;
	cleanup_free char *deep = xasprintf("%s/a/b", p->top);

	umask(077);
	opened(p);
	umask(022);
	assert_int_equal(mode_of(p, ""), 0755);
	history_close(p->h);
	/* but one that is there is left as it is */
	assert_int_equal(chmod(p->dir, 0700), 0);
	assert_int_equal(history_open(p->dir, true, &p->h), 0);
	assert_int_equal(mode_of(p, ""), 0700);
	history_close(p->h);
	/* and no more than the last component */
	assert_int_equal(history_open(deep, true, &p->h), -ENOENT);
	assert_null(p->h);
}

static void a_directory_not_to_be_trusted(void **state)
{
	struct place *p = *state;
	cleanup_free char *elsewhere = xasprintf("%s/elsewhere", p->top);

	/* a link, which whoever may write to the parent can turn elsewhere */
	assert_int_equal(mkdir(elsewhere, 0755), 0);
	assert_int_equal(symlink(elsewhere, p->dir), 0);
	assert_int_equal(history_open(p->dir, true, &p->h), -EPERM);
	assert_int_equal(history_open(p->dir, false, &p->h), -EPERM);
	assert_int_equal(unlink(p->dir), 0);
	/* a file */
	assert_int_equal(mknod(p->dir, S_IFREG | 0644, 0), 0);
	assert_int_equal(history_open(p->dir, true, &p->h), -EPERM);
	assert_int_equal(unlink(p->dir), 0);
	/* one in which others can write */
	assert_int_equal(mkdir(p->dir, 0755), 0);
	assert_int_equal(chmod(p->dir, 01777), 0);
	assert_int_equal(history_open(p->dir, true, &p->h), -EPERM);
	assert_int_equal(chmod(p->dir, 0775), 0);
	assert_int_equal(history_open(p->dir, false, &p->h), -EPERM);
	assert_null(p->h);
	/* somebody else's: only root can bring that about */
	assert_int_equal(chmod(p->dir, 0755), 0);
	if (geteuid() == 0) {
		assert_int_equal(chown(p->dir, 65534, 65534), 0);
		assert_int_equal(history_open(p->dir, true, &p->h), -EPERM);
	}
}

/* --- records ----------------------------------------------------------------------------------------------------- */

static void remember(struct place *p, const char *nqn, const char *hostnqn, uint32_t nsid)
{
	struct rec_subsys r = subsys(nqn, hostnqn);

	rec_ns_get(&r, "key")->nsid = nsid;
	assert_int_equal(history_save(opened(p), &r), 0);
	rec_subsys_clear(&r);
}

/* The NSID that is remembered; 0 there is no record. */
static uint32_t remembered(struct place *p, const char *nqn, const char *hostnqn)
{
	struct rec_subsys r;
	int found = history_load(opened(p), nqn, hostnqn, now_boottime(), &r);
	uint32_t nsid = 0;

	assert_true(found == 0 || found == 1);
	assert_string_equal(r.nqn, nqn);
	assert_true(str_same(r.hostnqn, hostnqn));
	if (found)
		nsid = rec_ns_find(&r, "key")->nsid;
	else
		assert_true(r.n_ns == 0 && r.n_ctrl == 0);
	rec_subsys_clear(&r);
	return nsid;
}

static void a_record_is_per_section(void **state)
{
	struct place *p = *state;

	assert_int_equal(remembered(p, NQN, NULL), 0);
	remember(p, NQN, NULL, 1);
	remember(p, NQN, HOST, 2);
	remember(p, OTHER, NULL, 3);
	assert_int_equal(remembered(p, NQN, NULL), 1);
	assert_int_equal(remembered(p, NQN, HOST), 2);
	assert_int_equal(remembered(p, OTHER, NULL), 3);
	assert_int_equal(remembered(p, OTHER, HOST), 0);
	remember(p, NQN, NULL, 9);
	assert_int_equal(remembered(p, NQN, NULL), 9);
	assert_int_equal(files(p, "", NULL), 3);
}

static void nothing_to_remember_is_no_file(void **state)
{
	struct place *p = *state;
	struct rec_subsys r = subsys(NQN, NULL);

	remember(p, NQN, NULL, 1);
	assert_int_equal(history_save(p->h, &r), 0);
	assert_int_equal(files(p, "", NULL), 0);
	assert_int_equal(history_save(p->h, &r), 0);
	rec_ctrl_get(&r, 0);
	assert_int_equal(history_save(p->h, &r), 0);
	assert_int_equal(files(p, "record-", NULL), 1);
	rec_subsys_clear(&r);
}

static void records_are_for_everyone_to_read(void **state)
{
	struct place *p = *state;
	char name[NAME_MAX + 1];

	opened(p);
	umask(0777);
	remember(p, NQN, NULL, 1);
	umask(022);
	assert_int_equal(files(p, "record-", name), 1);
	assert_int_equal(mode_of(p, name), 0644);
}

static void the_name_of_a_file_proves_nothing(void **state)
{
	struct place *p = *state;
	char ours[NAME_MAX + 1], theirs[NAME_MAX + 1];
	cleanup_free char *from = NULL, *to = NULL;

	remember(p, NQN, NULL, 1);
	assert_int_equal(files(p, "record-", ours), 1);
	from = path_of(p, ours);
	to = xasprintf("%s/saved", p->top);
	assert_int_equal(rename(from, to), 0);
	remember(p, OTHER, NULL, 2);
	assert_int_equal(files(p, "record-", theirs), 1);
	free(from);
	from = path_of(p, theirs);
	assert_int_equal(rename(to, from), 0);
	assert_int_equal(remembered(p, OTHER, NULL), 0);
}

static void a_record_of_somebody_else_is_none(void **state)
{
	struct place *p = *state;
	cleanup_free char *path = NULL, *elsewhere = xasprintf("%s/elsewhere", p->top);
	char name[NAME_MAX + 1];

	remember(p, NQN, NULL, 1);
	assert_int_equal(files(p, "record-", name), 1);
	path = path_of(p, name);
	/* others could have written it */
	assert_int_equal(chmod(path, 0666), 0);
	assert_int_equal(remembered(p, NQN, NULL), 0);
	assert_int_equal(chmod(path, 0644), 0);
	assert_int_equal(remembered(p, NQN, NULL), 1);
	if (geteuid() == 0) {
		assert_int_equal(chown(path, 65534, 65534), 0);
		assert_int_equal(remembered(p, NQN, NULL), 0);
		assert_int_equal(chown(path, 0, 0), 0);
	}
	/* a link to a good one */
	assert_int_equal(rename(path, elsewhere), 0);
	assert_int_equal(symlink(elsewhere, path), 0);
	assert_int_equal(remembered(p, NQN, NULL), 0);
	/* is replaced and not followed */
	remember(p, NQN, NULL, 2);
	assert_int_equal(remembered(p, NQN, NULL), 2);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rename(elsewhere, path), 0);
	assert_int_equal(remembered(p, NQN, NULL), 1);
	assert_int_equal(unlink(path), 0); /* a FIFO stops nobody */
	assert_int_equal(mkfifo(path, 0644), 0);
	assert_int_equal(remembered(p, NQN, NULL), 0);
}

static void what_a_killed_writer_left_does_no_harm(void **state)
{
	struct place *p = *state;
	cleanup_free char *unfinished = NULL, *path = NULL, *victim = xasprintf("%s/victim", p->top);
	char name[NAME_MAX + 1];
	struct stat st;

	remember(p, NQN, NULL, 1);
	assert_int_equal(files(p, "record-", name), 1);
	unfinished = xasprintf(".%s", name);
	put(p, unfinished, "{\"version\":2,\"boot");
	assert_int_equal(remembered(p, NQN, NULL), 1);
	remember(p, NQN, NULL, 2);
	assert_int_equal(remembered(p, NQN, NULL), 2);
	assert_int_equal(files(p, "", NULL), 1);
	/* a link planted in its place */
	path = path_of(p, unfinished);
	assert_int_equal(mknod(victim, S_IFREG | 0644, 0), 0);
	assert_int_equal(symlink(victim, path), 0);
	remember(p, NQN, NULL, 3);
	assert_int_equal(remembered(p, NQN, NULL), 3);
	assert_int_equal(stat(victim, &st), 0);
	assert_int_equal(st.st_size, 0);
}

static void a_full_file_system_is_an_error_and_the_old_record_stays(void **state)
{
	struct place *p = *state;
	struct rec_subsys r = subsys(NQN, NULL);
	struct rlimit limit, none;

	remember(p, NQN, NULL, 1);
	rec_ns_get(&r, "key")->nsid = 2;
	/* RLIMIT_FSIZE gives the writer EFBIG, as a full tmpfs gives it ENOSPC */
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	none = limit;
	none.rlim_cur = 100;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
	assert_int_equal(history_save(p->h, &r), -EFBIG);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	rec_subsys_clear(&r);
	assert_int_equal(files(p, "", NULL), 1);
	assert_int_equal(remembered(p, NQN, NULL), 1);
}

static void a_directory_that_was_removed(void **state)
{
	struct place *p = *state;
	struct rec_subsys r = subsys(NQN, NULL);

	rec_ns_get(&r, "key");
	opened(p);
	assert_int_equal(rmdir(p->dir), 0);
	assert_int_equal(history_save(p->h, &r), -ENOENT);
	assert_int_equal(history_lock(p->h, NQN, NULL), -ENOENT);
	assert_false(history_triggered(p->h, NQN));
	rec_subsys_clear(&r);
}

static void the_list_has_each_nqn_once(void **state)
{
	struct place *p = *state;
	char **nqns;
	size_t n = 0, seen = 0;

	remember(p, NQN, NULL, 1);
	remember(p, NQN, HOST, 1);
	remember(p, OTHER, NULL, 1);
	put(p, "record-0000000000000000.json", "{}");
	put(p, "lock-0000000000000000", "");
	nqns = history_list(p->h);
	for (; nqns[n]; n++) {
		seen |= streq(nqns[n], NQN) ? 1 : streq(nqns[n], OTHER) ? 2 : 4;
		free(nqns[n]);
	}
	free(nqns);
	assert_true(n == 2 && seen == 3);
}

/* --- locks ------------------------------------------------------------------------------------------------------- */

static void one_actor_per_subsystem(void **state)
{
	struct place *p = *state;
	int fd = history_lock(opened(p), NQN, NULL), other;

	assert_true(fd >= 0);
	assert_int_equal(history_lock(p->h, NQN, NULL), -EAGAIN);
	other = history_lock(p->h, NQN, HOST);
	assert_true(other >= 0);
	close(other);
	other = history_lock(p->h, OTHER, NULL);
	assert_true(other >= 0);
	close(other);
	close(fd);
	fd = history_lock(p->h, NQN, NULL);
	assert_true(fd >= 0);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC); /* a program that is started does not keep it */
	close(fd);
}

static void locks_are_root_s_alone(void **state)
{
	struct place *p = *state;
	char name[NAME_MAX + 1];
	cleanup_free char *path = NULL;
	int fd;

	umask(0);
	fd = history_lock(opened(p), NQN, NULL);
	umask(022);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(files(p, "lock-", name), 1);
	assert_int_equal(mode_of(p, name), 0600);
	/* one that anybody could have opened, and could hold */
	path = path_of(p, name);
	assert_int_equal(chmod(path, 0644), 0);
	fd = history_lock(p->h, NQN, NULL);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(mode_of(p, name), 0600);
	/* a link */
	assert_int_equal(unlink(path), 0);
	put(p, "elsewhere", "");
	assert_int_equal(symlink("elsewhere", path), 0);
	assert_int_equal(history_lock(p->h, NQN, NULL), -EPERM);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(history_lock(p->h, NQN, NULL), -EPERM);
}

/* --- triggers ---------------------------------------------------------------------------------------------------- */

/* As the udev helper leaves it; at 0: with contents of no meaning. */
static void leave(struct place *p, const char *prefix, const char *nqn, const char *what, int64_t at)
{
	cleanup_free char *name = xasprintf("%s%016llx-%s", prefix, (unsigned long long)trigger_hash(nqn), what);
	cleanup_free char *text = at ? xasprintf("1 %lld\n", (long long)at) : xstrdup("x");

	opened(p);
	put(p, name, text);
}

static char *trigger_path(const struct place *p, const char *what)
{
	return xasprintf("%s/trigger-%016llx-%s", p->dir, (unsigned long long)trigger_hash(NQN), what);
}

static ssize_t take(struct place *p, const char *nqn, struct trigger *t, size_t max)
{
	struct trigger *list;
	ssize_t n = history_take_triggers(opened(p), nqn, &list);

	assert_true(n <= (ssize_t)max);
	if (n > 0)
		memcpy(t, list, (size_t)n * sizeof(*t));
	free(list);
	return n;
}

static void a_trigger_is_taken_once(void **state)
{
	struct place *p = *state;
	struct trigger t[4];

	assert_false(history_triggered(opened(p), NQN));
	assert_int_equal(take(p, NQN, t, 4), 0);
	leave(p, "trigger-", NQN, "connected-nvme7", 12345);
	assert_true(history_triggered(p->h, NQN));
	assert_true(history_triggered(p->h, NQN));
	assert_false(history_triggered(p->h, OTHER));
	assert_int_equal(take(p, OTHER, t, 4), 0);
	assert_int_equal(take(p, NQN, t, 4), 1);
	assert_true(t[0].connected && t[0].instance == 7 && t[0].at == 12345);
	assert_false(history_triggered(p->h, NQN));
	assert_int_equal(take(p, NQN, t, 4), 0);
	assert_int_equal(files(p, "", NULL), 0);
}

static void what_a_trigger_says(void **state)
{
	static const struct {
		const char *what;
		bool connected;
		int instance;
	} cases[] = {
		{ "connected-nvme0", true, 0 },
		{ "connected-nvme2147483647", true, INT_MAX },
		{ "connected-nvme2147483648", true, -1 },
		{ "connected-none", true, -1 },
		{ "changed-nvme12", false, 12 },
		{ "changed-none", false, -1 },
		{ "changed-nvme0n1", false, -1 },
		{ "changed-nvme", false, -1 },
		{ "connectedly-nvme1", false, 1 },
		{ "news", false, -1 },
		{ "", false, -1 },
	};
	struct place *p = *state;
	struct trigger t;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		leave(p, "trigger-", NQN, cases[i].what, 5);
		assert_int_equal(take(p, NQN, &t, 1), 1);
		assert_int_equal(t.connected, cases[i].connected);
		assert_int_equal(t.instance, cases[i].instance);
		assert_true(t.at == 5);
	}
}

/* It is a reason to look all the same: now. */
static void a_trigger_that_cannot_be_read_is_of_now(void **state)
{
	static const char *const cases[] = { "", "x", "1", "1 ", "1 5", "1 5\n\n", "1 x\n", "1 -5\n", "2 5\n", "1  5\n",
					     "1 9223372036854775807\n", "1 18446744073709551617\n",
					     "1 5 and then more than anybody would ever write into a trigger, and more\n" };
	struct place *p = *state;
	int64_t before = now_boottime();
	cleanup_free char *path = trigger_path(p, "connected-nvme1");
	struct trigger t;

	opened(p);
	for (size_t i = 0; i <= ARRAY_SIZE(cases); i++) {
		put(p, strrchr(path, '/') + 1, i < ARRAY_SIZE(cases) ? cases[i] : "1 5\n");
		if (i == ARRAY_SIZE(cases))
			assert_int_equal(chmod(path, 0666), 0); /* somebody else may have written this one */
		assert_int_equal(take(p, NQN, &t, 1), 1);
		assert_true(t.connected && t.instance == 1);
		assert_true(t.at >= before && t.at <= now_boottime());
	}
}

/* A run was killed after it had set a trigger aside and before it had looked at it. */
static void a_killed_taker_loses_nothing(void **state)
{
	struct place *p = *state;
	struct trigger t[4];

	leave(p, "taken-", NQN, "connected-nvme1", 5);
	assert_true(history_triggered(p->h, NQN));
	leave(p, "trigger-", NQN, "connected-nvme1", 6);
	leave(p, "trigger-", NQN, "changed-nvme1", 7);
	assert_int_equal(take(p, NQN, t, 4), 2);
	if (t[0].connected)
		assert_true(t[0].at == 6 && !t[1].connected && t[1].at == 7);
	else
		assert_true(t[0].at == 7 && t[1].connected && t[1].at == 6);
	assert_false(history_triggered(p->h, NQN));

	leave(p, "taken-", NQN, "connected-nvme1", 5);
	assert_int_equal(take(p, NQN, t, 4), 1);
	assert_true(t[0].at == 5);
}

/* Nothing that could never be removed may look like a trigger: heal would look for ever. */
static void only_files_are_triggers(void **state)
{
	struct place *p = *state;
	cleanup_free char *dir = trigger_path(p, "changed-none");
	cleanup_free char *link = trigger_path(p, "connected-nvme0");
	struct trigger t;

	opened(p);
	assert_int_equal(mkdir(dir, 0755), 0);
	assert_int_equal(symlink("/dev/null", link), 0);
	assert_false(history_triggered(p->h, NQN));
	assert_int_equal(take(p, NQN, &t, 1), 0);
}

#define LEFT 4000

/* The helper's way: beside its place, then renamed. */
static void leave_many(struct place *p)
{
	cleanup_free char *tmp = path_of(p, ".trigger-1");
	cleanup_free char *name = trigger_path(p, "connected-nvme0");

	for (int i = 1; i <= LEFT; i++) {
		char text[32];
		int fd = open(tmp, O_WRONLY | O_CREAT | O_EXCL, 0644);

		snprintf(text, sizeof(text), "1 %d\n", i);
		if (fd < 0 || write_all(fd, text, strlen(text)) < 0 || close(fd) < 0 || rename(tmp, name) < 0)
			_exit(1);
	}
	_exit(0);
}

/* Takes while another process leaves one after the other: the last is never missed, and none is taken twice. */
static void a_trigger_left_meanwhile_is_not_lost(void **state)
{
	struct place *p = *state;
	int64_t last = 0;
	bool ended = false;
	struct trigger t[2];
	int status = -1;
	pid_t pid;

	opened(p);
	pid = fork();
	if (pid == 0)
		leave_many(p);
	while (!ended) {
		ended = waitpid(pid, &status, WNOHANG) == pid;
		if (take(p, NQN, t, 2) == 0)
			continue;
		assert_true(t[0].at > last);
		last = t[0].at;
	}
	assert_int_equal(status, 0);
	assert_true(last == LEFT);
	assert_int_equal(files(p, "", NULL), 0);
}

static bool keep_one(void *arg, uint64_t hash)
{
	return hash == trigger_hash(arg);
}

static void triggers_of_what_is_not_configured_are_swept(void **state)
{
	struct place *p = *state;
	cleanup_free char *alive = xasprintf(".trigger-%d", (int)getpid());
	pid_t dead = fork();
	cleanup_free char *left = xasprintf(".trigger-%d", (int)dead);
	char nqn[] = NQN;

	if (dead == 0)
		_exit(0);
	assert_int_equal(waitpid(dead, NULL, 0), dead);
	leave(p, "trigger-", NQN, "connected-nvme0", 5);
	leave(p, "trigger-", OTHER, "connected-nvme1", 5);
	leave(p, "trigger-", OTHER, "changed-none", 5);
	leave(p, "taken-", OTHER, "changed-nvme1", 5);
	put(p, "trigger-what", "1 5\n");
	put(p, alive, "1");
	put(p, left, "1");
	remember(p, OTHER, NULL, 1);
	history_sweep_triggers(p->h, keep_one, nqn);
	assert_true(history_triggered(p->h, NQN));
	assert_int_equal(files(p, "trigger-", NULL), 1);
	assert_int_equal(files(p, "taken-", NULL), 0);
	/* a helper that is at work this very moment */
	assert_int_equal(files(p, ".trigger-", NULL), 1);
	assert_int_equal(remembered(p, OTHER, NULL), 1);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(no_directory_no_history),
		TEST(the_directory_is_made),
		TEST(a_directory_not_to_be_trusted),
		TEST(a_record_is_per_section),
		TEST(nothing_to_remember_is_no_file),
		TEST(records_are_for_everyone_to_read),
		TEST(the_name_of_a_file_proves_nothing),
		TEST(a_record_of_somebody_else_is_none),
		TEST(what_a_killed_writer_left_does_no_harm),
		TEST(a_full_file_system_is_an_error_and_the_old_record_stays),
		TEST(a_directory_that_was_removed),
		TEST(the_list_has_each_nqn_once),
		TEST(one_actor_per_subsystem),
		TEST(locks_are_root_s_alone),
		TEST(a_trigger_is_taken_once),
		TEST(what_a_trigger_says),
		TEST(a_trigger_that_cannot_be_read_is_of_now),
		TEST(a_killed_taker_loses_nothing),
		TEST(only_files_are_triggers),
		TEST(a_trigger_left_meanwhile_is_not_lost),
		TEST(triggers_of_what_is_not_configured_are_swept),
	};

	return cmocka_run_group_tests_name("history", tests, NULL, NULL);
}
