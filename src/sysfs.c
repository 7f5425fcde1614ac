/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sysfs.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "sysfs-names.h"
#include "sysfs-tree.h"

#define DISCOVERY_NQN "nqn.2014-08.org.nvmexpress.discovery"
#define NQN_MAX 223
/* The broadcast NSID; never a namespace of its own. */
#define NSID_ALL UINT32_MAX
/* "nvme2147483647n2147483647/" and the longest attribute name */
#define ATTR_MAX 64

struct reader {
	struct tree tree;
	bool look_for_nodes;
	unsigned want;
	struct topo *t;
	struct map node; /* block devices in /dev, by disk_name_key() */
	struct map size; /* from /proc/partitions, in KiB, by disk_name_key() */
	struct map seen; /* controllers that have been read or given up, by instance + 1 */
};

static void note(struct reader *r, const char *name, const char *what, int err)
{
	struct topo *t = r->t;

	ARRAY_GROW(t->note, t->n_note);
	t->note[t->n_note++] = err ? xasprintf("%s: %s: %s", name, what, strerror(-err)) :
				     xasprintf("%s: %s", name, what);
}

/* *err as attr_string(), and -EFBIG for what no NQN can be. */
static char *read_nqn(struct reader *r, const struct place *p, const char *attr, int *err)
{
	char *nqn = attr_string(&r->tree, p, attr, err);

	if (nqn && strlen(nqn) > NQN_MAX) {
		*err = -EFBIG;
		free(nqn);
		return NULL;
	}
	return nqn;
}

/* ---- one disk ---- */

/* A disk's directory: attributes are opened as nvme0n2/wwid, which costs less than opening the directory first. */
struct disk_dir {
	const struct place *place;
	const char *name;
	char path[ATTR_MAX];
	size_t base; /* where the attribute's name begins */
};

static struct disk_dir disk_dir(const struct place *p, const char *name)
{
	struct disk_dir d = { .place = p, .name = name, .base = strlen(name) + 1 };

	memcpy(d.path, name, d.base - 1); /* fits: disk_name_parse() knows all its digits */
	d.path[d.base - 1] = '/';
	return d;
}

static ssize_t read_disk(struct reader *r, struct disk_dir *d, const char *attr, char *buf, size_t size)
{
	memcpy(d->path + d->base, attr, strlen(attr) + 1);
	return attr_read(&r->tree, d->place, d->path, buf, size);
}

/* Printed with %d: an NSID above 0x7fffffff is negative. */
static int read_nsid(struct reader *r, struct disk_dir *d, uint32_t *nsid)
{
	char buf[32];
	ssize_t n = read_disk(r, d, "nsid", buf, sizeof(buf));
	bool minus = n > 0 && buf[0] == '-';
	uint64_t value;
	int err = n < 0 ? n : parse_uint(buf + minus, minus ? 0x80000000U : UINT32_MAX, &value);

	if (!err && minus)
		value = (uint32_t)-value;
	if (!err && (value == 0 || value == NSID_ALL))
		err = -ERANGE;
	if (!err)
		*nsid = value;
	else if (!is_gone(err))
		note(r, d->name, "nsid", err);
	return err;
}

/* Absent where it is zero. */
static void read_name(struct reader *r, struct disk_dir *d, const char *attr, enum ident_field field, struct ident *id)
{
	char buf[128];
	ssize_t n = read_disk(r, d, attr, buf, sizeof(buf));
	int err = n < 0 ? n : ident_parse(id, field, buf);

	if (err < 0 && !is_gone(err) && err != -ENODATA)
		note(r, d->name, attr, err);
}

/* The command set: since 6.10. */
static void read_csi(struct reader *r, struct disk_dir *d, struct ident *id)
{
	char buf[32];
	uint64_t csi;

	if (read_disk(r, d, "csi", buf, sizeof(buf)) < 0 || parse_uint(buf, UINT8_MAX, &csi) < 0)
		return;
	id->csi = csi;
	id->have |= IDENT_CSI;
}

