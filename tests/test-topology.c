/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The model of what the host has: orders, positions, counts, and finding disks by what identifies them. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "topology.h"

#define MADE_UP "nvme.1b36-6465-5145-00000001"

static struct topo_subsys *add_subsys(struct topo *t, int instance, const char *nqn)
{
	ARRAY_GROW(t->subsys, t->n_subsys);
	t->subsys[t->n_subsys] = (struct topo_subsys){ .instance = instance, .nqn = xstrdup(nqn) };
	return &t->subsys[t->n_subsys++];
}

static int add_ctrl(struct topo_subsys *s, int instance)
{
	ARRAY_GROW(s->ctrl, s->n_ctrl);
	s->ctrl[s->n_ctrl] = (struct topo_ctrl){
		.instance = instance, .state = CTRL_LIVE, .cntlid = -1, .queue_count = 5, .nqn = xstrdup(s->nqn),
	};
	return s->n_ctrl++;
}

/* ctrl -1: a head */
static int add_disk(struct topo_subsys *s, const char *name, int ctrl, uint32_t nsid)
{
	struct topo_disk *d;

	ARRAY_GROW(s->disk, s->n_disk);
	d = &s->disk[s->n_disk];
	*d = (struct topo_disk){ .ctrl = ctrl, .nsid = nsid, .size = 1 << 20, .node = true };
	snprintf(d->name, sizeof(d->name), "%s", name);
	return s->n_disk++;
}

static void set_id(struct topo_subsys *s, int disk, struct ident id)
{
	s->disk[disk].id = id;
}

static void add_path(struct topo_subsys *s, int ctrl, int disk, uint32_t nsid)
{
	ARRAY_GROW(s->path, s->n_path);
	s->path[s->n_path++] = (struct topo_path){ .ctrl = ctrl, .disk = disk, .nsid = nsid };
}

/* A UUID that ends in the number. */
static struct ident uuid(unsigned n)
{
	struct ident id = { .have = IDENT_UUID, .uuid = { 0x1b, 0x4e } };

	for (int i = 0; i < 4; i++)
		id.uuid[12 + i] = n >> (24 - 8 * i);
	return id;
}

static struct ident nguid(unsigned n)
{
	struct ident id = { .have = IDENT_NGUID, .nguid = { 0xd0, [15] = n } };

	return id;
}

static struct ident both(struct ident a, struct ident b)
{
	a.have |= b.have;
	memcpy(a.nguid, b.nguid, sizeof(a.nguid));
	return a;
}

static struct ident made_up(const char *wwid)
{
	struct ident id = { 0 };

	assert_int_equal(ident_parse_wwid(&id, wwid), 0);
	return id;
}

static void assert_disks(const struct topo_subsys *s, const char *names)
{
	char all[512] = "";

	for (size_t i = 0; i < s->n_disk; i++)
		snprintf(all + strlen(all), sizeof(all) - strlen(all), "%s%s", i ? " " : "", s->disk[i].name);
	assert_string_equal(all, names);
}

/* Which disks fit? By name, in the order in which they are found. */
static void assert_found(const struct topo_subsys *s, uint32_t nsid, const struct ident *want, const char *names)
{
	struct topo_index *ix = topo_index_new(s);
	char all[512] = "";
	size_t fit[16], n = topo_index_find(ix, nsid, want, fit, ARRAY_SIZE(fit));

	for (size_t i = 0; i < n && i < ARRAY_SIZE(fit); i++)
		snprintf(all + strlen(all), sizeof(all) - strlen(all), "%s%s", i ? " " : "", s->disk[fit[i]].name);
	assert_string_equal(all, names);
	topo_index_free(ix);
}

