/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "admin.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <libnvme.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* Identify data and lists are 4,096 bytes; a smaller or unaligned buffer has overflowed on real drives. */
#define DATA_SIZE 4096
#define NSIDS_A_PAGE (DATA_SIZE / sizeof(uint32_t))
#define SYSFS_TEXT 4096
#define VERSION_1_3 0x00010300u

struct admin {
	int fd;    /* /dev/nvmeN: pins the controller and its number */
	int sysfs; /* its directory, by device number */
	dev_t rdev;
	char name[32];
	void *data;   /* DATA_SIZE */
	uint32_t vs;  /* 0: CNS 01h not read yet */
	uint32_t nn;
	uint32_t oaes;
	uint8_t cmic, lpa;
	/* Not asked again once it failed or was refused: each refusal grows the drive's error log. */
	int capabilities_error;
	bool no_descs; /* no CNS 03h */
	bool no_lists; /* no CNS 02h */
	admin_progress *progress;
	void *progress_arg;
};

/* ---- open and verify ---- */

static void trim_blanks(char *s)
{
	size_t n = strlen(s);

	while (n > 0 && s[n - 1] == ' ')
		s[--n] = '\0';
}

/* -ESTALE unless the attribute is that text (trailing blanks apart). */
static int expect_attr(int sysfs, const char *attr, const char *text)
{
	char buf[SYSFS_TEXT];
	cleanup_free char *want = xstrdup(text);
	ssize_t n = read_text_at(sysfs, attr, buf, sizeof(buf));

	if (n < 0)
		return -ESTALE;
	trim_blanks(buf);
	trim_blanks(want);
	return streq(buf, want) ? 0 : -ESTALE;
}

static int verify(struct admin *a, const char *nqn, const char *hostnqn)
{
	char path[64];
	struct stat st;
	int err;

	if (fstat(a->fd, &st) < 0)
		return -errno;
	if (!S_ISCHR(st.st_mode))
		return -ENOTTY;
	a->rdev = st.st_rdev;
	snprintf(path, sizeof(path), "/sys/dev/char/%u:%u", major(st.st_rdev), minor(st.st_rdev));
	a->sysfs = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (a->sysfs < 0)
		return -errno;
	err = expect_attr(a->sysfs, "subsysnqn", nqn);
	if (!err && hostnqn)
		err = expect_attr(a->sysfs, "hostnqn", hostnqn);
	if (!err && expect_attr(a->sysfs, "state", "live") < 0)
		err = -EAGAIN;
	return err;
}

static bool is_ctrl_name(const char *name)
{
	size_t digits;

	if (!starts_with(name, "nvme"))
		return false;
	digits = strspn(name + 4, "0123456789");
	return digits > 0 && digits < 10 && name[4 + digits] == '\0';
}

int admin_open(const char *name, const char *nqn, const char *hostnqn, struct admin **out)
{
	struct admin *a;
	char path[64];
	int err;

	if (!is_ctrl_name(name))
		return -EINVAL;
	a = xcalloc(1, sizeof(*a));
	a->sysfs = -1;
	snprintf(a->name, sizeof(a->name), "%s", name);
	snprintf(path, sizeof(path), "/dev/%s", name);
	/* Not libnvme's nvme_open(): it lacks O_CLOEXEC. */
	a->fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	err = a->fd < 0 ? -errno : verify(a, nqn, hostnqn);
	if (!err && posix_memalign(&a->data, DATA_SIZE, DATA_SIZE) != 0)
		err = -ENOMEM;
	if (err) {
		admin_close(a);
		return err;
	}
	*out = a;
	return 0;
}

void admin_close(struct admin *a)
{
	if (!a)
		return;
	if (a->fd >= 0)
		close(a->fd);
	if (a->sysfs >= 0)
		close(a->sysfs);
	free(a->data);
	free(a);
}

void admin_on_progress(struct admin *a, admin_progress *fn, void *arg)
{
	a->progress = fn;
	a->progress_arg = arg;
}

/* ---- commands ---- */

