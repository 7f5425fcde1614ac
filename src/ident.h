/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What identifies a namespace: UUID, NGUID, EUI-64 (NVMe base specification, Namespace Identification Descriptor list),
 * and, where a device has none of them, the kernel's own `wwid` of the form nvme.VID-SERIAL-MODEL-NSID. A value, no I/O.
 *
 * The NSID is not part of it: it is only unique within a subsystem (private ones only within a controller), and storage
 * re-uses it.
 */
#pragma once

#include "util.h"

enum ident_field {
	IDENT_UUID = 1 << 0,
	IDENT_NGUID = 1 << 1,
	IDENT_EUI64 = 1 << 2,
	IDENT_WWID = 1 << 3, /* only a wwid that begins with "nvme."; the others are one of the above */
	IDENT_CSI = 1 << 4,  /* command set identifier: known from controllers, never from sysfs before 6.10 */
};
/* those that say which namespace it is */
#define IDENT_NAMES (IDENT_UUID | IDENT_NGUID | IDENT_EUI64 | IDENT_WWID)

struct ident {
	uint8_t have; /* enum ident_field */
	uint8_t csi;
	uint8_t uuid[16];
	uint8_t nguid[16];
	uint8_t eui64[8];
	char *wwid; /* owned; NULL unless IDENT_WWID */
};

/*
 * Parse one identifier in any spelling that people meet: upper or lower case hex, dashes and blanks anywhere between
 * bytes, the prefix `0x` or the field's own, in any case (`uuid.`; `nguid.` or `eui.`; `eui.`). Sets the field and its
 * bit in id. IDENT_WWID is as ident_parse_wwid().
 * 0; -EINVAL not hex or wrong length; -ENODATA all zero (identifies nothing); -EPROTOTYPE a `naa.` or `t10.` name (SCSI);
 * -EEXIST the field is set already.
 */
int ident_parse(struct ident *id, enum ident_field field, const char *text) WARN_UNUSED;
/*
 * Parse a `wwid` as sysfs prints it: `uuid.<uuid>`, `eui.<32 hex>` (the NGUID), `eui.<16 hex>`, `nvme.<...>`.
 * (nvme_ns_show_wwid / wwid_show in the kernel's drivers/nvme/host.) Also with the `nvme-` that udev puts before it in
 * /dev/disk/by-id. Errors as ident_parse().
 */
int ident_parse_wwid(struct ident *id, const char *text) WARN_UNUSED;

/* Every name that `want` has is the same in `seen`. False if want has no name at all. */
bool ident_match(const struct ident *want, const struct ident *seen);
/* Have a name in common and do not differ (below). For comparing a controller's answer with sysfs. */
bool ident_agree(const struct ident *a, const struct ident *b);
/* a name that both have, or the command set, is different */
bool ident_differ(const struct ident *a, const struct ident *b);
/* Has it none that a controller tells? (Only the kernel's own wwid, made of the serial number and the NSID: quirks.) */
static inline bool ident_anonymous(const struct ident *id)
{
	return !(id->have & (IDENT_UUID | IDENT_NGUID | IDENT_EUI64));
}
static inline bool ident_empty(const struct ident *id)
{
	return !(id->have & IDENT_NAMES);
}

/*
 * The strongest name as the configuration spells it: "uuid=1b4e28ba-...", "nguid=d07f...", "eui64=...", "wwid=nvme...";
 * "" if there is none. Caller frees.
 */
char *ident_format(const struct ident *id) __attribute__((malloc, returns_nonnull));
/* All names, separated by blanks, in a fixed order: a key. Caller frees. */
char *ident_format_all(const struct ident *id) __attribute__((malloc, returns_nonnull));

struct ident ident_copy(const struct ident *id);
void ident_clear(struct ident *id);
