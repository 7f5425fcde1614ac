/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Findings for the tests of the reports, as the planner would hand them over: a section, its namespaces, rescans.
 */
#pragma once

#include "plan.h"

#define NOW (1000 * NS_PER_SEC)
#define NQN "nqn.2014-08.org.example:storage"
#define UUID_A "1b4e28ba-2fa1-11d2-883f-0016d3cca427"
#define UUID_B "2c5f39cb-2fa1-11d2-883f-0016d3cca427"

struct fixture {
	struct plan plan;
	struct topo_disk disk[4];
	struct expect_ns line[512];
	size_t n_line;
};

/* A section with this label, connected through two live controllers. What follows belongs to it. */
struct subsys_finding *subsystem(struct fixture *fx, const char *label, const char *nqn);
struct subsys_finding *last_subsys(struct fixture *fx);
/* A line of the configuration: nsid 0, uuid or name NULL: not given. */
struct expect_ns *line(struct fixture *fx, uint32_t nsid, const char *uuid, const char *name);
/* line NULL: expected by `all`. It is news. */
struct finding *finding(struct fixture *fx, const struct expect_ns *line, enum ns_state state, enum ns_action action,
			const char *evidence);
/* Present with two paths, and no news. */
struct finding *present(struct fixture *fx, const struct expect_ns *line, uint32_t nsid, const char *device);
void rescan(struct fixture *fx, int instance, const char *why);

int setup(void **state);
int teardown(void **state);
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
