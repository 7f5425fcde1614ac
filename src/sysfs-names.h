/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Inside the sysfs port only: the names of disks, and the two places that list them all at once, /dev and
 * /proc/partitions, so that nothing has to be asked for each disk.
 */
#pragma once

#include "util.h"

struct disk_name {
	int x, c, z; /* nvmeXnZ (c is -1), or the path nvmeXcCnZ */
};

/* The names that the kernel makes, to the letter. Not partitions (nvme0n1p1) or character devices (ng0n1). */
bool disk_name_parse(const char *name, struct disk_name *d);
/* PREFIX and a number: nvme3, nvme-subsys3 */
bool instance_parse(const char *name, const char *prefix, int *instance);
/* One number for a disk, and the same for the paths of a head: it goes by X and Z. Never 0. */
uint64_t disk_name_key(const struct disk_name *d);

/* Numbers to numbers; no key is 0. All zero: empty. */
struct map {
	uint64_t *key, *value;
	size_t n, size;
};

void map_put(struct map *m, uint64_t key, uint64_t value);
/* value may be NULL */
bool map_get(const struct map *m, uint64_t key, uint64_t *value);
void map_clear(struct map *m);

/* The disks that have a node in the directory dev, by disk_name_key(). 0 or a negative errno. */
int nodes_read(int dev, struct map *node) WARN_UNUSED;
/* Sizes in KiB, by disk_name_key(); none where proc has no `partitions` (ProcSubset=pid). */
void partitions_read(int proc, struct map *size);
