/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * inuse-tool NAME [GONE...]: prints "free" or "busy: WHO" for a disk of this machine. inuse-tool --read NAME: prints
 * whether a block can be read. For scenarios in the test machine.
 */
#include "inuse.h"

#include <fcntl.h>
#include <stdio.h>

static int open_root(const char *path)
{
	return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static void say_readable(const struct inuse_roots *r, const char *name)
{
	int ret = inuse_readable(r, name);

	if (ret < 0)
		printf("not tried: %s\n", strerror(-ret));
	else
		puts(ret ? "readable" : "gone");
}

int main(int argc, char **argv)
{
	struct inuse_roots r = { open_root("/sys"), open_root("/dev"), open_root("/proc"),
				 open_root("/sys/kernel/config") };
	cleanup_free char *user = NULL;

	if (argc < 2 || r.sys < 0 || r.dev < 0 || r.proc < 0) {
		fputs("Usage: inuse-tool NAME [GONE...] | --read NAME\n", stderr);
		return 2;
	}
	if (streq(argv[1], "--read") && argc == 3)
		say_readable(&r, argv[2]);
	else if (inuse_check(&r, argv[1], (const char *const *)(argv + 2), (size_t)argc - 2, &user))
		printf("busy: %s\n", user);
	else
		puts("free");
	return fflush(stdout) == 0 ? 0 : 4;
}
