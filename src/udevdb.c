/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "udevdb.h"

#include <errno.h>
#include <libudev.h>
#include <stdlib.h>

/* A burst of events must not be lost before it is read; the kernel's default holds some hundred. Needs CAP_NET_ADMIN to exceed rmem_max. */
#define RECEIVE_BUFFER (1 << 20)

struct udev_watch {
	struct udev *udev;
	struct udev_monitor *monitor;
};

int udev_watch_new(struct udev_watch **out)
{
	struct udev_watch *w = xcalloc(1, sizeof(*w));
	int err;

	w->udev = udev_new();
	w->monitor = w->udev ? udev_monitor_new_from_netlink(w->udev, "kernel") : NULL;
	if (!w->monitor) {
		err = errno ? -errno : -ENOTSUP;
		udev_watch_free(w);
		return err;
	}
	(void)udev_monitor_set_receive_buffer_size(w->monitor, RECEIVE_BUFFER);
	err = udev_monitor_filter_add_match_subsystem_devtype(w->monitor, "nvme", NULL);
	if (err >= 0)
		err = udev_monitor_filter_add_match_subsystem_devtype(w->monitor, "block", NULL);
	if (err >= 0)
		err = udev_monitor_enable_receiving(w->monitor);
	if (err < 0) {
		udev_watch_free(w);
		return err;
	}
	*out = w;
	return 0;
}

int udev_watch_fd(const struct udev_watch *w)
{
	return udev_monitor_get_fd(w->monitor);
}

bool udev_watch_drain(struct udev_watch *w)
{
	struct udev_device *d;
	bool ours = false;

	/* The kernel monitor is filtered by subsystem alone: block is also every other disk. */
	while ((d = udev_monitor_receive_device(w->monitor))) {
		const char *name = udev_device_get_sysname(d);

		ours = ours || (name && starts_with(name, "nvme"));
		udev_device_unref(d);
	}
	return ours;
}

void udev_watch_free(struct udev_watch *w)
{
	if (!w)
		return;
	if (w->monitor)
		udev_monitor_unref(w->monitor);
	if (w->udev)
		udev_unref(w->udev);
	free(w);
}
