/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Identifiers: every spelling that people meet, and everything that only looks like one. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "ident.h"

#define UUID "1b4e28ba-2fa1-11d2-883f-0016d3cca427"
#define NGUID "d07f718b1d2344577bc1bb4d4d516c40"
#define EUI64 "002538b9114a9e3f"
/* as Linux makes it for a drive that has none of them: PCI vendor, serial, model, NSID */
#define MADE_UP "nvme.1b36-64656164626565662d31-51454d55204e564d65204374726c-00000001"

static struct ident parsed(enum ident_field field, const char *text)
{
	struct ident id = { 0 };

	assert_int_equal(ident_parse(&id, field, text), 0);
	assert_int_equal(id.have, field);
	return id;
}

/* all that is known of a namespace; NULL where it has none */
static struct ident named(const char *uuid, const char *nguid, const char *eui64)
{
	struct ident id = { 0 };

	if (uuid)
		assert_int_equal(ident_parse(&id, IDENT_UUID, uuid), 0);
	if (nguid)
		assert_int_equal(ident_parse(&id, IDENT_NGUID, nguid), 0);
	if (eui64)
		assert_int_equal(ident_parse(&id, IDENT_EUI64, eui64), 0);
	return id;
}

static void assert_format(const struct ident *id, const char *strongest, const char *all)
{
	char *s = ident_format(id), *a = ident_format_all(id);

	assert_string_equal(s, strongest);
	assert_string_equal(a, all);
	free(s);
	free(a);
}

static void every_spelling_is_the_same_name(void **state)
{
	static const struct {
		enum ident_field field;
		const char *text, *canonical;
	} row[] = {
		{ IDENT_UUID, UUID, "uuid=" UUID },
		{ IDENT_UUID, "1B4E28BA-2FA1-11D2-883F-0016D3CCA427", "uuid=" UUID },
		{ IDENT_UUID, "1b4e28ba2fa111d2883f0016d3cca427", "uuid=" UUID },
		{ IDENT_UUID, "uuid." UUID, "uuid=" UUID },
		{ IDENT_UUID, "UUID." UUID, "uuid=" UUID },
		{ IDENT_UUID, "0x1b4e28ba2fa111d2883f0016d3cca427", "uuid=" UUID },
		{ IDENT_NGUID, NGUID, "nguid=" NGUID },
		{ IDENT_NGUID, "D07F718B1D2344577BC1BB4D4D516C40", "nguid=" NGUID },
		{ IDENT_NGUID, "d07f718b-1d23-4457-7bc1-bb4d4d516c40", "nguid=" NGUID }, /* sysfs nguid */
		{ IDENT_NGUID, "eui." NGUID, "nguid=" NGUID },                           /* sysfs wwid */
		{ IDENT_NGUID, "nguid." NGUID, "nguid=" NGUID },
		{ IDENT_NGUID, "0X" NGUID, "nguid=" NGUID },
		{ IDENT_EUI64, EUI64, "eui64=" EUI64 },
		{ IDENT_EUI64, "00 25 38 b9 11 4a 9e 3f", "eui64=" EUI64 }, /* sysfs eui */
		{ IDENT_EUI64, "00-25-38-b9-11-4a-9e-3f", "eui64=" EUI64 },
		{ IDENT_EUI64, "002538-b9114a9e3f", "eui64=" EUI64 },
		{ IDENT_EUI64, "eui.002538B9114A9E3F", "eui64=" EUI64 },
		{ IDENT_EUI64, "0x" EUI64, "eui64=" EUI64 },
		{ IDENT_WWID, MADE_UP, "wwid=" MADE_UP },
	};

	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		struct ident id = parsed(row[i].field, row[i].text);

		assert_format(&id, row[i].canonical, row[i].canonical);
		ident_clear(&id);
	}
}

