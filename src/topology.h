/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the host has: subsystems, their controllers, the block devices of their namespaces and the paths to them, as
 * sysfs shows them at one moment. Values, no I/O: sysfs.c fills it, plan.c reads it.
 *
 * Layouts (kernel drivers/nvme/host/{core,multipath,sysfs}.c):
 *   native multipath   nvme-subsysX/nvmeXnZ is the head (visible); nvmeC/nvmeXcCnZ one hidden path per controller
 *   private namespace  nvmeC/nvmeXnZ, visible, in the controller's directory
 *   multipath off      nvmeC/nvmeCnZ, visible, one per controller: several disks of one identity
 * X is the subsystem's number, Z counts in order of discovery: neither tells the NSID. Only the *pairing* of a hidden
 * path with its head goes by name: both carry the head's X and Z (nvme_mpath_set_disk_name, nvme_alloc_ns).
 */
#pragma once

#include "ident.h"

enum ctrl_state {
	CTRL_UNKNOWN, /* unreadable, or a word that this program does not know */
	CTRL_NEW,
	CTRL_LIVE,
	CTRL_RESETTING,
	CTRL_CONNECTING,
	CTRL_DELETING, /* also "deleting (no IO)" */
	CTRL_DEAD,
};
const char *ctrl_state_name(enum ctrl_state s);

enum ctrl_type {
	CTRL_TYPE_UNKNOWN, /* no attribute (before 5.18) or `reserved` (before NVMe 1.4): an I/O controller by all signs */
	CTRL_TYPE_IO,
	CTRL_TYPE_DISCOVERY,
	CTRL_TYPE_ADMIN,
};

enum ana_state {
	ANA_UNKNOWN, /* no such attribute: the controller does not do ANA, or it was not read */
	ANA_OPTIMIZED,
	ANA_NON_OPTIMIZED,
	ANA_INACCESSIBLE,
	ANA_PERSISTENT_LOSS,
	ANA_CHANGE,
};
const char *ana_state_name(enum ana_state s); /* as sysfs spells it */

struct topo_ctrl {
	int instance; /* N of nvmeN */
	enum ctrl_state state;
	enum ctrl_type type;
	int cntlid;      /* -1 unknown */
	int queue_count; /* -1 unknown; 1 = admin queue only, the kernel never scans */
	char *nqn;       /* trailing blanks trimmed; NULL if unreadable, empty, "(efault)" or "(null)" */
	char *hostnqn;   /* NULL: PCIe, or unreadable */
	char *transport; /* "tcp", "rdma", "fc", "pcie", "loop"; NULL unknown */
	size_t n_paths;  /* hidden paths and visible disks in this controller's directory */
};

struct topo_disk {
	char name[32]; /* nvme0n2 */
	int ctrl;      /* index into topo_subsys.ctrl of the controller it lies under; -1: a head of the subsystem */
	uint32_t nsid; /* 0 unreadable */
	struct ident id;
	uint64_t size; /* bytes */
	bool hidden;   /* hidden without being a path of a head: a command set the kernel does not serve */
	bool node;     /* /dev has it (true where /dev was not looked at) */
	size_t n_paths; /* paths to a head; 1 for a disk under its controller */
};

struct topo_path {
	int ctrl;       /* index into topo_subsys.ctrl */
	int disk;       /* index into topo_subsys.disk; -1: no head */
	uint32_t nsid;  /* as the head's; read from the path where there is no head; 0 unreadable */
	enum ana_state ana; /* read only where there is no head, or with SYSFS_ANA */
	struct ident id;    /* filled only where there is no head */
};

struct topo_subsys {
	int instance; /* X of nvme-subsysX; -1: only controllers that have no subsystem yet */
	char *nqn;    /* trimmed; never NULL */
	char *model, *serial; /* trimmed; NULL unreadable */
	struct topo_ctrl *ctrl; /* by instance */
	size_t n_ctrl;
	struct topo_disk *disk; /* by NSID, then name */
	size_t n_disk;
	struct topo_path *path; /* by controller, then NSID */
	size_t n_path;
};

struct topo {
	struct topo_subsys *subsys; /* by NQN, then instance, -1 last */
	size_t n_subsys;
	char **note; /* what could not be read and was skipped, for -v: "nvme0n3: wwid unreadable" */
	size_t n_note;
	bool ids_complete; /* NGUID and EUI-64 were read beside the wwid */
};

/*
 * The subsystem of that NQN (exact after trimming), or NULL. Where several have it (the well-known discovery NQN;
 * controllers that have no subsystem yet beside the real one) the first, a real one before one of instance -1.
 */
const struct topo_subsys *topo_find(const struct topo *t, const char *nqn);
/* Rule 11: may this controller be asked anything? Live, has I/O queues, an I/O controller, NQN readable. */
bool ctrl_is_usable(const struct topo_ctrl *c);

/*
 * Finding disks by identity without comparing each with each. An index holds positions only: it is good as long as its
 * subsystem is.
 */
struct topo_index;
struct topo_index *topo_index_new(const struct topo_subsys *s);
/*
 * Disks that fit: every given name equal, and the NSID where nsid != 0; a disk without any identifier (quirks) fits by
 * NSID alone, also one that has nothing but the kernel's own nvme.* wwid, unless that is what is wanted. Appends
 * positions in s->disk to out (room for max), returns how many fit (may exceed max).
 */
size_t topo_index_find(const struct topo_index *ix, uint32_t nsid, const struct ident *want, size_t *out, size_t max);
void topo_index_free(struct topo_index *ix);

/*
 * Sort everything into the orders promised above, give paths the NSID of their heads, count paths. Before it, `ctrl`
 * and `disk` are positions in the arrays as they were filled; they are adjusted. More may be appended afterwards, and
 * then it is to be called again.
 */
void topo_finish(struct topo *t);
void topo_free(struct topo *t);
