#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# What the package installs for udev and systemd: is it well-formed, and does it do what the manual says?
set -eu

failed=0
fail() {
	echo "FAIL: $*" >&2
	failed=1
}
ok() {
	echo "ok: $*"
}
need() {
	command -v "$1" >/dev/null || { fail "$1 is not installed"; exit 1; }
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
substitute() {
	sed -e "s|@sbindir@|$work/sbin|g" -e 's|@udevdir@|/usr/lib/udev|g' \
		-e 's|@sysconfdir@|/etc|g' -e 's|@rundir@|/run|g' -e 's|@prefixlibdir@|/usr/lib|g' "$1"
}
mkdir "$work/sbin" "$work/units"
# verify looks whether the program is there; which one it is does not matter here
cp /bin/true "$work/sbin/nvme-nsheal"
substitute "$top_srcdir/systemd/nvme-nsheal.service.in" >"$work/units/nvme-nsheal.service"
for unit in timer path; do
	if [ -e "$top_srcdir/systemd/nvme-nsheal.$unit.in" ]; then
		substitute "$top_srcdir/systemd/nvme-nsheal.$unit.in" >"$work/units/nvme-nsheal.$unit"
	else
		cp "$top_srcdir/systemd/nvme-nsheal.$unit" "$work/units"
	fi
done
rules=$work/70-nvme-nsheal.rules
substitute "$top_srcdir/udev/70-nvme-nsheal.rules.in" >"$rules"

# --- systemd's own judgement ---
need systemd-analyze
for unit in service timer path; do
	# verify says some things and ends with 0 all the same
	if said=$(systemd-analyze verify --man=no "$work/units/nvme-nsheal.$unit" 2>&1) && [ -z "$said" ]; then
		ok "systemd-analyze verify nvme-nsheal.$unit"
	else
		fail "systemd-analyze verify nvme-nsheal.$unit: $said"
	fi
done
if said=$(systemd-analyze security --offline=yes --threshold=20 "$work/units/nvme-nsheal.service" 2>&1); then
	ok "exposure: $(echo "$said" | sed -n 's/.*exposure level for nvme-nsheal.service: \([0-9.]*\).*/\1/p')"
else
	fail "exposure over 2.0: $(echo "$said" | tail -n 1)"
fi

# --- what the rest of the program relies on ---
set_to() { # UNIT KEY VALUE
	if grep -qxF "$2=$3" "$work/units/nvme-nsheal.$1"; then
		ok "$1: $2=$3"
	else
		fail "$1: wants $2=$3"
	fi
}
set_to service Type oneshot
set_to service ExecStart "$work/sbin/nvme-nsheal heal"
set_to service StartLimitIntervalSec 0 # a burst of events
set_to service TimeoutStartSec 180     # infinite for a oneshot
set_to service TimeoutStopSec 10
set_to service KillMode process # a child hanging in the kernel
set_to service RuntimeDirectory nvme-nsheal
set_to service RuntimeDirectoryPreserve yes # what is remembered from run to run
set_to service PrivateNetwork yes
set_to service CapabilityBoundingSet 'CAP_SYS_ADMIN CAP_SYS_PTRACE CAP_DAC_READ_SEARCH'
set_to service DeviceAllow 'char-nvme rw' # ProtectClock= denies all devices otherwise
set_to service DeviceAllow 'block-blkext r'
set_to service ProtectSystem strict
set_to timer OnActiveSec 10s
set_to timer OnUnitInactiveSec 30s
set_to timer WantedBy timers.target
set_to path PathChanged /etc/nvme-nsheal.conf
set_to path WantedBy paths.target
for key in AccuracySec RandomizedDelaySec; do
	grep -q "^$key=." "$work/units/nvme-nsheal.timer" || fail "timer: $key is not set"
done
# these would hide the controllers, the processes or the configuration
for key in PrivateDevices=yes ProtectProc=invisible ProcSubset=pid PrivateUsers=yes ReadWritePaths=; do
	! grep -q "^$key" "$work/units/nvme-nsheal.service" || fail "service: $key"
done

# --- the rules: one match a line, each guarded, no continuation ---
grep -v -e '^#' -e '^$' "$rules" >"$work/matches"
[ "$(wc -l <"$work/matches")" -eq 4 ] || fail "the rules are not four lines"
while IFS= read -r line; do
	case $line in
	*SUBSYSTEM==\"*\",*RUN+=\"/usr/lib/udev/nvme-nsheal-event\") ;;
	*) fail "not guarded by SUBSYSTEM, or runs something else: $line" ;;
	esac
	# every token is KEY=="pattern" but for the RUN+= at the end: nothing is set for other rules
	rest=$(printf '%s\n' "$line" |
		sed -E 's/^((ACTION|SUBSYSTEM|KERNEL|ENV\{[A-Z_]+\})=="[^"]*", )*RUN\+="[^"]*"$//')
	[ -z "$rest" ] || fail "not plain matches and one RUN+=: $line"
