#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# The layers of HACKING.md, held by what the sources include and by what the objects need.
#
#   programs -> loop -> planner, ports -> model -> util
#
# A module is a file name up to its first dash: history-json.c belongs to history.
set -eu
: "${top_srcdir:?}" "${top_builddir:?}" "${NM:?}" # make check sets them

failed=0
fail() {
	echo "FAIL: $*"
	failed=1
}
ok() { echo "ok: $*"; }

model="ident expect topology probe record state view"
planner="plan pass judge consult removal round"
ports="config sysfs history ask admin inuse udevdb report trigger"
programs="nvme-nsheal nvme-nsheal-ask nvme-nsheal-event"

module_of() { # FILE
	name=${1##*/}
	name=${name%.[ch]}
	case " $programs " in
	*" $name "*) echo "$name" ;;
	*) echo "${name%%-*}" ;;
	esac
}

is_in() { # WORD LIST
	case " $2 " in
	*" $1 "*) return 0 ;;
	*) return 1 ;;
	esac
}

# Modules whose headers a module may include, beside its own.
may_include() { # MODULE
	case $1 in
	util) ;;
	log) echo util ;;
	nvme-nsheal) echo loop log util ;;
	nvme-nsheal-event) echo trigger log util ;;
	nvme-nsheal-ask) echo admin inuse "$model" log util ;;
	loop) echo "$planner $ports $model" log util ;;
	history) echo trigger "$model" log util ;;
	report) echo plan "$model" log util ;;
	*)
		if is_in "$1" "$model"; then
			echo "$model" util
		elif is_in "$1" "$planner"; then
			echo "$planner $model" util
		elif is_in "$1" "$ports"; then
			echo "$model" log util
		else
			echo UNKNOWN
		fi
		;;
	esac
}

# The one module that may include a library's header, or several.
owner_of() { # HEADER
	case $1 in
	ini.h) echo config ;;
	libnvme.h | libnvme-*) echo admin ;;
	libudev.h) echo udevdb ;;
	libsmartcols.h | libsmartcols/*) echo report ;;
	json.h | json_*.h | json-c/*) echo history report ;;
	linux/nvme_ioctl.h) echo admin ;;
	esac
}

# What the model and the planner may include: values, no I/O.
pure="errno.h inttypes.h limits.h stdbool.h stddef.h stdint.h stdio.h stdlib.h string.h strings.h sys/types.h"

check_includes() { # FILE: prints what is wrong
	module=$(module_of "$1")
	allowed="$module $(may_include "$module")"
	if is_in UNKNOWN "$allowed"; then
		echo "${1##*/}: no layer is known for it: give it one in $0 and in HACKING.md"
		return
	fi
	sed -n 's/^[[:space:]]*#[[:space:]]*include[[:space:]]*\([<"][^>"]*\)[>"].*/\1/p' "$1" |
		while IFS= read -r include; do
			header=${include#?}
			case $include in
			'"'*)
				is_in "$(module_of "$header")" "$allowed" || echo "${1##*/}: may not include \"$header\""
				;;
			*)
				owners=$(owner_of "$header")
				if [ -n "$owners" ]; then
					is_in "$module" "$owners" || echo "${1##*/}: <$header> is for $owners only"
				elif is_in "$module" "$model $planner"; then
					is_in "$header" "$pure" || echo "${1##*/}: <$header> in a pure layer"
				fi
				;;
			esac
		done
}

# Calls that have no place here. NO_COLOR is the one variable that may be read; to the helper, udev gives the event so.
event_properties='ACTION SUBSYSTEM DEVPATH NVME_EVENT NVME_AEN'
banned='system popen sprintf vsprintf strcpy strcat strncat strtok gets atoi atol atoll getenv secure_getenv alloca
	mktemp tmpnam'
