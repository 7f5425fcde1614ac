#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# The command line as people and scripts meet it: what goes to stdout, what to stderr, exit codes; and `status` on a
# copied /sys. Needs no root and no NVMe, and reads this machine only where it says so.
set -eu
: "${top_srcdir:?}" "${top_builddir:?}" # make check sets them
umask 022

failed=0
fail() {
	echo "FAIL: $*"
	failed=1
}
ok() { echo "ok: $*"; }

work=$(mktemp -d)
chmod 755 "$work"
trap 'rm -rf "$work"' EXIT
# a copy, since others than the builder have to reach it
cp "$top_builddir/nvme-nsheal" "$work/nvme-nsheal"
nsheal=$work/nvme-nsheal
out=$work/out
err=$work/err
documents=0
mkdir "$work/json"

exits() { # CODE WHAT COMMAND...: stdout and stderr are in $out and $err afterwards
	want=$1 what=$2
	shift 2
	rc=0
	"$@" >"$out" 2>"$err" || rc=$?
	if [ "$rc" -eq "$want" ]; then
		ok "$what: exit $rc"
	else
		fail "$what: exit $rc, not $want; stdout: $(head -c 2000 "$out"); stderr: $(head -c 2000 "$err")"
	fi
}
silent() { # FILE: nothing was written to it
	[ ! -s "$1" ] || fail "$what: ${1##*/} is not empty: $(head -c 500 "$1")"
}
says() { # FILE REGEX
	grep -Eq -- "$2" "$1" || fail "$what: ${1##*/} does not say '$2': $(head -c 2000 "$1")"
}
says_not() { # FILE REGEX
	! grep -Eq -- "$2" "$1" || fail "$what: ${1##*/} says '$2': $(head -c 2000 "$1")"
}
lines() { # FILE MOST
	[ "$(wc -l <"$1")" -le "$2" ] || fail "$what: ${1##*/} has more than $2 lines: $(head -c 2000 "$1")"
}
usage_error() { # NAMED WHAT COMMAND...: exit 2, and the first line on stderr names what was wrong
	named=$1
	shift
	exits 2 "$@"
	silent "$out"
	head -n 1 "$err" | grep -qF -- "$named" || fail "$what: the first line does not name $named: $(cat "$err")"
	lines "$err" 2
}

# --- help and version: to stdout, as asked for ---
for verb in status heal wait generate check-config; do
	exits 0 "$verb --help" "$nsheal" $verb --help
	silent "$err"
	says "$out" "^Usage: nvme-nsheal $verb "
	says "$out" '--config FILE'
	exits 0 "$verb --version" "$nsheal" $verb --version
	says "$out" '^nvme-nsheal [0-9]+\.[0-9]+'
done
exits 0 "--help" "$nsheal" --help
silent "$err"
for verb in status heal wait generate check-config; do says "$out" "nvme-nsheal $verb"; done
exits 0 "--version" "$nsheal" --version
silent "$err"
says "$out" '^nvme-nsheal [0-9]+\.[0-9]+'
lines "$out" 1

# --- what is not understood: to stderr, nothing done ---
usage_error 'no command' "no command" "$nsheal"
usage_error frobnicate "an unknown command" "$nsheal" frobnicate
for verb in status heal wait generate check-config; do
	usage_error --frobnicate "$verb with an unknown option" "$nsheal" $verb --frobnicate
	usage_error x "$verb with an unknown letter" "$nsheal" $verb -x
	usage_error config "$verb --config without a file" "$nsheal" $verb --config
