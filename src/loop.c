/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "loop.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "ask.h"
#include "history.h"
#include "log.h"
#include "loop-parts.h"
#include "report.h"
#include "sysfs.h"
#include "udevdb.h"

/* What ends later than this is left to the timer; the unit's TimeoutStartSec is above it. */
#define RUN_LIMIT (120 * NS_PER_SEC)
#define LOOK_EVERY (5 * NS_PER_SEC)
#define LOOK_EVERY_SETTLING NS_PER_SEC
/* Who waits for a device wants it at once, and wants to know when another actor has ended. */
#define LOOK_SPACING_WAIT (50 * NS_PER_MS)
#define LOOK_EVERY_LOCKED_OUT NS_PER_SEC
/* Looks are kept apart by this and by a multiple of what the last one took: 1,000 events are not 1,000 looks. */
#define LOOK_SPACING (200 * NS_PER_MS)
#define LOOK_SPACING_FACTOR 5
#define MAX_CHILDREN 64

/* One subsystem that this run cares for: its record, and whether we are its actor. */
struct slot {
	char *nqn, *hostnqn;
	struct plan_record record;
	int lock;
	bool stored;          /* there is a file, or ought to be */
	uint64_t stored_hash; /* of what it holds */
};

struct loop {
	const struct loop_options *o;
	struct config config;
	struct topo topo;
	int root, dev, proc;
	struct history *history;
	struct probes probes;
	struct ask *ask;
	struct udev_watch *watch;
	int signals;
	struct slot *slot;
	size_t n_slot;
	struct plan_event *event; /* from triggers taken since the last plan */
	size_t n_event;
	struct plan *plan;
	struct utsname uts;
	int64_t run_start, looked_at, look_took;
	size_t n_rescan;   /* asked for in this run */
	bool look_wanted;  /* something says that the world changed */
	bool act_deferred; /* something could not be started yet */
	bool terminated;
};

/* ---- look ---- */

static int load_config(struct loop *l)
{
	int err;

	if (l->config.stamp && l->config.stamp == config_stamp(&l->o->paths))
		return 0;
	plan_free(l->plan); /* it points into what goes now */
	l->plan = NULL;
	config_free(&l->config);
	err = config_load(&l->config, &l->o->paths);
	for (size_t i = 0; i < l->config.faults.n; i++)
		log_err("%s", l->config.faults.text[i]);
	if (err < 0) {
		log_err("the configuration has faults: nothing is done");
		return EXIT_CONFIG;
	}
	return loop_narrow(&l->config, l->o);
}

static int look(struct loop *l)
{
	unsigned want = l->plan && l->plan->want_ids ? SYSFS_IDS : 0;
	int64_t began = now_boottime();
	int err;

	plan_free(l->plan);
	l->plan = NULL;
	topo_free(&l->topo);
	err = sysfs_read_with(l->root, l->dev, l->proc, want, &l->topo);
	if (err < 0) {
		log_err("cannot read sysfs: %s", strerror(-err));
		return EXIT_TROUBLE;
	}
	for (size_t i = 0; i < l->topo.n_note; i++)
		log_debug("%s", l->topo.note[i]);
	l->looked_at = began;
	l->look_took = now_boottime() - began;
	l->look_wanted = false;
	return 0;
}

static int64_t next_look_allowed(const struct loop *l)
{
	int64_t spacing = l->o->timeout ? LOOK_SPACING_WAIT : LOOK_SPACING;

	return l->looked_at + max_time(spacing, LOOK_SPACING_FACTOR * l->look_took);
}

/* ---- records, locks, triggers ---- */

static struct slot *find_slot(struct loop *l, const char *nqn, const char *hostnqn)
{
	for (size_t i = 0; i < l->n_slot; i++)
		if (streq(l->slot[i].nqn, nqn) && str_same(l->slot[i].hostnqn, hostnqn))
			return &l->slot[i];
	return NULL;
}

static void load_record(struct loop *l, struct slot *s)
{
	int got;

	rec_subsys_clear(&s->record.r);
	got = history_load(l->history, s->nqn, s->hostnqn, now_boottime(), &s->record.r);
	if (got < 0)
		log_warning("the record of %s cannot be read and counts as none: %s", s->nqn, strerror(-got));
	s->stored = got != 0;
	s->stored_hash = rec_subsys_hash(&s->record.r);
}

