/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Which files are the configuration: their places and precedence, whom they belong to, when they have changed.
 */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "config.h"

/* ---- a machine's files, below a directory of our own ---- */

struct tree {
	char root[64];
	struct config_paths paths;
};

static char *in_tree(const struct tree *t, const char *path)
{
	return xasprintf("%s/%s", t->root, path);
}

static int make_tree(void **state)
{
	struct tree *t = xcalloc(1, sizeof(*t));
	static const char *const dirs[] = { "etc", "etc/d", "run", "run/d", "lib", "lib/d" };

	snprintf(t->root, sizeof(t->root), "/tmp/nsheal-config-XXXXXX");
	if (!mkdtemp(t->root))
		return -1;
	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++) {
		cleanup_free char *path = in_tree(t, dirs[i]);

		if (mkdir(path, 0755) < 0 || chmod(path, 0755) < 0)
			return -1;
	}
	t->paths = (struct config_paths){ .file = in_tree(t, "etc/conf"),
					  .dir = { in_tree(t, "lib/d"), in_tree(t, "run/d"), in_tree(t, "etc/d") } };
	*state = t;
	return 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(path);
}

static int remove_tree(void **state)
{
	struct tree *t = *state;
	int err = nftw(t->root, remove_one, 8, FTW_DEPTH | FTW_PHYS);

	config_paths_clear(&t->paths);
	free(t);
	return err;
}