done
usage_error --dry-run "an option of another command" "$nsheal" status --dry-run
usage_error --sysroot "heal on a copy" "$nsheal" heal --sysroot "$work"
usage_error --all "check-config --all" "$nsheal" check-config --all
usage_error all "an argument where none belongs" "$nsheal" status --all=yes
usage_error sometimes "a wrong value" "$nsheal" heal --removals=sometimes
usage_error 'one file' "two files to check" "$nsheal" check-config a b
usage_error 'wait for what' "wait for nothing" "$nsheal" wait
usage_error 'wait for what' "wait without a namespace" "$nsheal" wait --nqn nqn.x
usage_error 'one or the other' "wait for one and for all" "$nsheal" wait --configured --nqn nqn.x --nsid 1
usage_error 'all zero' "wait for an UUID that is none" "$nsheal" wait --nqn nqn.x --uuid 00000000-0000-0000-0000-000000000000
usage_error '223 bytes' "wait for an NQN of 224 bytes" "$nsheal" wait --nqn "$(printf '%0224d' 1)" --nsid 1
usage_error 'not a range' "wait for a range" "$nsheal" wait --nqn nqn.x --nsid 1-3
usage_error 'nsid is given twice' "wait for two" "$nsheal" wait --nqn nqn.x --nsid 1 --nsid 3
usage_error '--timeout 1y' "a time in years" "$nsheal" wait --nqn nqn.x --nsid 1 --timeout 1y
usage_error '--grace -1s' "a time that is negative" "$nsheal" wait --nqn nqn.x --nsid 1 --grace -1s
usage_error '--nqn' "wait in any subsystem" "$nsheal" wait --nqn '*' --nsid 1

# --- check-config ---
conf=$work/good.conf
nqn=nqn.2014-08.org.example:storage
cat >"$conf" <<END
[defaults]
grace = 10s
[subsystem mine]
nqn = $nqn
namespace = nsid=1-3
namespace = uuid=1b4e28ba-2fa1-11d2-883f-0016d3cca427 name=pvc-4f1e
END
exits 0 "a good configuration" "$nsheal" check-config "$conf"
silent "$err"
says "$out" '1 file.* 1 subsystem.* 2 namespace lines'
exits 0 "the same by --config" "$nsheal" check-config --config "$conf"
says "$out" '1 file.* 1 subsystem.* 2 namespace lines'
mkdir "$conf.d"
printf '[subsystem more]\nnqn = nqn.more\nnamespace = all\n' >"$conf.d/50-more.conf"
exits 0 "with a drop-in" "$nsheal" check-config "$conf"
says "$out" '2 files.* 2 subsystems.* 3 namespace lines'
rm -r "$conf.d"
: >"$work/empty.conf"
exits 0 "an empty configuration" "$nsheal" check-config "$work/empty.conf"
says "$out" '0 subsystems'

# shellcheck disable=SC2016
sed -n '/^```ini$/,/^```$/p' "$top_srcdir/README.md" | grep -v '^```' >"$work/readme.conf"
exits 0 "README.md's example" "$nsheal" check-config "$work/readme.conf"
says "$out" '1 subsystem, 2 namespace lines'
exits 0 "the configuration that is shipped" "$nsheal" check-config "$top_srcdir/conf/nvme-nsheal.conf"
says "$out" '0 subsystems' # all of it is commented out

bad=$work/bad.conf
cat >"$bad" <<END
[subsystem mine]
nqn = $nqn
namespaces = all
namespace = uuid=not-a-uuid
grace = soon
END
exits 3 "a configuration with faults" "$nsheal" check-config "$bad"
silent "$out"
# each fault, in the order of the lines, where an editor finds it
for n in 3 4 5; do says "$err" "^$bad:$n: [^ ]"; done
[ "$(grep -o '^[^ ]*:[0-9]*: ' "$err" | sort -t: -k2,2n -c 2>&1)" = "" ] || fail "$what: not in order: $(cat "$err")"
exits 3 "a file that is not there" "$nsheal" check-config "$work/none.conf"
silent "$out"
says "$err" "$work/none.conf"
exits 3 "a directory in its place" "$nsheal" check-config "$work"
says "$err" "$work"
exits 3 "status with faults" "$nsheal" status --config "$bad" --sysroot "$work"
silent "$out"
says "$err" "$bad:3: "

