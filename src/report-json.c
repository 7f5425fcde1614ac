/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Findings for programs: one JSON document, the same for every command. nvme-nsheal-json(5) and
 * nvme-nsheal.schema.json describe it field by field; within schema 1 fields are added and never changed.
 * One subsystem is in memory at a time: 36,000 namespaces are written as they come.
 */
#include <errno.h>
#include <stdlib.h>

#include <json.h>

#include "report.h"

#define SCHEMA 1
#define LONGEST 4096

static void put(struct json_object *o, const char *name, struct json_object *value)
{
	if (!o || json_object_object_add(o, name, value) != 0)
		json_object_put(value);
}

/* Whatever it is, the output is UTF-8 without control characters. NULL becomes null. */
static void put_text(struct json_object *o, const char *name, const char *text)
{
	cleanup_free char *shown = text ? printable(text, LONGEST) : NULL;

	put(o, name, shown ? json_object_new_string(shown) : NULL);
}

static void put_number(struct json_object *o, const char *name, uint64_t n)
{
	put(o, name, json_object_new_int64((int64_t)n));
}

/* Seconds with three decimals: no more is known. */
static struct json_object *seconds(int64_t ns)
{
	cleanup_free char *text = NULL;

	ns = max_time(ns, 0);
	text = xasprintf("%lld.%03lld", (long long)(ns / NS_PER_SEC), (long long)(ns % NS_PER_SEC / NS_PER_MS));
	return json_object_new_double_s((double)(ns / NS_PER_MS) / 1000, text);
}

/* The fields of a namespace's identity that are known, from its device or else from the configuration. */
static void put_identity(struct json_object *o, const struct finding *f)
{
	static const struct {
		const char *name;
		enum ident_field field;
	} fields[] = { { "uuid", IDENT_UUID }, { "nguid", IDENT_NGUID }, { "eui64", IDENT_EUI64 }, { "wwid", IDENT_WWID } };
	bool own = f->disk && f->state != STATE_CONFLICT && !ident_empty(&f->disk->id);
	static const struct ident none;
	const struct ident *id = own ? &f->disk->id : f->line ? &f->line->id : &none;

	for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
		struct ident one = *id;
		cleanup_free char *text = NULL;

		one.have &= (uint8_t)fields[i].field;
		text = ident_format(&one);
		put_text(o, fields[i].name, *text ? strchr(text, '=') + 1 : NULL);
	}
}

static struct json_object *namespace_to_json(const struct finding *f, const struct subsys_finding *sf,
					     const struct report_options *ro)
{
	struct json_object *o = json_object_new_object();
	bool own = f->disk && f->state != STATE_CONFLICT;
	cleanup_free char *device = own ? xasprintf("/dev/%s", f->disk->name) : NULL;

	put_text(o, "name", f->line ? f->line->name : NULL);
	put(o, "nsid", f->nsid ? json_object_new_int64(f->nsid) : NULL);
	put_identity(o, f);
	put_text(o, "state", ns_state_name(f->state));
	put_text(o, "action", ns_action_name(f->action));
	put(o, "good", json_object_new_boolean(ns_state_is_good(f->state, &sf->expect->policy)));
	put_text(o, "device", device);
	put(o, "size", own ? json_object_new_int64((int64_t)f->disk->size) : NULL);
	put_number(o, "paths", f->n_paths);
	put_text(o, "evidence", f->evidence);
	put(o, "missing_for", f->since ? seconds(ro->now - f->since) : NULL);
	put(o, "next_in", f->until ? seconds(f->until - ro->now) : NULL);
	put(o, "answer_age", f->answered_at ? seconds(ro->now - f->answered_at) : NULL);
	return o;
}

static struct json_object *subsystem_to_json(const struct plan *p, const struct subsys_finding *sf,
					     const struct report_options *ro)
{
	struct json_object *o = json_object_new_object(), *list = json_object_new_array(), *stale = json_object_new_array();

	put_text(o, "label", sf->expect->label);
	put_text(o, "nqn", sf->nqn);
	put_text(o, "hostnqn", sf->expect->hostnqn);
	put(o, "connected", json_object_new_boolean(sf->n_ctrl > 0));
	put_number(o, "controllers", sf->n_ctrl);
	put_number(o, "controllers_live", sf->n_live);
	put_number(o, "expected", sf->n);
	put_number(o, "present", sf->n_good);
	put_number(o, "degraded", sf->n_degraded);
	put(o, "kernel_guard", json_object_new_boolean(sf->guarded));
	put(o, "locked_out", json_object_new_boolean(sf->locked_out));
	for (size_t i = sf->first; i < sf->first + sf->n; i++)
		json_object_array_add(list, namespace_to_json(&p->finding[i], sf, ro));
	put(o, "namespaces", list);
	for (size_t i = 0; i < sf->n_stale; i++) {
		struct json_object *disk = json_object_new_object();
		cleanup_free char *device = xasprintf("/dev/%s", sf->stale[i]->name);

		put_text(disk, "device", device);
		put_number(disk, "nsid", sf->stale[i]->nsid);
		json_object_array_add(stale, disk);
	}
	put(o, "stale", stale);
	return o;
}

int report_json(FILE *out, const struct plan *p, const struct report_options *o)
{
	struct json_object *elapsed = seconds(o->elapsed);
	bool complete = !p->pending;

	for (size_t i = 0; i < p->n_subsys; i++)
		complete = complete && p->subsys[i].n_good == p->subsys[i].n;
	fprintf(out, "{\"schema\":%d,\"version\":\"%s\",\"complete\":%s,\"elapsed\":%s,\"rescans\":%zu,\"subsystems\":[", SCHEMA,
		VERSION, complete ? "true" : "false", json_object_to_json_string(elapsed), o->n_rescan);
	json_object_put(elapsed);
	for (size_t i = 0; i < p->n_subsys; i++) {
		struct json_object *subsys = subsystem_to_json(p, &p->subsys[i], o);
		const char *text = json_object_to_json_string_ext(subsys, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE);

		fprintf(out, "%s\n%s", i ? "," : "", text ? text : "null");
		json_object_put(subsys);
	}
	fputs("]}\n", out);
	errno = 0;
	if (fflush(out) != 0 || ferror(out))
		return errno ? -errno : -EIO;
	return 0;
}
