/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What children say (the protocol of ask.h), line by line, into the probes. */
#include "ask-parts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static bool parse_hex(const char *word, uint8_t *to, size_t n)
{
	if (strlen(word) != 2 * n)
		return false;
	for (size_t i = 0; i < n; i++) {
		unsigned byte;

		if (sscanf(word + 2 * i, "%2x", &byte) != 1)
			return false;
		to[i] = (uint8_t)byte;
	}
	return strspn(word, "0123456789abcdef") == 2 * n;
}

static bool parse_field(char **save, struct ident *id, enum ident_field field, uint8_t *to, size_t n)
{
	const char *word = strtok_r(NULL, " ", save);

	if (!word || (!streq(word, "-") && !parse_hex(word, to, n)))
		return false;
	if (!streq(word, "-"))
		id->have |= field;
	return true;
}

static bool parse_int64(const char *word, int64_t *value)
{
	bool minus = word && *word == '-';
	uint64_t v;

	if (!word || parse_uint(word + minus, INT64_MAX, &v) < 0)
		return false;
	*value = minus ? -(int64_t)v : (int64_t)v;
	return true;
}

static bool parse_nsid(const char *word, uint32_t *nsid)
{
	int64_t n;

	if (!parse_int64(word, &n) || n <= 0 || n > UINT32_MAX)
		return false;
	*nsid = (uint32_t)n;
	return true;
}

static bool parse_error(const char *word, int *error)
{
	int64_t n;

	if (!parse_int64(word, &n) || n == 0 || n > INT32_MAX || n < -INT32_MAX)
		return false;
	*error = (int)n;
	return true;
}

