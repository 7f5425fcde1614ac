/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * sysfs -> topology: the layouts that the kernel makes, and every attribute that is read, from trees of plain files,
 * each read as a live /sys and as a support bundle.
 */
#include "machine.h"

#include <stdlib.h>
#include <unistd.h>

/* ---- layouts ---- */

static void no_nvme_is_an_empty_topology(void **state)
{
	assert_topology(*state, 0, "");
	make_dirs(at(*state, "sys/class/nvme-subsystem"));
	make_dirs(at(*state, "sys/class/nvme"));
	assert_topology(*state, 0, "");
}

static void native_multipath(void **state)
{
	two_by_two(*state);
	assert_topology(*state, 0, TWO_CTRLS TWO_DISKS FOUR_PATHS);
}

static void a_copy_without_links(void **state)
{
	struct machine *m = *state;

	m->flat = true;
	two_by_two(m);
	assert_topology(m, 0, TWO_CTRLS TWO_DISKS FOUR_PATHS);
	/* links that were copied as they are lead nowhere now, but they still say where a controller belongs */
	link_instead(subsys_dir(m, 4), "nvme0", "../../nvme-fabrics/ctl/nvme0");
	link_instead(subsys_dir(m, 4), "nvme1", "../../nvme-fabrics/ctl/nvme1");
	assert_topology(m, 0, TWO_CTRLS TWO_DISKS FOUR_PATHS);
}

static void a_copy_of_the_subsystems_alone(void **state)
{
	struct machine *m = *state;

	two_by_two(m);
	remove_all(at(m, "sys/class/nvme"));
	assert_topology(m, 0, TWO_CTRLS TWO_DISKS FOUR_PATHS);
}

static void private_namespaces_lie_under_their_controller(void **state)
{
	struct machine *m = *state;

	subsystem(m, 4, NQN);
	controller(m, 0, 4, NQN);
	controller(m, 1, 4, NQN);
	own_disk(m, 0, "nvme4n1", "1", UUID1);
	own_disk(m, 1, "nvme4n2", "1", UUID2); /* private NSIDs may repeat */
	node(m, "nvme4n1");
	assert_topology(m, 0, SUBSYS CTRL(0, 1, 1) CTRL(1, 2, 1)
			" nvme4n1 of nvme0 nsid=1 " ID_UUID1 " size=1048576 paths=1\n"
			" nvme4n2 of nvme1 nsid=1 " ID_UUID2 " size=1048576 paths=1 no-node\n");
}

static void multipath_off_shows_a_disk_for_each_controller(void **state)
{
	struct machine *m = *state;

	subsystem(m, 4, NQN);
	controller(m, 0, 4, NQN);
	controller(m, 11, 4, NQN);
	own_disk(m, 0, "nvme0n1", "1", UUID1);
	own_disk(m, 11, "nvme11n1", "1", UUID1);
	assert_topology(m, NO_DEV, SUBSYS CTRL(0, 1, 1) CTRL(11, 12, 1)
			" nvme0n1 of nvme0 nsid=1 " ID_UUID1 " size=1048576 paths=1\n"
			" nvme11n1 of nvme11 nsid=1 " ID_UUID1 " size=1048576 paths=1\n");
}

static void subsystems_come_by_nqn(void **state)
{
	struct machine *m = *state;

	subsystem(m, 0, "nqn.z");
	subsystem(m, 1, "nqn.Y with blanks   "); /* a PCIe drive's, made up and padded by the kernel */
	subsystem(m, 2, "nqn.a");
	controller(m, 3, 0, "nqn.z");
	attr(controller(m, 5, 1, "nqn.Y with blanks   "), "hostnqn", NULL);
	assert_topology(m, 0, "nqn.Y with blanks 1 Linux/c0ffee\n"
			" nvme5 live io cntlid=6 queues=3 tcp - paths=0\n"
			"nqn.a 2 Linux/c0ffee\n"
			"nqn.z 0 Linux/c0ffee\n" CTRL(3, 4, 0));
}

