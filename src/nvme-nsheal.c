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

enum option_value {
	OPT_ALL = 256,
	OPT_CONFIG,
	OPT_CONFIGURED,
	OPT_DRY_RUN,
	OPT_EUI64,
	OPT_GRACE,
	OPT_HELP,
	OPT_JSON,
	OPT_NGUID,
	OPT_NOW,
	OPT_NQN,
	OPT_NSID,
	OPT_PROBE,
	OPT_REMOVALS,
	OPT_SYSROOT,
	OPT_TIMEOUT,
	OPT_UUID,
	OPT_VERSION
};

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

/* What the command line says, beside what the loop takes as it is. */
struct arguments {
	struct loop_options o;
	char *nqn, *identity; /* of the one namespace to wait for; identity as a `namespace =` line spells it */
	bool configured;
};

struct verb {
	const char *name;
	const char *synopsis;
	const char *help;
	const struct option *options;
	int (*run)(struct arguments *a, char **words);
	int most_words; /* -1: any number */
	const char *takes;
};

static int run_status(struct arguments *a, char **words);
static int run_heal(struct arguments *a, char **words);
static int run_wait(struct arguments *a, char **words);
static int run_generate(struct arguments *a, char **words);
static int run_check_config(struct arguments *a, char **words);

static const struct option status_options[] = {
	{ "probe", no_argument, NULL, OPT_PROBE },
	{ "all", no_argument, NULL, OPT_ALL },
	{ "json", no_argument, NULL, OPT_JSON },
	{ "sysroot", required_argument, NULL, OPT_SYSROOT },
	COMMON_OPTIONS,
};
static const struct option heal_options[] = {
	{ "now", no_argument, NULL, OPT_NOW },
	{ "dry-run", no_argument, NULL, OPT_DRY_RUN },
	{ "removals", required_argument, NULL, OPT_REMOVALS },
	{ "json", no_argument, NULL, OPT_JSON },
	COMMON_OPTIONS,
};
static const struct option wait_options[] = {
	{ "nqn", required_argument, NULL, OPT_NQN },
	{ "uuid", required_argument, NULL, OPT_UUID },
	{ "nguid", required_argument, NULL, OPT_NGUID },
	{ "eui64", required_argument, NULL, OPT_EUI64 },
	{ "nsid", required_argument, NULL, OPT_NSID },
	{ "configured", no_argument, NULL, OPT_CONFIGURED },
	{ "timeout", required_argument, NULL, OPT_TIMEOUT },
	{ "grace", required_argument, NULL, OPT_GRACE },
	{ "json", no_argument, NULL, OPT_JSON },
	COMMON_OPTIONS,
};
static const struct option generate_options[] = { { "sysroot", required_argument, NULL, OPT_SYSROOT }, COMMON_OPTIONS };
static const struct option check_options[] = { COMMON_OPTIONS };

