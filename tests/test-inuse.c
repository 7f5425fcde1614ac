/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Who uses a disk: against a host of plain files. The running kernel's word on it is test-inuse-kernel.c. */
#include "inuse-host.h"

#include <errno.h>
#include <stdlib.h>

/* Above the kernel's largest possible PID (2^22), so that no process of this machine is meant. */
#define QEMU 5000000
#define QEMU_THREAD "5000001"
#define MULTIPATHD 5000010
#define CONTAINER 5000020

/* A head of a subsystem, as with native multipath: with a partition and a generic character device. */
static int set_up(void **state)
{
	struct host *h = host_new();

	has_disk(h, "nvme-subsys0", "nvme0n2", "259:2");
	has_partition(h, "nvme-subsys0", "nvme0n2", "nvme0n2p1", "259:3");
	has_generic(h, "nvme-subsys0", "ng0n2", "240:2");
	has_generic(h, "nvme-subsys0", "ng0n1", "240:1");
	put_link(h, "sys/devices/nvme-subsys0/nvme0", "../nvme0");
	has_process(h, QEMU, "qemu-system-x86");
	*state = h;
	return 0;
}

static int tear_down(void **state)
{
	host_free(*state);
	return 0;
}

/* ---- nobody ---- */

static void nobody_uses_it(void **state)
{
	assert_free(*state, "nvme0n2", NULL);
	assert_int_equal(opened("nvme0n2"), 1); /* the claim, last */
	assert_int_equal(opened("nvme0n2p1"), 0);
}

static void others_are_used(void **state)
{
	struct host *h = *state;

	has_disk(h, "nvme-subsys0", "nvme0n21", "259:21");
	has_partition(h, "nvme-subsys0", "nvme0n21", "nvme0n21p1", "259:22");
	claimed(h, "dev/nvme0n21");
	has_open(h, QEMU, 3, "dev/nvme0n21");
	has_open(h, QEMU, 4, "dev/nvme0n21p1");
	has_open(h, QEMU, 5, "dev/ng0n1");
	put(h, "sys/devices/nvme-subsys0/nvme0n2/other/dev", "259:31\n"); /* not a partition */
	put(h, "dev/other", "block 259:31");
	has_open(h, QEMU, 6, "dev/other");
	has_mounts(h, 1, "mnt:[1]", "30 1 259:21 / /data rw - ext4 /dev/nvme0n21 rw\n");
	has_export(h, "nqn.2024-01.test:other", "1", "/dev/nvme0n21", "1");
	assert_free(h, "nvme0n2", NULL);
}

static void files_and_sockets_are_no_devices(void **state)
{
	struct host *h = *state;

	put(h, "dev/shm/file", "block");
	has_open(h, QEMU, 0, "/dev/null");
	has_open(h, QEMU, 1, "socket:[4711]");
	has_open(h, QEMU, 2, "anon_inode:[eventpoll]");
	has_open(h, QEMU, 3, "dev/shm/file");
	assert_free(h, "nvme0n2", NULL);
}

/* A disk of that number that is a character device, and the other way round. */
static void numbers_of_the_other_type_do_not_count(void **state)
{
	struct host *h = *state;

	put(h, "dev/tape", "char 259:2");
	put(h, "dev/other", "block 240:2");
	has_open(h, QEMU, 3, "dev/tape");
	has_open(h, QEMU, 4, "dev/other");
	assert_free(h, "nvme0n2", NULL);
}

/* ---- open files ---- */

static void disk_is_open(void **state)
{
	has_open(*state, QEMU, 12, "dev/nvme0n2");
	assert_used(*state, "nvme0n2", NULL, "opened by qemu-system-x86 (pid 5000000)");
	assert_int_equal(opened("nvme0n2"), 0); /* what is in use is not touched */
}

static void partition_is_open(void **state)
{
	has_open(*state, QEMU, 12, "dev/nvme0n2p1");
	assert_used(*state, "nvme0n2", NULL, "nvme0n2p1 is opened by qemu-system-x86 (pid 5000000)");
}

