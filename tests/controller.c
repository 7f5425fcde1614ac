/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "controller.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <linux/nvme_ioctl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <umockdev.h>
#include <unistd.h>

#define PAGE 4096
#define MAX_CONTROLLERS 4
#define MAX_FAILURES 8
#define MAX_LOG 65536

struct failure {
	int cns;
	uint32_t nsid;
	int error;
};

/* Everything here is under the lock: the thread that answers reads it, the test changes it. */
struct controller {
	struct fake *fake;
	int instance;
	char sysfs[64]; /* path below /sys */
	struct fake_ns *ns;
	size_t n;
	uint32_t vs, nn;
	struct failure failure[MAX_FAILURES];
	size_t n_failure;
	uint8_t *descs, *list;
	int rescan_error;
	int slow_cns;
	unsigned slow_ms;
	int hang_cns; /* -1 none */
	uint32_t hang_nsid;
	UMockdevIoctlClient *hanging;
	char log[MAX_LOG];
	size_t n_log;
};

struct fake {
	char top[32], asker[64], rundir[64], before[PATH_MAX], program[PATH_MAX + 32];
	UMockdevTestbed *testbed;
	UMockdevIoctlBase *handler;
	GMainContext *context;
	GMainLoop *loop;
	GThread *thread;
	GMutex lock;
	GCond changed;
	struct controller *ctrl[MAX_CONTROLLERS];
	size_t n;
};

/* --- the thread that answers -------------------------------------------------------------------------------------- */

static void log_command(struct controller *c, const char *fmt, ...) PRINTF_LIKE(2, 3);

static void log_command(struct controller *c, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(c->log + c->n_log, MAX_LOG - c->n_log, fmt, ap);
	va_end(ap);
	if (n > 0 && (size_t)n < MAX_LOG - c->n_log)
		c->n_log += n;
}

static const struct fake_ns *find_ns(const struct controller *c, uint32_t nsid)
{
	for (size_t i = 0; i < c->n; i++)
		if (c->ns[i].nsid == nsid)
			return &c->ns[i];
	return NULL;
}

static void put_le32(uint8_t *to, uint32_t value)
{
	value = htole32(value);
	memcpy(to, &value, sizeof(value));
}

static void answer_list(const struct controller *c, uint32_t after, uint8_t *page)
{
	size_t n = 0;

	if (c->list)
		memcpy(page, c->list, PAGE);
	for (size_t i = 0; i < c->n && n < PAGE / 4 && !c->list; i++)
		if (c->ns[i].nsid > after)
			put_le32(page + 4 * n++, c->ns[i].nsid);
}

static uint8_t *put_desc(uint8_t *at, uint8_t type, const void *data, uint8_t len)
{
	at[0] = type;
	at[1] = len;
	memcpy(at + 4, data, len);
	return at + 4 + len;
}

static int answer_descs(const struct controller *c, uint32_t nsid, uint8_t *page)
{
	const struct fake_ns *ns = find_ns(c, nsid);

	if (c->descs)
		memcpy(page, c->descs, PAGE);
	if (!ns)
		return INVALID_NAMESPACE;
	if (c->descs)
		return 0;
	if (ns->descs.have & IDENT_EUI64)
		page = put_desc(page, 1, ns->descs.eui64, 8);
	if (ns->descs.have & IDENT_NGUID)
		page = put_desc(page, 2, ns->descs.nguid, 16);
	if (ns->descs.have & IDENT_UUID)
		page = put_desc(page, 3, ns->descs.uuid, 16);
	if (ns->descs.have & IDENT_CSI)
		put_desc(page, 4, &ns->descs.csi, 1);
	return 0;
}

