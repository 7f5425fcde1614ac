/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Values as the configuration and the command line spell them. No I/O.
 */
#include "config-parts.h"

#include <errno.h>
#include <stdlib.h>

#define NSID_MAX 0xfffffffeULL /* 0xffffffff is the broadcast value (NVMe base specification, NSID types) */

/* ---- numbers and words ---- */

int config_parse_duration(const char *text, int64_t *ns, const char **why)
{
	static const struct {
		const char *name;
		int64_t ns;
	} unit[] = {
		{ "ms", NS_PER_MS },
		{ "s", NS_PER_SEC },
		{ "min", 60 * NS_PER_SEC },
		{ "h", 3600 * NS_PER_SEC },
		{ "d", 24 * 3600 * NS_PER_SEC },
	};
	size_t digits = strspn(text, "0123456789");
	int64_t n = 0;

	*why = "a whole number and its unit, ms, s, min, h or d, as in 5s or 2min; or 0";
	for (size_t i = 0; i < digits; i++)
		if (n <= CONFIG_MAX_DURATION) /* ns: more than this of any unit is too long */
			n = n * 10 + (text[i] - '0');
	if (digits && n == 0 && !text[digits]) {
		*ns = 0;
		return 0;
	}
	for (size_t i = 0; i < ARRAY_SIZE(unit) && digits; i++) {
		if (!streq(text + digits, unit[i].name))
			continue;
		if (n > CONFIG_MAX_DURATION / unit[i].ns) {
			*why = "at most 30d";
			return -ERANGE;
		}
		*ns = n * unit[i].ns;
		return 0;
	}
	return -EINVAL;
}

struct word {
	const char *text;
	int value;
};

static int parse_word(const struct word *words, size_t n, const char *text, int64_t *value)
{
	for (size_t i = 0; i < n; i++)
		if (streq(words[i].text, text)) {
			*value = words[i].value;
			return 0;
		}
	return -EINVAL;
}

int config_parse_removals(const char *text, enum policy_removals *r, const char **why)
{
	static const struct word words[] = {
		{ "never", REMOVALS_NEVER },
		{ "idle", REMOVALS_IDLE },
		{ "dead", REMOVALS_DEAD },
		{ "always", REMOVALS_ALWAYS },
	};
	int64_t value;

	*why = "never, idle, dead or always";
	if (parse_word(words, ARRAY_SIZE(words), text, &value) < 0)
		return -EINVAL;
	*r = (enum policy_removals)value;
	return 0;
}

static int parse_removals(const char *text, int64_t *value, const char **why)
{
	enum policy_removals r;
	int err = config_parse_removals(text, &r, why);

	if (!err)
		*value = r;
	return err;
}

static int parse_action(const char *text, int64_t *value, const char **why)
{
	static const struct word words[] = { { "rescan", POLICY_RESCAN }, { "report", POLICY_REPORT } };

	*why = "rescan or report";
	return parse_word(words, ARRAY_SIZE(words), text, value);
}

static int parse_paths(const char *text, int64_t *value, const char **why)
{
	static const struct word words[] = { { "any", PATHS_ANY }, { "all", PATHS_ALL } };

	*why = "any or all";
	return parse_word(words, ARRAY_SIZE(words), text, value);
}

static int parse_bool(const char *text, int64_t *value, const char **why)
{
	static const struct word words[] = { { "yes", true }, { "no", false } };

	*why = "yes or no";
	return parse_word(words, ARRAY_SIZE(words), text, value);
}

static int parse_settle(const char *text, int64_t *value, const char **why)
{
	int err;

	if (streq(text, "auto")) {
		*value = SETTLE_AUTO;
		return 0;
	}
	err = config_parse_duration(text, value, why);
	if (err == -EINVAL)
		*why = "auto, or a whole number and its unit, ms, s, min, h or d, as in 5s";
	return err;
}

static int parse_attempts(const char *text, int64_t *value, const char **why)
{
	uint64_t n;

	*why = "a number from 1 to 1000";
	if (parse_uint(text, 1000, &n) < 0 || n == 0)
		return -EINVAL;
	*value = (int64_t)n;
	return 0;
}

