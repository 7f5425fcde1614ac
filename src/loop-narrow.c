/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the command line makes of the configuration: a part of it, one namespace instead, other rules for once. */
#include "loop-parts.h"

#include "log.h"

#define WAIT_GRACE (2 * NS_PER_SEC)

/* Limit the configuration to the subsystems named on the command line. */
static int keep_only(struct expect *e, const char *const *only)
{
	for (const char *const *word = only; word && *word; word++) {
		bool known = false;

		for (size_t i = 0; i < e->n_subsys; i++)
			known = known || streq(e->subsys[i].label, *word) || streq(e->subsys[i].nqn, *word);
		if (!known) {
			log_err("%s: no subsystem of that label or NQN in the configuration", *word);
			return EXIT_USAGE;
		}
	}
	if (!only || !*only)
		return 0;
	for (size_t i = e->n_subsys; i-- > 0;) {
		bool keep = false;

		for (const char *const *word = only; *word; word++)
			keep = keep || streq(e->subsys[i].label, *word) || streq(e->subsys[i].nqn, *word);
		if (!keep)
			expect_remove(e, i);
	}
	return 0;
}

/* The rules for a subsystem: its own section's, that of `*`, or the defaults. */
static const struct expect_subsys *section_for(const struct expect *e, const char *nqn)
{
	const struct expect_subsys *any = NULL;

	for (size_t i = 0; i < e->n_subsys; i++) {
		if (streq(e->subsys[i].nqn, nqn))
			return &e->subsys[i];
		if (expect_any_nqn(&e->subsys[i]))
			any = &e->subsys[i];
	}
	return any;
}

/* `wait` for one namespace: nothing else is expected, but the administrator's rules hold. */
static void expect_one(struct config *c, const struct loop_options *o)
{
	const struct expect_subsys *section = section_for(&c->expect, o->nqn);
	struct expect one = { 0 };
	struct expect_subsys *s = expect_add(&one, section && !expect_any_nqn(section) ? section->label : NULL, o->nqn);

	s->policy = section ? section->policy : c->defaults;
	s->policy.grace = WAIT_GRACE;
	s->hostnqn = section ? xstrdup_null(section->hostnqn) : NULL;
	*expect_add_ns(s) = expect_ns_copy(o->ns);
	expect_free(&c->expect);
	c->expect = one;
}

int loop_narrow(struct config *c, const struct loop_options *o)
{
	if (o->nqn)
		expect_one(c, o);
	for (size_t i = 0; i < c->expect.n_subsys; i++) {
		struct policy *policy = &c->expect.subsys[i].policy;

		if (o->removals_given)
			policy->removals = o->removals;
		if (o->timeout && o->grace >= 0)
			policy->grace = o->grace;
	}
	return keep_only(&c->expect, o->only);
}

bool loop_can_configure(const void *arg, const char *nqn)
{
	const char *const *only = arg;
	cleanup_free char *copy = NULL;
	const char *why;
	bool named = !only || !*only;

	for (const char *const *word = only; word && *word; word++)
		named = named || streq(*word, nqn);
	if (!named)
		return false;
	if (config_parse_nqn(nqn, &copy, &why) == 0 && streq(copy, nqn) && !strpbrk(nqn, " \t*"))
		return true;
	log_warning("a subsystem is left out, its NQN cannot be written in a configuration");
	return false;
}