static const struct verb verbs[] = {
	{ "status", "[SUBSYSTEM...] [--probe] [--all] [--json] [--sysroot DIR]",
	  "Show which expected namespaces are there, and why the others are not. Asks no controller and needs no root,\n"
	  "unless --probe. Exit status 1 if something expected is not there.\n\n"
	  "  --probe          ask the controllers now (root)\n"
	  "  --all            a row for every namespace, also those that are present\n"
	  "  --json           everything as JSON, for programs\n"
	  "  --sysroot DIR    read the copy of /sys in DIR instead of this machine's\n",
	  status_options, run_status, -1, NULL },
	{ "heal", "[SUBSYSTEM...] [--now] [--dry-run] [--removals=HOW] [--json]",
	  "Look, find out why expected namespaces are missing, and rescan where that cures it. What the service runs.\n\n"
	  "  --now            do not wait for the grace time\n"
	  "  --dry-run        ask the controllers, but rescan nothing: say what would be done\n"
	  "  --removals=HOW   never | idle | dead | always, instead of the configured `removals`, this once\n"
	  "  --json           at the end what was found, as JSON, for programs\n",
	  heal_options, run_heal, -1, NULL },
	{ "wait", "--nqn NQN --uuid|--nguid|--eui64|--nsid ID... | --configured [--timeout TIME] [--grace TIME] [--json]",
	  "Wait until one namespace, or all that the configuration names, has its block device, and print the path of that.\n"
	  "Rescans where that cures it, as heal does. Exit status 1 if the time has passed; then stderr says what is wrong.\n\n"
	  "  --nqn NQN        the subsystem\n"
	  "  --uuid U, --nguid G, --eui64 E, --nsid N\n"
	  "                   the namespace; of several, all must match\n"
	  "  --configured     everything in the configuration instead\n"
	  "  --timeout TIME   30s unless given, 90s with --configured\n"
	  "  --grace TIME     how long it may take by itself before anything is done: 2s, or as configured\n"
	  "  --json           instead of the path what was found, as JSON, for programs\n",
	  wait_options, run_wait, 0, "no arguments" },
	{ "generate", "[NQN...] [--sysroot DIR]",
	  "Print a configuration of what is attached now, of all subsystems or of these. Needs no root, asks no controller.\n\n"
	  "  --sysroot DIR    read the copy of /sys in DIR instead of this machine's\n",
	  generate_options, run_generate, -1, NULL },
	{ "check-config", "[FILE]",
	  "Read the configuration (or FILE and FILE.d/*.conf) and list every fault. Exit status 3 if there is one.\n\n",
	  check_options, run_check_config, 1, "one file" },
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

static int run_status(struct arguments *a, char **words)
{
	struct loop_options *o = &a->o;

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

static int run_heal(struct arguments *a, char **words)
{
	int err = need_root("heal");

	if (err)
		return err;
	a->o.only = (const char *const *)words;
	a->o.mode = PLAN_HEAL;
	return finish_output(loop_heal(&a->o));
}

static int wait_for_one(struct arguments *a)
{
	struct expect_ns ns = { 0 };
	cleanup_free char *why_not = NULL;
	cleanup_free char *nqn = NULL;
	const char *why;
	int code;

	if (config_parse_nqn(a->nqn, &nqn, &why) < 0 || streq(a->nqn, "*")) {
		log_err("--nqn %s: %s", a->nqn, streq(a->nqn, "*") ? "which subsystem? `*` is for the configuration" : why);
		return EXIT_USAGE;
	}
	if (config_parse_ns(a->identity, &ns, &why_not) < 0) {
		log_err("%s", why_not);
		return EXIT_USAGE;
	}
	if (ns.nsid_first != ns.nsid_last) {
		log_err("%s: one NSID, not a range", a->identity);
		expect_ns_clear(&ns);
		return EXIT_USAGE;
	}
	a->o.nqn = nqn;
	a->o.ns = &ns;
	code = need_root("wait");
	if (!code)
		code = finish_output(loop_wait(&a->o));
	expect_ns_clear(&ns);
	return code;
}

static int run_wait(struct arguments *a, char **words)
{
	struct loop_options *o = &a->o;
	int err;

	(void)words;
	if (a->configured && (a->nqn || a->identity)) {
		log_err("--configured is everything in the configuration, --nqn is one namespace: one or the other");
		return EXIT_USAGE;
	}
	if (!a->configured && (!a->nqn || !a->identity)) {
		log_err("wait for what? --nqn and one of --uuid, --nguid, --eui64 and --nsid, or --configured");
		return EXIT_USAGE;
	}
	o->mode = PLAN_HEAL;
	if (!o->timeout)
		o->timeout = (a->configured ? 90 : 30) * NS_PER_SEC;
	if (!a->configured)
		return wait_for_one(a);
	err = need_root("wait");
	return err ? err : finish_output(loop_wait(o));
}

static int run_generate(struct arguments *a, char **words)
{
	a->o.only = (const char *const *)words;
	return finish_output(loop_generate(&a->o));
}

static int run_check_config(struct arguments *a, char **words)
{
	struct loop_options *o = &a->o;
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

static int take_time(const char *option, int64_t *ns)
{
	const char *why;

	if (config_parse_duration(optarg, ns, &why) == 0)
		return 0;
	log_err("%s %s: %s", option, optarg, why);
	return EXIT_USAGE;
}

/* One more word of what a `namespace =` line would say. */
static void add_identity(struct arguments *a, const char *key)
{
	char *longer = xasprintf("%s%s%s=%s", a->identity ? a->identity : "", a->identity ? " " : "", key, optarg);

	free(a->identity);
	a->identity = longer;
}

/* 0 to go on, > 0 an exit code, -1: help or version was printed and *code is what it returned */
static int take_option(const struct verb *verb, int opt, struct arguments *a, int *code)
{
	struct loop_options *o = &a->o;
	const char *why;
	int err;

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
	case OPT_JSON:
		o->json = true;
		break;
	case OPT_CONFIGURED:
		a->configured = true;
		break;
	case OPT_NQN:
		if (a->nqn) {
			log_err("--nqn twice: one subsystem");
			return EXIT_USAGE;
		}
		a->nqn = optarg;
		break;
	case OPT_UUID:
		add_identity(a, "uuid");
		break;
	case OPT_NGUID:
		add_identity(a, "nguid");
		break;
	case OPT_EUI64:
		add_identity(a, "eui64");
		break;
	case OPT_NSID:
		add_identity(a, "nsid");
		break;
	case OPT_GRACE:
		return take_time("--grace", &o->grace);
	case OPT_TIMEOUT:
		err = take_time("--timeout", &o->timeout);
		if (!err && o->timeout == 0)
			o->timeout = 1; /* one look */
		return err;
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
	struct arguments a = { .o = { .ask_program = ASK_PROGRAM, .rundir = RUNDIR, .mode = PLAN_STATUS, .grace = -1 } };
	cleanup_free char *name = xasprintf("nvme-nsheal %s", verb->name);
	int opt, err = 0, code = 0;

	config_paths_system(&a.o.paths);
	argv[0] = name; /* getopt's messages begin with it */
	while (err == 0 && (opt = getopt_long(argc, argv, "vq", verb->options, NULL)) != -1)
		err = take_option(verb, opt, &a, &code);
	if (err == 0 && verb->most_words >= 0 && argc - optind > verb->most_words) {
		log_err("%s takes %s", name, verb->takes);
		err = usage_error(verb);
	}
	if (err == 0)
		err = verb->run(&a, argv + optind);
	config_paths_clear(&a.o.paths);
	free(a.identity);
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
		log_err("no command given: status, heal, wait, generate or check-config");
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
