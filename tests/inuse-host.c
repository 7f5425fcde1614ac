/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "inuse-host.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <linux/fs.h>
#include <linux/loop.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define FAILING_MAX 8

/* The calls below are given no argument of ours, so what they have to know is kept here. */
static struct {
	struct {
		char path[128];
		int err;
	} failing[FAILING_MAX];
	size_t n_failing;
	struct host *ending;
	char ends_at[128], ends[128];
	int read_error;
	char opened[4096]; /* nodes, each followed by a blank */
	bool opened_for_writing, opened_char;
} effect;

/* ---- nodes ---- */

struct node {
	bool chr, busy;
	unsigned major, minor, backs_major, backs_minor;
};

static int real_openat(int dirfd, const char *path, int flags)
{
	int (*real)(int, const char *, int, ...) = (int (*)(int, const char *, int, ...))dlsym(RTLD_NEXT, "openat");

	return real(dirfd, path, flags, 0644);
}

static bool parse_node(int fd, struct node *node)
{
	char text[128], type[8];
	const char *backs;
	ssize_t n = fd < 0 ? -1 : (read)(fd, text, sizeof(text) - 1);

	*node = (struct node){ 0 };
	if (n <= 0)
		return false;
	text[n] = '\0';
	if (sscanf(text, "%7s %u:%u", type, &node->major, &node->minor) != 3 ||
	    !(streq(type, "block") || streq(type, "char")))
		return false;
	node->chr = streq(type, "char");
	node->busy = strstr(text, " claimed");
	backs = strstr(text, " backed-by ");
	if (backs)
		assert_int_equal(sscanf(backs, " backed-by %u:%u", &node->backs_major, &node->backs_minor), 2);
	return true;
}

static bool read_node(int dirfd, const char *path, int flags, struct node *node)
{
	int fd = real_openat(dirfd, path, O_RDONLY | O_NONBLOCK | flags);
	struct stat st;
	bool ok = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && parse_node(fd, node);

	if (fd >= 0)
		close(fd);
	return ok;
}

/* ---- in place of libc's ---- */

static int error_of(const char *path)
{
	for (size_t i = 0; i < effect.n_failing; i++)
		if (streq(effect.failing[i].path, path))
			return effect.failing[i].err;
	return 0;
}

static void end_process(const char *path)
{
	struct host *h = effect.ending;

	if (!h || !streq(path, effect.ends_at))
		return;
	effect.ending = NULL;
	drop(h, effect.ends);
}

int statx(int dirfd, const char *restrict path, int flags, unsigned mask, struct statx *restrict st)
{
	int (*real)(int, const char *, int, unsigned, struct statx *) =
		(int (*)(int, const char *, int, unsigned, struct statx *))dlsym(RTLD_NEXT, "statx");
	int ret = real(dirfd, path, flags, mask, st);
	struct node node;

	if (error_of(path)) {
		errno = error_of(path);
		return -1;
	}
	if (ret == 0 && S_ISREG(st->stx_mode) &&
	    read_node(dirfd, path, flags & AT_SYMLINK_NOFOLLOW ? O_NOFOLLOW : 0, &node)) {
		st->stx_mode = (uint16_t)((st->stx_mode & ~S_IFMT) | (node.chr ? S_IFCHR : S_IFBLK));
		st->stx_rdev_major = node.major;
		st->stx_rdev_minor = node.minor;
	}
	return ret;
}

ssize_t readlinkat(int dirfd, const char *restrict path, char *restrict buf, size_t size)
{
	ssize_t (*real)(int, const char *, char *, size_t) =
		(ssize_t (*)(int, const char *, char *, size_t))dlsym(RTLD_NEXT, "readlinkat");

	end_process(path);
	errno = error_of(path);
	return errno ? -1 : real(dirfd, path, buf, size);
}

static void note_opened(const char *path, int flags, const struct node *node)
{
	size_t n = strlen(effect.opened);

	snprintf(effect.opened + n, sizeof(effect.opened) - n, "%s ", path);
	effect.opened_for_writing |= (flags & O_ACCMODE) != O_RDONLY;
	effect.opened_char |= node->chr;
}

int openat(int dirfd, const char *path, int flags, ...)
{
	struct node node;

	end_process(path);
	errno = error_of(path);
	if (errno)
		return -1;
	if (!(flags & O_DIRECTORY) && read_node(dirfd, path, flags & O_NOFOLLOW, &node)) {
		note_opened(path, flags, &node);
		if ((flags & O_EXCL) && node.busy) {
			errno = EBUSY;
			return -1;
		}
		flags &= ~(O_EXCL | O_DIRECT);
	}
	return real_openat(dirfd, path, flags);
}

