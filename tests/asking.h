/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the tests of ask.c and nvme-nsheal-ask share: asking a fake controller, and waiting for what comes of it. */
#pragma once

#include "ask.h"
#include "controller.h"

#define NQN "nqn.2014-08.org.example:a"
#define OTHER "nqn.2014-08.org.example:b"
#define UUID1 "1b4e28ba-2fa1-11d2-883f-0016d3cca401"
#define UUID2 "1b4e28ba-2fa1-11d2-883f-0016d3cca402"
#define NGUID1 "d07f718b1d2344577bc1bb4d4d516c01"
#define NGUID2 "d07f718b1d2344577bc1bb4d4d516c02"
#define EUI1 "002538b9114a9e01"

/* Nothing takes this long; a test that fails ends by it. */
#define LIMIT (20 * NS_PER_SEC)

struct asking {
	struct fake *f;
	struct probes probes;
	struct ask *a;
	int64_t now; /* as the loop sees it: stands still, so that no deadline passes by itself */
};

/* cmocka's set-up and tear-down. */
int start_asking(void **state);
int stop_asking(void **state);

/* nvme0 is asked. */
int request(struct asking *t, enum ask_what what, const uint32_t *nsid, size_t n);
/* It is asked, and answers. */
struct probe *ask_it(struct asking *t, enum ask_what what);
struct probe *identify_it(struct asking *t, uint32_t nsid);
struct probe *probe(const struct asking *t, int instance);

/* Until something comes from a child of a. */
void wait_for_children(struct ask *a);
void wait_for_answer(struct asking *t, struct ask *a, const struct probe *p);

/* That status, with these words in what is told to people. */
void assert_failed(const struct probe *p, enum probe_status status, const char *words);
void assert_listed(const struct probe *p, const uint32_t *nsid, size_t n);
/* all: as ident_format_all() */
void assert_identity(const struct probe *p, uint32_t nsid, const char *all);

/* The child that was started last. */
pid_t child_pid(void);
/* The process ends within the limit; `reaped`: and does not stay a zombie. */
bool ends(pid_t pid, bool reaped);