# --- a copy of /sys ---
# As sysfs has it: classes are directories of links, what they lead to lies below devices.
sys=$work/sys
put() { # FILE VALUE
	printf '%s\n' "$2" >"$1"
}
subsys() { # X NQN
	dir=$sys/devices/virtual/nvme-subsystem/nvme-subsys$1
	mkdir -p "$dir" "$sys/class/nvme-subsystem" "$sys/class/nvme"
	ln -s "../../devices/virtual/nvme-subsystem/nvme-subsys$1" "$sys/class/nvme-subsystem/"
	put "$dir/subsysnqn" "$2"
	put "$dir/model" 'A model'
	put "$dir/serial" "serial$1"
}
ctrl() { # X C STATE [QUEUES]
	dir=$sys/devices/virtual/nvme-fabrics/ctl/nvme$2
	mkdir -p "$dir"
	ln -s "../../devices/virtual/nvme-fabrics/ctl/nvme$2" "$sys/class/nvme/"
	ln -s "../../nvme-fabrics/ctl/nvme$2" "$sys/devices/virtual/nvme-subsystem/nvme-subsys$1/"
	cp "$sys/devices/virtual/nvme-subsystem/nvme-subsys$1/subsysnqn" "$dir/"
	put "$dir/state" "$3"
	put "$dir/cntrltype" io
	put "$dir/cntlid" "$2"
	put "$dir/queue_count" "${4:-3}"
	put "$dir/transport" tcp
	put "$dir/hostnqn" nqn.2014-08.org.example:host
}
uuid() { # NUMBER
	printf '1b4e28ba-2fa1-11d2-883f-%012d' "$1"
}
disk() { # DIRECTORY NAME NSID UUID-NUMBER [SECTORS]
	[ -d "$1/$2" ] || mkdir -p "$1/$2"
	put "$1/$2/nsid" "$3"
	printf 'uuid.1b4e28ba-2fa1-11d2-883f-%012d\n' "$4" >"$1/$2/wwid"
	put "$1/$2/size" "${5:-2048}"
	put "$1/$2/hidden" 0
}
head_of() { # X Z NSID UUID-NUMBER [SECTORS]
	disk "$sys/devices/virtual/nvme-subsystem/nvme-subsys$1" "nvme$1n$2" "$3" "$4" "${5:-2048}"
}
path_of() { # X C Z NSID UUID-NUMBER ANA
	disk "$sys/devices/virtual/nvme-fabrics/ctl/nvme$2" "nvme$1c$2n$3" "$4" "$5"
	put "$sys/devices/virtual/nvme-fabrics/ctl/nvme$2/nvme$1c$2n$3/hidden" 1
	put "$sys/devices/virtual/nvme-fabrics/ctl/nvme$2/nvme$1c$2n$3/ana_state" "$6"
}
status() { # CODE WHAT [ARGUMENT...]
	code=$1 about=$2
	shift 2
	exits "$code" "$about, as JSON" "$nsheal" status --json --config "$work/c.conf" --sysroot "$sys"
	silent "$err"
	cp "$out" "$work/json/$((documents += 1)).json"
	exits "$code" "$about" "$nsheal" status --config "$work/c.conf" --sysroot "$sys" "$@"
	silent "$err"
}
row() { # NAME STATE: the row of that namespace has this state
	grep -E -- "-$1( |\$)" "$out" >"$work/row" || fail "$what: no row for $1: $(cat "$out")"
	grep -qwE -- "$2" "$work/row" || fail "$what: $1 is not $2: $(cat "$work/row")"
}
no_row() { # NAME
	says_not "$out" "-$1( |\$)"
}

# nvme-subsys0: two live controllers
subsys 0 "$nqn"
ctrl 0 0 live
ctrl 0 1 live
# NSID 3 is nvme0n2: the number in the name is not the NSID
head_of 0 1 1 1
head_of 0 2 3 3
for c in 0 1; do
	path_of 0 $c 1 1 1 optimized
	path_of 0 $c 2 3 3 non-optimized
	path_of 0 $c 5 5 5 inaccessible # no head
	path_of 0 $c 6 6 6 optimized    # no head, although it could be used
