/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Who uses which device, seen from outside: open files, mounts, swaps, loop devices, exports. Everything becomes rows
 * of (device, how); inuse.c looks its disks up among them.
 */
#include "inuse-look.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <linux/loop.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* PROC_PID_INIT_INO, include/linux/proc_ns.h; from 6.18 PID_NS_INIT_INO of include/uapi/linux/nsfs.h */
#define HOST_PID_NS "pid:[4026531836]"
#define COMM_MAX 63 /* 15 for programs, more for kernel threads */

typedef void (*each_fn)(struct inuse_look *l, void *arg, const char *name);

static void cleanup_dir_p(DIR **dir)
{
	if (*dir)
		closedir(*dir);
}

static void cleanup_file_p(FILE **file)
{
	if (*file)
		fclose(*file);
}

static void trouble(struct inuse_look *l, char *text)
{
	if (l->trouble)
		free(text);
	else
		l->trouble = text;
}

bool inuse_same_dev(const struct dev_id *a, const struct dev_id *b)
{
	return a->chr == b->chr && a->dev == b->dev;
}

int inuse_stat_dev(int dirfd, const char *path, int flags, struct dev_id *id)
{
	struct statx st;

	/* DONT_SYNC: what is cached will do, and an open file on a dead NFS server must not hang us */
	if (statx(dirfd, path, flags | AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, STATX_TYPE, &st) < 0)
		return -errno;
	if (!S_ISBLK(st.stx_mode) && !S_ISCHR(st.stx_mode))
		return 0;
	id->chr = S_ISCHR(st.stx_mode);
	id->dev = makedev(st.stx_rdev_major, st.stx_rdev_minor);
	return 1;
}

static bool is_known(const struct inuse_look *l, enum use_kind kind, const struct dev_id *id)
{
	for (size_t i = 0; i < l->n; i++)
		if (l->use[i].kind == kind && inuse_same_dev(&l->use[i].id, id))
			return true;
	return false;
}

/* Takes how. */
static void add_use(struct inuse_look *l, enum use_kind kind, const struct dev_id *id, char *how)
{
	if (is_known(l, kind, id)) {
		free(how);
		return;
	}
	ARRAY_GROW(l->use, l->n);
	l->use[l->n++] = (struct use){ .kind = kind, .id = *id, .how = how };
}

/* A path that the kernel was once given, as seen from here: 1 a device, 0 something else, -errno. */
static int path_dev(const struct inuse_look *l, const char *path, struct dev_id *id)
{
	if (starts_with(path, "/dev/"))
		return inuse_stat_dev(l->r.dev, path + strlen("/dev/"), 0, id);
	if (path[0] != '/')
		return -EINVAL;
	return inuse_stat_dev(AT_FDCWD, path, 0, id);
}

/* Names that start with a dot are none in any of these trees. -errno: the directory could not be read to its end. */
static int for_each(struct inuse_look *l, int dirfd, const char *path, each_fn each, void *arg)
{
	int fd = openat(dirfd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	__attribute__((cleanup(cleanup_dir_p))) DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;

	if (!dir) {
		int err = -errno;

		if (fd >= 0)
			close(fd);
		return err;
	}
	for (errno = 0; (e = readdir(dir)); errno = 0)
		if (e->d_name[0] != '.')
			each(l, arg, e->d_name);
	return -errno;
}

static bool is_number(const char *s)
{
	return *s && strspn(s, "0123456789") == strlen(s);
}

/* Blanks, tabs, newlines and backslashes are \ooo in /proc's tables. In place. */
static void unescape(char *s)
{
	char *to = s;

	for (; *s; s++) {
		if (s[0] == '\\' && strspn(s + 1, "01234567") >= 3) {
			*to++ = (char)((s[1] - '0') << 6 | (s[2] - '0') << 3 | (s[3] - '0'));
			s += 3;
		} else {
			*to++ = *s;
		}
	}
	*to = '\0';
}

static FILE *open_text(int dirfd, const char *path)
{
	int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "r");

	if (!file && fd >= 0)
		close(fd);
	return file;
}