static void take_triggers(struct loop *l, struct slot *s)
{
	cleanup_free struct trigger *list = NULL;
	ssize_t n = history_take_triggers(l->history, s->nqn, &list);

	if (n < 0)
		log_warning("triggers of %s cannot be taken: %s", s->nqn, strerror((int)-n));
	for (ssize_t i = 0; i < n; i++) {
		log_debug("trigger: %s of nvme%d at %lld ms", list[i].connected ? "connected" : "changed", list[i].instance,
			  (long long)(list[i].at / NS_PER_MS));
		l->look_wanted = true; /* taken first, looked at afterwards */
		if (!list[i].connected || list[i].instance < 0)
			continue;
		ARRAY_GROW(l->event, l->n_event);
		l->event[l->n_event++] = (struct plan_event){ .nqn = s->nqn, .instance = list[i].instance,
							      .at = list[i].at };
	}
}

/* Become the actor (rule 12). True: just now. The record is read again: another process may have just written it. */
static bool try_lock(struct loop *l, struct slot *s)
{
	int fd;

	if (s->lock >= 0)
		return false;
	fd = history_lock(l->history, s->nqn, s->hostnqn);
	if (fd < 0) {
		if (!s->record.locked_out)
			log_info("%s: %s", s->nqn, fd == -EAGAIN ? "another nvme-nsheal is at work on it" : strerror(-fd));
		s->record.locked_out = true;
		return false;
	}
	s->lock = fd;
	s->record.may_act = true;
	s->record.locked_out = false;
	load_record(l, s);
	take_triggers(l, s);
	return true;
}

/* A slot for every pair of section and real NQN; those of sections that are gone are let go of. */
static void sync_slots(struct loop *l, const struct plan_pair *pair, size_t n)
{
	for (size_t i = l->n_slot; i-- > 0;) {
		struct slot *s = &l->slot[i];
		bool wanted = false;

		for (size_t k = 0; k < n; k++)
			wanted = wanted || (streq(pair[k].nqn, s->nqn) && str_same(pair[k].expect->hostnqn, s->hostnqn));
		if (wanted)
			continue;
		for (size_t k = l->n_event; k-- > 0;)
			if (l->event[k].nqn == s->nqn)
				l->event[k] = l->event[--l->n_event];
		if (s->lock >= 0)
			close(s->lock);
		rec_subsys_clear(&s->record.r);
		free(s->nqn);
		free(s->hostnqn);
		*s = l->slot[--l->n_slot];
	}
	for (size_t k = 0; k < n; k++) {
		struct slot *s;

		if (find_slot(l, pair[k].nqn, pair[k].expect->hostnqn))
			continue;
		ARRAY_GROW(l->slot, l->n_slot);
		s = &l->slot[l->n_slot++];
		*s = (struct slot){ .nqn = xstrdup(pair[k].nqn), .hostnqn = xstrdup_null(pair[k].expect->hostnqn),
				    .lock = -1 };
		load_record(l, s);
	}
	for (size_t i = 0; i < l->n_slot && l->o->mode == PLAN_HEAL && !l->o->dry_run; i++)
		if (l->slot[i].lock < 0 && (l->slot[i].stored || history_triggered(l->history, l->slot[i].nqn)))
			try_lock(l, &l->slot[i]);
}

static bool any_trigger(struct loop *l)
{
	for (size_t i = 0; i < l->n_slot; i++)
		if (!l->slot[i].record.locked_out && history_triggered(l->history, l->slot[i].nqn))
			return true;
	return false;
}

static int save_slot(struct loop *l, struct slot *s)
{
	bool something = s->record.r.n_ns || s->record.r.n_ctrl;
	uint64_t hash = rec_subsys_hash(&s->record.r);
	int err;

	if (s->lock < 0 || l->o->dry_run || (something == s->stored && hash == s->stored_hash))
		return 0;
	err = history_save(l->history, &s->record.r);
	if (err < 0) {
		log_err("the record of %s cannot be written: %s", s->nqn, strerror(-err));
		return err;
	}
	s->stored = something;
	s->stored_hash = hash;
	return 0;
}

