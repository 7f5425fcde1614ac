/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "topology.h"

#include <stdlib.h>

/* As the kernel spells them in nvme_sysfs_show_state(). */
static const char *const ctrl_state_names[] = {
	[CTRL_UNKNOWN] = "unknown", [CTRL_NEW] = "new", [CTRL_LIVE] = "live", [CTRL_RESETTING] = "resetting",
	[CTRL_CONNECTING] = "connecting", [CTRL_DELETING] = "deleting", [CTRL_DEAD] = "dead",
};

/* nvme_ana_state_names[] */
static const char *const ana_state_names[] = {
	[ANA_UNKNOWN] = "unknown", [ANA_OPTIMIZED] = "optimized", [ANA_NON_OPTIMIZED] = "non-optimized",
	[ANA_INACCESSIBLE] = "inaccessible", [ANA_PERSISTENT_LOSS] = "persistent-loss", [ANA_CHANGE] = "change",
};

const char *ctrl_state_name(enum ctrl_state s)
{
	return (size_t)s < ARRAY_SIZE(ctrl_state_names) ? ctrl_state_names[s] : "unknown";
}

const char *ana_state_name(enum ana_state s)
{
	return (size_t)s < ARRAY_SIZE(ana_state_names) ? ana_state_names[s] : "unknown";
}

/* strcmp() of a string and n bytes that have no end of their own */
static int compare_with(const char *s, const char *bytes, size_t n)
{
	int order = strncmp(s, bytes, n);

	return order ? order : s[n] != '\0';
}