check_calls() { # FILE
	sed -e 's,//.*,,' -e 's,/\*.*\*/,,' -e '/\/\*/,/\*\//d' -e 's/"\([^"\\]\|\\.\)*"/"&"/g' "$1" |
		sed -e 's/getenv(""NO_COLOR"")//g' >"$work/code"
	if [ "$(module_of "$1")" = nvme-nsheal-event ]; then
		for variable in $event_properties; do
			sed -i "s/getenv(\"\"$variable\"\")//g" "$work/code"
		done
	fi
	sed -i 's/""\([^"\\]\|\\.\)*""/""/g' "$work/code"
	for call in $banned; do
		! grep -qE "(^|[^A-Za-z0-9_])${call}[[:space:]]*\(" "$work/code" || echo "${1##*/}: calls $call()"
	done
}

# --- the planner's object: memory, strings, the model ---
c_pure='malloc calloc realloc reallocarray free qsort qsort_r bsearch abort
	memcpy memmove memset memcmp memchr memrchr bcmp
	strlen strnlen strcmp strncmp strcasecmp strncasecmp strchr strrchr strchrnul strstr strverscmp strspn strcspn
	strdup strndup
	strtoul strtoull strtol strtoll snprintf vsnprintf toupper tolower __errno_location'
util_pure='xmalloc xcalloc xreallocarray xstrdup xstrdup_null xstrndup xasprintf array_grow cleanup_free_p hash_bytes
	parse_uint printable format_duration'
# what compilers and hardening add
is_helper() { # SYMBOL
	case $1 in
	__asan_* | __ubsan_* | __sanitizer_* | __sancov_* | __gcov_* | __llvm_* | mangle_path) return 0 ;;
	__stack_chk_fail | _GLOBAL_OFFSET_TABLE_ | __*_chk | __isoc23_strto* | __ctype_*_loc | __popcount*) return 0 ;;
	*) return 1 ;;
	esac
}

object_of() { # MODULE FILE NAME WITHOUT .c
	find "$top_builddir/src" -maxdepth 1 \( -name "$1.o" -o -name "lib*_a-$1.o" \) | head -n 1
}

check_object() { # OBJECT DEFINED: prints what it may not need
	"$NM" -u "$1" | awk '{ print $NF }' | sed 's/@.*//' | while read -r symbol; do
		printf '%s' "$c_pure $util_pure" | tr -s '[:space:]' '\n' | grep -qxF "$symbol" && continue
		is_helper "$symbol" && continue
		grep -qxF "$symbol" "$2" && continue
		echo "${1##*/}: needs $symbol"
	done
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# --- does this test see what it is to see? ---
expect_fault() { # CHECK FILE TEXT WANTED
	printf '%b' "$3" >"$work/$2"
	said=$($1 "$work/$2")
	case $said in
	*"$4"*) ;;
	*) fail "self-test: $2 with '$3' gave '$said', not '$4'" ;;
	esac
	rm "$work/$2"
}
expect_none() { # CHECK FILE TEXT
	printf '%b' "$3" >"$work/$2"
	said=$($1 "$work/$2")
	[ -z "$said" ] || fail "self-test: $2 with '$3' gave '$said'"
	rm "$work/$2"
}
expect_fault check_includes plan.c '#include "sysfs.h"\n' 'may not include "sysfs.h"'
expect_fault check_includes judge.c '# include "log.h"\n' 'may not include "log.h"'
expect_fault check_includes round.c '#include <unistd.h>\n' 'in a pure layer'
expect_fault check_includes view.h '#include "plan.h"\n' 'may not include "plan.h"'
expect_fault check_includes config.c '#include "sysfs-tree.h"\n' 'may not include'
expect_fault check_includes sysfs.c '#include "plan.h"\n' 'may not include'
expect_fault check_includes history.c '#include <ini.h>\n' 'is for config only'
expect_fault check_includes nvme-nsheal.c '#include "sysfs.h"\n' 'may not include'
expect_fault check_includes nvme-nsheal-event.c '#include <libudev.h>\n' 'is for udevdb only'
expect_fault check_includes surprise.c '' 'no layer is known'
expect_none check_includes report.c '#include "plan.h"\n#include <libsmartcols.h>\n#include "log.h"\n'
expect_none check_includes history-json.c '#include "history.h"\n#include <json.h>\n'
expect_fault check_calls x.c '\tsystem(cmd);\n' 'calls system()'
expect_fault check_calls x.c 'a = getenv("HOME");\n' 'calls getenv()'
expect_fault check_calls x.c 'a = getenv("ACTION");\n' 'calls getenv()'
expect_fault check_calls nvme-nsheal-event.c 'a = getenv("HOME");\n' 'calls getenv()'
expect_none check_calls nvme-nsheal-event.c 'a = getenv("ACTION");\n'
expect_none check_calls x.c 'a = getenv("NO_COLOR");\nsnprintf(b, 2, "");\n'
expect_none check_calls x.c '/* system(3) and\n * atoi(3) */\nfile_system(1); b("call system(1)");\n'

