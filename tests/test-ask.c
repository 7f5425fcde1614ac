/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What controllers are asked, and what is made of their answers: nvme-nsheal-ask itself, started by ask.c. */
#include <errno.h>

#include "asking.h"

/* --- the list ----------------------------------------------------------------------------------------------------- */

static void a_list_costs_one_command(void **state)
{
	struct asking *t = *state;
	struct controller *c = controller(t->f, 0, NQN);
	const struct probe *p;

	map(c, 1);
	map(c, 7);
	p = ask_it(t, ASK_LIST);
	assert_listed(p, (const uint32_t[]){ 1, 7 }, 2);
	assert_int_equal(p->list_at, t->now);
	assert_int_equal(p->walk_at, 0);
	assert_true(p->latency > 0 && p->latency < LIMIT);
	assert_int_equal(probe_ns_find(p, 7)->ident_at, 0);
	assert_string_equal(asked(c), "02h:0");
}

static void a_controller_without_namespaces(void **state)
{
	struct asking *t = *state;
	const struct probe *p;

	controller(t->f, 0, NQN);
	p = ask_it(t, ASK_LIST);
	assert_listed(p, NULL, 0);
	assert_int_equal(p->list_at, t->now);
}

static void nsids_use_all_32_bits(void **state)
{
	struct asking *t = *state;
	struct controller *c = controller(t->f, 0, NQN);

	map(c, 0x80000000);
	map(c, 0xfffffffe);
	assert_listed(ask_it(t, ASK_LIST), (const uint32_t[]){ 0x80000000, 0xfffffffe }, 2);
}

static void what_is_not_listed_any_more(void **state)
{
	struct asking *t = *state;
	struct controller *c = controller(t->f, 0, NQN);

	map_as(c, 1, UUID1, NGUID1);
	map_as(c, 3, UUID2, NGUID2);
	ask_it(t, ASK_IDENTIFY_ALL);
	assert_listed(probe(t, 0), (const uint32_t[]){ 1, 3 }, 2);
	unmap(c, 3);
	t->now += NS_PER_SEC;
	assert_listed(ask_it(t, ASK_LIST), (const uint32_t[]){ 1 }, 1);
	assert_int_equal(probe(t, 0)->list_at, t->now);
	assert_int_equal(probe(t, 0)->walk_at, t->now - NS_PER_SEC);
}

/* floor(n / 1024) + 1 commands, each after the last NSID of the one before. */
static void more_than_one_page(void **state)
{
	static const struct {
		uint32_t n;
		const char *asked;
	} rows[] = { { 1023, "02h:0" }, { 1024, "02h:0 02h:2048" }, { 2500, "02h:0 02h:2048 02h:4096" } };
	struct asking *t = *state;
	struct controller *c = controller(t->f, 0, NQN);
	uint32_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct probe *p;

		while (n < rows[i].n)
			map(c, 2 * ++n);
		p = ask_it(t, ASK_LIST);
		assert_int_equal(p->status, PROBE_IDLE);
		assert_int_equal(p->n_listed, rows[i].n);
		assert_true(probe_ns_find(p, 2 * rows[i].n)->listed);
		assert_string_equal(asked(c), rows[i].asked);
	}
}

static void a_list_that_is_not_sorted(void **state)
{
	struct asking *t = *state;
	struct controller *c = controller(t->f, 0, NQN);

	map_as(c, 9, UUID1, NGUID1);
	map_as(c, 4, UUID2, NGUID2);
	map(c, 9);
	assert_listed(ask_it(t, ASK_LIST), (const uint32_t[]){ 4, 9 }, 2);
	asked(c);
	ask_it(t, ASK_IDENTIFY_ALL);
	assert_string_equal(asked(c), "02h:0 01h:0 03h:4 03h:9");
	assert_identity(probe(t, 0), 9, "uuid=" UUID1 " nguid=" NGUID1);
}

static void a_page_that_gets_no_further_is_not_asked_for_ever(void **state)
{
	struct asking *t = *state;
	struct controller *c = controller(t->f, 0, NQN);
	uint32_t page[1024];

	for (uint32_t i = 0; i < ARRAY_SIZE(page); i++)
		page[i] = i + 1;
	raw_list(c, page);
	assert_failed(ask_it(t, ASK_LIST), PROBE_FAILED, "Protocol error");
	assert_string_equal(asked(c), "02h:0 02h:1024");
	assert_int_equal(probe(t, 0)->list_at, 0);
}

