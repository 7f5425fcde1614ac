/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Who uses a disk: what the running kernel says, with loop devices in place of NVMe disks. With root and loop devices
 * all of it; without, what holds for everybody: who may not look finds everything in use. The rest of the truth, with
 * NVMe disks, mounts and maps, is in the test machine (vm/scenarios/in-use.sh).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/blkpg.h>
#include <linux/loop.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "inuse.h"

#define SIZE (4 << 20)
#define COMM "test-inuse"
#define NOBODY 65534

struct loop {
	int fd, number;
	char name[16], node[32];
};

struct fixture {
	struct inuse_roots roots;
	struct loop loop;
};

/*
 * The tests with root run in a PID namespace of their own, so that nothing else on this machine changes their answers;
 * its process 1 counts as the host's.
 */
static bool is_host;

ssize_t readlinkat(int dirfd, const char *restrict path, char *restrict buf, size_t size)
{
	static const char host[] = "pid:[4026531836]";
	ssize_t (*real)(int, const char *, char *, size_t) =
		(ssize_t (*)(int, const char *, char *, size_t))dlsym(RTLD_NEXT, "readlinkat");

	if (!is_host || !streq(path, "1/ns/pid"))
		return real(dirfd, path, buf, size);
	assert_true(size > strlen(host));
	memcpy(buf, host, strlen(host));
	return (ssize_t)strlen(host);
}

/* ---- loop devices ---- */