const struct topo_subsys *topo_find(const struct topo *t, const char *nqn)
{
	size_t low = 0, high = t->n_subsys, len = strlen(nqn);

	while (len > 0 && nqn[len - 1] == ' ')
		len--;
	while (low < high) { /* the first of those that have it: see compare_subsys() */
		size_t mid = low + (high - low) / 2;

		if (compare_with(t->subsys[mid].nqn, nqn, len) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return low < t->n_subsys && compare_with(t->subsys[low].nqn, nqn, len) == 0 ? &t->subsys[low] : NULL;
}

bool ctrl_is_usable(const struct topo_ctrl *c)
{
	return c->state == CTRL_LIVE && c->nqn && (c->queue_count == -1 || c->queue_count >= 2) &&
	       (c->type == CTRL_TYPE_IO || c->type == CTRL_TYPE_UNKNOWN);
}

/* What the storage side names a namespace by; the wwid is made up by the kernel where there is none of them. */
#define STORAGE_NAMES (IDENT_UUID | IDENT_NGUID | IDENT_EUI64)

/*
 * A hash table with one entry for every name and for the NSID of every disk. Chains are in the order of the disks.
 * Positions are one too high, so that 0 means none.
 */
struct index_entry {
	uint64_t hash;
	uint32_t disk, next;
};

struct topo_index {
	const struct topo_subsys *s;
	uint32_t *bucket;
	size_t mask;
	struct index_entry *entry;
	uint32_t n_entry;
};

/* 0 stands for the NSID, which has no bit of its own */
static uint64_t hash_key(uint8_t field, const void *bytes, size_t n)
{
	return hash_bytes(hash_bytes(HASH_INIT, &field, 1), bytes, n);
}

static uint64_t hash_nsid(uint32_t nsid)
{
	return hash_key(0, &nsid, sizeof(nsid));
}

static uint64_t hash_name(const struct ident *id, enum ident_field field)
{
	switch (field) {
	case IDENT_UUID:
		return hash_key(field, id->uuid, sizeof(id->uuid));
	case IDENT_NGUID:
		return hash_key(field, id->nguid, sizeof(id->nguid));
	case IDENT_EUI64:
		return hash_key(field, id->eui64, sizeof(id->eui64));
	default:
		return hash_key(field, id->wwid, strlen(id->wwid));
	}
}

static void index_add(struct topo_index *ix, uint64_t hash, size_t disk)
{
	uint32_t *bucket = &ix->bucket[hash & ix->mask];

	ix->entry[ix->n_entry++] = (struct index_entry){ .hash = hash, .disk = disk, .next = *bucket };
	*bucket = ix->n_entry;
}

struct topo_index *topo_index_new(const struct topo_subsys *s)
{
	struct topo_index *ix = xcalloc(1, sizeof(*ix));
	size_t n = s->n_disk, n_bucket = 16;

	for (size_t i = 0; i < s->n_disk; i++)
		n += __builtin_popcount(s->disk[i].id.have & IDENT_NAMES);
	while (n_bucket < n)
		n_bucket *= 2;
	ix->s = s;
	ix->mask = n_bucket - 1;
	ix->bucket = xcalloc(n_bucket, sizeof(*ix->bucket));
	ix->entry = xcalloc(n, sizeof(*ix->entry));
	for (size_t i = s->n_disk; i-- > 0;) { /* backwards: index_add() puts in front */
		const struct topo_disk *d = &s->disk[i];

		index_add(ix, hash_nsid(d->nsid), i);
		for (unsigned left = d->id.have & IDENT_NAMES; left; left &= left - 1)
			index_add(ix, hash_name(&d->id, left & -left), i);
	}
	return ix;
}

void topo_index_free(struct topo_index *ix)
{
	if (!ix)
		return;
	free(ix->bucket);
	free(ix->entry);
	free(ix);
}

/* Nothing to compare: the storage gives the disk no name, or the kernel took it away (quirks, duplicates). */
static bool is_nameless(const struct topo_disk *d, const struct ident *want)
{
	return !(d->id.have & STORAGE_NAMES) && !(d->id.have & want->have & IDENT_WWID);
}

static size_t find_by_name(const struct topo_index *ix, uint32_t nsid, const struct ident *want, size_t *out,
			   size_t max)
{
	unsigned names = want->have & IDENT_NAMES;
	uint64_t hash = hash_name(want, names & -names); /* the lowest bit is the strongest name */
	size_t n = 0;

	for (uint32_t i = ix->bucket[hash & ix->mask]; i; i = ix->entry[i - 1].next) {
		const struct index_entry *e = &ix->entry[i - 1];
		const struct topo_disk *d = &ix->s->disk[e->disk];

		if (e->hash != hash || (nsid && d->nsid != nsid) || !ident_match(want, &d->id))
			continue;
		if (n < max)
			out[n] = e->disk;
		n++;
	}
	return n;
}

size_t topo_index_find(const struct topo_index *ix, uint32_t nsid, const struct ident *want, size_t *out, size_t max)
{
	uint64_t hash = hash_nsid(nsid);
	size_t n = 0;

	if (!ident_empty(want))
		n = find_by_name(ix, nsid, want, out, max);
	if (!nsid)
		return n;
	for (uint32_t i = ix->bucket[hash & ix->mask]; i; i = ix->entry[i - 1].next) {
		const struct index_entry *e = &ix->entry[i - 1];
		const struct topo_disk *d = &ix->s->disk[e->disk];

		if (e->hash != hash || d->nsid != nsid || !(ident_empty(want) || is_nameless(d, want)))
			continue;
		if (n < max)
			out[n] = e->disk;
		n++;
	}
	return n;
}

typedef int compare_positions(const void *a, const void *b, void *array);

static int compare_u64(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

static int compare_ctrl(const void *a, const void *b, void *array)
{
	const struct topo_ctrl *c = array;

	return compare_u64(c[*(const size_t *)a].instance, c[*(const size_t *)b].instance);
}

static int compare_disk(const void *a, const void *b, void *array)
{
	const struct topo_disk *x = (struct topo_disk *)array + *(const size_t *)a;
	const struct topo_disk *y = (struct topo_disk *)array + *(const size_t *)b;

	/* nvme0n2 before nvme0n10 */
	return x->nsid != y->nsid ? compare_u64(x->nsid, y->nsid) : strverscmp(x->name, y->name);
}

static int compare_path(const void *a, const void *b, void *array)
{
	const struct topo_path *x = (struct topo_path *)array + *(const size_t *)a;
	const struct topo_path *y = (struct topo_path *)array + *(const size_t *)b;

	if (x->ctrl != y->ctrl)
		return compare_u64(x->ctrl, y->ctrl);
	return x->nsid != y->nsid ? compare_u64(x->nsid, y->nsid) : compare_u64(x->disk, y->disk);
}

/*
 * Several subsystems may have one NQN: the well-known discovery NQN, and controllers without a subsystem (-1), which
 * come last so that topo_find() does not find them instead of the real one.
 */
static int compare_subsys(const void *a, const void *b, void *array)
{
	const struct topo_subsys *x = (struct topo_subsys *)array + *(const size_t *)a;
	const struct topo_subsys *y = (struct topo_subsys *)array + *(const size_t *)b;
	int order = strcmp(x->nqn, y->nqn);

	return order ? order : compare_u64((unsigned)x->instance, (unsigned)y->instance);
}

/* Sort in place, so that the array can go on growing. Where each element went to, by its old position; caller frees. */
static size_t *sort(void *array, size_t n, size_t size, compare_positions *compare)
{
	cleanup_free size_t *from = xcalloc(n, sizeof(*from));
	cleanup_free char *old = xmalloc(n * size);
	size_t *to = xcalloc(n, sizeof(*to));

	if (n == 0)
		return to;
	for (size_t i = 0; i < n; i++)
		from[i] = i;
	qsort_r(from, n, sizeof(*from), compare, array);
	memcpy(old, array, n * size);
	for (size_t i = 0; i < n; i++) {
		memcpy((char *)array + i * size, old + from[i] * size, size);
		to[from[i]] = i;
	}
	return to;
}

static void count_paths(struct topo_subsys *s)
{
	for (size_t i = 0; i < s->n_ctrl; i++)
		s->ctrl[i].n_paths = 0;
	for (size_t i = 0; i < s->n_disk; i++) {
		struct topo_disk *d = &s->disk[i];

		d->n_paths = d->ctrl >= 0;
		if (d->ctrl >= 0)
			s->ctrl[d->ctrl].n_paths++;
	}
	for (size_t i = 0; i < s->n_path; i++) {
		s->ctrl[s->path[i].ctrl].n_paths++;
		if (s->path[i].disk >= 0)
			s->disk[s->path[i].disk].n_paths++;
	}
}

static void finish_subsys(struct topo_subsys *s)
{
	cleanup_free size_t *new_ctrl = sort(s->ctrl, s->n_ctrl, sizeof(*s->ctrl), compare_ctrl);
	cleanup_free size_t *new_disk = sort(s->disk, s->n_disk, sizeof(*s->disk), compare_disk);

	for (size_t i = 0; i < s->n_disk; i++)
		if (s->disk[i].ctrl >= 0)
			s->disk[i].ctrl = new_ctrl[s->disk[i].ctrl];
	for (size_t i = 0; i < s->n_path; i++) {
		struct topo_path *p = &s->path[i];

		p->ctrl = new_ctrl[p->ctrl];
		if (p->disk < 0)
			continue;
		p->disk = new_disk[p->disk];
		p->nsid = s->disk[p->disk].nsid;
	}
	free(sort(s->path, s->n_path, sizeof(*s->path), compare_path));
	count_paths(s);
}

void topo_finish(struct topo *t)
{
	for (size_t i = 0; i < t->n_subsys; i++)
		finish_subsys(&t->subsys[i]);
	free(sort(t->subsys, t->n_subsys, sizeof(*t->subsys), compare_subsys));
}

static void free_subsys(struct topo_subsys *s)
{
	for (size_t i = 0; i < s->n_ctrl; i++) {
		free(s->ctrl[i].nqn);
		free(s->ctrl[i].hostnqn);
		free(s->ctrl[i].transport);
	}
	for (size_t i = 0; i < s->n_disk; i++)
		ident_clear(&s->disk[i].id);
	for (size_t i = 0; i < s->n_path; i++)
		ident_clear(&s->path[i].id);
	free(s->ctrl);
	free(s->disk);
	free(s->path);
	free(s->nqn);
	free(s->model);
	free(s->serial);
}

void topo_free(struct topo *t)
{
	for (size_t i = 0; i < t->n_subsys; i++)
		free_subsys(&t->subsys[i]);
	for (size_t i = 0; i < t->n_note; i++)
		free(t->note[i]);
	free(t->subsys);
	free(t->note);
	*t = (struct topo){ 0 };
}