static void generic_device_is_open(void **state)
{
	has_open(*state, QEMU, 12, "dev/ng0n2");
	assert_used(*state, "nvme0n2", NULL, "ng0n2 is opened by qemu-system-x86 (pid 5000000)");
}

/* A private namespace: the disk is numbered by subsystem, the character device by controller. */
static void generic_device_of_another_number_is_open(void **state)
{
	struct host *h = *state;

	has_disk(h, "nvme3", "nvme0n7", "259:7");
	has_generic(h, "nvme3", "ng3n7", "240:7");
	has_open(h, QEMU, 12, "dev/ng3n7");
	assert_used(h, "nvme0n7", NULL, "ng3n7 is opened by qemu-system-x86 (pid 5000000)");
}

static void open_under_any_name(void **state)
{
	struct host *h = *state;

	put(h, "dev/volumes/pvc-1", "block 259:2");
	has_open(h, QEMU, 12, "dev/volumes/pvc-1");
	assert_used(h, "nvme0n2", NULL, "opened by qemu-system-x86 (pid 5000000)");
}

/* By a thread that left the common table, or while the first thread has ended: the process's own table is empty. */
static void open_in_a_thread_only(void **state)
{
	struct host *h = *state;
	cleanup_free char *node = xasprintf("%s/dev/nvme0n2", h->top);

	put_link(h, "proc/5000000/task/" QEMU_THREAD "/fd/3", node);
	assert_used(h, "nvme0n2", NULL, "opened by qemu-system-x86 (pid 5000000)");
}

static void names_from_outside_are_made_printable(void **state)
{
	struct host *h = *state;

	has_process(h, CONTAINER, "evil\x1b[2J\xff");
	has_open(h, CONTAINER, 3, "dev/nvme0n2");
	assert_used(h, "nvme0n2", NULL, "opened by evil?[2J? (pid 5000020)");
}

/* Only paths of maps are multipathd's to keep open. */
static void multipathd_has_it_open_without_a_map(void **state)
{
	struct host *h = *state;

	has_process(h, MULTIPATHD, "multipathd");
	has_open(h, MULTIPATHD, 3, "dev/nvme0n2");
	assert_used(h, "nvme0n2", NULL, "opened by multipathd (pid 5000010)");
}

/* ---- what cannot be seen counts as use ---- */

#define UNSEEN "the open files of qemu-system-x86 (pid 5000000) cannot be seen: "

static void table_is_denied(void **state)
{
	fails("5000000/fd", EACCES);
	assert_used(*state, "nvme0n2", NULL, UNSEEN "Permission denied");
	assert_int_equal(opened("nvme0n2"), 0);
}

static void link_is_denied(void **state)
{
	has_open(*state, QEMU, 77, "dev/nvme0n2");
	fails("77", EACCES);
	assert_used(*state, "nvme0n2", NULL, UNSEEN "Permission denied");
}

static void threads_are_denied(void **state)
{
	fails("5000000/task", EACCES);
	assert_used(*state, "nvme0n2", NULL, UNSEEN "Permission denied");
}

static void thread_table_is_denied(void **state)
{
	put_dir(*state, "proc/5000000/task/" QEMU_THREAD "/fd");
	fails("5000000/task/" QEMU_THREAD "/fd", EACCES);
	assert_used(*state, "nvme0n2", NULL, UNSEEN "Permission denied");
}

static void no_descriptor_is_left_to_look(void **state)
{
	fails("5000000/fd", EMFILE);
	assert_used(*state, "nvme0n2", NULL, UNSEEN "Too many open files");
}

/* A user that was found is said rather than what was not seen. */
static void user_is_known_although_not_all_was_seen(void **state)
{
	struct host *h = *state;

	has_process(h, CONTAINER, "secret");
	fails("5000020/fd", EACCES);
	has_open(h, QEMU, 3, "dev/nvme0n2");
	assert_used(h, "nvme0n2", NULL, "opened by qemu-system-x86 (pid 5000000)");
}

static void process_ends_meanwhile(void **state)
{
	ends_when_asked(*state, "5000000/fd", "proc/5000000");
	assert_free(*state, "nvme0n2", NULL);
}

