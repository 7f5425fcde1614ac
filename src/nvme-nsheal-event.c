/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The udev helper: one NVMe event in the environment, as udev gives it. If the configuration names the subsystem that
 * it is about, a trigger is left for `nvme-nsheal heal` and the service is asked to start.
 *
 * It runs for every such event of every host, and udev waits for it: so it neither waits for a controller nor looks at
 * namespaces, reads one attribute and the configuration, and is linked with nothing but the C library. What is decided
 * here too generously costs one look of the service; what is overlooked, the timer finds.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "trigger.h"

#ifndef SYSFSDIR
#define SYSFSDIR "/sys"
#endif
/* absolute: udev gives its programs no PATH that could be relied on; before the merge of /usr it was the second */
#ifndef SYSTEMCTL
#define SYSTEMCTL "/usr/bin/systemctl", "/bin/systemctl"
#endif

#define CONF_MAX_BYTES (16 << 20)

static const char conf_name[] = "/nvme-nsheal.conf";
static const char *const conf_dir[] = { SYSCONFDIR, RUNCONFDIR, PREFIXLIBDIR };

static const char usage[] =
	"Usage: nvme-nsheal-event\n"
	"\n"
	"Run by udev for events of NVMe controllers and disks, with the event in its environment. Leaves a trigger in\n"
	RUNDIR " if the subsystem is configured, and starts nvme-nsheal.service.\n"
	"\n"
	"  --help     this text\n"
	"  --version  the version\n"
	"\n"
	"See nvme-nsheal-event(8).\n";
static const char version[] = "nvme-nsheal-event " VERSION "\n";

/* udev puts what a program says into its own log */
static void complain(const char *what, const char *name, int err)
{
	cleanup_free char *line = xasprintf("nvme-nsheal-event: %s %s: %s\n", what, name, strerror(-err));

	if (write_all(STDERR_FILENO, line, strlen(line)) < 0) {
		/* nobody is left to be told */
	}
}

struct event {
	const char *action, *subsystem, *devpath;
	const char *what; /* NVME_EVENT; "" if there is none */
	const char *aen;  /* NVME_AEN, likewise */
};

static bool event_read(struct event *e)
{
	e->action = getenv("ACTION");
	e->subsystem = getenv("SUBSYSTEM");
	e->devpath = getenv("DEVPATH");
	e->what = getenv("NVME_EVENT") ?: "";
	e->aen = getenv("NVME_AEN") ?: "";
	return e->action && e->subsystem && e->devpath && e->devpath[0] == '/';
}

/*
 * The sysfs directory, below /sys, that holds the NQN: the controller's own, or the one that a removed disk lay in, a
 * controller's or a subsystem's. NULL: no event that could be about a namespace. Caller frees.
 */
static char *event_owner(const struct event *e)
{
	const char *end = e->devpath + strlen(e->devpath);

	if (streq(e->subsystem, "block") && streq(e->action, "remove"))
		end = strrchr(e->devpath, '/');
	else if (!streq(e->subsystem, "nvme") || streq(e->action, "remove"))
		return NULL;
	/* these are of discovery controllers: `rediscover`, and "discovery log page changed" (NVME_AER_NOTICE_DISC_CHANGED) */
	if (streq(e->what, "rediscover") || streq(e->aen, "0x70f002"))
		return NULL;
	return end > e->devpath ? xstrndup(e->devpath, (size_t)(end - e->devpath)) : NULL;
}

/*
 * The NQN without the blanks that the kernel pads it with. False: there is none to be had. A controller that is not
 * connected yet has "(efault)" (sysfs's own words for a NULL string), and says `connected` later; the directory of a
 * subsystem that was disconnected is gone, and with it all reason to look.
 */
