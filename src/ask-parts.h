/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Inside ask.c and ask-lines.c only: the children, and what they say.
 */
#pragma once

#include "ask.h"

/* More than ADMIN_MAX_NS by a line at most */
#define MAX_LIST (65536 + 1024)
#define NO_ANSWER "gave an answer that makes no sense"

/* One child. It serves one controller for the whole run. */
struct child {
	int instance;
	char *nqn;
	char *hostnqn; /* that it has compared; NULL none */
	pid_t pid;
	int to, from; /* -1 closed */
	bool ready;   /* it has opened the controller */
	bool over;    /* nothing more is to come from it */
	bool hung;    /* over, because it hung; while it lives, the controller is left alone */
	bool waiting; /* a request is under way */
	enum ask_what what;
	char *request; /* held back until it is ready */
	int64_t began, progress_at;
	char *line; /* what was read of a line so far */
	size_t n_line;
	uint32_t *list; /* of the request under way: asked for, or listed so far */
	size_t n_list;
	size_t n_answered; /* of these, with an identity or a refusal */
	char **disk;       /* of the request under way: asked about, as many as answers are due */
	size_t n_disk;
};

struct ask {
	char *program, *rundir;
	size_t max;
	int64_t deadline;
	struct probes *probes;
	struct child *child;
	size_t n;
	pid_t *leaving; /* let go of, not reaped yet */
	size_t n_leaving;
};

struct probe *ask_probe(const struct ask *a, const struct child *c);
/* error: allocated, or NULL; the probe's from now on */
void ask_status(const struct ask *a, const struct child *c, enum probe_status status, char *error);
/* Gone, or to be left to itself. Its entry stays, so that a hung one is remembered. */
void ask_give_up(struct ask *a, struct child *c, enum probe_status status, char *error);
int ask_send(struct ask *a, struct child *c);
/* ask-lines.c: one line of a child. False: it is none of the protocol's, or comes at the wrong time. */
bool ask_take_line(struct ask *a, struct child *c, char *line, int64_t now);
