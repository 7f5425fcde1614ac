/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Sections -> struct expect: those of one NQN and host NQN become one, whatever files they stand in. No I/O. Everything
 * is found by sorting: a configuration may hold tens of thousands of lines.
 */
#include "config-parts.h"

#include <stdlib.h>

static int compare(size_t a, size_t b)
{
	return (a > b) - (a < b);
}

/* ---- settings ---- */

static void merge_settings(struct config_load_state *l, struct config_setting *into, const struct config_setting *from)
{
	for (size_t k = 0; k < CONFIG_N_KEYS; k++) {
		if (!from[k].given)
			continue;
		if (!into[k].given) {
			into[k] = from[k];
		} else if (into[k].value != from[k].value) {
			cleanup_free char *first = config_place_text(l, into[k].at);

			config_fault(l, from[k].at, "%s is set to something else at %s: one value for both is needed",
				     config_key_name((enum config_key)k), first);
		}
	}
}

static void apply_settings(const struct config_setting *set, struct policy *p)
{
	for (size_t k = 0; k < CONFIG_N_KEYS; k++)
		if (set[k].given)
			config_key_apply((enum config_key)k, set[k].value, p);
}

/* ---- a namespace twice ---- */

static void fault_twice(struct config_load_state *l, const struct config_ns *later, const struct config_ns *first,
			const char *what)
{
	cleanup_free char *place = config_place_text(l, first->at);

	config_fault(l, later->at, "the namespace is expected at %s already (%s)", place, what);
}

/* One of the names of an expected namespace, as bytes. */
struct name_ref {
	const void *key;
	size_t len;
	size_t at; /* which line */
};

static int by_key(const void *a, const void *b)
{
	const struct name_ref *x = a, *y = b;
	int order = memcmp(x->key, y->key, x->len < y->len ? x->len : y->len);

	if (!order)
		order = compare(x->len, y->len);
	return order ? order : compare(x->at, y->at);
}

static bool same_key(const struct name_ref *a, const struct name_ref *b)
{
	return a->len == b->len && memcmp(a->key, b->key, a->len) == 0;
}

static struct name_ref name_of(const struct ident *id, enum ident_field field, size_t at)
{
	switch (field) {
	case IDENT_UUID:
		return (struct name_ref){ id->uuid, sizeof(id->uuid), at };
	case IDENT_NGUID:
		return (struct name_ref){ id->nguid, sizeof(id->nguid), at };
	case IDENT_EUI64:
		return (struct name_ref){ id->eui64, sizeof(id->eui64), at };
	default:
		return (struct name_ref){ id->wwid, strlen(id->wwid), at };
	}
}

/* Lines that share one name are one namespace, whatever else they say. seen: lines that have their fault already. */
static void find_same_name(struct config_load_state *l, const struct config_ns *ns, size_t n, enum ident_field field,
			   const char *what, bool *seen)
{
	cleanup_free struct name_ref *ref = xcalloc(n, sizeof(*ref));
	size_t count = 0, first = 0;

	for (size_t i = 0; i < n; i++)
		if (ns[i].ns.id.have & field)
			ref[count++] = name_of(&ns[i].ns.id, field, i);
	qsort(ref, count, sizeof(*ref), by_key);
	for (size_t i = 1; i < count; i++) {
		if (!same_key(&ref[i], &ref[first])) {
			first = i;
		} else if (!seen[ref[i].at]) {
			fault_twice(l, &ns[ref[i].at], &ns[ref[first].at], what);
			seen[ref[i].at] = true;
		}
	}
}

struct range_ref {
	uint32_t first, last;
	size_t at;
};

static int by_first(const void *a, const void *b)
{
	const struct range_ref *x = a, *y = b;

	if (x->first != y->first)
		return x->first < y->first ? -1 : 1;
	return compare(x->at, y->at);
}

/*
 * Overlapping ranges of NSIDs that have no identifier. Where there is one, another line may well name the same NSID:
 * private namespaces of two controllers share it.
 */
static void find_same_nsid(struct config_load_state *l, const struct config_ns *ns, size_t n)
{
	cleanup_free struct range_ref *ref = xcalloc(n, sizeof(*ref));
	size_t count = 0, longest = 0;

	for (size_t i = 0; i < n; i++)
		if (ns[i].ns.nsid_first && ident_empty(&ns[i].ns.id))
			ref[count++] = (struct range_ref){ ns[i].ns.nsid_first, ns[i].ns.nsid_last, i };
	qsort(ref, count, sizeof(*ref), by_first);
	for (size_t i = 1; i < count; i++) {
		if (ref[i].first <= ref[longest].last) {
			size_t a = ref[longest].at, b = ref[i].at;
			cleanup_free char *what = xasprintf("nsid=%u", ref[i].first);

			fault_twice(l, &ns[a > b ? a : b], &ns[a > b ? b : a], what);
		}
		if (ref[i].last > ref[longest].last)
			longest = i;
	}
}

