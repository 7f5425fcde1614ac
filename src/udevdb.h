/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * libudev's monitor. The only file that includes <libudev.h>. An event says when to look, never what is.
 */
#pragma once

#include "util.h"

struct udev_watch;

/*
 * Listens to the kernel's own uevents (subsystems nvme and block): udevd's are not delivered under PrivateNetwork=, and
 * come later. A negative errno if there is no such socket (a container without it): then only time wakes the loop.
 */
int udev_watch_new(struct udev_watch **w) WARN_UNUSED;
int udev_watch_fd(const struct udev_watch *w);
/* Take everything that is queued; true if any of it was about NVMe. */
bool udev_watch_drain(struct udev_watch *w);
void udev_watch_free(struct udev_watch *w);
