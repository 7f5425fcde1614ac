#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# The manual pages: well-formed, and about the programs that were built. Every option and every state that there is, is
# in them, and nothing that there is not.
set -eu
: "${top_srcdir:?}" "${top_builddir:?}" # make check sets them

failed=0
fail() {
	echo "FAIL: $*"
	failed=1
}
ok() { echo "ok: $*"; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
page=$top_srcdir/man/nvme-nsheal.8

# --- well-formed ---
if command -v mandoc >/dev/null; then
	for file in "$top_srcdir"/man/*.[1-9]; do
		# the length of source lines is a matter of taste, and which other manuals are installed here is chance
		mandoc -T lint -W style "$file" >"$work/lint" 2>&1 || :
		if grep -v -e 'longer than 80 bytes' -e 'referenced manual not found' "$work/lint" >"$work/said"; then
			fail "$(cat "$work/said")"
		else
			ok "mandoc -T lint ${file##*/}"
		fi
	done
	printf '.TH X 8 2026-12-01\n.SH NAME\nx \\- y\n.B (\n.XX unknown\n' >"$work/bad.8"
	if mandoc -T lint -W style "$work/bad.8" >/dev/null 2>&1; then fail "self-test: lint finds no fault in a bad page"; fi
else
	fail "mandoc is not installed"
fi

# --- options ---
# What a tag line (the one after .TP or .TQ) of a section names.
tags() { # FILE MACRO TITLE
	awk -v macro="$2" -v title="$3" '
		$1 == ".SH" || $1 == ".SS" { inside = $1 == macro && substr($0, length(macro) + 2) == title }
		inside && tag { print; tag = 0 }
		$1 == ".TP" || $1 == ".TQ" { tag = 1 }' "$1" | sed 's/\\-/-/g; s/\\f[A-Z]//g'
}
options_in() { # stdin
	grep -oE -- '(^|[^A-Za-z0-9-])-(-[a-z][a-z-]*|[a-z])' | grep -oE -- '-(-[a-z][a-z-]*|[a-z])$' | sort -u
}
in_synopsis() { # VERB: options of its lines in SYNOPSIS
	awk -v verb="$1" '
		$1 == ".SH" { inside = $2 == "SYNOPSIS" }
		inside && $1 == ".B" && $2 == "nvme-nsheal" { mine = $3 == verb }
		inside && mine' "$page" | sed 's/\\-/-/g; s/\\f[A-Z]//g' | options_in
}
same() { # WHAT ONE NAME OTHER NAME
	if cmp -s "$2" "$4"; then
		ok "$1"
	else
		fail "$1: only in $3: $(comm -23 "$2" "$4" | xargs), only in $5: $(comm -13 "$2" "$4" | xargs)"
	fi
}

tags "$page" .SS 'Common options' | options_in >"$work/common"
[ "$(wc -l <"$work/common")" -ge 5 ] || fail "the page has no common options"
"$top_builddir/nvme-nsheal" --help >"$work/usage"
sed -n 's/^  nvme-nsheal \([a-z-]*\).*/\1/p' "$work/usage" >"$work/verbs"
[ "$(wc -l <"$work/verbs")" -ge 3 ] || fail "--help names no commands: $(cat "$work/usage")"
while IFS= read -r verb; do
	"$top_builddir/nvme-nsheal" "$verb" --help >"$work/text"
	options_in <"$work/text" >"$work/help"
	{ tags "$page" .SS "$verb" | options_in; cat "$work/common"; } | sort -u >"$work/page"
	same "options of $verb" "$work/help" --help "$work/page" "the page"
	# the common ones are not repeated in the synopses
	comm -23 "$work/help" "$work/common" >"$work/own"
	in_synopsis "$verb" >"$work/synopsis" || :
	same "synopsis of $verb" "$work/own" --help "$work/synopsis" "the page"
	# the usage of all commands says the same as each
	grep -o "nvme-nsheal $verb .*" "$work/usage" >"$work/all"
	grep -o "nvme-nsheal $verb .*" "$work/text" | head -n 1 >"$work/one"
	same "usage of $verb" "$work/all" "nvme-nsheal --help" "$work/one" "$verb --help"
done <"$work/verbs"
sed -n 's/^\.SS \([a-z-]*\)$/\1/p' "$page" | grep -vxF -f "$work/verbs" >"$work/unknown" || :
[ ! -s "$work/unknown" ] || fail "the page has a command that is not there: $(xargs <"$work/unknown")"
# each that is documented is accepted, and what is not is refused
while IFS= read -r option; do
	case $option in --config) continue ;; esac
	"$top_builddir/nvme-nsheal" check-config "$option" --help >/dev/null 2>&1 || fail "check-config refuses $option"
done <"$work/common"

# --- states and actions: those that the planner can hand out, under the names of state.c ---
names_in_code() { # PREFIX
	cat "$top_srcdir"/src/plan.c "$top_srcdir"/src/judge.c "$top_srcdir"/src/consult.c "$top_srcdir"/src/round.c \
		"$top_srcdir"/src/view.c | grep -oE "\b$1_[A-Z_]+" | sort -u |
		while read -r constant; do
			sed -n "s/.*\[$constant\] = \"\(.*\)\",/\1/p" "$top_srcdir/src/state.c"
		done
}
names_in_page() { # SECTION
	tags "$page" .SH "$1" | sed -n 's/^\.B //p'
}
names_in_code STATE | sort -u >"$work/code"
names_in_page STATES | sort -u >"$work/page"
[ "$(wc -l <"$work/code")" -ge 8 ] || fail "no states found in the sources"
same "states" "$work/code" "the code" "$work/page" "the page"
{ echo none; names_in_code ACTION; } | sort -u >"$work/code"
names_in_page ACTIONS | sort -u >"$work/page"
[ "$(wc -l <"$work/code")" -ge 6 ] || fail "no actions found in the sources"
same "actions" "$work/code" "the code" "$work/page" "the page"

# --- exit status: 0 to 4 ---
names_in_page 'EXIT STATUS' | xargs >"$work/page"
grep 'EXIT_[A-Z_]* = [0-9]' "$top_srcdir/src/loop.h" | grep -oE '= [0-9]+' | tr -d '= ' | xargs >"$work/code"
same "exit codes" "$work/code" "the code" "$work/page" "the page"

exit $failed