/* FFFFFFFFh addresses all namespaces, and nothing can come after FFFFFFFEh. */
static void the_end_of_the_numbers(void **state)
{
	struct asking *t = *state;
	struct controller *c = controller(t->f, 0, NQN);
	uint32_t page[1024];

	for (uint32_t i = 0; i < ARRAY_SIZE(page); i++)
		page[i] = UINT32_MAX - 1023 + i;
	raw_list(c, page);
	assert_int_equal(ask_it(t, ASK_LIST)->n_listed, 1023);
	assert_null(probe_ns_find(probe(t, 0), UINT32_MAX));
	assert_string_equal(asked(c), "02h:0");
}

static void a_list_that_fails_is_no_empty_list(void **state)
{
	struct asking *t = *state;
	struct controller *c = controller(t->f, 0, NQN);

	map(c, 1);
	fails(c, CNS_LIST, 0, INTERNAL_ERROR);
	assert_failed(ask_it(t, ASK_LIST), PROBE_FAILED, "failed: Internal Error");
	assert_int_equal(probe(t, 0)->list_at, 0);
	assert_string_equal(asked(c), "02h:0");
	fails(c, CNS_LIST, 0, 0);
	assert_listed(ask_it(t, ASK_LIST), (const uint32_t[]){ 1 }, 1);
	assert_null(probe(t, 0)->error);
}

static void the_second_page_fails(void **state)
{
	struct asking *t = *state;
	struct controller *c = controller(t->f, 0, NQN);

	for (uint32_t n = 1; n <= 1500; n++)
		map(c, n);
	fails(c, CNS_LIST, 1024, INVALID_FIELD);
	assert_failed(ask_it(t, ASK_LIST), PROBE_FAILED, "failed: Invalid Field");
	assert_int_equal(probe(t, 0)->n_listed, 0);
	assert_string_equal(asked(c), "02h:0 02h:1024");
}

static void the_ioctl_itself_fails(void **state)
{
	struct asking *t = *state;
	struct controller *c = controller(t->f, 0, NQN);

	fails(c, CNS_LIST, 0, -EACCES);
	assert_failed(ask_it(t, ASK_LIST), PROBE_FAILED, "failed: Permission denied");
}

/* Before NVMe 1.1 there is no list: NCAP tells which are there. */
static void without_a_list_every_nsid_is_asked(void **state)
{
	struct asking *t = *state;
	struct controller *c = controller(t->f, 0, NQN);

	version(c, NVME_1_0, 4);
	fails(c, CNS_LIST, 0, INVALID_FIELD);
	map(c, 2);
	map(c, 3)->inactive = true;
	map(c, 4);
	assert_listed(ask_it(t, ASK_LIST), (const uint32_t[]){ 2, 4 }, 2);
	assert_string_equal(asked(c), "02h:0 01h:0 00h:1 00h:2 00h:3 00h:4");
	ask_it(t, ASK_LIST); /* a refusal is remembered */
	assert_string_equal(asked(c), "00h:1 00h:2 00h:3 00h:4");
}

static void without_a_list_one_failure_is_no_answer(void **state)
{
	struct asking *t = *state;
	struct controller *c = controller(t->f, 0, NQN);

	version(c, NVME_1_0, 3);
	fails(c, CNS_LIST, 0, INVALID_FIELD);
	fails(c, CNS_NS, 1, INVALID_NAMESPACE); /* this one means: not there */
	fails(c, CNS_NS, 3, INTERNAL_ERROR);
	map(c, 2);
	assert_failed(ask_it(t, ASK_LIST), PROBE_FAILED, "failed: Internal Error");
	assert_int_equal(probe(t, 0)->list_at, 0);
}

static void without_a_list_nobody_walks_four_billion(void **state)
{
	struct asking *t = *state;
	struct controller *c = controller(t->f, 0, NQN);

	version(c, NVME_1_0, 0xffffffff);
	fails(c, CNS_LIST, 0, INVALID_FIELD);
	assert_failed(ask_it(t, ASK_LIST), PROBE_FAILED, "failed: Argument list too long");
	assert_string_equal(asked(c), "02h:0 01h:0");
}

