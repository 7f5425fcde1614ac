/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Shared by the files of loop, and by nobody else.
 */
#pragma once

#include "loop.h"

/* Apply the options to a configuration that was just read. 0 or an exit code, after a message. */
int loop_narrow(struct config *c, const struct loop_options *o);
/* For report_configuration(): is the NQN among those named (arg: options' `only`), and can a configuration say it? */
bool loop_can_configure(const void *arg, const char *nqn);