done
head_of 0 7 7 7     # no path
head_of 0 8 8 8 0   # no size
path_of 0 0 8 8 8 optimized
head_of 0 9 10 9    # one identity under two NSIDs
path_of 0 0 9 10 9 optimized
head_of 0 10 11 9
path_of 0 0 10 11 9 optimized
# nvme-subsys1: connecting; nvme-subsys2: without I/O queues
subsys 1 nqn.connecting
ctrl 1 2 connecting
ctrl 1 3 resetting
subsys 2 nqn.queueless
ctrl 2 4 live 1

cat >"$work/c.conf" <<END
[subsystem mine]
nqn = $nqn
namespace = nsid=1 name=by-nsid
namespace = uuid=$(uuid 3) name=by-uuid
END
status 0 "all there"
says "$out" "^mine .* 2 of 2 present, 2 of 2 controllers live: $nqn\$"
no_row by-nsid
status 0 "all there, each shown" --all
row by-nsid present
row by-uuid present
grep -E -- '-by-uuid uuid=.* 3 +present +none +2 +nvme0n2' "$out" >/dev/null ||
	fail "$what: NSID 3 is not nvme0n2 with two paths: $(cat "$out")"

cat >"$work/c.conf" <<END
[subsystem mine]
nqn = $nqn
namespace = nsid=1 name=there
namespace = uuid=$(uuid 99) name=gone
namespace = nsid=5 name=ana
namespace = nsid=6 name=headless
namespace = nsid=7 name=pathless
namespace = nsid=8 name=sizeless
namespace = uuid=$(uuid 9) name=twice
namespace = nsid=3 uuid=$(uuid 98) name=reused
[subsystem away]
nqn = nqn.not-here
namespace = nsid=1 name=away
[subsystem waiting]
nqn = nqn.connecting
namespace = nsid=1 name=waiting
[subsystem queueless]
nqn = nqn.queueless
namespace = nsid=1 name=queueless
END
status 1 "each state that sysfs can tell"
no_row there
row gone missing
row ana inaccessible
row headless headless
row pathless pathless
row sizeless unusable
row twice ambiguous
row reused conflict
row away disconnected
row waiting unready
row queueless no-queues
says "$out" '^mine .* 1 of 8 present, 2 of 2 controllers live'
says "$out" '^away .* 0 of 1 present, not connected: nqn.not-here'
says "$out" '^waiting .* 0 of 1 present, 0 of 2 controllers live'
cp "$out" "$work/first"
status 1 "the same again"
cmp -s "$out" "$work/first" || fail "$what: it is another table"
exits 1 "without any environment" env -i "$nsheal" status --config "$work/c.conf" --sysroot "$sys"
cmp -s "$out" "$work/first" || fail "$what: it is another table"
exits 1 "a copy of the whole root" "$nsheal" status --config "$work/c.conf" --sysroot "$work"
cmp -s "$out" "$work/first" || fail "$what: it is another table"
find "$sys" -printf '%p %y %s %T@ %C@\n' | sort >"$work/before"
status 1 "it changes nothing"
find "$sys" -printf '%p %y %s %T@ %C@\n' | sort | cmp -s - "$work/before" || fail "$what: the copy was changed"

# --- limited to some ---
status 1 "by label" away
row away disconnected
no_row gone
status 1 "by NQN" nqn.connecting
row waiting unready
no_row away
status 1 "two" away waiting
row away disconnected
row waiting unready
no_row gone
usage_error nowhere "one that is not configured" "$nsheal" status --config "$work/c.conf" --sysroot "$sys" nowhere

# --- `all`, ranges, whatever is connected ---
cat >"$work/c.conf" <<END
[subsystem mine]
nqn = $nqn
namespace = nsid=1-4
END
status 1 "a range with gaps"
row nsid=2 missing
row nsid=4 missing
says "$out" '2 of 4 present'
cat >"$work/c.conf" <<END
[subsystem any]
nqn = *
namespace = all
[subsystem own]
nqn = nqn.queueless
namespace = nsid=1
END
status 1 "every connected subsystem"
says "$out" "^any .* 4 of 6 present.*: $nqn"
says "$out" '^any .* 0 of 1 present.*: nqn.connecting'
row all unready
says_not "$out" '^any .*nqn.queueless' # it has a section of its own
says "$out" '^own .*nqn.queueless'
: >"$work/c.conf"
status 0 "nothing expected"
says "$out" 'nothing is expected'