/* ---- the keys of struct policy ---- */

static const struct {
	const char *name;
	int (*parse)(const char *text, int64_t *value, const char **why);
} keys[CONFIG_N_KEYS] = {
	[CONFIG_ACTION] = { "action", parse_action },
	[CONFIG_GRACE] = { "grace", config_parse_duration },
	[CONFIG_SETTLE] = { "settle", parse_settle },
	[CONFIG_MAX_ATTEMPTS] = { "max-attempts", parse_attempts },
	[CONFIG_BACKOFF] = { "backoff", config_parse_duration },
	[CONFIG_RETRY_AFTER] = { "retry-after", config_parse_duration },
	[CONFIG_REMOVALS] = { "removals", parse_removals },
	[CONFIG_REARM] = { "rearm", parse_bool },
	[CONFIG_PATHS] = { "paths", parse_paths },
	[CONFIG_KERNEL_GUARD] = { "kernel-guard", parse_bool },
};

bool config_key_find(const char *name, enum config_key *key)
{
	for (size_t i = 0; i < CONFIG_N_KEYS; i++)
		if (streq(keys[i].name, name)) {
			*key = (enum config_key)i;
			return true;
		}
	return false;
}

const char *config_key_name(enum config_key key)
{
	return keys[key].name;
}

int config_key_parse(enum config_key key, const char *text, int64_t *value, const char **why)
{
	return keys[key].parse(text, value, why);
}

void config_key_apply(enum config_key key, int64_t value, struct policy *p)
{
	switch (key) {
	case CONFIG_ACTION:
		p->action = (enum policy_action)value;
		p->action_given = true;
		break;
	case CONFIG_GRACE:
		p->grace = value;
		break;
	case CONFIG_SETTLE:
		p->settle = value;
		break;
	case CONFIG_MAX_ATTEMPTS:
		p->max_attempts = (unsigned)value;
		break;
	case CONFIG_BACKOFF:
		p->backoff = value;
		break;
	case CONFIG_RETRY_AFTER:
		p->retry_after = value;
		break;
	case CONFIG_REMOVALS:
		p->removals = (enum policy_removals)value;
		break;
	case CONFIG_REARM:
		p->rearm = value;
		break;
	case CONFIG_PATHS:
		p->paths = (enum policy_paths)value;
		break;
	case CONFIG_KERNEL_GUARD:
		p->kernel_guard = value;
		break;
	case CONFIG_N_KEYS:
		break;
	}
}

/* ---- names of subsystems and hosts ---- */

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/* No control character. Bytes over 0x7f pass: the specification's NQNs are UTF-8. */
static bool is_plain(const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)s[i] < ' ' || s[i] == 0x7f)
			return false;
	return true;
}

int config_parse_one_nqn(const char *text, char **nqn, const char **why)
{
	size_t len;

	while (is_blank(*text))
		text++;
	len = strlen(text);
	while (len && is_blank(text[len - 1]))
		len--; /* the kernel pads the NQNs that it makes up itself, and nobody copies those blanks */
	if (!len)
		*why = "an NQN is expected";
	else if (len > CONFIG_MAX_NQN)
		*why = "an NQN has at most 223 bytes";
	else if (!is_plain(text, len))
		*why = "control characters are not part of an NQN";
	else if (text[0] == '"' || text[0] == '\'')
		*why = "an NQN is written without quotes";
	else if (starts_with(text, "(efault)") || starts_with(text, "(null)"))
		*why = "this is what sysfs shows while a controller is not connected, not an NQN";
	else if (memchr(text, '*', len))
		*why = "there are no patterns: only nqn = *, alone, stands for every subsystem";
	else {
		*nqn = xstrndup(text, len);
		return 0;
	}
	return -EINVAL;
}