/* The kernel then cannot find out whether the link may be read, and says no (proc_fd_access_allowed). */
static void process_ends_between_list_and_link(void **state)
{
	has_open(*state, QEMU, 77, "dev/nvme0n2");
	fails("77", EACCES);
	ends_when_asked(*state, "77", "proc/5000000");
	assert_free(*state, "nvme0n2", NULL);
}

static void thread_ends_meanwhile(void **state)
{
	put_dir(*state, "proc/5000000/task/" QEMU_THREAD "/fd");
	ends_when_asked(*state, "5000000/task/" QEMU_THREAD "/fd", "proc/5000000/task/" QEMU_THREAD);
	assert_free(*state, "nvme0n2", NULL);
}

static void descriptor_is_closed_meanwhile(void **state)
{
	has_open(*state, QEMU, 77, "dev/nvme0n2");
	fails("77", ENOENT);
	assert_free(*state, "nvme0n2", NULL);
}

static void in_a_container_nothing_is_known(void **state)
{
	struct host *h = *state;

	drop(h, "proc/1/ns/pid");
	put_link(h, "proc/1/ns/pid", "pid:[4026532201]");
	assert_used(h, "nvme0n2", NULL, "the processes of the host cannot be seen from this PID namespace");
}

/* With hidepid= other users' processes are not even listed; who may not look at process 1 cannot tell. */
static void without_privilege_nothing_is_known(void **state)
{
	fails("1/ns/pid", EACCES);
	assert_used(*state, "nvme0n2", NULL,
		    "the processes of this host cannot be seen: /proc/1/ns/pid: Permission denied");
}

static void proc_is_not_there(void **state)
{
	drop(*state, "proc/1");
	assert_used(*state, "nvme0n2", NULL,
		    "the processes of this host cannot be seen: /proc/1/ns/pid: No such file or directory");
}

static void loop_devices_cannot_be_listed(void **state)
{
	drop(*state, "sys/block");
	assert_used(*state, "nvme0n2", NULL, "/sys/block cannot be read: No such file or directory");
}

/* ---- mounts and swap ---- */

static void is_mounted(void **state)
{
	struct host *h = *state;

	claimed(h, "dev/nvme0n2");
	has_mounts(h, 1, "mnt:[4026531840]",
		   "22 27 0:21 / /proc rw - proc proc rw\n"
		   "31 1 259:2 / /srv/my\\040data rw,relatime shared:1 - ext4 /dev/nvme0n2 rw\n");
	assert_used(h, "nvme0n2", NULL, "mounted on /srv/my data");
}

static void partition_is_mounted(void **state)
{
	struct host *h = *state;

	claimed(h, "dev/nvme0n2");
	has_mounts(h, 1, "mnt:[4026531840]", "31 1 259:3 / /data rw - ext4 /dev/nvme0n2p1 rw\n");
	assert_used(h, "nvme0n2", NULL, "nvme0n2p1 is mounted on /data");
}

static void is_mounted_in_a_namespace(void **state)
{
	struct host *h = *state;

	claimed(h, "dev/nvme0n2");
	has_mounts(h, 1, "mnt:[4026531840]", "22 27 0:21 / /proc rw - proc proc rw\n");
	has_process(h, CONTAINER, "postgres");
	has_mounts(h, CONTAINER, "mnt:[4026532999]", "31 1 259:2 / /var/lib/pg rw - xfs /dev/xvda rw\n");
	assert_used(h, "nvme0n2", NULL, "mounted on /var/lib/pg in the mount namespace of postgres (pid 5000020)");
}

/* btrfs shows a number of its own. */
static void is_mounted_with_an_anonymous_number(void **state)
{
	struct host *h = *state;

	claimed(h, "dev/nvme0n2");
	has_mounts(h, 1, "mnt:[1]", "31 1 0:45 / /data rw - btrfs /dev/nvme0n2 rw\n");
	assert_used(h, "nvme0n2", NULL, "mounted on /data");
}