# --- no NVMe at all, and what is not a copy of /sys ---
printf '[subsystem mine]\nnqn = %s\nnamespace = all\n' "$nqn" >"$work/c.conf"
mkdir "$work/bare" "$work/bare/class"
exits 1 "a machine without NVMe" "$nsheal" status --config "$work/c.conf" --sysroot "$work/bare"
silent "$err"
row all disconnected
exits 4 "no such copy" "$nsheal" status --config "$work/c.conf" --sysroot "$work/nowhere"
silent "$out"
says "$err" "$work/nowhere: No such file"
exits 4 "a file as the copy" "$nsheal" status --config "$work/c.conf" --sysroot "$conf"
says "$err" 'Not a directory'

# --- what could not be read is passed over, and said with -v ---
printf '[subsystem mine]\nnqn = %s\nnamespace = nsid=1\nnamespace = nsid=3\n' "$nqn" >"$work/c.conf"
echo rubbish >"$sys/devices/virtual/nvme-subsystem/nvme-subsys0/nvme0n2/nsid"
status 1 "an unreadable NSID"
row nsid=3 missing
no_row nsid=1
exits 1 "an unreadable NSID with -v" "$nsheal" status -v --config "$work/c.conf" --sysroot "$sys"
says "$err" 'nvme0n2.*nsid'
put "$sys/devices/virtual/nvme-subsystem/nvme-subsys0/nvme0n2/nsid" 3

# --- output that nobody takes ---
status 0 "to a file"
for command in "status --sysroot $sys --config $work/c.conf" "check-config $conf" "status --help" --help --version; do
	what="$command to a full disk" rc=0
	# shellcheck disable=SC2086
	"$nsheal" $command >/dev/full 2>"$err" || rc=$?
	if [ $rc -eq 4 ]; then ok "$what: exit 4"; else fail "$what: exit $rc"; fi
	says "$err" 'No space left'
	lines "$err" 1
	# a pipe whose reader has gone: the fifo is opened for writing while there is one
	what="$command to a closed pipe" rc=0
	[ -p "$work/fifo" ] || mkfifo "$work/fifo"
	# shellcheck disable=SC2094
	exec 3<>"$work/fifo" 4>"$work/fifo" 3<&-
	# shellcheck disable=SC2086
	"$nsheal" $command >&4 2>"$err" || rc=$?
	exec 4>&-
	if [ $rc -eq 4 ]; then ok "$what: exit 4"; else fail "$what: exit $rc"; fi
	silent "$err" # whoever closed it knows
	what="$command without a stdout" rc=0
	# shellcheck disable=SC2086
	"$nsheal" $command >&- 2>"$err" || rc=$?
	if [ $rc -eq 4 ]; then ok "$what: exit 4"; else fail "$what: exit $rc"; fi
done

# --- with and without root ---
# shellcheck disable=SC2317
as_nobody() {
	if [ "$(id -u)" = 0 ]; then
		setpriv --reuid=65534 --regid=65534 --clear-groups "$@"
	else
		"$@"
	fi
}
exits 4 "heal without root" as_nobody "$nsheal" heal --config "$work/c.conf"
silent "$out"
says "$err" 'needs root'
lines "$err" 1
exits 4 "status --probe without root" as_nobody "$nsheal" status --probe --config "$work/c.conf"
says "$err" 'needs root'
exits 0 "status without root" as_nobody "$nsheal" status --config "$work/c.conf" --sysroot "$sys"
exits 0 "check-config without root" as_nobody "$nsheal" check-config "$conf"
if [ "$(id -u)" = 0 ]; then
	usage_error --probe "probing a copy" "$nsheal" status --probe --sysroot "$sys" --config "$work/c.conf"
	# this machine's /sys; nobody is connected to that NQN
	exits 0 "heal --dry-run, not connected" "$nsheal" heal --dry-run --now --config "$work/c.conf"
	says "$out" 'mine: 2 namespaces are disconnected'
	says "$out" '^nothing to do$'
	chmod 666 "$work/c.conf"
	exits 3 "a configuration that others can write" "$nsheal" status --config "$work/c.conf" --sysroot "$sys"
	silent "$out"
	says "$err" "$work/c.conf"
	chmod 644 "$work/c.conf"