/* Every path inaccessible: the head exists inside the kernel only. What the paths say is all there is. */
static void paths_without_a_head_are_read_themselves(void **state)
{
	struct machine *m = *state;

	subsystem(m, 4, NQN);
	controller(m, 0, 4, NQN);
	controller(m, 1, 4, NQN);
	path_to(m, 4, 0, 1, "7", UUID1, "inaccessible");
	path_to(m, 4, 1, 1, "7", UUID1, "persistent-loss");
	path_to(m, 4, 1, 2, "8", EUI1, "change");
	assert_topology(m, 0, SUBSYS CTRL(0, 1, 1) CTRL(1, 2, 2)
			" nvme0 -> none nsid=7 inaccessible " ID_UUID1 "\n"
			" nvme1 -> none nsid=7 persistent-loss " ID_UUID1 "\n"
			" nvme1 -> none nsid=8 change eui64=002538b9114a9e01\n");
}

static void ana_states_of_all_paths_are_read_on_request(void **state)
{
	struct machine *m = *state;

	two_by_two(m);
	attr(at(m, "sys/devices/virtual/nvme-fabrics/ctl/nvme1/nvme4c1n1"), "ana_state", "non-optimized");
	attr(at(m, "sys/devices/virtual/nvme-fabrics/ctl/nvme1/nvme4c1n2"), "ana_state", NULL);
	attr(at(m, "sys/devices/virtual/nvme-fabrics/ctl/nvme0/nvme4c0n2"), "ana_state", "on holiday");
	assert_topology(m, SYSFS_ANA, TWO_CTRLS TWO_DISKS
			" nvme0 -> nvme4n2 nsid=3 unknown\n"
			" nvme0 -> nvme4n1 nsid=7 optimized\n"
			" nvme1 -> nvme4n2 nsid=3 unknown\n"
			" nvme1 -> nvme4n1 nsid=7 non-optimized\n"
			"! nvme4c0n2: ana_state: Invalid argument\n");
}

/* ---- one attribute ---- */

static void nsids_above_0x7fffffff_are_printed_negative(void **state)
{
	static const struct {
		const char *text;
		uint32_t nsid; /* 0: unreadable */
	} row[] = {
		{ "1", 1 }, { "2147483647", 0x7fffffff }, { "-2147483648", 0x80000000 }, { "-2", 0xfffffffe },
		{ "4294967294", 0xfffffffe }, /* should a kernel print it unsigned */
		{ "0", 0 }, { "-1", 0 }, { "4294967295", 0 }, { "4294967296", 0 }, { "-2147483649", 0 }, { "-0", 0 },
		{ "", 0 }, { "-", 0 }, { "--1", 0 }, { "+1", 0 }, { " 1", 0 }, { "1 ", 0 }, { "seven", 0 },
	};
	struct machine *m = *state;

	subsystem(m, 4, NQN);
	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		struct topo t;

		head(m, 4, 1, row[i].text, UUID1);
		assert_int_equal(read_machine(m, true, 0, &t), 0);
		assert_int_equal(t.subsys[0].n_disk, 1);
		if (t.subsys[0].disk[0].nsid != row[i].nsid || t.n_note != !row[i].nsid)
			fail_msg("nsid \"%s\"", row[i].text);
		topo_free(&t);
	}
}

static void names_beside_the_wwid_are_read_on_request(void **state)
{
	struct machine *m = *state;
	const char *dir;

	subsystem(m, 4, NQN);
	for (int z = 1; z <= 4; z++) {
		dir = head(m, 4, z, (char[]){ '0' + z, 0 }, (const char *[]){ UUID1, NGUID1, EUI1, MADE_UP }[z - 1]);
		attr(dir, "nguid", z <= 2 ? "d07f718b-1d23-4457-7bc1-bb4d4d516c01" : NULL);
		attr(dir, "eui", z <= 2 ? "00 25 38 b9 11 4a 9e 02" : NULL);
		attr(dir, "csi", z == 1 ? "2" : NULL);
	}
	attr(dir, "nguid", "00000000-0000-0000-0000-000000000000"); /* how old kernels say that there is none */
	assert_topology(m, NO_DEV, SUBSYS
			" nvme4n1 nsid=1 " ID_UUID1 " size=1048576 paths=0\n"
			" nvme4n2 nsid=2 " ID_NGUID1 " size=1048576 paths=0\n"
			" nvme4n3 nsid=3 eui64=002538b9114a9e01 size=1048576 paths=0\n"
			" nvme4n4 nsid=4 wwid=" MADE_UP " size=1048576 paths=0\n");
	assert_topology(m, NO_DEV | SYSFS_IDS, SUBSYS
			" nvme4n1 nsid=1 " ID_UUID1 " " ID_NGUID1 " eui64=002538b9114a9e02 size=1048576 paths=0 csi=2\n"
			" nvme4n2 nsid=2 " ID_NGUID1 " eui64=002538b9114a9e02 size=1048576 paths=0\n"
			" nvme4n3 nsid=3 eui64=002538b9114a9e01 size=1048576 paths=0\n"
			" nvme4n4 nsid=4 wwid=" MADE_UP " size=1048576 paths=0\n");
}