/*
 * The wwid says the strongest name of a disk, so one read settles it, and what is weaker can only be there beside it.
 * Never `uuid`: the wwid has it, and where there is none that attribute prints the NGUID instead and warns in the
 * kernel log. 0; -ENOENT or -ENODEV the disk is gone; other errors: nothing tells which namespace it is.
 */
static int read_ident(struct reader *r, struct disk_dir *d, struct ident *id)
{
	char buf[256];
	ssize_t n = read_disk(r, d, "wwid", buf, sizeof(buf));
	int err = n < 0 ? n : ident_parse_wwid(id, buf);

	if (n < 0 && is_gone(n))
		return n;
	if (err < 0)
		note(r, d->name, "wwid", err);
	if (err < 0 || ((r->want & SYSFS_IDS) && (id->have & IDENT_UUID)))
		read_name(r, d, "nguid", IDENT_NGUID, id);
	if (err < 0 || ((r->want & SYSFS_IDS) && (id->have & (IDENT_UUID | IDENT_NGUID))))
		read_name(r, d, "eui", IDENT_EUI64, id);
	if (r->want & SYSFS_IDS)
		read_csi(r, d, id);
	return ident_empty(id) ? err : 0;
}

/*
 * NSID and names of a disk or a path. Where the names cannot be read, the NSID counts as unreadable too: it alone would
 * let the disk pass for any namespace of that NSID, and the storage re-uses them. 0, or the disk is gone.
 */
static int read_identity(struct reader *r, struct disk_dir *d, uint32_t *nsid, struct ident *id)
{
	int nsid_err = read_nsid(r, d, nsid);
	int err = read_ident(r, d, id);

	if (is_gone(err))
		return err;
	if (err < 0)
		*nsid = 0;
	if (is_gone(nsid_err))
		note(r, d->name, "nsid", nsid_err);
	return 0;
}

/* In bytes; 0 where it is unreadable. 0, or the disk is gone: not in a bundle, where nobody may have copied it. */
static int read_size(struct reader *r, struct disk_dir *d, uint64_t key, uint64_t *size)
{
	char buf[32];
	uint64_t value;
	ssize_t n;
	int err;

	if (map_get(&r->size, key, &value)) {
		*size = value * 1024;
		return 0;
	}
	n = read_disk(r, d, "size", buf, sizeof(buf));
	err = n < 0 ? n : parse_uint(buf, UINT64_MAX / 512, &value);
	if (is_gone(err) && !r->tree.bundle)
		return err;
	if (err < 0)
		note(r, d->name, "size", err);
	else
		*size = value * 512; /* in sectors, whatever the logical block size */
	return 0;
}

/*
 * A disk whose command set or format the kernel does not take is hidden: it has no device number and so no node, and
 * often no size. A node therefore proves that a disk is visible, without a read for each.
 */
static bool read_hidden(struct reader *r, struct disk_dir *d)
{
	char buf[8];

	return read_disk(r, d, "hidden", buf, sizeof(buf)) > 0 && !streq(buf, "0");
}

static enum ana_state read_ana(struct reader *r, struct disk_dir *d)
{
	char buf[32];
	ssize_t n = read_disk(r, d, "ana_state", buf, sizeof(buf));

	for (enum ana_state s = ANA_OPTIMIZED; n > 0 && s <= ANA_CHANGE; s++)
		if (streq(buf, ana_state_name(s)))
			return s;
	if (n >= 0 || !is_gone(n)) /* absent: a controller without ANA */
		note(r, d->name, "ana_state", n < 0 ? n : -EINVAL);
	return ANA_UNKNOWN;
}

/* ---- one subsystem ---- */

/* The subsystem that is being read. */
struct filling {
	struct topo_subsys *s;
	const struct place *place; /* its directory; NULL if it has none */
	struct map head;           /* positions in s->disk, by disk_name_key() */
};

