/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "ident.h"

#include <errno.h>
#include <stdlib.h>
#include <strings.h>

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

/*
 * Hexadecimal with dashes and blanks between bytes, but not inside one: "1-b4" is a slip, not a spelling. How many
 * bytes there are, at most max; 0 if the text is anything else.
 */
static size_t parse_hex(const char *text, uint8_t *bytes, size_t max)
{
	size_t n = 0;

	while (*text) {
		int high = hex_digit(text[0]);
		int low = high < 0 ? -1 : hex_digit(text[1]);

		if (low < 0 || n == max)
			return 0;
		bytes[n++] = high << 4 | low;
		text += 2;
		if (*text != '-' && *text != ' ')
			continue;
		text += strspn(text, "- ");
		if (!*text)
			return 0; /* a separator that separates nothing: the end was lost */
	}
	return n;
}

static bool all_zero(const uint8_t *bytes, size_t n)
{
	while (n > 0)
		if (bytes[--n])
			return false;
	return true;
}

static const char *skip_prefix(const char *text, const char *prefix)
{
	size_t n = strlen(prefix);

	return strncasecmp(text, prefix, n) == 0 ? text + n : NULL;
}

/* Names of SCSI devices, which storage systems show beside the NVMe ones: worth an answer of its own. */
static bool is_scsi_name(const char *text)
{
	return skip_prefix(text, "naa.") || skip_prefix(text, "t10.");
}

static uint8_t *field_bytes(struct ident *id, enum ident_field field, size_t *n)
{
	*n = field == IDENT_EUI64 ? 8 : 16;
	switch (field) {
	case IDENT_UUID:
		return id->uuid;
	case IDENT_NGUID:
		return id->nguid;
	case IDENT_EUI64:
		return id->eui64;
	default:
		return NULL;
	}
}

static int set_bytes(struct ident *id, enum ident_field field, const uint8_t *bytes, size_t n)
{
	size_t want;
	uint8_t *to = field_bytes(id, field, &want);

	if (!to || n != want)
		return -EINVAL;
	if (all_zero(bytes, n))
		return -ENODATA;
	if (id->have & field)
		return -EEXIST;
	memcpy(to, bytes, n);
	id->have |= field;
	return 0;
}

int ident_parse(struct ident *id, enum ident_field field, const char *text)
{
	const char *hex = skip_prefix(text, "0x");
	uint8_t bytes[16];

	if (field == IDENT_WWID)
		return ident_parse_wwid(id, text);
	if (is_scsi_name(text))
		return -EPROTOTYPE;
	if (!hex && field == IDENT_UUID)
		hex = skip_prefix(text, "uuid.");
	if (!hex && field == IDENT_NGUID)
		hex = skip_prefix(text, "nguid.");
	/* "eui." stands before both: the kernel and VMware write an NGUID so, the length tells which it is */
	if (!hex && (field == IDENT_NGUID || field == IDENT_EUI64))
		hex = skip_prefix(text, "eui.");
	if (!hex)
		hex = text;
	return set_bytes(id, field, bytes, parse_hex(hex, bytes, sizeof(bytes)));
}

/* One group of the kernel's own name: hexadecimal digits, whole bytes, up to the end character. The text after that. */
static const char *skip_group(const char *text, char end, size_t min, size_t max)
{
	size_t n = strspn(text, "0123456789abcdefABCDEF");

	if (n < min || n > max || n % 2 || text[n] != end)
		return NULL;
	return text + n + (end != '\0');
}

/*
 * VID-SERIAL-MODEL-NSID of "nvme.%04x-%*phN-%*phN-%08x" in wwid_show(). The serial number is up to 20 bytes, the model
 * up to 40, each without its trailing blanks, so possibly nothing.
 */
static bool is_kernel_name(const char *text)
{
	text = skip_group(text, '-', 4, 4);
	if (text)
		text = skip_group(text, '-', 0, 40);
	if (text)
		text = skip_group(text, '-', 0, 80);
	if (text)
		text = skip_group(text, '\0', 8, 8);
	return text;
}

static int set_wwid(struct ident *id, const char *text)
{
	if (id->have & IDENT_WWID)
		return -EEXIST;
	id->wwid = xstrdup(text);
	for (char *p = id->wwid; *p; p++)
		if (*p >= 'A' && *p <= 'Z')
			*p += 'a' - 'A';
	id->have |= IDENT_WWID;
	return 0;
}

