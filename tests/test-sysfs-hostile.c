/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * sysfs -> topology: trees that nobody would build in good faith, trees that change while they are read, what a look
 * costs, and what is no sysfs at all.
 */
#include "machine.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- in bad faith ---- */

static void names_that_only_look_like_disks(void **state)
{
	static const char *const name[] = {
		"nvme4c", "nvme4n", "nvme4n1p1", "nvmeXn1", "nvme4nX", "nvmen1", "nvme-4n1", "nvme4n-1", "nvme4c0",
		"nvme04n1", "nvme4n01", "nvme4c00n1", "nvme4n1 ", "nvme4n1n1", "nvme4c0c0n1", "NVME4n1", "xnvme4n1",
		"nvme2147483648n1", "nvme4n2147483648", "nvme4n99999999999999999999", "nvme4c2147483648n1",
		"ng4n1", "hwmon3", "hwmon", "power", "nvme", "nvme-subsys4", "nvmeX", "nvme99999999999",
		"nvme+1", "nvme\xc3\xa4",
	};
	struct machine *m = *state;

	two_by_two(m);
	for (size_t i = 0; i < ARRAY_SIZE(name); i++) {
		disk_in(subsys_dir(m, 4), name[i], "66", UUID2);
		disk_in(ctrl_dir(m, 0), name[i], "66", UUID2);
		disk_in(at(m, "sys/class/nvme"), name[i], "66", UUID2);
		disk_in(at(m, "sys/class/nvme-subsystem"), *name[i] == 'n' ? name[i] + 1 : name[i], "66", UUID2);
	}
	write_bytes(at(m, "sys/devices/virtual/nvme-subsystem/nvme-subsys4/nvme4n8"), "a file", 6);
	assert_topology(m, 0, TWO_CTRLS TWO_DISKS FOUR_PATHS);
}

static void the_largest_names_fit(void **state)
{
	struct machine *m = *state;

	subsystem(m, 2147483647, NQN);
	controller(m, 2147483647, 2147483647, NQN);
	head(m, 2147483647, 2147483647, "1", UUID1);
	path_to(m, 2147483647, 2147483647, 2147483647, "1", UUID1, "optimized");
	path_to(m, 2147483647, 2147483647, 0, "2", UUID2, "inaccessible");
	node(m, "nvme2147483647n2147483647");
	assert_read(m, true, SYSFS_ANA, NQN " 2147483647 Linux/c0ffee\n"
		    " nvme2147483647 live io cntlid=-1 queues=3 tcp nqn.host paths=2\n"
		    " nvme2147483647n2147483647 nsid=1 " ID_UUID1 " size=1048576 paths=1\n"
		    " nvme2147483647 -> nvme2147483647n2147483647 nsid=1 optimized\n"
		    " nvme2147483647 -> none nsid=2 inaccessible " ID_UUID2 "\n");
}

static void attributes_that_are_not_what_they_should_be(void **state)
{
	struct machine *m = *state;
	cleanup_free char *megabyte = xmalloc(1 << 20);

	memset(megabyte, 'n', 1 << 20);
	for (int x = 0; x < 5; x++) {
		cleanup_free char *nqn = xasprintf("nqn.%d", x);

		subsystem(m, x, nqn);
		controller(m, x, x, nqn);
	}
	write_bytes(at(m, "sys/class/nvme-subsystem/nvme-subsys0/subsysnqn"), megabyte, 1 << 20);
	dir_instead(subsys_dir(m, 1), "subsysnqn");
	write_bytes(at(m, "sys/class/nvme-subsystem/nvme-subsys2/subsysnqn"), "nqn.2\0hidden\n", 13);
	write_bytes(at(m, "sys/class/nvme-subsystem/nvme-subsys3/subsysnqn"), megabyte, 224);
	write_bytes(at(m, "sys/class/nvme-subsystem/nvme-subsys4/model"), megabyte, 1 << 20);
	dir_instead(subsys_dir(m, 4), "serial");
	for (int i = 0; i < 4; i++)
		dir_instead(ctrl_dir(m, 4), (const char *[]){ "state", "cntlid", "hostnqn", "transport" }[i]);
	/* one that has no name is passed over with its controllers: they are not taken for some without a subsystem */
	assert_topology(m, 0, "nqn.4 4 -/-\n"
			" nvme4 unknown io cntlid=-1 queues=3 - - paths=0\n"
			"! nvme-subsys0: subsysnqn says nothing: File too large\n"
			"! nvme-subsys1: subsysnqn says nothing: Is a directory\n"
			"! nvme-subsys2: subsysnqn says nothing: Invalid or incomplete multibyte or wide character\n"
			"! nvme-subsys3: subsysnqn says nothing: File too large\n");
}

