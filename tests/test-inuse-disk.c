/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Who uses a disk: dm-multipath above it, what is wrong with the disk itself, and whether it can still be read. */
#include "inuse-host.h"

#include <errno.h>
#include <stdlib.h>

/* Above the kernel's largest possible PID (2^22), so that no process of this machine is meant. */
#define QEMU 5000000
#define MULTIPATHD 5000010

#define MPATH "mpath-uuid.5ca1ab1e-0000-4000-8000-000000000001"
#define ALL_GONE ((const char *const[]){ "nvme0n1", "nvme1n1", NULL })
#define ONE_GONE ((const char *const[]){ "nvme0n1", NULL })
#define CLAIMED \
	"dm-0 (mpatha) is claimed by somebody who could not be found (a file system of several devices, ZFS, or a " \
	"mount in a namespace without processes)"
#define NO_NODE "whether it is in use cannot be found out: /dev/nvme0n2: "

static int set_up(void **state)
{
	struct host *h = host_new();

	has_disk(h, "nvme-subsys0", "nvme0n2", "259:2");
	has_generic(h, "nvme-subsys0", "ng0n2", "240:2");
	has_process(h, QEMU, "qemu-system-x86");
	*state = h;
	return 0;
}

/* Two controllers with a disk each, as with native multipath off, and a dm-multipath map over both. */
static int set_up_map(void **state)
{
	struct host *h = host_new();

	has_ctrl(h, "nvme0", "live");
	has_ctrl(h, "nvme1", "live");
	has_disk(h, "nvme0", "nvme0n1", "259:0");
	has_disk(h, "nvme1", "nvme1n1", "259:1");
	has_map(h, "dm-0", "mpatha", MPATH, "253:0");
	maps(h, "dm-0", "nvme0n1");
	maps(h, "dm-0", "nvme1n1");
	has_process(h, MULTIPATHD, "multipathd");
	has_open(h, MULTIPATHD, 7, "dev/nvme0n1");
	has_open(h, MULTIPATHD, 8, "dev/nvme1n1");
	has_process(h, QEMU, "qemu-system-x86");
	*state = h;
	return 0;
}

static int tear_down(void **state)
{
	host_free(*state);
	return 0;
}

/* ---- dm-multipath over the disks of two controllers ---- */

static void path_of_a_map_is_no_removal(void **state)
{
	assert_free(*state, "nvme0n1", ONE_GONE);
	assert_int_equal(opened("dm-0"), 0);
}

static void last_path_of_an_idle_map(void **state)
{
	assert_free(*state, "nvme0n1", ALL_GONE);
	assert_int_equal(opened("dm-0"), 1); /* asked whether it can be claimed */
	assert_int_equal(opened("nvme0n1"), 0);
}

static void last_path_of_a_mounted_map(void **state)
{
	struct host *h = *state;

	claimed(h, "dev/dm-0");
	has_mounts(h, 1, "mnt:[1]", "31 1 253:0 / /data rw - ext4 /dev/mapper/mpatha rw\n");
	assert_used(h, "nvme0n1", ALL_GONE, "dm-0 (mpatha) is mounted on /data");
	assert_free(h, "nvme0n1", ONE_GONE);
}

static void last_path_of_a_map_that_is_open(void **state)
{
	has_open(*state, QEMU, 3, "dev/dm-0");
	assert_used(*state, "nvme0n1", ALL_GONE, "dm-0 (mpatha) is opened by qemu-system-x86 (pid 5000000)");
}

static void last_path_of_a_map_that_is_claimed(void **state)
{
	claimed(*state, "dev/dm-0");
	assert_used(*state, "nvme0n1", ALL_GONE, CLAIMED);
}

static void last_path_of_a_map_that_is_held(void **state)
{
	struct host *h = *state;

	has_map(h, "dm-1", "vg0-root", "LVM-abc", "253:1");
	maps(h, "dm-1", "dm-0");
	assert_used(h, "nvme0n1", ALL_GONE, "dm-0 (mpatha) is held by dm-1 (vg0-root)");
}

static void other_path_does_not_work(void **state)
{
	struct host *h = *state;

	claimed(h, "dev/dm-0");
	put(h, "sys/devices/nvme1/state", "connecting\n");
	assert_used(h, "nvme0n1", ONE_GONE, CLAIMED);
	assert_used(h, "nvme0n1", NULL, CLAIMED);
	drop(h, "sys/devices/nvme1/state");
	assert_used(h, "nvme0n1", ONE_GONE, CLAIMED);
	put(h, "sys/devices/nvme1/state", "live\n");
	assert_free(h, "nvme0n1", ONE_GONE);
}