static void find_same_all(struct config_load_state *l, const struct config_ns *ns, size_t n)
{
	const struct config_ns *first = NULL;

	for (size_t i = 0; i < n; i++) {
		if (!ns[i].ns.all)
			continue;
		if (first)
			fault_twice(l, &ns[i], first, "all");
		else
			first = &ns[i];
	}
}

/* The planner looks at every NSID of a range, so that ranges may not add up to a denial of service. */
static void bound_nsids(struct config_load_state *l, const struct config_ns *ns, size_t n)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < n; i++) {
		if (ns[i].ns.nsid_first)
			sum += ns[i].ns.nsid_last - ns[i].ns.nsid_first + 1ULL;
		if (sum > CONFIG_MAX_NSIDS) {
			config_fault(l, ns[i].at,
				     "more than %u NSIDs in one subsystem: `all` means whatever the controllers list",
				     CONFIG_MAX_NSIDS);
			return;
		}
	}
}

static void check_namespaces(struct config_load_state *l, const struct config_ns *ns, size_t n)
{
	cleanup_free bool *seen = xcalloc(n, sizeof(*seen));

	find_same_name(l, ns, n, IDENT_UUID, "uuid", seen);
	find_same_name(l, ns, n, IDENT_NGUID, "nguid", seen);
	find_same_name(l, ns, n, IDENT_EUI64, "eui64", seen);
	find_same_name(l, ns, n, IDENT_WWID, "wwid", seen);
	find_same_nsid(l, ns, n);
	find_same_all(l, ns, n);
	bound_nsids(l, ns, n);
}

/* ---- subsystems ---- */

/* Sections of one NQN and host NQN: `n` of them, whose positions stand in `member` in the order of the files. */
struct group {
	const size_t *member;
	size_t n;
};

struct section_ref {
	const struct config_section *s;
	size_t at;
};

static int compare_text(const char *a, const char *b)
{
	if (!a || !b)
		return (a != NULL) - (b != NULL);
	return strcmp(a, b);
}

static int by_nqn(const void *a, const void *b)
{
	const struct section_ref *x = a, *y = b;
	int order = strcmp(x->s->nqn.text, y->s->nqn.text);

	if (!order)
		order = compare_text(x->s->hostnqn.text, y->s->hostnqn.text);
	return order ? order : compare(x->at, y->at);
}

static bool same_subsys(const struct config_section *a, const struct config_section *b)
{
	return streq(a->nqn.text, b->nqn.text) && str_same(a->hostnqn.text, b->hostnqn.text);
}

static int by_label(const void *a, const void *b)
{
	const struct section_ref *x = a, *y = b;
	int order = strcmp(x->s->label, y->s->label);

	return order ? order : compare(x->at, y->at);
}

static int by_first_member(const void *a, const void *b)
{
	const struct group *x = a, *y = b;

	return compare(x->member[0], y->member[0]);
}

/* A label is what reports show and what the command line takes: it cannot mean two things. */
static void check_labels(struct config_load_state *l, const struct section_ref *all, size_t n)
{
	cleanup_free struct section_ref *ref = xcalloc(n, sizeof(*ref));
	size_t count = 0, first = 0;

	for (size_t i = 0; i < n; i++)
		if (all[i].s->label)
			ref[count++] = all[i];
	qsort(ref, count, sizeof(*ref), by_label);
	for (size_t i = 1; i < count; i++) {
		if (!streq(ref[i].s->label, ref[first].s->label)) {
			first = i;
		} else if (!same_subsys(ref[i].s, ref[first].s)) {
			cleanup_free char *place = config_place_text(l, ref[first].s->at);

			config_fault(l, ref[i].s->at, "the label %s stands for another %s at %s", ref[i].s->label,
				     streq(ref[i].s->nqn.text, ref[first].s->nqn.text) ? "host NQN" : "NQN", place);
		}
	}
}

static struct config_ns *gather(const struct config_section *s, const struct group *g, bool ignore, size_t *n)
{
	struct config_ns *list;
	size_t total = 0;

	for (size_t i = 0; i < g->n; i++)
		total += ignore ? s[g->member[i]].n_ignore : s[g->member[i]].n_ns;
	list = xcalloc(total, sizeof(*list));
	*n = 0;
	for (size_t i = 0; i < g->n; i++) {
		const struct config_section *from = &s[g->member[i]];
		size_t count = ignore ? from->n_ignore : from->n_ns;

		if (count)
			memcpy(list + *n, ignore ? from->ignore : from->ns, count * sizeof(*list));
		*n += count;
	}
	return list;
}