/* One Identify into a->data. libnvme answers -1 with errno, a status > 0, or 0. */
static int identify(struct admin *a, enum nvme_identify_cns cns, uint32_t nsid)
{
	int64_t began = now_boottime();
	int err;

	memset(a->data, 0, DATA_SIZE);
	switch (cns) {
	case NVME_IDENTIFY_CNS_NS_ACTIVE_LIST:
		err = nvme_identify_active_ns_list(a->fd, nsid, a->data);
		break;
	case NVME_IDENTIFY_CNS_NS_DESC_LIST:
		err = nvme_identify_ns_descs(a->fd, nsid, a->data);
		break;
	case NVME_IDENTIFY_CNS_NS:
		err = nvme_identify_ns(a->fd, nsid, a->data);
		break;
	default:
		err = nvme_identify_ctrl(a->fd, a->data);
		break;
	}
	if (err < 0)
		err = errno ? -errno : -EIO;
	if (a->progress)
		a->progress(a->progress_arg, now_boottime() - began);
	return err;
}

/* Capabilities, once and only when something needs them (rule 3). */
static int read_capabilities(struct admin *a)
{
	const struct nvme_id_ctrl *id = a->data;

	if (a->vs || a->capabilities_error)
		return a->capabilities_error;
	a->capabilities_error = identify(a, NVME_IDENTIFY_CNS_CTRL, 0);
	if (a->capabilities_error)
		return a->capabilities_error;
	a->nn = le32toh(id->nn);
	a->oaes = le32toh(id->oaes);
	a->cmic = id->cmic;
	a->lpa = id->lpa;
	a->vs = le32toh(id->ver);
	if (!a->vs)
		a->vs = 0x00010000; /* before 1.2 the field is zero */
	return 0;
}

/* The status itself, type and code, without the bits that say what to do about it (CRD, M, DNR). */
static int status_code(int err)
{
	return err > 0 ? err & 0x7ff : 0;
}

/* Refused because it does not know the command or the field: not a passing failure. */
static bool is_unsupported(int err)
{
	return status_code(err) == NVME_SC_INVALID_FIELD || status_code(err) == NVME_SC_INVALID_OPCODE;
}

static bool all_zero(const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (p[i])
			return false;
	return true;
}

static void add_nsid(uint32_t **list, size_t *n, uint32_t nsid)
{
	ARRAY_GROW(*list, *n);
	(*list)[(*n)++] = nsid;
}

/* Controllers before NVMe 1.1: every NSID up to NN, asked one by one whether it is there. */
static int list_by_walking(struct admin *a, uint32_t **list, size_t *n)
{
	const struct nvme_id_ns *ns = a->data;
	int err = read_capabilities(a);

	if (err)
		return err;
	if (a->nn > ADMIN_MAX_NS)
		return -E2BIG;
	for (uint32_t nsid = 1; nsid <= a->nn; nsid++) {
		err = identify(a, NVME_IDENTIFY_CNS_NS, nsid);
		if (err && status_code(err) != NVME_SC_INVALID_NS)
			return err; /* whether that one is there is not known, so the list is none */
		if (!err && ns->ncap)
			add_nsid(list, n, nsid);
	}
	return 0;
}

/*
 * Takes one page of the list. 1: there may be more, after *last; 0: that was all; -errno. Goes on after the page's last
 * entry as the kernel does (nvme_scan_ns_list), also where a page is not sorted: the highest one might skip some.
 */
static int take_page(const __le32 *page, uint32_t **list, size_t *n, uint32_t *last)
{
	uint32_t after = *last;
	size_t i;

	for (i = 0; i < NSIDS_A_PAGE && page[i]; i++)
		add_nsid(list, n, le32toh(page[i]));
	if (*n > ADMIN_MAX_NS)
		return -E2BIG;
	if (i < NSIDS_A_PAGE)
		return 0;
	*last = (*list)[*n - 1];
	if (*last >= NVME_NSID_ALL - 1) /* nothing can come after it, and asking is Invalid Namespace (CNS 02h) */
		return 0;
	return *last > after ? 1 : -EPROTO; /* one that gets no further would be asked for ever */
}

