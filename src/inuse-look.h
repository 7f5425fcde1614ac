/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Between inuse.c, which judges one disk, and inuse-look.c, which sees who uses any device at all. */
#pragma once

#include "inuse.h"

/* A device by type and number: names of nodes may be anything, in containers above all. */
struct dev_id {
	bool chr;
	dev_t dev;
};

enum use_kind {
	USE_DEVICE,
	USE_MULTIPATHD, /* an open file of multipathd(8): it keeps one of every path, which is no use of the path */
	USE_CTRL,       /* a whole controller, with all that it has: no device number but a name */
};

struct use {
	enum use_kind kind;
	struct dev_id id;
	char *ctrl; /* USE_CTRL: nvme0 */
	char *how;  /* "mounted on /data" */
};

struct inuse_look {
	struct inuse_roots r;
	struct use *use; /* one for each device and kind: the first found is as good as any */
	size_t n;
	char *trouble; /* the first thing that could not be seen; NULL: all was seen */
};

/* 1 and *id: a device node. 0: something else. -errno. Does not open it and does not wait for file servers. */
int inuse_stat_dev(int dirfd, const char *path, int flags, struct dev_id *id) WARN_UNUSED;
bool inuse_same_dev(const struct dev_id *a, const struct dev_id *b);
