#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# The udev helper in small machines made of files: ./sys, ./etc, ./usr/lib, ./run, and a systemctl that writes down how
# it was called. event-under-test is the shipped source with these places compiled in.
set -eu
: "${top_builddir:?}"

program=$top_builddir/tests/event-under-test
shipped=$top_builddir/nvme-nsheal-event
nqn=nqn.2014-08.org.example:array.node1
hash=60715b6b319bbfb0 # FNV-1a of it
ctl=/devices/virtual/nvme-fabrics/ctl
subsys=/devices/virtual/nvme-subsystem/nvme-subsys0

failed=0
fail() {
	printf 'FAIL: %s: %s\n' "$what" "$*" >&2
	failed=1
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# A host with controller nvme0 of that NQN, live, its subsystem, and an empty configuration.
machine() { # WHAT
	what=$1
	rm -rf "$work/host"
	mkdir "$work/host"
	cd "$work/host"
	mkdir -p "sys$ctl/nvme0/nvme0n1" "sys$subsys/nvme0n1" etc/nvme-nsheal.conf.d usr/lib/nvme-nsheal.conf.d \
		run/nvme-nsheal.conf.d bin
	echo "$nqn" >"sys$ctl/nvme0/subsysnqn"
	echo "$nqn" >"sys$subsys/subsysnqn"
	systemctl bin 0
	output=
	status=
}
systemctl() { # DIRECTORY EXIT-CODE
	mkdir -p "$1"
	cat >"$1/systemctl" <<-END
		#!/bin/sh
		{
			echo "\$*"
			tr '\\0' '\\n' <"/proc/\$\$/environ"
			ls run/nvme-nsheal
		} >>called 2>/dev/null
		exit $2
	END
	chmod +x "$1/systemctl"
}
configured() { # NQN
	printf '[subsystem a]\nnqn = %s\nnamespace = all\n' "${1:-$nqn}" >etc/nvme-nsheal.conf
}
run() { # KEY=VALUE...
	status=0
	output=$(env -i PATH=/nonexistent "$@" "$program" 2>&1) || status=$?
}
connected() {
	run ACTION=change SUBSYSTEM=nvme DEVPATH=$ctl/nvme0 NVME_EVENT=connected SEQNUM=4711 DEVNAME=/dev/nvme0
}
removed() { # DEVPATH
	run ACTION=remove SUBSYSTEM=block DEVTYPE=disk DEVPATH="$1" DEVNAME=/dev/nvme0n1
}

triggers() {
	find run/nvme-nsheal -name '*trigger*' 2>/dev/null | sed 's|.*/||' | sort | tr '\n' ' '
}
is_quiet() {
	[ "$status" -eq 0 ] || fail "exit code $status"
	[ -z "$output" ] || fail "says: $output"
}
nothing() {
	is_quiet
	[ ! -e run/nvme-nsheal ] || fail "touched run/nvme-nsheal: $(triggers)"
	[ ! -e called ] || fail "called systemctl"
	printf 'ok: %s: nothing\n' "$what"
}
triggered() { # WHAT-CONTROLLER
	is_quiet
	[ "$(triggers)" = "trigger-$hash-$1 " ] || fail "triggers: $(triggers)"
	# the trigger was there before the start was asked for
	printf '%s\n' '--no-block start nvme-nsheal.service' "trigger-$hash-$1" >expected
	cmp -s expected called || fail "systemctl: $(cat called 2>&1)"
	printf 'ok: %s: %s\n' "$what" "$1"
}

# --- which events ---
machine 'nothing is configured'
connected
nothing

machine 'another subsystem is configured'
configured nqn.2014-08.org.example:array.node2
connected
nothing

machine 'a controller went live'
configured
before=$(cut -d. -f1 /proc/uptime)
connected
triggered connected-nvme0
read -r version at <"run/nvme-nsheal/trigger-$hash-connected-nvme0"
[ "$version" = 1 ] || fail "version $version"
# /proc/uptime is CLOCK_BOOTTIME
[ "$at" -ge $((before * 1000000000)) ] || fail "time $at"
[ "$at" -le $((before * 1000000000 + 60000000000)) ] || fail "time $at"
[ "$(wc -l <"run/nvme-nsheal/trigger-$hash-connected-nvme0")" -eq 1 ] || fail "not one line"
[ "$(stat -c %a run/nvme-nsheal)" = 755 ] || fail "mode of the directory"

machine 'the same twice: one trigger, of the last time'
configured
connected
first=$(cat run/nvme-nsheal/trigger-*)
rm called
connected
triggered connected-nvme0
[ "$(cat run/nvme-nsheal/trigger-*)" != "$first" ] || fail "the first one's time stayed"

machine 'two controllers, two kinds'
configured
mkdir "sys$ctl/nvme12"
echo "$nqn" >"sys$ctl/nvme12/subsysnqn"
connected
run ACTION=change SUBSYSTEM=nvme DEVPATH=$ctl/nvme12 NVME_EVENT=connected
run ACTION=change SUBSYSTEM=nvme DEVPATH=$ctl/nvme12 NVME_AEN=0x020001
[ "$(triggers)" = "trigger-$hash-changed-nvme12 trigger-$hash-connected-nvme0 trigger-$hash-connected-nvme12 " ] ||
	fail "$(triggers)"

machine 'a synthetic add of a live controller (udevadm trigger)'
configured
run ACTION=add SUBSYSTEM=nvme DEVPATH=$ctl/nvme0
triggered changed-nvme0

machine 'an asynchronous event'
configured
run ACTION=change SUBSYSTEM=nvme DEVPATH=$ctl/nvme0 NVME_AEN=0x010001
triggered changed-nvme0

machine 'a PCIe controller'
configured
mkdir -p sys/devices/pci0000:00/0000:00:04.0/nvme/nvme3
echo "$nqn" >sys/devices/pci0000:00/0000:00:04.0/nvme/nvme3/subsysnqn
run ACTION=change SUBSYSTEM=nvme DEVPATH=/devices/pci0000:00/0000:00:04.0/nvme/nvme3 NVME_EVENT=connected
triggered connected-nvme3

machine 'a head disk was removed'
configured
removed $subsys/nvme0n1
triggered changed-none

machine 'a disk in its controller was removed'
configured
removed $ctl/nvme0/nvme0n1
triggered changed-nvme0

machine 'a disk was removed because its subsystem was disconnected'
configured
rm -r sys/devices
removed $subsys/nvme0n1
nothing

machine 'rediscover: of discovery controllers'
configured '*'
run ACTION=change SUBSYSTEM=nvme DEVPATH=$ctl/nvme0 NVME_EVENT=rediscover
nothing

machine 'discovery log page changed'
configured '*'
run ACTION=change SUBSYSTEM=nvme DEVPATH=$ctl/nvme0 NVME_AEN=0x70f002
nothing

for event in 'ACTION=remove SUBSYSTEM=nvme' 'ACTION=add SUBSYSTEM=block' 'ACTION=add SUBSYSTEM=nvme-generic'; do
	machine "no such rule: $event"
	configured
	# shellcheck disable=SC2086
	run $event DEVPATH=$ctl/nvme0
	nothing
done

# --- the NQN as sysfs has it ---
for text in '(efault)' '(null)' '' '   '; do
	machine "NQN reads '$text'"
	# with every subsystem expected and with the very words in the configuration
	printf '[subsystem a]\nnqn = *\n[subsystem b]\nnqn = %s\n' "$text" >etc/nvme-nsheal.conf
	echo "$text" >"sys$ctl/nvme0/subsysnqn"
	connected
	nothing
done

machine 'no NQN to read'
configured '*'
rm "sys$ctl/nvme0/subsysnqn"
connected
nothing

machine 'an NQN longer than any'
configured '*'
head -c 600 /dev/zero | tr '\0' a >"sys$ctl/nvme0/subsysnqn"
connected
nothing

machine 'an NQN padded by the kernel'
configured
printf '%s      \n' "$nqn" >"sys$ctl/nvme0/subsysnqn"
connected
triggered connected-nvme0

machine 'an NQN of 223 bytes'
long=$nqn$(head -c $((223 - ${#nqn})) /dev/zero | tr '\0' x)
configured "$long"
echo "$long" >"sys$ctl/nvme0/subsysnqn"
connected
[ -e called ] || fail 'not seen'

machine 'an NQN with blanks inside'
spaced="nqn.2014.08.org.nvmexpress:1b361b36SERIAL   MODEL X"
configured "$spaced"
echo "$spaced" >"sys$ctl/nvme0/subsysnqn"
connected
[ -e called ] || fail 'not seen'
rm -r called run/nvme-nsheal
echo "nqn.2014.08.org.nvmexpress:1b361b36SERIAL" >"sys$ctl/nvme0/subsysnqn"
connected
nothing

# --- the configuration's lines: it is looked for, not judged ---
line() { # yes|no LINE...
	answer=$1
	shift
	machine "configuration $1"
	# shellcheck disable=SC2059
	printf "[subsystem a]\n$1" >etc/nvme-nsheal.conf
	connected
	if [ "$answer" = yes ]; then triggered connected-nvme0; else nothing; fi
}
line yes "nqn = $nqn\n"
line yes "nqn = $nqn" # the last line has no end
line yes "nqn=$nqn\n"
line yes "  nqn\t=\t$nqn\t \n"
line yes "nqn = $nqn\r\n"
line yes "nqn = $nqn ; the array\n"
line yes "nqn = $nqn\t# the array\n"
line yes "nqn = ${nqn}5\nnqn = $nqn\n" # after one that only begins so
line yes "nqn = *\n"
line yes "nqn=*"
line yes "# nqn = *\nnqn = * ; all\n"
line no "nqn = ${nqn}5\n"            # this one is a prefix of it
line no "nqn = x$nqn\n"              # and here a suffix
line no "nqn = ${nqn%1}\n"           # the configured one is the prefix
line no "nqn = $nqn;the array\n"     # no blank: no comment, a longer NQN
line no "nqn = $nqn and more\n"
line no "# nqn = $nqn\n"
line no "; nqn = $nqn\n"
line no "  #nqn = $nqn\n"
line no "nqn = other ; nqn = $nqn\n"
line no "hostnqn = $nqn\n"
line no "label = $nqn\n"
line no "[subsystem $nqn]\n"
line no "$nqn\n"
line no "= $nqn\n"
line no "qn = $nqn\n"
line no "nqn = \n$nqn\n"
line no "#nqn = *\n"
line no "nqn = **\n"
line no "nqn = nqn.*\n"
line no "ignore = *\n"

machine 'nothing before the key'
printf 'qn=%s' "$nqn" >etc/nvme-nsheal.conf
connected
nothing
printf 'nqn=%s' "$nqn" >etc/nvme-nsheal.conf
connected
triggered connected-nvme0

# --- the configuration's files ---
for dir in etc run usr/lib; do
	machine "drop-in in $dir"
	configured
	mv etc/nvme-nsheal.conf $dir/nvme-nsheal.conf.d/10-array.conf
	connected
	triggered connected-nvme0
done

machine 'no drop-in directories'
rmdir etc/nvme-nsheal.conf.d run/nvme-nsheal.conf.d usr/lib/nvme-nsheal.conf.d
configured
connected
triggered connected-nvme0

machine 'not *.conf'
configured
mv etc/nvme-nsheal.conf etc/nvme-nsheal.conf.d/10-array.conf.rpmsave
connected
nothing

machine 'a masked drop-in, a directory, a FIFO, an empty file, and then the one'
ln -s /dev/null etc/nvme-nsheal.conf.d/00.conf
mkdir etc/nvme-nsheal.conf.d/01.conf
mkfifo etc/nvme-nsheal.conf.d/02.conf
: >etc/nvme-nsheal.conf.d/03.conf
connected
nothing
configured
mv etc/nvme-nsheal.conf etc/nvme-nsheal.conf.d/04.conf
connected
triggered connected-nvme0

machine 'a configuration larger than one read'
head -c 3000000 /dev/zero | tr '\0' '#' >etc/nvme-nsheal.conf
printf '\nnqn = %s\n' "$nqn" >>etc/nvme-nsheal.conf
connected
triggered connected-nvme0

machine 'a configuration larger than any'
truncate -s 1T etc/nvme-nsheal.conf
connected
triggered connected-nvme0

machine 'a configuration that cannot be read: the service will say so'
ln -s nvme-nsheal.conf etc/nvme-nsheal.conf
connected
triggered connected-nvme0

# --- /run ---
machine 'whatever the umask'
configured
(
	umask 077
	connected
)
[ "$(stat -c %a run/nvme-nsheal)" = 755 ] || fail "mode $(stat -c %a run/nvme-nsheal)"

# The service is started all the same: it looks, and finds out by itself.
started_without() { # MESSAGE
	[ "$status" -eq 0 ] || fail "exit code $status"
	case $output in *"$1"*) ;; *) fail "says: $output" ;; esac
	grep -qx -e '--no-block start nvme-nsheal.service' called || fail 'systemctl was not called'
	printf 'ok: %s\n' "$what"
}
machine 'the directory is a link'
configured
mkdir elsewhere
ln -s ../elsewhere run/nvme-nsheal
connected
started_without 'Operation not permitted'
[ -z "$(ls elsewhere)" ] || fail 'followed it'

machine 'others can write to the directory'
configured
mkdir -m 777 run/nvme-nsheal
chmod 777 run/nvme-nsheal
connected
started_without 'Operation not permitted'
[ -z "$(triggers)" ] || fail 'wrote to it'

if [ "$(id -u)" -eq 0 ]; then
	machine 'the directory is somebody else'"'"'s'
	configured
	mkdir run/nvme-nsheal
	chown 65534 run/nvme-nsheal
	connected
	started_without 'Operation not permitted'
	[ -z "$(triggers)" ] || fail 'wrote to it'
fi

machine 'links where the trigger and its first name go'
configured
mkdir run/nvme-nsheal
echo precious >victim
ln -s ../../victim "run/nvme-nsheal/trigger-$hash-connected-nvme0"
cat >planted <<-END
	ln -s ../../victim run/nvme-nsheal/.trigger-\$\$
	ACTION=change SUBSYSTEM=nvme DEVPATH=$ctl/nvme0 NVME_EVENT=connected exec $program
END
status=0
output=$(sh planted 2>&1) || status=$?
triggered connected-nvme0
[ "$(cat victim)" = precious ] || fail 'wrote through a link'
[ ! -L "run/nvme-nsheal/trigger-$hash-connected-nvme0" ] || fail 'is still a link'

machine 'a full /run'
configured
mkdir run/nvme-nsheal
sed -i '1a ulimit -S -f unlimited' bin/systemctl
trap '' XFSZ
output=$(
	# shellcheck disable=SC3045
	ulimit -S -f 0
	connected
	echo "$output $status"
)
trap - XFSZ
status=${output##* }
started_without 'cannot leave a trigger'
[ -z "$(ls -A run/nvme-nsheal)" ] || fail "left $(ls -A run/nvme-nsheal)"

# --- systemctl ---
machine 'a refused start (shutdown) is no error'
configured
systemctl bin 1
connected
triggered connected-nvme0

machine 'the first of the two places'
configured
systemctl usr/bin 0
systemctl bin 1
sed -i 's/called/wrong/' bin/systemctl
connected
triggered connected-nvme0
[ ! -e wrong ] || fail 'called both'

machine 'no systemctl: the trigger stays'
configured
rm bin/systemctl
connected
[ "$status" -eq 0 ] || fail "exit code $status"
case $output in *'cannot run systemctl: No such file'*) ;; *) fail "says: $output" ;; esac
[ "$(triggers)" = "trigger-$hash-connected-nvme0 " ] || fail "triggers: $(triggers)"

# --- for a person ---
machine 'by hand'
configured
run
[ "$status" -eq 2 ] || fail "without an event: exit code $status"
run ACTION=change SUBSYSTEM=nvme
[ "$status" -eq 2 ] || fail "without DEVPATH: exit code $status"
run ACTION=change SUBSYSTEM=nvme DEVPATH=nvme0
[ "$status" -eq 2 ] || fail "DEVPATH is no path: exit code $status"
for arguments in --nonsense nvme0 '--help extra'; do
	status=0
	# shellcheck disable=SC2086
	output=$("$program" $arguments 2>&1 >/dev/null) || status=$?
	[ "$status" -eq 2 ] || fail "$arguments: exit code $status"
	[ -n "$output" ] || fail "$arguments: not a word on stderr"
done
"$program" --help | grep -q '^Usage: nvme-nsheal-event' || fail '--help'
"$program" --version | grep -qE '^nvme-nsheal-event [0-9.]+' || fail '--version'
status=0
"$program" --help >/dev/full || status=$?
[ "$status" -eq 1 ] || fail '--help that cannot be written'
[ ! -e called ] || fail 'called systemctl'

# --- the shipped program: nothing but the C library, and quick to start ---
what='the shipped program'
cd "$work"
needed=$(ldd "$shipped" | grep -vE 'linux-vdso|linux-gate|libc\.so|ld-linux|lib(asan|ubsan|gcov|m|gcc_s|pthread|dl|rt)\.' || :)
[ -z "$needed" ] || fail "is linked with $needed"
instructions() {
	env -i ACTION=change SUBSYSTEM=nvme DEVPATH=$ctl/nvme0 NVME_EVENT=connected \
		"$valgrind" --tool=callgrind --callgrind-out-file=/dev/null "$1" 2>&1 |
		sed -n 's/.*Collected : \([0-9]*\).*/\1/p'
}
valgrind=$(command -v valgrind || :)
if [ -n "$valgrind" ] && ! ldd "$program" | grep -qE 'lib(asan|ubsan)' && ! grep -q __asan_ "$program"; then
	machine 'ten sections, none of this subsystem'
	for i in 0 1 2 3 4 5 6 7 8 9; do
		printf '[subsystem s%s]\nnqn = %s\nnamespace = nsid=1-12\ngrace = 10s\n' $i "${nqn}$i"
	done >etc/nvme-nsheal.conf
	base=$(instructions /bin/true)
	ours=$(instructions "$program")
	if [ "$((ours * 10))" -lt "$((base * 16))" ]; then
		echo "ok: $what: $ours instructions, /bin/true $base"
	else
		fail "$ours instructions, /bin/true $base"
	fi
fi

exit $failed