static void everything_is_sorted_and_positions_follow(void **state)
{
	static const struct {
		int ctrl, disk;
		uint32_t nsid;
	} path[] = { { 0, -1, 2 }, { 0, 2, 5 }, { 1, 0, 1 }, { 1, 2, 5 } };
	struct topo t = { 0 };
	struct topo_subsys *s = add_subsys(&t, 0, "nqn.b");
	int c7 = add_ctrl(s, 7), c3 = add_ctrl(s, 3);
	int d5 = add_disk(s, "nvme0n1", -1, 5), d1 = add_disk(s, "nvme0n2", -1, 1);
	int own = add_disk(s, "nvme0n3", c7, 3);

	add_path(s, c7, d5, 0); /* a path does not know its NSID, its head does */
	add_path(s, c7, d1, 0);
	add_path(s, c3, d5, 0);
	add_path(s, c3, -1, 2);
	topo_finish(&t);

	assert_int_equal(own, 2);
	assert_int_equal(s->ctrl[0].instance, 3);
	assert_int_equal(s->ctrl[1].instance, 7);
	assert_disks(s, "nvme0n2 nvme0n3 nvme0n1");
	assert_int_equal(s->disk[0].ctrl, -1);
	assert_int_equal(s->disk[1].ctrl, 1);
	for (size_t i = 0; i < ARRAY_SIZE(path); i++) {
		assert_int_equal(s->path[i].ctrl, path[i].ctrl);
		assert_int_equal(s->path[i].disk, path[i].disk);
		assert_int_equal(s->path[i].nsid, path[i].nsid);
	}
	assert_int_equal(s->disk[0].n_paths, 1);
	assert_int_equal(s->disk[1].n_paths, 1); /* its own controller */
	assert_int_equal(s->disk[2].n_paths, 2);
	assert_int_equal(s->ctrl[0].n_paths, 2); /* one of them without a head */
	assert_int_equal(s->ctrl[1].n_paths, 3);
	topo_free(&t);
}

/* Finished twice, or finished, filled further and finished again: positions and counts are right each time. */
static void it_may_go_on_growing(void **state)
{
	struct topo t = { 0 };
	struct topo_subsys *s = add_subsys(&t, 0, "nqn.a");
	int c;

	for (int i = 0; i < 5; i++)
		add_disk(s, (char[]){ 'n', 'v', 'm', 'e', '0', 'n', '9' - i, 0 }, -1, 9 - i);
	c = add_ctrl(s, 1);
	for (int i = 0; i < 5; i++)
		add_path(s, c, i, 0);
	topo_finish(&t);
	topo_finish(&t);
	assert_int_equal(s->disk[0].n_paths, 1);
	for (int i = 0; i < 100; i++) { /* beyond every capacity there was */
		add_path(s, c, add_disk(s, "nvme0n77", -1, 77 + i), 0);
		add_ctrl(s, 100 - i + 1);
	}
	topo_finish(&t);
	assert_int_equal(s->ctrl[0].instance, 1);
	assert_int_equal(s->ctrl[0].n_paths, 105);
	for (size_t i = 0; i < s->n_disk; i++)
		assert_int_equal(s->disk[i].n_paths, 1);
	for (size_t i = 0; i < s->n_path; i++)
		assert_int_equal(s->path[i].nsid, s->disk[s->path[i].disk].nsid);
	topo_free(&t);
}

static void one_nsid_is_sorted_by_name_as_people_count(void **state)
{
	struct topo t = { 0 };
	struct topo_subsys *s = add_subsys(&t, 0, "nqn.a");
	int c = add_ctrl(s, 0);

	add_disk(s, "nvme10n1", c, 4);
	add_disk(s, "nvme2n10", c, 4);
	add_disk(s, "nvme2n9", c, 4);
	add_disk(s, "nvme0n1", -1, 0xfffffffe); /* unsigned */
	topo_finish(&t);
	assert_disks(s, "nvme2n9 nvme2n10 nvme10n1 nvme0n1");
	topo_free(&t);
}

