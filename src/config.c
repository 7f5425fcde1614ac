/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Lines -> sections. inih splits `key = value` and keeps the section; this file is its reader, hands it one line at a
 * time, and only such lines as every build of the library understands alike. The distribution's build cuts section
 * names at 49 characters and lines at 199, takes the rest of a long line for another one, an indented line for a
 * further value of the key above, "[a] junk" for [a], says nothing of empty sections, and gives no line numbers.
 */
#include "config-parts.h"

#include <errno.h>
#include <ini.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* Stands for a value that does not fit; no value can be this, since control characters are refused. */
#define LONG_VALUE "\x01"
#define MAX_KEY 40
#define NO_SECTION SIZE_MAX

struct source {
	struct config_load_state *l;
	size_t file;
	const char *text;
	size_t len, pos;
	unsigned line;
	size_t section; /* index into l->section */
	char *value;    /* of the line that inih has been given; NULL: it has come back, or there was none */
};

/* ---- faults ---- */

size_t config_add_file(struct config_load_state *l, const char *name)
{
	ARRAY_GROW(l->file, l->n_file);
	l->file[l->n_file] = (struct config_file){ .name = printable(name, 1024) };
	return l->n_file++;
}

char *config_place_text(const struct config_load_state *l, struct config_place at)
{
	return at.line ? xasprintf("%s:%u", l->file[at.file].name, at.line) : xstrdup(l->file[at.file].name);
}

void config_fault(struct config_load_state *l, struct config_place at, const char *fmt, ...)
{
	cleanup_free char *place = NULL, *what = NULL;
	va_list ap;

	if (l->file[at.file].n_fault++ >= CONFIG_MAX_FAULTS)
		return;
	place = config_place_text(l, at);
	va_start(ap, fmt);
	if (vasprintf(&what, fmt, ap) < 0)
		what = xstrdup("out of memory");
	va_end(ap);
	ARRAY_GROW(l->fault, l->n_fault);
	l->fault[l->n_fault] = (struct config_fault){ at, l->n_fault, xasprintf("%s: %s", place, what) };
	l->n_fault++;
}

static struct config_place here(const struct source *s)
{
	return (struct config_place){ s->file, s->line };
}

/* A line that is a fault: if it was meant to say the NQN, its section does not lack one. */
static void damage(struct source *s, const char *line)
{
	if (s->section != NO_SECTION && strcasestr(line, "nqn"))
		s->l->section[s->section].nqn_fault = true;
}

/* ---- keys ---- */

static void take_text(struct source *s, struct config_text *t, const char *key, const char *value)
{
	bool any = t == &s->l->section[s->section].nqn; /* "*" as an NQN */
	const char *why;
	int err;

	if (t->text) {
		config_fault(s->l, here(s), "%s is given at line %u already", key, t->at.line);
		return;
	}
	err = any ? config_parse_nqn(value, &t->text, &why) : config_parse_one_nqn(value, &t->text, &why);
	if (err < 0) {
		cleanup_free char *shown = printable(value, 60);

		config_fault(s->l, here(s), "%s = %s: %s", key, shown, why);
		damage(s, key);
	}
	t->at = here(s);
}

static void take_ns(struct source *s, bool ignore, const char *value)
{
	struct config_section *section = &s->l->section[s->section];
	cleanup_free char *why = NULL;
	struct config_ns line = { .at = here(s) };
	int err = ignore ? config_parse_ignore(value, &line.ns, &why) : config_parse_ns(value, &line.ns, &why);

	if (err < 0) {
		config_fault(s->l, here(s), "%s: %s", ignore ? "ignore" : "namespace", why);
		section->ns_fault = true;
		return;
	}
	line.ns.where = config_place_text(s->l, line.at);
	if (ignore) {
		ARRAY_GROW(section->ignore, section->n_ignore);
		section->ignore[section->n_ignore++] = line;
	} else {
		ARRAY_GROW(section->ns, section->n_ns);
		section->ns[section->n_ns++] = line;
	}
}

static void take_setting(struct source *s, enum config_key key, const char *value)
{
	struct config_setting *set = &s->l->section[s->section].set[key];
	const char *name = config_key_name(key), *why;

	if (set->given) {
		config_fault(s->l, here(s), "%s is given at line %u already", name, set->at.line);
		return;
	}
	if (config_key_parse(key, value, &set->value, &why) < 0) {
		cleanup_free char *shown = printable(value, 60);

		config_fault(s->l, here(s), "%s = %s: %s", name, shown, why);
		return;
	}
	set->given = true;
	set->at = here(s);
}

static bool is_subsystem_key(const char *name)
{
	return streq(name, "nqn") || streq(name, "hostnqn") || streq(name, "namespace") || streq(name, "ignore");
}