/* ---- processes ---- */

struct process {
	const char *pid;
	const char *task;  /* PID, or PID/task/TID */
	int fd;            /* of the table */
	char *comm;        /* NULL: not read yet */
};

struct namespaces {
	char **name; /* "mnt:[4026531840]" */
	size_t n;
};

static const char *process_name(const struct inuse_look *l, struct process *p)
{
	cleanup_free char *path = xasprintf("%s/comm", p->pid);
	char buf[256];

	if (!p->comm)
		p->comm = read_text_at(l->r.proc, path, buf, sizeof(buf)) > 0 ? printable(buf, COMM_MAX) : xstrdup("?");
	return p->comm;
}

/* What ends while it is looked at is nobody; of the living, everything must be seen. */
static void process_trouble(struct inuse_look *l, struct process *p, int err)
{
	if (faccessat(l->r.proc, p->task, F_OK, 0) < 0)
		return;
	trouble(l, xasprintf("the open files of %s (pid %s) cannot be seen: %s", process_name(l, p), p->pid,
			     strerror(err)));
}

/*
 * Not by the name: a container's node of this disk may be called anything, be bound anywhere, and be deleted. Only what
 * has no path at all (sockets, pipes, anonymous inodes) is left out by it.
 */
static void look_at_fd(struct inuse_look *l, void *arg, const char *name)
{
	struct process *p = arg;
	enum use_kind kind;
	struct dev_id id;
	char to[8];
	ssize_t n = readlinkat(p->fd, name, to, sizeof(to));
	int ret;

	if (n > 0 && to[0] != '/')
		return;
	ret = n < 0 ? -errno : inuse_stat_dev(p->fd, name, 0, &id);
	if (ret == -ENOENT || ret == 0) /* closed meanwhile, or a file */
		return;
	if (ret < 0) {
		process_trouble(l, p, -ret);
		return;
	}
	kind = !id.chr && streq(process_name(l, p), "multipathd") ? USE_MULTIPATHD : USE_DEVICE;
	if (!is_known(l, kind, &id))
		add_use(l, kind, &id, xasprintf("opened by %s (pid %s)", process_name(l, p), p->pid));
}

