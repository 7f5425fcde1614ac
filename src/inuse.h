/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Is this block device in use, and by whom? Asked only of devices that a rescan would remove, and only in a child: any
 * of it may block. Any error, denial or silence counts as use. Linked into nvme-nsheal-ask alone.
 *
 * Without side effects: nothing is ever opened for writing (udev reacts to the closing of a writer), nothing is read
 * from the device unless that is the question, and exclusive access is asked for last, for an instant, and only where
 * nobody was found: a mount(8) at that very moment would get EBUSY.
 *
 * Needs CAP_SYS_ADMIN (loop devices), CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH (open files of other users' processes),
 * and the host's processes in /proc. Where these are missing, everything is in use.
 *
 * What no program can see: a block device mapped into memory or registered with io_uring after its descriptor was
 * closed, a descriptor under way in a socket, a pNFS block layout, an export whose path was pointed elsewhere after it
 * had been enabled.
 */
#pragma once

#include "util.h"

/* Where to look; tests point it at trees of their own. Directory fds, not owned, open as long as the look lives. */
struct inuse_roots {
	int sys, dev, proc;
	int configfs; /* /sys/kernel/config, -1: there is none */
};

/*
 * One pass over all processes, mounts, swaps, loop devices and exports: it costs a readlink for each open file of the
 * host, so it is made once for all disks that one rescan would remove, and anew for the next rescan. Never NULL: what
 * could not be seen makes every answer "in use".
 */
struct inuse_look;
struct inuse_look *inuse_look(const struct inuse_roots *r) __attribute__((returns_nonnull));
void inuse_look_free(struct inuse_look *look);

/*
 * name: kernel name of a visible NVMe disk ("nvme0n2"). gone, n_gone: names of the disks that would go together with it
 * (with native multipath off a dm-multipath map keeps working on a path that is not among them).
 *
 * 0: nobody uses it. 1: in use, *user says by whom, for people ("mounted on /data", "opened by qemu-system-x86 (pid
 * 4711)", "held by dm-3 (vg0-data)", "backing loop0", "exported by the kernel's NVMe target as nqn...", "nvme0n2p1 is
 * mounted on /data", or what could not be found out); it fits behind "/dev/nvme0n2: "; the caller frees it. Never
 * negative.
 */
int inuse_check_in(const struct inuse_look *look, const char *name, const char *const *gone, size_t n_gone,
		   char **user) WARN_UNUSED;
/* The same with a look of its own: for one disk. */
int inuse_check(const struct inuse_roots *r, const char *name, const char *const *gone, size_t n_gone,
		char **user) WARN_UNUSED;

/*
 * Can one block still be read directly (O_DIRECT)? 1 yes. 0: the read fails in a way that says that the namespace is
 * gone (EIO, ENXIO, ENODEV, EOPNOTSUPP, EREMOTEIO, or nothing to read). -errno: it could not be tried, or it failed
 * for a reason that a living namespace has too: a reservation (EBADE), a bad block (ENODATA, EILSEQ), the path
 * (ENOLINK, ETIMEDOUT).
 */
int inuse_readable(const struct inuse_roots *r, const char *name) WARN_UNUSED;