static void the_longest_nqn(void **state)
{
	struct machine *m = *state;
	char nqn[226];

	subsystem(m, 4, NQN);
	for (int length = 222; length <= 224; length++) {
		cleanup_free char *expected = NULL;

		memset(nqn, 'n', length);
		nqn[length] = ' '; /* trimmed first */
		nqn[length + 1] = '\0';
		attr(subsys_dir(m, 4), "subsysnqn", nqn);
		nqn[length] = '\0';
		expected = length <= 223 ? xasprintf("%s 4 Linux/c0ffee\n", nqn) :
					   xstrdup("! nvme-subsys4: subsysnqn says nothing: File too large\n");
		assert_topology(m, 0, expected);
	}
}

static void control_characters_are_kept_as_they_are(void **state)
{
	struct machine *m = *state;

	/* whoever prints them makes them harmless; whoever compares them must see what is there */
	subsystem(m, 4, "nqn.\x1b[2J\n\tx");
	attr(subsys_dir(m, 4), "model", "\x07 \xff");
	assert_topology(m, 0, "nqn.\x1b[2J\n\tx 4 \x07 \xff/c0ffee\n");
}

static void a_fifo_does_not_make_it_wait(void **state)
{
	struct machine *m = *state;
	cleanup_fd int writer = -1;
	char left[8];

	subsystem(m, 4, NQN);
	attr(head(m, 4, 1, "1", UUID1), "size", NULL);
	assert_int_equal(mkfifo(at(m, "sys/class/nvme-subsystem/nvme-subsys4/nvme4n1/size"), 0644), 0);
	assert_topology(m, NO_DEV, SUBSYS
			" nvme4n1 nsid=1 " ID_UUID1 " size=0 paths=0\n"
			"! nvme4n1: size: Invalid argument\n");
	/* in a bundle it is not even opened: that can have effects, as with a device node, which a test may not make */
	writer = open(at(m, "sys/class/nvme-subsystem/nvme-subsys4/nvme4n1/size"), O_RDWR | O_NONBLOCK);
	assert_true(writer >= 0);
	assert_int_equal(write(writer, "2048\n", 5), 5);
	assert_read(m, false, NO_DEV, SUBSYS
		    " nvme4n1 nsid=1 " ID_UUID1 " size=0 paths=0\n"
		    "! nvme4n1: size: Invalid argument\n");
	assert_int_equal(read(writer, left, sizeof(left)), 5);
}

static void what_belongs_to_another(void **state)
{
	struct machine *m = *state;

	subsystem(m, 4, NQN);
	controller(m, 0, 4, NQN);
	disk_in(ctrl_dir(m, 0), "nvme4c1n1", "1", UUID1); /* controller 1's path below controller 0 */
	assert_topology(m, 0, SUBSYS CTRL(0, 1, 0) "! nvme4c1n1: lies under another controller than its name says\n");
	remove_all(at(m, "sys/devices/virtual/nvme-fabrics/ctl/nvme0/nvme4c1n1"));

	subsystem(m, 5, NQN); /* two subsystems of one NQN, both claim controller 0: it is counted once */
	link_instead(subsys_dir(m, 5), "nvme0", "../../nvme-fabrics/ctl/nvme0");
	for (int live = 0; live < 2; live++) {
		struct topo t;

		assert_int_equal(read_machine(m, live, 0, &t), 0);
		assert_int_equal(t.n_subsys, 2);
		assert_int_equal(t.subsys[0].n_ctrl + t.subsys[1].n_ctrl, 1);
		assert_int_equal(t.n_note, 1);
		assert_string_equal(t.note[0], "nvme0: belongs to more than one subsystem");
		topo_free(&t);
	}
}