/* Records and triggers of what the configuration no longer names. */
static bool keep_trigger(void *arg, uint64_t hash)
{
	struct loop *l = arg;

	for (size_t i = 0; i < l->n_slot; i++)
		if (hash_bytes(HASH_INIT, l->slot[i].nqn, strlen(l->slot[i].nqn)) == hash)
			return true;
	return false;
}

static void sweep(struct loop *l)
{
	char **nqn = history_list(l->history);

	for (char **p = nqn; p && *p; p++) {
		struct rec_subsys none = { .nqn = *p };
		bool known = false;
		cleanup_fd int lock = -1;

		for (size_t i = 0; i < l->n_slot; i++)
			known = known || streq(l->slot[i].nqn, *p);
		if (!known && (lock = history_lock(l->history, *p, NULL)) >= 0 && history_save(l->history, &none) < 0)
			log_debug("the record of %s stays", *p);
	}
	for (char **p = nqn; p && *p; p++)
		free(*p);
	free(nqn);
	history_sweep_triggers(l->history, keep_trigger, l);
}

/* ---- plan ---- */

static void make_plan(struct loop *l, const struct plan_pair *pair, size_t n)
{
	cleanup_free struct plan_record *rec = xcalloc(n, sizeof(*rec));
	struct plan_input in = {
		.expect = &l->config.expect, .topo = &l->topo, .probes = &l->probes, .rec = rec, .n_rec = n,
		.now = now_boottime(), .run_start = l->run_start, .mode = l->o->mode, .skip_grace = l->o->skip_grace,
		.dry_run = l->o->dry_run, .partial = l->o->nqn != NULL, .kernel = l->uts.release, .event = l->event, .n_event = l->n_event,
	};

	for (size_t k = 0; k < n; k++) {
		rec[k] = find_slot(l, pair[k].nqn, pair[k].expect->hostnqn)->record;
		rec[k].may_act = rec[k].may_act || l->o->dry_run;
	}
	plan_free(l->plan);
	l->plan = plan_make(&in);
	for (size_t k = 0; k < n; k++)
		find_slot(l, pair[k].nqn, pair[k].expect->hostnqn)->record.r = rec[k].r;
}

/* Plans, and becomes the actor of what needs one; then plans again with that subsystem's record. */
static void plan(struct loop *l)
{
	size_t n;
	cleanup_free struct plan_pair *pair = plan_pairs(&l->config.expect, &l->topo, &n);
	bool again;

	sync_slots(l, pair, n);
	do {
		make_plan(l, pair, n);
		again = false;
		for (size_t k = 0; k < n && !l->o->dry_run; k++)
			if (l->plan->subsys[k].needs_lock)
				again |= try_lock(l, find_slot(l, pair[k].nqn, pair[k].expect->hostnqn));
	} while (again);
	l->n_event = 0;
}

/* ---- act ---- */

static bool plan_asks(const struct plan *p, int instance)
{
	for (size_t i = 0; i < p->n_act; i++)
		if (p->act[i].instance == instance)
			return true;
	return false;
}

/* All places are taken: let go of children that have answered and have nothing to do now. */
static void release_idle(struct loop *l)
{
	for (size_t i = 0; i < l->probes.n; i++)
		if (l->probes.probe[i].status != PROBE_RUNNING && !plan_asks(l->plan, l->probes.probe[i].instance))
			ask_release(l->ask, l->probes.probe[i].instance);
}

