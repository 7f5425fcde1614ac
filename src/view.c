/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "view.h"

#include <stdlib.h>

/* More disks than this of one identity are told apart no further. */
#define MAX_FITS 64

void view_init(struct view *v, const struct topo_subsys *s, const char *hostnqn)
{
	*v = (struct view){ .s = s };
	if (!s)
		return;
	v->ix = topo_index_new(s);
	v->ours = xcalloc(s->n_ctrl, sizeof(*v->ours));
	v->usable = xcalloc(s->n_ctrl, sizeof(*v->usable));
	for (size_t i = 0; i < s->n_ctrl; i++) {
		const struct topo_ctrl *c = &s->ctrl[i];

		if (c->type == CTRL_TYPE_DISCOVERY || c->type == CTRL_TYPE_ADMIN)
			continue;
		if (hostnqn && !str_same(hostnqn, c->hostnqn))
			continue;
		v->ours[i] = true;
		v->n_ours++;
		v->n_live += c->state == CTRL_LIVE;
		v->usable[i] = ctrl_is_usable(c);
		v->n_usable += v->usable[i];
	}
}

void view_clear(struct view *v)
{
	topo_index_free(v->ix);
	free(v->ours);
	free(v->usable);
	*v = (struct view){ 0 };
}

/* Position of the first path of controller `ctrl` whose NSID is not below nsid; paths are sorted so. */
static size_t first_path(const struct topo_subsys *s, size_t ctrl, uint32_t nsid)
{
	size_t low = 0, high = s->n_path;

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		const struct topo_path *p = &s->path[mid];

		if ((size_t)p->ctrl < ctrl || ((size_t)p->ctrl == ctrl && p->nsid < nsid))
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static size_t first_disk(const struct topo_subsys *s, uint32_t nsid)
{
	size_t low = 0, high = s->n_disk;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (s->disk[mid].nsid < nsid)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

bool view_has_path(const struct view *v, size_t ctrl, uint32_t nsid)
{
	const struct topo_subsys *s = v->s;
	size_t i = first_path(s, ctrl, nsid);

	if (i < s->n_path && (size_t)s->path[i].ctrl == ctrl && s->path[i].nsid == nsid)
		return true;
	for (i = first_disk(s, nsid); i < s->n_disk && s->disk[i].nsid == nsid; i++)
		if (s->disk[i].ctrl >= 0 && (size_t)s->disk[i].ctrl == ctrl)
			return true;
	return false;
}

enum ana_state view_path_ana(const struct view *v, size_t ctrl, uint32_t nsid)
{
	size_t i = first_path(v->s, ctrl, nsid);

	if (i < v->s->n_path && (size_t)v->s->path[i].ctrl == ctrl && v->s->path[i].nsid == nsid)
		return v->s->path[i].ana;
	return ANA_UNKNOWN;
}

static size_t live_paths(const struct view *v, const struct topo_disk *d)
{
	const struct topo_subsys *s = v->s;
	size_t n = 0;

	if (d->ctrl >= 0)
		return v->ours[d->ctrl] && s->ctrl[d->ctrl].state == CTRL_LIVE;
	for (size_t c = 0; c < s->n_ctrl; c++) {
		if (!v->ours[c] || s->ctrl[c].state != CTRL_LIVE)
			continue;
		for (size_t i = first_path(s, c, d->nsid);
		     i < s->n_path && (size_t)s->path[i].ctrl == c && s->path[i].nsid == d->nsid; i++)
			if (s->path[i].disk == d - s->disk) {
				n++;
				break;
			}
	}
	return n;
}

/* Reached through a controller of ours? A head belongs to every host identity that has a path to it. */
static bool disk_is_ours(const struct view *v, const struct topo_disk *d)
{
	const struct topo_subsys *s = v->s;

	if (d->ctrl >= 0)
		return v->ours[d->ctrl];
	if (v->n_ours == s->n_ctrl || d->n_paths == 0)
		return true;
	for (size_t i = 0; i < s->n_path; i++)
		if (s->path[i].disk == d - s->disk && v->ours[s->path[i].ctrl])
			return true;
	return false;
}

const struct topo_disk *view_disk(const struct view *v, uint32_t nsid)
{
	for (size_t i = first_disk(v->s, nsid); i < v->s->n_disk && v->s->disk[i].nsid == nsid; i++)
		if (disk_is_ours(v, &v->s->disk[i]))
			return &v->s->disk[i];
	return NULL;
}

static enum ns_state disk_state(const struct topo_disk *d)
{
	if (d->hidden || d->size == 0)
		return STATE_UNUSABLE;
	if (d->n_paths == 0)
		return STATE_PATHLESS;
	if (!d->node)
		return STATE_NODELESS;
	return STATE_PRESENT;
}

/*
 * Does a controller that could have a path to it have none? A single disk under one of several controllers may be
 * private to it: only the controllers' lists can tell, see `several`.
 */
static bool lacks_path(const struct view *v, const struct topo_disk *d, bool several)
{
	if (d->ctrl >= 0 && !several)
		return false;
	for (size_t c = 0; c < v->s->n_ctrl; c++)
		if (v->usable[c] && !view_has_path(v, c, d->nsid))
			return true;
	return false;
}

/* No disk: are there paths all the same? Then the ANA state says why no head came (nvme_mpath_set_live). */
static struct seen see_paths(const struct view *v, uint32_t nsid, const struct ident *want)
{
	struct seen seen = { .state = STATE_MISSING };
	bool usable = false;

	for (size_t i = 0; i < v->s->n_path; i++) {
		const struct topo_path *p = &v->s->path[i];

		if (p->disk >= 0 || !v->ours[p->ctrl] || (nsid && p->nsid != nsid))
			continue;
		if (ident_empty(want) ? !nsid : !ident_match(want, &p->id) && !(nsid && ident_anonymous(&p->id)))
			continue;
		seen.nsid = p->nsid;
		seen.n_paths++;
		if (p->ana == ANA_INACCESSIBLE || p->ana == ANA_PERSISTENT_LOSS || p->ana == ANA_CHANGE)
			seen.ana = p->ana;
		else if (v->usable[p->ctrl])
			usable = true;
	}
	if (usable)
		seen.state = STATE_HEADLESS;
	else if (seen.n_paths && seen.ana != ANA_UNKNOWN)
		seen.state = STATE_INACCESSIBLE;
	return seen;
}

struct seen view_see(const struct view *v, uint32_t nsid, const struct ident *want, bool all_paths)
{
	size_t fit[MAX_FITS];
	size_t n = topo_index_find(v->ix, nsid, want, fit, MAX_FITS);
	const struct topo_disk *best = NULL;
	struct seen seen = { 0 };
	size_t n_ours = 0;

	for (size_t i = 0; i < n && i < MAX_FITS; i++) {
		const struct topo_disk *d = &v->s->disk[fit[i]];

		if (!disk_is_ours(v, d))
			continue;
		/* several visible disks with one NSID are paths of native multipath being off; several NSIDs are not */
		if (best && !nsid && best->nsid != d->nsid)
			return (struct seen){ .state = STATE_AMBIGUOUS, .disk = best, .nsid = best->nsid };
		seen.n_paths += live_paths(v, d);
		n_ours++;
		if (!best || disk_state(d) == STATE_PRESENT)
			best = d;
	}
	if (!best)
		return see_paths(v, nsid, want);
	seen.disk = best;
	seen.nsid = best->nsid;
	seen.state = disk_state(best);
	if (seen.state == STATE_PRESENT && lacks_path(v, best, n_ours > 1 || all_paths))
		seen.state = STATE_DEGRADED;
	return seen;
}
