/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Children that talk to controllers: anything that can block runs in one. nvme-nsheal-ask is started (exec) once per
 * controller and run, opens it, and then answers requests until its stdin ends. This file is the parent's side: start,
 * request, collect, deadlines. It never blocks and never waits for a child.
 *
 * A child that makes no progress for ASK_DEADLINE is given up: its pipes are closed, its entry becomes PROBE_HUNG, and
 * it is left alone (an admin command waits uninterruptibly). It keeps its own lock, RUNDIR/ask-nvmeN, until it ends, so
 * that no later run asks that controller again meanwhile (PROBE_BUSY). It holds nothing else that somebody may wait for:
 * no fd but its pipes, no working directory.
 *
 * The protocol is lines of text.
 *   argv      nvme-nsheal-ask NAME NQN HOSTNQN LOCKFILE        HOSTNQN may be "" (not compared)
 *   start     "ready" | "error ERRNO TEXT" and the end (EWOULDBLOCK of the lock: "busy" and the end; other trouble with
 *             the lock: ENOLCK)
 *   request   "list"                 answer: "ns NSID..." lines (at most 1,024 a line), then "done LATENCY"
 *             "identify all"         the list as above, then as below for each of it
 *             "identify NSID..."     per namespace "id NSID UUID NGUID EUI64 CSI" ("-" where there is none) or
 *                                    "no NSID ERROR", then "done LATENCY"
 *             "ana NSID..."          per namespace "ana NSID STATE" (as sysfs spells it, "-" without ANA) or
 *                                    "no NSID ERROR", then "done LATENCY"
 *             "use DISK..."          the disks that would go: per disk "use DISK free" or "use DISK used WHO", then "done 0"
 *             "gone NSID DISK..."    per pair "gone NSID DISK GONE READABLE" (0, 1; READABLE also "-": not to be told),
 *                                    then "done LATENCY"
 *             "rescan", "rescan rearm"   with rearm first "rearm TEXT", what was found and done (rule 9); "done 0"
 *   any       "error ERROR TEXT": the request failed as a whole
 *             "alive": a command was answered, at most once a second; of no meaning but that
 * Identities come in the order of the list or of the request. What is not in this protocol, or out of its order, makes
 * the entry PROBE_FAILED and ends the child.
 * ERROR: NVMe status > 0 or -errno; LATENCY: longest Identify in ns; numbers decimal, identifiers plain hexadecimal.
 */
#pragma once

#include "probe.h"

#define ASK_DEADLINE (10 * NS_PER_SEC)

enum ask_what { ASK_LIST, ASK_IDENTIFY, ASK_IDENTIFY_ALL, ASK_ANA, ASK_USE, ASK_GONE, ASK_RESCAN, ASK_REARM_RESCAN };

struct ask; /* all children of this process */

/*
 * program: absolute path of nvme-nsheal-ask; rundir: where its locks are; max: children at once. Answers go into
 * probes, which must outlive it.
 */
struct ask *ask_new(const char *program, const char *rundir, size_t max, struct probes *probes);
/* Another deadline than ASK_DEADLINE, for whoever cannot wait so long. */
void ask_set_deadline(struct ask *a, int64_t deadline);
/*
 * Ask a controller: starts its child if there is none yet. hostnqn may be NULL. nsid, n: for ASK_IDENTIFY.
 * 0 under way (PROBE_RUNNING); -EBUSY a request is under way there already, or max children are: ask again later;
 * -EHOSTDOWN its child hung and has not ended yet; other negative errno: no child could be started, or be written to.
 */
int ask_request(struct ask *a, int instance, const char *nqn, const char *hostnqn, enum ask_what what,
		const uint32_t *nsid, size_t n, int64_t now) WARN_UNUSED;
/* The same for ASK_USE and ASK_GONE: about disks by kernel name; nsid as many, for ASK_GONE. */
int ask_about_disks(struct ask *a, int instance, const char *nqn, const char *hostnqn, enum ask_what what,
		    const uint32_t *nsid, char *const *disk, size_t n, int64_t now) WARN_UNUSED;
/* Fds to poll for reading, appended to *fds (struct pollfd array managed with ARRAY_GROW semantics by the caller). */
struct pollfd;
size_t ask_poll(const struct ask *a, struct pollfd **fds, size_t n);
/* Read what there is, judge deadlines. True if any entry of probes changed. */
bool ask_collect(struct ask *a, int64_t now);
/* When ask_collect() must be called at the latest; TIME_NEVER if nothing is under way. */
int64_t ask_wake(const struct ask *a);
/* End a controller's child once it has answered (frees a place); the probes entry stays. */
void ask_release(struct ask *a, int instance);
/* Close all pipes: idle children end by themselves, hung ones when the kernel lets them. Waits for nobody. */
void ask_free(struct ask *a);