static void an_empty_world_can_be_finished_and_freed(void **state)
{
	struct topo t = { 0 };
	struct topo_index *ix;
	size_t fit;

	topo_finish(&t);
	assert_null(topo_find(&t, "nqn.a"));
	assert_null(topo_find(&t, ""));
	add_subsys(&t, 0, "nqn.a");
	topo_finish(&t);
	ix = topo_index_new(&t.subsys[0]);
	assert_int_equal(topo_index_find(ix, 1, &(struct ident){ 0 }, &fit, 1), 0);
	topo_index_free(ix);
	topo_index_free(NULL);
	topo_free(&t);
	assert_null(t.subsys);
	assert_int_equal(t.n_subsys, 0);
	topo_free(&t);
}

static void subsystems_are_found_by_their_whole_nqn(void **state)
{
	struct topo t = { 0 };

	add_subsys(&t, 3, "nqn.b");
	add_subsys(&t, -1, "nqn.a");
	add_subsys(&t, 1, "nqn.a:x");
	add_subsys(&t, 9, "nqn.a");
	add_subsys(&t, 0, "nqn. 2  blanks inside");
	topo_finish(&t);
	assert_string_equal(t.subsys[0].nqn, "nqn. 2  blanks inside");
	assert_int_equal(topo_find(&t, "nqn.b")->instance, 3);
	assert_int_equal(topo_find(&t, "nqn.a")->instance, 9); /* not the controllers that have no subsystem yet */
	assert_int_equal(topo_find(&t, "nqn.a:x")->instance, 1);
	assert_int_equal(topo_find(&t, "nqn.b   ")->instance, 3); /* as the kernel pads those of PCIe drives */
	assert_int_equal(topo_find(&t, "nqn. 2  blanks inside")->instance, 0);
	assert_null(topo_find(&t, " nqn.b"));
	assert_null(topo_find(&t, "nqn."));
	assert_null(topo_find(&t, "nqn.a:"));
	assert_null(topo_find(&t, "nqn.b:"));
	assert_null(topo_find(&t, "NQN.B"));
	assert_null(topo_find(&t, ""));
	assert_null(topo_find(&t, "   "));
	topo_free(&t);
}

static void which_controllers_may_be_asked(void **state)
{
	static const struct {
		struct topo_ctrl c;
		bool usable;
	} row[] = {
		{ { .state = CTRL_LIVE, .type = CTRL_TYPE_IO, .queue_count = 2 }, true },
		{ { .state = CTRL_LIVE, .type = CTRL_TYPE_UNKNOWN, .queue_count = 129 }, true },
		{ { .state = CTRL_LIVE, .type = CTRL_TYPE_IO, .queue_count = -1 }, true }, /* no such attribute */
		{ { .state = CTRL_LIVE, .type = CTRL_TYPE_IO, .queue_count = 1 }, false },
		{ { .state = CTRL_LIVE, .type = CTRL_TYPE_IO, .queue_count = 0 }, false },
		{ { .state = CTRL_LIVE, .type = CTRL_TYPE_DISCOVERY, .queue_count = 2 }, false },
		{ { .state = CTRL_LIVE, .type = CTRL_TYPE_ADMIN, .queue_count = 2 }, false },
		{ { .state = CTRL_UNKNOWN, .type = CTRL_TYPE_IO, .queue_count = 2 }, false },
		{ { .state = CTRL_NEW, .type = CTRL_TYPE_IO, .queue_count = 2 }, false },
		{ { .state = CTRL_RESETTING, .type = CTRL_TYPE_IO, .queue_count = 2 }, false },
		{ { .state = CTRL_CONNECTING, .type = CTRL_TYPE_IO, .queue_count = 2 }, false },
		{ { .state = CTRL_DELETING, .type = CTRL_TYPE_IO, .queue_count = 2 }, false },
		{ { .state = CTRL_DEAD, .type = CTRL_TYPE_IO, .queue_count = 2 }, false },
	};

	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		struct topo_ctrl c = row[i].c;

		assert_false(ctrl_is_usable(&c)); /* its NQN cannot be read */
		c.nqn = (char[]){ "nqn.a" };
		if (ctrl_is_usable(&c) != row[i].usable)
			fail_msg("row %zu", i);
	}
}

