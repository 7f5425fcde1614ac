/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "expect.h"

#include <stdlib.h>

void policy_init(struct policy *p)
{
	*p = (struct policy){
		.action = POLICY_RESCAN,
		.grace = 5 * NS_PER_SEC,
		.settle = SETTLE_AUTO,
		.max_attempts = 3,
		.backoff = 30 * NS_PER_SEC,
		.retry_after = 3600 * NS_PER_SEC,
		.removals = REMOVALS_IDLE,
		.rearm = true,
		.paths = PATHS_ANY,
		.kernel_guard = true,
	};
}

struct expect_subsys *expect_add(struct expect *e, const char *label, const char *nqn)
{
	struct expect_subsys *s;

	ARRAY_GROW(e->subsys, e->n_subsys);
	s = &e->subsys[e->n_subsys++];
	*s = (struct expect_subsys){ .label = xstrdup(label ? label : nqn), .nqn = xstrdup(nqn) };
	policy_init(&s->policy);
	return s;
}

struct expect_ns *expect_add_ns(struct expect_subsys *s)
{
	ARRAY_GROW(s->ns, s->n_ns);
	s->ns[s->n_ns] = (struct expect_ns){ 0 };
	return &s->ns[s->n_ns++];
}

struct expect_ns expect_ns_copy(const struct expect_ns *ns)
{
	struct expect_ns copy = *ns;

	copy.id = ident_copy(&ns->id);
	copy.name = xstrdup_null(ns->name);
	copy.where = xstrdup_null(ns->where);
	return copy;
}

void expect_ns_clear(struct expect_ns *ns)
{
	ident_clear(&ns->id);
	free(ns->name);
	free(ns->where);
	*ns = (struct expect_ns){ 0 };
}

static void subsys_clear(struct expect_subsys *s)
{
	for (size_t i = 0; i < s->n_ns; i++)
		expect_ns_clear(&s->ns[i]);
	for (size_t i = 0; i < s->n_ignore; i++)
		expect_ns_clear(&s->ignore[i]);
	free(s->ns);
	free(s->ignore);
	free(s->label);
	free(s->nqn);
	free(s->hostnqn);
	free(s->where);
}

void expect_remove(struct expect *e, size_t at)
{
	subsys_clear(&e->subsys[at]);
	e->n_subsys--;
	memmove(&e->subsys[at], &e->subsys[at + 1], (e->n_subsys - at) * sizeof(*e->subsys));
}

void expect_free(struct expect *e)
{
	for (size_t i = 0; i < e->n_subsys; i++)
		subsys_clear(&e->subsys[i]);
	free(e->subsys);
	*e = (struct expect){ 0 };
}
