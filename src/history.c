/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "history.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "trigger.h"

#define RECORD_PREFIX "record-"
#define RECORD_SUFFIX ".json"
#define RECORD_MAX_BYTES (64 << 20)
#define BOOT_ID_FILE "/proc/sys/kernel/random/boot_id"

struct history {
	int fd; /* -1: there is no such directory */
	char boot_id[64];
};

/* Only root and we could have written it: nobody else's words are believed. */
static bool is_trusted(const struct stat *st)
{
	return (st->st_uid == 0 || st->st_uid == geteuid()) && !(st->st_mode & (S_IWGRP | S_IWOTH));
}

static int open_directory(const char *dir, bool create)
{
	bool made = create && mkdir(dir, 0755) == 0;
	cleanup_fd int fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0) /* a link is one or the other, as the kernel looks at O_NOFOLLOW or at O_DIRECTORY first */
		return errno == ELOOP || errno == ENOTDIR ? -EPERM : -errno;
	if (made && fchmod(fd, 0755) < 0) /* whatever the umask */
		return -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	return is_trusted(&st) ? steal_fd(&fd) : -EPERM;
}

int history_open(const char *dir, bool create, struct history **h)
{
	struct history *new = xcalloc(1, sizeof(*new));
	ssize_t r = read_text_at(AT_FDCWD, BOOT_ID_FILE, new->boot_id, sizeof(new->boot_id));

	*h = NULL;
	new->fd = -1;
	if (r >= 0) {
		new->fd = open_directory(dir, create);
		r = new->fd == -ENOENT && !create ? 0 : min_time(new->fd, 0);
	}
	if (r < 0) {
		free(new);
		return (int)r;
	}
	*h = new;
	return 0;
}

void history_close(struct history *h)
{
	if (!h)
		return;
	if (h->fd >= 0)
		close(h->fd);
	free(h);
}

/* prefix HASH suffix of one section: the same section has the same file in each run */
static char *section_file(const char *prefix, const char *nqn, const char *hostnqn, const char *suffix)
{
	uint64_t hash = hash_bytes(HASH_INIT, nqn, strlen(nqn));

	hash = hash_bytes(hash, "\n", 1);
	if (hostnqn)
		hash = hash_bytes(hash, hostnqn, strlen(hostnqn));
	return xasprintf("%s%016llx%s", prefix, (unsigned long long)hash, suffix);
}

/* Our own regular file below the directory, of at most max bytes, whole. Its length; 0: nothing to be believed. */
static ssize_t read_file(const struct history *h, const char *name, size_t max, char **text)
{
	cleanup_fd int fd = openat(h->fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	cleanup_free char *buf = NULL;
	size_t len = 0;
	struct stat st;

	*text = NULL;
	if (fd < 0)
		return errno == ENOENT || errno == ELOOP ? 0 : -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || !is_trusted(&st) || st.st_size <= 0 || (size_t)st.st_size > max)
		return 0;
	buf = xmalloc((size_t)st.st_size + 1);
	while (len < (size_t)st.st_size) { /* files are replaced, never changed: the size stays */
		ssize_t n = read(fd, buf + len, (size_t)st.st_size - len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return 0;
		len += (size_t)n;
	}
	buf[len] = '\0';
	*text = buf;
	buf = NULL;
	return (ssize_t)len;
}

int history_load(struct history *h, const char *nqn, const char *hostnqn, int64_t now, struct rec_subsys *r)
{
	cleanup_free char *name = section_file(RECORD_PREFIX, nqn, hostnqn, RECORD_SUFFIX);
	cleanup_free char *text = NULL;
	ssize_t len = h->fd < 0 ? 0 : read_file(h, name, RECORD_MAX_BYTES, &text);

	if (len > 0 && history_parse(text, (size_t)len, h->boot_id, now, r) > 0) {
		if (streq(r->nqn, nqn) && str_same(r->hostnqn, hostnqn))
			return 1;
		rec_subsys_clear(r);
	}
	*r = (struct rec_subsys){ .nqn = xstrdup(nqn), .hostnqn = xstrdup_null(hostnqn) };
	return len < 0 ? (int)len : 0;
}

static int write_new(const struct history *h, const char *name, const char *text)
{
	cleanup_fd int fd = -1;

	/* what a killed run left; the lock's holder is alone here */
	if (unlinkat(h->fd, name, 0) < 0 && errno != ENOENT)
		return -errno;
	fd = openat(h->fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0 || fchmod(fd, 0644) < 0)
		return -errno;
	return write_all(fd, text, strlen(text));
}

int history_save(struct history *h, const struct rec_subsys *r)
{
	cleanup_free char *name = section_file(RECORD_PREFIX, r->nqn, r->hostnqn, RECORD_SUFFIX);
	cleanup_free char *text = NULL, *tmp = NULL;
	int err;

	if (r->n_ns == 0 && r->n_ctrl == 0) {
		if (h->fd < 0)
			return 0;
		return unlinkat(h->fd, name, 0) < 0 && errno != ENOENT ? -errno : 0;
	}
	if (h->fd < 0)
		return -ENOENT;
	text = history_format(r, h->boot_id, now_boottime());
	if (!text)
		return -ENOMEM;
	tmp = xasprintf(".%s", name);
	err = write_new(h, tmp, text);
	if (!err && renameat(h->fd, tmp, h->fd, name) < 0)
		err = -errno;
	if (err)
		unlinkat(h->fd, tmp, 0);
	return err;
}

int history_lock(struct history *h, const char *nqn, const char *hostnqn)
{
	cleanup_free char *name = section_file("lock-", nqn, hostnqn, "");
	cleanup_fd int fd = -1;
	struct stat st;

	if (h->fd < 0)
		return -ENOENT;
	fd = openat(h->fd, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0600);
	if (fd < 0)
		return errno == ELOOP ? -EPERM : -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || !is_trusted(&st))
		return -EPERM;
	if ((st.st_mode & 07777) != 0600 && fchmod(fd, 0600) < 0)
		return -errno;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return -errno;
	return steal_fd(&fd);
}

