/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "record.h"

#include <stdlib.h>

/*
 * Both arrays are kept sorted by plain insertion: a record has as many entries as there are namespaces missing, and
 * those of one subsystem mostly come in order.
 */

/* Where key is, or would have to be. */
static size_t ns_position(const struct rec_subsys *r, const char *key, bool *found)
{
	size_t low = 0, high = r->n_ns;

	*found = false;
	/* in order, most often: the new one is the last */
	if (high > 0 && strcmp(r->ns[high - 1].key, key) < 0)
		return high;
	while (low < high) {
		size_t mid = low + (high - low) / 2;
		int order = strcmp(r->ns[mid].key, key);

		if (order == 0) {
			*found = true;
			return mid;
		}
		if (order < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

struct rec_ns *rec_ns_find(const struct rec_subsys *r, const char *key)
{
	bool found;
	size_t at = ns_position(r, key, &found);

	return found ? &r->ns[at] : NULL;
}

struct rec_ns *rec_ns_get(struct rec_subsys *r, const char *key)
{
	bool found;
	size_t at = ns_position(r, key, &found);
	struct rec_ns *ns;

	if (found)
		return &r->ns[at];
	ARRAY_GROW(r->ns, r->n_ns);
	ns = &r->ns[at];
	memmove(ns + 1, ns, (r->n_ns - at) * sizeof(*ns));
	r->n_ns++;
	*ns = (struct rec_ns){ .key = xstrdup(key), .verdict = -1, .said_state = -1, .said_action = -1 };
	return ns;
}

static size_t ctrl_position(const struct rec_subsys *r, int instance)
{
	size_t at = 0;

	while (at < r->n_ctrl && r->ctrl[at].instance < instance)
		at++;
	return at;
}

struct rec_ctrl *rec_ctrl_find(const struct rec_subsys *r, int instance)
{
	size_t at = ctrl_position(r, instance);

	return at < r->n_ctrl && r->ctrl[at].instance == instance ? &r->ctrl[at] : NULL;
}

struct rec_ctrl *rec_ctrl_get(struct rec_subsys *r, int instance)
{
	size_t at = ctrl_position(r, instance);
	struct rec_ctrl *c;

	if (at < r->n_ctrl && r->ctrl[at].instance == instance)
		return &r->ctrl[at];
	ARRAY_GROW(r->ctrl, r->n_ctrl);
	c = &r->ctrl[at];
	memmove(c + 1, c, (r->n_ctrl - at) * sizeof(*c));
	r->n_ctrl++;
	*c = (struct rec_ctrl){ .instance = instance, .cntlid = -1 };
	return c;
}

static void ns_clear(struct rec_ns *ns)
{
	free(ns->key);
	free(ns->verdict_text);
	free(ns->blocked_text);
}

void rec_ns_drop(struct rec_subsys *r, struct rec_ns *ns)
{
	size_t after = r->n_ns - (size_t)(ns - r->ns) - 1;

	ns_clear(ns);
	memmove(ns, ns + 1, after * sizeof(*ns));
	r->n_ns--;
}

void rec_ctrl_drop(struct rec_subsys *r, struct rec_ctrl *c)
{
	size_t after = r->n_ctrl - (size_t)(c - r->ctrl) - 1;

	memmove(c, c + 1, after * sizeof(*c));
	r->n_ctrl--;
}

struct rec_dead *rec_dead_find(const struct rec_subsys *r, const char *disk)
{
	for (size_t i = 0; i < r->n_dead; i++)
		if (streq(r->dead[i].disk, disk))
			return &r->dead[i];
	return NULL;
}

struct rec_dead *rec_dead_get(struct rec_subsys *r, const char *disk)
{
	struct rec_dead *found = rec_dead_find(r, disk);

	if (found)
		return found;
	ARRAY_GROW(r->dead, r->n_dead);
	r->dead[r->n_dead] = (struct rec_dead){ .disk = xstrdup(disk) };
	return &r->dead[r->n_dead++];
}

void rec_dead_drop(struct rec_subsys *r, struct rec_dead *d)
{
	free(d->disk);
	*d = r->dead[--r->n_dead];
}

void rec_subsys_clear(struct rec_subsys *r)
{
	while (r->n_dead)
		rec_dead_drop(r, &r->dead[r->n_dead - 1]);
	free(r->dead);
	for (size_t i = 0; i < r->n_ns; i++)
		ns_clear(&r->ns[i]);
	free(r->ns);
	free(r->ctrl);
	free(r->nqn);
	free(r->hostnqn);
	*r = (struct rec_subsys){ 0 };
}

static uint64_t hash_text(uint64_t h, const char *s)
{
	return s ? hash_bytes(h, s, strlen(s) + 1) : hash_bytes(h, "", 1);
}

uint64_t rec_subsys_hash(const struct rec_subsys *r)
{
	uint64_t h = hash_bytes(HASH_INIT, &r->n_ns, sizeof(r->n_ns));

	for (size_t i = 0; i < r->n_ns; i++) {
		struct rec_ns flat = r->ns[i];

		h = hash_text(hash_text(hash_text(h, flat.key), flat.verdict_text), flat.blocked_text);
		flat.key = flat.verdict_text = flat.blocked_text = NULL;
		h = hash_bytes(h, &flat, sizeof(flat));
	}
	for (size_t i = 0; i < r->n_dead; i++) {
		h = hash_text(h, r->dead[i].disk);
		h = hash_bytes(h, &r->dead[i].first_at, sizeof(r->dead[i].first_at));
	}
	return r->n_ctrl ? hash_bytes(h, r->ctrl, r->n_ctrl * sizeof(*r->ctrl)) : h;
}
