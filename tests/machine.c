/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "machine.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

/* The calls below stand in for those of libc: what the program is told of the tree, and a note of what it opened. */
static struct machine *machine;
static bool pretend_live;
static char opened[1 << 16]; /* attributes, in order, each followed by a blank */
void (*on_listed)(struct machine *m, const char *name);

int fstatfs(int fd, struct statfs *fs)
{
	int (*real)(int, struct statfs *) = (int (*)(int, struct statfs *))dlsym(RTLD_NEXT, "fstatfs");
	int ret = real(fd, fs);

	if (ret == 0 && pretend_live)
		fs->f_type = SYSFS_MAGIC;
	return ret;
}

struct dirent *readdir(DIR *dir)
{
	struct dirent *(*real)(DIR *) = (struct dirent * (*)(DIR *))dlsym(RTLD_NEXT, "readdir");
	struct dirent *e = real(dir);
	int saved = errno;

	if (on_listed)
		on_listed(machine, e ? e->d_name : "");
	errno = saved;
	return e;
}

int openat(int fd, const char *path, int flags, ...)
{
	int (*real)(int, const char *, int, ...) = (int (*)(int, const char *, int, ...))dlsym(RTLD_NEXT, "openat");
	size_t n = strlen(opened);

	if (!(flags & O_DIRECTORY))
		snprintf(opened + n, sizeof(opened) - n, "%s ", path);
	return real(fd, path, flags, 0644);
}

char *at(const struct machine *m, const char *fmt, ...)
{
	static char path[4][AT_MAX];
	static unsigned turn;
	char *p = path[turn++ % 4];
	int n = snprintf(p, sizeof(path[0]), "%s/", m->top);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(p + n, sizeof(path[0]) - n, fmt, ap);
	va_end(ap);
	return p;
}

void make_dirs(char *path)
{
	for (char *p = path + 1; (p = strchr(p, '/')); p++) {
		*p = '\0';
		assert_true(mkdir(path, 0755) == 0 || errno == EEXIST);
		*p = '/';
	}
	assert_true(mkdir(path, 0755) == 0 || errno == EEXIST);
}

void write_bytes(const char *path, const char *data, size_t len)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_int_equal(fwrite(data, 1, len, f), len);
	assert_int_equal(fclose(f), 0);
}

/* An attribute, with the newline that sysfs ends it with; NULL: there is none. */
void attr(const char *dir, const char *name, const char *value)
{
	cleanup_free char *path = xasprintf("%s/%s", dir, name), *line = xasprintf("%s\n", value ? value : "");

	if (value)
		write_bytes(path, line, strlen(line));
	else
		assert_true(unlink(path) == 0 || errno == ENOENT);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(path);
}

