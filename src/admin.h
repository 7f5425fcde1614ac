/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Admin commands to one controller, through libnvme. The only file that includes <libnvme.h>; linked into
 * nvme-nsheal-ask alone. Everything here may block for as long as the kernel's admin time-out (60 s by default), which
 * is never shortened: an expired admin command makes the kernel reset the controller.
 *
 * Errors: 0 done; > 0 NVMe status as libnvme returns it; < 0 negative errno.
 */
#pragma once

#include "ident.h"

struct admin; /* an open, verified controller */

/*
 * Rule 10: open /dev/nvmeN first (it pins the number), then /sys/dev/char/MAJOR:MINOR of that fd, and believe only what
 * that directory says: its subsysnqn must be nqn (trailing blanks apart), its hostnqn must be hostnqn unless that is
 * NULL, its state live. -EAGAIN not live; -ESTALE another controller by now; other errno of open(2).
 */
int admin_open(const char *name, const char *nqn, const char *hostnqn, struct admin **a) WARN_UNUSED;
void admin_close(struct admin *a);

/* Called after each command that was answered: how long it took in ns. Progress, for the deadline of the one who waits. */
typedef void admin_progress(void *arg, int64_t latency);
void admin_on_progress(struct admin *a, admin_progress *fn, void *arg);

/*
 * The active namespace list (CNS 02h, floor(n / 1024) + 1 commands). Where the controller has no CNS 02h (before
 * NVMe 1.1): 1..NN of CNS 01h, each asked by CNS 00h for NCAP > 0. *list is allocated, n entries as the controller gave
 * them. At most ADMIN_MAX_NS, then -E2BIG.
 */
#define ADMIN_MAX_NS 65536
int admin_list(struct admin *a, uint32_t **list, size_t *n) WARN_UNUSED;
/*
 * Identity of one namespace: CNS 03h descriptors (from NVMe 1.3), what is missing there from CNS 00h. Fills id
 * (empty is a possible, true answer).
 */
int admin_identify(struct admin *a, uint32_t nsid, struct ident *id) WARN_UNUSED;
/*
 * Ask the kernel to scan this controller (NVME_IOCTL_RESCAN). The state is checked again right before by opening the
 * same device anew (nvme_dev_open refuses unless live), since the ioctl itself says nothing where nothing was queued.
 */
int admin_rescan(struct admin *a) WARN_UNUSED;

/*
 * Rule 14: the ANA state of one namespace as the controller says, from its group (CNS 00h) and the ANA log (0Ch, groups
 * only, without clearing an event: RGO = 1, RAE = 1) in 4,096-byte pieces. *state is a static word as sysfs spells it,
 * or "-": it does not report ANA.
 */
int admin_ana(struct admin *a, uint32_t nsid, const char **state) WARN_UNUSED;
/* Rule 4: 1 the controller says that there is no such namespace (Invalid Namespace, or NCAP 0); 0 there is; else error. */
int admin_is_gone(struct admin *a, uint32_t nsid, bool *gone) WARN_UNUSED;
/*
 * Rule 9: make the controller send notices again. Reads the changed-namespace log with RAE = 0 (unmasks a notice that
 * the host never cleared) and adds what OAES offers of bits 8 and 11 to feature 0Bh, unless Set Features would freeze
 * I/O. *text says in words what was found and done; the caller frees it. Failing is no reason not to rescan.
 */
void admin_rearm(struct admin *a, char **text);

/* A status > 0 or a negative errno in words; static or thread-unsafe storage. */
const char *admin_strerror(int err);
