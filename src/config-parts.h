/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the files of the configuration reader share; nobody else includes it.
 *
 *   config.c         lines -> sections. The only file that includes <ini.h>
 *   config-files.c   which files there are, whether they may be believed, their stamp
 *   config-value.c   one value -> a number, an NQN, a namespace line
 *   config-merge.c   sections -> struct expect
 */
#pragma once

#include "config.h"

/* More faults than these in one file are counted, not listed: a binary must not flood the journal twice a minute. */
#define CONFIG_MAX_FAULTS 100
/* 36,000 namespaces of 80 subsystems in one file are 4 MiB. */
#define CONFIG_MAX_SIZE (8U << 20)
/* The widest range of expected NSIDs, and the most in one subsystem: what a controller's list is read up to. */
#define CONFIG_MAX_NSIDS 65536U
#define CONFIG_MAX_DURATION (30LL * 24 * 3600 * NS_PER_SEC)
#define CONFIG_MAX_NQN 223 /* NVMe base specification, NVMe Qualified Names, without the NUL */
#define CONFIG_MAX_NAME 128
#define CONFIG_MAX_LABEL 64

struct config_place {
	size_t file;   /* index into struct config_load_state.file */
	unsigned line; /* 0: the file as a whole */
};

/* The keys of struct policy: those that [defaults] and [subsystem] both have. */
enum config_key {
	CONFIG_ACTION,
	CONFIG_GRACE,
	CONFIG_SETTLE,
	CONFIG_MAX_ATTEMPTS,
	CONFIG_BACKOFF,
	CONFIG_RETRY_AFTER,
	CONFIG_REMOVALS,
	CONFIG_REARM,
	CONFIG_PATHS,
	CONFIG_KERNEL_GUARD,
	CONFIG_N_KEYS
};

struct config_setting {
	int64_t value; /* as struct policy has it */
	bool given;
	struct config_place at;
};

struct config_text {
	char *text; /* NULL: not given */
	struct config_place at;
};

struct config_ns {
	struct expect_ns ns;
	struct config_place at;
};

enum config_section_kind {
	CONFIG_IGNORED, /* its header is a fault already: its keys would only add to that */
	CONFIG_DEFAULTS,
	CONFIG_SUBSYSTEM
};

struct config_section {
	enum config_section_kind kind;
	struct config_place at;
	char *label; /* NULL: none given */
	struct config_text nqn, hostnqn;
	struct config_setting set[CONFIG_N_KEYS];
	struct config_ns *ns, *ignore;
	size_t n_ns, n_ignore;
	/* a line that may have been the NQN, or a namespace, is a fault: what the section seems to lack is there */
	bool nqn_fault, ns_fault;
};

struct config_file {
	char *name;
	size_t n_fault;
};

struct config_fault {
	struct config_place at;
	size_t order;
	char *text;
};

struct config_load_state {
	struct config *config;
	struct config_file *file;
	size_t n_file;
	struct config_section *section;
	size_t n_section;
	struct config_fault *fault;
	size_t n_fault;
};

/* ---- config.c ---- */

/* The index of a new entry: a file, or a directory that is at fault. */
size_t config_add_file(struct config_load_state *l, const char *name);
void config_fault(struct config_load_state *l, struct config_place at, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* "file:line"; caller frees */
char *config_place_text(const struct config_load_state *l, struct config_place at);
void config_read_text(struct config_load_state *l, size_t file, const char *text, size_t len);

/* ---- config-files.c ---- */

/* Reads all files through config_read_text(). */
void config_read_files(struct config_load_state *l, const struct config_paths *p);
/*
 * As config_stamp(). *fresh: something changed so recently that a further change may leave every time and size as it is
 * (the kernel's clock for inodes ticks at CONFIG_HZ, 10 ms at most).
 */
uint64_t config_stamp_fresh(const struct config_paths *p, bool *fresh);

/* ---- config-value.c ---- */

/* False: no such key. */
bool config_key_find(const char *name, enum config_key *key);
const char *config_key_name(enum config_key key);
/* 0 and *value, or a negative errno and *why. */
int config_key_parse(enum config_key key, const char *text, int64_t *value, const char **why) WARN_UNUSED;
void config_key_apply(enum config_key key, int64_t value, struct policy *p);
/* As config_parse_ns(), for `ignore`: `all` is a fault; a range may have any width, since nobody counts through it. */
int config_parse_ignore(const char *text, struct expect_ns *ns, char **why) WARN_UNUSED;
/* As config_parse_nqn(), but one name: no "*". */
int config_parse_one_nqn(const char *text, char **nqn, const char **why) WARN_UNUSED;

/* ---- config-merge.c ---- */

/* Takes the sections' namespaces into l->config->expect. */
void config_merge(struct config_load_state *l);