/* A wwid that says nothing: the other names do; and if they do not, the disk passes for no namespace at all. */
static void a_disk_that_cannot_be_identified_fits_nothing(void **state)
{
	struct machine *m = *state;
	char *dir;

	subsystem(m, 4, NQN);
	attr(head(m, 4, 1, "1", "wwn.5000c500a1b2c3d4"), "nguid", "d07f718b-1d23-4457-7bc1-bb4d4d516c01");
	head(m, 4, 2, "2", "nvme.1b36-6465-51\x1b[2J-00000002");
	head(m, 4, 3, "3", "eui.0000000000000000");
	dir = head(m, 4, 4, "4", UUID1);
	dir_instead(dir, "wwid");
	node(m, "nvme4n4");
	assert_topology(m, 0, SUBSYS
			" nvme4n2 nsid=0 nameless size=1048576 paths=0 no-node\n"
			" nvme4n3 nsid=0 nameless size=1048576 paths=0 no-node\n"
			" nvme4n4 nsid=0 nameless size=1048576 paths=0\n"
			" nvme4n1 nsid=1 " ID_NGUID1 " size=1048576 paths=0 no-node\n"
			"! nvme4n1: wwid: Invalid argument\n"
			"! nvme4n2: wwid: Invalid argument\n"
			"! nvme4n3: wwid: No data available\n"
			"! nvme4n4: wwid: Is a directory\n");
}

/* A format or command set that the kernel does not serve: no node, often no size. A path is hidden too, but no disk. */
static void hidden_disks_and_disks_of_no_size(void **state)
{
	struct machine *m = *state;
	char *dir;

	subsystem(m, 4, NQN);
	controller(m, 0, 4, NQN);
	dir = head(m, 4, 1, "1", UUID1);
	attr(dir, "hidden", "1");
	attr(dir, "size", "0");
	attr(own_disk(m, 0, "nvme4n2", "2", UUID2), "hidden", "1"); /* up to 6.8 a zoned one keeps its size */
	attr(head(m, 4, 3, "3", NGUID1), "size", "0"); /* metadata in the data: visible, but nothing can be read */
	node(m, "nvme4n3");
	assert_topology(m, 0, SUBSYS CTRL(0, 1, 1)
			" nvme4n1 nsid=1 " ID_UUID1 " size=0 paths=0 hidden no-node\n"
			" nvme4n2 of nvme0 nsid=2 " ID_UUID2 " size=1048576 paths=1 hidden no-node\n"
			" nvme4n3 nsid=3 " ID_NGUID1 " size=0 paths=0\n");
	assert_topology(m, NO_DEV, SUBSYS CTRL(0, 1, 1)
			" nvme4n1 nsid=1 " ID_UUID1 " size=0 paths=0 hidden\n"
			" nvme4n2 of nvme0 nsid=2 " ID_UUID2 " size=1048576 paths=1 hidden\n"
			" nvme4n3 nsid=3 " ID_NGUID1 " size=0 paths=0\n");
}

static void sizes_are_in_sectors_of_512_bytes(void **state)
{
	static const struct {
		const char *text;
		uint64_t size;
		bool note;
	} row[] = {
		{ "1", 512, false },
		{ "0", 0, false },
		{ "36028797018963967", 36028797018963967ULL * 512, false }, /* the last that fits */
		{ "36028797018963968", 0, true },
		{ "99999999999999999999999", 0, true },
		{ "-1", 0, true },
		{ "", 0, true },
	};
	struct machine *m = *state;

	subsystem(m, 4, NQN);
	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		struct topo t;

		attr(head(m, 4, 1, "1", UUID1), "size", row[i].text);
		assert_int_equal(read_machine(m, true, NO_DEV, &t), 0);
		if (t.subsys[0].disk[0].size != row[i].size || (t.n_note == 1) != row[i].note)
			fail_msg("row %zu", i);
		topo_free(&t);
	}
	/* a disk that is just going; or one whose size nobody copied */
	attr(head(m, 4, 1, "1", UUID1), "size", NULL);
	assert_read(m, true, NO_DEV, SUBSYS "! nvme4n1: left out: No such file or directory\n");
	assert_read(m, false, NO_DEV, SUBSYS " nvme4n1 nsid=1 " ID_UUID1 " size=0 paths=0\n"
		    "! nvme4n1: size: No such file or directory\n");
}

