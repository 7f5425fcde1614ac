/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "report.h"

#include <errno.h>
#include <stdlib.h>

#include <libsmartcols.h>

#include "log.h"

/* Longest texts shown: an NQN has at most 223 bytes, the rest is cut so that one hostile name cannot fill a screen. */
#define SHOW_LABEL 64
#define SHOW_NAME 128
#define SHOW_NQN 256
#define SHOW_EVIDENCE 500
/* Of many equal findings, the ones that are named. */
#define SHOW_NAMES 3
/* Less room than this for the evidence would make it a column of single words: then it is told below the table. */
#define MIN_EVIDENCE 24

/* ---- words ---- */

/* The subsystem as the administrator calls it; where one section stands for many, with the NQN that is meant. */
static char *subsys_word(const struct subsys_finding *sf)
{
	cleanup_free char *label = printable(sf->expect->label, SHOW_LABEL);
	cleanup_free char *nqn = printable(sf->nqn, SHOW_NQN);

	if (expect_any_nqn(sf->expect) && !streq(sf->nqn, "*"))
		return xasprintf("%s (%s)", label, nqn);
	return xstrdup(label);
}

/*
 * The namespace as the configuration spells it, after the administrator's own name for it: "pvc-4f1e uuid=1b4e...".
 * What is expected by its NSID alone, or by `all`, is called by the identity that its device shows, if there is one.
 */
static char *ns_word(const struct finding *f)
{
	const struct expect_ns *line = f->line;
	const char *name = line && line->name ? line->name : "";
	cleanup_free char *id = xstrdup("");
	cleanup_free char *word = NULL;

	free(id);
	if (line && !ident_empty(&line->id))
		id = ident_format(&line->id);
	else if (f->state == STATE_PRESENT && f->disk && !ident_empty(&f->disk->id))
		id = ident_format(&f->disk->id);
	else if (f->nsid)
		id = xasprintf("nsid=%u", f->nsid);
	else
		id = xstrdup(line && line->all ? "all" : "");
	word = xasprintf("%s%s%s", name, *name && *id ? " " : "", id);
	return printable(word, SHOW_NAME);
}

static const char *evidence_of(const struct finding *f, bool remembered)
{
	if (f->evidence)
		return f->evidence;
	if (f->transient)
		return "not every controller had answered by now";
	if (f->state == STATE_MISSING && remembered)
		return "nobody has asked the controllers why yet: status --probe does";
	return "";
}

static char *left(int64_t until, int64_t now)
{
	char buf[32];

	return xstrdup(format_duration(max_time(until - now, 0), buf));
}

/* What the action means for the reader, to follow the evidence. "" if it says nothing that the evidence does not. */
static char *action_words(const struct finding *f, bool guarded, int64_t now)
{
	cleanup_free char *time = left(f->until, now);

	switch (f->action) {
	case ACTION_GRACE:
		return xasprintf("given %s more to appear by itself", time);
	case ACTION_SETTLING:
		return f->until ? xasprintf("rescanned; the effect may take another %s", time) : xstrdup("rescanned");
	case ACTION_BACKOFF:
		return xasprintf("a rescan had no effect, the next is due in %s", time);
	case ACTION_GAVE_UP:
		return xasprintf("rescans had no effect: look at the kernel's log; the next is due in %s", time);
	case ACTION_REPORT:
		if (guarded)
			return xstrdup("not rescanned: kernels 5.14.0-N.el9 before N = 586 can hang in a rescan; "
				       "`kernel-guard = no` or `action = rescan` overrides that");
		return xstrdup("not rescanned: the configuration says `action = report`");
	default:
		return xstrdup("");
	}
}

/* Evidence, what the action means, how old the answer is: one cell, or the end of a line in the journal. */
static char *explain(const struct finding *f, bool guarded, bool remembered, int64_t now)
{
	cleanup_free char *evidence = printable(evidence_of(f, remembered), SHOW_EVIDENCE);
	cleanup_free char *action = action_words(f, guarded, now);
	cleanup_free char *device = NULL;
	char ago[32];

	/* the device that is in the way, not one that is the namespace's */
	if (f->state == STATE_CONFLICT && f->disk)
		device = xasprintf(" (%s)", f->disk->name);
	if (remembered && f->answered_at)
		format_duration(max_time(now - f->answered_at, 0), ago);
	return xasprintf("%s%s%s%s%s%s%s", evidence, device ? device : "", *evidence && *action ? "; " : "", action,
			 remembered && f->answered_at ? " (asked " : "", remembered && f->answered_at ? ago : "",
			 remembered && f->answered_at ? " ago)" : "");
}

