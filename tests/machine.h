/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A machine made of plain files in a directory of its own: sys, dev and proc, built by verbs as the kernel would build
 * them. Reading it gives a topology, which is compared as text.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sysfs.h"

#define NQN "nqn.2014-08.org.example:a"
#define UUID1 "uuid.1b4e28ba-2fa1-11d2-883f-0016d3cca401"
#define UUID2 "uuid.1b4e28ba-2fa1-11d2-883f-0016d3cca402"
#define NGUID1 "eui.d07f718b1d2344577bc1bb4d4d516c01"
#define EUI1 "eui.002538b9114a9e01"
#define MADE_UP "nvme.1b36-6465-5145-00000001"

struct machine {
	char top[64]; /* sys, dev, proc and, for links that lead out, outside */
	bool flat;    /* the copy of a sysfs without its links: class/ holds plain directories */
};

/* cmocka's set-up and tear-down; *state is the machine. */
int start_machine(void **state);
int stop_machine(void **state);

/* A path below the top, in one of four buffers that take turns. The verbs' results are such paths too. */
#define AT_MAX 512
char *at(const struct machine *m, const char *fmt, ...) PRINTF_LIKE(2, 3);
void make_dirs(char *path);
void remove_all(const char *path);
void write_bytes(const char *path, const char *data, size_t len);

/* An attribute, with the newline that sysfs ends it with; value NULL: there is none. */
void attr(const char *dir, const char *name, const char *value);
void dir_instead(const char *dir, const char *name);
void link_instead(const char *dir, const char *name, const char *target);

char *subsys_dir(const struct machine *m, int x);
char *ctrl_dir(const struct machine *m, int c);
void subsystem(const struct machine *m, int x, const char *nqn);
/* x -1: it has no subsystem yet */
char *controller(const struct machine *m, int c, int x, const char *nqn);
/* A disk of 1 MiB in any directory (a buffer as from at()), which becomes the disk's own. */
char *disk_in(char *dir, const char *name, const char *nsid, const char *wwid);
char *head(const struct machine *m, int x, int z, const char *nsid, const char *wwid);
char *path_to(const struct machine *m, int x, int c, int z, const char *nsid, const char *wwid, const char *ana);
/* Private, or with native multipath off. */
char *own_disk(const struct machine *m, int c, const char *name, const char *nsid, const char *wwid);
/* A test may not make block devices; a link in /dev counts as one. */
void node(const struct machine *m, const char *name);
/* Subsystem 4, two controllers, two namespaces that both reach, nodes. */
void two_by_two(const struct machine *m);

/* Flags beside those of enum sysfs_want. */
enum { NO_DEV = 1 << 8, WITH_PROC = 1 << 9 };

/* live: the tree passes for a sysfs; else it is a bundle. */
int read_machine(const struct machine *m, bool live, unsigned want, struct topo *t);
char *dump(const struct topo *t); /* notes sorted; caller frees */
void assert_read(const struct machine *m, bool live, unsigned want, const char *expected);
/* The same from a live /sys and from a bundle. */
void assert_topology(const struct machine *m, unsigned want, const char *expected);

/* How often the last read opened a file with that in its path (live only). */
size_t times_opened(const char *what);
/* Called before an entry of a directory is handed out, with its name; "" at the end of the directory. */
extern void (*on_listed)(struct machine *m, const char *name);

/* Pieces of expected texts. */
#define SUBSYS NQN " 4 Linux/c0ffee\n"
#define CTRL(c, id, paths) " nvme" #c " live io cntlid=" #id " queues=3 tcp nqn.host paths=" #paths "\n"
#define TWO_CTRLS SUBSYS CTRL(0, 1, 2) CTRL(1, 2, 2)
#define ID_UUID1 "uuid=1b4e28ba-2fa1-11d2-883f-0016d3cca401"
#define ID_UUID2 "uuid=1b4e28ba-2fa1-11d2-883f-0016d3cca402"
#define ID_NGUID1 "nguid=d07f718b1d2344577bc1bb4d4d516c01"
#define TWO_DISKS \
	" nvme4n2 nsid=3 " ID_NGUID1 " size=1048576 paths=2\n" \
	" nvme4n1 nsid=7 " ID_UUID1 " size=1048576 paths=2\n"
#define FOUR_PATHS \
	" nvme0 -> nvme4n2 nsid=3 unknown\n" \
	" nvme0 -> nvme4n1 nsid=7 unknown\n" \
	" nvme1 -> nvme4n2 nsid=3 unknown\n" \
	" nvme1 -> nvme4n1 nsid=7 unknown\n"