int admin_list(struct admin *a, uint32_t **list, size_t *n)
{
	uint32_t last = 0;
	int err = 0, more = 1;

	*list = NULL;
	*n = 0;
	while (!err && more == 1 && !a->no_lists) {
		err = identify(a, NVME_IDENTIFY_CNS_NS_ACTIVE_LIST, last);
		if (!err)
			more = take_page(a->data, list, n, &last);
		else if (is_unsupported(err) && *n == 0)
			a->no_lists = true;
	}
	if (a->no_lists)
		err = list_by_walking(a, list, n);
	else if (!err)
		err = more;
	if (err) {
		free(*list);
		*list = NULL;
		*n = 0;
	}
	return err;
}

static void take(struct ident *id, enum ident_field field, uint8_t *to, const uint8_t *from, size_t n)
{
	if (all_zero(from, n)) /* zero means: has none */
		return;
	memcpy(to, from, n);
	id->have |= field;
}

/* As the kernel (nvme_process_ns_desc): types that it does not know are passed over, a wrong length ends it. */
static void parse_descs(const uint8_t *data, struct ident *id)
{
	size_t head = sizeof(struct nvme_ns_id_desc), at = 0;

	while (at + head <= DATA_SIZE) {
		/* not through the struct: behind one of odd length they are not aligned */
		uint8_t type = data[at + offsetof(struct nvme_ns_id_desc, nidt)];
		uint8_t len = data[at + offsetof(struct nvme_ns_id_desc, nidl)];
		const uint8_t *nid = data + at + head;

		if (len == 0 || at + head + len > DATA_SIZE)
			return;
		if (type == NVME_NIDT_UUID && len == sizeof(id->uuid)) {
			take(id, IDENT_UUID, id->uuid, nid, sizeof(id->uuid));
		} else if (type == NVME_NIDT_NGUID && len == sizeof(id->nguid)) {
			take(id, IDENT_NGUID, id->nguid, nid, sizeof(id->nguid));
		} else if (type == NVME_NIDT_EUI64 && len == sizeof(id->eui64)) {
			take(id, IDENT_EUI64, id->eui64, nid, sizeof(id->eui64));
		} else if (type == NVME_NIDT_CSI && len == sizeof(id->csi)) {
			id->csi = nid[0];
			id->have |= IDENT_CSI;
		} else if (type >= NVME_NIDT_EUI64 && type <= NVME_NIDT_CSI) {
			return;
		}
		at += head + len;
	}
}

/* CNS 00h: 0 and NGUID and EUI-64 if the namespace is there. */
static int read_ns(struct admin *a, uint32_t nsid, struct ident *id)
{
	const struct nvme_id_ns *ns = a->data;
	int err = identify(a, NVME_IDENTIFY_CNS_NS, nsid);

	if (err)
		return err;
	if (!ns->ncap) /* zeroes stand for an inactive NSID, not for a namespace without a name */
		return NVME_SC_INVALID_NS;
	take(id, IDENT_NGUID, id->nguid, ns->nguid, sizeof(id->nguid));
	take(id, IDENT_EUI64, id->eui64, ns->eui64, sizeof(id->eui64));
	return 0;
}

/* Neither NVM nor zoned: CNS 00h is not for it. */
static bool is_other_command_set(const struct ident *id)
{
	return (id->have & IDENT_CSI) && id->csi != NVME_CSI_NVM && id->csi != NVME_CSI_ZNS;
}

