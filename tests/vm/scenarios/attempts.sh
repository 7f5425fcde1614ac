# A rescan that has no effect is made again, spaced, and not for ever.
# limit: 600
. /run/vm/guest/lib-faulty.sh

nqn=nqn.2024-01.test.nsheal:attempts
target() { faulty $nqn "$@"; }
configure() {       # NSID SETTLE
    conf <<END
[subsystem attempts]
nqn = $nqn
namespace = nsid=$1
grace = 1s
settle = $2
backoff = 3s
END
}
# gaps: between the rescans, whole seconds
gaps() { grep queue_scan: $TRACE/trace | grep -oE ' [0-9]+\.[0-9]+:' | tr -d ' :' | awk 'NR > 1 { print int($1 - last) } { last = $1 }' | xargs; }
gaps_are_at_least() {   # SECONDS...
    local gap got
    FIGURE=$(gaps)
    # shellcheck disable=SC2206
    got=($FIGURE)
    [ ${#got[@]} = $# ] || return 1
    for gap in "${got[@]}"; do [ "$gap" -ge "$1" ] || return 1; shift; done
}

faulty_target $nqn 1
target map 1
faulty_connect $nqn 1

gave_up() { journal | grep -c 'gave-up'; return 0; }

# --- the kernel's scan fails once for the wanted one
configure 2 2s
target map 2 silent
target forget
nvme-nsheal heal --now --dry-run
target fault identify cns=0 nsid=2 fail=0x6 once "skip=$(target count identify cns=0 nsid=2)"   # not our own question
quiet 1
trace_on
check "a transient failure: one heal" nvme-nsheal heal --now
check "brings it" device "$(uuid_of 2)"
check "by a second attempt" equal 2 rescans
check "after settle and backoff" gaps_are_at_least 5
check "status has nothing to complain about" status_exits 0

# --- always
configure 3 2s
target fault identify cns=0 nsid=3 fail=0x6
target map 3 silent
quiet 1
trace_on
run_service
check "one that never comes: three attempts" equal 3 rescans
check "spaced, the second gap twice as long" gaps_are_at_least 5 8
check "the kernel tried each time" equal 3 scans "$(faulty_ctrl $nqn 1)"
check "gave up" status_says 'NSID 3|nsid=3' gave-up
check "and said so once" equal 1 gave_up
run_service
run_service
check "the next runs remember" equal 3 rescans
check "and say no more" equal 1 gave_up
disconnect $nqn
trace_on
faulty_attach $nqn 1
check "connected anew" wait_for 60 equal 2 paths_through "$(faulty_ctrl $nqn 1)"
check "udev starts the service, and it starts afresh" wait_for 60 equal 3 rescans
check "that run ends" wait_for 30 service_is_idle
target clear

# --- duplicate identifiers: the kernel refuses the second, and says why
configure 4 1s
target map 4 uuid="$(uuid_of 1)" silent
quiet 1
run_service
check "the same identifiers twice: gave up" status_says 'NSID 4|nsid=4' gave-up
check "and points to the kernel's log" something sh -c "nvme-nsheal status | tr '\n' ' ' | grep -iE 'kernel.s +(own +)?log'"
check "where the reason is" something sh -c "dmesg | grep -i 'duplicate IDs'"
