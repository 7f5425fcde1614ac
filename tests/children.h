/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * ask.c with children that are shell scripts in a directory of their own: they speak the protocol of ask.h, or do not.
 * Time is an argument of ask.c: nobody waits here for a deadline to pass.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ask.h"

#define NQN "nqn.2014-08.org.example:array.node1"
#define HOST "nqn.2014-08.org.nvmexpress:uuid:1b4e28ba-2fa1-11d2-883f-0016d3cca427"
/* Any point in time: each test's clock begins here. */
#define T0 (1000 * NS_PER_SEC)
#define NONSENSE "gave an answer that makes no sense"
/* Nothing takes so long; a test that fails may. */
#define PATIENCE_MS 10000

struct stage {
	char dir[32];
	char *program;
	struct probes probes;
	struct ask *ask;
};

/* What every script finds: its directory as the current one, and a word to take a request. */
#define PROLOGUE                                                        \
	"#!/bin/sh\n"                                                   \
	"PATH=/usr/bin:/bin\n"                                          \
	"cd \"${0%/*}\" || exit\n"                                      \
	"take() { read -r request || exit 0; }\n"
/* Each request is answered by the file `answer`; each child leaves a line in `log`. */
#define ANSWERS PROLOGUE "echo $$ >>log; echo ready; while :; do take; cat answer; done\n"
/* One child of a test may do so. */
#define HANGS "echo $$ >hangs; exec sleep 100\n"

/* A path in the directory; caller frees. */
char *in_dir(const struct stage *s, const char *name);
void write_file(const struct stage *s, const char *name, const void *data, size_t n, mode_t mode);
void answer_is(const struct stage *s, const char *text);
/* "" if there is none */
char *read_file(const struct stage *s, const char *name);
void assert_file(const struct stage *s, const char *name, const char *text);
size_t n_lines(const struct stage *s, const char *name);
/* cmocka's set-up and tear-down; *state is the stage. */
int start_stage(void **state);
/* As at the start, but with so many places. */
void places_are(struct stage *s, size_t max);
/* Ends the child that hangs. */
void kill_hanging(const struct stage *s);
int stop_stage(void **state);
void child_is(const struct stage *s, const char *script);
struct probe *probe(const struct stage *s, int instance);
void assert_failed(const struct stage *s, int instance, const char *error);
int request(struct stage *s, int instance, enum ask_what what, int64_t now);
/* of ask.c's children, those whose pipes are open */
size_t n_open(const struct stage *s);
/* Until something comes from a child. */
void wait_for_children(const struct stage *s);
/* The status that replaces PROBE_RUNNING; the answer is collected at that time. */
enum probe_status collect_until_answered(struct stage *s, const struct probe *p, int64_t now);
enum probe_status answer_of(struct stage *s, int instance, int64_t now);
/* request() and answer_of() */
enum probe_status ask(struct stage *s, int instance, enum ask_what what, int64_t now);
/* ASK_IDENTIFY of nvme0 about one NSID */
enum probe_status ask_about(struct stage *s, uint32_t nsid, int64_t now);
/* Collect at that time until the deadline counts from it. */
void progress_at(struct stage *s, int64_t now, int64_t deadline);
/* Until a script has written a line there. */
void wait_for_file(const struct stage *s, const char *name);
/* Until the script has come so far; what it said before is in the pipe by then. */
void wait_until_it_hangs(const struct stage *s);
/* Until a child has ended; it is left to ask.c to be reaped. */
void wait_for_an_end(void);