int ioctl(int fd, unsigned long request, ...)
{
	struct node node;
	bool is_node = lseek(fd, 0, SEEK_SET) == 0 && parse_node(fd, &node);
	va_list ap;
	void *arg;

	va_start(ap, request);
	arg = va_arg(ap, void *);
	va_end(ap);
	if (is_node && request == BLKSSZGET) {
		*(int *)arg = 512;
		return 0;
	}
	if (is_node && request == LOOP_GET_STATUS64 && node.backs_major) {
		((struct loop_info64 *)arg)->lo_rdevice = makedev(node.backs_major, node.backs_minor);
		return 0;
	}
	errno = is_node ? ENXIO : ENOTTY;
	return -1;
}

ssize_t pread(int fd, void *buf, size_t size, off_t offset)
{
	errno = effect.read_error > 0 ? effect.read_error : 0;
	if (errno)
		return -1;
	assert_int_equal((uintptr_t)buf % size, 0); /* as O_DIRECT wants it */
	assert_int_equal(offset, 0);
	memset(buf, 0, size);
	return effect.read_error < 0 ? 0 : (ssize_t)size;
}

/* ---- the tree ---- */

static char *below(const struct host *h, const char *path)
{
	return xasprintf("%s/%s", h->top, path);
}

static void make_dirs(char *path)
{
	for (char *p = path + 1; (p = strchr(p, '/')); p++) {
		*p = '\0';
		assert_true(mkdir(path, 0755) == 0 || errno == EEXIST);
		*p = '/';
	}
}

