/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the host alone shows of one subsystem, through the controllers of one host identity: sysfs's half of the truth,
 * before any controller is asked. Values, no I/O.
 */
#pragma once

#include "state.h"
#include "topology.h"

struct view {
	const struct topo_subsys *s; /* NULL: not connected */
	struct topo_index *ix;
	bool *ours;   /* per controller of s: an I/O controller of the wanted host identity */
	bool *usable; /* per controller of s: ours, and may be asked (rule 11) */
	size_t n_ours, n_live, n_usable;
};

/* One expected namespace as the host shows it. */
struct seen {
	enum ns_state state; /* STATE_MISSING: nothing of it is there */
	const struct topo_disk *disk;
	size_t n_paths; /* through live controllers of ours */
	uint32_t nsid;  /* of the disk or the path; 0 */
	enum ana_state ana;
};

/* s and hostnqn may be NULL. Clear with view_clear(); s must outlive it. */
void view_init(struct view *v, const struct topo_subsys *s, const char *hostnqn);
void view_clear(struct view *v);
/*
 * nsid 0: by identity alone; an empty identity: by NSID alone. all_paths: a single disk under one of several
 * controllers counts as degraded too; whether it is private to that controller, the lists tell.
 */
struct seen view_see(const struct view *v, uint32_t nsid, const struct ident *want, bool all_paths);
/* Has controller number `ctrl` (position) a path to, or a disk of, that NSID? */
bool view_has_path(const struct view *v, size_t ctrl, uint32_t nsid);
/* The ANA state that the host believes of that path; ANA_UNKNOWN: none, or no path. */
enum ana_state view_path_ana(const struct view *v, size_t ctrl, uint32_t nsid);
/* The first disk of ours with that NSID, or NULL. */
const struct topo_disk *view_disk(const struct view *v, uint32_t nsid);
