# A controller accepts a command and never answers it: nothing but its own findings has to wait for that.
# limit: 400
. /run/vm/guest/lib-faulty.sh

mute=nqn.2024-01.test.nsheal:mute
well=nqn.2024-01.test.nsheal:well
processes() { ps -eo comm= | grep '^nvme-nsheal' | sort | uniq -c | xargs; }

for nqn in $mute $well; do
    port=$([ $nqn = $mute ] && echo 1 || echo 2)
    faulty_target $nqn "$port"
    faulty $nqn map "$port"
    faulty_connect $nqn "$port"
done
conf <<END
[defaults]
grace = 1s
[subsystem mute]
nqn = $mute
namespace = nsid=3
[subsystem well]
nqn = $well
namespace = nsid=4
END

# for comparison: what it takes when all is well
faulty $well map 4 silent
quiet 1
start=$(now)
nvme-nsheal heal well
check "the one that answers, alone" wait_for 30 device "$(uuid_of 4)"
usual=$(since "$start")
faulty $well map 6 silent
sed -i s/nsid=4/nsid=6/ "$CONF"
faulty $mute map 3 silent
faulty $mute fault identify cns=2 never once
quiet 1
faulty $mute forget
trace_on
start=$(now)
! product_installed || systemctl start --no-block $UNIT
check "the other is healed meanwhile" wait_for 30 device "$(uuid_of 6)"
say "# figure: healed in $(since "$start") beside it, in $usual alone"
check "in its usual time" eval '! elapsed "$start" 15'
check "the service ends" wait_for 150 service_is_idle
say "# figure: the service took $(since "$start")"
check "before the kernel gives the command up" eval '! elapsed "$start" 58'
check_not "it has not failed" service_failed
check "the first is unknown" status_says 'nsid=3|NSID 3' unknown
check "nothing is left but what the kernel holds" equal "1 nvme-nsheal-ask" processes
check "it was asked once" equal 1 faulty $mute count identify cns=2
run_service
check "the next run leaves it alone" equal 1 faulty $mute count identify cns=2
check "and ends at once" eval '! elapsed "$start" 58'
check "one child still" equal "1 nvme-nsheal-ask" processes
check "no rescan there" equal 1 rescans

check "the kernel gives up and makes a new connection" wait_for 120 at_least 1 faulty $mute count connect
check "then the child ends" wait_for 30 equal '' processes
check "and its scan brings the namespace" wait_for 60 device "$(uuid_of 3)"
check "status has nothing to complain about" status_exits 0
