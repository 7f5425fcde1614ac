/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Which files the configuration consists of, and whether they may be believed.
 */
#include "config-parts.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#define FRESH (20 * NS_PER_MS) /* two ticks at CONFIG_HZ=100 */

/* ---- where they are ---- */

void config_paths_system(struct config_paths *p)
{
	*p = (struct config_paths){
		.file = xstrdup(SYSCONFDIR "/nvme-nsheal.conf"),
		.dir = { xstrdup(PREFIXLIBDIR "/nvme-nsheal.conf.d"), xstrdup(RUNCONFDIR "/nvme-nsheal.conf.d"),
			 xstrdup(SYSCONFDIR "/nvme-nsheal.conf.d") },
		.check_owner = geteuid() == 0,
	};
}

void config_paths_file(struct config_paths *p, const char *file)
{
	*p = (struct config_paths){
		.file = xstrdup(file),
		.dir = { xasprintf("%s.d", file) },
		.required = true,
		.check_owner = geteuid() == 0,
	};
}

void config_paths_clear(struct config_paths *p)
{
	cleanup_free_p(&p->file);
	for (size_t i = 0; i < ARRAY_SIZE(p->dir); i++)
		cleanup_free_p(&p->dir[i]);
	*p = (struct config_paths){ 0 };
}

/* As a shell's *.conf: a name that begins with a dot is somebody's temporary file. */
static bool is_drop_in(const char *name)
{
	size_t len = strlen(name);

	return name[0] != '.' && len > strlen(".conf") && streq(name + len - strlen(".conf"), ".conf");
}

/* ---- the stamp ---- */

struct stamp {
	uint64_t hash;
	int64_t newest; /* ctime, CLOCK_REALTIME in ns: no write leaves it alone, and nobody can set it */
};

static int64_t stamp_time(const struct timespec *ts)
{
	return ts->tv_sec * NS_PER_SEC + ts->tv_nsec;
}

/* The sum does not depend on the order in which a directory gives its names. */
static void stamp_add(struct stamp *s, const char *name, const struct stat *st, int err)
{
	uint64_t h = hash_bytes(HASH_INIT, name, strlen(name) + 1);

	if (err) {
		h = hash_bytes(h, &err, sizeof(err));
	} else if (S_ISCHR(st->st_mode)) { /* /dev/null: its times change for reasons of their own */
		h = hash_bytes(h, &st->st_rdev, sizeof(st->st_rdev));
	} else {
		const int64_t v[] = { (int64_t)st->st_dev,  (int64_t)st->st_ino,       st->st_mode,
				      st->st_uid,	    st->st_size,	       stamp_time(&st->st_mtim),
				      stamp_time(&st->st_ctim) };

		h = hash_bytes(h, v, sizeof(v));
		s->newest = max_time(s->newest, stamp_time(&st->st_ctim));
	}
	s->hash += h;
}

static void stamp_path(struct stamp *s, int dir, const char *name, const char *as)
{
	struct stat st = { 0 };
	int err = fstatat(dir, name, &st, 0) < 0 ? errno : 0;

	stamp_add(s, as, &st, err);
}

static void stamp_dir(struct stamp *s, const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *entry;

	stamp_path(s, AT_FDCWD, path, path);
	if (!dir)
		return;
	while ((entry = readdir(dir)) != NULL) {
		cleanup_free char *as = NULL;

		if (!is_drop_in(entry->d_name))
			continue;
		as = xasprintf("%s/%s", path, entry->d_name);
		stamp_path(s, dirfd(dir), entry->d_name, as);
	}
	closedir(dir);
}

uint64_t config_stamp_fresh(const struct config_paths *p, bool *fresh)
{
	struct stamp s = { .newest = INT64_MIN };
	struct timespec now;

	stamp_path(&s, AT_FDCWD, p->file, p->file);
	for (size_t i = 0; i < ARRAY_SIZE(p->dir) && p->dir[i]; i++)
		stamp_dir(&s, p->dir[i]);
	clock_gettime(CLOCK_REALTIME, &now);
	/* a time in the future says nothing: the clock was set back */
	*fresh = s.newest > stamp_time(&now) - FRESH && s.newest <= stamp_time(&now);
	return s.hash ? s.hash : 1; /* 0: no stamp at all */
}

uint64_t config_stamp(const struct config_paths *p)
{
	bool fresh;

	return config_stamp_fresh(p, &fresh);
}

/* ---- one file ---- */

static bool is_null_device(const struct stat *st)
{
	return S_ISCHR(st->st_mode) && st->st_rdev == makedev(1, 3);
}

/* What others can write says nothing about what root wants. */
static bool is_foreign(const struct stat *st)
{
	return st->st_uid != 0 && st->st_uid != geteuid();
}

static bool is_open_to_others(const struct stat *st)
{
	return st->st_mode & (S_IWGRP | S_IWOTH);
}

static void fault_owner(struct config_load_state *l, size_t file, const struct stat *st)
{
	struct config_place at = { .file = file };
	const char *name = l->file[file].name;

	if (is_foreign(st))
		config_fault(l, at, "it belongs to user %u, neither to root nor to us: chown root %s",
			     (unsigned)st->st_uid, name);
	if (is_open_to_others(st))
		config_fault(l, at, "%s can write it: chmod go-w %s",
			     st->st_mode & S_IWOTH ? "everybody" : "its group", name);
}