/* --- identities --------------------------------------------------------------------------------------------------- */

static void capabilities_are_read_once(void **state)
{
	struct asking *t = *state;
	struct controller *c = controller(t->f, 0, NQN);

	map_as(c, 1, UUID1, NGUID1);
	map_as(c, 2, UUID2, NGUID2);
	identify_it(t, 1);
	assert_identity(probe(t, 0), 1, "uuid=" UUID1 " nguid=" NGUID1);
	assert_int_equal(probe_ns_find(probe(t, 0), 1)->ident_at, t->now);
	assert_int_equal(probe(t, 0)->list_at, 0);
	identify_it(t, 2);
	assert_string_equal(asked(c), "01h:0 03h:1 03h:2");
}

static void a_walk_identifies_all(void **state)
{
	struct asking *t = *state;
	struct controller *c = controller(t->f, 0, NQN);
	const struct probe *p;

	map_as(c, 1, UUID1, NGUID1);
	map_as(c, 2, UUID2, NGUID2);
	p = ask_it(t, ASK_IDENTIFY_ALL);
	assert_listed(p, (const uint32_t[]){ 1, 2 }, 2);
	assert_identity(p, 1, "uuid=" UUID1 " nguid=" NGUID1);
	assert_identity(p, 2, "uuid=" UUID2 " nguid=" NGUID2);
	assert_int_equal(p->walk_at, t->now);
	assert_int_equal(p->walk_done, t->now);
	assert_int_equal(p->list_at, t->now);
}

static void the_command_set_belongs_to_the_identity(void **state)
{
	struct asking *t = *state;
	struct controller *c = controller(t->f, 0, NQN);
	struct fake_ns *ns = map_as(c, 1, UUID1, NGUID1);
	const struct probe_ns *known;

	ns->descs.have |= IDENT_CSI;
	ns->descs.csi = 2;
	known = probe_ns_find(identify_it(t, 1), 1);
	assert_non_null(known);
	assert_int_equal(known->id.have, IDENT_UUID | IDENT_NGUID | IDENT_CSI);
	assert_int_equal(known->id.csi, 2);
}

static void what_the_descriptors_lack(void **state)
{
	struct asking *t = *state;
	struct controller *c = controller(t->f, 0, NQN);
	struct fake_ns *ns = map_as(c, 1, UUID1, NULL);

	assert_int_equal(ident_parse(&ns->ns, IDENT_NGUID, NGUID1), 0);
	assert_int_equal(ident_parse(&ns->ns, IDENT_EUI64, EUI1), 0);
	identify_it(t, 1);
	assert_identity(probe(t, 0), 1, "uuid=" UUID1 " nguid=" NGUID1 " eui64=" EUI1);
	assert_string_equal(asked(c), "01h:0 03h:1 00h:1");
}

static void another_command_set_has_no_cns_00h(void **state)
{
	struct asking *t = *state;
	struct controller *c = controller(t->f, 0, NQN);

	struct fake_ns *ns = map_as(c, 1, UUID1, NULL);

	fails(c, CNS_NS, 1, INVALID_FIELD);
	identify_it(t, 1);
	assert_identity(probe(t, 0), 1, "uuid=" UUID1);
	ns->descs.have |= IDENT_CSI;
	ns->descs.csi = 1; /* key-value: not even asked */
	asked(c);
	identify_it(t, 1);
	assert_identity(probe(t, 0), 1, "uuid=" UUID1);
	assert_string_equal(asked(c), "03h:1");
}

/* A name might be left out that is the one in the configuration. */
static void half_an_identity_is_none(void **state)
{
	struct asking *t = *state;
	struct controller *c = controller(t->f, 0, NQN);
	const struct probe_ns *ns;

	map_as(c, 1, UUID1, NULL);
	fails(c, CNS_NS, 1, INTERNAL_ERROR);
	ns = probe_ns_find(identify_it(t, 1), 1);
	assert_int_equal(ns->error, INTERNAL_ERROR);
	assert_true(ident_empty(&ns->id));
}

static void no_identifiers_at_all_is_a_true_answer(void **state)
{
	struct asking *t = *state;

	map(controller(t->f, 0, NQN), 1);
	identify_it(t, 1);
	assert_identity(probe(t, 0), 1, "");
}