/* ctrl -1: a head. 0 and added, or a negative errno: gone. */
static int add_disk(struct reader *r, struct filling *f, const struct place *p, const char *name,
		    const struct disk_name *parsed, int ctrl)
{
	struct topo_disk disk = { .ctrl = ctrl };
	struct disk_dir d = disk_dir(p, name);
	uint64_t key = disk_name_key(parsed);
	int err = read_identity(r, &d, &disk.nsid, &disk.id);

	if (!err)
		err = read_size(r, &d, key, &disk.size);
	if (err < 0) {
		ident_clear(&disk.id);
		return err;
	}
	memcpy(disk.name, name, d.base); /* with its NUL */
	disk.node = !r->look_for_nodes || map_get(&r->node, key, NULL);
	if (!r->look_for_nodes || !disk.node || !disk.size)
		disk.hidden = read_hidden(r, &d);
	if (ctrl < 0)
		map_put(&f->head, key, f->s->n_disk);
	ARRAY_GROW(f->s->disk, f->s->n_disk);
	f->s->disk[f->s->n_disk++] = disk;
	return 0;
}

/*
 * The head of a path, or -1. One that the subsystem's directory did not list when it was read may have come since:
 * taking its path for one without a head would be finding a fault where a namespace is just appearing.
 */
static int find_head(struct reader *r, struct filling *f, const struct disk_name *path)
{
	uint64_t key = disk_name_key(path), position;
	char name[sizeof(((struct topo_disk *)NULL)->name)];

	if (map_get(&f->head, key, &position))
		return position;
	if (!f->place)
		return -1;
	snprintf(name, sizeof(name), "nvme%dn%d", path->x, path->z);
	if (add_disk(r, f, f->place, name, path, -1) < 0)
		return -1;
	return f->s->n_disk - 1;
}

static void add_path(struct reader *r, struct filling *f, const struct place *p, const char *name,
		     const struct disk_name *parsed, int ctrl)
{
	struct topo_path path = { .ctrl = ctrl, .disk = find_head(r, f, parsed) };
	struct disk_dir d = disk_dir(p, name);
	int err = path.disk < 0 ? read_identity(r, &d, &path.nsid, &path.id) : 0;

	if (err < 0) {
		note(r, name, "left out", err);
		return;
	}
	if (path.disk < 0 || (r->want & SYSFS_ANA))
		path.ana = read_ana(r, &d);
	ARRAY_GROW(f->s->path, f->s->n_path);
	f->s->path[f->s->n_path++] = path;
}

static enum ctrl_state read_state(struct reader *r, const struct place *p)
{
	char buf[32];

	if (attr_read(&r->tree, p, "state", buf, sizeof(buf)) < 0)
		return CTRL_UNKNOWN;
	for (enum ctrl_state s = CTRL_NEW; s <= CTRL_DEAD; s++)
		if (streq(buf, ctrl_state_name(s)))
			return s;
	return starts_with(buf, "deleting") ? CTRL_DELETING : CTRL_UNKNOWN;
}

static enum ctrl_type read_type(struct reader *r, const struct place *p, const char *nqn)
{
	char buf[32];
	ssize_t n = attr_read(&r->tree, p, "cntrltype", buf, sizeof(buf));

	if (n > 0 && streq(buf, "io"))
		return CTRL_TYPE_IO;
	if (n > 0 && streq(buf, "admin"))
		return CTRL_TYPE_ADMIN;
	/* before 5.18 the well-known name is all that tells */
	if ((n > 0 && streq(buf, "discovery")) || (nqn && streq(nqn, DISCOVERY_NQN)))
		return CTRL_TYPE_DISCOVERY;
	return CTRL_TYPE_UNKNOWN;
}

/* What lies in a controller's directory: hidden paths, and visible disks that are its own. */
static void read_ctrl_disks(struct reader *r, struct filling *f, const struct place *p, int ctrl)
{
	int instance = f->s->ctrl[ctrl].instance;
	struct disk_name parsed;
	const char *name;

	while (!r->tree.err && (name = place_next(&r->tree, p))) {
		if (!disk_name_parse(name, &parsed))
			continue;
		if (parsed.c >= 0 && parsed.c != instance) {
			note(r, name, "lies under another controller than its name says", 0);
		} else if (parsed.c >= 0) {
			add_path(r, f, p, name, &parsed, ctrl);
		} else {
			int err = add_disk(r, f, p, name, &parsed, ctrl);

			if (err < 0)
				note(r, name, "left out", err);
		}
	}
}