/* Of what a file system without a device says of its source, nothing follows but for a node below /dev. */
static void mount_tables_may_be_odd(void **state)
{
	struct host *h = *state;
	cleanup_free char *table = xasprintf("31 1 0:48 / /data rw - fuse.mirror %s/dev/nvme0n2 rw\n", h->top);

	has_process(h, CONTAINER, "mirror");
	has_mounts(h, CONTAINER, "mnt:[2]", table);
	has_mounts(h, 1, "mnt:[1]",
		   "\n - \n31 1 259:2\n31 1 259:2 / /data rw\nx 1 259:2 / / rw - a b c\n"
		   "31 1 0:45 / /data rw - btrfs\n31 1 0:46 / /data rw - overlay /dev rw\n"
		   "31 1 0:47 / /data rw - btrfs /dev/gone rw");
	assert_free(h, "nvme0n2", NULL);
}

static void is_claimed_by_somebody(void **state)
{
	claimed(*state, "dev/nvme0n2");
	assert_used(*state, "nvme0n2", NULL,
		    "claimed by somebody who could not be found (a file system of several devices, ZFS, or a mount in "
		    "a namespace without processes)");
}

static void is_swap(void **state)
{
	struct host *h = *state;

	claimed(h, "dev/nvme0n2");
	put(h, "proc/swaps",
	    "Filename\t\t\t\tType\t\tSize\tUsed\tPriority\n"
	    "/swap\\040file                           file\t\t4\t0\t-2\n"
	    "/dev/nvme0n2p1                          partition\t4\t0\t-3\n");
	assert_used(h, "nvme0n2", NULL, "nvme0n2p1 is in use as swap space");
}

/* ---- holders ---- */

static void is_held(void **state)
{
	struct host *h = *state;

	has_map(h, "dm-3", "vg0-data", "LVM-abcdef", "253:3");
	maps(h, "dm-3", "nvme0n2");
	assert_used(h, "nvme0n2", NULL, "held by dm-3 (vg0-data)");
	assert_int_equal(opened("nvme0n2"), 0);
}

static void partition_is_held(void **state)
{
	struct host *h = *state;

	put_link(h, "sys/class/block/nvme0n2p1/holders/md127", "../x");
	assert_used(h, "nvme0n2", NULL, "nvme0n2p1 is held by md127");
}

static void holder_of_an_odd_name(void **state)
{
	struct host *h = *state;

	put_link(h, "sys/class/block/nvme0n2/holders/md\n..", "../x");
	assert_used(h, "nvme0n2", NULL, "held by md?..");
}

static void holders_cannot_be_seen(void **state)
{
	drop(*state, "sys/class/block/nvme0n2p1/holders");
	assert_used(*state, "nvme0n2", NULL, "the holders of nvme0n2p1 cannot be seen: No such file or directory");
}

/* ---- loop devices ---- */

static void has_loop(struct host *h, const char *name, const char *backing, const char *node)
{
	cleanup_free char *attr = xasprintf("sys/block/%s/loop/backing_file", name);
	cleanup_free char *dev = xasprintf("dev/%s", name), *line = xasprintf("%s\n", backing);

	put(h, attr, line);
	put(h, dev, node);
}

static void backs_a_loop_device(void **state)
{
	has_loop(*state, "loop0", "/dev/nvme0n2", "block 7:0 backed-by 259:2");
	assert_used(*state, "nvme0n2", NULL, "backing loop0");
}

static void partition_backs_a_loop_device(void **state)
{
	has_loop(*state, "loop11", "/dev/nvme0n2p1", "block 7:11 backed-by 259:3");
	assert_used(*state, "nvme0n2", NULL, "nvme0n2p1 is backing loop11");
}

/* The path is one of a container, or of a node that was deleted since: the kernel knows the number. */
static void backs_a_loop_device_by_another_name(void **state)
{
	struct host *h = *state;

	has_loop(h, "loop0", "/volumes/pvc-1 (deleted)", "block 7:0 backed-by 259:2");
	assert_used(h, "nvme0n2", NULL, "backing loop0");
	put(h, "dev/xvda", "block 202:0");
	has_loop(h, "loop0", "/dev/xvda", "block 7:0 backed-by 259:2");
	assert_used(h, "nvme0n2", NULL, "backing loop0");
}