/* ---- lines ---- */

/* Findings of one subsystem with the same state and action. */
struct group {
	size_t n;
	size_t first[SHOW_NAMES]; /* positions in plan->finding */
	int64_t since;            /* the earliest */
};

struct groups {
	struct group by[N_STATES][N_ACTIONS];
};

static void group_add(struct groups *g, const struct plan *p, size_t at)
{
	const struct finding *f = &p->finding[at];
	struct group *to = &g->by[f->state][f->action];

	if (to->n < SHOW_NAMES)
		to->first[to->n] = at;
	if (f->since && (!to->since || f->since < to->since))
		to->since = f->since;
	to->n++;
}

/* "uuid=..., nsid=7, nsid=8 and 297 more" */
static char *group_names(const struct plan *p, const struct group *g)
{
	char *text = xstrdup("");

	for (size_t i = 0; i < g->n && i < SHOW_NAMES; i++) {
		cleanup_free char *name = ns_word(&p->finding[g->first[i]]);
		char *longer = xasprintf("%s%s%s", text, i ? ", " : "", name);

		free(text);
		text = longer;
	}
	if (g->n > SHOW_NAMES) {
		char *longer = xasprintf("%s and %zu more", text, g->n - SHOW_NAMES);

		free(text);
		text = longer;
	}
	return text;
}

static char *say_good(const struct plan *p, const struct subsys_finding *sf, const struct group *g, int64_t now)
{
	const struct finding *f = &p->finding[g->first[0]];
	cleanup_free char *subsys = subsys_word(sf);
	cleanup_free char *names = group_names(p, g);
	cleanup_free char *device = f->disk ? printable(f->disk->name, SHOW_NAME) : xstrdup("");
	char age[32];

	if (g->n > 1)
		return xasprintf("%s: %zu namespaces are there%s%s: %s", subsys, g->n, g->since ? " again, after " : "",
				 g->since ? format_duration(max_time(now - g->since, 0), age) : "", names);
	return xasprintf("%s: %s is there%s%s%s%s", subsys, names, *device ? " as " : "", device,
			 g->since ? ", after " : "", g->since ? format_duration(max_time(now - g->since, 0), age) : "");
}

static char *say_bad(const struct plan *p, const struct subsys_finding *sf, const struct group *g, bool remembered,
		     int64_t now)
{
	const struct finding *f = &p->finding[g->first[0]];
	cleanup_free char *subsys = subsys_word(sf);
	cleanup_free char *names = group_names(p, g);
	cleanup_free char *why = explain(f, sf->guarded, remembered, now);
	const char *action = f->action == ACTION_NONE ? "" : ns_action_name(f->action);
	const char *sep = *action ? ", " : "";

	if (g->n > 1)
		return xasprintf("%s: %zu namespaces are %s%s%s: %s%s%s", subsys, g->n, ns_state_name(f->state), sep,
				 action, names, *why ? ": " : "", why);
	return xasprintf("%s: %s is %s%s%s%s%s", subsys, names, ns_state_name(f->state), sep, action, *why ? ": " : "",
			 why);
}

static char *say_group(const struct plan *p, const struct subsys_finding *sf, const struct group *g, int64_t now)
{
	if (ns_state_is_good(p->finding[g->first[0]].state, &sf->expect->policy))
		return say_good(p, sf, g, now);
	return say_bad(p, sf, g, false, now);
}

/* A sentence for each group of what is not there; with `left_alone`, only of what no rescan is planned for. */
static void print_bad(FILE *out, const struct plan *p, const struct subsys_finding *sf, bool remembered, int64_t now,
		      bool left_alone)
{
	struct groups g = { 0 };

	for (size_t k = sf->first; k < sf->first + sf->n; k++)
		if (!ns_state_is_good(p->finding[k].state, &sf->expect->policy) &&
		    !(left_alone && p->finding[k].action == ACTION_RESCAN))
			group_add(&g, p, k);
	for (size_t s = 0; s < N_STATES; s++)
		for (size_t a = 0; a < N_ACTIONS; a++)
			if (g.by[s][a].n) {
				cleanup_free char *text = say_bad(p, sf, &g.by[s][a], remembered, now);

				fprintf(out, "%s\n", text);
			}
}

