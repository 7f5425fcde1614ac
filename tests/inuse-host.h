/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A host of plain files for test-inuse: /sys, /dev, /proc and configfs below a temporary directory. A node is a file
 * that says "block 259:1" or "char 240:1"; calls that stand in for those of libc make it one, and give the effects that
 * the kernel would show: EBUSY for exclusive access to what is claimed, EACCES, a process that ends under our eyes.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "inuse.h"

struct host {
	char top[64];
	struct inuse_roots roots;
};

struct host *host_new(void);
/* Also holds that nothing was ever opened for writing, and no character device at all. */
void host_free(struct host *h);

/* Verbs. Paths are relative to the host: "sys/block". */
void put(struct host *h, const char *path, const char *text); /* a file, with its directories */
void put_dir(struct host *h, const char *path);
void put_link(struct host *h, const char *path, const char *to);
void drop(struct host *h, const char *path); /* with all below it; "": all */

/* A disk below a controller or a subsystem ("nvme0", "nvme-subsys0"), its node, and its entry in class/block. */
void has_disk(struct host *h, const char *above, const char *name, const char *dev);
void has_partition(struct host *h, const char *above, const char *disk, const char *name, const char *dev);
void has_generic(struct host *h, const char *above, const char *name, const char *dev);
void has_ctrl(struct host *h, const char *name, const char *state);
/* A device-mapper map over disks or other maps: holders and slaves are linked. */
void has_map(struct host *h, const char *dm, const char *name, const char *uuid, const char *dev);
void maps(struct host *h, const char *dm, const char *disk);
void has_process(struct host *h, int pid, const char *comm);
/* link: what the kernel says the descriptor is; "dev/..." is a node of this host */
void has_open(struct host *h, int pid, int fd, const char *link);
void has_mounts(struct host *h, int pid, const char *ns, const char *mountinfo);
void has_export(struct host *h, const char *nqn, const char *nsid, const char *device_path, const char *enable);

/* Effects. */
void claimed(struct host *h, const char *node);  /* exclusive access gives EBUSY */
void fails(const char *path, int err);           /* opening, reading the link of, or stat of exactly this path */
void ends_when_asked(struct host *h, const char *path, const char *what); /* drops what, then the call goes on */
void reads_fail(int err);
unsigned opened(const char *node); /* how often */

/* Answers. gone: names, each once, NULL: none. */
void assert_free(struct host *h, const char *name, const char *const *gone);
void assert_used(struct host *h, const char *name, const char *const *gone, const char *by);
