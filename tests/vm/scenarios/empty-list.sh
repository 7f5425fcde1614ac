# A target's fault: a list comes back empty, once, while what it should contain is in use. Whichever of our questions it
# is the answer to, nothing goes.
# limit: 600
. /run/vm/guest/lib-faulty.sh

target() { faulty $nqn "$@"; }
# lose NSID: one more is mapped and nobody hears of it; it is what the host should have.
lose() {
    conf <<END
[subsystem empty]
nqn = $nqn
namespace = nsid=$1
END
    target map "$1" silent
    quiet 1
    target forget
}
all_paths() { for nsid in 1 2 3 4; do paths_of "$(uuid_of $nsid)"; done | xargs; }

for ports in "1" "2 3"; do
    nqn=nqn.2024-01.test.nsheal:empty-${ports// /-}
    faulty_target $nqn $ports
    target map 1-4
    faulty_connect $nqn $ports
    users=
    for nsid in 1 2 3 4; do
        sleep 1000 3<"/dev/$(device_of "uuid.$(uuid_of $nsid)")" &
        users="$users $!"
    done
    paths=$(all_paths)

    # The kernel's scan asks for the same list, and no program can help it when that is empty. So only as many answers are
    # tried as we ask for before there is a rescan.
    wanted=5
    lose $wanted
    nvme-nsheal heal --now --dry-run
    check "ports $ports: every controller is asked" at_least 1 target count identify cns=2 on=${ports##* }
    for port in $ports; do
        asked=$(target count identify cns=2 on=$port)
        for ((skip = 0; skip < asked; skip++)); do
            target fault identify cns=2 zeros once on=$port skip=$skip
            check "port $port of $ports, answer $skip of $asked is empty: heal" nvme-nsheal heal --now
            check "that answer was given" nothing eval 'target faults | grep -v "(0 left)" || :'
            target clear
            check "nothing goes" equal 4 devices_of_range 1 4
            check "and no path to it" equal "$paths" all_paths
            check "the next heal" nvme-nsheal heal --now
            check "brings what was missed" wait_for 20 device "$(uuid_of $wanted)"
            lose $((++wanted))
        done
    done
    kill $users
    wait $users || :
    disconnect $nqn
done
