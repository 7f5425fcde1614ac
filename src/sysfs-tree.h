/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Inside the sysfs port only: directories and attributes of the live /sys and of a copy of it, by one set of calls.
 */
#pragma once

#include <dirent.h>

#include "util.h"

struct tree {
	int root;
	bool bundle; /* the root is not sysfs but somebody else's data: no link in it may lead out */
	/*
	 * Not 0: this process lacks something (descriptors, memory) or a listing broke off. Going on would be taking
	 * devices that are there for missing.
	 */
	int err;
};

/* root: a directory fd, the caller's. 0 or a negative errno. */
int tree_init(struct tree *tree, int root) WARN_UNUSED;

/* An open directory. */
struct place {
	DIR *dir; /* NULL: not open */
	int fd;
	char *path; /* below the root; for bundles */
};

/* parent NULL: the root. 0 or a negative errno, and then nothing is open. */
int place_open(struct tree *tree, const struct place *parent, const char *name, struct place *p) WARN_UNUSED;
void place_close(struct place *p);
#define cleanup_place __attribute__((cleanup(place_close)))
/*
 * The next entry that may be a directory, good until the next call; NULL at the end. What d_type says to be a file is
 * passed over.
 */
const char *place_next(struct tree *tree, const struct place *p);

/* Errors that mean: it was there when it was listed, and is not any more. */
bool is_gone(int err);

/* As read_text_at(); name may have directories in it. In a bundle anything but a regular file is -EISDIR or -EINVAL. */
ssize_t attr_read(struct tree *tree, const struct place *p, const char *name, char *buf, size_t size) WARN_UNUSED;
/*
 * A text without its trailing blanks; NULL where there is none, and then *err says why (0: it is empty or says that
 * there is none). Caller frees.
 */
char *attr_string(struct tree *tree, const struct place *p, const char *name, int *err);
/* A decimal number up to INT_MAX; `otherwise` where there is none. */
int attr_number(struct tree *tree, const struct place *p, const char *name, int otherwise);
