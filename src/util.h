/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Small things that every layer may use: memory that cannot fail, cleanup attributes, reads relative to a directory.
 *
 * Running out of memory ends the program at once: these processes live for milliseconds to minutes, keep nothing that
 * a restart would lose, and an error path nobody has ever seen run is worse than a clean end.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

#define NS_PER_MS 1000000LL
#define NS_PER_SEC 1000000000LL
/* "never" as a point in time; comparisons need no special case */
#define TIME_NEVER INT64_MAX

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define WARN_UNUSED __attribute__((warn_unused_result))
#define PRINTF_LIKE(fmt, args) __attribute__((format(printf, fmt, args)))

static inline bool streq(const char *a, const char *b)
{
	return strcmp(a, b) == 0;
}

/* a and b may be NULL; two NULLs are the same */
static inline bool str_same(const char *a, const char *b)
{
	return a == b || (a && b && streq(a, b));
}

static inline bool starts_with(const char *s, const char *prefix)
{
	return strncmp(s, prefix, strlen(prefix)) == 0;
}

static inline int64_t min_time(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static inline int64_t max_time(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* a + b for times and durations that are not negative; stays at TIME_NEVER instead of overflowing */
static inline int64_t time_add(int64_t a, int64_t b)
{
	return a > TIME_NEVER - b ? TIME_NEVER : a + b;
}

void *xmalloc(size_t size) __attribute__((malloc, returns_nonnull));
void *xcalloc(size_t n, size_t size) __attribute__((malloc, returns_nonnull));
void *xreallocarray(void *p, size_t n, size_t size) __attribute__((returns_nonnull));
char *xstrdup(const char *s) __attribute__((malloc, returns_nonnull));
/* NULL stays NULL */
char *xstrdup_null(const char *s);
char *xstrndup(const char *s, size_t n) __attribute__((malloc, returns_nonnull));
char *xasprintf(const char *fmt, ...) PRINTF_LIKE(1, 2) __attribute__((malloc, returns_nonnull));

/*
 * Room for one more element in a growing array: `ARRAY_GROW(list->item, list->n)` and then `list->item[list->n++] = ...`.
 * Capacity is implied by n (doubled at each power of two), so that an array needs no third field.
 */
#define ARRAY_GROW(p, n) ((p) = array_grow((p), (n), sizeof(*(p))))
void *array_grow(void *p, size_t n, size_t size) __attribute__((returns_nonnull));

void cleanup_free_p(void *p);
void cleanup_fd_p(const int *fd);
#define cleanup_free __attribute__((cleanup(cleanup_free_p)))
#define cleanup_fd __attribute__((cleanup(cleanup_fd_p)))

/* hand over what a cleanup variable holds */
static inline int steal_fd(int *fd)
{
	int taken = *fd;

	*fd = -1;
	return taken;
}

/* FNV-1a, 64 bits: names of files and hash tables, not a defence against anyone. */
#define HASH_INIT 0xcbf29ce484222325ULL
uint64_t hash_bytes(uint64_t h, const void *data, size_t len);

/* CLOCK_BOOTTIME in nanoseconds: goes on during suspend, does not step. */
int64_t now_boottime(void);

/*
 * Read a small text file below dirfd in one read(2) (sysfs gives an attribute whole, up to a page), cut trailing
 * newlines, end with NUL. Returns the length or a negative errno; -EFBIG if it does not fit; a NUL inside is -EILSEQ.
 */
ssize_t read_text_at(int dirfd, const char *path, char *buf, size_t size) WARN_UNUSED;
/* Decimal or 0x number, the whole string, no sign, within max. 0 or -EINVAL / -ERANGE. */
int parse_uint(const char *s, uint64_t max, uint64_t *value) WARN_UNUSED;
/* Write all, over short writes and EINTR. 0 or a negative errno. */
int write_all(int fd, const void *data, size_t len) WARN_UNUSED;

/*
 * Bytes of unknown origin (sysfs, configuration, controllers) made safe for a terminal and a journal: control
 * characters and what is not printable ASCII become '?', at most max bytes, then "...". Caller frees.
 */
char *printable(const char *s, size_t max) __attribute__((malloc, returns_nonnull));

/* "5 s", "2 min 5 s", "1 h", "350 ms": a duration in nanoseconds for people. buf of 32 bytes; returns it. */
const char *format_duration(int64_t ns, char buf[32]);