static bool read_nqn(const char *owner, char *nqn, size_t size)
{
	cleanup_free char *path = xasprintf(SYSFSDIR "%s/subsysnqn", owner);
	ssize_t len = read_text_at(AT_FDCWD, path, nqn, size);

	while (len > 0 && nqn[len - 1] == ' ')
		nqn[--len] = '\0';
	return len > 0 && !streq(nqn, "(efault)") && !streq(nqn, "(null)");
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

/* Does `nqn = VALUE` stand on a line by itself, VALUE being the len bytes at `at`? A comment may follow after a blank. */
static bool is_nqn_line(const char *text, const char *text_end, const char *at, size_t len)
{
	const char *p = at, *end = at + len;

	while (p > text && is_blank(p[-1]))
		p--;
	if (p == text || (p[-1] != '=' && p[-1] != ':'))
		return false;
	for (p--; p > text && is_blank(p[-1]); p--)
		;
	if (p - text < 3 || memcmp(p - 3, "nqn", 3) != 0)
		return false;
	for (p -= 3; p > text && is_blank(p[-1]); p--)
		;
	if (p > text && p[-1] != '\n')
		return false;
	while (end < text_end && is_blank(*end))
		end++;
	return end == text_end || *end == '\n' || (end > at + len && (*end == ';' || *end == '#'));
}

static bool text_names(const char *text, size_t text_len, const char *nqn)
{
	const char *end = text + text_len, *at = text;
	size_t len = strlen(nqn);

	while ((at = memmem(at, (size_t)(end - at), nqn, len)) != NULL) {
		if (is_nqn_line(text, end, at, len))
			return true;
		at++;
	}
	return false;
}

/* What cannot be read might name it: the service is the one that reports faults. */
static bool file_names(int dir, const char *name, const char *nqn)
{
	cleanup_fd int fd = openat(dir, name, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	cleanup_free char *text = NULL;
	size_t len = 0;
	struct stat st;
	ssize_t n;

	if (fd < 0)
		return errno != ENOENT;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return false; /* /dev/null, most likely: a file that is masked */
	if (st.st_size > CONF_MAX_BYTES)
		return true;
	text = xmalloc((size_t)st.st_size);
	/* one that grows meanwhile will be looked at by those who watch it */
	while (len < (size_t)st.st_size && (n = read(fd, text + len, (size_t)st.st_size - len)) != 0) {
		if (n < 0 && errno != EINTR)
			return true;
		len += n < 0 ? 0 : (size_t)n;
	}
	return text_names(text, len, nqn) || text_names(text, len, "*");
}

/* Any *.conf counts, also where one of the same name in another directory takes precedence. */
static bool directory_names(const char *path, const char *nqn)
{
	DIR *dir = opendir(path);
	struct dirent *entry;
	bool found = false;

	if (!dir)
		return errno != ENOENT;
	while (!found && (entry = readdir(dir)) != NULL) {
		size_t len = strlen(entry->d_name);

		if (len > 5 && streq(entry->d_name + len - 5, ".conf"))
			found = file_names(dirfd(dir), entry->d_name, nqn);
	}
	closedir(dir);
	return found;
}

static bool is_configured(const char *nqn)
{
	cleanup_free char *file = xasprintf("%s%s", SYSCONFDIR, conf_name);
	bool found = file_names(AT_FDCWD, file, nqn);

	for (size_t i = 0; i < ARRAY_SIZE(conf_dir) && !found; i++) {
		cleanup_free char *dir = xasprintf("%s%s.d", conf_dir[i], conf_name);

		found = directory_names(dir, nqn);
	}
	return found;
}

/* A directory fd or a negative errno; -EPERM if somebody else could have put something there. */
static int open_rundir(void)
{
	bool made = mkdir(RUNDIR, 0755) == 0;
	cleanup_fd int fd = open(RUNDIR, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0)
		return errno == ELOOP || errno == ENOTDIR ? -EPERM : -errno;
	if (made && fchmod(fd, 0755) < 0) /* whatever the umask */
		return -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	if ((st.st_uid != 0 && st.st_uid != geteuid()) || (st.st_mode & (S_IWGRP | S_IWOTH)))
		return -EPERM;
	return steal_fd(&fd);
}

/* "nvme0", where the directory is a controller's; a subsystem's is not */
static const char *controller_name(const char *owner)
{
	const char *name = strrchr(owner, '/') + 1;

	return starts_with(name, "nvme") && name[4] >= '0' && name[4] <= '9' ? name : "none";
}

static int write_file(int dir, const char *name, const char *text)
{
	const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
	cleanup_fd int fd = openat(dir, name, flags, 0644);

	if (fd < 0 && errno == EEXIST && unlinkat(dir, name, 0) == 0) /* of one that was killed, and had our PID */
		fd = openat(dir, name, flags, 0644);
	return fd < 0 ? -errno : write_all(fd, text, strlen(text));
}

static int leave_trigger(const struct event *e, const char *nqn, const char *owner)
{
	cleanup_free char *name = xasprintf(TRIGGER_PREFIX "%016llx-%s-%s", (unsigned long long)trigger_hash(nqn),
					    streq(e->what, "connected") ? TRIGGER_CONNECTED : TRIGGER_CHANGED,
					    controller_name(owner));
	cleanup_free char *tmp = xasprintf("." TRIGGER_PREFIX "%d", (int)getpid());
	cleanup_free char *text = xasprintf("%d %lld\n", TRIGGER_VERSION, (long long)now_boottime());
	cleanup_fd int dir = open_rundir();
	int err;

	if (dir < 0)
		return dir;
	err = write_file(dir, tmp, text);
	if (!err && renameat(dir, tmp, dir, name) < 0)
		err = -errno;
	if (err)
		unlinkat(dir, tmp, 0);
	return err;
}

/*
 * Waits for systemctl: udev kills what its programs leave behind, and a start that never reached systemd would wait for
 * the timer. Its answer does not matter: a start that is refused, at shutdown, is none of udev's business.
 */
static void start_service(void)
{
	static const char *const programs[] = { SYSTEMCTL };
	char argv0[] = "systemctl", argv1[] = "--no-block", argv2[] = "start", argv3[] = "nvme-nsheal.service";
	char *const argv[] = { argv0, argv1, argv2, argv3, NULL };
	char *const envp[] = { NULL };
	int err = ENOENT;
	pid_t pid;

	for (size_t i = 0; i < ARRAY_SIZE(programs) && err == ENOENT; i++)
		err = posix_spawn(&pid, programs[i], NULL, NULL, argv, envp);
	if (err)
		complain("cannot run", argv0, -err);
	else
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
}

static void handle(const struct event *e)
{
	cleanup_free char *owner = event_owner(e);
	char nqn[512]; /* the specification's 223 bytes, and what it may be padded with */
	int err;

	if (!owner || !read_nqn(owner, nqn, sizeof(nqn)) || !is_configured(nqn))
		return;
	/* first the trigger, then the start: a start that is swallowed by a service about to end leaves the trigger */
	err = leave_trigger(e, nqn, owner);
	if (err < 0)
		complain("cannot leave a trigger in", RUNDIR, err);
	start_service();
}

int main(int argc, char **argv)
{
	const char *option = argc == 2 ? argv[1] : "";
	struct event e;

	if (streq(option, "--help"))
		return write_all(STDOUT_FILENO, usage, strlen(usage)) < 0;
	if (streq(option, "--version"))
		return write_all(STDOUT_FILENO, version, strlen(version)) < 0;
	if (argc > 1 || !event_read(&e)) {
		static const char text[] = "nvme-nsheal-event: is run by udev, with an event in its environment: see --help\n";

		return write_all(STDERR_FILENO, text, strlen(text)) < 0 ? 1 : 2;
	}
	handle(&e);
	return 0;
}