static void put(const struct tree *t, const char *path, const char *text)
{
	cleanup_free char *full = in_tree(t, path);
	cleanup_fd int fd = open(full, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(fchmod(fd, 0644), 0);
	assert_int_equal(write_all(fd, text, strlen(text)), 0);
}

/* A drop-in that expects one namespace of that NSID. */
static void put_nsid(const struct tree *t, const char *path, unsigned nsid)
{
	cleanup_free char *text = xasprintf("[subsystem]\nnqn = a\nnamespace = nsid=%u\n", nsid);

	put(t, path, text);
}

static void put_link(const struct tree *t, const char *path, const char *target)
{
	cleanup_free char *full = in_tree(t, path);

	assert_int_equal(symlink(target, full), 0);
}

static void set_mode(const struct tree *t, const char *path, mode_t mode)
{
	cleanup_free char *full = in_tree(t, path);

	assert_int_equal(chmod(full, mode), 0);
}

static void take_away(const struct tree *t, const char *path)
{
	cleanup_free char *full = in_tree(t, path);

	assert_int_equal(remove(full), 0);
}

/* One fault a line. Caller frees. */
static char *join_faults(const struct config *c)
{
	char *text = xstrdup("");

	for (size_t i = 0; i < c->faults.n; i++) {
		cleanup_free char *before = text;

		text = xasprintf("%s%s\n", before, c->faults.text[i]);
	}
	return text;
}

/* The NSIDs that are expected, in the order of the files that say so. */
static void assert_expects(const struct tree *t, const char *want)
{
	cleanup_free char *got = xstrdup(""), *faults = NULL;
	struct config c;
	int err = config_load(&c, &t->paths);

	faults = join_faults(&c);
	assert_string_equal(faults, "");
	assert_int_equal(err, 0);
	for (size_t i = 0; i < c.expect.n_subsys; i++)
		for (size_t k = 0; k < c.expect.subsys[i].n_ns; k++) {
			cleanup_free char *before = got;

			got = xasprintf("%s%s%u", before, *before ? " " : "", c.expect.subsys[i].ns[k].nsid_first);
		}
	assert_string_equal(got, want);
	config_free(&c);
}

/* want: the faults, with the tree's own path taken out */
static void assert_faults(const struct tree *t, const char *want)
{
	cleanup_free char *root = xasprintf("%s/", t->root);
	struct config c;
	char *got, *p;

	assert_int_equal(config_load(&c, &t->paths), -EINVAL);
	assert_int_equal(c.expect.n_subsys, 0);
	got = join_faults(&c);
	while ((p = strstr(got, root)) != NULL)
		memmove(p, p + strlen(root), strlen(p + strlen(root)) + 1);
	assert_string_equal(got, want);
	free(got);
	config_free(&c);
}

static void nothing_at_all_is_fine(void **state)
{
	struct tree *t = *state;

	assert_expects(t, "");
	take_away(t, "run/d");
	take_away(t, "lib/d");
	take_away(t, "etc/d");
	assert_expects(t, "");
	put(t, "etc/conf", "");
	assert_expects(t, "");
}

static void drop_ins_come_after_the_file_in_the_order_of_their_names(void **state)
{
	struct tree *t = *state;

	put_nsid(t, "etc/conf", 99);
	put_nsid(t, "run/d/10-b.conf", 2);
	put_nsid(t, "etc/d/9.conf", 5);
	put_nsid(t, "lib/d/10-a.conf", 1);
	put_nsid(t, "lib/d/10-c.conf", 3);
	put_nsid(t, "etc/d/10-d.conf", 4);
	assert_expects(t, "99 1 2 3 4 5");
}

static void of_one_name_etc_beats_run_beats_lib(void **state)
{
	struct tree *t = *state;

	put_nsid(t, "lib/d/a.conf", 1);
	put_nsid(t, "lib/d/b.conf", 2);
	put_nsid(t, "lib/d/c.conf", 3);
	put_nsid(t, "run/d/b.conf", 12);
	put_nsid(t, "run/d/c.conf", 13);
	put_nsid(t, "etc/d/c.conf", 23);
	assert_expects(t, "1 12 23");
	put(t, "etc/d/c.conf", "");
	assert_expects(t, "1 12");
}

static void a_link_to_dev_null_masks(void **state)
{
	struct tree *t = *state;
	struct config c;

	put_nsid(t, "lib/d/a.conf", 1);
	put_nsid(t, "run/d/b.conf", 2);
	put_link(t, "etc/d/b.conf", "/dev/null");
	t->paths.check_owner = true; /* /dev/null may be written by anybody */
	assert_expects(t, "1");
	assert_int_equal(config_load(&c, &t->paths), 0);
	assert_int_equal(c.n_file, 1);
	assert_non_null(strstr(c.file[0], "lib/d/a.conf"));
	config_free(&c);
}

static void only_names_that_end_in_conf_are_read(void **state)
{
	struct tree *t = *state;

	put(t, "etc/d/.hidden.conf", "broken");
	put(t, "etc/d/.conf", "broken");
	put(t, "etc/d/a.conf.tmp", "broken");
	put(t, "etc/d/a.conf~", "broken");
	put(t, "etc/d/aconf", "broken");
	put(t, "etc/d/README", "broken");
	put_nsid(t, "etc/d/a b.conf", 1);
	assert_expects(t, "1");
}

static void a_link_is_followed(void **state)
{
	struct tree *t = *state;
	cleanup_free char *target = in_tree(t, "run/real");

	put_nsid(t, "run/real", 1);
	put_link(t, "etc/conf", target);
	t->paths.check_owner = true;
	assert_expects(t, "1");
	set_mode(t, "run/real", 0664);
	assert_faults(t, "etc/conf: its group can write it: chmod go-w etc/conf\n");
}

static void what_is_no_file_is_a_fault(void **state)
{
	struct tree *t = *state;
	cleanup_free char *dir = in_tree(t, "etc/d/a.conf"), *fifo = in_tree(t, "etc/d/b.conf");

	assert_int_equal(mkdir(dir, 0755), 0);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	put_link(t, "etc/d/c.conf", "nowhere");
	put_link(t, "etc/d/d.conf", "d.conf");
	put_link(t, "etc/conf", "/");
	take_away(t, "run/d");
	put(t, "run/d", "");
	assert_faults(t, "etc/conf: it is a directory; a file is expected\n"
			 "run/d: cannot be read as a directory: Not a directory\n"
			 "etc/d/a.conf: it is a directory; a file is expected\n"
			 "etc/d/b.conf: it is not a regular file\n"
			 "etc/d/c.conf: it is a link to a file that is not there; a link to /dev/null masks a file\n"
			 "etc/d/d.conf: cannot be opened: Too many levels of symbolic links\n");
}

static void ten_megabytes_are_refused(void **state)
{
	struct tree *t = *state;
	cleanup_free char *path = in_tree(t, "etc/conf");

	put(t, "etc/conf", "");
	assert_int_equal(truncate(path, 10 << 20), 0);
	assert_faults(t, "etc/conf: it has 10485760 bytes; a configuration file has at most 8388608\n");
	/* the largest that is read; these are NULs */
	assert_int_equal(truncate(path, 8 << 20), 0);
	assert_faults(t, "etc/conf:1: a NUL byte: this is not a text file (or one in UTF-16: save it as UTF-8)\n");
}

static void a_file_without_end_is_refused(void **state)
{
	struct tree *t = *state;

	put_link(t, "etc/conf", "/dev/zero");
	assert_faults(t, "etc/conf: it is not a regular file\n");
}

static void a_file_that_others_can_write_is_refused(void **state)
{
	struct tree *t = *state;

	put_nsid(t, "etc/conf", 1);
	put_nsid(t, "etc/d/a.conf", 2);
	put(t, "run/d/b.conf", "broken");
	set_mode(t, "etc/conf", 0664);
	set_mode(t, "etc/d/a.conf", 0646);
	set_mode(t, "run/d/b.conf", 0666);
	set_mode(t, "lib/d", 0777);
	t->paths.check_owner = true;
	assert_faults(t, "etc/conf: its group can write it: chmod go-w etc/conf\n"
			 "lib/d: everybody can write it: chmod go-w lib/d\n"
			 "etc/d/a.conf: everybody can write it: chmod go-w etc/d/a.conf\n"
			 "run/d/b.conf: everybody can write it: chmod go-w run/d/b.conf\n");
	take_away(t, "run/d/b.conf");
	t->paths.check_owner = false;
	assert_expects(t, "1 2");
}

static void a_file_of_somebody_else_is_refused(void **state)
{
	struct tree *t = *state;
	cleanup_free char *path = in_tree(t, "etc/conf");

	put_nsid(t, "etc/conf", 1);
	t->paths.check_owner = true;
	assert_expects(t, "1"); /* our own, whoever we are */
	if (geteuid() != 0)
		return; /* nobody else's file can be made */
	assert_int_equal(chown(path, 1234, 0), 0);
	assert_faults(t, "etc/conf: it belongs to user 1234, neither to root nor to us: chown root etc/conf\n");
	set_mode(t, "etc/conf", 0664);
	assert_faults(t, "etc/conf: it belongs to user 1234, neither to root nor to us: chown root etc/conf\n"
			 "etc/conf: its group can write it: chmod go-w etc/conf\n");
}

static void sections_merge_over_files(void **state)
{
	struct tree *t = *state;
	struct config c;

	put(t, "etc/conf", "[subsystem array]\nnqn = a\nnamespace = nsid=1\n");
	put(t, "etc/d/1.conf", "[subsystem]\nnqn = a\nnamespace = nsid=2\ngrace = 1s\n");
	put(t, "lib/d/2.conf", "[defaults]\ngrace = 9s\nbackoff = 1s\n");
	assert_int_equal(config_load(&c, &t->paths), 0);
	assert_int_equal(c.n_file, 3);
	assert_int_equal(c.expect.n_subsys, 1);
	assert_string_equal(c.expect.subsys[0].label, "array");
	assert_int_equal(c.expect.subsys[0].n_ns, 2);
	assert_int_equal(c.expect.subsys[0].policy.grace, NS_PER_SEC);
	assert_int_equal(c.expect.subsys[0].policy.backoff, NS_PER_SEC);
	config_free(&c);
}

static void faults_between_files_name_both_places(void **state)
{
	struct tree *t = *state;

	put(t, "etc/conf", "[subsystem x]\nnqn = a\nnamespace = nsid=1-9\ngrace = 5s\n[defaults]\npaths = any\n");
	put(t, "etc/d/1.conf", "[subsystem]\nnqn = a\nnamespace = nsid=7\ngrace = 6s\nbroken\n");
	put(t, "run/d/2.conf", "[subsystem x]\nnqn = b\n[defaults]\npaths = all\n");
	assert_faults(t, "etc/d/1.conf:3: the namespace is expected at etc/conf:3 already (nsid=7)\n"
			 "etc/d/1.conf:4: grace is set to something else at etc/conf:4: one value for both is needed\n"
			 "etc/d/1.conf:5: broken is not understood: KEY = VALUE, a [section] or a comment is\n"
			 "run/d/2.conf:1: the label x stands for another NQN at etc/conf:1\n"
			 "run/d/2.conf:4: paths is set to something else at etc/conf:6: one value for both is needed\n");
}

static void config_option_reads_that_file_and_its_directory_only(void **state)
{
	struct tree *t = *state;
	cleanup_free char *file = in_tree(t, "etc/my.conf"), *dir = in_tree(t, "etc/my.conf.d");

	put_nsid(t, "etc/conf", 1);
	put_nsid(t, "etc/d/a.conf", 2);
	config_paths_clear(&t->paths);
	assert_null(t->paths.file);
	config_paths_file(&t->paths, file);
	assert_true(t->paths.check_owner == (geteuid() == 0));
	assert_faults(t, "etc/my.conf: cannot be opened: No such file or directory\n");
	put_nsid(t, "etc/my.conf", 3);
	assert_expects(t, "3");
	assert_int_equal(mkdir(dir, 0755), 0);
	put_nsid(t, "etc/my.conf.d/b.conf", 4);
	assert_expects(t, "3 4");
}

static void the_system_has_three_directories(void **state)
{
	struct config_paths p;

	config_paths_system(&p);
	assert_string_equal(p.file, SYSCONFDIR "/nvme-nsheal.conf");
	assert_string_equal(p.dir[0], PREFIXLIBDIR "/nvme-nsheal.conf.d");
	assert_string_equal(p.dir[1], RUNCONFDIR "/nvme-nsheal.conf.d");
	assert_string_equal(p.dir[2], SYSCONFDIR "/nvme-nsheal.conf.d");
	assert_null(p.dir[3]);
	assert_false(p.required);
	assert_true(p.check_owner == (geteuid() == 0));
	config_paths_clear(&p);
}

/* ---- the stamp ---- */

static void set_times(const struct tree *t, const char *path)
{
	const struct timespec when[2] = { { .tv_sec = 1 }, { .tv_sec = 1 } };
	cleanup_free char *full = in_tree(t, path);

	assert_int_equal(utimensat(AT_FDCWD, full, when, 0), 0);
}

static void wait_for_a_tick(void)
{
	usleep(25000);
}

/* *stamp becomes the present one. */
static bool stamp_changed(const struct tree *t, uint64_t *stamp)
{
	uint64_t before = *stamp;

	*stamp = config_stamp(&t->paths);
	assert_int_not_equal(*stamp, 0);
	return *stamp != before;
}

static void the_stamp_changes_with_every_file_that_counts(void **state)
{
	struct tree *t = *state;
	cleanup_free char *a = in_tree(t, "run/d/a.conf"), *b = in_tree(t, "run/d/b.conf"), *dir = in_tree(t, "lib/d");
	uint64_t stamp = config_stamp(&t->paths);

	assert_false(stamp_changed(t, &stamp));
	put(t, "etc/conf", "one");
	assert_true(stamp_changed(t, &stamp));
	wait_for_a_tick();
	put(t, "etc/conf", "two"); /* of the same size, in place */
	assert_true(stamp_changed(t, &stamp));
	set_times(t, "etc/conf");
	assert_true(stamp_changed(t, &stamp));
	wait_for_a_tick();
	put(t, "etc/conf", "six");
	set_times(t, "etc/conf"); /* and of the same time, as rsync and tar do */
	assert_true(stamp_changed(t, &stamp));
	put(t, "run/d/a.conf", "");
	assert_true(stamp_changed(t, &stamp));
	assert_int_equal(rename(a, b), 0);
	assert_true(stamp_changed(t, &stamp));
	wait_for_a_tick();
	set_mode(t, "run/d/b.conf", 0666);
	assert_true(stamp_changed(t, &stamp));
	take_away(t, "run/d/b.conf");
	assert_true(stamp_changed(t, &stamp));
	put_link(t, "etc/d/c.conf", "/dev/null");
	assert_true(stamp_changed(t, &stamp));
	take_away(t, "lib/d");
	assert_true(stamp_changed(t, &stamp));
	assert_int_equal(mkdir(dir, 0755), 0);
	assert_true(stamp_changed(t, &stamp));
	assert_false(stamp_changed(t, &stamp));
}

static void the_stamp_follows_links(void **state)
{
	struct tree *t = *state;
	uint64_t stamp;

	put(t, "run/one", "1");
	put(t, "run/two", "1");
	put_link(t, "etc/conf", "../run/one");
	stamp = config_stamp(&t->paths);
	put(t, "run/one", "12");
	assert_true(stamp_changed(t, &stamp));
	take_away(t, "etc/conf");
	put_link(t, "etc/conf", "../run/two");
	assert_true(stamp_changed(t, &stamp));
	take_away(t, "run/two"); /* a fault from now on, which must be seen */
	assert_true(stamp_changed(t, &stamp));
}

/*
 * A change within the same tick of the clock as the last one leaves size, inode and times as they were. So a stamp that
 * was taken so soon is no stamp of what was read. Several attempts: the machine may be busy just then.
 */
static void a_file_that_has_just_changed_is_read_again(void **state)
{
	struct tree *t = *state;
	bool again = false;
	struct config c;

	for (unsigned i = 0; i < 50 && !again; i++) {
		put(t, "etc/conf", "[defaults]\ngrace = 1s\n");
		assert_int_equal(config_load(&c, &t->paths), 0);
		assert_true(c.stamp != 0);
		again = c.stamp != config_stamp(&t->paths);
		config_free(&c);
	}
	assert_true(again);
	wait_for_a_tick();
	assert_int_equal(config_load(&c, &t->paths), 0);
	assert_true(c.stamp == config_stamp(&t->paths));
	config_free(&c);
}

#define IN_TREE(test) cmocka_unit_test_setup_teardown(test, make_tree, remove_tree)

static const struct CMUnitTest tests[] = {
	IN_TREE(nothing_at_all_is_fine),
	IN_TREE(drop_ins_come_after_the_file_in_the_order_of_their_names),
	IN_TREE(of_one_name_etc_beats_run_beats_lib),
	IN_TREE(a_link_to_dev_null_masks),
	IN_TREE(only_names_that_end_in_conf_are_read),
	IN_TREE(a_link_is_followed),
	IN_TREE(what_is_no_file_is_a_fault),
	IN_TREE(ten_megabytes_are_refused),
	IN_TREE(a_file_without_end_is_refused),
	IN_TREE(a_file_that_others_can_write_is_refused),
	IN_TREE(a_file_of_somebody_else_is_refused),
	IN_TREE(sections_merge_over_files),
	IN_TREE(faults_between_files_name_both_places),
	IN_TREE(config_option_reads_that_file_and_its_directory_only),
	cmocka_unit_test(the_system_has_three_directories),
	IN_TREE(the_stamp_changes_with_every_file_that_counts),
	IN_TREE(the_stamp_follows_links),
	IN_TREE(a_file_that_has_just_changed_is_read_again),
};

int main(void)
{
	return cmocka_run_group_tests_name("configuration files", tests, NULL, NULL);
}