static void what_is_a_node_and_what_is_not(void **state)
{
	struct machine *m = *state;

	subsystem(m, 4, NQN);
	for (int z = 1; z <= 4; z++)
		head(m, 4, z, (char[]){ '0' + z, 0 }, UUID1);
	node(m, "nvme4n1");
	write_bytes(at(m, "dev/nvme4n2"), "oops", 4); /* dd of=/dev/nvme4n2 while it was away */
	make_dirs(at(m, "dev/nvme4n3"));
	node(m, "nvme4n4p1");
	node(m, "nvme4");
	node(m, "ng4n4");
	assert_topology(m, 0, SUBSYS
			" nvme4n1 nsid=1 " ID_UUID1 " size=1048576 paths=0\n"
			" nvme4n2 nsid=2 " ID_UUID1 " size=1048576 paths=0 no-node\n"
			" nvme4n3 nsid=3 " ID_UUID1 " size=1048576 paths=0 no-node\n"
			" nvme4n4 nsid=4 " ID_UUID1 " size=1048576 paths=0 no-node\n");
}

static void controllers_in_every_condition(void **state)
{
	static const struct {
		const char *attr, *value, *line;
	} row[] = {
		{ "state", "new", " nvme0 new io cntlid=1 queues=3 tcp nqn.host paths=0\n" },
		{ "state", "connecting", " nvme0 connecting io cntlid=1 queues=3 tcp nqn.host paths=0\n" },
		{ "state", "resetting", " nvme0 resetting io cntlid=1 queues=3 tcp nqn.host paths=0\n" },
		{ "state", "deleting", " nvme0 deleting io cntlid=1 queues=3 tcp nqn.host paths=0\n" },
		{ "state", "deleting (no IO)", " nvme0 deleting io cntlid=1 queues=3 tcp nqn.host paths=0\n" },
		{ "state", "dead", " nvme0 dead io cntlid=1 queues=3 tcp nqn.host paths=0\n" },
		{ "state", "dancing", " nvme0 unknown io cntlid=1 queues=3 tcp nqn.host paths=0\n" },
		{ "state", NULL, " nvme0 unknown io cntlid=1 queues=3 tcp nqn.host paths=0\n" },
		{ "cntrltype", "discovery", " nvme0 live discovery cntlid=1 queues=3 tcp nqn.host paths=0\n" },
		{ "cntrltype", "admin", " nvme0 live admin cntlid=1 queues=3 tcp nqn.host paths=0\n" },
		{ "cntrltype", "reserved", " nvme0 live ? cntlid=1 queues=3 tcp nqn.host paths=0\n" },
		{ "cntrltype", NULL, " nvme0 live ? cntlid=1 queues=3 tcp nqn.host paths=0\n" },
		{ "queue_count", "1", " nvme0 live io cntlid=1 queues=1 tcp nqn.host paths=0\n" },
		{ "queue_count", NULL, " nvme0 live io cntlid=1 queues=-1 tcp nqn.host paths=0\n" },
		{ "queue_count", "99999999999", " nvme0 live io cntlid=1 queues=-1 tcp nqn.host paths=0\n" },
		{ "cntlid", "65535", " nvme0 live io cntlid=65535 queues=3 tcp nqn.host paths=0\n" },
		{ "cntlid", "-1", " nvme0 live io cntlid=-1 queues=3 tcp nqn.host paths=0\n" },
		{ "hostnqn", NULL, " nvme0 live io cntlid=1 queues=3 tcp - paths=0\n" },
		{ "hostnqn", "(efault)", " nvme0 live io cntlid=1 queues=3 tcp - paths=0\n" },
		{ "transport", NULL, " nvme0 live io cntlid=1 queues=3 - nqn.host paths=0\n" },
	};
	struct machine *m = *state;

	subsystem(m, 4, NQN);
	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		cleanup_free char *expected = xasprintf("%s%s", SUBSYS, row[i].line);

		attr(controller(m, 0, 4, NQN), row[i].attr, row[i].value);
		assert_topology(m, 0, expected);
	}
}

