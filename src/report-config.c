/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What is attached now as a configuration: a section for each subsystem, a line for each namespace, and beside it what a
 * person knows it by. Whatever sysfs says is shown by printable(); what a configuration cannot say becomes a comment.
 */
#include <errno.h>
#include <stdlib.h>

#include "report.h"

#define SHOW_TEXT 256

/* The strongest name, or the NSID where there is none that the storage gave. NULL: nothing to say it by. Caller frees. */
static char *line_of(const struct topo_disk *d)
{
	if (!ident_anonymous(&d->id))
		return ident_format(&d->id);
	return d->nsid ? xasprintf("nsid=%u", d->nsid) : NULL;
}

static void write_size(FILE *out, uint64_t bytes)
{
	static const char *const unit[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB" };
	size_t u = 0;
	uint64_t n = bytes;

	while (n >= 10240 && u + 1 < ARRAY_SIZE(unit)) {
		n /= 1024;
		u++;
	}
	fprintf(out, "%llu %s", (unsigned long long)n, unit[u]);
}

static void write_namespaces(FILE *out, const struct topo_subsys *s)
{
	char *last = xstrdup("");

	for (size_t i = 0; i < s->n_disk; i++) {
		const struct topo_disk *d = &s->disk[i];
		char *line = d->hidden || d->size == 0 ? NULL : line_of(d);
		cleanup_free char *name = printable(d->name, SHOW_TEXT);

		if (!line) {
			fprintf(out, "# %s, NSID %u, cannot be expected: hidden, of size 0, or nothing identifies it\n", name, d->nsid);
			continue;
		}
		/* with native multipath off, disks of one namespace stand side by side: one for each controller */
		if (!streq(line, last)) {
			fprintf(out, "namespace = %s    ; %s, NSID %u, ", line, name, d->nsid);
			write_size(out, d->size);
			fputc('\n', out);
		}
		free(last);
		last = line;
	}
	free(last);
}

int report_configuration(FILE *out, const struct topo *t, bool (*is_wanted)(const void *arg, const char *nqn), const void *arg)
{
	fputs("# What is attached now, as written by nvme-nsheal generate. See nvme-nsheal.conf(5).\n", out);
	for (size_t i = 0; i < t->n_subsys; i++) {
		const struct topo_subsys *s = &t->subsys[i];
		cleanup_free char *nqn = printable(s->nqn, SHOW_TEXT);
		cleanup_free char *model = printable(s->model ? s->model : "model unknown", SHOW_TEXT);

		if (s->instance < 0 || s->n_disk == 0)
			continue;
		if (!is_wanted(arg, s->nqn)) {
			fprintf(out, "\n# not written: %s\n", nqn);
			continue;
		}
		fprintf(out, "\n# %s, %zu controller%s\n[subsystem subsys%d]\nnqn = %s\n", model, s->n_ctrl, s->n_ctrl == 1 ? "" : "s",
			s->instance, s->nqn);
		write_namespaces(out, s);
	}
	errno = 0;
	if (fflush(out) != 0 || ferror(out))
		return errno ? -errno : -EIO;
	return 0;
}