int admin_identify(struct admin *a, uint32_t nsid, struct ident *id)
{
	int err = read_capabilities(a), refused = 0;

	*id = (struct ident){ 0 };
	if (!err && a->vs >= VERSION_1_3 && !a->no_descs) {
		err = identify(a, NVME_IDENTIFY_CNS_NS_DESC_LIST, nsid);
		if (!err)
			parse_descs(a->data, id);
		else if (is_unsupported(err))
			refused = err;
	}
	if (err && !refused)
		return err;
	/*
	 * What the descriptors lack comes from CNS 00h, as in the kernel (nvme_ns_info_from_identify). A second command for
	 * every namespace only to learn that there is no EUI-64 beside an NGUID would be too much.
	 */
	if ((id->have & (IDENT_NGUID | IDENT_EUI64)) || is_other_command_set(id))
		return 0;
	err = read_ns(a, nsid, id);
	if (is_unsupported(err) && !ident_empty(id))
		err = 0; /* any other failure would leave a name out that is configured, maybe */
	/*
	 * Invalid Field has two meanings: no CNS 03h here, although the version has it (the kernel's
	 * NVME_QUIRK_NO_NS_DESC_LIST), or no such namespace by now (so QEMU). The namespace tells which.
	 */
	if (refused && !err)
		a->no_descs = true;
	return err;
}

int admin_is_gone(struct admin *a, uint32_t nsid, bool *gone)
{
	const struct nvme_id_ns *ns = a->data;
	int err = identify(a, NVME_IDENTIFY_CNS_NS, nsid);

	*gone = status_code(err) == NVME_SC_INVALID_NS || (!err && !ns->ncap);
	return *gone ? 0 : err;
}

/* ---- logs and features ---- */

/* Up to DATA_SIZE bytes of a log into a->data. Not libnvme's nvme_get_log_ana(): it ignores rae before 1.10. */
static int get_log(struct admin *a, enum nvme_cmd_get_log_lid lid, uint8_t lsp, uint64_t offset, uint32_t len, bool rae)
{
	struct nvme_get_log_args args = {
		.args_size = sizeof(args), .fd = a->fd, .log = a->data, .len = len, .lpo = offset, .lid = lid, .lsp = lsp,
		.nsid = NVME_NSID_ALL, .csi = NVME_CSI_NVM, .lsi = NVME_LOG_LSI_NONE, .uuidx = NVME_UUID_NONE, .rae = rae,
		.timeout = NVME_DEFAULT_IOCTL_TIMEOUT,
	};
	int64_t began = now_boottime();
	int err;

	memset(a->data, 0, DATA_SIZE);
	err = nvme_get_log(&args);
	if (err < 0)
		err = errno ? -errno : -EIO;
	if (a->progress)
		a->progress(a->progress_arg, now_boottime() - began);
	return err;
}

static const char *ana_word(uint8_t state)
{
	switch (state & 0xf) {
	case NVME_ANA_STATE_OPTIMIZED:
		return "optimized";
	case NVME_ANA_STATE_NONOPTIMIZED:
		return "non-optimized";
	case NVME_ANA_STATE_INACCESSIBLE:
		return "inaccessible";
	case NVME_ANA_STATE_PERSISTENT_LOSS:
		return "persistent-loss";
	case NVME_ANA_STATE_CHANGE:
		return "change";
	default:
		return NULL;
	}
}

/* The descriptors are 32 bytes each behind a header of 16: the second and later pieces begin in the middle of the log. */
static int find_ana_group(struct admin *a, uint32_t group, const char **state)
{
	const struct nvme_ana_log *log = a->data;
	const size_t head = sizeof(*log), size = sizeof(struct nvme_ana_group_desc);
	size_t n_groups = 1, seen = 0, offset = 0;

	while (seen < n_groups) {
		size_t at = offset ? 0 : head;
		int err = get_log(a, NVME_LOG_LID_ANA, NVME_LOG_ANA_LSP_RGO_GROUPS_ONLY, offset,
				  offset ? DATA_SIZE : head + (DATA_SIZE - head) / size * size, true);

		if (err)
			return err;
		if (!offset)
			n_groups = le16toh(log->ngrps);
		for (; at + size <= DATA_SIZE && seen < n_groups; at += size, seen++) {
			const struct nvme_ana_group_desc *d = (const void *)((const char *)a->data + at);

			if (le32toh(d->grpid) != group)
				continue;
			*state = ana_word(d->state);
			return *state ? 0 : -EPROTO;
		}
		offset += at;
	}
	return -ENOENT;
}