static void unknown_key(struct source *s, const char *name, const char *value)
{
	cleanup_free char *shown = printable(name, 40);
	bool defaults = s->l->section[s->section].kind == CONFIG_DEFAULTS;

	damage(s, name);
	damage(s, value);
	if (defaults && is_subsystem_key(name))
		config_fault(s->l, here(s), "%s belongs into a section [subsystem LABEL]", name);
	else
		config_fault(s->l, here(s),
			     "%s is not a key here: %saction, grace, settle, max-attempts, backoff, retry-after, "
			     "removals, rearm, paths or kernel-guard",
			     shown, defaults ? "" : "nqn, hostnqn, namespace, ignore, ");
}

static void take_key(struct source *s, const char *name, const char *value)
{
	struct config_section *section = &s->l->section[s->section];
	bool subsystem = section->kind == CONFIG_SUBSYSTEM;
	enum config_key key;

	if (!*value) {
		config_fault(s->l, here(s), "%s has no value", name);
		damage(s, name);
	} else if (config_key_find(name, &key)) {
		take_setting(s, key, value);
	} else if (subsystem && streq(name, "nqn")) {
		take_text(s, &section->nqn, name, value);
	} else if (subsystem && streq(name, "hostnqn")) {
		take_text(s, &section->hostnqn, name, value);
	} else if (subsystem && streq(name, "namespace")) {
		take_ns(s, false, value);
	} else if (subsystem && streq(name, "ignore")) {
		take_ns(s, true, value);
	} else {
		unknown_key(s, name, value);
	}
}

/* inih's handler: 1 done, 0 not understood. Builds of it exist that call it for a section, or without a value. */
static int take_pair(void *arg, const char *section, const char *name, const char *value)
{
	struct source *s = arg;
	cleanup_free char *given = NULL;
	uint64_t at;

	if (!name)
		return 1;
	given = s->value;
	s->value = NULL;
	if (!value || !given || parse_uint(section, SIZE_MAX, &at) < 0 || at != s->section)
		return 0;
	take_key(s, name, streq(value, LONG_VALUE) ? given : value);
	return 1;
}

/* ---- text ---- */

/* Ends the text before a ';' that follows a blank: inside of a word it is part of it (NQNs may have one). */
static void cut_comment(char *text)
{
	char *p = text, *end;

	while ((p = strchr(p, ';')) != NULL && !strchr(" \t", p[-1]))
		p++;
	end = p ? p : text + strlen(text);
	while (end > text && strchr(" \t", end[-1]))
		end--;
	*end = '\0';
}

/* A tab is a blank. Caller frees; NULL: there is none. */
static char *control_fault(const char *text)
{
	for (; *text; text++)
		if (((unsigned char)*text < ' ' && *text != '\t') || *text == 0x7f)
			return xasprintf("a control character (0x%02x)", (unsigned)*text);
	return NULL;
}

/* ---- sections ---- */

static void open_section(struct source *s, enum config_section_kind kind, const char *label)
{
	struct config_load_state *l = s->l;

	ARRAY_GROW(l->section, l->n_section);
	l->section[l->n_section] = (struct config_section){ .kind = kind, .at = here(s), .label = xstrdup_null(label) };
	s->section = l->n_section++;
}

static void close_section(struct source *s)
{
	const struct config_section *section = s->section == NO_SECTION ? NULL : &s->l->section[s->section];

	if (section && section->kind == CONFIG_SUBSYSTEM && !section->nqn.text && !section->nqn_fault)
		config_fault(s->l, section->at,
			     "[subsystem%s%s] has no nqn, so nobody knows which subsystem it is about",
			     section->label ? " " : "", section->label ? section->label : "");
}

static const char *label_fault(const char *label)
{
	if (label[0] == '"' || label[0] == '\'')
		return "a label is written without quotes";
	if (strpbrk(label, " \t"))
		return "a label is one word";
	for (const char *p = label; *p; p++)
		if (*p < '!' || *p > '~' || *p == '[')
			return "a label is made of printable ASCII characters other than brackets";
	return strlen(label) > CONFIG_MAX_LABEL ? "a label has at most 64 characters" : NULL;
}

/* The text between the brackets. */
static void take_section(struct source *s, char *name)
{
	cleanup_free char *shown = printable(name, 40);
	const char *why;
	size_t word;

	name += strspn(name, " \t");
	for (size_t n = strlen(name); n && strchr(" \t", name[n - 1]); n--)
		name[n - 1] = '\0';
	word = strcspn(name, " \t");
	if (streq(name, "defaults") || streq(name, "subsystem")) {
		open_section(s, name[0] == 'd' ? CONFIG_DEFAULTS : CONFIG_SUBSYSTEM, NULL);
		return;
	}
	if (word != strlen("subsystem") || !starts_with(name, "subsystem")) {
		config_fault(s->l, here(s), "[%s] is not a section: [defaults] or [subsystem LABEL]", shown);
		open_section(s, CONFIG_IGNORED, NULL);
		return;
	}
	name += word + strspn(name + word, " \t");
	why = label_fault(name);
	if (why)
		config_fault(s->l, here(s), "[%s]: %s", shown, why);
	open_section(s, CONFIG_SUBSYSTEM, why ? NULL : name);
}

