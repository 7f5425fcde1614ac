/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Any text is no identifier, or one that comes back the same from what is printed of it; and it is never found equal to
 * what prints differently. The first byte says as what the text is read. For libFuzzer:
 *   clang -fsanitize=fuzzer,address,undefined
 */
#include <errno.h>
#include <stdlib.h>

#include "ident.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct {
	enum ident_field field;
	const char *key;
} fields[] = {
	{ IDENT_UUID, "uuid=" },
	{ IDENT_NGUID, "nguid=" },
	{ IDENT_EUI64, "eui64=" },
	{ IDENT_WWID, "wwid=" },
};

static void check(bool holds)
{
	if (!holds)
		abort();
}

/* As the configuration reads it: KEY=TEXT. */
static void read_back(struct ident *id, const char *text)
{
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
		if (starts_with(text, fields[i].key)) {
			check(ident_parse(id, fields[i].field, text + strlen(fields[i].key)) == 0);
			check(id->have == fields[i].field);
			return;
		}
	}
	abort();
}

static void check_parsed(const struct ident *id)
{
	char *text = ident_format(id), *all = ident_format_all(id), *again;
	struct ident back = { 0 }, copy = ident_copy(id);

	check(streq(text, all)); /* it has one name */
	for (const char *p = text; *p; p++)
		check(*p > ' ' && *p <= '~');
	read_back(&back, text);
	check(ident_match(id, &back) && ident_match(&back, id) && ident_agree(id, &copy) && !ident_differ(id, &back));
	again = ident_format(&back);
	check(streq(text, again));
	if (id->have != IDENT_WWID) {
		back.uuid[0] ^= 1;
		back.nguid[0] ^= 1;
		back.eui64[0] ^= 1;
		check(!ident_match(id, &back) && ident_differ(id, &back) && !ident_agree(id, &back));
	}
	free(text);
	free(all);
	free(again);
	ident_clear(&back);
	ident_clear(&copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ident id = { 0 };
	char *text;
	int err;

	if (size == 0)
		return 0;
	text = xstrndup((const char *)data + 1, size - 1);
	err = ident_parse(&id, fields[data[0] % ARRAY_SIZE(fields)].field, text);
	if (err) {
		check(err == -EINVAL || err == -ENODATA || err == -EPROTOTYPE);
		check(id.have == 0 && !id.wwid);
	} else {
		check_parsed(&id);
		check(ident_parse(&id, fields[data[0] % ARRAY_SIZE(fields)].field, text) == -EEXIST);
	}
	free(text);
	ident_clear(&id);
	return 0;
}