int config_parse_nqn(const char *text, char **nqn, const char **why)
{
	size_t blank = strspn(text, " \t");

	if (text[blank] == '*' && strspn(text + blank + 1, " \t") == strlen(text + blank + 1)) {
		*nqn = xstrdup("*");
		return 0;
	}
	return config_parse_one_nqn(text, nqn, why);
}

/* ---- namespace lines ---- */

static int parse_nsids(const char *text, struct expect_ns *ns, char **why)
{
	const char *dash = strchr(text, '-');
	cleanup_free char *first = xstrndup(text, dash ? (size_t)(dash - text) : strlen(text));
	uint64_t from, to;

	if (ns->nsid_first) {
		*why = xstrdup("nsid is given twice: one line is one namespace, or one range");
		return -EINVAL;
	}
	if (parse_uint(first, NSID_MAX, &from) < 0 || from == 0 ||
	    parse_uint(dash ? dash + 1 : first, NSID_MAX, &to) < 0 || to == 0) {
		cleanup_free char *shown = printable(text, 40);

		*why = xasprintf("nsid=%s: a number from 1 to 4294967294 (0xfffffffe), or a range such as 1-12", shown);
		return -EINVAL;
	}
	if (from > to) {
		*why = xasprintf("nsid=%llu-%llu: a range begins with its lower end", (unsigned long long)from,
				 (unsigned long long)to);
		return -EINVAL;
	}
	ns->nsid_first = (uint32_t)from;
	ns->nsid_last = (uint32_t)to;
	return 0;
}

static int parse_name(const char *text, struct expect_ns *ns, char **why)
{
	size_t len = strlen(text);

	if (ns->name)
		*why = xstrdup("name is given twice");
	else if (len > CONFIG_MAX_NAME)
		*why = xasprintf("a name has at most %d characters, this one %zu", CONFIG_MAX_NAME, len);
	else if (text[0] == '"' || text[0] == '\'')
		*why = xstrdup("a name is written without quotes, as one word");
	else if (strpbrk(text, " \t"))
		*why = xasprintf("name=%.*s: a name is one word, and what follows is not key=value",
				 (int)strcspn(text, " \t"), text);
	else
		for (size_t i = 0; i < len && !*why; i++)
			if (text[i] < '!' || text[i] > '~')
				*why = xstrdup("a name is made of printable ASCII characters: reports show no others");
	if (*why)
		return -EINVAL;
	ns->name = xstrdup(text);
	return 0;
}

static const struct id_key {
	const char *name;
	enum ident_field field;
	const char *form;
} id_keys[] = {
	{ "uuid", IDENT_UUID, "32 hexadecimal digits, as in 1b4e28ba-2fa1-11d2-883f-0016d3cca427" },
	{ "nguid", IDENT_NGUID, "32 hexadecimal digits, as in d07f718b1d2344577bc1bb4d4d516c40" },
	{ "eui64", IDENT_EUI64, "16 hexadecimal digits, as in 002538b20100505a" },
	{ "wwid", IDENT_WWID, "what the kernel shows as `wwid` of a disk: uuid.*, eui.* or nvme.*" },
};

static int parse_identifier(const struct id_key *key, const char *text, struct expect_ns *ns, char **why)
{
	cleanup_free char *shown = printable(text, 40);
	int err = ident_parse(&ns->id, key->field, text);

	switch (err) {
	case 0:
		return 0;
	case -ENODATA:
		*why = xasprintf("%s=%s: all zero identifies nothing: it means that there is no such identifier",
				 key->name, shown);
		break;
	case -EEXIST:
		*why = xasprintf("%s=%s: the line has that identifier already", key->name, shown);
		break;
	case -EPROTOTYPE:
		*why = xasprintf("%s=%s: this is a SCSI name; an NVMe namespace has a uuid, nguid or eui64",
				 key->name, shown);
		break;
	default:
		*why = xasprintf("%s=%s: %s", key->name, shown, key->form);
	}
	return err;
}