static void what_is_no_name_is_refused(void **state)
{
	static const struct {
		enum ident_field field;
		const char *text;
		int err;
	} row[] = {
		{ IDENT_UUID, "", -EINVAL },
		{ IDENT_UUID, "uuid.", -EINVAL },
		{ IDENT_UUID, "0x", -EINVAL },
		{ IDENT_UUID, "1b4e28ba-2fa1-11d2-883f-0016d3cca42", -EINVAL },    /* half a byte lost */
		{ IDENT_UUID, "1b4e28ba-2fa1-11d2-883f-0016d3cca4", -EINVAL },     /* a byte lost */
		{ IDENT_UUID, UUID "00", -EINVAL },                                /* one too many */
		{ IDENT_UUID, "1b4e28ba-2fa1-11d2-883f-0016d3cca4-", -EINVAL },    /* the end cut off */
		{ IDENT_UUID, UUID "-", -EINVAL },
		{ IDENT_UUID, "-" UUID, -EINVAL },
		{ IDENT_UUID, " " UUID, -EINVAL },
		{ IDENT_UUID, "1-b4e28ba2fa111d2883f0016d3cca427", -EINVAL },      /* inside a byte */
		{ IDENT_UUID, "1b4e28bg-2fa1-11d2-883f-0016d3cca427", -EINVAL },
		{ IDENT_UUID, "1b4e28ba_2fa1_11d2_883f_0016d3cca427", -EINVAL },
		{ IDENT_UUID, UUID "\n", -EINVAL },
		{ IDENT_UUID, "eui." NGUID, -EINVAL },                             /* another kind's prefix */
		{ IDENT_UUID, "nguid." NGUID, -EINVAL },
		{ IDENT_UUID, "0xuuid." UUID, -EINVAL },
		{ IDENT_NGUID, "uuid." UUID, -EINVAL },
		{ IDENT_NGUID, EUI64, -EINVAL },
		{ IDENT_NGUID, "eui." EUI64, -EINVAL },
		{ IDENT_EUI64, NGUID, -EINVAL },
		{ IDENT_EUI64, "eui." NGUID, -EINVAL },
		{ IDENT_EUI64, "nguid." EUI64, -EINVAL },
		{ IDENT_EUI64, "25 38 b9 11 4a 9e 3f", -EINVAL },
		{ IDENT_CSI, "00", -EINVAL },                                      /* no text form */
		{ IDENT_UUID, "00000000-0000-0000-0000-000000000000", -ENODATA },
		{ IDENT_NGUID, "0x00000000000000000000000000000000", -ENODATA },
		{ IDENT_EUI64, "00 00 00 00 00 00 00 00", -ENODATA },
		{ IDENT_NGUID, "naa.600a098038314b2f5d5d4f2d4c2d6c41", -EPROTOTYPE },
		{ IDENT_EUI64, "NAA.5000c500a1b2c3d4", -EPROTOTYPE },
		{ IDENT_UUID, "t10.ATA     disk", -EPROTOTYPE },
	};

	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		struct ident id = { 0 };

		if (ident_parse(&id, row[i].field, row[i].text) != row[i].err)
			fail_msg("row %zu, \"%s\"", i, row[i].text);
		assert_int_equal(id.have, 0);
		assert_null(id.wwid);
	}
}

static void a_name_is_given_once(void **state)
{
	struct ident id = named(UUID, NGUID, NULL);

	assert_int_equal(ident_parse(&id, IDENT_UUID, UUID), -EEXIST);
	assert_int_equal(ident_parse(&id, IDENT_UUID, "00000000-0000-0000-0000-000000000001"), -EEXIST);
	assert_int_equal(ident_parse_wwid(&id, "eui." NGUID), -EEXIST); /* the wwid is one of the others */
	assert_int_equal(ident_parse_wwid(&id, "eui." EUI64), 0);
	assert_format(&id, "uuid=" UUID, "uuid=" UUID " nguid=" NGUID " eui64=" EUI64);
	assert_int_equal(ident_parse_wwid(&id, MADE_UP), 0);
	assert_int_equal(ident_parse_wwid(&id, MADE_UP), -EEXIST);
	ident_clear(&id);
	assert_int_equal(id.have, 0);
	assert_null(id.wwid);
}