/* Before 5.18 there is no cntrltype: only the well-known NQN tells. */
static void a_discovery_controller_of_old(void **state)
{
	struct machine *m = *state;
	const char *nqn = "nqn.2014-08.org.nvmexpress.discovery";

	subsystem(m, 4, nqn);
	attr(controller(m, 0, 4, nqn), "cntrltype", NULL);
	assert_topology(m, 0, "nqn.2014-08.org.nvmexpress.discovery 4 Linux/c0ffee\n"
			" nvme0 live discovery cntlid=1 queues=3 tcp nqn.host paths=0\n");
}

/* ---- controllers without a subsystem ---- */

static void a_new_controller_has_no_subsystem_yet(void **state)
{
	struct machine *m = *state;

	two_by_two(m);
	attr(controller(m, 2, -1, "(efault)"), "state", "new");
	assert_topology(m, 0, TWO_CTRLS TWO_DISKS FOUR_PATHS "! nvme2: has no subsystem\n");
	attr(ctrl_dir(m, 2), "subsysnqn", "(null)");
	assert_topology(m, 0, TWO_CTRLS TWO_DISKS FOUR_PATHS "! nvme2: has no subsystem\n");
	attr(ctrl_dir(m, 2), "subsysnqn", "");
	assert_topology(m, 0, TWO_CTRLS TWO_DISKS FOUR_PATHS "! nvme2: has no subsystem\n");
	attr(ctrl_dir(m, 2), "subsysnqn", NULL);
	assert_topology(m, 0, TWO_CTRLS TWO_DISKS FOUR_PATHS "! nvme2: has no subsystem: No such file or directory\n");
}

static void its_nqn_says_where_it_belongs(void **state)
{
	struct machine *m = *state;

	two_by_two(m);
	controller(m, 2, -1, NQN "   ");
	path_to(m, 4, 2, 1, "7", UUID1, "optimized");
	controller(m, 3, -1, "nqn.other");
	controller(m, 4, -1, "nqn.other");
	own_disk(m, 4, "nvme9n1", "1", UUID2);
	assert_topology(m, NO_DEV, SUBSYS CTRL(0, 1, 2) CTRL(1, 2, 2) CTRL(2, 3, 1)
			" nvme4n2 nsid=3 " ID_NGUID1 " size=1048576 paths=2\n"
			" nvme4n1 nsid=7 " ID_UUID1 " size=1048576 paths=3\n"
			FOUR_PATHS
			" nvme2 -> nvme4n1 nsid=7 unknown\n"
			"nqn.other -1 -/-\n" CTRL(3, 4, 0) CTRL(4, 5, 1)
			" nvme9n1 of nvme4 nsid=1 " ID_UUID2 " size=1048576 paths=1\n");
}

/* Linked, but not to be asked: it does not say what it is. */
static void a_member_that_does_not_say_its_nqn(void **state)
{
	struct machine *m = *state;

	subsystem(m, 4, NQN);
	controller(m, 0, 4, "(efault)");
	controller(m, 1, 4, "nqn.another");
	assert_topology(m, 0, SUBSYS
			" nvme0 live io cntlid=1 queues=3 tcp nqn.host paths=0 no-nqn\n"
			" nvme1 live io cntlid=2 queues=3 tcp nqn.host paths=0 other-nqn\n"
			"! nvme0: subsysnqn says nothing\n");
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, start_machine, stop_machine)
	const struct CMUnitTest tests[] = {
		TEST(no_nvme_is_an_empty_topology),
		TEST(native_multipath),
		TEST(a_copy_without_links),
		TEST(a_copy_of_the_subsystems_alone),
		TEST(private_namespaces_lie_under_their_controller),
		TEST(multipath_off_shows_a_disk_for_each_controller),
		TEST(subsystems_come_by_nqn),
		TEST(paths_without_a_head_are_read_themselves),
		TEST(ana_states_of_all_paths_are_read_on_request),
		TEST(nsids_above_0x7fffffff_are_printed_negative),
		TEST(names_beside_the_wwid_are_read_on_request),
		TEST(a_disk_that_cannot_be_identified_fits_nothing),
		TEST(hidden_disks_and_disks_of_no_size),
		TEST(sizes_are_in_sectors_of_512_bytes),
		TEST(what_is_a_node_and_what_is_not),
		TEST(controllers_in_every_condition),
		TEST(a_discovery_controller_of_old),
		TEST(a_new_controller_has_no_subsystem_yet),
		TEST(its_nqn_says_where_it_belongs),
		TEST(a_member_that_does_not_say_its_nqn),
	};

	return cmocka_run_group_tests_name("sysfs", tests, NULL, NULL);
}
