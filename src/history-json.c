/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A record as JSON and back; the rest of history.h is in history.c. */
#include "history.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include <json.h>

#include "state.h"

#define RECORD_VERSION 2
#define RECORD_MAX_ENTRIES 131072
/* Who reads without the lock may have looked at the clock before the record was written: so far ahead is no fault. */
#define FUTURE_SLACK (60 * NS_PER_SEC)

enum field_type {
	FIELD_PAST,   /* int64_t, a time that has been */
	FIELD_TIME,   /* int64_t, a time or duration that may lie ahead */
	FIELD_BOOL,
	FIELD_NUMBER, /* int */
	FIELD_COUNT,  /* unsigned */
	FIELD_NSID,   /* uint32_t */
	FIELD_SIZE,   /* size_t */
	FIELD_HASH,   /* uint64_t, in hexadecimal */
	FIELD_TEXT,   /* char *, may be NULL */
};

struct field {
	const char *name;
	enum field_type type;
	size_t offset;
	int64_t min, max; /* FIELD_NUMBER */
};

#define NS(member, type, ...) { #member, type, offsetof(struct rec_ns, member), __VA_ARGS__ }
#define DEAD(member, type, ...) { #member, type, offsetof(struct rec_dead, member), __VA_ARGS__ }
#define CTRL(member, type, ...) { #member, type, offsetof(struct rec_ctrl, member), __VA_ARGS__ }
/* whoever changes the order of the words in state.h changes RECORD_VERSION */
#define STATE -1, N_STATES - 1
#define ACTION -1, N_ACTIONS - 1

/* Every member, in the order of record.h; all of them are in the text, so that a cut one is seen as such. */
static const struct field ns_fields[] = {
	NS(key, FIELD_TEXT, 0, 0),
	NS(nsid, FIELD_NSID, 0, 0),
	NS(since, FIELD_PAST, 0, 0),
	NS(grace_first, FIELD_PAST, 0, 0),
	NS(grace_from, FIELD_PAST, 0, 0),
	NS(attempts, FIELD_COUNT, 0, 0),
	NS(attempted_at, FIELD_PAST, 0, 0),
	NS(next_attempt, FIELD_TIME, 0, 0),
	NS(second_round, FIELD_BOOL, 0, 0),
	NS(old_ident, FIELD_HASH, 0, 0),
	NS(in_round, FIELD_BOOL, 0, 0),
	NS(absent_since, FIELD_PAST, 0, 0),
	NS(walk_hash, FIELD_HASH, 0, 0),
	NS(walk_next, FIELD_TIME, 0, 0),
	NS(walk_pause, FIELD_TIME, 0, 0),
	NS(blocked_at, FIELD_PAST, 0, 0),
	NS(blocked_until, FIELD_TIME, 0, 0),
	NS(blocked_text, FIELD_TEXT, 0, 0),
	NS(verdict, FIELD_NUMBER, STATE),
	NS(verdict_at, FIELD_PAST, 0, 0),
	NS(verdict_text, FIELD_TEXT, 0, 0),
	NS(said_state, FIELD_NUMBER, STATE),
	NS(said_action, FIELD_NUMBER, ACTION),
};
static const struct field ctrl_fields[] = {
	CTRL(instance, FIELD_NUMBER, 0, INT_MAX),
	CTRL(cntlid, FIELD_NUMBER, -1, 0xffff),
	CTRL(live, FIELD_BOOL, 0, 0),
	CTRL(live_at, FIELD_PAST, 0, 0),
	CTRL(n_paths, FIELD_SIZE, 0, 0),
	CTRL(gained_at, FIELD_PAST, 0, 0),
	CTRL(pending, FIELD_BOOL, 0, 0),
	CTRL(rescanned_at, FIELD_PAST, 0, 0),
	CTRL(settle_until, FIELD_TIME, 0, 0),
	CTRL(settle_limit, FIELD_TIME, 0, 0),
	CTRL(awaiting, FIELD_BOOL, 0, 0),
	CTRL(canary, FIELD_BOOL, 0, 0),
	CTRL(effect, FIELD_BOOL, 0, 0),
	CTRL(n_rescan, FIELD_COUNT, 0, 0),
	CTRL(day_from, FIELD_PAST, 0, 0),
	CTRL(fails, FIELD_COUNT, 0, 0),
	CTRL(hung, FIELD_BOOL, 0, 0),
	CTRL(failed_at, FIELD_PAST, 0, 0),
};
static const struct field dead_fields[] = {
	DEAD(disk, FIELD_TEXT, 0, 0),
	DEAD(nsid, FIELD_NSID, 0, 0),
	DEAD(first_at, FIELD_PAST, 0, 0),
};