/* Takes ownership of what the lines hold. */
static struct expect_ns *take_lines(const struct config_ns *from, size_t n)
{
	struct expect_ns *list = NULL;

	for (size_t i = 0; i < n; i++) {
		ARRAY_GROW(list, i);
		list[i] = from[i].ns;
	}
	return list;
}

static void disown(struct config_section *s, const struct group *g)
{
	for (size_t i = 0; i < g->n; i++)
		s[g->member[i]].n_ns = s[g->member[i]].n_ignore = 0;
}

static const char *group_label(const struct config_section *s, const struct group *g)
{
	for (size_t i = 0; i < g->n; i++)
		if (s[g->member[i]].label)
			return s[g->member[i]].label;
	return NULL;
}

/* What `nqn = *` may expect: single namespaces of subsystems that are not named would be looked for in each of them. */
static void check_any(struct config_load_state *l, const struct group *g, const struct config_ns *ns, size_t n)
{
	const struct config_section *first = &l->section[g->member[0]];
	bool fault = false;

	for (size_t i = 0; i < n; i++)
		if (!ns[i].ns.all)
			config_fault(l, ns[i].at, "with nqn = * there can only be namespace = all");
	for (size_t i = 0; i < g->n; i++)
		fault = fault || l->section[g->member[i]].ns_fault;
	if (n == 0 && !fault)
		config_fault(l, first->nqn.at, "nqn = * needs namespace = all");
}

static void merge_group(struct config_load_state *l, const struct group *g, const struct config_setting *defaults)
{
	struct config_section *first = &l->section[g->member[0]];
	const char *label = group_label(l->section, g);
	struct config_setting set[CONFIG_N_KEYS] = { 0 };
	size_t n_ns, n_ignore;
	cleanup_free struct config_ns *ns = gather(l->section, g, false, &n_ns);
	cleanup_free struct config_ns *ignore = gather(l->section, g, true, &n_ignore);
	cleanup_free char *via = NULL;
	struct expect_subsys *e;

	if (!label && first->hostnqn.text) /* else the NQN, which need not be unique here */
		label = via = xasprintf("%s via %s", first->nqn.text, first->hostnqn.text);
	for (size_t i = 0; i < g->n; i++)
		merge_settings(l, set, l->section[g->member[i]].set);
	if (streq(first->nqn.text, "*"))
		check_any(l, g, ns, n_ns);
	check_namespaces(l, ns, n_ns);

	e = expect_add(&l->config->expect, label, first->nqn.text);
	e->hostnqn = xstrdup_null(first->hostnqn.text);
	e->where = config_place_text(l, first->at);
	apply_settings(defaults, &e->policy);
	apply_settings(set, &e->policy);
	e->ns = take_lines(ns, n_ns);
	e->n_ns = n_ns;
	e->ignore = take_lines(ignore, n_ignore);
	e->n_ignore = n_ignore;
	disown(l->section, g);
}

/* Those that say which subsystem they are about; the others have their fault already. */
static size_t subsystem_sections(const struct config_load_state *l, struct section_ref *ref)
{
	size_t n = 0;

	for (size_t i = 0; i < l->n_section; i++)
		if (l->section[i].kind == CONFIG_SUBSYSTEM && l->section[i].nqn.text)
			ref[n++] = (struct section_ref){ &l->section[i], i };
	return n;
}

void config_merge(struct config_load_state *l)
{
	cleanup_free struct section_ref *ref = xcalloc(l->n_section, sizeof(*ref));
	cleanup_free size_t *member = xcalloc(l->n_section, sizeof(*member));
	cleanup_free struct group *group = xcalloc(l->n_section, sizeof(*group));
	struct config_setting defaults[CONFIG_N_KEYS] = { 0 };
	size_t n = subsystem_sections(l, ref), n_group = 0;

	for (size_t i = 0; i < l->n_section; i++)
		if (l->section[i].kind == CONFIG_DEFAULTS)
			merge_settings(l, defaults, l->section[i].set);
	policy_init(&l->config->defaults);
	apply_settings(defaults, &l->config->defaults);
	check_labels(l, ref, n);
	qsort(ref, n, sizeof(*ref), by_nqn);
	for (size_t i = 0; i < n; i++) {
		member[i] = ref[i].at;
		if (i == 0 || !same_subsys(ref[i].s, ref[i - 1].s))
			group[n_group++] = (struct group){ .member = &member[i] };
		group[n_group - 1].n++;
	}
	qsort(group, n_group, sizeof(*group), by_first_member);
	for (size_t i = 0; i < n_group; i++)
		merge_group(l, &group[i], defaults);
}