static void a_wwid_says_which_name_it_is(void **state)
{
	static const struct {
		const char *text, *canonical;
		int err;
	} row[] = {
		{ "uuid." UUID, "uuid=" UUID, 0 },
		{ "eui." NGUID, "nguid=" NGUID, 0 },
		{ "eui." EUI64, "eui64=" EUI64, 0 },
		{ "EUI.002538B9114A9E3F", "eui64=" EUI64, 0 },
		{ "nvme-eui." NGUID, "nguid=" NGUID, 0 }, /* /dev/disk/by-id */
		{ "nvme-uuid." UUID, "uuid=" UUID, 0 },
		{ MADE_UP, "wwid=" MADE_UP, 0 },
		{ "nvme.1B36-6465-5145-00000001", "wwid=nvme.1b36-6465-5145-00000001", 0 },
		{ "nvme.1b36-6465--00000001", "wwid=nvme.1b36-6465--00000001", 0 }, /* a model of blanks */
		{ "nvme.0000---ffffffff", "wwid=nvme.0000---ffffffff", 0 },
		{ "", "", -EINVAL },
		{ UUID, "", -EINVAL }, /* without its prefix it could be a UUID or an NGUID */
		{ "uuid.", "", -EINVAL },
		{ "eui.", "", -EINVAL },
		{ "eui.0025", "", -EINVAL },
		{ "eui.002538b9114a9e3f00", "", -EINVAL },
		{ "uuid." EUI64, "", -EINVAL },
		{ "nvme.", "", -EINVAL },
		{ "nvme.1b36", "", -EINVAL },
		{ "nvme.1b36-64656-5145-00000001", "", -EINVAL },  /* half a byte */
		{ "nvme.1b36-6465-5145-0000001", "", -EINVAL },    /* %08x has eight */
		{ "nvme.1b36-6465-5145-00000001-", "", -EINVAL },
		{ "nvme.1b36-6465-51\x1b[2J-00000001", "", -EINVAL },
		{ "nvme.1b36-646566676869707172737475767778798081828384-51-00000001", "", -EINVAL }, /* 20 bytes */
		{ "nvme-Samsung_SSD_S3XXNX0J", "", -EINVAL },
		{ "naa.600a098038314b2f5d5d4f2d4c2d6c41", "", -EPROTOTYPE },
		{ "t10.ATA", "", -EPROTOTYPE },
		{ "uuid.00000000-0000-0000-0000-000000000000", "", -ENODATA },
		{ "eui.0000000000000000", "", -ENODATA },
	};

	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		struct ident id = { 0 };

		if (ident_parse_wwid(&id, row[i].text) != row[i].err)
			fail_msg("row %zu, \"%s\"", i, row[i].text);
		assert_format(&id, row[i].canonical, row[i].canonical);
		ident_clear(&id);
	}
}

static void every_wanted_name_must_be_seen(void **state)
{
	struct ident uuid = named(UUID, NULL, NULL), both = named(UUID, NGUID, NULL);
	struct ident other = named(UUID, "00000000000000000000000000000001", NULL);
	struct ident none = { 0 };

	assert_true(ident_match(&uuid, &uuid));
	assert_true(ident_match(&uuid, &both)); /* more may be seen than is wanted */
	assert_false(ident_match(&both, &uuid)); /* wanted, but not to be seen */
	assert_false(ident_match(&both, &other));
	assert_false(ident_match(&none, &uuid)); /* nothing wanted fits nothing */
	assert_false(ident_match(&none, &none));
	assert_false(ident_match(&uuid, &none));
}

/* Same bytes, but of another kind: not the same name. */
static void kinds_are_not_mixed(void **state)
{
	struct ident uuid = parsed(IDENT_UUID, NGUID), nguid = parsed(IDENT_NGUID, NGUID);

	assert_false(ident_match(&uuid, &nguid));
	assert_false(ident_agree(&uuid, &nguid));
	assert_false(ident_differ(&uuid, &nguid));
}