static void paths_of_the_map_cannot_be_seen(void **state)
{
	drop(*state, "sys/class/block/dm-0/slaves");
	assert_used(*state, "nvme0n1", ONE_GONE,
		    "the paths of dm-0 (mpatha) cannot be seen: No such file or directory");
}

static void path_itself_is_open(void **state)
{
	has_open(*state, QEMU, 3, "dev/nvme0n1");
	assert_used(*state, "nvme0n1", ONE_GONE, "opened by qemu-system-x86 (pid 5000000)");
	assert_free(*state, "nvme1n1", ONE_GONE);
}

/* kpartx makes maps of the partitions of a map unasked. */
static void partition_maps_count_by_their_users(void **state)
{
	struct host *h = *state;

	has_map(h, "dm-1", "mpatha-part1", "part1-" MPATH, "253:1");
	maps(h, "dm-1", "dm-0");
	assert_free(h, "nvme0n1", ALL_GONE);
	has_open(h, QEMU, 3, "dev/dm-1");
	assert_used(h, "nvme0n1", ALL_GONE, "dm-1 (mpatha-part1) is opened by qemu-system-x86 (pid 5000000)");
}

/* "partners-mpath-1" is a name that somebody gave, not a partition of a map. */
static void maps_that_look_like_multipath(void **state)
{
	struct host *h = *state;

	put(h, "sys/class/block/dm-0/dm/uuid", "partners-mpath-1\n");
	assert_used(h, "nvme0n1", ONE_GONE, "held by dm-0 (mpatha)");
	put(h, "sys/class/block/dm-0/dm/uuid", "CRYPT-mpath-1\n");
	assert_used(h, "nvme0n1", ONE_GONE, "held by dm-0 (mpatha)");
	put(h, "sys/class/block/dm-0/dm/uuid", "cope1-mpath-1\n");
	assert_used(h, "nvme0n1", ONE_GONE, "held by dm-0 (mpatha)");
	put(h, "sys/class/block/dm-0/dm/uuid", "part-mpath-1\n");
	assert_used(h, "nvme0n1", ONE_GONE, "held by dm-0 (mpatha)");
	drop(h, "sys/class/block/dm-0/dm/uuid");
	assert_used(h, "nvme0n1", ONE_GONE, "held by dm-0 (mpatha)");
}

static void second_holder_beside_the_map(void **state)
{
	struct host *h = *state;

	put_link(h, "sys/class/block/nvme0n1/holders/bcache0", "../x");
	assert_used(h, "nvme0n1", ONE_GONE, "held by bcache0");
}

/* The kernel cannot make one; a damaged tree must not keep us for ever. */
static void maps_in_a_circle(void **state)
{
	struct host *h = *state;

	put(h, "sys/class/block/dm-0/dm/uuid", "part1-mpath-x\n");
	put_link(h, "sys/class/block/dm-0/holders/dm-0", "../x");
	assert_used(h, "nvme0n1", ALL_GONE, "maps upon maps: too many to look through");
}

/* ---- the disk itself ---- */

static void names_that_are_no_disks(void **state)
{
	assert_used(*state, "../nvme0n2", NULL, "'../nvme0n2' is not a disk's name");
	assert_used(*state, "nvme0n2/nvme0n2p1", NULL, "'nvme0n2/nvme0n2p1' is not a disk's name");
	assert_used(*state, ".", NULL, "'.' is not a disk's name");
	assert_used(*state, "", NULL, "'' is not a disk's name");
	assert_used(*state, "nvme0n2\n", NULL, "'nvme0n2?' is not a disk's name");
}

static void disk_is_gone(void **state)
{
	assert_used(*state, "nvme9n9", NULL, "the entry in sysfs of nvme9n9 cannot be seen: No such file or directory");
}

static void number_is_unreadable(void **state)
{
	put(*state, "sys/class/block/nvme0n2/dev", "259:x\n");
	assert_used(*state, "nvme0n2", NULL, "the entry in sysfs of nvme0n2 cannot be seen: Invalid argument");
}

static void has_no_node(void **state)
{
	drop(*state, "dev/nvme0n2");
	assert_used(*state, "nvme0n2", NULL, NO_NODE "No such file or directory");
}

