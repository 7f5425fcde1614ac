/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "findings.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "log.h"

struct subsys_finding *last_subsys(struct fixture *fx)
{
	return &fx->plan.subsys[fx->plan.n_subsys - 1];
}

struct subsys_finding *subsystem(struct fixture *fx, const char *label, const char *nqn)
{
	struct expect_subsys *e = xcalloc(1, sizeof(*e));

	*e = (struct expect_subsys){ .label = xstrdup(label), .nqn = xstrdup(nqn) };
	policy_init(&e->policy);
	ARRAY_GROW(fx->plan.subsys, fx->plan.n_subsys);
	fx->plan.subsys[fx->plan.n_subsys++] = (struct subsys_finding){
		.expect = e, .nqn = e->nqn, .first = fx->plan.n_finding, .n_ctrl = 2, .n_live = 2,
	};
	return last_subsys(fx);
}

struct expect_ns *line(struct fixture *fx, uint32_t nsid, const char *uuid, const char *name)
{
	struct expect_ns *l = &fx->line[fx->n_line++];

	assert_true(fx->n_line <= ARRAY_SIZE(fx->line));
	*l = (struct expect_ns){ .nsid_first = nsid, .nsid_last = nsid, .name = xstrdup_null(name) };
	if (uuid)
		assert_int_equal(ident_parse(&l->id, IDENT_UUID, uuid), 0);
	return l;
}

struct finding *finding(struct fixture *fx, const struct expect_ns *l, enum ns_state state, enum ns_action action,
			const char *evidence)
{
	struct subsys_finding *sf = last_subsys(fx);
	struct finding *f;

	ARRAY_GROW(fx->plan.finding, fx->plan.n_finding);
	f = &fx->plan.finding[fx->plan.n_finding++];
	*f = (struct finding){
		.expect = sf->expect, .line = l, .nqn = sf->nqn, .state = state, .action = action, .news = true,
		.nsid = l ? l->nsid_first : 0, .evidence = xstrdup_null(evidence),
	};
	sf->n++;
	sf->n_good += ns_state_is_good(state, &sf->expect->policy);
	return f;
}

struct finding *present(struct fixture *fx, const struct expect_ns *l, uint32_t nsid, const char *device)
{
	struct finding *f = finding(fx, l, STATE_PRESENT, ACTION_NONE, NULL);
	struct topo_disk *d = &fx->disk[0];

	while (d->name[0])
		d++;
	assert_true(d < fx->disk + ARRAY_SIZE(fx->disk));
	snprintf(d->name, sizeof(d->name), "%s", device);
	d->id = l ? ident_copy(&l->id) : (struct ident){ 0 };
	f->disk = d;
	f->nsid = nsid;
	f->n_paths = 2;
	f->news = false;
	return f;
}

void rescan(struct fixture *fx, int instance, const char *why)
{
	ARRAY_GROW(fx->plan.act, fx->plan.n_act);
	fx->plan.act[fx->plan.n_act++] = (struct act){ .kind = ACT_RESCAN, .subsys = fx->plan.n_subsys - 1,
						       .instance = instance, .why = xstrdup_null(why) };
}

int setup(void **state)
{
	struct fixture *fx = xcalloc(1, sizeof(*fx));

	log_set_level(LOG_LEVEL_INFO);
	*state = fx;
	return 0;
}

int teardown(void **state)
{
	struct fixture *fx = *state;

	for (size_t i = 0; i < fx->plan.n_subsys; i++) {
		struct expect_subsys *e = (struct expect_subsys *)(uintptr_t)fx->plan.subsys[i].expect;

		free(e->label);
		free(e->nqn);
		free(e);
	}
	for (size_t i = 0; i < fx->plan.n_finding; i++) {
		free(fx->plan.finding[i].evidence);
		free(fx->plan.finding[i].key);
	}
	for (size_t i = 0; i < fx->plan.n_act; i++)
		free(fx->plan.act[i].why);
	for (size_t i = 0; i < fx->n_line; i++)
		expect_ns_clear(&fx->line[i]);
	for (size_t i = 0; i < ARRAY_SIZE(fx->disk); i++)
		ident_clear(&fx->disk[i].id);
	free(fx->plan.subsys);
	free(fx->plan.finding);
	free(fx->plan.act);
	free(fx);
	return 0;
}