static void agreeing_and_differing(void **state)
{
	struct ident uuid = named(UUID, NULL, NULL), nguid = named(NULL, NGUID, NULL);
	struct ident both = named(UUID, NGUID, NULL), none = { 0 };
	struct ident reused = named("00000000-0000-0000-0000-000000000001", NGUID, NULL);

	assert_true(ident_agree(&uuid, &both));
	assert_true(ident_agree(&both, &uuid));
	assert_false(ident_agree(&uuid, &nguid)); /* nothing in common: not known to be the same ... */
	assert_false(ident_differ(&uuid, &nguid)); /* ... nor another */
	assert_false(ident_agree(&none, &none));
	assert_false(ident_differ(&none, &both));
	assert_false(ident_agree(&both, &reused)); /* one name the same does not outweigh another that is not */
	assert_true(ident_differ(&both, &reused));
}

/* The kernel compares it like a name (nvme_ns_ids_equal()); it names nothing by itself. */
static void the_command_set_counts_but_names_nothing(void **state)
{
	struct ident nvm = named(UUID, NULL, NULL), zns = named(UUID, NULL, NULL), unknown = named(UUID, NULL, NULL);
	struct ident bare = { .have = IDENT_CSI };

	nvm.have |= IDENT_CSI;
	zns.have |= IDENT_CSI;
	zns.csi = 2;
	assert_true(ident_differ(&nvm, &zns));
	assert_false(ident_agree(&nvm, &zns));
	assert_true(ident_agree(&nvm, &nvm));
	assert_true(ident_agree(&nvm, &unknown));
	assert_true(ident_match(&unknown, &zns));
	assert_true(ident_empty(&bare));
	assert_false(ident_agree(&bare, &bare));
	assert_false(ident_match(&bare, &bare));
	assert_format(&bare, "", "");
	assert_format(&zns, "uuid=" UUID, "uuid=" UUID);
}

static void made_up_names_are_compared(void **state)
{
	struct ident a = parsed(IDENT_WWID, MADE_UP), b = parsed(IDENT_WWID, "nvme.1b36-6465-5145-00000002");
	struct ident upper =
		parsed(IDENT_WWID, "nvme.1B36-64656164626565662D31-51454D55204E564D65204374726C-00000001");

	assert_true(ident_match(&a, &upper));
	assert_true(ident_agree(&a, &upper));
	assert_false(ident_match(&a, &b));
	assert_true(ident_differ(&a, &b));
	ident_clear(&a);
	ident_clear(&b);
	ident_clear(&upper);
}

static void a_copy_stands_by_itself(void **state)
{
	struct ident id = parsed(IDENT_WWID, MADE_UP), copy = ident_copy(&id), empty = { 0 };

	assert_ptr_not_equal(copy.wwid, id.wwid);
	ident_clear(&id);
	assert_true(ident_empty(&id));
	assert_format(&copy, "wwid=" MADE_UP, "wwid=" MADE_UP);
	ident_clear(&copy);
	copy = ident_copy(&empty);
	assert_format(&copy, "", "");
	ident_clear(&copy);
}

/* What is printed can be read again: generate writes configurations so. */
static void what_is_formatted_can_be_parsed(void **state)
{
	struct ident id = named(UUID, NGUID, EUI64);
	char *all = ident_format_all(&id), *rest = NULL;
	struct ident again = { 0 };

	for (char *word = strtok_r(all, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
		char *value = strchr(word, '=') + 1;
		enum ident_field field = *word == 'u' ? IDENT_UUID : *word == 'n' ? IDENT_NGUID : IDENT_EUI64;

		assert_int_equal(ident_parse(&again, field, value), 0);
	}
	assert_int_equal(again.have, id.have);
	assert_true(ident_match(&id, &again));
	free(all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_spelling_is_the_same_name),
		cmocka_unit_test(what_is_no_name_is_refused),
		cmocka_unit_test(a_name_is_given_once),
		cmocka_unit_test(a_wwid_says_which_name_it_is),
		cmocka_unit_test(every_wanted_name_must_be_seen),
		cmocka_unit_test(kinds_are_not_mixed),
		cmocka_unit_test(agreeing_and_differing),
		cmocka_unit_test(the_command_set_counts_but_names_nothing),
		cmocka_unit_test(made_up_names_are_compared),
		cmocka_unit_test(a_copy_stands_by_itself),
		cmocka_unit_test(what_is_formatted_can_be_parsed),
	};

	return cmocka_run_group_tests_name("ident", tests, NULL, NULL);
}