# --- the sources ---
n=0
for file in "$top_srcdir"/src/*.[ch]; do
	n=$((n + 1))
	said=$(check_includes "$file" && check_calls "$file")
	[ -z "$said" ] || fail "$said"
done
if [ "$n" -ge 20 ]; then ok "$n files keep to their layers"; else fail "only $n files in $top_srcdir/src"; fi

for file in "$top_srcdir"/src/*.c; do
	grep -qF "\`src/${file##*/}\`" "$top_srcdir/README.md" || fail "README.md's table of sources lacks ${file##*/}"
done
# shellcheck disable=SC2016
for name in $(grep -o '`src/[a-z-]*\.c`' "$top_srcdir/README.md" | tr -d '`'); do
	[ -e "$top_srcdir/$name" ] || fail "README.md names $name, which is not there"
done

# --- tests/README.md: each case that it names is there ---
# shellcheck disable=SC2016
grep -oE '`(test-[a-z-]+|vm): [^`]+`' "$top_srcdir/tests/README.md" | tr -d '`' | grep -v '^test-x: ' >"$work/cases"
[ "$(wc -l <"$work/cases")" -ge 30 ] || fail "tests/README.md names no cases"
while IFS= read -r named; do
	file=$top_srcdir/tests/${named%%: *}
	case=${named#*: }
	if [ -e "$file.c" ]; then
		grep -qE "^static void $case\(" "$file.c"
	elif [ -e "$file.sh" ]; then
		grep -qF "\"$case\"" "$file.sh"
	elif [ -e "$file.py" ]; then
		grep -qF "def test_$case(" "$file.py"
	else
		[ -e "$file/scenarios/$case.sh" ]
	fi || fail "tests/README.md names '$named', which is not there"
done <"$work/cases"

# --- the objects ---
: >"$work/defined"
objects=
for module in $model $planner; do
	# pass is a header
	[ -e "$top_srcdir/src/$module.c" ] || continue
	object=$(object_of "$module")
	if [ -z "$object" ]; then
		fail "$module.o is not below $top_builddir/src"
		continue
	fi
	objects="$objects $object"
	"$NM" --defined-only "$object" | awk '{ print $NF }' >>"$work/defined"
done
for object in $objects; do
	said=$(check_object "$object" "$work/defined")
	if [ -z "$said" ]; then ok "${object##*/} needs memory, strings and the model"; else fail "$said"; fi
done
# the same check on an object that reads files must not pass
object=$(object_of sysfs)
if [ -z "$object" ]; then
	fail "sysfs.o is not below $top_builddir/src"
elif [ -z "$(check_object "$object" "$work/defined")" ]; then
	fail "self-test: ${object##*/} counts as pure"
fi

# --- what the shipped programs drag in ---
needed() { # PROGRAM: shared libraries
	readelf -d "$1" 2>/dev/null | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'
}
links_not() { # PROGRAM LIBRARY...
	program=$1
	shift
	[ -e "$top_builddir/$program" ] || { fail "$program is not built"; return; }
	[ -n "$(needed "$top_builddir/$program")" ] || { fail "$program: readelf finds no library"; return; }
	for library; do
		if needed "$top_builddir/$program" | grep -q "^$library\."; then
			fail "$program is linked with $library"
			return
		fi
	done
	ok "$program is not linked with $*"
}
links_not nvme-nsheal-event libnvme libudev libjson-c libsmartcols libinih libcrypto
links_not nvme-nsheal libnvme libcrypto
links_not nvme-nsheal-ask libudev libsmartcols libinih

exit $failed
