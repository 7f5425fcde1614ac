/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A small world for the planner: a storage target, a host kernel and a clock, all values. The storage maps namespaces;
 * the kernel scans when it should (or not: a lost notice); the planner's acts are carried out with the visible effect
 * that the real ones have. So a test reads like the manual: map, lose the notice, run, look.
 */
#pragma once

#include "plan.h"

#define WORLD_CTRLS 4
#define WORLD_NAMESPACES 64

/* One namespace of the storage. Mapped to a controller: that controller lists it. */
struct world_ns {
	uint32_t nsid;
	uint8_t uuid;                /* 0 none: a namespace without identifiers */
	bool mapped[WORLD_CTRLS];
	enum ana_state ana; /* as the controllers say; ANA_UNKNOWN: as if optimized */
	bool broken_head;   /* the kernel makes no head of it, whatever it is asked */
};

/* What the host has of one NSID: the identity with which it was found, and the paths. */
struct world_head {
	uint32_t nsid;
	uint8_t uuid;
	bool path[WORLD_CTRLS];
	enum ana_state ana;
	bool no_head; /* paths only: never usable so far */
	bool used;    /* somebody has it open */
	bool readable;
};

struct world_ctrl {
	bool exists;
	enum ctrl_state state;
	enum ctrl_type type;
	int queue_count, cntlid;
	bool hangs;        /* never answers a request */
	bool refuses;      /* fails every request */
	bool deaf_to_scan; /* a rescan changes nothing */
	int64_t scan_done; /* when the scan under way takes effect; 0 none */
	bool asked;        /* a request is under way */
	enum act_kind asked_what;
	uint32_t *asked_nsid;
	char **asked_disk;
	size_t asked_n;
	int64_t asked_at;
	unsigned n_list, n_identify, n_identify_all, n_ana, n_use, n_gone, n_rescan;
	bool rearmed;
	unsigned n_advised; /* told that rearm would help */
	int64_t last_rescan;
};

struct world {
	char nqn[64];
	struct expect expect;
	struct world_ns ns[WORLD_NAMESPACES];
	size_t n_ns;
	struct world_head head[WORLD_NAMESPACES];
	size_t n_head;
	struct world_ctrl ctrl[WORLD_CTRLS];
	bool connected;
	int64_t now, run_start;
	bool eager;        /* a kernel that creates in the scan that removed */
	int64_t scan_time; /* how long a kernel scan takes */
	struct topo topo;
	struct probes probes;
	struct plan_record rec;
	struct plan_input in;
	struct plan *plan;
	size_t n_removed; /* heads that a scan took away */
	size_t n_news;
	int64_t mapping_changed_at, use_changed_at;
};

/* A subsystem with controllers nvme0.. live, connected, time 1,000 s after boot; one section, grace 5 s. */
void world_init(struct world *w, unsigned n_ctrl);
void world_clear(struct world *w);
struct policy *world_policy(struct world *w);
/* A line of the configuration, as config.c would have it: nsid 0 / uuid 0: not given. */
void world_expect(struct world *w, uint32_t nsid, uint8_t uuid);
void world_expect_range(struct world *w, uint32_t first, uint32_t last);
void world_expect_all(struct world *w);
void world_ignore(struct world *w, uint32_t nsid, uint8_t uuid);
/* The storage maps a namespace to every controller, and the host gets the notice or does not. */
void world_map(struct world *w, uint32_t nsid, uint8_t uuid);          /* and the kernel scans at once */
void world_map_silently(struct world *w, uint32_t nsid, uint8_t uuid); /* the notice is lost */
void world_unmap_silently(struct world *w, uint32_t nsid);
void world_kernel_scan(struct world *w, unsigned ctrl);
struct world_head *world_head(struct world *w, uint32_t nsid);
struct world_ns *world_ns(struct world *w, uint32_t nsid);

/* The storage changes the ANA state of a namespace, and the host does not hear of it. */
void world_ana_silently(struct world *w, uint32_t nsid, enum ana_state ana);
/* One controller loses its path silently, as if it had not heard that the namespace was mapped to it. */
void world_lose_path(struct world *w, unsigned ctrl, uint32_t nsid);
/* Look and plan at the present time; acts are not carried out. */
struct plan *world_plan(struct world *w);
/* Carry out the plan's acts, then advance to the next moment at which something happens (at most a second). */
void world_act(struct world *w);
/* One run of heal: plan and act until nothing is waited for, 120 s at most. */
void world_run(struct world *w);
/* A new run, `later` after the last one ended: answers are forgotten, records stay. */
void world_next_run(struct world *w, int64_t later);
/* Plan, act and advance for so long, whatever the plan waits for. */
void world_pass(struct world *w, int64_t duration);

/* The finding of the n-th expected namespace in the last plan. */
const struct finding *world_finding(const struct world *w, size_t n);
unsigned world_rescans(const struct world *w);
unsigned world_requests(const struct world *w); /* of any kind */
struct ident world_ident(uint8_t uuid);