static int answer_ns(const struct controller *c, uint32_t nsid, uint8_t *page)
{
	const struct fake_ns *ns = find_ns(c, nsid);

	if (!ns && nsid > c->nn)
		return INVALID_NAMESPACE;
	if (!ns || ns->inactive)
		return 0;
	page[0] = page[8] = 1; /* NSZE, NCAP */
	if (ns->ns.have & IDENT_NGUID)
		memcpy(page + 104, ns->ns.nguid, 16);
	if (ns->ns.have & IDENT_EUI64)
		memcpy(page + 120, ns->ns.eui64, 8);
	return 0;
}

static int answer_identify(struct controller *c, int cns, uint32_t nsid, uint8_t *page)
{
	log_command(c, "%s%02xh:%u", c->n_log ? " " : "", cns, nsid);
	for (size_t i = 0; i < c->n_failure; i++)
		if (c->failure[i].cns == cns && (!c->failure[i].nsid || c->failure[i].nsid == nsid))
			return c->failure[i].error;
	switch (cns) {
	case CNS_NS:
		return answer_ns(c, nsid, page);
	case CNS_CTRL:
		put_le32(page + 80, c->vs);
		put_le32(page + 516, c->nn);
		return 0;
	case CNS_LIST:
		answer_list(c, nsid, page);
		return 0;
	case CNS_DESCS:
		return answer_descs(c, nsid, page);
	default:
		return INVALID_FIELD;
	}
}

static void complete(UMockdevIoctlClient *client, int error)
{
	umockdev_ioctl_client_complete(client, error < 0 ? -1 : error, error < 0 ? -error : 0);
}

static void on_identify(struct controller *c, UMockdevIoctlClient *client)
{
	UMockdevIoctlData *arg = umockdev_ioctl_client_get_arg(client);
	g_autoptr(UMockdevIoctlData) cmd = umockdev_ioctl_data_resolve(arg, 0, sizeof(struct nvme_admin_cmd), NULL);
	g_autoptr(UMockdevIoctlData) data = NULL;
	struct nvme_admin_cmd values;
	uint8_t page[PAGE] = { 0 };
	int error, cns;

	memcpy(&values, cmd->data, sizeof(values));
	cns = values.cdw10 & 0xff;
	data = umockdev_ioctl_data_resolve(cmd, offsetof(struct nvme_admin_cmd, addr), PAGE, NULL);
	if (values.opcode != 0x06 || values.data_len != PAGE || values.addr % PAGE || values.timeout_ms || !data) {
		log_command(c, " UNEXPECTED");
		complete(client, -ENOSYS);
		return;
	}
	error = answer_identify(c, cns, values.nsid, page);
	if (c->slow_ms && c->slow_cns == cns)
		g_usleep(c->slow_ms * 1000UL);
	if (c->hang_cns == cns && c->hang_nsid == values.nsid) {
		c->hanging = g_object_ref(client);
		g_cond_broadcast(&c->fake->changed);
		return;
	}
	if (!error)
		umockdev_ioctl_data_update(data, 0, page, PAGE);
	complete(client, error);
}

static struct controller *find_controller(struct fake *f, const char *node)
{
	for (size_t i = 0; i < f->n; i++)
		if (atoi(node + strlen("/dev/nvme")) == f->ctrl[i]->instance)
			return f->ctrl[i];
	return NULL;
}

static gboolean on_ioctl(UMockdevIoctlBase *handler, UMockdevIoctlClient *client, gpointer fake)
{
	struct fake *f = fake;
	struct controller *c;

	g_mutex_lock(&f->lock);
	c = find_controller(f, umockdev_ioctl_client_get_devnode(client));
	if (umockdev_ioctl_client_get_request(client) == NVME_IOCTL_ADMIN_CMD) {
		on_identify(c, client);
	} else if (umockdev_ioctl_client_get_request(client) == NVME_IOCTL_RESCAN) {
		log_command(c, "%srescan", c->n_log ? " " : "");
		complete(client, c->rescan_error);
	} else {
		log_command(c, " UNEXPECTED");
		complete(client, -ENOTTY);
	}
	g_mutex_unlock(&f->lock);
	return TRUE;
}