/*
 * Names come from configurations and controllers and may hold any byte, but JSON is UTF-8: what is not printable ASCII
 * is written as %XX, and so is '%'.
 */
static char *text_encode(const char *s)
{
	static const char digits[] = "0123456789abcdef";
	char *out = xmalloc(strlen(s) * 3 + 1), *p = out;

	for (; *s; s++) {
		uint8_t c = (uint8_t)*s;

		if (c >= ' ' && c <= '~' && c != '%') {
			*p++ = *s;
			continue;
		}
		*p++ = '%';
		*p++ = digits[c >> 4];
		*p++ = digits[c & 15];
	}
	*p = '\0';
	return out;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* NULL: not what text_encode() writes */
static char *text_decode(const char *s, size_t len)
{
	cleanup_free char *out = xmalloc(len + 1);
	char *p = out, *done;

	for (size_t i = 0; i < len; i++) {
		int high, low;

		if (s[i] < ' ' || s[i] > '~')
			return NULL;
		if (s[i] != '%') {
			*p++ = s[i];
			continue;
		}
		if (len - i < 3)
			return NULL;
		high = hex_digit(s[i + 1]);
		low = hex_digit(s[i + 2]);
		if (high < 0 || low < 0 || (high == 0 && low == 0))
			return NULL;
		*p++ = (char)(high << 4 | low);
		i += 2;
	}
	*p = '\0';
	done = out;
	out = NULL;
	return done;
}

static struct json_object *text_to_json(const char *s)
{
	cleanup_free char *encoded = text_encode(s);

	return json_object_new_string(encoded);
}

/* False: out of memory */
static bool add(struct json_object *o, const char *name, struct json_object *value)
{
	if (value && json_object_object_add(o, name, value) == 0)
		return true;
	json_object_put(value);
	return false;
}

static bool add_text(struct json_object *o, const char *name, const char *s)
{
	return s ? add(o, name, text_to_json(s)) : json_object_object_add(o, name, NULL) == 0;
}

static struct json_object *field_to_json(const struct field *f, const void *member)
{
	char hash[17];

	switch (f->type) {
	case FIELD_PAST:
	case FIELD_TIME:
		return json_object_new_int64(*(const int64_t *)member);
	case FIELD_BOOL:
		return json_object_new_boolean(*(const bool *)member);
	case FIELD_NUMBER:
		return json_object_new_int64(*(const int *)member);
	case FIELD_COUNT:
		return json_object_new_int64(*(const unsigned *)member);
	case FIELD_NSID:
		return json_object_new_int64(*(const uint32_t *)member);
	case FIELD_SIZE:
		return json_object_new_int64((int64_t)*(const size_t *)member);
	case FIELD_HASH:
		snprintf(hash, sizeof(hash), "%016llx", (unsigned long long)*(const uint64_t *)member);
		return json_object_new_string(hash);
	case FIELD_TEXT:
		break;
	}
	return NULL;
}

static struct json_object *entry_to_json(const struct field *f, size_t n, const void *entry)
{
	struct json_object *o = json_object_new_object();

	for (; o && n > 0; f++, n--) {
		const void *member = (const char *)entry + f->offset;
		bool ok = f->type == FIELD_TEXT ? add_text(o, f->name, *(char *const *)member) :
						  add(o, f->name, field_to_json(f, member));

		if (!ok) {
			json_object_put(o);
			return NULL;
		}
	}
	return o;
}

static struct json_object *entries_to_json(const struct field *f, size_t n_fields, const void *entries, size_t n,
					   size_t size)
{
	struct json_object *list = json_object_new_array();

	for (size_t i = 0; list && i < n; i++) {
		struct json_object *o = entry_to_json(f, n_fields, (const char *)entries + i * size);

		if (!o || json_object_array_add(list, o) < 0) {
			json_object_put(o);
			json_object_put(list);
			return NULL;
		}
	}
	return list;
}

/* NULL: out of memory */
char *history_format(const struct rec_subsys *r, const char *boot_id, int64_t now)
{
	struct json_object *o = json_object_new_object();
	const char *text = NULL;
	char *copy = NULL;

	if (o && add(o, "version", json_object_new_int(RECORD_VERSION)) &&
	    add(o, "boot_id", json_object_new_string(boot_id)) && add(o, "saved_at", json_object_new_int64(now)) &&
	    add_text(o, "nqn", r->nqn) && add_text(o, "hostnqn", r->hostnqn) &&
	    add(o, "namespaces", entries_to_json(ns_fields, ARRAY_SIZE(ns_fields), r->ns, r->n_ns, sizeof(*r->ns))) &&
	    add(o, "controllers",
		entries_to_json(ctrl_fields, ARRAY_SIZE(ctrl_fields), r->ctrl, r->n_ctrl, sizeof(*r->ctrl))) &&
	    add(o, "dead", entries_to_json(dead_fields, ARRAY_SIZE(dead_fields), r->dead, r->n_dead, sizeof(*r->dead))))
		text = json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE);
	if (text)
		copy = xasprintf("%s\n", text);
	json_object_put(o);
	return copy;
}