static void before_1_3_there_are_no_descriptors(void **state)
{
	struct asking *t = *state;
	struct controller *c = controller(t->f, 0, NQN);
	struct fake_ns *ns = map_as(c, 1, UUID1, NGUID1);

	version(c, NVME_1_2, 1);
	assert_int_equal(ident_parse(&ns->ns, IDENT_EUI64, EUI1), 0);
	identify_it(t, 1);
	assert_identity(probe(t, 0), 1, "eui64=" EUI1);
	assert_string_equal(asked(c), "01h:0 00h:1");
}

/* Each refusal grows the drive's error log. */
static void refused_descriptors_are_not_asked_again(void **state)
{
	struct asking *t = *state;
	struct controller *c = controller(t->f, 0, NQN);

	for (uint32_t nsid = 1; nsid <= 3; nsid++) {
		struct fake_ns *ns = map(c, nsid);

		assert_int_equal(ident_parse(&ns->ns, IDENT_EUI64, EUI1), 0);
	}
	fails(c, CNS_DESCS, 0, INVALID_FIELD);
	ask_it(t, ASK_IDENTIFY_ALL);
	identify_it(t, 3);
	assert_identity(probe(t, 0), 3, "eui64=" EUI1);
	assert_string_equal(asked(c), "02h:0 01h:0 03h:1 00h:1 00h:2 00h:3 00h:3");
}

/* Some answer so for a namespace that has gone; the others are identified as before. */
static void invalid_field_may_mean_that_it_has_gone(void **state)
{
	struct asking *t = *state;
	struct controller *c = controller(t->f, 0, NQN);
	const struct probe *p;

	map_as(c, 1, UUID1, NGUID1)->inactive = true;
	map_as(c, 2, UUID2, NGUID2);
	fails(c, CNS_DESCS, 1, INVALID_FIELD);
	p = ask_it(t, ASK_IDENTIFY_ALL);
	assert_int_equal(p->status, PROBE_IDLE);
	assert_int_equal(probe_ns_find(p, 1)->error & 0x7ff, INVALID_NAMESPACE & 0x7ff);
	assert_identity(p, 2, "uuid=" UUID2 " nguid=" NGUID2);
}

static void an_inactive_one_is_not_one_without_a_name(void **state)
{
	struct asking *t = *state;
	struct controller *c = controller(t->f, 0, NQN);
	const struct probe_ns *ns;

	version(c, NVME_1_2, 8);
	map(c, 5)->inactive = true;
	ns = probe_ns_find(identify_it(t, 5), 5);
	assert_int_not_equal(ns->error, 0);
	assert_true(ident_empty(&ns->id));
}

static void one_identify_fails(void **state)
{
	struct asking *t = *state;
	struct controller *c = controller(t->f, 0, NQN);
	const struct probe *p;

	map_as(c, 1, UUID1, NGUID1);
	map_as(c, 2, NULL, NGUID2);
	map_as(c, 3, UUID2, NGUID2);
	fails(c, CNS_DESCS, 1, INTERNAL_ERROR);
	fails(c, CNS_DESCS, 2, -EINTR);
	p = ask_it(t, ASK_IDENTIFY_ALL);
	assert_listed(p, (const uint32_t[]){ 1, 2, 3 }, 3);
	assert_int_equal(probe_ns_find(p, 1)->error, INTERNAL_ERROR);
	assert_int_equal(probe_ns_find(p, 1)->ident_at, t->now);
	assert_int_equal(probe_ns_find(p, 2)->error, -EINTR);
	assert_identity(p, 3, "uuid=" UUID2 " nguid=" NGUID2);
	fails(c, 0, 0, 0);
	identify_it(t, 1);
	assert_identity(p, 1, "uuid=" UUID1 " nguid=" NGUID1);
}

static void an_identity_that_fails_later_is_forgotten(void **state)
{
	struct asking *t = *state;
	struct controller *c = controller(t->f, 0, NQN);
	const struct probe_ns *ns;

	map_as(c, 1, UUID1, NGUID1);
	identify_it(t, 1);
	fails(c, CNS_DESCS, 1, INTERNAL_ERROR);
	ns = probe_ns_find(identify_it(t, 1), 1);
	assert_int_equal(ns->error, INTERNAL_ERROR);
	assert_true(ident_empty(&ns->id));
}

