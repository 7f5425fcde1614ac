/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What controllers answered in this run. Values: ask.c fills them in, plan.c reads them. Times are CLOCK_BOOTTIME in
 * nanoseconds, 0 = never.
 */
#pragma once

#include "topology.h"

enum probe_status {
	PROBE_IDLE,    /* nothing asked yet, or the last answer is complete */
	PROBE_RUNNING, /* a request is under way */
	PROBE_HUNG,    /* no progress within the deadline; the child is left to itself, nothing more is asked in this run */
	PROBE_FAILED,  /* the last request failed as a whole: `error` says how; may be asked again */
	PROBE_BUSY,    /* another process is asking this controller */
	PROBE_GONE,    /* the controller under that number is another one now, or not live, or away */
};

struct probe_ns {
	uint32_t nsid;
	bool listed;       /* in the last complete active list */
	int64_t ident_at;  /* when its identity was last answered, or refused; 0 never in this run */
	int error;         /* why there is no identity: NVMe status (> 0), -errno, 0 none */
	struct ident id;
	/* ANA, as the controller says: asked for separately (CNS 00h and log 0Ch, rule 14) */
	int64_t ana_at; /* 0 never in this run */
	int ana_error;
	enum ana_state ana; /* ANA_UNKNOWN: this controller does not do ANA */
	/* Is it really gone from this controller (rule 4, `dead`)? */
	int64_t gone_at; /* 0 never asked in this run */
	bool gone;       /* CNS 00h: Invalid Namespace, or NCAP 0 */
};

/* Is a disk in use (inuse.h)? Asked of the child of one controller, whichever; the answer is about the host. */
struct probe_use {
	char name[32];
	int64_t at;
	bool used;
	char *user;    /* by whom, for people; NULL if not used */
	bool readable; /* a block of it could be read directly; only where that was asked */
	int64_t read_at;
};

struct probe {
	int instance; /* N of nvmeN */
	char *nqn;    /* of the subsystem: a number alone is no identity */
	enum probe_status status;
	char *error;     /* for people; NULL none */
	int64_t list_at; /* when the last complete active list began to be read; 0 none in this run */
	int64_t walk_at; /* when the last walk that identified *every* listed namespace began; 0 none */
	int64_t walk_done; /* when that walk ended */
	int64_t latency; /* longest answer time of one Identify seen in this run; 0 unknown */
	struct probe_ns *ns; /* by NSID; only entries with `listed` are on the controller now */
	size_t n_ns, n_listed;
	struct probe_use *use;
	size_t n_use;
	int64_t rescan_at;  /* when the last rescan that we asked for was accepted; 0 none in this run */
	char *rearm;        /* what the last repair of its notification channel found and did; NULL none */
	int rescan_error;   /* of the last one refused: -errno; 0 none */
};

struct probes {
	struct probe *probe;
	size_t n;
};

/* The entry of a controller, or NULL. */
struct probe *probes_find(const struct probes *p, int instance, const char *nqn);
/* The entry of a controller, made if there is none. Good until the next call of this function. */
struct probe *probes_get(struct probes *p, int instance, const char *nqn);
/* The entry of a namespace, or NULL; _get makes it, in order. */
struct probe_ns *probe_ns_find(const struct probe *p, uint32_t nsid);
struct probe_ns *probe_ns_get(struct probe *p, uint32_t nsid);
/* The newest answer about a disk from any controller, or NULL; _get makes the entry of this one. */
const struct probe_use *probes_use(const struct probes *p, const char *disk);
struct probe_use *probe_use_get(struct probe *p, const char *disk);
/* Takes a complete active list (sorted or not, duplicates allowed: controllers have faults). */
void probe_set_list(struct probe *p, const uint32_t *nsid, size_t n, int64_t began);
void probes_free(struct probes *p);
