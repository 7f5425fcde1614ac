/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The command line: arguments, verbs, exit code. Nothing else.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "log.h"
#include "loop.h"

enum option_value { OPT_ALL = 256, OPT_CONFIG, OPT_DRY_RUN, OPT_HELP, OPT_NOW, OPT_PROBE, OPT_REMOVALS, OPT_SYSROOT, OPT_VERSION };

#define COMMON_OPTIONS                                                                                                   \
	{ "config", required_argument, NULL, OPT_CONFIG }, { "help", no_argument, NULL, OPT_HELP },                      \
		{ "version", no_argument, NULL, OPT_VERSION }, { "verbose", no_argument, NULL, 'v' },                    \
		{ "quiet", no_argument, NULL, 'q' },                                                                     \
	{                                                                                                                \
		NULL, 0, NULL, 0                                                                                         \
	}

static const char common_help[] = "  --config FILE    read FILE and FILE.d/*.conf only\n"
				  "  -v, --verbose    say more; -q, --quiet: say only what is wrong\n"
				  "  --help, --version\n";

struct verb {
	const char *name;
	const char *synopsis;
	const char *help;
	const struct option *options;
	int (*run)(struct loop_options *o, char **words);
	bool one_word; /* at most one argument */
};

static int run_status(struct loop_options *o, char **words);
static int run_heal(struct loop_options *o, char **words);
static int run_check_config(struct loop_options *o, char **words);

static const struct option status_options[] = {
	{ "probe", no_argument, NULL, OPT_PROBE },
	{ "all", no_argument, NULL, OPT_ALL },
	{ "sysroot", required_argument, NULL, OPT_SYSROOT },
	COMMON_OPTIONS,
};
static const struct option heal_options[] = {
	{ "now", no_argument, NULL, OPT_NOW },
	{ "dry-run", no_argument, NULL, OPT_DRY_RUN },
	{ "removals", required_argument, NULL, OPT_REMOVALS },
	COMMON_OPTIONS,
};
static const struct option check_options[] = { COMMON_OPTIONS };

static const struct verb verbs[] = {
	{ "status", "[SUBSYSTEM...] [--probe] [--all] [--sysroot DIR]",
	  "Show which expected namespaces are there, and why the others are not. Asks no controller and needs no root,\n"
	  "unless --probe. Exit status 1 if something expected is not there.\n\n"
	  "  --probe          ask the controllers now (root)\n"
	  "  --all            a row for every namespace, also those that are present\n"
	  "  --sysroot DIR    read the copy of /sys in DIR instead of this machine's\n",
	  status_options, run_status, false },
	{ "heal", "[SUBSYSTEM...] [--now] [--dry-run] [--removals=HOW]",
	  "Look, find out why expected namespaces are missing, and rescan where that cures it. What the service runs.\n\n"
	  "  --now            do not wait for the grace time\n"
	  "  --dry-run        ask the controllers, but rescan nothing: say what would be done\n"
	  "  --removals=HOW   never | idle | dead | always, instead of the configured `removals`, this once\n",
	  heal_options, run_heal, false },
	{ "check-config", "[FILE]",
	  "Read the configuration (or FILE and FILE.d/*.conf) and list every fault. Exit status 3 if there is one.\n\n",
	  check_options, run_check_config, true },
};

static int finish_output(int code)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return code;
	if (errno != EPIPE)
		log_err("cannot write: %s", strerror(errno));
	return EXIT_TROUBLE;
}

static int print_usage(void)
{
	printf("Usage: nvme-nsheal COMMAND [OPTIONS]\n\n"
	       "Finds out why an expected NVMe namespace has no block device, and repairs what a rescan repairs.\n\n");
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
		printf("  nvme-nsheal %s %s\n", verbs[i].name, verbs[i].synopsis);
	printf("\nCommon options:\n%s\nSee nvme-nsheal(8) and nvme-nsheal.conf(5).\n", common_help);
	return finish_output(0);
}

static int print_help(const struct verb *verb)
{
	printf("Usage: nvme-nsheal %s %s\n\n%s%s", verb->name, verb->synopsis, verb->help, common_help);
	return finish_output(0);
}

static int print_version(void)
{
	printf("nvme-nsheal %s\n", VERSION);
	return finish_output(0);
}

static int need_root(const char *what)
{
	if (geteuid() == 0)
		return 0;
	log_err("%s needs root", what);
	return EXIT_TROUBLE;
}

static int run_status(struct loop_options *o, char **words)
{
	o->only = (const char *const *)words;
	if (o->mode == PLAN_PROBE) {
		int err = need_root("status --probe");

		if (err)
			return err;
		if (o->sysroot) {
			log_err("--probe asks this machine's controllers, --sysroot reads a copy: one or the other");
			return EXIT_USAGE;
		}
	}
	return finish_output(loop_status(o));
}

