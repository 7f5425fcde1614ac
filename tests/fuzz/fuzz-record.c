/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A record of any bytes is none, or one that comes back the same from its own text. For libFuzzer:
 *   clang -fsanitize=fuzzer,address,undefined
 */
#include <stdlib.h>

#include "history.h"

#define BOOT "11111111-2222-3333-4444-555555555555"
#define NOW (36000 * NS_PER_SEC)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_order(const struct rec_subsys *r)
{
	for (size_t i = 0; i < r->n_ns; i++)
		if (rec_ns_find(r, r->ns[i].key) != &r->ns[i] || r->ns[i].since > NOW)
			abort();
	for (size_t i = 0; i < r->n_ctrl; i++)
		if (rec_ctrl_find(r, r->ctrl[i].instance) != &r->ctrl[i] || r->ctrl[i].live_at > NOW)
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rec_subsys r, back;
	char *text, *again;

	if (history_parse((const char *)data, size, BOOT, NOW, &r) != 1) {
		if (r.nqn || r.ns || r.ctrl)
			abort();
		return 0;
	}
	check_order(&r);
	text = history_format(&r, BOOT, NOW);
	if (history_parse(text, strlen(text), BOOT, NOW, &back) != 1)
		abort();
	again = history_format(&back, BOOT, NOW);
	if (!streq(text, again))
		abort();
	free(text);
	free(again);
	rec_subsys_clear(&r);
	rec_subsys_clear(&back);
	return 0;
}