static struct json_object *get(struct json_object *o, const char *name, enum json_type type)
{
	struct json_object *value;

	return json_object_object_get_ex(o, name, &value) && json_object_is_type(value, type) ? value : NULL;
}

static bool get_number(struct json_object *o, const char *name, int64_t min, int64_t max, int64_t *n)
{
	struct json_object *value = get(o, name, json_type_int);

	if (!value)
		return false;
	/* json-c clamps what does not fit to the largest number, and that one may be TIME_NEVER */
	if (json_object_get_uint64(value) > INT64_MAX)
		return false;
	*n = json_object_get_int64(value);
	return *n >= min && *n <= max;
}

/* *s: NULL where the text is null */
static bool get_text(struct json_object *o, const char *name, char **s)
{
	struct json_object *value;

	*s = NULL;
	if (!json_object_object_get_ex(o, name, &value))
		return false;
	if (!value)
		return true;
	if (!json_object_is_type(value, json_type_string))
		return false;
	*s = text_decode(json_object_get_string(value), (size_t)json_object_get_string_len(value));
	return *s;
}

static bool get_hash(struct json_object *o, const char *name, uint64_t *hash)
{
	struct json_object *value = get(o, name, json_type_string);
	const char *s = value ? json_object_get_string(value) : "";

	*hash = 0;
	if (strlen(s) != 16)
		return false;
	for (; *s; s++) {
		int digit = hex_digit(*s);

		if (digit < 0)
			return false;
		*hash = *hash << 4 | (uint64_t)digit;
	}
	return true;
}

static bool get_number_field(struct json_object *o, const struct field *f, int64_t now, void *member)
{
	int64_t min = 0, max = INT64_MAX, n;

	if (f->type == FIELD_PAST)
		max = time_add(now, FUTURE_SLACK);
	else if (f->type == FIELD_NUMBER)
		min = f->min, max = f->max;
	else if (f->type == FIELD_COUNT || f->type == FIELD_NSID)
		max = UINT32_MAX;
	else if (f->type == FIELD_SIZE)
		max = RECORD_MAX_ENTRIES;
	if (!get_number(o, f->name, min, max, &n))
		return false;
	if (f->type == FIELD_PAST)
		*(int64_t *)member = min_time(n, now);
	else if (f->type == FIELD_TIME)
		*(int64_t *)member = n;
	else if (f->type == FIELD_NUMBER)
		*(int *)member = (int)n;
	else if (f->type == FIELD_SIZE)
		*(size_t *)member = (size_t)n;
	else if (f->type == FIELD_COUNT)
		*(unsigned *)member = (unsigned)n;
	else
		*(uint32_t *)member = (uint32_t)n;
	return true;
}

static bool get_field(struct json_object *o, const struct field *f, int64_t now, void *member)
{
	struct json_object *value;

	switch (f->type) {
	case FIELD_TEXT:
		return get_text(o, f->name, (char **)member);
	case FIELD_HASH:
		return get_hash(o, f->name, (uint64_t *)member);
	case FIELD_BOOL:
		value = get(o, f->name, json_type_boolean);
		*(bool *)member = value && json_object_get_boolean(value);
		return value;
	default:
		return get_number_field(o, f, now, member);
	}
}

/* Whatever was allocated stays in entry, also on failure. */
static bool get_entry(struct json_object *o, const struct field *f, size_t n, int64_t now, void *entry)
{
	if (!json_object_is_type(o, json_type_object) || json_object_object_length(o) != (int)n)
		return false;
	for (size_t i = 0; i < n; i++)
		if (!get_field(o, &f[i], now, (char *)entry + f[i].offset))
			return false;
	return true;
}