static bool is_readable(struct config_load_state *l, size_t file, const struct stat *st, bool check_owner)
{
	struct config_place at = { .file = file };

	if (S_ISDIR(st->st_mode))
		config_fault(l, at, "it is a directory; a file is expected");
	else if (!S_ISREG(st->st_mode))
		config_fault(l, at, "it is not a regular file");
	else if (st->st_size > CONFIG_MAX_SIZE)
		config_fault(l, at, "it has %lld bytes; a configuration file has at most %u", (long long)st->st_size,
			     CONFIG_MAX_SIZE);
	else if (check_owner && (is_foreign(st) || is_open_to_others(st)))
		fault_owner(l, file, st);
	else
		return true;
	return false;
}

/* All bytes of fd, at most CONFIG_MAX_SIZE + 1: it may have grown since it was looked at. Negative errno. */
static ssize_t read_all(int fd, char **text)
{
	size_t len = 0, room = 0;

	for (;;) {
		ssize_t n;

		if (len == room) {
			room = room ? room * 2 : 16384;
			*text = xreallocarray(*text, room, 1);
		}
		n = read(fd, *text + len, room - len);
		if (n < 0 && errno != EINTR)
			return -errno;
		if (n == 0 || len > CONFIG_MAX_SIZE)
			return (ssize_t)len;
		len += n < 0 ? 0 : (size_t)n;
	}
}

static void read_open_file(struct config_load_state *l, int fd, const char *path, bool check_owner)
{
	cleanup_free char *text = NULL;
	struct config *c = l->config;
	struct stat st;
	size_t file;
	ssize_t len;

	if (fstat(fd, &st) == 0 && is_null_device(&st))
		return; /* masked */
	file = config_add_file(l, path);
	if (!is_readable(l, file, &st, check_owner))
		return;
	len = read_all(fd, &text);
	if (len < 0) {
		config_fault(l, (struct config_place){ .file = file }, "cannot be read: %s", strerror((int)-len));
		return;
	}
	if (len > CONFIG_MAX_SIZE) {
		config_fault(l, (struct config_place){ .file = file },
			     "it grows; a configuration file has at most %u bytes", CONFIG_MAX_SIZE);
		return;
	}
	ARRAY_GROW(c->file, c->n_file);
	c->file[c->n_file++] = xstrdup(path);
	config_read_text(l, file, text, (size_t)len);
}

/* O_NONBLOCK: a FIFO must not hold us. A symbolic link is followed, and its target is what is judged. */
static void read_file(struct config_load_state *l, const char *path, bool required, bool check_owner)
{
	cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct config_place at = { 0 };
	struct stat st;
	int err = errno;
	bool dangling;

	if (fd >= 0) {
		read_open_file(l, fd, path, check_owner);
		return;
	}
	dangling = err == ENOENT && lstat(path, &st) == 0 && S_ISLNK(st.st_mode);
	if (err == ENOENT && !dangling && !required)
		return; /* a drop-in can go between the listing and now: the directory's stamp tells */
	at.file = config_add_file(l, path);
	if (dangling)
		config_fault(l, at, "it is a link to a file that is not there; a link to /dev/null masks a file");
	else
		config_fault(l, at, "cannot be opened: %s", strerror(err));
}

/* ---- drop-ins ---- */

struct drop_in {
	char *name, *path;
	size_t rank; /* of its directory: the higher, the stronger */
};

struct drop_ins {
	struct drop_in *d;
	size_t n;
};

static int by_name_then_rank(const void *a, const void *b)
{
	const struct drop_in *x = a, *y = b;
	int order = strcmp(x->name, y->name);

	return order ? order : (x->rank < y->rank) - (x->rank > y->rank);
}

static void dir_fault(struct config_load_state *l, const char *path, int err)
{
	struct config_place at = { .file = config_add_file(l, path) };

	config_fault(l, at, "cannot be read as a directory: %s", strerror(err));
}

static void add_drop_in(struct drop_ins *list, const char *dir, const char *name, size_t rank)
{
	ARRAY_GROW(list->d, list->n);
	list->d[list->n++] = (struct drop_in){ xstrdup(name), xasprintf("%s/%s", dir, name), rank };
}

static void list_dir(struct config_load_state *l, const char *path, size_t rank, bool check_owner,
		     struct drop_ins *list)
{
	DIR *dir = opendir(path);
	struct dirent *entry;
	struct stat st;

	if (!dir) {
		if (errno != ENOENT)
			dir_fault(l, path, errno);
		return;
	}
	if (check_owner && fstat(dirfd(dir), &st) == 0 && (is_foreign(&st) || is_open_to_others(&st)))
		fault_owner(l, config_add_file(l, path), &st);
	while (errno = 0, (entry = readdir(dir)) != NULL)
		if (is_drop_in(entry->d_name))
			add_drop_in(list, path, entry->d_name, rank);
	if (errno)
		dir_fault(l, path, errno);
	closedir(dir);
}

void config_read_files(struct config_load_state *l, const struct config_paths *p)
{
	struct drop_ins list = { 0 };

	read_file(l, p->file, p->required, p->check_owner);
	for (size_t i = 0; i < ARRAY_SIZE(p->dir) && p->dir[i]; i++)
		list_dir(l, p->dir[i], i, p->check_owner, &list);
	if (list.n)
		qsort(list.d, list.n, sizeof(*list.d), by_name_then_rank);
	for (size_t i = 0; i < list.n; i++)
		if (i == 0 || !streq(list.d[i].name, list.d[i - 1].name))
			read_file(l, list.d[i].path, false, p->check_owner);
	for (size_t i = 0; i < list.n; i++) {
		free(list.d[i].name);
		free(list.d[i].path);
	}
	free(list.d);
}