static void loop_devices_of_others(void **state)
{
	struct host *h = *state;

	put(h, "dev/xvda", "block 202:0");
	put(h, "dev/image", "x");
	has_loop(h, "loop0", "/dev/xvda", "block 7:0 backed-by 202:0");
	has_loop(h, "loop1", "/dev/image", "block 7:1 backed-by 259:2"); /* a file: the kernel is not asked */
	put_dir(h, "sys/block/loop2");
	assert_free(h, "nvme0n2", NULL);
	assert_int_equal(opened("loop1"), 0);
	assert_int_equal(opened("loop2"), 0);
}

static void loop_device_is_detached_meanwhile(void **state)
{
	has_loop(*state, "loop0", "/gone", "block 7:0");
	assert_free(*state, "nvme0n2", NULL);
}

static void loop_device_cannot_be_asked(void **state)
{
	has_loop(*state, "loop0", "/gone", "block 7:0 backed-by 202:0");
	fails("loop0", EPERM);
	assert_used(*state, "nvme0n2", NULL, "what backs loop0 cannot be found out: Operation not permitted");
}

/* ---- exports ---- */

static void is_exported(void **state)
{
	struct host *h = *state;

	has_export(h, "nqn.2024-01.test:exported", "1", "/dev/nvme0n2", "1");
	assert_used(h, "nvme0n2", NULL, "exported by the kernel's NVMe target as nqn.2024-01.test:exported");
}

static void is_exported_by_a_link(void **state)
{
	struct host *h = *state;

	put_link(h, "dev/disk/by-id/nvme-uuid.1-part1", "../../nvme0n2p1");
	has_export(h, "nqn.2024-01.test:exported", "1", "/dev/disk/by-id/nvme-uuid.1-part1", "1");
	assert_used(h, "nvme0n2", NULL,
		    "nvme0n2p1 is exported by the kernel's NVMe target as nqn.2024-01.test:exported");
}

static void disabled_export_is_no_use(void **state)
{
	struct host *h = *state;

	has_export(h, "nqn.2024-01.test:exported", "1", "/dev/nvme0n2", "0");
	has_export(h, "nqn.2024-01.test:exported", "2", "(null)", "0");
	assert_free(h, "nvme0n2", NULL);
}

static void what_is_exported_cannot_be_found_out(void **state)
{
	struct host *h = *state;

	has_export(h, "nqn.2024-01.test:exported", "1", "/dev/gone", "1");
	assert_used(h, "nvme0n2", NULL,
		    "the kernel's NVMe target exports /dev/gone, and which device that is cannot be found out: No such "
		    "file or directory");
}

static void exports_cannot_be_read(void **state)
{
	struct host *h = *state;

	has_export(h, "nqn.2024-01.test:exported", "1", "/dev/gone", "1");
	fails("nvmet/subsystems/nqn.2024-01.test:exported/namespaces", EACCES);
	assert_used(h, "nvme0n2", NULL, "what the kernel's NVMe target exports cannot be read: Permission denied");
}

/* The target's module is there, its configuration is mounted elsewhere or not at all. */
static void target_without_configfs(void **state)
{
	struct host *h = *state;

	put_dir(h, "sys/module/nvmet");
	assert_used(h, "nvme0n2", NULL,
		    "what the kernel's NVMe target exports cannot be read: configfs: No such file or directory");
	put_dir(h, "config/nvmet/subsystems");
	assert_free(h, "nvme0n2", NULL);
}

static void without_configfs(void **state)
{
	struct host *h = *state;
	struct inuse_roots roots = h->roots;
	cleanup_free char *user = NULL;

	roots.configfs = -1;
	assert_int_equal(inuse_check(&roots, "nvme0n2", NULL, 0, &user), 0);
	put_dir(h, "sys/module/nvmet");
	assert_int_equal(inuse_check(&roots, "nvme0n2", NULL, 0, &user), 1);
	assert_string_equal(user,
			    "what the kernel's NVMe target exports cannot be read: configfs: No such file or "
			    "directory");
}