/* Will it change by itself, by the kernel's doing or by ours? */
static bool is_waiting(const struct finding *f)
{
	switch (f->action) {
	case ACTION_GRACE:
	case ACTION_RESCAN:
	case ACTION_SETTLING:
	case ACTION_BACKOFF:
		return true;
	default:
		return f->state == STATE_UNREADY || f->state == STATE_MISSING;
	}
}

static void log_group(const struct plan *p, const struct subsys_finding *sf, const struct group *g, int64_t now)
{
	const struct finding *f = &p->finding[g->first[0]];
	cleanup_free char *text = say_group(p, sf, g, now);

	if (ns_state_is_good(f->state, &sf->expect->policy))
		log_notice("%s", text);
	else if (is_waiting(f))
		log_info("%s", text);
	else
		log_warning("%s", text);
}

/* ---- the table ---- */

enum column { COL_NAME, COL_NSID, COL_STATE, COL_ACTION, COL_PATHS, COL_DEVICE, COL_EVIDENCE, N_COLUMNS };

static const struct {
	const char *title;
	int flags;
} columns[N_COLUMNS] = {
	[COL_NAME] = { "NAME", SCOLS_FL_TREE },
	[COL_NSID] = { "NSID", SCOLS_FL_RIGHT },
	[COL_STATE] = { "STATE", 0 },
	[COL_ACTION] = { "ACTION", 0 },
	[COL_PATHS] = { "PATHS", SCOLS_FL_RIGHT },
	[COL_DEVICE] = { "DEVICE", 0 },
	[COL_EVIDENCE] = { "EVIDENCE", 0 },
};

struct table {
	struct libscols_table *tb;
	const struct report_options *o;
	size_t width[N_COLUMNS]; /* of the widest cell so far */
	int err;
};

static void unref_table(struct libscols_table **tb)
{
	scols_unref_table(*tb);
}

/* The table takes the text over. smartcols fails for want of memory only; the first failure is kept. */
static void set_cell(struct table *t, struct libscols_line *line, enum column column, char *text)
{
	size_t width = strlen(text) + (column == COL_NAME && scols_line_get_parent(line) ? 2 : 0); /* the branch */
	int err = scols_line_refer_data(line, column, text);

	t->width[column] = width > t->width[column] ? width : t->width[column];
	if (err) {
		free(text);
		t->err = t->err ? t->err : err;
	}
}

static void set_color(struct table *t, struct libscols_line *line, const struct finding *f)
{
	bool waiting = f->action == ACTION_GRACE || f->action == ACTION_SETTLING || f->action == ACTION_RESCAN;
	const char *color = ns_state_is_good(f->state, &f->expect->policy) ? "green" : waiting ? "yellow" : "red";

	if (t->o->color)
		scols_cell_set_color(scols_line_get_cell(line, COL_STATE), color);
}

static struct libscols_line *new_line(struct table *t, struct libscols_line *parent)
{
	struct libscols_line *line = scols_table_new_line(t->tb, parent);

	if (!line)
		t->err = t->err ? t->err : -ENOMEM;
	return line;
}

static void add_ns_line(struct table *t, const struct subsys_finding *sf, const struct finding *f,
			struct libscols_line *parent)
{
	struct libscols_line *line = new_line(t, parent);

	if (!line)
		return;
	set_cell(t, line, COL_NAME, ns_word(f));
	if (f->nsid)
		set_cell(t, line, COL_NSID, xasprintf("%u", f->nsid));
	set_cell(t, line, COL_STATE, xstrdup(ns_state_name(f->state)));
	set_cell(t, line, COL_ACTION, xstrdup(ns_action_name(f->action)));
	set_cell(t, line, COL_PATHS, xasprintf("%zu", f->n_paths));
	if (f->disk && f->state != STATE_CONFLICT)
		set_cell(t, line, COL_DEVICE, printable(f->disk->name, SHOW_NAME));
	set_cell(t, line, COL_EVIDENCE, explain(f, sf->guarded, t->o->remembered, t->o->now));
	set_color(t, line, f);
}