static void links_that_lead_nowhere(void **state)
{
	struct machine *m = *state;
	char *dir;

	two_by_two(m);
	link_instead(at(m, "sys/class/nvme-subsystem"), "nvme-subsys5", "../../devices/virtual/nvme-subsystem/gone");
	link_instead(at(m, "sys/class/nvme"), "nvme5", "../../devices/gone");
	link_instead(subsys_dir(m, 4), "nvme6", "../../devices/gone");
	link_instead(subsys_dir(m, 4), "nvme4n9", "nvme4n9"); /* to itself */
	dir = head(m, 4, 3, "9", UUID2);
	link_instead(dir, "nsid", "../nowhere");
	link_instead(dir, "size", "size");
	assert_topology(m, NO_DEV, TWO_CTRLS
			" nvme4n3 nsid=0 " ID_UUID2 " size=0 paths=0\n"
			" nvme4n9 nsid=0 nameless size=0 paths=0\n"
			TWO_DISKS FOUR_PATHS
			"! nvme-subsys5: unreadable: No such file or directory\n"
			"! nvme4n3: nsid: No such file or directory\n"
			"! nvme4n3: size: Too many levels of symbolic links\n"
			"! nvme4n9: eui: Too many levels of symbolic links\n"
			"! nvme4n9: nguid: Too many levels of symbolic links\n"
			"! nvme4n9: nsid: Too many levels of symbolic links\n"
			"! nvme4n9: size: Too many levels of symbolic links\n"
			"! nvme4n9: wwid: Too many levels of symbolic links\n"
			"! nvme5: has no subsystem: No such file or directory\n"
			"! nvme6: unreadable: No such file or directory\n");
}

/*
 * A bundle with links to the machine that reads it: what they lead to must not be read, however they are written. Where
 * such a link, taken as one within the bundle, leads to something there, that is read.
 */
static void no_link_leads_out_of_a_bundle(void **state)
{
	struct machine *m = *state;
	cleanup_free char *outside = xstrdup(at(m, "outside"));
	cleanup_free char *secret = xasprintf("%s/secret", outside);
	cleanup_free char *foreign = xasprintf("%s/nvme4n8", outside);
	char *dir;

	subsystem(m, 4, NQN);
	write_bytes(secret, "nvme.1b36-5345-4352-00000001\n", 29);
	disk_in(at(m, "outside"), "nvme4n8", "8", UUID2);
	attr(outside, "subsysnqn", "nqn.secret");

	dir = head(m, 4, 1, "1", UUID1);
	link_instead(dir, "wwid", secret); /* absolute */
	dir = head(m, 4, 2, "2", UUID1);
	link_instead(dir, "wwid", "../../../../../../../../../../../../../../../../etc/hostname");
	dir = head(m, 4, 3, "3", UUID1);
	link_instead(dir, "wwid", "../../../../../../outside/secret"); /* one step too far up */
	dir = head(m, 4, 5, "5", NULL);
	link_instead(dir, "wwid", "/devices/virtual/nvme-subsystem/nvme-subsys4/wwid-inside");
	attr(subsys_dir(m, 4), "wwid-inside", UUID1);
	dir = head(m, 4, 6, "6", NULL);
	link_instead(dir, "wwid", "/proc/self/environ");
	link_instead(subsys_dir(m, 4), "nvme4n8", foreign); /* a whole disk */
	link_instead(subsys_dir(m, 4), "nvme7", outside);   /* a controller */
	link_instead(at(m, "sys/class/nvme-subsystem"), "nvme-subsys9", outside);
	link_instead(at(m, "sys/class/nvme-subsystem"), "nvme-subsys8", "../../../outside");
	assert_read(m, false, NO_DEV, SUBSYS
		    " nvme4n5 nsid=5 " ID_UUID1 " size=1048576 paths=0\n"
		    "! nvme-subsys8: unreadable: No such file or directory\n"
		    "! nvme-subsys9: unreadable: No such file or directory\n"
		    "! nvme4n1: left out: No such file or directory\n"
		    "! nvme4n2: left out: No such file or directory\n"
		    "! nvme4n3: left out: No such file or directory\n"
		    "! nvme4n6: left out: No such file or directory\n"
		    "! nvme4n8: left out: No such file or directory\n"
		    "! nvme7: unreadable: No such file or directory\n");
}