done <"$work/matches"
if command -v udevadm >/dev/null && udevadm verify --help >/dev/null 2>&1; then
	if said=$(udevadm verify --no-style "$rules" 2>&1); then
		ok "udevadm verify"
	else
		fail "udevadm verify: $said"
	fi
fi

# The rules applied to an event as udev would: prints how often the helper is run. Patterns are the shell's.
runs() { # KEY=VALUE...
	n=0
	while IFS= read -r line; do
		hit=yes
		old_ifs=$IFS
		IFS=,
		for token in $line; do
			token=${token# }
			case $token in *'=="'*) ;; *) continue ;; esac
			key=$(echo "${token%%==*}" | sed 's/^ENV{\(.*\)}$/\1/')
			pattern=${token#*==\"}
			pattern=${pattern%\"}
			value=
			for pair in "$@"; do
				case $pair in "$key="*) value=${pair#*=} ;; esac
			done
			# shellcheck disable=SC2254
			case $value in $pattern) ;; *) hit=no ;; esac
		done
		IFS=$old_ifs
		[ "$hit" = no ] || n=$((n + 1))
	done <"$work/matches"
	echo "$n"
}
event() { # EXPECTED WHAT KEY=VALUE...
	want=$1 what=$2
	shift 2
	got=$(runs "$@")
	if [ "$got" -eq "$want" ]; then
		ok "$what"
	else
		fail "$what: the helper is run $got times, not $want"
	fi
}
event 1 'a new controller' ACTION=add SUBSYSTEM=nvme KERNEL=nvme0
event 1 'a controller that went live' ACTION=change SUBSYSTEM=nvme KERNEL=nvme12 NVME_EVENT=connected
event 1 'an asynchronous event' ACTION=change SUBSYSTEM=nvme KERNEL=nvme0 NVME_AEN=0x020001
event 1 'a removed disk' ACTION=remove SUBSYSTEM=block DEVTYPE=disk KERNEL=nvme0n1
event 0 'a removed partition' ACTION=remove SUBSYSTEM=block DEVTYPE=partition KERNEL=nvme0n1p1
event 0 'another removed disk' ACTION=remove SUBSYSTEM=block DEVTYPE=disk KERNEL=sda
event 0 'a new disk' ACTION=add SUBSYSTEM=block DEVTYPE=disk KERNEL=nvme0n1
event 0 'a synthetic change' ACTION=change SUBSYSTEM=nvme KERNEL=nvme0
event 0 'a removed controller' ACTION=remove SUBSYSTEM=nvme KERNEL=nvme0
event 0 'a subsystem' ACTION=add SUBSYSTEM=nvme-subsystem KERNEL=nvme-subsys0
event 0 'a generic device' ACTION=add SUBSYSTEM=nvme-generic KERNEL=ng0n1
event 0 'a changed disk' ACTION=change SUBSYSTEM=block DEVTYPE=disk KERNEL=nvme0n1 NVME_EVENT=connected

exit $failed