static int ask(struct loop *l, const struct act *a)
{
	const struct subsys_finding *sf = &l->plan->subsys[a->subsys];
	const char *nqn = sf->nqn, *hostnqn = sf->expect->hostnqn;
	int64_t now = now_boottime();

	switch (a->kind) {
	case ACT_LIST:
		return ask_request(l->ask, a->instance, nqn, hostnqn, ASK_LIST, NULL, 0, now);
	case ACT_IDENTIFY:
		return ask_request(l->ask, a->instance, nqn, hostnqn, ASK_IDENTIFY, a->nsid, a->n, now);
	case ACT_IDENTIFY_ALL:
		return ask_request(l->ask, a->instance, nqn, hostnqn, ASK_IDENTIFY_ALL, NULL, 0, now);
	case ACT_ANA:
		return ask_request(l->ask, a->instance, nqn, hostnqn, ASK_ANA, a->nsid, a->n, now);
	case ACT_USE:
		return ask_about_disks(l->ask, a->instance, nqn, hostnqn, ASK_USE, NULL, a->disk, a->n, now);
	case ACT_GONE:
		return ask_about_disks(l->ask, a->instance, nqn, hostnqn, ASK_GONE, a->nsid, a->disk, a->n, now);
	default:
		return ask_request(l->ask, a->instance, nqn, hostnqn, a->rearm ? ASK_REARM_RESCAN : ASK_RESCAN, NULL, 0, now);
	}
}

static void act_one(struct loop *l, const struct act *a)
{
	struct probe *probe;
	int err = ask(l, a);

	if (err == -EBUSY) {
		release_idle(l);
		err = ask(l, a);
	}
	if (err == -EBUSY && a->kind != ACT_RESCAN) {
		l->act_deferred = true;
		return;
	}
	if (err >= 0)
		return;
	probe = probes_get(&l->probes, a->instance, l->plan->subsys[a->subsys].nqn);
	if (a->kind == ACT_RESCAN)
		probe->rescan_error = err;
	if (probe->status != PROBE_HUNG)
		probe->status = PROBE_FAILED;
	free(probe->error);
	probe->error = xasprintf("cannot be asked: %s", strerror(-err));
	l->act_deferred = true; /* the plan has to know */
}

/* What the repair of the notification channels found (rule 9): told once. */
static void tell_rearmed(struct loop *l)
{
	for (size_t i = 0; i < l->probes.n; i++) {
		struct probe *p = &l->probes.probe[i];

		if (!p->rearm)
			continue;
		if (starts_with(p->rearm, "in order"))
			log_debug("nvme%d: notification channel: %s", p->instance, p->rearm);
		else
			log_notice("nvme%d: notification channel: %s", p->instance, p->rearm);
		free(p->rearm);
		p->rearm = NULL;
	}
}

static int act(struct loop *l)
{
	int failed = 0;

	l->act_deferred = false;
	/* Rule 8: written down first; what cannot be written down is not done. */
	for (size_t i = 0; i < l->n_slot; i++)
		if (save_slot(l, &l->slot[i]) < 0)
			failed = EXIT_TROUBLE;
	for (size_t i = 0; i < l->plan->n_act; i++) {
		const struct act *a = &l->plan->act[i];

		if (a->kind == ACT_RESCAN) {
			if (l->o->dry_run || failed)
				continue;
			report_act(l->plan, a);
			l->look_wanted = true;
			l->n_rescan++;
		}
		act_one(l, a);
	}
	return failed;
}

/* ---- wait ---- */

static int64_t run_ends(const struct loop *l)
{
	return time_add(l->run_start, l->o->timeout ? l->o->timeout : RUN_LIMIT);
}

static bool all_there(const struct plan *p)
{
	for (size_t i = 0; i < p->n_subsys; i++)
		if (p->subsys[i].n_good < p->subsys[i].n)
			return false;
	return !p->pending;
}

static int64_t look_every(const struct loop *l)
{
	if (l->plan->settling)
		return LOOK_EVERY_SETTLING;
	for (size_t i = 0; i < l->n_slot && l->o->timeout; i++)
		if (l->slot[i].record.locked_out)
			return LOOK_EVERY_LOCKED_OUT;
	return LOOK_EVERY;
}

static bool asking(const struct loop *l)
{
	return ask_wake(l->ask) != TIME_NEVER;
}

/* Is there anything that this run still waits for? */
static bool is_done(struct loop *l)
{
	int64_t now = now_boottime();

	if (l->terminated || now >= run_ends(l))
		return true;
	if (l->o->timeout)
		return all_there(l->plan);
	if (asking(l) || l->act_deferred || l->plan->pending)
		return false;
	if (l->o->mode != PLAN_HEAL || l->o->dry_run)
		return true;
	/* an effect may come long before the time that it is given at most */
	if (l->plan->settling || l->plan->wake - l->run_start < RUN_LIMIT)
		return false;
	return !any_trigger(l);
}