/* ---- changing while it is read ---- */

static void head_comes(struct machine *m, const char *listed)
{
	static bool seen_subsys;

	/* the end of the listing of the subsystem: it had its subsysnqn's neighbours, but not this disk */
	seen_subsys = seen_subsys || streq(listed, "iopolicy");
	if (!seen_subsys || *listed)
		return;
	seen_subsys = false;
	on_listed = NULL;
	head(m, 4, 1, "7", UUID1);
	node(m, "nvme4n1");
}

/* Its path is there when the controller is read. That is no fault: the namespace is just appearing. */
static void a_head_that_comes_after_the_listing(void **state)
{
	struct machine *m = *state;

	for (int live = 0; live < 2; live++) {
		subsystem(m, 4, NQN);
		controller(m, 0, 4, NQN);
		path_to(m, 4, 0, 1, "7", UUID1, "optimized");
		on_listed = head_comes;
		assert_read(m, live, NO_DEV, SUBSYS CTRL(0, 1, 1)
			    " nvme4n1 nsid=7 " ID_UUID1 " size=1048576 paths=1\n"
			    " nvme0 -> nvme4n1 nsid=7 unknown\n");
		assert_null(on_listed);
		remove_all(at(m, "sys/devices"));
	}
}

static void things_vanish(struct machine *m, const char *listed)
{
	static const struct {
		const char *name, *dir;
	} what[] = {
		{ "nvme4n1", "virtual/nvme-subsystem/nvme-subsys4/nvme4n1" },
		{ "nvme4c0n1", "virtual/nvme-fabrics/ctl/nvme0/nvme4c0n1" },
		{ "nvme1", "virtual/nvme-fabrics/ctl/nvme1" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(what); i++) {
		char *dir = at(m, "sys/devices/%s", what[i].dir);

		if (streq(listed, what[i].name) && access(dir, F_OK) == 0)
			remove_all(dir);
	}
}

static void what_vanishes_after_the_listing_is_not_there(void **state)
{
	struct machine *m = *state;

	for (int live = 0; live < 2; live++) {
		two_by_two(m);
		on_listed = things_vanish;
		assert_read(m, live, NO_DEV, SUBSYS CTRL(0, 1, 1)
			    " nvme4n2 nsid=3 " ID_NGUID1 " size=1048576 paths=1\n"
			    " nvme0 -> nvme4n2 nsid=3 unknown\n"
			    "! nvme1: unreadable: No such file or directory\n"
			    "! nvme4c0n1: left out: No such file or directory\n"
			    "! nvme4n1: left out: No such file or directory\n");
		on_listed = NULL;
		remove_all(at(m, "sys/devices"));
	}
}

/* Out of descriptors in the middle: no picture is better than one in which devices are missing. */
static void it_fails_rather_than_show_half(void **state)
{
	struct machine *m = *state;
	cleanup_fd int root = sysfs_open_root(at(m, "sys"));
	struct rlimit was, now;
	struct topo t;
	int err = -EMFILE, tries = 0;

	two_by_two(m);
	assert_true(root >= 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	for (now = was, now.rlim_cur = root + 1; err == -EMFILE; now.rlim_cur++, tries++) {
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &now), 0);
		err = sysfs_read(root, -1, 0, &t);
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
		if (err == -EMFILE)
			assert_int_equal(t.n_subsys, 0);
	}
	assert_int_equal(err, 0);
	assert_true(tries >= 4);
	assert_int_equal(t.subsys[0].n_path, 4);
	topo_free(&t);
}

/* ---- what it costs ---- */