fi

# --- a big one: the last namespace of 1,024 is not there ---
rm -rf "$sys"
subsys 0 "$nqn"
ctrl 0 0 live
ctrl 0 1 live
seq 1 1023 | sed "s,.*,$sys/devices/virtual/nvme-subsystem/nvme-subsys0/nvme0n&\\
$sys/devices/virtual/nvme-fabrics/ctl/nvme0/nvme0c0n&\\
$sys/devices/virtual/nvme-fabrics/ctl/nvme1/nvme0c1n&," | xargs mkdir
i=1
while [ $i -lt 1024 ]; do
	head_of 0 $i $i $i
	path_of 0 0 $i $i $i optimized
	path_of 0 1 $i $i $i optimized
	i=$((i + 1))
done
printf '[subsystem big]\nnqn = %s\nnamespace = nsid=1-1024\n' "$nqn" >"$work/c.conf"
status 1 "1,024 namespaces"
says "$out" '^big .* 1023 of 1024 present'
row nsid=1024 missing
lines "$out" 3
status 1 "1,024 namespaces, each shown" --all
[ "$(wc -l <"$out")" -eq 1026 ] || fail "$what: $(wc -l <"$out") lines"
printf '[subsystem big]\nnqn = %s\nnamespace = all\n' "$nqn" >"$work/c.conf"
status 0 "all of 1,023"
says "$out" '^big .* 1023 of 1023 present'

# --- what is attached as a configuration, and back ---
exits 0 "generate" "$nsheal" generate --sysroot "$sys"
silent "$err"
[ "$(grep -c '^namespace = uuid=1b4e28ba-.* ; nvme0n[0-9]*, NSID [0-9]*, 1024 KiB$' "$out")" -eq 1023 ] ||
	fail "$what: $(grep -c ^namespace "$out") namespaces: $(head -n 8 "$out")"
cp "$out" "$work/c.conf"
chmod 644 "$work/c.conf"
exits 0 "what generate wrote is a configuration" "$nsheal" check-config "$work/c.conf"
says "$out" '1 subsystem, 1023 namespace lines'
status 0 "and all of it is there"
says "$out" ' 1023 of 1023 present'
exits 1 "generate, of a subsystem that is not connected" "$nsheal" generate --sysroot "$sys" nqn.other
says "$err" 'nqn.other.* not connected'
exits 0 "generate, of one" "$nsheal" generate --sysroot "$sys" "$nqn"
says "$out" "^nqn = $nqn\$"

# --- every document that status printed is as its schema says ---
[ "$documents" -ge 10 ] || fail "only $documents documents"
if python3 - "$top_srcdir/docs/nvme-nsheal.schema.json" "$work"/json/*.json <<'END'
import json, sys
import jsonschema
schema = json.load(open(sys.argv[1]))
# what the schema does not know is a field that the manual does not have either
for part in (schema, schema["properties"]["subsystems"]["items"],
             schema["properties"]["subsystems"]["items"]["properties"]["namespaces"]["items"]):
    part["additionalProperties"] = False
jsonschema.Draft202012Validator.check_schema(schema)
validator = jsonschema.Draft202012Validator(schema)
for name in sys.argv[2:]:
    validator.validate(json.load(open(name)))
document = json.load(open(sys.argv[2]))
document["subsystems"].append({"label": "x"})
assert not validator.is_valid(document)
END
then
	ok "$documents documents are as their schema says"
else
	fail "a document is not as its schema says"
fi

exit $failed