static void controller_is_passed_through(void **state)
{
	struct host *h = *state;

	put(h, "config/nvmet/subsystems/nqn.x/passthru/device_path", "/dev/nvme0\n");
	put(h, "config/nvmet/subsystems/nqn.x/passthru/enable", "1\n");
	assert_used(h, "nvme0n2", NULL, "reached through nvme0, which the kernel's NVMe target exports as nqn.x");
	has_ctrl(h, "nvme3", "live");
	has_disk(h, "nvme3", "nvme0n7", "259:7");
	assert_free(h, "nvme0n7", NULL);
	put(h, "config/nvmet/subsystems/nqn.x/passthru/device_path", "/dev/nvme3\n");
	assert_used(h, "nvme0n7", NULL, "reached through nvme3, which the kernel's NVMe target exports as nqn.x");
	assert_free(h, "nvme0n2", NULL);
	put(h, "config/nvmet/subsystems/nqn.x/passthru/device_path", "/dev/disk0\n");
	assert_used(h, "nvme0n2", NULL,
		    "the kernel's NVMe target passes /dev/disk0 through, and which controller that is cannot be found "
		    "out");
	put(h, "config/nvmet/subsystems/nqn.x/passthru/enable", "0\n");
	assert_free(h, "nvme0n2", NULL);
}

static void is_exported_by_lio(void **state)
{
	struct host *h = *state;

	claimed(h, "dev/nvme0n2");
	put(h, "config/target/core/iblock_0/vol1/udev_path", "/dev/nvme0n2\n");
	put(h, "config/target/core/alua/lu_gps/udev_path", "/dev/nvme0n2\n");
	assert_used(h, "nvme0n2", NULL, "exported by the kernel's SCSI target (LIO) as vol1");
}

static void is_exported_by_rnbd(void **state)
{
	put_dir(*state, "sys/class/rnbd-server/ctl/devices/nvme0n2");
	assert_used(*state, "nvme0n2", NULL, "exported by the kernel's RNBD server");
}

#define TEST(t) cmocka_unit_test_setup_teardown(t, set_up, tear_down)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(nobody_uses_it),
		TEST(others_are_used),
		TEST(files_and_sockets_are_no_devices),
		TEST(numbers_of_the_other_type_do_not_count),
		TEST(disk_is_open),
		TEST(partition_is_open),
		TEST(generic_device_is_open),
		TEST(generic_device_of_another_number_is_open),
		TEST(open_under_any_name),
		TEST(open_in_a_thread_only),
		TEST(names_from_outside_are_made_printable),
		TEST(multipathd_has_it_open_without_a_map),
		TEST(table_is_denied),
		TEST(link_is_denied),
		TEST(threads_are_denied),
		TEST(thread_table_is_denied),
		TEST(no_descriptor_is_left_to_look),
		TEST(user_is_known_although_not_all_was_seen),
		TEST(process_ends_meanwhile),
		TEST(process_ends_between_list_and_link),
		TEST(thread_ends_meanwhile),
		TEST(descriptor_is_closed_meanwhile),
		TEST(in_a_container_nothing_is_known),
		TEST(without_privilege_nothing_is_known),
		TEST(proc_is_not_there),
		TEST(loop_devices_cannot_be_listed),
		TEST(is_mounted),
		TEST(partition_is_mounted),
		TEST(is_mounted_in_a_namespace),
		TEST(is_mounted_with_an_anonymous_number),
		TEST(mount_tables_may_be_odd),
		TEST(is_claimed_by_somebody),
		TEST(is_swap),
		TEST(is_held),
		TEST(partition_is_held),
		TEST(holder_of_an_odd_name),
		TEST(holders_cannot_be_seen),
		TEST(backs_a_loop_device),
		TEST(partition_backs_a_loop_device),
		TEST(backs_a_loop_device_by_another_name),
		TEST(loop_devices_of_others),
		TEST(loop_device_is_detached_meanwhile),
		TEST(loop_device_cannot_be_asked),
		TEST(is_exported),
		TEST(is_exported_by_a_link),
		TEST(disabled_export_is_no_use),
		TEST(what_is_exported_cannot_be_found_out),
		TEST(exports_cannot_be_read),
		TEST(target_without_configfs),
		TEST(without_configfs),
		TEST(controller_is_passed_through),
		TEST(is_exported_by_lio),
		TEST(is_exported_by_rnbd),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