static bool take_ns(struct child *c, char *words)
{
	char *save, *word;

	if ((c->what != ASK_LIST && c->what != ASK_IDENTIFY_ALL) || c->n_answered)
		return false;
	for (word = strtok_r(words, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
		uint32_t nsid;

		if (!parse_nsid(word, &nsid) || c->n_list == MAX_LIST)
			return false;
		ARRAY_GROW(c->list, c->n_list);
		c->list[c->n_list++] = nsid;
	}
	return true;
}

/* The namespace whose turn it is, if that is the one the answer is about. */
static struct probe_ns *next_ns(const struct ask *a, struct child *c, const char *word)
{
	uint32_t nsid;

	if ((c->what != ASK_IDENTIFY && c->what != ASK_IDENTIFY_ALL && c->what != ASK_ANA && c->what != ASK_GONE) ||
	    c->n_answered == c->n_list || !parse_nsid(word, &nsid) || nsid != c->list[c->n_answered])
		return NULL;
	c->n_answered++;
	return probe_ns_get(ask_probe(a, c), nsid);
}

static struct probe_ns *next_ident(const struct ask *a, struct child *c, const char *word, int64_t now)
{
	struct probe_ns *ns = c->what == ASK_ANA || c->what == ASK_GONE ? NULL : next_ns(a, c, word);

	if (!ns)
		return NULL;
	ident_clear(&ns->id);
	ns->error = 0;
	ns->ident_at = now;
	return ns;
}

static bool take_id(const struct ask *a, struct child *c, char *words, int64_t now)
{
	struct ident id = { 0 };
	struct probe_ns *ns;
	const char *nsid;
	char *save;

	nsid = strtok_r(words, " ", &save);
	if (!nsid || !parse_field(&save, &id, IDENT_UUID, id.uuid, sizeof(id.uuid)) ||
	    !parse_field(&save, &id, IDENT_NGUID, id.nguid, sizeof(id.nguid)) ||
	    !parse_field(&save, &id, IDENT_EUI64, id.eui64, sizeof(id.eui64)) ||
	    !parse_field(&save, &id, IDENT_CSI, &id.csi, sizeof(id.csi)) || strtok_r(NULL, " ", &save))
		return false;
	ns = next_ident(a, c, nsid, now);
	if (ns)
		ns->id = id;
	return ns;
}

static bool take_no(const struct ask *a, struct child *c, char *words, int64_t now)
{
	struct probe_ns *ns;
	const char *nsid;
	char *save;
	int error;

	nsid = strtok_r(words, " ", &save);
	if (!nsid || !parse_error(strtok_r(NULL, " ", &save), &error) || strtok_r(NULL, " ", &save))
		return false;
	if (c->what == ASK_ANA) {
		ns = next_ns(a, c, nsid);
		if (ns) {
			ns->ana = ANA_UNKNOWN;
			ns->ana_error = error;
			ns->ana_at = now;
		}
		return ns;
	}
	ns = next_ident(a, c, nsid, now);
	if (ns)
		ns->error = error;
	return ns;
}

static bool take_ana(const struct ask *a, struct child *c, char *words, int64_t now)
{
	enum ana_state ana = ANA_UNKNOWN;
	const char *nsid, *state;
	struct probe_ns *ns;
	char *save;

	nsid = strtok_r(words, " ", &save);
	state = strtok_r(NULL, " ", &save);
	if (c->what != ASK_ANA || !nsid || !state || strtok_r(NULL, " ", &save))
		return false;
	while (ana < ANA_CHANGE && !streq(state, ana_state_name(ana + 1)))
		ana++;
	if (ana == ANA_CHANGE && !streq(state, "-"))
		return false;
	ns = next_ns(a, c, nsid);
	if (!ns)
		return false;
	ns->ana = streq(state, "-") ? ANA_UNKNOWN : ana + 1;
	ns->ana_error = 0;
	ns->ana_at = now;
	return true;
}

/* The disk whose turn it is. */
static struct probe_use *next_disk(const struct ask *a, struct child *c, size_t turn, const char *word)
{
	if (!word || turn >= c->n_disk || !streq(word, c->disk[turn]))
		return NULL;
	return probe_use_get(ask_probe(a, c), word);
}

static bool take_use(const struct ask *a, struct child *c, char *words, int64_t now)
{
	const char *disk, *how;
	struct probe_use *use;
	char *save;

	disk = strtok_r(words, " ", &save);
	how = strtok_r(NULL, " ", &save);
	use = c->what == ASK_USE && how ? next_disk(a, c, c->n_answered, disk) : NULL;
	if (!use || (!streq(how, "free") && !streq(how, "used")))
		return false;
	c->n_answered++;
	use->used = !streq(how, "free");
	use->at = now;
	free(use->user);
	use->user = use->used ? printable(save && *save ? save : "by somebody", 200) : NULL;
	return true;
}

static bool take_gone(const struct ask *a, struct child *c, char *words, int64_t now)
{
	const char *nsid, *disk, *gone, *readable;
	struct probe_use *use;
	struct probe_ns *ns;
	char *save;

	nsid = strtok_r(words, " ", &save);
	disk = strtok_r(NULL, " ", &save);
	gone = strtok_r(NULL, " ", &save);
	readable = strtok_r(NULL, " ", &save);
	if (c->what != ASK_GONE || !nsid || !readable || strtok_r(NULL, " ", &save))
		return false;
	use = next_disk(a, c, c->n_answered, disk);
	ns = use ? next_ns(a, c, nsid) : NULL;
	if (!ns)
		return false;
	ns->gone = streq(gone, "1");
	use->readable = !streq(readable, "0"); /* what cannot be told counts as alive */
	ns->gone_at = use->read_at = now;
	return true;
}

static bool take_rearm(const struct ask *a, struct child *c, const char *text)
{
	struct probe *p = ask_probe(a, c);

	if (c->what != ASK_REARM_RESCAN)
		return false;
	free(p->rearm);
	p->rearm = printable(text, 200);
	return true;
}

static bool take_done(const struct ask *a, struct child *c, const char *word, int64_t now)
{
	size_t due = c->what == ASK_LIST ? 0 : c->what == ASK_USE ? c->n_disk : c->n_list;
	struct probe *p = ask_probe(a, c);
	int64_t latency;

	if (!parse_int64(word, &latency) || latency < 0 || c->n_answered < due)
		return false;
	p->latency = max_time(p->latency, latency);
	if (c->what == ASK_LIST || c->what == ASK_IDENTIFY_ALL)
		probe_set_list(p, c->list, c->n_list, c->began);
	if (c->what == ASK_IDENTIFY_ALL) {
		p->walk_at = c->began;
		p->walk_done = now;
	}
	if (c->what == ASK_RESCAN || c->what == ASK_REARM_RESCAN)
		p->rescan_at = now;
	c->waiting = false;
	ask_status(a, c, PROBE_IDLE, NULL);
	return true;
}

/* Not a fault of the controller: it has gone, or come back as another one, or is on its way up or down. */
static bool is_gone(int error)
{
	return error == -ESTALE || error == -EAGAIN || error == -ENOENT || error == -ENXIO || error == -ENODEV;
}

static char *error_text(const struct child *c, int error, const char *text)
{
	cleanup_free char *safe = printable(text && *text ? text : "?", 200);

	if (error == -ESTALE)
		return xstrdup("is another controller by now");
	if (error == -EAGAIN)
		return xstrdup("is not live");
	return xasprintf("%s: %s", c->ready ? "failed" : "cannot be opened", safe);
}

static bool take_error(struct ask *a, struct child *c, char *words)
{
	enum probe_status status;
	char *save, *text;
	int error;

	if (!c->waiting || !parse_error(strtok_r(words, " ", &save), &error))
		return false;
	status = is_gone(error) ? PROBE_GONE : PROBE_FAILED;
	text = error_text(c, error, save);
	if (!c->ready) { /* it has ended */
		ask_give_up(a, c, status, text);
		return true;
	}
	if (c->what == ASK_RESCAN || c->what == ASK_REARM_RESCAN)
		ask_probe(a, c)->rescan_error = error < 0 ? error : -EIO;
	c->waiting = false;
	ask_status(a, c, status, text);
	return true;
}

/* One line. False: it is none of the protocol's, or comes at the wrong time. */
bool ask_take_line(struct ask *a, struct child *c, char *line, int64_t now)
{
	if (!c->ready && streq(line, "ready")) {
		c->ready = true;
		if (c->request)
			(void)ask_send(a, c); /* what went wrong is in the probe */
		return true;
	}
	if (!c->ready && streq(line, "busy")) {
		ask_give_up(a, c, PROBE_BUSY, xstrdup("is still being asked by another process"));
		return true;
	}
	if (starts_with(line, "error "))
		return take_error(a, c, line + strlen("error "));
	if (!c->ready || !c->waiting)
		return false;
	if (starts_with(line, "ns "))
		return take_ns(c, line + strlen("ns "));
	if (starts_with(line, "id "))
		return take_id(a, c, line + strlen("id "), now);
	if (starts_with(line, "no "))
		return take_no(a, c, line + strlen("no "), now);
	if (starts_with(line, "ana "))
		return take_ana(a, c, line + strlen("ana "), now);
	if (starts_with(line, "use "))
		return take_use(a, c, line + strlen("use "), now);
	if (starts_with(line, "gone "))
		return take_gone(a, c, line + strlen("gone "), now);
	if (starts_with(line, "rearm "))
		return take_rearm(a, c, line + strlen("rearm "));
	if (starts_with(line, "done "))
		return take_done(a, c, line + strlen("done "), now);
	return streq(line, "alive");
}