static int64_t wake_time(const struct loop *l)
{
	int64_t when = min_time(l->plan->wake, min_time(ask_wake(l->ask), time_add(l->looked_at, look_every(l))));

	when = min_time(when, run_ends(l));
	if (l->look_wanted || l->act_deferred || (l->plan->want_ids && !l->topo.ids_complete))
		when = min_time(when, next_look_allowed(l));
	return when;
}

static void open_ears(struct loop *l)
{
	int err;

	if (l->watch || l->o->mode != PLAN_HEAL || l->o->dry_run)
		return;
	err = udev_watch_new(&l->watch);
	if (err < 0) {
		log_debug("no uevents here (%s): looking at intervals", strerror(-err));
		l->watch = NULL;
	}
	l->look_wanted = true; /* what happened before we listened */
}

/* Until an event, an answer, or the time: whatever it was, the loop looks and plans again. */
static void wait_for_change(struct loop *l)
{
	cleanup_free struct pollfd *fds = NULL;
	int64_t now = now_boottime(), left;
	size_t n = 0;

	open_ears(l);
	ARRAY_GROW(fds, n);
	fds[n++] = (struct pollfd){ .fd = l->signals, .events = POLLIN };
	ARRAY_GROW(fds, n);
	fds[n++] = (struct pollfd){ .fd = l->watch ? udev_watch_fd(l->watch) : -1, .events = POLLIN };
	n = ask_poll(l->ask, &fds, n);

	left = wake_time(l) - now;
	left = left < 0 ? 0 : left;
	if (poll(fds, n, (int)(left / NS_PER_MS) + (left > 0)) < 0 && errno != EINTR) {
		log_err("poll: %s", strerror(errno));
		l->terminated = true;
	}
	if (fds[0].revents) {
		log_info("asked to end");
		l->terminated = true;
	}
	if (l->watch && fds[1].revents && udev_watch_drain(l->watch))
		l->look_wanted = true;
	ask_collect(l->ask, now_boottime());
	tell_rearmed(l);
	now = now_boottime();
	if (now - l->looked_at >= look_every(l) || now >= run_ends(l))
		l->look_wanted = true;
}

/* ---- the loop ---- */

/* One step: look (unless that was just done), plan, act. An exit code, or 0 to go on. */
static int step(struct loop *l)
{
	bool first = l->looked_at == 0;
	int err = load_config(l);

	if (err)
		return err;
	for (size_t i = 0; i < l->n_slot; i++)
		if (l->slot[i].lock >= 0)
			take_triggers(l, &l->slot[i]);
	if (first || !l->plan || l->look_wanted || (l->plan->want_ids && !l->topo.ids_complete))
		if (first || now_boottime() >= next_look_allowed(l)) {
			err = look(l);
			if (err)
				return err;
		}
	plan(l);
	if (l->o->mode == PLAN_HEAL && !l->o->dry_run)
		report_news(l->plan, now_boottime());
	return act(l);
}

static int run(struct loop *l)
{
	int err;

	for (;;) {
		err = step(l);
		if (err || is_done(l))
			return err;
		wait_for_change(l);
	}
}