static void refused_capabilities_are_not_asked_for_each_namespace(void **state)
{
	struct asking *t = *state;
	struct controller *c = controller(t->f, 0, NQN);

	map_as(c, 1, UUID1, NGUID1);
	map_as(c, 2, UUID2, NGUID2);
	fails(c, CNS_CTRL, 0, INTERNAL_ERROR);
	ask_it(t, ASK_IDENTIFY_ALL);
	assert_int_equal(probe_ns_find(probe(t, 0), 2)->error, INTERNAL_ERROR);
	assert_string_equal(asked(c), "02h:0 01h:0");
}

/* Types and lengths from the base specification, Namespace Identification Descriptor. */
static void descriptors_of_every_kind(void **state)
{
	static const struct {
		const char *what, *all, *asked;
		uint8_t bytes[64];
	} rows[] = {
		{ "an unknown type is skipped", "eui64=0101010101010101", "03h:1",
		  { 9, 3, 0, 0, 7, 7, 7, 1, 8, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1 } },
		{ "so is type 0", "eui64=0101010101010101", "03h:1",
		  { 0, 1, 0, 0, 7, 1, 8, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1 } },
		{ "zero is none", "nguid=02020202020202020202020202020202", "03h:1",
		  { 1, 8, [12] = 2, 16, 0, 0, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2 } },
		{ "a length of one puts the next at an odd place", "eui64=0101010101010101", "03h:1",
		  { 4, 1, 0, 0, 2, 1, 8, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1 } },
		{ "length 0 is the end", "", "03h:1 00h:1", { 3, 0, 0, 0, 1, 8, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1 } },
		{ "a wrong length is the end, as for the kernel", "eui64=0101010101010101", "03h:1",
		  { 1, 8, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 3, 4, 0, 0, 5, 5, 5, 5, 2, 16, 0, 0, 2, 2, 2, 2 } },
	};
	struct asking *t = *state;
	struct controller *c = controller(t->f, 0, NQN);

	map(c, 1);
	identify_it(t, 1);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		raw_descs(c, rows[i].bytes, sizeof(rows[i].bytes));
		asked(c);
		identify_it(t, 1);
		print_message("%s\n", rows[i].what);
		assert_identity(probe(t, 0), 1, rows[i].all);
		assert_string_equal(asked(c), rows[i].asked);
	}
}

static void descriptors_that_run_over_the_page(void **state)
{
	struct asking *t = *state;
	struct controller *c = controller(t->f, 0, NQN);
	uint8_t bytes[4096];

	for (size_t i = 0; i < sizeof(bytes); i += 204) /* the last one begins at 4080 and would end at 4284 */
		memcpy(bytes + i, (const uint8_t[]){ 9, 200, 0, 0 }, 4);
	memset(bytes + 4084, 0xee, 12);
	map(c, 1);
	raw_descs(c, bytes, sizeof(bytes));
	identify_it(t, 1);
	assert_identity(probe(t, 0), 1, "");
}

static void thousands_are_asked_for_in_portions(void **state)
{
	static uint32_t nsid[7000];
	struct asking *t = *state;
	struct controller *c = controller(t->f, 0, NQN);
	size_t n = 0;

	for (uint32_t i = 0; i < ARRAY_SIZE(nsid); i++)
		nsid[i] = 4000000000u + i;
	fails(c, CNS_DESCS, 0, INVALID_NAMESPACE);
	assert_int_equal(request(t, ASK_IDENTIFY, nsid, ARRAY_SIZE(nsid)), 0);
	wait_for_answer(t, t->a, probe(t, 0));
	assert_int_equal(probe(t, 0)->status, PROBE_IDLE);
	n = probe(t, 0)->n_ns;
	assert_in_range(n, 5000, ARRAY_SIZE(nsid) - 1);
	assert_int_equal(request(t, ASK_IDENTIFY, nsid + n, ARRAY_SIZE(nsid) - n), 0);
	wait_for_answer(t, t->a, probe(t, 0));
	assert_int_equal(probe(t, 0)->n_ns, ARRAY_SIZE(nsid));
	for (size_t i = 0; i < ARRAY_SIZE(nsid); i++)
		assert_int_equal(probe(t, 0)->ns[i].error, INVALID_NAMESPACE);
}

/* --- rescan ------------------------------------------------------------------------------------------------------- */