/* --- the directory ---------------------------------------------------------------------------------------------- */

/*
 * Calls fn for each regular file whose name begins so. fn may rename and remove: the names are collected first.
 * Stops at the first negative result.
 */
typedef int file_fn(struct history *h, const char *name, void *arg);

static void list_free(char **list)
{
	for (char **s = list; s && *s; s++)
		free(*s);
	free(list);
}

/* NULL-terminated; NULL with errno set: the directory is unreadable */
static char **list_files(const struct history *h, const char *prefix)
{
	int fd = openat(h->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	char **list = NULL;
	struct dirent *entry;
	struct stat st;
	size_t n = 0;

	if (!dir) {
		cleanup_fd_p(&fd);
		return NULL;
	}
	while ((entry = readdir(dir)) != NULL) {
		if (!starts_with(entry->d_name, prefix) ||
		    fstatat(h->fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
			continue;
		ARRAY_GROW(list, n);
		list[n++] = xstrdup(entry->d_name);
	}
	closedir(dir);
	ARRAY_GROW(list, n);
	list[n] = NULL;
	return list;
}

static int for_each_file(struct history *h, const char *prefix, file_fn *fn, void *arg)
{
	char **list = h->fd < 0 ? NULL : list_files(h, prefix);
	int err = 0;

	if (!list)
		return h->fd < 0 ? 0 : -errno;
	for (char **name = list; *name && err >= 0; name++)
		err = fn(h, *name, arg);
	list_free(list);
	return min_time(err, 0);
}

struct names {
	char **name;
	size_t n;
};

static int add_record_nqn(struct history *h, const char *name, void *arg)
{
	cleanup_free char *text = NULL;
	struct names *names = arg;
	struct rec_subsys r;
	ssize_t len = read_file(h, name, RECORD_MAX_BYTES, &text);
	bool known = false;

	if (len <= 0 || history_parse(text, (size_t)len, h->boot_id, TIME_NEVER, &r) <= 0)
		return 0;
	for (size_t i = 0; i < names->n; i++)
		known = known || streq(names->name[i], r.nqn);
	if (!known) {
		ARRAY_GROW(names->name, names->n);
		names->name[names->n++] = xstrdup(r.nqn);
	}
	rec_subsys_clear(&r);
	return 0;
}

char **history_list(struct history *h)
{
	struct names names = { NULL, 0 };

	/* an unreadable directory has nothing to tell: the same as an empty one */
	for_each_file(h, RECORD_PREFIX, add_record_nqn, &names);
	ARRAY_GROW(names.name, names.n);
	names.name[names.n] = NULL;
	return names.name;
}

/* --- triggers --------------------------------------------------------------------------------------------------- */

/* "connected-nvme3" */
static void parse_trigger_name(const char *rest, struct trigger *t)
{
	static const char connected[] = TRIGGER_CONNECTED "-";
	const char *ctrl = strchr(rest, '-');
	uint64_t n;

	t->connected = starts_with(rest, connected);
	t->instance = -1;
	if (ctrl && starts_with(ctrl, "-nvme") && parse_uint(ctrl + strlen("-nvme"), INT_MAX, &n) == 0)
		t->instance = (int)n;
}

/* "1 BOOTTIME_NS\n" */
static int64_t parse_trigger_time(const char *text)
{
	char version[] = { '0' + TRIGGER_VERSION, ' ', '\0' };
	int64_t now = now_boottime();
	char digits[24];
	const char *end;
	uint64_t n;

	if (!starts_with(text, version))
		return now;
	text += strlen(version);
	end = strchr(text, '\n');
	if (!end || end[1] != '\0' || (size_t)(end - text) >= sizeof(digits))
		return now;
	memcpy(digits, text, (size_t)(end - text));
	digits[end - text] = '\0';
	return parse_uint(digits, (uint64_t)now, &n) == 0 ? (int64_t)n : now;
}

struct taking {
	const char *prefix; /* of the files that are being taken */
	struct trigger *list;
	size_t n;
};

/* The first step: from here on a new trigger of the same name is another file. */
static int set_aside(struct history *h, const char *name, void *arg)
{
	cleanup_free char *taken = xasprintf(TRIGGER_TAKEN "%s", name + strlen(TRIGGER_PREFIX));

	return renameat(h->fd, name, h->fd, taken) < 0 && errno != ENOENT ? -errno : 0;
}

/* What has been set aside, by this run or by one that was killed before its second step. */
static int take(struct history *h, const char *name, void *arg)
{
	struct taking *taking = arg;
	cleanup_free char *text = NULL;
	struct trigger t;

	/* One whose contents cannot be read is a reason to look like any other. */
	t.at = parse_trigger_time(read_file(h, name, 64, &text) > 0 ? text : "");
	parse_trigger_name(name + strlen(taking->prefix), &t);
	if (unlinkat(h->fd, name, 0) < 0 && errno != ENOENT)
		return -errno;
	ARRAY_GROW(taking->list, taking->n);
	taking->list[taking->n++] = t;
	return 0;
}

static char *trigger_files(const char *prefix, const char *nqn)
{
	return xasprintf("%s%016llx-", prefix, (unsigned long long)trigger_hash(nqn));
}

static int count(struct history *h, const char *name, void *arg)
{
	++*(size_t *)arg;
	return 0;
}

bool history_triggered(struct history *h, const char *nqn)
{
	cleanup_free char *left = trigger_files(TRIGGER_PREFIX, nqn);
	cleanup_free char *taken = trigger_files(TRIGGER_TAKEN, nqn);
	size_t n = 0;

	return for_each_file(h, left, count, &n) == 0 && for_each_file(h, taken, count, &n) == 0 && n > 0;
}

ssize_t history_take_triggers(struct history *h, const char *nqn, struct trigger **list)
{
	cleanup_free char *left = trigger_files(TRIGGER_PREFIX, nqn);
	cleanup_free char *taken = trigger_files(TRIGGER_TAKEN, nqn);
	struct taking taking = { .prefix = taken };
	int err = for_each_file(h, left, set_aside, NULL);

	if (!err)
		err = for_each_file(h, taken, take, &taking);
	*list = taking.list;
	if (!err)
		return (ssize_t)taking.n;
	free(taking.list);
	*list = NULL;
	return err;
}

struct sweep {
	bool (*keep)(void *arg, uint64_t nqn_hash);
	void *arg;
	const char *prefix;
};

static int sweep_trigger(struct history *h, const char *name, void *arg)
{
	const struct sweep *sweep = arg;
	cleanup_free char *hash = xasprintf("0x%.16s", name + strlen(sweep->prefix));
	uint64_t n;

	/* one whose name is not understood belongs to no subsystem */
	if (parse_uint(hash, UINT64_MAX, &n) < 0 || !sweep->keep(sweep->arg, n))
		unlinkat(h->fd, name, 0);
	return 0;
}

/* ".trigger-PID" of a helper that was killed before it could rename it */
static int sweep_unfinished(struct history *h, const char *name, void *arg)
{
	const char *prefix = arg;
	uint64_t pid;

	if (parse_uint(name + strlen(prefix), INT_MAX, &pid) < 0 || pid == 0 ||
	    (kill((pid_t)pid, 0) < 0 && errno == ESRCH))
		unlinkat(h->fd, name, 0);
	return 0;
}

void history_sweep_triggers(struct history *h, bool (*keep)(void *arg, uint64_t nqn_hash), void *arg)
{
	static char unfinished[] = "." TRIGGER_PREFIX;
	struct sweep left = { keep, arg, TRIGGER_PREFIX }, taken = { keep, arg, TRIGGER_TAKEN };

	/* what stays is swept another time */
	for_each_file(h, left.prefix, sweep_trigger, &left);
	for_each_file(h, taken.prefix, sweep_trigger, &taken);
	for_each_file(h, unfinished, sweep_unfinished, unfinished);
}