static int parse_field(const char *key, const char *value, struct expect_ns *ns, char **why)
{
	cleanup_free char *shown = printable(key, 40);

	if (!*value || is_blank(*value)) {
		*why = xasprintf("%s has no value: write %s=VALUE, without blanks around the =", shown, shown);
		return -EINVAL;
	}
	if (streq(key, "nsid"))
		return parse_nsids(value, ns, why);
	if (streq(key, "name"))
		return parse_name(value, ns, why);
	for (size_t i = 0; i < ARRAY_SIZE(id_keys); i++)
		if (streq(key, id_keys[i].name))
			return parse_identifier(&id_keys[i], value, ns, why);
	*why = xasprintf("%s is not known here: nsid, uuid, nguid, eui64, wwid or name", shown);
	return -EINVAL;
}

/*
 * Where the field at `text` ends: before the next word that has a "=". Blanks may stand inside a value, since sysfs
 * prints an EUI-64 as "00 25 38 b2 01 00 50 5a".
 */
static size_t field_length(const char *text)
{
	size_t end = strcspn(text, " \t");

	for (;;) {
		size_t word = end + strspn(text + end, " \t");
		size_t len = strcspn(text + word, " \t");

		if (!len || memchr(text + word, '=', len))
			return end;
		end = word + len;
	}
}

static char *not_a_field(const char *field)
{
	cleanup_free char *word = xstrndup(field, strcspn(field, " \t"));
	cleanup_free char *shown = printable(word, 40);

	if (streq(word, "all"))
		return xstrdup("`all` stands alone: it is every namespace that the controllers list");
	return xasprintf("%s is not understood: words such as nsid=7 or uuid=1b4e28ba-2fa1-11d2-883f-0016d3cca427 are, "
			 "without blanks around the =", shown);
}

static int parse_fields(const char *text, struct expect_ns *ns, char **why)
{
	while (*(text += strspn(text, " \t"))) {
		size_t len = field_length(text);
		cleanup_free char *field = xstrndup(text, len);
		char *equals = strchr(field, '=');
		int err;

		if (!equals || equals == field || strpbrk(field, " \t=") < equals) {
			*why = not_a_field(field);
			return -EINVAL;
		}
		*equals = '\0';
		err = parse_field(field, equals + 1, ns, why);
		if (err < 0)
			return err;
		text += len;
	}
	return 0;
}

static int parse_line(const char *text, struct expect_ns *ns, char **why)
{
	int err = parse_fields(text, ns, why);

	if (!err && !ns->nsid_first && ident_empty(&ns->id)) {
		*why = xstrdup("this identifies no namespace: nsid, uuid, nguid, eui64 or wwid is needed");
		err = -EINVAL;
	}
	if (!err && ns->nsid_first != ns->nsid_last && !ident_empty(&ns->id)) {
		*why = xstrdup("a range of NSIDs cannot have the identifier of one namespace: write two lines");
		err = -EINVAL;
	}
	return err;
}

static bool is_all(const char *text)
{
	text += strspn(text, " \t");
	return starts_with(text, "all") && !text[3 + strspn(text + 3, " \t")];
}

int config_parse_ns(const char *text, struct expect_ns *ns, char **why)
{
	int err;

	*ns = (struct expect_ns){ .all = is_all(text) };
	*why = NULL;
	if (ns->all)
		return 0;
	err = parse_line(text, ns, why);
	if (!err && ns->nsid_last - ns->nsid_first >= CONFIG_MAX_NSIDS) {
		*why = xasprintf("a range of more than %u NSIDs: `all` means whatever the controllers list",
				 CONFIG_MAX_NSIDS);
		err = -ERANGE;
	}
	if (err)
		expect_ns_clear(ns);
	return err;
}

int config_parse_ignore(const char *text, struct expect_ns *ns, char **why)
{
	int err;

	*ns = (struct expect_ns){ 0 };
	*why = NULL;
	if (is_all(text)) {
		*why = xstrdup("to ignore all is to expect nothing: leave out `namespace` instead");
		return -EINVAL;
	}
	err = parse_line(text, ns, why);
	if (err)
		expect_ns_clear(ns);
	return err;
}