int ident_parse_wwid(struct ident *id, const char *text)
{
	const char *by_id = skip_prefix(text, "nvme-"); /* as the links in /dev/disk/by-id are named */
	const char *rest;
	uint8_t bytes[16];
	size_t n;

	if (by_id)
		text = by_id;
	if (is_scsi_name(text))
		return -EPROTOTYPE;
	rest = skip_prefix(text, "uuid.");
	if (rest)
		return set_bytes(id, IDENT_UUID, bytes, parse_hex(rest, bytes, sizeof(bytes)));
	rest = skip_prefix(text, "eui.");
	if (rest) {
		n = parse_hex(rest, bytes, sizeof(bytes));
		return set_bytes(id, n == sizeof(id->eui64) ? IDENT_EUI64 : IDENT_NGUID, bytes, n);
	}
	rest = skip_prefix(text, "nvme.");
	if (rest && is_kernel_name(rest))
		return set_wwid(id, text);
	return -EINVAL;
}

/* The fields out of `which` that both have and that are the same in both. */
static unsigned same_fields(const struct ident *a, const struct ident *b, unsigned which)
{
	unsigned both = a->have & b->have & which, same = 0;

	if ((both & IDENT_UUID) && memcmp(a->uuid, b->uuid, sizeof(a->uuid)) == 0)
		same |= IDENT_UUID;
	if ((both & IDENT_NGUID) && memcmp(a->nguid, b->nguid, sizeof(a->nguid)) == 0)
		same |= IDENT_NGUID;
	if ((both & IDENT_EUI64) && memcmp(a->eui64, b->eui64, sizeof(a->eui64)) == 0)
		same |= IDENT_EUI64;
	if ((both & IDENT_WWID) && streq(a->wwid, b->wwid))
		same |= IDENT_WWID;
	if ((both & IDENT_CSI) && a->csi == b->csi)
		same |= IDENT_CSI;
	return same;
}

bool ident_match(const struct ident *want, const struct ident *seen)
{
	unsigned names = want->have & IDENT_NAMES;

	return names && same_fields(want, seen, names) == names;
}

bool ident_differ(const struct ident *a, const struct ident *b)
{
	unsigned both = a->have & b->have;

	return same_fields(a, b, both) != both;
}

bool ident_agree(const struct ident *a, const struct ident *b)
{
	return (a->have & b->have & IDENT_NAMES) && !ident_differ(a, b);
}

/* buf takes two digits a byte, a dash before each of the bytes whose bit is set in `dashes`, and the NUL. */
static char *put_hex(char *buf, const uint8_t *bytes, size_t n, unsigned dashes)
{
	static const char digit[] = "0123456789abcdef";
	char *p = buf;

	for (size_t i = 0; i < n; i++) {
		if (dashes & 1U << i)
			*p++ = '-';
		*p++ = digit[bytes[i] >> 4];
		*p++ = digit[bytes[i] & 15];
	}
	*p = '\0';
	return buf;
}

#define UUID_DASHES (1U << 4 | 1U << 6 | 1U << 8 | 1U << 10)

static char *format_field(const struct ident *id, enum ident_field field)
{
	char hex[40];

	if (!(id->have & field))
		return xstrdup("");
	switch (field) {
	case IDENT_UUID:
		return xasprintf("uuid=%s", put_hex(hex, id->uuid, sizeof(id->uuid), UUID_DASHES));
	case IDENT_NGUID:
		return xasprintf("nguid=%s", put_hex(hex, id->nguid, sizeof(id->nguid), 0));
	case IDENT_EUI64:
		return xasprintf("eui64=%s", put_hex(hex, id->eui64, sizeof(id->eui64), 0));
	default:
		return xasprintf("wwid=%s", id->wwid);
	}
}

/* from the strongest on */
static const enum ident_field name_fields[] = { IDENT_UUID, IDENT_NGUID, IDENT_EUI64, IDENT_WWID };

char *ident_format(const struct ident *id)
{
	for (size_t i = 0; i < ARRAY_SIZE(name_fields); i++)
		if (id->have & name_fields[i])
			return format_field(id, name_fields[i]);
	return xstrdup("");
}

char *ident_format_all(const struct ident *id)
{
	char *all = xstrdup("");

	for (size_t i = 0; i < ARRAY_SIZE(name_fields); i++) {
		cleanup_free char *before = all;
		cleanup_free char *name = format_field(id, name_fields[i]);

		all = xasprintf("%s%s%s", before, *before && *name ? " " : "", name);
	}
	return all;
}

struct ident ident_copy(const struct ident *id)
{
	struct ident copy = *id;

	copy.wwid = xstrdup_null(id->wwid);
	return copy;
}

void ident_clear(struct ident *id)
{
	free(id->wwid);
	*id = (struct ident){ 0 };
}