/* Three attributes for a disk, nothing for a path that has a head, and never one that has side effects. */
static void only_what_is_needed_is_opened(void **state)
{
	struct machine *m = *state;
	struct topo t;

	two_by_two(m);
	assert_int_equal(read_machine(m, true, 0, &t), 0);
	topo_free(&t);
	assert_int_equal(times_opened("nvme4n1/"), 3);
	assert_int_equal(times_opened("nvme4n2/"), 3);
	assert_int_equal(times_opened("n1/wwid ") + times_opened("n1/nsid ") + times_opened("n1/size "), 3);
	assert_int_equal(times_opened("nvme4c"), 0);

	assert_int_equal(read_machine(m, true, SYSFS_ANA | SYSFS_IDS, &t), 0);
	topo_free(&t);
	assert_int_equal(times_opened("nvme4c"), 4);
	assert_int_equal(times_opened("/ana_state "), 4);
	assert_int_equal(times_opened("/nguid "), 1); /* the other disk's wwid is its NGUID */
	assert_int_equal(times_opened("/eui "), 2);
	assert_int_equal(times_opened("hidden ") + times_opened("/uuid ") + times_opened("nuse ") +
			 times_opened("delayed_removal_secs ") + times_opened("address "), 0);

	unlink(at(m, "dev/nvme4n1")); /* is it hidden? */
	attr(at(m, "sys/devices/virtual/nvme-subsystem/nvme-subsys4/nvme4n2"), "size", "0");
	assert_int_equal(read_machine(m, true, 0, &t), 0);
	topo_free(&t);
	assert_int_equal(times_opened("nvme4n1/hidden "), 1);
	assert_int_equal(times_opened("nvme4n2/hidden "), 1);
}

static void sizes_from_proc_partitions(void **state)
{
	static const char text[] =
		"major minor  #blocks  name\n\n"
		" 259        0          1 nvme4n1\n"
		" 259        1       1000 nvme4n1p2\n"
		" 259        2 9007199254740991 nvme4n3\n"
		" 259        4          0 nvme4n2\n" /* none of these says a size */
		" 259        5         -7 nvme4n2\n"
		" 259        6          7 nvme4c0n2\n"
		"nvme4n2\n"
		" 259        7          7 nvme4n2"; /* cut off */
	struct machine *m = *state;
	struct topo t;

	two_by_two(m);
	head(m, 4, 3, "9", UUID2);
	node(m, "nvme4n3");
	write_bytes(at(m, "proc/partitions"), text, sizeof(text) - 1);
	assert_topology(m, WITH_PROC, TWO_CTRLS
			" nvme4n2 nsid=3 " ID_NGUID1 " size=1048576 paths=2\n"
			" nvme4n1 nsid=7 " ID_UUID1 " size=1024 paths=2\n"
			" nvme4n3 nsid=9 " ID_UUID2 " size=9223372036854774784 paths=0\n"
			FOUR_PATHS);
	assert_int_equal(read_machine(m, true, WITH_PROC, &t), 0);
	topo_free(&t);
	assert_int_equal(times_opened("/size "), 1);
	unlink(at(m, "proc/partitions"));
	attr(at(m, "sys/devices/virtual/nvme-subsystem/nvme-subsys4/nvme4n3"), "size", "1");
	assert_topology(m, WITH_PROC, TWO_CTRLS TWO_DISKS
			" nvme4n3 nsid=9 " ID_UUID2 " size=512 paths=0\n" FOUR_PATHS);
}

/* Longer than any buffer: every line counts that is cut by the end of one, and none is made of a piece of another. */
static void a_long_proc_partitions(void **state)
{
	struct machine *m = *state;
	struct topo t;
	FILE *f = fopen(at(m, "proc/partitions"), "w");

	assert_non_null(f);
	fprintf(f, "major minor  #blocks  name\n\n");
	for (int i = 1; i <= 2000; i++)
		fprintf(f, " 259 %10d %10d nvme4n%d\n", i, 1000000000 + i, i);
	for (int i = 0; i < 20000; i++)
		fputc('x', f);
	fprintf(f, "\n 259 %10d %10d nvme4n%d\n", 1, 77, 1);
	assert_int_equal(fclose(f), 0);
	subsystem(m, 4, NQN);
	head(m, 4, 1, "1", UUID2);
	for (int z = 200; z < 250; z++) { /* 8 KiB end within the 224th number */
		cleanup_free char *nsid = xasprintf("%d", z);

		head(m, 4, z, nsid, UUID1);
	}
	assert_int_equal(read_machine(m, true, WITH_PROC | NO_DEV, &t), 0);
	assert_int_equal(times_opened("/size "), 0);
	assert_int_equal(t.subsys[0].disk[0].size, 77 * 1024);
	for (size_t i = 1; i < t.subsys[0].n_disk; i++)
		assert_int_equal(t.subsys[0].disk[i].size, (1000000000ULL + t.subsys[0].disk[i].nsid) * 1024);
	topo_free(&t);
}