/*
 * A line that begins with "[". Whatever is wrong with it, the section before it has ended: its keys belong to another.
 * inih gets the section's number instead of its name, which it would cut.
 */
static void take_header(struct source *s, char *line, char *buf, size_t size)
{
	cleanup_free char *fault = NULL;
	char *end;

	close_section(s);
	cut_comment(line);
	end = strchr(line, ']');
	fault = control_fault(line);
	if (!fault && !end)
		fault = xstrdup("a section ends with ]");
	else if (!fault && end[1] && end[1] != ';')
		fault = xstrdup("nothing but a comment that begins with ';' can follow the section's ]");
	if (fault) {
		config_fault(s->l, here(s), "%s", fault);
		open_section(s, CONFIG_IGNORED, NULL);
	} else {
		*end = '\0';
		take_section(s, line + 1);
	}
	snprintf(buf, size, "[%zu]\n", s->section);
}

/* ---- lines ---- */

static bool has_hash_comment(const char *value)
{
	for (const char *p = value; (p = strchr(p, '#')) != NULL; p++)
		if (p == value || strchr(" \t", p[-1]))
			return true;
	return false;
}

static bool is_key(const char *name)
{
	size_t len = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-_");

	return len && len <= MAX_KEY && !name[len];
}

/* What is wrong with `line`, of which no comment is left; NULL: it is NAME = VALUE, which are then cut apart. */
static char *split_pair(const struct source *s, char *line, char **value)
{
	char *equals = strchr(line, '='), *end = equals;
	char *fault = control_fault(line);

	if (fault)
		return fault;
	if (!equals) {
		cleanup_free char *shown = printable(line, 40);

		return xasprintf("%s is not understood: KEY = VALUE, a [section] or a comment is", shown);
	}
	if (s->section == NO_SECTION)
		return xstrdup("it stands before the first section: [defaults] or [subsystem LABEL] comes first");
	*value = equals + 1 + strspn(equals + 1, " \t");
	while (end > line && strchr(" \t", end[-1]))
		end--;
	*end = '\0';
	if (end == line)
		return xstrdup("there is no key before the =");
	if (has_hash_comment(*value))
		return xstrdup("a comment after a value begins with ';': a '#' begins one at the start of a line only");
	return NULL;
}

static void take_assignment(struct source *s, char *line, char *buf, size_t size)
{
	cleanup_free char *fault = NULL;
	char *value = NULL;
	int n;

	cut_comment(line);
	fault = split_pair(s, line, &value);
	if (fault) {
		config_fault(s->l, here(s), "%s", fault);
		damage(s, line);
		return;
	}
	if (s->l->section[s->section].kind == CONFIG_IGNORED)
		return;
	if (!is_key(line)) {
		unknown_key(s, line, value);
		return;
	}
	s->value = xstrdup(value);
	n = snprintf(buf, size, "%s=%s\n", line, value);
	if (n < 0 || (size_t)n > size - 3) /* a buffer that is full would make inih look for more of the line */
		snprintf(buf, size, "%s=" LONG_VALUE "\n", line);
}

static void take_line(struct source *s, char *line, char *buf, size_t size)
{
	const char *first = line + strspn(line, " \t");

	if (!*first || *first == ';' || *first == '#')
		return;
	if (first != line) {
		config_fault(s->l, here(s),
			     "the line is indented: no value goes on over two lines, so begin it in the first column");
		damage(s, line);
	} else if (*line == '[') {
		take_header(s, line, buf, size);
	} else {
		take_assignment(s, line, buf, size);
	}
}

/* What inih was given and did not give back would be a line that is skipped. */
static void check_taken(struct source *s)
{
	if (!s->value)
		return;
	config_fault(s->l, here(s), "it is not understood (by the library that reads INI files)");
	free(s->value);
	s->value = NULL;
}

/* inih's reader, called as fgets(): the next line, or an empty one in place of what inih need not know. */
static char *next_line(char *buf, int size, void *arg)
{
	struct source *s = arg;
	const char *start = s->text + s->pos, *end;
	cleanup_free char *line = NULL;
	size_t len;

	check_taken(s);
	if (s->pos >= s->len || s->l->file[s->file].n_fault > CONFIG_MAX_FAULTS)
		return NULL;
	end = memchr(start, '\n', s->len - s->pos);
	len = end ? (size_t)(end - start) : s->len - s->pos;
	s->pos += len + 1;
	s->line++;
	line = xstrndup(start, len);
	if (len && line[len - 1] == '\r')
		line[len - 1] = '\0';
	snprintf(buf, (size_t)size, "\n");
	take_line(s, line, buf, (size_t)size);
	return buf;
}