/* Opening what is there in place of the disk could do anything. */
static void node_is_another_device(void **state)
{
	struct host *h = *state;

	put(h, "dev/nvme0n2", "block 8:0");
	assert_used(h, "nvme0n2", NULL, NO_NODE "Block device required");
	put(h, "dev/nvme0n2", "char 259:2");
	assert_used(h, "nvme0n2", NULL, NO_NODE "Block device required");
	drop(h, "dev/nvme0n2");
	put(h, "dev/real", "block 259:2");
	put_link(h, "dev/nvme0n2", "real");
	assert_used(h, "nvme0n2", NULL, NO_NODE "Block device required");
	assert_int_equal(opened("nvme0n2") + opened("real"), 0);
}

static void one_look_serves_many(void **state)
{
	struct host *h = *state;
	struct inuse_look *look;
	cleanup_free char *user = NULL, *none = NULL;

	has_disk(h, "nvme-subsys0", "nvme0n3", "259:9");
	has_open(h, QEMU, 3, "dev/nvme0n2");
	look = inuse_look(&h->roots);
	assert_int_equal(inuse_check_in(look, "nvme0n3", NULL, 0, &none), 0);
	assert_null(none);
	assert_int_equal(inuse_check_in(look, "nvme0n2", NULL, 0, &user), 1);
	assert_string_equal(user, "opened by qemu-system-x86 (pid 5000000)");
	inuse_look_free(look);
	inuse_look_free(NULL);
}

/* ---- reading one block ---- */

static void block_can_be_read(void **state)
{
	struct host *h = *state;

	assert_int_equal(inuse_readable(&h->roots, "nvme0n2"), 1);
}

static void reads_that_mean_gone(void **state)
{
	static const int gone[] = { EIO, ENXIO, ENODEV, EOPNOTSUPP, EREMOTEIO, -1 /* nothing to read */ };
	struct host *h = *state;

	for (size_t i = 0; i < ARRAY_SIZE(gone); i++) {
		reads_fail(gone[i]);
		assert_int_equal(inuse_readable(&h->roots, "nvme0n2"), 0);
	}
}

static void reads_that_fail_of_the_living(void **state)
{
	static const int alive[] = { EBADE, ENODATA, EILSEQ, ENOLINK, ETIMEDOUT, ENOMEM, EAGAIN };
	struct host *h = *state;

	for (size_t i = 0; i < ARRAY_SIZE(alive); i++) {
		reads_fail(alive[i]);
		assert_int_equal(inuse_readable(&h->roots, "nvme0n2"), -alive[i]);
	}
}

static void reading_cannot_be_tried(void **state)
{
	struct host *h = *state;

	assert_int_equal(inuse_readable(&h->roots, "../dev/nvme0n2"), -EINVAL);
	assert_int_equal(inuse_readable(&h->roots, "nvme9n9"), -ENOENT);
	assert_int_equal(inuse_readable(&h->roots, "ng0n2"), -ENOTBLK);
	fails("nvme0n2", EPERM);
	assert_int_equal(inuse_readable(&h->roots, "nvme0n2"), -EPERM);
}

#define TEST(t) cmocka_unit_test_setup_teardown(t, set_up, tear_down)
#define MAP_TEST(t) cmocka_unit_test_setup_teardown(t, set_up_map, tear_down)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		MAP_TEST(path_of_a_map_is_no_removal),
		MAP_TEST(last_path_of_an_idle_map),
		MAP_TEST(last_path_of_a_mounted_map),
		MAP_TEST(last_path_of_a_map_that_is_open),
		MAP_TEST(last_path_of_a_map_that_is_claimed),
		MAP_TEST(last_path_of_a_map_that_is_held),
		MAP_TEST(other_path_does_not_work),
		MAP_TEST(paths_of_the_map_cannot_be_seen),
		MAP_TEST(path_itself_is_open),
		MAP_TEST(partition_maps_count_by_their_users),
		MAP_TEST(maps_that_look_like_multipath),
		MAP_TEST(second_holder_beside_the_map),
		MAP_TEST(maps_in_a_circle),
		TEST(names_that_are_no_disks),
		TEST(disk_is_gone),
		TEST(number_is_unreadable),
		TEST(has_no_node),
		TEST(node_is_another_device),
		TEST(one_look_serves_many),
		TEST(block_can_be_read),
		TEST(reads_that_mean_gone),
		TEST(reads_that_fail_of_the_living),
		TEST(reading_cannot_be_tried),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
