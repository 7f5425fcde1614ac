/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * sysfs -> topology. Reads attributes that are free of side effects only: never `nuse` (issues a command),
 * `delayed_removal_secs` or a controller's `address` (take locks).
 */
#pragma once

#include "topology.h"

enum sysfs_want {
	/* `nguid` and `eui` of every disk beside its wwid: for comparing with what a controller says (rule 4) */
	SYSFS_IDS = 1 << 0,
	/* `ana_state` of every path, not only of those without a head */
	SYSFS_ANA = 1 << 1,
};

/*
 * root: a directory fd of /sys or of a copy of it. dev: a directory fd of /dev, or -1: do not look for nodes.
 * 0, also where there is no NVMe at all (class/nvme-subsystem absent: an empty topology); else a negative errno.
 * Attributes that vanish or cannot be read skip that one thing and leave a note.
 */
int sysfs_read(int root, int dev, unsigned want, struct topo *t) WARN_UNUSED;
/*
 * As sysfs_read(), but with a directory fd of /proc the sizes come from its `partitions`, all of them in one read
 * instead of one for each disk, which is a third of the cost of a look. They are then whole KiB: an odd last sector is
 * lost. What is not in there, or in there with 0, is read from sysfs. For a live /sys only; proc -1: as sysfs_read().
 */
int sysfs_read_with(int root, int dev, int proc, unsigned want, struct topo *t) WARN_UNUSED;

/*
 * Open the root: "/sys", or a support bundle's copy. A bundle is somebody else's data: links in it are resolved
 * inside it (openat2 RESOLVE_IN_ROOT). A directory fd or a negative errno.
 */
int sysfs_open_root(const char *path) WARN_UNUSED;
