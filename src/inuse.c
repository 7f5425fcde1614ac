/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Judges one disk: its holders first, then what the look has found for any of its device numbers, then what could not
 * be seen, and last whether the kernel gives exclusive access. In that order the answer names the user if anyone can,
 * and a device that is in use is not touched at all.
 */
#include "inuse-look.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* Partitions of a map of a disk make three. */
#define DEPTH_MAX 8

/* One device number of a disk: the disk, a partition, its generic character device. */
struct part {
	char name[64];
	struct dev_id id;
	bool whole;
};

struct disk {
	const char *name;
	char *label;     /* what people are told it is, NULL for the one that was asked about */
	int dir, parent; /* fds of its directory in sysfs and of the one above */
	struct part *part;
	size_t n;
	bool mapped; /* held by maps that are no use by themselves */
};

struct question {
	const struct inuse_look *look;
	const char *const *gone;
	size_t n_gone;
	char **user;
	unsigned depth;
};

static int judge(struct question *q, const char *name, char *label);

static void cleanup_dir_p(DIR **dir)
{
	if (*dir)
		closedir(*dir);
}
#define cleanup_dir __attribute__((cleanup(cleanup_dir_p)))

static void cleanup_disk(struct disk *d)
{
	cleanup_fd_p(&d->dir);
	cleanup_fd_p(&d->parent);
	free(d->part);
	free(d->label);
}

/* Takes text. Always 1: in use. */
static int in_use(struct question *q, char *text)
{
	*q->user = text;
	return 1;
}

/* "mounted on /data", or "nvme0n1p1 is mounted on /data" where it is not the disk itself that was asked about. */
static int used_by(struct question *q, const struct disk *d, const struct part *p, const char *how)
{
	if (!p->whole)
		return in_use(q, xasprintf("%s is %s", p->name, how));
	return in_use(q, d->label ? xasprintf("%s is %s", d->label, how) : xstrdup(how));
}

static int unseen(struct question *q, const char *what, const char *name, int err)
{
	return in_use(q, xasprintf("%s of %s cannot be seen: %s", what, name, strerror(err)));
}

