/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "probe.h"

#include <stdio.h>
#include <stdlib.h>

struct probe *probes_find(const struct probes *p, int instance, const char *nqn)
{
	for (size_t i = 0; i < p->n; i++)
		if (p->probe[i].instance == instance && streq(p->probe[i].nqn, nqn))
			return &p->probe[i];
	return NULL;
}

struct probe *probes_get(struct probes *p, int instance, const char *nqn)
{
	struct probe *found = probes_find(p, instance, nqn);

	if (found)
		return found;
	ARRAY_GROW(p->probe, p->n);
	p->probe[p->n] = (struct probe){ .instance = instance, .nqn = xstrdup(nqn) };
	return &p->probe[p->n++];
}

/* Where nsid is, or would have to be. */
static size_t position(const struct probe *p, uint32_t nsid)
{
	size_t low = 0, high = p->n_ns;

	if (high && p->ns[high - 1].nsid < nsid) /* lists mostly come in order */
		return high;
	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (p->ns[mid].nsid < nsid)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

struct probe_ns *probe_ns_find(const struct probe *p, uint32_t nsid)
{
	size_t at = position(p, nsid);

	return at < p->n_ns && p->ns[at].nsid == nsid ? &p->ns[at] : NULL;
}

struct probe_ns *probe_ns_get(struct probe *p, uint32_t nsid)
{
	size_t at = position(p, nsid);

	if (at < p->n_ns && p->ns[at].nsid == nsid)
		return &p->ns[at];
	ARRAY_GROW(p->ns, p->n_ns);
	memmove(&p->ns[at + 1], &p->ns[at], (p->n_ns - at) * sizeof(*p->ns));
	p->ns[at] = (struct probe_ns){ .nsid = nsid };
	p->n_ns++;
	return &p->ns[at];
}

const struct probe_use *probes_use(const struct probes *p, const char *disk)
{
	const struct probe_use *newest = NULL;

	for (size_t i = 0; i < p->n; i++)
		for (size_t k = 0; k < p->probe[i].n_use; k++) {
			const struct probe_use *u = &p->probe[i].use[k];

			if (streq(u->name, disk) && (!newest || u->at > newest->at))
				newest = u;
		}
	return newest;
}

struct probe_use *probe_use_get(struct probe *p, const char *disk)
{
	for (size_t k = 0; k < p->n_use; k++)
		if (streq(p->use[k].name, disk))
			return &p->use[k];
	ARRAY_GROW(p->use, p->n_use);
	p->use[p->n_use] = (struct probe_use){ 0 };
	(void)snprintf(p->use[p->n_use].name, sizeof(p->use[0].name), "%s", disk);
	return &p->use[p->n_use++];
}

static int by_nsid(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

void probe_set_list(struct probe *p, const uint32_t *nsid, size_t n, int64_t began)
{
	cleanup_free uint32_t *sorted = xcalloc(n, sizeof(*sorted));

	if (n)
		memcpy(sorted, nsid, n * sizeof(*sorted));
	qsort(sorted, n, sizeof(*sorted), by_nsid); /* a controller that does not sort must not cost n * n */
	for (size_t i = 0; i < p->n_ns; i++)
		p->ns[i].listed = false;
	p->n_listed = 0;
	for (size_t i = 0; i < n; i++) {
		/* FFFFFFFFh addresses all namespaces and is none */
		if (sorted[i] == 0 || sorted[i] == UINT32_MAX || (i && sorted[i] == sorted[i - 1]))
			continue;
		probe_ns_get(p, sorted[i])->listed = true;
		p->n_listed++;
	}
	p->list_at = began;
}

void probes_free(struct probes *p)
{
	for (size_t i = 0; i < p->n; i++) {
		for (size_t k = 0; k < p->probe[i].n_ns; k++)
			ident_clear(&p->probe[i].ns[k].id);
		for (size_t k = 0; k < p->probe[i].n_use; k++)
			free(p->probe[i].use[k].user);
		free(p->probe[i].use);
		free(p->probe[i].ns);
		free(p->probe[i].nqn);
		free(p->probe[i].error);
		free(p->probe[i].rearm);
	}
	free(p->probe);
	*p = (struct probes){ 0 };
}
