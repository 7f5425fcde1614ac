/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sysfs-tree.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "sysfs.h"

static int open_in_root(int root, const char *path, int flags)
{
	struct open_how how = { .flags = flags | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
	int fd;

	do /* EAGAIN: something was renamed meanwhile, so that ".." could not be trusted */
		fd = syscall(SYS_openat2, root, path, &how, sizeof(how));
	while (fd < 0 && errno == EAGAIN);
	return fd < 0 ? -errno : fd;
}

int sysfs_open_root(const char *path)
{
	cleanup_fd int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int below;

	if (fd < 0)
		return -errno;
	if (faccessat(fd, "class", F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return steal_fd(&fd);
	/* the copy of a whole root, as other tools with a --sysroot take it */
	below = open_in_root(fd, "sys", O_RDONLY | O_DIRECTORY);
	return below >= 0 ? below : steal_fd(&fd);
}

int tree_init(struct tree *tree, int root)
{
	struct statfs fs;

	if (fstatfs(root, &fs) < 0)
		return -errno;
	*tree = (struct tree){ .root = root, .bundle = fs.f_type != SYSFS_MAGIC };
	return 0;
}

/* Errors that say nothing about what was to be read but everything about this process. */
static int judge_error(struct tree *tree, int err)
{
	if (err == -EMFILE || err == -ENFILE || err == -ENOMEM || err == -ENOSYS)
		tree->err = err;
	return err;
}

bool is_gone(int err)
{
	/* no entry any more; or opened in time, but the device left before the read (kernfs_get_active) */
	return err == -ENOENT || err == -ENODEV;
}

static char *join(const char *path, const char *name)
{
	return *path ? xasprintf("%s/%s", path, name) : xstrdup(name);
}

/*
 * Below the live /sys a plain openat(2), relative to the directory that the kernel looked up once. In a bundle
 * RESOLVE_IN_ROOT takes the very directory that it is given for the root: so always the bundle's own, with the whole
 * path, or the relative links of sysfs (../../devices/...) would end in the wrong place.
 */
static int open_below(struct tree *tree, const struct place *p, const char *name, int flags)
{
	cleanup_free char *path = NULL;
	int fd;

	if (!tree->bundle) {
		fd = openat(p ? p->fd : tree->root, name, flags | O_CLOEXEC);
		return fd < 0 ? judge_error(tree, -errno) : fd;
	}
	path = join(p ? p->path : "", name);
	return judge_error(tree, open_in_root(tree->root, path, flags));
}

int place_open(struct tree *tree, const struct place *parent, const char *name, struct place *p)
{
	cleanup_fd int fd = open_below(tree, parent, name, O_RDONLY | O_DIRECTORY);

	*p = (struct place){ .fd = -1 };
	if (fd < 0)
		return fd;
	p->dir = fdopendir(fd);
	if (!p->dir)
		return judge_error(tree, -errno);
	p->fd = steal_fd(&fd); /* closed with dir */
	if (tree->bundle)
		p->path = join(parent ? parent->path : "", name);
	return 0;
}

void place_close(struct place *p)
{
	if (p->dir)
		closedir(p->dir);
	free(p->path);
	*p = (struct place){ .fd = -1 };
}

const char *place_next(struct tree *tree, const struct place *p)
{
	const struct dirent *e;

	do {
		errno = 0;
		e = readdir(p->dir);
	} while (e && e->d_type != DT_DIR && e->d_type != DT_LNK && e->d_type != DT_UNKNOWN);
	if (!e && errno)
		tree->err = -errno;
	return e ? e->d_name : NULL;
}

ssize_t attr_read(struct tree *tree, const struct place *p, const char *name, char *buf, size_t size)
{
	cleanup_fd int fd = -1;
	char path[32];
	struct stat st;

	if (!tree->bundle)
		return judge_error(tree, read_text_at(p->fd, name, buf, size));
	/* A bundle may hold anything, and opening a device node can have effects: look first, then open that file */
	fd = open_below(tree, p, name, O_PATH);
	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return S_ISDIR(st.st_mode) ? -EISDIR : -EINVAL;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return judge_error(tree, read_text_at(AT_FDCWD, path, buf, size));
}

static void trim(char *s)
{
	size_t n = strlen(s);

	while (n > 0 && s[n - 1] == ' ')
		s[--n] = '\0';
}

char *attr_string(struct tree *tree, const struct place *p, const char *name, int *err)
{
	char buf[512];
	ssize_t n = attr_read(tree, p, name, buf, sizeof(buf));

	*err = n < 0 ? n : 0;
	if (n < 0)
		return NULL;
	trim(buf);
	/* what vsnprintf() prints for the pointer that is missing as long as a controller has no subsystem */
	if (!*buf || streq(buf, "(efault)") || streq(buf, "(null)"))
		return NULL;
	return xstrdup(buf);
}

int attr_number(struct tree *tree, const struct place *p, const char *name, int otherwise)
{
	char buf[32];
	uint64_t value;

	if (attr_read(tree, p, name, buf, sizeof(buf)) < 0 || parse_uint(buf, INT_MAX, &value) < 0)
		return otherwise;
	return value;
}