/* A NUL, in the whole text first: nothing of a file that is no text is read. */
static bool is_text(struct config_load_state *l, size_t file, const char *text, size_t len)
{
	const char *nul = memchr(text, '\0', len);
	struct config_place at = { .file = file, .line = 1 };

	if (!nul)
		return true;
	for (const char *p = text; (p = memchr(p, '\n', (size_t)(nul - p))) != NULL; p++)
		at.line++;
	config_fault(l, at, "a NUL byte: this is not a text file (or one in UTF-16: save it as UTF-8)");
	return false;
}

void config_read_text(struct config_load_state *l, size_t file, const char *text, size_t len)
{
	static const char bom[] = { '\xef', '\xbb', '\xbf' };
	struct source s = { .l = l, .file = file, .text = text, .len = len, .section = NO_SECTION };

	if (!len || !is_text(l, file, text, len))
		return;
	if (len >= sizeof(bom) && memcmp(text, bom, sizeof(bom)) == 0)
		s.pos = sizeof(bom);
	if (ini_parse_stream(next_line, &s, take_pair, &s) != 0) {
		config_fault(l, (struct config_place){ .file = file }, "the library that reads INI files gave up");
		check_taken(&s);
	}
	close_section(&s);
}

/* ---- all of it ---- */

static int by_place(const void *a, const void *b)
{
	const struct config_fault *x = a, *y = b;

	if (x->at.file != y->at.file)
		return x->at.file < y->at.file ? -1 : 1;
	if (x->at.line != y->at.line)
		return x->at.line < y->at.line ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

static void add_fault_text(struct config_faults *f, char *text)
{
	ARRAY_GROW(f->text, f->n);
	f->text[f->n++] = text;
}

/* In the order of files and lines: those that merging finds come last, and name lines in between. */
static void take_faults(struct config_load_state *l)
{
	struct config_faults *f = &l->config->faults;

	if (l->n_fault)
		qsort(l->fault, l->n_fault, sizeof(*l->fault), by_place);
	for (size_t i = 0; i < l->n_fault; i++) {
		size_t file = l->fault[i].at.file;

		add_fault_text(f, l->fault[i].text);
		if (i + 1 < l->n_fault && l->fault[i + 1].at.file == file)
			continue;
		if (l->file[file].n_fault > CONFIG_MAX_FAULTS)
			add_fault_text(f, xasprintf("%s: there are more faults than these %d", l->file[file].name,
						    CONFIG_MAX_FAULTS));
	}
	free(l->fault);
}

static void section_clear(struct config_section *s)
{
	for (size_t i = 0; i < s->n_ns; i++)
		expect_ns_clear(&s->ns[i].ns);
	for (size_t i = 0; i < s->n_ignore; i++)
		expect_ns_clear(&s->ignore[i].ns);
	free(s->ns);
	free(s->ignore);
	free(s->label);
	free(s->nqn.text);
	free(s->hostnqn.text);
}

static int finish(struct config_load_state *l)
{
	struct config *c = l->config;

	config_merge(l);
	take_faults(l);
	for (size_t i = 0; i < l->n_section; i++)
		section_clear(&l->section[i]);
	free(l->section);
	for (size_t i = 0; i < l->n_file; i++)
		free(l->file[i].name);
	free(l->file);
	if (!c->faults.n)
		return 0;
	expect_free(&c->expect);
	return -EINVAL;
}

int config_load(struct config *c, const struct config_paths *p)
{
	struct config_load_state l = { .config = c };
	bool fresh;

	/* before reading: what changes meanwhile changes the stamp */
	*c = (struct config){ .stamp = config_stamp_fresh(p, &fresh) };
	config_read_files(&l, p);
	if (fresh)
		c->stamp = c->stamp ^ 1 ?: 2; /* no stamp of these files: a next change might leave it the same */
	return finish(&l);
}

int config_load_text(struct config *c, const char *name, const char *text, size_t len)
{
	struct config_load_state l = { .config = c };

	*c = (struct config){ 0 };
	config_read_text(&l, config_add_file(&l, name), text, len);
	ARRAY_GROW(c->file, c->n_file);
	c->file[c->n_file++] = xstrdup(name);
	return finish(&l);
}

void config_free(struct config *c)
{
	expect_free(&c->expect);
	for (size_t i = 0; i < c->faults.n; i++)
		free(c->faults.text[i]);
	free(c->faults.text);
	for (size_t i = 0; i < c->n_file; i++)
		free(c->file[i]);
	free(c->file);
	*c = (struct config){ 0 };
}
