# A range of NSIDs of which one has no device.
nqn=nqn.2024-01.test.nsheal:range
new=$(uuid_of 3)

subsystem $nqn 1 2
for nsid in 1 2 4; do map $nqn $nsid; done
connect $nqn 1 2
conf <<END
[subsystem range]
nqn = $nqn
namespace = nsid=1-4
grace = 1s
END
deaf $nqn
quiet 1
trace_on
map $nqn 3
check "without help it stays hidden" always 3 no_device $new
check "status names it" status_says '(^|[^0-9])3([^0-9]|$)' missing
check_not "status does not name the others" status_says 'nsid=(1|2|4)([^0-9]|$)' missing
run_service
check "the device is there" wait_for 30 device $new
check "with a path through both controllers" wait_for 30 equal 2 paths_of $new
check "each controller was scanned once" equal "1 1" scans_of_all $nqn
check "status has nothing to complain about" status_exits 0