/* nqn is taken over. */
static void add_ctrl(struct reader *r, struct filling *f, const struct place *p, int instance, char *nqn)
{
	int ignored;
	struct topo_ctrl c = {
		.instance = instance,
		.state = read_state(r, p),
		.type = read_type(r, p, nqn),
		.cntlid = attr_number(&r->tree, p, "cntlid", -1),
		.queue_count = attr_number(&r->tree, p, "queue_count", -1),
		.nqn = nqn,
		.hostnqn = read_nqn(r, p, "hostnqn", &ignored),
		.transport = attr_string(&r->tree, p, "transport", &ignored),
	};

	ARRAY_GROW(f->s->ctrl, f->s->n_ctrl);
	f->s->ctrl[f->s->n_ctrl++] = c;
	read_ctrl_disks(r, f, p, f->s->n_ctrl - 1);
}

/*
 * A controller that the subsystem's directory names. Found by its number in class/nvme, where it always is; in a copy
 * that lacks it, through the subsystem.
 */
static void read_member(struct reader *r, struct filling *f, const struct place *ctrls, int instance)
{
	cleanup_place struct place p = { 0 };
	char name[16];
	char *nqn;
	int err = -ENOENT;

	snprintf(name, sizeof(name), "nvme%d", instance);
	if (map_get(&r->seen, instance + 1ULL, NULL)) {
		note(r, name, "belongs to more than one subsystem", 0);
		return;
	}
	map_put(&r->seen, instance + 1ULL, 0);
	if (ctrls->dir)
		err = place_open(&r->tree, ctrls, name, &p);
	if (is_gone(err))
		err = place_open(&r->tree, f->place, name, &p);
	if (err < 0) {
		note(r, name, "unreadable", err);
		return;
	}
	nqn = read_nqn(r, &p, "subsysnqn", &err);
	if (!nqn)
		note(r, name, "subsysnqn says nothing", err);
	add_ctrl(r, f, &p, instance, nqn);
}

/* Heads at once, controllers afterwards: paths need to find their heads. */
static void read_members(struct reader *r, struct filling *f, const struct place *ctrls)
{
	cleanup_free int *member = NULL;
	struct disk_name parsed;
	size_t n = 0;
	const char *name;
	int instance;

	while (!r->tree.err && (name = place_next(&r->tree, f->place))) {
		if (instance_parse(name, "nvme", &instance)) {
			ARRAY_GROW(member, n);
			member[n++] = instance;
		} else if (disk_name_parse(name, &parsed) && parsed.c < 0) {
			int err = add_disk(r, f, f->place, name, &parsed, -1);

			if (err < 0)
				note(r, name, "left out", err);
		}
	}
	for (size_t i = 0; i < n && !r->tree.err; i++)
		read_member(r, f, ctrls, member[i]);
}

/* A subsystem without a name is nothing that could be expected; its controllers are passed over with it. */
static void skip_members(struct reader *r, const struct place *p)
{
	const char *name;
	int instance;

	while (!r->tree.err && (name = place_next(&r->tree, p)))
		if (instance_parse(name, "nvme", &instance))
			map_put(&r->seen, instance + 1ULL, 0);
}

static void read_subsys(struct reader *r, const struct place *subsystems, const struct place *ctrls, const char *name,
			int instance)
{
	cleanup_place struct place p = { 0 };
	struct topo_subsys s = { .instance = instance };
	struct filling f = { .s = &s, .place = &p };
	struct topo *t = r->t;
	int err = place_open(&r->tree, subsystems, name, &p);

	if (err < 0) {
		note(r, name, "unreadable", err);
		return;
	}
	s.nqn = read_nqn(r, &p, "subsysnqn", &err);
	if (!s.nqn) {
		note(r, name, "subsysnqn says nothing", err);
		skip_members(r, &p);
		return;
	}
	s.model = attr_string(&r->tree, &p, "model", &err);
	s.serial = attr_string(&r->tree, &p, "serial", &err);
	read_members(r, &f, ctrls);
	map_clear(&f.head);
	ARRAY_GROW(t->subsys, t->n_subsys);
	t->subsys[t->n_subsys++] = s;
}