static int begin(struct loop *l, const struct loop_options *o)
{
	sigset_t set;
	int err;

	*l = (struct loop){ .o = o, .root = -1, .dev = -1, .proc = -1, .signals = -1, .run_start = now_boottime() };
	uname(&l->uts);
	l->root = sysfs_open_root(o->sysroot ? o->sysroot : "/sys");
	if (l->root < 0) {
		log_err("%s: %s", o->sysroot ? o->sysroot : "/sys", strerror(-l->root));
		return EXIT_TROUBLE;
	}
	if (!o->sysroot) {
		l->dev = open("/dev", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		l->proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	}
	/* who asks needs it for the children's locks, also to look only */
	err = history_open(o->sysroot ? "/nonexistent" : o->rundir, o->mode != PLAN_STATUS, &l->history);
	if (err < 0) {
		log_err("%s: %s", o->rundir, err == -EPERM ? "not root's alone: not used" : strerror(-err));
		return EXIT_TROUBLE;
	}
	l->ask = ask_new(o->ask_program, o->rundir, MAX_CHILDREN, &l->probes);
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigprocmask(SIG_BLOCK, &set, NULL);
	l->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return 0;
}

static void end(struct loop *l)
{
	for (size_t i = 0; i < l->n_slot; i++) {
		if (l->slot[i].lock >= 0)
			close(l->slot[i].lock);
		rec_subsys_clear(&l->slot[i].record.r);
		free(l->slot[i].nqn);
		free(l->slot[i].hostnqn);
	}
	free(l->slot);
	free(l->event);
	plan_free(l->plan);
	ask_free(l->ask);
	probes_free(&l->probes);
	topo_free(&l->topo);
	config_free(&l->config);
	udev_watch_free(l->watch);
	history_close(l->history);
	for (const int *fd = (const int[]){ l->signals, l->root, l->dev, l->proc, -2 }; *fd != -2; fd++)
		if (*fd >= 0)
			close(*fd);
}

/* As one JSON document what the last plan found, and what was done in this run. */
static int print_json(const struct loop *l)
{
	struct report_options ro = { .now = now_boottime(), .remembered = l->o->mode == PLAN_STATUS };

	ro.elapsed = ro.now - l->run_start;
	ro.n_rescan = l->n_rescan;
	return report_json(stdout, l->plan, &ro) < 0 ? EXIT_TROUBLE : 0; /* main says that it cannot write */
}

int loop_heal(const struct loop_options *o)
{
	struct loop l;
	int err = begin(&l, o);

	if (!err)
		err = run(&l);
	if (!err && o->json)
		err = print_json(&l);
	else if (!err && o->dry_run && report_dry_run(stdout, l.plan) < 0)
		err = EXIT_TROUBLE;
	if (!err && !o->dry_run && (!o->only || !*o->only))
		sweep(&l);
	end(&l);
	return err;
}

int loop_status(const struct loop_options *o)
{
	struct report_options ro = { .all = o->all_rows };
	struct winsize ws;
	struct loop l;
	int err = begin(&l, o);

	if (!err)
		err = run(&l);
	if (!err && o->json) {
		err = print_json(&l);
	} else if (!err) {
		if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &ws) == 0)
			ro.width = ws.ws_col;
		ro.now = now_boottime();
		ro.remembered = o->mode == PLAN_STATUS;
		ro.color = ro.width && !getenv("NO_COLOR");
		err = report_table(stdout, l.plan, &ro) < 0 ? EXIT_TROUBLE : 0; /* main says that it cannot write */
	}
	if (!err && !all_there(l.plan))
		err = EXIT_NOT_THERE;
	end(&l);
	return err;
}

int loop_wait(const struct loop_options *o)
{
	struct loop l;
	int err = begin(&l, o);

	if (!err)
		err = run(&l);
	if (!err && !all_there(l.plan)) {
		report_not_there(l.plan, now_boottime());
		err = EXIT_NOT_THERE;
	}
	if ((!err || err == EXIT_NOT_THERE) && o->json)
		err = print_json(&l) ? EXIT_TROUBLE : err;
	else if (!err && report_devices(stdout, l.plan) < 0)
		err = EXIT_TROUBLE;
	end(&l);
	return err;
}

static const char *not_attached(const struct loop_options *o, const struct topo *t)
{
	for (const char *const *word = o->only; word && *word; word++)
		if (!topo_find(t, *word))
			return *word;
	return NULL;
}

int loop_generate(const struct loop_options *o)
{
	struct loop l;
	int err = begin(&l, o);

	if (!err)
		err = look(&l);
	if (!err && not_attached(o, &l.topo)) {
		log_err("%s: this host is not connected to a subsystem of that NQN", not_attached(o, &l.topo));
		err = EXIT_NOT_THERE;
	}
	if (!err && report_configuration(stdout, &l.topo, loop_can_configure, o->only) < 0)
		err = EXIT_TROUBLE;
	end(&l);
	return err;
}