/* No path may be made of a name from outside that could lead elsewhere. The kernel has "cciss!c0d0" at worst. */
static bool is_plain(const char *name)
{
	static const char good[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_!";

	return *name && strlen(name) < sizeof(((struct part *)NULL)->name) && strspn(name, good) == strlen(name);
}

/* Of the disk that is asked about: what an NVMe disk is called has lower case letters and digits only. */
static bool is_disk_name(const char *name)
{
	return is_plain(name) && strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789") == strlen(name);
}

static DIR *open_dir(int dirfd, const char *path)
{
	int fd = openat(dirfd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (!dir && fd >= 0)
		close(fd);
	return dir;
}

/* The next name that does not start with a dot. NULL: the end, or *err. */
static const char *next_name(DIR *dir, int *err)
{
	struct dirent *e;

	do {
		errno = 0;
		e = readdir(dir);
	} while (e && e->d_name[0] == '.');
	*err = e ? 0 : errno;
	return e ? e->d_name : NULL;
}

/* ---- the device numbers of a disk ---- */

static int read_dev(int dirfd, const char *path, dev_t *dev)
{
	char text[32], tail;
	unsigned major, minor;
	ssize_t n = read_text_at(dirfd, path, text, sizeof(text));

	if (n < 0)
		return (int)n;
	if (sscanf(text, "%u:%u%c", &major, &minor, &tail) != 2)
		return -EINVAL;
	*dev = makedev(major, minor);
	return 0;
}

static int add_part(struct disk *d, int dirfd, const char *name, bool chr)
{
	cleanup_free char *attr = xasprintf("%s/dev", name);
	struct part p = { .id.chr = chr, .whole = streq(name, ".") };
	int ret;

	if (!is_plain(p.whole ? d->name : name))
		return -EILSEQ;
	ret = read_dev(dirfd, attr, &p.id.dev);
	if (ret < 0)
		return ret;
	snprintf(p.name, sizeof(p.name), "%s", p.whole ? d->name : name);
	ARRAY_GROW(d->part, d->n);
	d->part[d->n++] = p;
	return 0;
}

static int add_partitions(struct disk *d)
{
	cleanup_dir DIR *dir = open_dir(d->dir, ".");
	const char *name;
	int err, ret;

	if (!dir)
		return -errno;
	while ((name = next_name(dir, &err))) {
		cleanup_free char *mark = xasprintf("%s/partition", name);

		if (faccessat(d->dir, mark, F_OK, 0) < 0)
			continue;
		ret = add_part(d, d->dir, name, false);
		if (ret < 0 && ret != -ENOENT) /* a partition may go meanwhile */
			return ret;
	}
	return -err;
}

/*
 * ngXnZ lies beside nvmeYnZ. Z is the same, X is not always: of a private namespace under native multipath the disk has
 * the subsystem's number, the character device the controller's (nvme_set_disk_name, nvme_add_ns_cdev).
 */
static int add_generic(struct disk *d)
{
	const char *z = strrchr(d->name, 'n'), *name;
	cleanup_dir DIR *dir = NULL;
	int err, ret;

	if (!starts_with(d->name, "nvme") || !z || z == d->name)
		return 0;
	dir = open_dir(d->parent, ".");
	if (!dir)
		return -errno;
	while ((name = next_name(dir, &err))) {
		if (!starts_with(name, "ng") || !streq(name + 2 + strspn(name + 2, "0123456789"), z))
			continue;
		ret = add_part(d, d->parent, name, true);
		if (ret < 0 && ret != -ENOENT)
			return ret;
	}
	return -err;
}

static int open_disk(const struct inuse_look *l, struct disk *d)
{
	cleanup_free char *path = xasprintf("class/block/%s", d->name);
	int ret;

	d->dir = openat(l->r.sys, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (d->dir < 0)
		return -errno;
	d->parent = openat(d->dir, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (d->parent < 0)
		return -errno;
	ret = add_part(d, d->dir, ".", false);
	if (!ret)
		ret = add_partitions(d);
	return ret ? ret : add_generic(d);
}

/* ---- holders ---- */

static bool goes_too(const struct question *q, const char *name)
{
	for (size_t i = 0; i < q->n_gone; i++)
		if (streq(q->gone[i], name))
			return true;
	return false;
}

/* "live" is what NVMe controllers say, "running" SCSI disks. */
static bool is_live(const struct inuse_look *l, const char *name)
{
	cleanup_free char *attr = xasprintf("class/block/%s/device/state", name);
	char state[32];

	return read_text_at(l->r.sys, attr, state, sizeof(state)) > 0 &&
	       (streq(state, "live") || streq(state, "running"));
}

/* Has the map another path that works and stays? 1, 0, -errno. */
static int keeps_a_path(const struct question *q, const char *map, const char *lost)
{
	cleanup_free char *path = xasprintf("class/block/%s/slaves", map);
	cleanup_dir DIR *dir = open_dir(q->look->r.sys, path);
	const char *name;
	int err;

	if (!dir)
		return -errno;
	while ((name = next_name(dir, &err)))
		if (is_plain(name) && !streq(name, lost) && !goes_too(q, name) && is_live(q->look, name))
			return 1;
	return -err;
}

/* kpartx(8): "part1-mpath-..." */
static bool is_partition_map(const char *uuid)
{
	size_t n;

	if (!starts_with(uuid, "part"))
		return false;
	n = strspn(uuid + 4, "0123456789");
	return n > 0 && starts_with(uuid + 4 + n, "-mpath-");
}

/*
 * Multipath maps and their partitions are made unasked of whatever is there: they are in use if somebody uses them.
 * Every other holder is use.
 */
static int judge_holder(struct question *q, struct disk *d, const struct part *p, const char *holder)
{
	cleanup_free char *uuid_attr = xasprintf("class/block/%s/dm/uuid", holder);
	cleanup_free char *name_attr = xasprintf("class/block/%s/dm/name", holder);
	cleanup_free char *shown = NULL, *text = NULL;
	char uuid[256], name[256];
	int ret;

	if (!is_plain(holder)) {
		shown = printable(holder, 60);
		text = xasprintf("held by %s", shown);
		return used_by(q, d, p, text);
	}
	if (read_text_at(q->look->r.sys, uuid_attr, uuid, sizeof(uuid)) < 0)
		uuid[0] = '\0';
	if (read_text_at(q->look->r.sys, name_attr, name, sizeof(name)) > 0)
		shown = printable(name, 128);
	text = shown ? xasprintf("%s (%s)", holder, shown) : xstrdup(holder);
	if (starts_with(uuid, "mpath-") && p->whole) {
		ret = keeps_a_path(q, holder, d->name);
		if (ret < 0)
			return unseen(q, "the paths", text, -ret);
		d->mapped = true;
		return ret ? 0 : judge(q, holder, xstrdup(text));
	}
	if (is_partition_map(uuid)) {
		d->mapped = true;
		return judge(q, holder, xstrdup(text));
	}
	free(shown);
	shown = xasprintf("held by %s", text);
	return used_by(q, d, p, shown);
}

static int judge_holders(struct question *q, struct disk *d, const struct part *p)
{
	cleanup_free char *path = p->whole ? xstrdup("holders") : xasprintf("%s/holders", p->name);
	cleanup_dir DIR *dir = p->id.chr ? NULL : open_dir(d->dir, path);
	const char *name;
	int err = 0;

	if (p->id.chr) /* the generic character device has none */
		return 0;
	if (!dir)
		return unseen(q, "the holders", p->name, errno);
	while ((name = next_name(dir, &err)))
		if (judge_holder(q, d, p, name))
			return 1;
	return err ? unseen(q, "the holders", p->name, err) : 0;
}

/* ---- users that the look has found ---- */

/* The controller lies above a disk of its own, or is linked beside a head of its subsystem. */
static bool is_reached_through(const struct question *q, const struct disk *d, const char *ctrl)
{
	cleanup_free char *path = xasprintf("class/nvme/%s/%s", ctrl, d->name);

	return starts_with(d->name, "nvme") && (faccessat(d->parent, ctrl, F_OK, AT_SYMLINK_NOFOLLOW) == 0 ||
						faccessat(q->look->r.sys, path, F_OK, 0) == 0);
}

static int judge_part(struct question *q, const struct disk *d, const struct part *p)
{
	cleanup_free char *rnbd = xasprintf("class/rnbd-server/ctl/devices/%s", p->name);

	for (size_t i = 0; i < q->look->n; i++) {
		const struct use *u = &q->look->use[i];

		if (u->kind == USE_CTRL || !inuse_same_dev(&u->id, &p->id))
			continue;
		if (u->kind == USE_MULTIPATHD && d->mapped && p->whole)
			continue;
		return used_by(q, d, p, u->how);
	}
	/* Documentation/ABI/testing/sysfs-class-rnbd-server: it opens devices without exclusion */
	if (!p->id.chr && faccessat(q->look->r.sys, rnbd, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return used_by(q, d, p, "exported by the kernel's RNBD server");
	return 0;
}

static int judge_users(struct question *q, const struct disk *d)
{
	for (size_t i = 0; i < d->n; i++)
		if (judge_part(q, d, &d->part[i]))
			return 1;
	for (size_t i = 0; i < q->look->n; i++) {
		const struct use *u = &q->look->use[i];

		if (u->kind == USE_CTRL && is_reached_through(q, d, u->ctrl))
			return used_by(q, d, &d->part[0], u->how);
	}
	return q->look->trouble ? in_use(q, xstrdup(q->look->trouble)) : 0;
}

/* ---- exclusive access ---- */

/* The node of that name, checked to be that device: 0, or -errno. */
static int check_node(int dev, const char *name, dev_t want)
{
	struct dev_id id;
	int ret = inuse_stat_dev(dev, name, AT_SYMLINK_NOFOLLOW, &id);

	if (ret < 0)
		return ret;
	return ret == 1 && !id.chr && id.dev == want ? 0 : -ENOTBLK;
}

/*
 * The kernel refuses while the disk or a partition of it is mounted (in any mount namespace), is swap, or has a holder
 * (bd_prepare_to_claim). On success the claim lasts until the close two lines below.
 */
static int judge_exclusive(struct question *q, const struct disk *d)
{
	const struct part *p = &d->part[0];
	int dev = q->look->r.dev;
	int err = -check_node(dev, d->name, p->id.dev);

	if (!err) {
		cleanup_fd int fd = openat(dev, d->name,
					   O_RDONLY | O_EXCL | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY);

		if (fd >= 0)
			return 0;
		err = errno;
	}
	if (err == EBUSY)
		return used_by(q, d, p, "claimed by somebody who could not be found (a file system of several devices, "
					"ZFS, or a mount in a namespace without processes)");
	return in_use(q, xasprintf("whether it is in use cannot be found out: /dev/%s: %s", d->name, strerror(err)));
}

/* Takes label. */
static int judge(struct question *q, const char *name, char *label)
{
	__attribute__((cleanup(cleanup_disk))) struct disk d = { name, label, .dir = -1, .parent = -1 };
	int ret;

	if (++q->depth > DEPTH_MAX)
		return in_use(q, xstrdup("maps upon maps: too many to look through"));
	ret = open_disk(q->look, &d);
	if (ret < 0)
		return unseen(q, "the entry in sysfs", name, -ret);
	for (size_t i = 0; i < d.n; i++)
		if (judge_holders(q, &d, &d.part[i]))
			return 1;
	if (judge_users(q, &d))
		return 1;
	q->depth--;
	/* A map's own claim shuts out everybody but other maps, and those are among the holders. */
	return d.mapped ? 0 : judge_exclusive(q, &d);
}

int inuse_check_in(const struct inuse_look *look, const char *name, const char *const *gone, size_t n_gone,
		   char **user)
{
	struct question q = { .look = look, .gone = gone, .n_gone = n_gone, .user = user };
	cleanup_free char *shown = NULL;

	*user = NULL;
	if (is_disk_name(name))
		return judge(&q, name, NULL);
	shown = printable(name, 60);
	return in_use(&q, xasprintf("'%s' is not a disk's name", shown));
}

int inuse_check(const struct inuse_roots *r, const char *name, const char *const *gone, size_t n_gone, char **user)
{
	struct inuse_look *look = inuse_look(r);
	int ret = inuse_check_in(look, name, gone, n_gone, user);

	inuse_look_free(look);
	return ret;
}

/* ---- does it still answer? ---- */

static bool means_gone(int err)
{
	return err == EIO || err == ENXIO || err == ENODEV || err == EOPNOTSUPP || err == EREMOTEIO;
}

int inuse_readable(const struct inuse_roots *r, const char *name)
{
	cleanup_fd int fd = -1;
	cleanup_free void *block = NULL;
	struct dev_id id;
	ssize_t n;
	int size, ret;

	if (!is_disk_name(name))
		return -EINVAL;
	ret = inuse_stat_dev(r->dev, name, AT_SYMLINK_NOFOLLOW, &id);
	if (ret < 0)
		return ret;
	if (ret == 0 || id.chr)
		return -ENOTBLK;
	fd = openat(r->dev, name, O_RDONLY | O_DIRECT | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY);
	if (fd < 0)
		return -errno;
	if (ioctl(fd, BLKSSZGET, &size) < 0)
		return -errno;
	if (size < 512 || size > 1 << 20 || posix_memalign(&block, (size_t)size, (size_t)size) != 0)
		return -EINVAL;
	do
		n = pread(fd, block, (size_t)size, 0);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return means_gone(errno) ? 0 : -errno;
	return n == size;
}