/* ---- the root ---- */

static void where_the_root_may_be(void **state)
{
	struct machine *m = *state;
	struct topo t;
	int fd;

	assert_int_equal(sysfs_open_root(at(m, "nowhere")), -ENOENT);
	write_bytes(at(m, "file"), "", 0);
	assert_int_equal(sysfs_open_root(at(m, "file")), -ENOTDIR);
	two_by_two(m);
	fd = sysfs_open_root(m->top); /* the copy of a whole root */
	assert_true(fd >= 0);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	assert_int_equal(sysfs_read(fd, -1, 0, &t), 0);
	assert_int_equal(t.n_subsys, 1);
	assert_false(t.ids_complete);
	topo_free(&t);
	assert_int_equal(sysfs_read(fd, -1, SYSFS_IDS, &t), 0);
	assert_true(t.ids_complete);
	topo_free(&t);
	close(fd);
	assert_int_equal(sysfs_read(fd, -1, 0, &t), -EBADF);
	assert_int_equal(t.n_subsys, 0);
	topo_free(&t);
}

static void a_tree_that_is_no_sysfs(void **state)
{
	struct machine *m = *state;
	struct topo t;

	for (int live = 0; live < 2; live++) {
		write_bytes(at(m, "sys/class/nvme-subsystem"), "", 0);
		assert_int_equal(read_machine(m, live, 0, &t), -ENOTDIR);
		unlink(at(m, "sys/class/nvme-subsystem"));
		write_bytes(at(m, "sys/class/nvme"), "", 0);
		assert_int_equal(read_machine(m, live, 0, &t), -ENOTDIR);
		unlink(at(m, "sys/class/nvme"));
	}
	assert_int_equal(sysfs_read_with(open(at(m, "sys"), O_RDONLY), 9999, -1, 0, &t), -EBADF);
}

/* This machine's own, whatever it has: what is promised of every topology. */
static void the_live_sysfs(void **state)
{
	cleanup_fd int root = sysfs_open_root("/sys");
	cleanup_fd int dev = open("/dev", O_RDONLY | O_DIRECTORY);
	cleanup_fd int proc = open("/proc", O_RDONLY | O_DIRECTORY);
	struct topo t;

	if (root < 0)
		skip();
	assert_int_equal(sysfs_read_with(root, dev, proc, SYSFS_IDS | SYSFS_ANA, &t), 0);
	for (size_t i = 0; i < t.n_subsys; i++) {
		const struct topo_subsys *s = &t.subsys[i];

		assert_non_null(s->nqn);
		for (size_t k = 0; k < s->n_disk; k++) {
			assert_true(s->disk[k].ctrl < (int)s->n_ctrl);
			assert_true(s->disk[k].nsid && !ident_empty(&s->disk[k].id));
		}
		for (size_t k = 0; k < s->n_path; k++)
			assert_true(s->path[k].ctrl < (int)s->n_ctrl && s->path[k].disk < (int)s->n_disk);
	}
	topo_free(&t);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, start_machine, stop_machine)
	const struct CMUnitTest tests[] = {
		TEST(names_that_only_look_like_disks),
		TEST(the_largest_names_fit),
		TEST(attributes_that_are_not_what_they_should_be),
		TEST(the_longest_nqn),
		TEST(control_characters_are_kept_as_they_are),
		TEST(a_fifo_does_not_make_it_wait),
		TEST(what_belongs_to_another),
		TEST(links_that_lead_nowhere),
		TEST(no_link_leads_out_of_a_bundle),
		TEST(a_head_that_comes_after_the_listing),
		TEST(what_vanishes_after_the_listing_is_not_there),
		TEST(it_fails_rather_than_show_half),
		TEST(only_what_is_needed_is_opened),
		TEST(sizes_from_proc_partitions),
		TEST(a_long_proc_partitions),
		TEST(where_the_root_may_be),
		TEST(a_tree_that_is_no_sysfs),
		TEST(the_live_sysfs),
	};

	return cmocka_run_group_tests_name("sysfs-hostile", tests, NULL, NULL);
}
