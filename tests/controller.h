/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Fake NVMe controllers for the unmodified nvme-nsheal-ask: device nodes and sysfs by umockdev, and whoever answers the
 * ioctls in a thread of this program. Set a controller up, then let it be asked; afterwards see what it was asked.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ident.h"

#define NVME_1_0 0x00010000u
#define NVME_1_2 0x00010200u
#define NVME_1_4 0x00010400u

/* Status codes as the ioctl returns them, with and without Do Not Retry. */
#define INVALID_FIELD 0x4002
#define INVALID_NAMESPACE 0x400b
#define INTERNAL_ERROR 0x0006

#define CNS_NS 0x00
#define CNS_CTRL 0x01
#define CNS_LIST 0x02
#define CNS_DESCS 0x03

/* One namespace of a controller: what CNS 03h says of it, and what CNS 00h says. */
struct fake_ns {
	uint32_t nsid;
	struct ident descs, ns;
	bool inactive; /* CNS 00h all zero */
};

struct fake;
struct controller;

/* cmocka's set-up and tear-down; *state is the fake, with a directory of its own that is the current one. */
int start_fake(void **state);
int stop_fake(void **state);

/* What to give to ask_new(): nvme-nsheal-ask among these controllers, which leaves its pid in the file "pid". */
const char *asker(const struct fake *f);
const char *rundir(const struct fake *f);
/* nvme-nsheal-ask itself */
const char *ask_program(const struct fake *f);

/* A live controller under /dev/nvmeINSTANCE, NVMe 1.4, without namespaces. */
struct controller *controller(struct fake *f, int instance, const char *nqn);
void attribute(struct controller *c, const char *name, const char *value);
/* Its number now leads to that other controller's directory, as if it had gone and the number had been given away. */
void number_passes_to(struct controller *c, const struct controller *other);
/* The node can be opened no more (EIO); what is open stays so. */
void no_more_opens(struct controller *c);

/* A namespace, appended. The pointer is good until the next one. */
struct fake_ns *map(struct controller *c, uint32_t nsid);
/* uuid or nguid may be NULL */
struct fake_ns *map_as(struct controller *c, uint32_t nsid, const char *uuid, const char *nguid);
void unmap(struct controller *c, uint32_t nsid);
void version(struct controller *c, uint32_t vs, uint32_t nn);
/* That command for that NSID (0: any) gets this: a status > 0, or -errno of the ioctl. */
void fails(struct controller *c, int cns, uint32_t nsid, int error);
/* What CNS 03h answers for any NSID, byte by byte. */
void raw_descs(struct controller *c, const void *data, size_t n);
/* Every answer to CNS 02h is this page. */
void raw_list(struct controller *c, const uint32_t page[1024]);
void rescan_fails(struct controller *c, int error);
void answers_after_ms(struct controller *c, int cns, unsigned ms);
/* That command for that NSID is never answered, until it is let go: then INTERNAL_ERROR. */
void hangs(struct controller *c, int cns, uint32_t nsid);
void wait_until_it_hangs(struct controller *c);
void let_go(struct controller *c);

/* What it was asked since the last call of this: "02h:0 03h:7 rescan". Static storage. */
const char *asked(struct controller *c);