/* ", stale: nvme0n3 and 2 more": disks that no controller lists any more. They are nobody's fault, and left alone. */
static char *say_stale(const struct subsys_finding *sf)
{
	cleanup_free char *first = printable(sf->stale[0]->name, SHOW_NAME);

	if (sf->n_stale == 1)
		return xasprintf(", stale: %s (no controller lists NSID %u any more)", first, sf->stale[0]->nsid);
	return xasprintf(", stale: %s and %zu more (no controller lists them any more)", first, sf->n_stale - 1);
}

/* "39 of 40 present, 2 of 2 controllers live: nqn.2014-08.org..." */
static char *say_subsys(const struct subsys_finding *sf)
{
	cleanup_free char *nqn = printable(sf->nqn, SHOW_NQN);
	cleanup_free char *ctrls = NULL;
	cleanup_free char *degraded = NULL;
	cleanup_free char *stale = NULL;

	if (sf->n_ctrl)
		ctrls = xasprintf("%zu of %zu controller%s live", sf->n_live, sf->n_ctrl, sf->n_ctrl == 1 ? "" : "s");
	else
		ctrls = xstrdup("not connected");
	if (sf->n_degraded)
		degraded = xasprintf(", %zu not through every controller", sf->n_degraded);
	if (sf->n_stale)
		stale = say_stale(sf);
	return xasprintf("%zu of %zu present%s, %s%s%s: %s", sf->n_good, sf->n, degraded ? degraded : "", ctrls,
			 sf->locked_out ? ", another nvme-nsheal is at work on it" : "", stale ? stale : "", nqn);
}

static void add_subsys(struct table *t, const struct plan *p, const struct subsys_finding *sf)
{
	struct libscols_line *line = new_line(t, NULL);

	if (!line)
		return;
	set_cell(t, line, COL_NAME, printable(sf->expect->label, SHOW_LABEL));
	set_cell(t, line, COL_EVIDENCE, say_subsys(sf));
	if (!t->o->all && sf->n_good == sf->n)
		return;
	for (size_t i = sf->first; i < sf->first + sf->n; i++)
		if (t->o->all || !ns_state_is_good(p->finding[i].state, &sf->expect->policy))
			add_ns_line(t, sf, &p->finding[i], line);
}

static int add_columns(struct table *t)
{
	for (size_t i = 0; i < N_COLUMNS; i++)
		if (!scols_table_new_column(t->tb, columns[i].title, 0, columns[i].flags))
			return -ENOMEM;
	return 0;
}

/*
 * On a terminal the evidence is wrapped within its column, or left out where there is no room for that. Elsewhere, and
 * in the other columns, nothing is ever cut. Returns whether it was left out.
 */
static bool fit_to_width(struct table *t)
{
	struct libscols_column *evidence = scols_table_get_column(t->tb, COL_EVIDENCE);
	size_t others = 0;

	for (size_t i = 0; i < COL_EVIDENCE; i++) {
		size_t title = strlen(columns[i].title);

		others += (t->width[i] > title ? t->width[i] : title) + 1;
	}
	scols_table_set_termforce(t->tb, SCOLS_TERMFORCE_NEVER);
	if (t->o->width == 0)
		return false;
	if (t->o->width < others + MIN_EVIDENCE) {
		scols_column_set_flags(evidence, SCOLS_FL_HIDDEN);
		return true;
	}
	scols_table_set_termforce(t->tb, SCOLS_TERMFORCE_ALWAYS);
	scols_table_set_termwidth(t->tb, t->o->width);
	scols_column_set_flags(evidence, SCOLS_FL_WRAP);
	return false;
}

/* What the EVIDENCE column would say, as sentences: equal findings share one. */
static void print_evidence(FILE *out, const struct plan *p, const struct report_options *o)
{
	for (size_t i = 0; i < p->n_subsys; i++) {
		const struct subsys_finding *sf = &p->subsys[i];
		cleanup_free char *label = printable(sf->expect->label, SHOW_LABEL);
		cleanup_free char *text = say_subsys(sf);

		fprintf(out, "%s%s: %s\n", i ? "" : "\n", label, text);
		if (sf->n_good < sf->n)
			print_bad(out, p, sf, o->remembered, o->now, false);
	}
}

