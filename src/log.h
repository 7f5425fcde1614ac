/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Diagnostics for people, on stderr. One call is one line and one write(2). In a unit, stderr is the journal's socket:
 * there, and only there, lines carry the `<N>` priority prefix (sd-daemon(3)).
 */
#pragma once

#include "util.h"

/* syslog's numbers */
enum log_level { LOG_LEVEL_ERR = 3, LOG_LEVEL_WARNING = 4, LOG_LEVEL_NOTICE = 5, LOG_LEVEL_INFO = 6, LOG_LEVEL_DEBUG = 7 };

/* Lines above this level are dropped. Starts at LOG_LEVEL_INFO. */
void log_set_level(enum log_level level);
enum log_level log_get_level(void);
void log_line(enum log_level level, const char *fmt, ...) PRINTF_LIKE(2, 3);

#define log_err(...) log_line(LOG_LEVEL_ERR, __VA_ARGS__)
#define log_warning(...) log_line(LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_notice(...) log_line(LOG_LEVEL_NOTICE, __VA_ARGS__)
#define log_info(...) log_line(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...) log_line(LOG_LEVEL_DEBUG, __VA_ARGS__)