static gpointer answer_for_ever(gpointer fake)
{
	struct fake *f = fake;

	g_main_context_push_thread_default(f->context);
	g_main_loop_run(f->loop);
	g_main_context_pop_thread_default(f->context);
	return NULL;
}

static gboolean stop_answering(gpointer fake)
{
	struct fake *f = fake;

	g_main_loop_quit(f->loop);
	return G_SOURCE_REMOVE;
}

static gboolean answer_at_last(gpointer client)
{
	complete(client, INTERNAL_ERROR);
	g_object_unref(client);
	return G_SOURCE_REMOVE;
}

/* --- the fake ----------------------------------------------------------------------------------------------------- */

static void write_asker(struct fake *f)
{
	const char *top_builddir = getenv("top_builddir");
	g_autofree char *root = umockdev_testbed_get_root_dir(f->testbed);
	FILE *file;

	snprintf(f->program, sizeof(f->program), "%s/nvme-nsheal-ask", top_builddir ? top_builddir : f->before);
	assert_int_equal(access(f->program, X_OK), 0);
	snprintf(f->asker, sizeof(f->asker), "%s/asker", f->top);
	file = fopen(f->asker, "w");
	assert_non_null(file);
	/* the parent gives its child no environment; verify_asan_link_order is for builds with the sanitizer */
	fprintf(file,
		"#!/bin/sh\necho $$ >%s/pid\nexport LD_PRELOAD=libumockdev-preload.so.0 UMOCKDEV_DIR='%s' "
		"ASAN_OPTIONS=verify_asan_link_order=0\nexec '%s' \"$@\"\n",
		f->top, root, f->program);
	assert_int_equal(fchmod(fileno(file), 0755), 0);
	assert_int_equal(fclose(file), 0);
}

int start_fake(void **state)
{
	struct fake *f = xcalloc(1, sizeof(*f));

	strcpy(f->top, "/tmp/nsheal-XXXXXX");
	assert_non_null(mkdtemp(f->top));
	snprintf(f->rundir, sizeof(f->rundir), "%s/run", f->top);
	assert_int_equal(mkdir(f->rundir, 0755), 0);
	g_mutex_init(&f->lock);
	g_cond_init(&f->changed);
	assert_non_null(getcwd(f->before, sizeof(f->before)));
	f->testbed = umockdev_testbed_new();
	write_asker(f);
	assert_int_equal(chdir(f->top), 0);
	f->context = g_main_context_new();
	f->loop = g_main_loop_new(f->context, FALSE);
	g_main_context_push_thread_default(f->context);
	f->handler = umockdev_ioctl_base_new();
	g_signal_connect(f->handler, "handle-ioctl", G_CALLBACK(on_ioctl), f);
	g_main_context_pop_thread_default(f->context);
	f->thread = g_thread_new("controllers", answer_for_ever, f);
	*state = f;
	return 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(path);
}

static void free_controller(struct controller *c)
{
	for (size_t i = 0; i < c->n; i++) {
		ident_clear(&c->ns[i].descs);
		ident_clear(&c->ns[i].ns);
	}
	free(c->ns);
	free(c->descs);
	free(c->list);
	free(c);
}