static void names_of_states_are_the_kernels(void **state)
{
	assert_string_equal(ctrl_state_name(CTRL_CONNECTING), "connecting");
	assert_string_equal(ctrl_state_name(CTRL_DEAD), "dead");
	assert_string_equal(ctrl_state_name((enum ctrl_state)99), "unknown");
	assert_string_equal(ana_state_name(ANA_NON_OPTIMIZED), "non-optimized");
	assert_string_equal(ana_state_name(ANA_PERSISTENT_LOSS), "persistent-loss");
	assert_string_equal(ana_state_name((enum ana_state)-1), "unknown");
}

/*
 *   nvme0n1  NSID 1  uuid 1, nguid 7
 *   nvme0n2  NSID 2  uuid 2, nguid 7     the same NGUID: storage that copies it
 *   nvme0n3  NSID 3  only the kernel's made-up name
 *   nvme0n4  NSID 4  nothing could be read
 *   nvme1n5, nvme2n5  NSID 5  uuid 5     native multipath off
 */
static void make_world(struct topo *t)
{
	struct topo_subsys *s = add_subsys(t, 0, "nqn.a");
	int c1 = add_ctrl(s, 1), c2 = add_ctrl(s, 2);

	set_id(s, add_disk(s, "nvme2n5", c2, 5), uuid(5));
	set_id(s, add_disk(s, "nvme0n1", -1, 1), both(uuid(1), nguid(7)));
	set_id(s, add_disk(s, "nvme1n5", c1, 5), uuid(5));
	set_id(s, add_disk(s, "nvme0n2", -1, 2), both(uuid(2), nguid(7)));
	set_id(s, add_disk(s, "nvme0n3", -1, 3), made_up(MADE_UP));
	add_disk(s, "nvme0n4", -1, 4);
	topo_finish(t);
}

static void disks_are_found_by_what_is_given(void **state)
{
	struct topo t = { 0 };
	struct ident none = { 0 }, u1 = uuid(1), u2 = uuid(2), u5 = uuid(5), u9 = uuid(9);
	struct ident n7 = nguid(7), u1n7 = both(uuid(1), nguid(7)), u1n8 = both(uuid(1), nguid(8));
	struct ident u5n7 = both(uuid(5), nguid(7));
	const struct topo_subsys *s;

	make_world(&t);
	s = &t.subsys[0];
	assert_found(s, 0, &u1, "nvme0n1");
	assert_found(s, 1, &u1, "nvme0n1");
	assert_found(s, 2, &u1, ""); /* the NSID must be right too */
	assert_found(s, 0, &u1n7, "nvme0n1");
	assert_found(s, 0, &u1n8, ""); /* and every name */
	assert_found(s, 0, &u5n7, ""); /* also those that cannot be seen */
	assert_found(s, 0, &n7, "nvme0n1 nvme0n2");
	assert_found(s, 2, &n7, "nvme0n2");
	assert_found(s, 0, &u2, "nvme0n2");
	assert_found(s, 0, &u5, "nvme1n5 nvme2n5");
	assert_found(s, 5, &u5, "nvme1n5 nvme2n5");
	assert_found(s, 0, &u9, "");
	assert_found(s, 5, &none, "nvme1n5 nvme2n5");
	assert_found(s, 1, &none, "nvme0n1");
	assert_found(s, 0, &none, ""); /* nothing given fits nothing */
	assert_found(s, 6, &none, "");
	topo_free(&t);
}