static int end_output(FILE *out)
{
	errno = 0;
	if (fflush(out) != 0 || ferror(out))
		return errno ? -errno : -EIO;
	return 0;
}

int report_table(FILE *out, const struct plan *p, const struct report_options *o)
{
	__attribute__((cleanup(unref_table))) struct libscols_table *tb = scols_new_table();
	struct table t = { .tb = tb, .o = o };
	bool below;
	int err;

	if (!tb)
		return -ENOMEM;
	scols_table_set_stream(tb, out);
	scols_table_enable_ascii(tb, 1); /* no locale is set up: the branches have to be plain */
	scols_table_enable_colors(tb, o->color);
	err = add_columns(&t);
	if (err)
		return err;
	for (size_t i = 0; i < p->n_subsys; i++)
		add_subsys(&t, p, &p->subsys[i]);
	if (t.err)
		return t.err;
	if (p->n_subsys == 0) {
		fputs("nothing is expected: no subsystem is configured, or `nqn = *` and none is connected\n", out);
		return end_output(out);
	}
	below = fit_to_width(&t);
	err = scols_print_table(tb);
	if (below)
		print_evidence(out, p, o);
	if (err)
		return err > 0 ? -err : err;
	return end_output(out);
}

/* ---- the journal ---- */

void report_news(const struct plan *p, int64_t now)
{
	for (size_t i = 0; i < p->n_subsys; i++) {
		const struct subsys_finding *sf = &p->subsys[i];
		struct groups g;
		bool any = false;

		for (size_t k = sf->first; k < sf->first + sf->n; k++) {
			if (!p->finding[k].news)
				continue;
			if (!any)
				memset(&g, 0, sizeof(g));
			any = true;
			group_add(&g, p, k);
		}
		for (size_t s = 0; any && s < N_STATES; s++)
			for (size_t a = 0; a < N_ACTIONS; a++)
				if (g.by[s][a].n)
					log_group(p, sf, &g.by[s][a], now);
	}
}

void report_not_there(const struct plan *p, int64_t now)
{
	for (size_t i = 0; i < p->n_subsys; i++) {
		const struct subsys_finding *sf = &p->subsys[i];
		struct groups g = { 0 };

		for (size_t k = sf->first; k < sf->first + sf->n; k++)
			if (!ns_state_is_good(p->finding[k].state, &sf->expect->policy))
				group_add(&g, p, k);
		for (size_t s = 0; s < N_STATES; s++)
			for (size_t a = 0; a < N_ACTIONS; a++)
				if (g.by[s][a].n) {
					cleanup_free char *text = say_bad(p, sf, &g.by[s][a], false, now);

					log_err("%s", text);
				}
	}
}

int report_devices(FILE *out, const struct plan *p)
{
	for (size_t i = 0; i < p->n_finding; i++)
		if (p->finding[i].disk)
			fprintf(out, "/dev/%s\n", p->finding[i].disk->name);
	return end_output(out);
}

void report_act(const struct plan *p, const struct act *a)
{
	cleanup_free char *subsys = subsys_word(&p->subsys[a->subsys]);

	log_notice("%s: rescanning nvme%d%s%s", subsys, a->instance, a->why ? ": " : "", a->why ? a->why : "");
}

/* ---- --dry-run ---- */

static size_t print_rescans(FILE *out, const struct plan *p, size_t subsys)
{
	cleanup_free char *word = subsys_word(&p->subsys[subsys]);
	size_t n = 0;

	for (size_t i = 0; i < p->n_act; i++) {
		const struct act *a = &p->act[i];
		cleanup_free char *why = NULL;

		if (a->kind != ACT_RESCAN || a->subsys != subsys)
			continue;
		why = printable(a->why ? a->why : "", SHOW_EVIDENCE);
		fprintf(out, "%s: would rescan nvme%d%s%s\n", word, a->instance, *why ? ": " : "", why);
		n++;
	}
	return n;
}

int report_dry_run(FILE *out, const struct plan *p)
{
	int64_t now = now_boottime();
	size_t n = 0;

	for (size_t i = 0; i < p->n_subsys; i++) {
		n += print_rescans(out, p, i);
		print_bad(out, p, &p->subsys[i], false, now, true);
	}
	if (n == 0)
		fputs("nothing to do\n", out);
	return end_output(out);
}