static bool get_namespaces(struct json_object *o, int64_t now, struct rec_subsys *r)
{
	struct json_object *list = get(o, "namespaces", json_type_array);
	size_t n = list ? json_object_array_length(list) : SIZE_MAX;

	if (n > RECORD_MAX_ENTRIES)
		return false;
	for (size_t i = 0; i < n; i++) {
		struct rec_ns *ns;

		ARRAY_GROW(r->ns, r->n_ns);
		ns = &r->ns[r->n_ns++];
		*ns = (struct rec_ns){ 0 };
		if (!get_entry(json_object_array_get_idx(list, i), ns_fields, ARRAY_SIZE(ns_fields), now, ns) ||
		    !ns->key)
			return false;
		/* rec_ns_find() relies on the order */
		if (i > 0 && strcmp(ns[-1].key, ns->key) >= 0)
			return false;
	}
	return true;
}

static bool get_controllers(struct json_object *o, int64_t now, struct rec_subsys *r)
{
	struct json_object *list = get(o, "controllers", json_type_array);
	size_t n = list ? json_object_array_length(list) : SIZE_MAX;

	if (n > RECORD_MAX_ENTRIES)
		return false;
	for (size_t i = 0; i < n; i++) {
		struct rec_ctrl *c;

		ARRAY_GROW(r->ctrl, r->n_ctrl);
		c = &r->ctrl[r->n_ctrl++];
		*c = (struct rec_ctrl){ 0 };
		if (!get_entry(json_object_array_get_idx(list, i), ctrl_fields, ARRAY_SIZE(ctrl_fields), now, c))
			return false;
		if (i > 0 && c[-1].instance >= c->instance)
			return false;
	}
	return true;
}

static bool get_dead(struct json_object *o, int64_t now, struct rec_subsys *r)
{
	struct json_object *list = get(o, "dead", json_type_array);
	size_t n = list ? json_object_array_length(list) : SIZE_MAX;

	if (n > RECORD_MAX_ENTRIES)
		return false;
	for (size_t i = 0; i < n; i++) {
		struct rec_dead *d;

		ARRAY_GROW(r->dead, r->n_dead);
		d = &r->dead[r->n_dead++];
		*d = (struct rec_dead){ 0 };
		if (!get_entry(json_object_array_get_idx(list, i), dead_fields, ARRAY_SIZE(dead_fields), now, d) || !d->disk)
			return false;
	}
	return true;
}

/* The document, or NULL: not one JSON object and nothing but white space after it. */
static struct json_object *parse_json(const char *json, size_t len)
{
	struct json_tokener *tok;
	struct json_object *o = NULL;

	if (len > INT_MAX)
		return NULL;
	tok = json_tokener_new_ex(4);
	if (!tok)
		return NULL;
	json_tokener_set_flags(tok, JSON_TOKENER_STRICT);
	o = json_tokener_parse_ex(tok, json, (int)len);
	if (o) {
		size_t end = json_tokener_get_parse_end(tok);

		while (end < len && json[end] == '\n')
			end++;
		if (end != len || !json_object_is_type(o, json_type_object)) {
			json_object_put(o);
			o = NULL;
		}
	}
	json_tokener_free(tok);
	return o;
}

static bool get_subsys(struct json_object *o, const char *boot_id, int64_t now, struct rec_subsys *r)
{
	struct json_object *boot = get(o, "boot_id", json_type_string);
	int64_t n;

	return get_number(o, "version", RECORD_VERSION, RECORD_VERSION, &n) && boot &&
	       streq(json_object_get_string(boot), boot_id) &&
	       get_number(o, "saved_at", 0, time_add(now, FUTURE_SLACK), &n) && json_object_object_length(o) == 8 &&
	       get_text(o, "nqn", &r->nqn) && r->nqn && get_text(o, "hostnqn", &r->hostnqn) &&
	       get_namespaces(o, now, r) && get_controllers(o, now, r) && get_dead(o, now, r);
}

int history_parse(const char *json, size_t len, const char *boot_id, int64_t now, struct rec_subsys *r)
{
	struct json_object *o = parse_json(json, len);
	bool ok;

	*r = (struct rec_subsys){ 0 };
	ok = o && get_subsys(o, boot_id, now, r);
	json_object_put(o);
	if (!ok)
		rec_subsys_clear(r);
	return ok;
}