static void disks_without_a_name_of_the_storages_fit_by_nsid(void **state)
{
	struct topo t = { 0 };
	struct ident u3 = uuid(3), same = made_up(MADE_UP), other = made_up("nvme.1b36-6465-5145-00000009");
	const struct topo_subsys *s;

	make_world(&t);
	s = &t.subsys[0];
	assert_found(s, 3, &u3, "nvme0n3");
	assert_found(s, 4, &u3, "nvme0n4");
	assert_found(s, 0, &u3, ""); /* without an NSID nothing is left to compare */
	assert_found(s, 1, &u3, ""); /* that one has names, and they are others */
	assert_found(s, 3, &same, "nvme0n3"); /* once */
	assert_found(s, 0, &same, "nvme0n3");
	assert_found(s, 3, &other, ""); /* the made-up name can be compared: it is another drive's */
	ident_clear(&same);
	ident_clear(&other);
	topo_free(&t);
}

static void more_may_fit_than_there_is_room_for(void **state)
{
	struct topo t = { 0 };
	struct topo_index *ix;
	struct ident u5 = uuid(5);
	size_t fit[2] = { 99, 99 };

	make_world(&t);
	ix = topo_index_new(&t.subsys[0]);
	assert_int_equal(topo_index_find(ix, 0, &u5, fit, 1), 2);
	assert_int_equal(fit[1], 99);
	assert_int_equal(topo_index_find(ix, 5, &(struct ident){ 0 }, NULL, 0), 2);
	topo_index_free(ix);
	topo_free(&t);
}

/* 36,000 disks of two names each: every one is found by either name and by NSID, and no other. */
static void thousands_are_found_one_by_one(void **state)
{
	const unsigned n = 36000;
	struct topo t = { 0 };
	struct topo_subsys *s = add_subsys(&t, 0, "nqn.a");
	struct topo_index *ix;
	size_t fit;

	for (unsigned i = 0; i < n; i++) {
		struct topo_disk *d;
		char name[32];

		snprintf(name, sizeof(name), "nvme0n%u", i + 1);
		add_disk(s, name, -1, 1 + i * 7919 % n);
		d = &s->disk[i];
		d->id = both(uuid(d->nsid), nguid(0));
		memcpy(d->id.nguid + 8, &d->nsid, sizeof(d->nsid));
	}
	topo_finish(&t);
	ix = topo_index_new(s);
	for (unsigned i = 1; i <= n; i++) {
		struct ident want = uuid(i);

		assert_int_equal(topo_index_find(ix, 0, &want, &fit, 1), 1);
		assert_int_equal(s->disk[fit].nsid, i);
		want = nguid(0);
		memcpy(want.nguid + 8, &i, sizeof(i));
		assert_int_equal(topo_index_find(ix, i, &want, &fit, 1), 1);
		assert_int_equal(topo_index_find(ix, i, &(struct ident){ 0 }, &fit, 1), 1);
		assert_int_equal(fit, i - 1);
		want = uuid(n + i);
		assert_int_equal(topo_index_find(ix, 0, &want, &fit, 1), 0);
	}
	topo_index_free(ix);
	topo_free(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(everything_is_sorted_and_positions_follow),
		cmocka_unit_test(it_may_go_on_growing),
		cmocka_unit_test(one_nsid_is_sorted_by_name_as_people_count),
		cmocka_unit_test(an_empty_world_can_be_finished_and_freed),
		cmocka_unit_test(subsystems_are_found_by_their_whole_nqn),
		cmocka_unit_test(which_controllers_may_be_asked),
		cmocka_unit_test(names_of_states_are_the_kernels),
		cmocka_unit_test(disks_are_found_by_what_is_given),
		cmocka_unit_test(disks_without_a_name_of_the_storages_fit_by_nsid),
		cmocka_unit_test(more_may_fit_than_there_is_room_for),
		cmocka_unit_test(thousands_are_found_one_by_one),
	};

	return cmocka_run_group_tests_name("topology", tests, NULL, NULL);
}
