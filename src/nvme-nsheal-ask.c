/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The child that talks to one controller: started by nvme-nsheal, answers requests on stdin until it ends (ask.h has
 * the protocol). It may block in the kernel for as long as an admin command does; nobody waits for it, and its lock
 * tells later runs to leave that controller alone meanwhile.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "admin.h"
#include "inuse.h"

#define NSIDS_A_LINE 1024
/* Whoever waits for the answer judges by lines: commands that yield none are told of at this interval. */
#define ALIVE_INTERVAL NS_PER_SEC
/* An idle child of a run that has just ended needs a moment to see that: not "busy", which counts as hung. */
#define LOCK_PATIENCE (500 * NS_PER_MS)
#define LOCK_POLL_MS 10

struct server {
	struct admin *admin;
	int64_t longest; /* answer time in the request under way */
	int64_t said_at;
};

/* Every line at once: it is the parent's sign of progress. False: nobody reads any more. */
static bool say_flush(void)
{
	return fflush(stdout) == 0 && !ferror(stdout);
}

static void note_progress(void *arg, int64_t latency)
{
	struct server *s = arg;
	int64_t now = now_boottime();

	s->longest = max_time(s->longest, latency);
	if (now - s->said_at < ALIVE_INTERVAL)
		return;
	s->said_at = now;
	puts("alive");
	(void)say_flush(); /* a failure shows again with the answer */
}

static bool say_error(int err, const char *text)
{
	printf("error %d %s\n", err, text);
	return say_flush();
}

static bool say_done(const struct server *s)
{
	printf("done %lld\n", (long long)s->longest);
	return say_flush();
}

static void print_hex(const struct ident *id, enum ident_field field, const uint8_t *bytes, size_t n)
{
	putchar(' ');
	if (!(id->have & field)) {
		putchar('-');
		return;
	}
	for (size_t i = 0; i < n; i++)
		printf("%02x", bytes[i]);
}

static bool say_ident(uint32_t nsid, const struct ident *id)
{
	printf("id %u", nsid);
	print_hex(id, IDENT_UUID, id->uuid, sizeof(id->uuid));
	print_hex(id, IDENT_NGUID, id->nguid, sizeof(id->nguid));
	print_hex(id, IDENT_EUI64, id->eui64, sizeof(id->eui64));
	print_hex(id, IDENT_CSI, &id->csi, 1);
	putchar('\n');
	return say_flush();
}

/* ---- requests: false ends the program, since nobody reads the answer ---- */

static bool identify_one(struct server *s, uint32_t nsid)
{
	struct ident id;
	int err = admin_identify(s->admin, nsid, &id);

	s->said_at = now_boottime();
	if (!err)
		return say_ident(nsid, &id);
	printf("no %u %d\n", nsid, err);
	return say_flush();
}