static void a_rescan_is_one_ioctl(void **state)
{
	struct asking *t = *state;
	struct controller *c = controller(t->f, 0, NQN);
	const struct probe *p = ask_it(t, ASK_RESCAN);

	assert_int_equal(p->status, PROBE_IDLE);
	assert_int_equal(p->rescan_at, t->now);
	assert_int_equal(p->rescan_error, 0);
	assert_int_equal(p->list_at, 0);
	assert_string_equal(asked(c), "rescan");
}

static void a_rescan_that_is_refused(void **state)
{
	struct asking *t = *state;
	struct controller *c = controller(t->f, 0, NQN);
	const struct probe *p;

	rescan_fails(c, -EACCES);
	p = ask_it(t, ASK_RESCAN);
	assert_failed(p, PROBE_FAILED, "failed: Permission denied");
	assert_int_equal(p->rescan_error, -EACCES);
	assert_int_equal(p->rescan_at, 0);
	rescan_fails(c, 0);
	ask_it(t, ASK_RESCAN);
	assert_int_equal(p->rescan_error, 0);
	assert_int_equal(p->rescan_at, t->now);
}

/* The kernel would queue nothing, and say nothing. */
static void no_rescan_of_one_that_is_not_live_any_more(void **state)
{
	struct asking *t = *state;
	struct controller *c = controller(t->f, 0, NQN);
	const struct probe *p;

	ask_it(t, ASK_LIST);
	attribute(c, "state", "resetting");
	asked(c);
	p = ask_it(t, ASK_RESCAN);
	assert_failed(p, PROBE_GONE, "is not live");
	assert_int_equal(p->rescan_error, -EAGAIN);
	assert_string_equal(asked(c), "");
	attribute(c, "state", "live");
	ask_it(t, ASK_RESCAN);
	assert_string_equal(asked(c), "rescan");
}

/* nvme_dev_open() refuses while the controller is not live: it is entered anew before each rescan. */
static void a_rescan_opens_the_device_anew(void **state)
{
	struct asking *t = *state;
	struct controller *c = controller(t->f, 0, NQN);

	ask_it(t, ASK_LIST);
	no_more_opens(c);
	asked(c);
	assert_failed(ask_it(t, ASK_RESCAN), PROBE_FAILED, "failed: Input/output error");
	assert_int_equal(probe(t, 0)->rescan_error, -EIO);
	assert_string_equal(asked(c), "");
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, start_asking, stop_asking)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		CASE(a_list_costs_one_command),
		CASE(a_controller_without_namespaces),
		CASE(nsids_use_all_32_bits),
		CASE(what_is_not_listed_any_more),
		CASE(more_than_one_page),
		CASE(a_list_that_is_not_sorted),
		CASE(a_page_that_gets_no_further_is_not_asked_for_ever),
		CASE(the_end_of_the_numbers),
		CASE(a_list_that_fails_is_no_empty_list),
		CASE(the_second_page_fails),
		CASE(the_ioctl_itself_fails),
		CASE(without_a_list_every_nsid_is_asked),
		CASE(without_a_list_one_failure_is_no_answer),
		CASE(without_a_list_nobody_walks_four_billion),
		CASE(capabilities_are_read_once),
		CASE(a_walk_identifies_all),
		CASE(the_command_set_belongs_to_the_identity),
		CASE(what_the_descriptors_lack),
		CASE(another_command_set_has_no_cns_00h),
		CASE(half_an_identity_is_none),
		CASE(no_identifiers_at_all_is_a_true_answer),
		CASE(before_1_3_there_are_no_descriptors),
		CASE(refused_descriptors_are_not_asked_again),
		CASE(invalid_field_may_mean_that_it_has_gone),
		CASE(an_inactive_one_is_not_one_without_a_name),
		CASE(one_identify_fails),
		CASE(an_identity_that_fails_later_is_forgotten),
		CASE(refused_capabilities_are_not_asked_for_each_namespace),
		CASE(descriptors_of_every_kind),
		CASE(descriptors_that_run_over_the_page),
		CASE(thousands_are_asked_for_in_portions),
		CASE(a_rescan_is_one_ioctl),
		CASE(a_rescan_that_is_refused),
		CASE(no_rescan_of_one_that_is_not_live_any_more),
		CASE(a_rescan_opens_the_device_anew),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