void remove_all(const char *path)
{
	assert_int_equal(nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}

/* A directory, a link, anything else in place of a file. */
void dir_instead(const char *dir, const char *name)
{
	cleanup_free char *path = xasprintf("%s/%s", dir, name);

	attr(dir, name, NULL);
	assert_int_equal(mkdir(path, 0755), 0);
}

void link_instead(const char *dir, const char *name, const char *target)
{
	cleanup_free char *path = xasprintf("%s/%s", dir, name);

	attr(dir, name, NULL);
	assert_int_equal(symlink(target, path), 0);
}

char *subsys_dir(const struct machine *m, int x)
{
	return at(m, "sys/%s/nvme-subsys%d", m->flat ? "class/nvme-subsystem" : "devices/virtual/nvme-subsystem", x);
}

char *ctrl_dir(const struct machine *m, int c)
{
	return at(m, "sys/%s/nvme%d", m->flat ? "class/nvme" : "devices/virtual/nvme-fabrics/ctl", c);
}

void subsystem(const struct machine *m, int x, const char *nqn)
{
	char *dir = subsys_dir(m, x);
	cleanup_free char *target = xasprintf("../../devices/virtual/nvme-subsystem/nvme-subsys%d", x);

	make_dirs(dir);
	attr(dir, "subsysnqn", nqn);
	attr(dir, "model", "Linux           ");
	attr(dir, "serial", "c0ffee");
	attr(dir, "iopolicy", "numa");
	make_dirs(at(m, "sys/class/nvme-subsystem"));
	if (!m->flat)
		link_instead(at(m, "sys/class/nvme-subsystem"), strrchr(dir, '/') + 1, target);
}

/* x -1: it has no subsystem yet */
char *controller(const struct machine *m, int c, int x, const char *nqn)
{
	char *dir = ctrl_dir(m, c);
	cleanup_free char *cntlid = xasprintf("%u", c + 1U), *name = xasprintf("nvme%d", c);
	cleanup_free char *in_class = xasprintf("../../devices/virtual/nvme-fabrics/ctl/nvme%d", c);
	cleanup_free char *in_subsys = xasprintf("../../nvme-fabrics/ctl/nvme%d", c);

	make_dirs(dir);
	attr(dir, "state", "live");
	attr(dir, "cntrltype", "io");
	attr(dir, "cntlid", cntlid);
	attr(dir, "queue_count", "3");
	attr(dir, "subsysnqn", nqn);
	attr(dir, "hostnqn", "nqn.host");
	attr(dir, "transport", "tcp");
	attr(dir, "address", "traddr=127.0.0.1,trsvcid=4420");
	make_dirs(at(m, "sys/class/nvme"));
	if (!m->flat)
		link_instead(at(m, "sys/class/nvme"), name, in_class);
	if (!m->flat && x >= 0)
		link_instead(subsys_dir(m, x), name, in_subsys);
	return dir;
}

char *disk_in(char *dir, const char *name, const char *nsid, const char *wwid)
{
	size_t n = strlen(dir);

	snprintf(dir + n, AT_MAX - n, "/%s", name);
	make_dirs(dir);
	attr(dir, "nsid", nsid);
	attr(dir, "wwid", wwid);
	attr(dir, "size", "2048");
	attr(dir, "hidden", "0");
	/* not to be touched */
	attr(dir, "uuid", "00000000-0000-0000-0000-000000000000");
	attr(dir, "nuse", "1");
	attr(dir, "delayed_removal_secs", "0");
	return dir;
}

char *head(const struct machine *m, int x, int z, const char *nsid, const char *wwid)
{
	cleanup_free char *name = xasprintf("nvme%dn%d", x, z);

	return disk_in(subsys_dir(m, x), name, nsid, wwid);
}

char *path_to(const struct machine *m, int x, int c, int z, const char *nsid, const char *wwid, const char *ana)
{
	cleanup_free char *name = xasprintf("nvme%dc%dn%d", x, c, z);
	char *dir = disk_in(ctrl_dir(m, c), name, nsid, wwid);

	attr(dir, "hidden", "1");
	attr(dir, "ana_state", ana);
	return dir;
}

/* Private, or with native multipath off. */
char *own_disk(const struct machine *m, int c, const char *name, const char *nsid, const char *wwid)
{
	return disk_in(ctrl_dir(m, c), name, nsid, wwid);
}

/* A test may not make block devices; a link counts as one. */
void node(const struct machine *m, const char *name)
{
	link_instead(at(m, "dev"), name, "whatever");
}

/* One subsystem, two controllers, two namespaces that both reach, nodes. */
void two_by_two(const struct machine *m)
{
	subsystem(m, 4, NQN);
	for (int c = 0; c < 2; c++)
		controller(m, c, 4, NQN);
	head(m, 4, 1, "7", UUID1);
	head(m, 4, 2, "3", NGUID1);
	for (int c = 0; c < 2; c++) {
		path_to(m, 4, c, 1, "7", UUID1, "optimized");
		path_to(m, 4, c, 2, "3", NGUID1, "inaccessible");
	}
	node(m, "nvme4n1");
	node(m, "nvme4n2");
}

int start_machine(void **state)
{
	struct machine *m = xcalloc(1, sizeof(*m));

	snprintf(m->top, sizeof(m->top), "/tmp/test-sysfs-XXXXXX");
	if (!mkdtemp(m->top))
		return -1;
	make_dirs(at(m, "sys/class"));
	make_dirs(at(m, "dev"));
	make_dirs(at(m, "proc"));
	make_dirs(at(m, "outside"));
	*state = machine = m;
	pretend_live = false;
	return 0;
}

int stop_machine(void **state)
{
	struct machine *m = *state;

	on_listed = NULL;
	remove_all(m->top);
	free(m);
	return 0;
}

/* ---- what was understood ---- */

static void dump_disk(FILE *f, const struct topo_subsys *s, const struct topo_disk *d)
{
	cleanup_free char *names = ident_format_all(&d->id);

	fprintf(f, " %s", d->name);
	if (d->ctrl >= 0)
		fprintf(f, " of nvme%d", s->ctrl[d->ctrl].instance);
	fprintf(f, " nsid=%u %s size=%llu paths=%zu%s%s", d->nsid, *names ? names : "nameless",
		(unsigned long long)d->size, d->n_paths, d->hidden ? " hidden" : "", d->node ? "" : " no-node");
	if (d->id.have & IDENT_CSI)
		fprintf(f, " csi=%u", d->id.csi);
	fputc('\n', f);
}

static void dump_subsys(FILE *f, const struct topo_subsys *s)
{
	static const char *const types[] = { "?", "io", "discovery", "admin" };

	fprintf(f, "%s %d %s/%s\n", s->nqn, s->instance, s->model ? s->model : "-", s->serial ? s->serial : "-");
	for (size_t i = 0; i < s->n_ctrl; i++) {
		const struct topo_ctrl *c = &s->ctrl[i];

		fprintf(f, " nvme%d %s %s cntlid=%d queues=%d %s %s paths=%zu%s\n", c->instance,
			ctrl_state_name(c->state), types[c->type], c->cntlid, c->queue_count,
			c->transport ? c->transport : "-", c->hostnqn ? c->hostnqn : "-", c->n_paths,
			str_same(c->nqn, s->nqn) ? "" : c->nqn ? " other-nqn" : " no-nqn");
	}
	for (size_t i = 0; i < s->n_disk; i++)
		dump_disk(f, s, &s->disk[i]);
	for (size_t i = 0; i < s->n_path; i++) {
		const struct topo_path *p = &s->path[i];
		cleanup_free char *names = ident_format_all(&p->id);

		fprintf(f, " nvme%d -> %s nsid=%u %s%s%s\n", s->ctrl[p->ctrl].instance,
			p->disk >= 0 ? s->disk[p->disk].name : "none", p->nsid, ana_state_name(p->ana),
			*names ? " " : "", names);
	}
}

static int compare_notes(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

char *dump(const struct topo *t)
{
	char *text;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	for (size_t i = 0; i < t->n_subsys; i++)
		dump_subsys(f, &t->subsys[i]);
	if (t->n_note)
		qsort(t->note, t->n_note, sizeof(*t->note), compare_notes); /* they come in the order of directories */
	for (size_t i = 0; i < t->n_note; i++)
		fprintf(f, "! %s\n", t->note[i]);
	fclose(f);
	return text;
}

int read_machine(const struct machine *m, bool live, unsigned want, struct topo *t)
{
	cleanup_fd int root = sysfs_open_root(at(m, "sys"));
	cleanup_fd int dev = open(at(m, "dev"), O_RDONLY | O_DIRECTORY);
	cleanup_fd int proc = open(at(m, "proc"), O_RDONLY | O_DIRECTORY);
	int err;

	assert_true(root >= 0 && dev >= 0 && proc >= 0);
	pretend_live = live;
	opened[0] = '\0';
	err = sysfs_read_with(root, want & NO_DEV ? -1 : dev, want & WITH_PROC ? proc : -1, want & 0xff, t);
	pretend_live = false;
	return err;
}

void assert_read(const struct machine *m, bool live, unsigned want, const char *expected)
{
	struct topo t;
	char *text;

	assert_int_equal(read_machine(m, live, want, &t), 0);
	text = dump(&t);
	assert_string_equal(text, expected);
	free(text);
	topo_free(&t);
}

/* The same from a live /sys and from a bundle. */
void assert_topology(const struct machine *m, unsigned want, const char *expected)
{
	assert_read(m, true, want, expected);
	assert_read(m, false, want, expected);
}

size_t times_opened(const char *what)
{
	size_t n = 0;

	for (const char *p = opened; (p = strstr(p, what)); p++)
		n++;
	return n;
}
