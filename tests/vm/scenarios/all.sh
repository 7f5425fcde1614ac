# `namespace = all`: whatever the controllers list. An ignored one stays away as long as nothing else needs a rescan.
nqn=nqn.2024-01.test.nsheal:all

subsystem $nqn 1 2
map $nqn 1
connect $nqn 1 2
conf <<END
[subsystem all]
nqn = $nqn
namespace = all
ignore = nsid=9
grace = 1s
END
deaf $nqn
map $nqn 9
run_service
check "an ignored namespace is not healed" no_device "$(uuid_of 9)"
check "and is no fault" status_exits 0

trace_on
map $nqn 2
map $nqn 3
check "without help they stay hidden" always 3 no_device "$(uuid_of 2)"
run_service
check "the first device is there" wait_for 30 device "$(uuid_of 2)"
check "the second device is there" wait_for 30 device "$(uuid_of 3)"
check "with a path through both controllers" wait_for 30 equal 2 paths_of "$(uuid_of 3)"
check "each controller was scanned once" equal "1 1" scans_of_all $nqn
check "status has nothing to complain about" status_exits 0