/* The subsystem of that NQN among those read so far; a new one of instance -1 if there is none. */
static struct topo_subsys *adopt(struct topo *t, const char *nqn)
{
	for (size_t i = 0; i < t->n_subsys; i++)
		if (streq(t->subsys[i].nqn, nqn))
			return &t->subsys[i];
	ARRAY_GROW(t->subsys, t->n_subsys);
	t->subsys[t->n_subsys] = (struct topo_subsys){ .instance = -1, .nqn = xstrdup(nqn) };
	return &t->subsys[t->n_subsys++];
}

/*
 * A controller that no subsystem's directory names: not connected yet, connected since those were read, or in a copy
 * without the links. Only its NQN tells where it belongs.
 */
static void read_orphan(struct reader *r, const struct place *ctrls, const char *name, int instance)
{
	cleanup_place struct place p = { 0 };
	struct filling f = { 0 };
	struct disk_name parsed;
	int err = place_open(&r->tree, ctrls, name, &p);
	char *nqn = err < 0 ? NULL : read_nqn(r, &p, "subsysnqn", &err);

	if (!nqn) {
		note(r, name, "has no subsystem", err);
		return;
	}
	f.s = adopt(r->t, nqn);
	for (size_t i = 0; i < f.s->n_disk; i++)
		if (f.s->disk[i].ctrl < 0 && disk_name_parse(f.s->disk[i].name, &parsed))
			map_put(&f.head, disk_name_key(&parsed), i);
	add_ctrl(r, &f, &p, instance, nqn);
	map_clear(&f.head);
}

/* ---- everything ---- */

/* Absent: a host without NVMe. */
static int open_class(struct reader *r, const char *name, struct place *p)
{
	int err = place_open(&r->tree, NULL, name, p);

	return err == -ENOENT ? 0 : err;
}

static int read_all(struct reader *r)
{
	cleanup_place struct place subsystems = { 0 };
	cleanup_place struct place ctrls = { 0 };
	const char *name;
	int instance;
	int err = open_class(r, "class/nvme-subsystem", &subsystems);

	if (!err)
		err = open_class(r, "class/nvme", &ctrls);
	if (err < 0)
		return err;
	while (subsystems.dir && !r->tree.err && (name = place_next(&r->tree, &subsystems)))
		if (instance_parse(name, "nvme-subsys", &instance))
			read_subsys(r, &subsystems, &ctrls, name, instance);
	while (ctrls.dir && !r->tree.err && (name = place_next(&r->tree, &ctrls)))
		if (instance_parse(name, "nvme", &instance) && !map_get(&r->seen, instance + 1ULL, NULL))
			read_orphan(r, &ctrls, name, instance);
	return r->tree.err;
}

int sysfs_read_with(int root, int dev, int proc, unsigned want, struct topo *t)
{
	struct reader r = { .look_for_nodes = dev >= 0, .want = want, .t = t };
	int err;

	*t = (struct topo){ .ids_complete = want & SYSFS_IDS };
	err = tree_init(&r.tree, root);
	if (!err && dev >= 0)
		err = nodes_read(dev, &r.node);
	if (!err && proc >= 0)
		partitions_read(proc, &r.size);
	if (!err)
		err = read_all(&r);
	map_clear(&r.node);
	map_clear(&r.size);
	map_clear(&r.seen);
	if (err < 0)
		topo_free(t);
	else
		topo_finish(t);
	return err;
}

int sysfs_read(int root, int dev, unsigned want, struct topo *t)
{
	return sysfs_read_with(root, dev, -1, want, t);
}
