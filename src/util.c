/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "util.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static void __attribute__((noreturn)) out_of_memory(void)
{
	static const char text[] = "nvme-nsheal: out of memory\n";

	if (write(STDERR_FILENO, text, sizeof(text) - 1) < 0) {
		/* nobody is left to be told */
	}
	_exit(4);
}

void *xmalloc(size_t size)
{
	void *p = malloc(size ? size : 1);

	if (!p)
		out_of_memory();
	return p;
}

void *xcalloc(size_t n, size_t size)
{
	void *p = calloc(n ? n : 1, size ? size : 1);

	if (!p)
		out_of_memory();
	return p;
}

void *xreallocarray(void *p, size_t n, size_t size)
{
	void *q = reallocarray(p, n ? n : 1, size ? size : 1);

	if (!q)
		out_of_memory();
	return q;
}

char *xstrdup(const char *s)
{
	return xstrndup(s, strlen(s));
}

char *xstrdup_null(const char *s)
{
	return s ? xstrdup(s) : NULL;
}

char *xstrndup(const char *s, size_t n)
{
	size_t len = strnlen(s, n);
	char *copy = xmalloc(len + 1);

	memcpy(copy, s, len);
	copy[len] = '\0';
	return copy;
}

char *xasprintf(const char *fmt, ...)
{
	va_list ap;
	char *s;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&s, fmt, ap);
	va_end(ap);
	if (n < 0)
		out_of_memory();
	return s;
}

void *array_grow(void *p, size_t n, size_t size)
{
	if (p && (n & (n - 1)))
		return p; /* the capacity is the next power of two */
	if (n > SIZE_MAX / 4)
		out_of_memory();
	return xreallocarray(p, n < 4 ? 4 : n * 2, size);
}

void cleanup_free_p(void *p)
{
	free(*(void **)p);
}

void cleanup_fd_p(const int *fd)
{
	if (*fd >= 0) {
		int saved = errno;

		close(*fd);
		errno = saved;
	}
}

uint64_t hash_bytes(uint64_t h, const void *data, size_t len)
{
	const uint8_t *p = data;

	for (size_t i = 0; i < len; i++)
		h = (h ^ p[i]) * 0x100000001b3ULL;
	return h;
}

int64_t now_boottime(void)
{
	struct timespec ts;

	if (clock_gettime(CLOCK_BOOTTIME, &ts) < 0)
		return 0;
	return ts.tv_sec * NS_PER_SEC + ts.tv_nsec;
}

ssize_t read_text_at(int dirfd, const char *path, char *buf, size_t size)
{
	cleanup_fd int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	ssize_t n;

	if (fd < 0)
		return -errno;
	do
		n = read(fd, buf, size);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	if ((size_t)n == size)
		return -EFBIG;
	while (n > 0 && buf[n - 1] == '\n')
		n--;
	buf[n] = '\0';
	return memchr(buf, '\0', n) ? -EILSEQ : n;
}

int parse_uint(const char *s, uint64_t max, uint64_t *value)
{
	unsigned long long v;
	char *end;

	if (*s < '0' || *s > '9') /* strtoull takes blanks and signs */
		return -EINVAL;
	errno = 0;
	v = strtoull(s, &end, s[0] == '0' && (s[1] == 'x' || s[1] == 'X') ? 16 : 10);
	if (*end != '\0' || end == s)
		return -EINVAL;
	if (errno == ERANGE || v > max)
		return -ERANGE;
	*value = v;
	return 0;
}

int write_all(int fd, const void *data, size_t len)
{
	const char *p = data;

	while (len > 0) {
		ssize_t n = write(fd, p, len);

		if (n < 0) {
			if (errno == EINTR)
				continue;
			return -errno;
		}
		p += n;
		len -= n;
	}
	return 0;
}

char *printable(const char *s, size_t max)
{
	size_t len = strnlen(s, max + 1);
	bool cut = len > max;
	char *copy = xmalloc((cut ? max : len) + sizeof("..."));
	size_t i;

	for (i = 0; i < len && i < max; i++)
		copy[i] = s[i] >= ' ' && s[i] <= '~' ? s[i] : '?';
	memcpy(copy + i, cut ? "..." : "", cut ? 4 : 1);
	return copy;
}

const char *format_duration(int64_t ns, char buf[32])
{
	int64_t s = ns / NS_PER_SEC;

	if (ns < 0)
		snprintf(buf, 32, "0 s");
	else if (ns < NS_PER_SEC && ns > 0)
		snprintf(buf, 32, "%lld ms", (long long)(ns / NS_PER_MS));
	else if (s < 60)
		snprintf(buf, 32, "%lld s", (long long)s);
	else if (s < 3600)
		snprintf(buf, 32, s % 60 ? "%lld min %lld s" : "%lld min", (long long)(s / 60), (long long)(s % 60));
	else if (s < 48 * 3600)
		snprintf(buf, 32, s / 60 % 60 ? "%lld h %lld min" : "%lld h", (long long)(s / 3600),
			 (long long)(s / 60 % 60));
	else
		snprintf(buf, 32, "%lld days", (long long)(s / 86400));
	return buf;
}
