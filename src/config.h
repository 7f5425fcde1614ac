/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The configuration reader: files -> struct expect. The only file that includes <ini.h>.
 *
 * Strict: every fault is collected as "file:line: what is wrong, and what would be right", and a configuration with a
 * fault yields nothing. A skipped line would be a disk that nobody watches.
 */
#pragma once

#include "expect.h"

struct config_faults {
	char **text; /* in the order of files and lines */
	size_t n;
};

struct config {
	struct expect expect;
	struct policy defaults; /* of a subsystem that has no section */
	struct config_faults faults;
	char **file; /* the files that were read, in order */
	size_t n_file;
	/* Changes when any file that was or would be read is added, removed or altered (names, sizes, inodes, ctimes). */
	uint64_t stamp;
};

/* Where the main file and the drop-in directories are: fixed when built, changed by --config and by tests. */
struct config_paths {
	const char *file;   /* /etc/nvme-nsheal.conf; may be absent unless `required` */
	const char *dir[4]; /* drop-in directories from lowest to highest precedence, NULL-terminated */
	bool required;      /* an absent main file is a fault (--config) */
	bool check_owner;   /* refuse files that group or others can write, or that neither root nor we own */
};

/* The system's places; --config FILE: that file and FILE.d/ only (strings owned by the caller until config_paths_clear). */
void config_paths_system(struct config_paths *p);
void config_paths_file(struct config_paths *p, const char *file);
void config_paths_clear(struct config_paths *p);

/*
 * Read everything. Always fills c (free with config_free). 0 if it may be used; -EINVAL if there are faults, and then
 * c->expect is empty.
 */
int config_load(struct config *c, const struct config_paths *p) WARN_UNUSED;
/* The stamp that config_load() would compute now, from stat(2) alone: for seeing a change without reading. */
uint64_t config_stamp(const struct config_paths *p);
void config_free(struct config *c);

/*
 * Values as the configuration spells them, also for the command line: 0 or a negative errno, and then *why is a static
 * sentence that says what would be right.
 */
int config_parse_duration(const char *text, int64_t *ns, const char **why) WARN_UNUSED; /* "5s" "350ms" "2min" "1h" "0" */
int config_parse_nqn(const char *text, char **nqn, const char **why) WARN_UNUSED;       /* trimmed copy, caller frees */
int config_parse_removals(const char *text, enum policy_removals *r, const char **why) WARN_UNUSED;
/*
 * The words of a `namespace =` line: all | [nsid=N|N-M] [uuid=] [nguid=] [eui64=] [wwid=] [name=]. On failure *why is
 * an allocated sentence.
 */
int config_parse_ns(const char *text, struct expect_ns *ns, char **why) WARN_UNUSED;

/* A configuration held in memory, as the file `name`: for tests and the fuzzer. */
int config_load_text(struct config *c, const char *name, const char *text, size_t len) WARN_UNUSED;
