/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static enum log_level log_max = LOG_LEVEL_INFO; /* the one piece of global state */

void log_set_level(enum log_level level)
{
	log_max = level;
}

enum log_level log_get_level(void)
{
	return log_max;
}

/* The journal's stream is a socket; a terminal, a file or a pipe is not. Asked each time: stderr may be redirected. */
static bool stderr_is_journal(void)
{
	struct stat st;

	return fstat(STDERR_FILENO, &st) == 0 && S_ISSOCK(st.st_mode);
}

void log_line(enum log_level level, const char *fmt, ...)
{
	cleanup_free char *text = NULL;
	cleanup_free char *safe = NULL;
	cleanup_free char *line = NULL;
	char prefix[32];
	va_list ap;
	int n;

	if (level > log_max)
		return;
	va_start(ap, fmt);
	n = vasprintf(&text, fmt, ap);
	va_end(ap);
	if (n < 0)
		return;
	/* Nothing that came from outside reaches a terminal raw, and a line stays one line. */
	safe = printable(text, 4000);
	if (stderr_is_journal())
		snprintf(prefix, sizeof(prefix), "<%d>", level);
	else
		snprintf(prefix, sizeof(prefix), "nvme-nsheal: ");
	line = xasprintf("%s%s\n", prefix, safe);
	if (write_all(STDERR_FILENO, line, strlen(line)) < 0) {
		/* nobody is left to be told */
	}
}
