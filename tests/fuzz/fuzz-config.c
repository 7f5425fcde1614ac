/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A configuration of any bytes has faults that name one of its lines, or gives expectations that hold together and that
 * come back the same when they are written down plainly. For libFuzzer:
 *   clang -fsanitize=fuzzer,address,undefined
 * The seeds are tests/fixtures/config.
 */
#include <stdio.h>
#include <stdlib.h>

#include "config.h"

#define FILE_NAME "fuzz"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool ok)
{
	if (!ok)
		abort();
}

static void check_faults(const struct config *c, size_t lines)
{
	must(c->expect.n_subsys == 0 && !c->expect.subsys);
	for (size_t i = 0; i < c->faults.n; i++) {
		const char *text = c->faults.text[i];
		unsigned line = 0;

		must(starts_with(text, FILE_NAME ":"));
		for (const char *p = text; *p; p++)
			must((unsigned char)*p >= ' ' && *p != 0x7f); /* nothing that moves a terminal's cursor */
		must(sscanf(text, FILE_NAME ":%u: ", &line) != 1 || (line >= 1 && line <= lines));
	}
}

static void check_ns(const struct expect_ns *ns)
{
	must(ns->where && starts_with(ns->where, FILE_NAME ":"));
	must(ns->nsid_first <= ns->nsid_last && !ns->nsid_first == !ns->nsid_last && ns->nsid_last != UINT32_MAX);
	if (ns->all)
		must(!ns->nsid_first && ident_empty(&ns->id) && !ns->name);
	else
		must(ns->nsid_first || !ident_empty(&ns->id));
	must(ident_empty(&ns->id) || ns->nsid_first == ns->nsid_last);
}

static void check_policy(const struct policy *p)
{
	const int64_t most = 30 * 86400 * NS_PER_SEC;

	must(p->grace >= 0 && p->grace <= most && p->settle >= SETTLE_AUTO && p->settle <= most);
	must(p->backoff >= 0 && p->backoff <= most && p->retry_after >= 0 && p->retry_after <= most);
	must(p->max_attempts >= 1 && p->max_attempts <= 1000);
}

static void check_subsys(const struct expect_subsys *s)
{
	uint64_t nsids = 0;

	must(strlen(s->nqn) >= 1 && strlen(s->nqn) <= 223 && s->nqn[strlen(s->nqn) - 1] != ' ' && s->label);
	check_policy(&s->policy);
	for (size_t i = 0; i < s->n_ns; i++) {
		check_ns(&s->ns[i]);
		must(!expect_any_nqn(s) || s->ns[i].all);
		nsids += s->ns[i].nsid_first ? s->ns[i].nsid_last - s->ns[i].nsid_first + 1ULL : 0;
	}
	must(nsids <= 65536);
	for (size_t i = 0; i < s->n_ignore; i++) {
		check_ns(&s->ignore[i]);
		must(!s->ignore[i].all);
	}
}

static void write_ns(FILE *f, const char *key, const struct expect_ns *ns)
{
	cleanup_free char *id = ident_format_all(&ns->id);

	fprintf(f, "%s = %s%s", key, ns->all ? "all" : "", id);
	if (ns->nsid_first)
		fprintf(f, " nsid=%u-%u", ns->nsid_first, ns->nsid_last);
	if (ns->name)
		fprintf(f, " name=%s", ns->name);
	fputc('\n', f);
}

/* Caller frees. */
static char *write_expect(const struct expect *e, size_t *len)
{
	char *text = NULL;
	FILE *f = open_memstream(&text, len);

	must(f != NULL);
	for (size_t i = 0; i < e->n_subsys; i++) {
		const struct expect_subsys *s = &e->subsys[i];

		/* no blank: an NQN may begin with a ';' */
		fprintf(f, "[subsystem]\nnqn=%s\n", s->nqn);
		if (s->hostnqn)
			fprintf(f, "hostnqn=%s\n", s->hostnqn);
		fprintf(f, "grace = %lldms\nmax-attempts = %u\n", (long long)(s->policy.grace / NS_PER_MS),
			s->policy.max_attempts);
		for (size_t k = 0; k < s->n_ns; k++)
			write_ns(f, "namespace", &s->ns[k]);
		for (size_t k = 0; k < s->n_ignore; k++)
			write_ns(f, "ignore", &s->ignore[k]);
	}
	fclose(f);
	return text;
}

static void check_round_trip(const struct expect *e)
{
	size_t len, len_again;
	cleanup_free char *text = write_expect(e, &len), *again = NULL;
	struct config c;

	must(config_load_text(&c, FILE_NAME, text, len) == 0);
	must(c.expect.n_subsys == e->n_subsys);
	again = write_expect(&c.expect, &len_again);
	must(streq(text, again));
	config_free(&c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct config c;
	size_t lines = 1;

	for (size_t i = 0; i < size; i++)
		lines += data[i] == '\n';
	if (config_load_text(&c, FILE_NAME, (const char *)data, size) < 0) {
		must(c.faults.n > 0);
		check_faults(&c, lines);
	} else {
		must(c.faults.n == 0);
		for (size_t i = 0; i < c.expect.n_subsys; i++)
			check_subsys(&c.expect.subsys[i]);
		check_round_trip(&c.expect);
	}
	config_free(&c);
	return 0;
}