static int by_nsid(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

/*
 * Ascending and once each, as the specification wants it, and without FFFFFFFFh, which addresses all namespaces and is
 * none. From here on nobody has to mind controllers with other ideas.
 */
static size_t sort_list(uint32_t *list, size_t n)
{
	size_t kept = 0;

	qsort(list, n, sizeof(*list), by_nsid);
	for (size_t i = 0; i < n; i++)
		if (list[i] != UINT32_MAX && (kept == 0 || list[i] != list[kept - 1]))
			list[kept++] = list[i];
	return kept;
}

static bool answer_list(struct server *s, bool identify)
{
	cleanup_free uint32_t *list = NULL;
	size_t n;
	int err = admin_list(s->admin, &list, &n);

	if (err)
		return say_error(err, admin_strerror(err));
	if (n)
		n = sort_list(list, n);
	for (size_t i = 0; i < n; i++)
		printf("%s %u%s", i % NSIDS_A_LINE ? "" : "ns", list[i],
		       i + 1 == n || i % NSIDS_A_LINE == NSIDS_A_LINE - 1 ? "\n" : "");
	if (!say_flush())
		return false;
	for (size_t i = 0; i < n && identify; i++)
		if (!identify_one(s, list[i]))
			return false;
	return say_done(s);
}

static bool answer_identify(struct server *s, char *words)
{
	char *save, *word;

	for (word = strtok_r(words, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
		uint64_t nsid;

		if (parse_uint(word, UINT32_MAX, &nsid) < 0 || nsid == 0)
			return say_error(-EINVAL, "not an NSID");
		if (!identify_one(s, (uint32_t)nsid))
			return false;
	}
	return say_done(s);
}

static bool answer_ana(struct server *s, char *words)
{
	char *save, *word;

	for (word = strtok_r(words, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
		const char *state;
		uint64_t nsid;
		int err;

		if (parse_uint(word, UINT32_MAX, &nsid) < 0 || nsid == 0)
			return say_error(-EINVAL, "not an NSID");
		err = admin_ana(s->admin, (uint32_t)nsid, &state);
		if (err)
			printf("no %s %d\n", word, err);
		else
			printf("ana %s %s\n", word, state);
		if (!say_flush())
			return false;
	}
	return say_done(s);
}

/* The host as it is. Whatever could not be opened makes everything "in use". */
struct host {
	struct inuse_roots roots;
};

static void host_open(struct host *h)
{
	h->roots.sys = open("/sys", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	h->roots.dev = open("/dev", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	h->roots.proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	h->roots.configfs = open("/sys/kernel/config", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static void host_close(struct host *h)
{
	const int fds[] = { h->roots.sys, h->roots.dev, h->roots.proc, h->roots.configfs };

	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

static bool answer_use(struct server *s, char *words)
{
	cleanup_free char **disk = NULL;
	struct inuse_look *seen;
	struct host host;
	char *save, *word;
	size_t n = 0;
	bool told = true;

	for (word = strtok_r(words, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
		ARRAY_GROW(disk, n);
		disk[n++] = word;
	}
	host_open(&host);
	seen = inuse_look(&host.roots);
	for (size_t i = 0; i < n && told; i++) {
		cleanup_free char *user = NULL;

		if (inuse_check_in(seen, disk[i], (const char *const *)disk, n, &user))
			printf("use %s used %s\n", disk[i], user ? user : "by somebody");
		else
			printf("use %s free\n", disk[i]);
		told = say_flush();
	}
	inuse_look_free(seen);
	host_close(&host);
	return told && say_done(s);
}

static bool answer_gone(struct server *s, char *words)
{
	char *save, *word, *disk;
	struct host host;
	bool told = true;

	host_open(&host);
	for (word = strtok_r(words, " ", &save); word && told; word = strtok_r(NULL, " ", &save)) {
		uint64_t nsid;
		bool gone = false;
		int readable, err;

		disk = strtok_r(NULL, " ", &save);
		if (!disk || parse_uint(word, UINT32_MAX, &nsid) < 0 || nsid == 0) {
			told = say_error(-EINVAL, "not an NSID and a disk") && false;
			break;
		}
		err = admin_is_gone(s->admin, (uint32_t)nsid, &gone);
		readable = inuse_readable(&host.roots, disk);
		printf("gone %s %s %d %s\n", word, disk, !err && gone, readable < 0 ? "-" : readable ? "1" : "0");
		told = say_flush();
	}
	host_close(&host);
	return told && say_done(s);
}

static bool answer_rescan(struct server *s, bool rearm)
{
	cleanup_free char *text = NULL;
	int err;

	if (rearm) {
		admin_rearm(s->admin, &text);
		printf("rearm %s\n", text);
	}
	err = admin_rescan(s->admin);
	return err ? say_error(err, admin_strerror(err)) : say_done(s);
}

static bool answer(struct server *s, char *request)
{

	s->longest = 0;
	s->said_at = now_boottime();
	if (streq(request, "list"))
		return answer_list(s, false);
	if (streq(request, "identify all"))
		return answer_list(s, true);
	if (starts_with(request, "identify "))
		return answer_identify(s, request + strlen("identify "));
	if (starts_with(request, "ana "))
		return answer_ana(s, request + strlen("ana "));
	if (starts_with(request, "use "))
		return answer_use(s, request + strlen("use "));
	if (starts_with(request, "gone "))
		return answer_gone(s, request + strlen("gone "));
	if (streq(request, "rescan") || streq(request, "rescan rearm"))
		return answer_rescan(s, !streq(request, "rescan"));
	return say_error(-ENOSYS, "no such request");
}

/* ---- start and end ---- */

/* Held until the process is gone, whatever it hangs in. -EAGAIN: another one is asking this controller. */
static int take_lock(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	int64_t until = now_boottime() + LOCK_PATIENCE;

	if (fd < 0)
		return -errno;
	while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		int err = -errno;

		if (err == -EWOULDBLOCK && now_boottime() < until) {
			poll(NULL, 0, LOCK_POLL_MS);
			continue;
		}
		close(fd);
		return err;
	}
	return fd;
}

/*
 * What is not ours to hold while we may hang in the kernel for a minute: the starter's stderr, which somebody may be
 * reading to its end, and its working directory, which somebody may want to unmount.
 */
static void let_go(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (null >= 0) {
		(void)dup2(null, STDERR_FILENO);
		if (null > STDERR_FILENO)
			close(null);
	}
	if (chdir("/") < 0) {
		/* stays where it is */
	}
}

/* One request a line, until there are no more or nobody reads the answers. */
static void serve(struct server *s)
{
	cleanup_free char *line = NULL;
	size_t size = 0;
	ssize_t n;
	bool go_on = say_flush();

	while (go_on && (n = getline(&line, &size, stdin)) > 0) {
		if (line[n - 1] != '\n') /* half a request: the parent ended in the middle of it */
			break;
		line[n - 1] = '\0';
		go_on = answer(s, line);
	}
}

static int ask(char *const argv[])
{
	struct server s = { 0 };
	cleanup_free char *text = NULL;
	int lock = take_lock(argv[4]);
	int err;

	if (lock == -EWOULDBLOCK) {
		puts("busy");
		return say_flush() ? 0 : 1;
	}
	if (lock < 0) { /* not an errno that could be taken for the controller's */
		text = xasprintf("%s: %s", argv[4], strerror(-lock));
		(void)say_error(-ENOLCK, text);
		return 1;
	}
	let_go();
	err = admin_open(argv[1], argv[2], *argv[3] ? argv[3] : NULL, &s.admin);
	if (err) {
		(void)say_error(err, admin_strerror(err));
		return 1;
	}
	admin_on_progress(s.admin, note_progress, &s);
	puts("ready");
	serve(&s);
	admin_close(s.admin);
	return 0; /* the lock goes with the process, not before */
}

static void usage(FILE *to)
{
	fputs("Usage: nvme-nsheal-ask NAME NQN HOSTNQN LOCKFILE\n"
	      "Started by nvme-nsheal(8) to ask one controller; not meant for people.\n",
	      to);
}

int main(int argc, char **argv)
{
	if (argc == 2 && streq(argv[1], "--version")) {
		printf("nvme-nsheal-ask %s\n", VERSION);
		return say_flush() ? 0 : 4;
	}
	if (argc == 2 && streq(argv[1], "--help")) {
		usage(stdout);
		return say_flush() ? 0 : 4;
	}
	if (argc != 5) {
		usage(stderr);
		return 2;
	}
	signal(SIGPIPE, SIG_IGN);
	umask(077);
	return ask(argv);
}