int admin_ana(struct admin *a, uint32_t nsid, const char **state)
{
	const struct nvme_id_ns *ns = a->data;
	int err = read_capabilities(a);

	*state = "-";
	if (err || !(a->cmic & NVME_CTRL_CMIC_MULTI_ANA_REPORTING))
		return err;
	err = identify(a, NVME_IDENTIFY_CNS_NS, nsid);
	if (err)
		return err;
	return find_ana_group(a, le32toh(ns->anagrpid), state);
}

#define NOTICE_NAMESPACE (1u << 8)
#define NOTICE_ANA (1u << 11)
#define OPCODE_SET_FEATURES 0x09

/* Would the kernel freeze I/O around Set Features (nvme_passthru_start), because this controller says that it changes more? */
static bool set_features_freezes(struct admin *a)
{
	const struct nvme_cmd_effects_log *log = a->data;

	if (!(a->lpa & (1 << 1))) /* no such log */
		return false;
	if (get_log(a, NVME_LOG_LID_CMD_EFFECTS, 0, 0, DATA_SIZE, true) != 0)
		return true; /* it has one and does not tell: the careful answer */
	return le32toh(log->acs[OPCODE_SET_FEATURES]) &
	       (NVME_CMD_EFFECTS_NCC | NVME_CMD_EFFECTS_NIC | NVME_CMD_EFFECTS_CCC | NVME_CMD_EFFECTS_CSE_MASK);
}

void admin_rearm(struct admin *a, char **text)
{
	uint32_t offered, is = 0, result = 0;
	int err = read_capabilities(a);

	offered = a->oaes & (NOTICE_NAMESPACE | NOTICE_ANA);
	if (err || !(offered & NOTICE_NAMESPACE)) {
		*text = err ? xasprintf("cannot be told: %s", admin_strerror(err)) :
			      xstrdup("this controller sends no notices of changed namespaces: the next one will be missed too");
		return;
	}
	/* a notice that nobody cleared is not repeated; the kernel ignores what this log says, and so may we */
	(void)get_log(a, NVME_LOG_LID_CHANGED_NS, 0, 0, DATA_SIZE, false);
	err = nvme_get_features_async_event(a->fd, NVME_GET_FEATURES_SEL_CURRENT, &is);
	if (err) {
		*text = xasprintf("feature 0Bh cannot be read: %s", admin_strerror(err < 0 ? -errno : err));
	} else if ((is & offered) == offered) {
		*text = xasprintf("in order (feature 0Bh is %#x)", is);
	} else if (set_features_freezes(a)) {
		*text = xasprintf("feature 0Bh is %#x and lacks %#x; setting it would freeze I/O on this controller: reset it when "
				  "that does no harm", is, offered & ~is);
	} else {
		err = nvme_set_features_async_event(a->fd, is | offered, false, &result);
		*text = err ? xasprintf("feature 0Bh cannot be set: %s", admin_strerror(err < 0 ? -errno : err)) :
			      xasprintf("repaired: feature 0Bh was %#x, is %#x", is, is | offered);
	}
}

/* ---- rescan ---- */

/* Opening the device anew enters nvme_dev_open(), which refuses unless the controller is live. */
static int open_again(struct admin *a)
{
	char path[64];
	struct stat st;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", a->fd);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd >= 0 || errno != ENOENT)
		return fd >= 0 ? fd : -errno;
	snprintf(path, sizeof(path), "/dev/%s", a->name); /* no /proc here */
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0 || st.st_rdev != a->rdev) {
		close(fd);
		return -ESTALE;
	}
	return fd;
}

int admin_rescan(struct admin *a)
{
	int fd = open_again(a);

	if (fd < 0)
		return fd;
	close(fd);
	if (expect_attr(a->sysfs, "state", "live") < 0)
		return -EAGAIN;
	errno = 0;
	if (nvme_ns_rescan(a->fd) != 0) /* a positive errno as well as -1, depending on its version */
		return errno ? -errno : -EIO;
	return 0;
}

const char *admin_strerror(int err)
{
	return err > 0 ? nvme_status_to_string(err, false) : strerror(-err);
}
