/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sysfs-names.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

/* As the kernel prints a %d that is not negative: no sign, no leading zero. What follows it, or NULL. */
static const char *parse_number(const char *s, int *number)
{
	int64_t n = 0;

	if (*s < '0' || *s > '9' || (s[0] == '0' && s[1] >= '0' && s[1] <= '9'))
		return NULL;
	for (; *s >= '0' && *s <= '9'; s++) {
		n = n * 10 + (*s - '0');
		if (n > INT_MAX)
			return NULL;
	}
	*number = n;
	return s;
}

bool instance_parse(const char *name, const char *prefix, int *instance)
{
	const char *end = starts_with(name, prefix) ? parse_number(name + strlen(prefix), instance) : NULL;

	return end && !*end;
}

bool disk_name_parse(const char *name, struct disk_name *d)
{
	const char *s = starts_with(name, "nvme") ? parse_number(name + 4, &d->x) : NULL;

	d->c = -1;
	if (s && *s == 'c')
		s = parse_number(s + 1, &d->c);
	if (s)
		s = *s == 'n' ? parse_number(s + 1, &d->z) : NULL;
	return s && !*s;
}

uint64_t disk_name_key(const struct disk_name *d)
{
	return ((uint64_t)d->x << 32 | (uint32_t)d->z) + 1;
}

/* Open addressing; a key of 0 is a free place. */
static size_t map_place(const struct map *m, uint64_t key)
{
	size_t i = (key * 0x9e3779b97f4a7c15ULL >> 32) & (m->size - 1);

	while (m->key[i] && m->key[i] != key)
		i = (i + 1) & (m->size - 1);
	return i;
}

static void map_enlarge(struct map *m)
{
	struct map old = *m;

	m->size = old.size ? old.size * 2 : 64;
	m->key = xcalloc(m->size, sizeof(*m->key));
	m->value = xcalloc(m->size, sizeof(*m->value));
	for (size_t i = 0; i < old.size; i++) {
		if (old.key[i]) {
			size_t place = map_place(m, old.key[i]);

			m->key[place] = old.key[i];
			m->value[place] = old.value[i];
		}
	}
	map_clear(&old);
}

void map_put(struct map *m, uint64_t key, uint64_t value)
{
	size_t i;

	if (m->n >= m->size / 2)
		map_enlarge(m);
	i = map_place(m, key);
	m->n += !m->key[i];
	m->key[i] = key;
	m->value[i] = value;
}

bool map_get(const struct map *m, uint64_t key, uint64_t *value)
{
	size_t i;

	if (!m->n)
		return false;
	i = map_place(m, key);
	if (m->key[i] && value)
		*value = m->value[i];
	return m->key[i];
}

void map_clear(struct map *m)
{
	free(m->key);
	free(m->value);
	*m = (struct map){ 0 };
}

/*
 * Could this be a node, by d_type alone? A link may lead to one. A regular file is none: somebody wrote to the name of
 * a device that was not there, and devtmpfs cannot make the node over it.
 */
static bool may_be_node(const struct dirent *e)
{
	return e->d_type == DT_BLK || e->d_type == DT_LNK || e->d_type == DT_UNKNOWN;
}

int nodes_read(int dev, struct map *node)
{
	cleanup_fd int fd = openat(dev, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct disk_name parsed;
	const struct dirent *e;
	DIR *dir;
	int err;

	if (fd < 0)
		return -errno;
	dir = fdopendir(fd);
	if (!dir)
		return -errno;
	steal_fd(&fd); /* closed with dir */
	while (errno = 0, (e = readdir(dir)))
		if (may_be_node(e) && disk_name_parse(e->d_name, &parsed) && parsed.c < 0)
			map_put(node, disk_name_key(&parsed), 0);
	err = -errno;
	closedir(dir);
	return err;
}

/* "major minor #blocks name", a block being 1 KiB: show_partition() in block/genhd.c. */
static void parse_partition(char *line, struct map *size)
{
	char *name = strrchr(line, ' ');
	struct disk_name parsed;
	const char *blocks;
	uint64_t kib;

	if (!name || !disk_name_parse(name + 1, &parsed) || parsed.c >= 0)
		return;
	*name = '\0';
	blocks = strrchr(line, ' ');
	if (blocks && parse_uint(blocks + 1, UINT64_MAX / 1024, &kib) == 0 && kib > 0)
		map_put(size, disk_name_key(&parsed), kib);
}

void partitions_read(int proc, struct map *size)
{
	cleanup_fd int fd = openat(proc, "partitions", O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	char buf[8192];
	size_t used = 0;
	ssize_t n;

	/* seq_file gives whole lines, a page of them at most; nothing promises that */
	while (fd >= 0 && (n = read(fd, buf + used, sizeof(buf) - 1 - used)) > 0) {
		char *line = buf, *end;

		used += n;
		buf[used] = '\0';
		for (; (end = strchr(line, '\n')); line = end + 1) {
			*end = '\0';
			parse_partition(line, size);
		}
		used -= line - buf;
		if (used == sizeof(buf) - 1)
			used = 0; /* no line of this file */
		memmove(buf, line, used);
	}
}