static int run_heal(struct loop_options *o, char **words)
{
	int err = need_root("heal");

	if (err)
		return err;
	o->only = (const char *const *)words;
	o->mode = PLAN_HEAL;
	return finish_output(loop_heal(o));
}

static int run_check_config(struct loop_options *o, char **words)
{
	struct config config;
	int err;

	if (words[0]) {
		config_paths_clear(&o->paths);
		config_paths_file(&o->paths, words[0]);
	}
	err = config_load(&config, &o->paths);
	for (size_t i = 0; i < config.faults.n; i++)
		fprintf(stderr, "%s\n", config.faults.text[i]);
	if (!err) {
		size_t n = 0;

		for (size_t i = 0; i < config.expect.n_subsys; i++)
			n += config.expect.subsys[i].n_ns;
		printf("%zu file%s, %zu subsystem%s, %zu namespace line%s: no fault\n", config.n_file,
		       config.n_file == 1 ? "" : "s", config.expect.n_subsys, config.expect.n_subsys == 1 ? "" : "s", n,
		       n == 1 ? "" : "s");
	}
	config_free(&config);
	return finish_output(err ? EXIT_CONFIG : 0);
}

static int usage_error(const struct verb *verb)
{
	log_err("see nvme-nsheal %s%s--help", verb ? verb->name : "", verb ? " " : "");
	return EXIT_USAGE;
}

/* 0 to go on, > 0 an exit code, -1: help or version was printed and *code is what it returned */
static int take_option(const struct verb *verb, int opt, struct loop_options *o, int *code)
{
	const char *why;

	switch (opt) {
	case OPT_HELP:
		*code = print_help(verb);
		return -1;
	case OPT_VERSION:
		*code = print_version();
		return -1;
	case OPT_CONFIG:
		config_paths_clear(&o->paths);
		config_paths_file(&o->paths, optarg);
		break;
	case OPT_SYSROOT:
		o->sysroot = optarg;
		break;
	case OPT_PROBE:
		o->mode = PLAN_PROBE;
		break;
	case OPT_ALL:
		o->all_rows = true;
		break;
	case OPT_NOW:
		o->skip_grace = true;
		break;
	case OPT_DRY_RUN:
		o->dry_run = true;
		break;
	case OPT_REMOVALS:
		o->removals_given = true;
		if (config_parse_removals(optarg, &o->removals, &why) < 0) {
			log_err("--removals=%s: %s", optarg, why);
			return EXIT_USAGE;
		}
		break;
	case 'v':
		log_set_level(LOG_LEVEL_DEBUG);
		break;
	case 'q':
		log_set_level(LOG_LEVEL_WARNING);
		break;
	default:
		return usage_error(verb); /* getopt has said what is wrong */
	}
	return 0;
}

static int run_verb(const struct verb *verb, int argc, char **argv)
{
	struct loop_options o = { .ask_program = ASK_PROGRAM, .rundir = RUNDIR, .mode = PLAN_STATUS };
	cleanup_free char *name = xasprintf("nvme-nsheal %s", verb->name);
	int opt, err = 0, code = 0;

	config_paths_system(&o.paths);
	argv[0] = name; /* getopt's messages begin with it */
	while (err == 0 && (opt = getopt_long(argc, argv, "vq", verb->options, NULL)) != -1)
		err = take_option(verb, opt, &o, &code);
	if (err == 0 && verb->one_word && argc - optind > 1) {
		log_err("%s takes one file", name);
		err = usage_error(verb);
	}
	if (err == 0)
		err = verb->run(&o, argv + optind);
	config_paths_clear(&o.paths);
	return err < 0 ? code : err;
}

/*
 * Started with stdin, stdout or stderr closed, a record or a lock would take its number. Read-only: what is said to a
 * closed stdout must still fail.
 */
static void keep_standard_fds(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

int main(int argc, char **argv)
{
	keep_standard_fds();
	signal(SIGPIPE, SIG_IGN); /* a closed pipe is an error to be told, not a death in the middle of something */
	if (argc < 2) {
		log_err("no command given: status, heal or check-config");
		return usage_error(NULL);
	}
	if (streq(argv[1], "--help") || streq(argv[1], "help"))
		return print_usage();
	if (streq(argv[1], "--version"))
		return print_version();
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
		if (streq(argv[1], verbs[i].name))
			return run_verb(&verbs[i], argc - 1, argv + 1);
	log_err("%s: no such command", argv[1]);
	return usage_error(NULL);
}