int stop_fake(void **state)
{
	struct fake *f = *state;

	for (size_t i = 0; i < f->n; i++)
		let_go(f->ctrl[i]);
	g_main_context_invoke_full(f->context, G_PRIORITY_LOW, stop_answering, f, NULL); /* after what is still to do */
	g_thread_join(f->thread);
	for (size_t i = 0; i < f->n; i++)
		free_controller(f->ctrl[i]);
	g_object_unref(f->handler);
	g_object_unref(f->testbed);
	g_main_loop_unref(f->loop);
	g_main_context_unref(f->context);
	g_mutex_clear(&f->lock);
	g_cond_clear(&f->changed);
	assert_int_equal(chdir(f->before), 0);
	assert_int_equal(nftw(f->top, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
	free(f);
	return 0;
}

const char *asker(const struct fake *f)
{
	return f->asker;
}

const char *rundir(const struct fake *f)
{
	return f->rundir;
}

const char *ask_program(const struct fake *f)
{
	return f->program;
}

/* --- controllers -------------------------------------------------------------------------------------------------- */

/* umockdev's nodes are pseudo terminals, and it does not cover fstat(2) up: the number is that of the terminal. */
static void real_number(const struct controller *c, char *buf, size_t size)
{
	g_autofree char *root = umockdev_testbed_get_root_dir(c->fake->testbed);
	g_autofree char *node = g_strdup_printf("%s/dev/nvme%d", root, c->instance);
	struct stat st;

	assert_int_equal(stat(node, &st), 0);
	assert_true(S_ISCHR(st.st_mode));
	snprintf(buf, size, "%u:%u", major(st.st_rdev), minor(st.st_rdev));
}

static void link_number(const struct controller *c, const char *sysfs)
{
	g_autofree char *sys = umockdev_testbed_get_sys_dir(c->fake->testbed);
	g_autofree char *path = NULL, *target = g_strdup_printf("%s/%s", sys, sysfs);
	char number[32];

	real_number(c, number, sizeof(number));
	path = g_strdup_printf("%s/dev/char/%s", sys, number);
	(void)unlink(path);
	assert_int_equal(symlink(target, path), 0);
}

struct controller *controller(struct fake *f, int instance, const char *nqn)
{
	struct controller *c = xcalloc(1, sizeof(*c));
	g_autofree char *node = g_strdup_printf("/dev/nvme%d", instance);
	g_autofree char *text = NULL;

	assert_true(f->n < MAX_CONTROLLERS);
	c->fake = f;
	c->instance = instance;
	c->vs = NVME_1_4;
	c->nn = 1024;
	c->hang_cns = -1;
	snprintf(c->sysfs, sizeof(c->sysfs), "devices/virtual/nvme-fabrics/ctl/nvme%d", instance);
	text = g_strdup_printf("P: /%s\nN: nvme%d\nE: DEVNAME=%s\nE: SUBSYSTEM=nvme\nE: MAJOR=243\nE: MINOR=%d\n"
			       "A: dev=243:%d\nA: subsysnqn=%s\\n\nA: hostnqn=nqn.host\\n\nA: state=live\\n\n",
			       c->sysfs, instance, node, instance, instance, nqn);
	assert_true(umockdev_testbed_add_from_string(f->testbed, text, NULL));
	assert_true(umockdev_testbed_attach_ioctl(f->testbed, node, f->handler, NULL));
	link_number(c, c->sysfs);
	g_mutex_lock(&f->lock);
	f->ctrl[f->n++] = c;
	g_mutex_unlock(&f->lock);
	return c;
}

void attribute(struct controller *c, const char *name, const char *value)
{
	g_autofree char *path = g_strdup_printf("/sys/%s", c->sysfs);
	g_autofree char *line = g_strdup_printf("%s\n", value);

	umockdev_testbed_set_attribute(c->fake->testbed, path, name, line);
}

void number_passes_to(struct controller *c, const struct controller *other)
{
	link_number(c, other->sysfs);
}

void no_more_opens(struct controller *c)
{
	g_autofree char *node = g_strdup_printf("/dev/nvme%d", c->instance);
	int lock = 1;

	assert_int_equal(ioctl(umockdev_testbed_get_dev_fd(c->fake->testbed, node), TIOCSPTLCK, &lock), 0);
}

struct fake_ns *map(struct controller *c, uint32_t nsid)
{
	struct fake_ns *ns;

	g_mutex_lock(&c->fake->lock);
	ARRAY_GROW(c->ns, c->n);
	ns = &c->ns[c->n++];
	*ns = (struct fake_ns){ .nsid = nsid };
	g_mutex_unlock(&c->fake->lock);
	return ns;
}

struct fake_ns *map_as(struct controller *c, uint32_t nsid, const char *uuid, const char *nguid)
{
	struct fake_ns *ns = map(c, nsid);

	if (uuid)
		assert_int_equal(ident_parse(&ns->descs, IDENT_UUID, uuid), 0);
	if (nguid)
		assert_int_equal(ident_parse(&ns->descs, IDENT_NGUID, nguid), 0);
	return ns;
}

void unmap(struct controller *c, uint32_t nsid)
{
	g_mutex_lock(&c->fake->lock);
	for (size_t i = 0; i < c->n; i++)
		if (c->ns[i].nsid == nsid) {
			c->ns[i] = c->ns[--c->n];
			break;
		}
	g_mutex_unlock(&c->fake->lock);
}

void version(struct controller *c, uint32_t vs, uint32_t nn)
{
	g_mutex_lock(&c->fake->lock);
	c->vs = vs;
	c->nn = nn;
	g_mutex_unlock(&c->fake->lock);
}

void fails(struct controller *c, int cns, uint32_t nsid, int error)
{
	assert_true(c->n_failure < MAX_FAILURES);
	g_mutex_lock(&c->fake->lock);
	c->failure[c->n_failure++] = (struct failure){ cns, nsid, error };
	if (!error)
		c->n_failure = 0;
	g_mutex_unlock(&c->fake->lock);
}

void raw_descs(struct controller *c, const void *data, size_t n)
{
	assert_true(n <= PAGE);
	g_mutex_lock(&c->fake->lock);
	free(c->descs);
	c->descs = xcalloc(1, PAGE);
	memcpy(c->descs, data, n);
	g_mutex_unlock(&c->fake->lock);
}

void raw_list(struct controller *c, const uint32_t page[1024])
{
	g_mutex_lock(&c->fake->lock);
	free(c->list);
	c->list = xcalloc(1, PAGE);
	for (size_t i = 0; i < PAGE / 4; i++)
		put_le32(c->list + 4 * i, page[i]);
	g_mutex_unlock(&c->fake->lock);
}

void rescan_fails(struct controller *c, int error)
{
	g_mutex_lock(&c->fake->lock);
	c->rescan_error = error;
	g_mutex_unlock(&c->fake->lock);
}

void answers_after_ms(struct controller *c, int cns, unsigned ms)
{
	g_mutex_lock(&c->fake->lock);
	c->slow_cns = cns;
	c->slow_ms = ms;
	g_mutex_unlock(&c->fake->lock);
}

void hangs(struct controller *c, int cns, uint32_t nsid)
{
	g_mutex_lock(&c->fake->lock);
	c->hang_cns = cns;
	c->hang_nsid = nsid;
	g_mutex_unlock(&c->fake->lock);
}

void wait_until_it_hangs(struct controller *c)
{
	gint64 end = g_get_monotonic_time() + 20 * G_TIME_SPAN_SECOND;

	g_mutex_lock(&c->fake->lock);
	while (!c->hanging) /* the limit is for a test that fails */
		if (!g_cond_wait_until(&c->fake->changed, &c->fake->lock, end))
			break;
	g_mutex_unlock(&c->fake->lock);
	assert_non_null(c->hanging);
}

void let_go(struct controller *c)
{
	g_mutex_lock(&c->fake->lock);
	if (c->hanging)
		g_main_context_invoke(c->fake->context, answer_at_last, c->hanging);
	c->hanging = NULL;
	c->hang_cns = -1;
	g_mutex_unlock(&c->fake->lock);
}

const char *asked(struct controller *c)
{
	static char text[MAX_LOG];

	g_mutex_lock(&c->fake->lock);
	memcpy(text, c->log, c->n_log);
	text[c->n_log] = '\0';
	c->n_log = 0;
	g_mutex_unlock(&c->fake->lock);
	return text;
}