static int open_node(const char *node, int flags)
{
	int fd = open(node, flags | O_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

/* Another program may take the free one first. */
static void attach(struct loop *loop, int backing, uint32_t flags)
{
	int control = open_node("/dev/loop-control", O_RDWR);
	struct loop_config config = { .fd = (uint32_t)backing, .info.lo_flags = flags };

	for (;;) {
		loop->number = ioctl(control, LOOP_CTL_GET_FREE);
		assert_true(loop->number >= 0);
		snprintf(loop->name, sizeof(loop->name), "loop%d", loop->number);
		snprintf(loop->node, sizeof(loop->node), "/dev/%s", loop->name);
		loop->fd = open_node(loop->node, O_RDONLY);
		if (ioctl(loop->fd, LOOP_CONFIGURE, &config) == 0)
			break;
		assert_int_equal(errno, EBUSY);
		close(loop->fd);
	}
	close(control);
	close(loop->fd);
}

static void detach(struct loop *loop)
{
	int fd = open_node(loop->node, O_RDONLY);

	assert_int_equal(ioctl(fd, LOOP_CLR_FD), 0);
	close(fd);
}

static bool have_loops(void)
{
	return geteuid() == 0 && access("/dev/loop-control", R_OK | W_OK) == 0;
}

/* Told to the kernel directly: not every kernel reads every kind of partition table. */
static void add_partition(const struct loop *loop)
{
	struct blkpg_partition part = { .start = 1 << 20, .length = 1 << 20, .pno = 1 };
	struct blkpg_ioctl_arg arg = { .op = BLKPG_ADD_PARTITION, .datalen = sizeof(part), .data = &part };
	int fd = open_node(loop->node, O_RDONLY);

	assert_int_equal(ioctl(fd, BLKPG, &arg), 0);
	close(fd);
}

static int set_up(void **state)
{
	struct fixture *f = xcalloc(1, sizeof(*f));
	char path[] = "/tmp/test-inuse-kernel.XXXXXX";
	int file = mkostemp(path, O_CLOEXEC);

	assert_true(file >= 0);
	unlink(path);
	assert_int_equal(ftruncate(file, SIZE), 0);
	attach(&f->loop, file, LO_FLAGS_PARTSCAN);
	close(file);
	add_partition(&f->loop);
	f->roots = (struct inuse_roots){ .sys = open_node("/sys", O_RDONLY), .dev = open_node("/dev", O_RDONLY),
					 .proc = open_node("/proc", O_RDONLY),
					 .configfs = open("/sys/kernel/config", O_RDONLY | O_CLOEXEC) };
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	detach(&f->loop);
	close(f->roots.sys);
	close(f->roots.dev);
	close(f->roots.proc);
	if (f->roots.configfs >= 0)
		close(f->roots.configfs);
	free(f);
	return 0;
}

/* ---- answers ---- */

static void assert_used(const struct fixture *f, const char *by)
{
	cleanup_free char *user = NULL;

	if (inuse_check(&f->roots, f->loop.name, NULL, 0, &user) != 1)
		fail_msg("%s should be %s, but is free", f->loop.name, by);
	assert_string_equal(user, by);
}

static void assert_free(const struct fixture *f)
{
	cleanup_free char *user = NULL;

	if (inuse_check(&f->roots, f->loop.name, NULL, 0, &user) != 0)
		fail_msg("%s should be free, but: %s", f->loop.name, user);
}

/* ---- another process that holds something until it is told to end ---- */

struct holder {
	pid_t pid;
	int socket;
};

/* In the child, hold is called once; what it opens stays open. */
static struct holder start_holder(void (*hold)(const struct fixture *), const struct fixture *f)
{
	struct holder h;
	int pair[2];
	char byte = 0;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	h.pid = fork();
	assert_true(h.pid >= 0);
	if (h.pid == 0) {
		close(pair[0]);
		hold(f);
		if (write(pair[1], &byte, 1) != 1 || read(pair[1], &byte, 1) < 0)
			_exit(1);
		_exit(0);
	}
	close(pair[1]);
	assert_int_equal(read(pair[0], &byte, 1), 1);
	h.socket = pair[0];
	return h;
}

static void end_holder(const struct holder *h)
{
	int status;

	close(h->socket);
	assert_int_equal(waitpid(h->pid, &status, 0), h->pid);
	assert_int_equal(status, 0);
}

static void become_nobody(void)
{
	if (setgroups(0, NULL) < 0 || setgid(NOBODY) < 0 || setuid(NOBODY) < 0)
		_exit(2);
}

static void held_by_a_process(struct fixture *f, void (*hold)(const struct fixture *), const char *what)
{
	struct holder h = start_holder(hold, f);
	cleanup_free char *by = xasprintf("%sopened by " COMM " (pid %d)", what, h.pid);

	assert_used(f, by);
	end_holder(&h);
	assert_free(f);
}

/* ---- cases ---- */

static void nobody_uses_it(void **state)
{
	assert_free(*state);
	assert_free(*state); /* the claim of the first was given back */
}

static void open_disk(const struct fixture *f)
{
	if (open(f->loop.node, O_RDONLY) < 0)
		_exit(2);
}

static void opened_by_a_process(void **state)
{
	held_by_a_process(*state, open_disk, "");
}

static void open_disk_as_nobody(const struct fixture *f)
{
	open_disk(f);
	become_nobody();
}

static void opened_by_another_user(void **state)
{
	held_by_a_process(*state, open_disk_as_nobody, "");
}

/* As in a container that was given a node of its own, which is even deleted by now. */
static void open_deleted_node(const struct fixture *f)
{
	char dir[] = "/tmp/test-inuse-kernel.XXXXXX";
	cleanup_free char *node = NULL;
	struct stat st;

	if (!mkdtemp(dir) || stat(f->loop.node, &st) < 0)
		_exit(2);
	node = xasprintf("%s/data", dir);
	if (mknod(node, S_IFBLK | 0600, st.st_rdev) < 0 || open(node, O_RDONLY) < 0 || unlink(node) < 0 ||
	    rmdir(dir) < 0)
		_exit(3);
}

static void opened_through_a_node_that_is_gone(void **state)
{
	held_by_a_process(*state, open_deleted_node, "");
}

static void *open_in_own_table(void *arg)
{
	if (unshare(CLONE_FILES) < 0)
		_exit(2);
	open_disk(arg);
	((struct fixture *)arg)->loop.fd = -1; /* done */
	pause();
	return NULL;
}

static void start_thread_with_own_table(const struct fixture *f)
{
	static struct fixture copy;
	pthread_t thread;

	copy = *f;
	copy.loop.fd = 0;
	if (pthread_create(&thread, NULL, open_in_own_table, &copy) != 0)
		_exit(2);
	while (((volatile struct fixture *)&copy)->loop.fd == 0)
		poll(NULL, 0, 10);
}

static void opened_by_a_thread_that_shares_no_files(void **state)
{
	held_by_a_process(*state, start_thread_with_own_table, "");
}

/* The first thread ends, the second goes on: the process is a zombie with open files. */
struct second_thread {
	const struct fixture *f;
	int socket;
};

static void *outlive_the_first(void *arg)
{
	const struct second_thread *t = arg;
	char byte = 0;

	poll(NULL, 0, 100);
	if (write(t->socket, &byte, 1) != 1 || read(t->socket, &byte, 1) < 0)
		_exit(1);
	_exit(0);
}

static void opened_by_a_process_without_its_first_thread(void **state)
{
	struct fixture *f = *state;
	struct holder h;
	int pair[2];
	char byte;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	h = (struct holder){ .pid = fork(), .socket = pair[0] };
	assert_true(h.pid >= 0);
	if (h.pid == 0) {
		static struct second_thread t;
		pthread_t thread;

		close(pair[0]);
		open_disk(f);
		t = (struct second_thread){ f, pair[1] };
		if (pthread_create(&thread, NULL, outlive_the_first, &t) != 0)
			_exit(2);
		pthread_exit(NULL);
	}
	close(pair[1]);
	assert_int_equal(read(pair[0], &byte, 1), 1);
	{
		cleanup_free char *by = xasprintf("opened by " COMM " (pid %d)", h.pid);

		assert_used(f, by);
	}
	end_holder(&h);
	assert_free(f);
}

static void open_partition(const struct fixture *f)
{
	cleanup_free char *node = xasprintf("%sp1", f->loop.node);

	if (open(node, O_RDONLY) < 0)
		_exit(2);
}

static void partition_is_open(void **state)
{
	struct fixture *f = *state;
	cleanup_free char *what = xasprintf("%sp1 is ", f->loop.name);

	held_by_a_process(f, open_partition, what);
}

static void backs_a_loop_device(void **state)
{
	struct fixture *f = *state;
	struct loop above;
	cleanup_free char *by = NULL;
	int fd = open_node(f->loop.node, O_RDONLY);

	attach(&above, fd, LO_FLAGS_READ_ONLY);
	close(fd);
	by = xasprintf("backing %s", above.name);
	assert_used(f, by);
	detach(&above);
	assert_free(f);
}

/* Attached by a node that no path leads to any more: the kernel alone knows. */
static void backs_a_loop_device_by_a_node_that_is_gone(void **state)
{
	struct fixture *f = *state;
	char dir[] = "/tmp/test-inuse-kernel.XXXXXX";
	cleanup_free char *node = NULL, *by = NULL;
	struct loop above;
	struct stat st;
	int fd;

	assert_non_null(mkdtemp(dir));
	assert_int_equal(stat(f->loop.node, &st), 0);
	node = xasprintf("%s/data", dir);
	assert_int_equal(mknod(node, S_IFBLK | 0600, st.st_rdev), 0);
	fd = open_node(node, O_RDONLY);
	attach(&above, fd, LO_FLAGS_READ_ONLY);
	close(fd);
	assert_int_equal(unlink(node), 0);
	assert_int_equal(rmdir(dir), 0);
	by = xasprintf("backing %s", above.name);
	assert_used(f, by);
	detach(&above);
	assert_free(f);
}

static void one_block_can_be_read(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(inuse_readable(&f->roots, f->loop.name), 1);
	assert_int_equal(inuse_readable(&f->roots, "loop-control"), -EINVAL);
	assert_int_equal(inuse_readable(&f->roots, "null"), -ENOTBLK);
	assert_int_equal(inuse_readable(&f->roots, "nosuchdisk"), -ENOENT);
}

/* Whoever may not see all, as any user, is told so, and never "free". */
static void who_may_not_look_finds_everything_in_use(void **state)
{
	struct inuse_roots r = { .sys = open_node("/sys", O_RDONLY), .dev = open_node("/dev", O_RDONLY),
				 .proc = open_node("/proc", O_RDONLY), .configfs = -1 };
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		cleanup_free char *user = NULL;
		struct inuse_look *look;
		int ret;

		if (geteuid() == 0)
			become_nobody();
		look = inuse_look(&r);
		ret = inuse_check_in(look, "loop0", NULL, 0, &user);
		inuse_look_free(look);
		_exit(ret == 1 && user ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	close(r.sys);
	close(r.dev);
	close(r.proc);
}

#define TEST(t) cmocka_unit_test_setup_teardown(t, set_up, tear_down)

/* What the kernel refuses here (in a container) cannot be shown here. _exit: a leak check cannot trace process 1. */
static void become_host(int (*tests)(void))
{
	int status;
	pid_t pid;

	if (unshare(CLONE_NEWPID | CLONE_NEWNS) < 0)
		_exit(0);
	pid = fork();
	if (pid == 0) {
		if (mount("", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 || mount("proc", "/proc", "proc", 0, NULL) < 0)
			_exit(0);
		is_host = true;
		status = tests();
		fflush(NULL);
		_exit(status);
	}
	_exit(pid < 0 || waitpid(pid, &status, 0) != pid || status != 0);
}

/* 0: all passed. */
static int run_as_host(int (*tests)(void))
{
	int status;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid == 0)
		become_host(tests);
	return pid < 0 || waitpid(pid, &status, 0) != pid || status != 0;
}

static int root_tests(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(nobody_uses_it),
		TEST(opened_by_a_process),
		TEST(opened_by_another_user),
		TEST(opened_through_a_node_that_is_gone),
		TEST(opened_by_a_thread_that_shares_no_files),
		TEST(opened_by_a_process_without_its_first_thread),
		TEST(partition_is_open),
		TEST(backs_a_loop_device),
		TEST(backs_a_loop_device_by_a_node_that_is_gone),
		TEST(one_block_can_be_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
	static const struct CMUnitTest everybody[] = {
		cmocka_unit_test(who_may_not_look_finds_everything_in_use),
	};
	int failed;

	prctl(PR_SET_NAME, COMM);
	failed = cmocka_run_group_tests(everybody, NULL, NULL);
	return have_loops() ? failed + run_as_host(root_tests) : failed;
}