static void look_at_table(struct inuse_look *l, struct process *p)
{
	cleanup_free char *table = xasprintf("%s/fd", p->task);
	int ret;

	p->fd = openat(l->r.proc, table, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ret = p->fd < 0 ? -errno : for_each(l, p->fd, ".", look_at_fd, p);
	if (ret < 0)
		process_trouble(l, p, -ret);
	if (p->fd >= 0)
		close(p->fd);
}

/*
 * A thread may have left the common table (unshare), and a process whose first thread has ended shows an empty one
 * while the others live. Where the kernel cannot compare (no CONFIG_KCMP), each is looked at.
 */
static void look_at_task(struct inuse_look *l, void *arg, const char *tid)
{
	const struct process *leader = arg;
	cleanup_free char *task = xasprintf("%s/task/%s", leader->pid, tid);
	struct process p = { .pid = leader->pid, .task = task };
	uint64_t a, b;

	if (streq(tid, leader->pid) || parse_uint(leader->pid, INT32_MAX, &a) < 0 ||
	    parse_uint(tid, INT32_MAX, &b) < 0)
		return;
	if (syscall(SYS_kcmp, (pid_t)a, (pid_t)b, KCMP_FILES, 0, 0) != 0)
		look_at_table(l, &p);
	free(p.comm);
}

static void look_at_open_files(struct inuse_look *l, const char *pid)
{
	cleanup_free char *tasks = xasprintf("%s/task", pid);
	struct process p = { .pid = pid, .task = pid };
	int ret;

	look_at_table(l, &p);
	ret = for_each(l, l->r.proc, tasks, look_at_task, &p);
	if (ret < 0)
		process_trouble(l, &p, -ret);
	free(p.comm);
}

/* One line of mountinfo (proc_pid_mountinfo(5)). Of a file system of several devices (0:N) it shows only the first. */
static void look_at_mount(struct inuse_look *l, const char *line, const char *whose)
{
	cleanup_free char *where = NULL, *source = NULL, *shown = NULL;
	const char *rest = strstr(line, " - ");
	struct dev_id id = { 0 };
	unsigned major, minor;

	if (!rest || sscanf(line, "%*u %*u %u:%u %*s %ms", &major, &minor, &where) != 3)
		return;
	id.dev = makedev(major, minor);
	if (major == 0 && (sscanf(rest + 3, "%*s %ms", &source) != 1 || !starts_with(source, "/dev/") ||
			   path_dev(l, source, &id) <= 0 || id.chr))
		return;
	if (is_known(l, USE_DEVICE, &id))
		return;
	unescape(where);
	shown = printable(where, 200);
	add_use(l, USE_DEVICE, &id, xasprintf("mounted on %s%s", shown, whose));
}

/*
 * To name the user only, so that errors are of no matter: a mount holds its device exclusively, and that is asked for
 * later. A namespace in which nobody lives, and what lies outside of a chroot, stay nameless.
 */
static void look_at_mounts(struct inuse_look *l, struct namespaces *seen, const char *pid)
{
	cleanup_free char *link = xasprintf("%s/ns/mnt", pid), *table = xasprintf("%s/mountinfo", pid);
	cleanup_free char *whose = NULL, *line = NULL;
	__attribute__((cleanup(cleanup_file_p))) FILE *file = NULL;
	struct process p = { .pid = pid, .task = pid };
	size_t size = 0;
	char name[64];
	ssize_t n = readlinkat(l->r.proc, link, name, sizeof(name) - 1);

	if (n <= 0)
		return;
	name[n] = '\0';
	for (size_t i = 0; i < seen->n; i++)
		if (streq(seen->name[i], name))
			return;
	file = open_text(l->r.proc, table);
	if (!file)
		return;
	whose = seen->n == 0 ? xstrdup("") :
			       xasprintf(" in the mount namespace of %s (pid %s)", process_name(l, &p), pid);
	ARRAY_GROW(seen->name, seen->n);
	seen->name[seen->n++] = xstrdup(name);
	while (getline(&line, &size, file) > 0)
		look_at_mount(l, line, whose);
	free(p.comm);
}

static void look_at_process(struct inuse_look *l, void *arg, const char *pid)
{
	if (!is_number(pid))
		return;
	look_at_mounts(l, arg, pid);
	look_at_open_files(l, pid);
}

/*
 * Process 1 tells whether we see the host's processes or a container's. To read this link of it takes the privilege
 * (CAP_SYS_PTRACE) without which the processes of others could be hidden from us (mount option hidepid) in silence.
 */
static void look_at_processes(struct inuse_look *l)
{
	struct namespaces seen = { 0 };
	char ns[64];
	ssize_t n = readlinkat(l->r.proc, "1/ns/pid", ns, sizeof(ns) - 1);
	int ret;

	if (n < 0) {
		trouble(l, xasprintf("the processes of this host cannot be seen: /proc/1/ns/pid: %s", strerror(errno)));
		return;
	}
	ns[n] = '\0';
	if (!streq(ns, HOST_PID_NS)) {
		trouble(l, xstrdup("the processes of the host cannot be seen from this PID namespace"));
		return;
	}
	look_at_mounts(l, &seen, "1"); /* the host's own namespace needs no name */
	ret = for_each(l, l->r.proc, ".", look_at_process, &seen);
	if (ret < 0)
		trouble(l, xasprintf("/proc cannot be read: %s", strerror(-ret)));
	for (size_t i = 0; i < seen.n; i++)
		free(seen.name[i]);
	free(seen.name);
}

/* To name the user only: a swap holds its device exclusively. */
static void look_at_swaps(struct inuse_look *l)
{
	__attribute__((cleanup(cleanup_file_p))) FILE *file = open_text(l->r.proc, "swaps");
	cleanup_free char *line = NULL;
	size_t size = 0;

	while (file && getline(&line, &size, file) > 0) {
		struct dev_id id;

		line[strcspn(line, " \t\n")] = '\0';
		unescape(line);
		if (starts_with(line, "/dev/") && path_dev(l, line, &id) == 1 && !id.chr)
			add_use(l, USE_DEVICE, &id, xstrdup("in use as swap space"));
	}
}

/* ---- what sits in no process: loop devices ---- */

/*
 * The kernel's word for it. Only where the path tells nothing, since it asks the file system, which may be a dead file
 * server. Opening a loop device for reading changes nothing about it.
 */
static int loop_backing(const struct inuse_look *l, const char *loop, struct dev_id *id)
{
	cleanup_fd int fd = openat(l->r.dev, loop, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
	struct loop_info64 info = { 0 };

	if (fd < 0)
		return -errno;
	if (ioctl(fd, LOOP_GET_STATUS64, &info) < 0)
		return -errno;
	id->chr = false;
	id->dev = info.lo_rdevice; /* of a file: 0, or before 4.17 its file system's device */
	return 1;
}

/* A path of another mount namespace may be anything here: it is believed only where it leads to a file. */
static void look_at_loop(struct inuse_look *l, void *arg, const char *name)
{
	cleanup_free char *attr = xasprintf("block/%s/loop/backing_file", name);
	struct dev_id id;
	char path[4096];
	ssize_t n;
	int ret;

	if (!starts_with(name, "loop") || !is_number(name + strlen("loop")))
		return;
	n = read_text_at(l->r.sys, attr, path, sizeof(path));
	if (n == -ENOENT || n == -ENXIO) /* nothing behind it */
		return;
	ret = n < 0 ? (int)n : path_dev(l, path, &id);
	if (ret == 0)
		return;
	if (ret == 1 && !id.chr)
		add_use(l, USE_DEVICE, &id, xasprintf("backing %s", name));
	ret = loop_backing(l, name, &id);
	if (ret == -ENXIO) /* detached meanwhile */
		return;
	if (ret < 0)
		trouble(l, xasprintf("what backs %s cannot be found out: %s", name, strerror(-ret)));
	else
		add_use(l, USE_DEVICE, &id, xasprintf("backing %s", name));
}

/* ---- exports by the kernel: the NVMe target and LIO ---- */

#define NVMET_PATH_MAX 4096

struct export {
	const char *subsys; /* NQN */
	const char *dir;    /* below the configfs root */
};

/* 1 and device_path in path; 0 not enabled, or gone meanwhile. The target opens its device when it is enabled. */
static int read_export(struct inuse_look *l, const char *dir, char path[NVMET_PATH_MAX])
{
	cleanup_free char *enable = xasprintf("%s/enable", dir), *device = xasprintf("%s/device_path", dir);
	char on[16];
	ssize_t n = read_text_at(l->r.configfs, enable, on, sizeof(on));

	if (n >= 0 && streq(on, "0"))
		return 0;
	if (n >= 0)
		n = read_text_at(l->r.configfs, device, path, NVMET_PATH_MAX);
	if (n == -ENOENT)
		return 0;
	if (n < 0)
		trouble(l, xasprintf("what the kernel's NVMe target exports cannot be read: %s", strerror((int)-n)));
	return n >= 0;
}

static void look_at_export(struct inuse_look *l, void *arg, const char *name)
{
	const struct export *e = arg;
	cleanup_free char *dir = xasprintf("%s/namespaces/%s", e->dir, name);
	cleanup_free char *nqn = printable(e->subsys, 223), *shown = NULL;
	char path[NVMET_PATH_MAX];
	struct dev_id id;
	int ret;

	if (!read_export(l, dir, path))
		return;
	ret = path_dev(l, path, &id);
	shown = printable(path, 200);
	if (ret < 0)
		trouble(l, xasprintf("the kernel's NVMe target exports %s, and which device that is cannot be found "
				     "out: %s", shown, strerror(-ret)));
	else if (ret == 1 && !id.chr)
		add_use(l, USE_DEVICE, &id, xasprintf("exported by the kernel's NVMe target as %s", nqn));
}

/* A passthrough subsystem exports a whole controller, and lets its hosts use what they find there. */
static void look_at_passthru(struct inuse_look *l, const struct export *e)
{
	cleanup_free char *dir = xasprintf("%s/passthru", e->dir), *nqn = printable(e->subsys, 223), *shown = NULL;
	char path[NVMET_PATH_MAX];
	const char *name;

	if (!read_export(l, dir, path))
		return;
	name = strrchr(path, '/');
	name = name ? name + 1 : path;
	if (!starts_with(name, "nvme") || !is_number(name + strlen("nvme"))) {
		shown = printable(path, 200);
		trouble(l, xasprintf("the kernel's NVMe target passes %s through, and which controller that is cannot "
				     "be found out", shown));
		return;
	}
	ARRAY_GROW(l->use, l->n);
	l->use[l->n++] = (struct use){
		.kind = USE_CTRL,
		.ctrl = xstrdup(name),
		.how = xasprintf("reached through %s, which the kernel's NVMe target exports as %s", name, nqn),
	};
}

static void look_at_exporter(struct inuse_look *l, void *arg, const char *nqn)
{
	cleanup_free char *dir = xasprintf("nvmet/subsystems/%s", nqn), *namespaces = xasprintf("%s/namespaces", dir);
	struct export e = { .subsys = nqn, .dir = dir };
	int ret = for_each(l, l->r.configfs, namespaces, look_at_export, &e);

	if (ret < 0 && ret != -ENOENT)
		trouble(l, xasprintf("what the kernel's NVMe target exports cannot be read: %s", strerror(-ret)));
	look_at_passthru(l, &e);
}

static void look_at_exports(struct inuse_look *l)
{
	int ret = l->r.configfs < 0 ? -ENOENT : for_each(l, l->r.configfs, "nvmet/subsystems", look_at_exporter, NULL);

	if (ret == 0 || (ret == -ENOENT && faccessat(l->r.sys, "module/nvmet", F_OK, 0) < 0))
		return;
	trouble(l, xasprintf("what the kernel's NVMe target exports cannot be read: configfs: %s", strerror(-ret)));
}

/* target/core/iblock_N/NAME. To name the user only: LIO holds its block devices exclusively. */
static void look_at_lio_device(struct inuse_look *l, void *arg, const char *name)
{
	const char *hba = arg;
	cleanup_free char *attr = xasprintf("target/core/%s/%s/udev_path", hba, name);
	cleanup_free char *shown = printable(name, 100);
	struct dev_id id;
	char path[4096];

	if (read_text_at(l->r.configfs, attr, path, sizeof(path)) > 0 && path_dev(l, path, &id) == 1 && !id.chr)
		add_use(l, USE_DEVICE, &id, xasprintf("exported by the kernel's SCSI target (LIO) as %s", shown));
}

static void look_at_lio_hba(struct inuse_look *l, void *arg, const char *name)
{
	cleanup_free char *dir = xasprintf("target/core/%s", name), *hba = xstrdup(name);

	if (starts_with(name, "iblock_"))
		for_each(l, l->r.configfs, dir, look_at_lio_device, hba);
}

/* ---- all of it ---- */

struct inuse_look *inuse_look(const struct inuse_roots *r)
{
	struct inuse_look *l = xcalloc(1, sizeof(*l));
	int ret;

	l->r = *r;
	ret = for_each(l, r->sys, "block", look_at_loop, NULL);
	if (ret < 0)
		trouble(l, xasprintf("/sys/block cannot be read: %s", strerror(-ret)));
	look_at_exports(l);
	if (r->configfs >= 0)
		for_each(l, r->configfs, "target/core", look_at_lio_hba, NULL);
	look_at_swaps(l);
	look_at_processes(l);
	return l;
}

void inuse_look_free(struct inuse_look *look)
{
	if (!look)
		return;
	for (size_t i = 0; i < look->n; i++) {
		free(look->use[i].ctrl);
		free(look->use[i].how);
	}
	free(look->use);
	free(look->trouble);
	free(look);
}