void put(struct host *h, const char *path, const char *text)
{
	cleanup_free char *full = below(h, path);
	FILE *file;

	make_dirs(full);
	file = fopen(full, "w");
	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

void put_dir(struct host *h, const char *path)
{
	cleanup_free char *full = xasprintf("%s/%s/", h->top, path);

	make_dirs(full);
}

void put_link(struct host *h, const char *path, const char *to)
{
	cleanup_free char *full = below(h, path);

	make_dirs(full);
	assert_int_equal(symlink(to, full), 0);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(path);
}

void drop(struct host *h, const char *path)
{
	cleanup_free char *full = *path ? below(h, path) : xstrdup(h->top);

	assert_int_equal(nftw(full, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}

static int open_below(const struct host *h, const char *path)
{
	cleanup_free char *full = below(h, path);
	int fd = open(full, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

struct host *host_new(void)
{
	struct host *h = xcalloc(1, sizeof(*h));

	memset(&effect, 0, sizeof(effect));
	snprintf(h->top, sizeof(h->top), "/tmp/test-inuse.XXXXXX");
	assert_non_null(mkdtemp(h->top));
	put_dir(h, "sys/class/block");
	put_dir(h, "sys/block");
	put_dir(h, "dev");
	put_dir(h, "config");
	put_link(h, "proc/1/ns/pid", "pid:[4026531836]");
	h->roots = (struct inuse_roots){ .sys = open_below(h, "sys"), .dev = open_below(h, "dev"),
					 .proc = open_below(h, "proc"), .configfs = open_below(h, "config") };
	has_process(h, 1, "systemd");
	put(h, "proc/swaps", "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n");
	return h;
}

void host_free(struct host *h)
{
	assert_false(effect.opened_for_writing);
	assert_false(effect.opened_char);
	close(h->roots.sys);
	close(h->roots.dev);
	close(h->roots.proc);
	if (h->roots.configfs >= 0)
		close(h->roots.configfs);
	drop(h, "");
	free(h);
}

/* ---- verbs ---- */

static void has_device(struct host *h, const char *where, const char *type, const char *name, const char *dev)
{
	cleanup_free char *attr = xasprintf("sys/devices/%s/%s/dev", where, name), *line = xasprintf("%s\n", dev);
	cleanup_free char *node = xasprintf("dev/%s", name), *text = xasprintf("%s %s", type, dev);

	put(h, attr, line);
	put(h, node, text);
}

static void has_block(struct host *h, const char *where, const char *name, const char *dev)
{
	cleanup_free char *link = xasprintf("sys/class/block/%s", name);
	cleanup_free char *to = xasprintf("../../devices/%s/%s", where, name);
	cleanup_free char *holders = xasprintf("sys/devices/%s/%s/holders", where, name);

	has_device(h, where, "block", name, dev);
	put_dir(h, holders);
	put_link(h, link, to);
}

void has_disk(struct host *h, const char *above, const char *name, const char *dev)
{
	cleanup_free char *link = xasprintf("sys/devices/%s/%s/device", above, name);

	has_block(h, above, name, dev);
	put_link(h, link, "..");
}

void has_partition(struct host *h, const char *above, const char *disk, const char *name, const char *dev)
{
	cleanup_free char *where = xasprintf("%s/%s", above, disk);
	cleanup_free char *mark = xasprintf("sys/devices/%s/%s/%s/partition", above, disk, name);

	has_block(h, where, name, dev);
	put(h, mark, "1\n");
}

void has_generic(struct host *h, const char *above, const char *name, const char *dev)
{
	has_device(h, above, "char", name, dev);
}

void has_ctrl(struct host *h, const char *name, const char *state)
{
	cleanup_free char *attr = xasprintf("sys/devices/%s/state", name), *line = xasprintf("%s\n", state);
	cleanup_free char *link = xasprintf("sys/class/nvme/%s", name), *to = xasprintf("../../devices/%s", name);

	put(h, attr, line);
	put_link(h, link, to);
}

void has_map(struct host *h, const char *dm, const char *name, const char *uuid, const char *dev)
{
	cleanup_free char *name_attr = xasprintf("sys/devices/virtual/%s/dm/name", dm);
	cleanup_free char *uuid_attr = xasprintf("sys/devices/virtual/%s/dm/uuid", dm);
	cleanup_free char *name_line = xasprintf("%s\n", name), *uuid_line = xasprintf("%s\n", uuid);
	cleanup_free char *slaves = xasprintf("sys/devices/virtual/%s/slaves", dm);

	has_block(h, "virtual", dm, dev);
	put(h, name_attr, name_line);
	put(h, uuid_attr, uuid_line);
	put_dir(h, slaves);
}

void maps(struct host *h, const char *dm, const char *disk)
{
	cleanup_free char *holder = xasprintf("sys/class/block/%s/holders/%s", disk, dm);
	cleanup_free char *slave = xasprintf("sys/class/block/%s/slaves/%s", dm, disk);
	cleanup_free char *node = xasprintf("dev/%s", disk);

	put_link(h, holder, "elsewhere");
	put_link(h, slave, "elsewhere");
	claimed(h, node);
}

void has_process(struct host *h, int pid, const char *comm)
{
	cleanup_free char *path = xasprintf("proc/%d/comm", pid), *line = xasprintf("%s\n", comm);
	cleanup_free char *fds = xasprintf("proc/%d/fd", pid), *task = xasprintf("proc/%d/task/%d", pid, pid);

	put(h, path, line);
	put_dir(h, fds);
	put_dir(h, task);
}

void has_open(struct host *h, int pid, int fd, const char *link)
{
	cleanup_free char *path = xasprintf("proc/%d/fd/%d", pid, fd);
	cleanup_free char *node = below(h, link);

	put_link(h, path, starts_with(link, "dev/") ? node : link);
}

void has_mounts(struct host *h, int pid, const char *ns, const char *mountinfo)
{
	cleanup_free char *link = xasprintf("proc/%d/ns/mnt", pid), *table = xasprintf("proc/%d/mountinfo", pid);

	put_link(h, link, ns);
	put(h, table, mountinfo);
}

void has_export(struct host *h, const char *nqn, const char *nsid, const char *device_path, const char *enable)
{
	cleanup_free char *path = xasprintf("config/nvmet/subsystems/%s/namespaces/%s/device_path", nqn, nsid);
	cleanup_free char *on = xasprintf("config/nvmet/subsystems/%s/namespaces/%s/enable", nqn, nsid);
	cleanup_free char *path_line = xasprintf("%s\n", device_path), *on_line = xasprintf("%s\n", enable);

	put(h, path, path_line);
	put(h, on, on_line);
}

/* ---- effects ---- */

void claimed(struct host *h, const char *node)
{
	cleanup_free char *full = below(h, node);
	FILE *file = fopen(full, "a");

	assert_non_null(file);
	assert_true(fputs(" claimed", file) >= 0);
	assert_int_equal(fclose(file), 0);
}

void fails(const char *path, int err)
{
	assert_true(effect.n_failing < FAILING_MAX);
	snprintf(effect.failing[effect.n_failing].path, sizeof(effect.failing[0].path), "%s", path);
	effect.failing[effect.n_failing++].err = err;
}

void ends_when_asked(struct host *h, const char *path, const char *what)
{
	effect.ending = h;
	snprintf(effect.ends_at, sizeof(effect.ends_at), "%s", path);
	snprintf(effect.ends, sizeof(effect.ends), "%s", what);
}

void reads_fail(int err)
{
	effect.read_error = err;
}

unsigned opened(const char *node)
{
	cleanup_free char *word = xasprintf("%s ", node);
	unsigned n = 0;

	for (const char *s = effect.opened; (s = strstr(s, word)); s += strlen(word))
		n += s == effect.opened || s[-1] == ' ';
	return n;
}

/* ---- answers ---- */

static int ask(struct host *h, const char *name, const char *const *gone, char **user)
{
	size_t n = 0;

	while (gone && gone[n])
		n++;
	return inuse_check(&h->roots, name, gone, n, user);
}

void assert_free(struct host *h, const char *name, const char *const *gone)
{
	cleanup_free char *user = NULL;

	if (ask(h, name, gone, &user) != 0)
		fail_msg("%s should be free, but: %s", name, user);
	assert_null(user);
}

void assert_used(struct host *h, const char *name, const char *const *gone, const char *by)
{
	cleanup_free char *user = NULL;

	assert_int_equal(ask(h, name, gone, &user), 1);
	assert_string_equal(user, by);
}
